"""Analyses: one package per question, from a `Timeline` to a frozen result and its table."""
