"""Inference of a mapping for a log in an unknown format: proposes rules, then tests them on the whole log.

`lines` keeps a log as bytes. `text_entries` (with `clocks`, `tokens` and `cells`) and `records` split it into `entries`
with times, in groups that differ only in their values. `guess` uses their `words` to find counters of steps and the
meaning of other lines. `columns` and `steps` read the whole log with a guess, and `proof` tests it. `write` combines
the rules that pass, with the rejected ones and the reasons; `rules` and `templates` write them as TOML. `contradicted`
runs the same tests on a mapping that a user keeps.
"""
