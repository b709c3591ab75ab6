"""Mappings: a log format in ten lines of TOML (docs/mappings.md).

`declared` checks a file and reports the location of every mistake. `templates` converts `line` to a pattern. `rules`
makes rules that read lines of text or records. `shipped` contains the mappings that are always on.
"""
