"""Insights: events, their cost, and advice, in the order of cost (docs/insights.md)."""
