"""Parsers of the output of each program, including events that only several lines show together."""
