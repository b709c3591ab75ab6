"""Cells of a sheet as people read them, for the table and for Markdown. Text is left as it is: the renderer escapes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from goodput_cli.analysis.sheet import Audience, Cell, Column, ColumnKind, Sheet
from goodput_cli.vocabulary.text import change, clock, duration, finite, number, percent, points

NOT_RECORDED = "-"
_DAY = 86_400 * 10**9
_LEFT: tuple[ColumnKind, ...] = ("text", "share")


def shown_rows(sheet: Sheet) -> Sequence[tuple[Cell, ...]]:
    """The rows that people are shown."""
    return sheet.rows if sheet.grouped_rows is None else sheet.grouped_rows


def shown_columns(sheet: Sheet) -> list[tuple[int, Column]]:
    """The columns that people are shown, each with its position."""
    return [(position, column) for position, column in enumerate(sheet.columns) if column.audience & Audience.PEOPLE]


def is_left(column: Column) -> bool:
    """Whether a column is aligned at its left: text and bars are, numbers are not."""
    return column.kind in _LEFT


def cell_text(kind: ColumnKind, value: Cell) -> str:
    """A cell in words; what was not recorded is `-`, or nothing in a column of text. Bars are not text."""
    if value is None or (isinstance(value, float) and finite(value) is None):
        return "" if kind in _LEFT else NOT_RECORDED
    if kind == "text" or isinstance(value, str):
        return str(value)
    match kind:
        case "duration":
            return duration(int(value))
        case "change":
            return change(int(value))
        case "points":
            return points(float(value))
        case "instant":
            return " ".join(clock(int(value)))
        case "percent":
            return percent(float(value))
        case "count":
            return str(int(value))
        case _:
            return number(float(value))


def same_day(sheet: Sheet, rows: Iterable[Sequence[Cell]]) -> bool:
    """Whether all instants of the rows lie on one day (UTC), so that it need not be repeated."""
    places = [position for position, column in shown_columns(sheet) if column.kind == "instant"]
    days = {value // _DAY for row in rows for position in places if isinstance(value := row[position], int)}
    return len(days) <= 1


def short_instant(value: Cell, *, with_day: bool) -> str:
    """`01-31 10:00:00`, or without the day; the year stands in the heading."""
    if not isinstance(value, int):
        return NOT_RECORDED
    day, time = clock(value)
    return f"{day[5:]} {time}" if with_day else time


def table_columns(sheet: Sheet) -> list[tuple[int, Column]]:
    """The columns that programs read as CSV or Parquet, each with its position; what only draws bars is left out."""
    columns = enumerate(sheet.columns)
    return [(at, column) for at, column in columns if column.audience & Audience.TABLES and column.kind != "share"]
