"""Drafts a mapping of a log that no format reads: guesses, then proves.

`entries` takes a log apart: entries with times, in groups that differ in their values only. `guess` says what may count
steps and what lines may say beside them. `proof` reads the log with each guess and tests it. `write` writes the
rules that survive, with what was left out and why.
"""
