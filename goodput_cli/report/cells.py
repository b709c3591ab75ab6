"""Cells of a sheet as people read them, for the table and for Markdown. Text is left as it is: the renderer escapes."""

from __future__ import annotations

from collections.abc import Sequence

from goodput_cli.analysis.sheet import Audience, Cell, Column, ColumnKind, Sheet
from goodput_cli.vocabulary.text import change, clock, duration, finite, number, percent, points

NOT_RECORDED = "-"
_MONEY = 2
_NO_YEAR, _TIME = len("2026-"), len("2026-01-31 ")
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


def cell_texts(column: Column, values: Sequence[Cell]) -> list[str]:
    """The cells of a column in words; numbers of at most two decimals all have as many of them."""
    texts = [cell_text(column.kind, value) for value in values]
    if column.kind != "number" or any(isinstance(value, str) for value in values):
        return texts
    decimals = max((len(text.partition(".")[2]) for text in texts), default=0)
    if not 0 < decimals <= _MONEY:
        return texts
    return [f"{float(text):.{decimals}f}" if text != NOT_RECORDED else text for text in texts]


def instant_texts(sheet: Sheet, rows: Sequence[Sequence[Cell]], place: int) -> tuple[list[str], list[str] | None]:
    """The instants of a column as `2026-01-31 10:00:00` without what the lines above the table say already, the day or
    the year; and without the year for want of room, where there is one only."""
    above = " ".join((sheet.title, *sheet.summary))
    places = [position for position, column in shown_columns(sheet) if column.kind == "instant"]
    days = {clock(value)[0] for row in rows for position in places if isinstance(value := row[position], int)}
    years = {day[:4] for day in days}
    cells = [row[place] for row in rows]
    if len(days) == 1 and days <= set(above.split()):
        return [_instant(cell, _TIME) for cell in cells], None
    short = [_instant(cell, _NO_YEAR) for cell in cells] if len(years) <= 1 else None
    if short is not None and any(f"{year}-" in above for year in years):
        return short, None
    return [_instant(cell, 0) for cell in cells], short


def _instant(value: Cell, start: int) -> str:
    return " ".join(clock(value))[start:] if isinstance(value, int) else NOT_RECORDED


def table_columns(sheet: Sheet) -> list[tuple[int, Column]]:
    """The columns that programs read as CSV or Parquet, each with its position; what only draws bars is left out."""
    columns = enumerate(sheet.columns)
    return [(at, column) for at, column in columns if column.audience & Audience.TABLES and column.kind != "share"]
