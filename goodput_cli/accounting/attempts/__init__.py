"""Attempts (accounting §3): where each begins, and how it ends."""
