"""Advice (docs/advice.md): the checkpoint interval, and the improvements that would help most. Pure functions over a
record of attempts, which `from_timeline` takes from the accounting; no other module here depends on how the accounting
is built."""
