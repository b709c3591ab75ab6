"""Text that programs print: stdout of trainers, launchers and schedulers, where one line in a thousand says something.

From bytes to rows:

1. `scan` finds lines with a literal of some rule over whole blocks, and stamps beside them; the rest is noise.
2. `stamps` takes a line apart; a `LineRule` of a format makes a `ParsedEvent` of it (`log_lines`): a `LogLine`.
3. `collected` holds the log lines of all sources. At the end `infer_times` gives each an instant, also to those without
   a stamp, `jobs` finds which files are one job, `meaning` says what log lines mean, `to_rows` makes rows of them.
"""
