"""A sheet as Parquet: every row, exact values, the columns that CSV has.

The kind of a column gives its type: instants are timestamps (ns, UTC), an amount of time is `NAME_ns` (int64), a
percentage `NAME_percent` (float64). What was not recorded is null.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import pyarrow as pa

from goodput_cli.analysis.sheet import NS, SCHEMA_VERSION, Cell, Column, ColumnKind, Sheet
from goodput_cli.fleet.report.sheet import FleetSheet, runs_sheet
from goodput_cli.report.base import Page
from goodput_cli.report.parquet.file import INSTANT, ROWS, TEXT, program_version, write
from goodput_cli.report.sheets.cells import table_columns
from goodput_cli.vocabulary.text import finite, well_formed

_TYPES: dict[ColumnKind, pa.DataType] = {
    "text": TEXT,
    "count": pa.int64(),
    "duration": pa.int64(),
    "change": pa.int64(),
    "instant": INSTANT,
    "number": pa.float64(),
    "percent": pa.float64(),
    "points": pa.float64(),
}
_WHOLE = ("count", "duration", "change", "instant")


def render(sheet: Sheet, page: Page) -> bytes:  # noqa: ARG001 - a renderer's signature
    """The rows of the sheet; tables below it are for people."""
    columns = table_columns(sheet)
    schema = pa.schema([pa.field(well_formed(column.head(NS)), _TYPES[column.kind]) for _, column in columns])
    about = {"schema_version": str(SCHEMA_VERSION), "table": sheet.title, "version": program_version()}
    return write(schema, _row_groups(sheet, columns), about)


def render_fleet(sheet: FleetSheet, page: Page) -> bytes:
    """Every run of a fleet, a row each."""
    assert sheet.report is not None
    return render(runs_sheet(sheet.report), page)


def _row_groups(sheet: Sheet, columns: Sequence[tuple[int, Column]]) -> Iterator[Sequence[pa.Array]]:
    rows = iter(sheet.rows)
    while part := list(islice(rows, ROWS)):
        yield [_array(column.kind, [row[position] for row in part]) for position, column in columns]


def _array(kind: ColumnKind, cells: Sequence[Cell]) -> pa.Array:
    if kind == "text":
        return pa.array([None if cell is None else well_formed(str(cell)) for cell in cells], pa.string()).cast(TEXT)
    if kind in _WHOLE:
        return pa.array([None if cell is None else int(cell) for cell in cells], pa.int64()).cast(_TYPES[kind])
    return pa.array([None if cell is None else finite(float(cell)) for cell in cells], pa.float64())
