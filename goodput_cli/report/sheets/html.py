"""A sheet as an HTML page: the frame of the report, and tables. It needs no script."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from markupsafe import Markup

from goodput_cli.analysis.sheet import Cell, Chart, Column, Sheet
from goodput_cli.report.base import Page
from goodput_cli.report.html.page import document
from goodput_cli.report.sheets.cells import cell_texts, is_left, shown_columns, shown_rows
from goodput_cli.vocabulary.text import finite

MOST_ROWS = 5000
"""How many rows of a table a page holds: a browser opens more of them slowly, and nobody reads them."""


@dataclass(frozen=True)
class HtmlCell:
    """text: in words. share: 0 to 1 for a bar, else None. left: whether it is aligned at its left."""

    text: str
    share: float | None
    left: bool


@dataclass(frozen=True)
class HtmlTable:
    """A sheet as the templates take it. left_out: how many rows the page does not hold."""

    title: str
    summary: tuple[str, ...]
    heads: tuple[HtmlCell, ...]
    rows: tuple[tuple[HtmlCell, ...], ...]
    left_out: int
    notes: tuple[str, ...]
    more: tuple[HtmlTable, ...]
    drawing: Markup | None = None
    """The chart as an SVG element."""
    words: str = ""
    """What the chart shows, for those who do not see it."""


def render(sheet: Sheet, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """The sheet as one HTML page."""
    return document("sheet.html", title=sheet.title, table=html_table(sheet))


def html_table(sheet: Sheet, most: int = MOST_ROWS) -> HtmlTable:
    """What people are shown of a sheet, in words, and of long tables the first `most` rows."""
    every, columns = shown_rows(sheet), shown_columns(sheet)
    rows = list(islice(every, most))
    cells = [_cells(column, [row[position] for row in rows]) for position, column in columns]
    return HtmlTable(
        title=sheet.title,
        summary=sheet.summary,
        heads=tuple(HtmlCell(_head(column), None, is_left(column)) for _, column in columns),
        rows=tuple(zip(*cells, strict=True)),
        left_out=max(len(every) - most, 0),
        notes=sheet.notes,
        more=tuple(html_table(part, most) for part in sheet.sections),
        drawing=None if sheet.chart is None else _drawing(sheet.chart),
        words="" if sheet.chart is None else sheet.chart.words,
    )


def _drawing(chart: Chart) -> Markup:
    from goodput_cli.report.html.sheet_charts import inside_a_page  # the chart library takes a second to import

    return Markup(inside_a_page(chart, "chart"))


def _head(column: Column) -> str:
    return column.heading + (" (UTC)" if column.kind == "instant" else "")


def _cells(column: Column, values: list[Cell]) -> list[HtmlCell]:
    if column.kind != "share":
        return [HtmlCell(text, None, is_left(column)) for text in cell_texts(column, values)]
    shares = (finite(float(value)) if isinstance(value, int | float) else None for value in values)
    return [HtmlCell("", None if share is None else min(max(share, 0.0), 1.0), True) for share in shares]
