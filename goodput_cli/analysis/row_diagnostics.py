"""A diagnostic whose places are rows of an event table."""

from __future__ import annotations

from goodput_cli.accounting.columns import distinct
from goodput_cli.arrays import Rows
from goodput_cli.diagnostics.diagnostic import MAX_PLACES, Diagnostic
from goodput_cli.events.schema import EventTable


def diagnostic_at(
    code: str, table: EventTable, rows: Rows, message: str, count: int | None = None, *, mild: bool = False
) -> Diagnostic:
    """A diagnostic at some rows of a table, its places sorted by source and line.

    count: how often, where it is not once a row. mild: a mild case of its code. Raises ValueError for a code without a
    row in the table of codes.
    """
    named = distinct(rows)[:MAX_PLACES].tolist() if len(rows) else []  # as a rule there is nothing to say
    places = sorted({(table.sources[table.source[row]], int(table.line[row]), table.where(row)) for row in named})
    number = len(rows) if count is None else count
    return Diagnostic.of(code, message, number, tuple(place for _, _, place in places), mild=mild)
