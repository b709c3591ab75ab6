"""Advice (docs/advice.md): how often to save, what would have bought most, and what if. Pure functions over a record of
lives, which `from_timeline` takes from the accounting; nothing else here knows how the accounting is built."""
