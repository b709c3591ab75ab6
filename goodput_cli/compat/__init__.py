"""Compatibility with other libraries: their names, and their results next to ours. No other part of goodput uses it."""
