"""A sheet as CSV: one table, every row, exact values.

The head says the unit: an amount of time is `NAME_seconds`, an exact decimal; a percentage `NAME_percent`; an instant
is ISO-8601 in UTC. What was not recorded is an empty cell.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

from goodput_cli.analysis.sheet import Cell, Column, Sheet
from goodput_cli.report.base import Page
from goodput_cli.report.formats.csv import text_cell
from goodput_cli.report.sheets.cells import table_columns
from goodput_cli.vocabulary.text import finite, iso, seconds_text


def render(sheet: Sheet, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """Header and rows."""
    columns = table_columns(sheet)
    writers = [(position, _writer(column)) for position, column in columns]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([text_cell(column.head()) for _, column in columns])
    writer.writerows([write(row[position]) for position, write in writers] for row in sheet.rows)
    return out.getvalue()


def _writer(column: Column) -> Callable[[Cell], str | int]:
    match column.kind:
        case "text":
            return lambda value: "" if value is None else text_cell(str(value))
        case "duration" | "change":
            return lambda value: "" if value is None else seconds_text(int(value))
        case "instant":
            return lambda value: "" if value is None else iso(int(value))
        case "count":
            return lambda value: "" if value is None else int(value)
        case _:
            return lambda value: "" if value is None or finite(float(value)) is None else repr(float(value))
