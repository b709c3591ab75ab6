"""What the rules of a mapping read, as sheets below the findings of a check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from goodput_cli.analysis.sheet import Column, Sheet
from goodput_cli.analysis.table import attribute, each, table_rows

_MOST = 10


class Matches(Protocol):
    """What one rule read."""

    rule: str
    event: str
    lines: int
    first: int | None
    last: int | None
    results: list[str]
    refused: list[tuple[int, str]]


def mapping_sheet(name: str, rows: Sequence[Matches]) -> Sheet:
    """A row a rule."""
    columns = (
        Column("rule", "text", values=each(lambda row: row.rule[:60])),
        Column("event", "text", values=attribute("event")),
        Column("lines", "count", values=attribute("lines")),
        Column("first", "count", values=attribute("first")),
        Column("last", "count", values=attribute("last")),
        Column("refused", "count", values=each(lambda row: len(row.refused))),
        Column("gives", "text", values=each(lambda row: "; ".join(row.results))),
    )
    notes = [f"line {number} refused: {reason}" for row in rows for number, reason in row.refused[:_MOST]]
    return Sheet(
        title=f"Mapping {name}",
        columns=columns,
        rows=table_rows(columns, len(rows), lambda: [rows]),
        notes=tuple(notes),
    )


def unread_sheet(shapes: Counter[str]) -> Sheet:
    """The most frequent lines that no rule reads, digits as `#`."""
    rows = shapes.most_common(_MOST)
    columns = (
        Column("lines that no rule reads", "text", values=each(lambda row: row[0])),
        Column("count", "count", values=each(lambda row: row[1])),
    )
    return Sheet(title="Other lines", columns=columns, rows=table_rows(columns, len(rows), lambda: [rows]))
