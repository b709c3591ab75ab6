"""Insights: what happened, what it cost, and what to do, in the order of cost (docs/insights.md)"""
