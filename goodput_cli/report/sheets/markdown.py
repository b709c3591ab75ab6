"""A sheet as Markdown (GitHub's); text of the log is escaped."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from goodput_cli.analysis.sheet import Cell, Column, Sheet
from goodput_cli.report.base import Page
from goodput_cli.report.markdown import category_text, escape, table_row
from goodput_cli.report.sheets.cells import cell_texts, is_left, shown_columns, shown_rows
from goodput_cli.report.terminal import bar

_BAR_WIDTH = 10


def render(sheet: Sheet, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """The sheet as a Markdown document."""
    return "\n".join(_lines(sheet)) + "\n"


def _lines(sheet: Sheet, level: int = 1) -> Iterator[str]:
    yield f"{'#' * level} {escape(sheet.title)}"
    for line in sheet.summary:
        yield from ("", escape(line))
    if shown_rows(sheet):
        yield ""
        yield from table_lines(sheet)
    if sheet.notes:
        yield from ("", *(f"- {escape(note)}" for note in sheet.notes))
    for part in sheet.sections:
        yield ""
        yield from _lines(part, level + 1)


def table_lines(sheet: Sheet, most: int | None = None) -> Iterator[str]:
    """The rows that people are shown as a table, or the first `most` of them."""
    columns = shown_columns(sheet)
    yield table_row(*(_head(column) for _, column in columns))
    yield table_row(*("---" if is_left(column) else "---:" for _, column in columns))
    rows = list(islice(shown_rows(sheet), most))
    cells = [_cells(column, [row[position] for row in rows]) for position, column in columns]
    yield from (table_row(*row) for row in zip(*cells, strict=True))


def _head(column: Column) -> str:
    return escape(column.heading) + (" (UTC)" if column.kind == "instant" else "")


def _cells(column: Column, values: list[Cell]) -> list[str]:
    if column.kind == "share":
        return [bar(100 * one, _BAR_WIDTH, unicode=True) if isinstance(one, int | float) else "" for one in values]
    texts = cell_texts(column, values)
    return [category_text(text) if column.brief is not None else escape(text) for text in texts]
