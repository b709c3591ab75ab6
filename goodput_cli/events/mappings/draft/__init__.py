"""Drafts a mapping of a log that no format reads: guesses, then proves.

`entries` and `records` take a log apart: entries with times, in groups that differ in their values only. `guess` says
by the `words` of these what may count steps and what lines may say beside them. `steps` reads the whole log with a
guess, and `proof` tests it. `write` puts together what survives, with what was left out and why; `rules` and
`templates` write it as TOML. `contradicted` asks the same of a mapping that somebody keeps.
"""
