"""CSV: the first table of an answer with all rows and exact values.

The header contains the unit: an amount of time is `NAME_seconds`, an exact decimal; a percentage is `NAME_percent`;
times are ISO 8601 in UTC. Unrecorded values are empty cells. The assumptions of the answer are in the last line, after
a `#`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence

from goodput_cli.analysis.document import Document
from goodput_cli.analysis.sheet import Cell, Column
from goodput_cli.report.base import Page
from goodput_cli.report.terminal import table_columns
from goodput_cli.vocabulary.text import finite, iso, safe, seconds_text

_FORMULA_STARTS = tuple("=+-@\t\r＝＋－＠")  # noqa: RUF001 - spreadsheets take the full-width forms too


def render(document: Document, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """Return header and rows."""
    table = document.tables()[0]
    columns = table_columns(table)
    writers = [(position, _writer(column)) for position, column in columns]
    rows = ([write(row[position]) for position, write in writers] for row in table.rows)
    text = _written([text_cell(column.head()) for _, column in columns], rows)
    return f"{text}# {safe(table.remark)}\n" if table.remark else text


def csv_text(head: Sequence[str], rows: Iterable[Sequence[str | int]]) -> str:
    """Return rows of texts and numbers as CSV with a header."""
    return _written(head, ([text_cell(cell) if isinstance(cell, str) else cell for cell in row] for row in rows))


def text_cell(text: str) -> str:
    """Return text for a cell. A quote before a possible formula keeps spreadsheets from evaluating it."""
    return "'" + safe(text) if text.lstrip(" ").startswith(_FORMULA_STARTS) else safe(text)


def _written(head: Sequence[str], rows: Iterable[Sequence[str | int]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
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
