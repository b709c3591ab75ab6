"""Text that programs print: stdout of trainers, launchers and schedulers, where one line in a thousand says something.

From bytes to rows:

1. `scan` finds lines with a literal of some rule over whole blocks, and stamps beside them; the rest is noise.
2. `stamps` takes a line apart; a `Rule` of a format makes a `Said` of it (`marks`): a `Mark` at its line.
3. `collected` holds the marks of all sources. At the end `place` gives each an instant, also to those without a stamp,
   `jobs` finds which files are one job, `meaning` says what marks mean, and `to_rows` makes rows of them.
"""
