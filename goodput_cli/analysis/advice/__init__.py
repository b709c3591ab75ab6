"""Advice (docs/advice.md): the checkpoint interval, and the improvements that would help most. Pure functions over a
record of lives, which `from_timeline` takes from the accounting; nothing else here knows how the accounting is
built."""
