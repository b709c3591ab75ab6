"""Mappings: a log format in ten lines of TOML (docs/mappings.md).

`declared` checks what a file says and knows the place of every mistake in it; `templates` turns `line` into a pattern;
`rules` makes rules of it, which read lines of text or records; `shipped` holds those that are always on.
"""
