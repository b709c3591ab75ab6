"""Parsers of program output: stdout of trainers, launchers and schedulers, in which few lines contain an event.

From bytes to rows:

1. `scan` searches whole blocks for lines with a literal of a rule, and for timestamps. Other lines are skipped.
2. `line_timestamps` splits a line into its parts. A `LineRule` of a format converts it to a `ParsedEvent`, and
   `log_lines` has the resulting `LogLine`.
3. `collector` keeps the log lines of all sources. At the end, the `passes` interpret them: each line gets a time, lines
   become events, and files jobs. `to_rows` makes rows of the events. docs/text-engine.md lists the passes.
"""
