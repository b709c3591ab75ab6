"""Drafts a mapping of a log that no format reads.

`entries` reads lines as texts with times, `shapes` groups those that differ in their numbers only, `steps` finds the
number that counts steps and what it is counted within, `phases` finds starts, saves, evaluations and ends, `records`
does the same for JSON objects and tables. `draft` writes it all as TOML, reads that, and keeps the rules that read.
"""
