"""A sheet as an HTML page: the frame of the report, and tables. It needs no script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from goodput_cli.analysis.sheet import Cell, Chart, Column, Sheet
from goodput_cli.report.base import Page
from goodput_cli.report.cells import cell_texts, is_left, shown_columns, shown_rows
from goodput_cli.report.html.page import document
from goodput_cli.vocabulary.text import finite

if TYPE_CHECKING:
    from goodput_cli.report.html.drawing import Drawing

MOST_ROWS = 5000
"""How many rows of a table a page holds: a browser opens more of them slowly, and nobody reads them."""
_NARROW = 36
"""Characters that fit a phone beside each other: rows of wider tables are cards there."""
_BAR = 8
_WHOLE, _LONG = 24, 60
"""Characters of a text that stay on one line, and of one that may be broken anywhere."""
_TONES = {"worse": "bad", "better": "good"}


@dataclass(frozen=True)
class HtmlCell:
    """text: in words. share: 0 to 1 for a bar, else None. left: whether it is aligned at its left. tone: `good` or
    `bad` where it says that something got better or worse; words and signs say so too."""

    text: str
    share: float | None
    left: bool
    tone: str = ""

    @property
    def look(self) -> str:
        """Its classes of the style sheet. What is short is not broken: a range, a file, the name of a job."""
        length = len(self.text)
        broken = "whole" if length <= _WHOLE else "long" if length > _LONG else ""
        names = ("" if self.left else "number", broken, self.tone)
        return " ".join(filter(None, names))


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
    drawings: tuple[Drawing, ...] = ()
    """The chart, and the same for a phone."""
    words: str = ""
    """What the chart shows, for those who do not see it."""
    ids: tuple[str | None, ...] = ()
    """Of the rows, where something leads to them."""

    @property
    def wide(self) -> bool:
        """Whether its columns are too wide for a phone."""
        columns = zip(self.heads, *self.rows, strict=True)
        return sum(max(_width(cell) for cell in column) + 2 for column in columns) > _NARROW


def render(sheet: Sheet, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """An answer that is a table as one HTML page."""
    covered = 0 if sheet.card is None else sheet.card.covers
    shown = replace(sheet, summary=sheet.summary[covered:])
    return document("sheet.html", title=sheet.title, card=sheet.card, table=html_table(shown))


def html_table(sheet: Sheet, most: int = MOST_ROWS) -> HtmlTable:
    """What people are shown of a sheet, in words, and of long tables the first `most` rows."""
    every, columns = shown_rows(sheet), shown_columns(sheet)
    rows = list(islice(every, most))
    judged = any(column.name in _TONES for _, column in columns)
    cells = [_cells(column, [row[position] for row in rows], judged=judged) for position, column in columns]
    return HtmlTable(
        title=sheet.title,
        summary=sheet.summary,
        heads=tuple(HtmlCell(_head(column), None, is_left(column)) for _, column in columns),
        rows=tuple(zip(*cells, strict=True)),
        left_out=max(len(every) - most, 0),
        notes=sheet.notes,
        more=tuple(html_table(part, most) for part in sheet.sections),
        drawings=() if sheet.chart is None else _drawings(sheet.chart),
        words="" if sheet.chart is None else sheet.chart.words,
    )


def with_ids(table: HtmlTable, prefix: str) -> HtmlTable:
    """The table with an id for each row: the prefix, and the number in its first column, or the first of a range."""
    return replace(table, ids=tuple(_ids(table.rows, prefix)))


def _ids(rows: Sequence[Sequence[HtmlCell]], prefix: str) -> Iterator[str | None]:
    seen: set[str] = set()
    for number in (row[0].text.partition("-")[0] for row in rows):
        yield f"{prefix}-{number}" if number.isdigit() and number not in seen else None
        seen.add(number)


def _width(cell: HtmlCell) -> int:
    return _BAR if cell.share is not None else len(cell.text)


def _drawings(chart: Chart) -> tuple[Drawing, ...]:
    from goodput_cli.report.html.sheet_charts import inside_a_page  # the chart library takes a second to import

    return inside_a_page(chart, "chart")


def _head(column: Column) -> str:
    return column.heading + (" (UTC)" if column.kind == "instant" else "")


def _cells(column: Column, values: list[Cell], *, judged: bool) -> list[HtmlCell]:
    """judged: whether gains and losses are better and worse."""
    if column.kind != "share":
        texts = cell_texts(column, values)
        texts = texts if column.brief is None else list(map(column.brief, texts))
        return [
            HtmlCell(text, None, is_left(column), _tone(column, value, judged=judged))
            for text, value in zip(texts, values, strict=True)
        ]
    shares = (finite(float(value)) if isinstance(value, int | float) else None for value in values)
    tone = _TONES.get(column.name, "")
    return [HtmlCell("", None if share is None else min(max(share, 0.0), 1.0), True, tone) for share in shares]


def _tone(column: Column, value: Cell, *, judged: bool) -> str:
    if judged and column.kind in ("change", "points") and isinstance(value, int | float) and value:
        return "good" if value > 0 else "bad"
    return "" if column.name else _TONES.get(str(value), "")
