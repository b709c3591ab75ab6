"""What the rules of a mapping read, as sheets below the findings of a check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from goodput_cli.analysis.sheet import Column, Sheet
from goodput_cli.analysis.table import attribute, each, table_rows

_MOST = 10


class Line(Protocol):
    """A line of a log."""

    @property
    def source(self) -> str: ...
    @property
    def number(self) -> int: ...
    @property
    def text(self) -> str: ...


class Matches(Protocol):
    """What one rule read."""

    at: int
    event: str
    lines: int
    first: str | None
    last: str | None
    results: list[str]
    refused: int


class Refused(Protocol):
    """A line that a rule knows and whose values are wrong."""

    @property
    def line(self) -> Line: ...
    @property
    def reason(self) -> str: ...


def mapping_sheet(name: str, rows: Sequence[Matches], refused: Sequence[str]) -> Sheet:
    """A row a rule, called by its line in the mapping; what the first lines that it read give stands below."""
    columns = (
        Column("rule", "text", values=each(lambda row: f"line {row.at}")),
        Column("event", "text", values=attribute("event")),
        Column("lines", "count", values=attribute("lines")),
        Column("refused", "count", values=attribute("refused")),
        Column("first at", "text", values=attribute("first")),
        Column("last at", "text", values=attribute("last")),
    )
    notes = [f"line {row.at}, {row.event}: {'; '.join(row.results)}" for row in rows if row.results]
    rows_of = table_rows(columns, len(rows), lambda: [rows])
    return Sheet(title=f"Mapping {name}", columns=columns, rows=rows_of, notes=(*notes, *refused))


def refused_notes(refused: Sequence[Refused]) -> list[str]:
    """The first refused lines, a sentence each."""
    notes = [f"{one.line.source}:{one.line.number} refused: {one.reason}" for one in refused[:_MOST]]
    more = len(refused) - len(notes)
    return [*notes, f"and {more} more lines; --rejects FILE writes them all"] if more > 0 else notes


def unread_sheet(shapes: Counter[str], examples: Mapping[str, Line]) -> Sheet:
    """The most frequent lines that no rule reads: an example of each, and how many differ from it in digits only."""
    rows = [(shape, count, examples[shape]) for shape, count in shapes.most_common(_MOST)]
    columns = (
        Column("lines that no rule reads", "text", values=each(lambda row: row[2].text.strip())),
        Column("count", "count", values=each(lambda row: row[1])),
        Column("first at", "text", values=each(lambda row: f"{row[2].source}:{row[2].number}")),
    )
    return Sheet(title="Other lines", columns=columns, rows=table_rows(columns, len(rows), lambda: [rows]))
