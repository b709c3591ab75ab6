"""A sheet as an HTML page: the frame of the report with tables, without scripts; and the charts of sheets.

The chart of goodput against the save interval uses shapes, so that it can be read without colors: a line for the mean,
a band of 95 %, dots for the replay of the job's own failures, a circle for the recommendation, diamonds for today. In
the chart of the differences between two runs, the side and the sign of a bar repeat the meaning of its color.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from goodput_cli.analysis.advice.sheet import IntervalChart
from goodput_cli.analysis.compare.phrases import less_or_more
from goodput_cli.analysis.compare.sheet import ChangeChart
from goodput_cli.analysis.sheet import Cell, Chart, Column, Sheet
from goodput_cli.errors import UsageError
from goodput_cli.report.base import Page
from goodput_cli.report.html.charts import KEPT_COLOUR, LOST_COLOUR, WIDTH, round_numbers
from goodput_cli.report.html.drawing import (
    INK,
    Drawing,
    Spec,
    drawing,
    drawn,
    field,
    finished,
    independent,
    layered,
    left_axis,
    legend,
    marks,
    narrowed,
    only,
    painted,
    texts,
    title,
    untitled,
)
from goodput_cli.report.html.page import document
from goodput_cli.report.terminal import cell_texts, full_heading, is_left, shown_columns, shown_rows
from goodput_cli.vocabulary.text import finite, points, safe, shorten

_HEIGHT = 320
_LONGEST_TITLE = 80
_KEY = "line: expected goodput; band: 95 % range; dots: replay of this run's failures; bar on the axis: equally good"
_KEYS: dict[type[Chart], str] = {IntervalChart: f"{_KEY[0].upper()}{_KEY[1:]}."}
"""Key of a chart without its title: the page shows the title and the answer once."""
_MARKS = {
    "recommended": ("circle", KEPT_COLOUR, KEPT_COLOUR),
    "today (expected)": ("diamond", LOST_COLOUR, LOST_COLOUR),
    "today (this run)": ("diamond", "transparent", LOST_COLOUR),
}
"""Shape, fill and outline."""


def interval_spec(chart: IntervalChart) -> Spec:
    """Return the specification of the interval chart with its data."""
    rows = [
        {"n": one.every_steps, "p": one.goodput_percent, "low": one.ci95_percent[0], "high": one.ci95_percent[1],
         "again": one.replayed_percent}
        for one in chart.points
    ]  # fmt: skip
    x = _x(chart)
    band = {"opacity": 0.16, "color": KEPT_COLOUR, "clip": True}
    average = {"strokeWidth": 2.5, "color": KEPT_COLOUR, "clip": True}
    again = {"size": 14, "color": INK, "opacity": 0.5, "clip": True}
    layers = [
        marks(rows, "area", band, x=x, y=_y(chart, "low"), y2="high"),
        _formulas(chart),
        _luck(chart),
        _plateau(chart),
        marks(rows, "line", average, x=x, y=_y(chart)),
        marks(rows, "circle", again, only("isValid(datum.again)"), x=x, y=_y(chart, "again")),
        _marks(chart),
    ]
    name, advice = (shorten(safe(text), _LONGEST_TITLE) for text in chart.title)
    shown = [layer for layer in layers if layer is not None]
    apart = independent("shape", "fill", "stroke")
    above = title(name, advice, _KEY, offset=22)
    return finished(layered(*shown, **above, **apart, width=WIDTH, height=_HEIGHT))


def _x(chart: IntervalChart) -> Spec:
    """Return the axis of steps between two saves, logarithmic, with the equivalent training time."""
    least, most = chart.points[0].every_steps, chart.points[-1].every_steps
    seconds = f"datum.value*{chart.pace_seconds!r}"
    time = f"({seconds}<90?format({seconds},'.2~r')+' s':{seconds}<5400?format({seconds}/60,'.2~r')+' min':"
    time += f"format({seconds}/3600,'.2~r')+' h')"
    axis = {
        "title": "checkpoint interval in steps, and as training time", "values": round_numbers(least, most),
        "labelExpr": f"[format(datum.value,',d'),{time}]", "grid": False, "labelOverlap": True, "labelSeparation": 6,
    }  # fmt: skip
    return field("n", axis=axis, scale={"type": "log", "domain": [least, max(most, least + 1)], "nice": False})


def _y(chart: IntervalChart, name: str = "p") -> Spec:
    """Return the axis of goodput. It starts a tenth below the lowest value: from 0, no difference would be visible."""
    shown = [one.goodput_percent for one in chart.points]
    shown += [point[1] for point in (chart.advised, chart.today, chart.recorded) if point is not None]
    low = min(shown) - (max(shown) - min(shown) or 1) / 10
    high = max(*shown, *(one.ci95_percent[1] for one in chart.points))
    scale = {"domain": [max(low, 0), high], "nice": False, "zero": False}
    return field(name, axis=left_axis("goodput, %", tickCount=6), scale=scale)


def _plateau(chart: IntervalChart) -> Spec | None:
    """Return a thick part of the axis that marks equally good intervals."""
    if chart.plateau is None:
        return None
    values = [{"n": chart.plateau[0], "m": max(chart.plateau[1], chart.plateau[0] + 0.5)}]
    look = {"strokeWidth": 6, "color": KEPT_COLOUR, "clip": True}
    return marks(values, "rule", look, x=_x(chart), x2="m", y={"value": _HEIGHT})


def _formulas(chart: IntervalChart) -> Spec | None:
    """Return Young's and Daly's intervals as dashed lines. The names of close lines are below each other."""
    if not chart.formulas:
        return None
    values = [{"n": n, "text": name, "row": 4 + 14 * at} for at, (name, n) in enumerate(chart.formulas)]
    line = {"strokeDash": [5, 4], "color": INK, "opacity": 0.6, "clip": True}
    name = {"align": "left", "baseline": "top", "dx": 4, "fontSize": 12, "color": INK, "clip": True}
    row = field("row", scale=None, axis=None)
    return layered(
        marks(values, "rule", line, x=_x(chart)),
        marks(values, "text", name, x=_x(chart), y=row, text=field("text", "N")),
        **independent("y"),
    )


def _luck(chart: IntervalChart) -> Spec | None:
    """Return the line from the expected value today to the value of this run: the effect of chance."""
    if chart.today is None or chart.recorded is None:
        return None
    n, low, high = *chart.today, chart.recorded[1]
    values = [{"n": n, "p": low, "to": high, "mid": (low + high) / 2, "text": "chance"}]
    word = {"align": "left", "dx": 6, "fontSize": 12, "color": INK, "clip": True}
    return layered(
        marks(values, "rule", {"color": LOST_COLOUR, "clip": True}, x=_x(chart), y=_y(chart), y2="to"),
        marks(values, "text", word, x=_x(chart), y=_y(chart, "mid"), text=field("text", "N")),
    )


def _marks(chart: IntervalChart) -> Spec | None:
    places = dict(zip(_MARKS, (chart.advised, chart.today, chart.recorded), strict=True))
    values = [{"n": at[0], "p": at[1], "name": name} for name, at in places.items() if at is not None]
    if not values:
        return None
    names = [str(value["name"]) for value in values]
    looks = zip(("shape", "fill", "stroke"), zip(*(_MARKS[name] for name in names), strict=True), strict=True)
    channels: Spec = {
        channel: field("name", "N", scale={"domain": names, "range": list(column)}, legend=legend())
        for channel, column in looks
    }
    look = {"size": 150, "strokeWidth": 2, "opacity": 1, "clip": True}
    return marks(values, "point", look, x=_x(chart), y=_y(chart), **channels)


_ROW = 24
_LONGEST_NAME = 24
_LONGEST_LINE = 90
_UNJUDGED = "#9aa0a6"
"""Color of changes within noise, or without a verdict."""


def change_spec(chart: ChangeChart) -> Spec:
    """Return the specification of the chart of changes with its data."""
    values = [
        {"place": place + 0.5, "low": place + 0.15, "high": place + 0.85, "points": moved, "zero": 0,
         "text": less_or_more(moved) if chart.of_work else points(moved), "right": int(moved > 0), "word": word or ""}
        for place, (_, moved, word) in enumerate(chart.moved)
    ]  # fmt: skip
    names = [shorten(safe(name), _LONGEST_NAME, "...") for name, *_ in chart.moved]
    count, most = len(values), max(abs(moved) for _, moved, _ in chart.moved)
    axis = left_axis(
        values=[place + 0.5 for place in range(count)], labelExpr=f"{texts(names)}[floor(datum.value)]",
        grid=False, ticks=False, domain=False, labelOverlap=False,
    )  # fmt: skip
    ends = (
        ("took more", "% of the baseline's time", "took less")
        if chart.of_work
        else ("fewer", "points of goodput", "more")
    )
    x_axis = {"title": "{} \N{LEFTWARDS ARROW} {} \N{RIGHTWARDS ARROW} {}".format(*ends), "tickCount": 9}
    x: Spec = {"scale": {"domain": [-1.25 * most, 1.25 * most], "nice": False}, "axis": x_axis}
    y: Spec = {"scale": {"domain": [count, 0], "nice": False, "zero": False}, "axis": axis}
    words_of = {"better": KEPT_COLOUR, "worse": LOST_COLOUR}
    tests = [{"test": f"datum.word == '{word}'", "value": colour} for word, colour in words_of.items()]
    colour = {"condition": tests, "value": _UNJUDGED}
    bars = marks(
        values, "rect", {}, x=field("zero", **x), x2="points", y=field("low", **y), y2="high", color=colour
    )  # fmt: skip
    words = [
        marks(
            values, "text", {"align": align, "dx": dx, "fontSize": 12, "color": INK}, only(f"datum.right == {right}"),
            x=field("points", **x), y=field("place", **y), text=field("text", "N"),
        )
        for right, align, dx in ((1, "left", 5), (0, "right", -5))
    ]  # fmt: skip
    heading, verdict = (shorten(safe(text), _LONGEST_LINE) for text in chart.title)
    above = title(heading, verdict, offset=16)
    return finished(layered(bars, *words, **above, width=WIDTH, height=_ROW * count))


_SPECIFICATIONS: dict[type[Chart], Callable[[Any], Spec]] = {
    ChangeChart: change_spec,
    IntervalChart: interval_spec,
}


def svg(sheet: Sheet, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """Return the chart of an answer as SVG text without scripts and links. Raises UsageError if there is nothing to
    show."""
    return drawn(_standing_alone(sheet), None)


def png(sheet: Sheet, page: Page) -> bytes:  # noqa: ARG001 - a renderer's signature
    """Return the chart of an answer as PNG, two dots per unit."""
    return painted(_standing_alone(sheet), None)


def _standing_alone(sheet: Sheet) -> Spec:
    if sheet.chart is None:
        raise UsageError(f"{sheet.title}: there is nothing to draw", tip="run with --format table to see why")
    return _SPECIFICATIONS[type(sheet.chart)](sheet.chart)


MOST_ROWS = 5000
"""Maximum number of rows of a table on a page: browsers open more rows slowly, and people do not read them."""
_NARROW = 36
"""Characters per row that fit on a phone: rows of wider tables become cards there."""
_BAR = 8
_WHOLE, _LONG = 24, 60
"""Maximum length of a text that stays on one line, and minimum length of one that may be broken anywhere."""
_TONES = {"worse": "bad", "better": "good"}


@dataclass(frozen=True)
class HtmlCell:
    """A cell. text: in words. share: 0 to 1 for a bar, else None. left: True if aligned left. tone: `good` or `bad` for
    improvements and regressions; words and signs show it too. href: the linked page, else empty."""

    text: str
    share: float | None
    left: bool
    tone: str = ""
    href: str = ""

    @property
    def look(self) -> str:
        """Return its classes of the style sheet. Short texts are not broken: ranges, files, names of jobs."""
        length = len(self.text)
        broken = "whole" if length <= _WHOLE else "long" if length > _LONG else ""
        names = ("" if self.left else "number", broken, self.tone)
        return " ".join(filter(None, names))


@dataclass(frozen=True)
class HtmlTable:
    """A sheet in the form of the templates. left_out: the number of rows missing on the page."""

    title: str
    summary: tuple[str, ...]
    heads: tuple[HtmlCell, ...]
    rows: tuple[tuple[HtmlCell, ...], ...]
    left_out: int
    notes: tuple[str, ...]
    more: tuple[HtmlTable, ...]
    drawings: tuple[Drawing, ...] = ()
    """The chart, and its version for a phone."""
    words: str = ""
    """Text alternative of the chart."""
    ids: tuple[str | None, ...] = ()
    """Ids of the rows that are link targets."""

    @property
    def wide(self) -> bool:
        """Return True if its columns are too wide for a phone."""
        columns = zip(self.heads, *self.rows, strict=True)
        widths = [max(len(cell.text) if cell.share is None else _BAR for cell in column) for column in columns]
        return sum(widths) + 2 * len(widths) > _NARROW


def render(sheet: Sheet, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """Return a table as one HTML page."""
    covered = () if sheet.card is None else sheet.card.covers
    shown = replace(sheet, summary=tuple(line for line in sheet.summary if line not in covered))
    return document("sheet.html", title=sheet.title, card=sheet.card, table=html_table(shown))


def html_table(sheet: Sheet, most: int = MOST_ROWS) -> HtmlTable:
    """Return the visible part of a sheet in words, with at most `most` rows per table."""
    every, columns = shown_rows(sheet), shown_columns(sheet)
    rows = list(islice(every, most))
    judged = any(column.name in _TONES for _, column in columns)
    spec = None if sheet.chart is None else untitled(_standing_alone(sheet))
    cells = [_cells(column, [row[position] for row in rows], judged=judged) for position, column in columns]
    return HtmlTable(
        title=sheet.title,
        summary=sheet.summary,
        heads=tuple(HtmlCell(full_heading(column), None, is_left(column)) for _, column in columns),
        rows=tuple(zip(*cells, strict=True)),
        left_out=max(len(every) - most, 0),
        notes=sheet.every_note,
        more=tuple(html_table(part, most) for part in sheet.sections),
        drawings=() if spec is None else (drawing(spec, None, "chart"), drawing(narrowed(spec), None, "chart-narrow")),
        words="" if sheet.chart is None else f"{sheet.chart.words} {_KEYS.get(type(sheet.chart), '')}".strip(),
    )


def with_ids(table: HtmlTable, prefix: str) -> HtmlTable:
    """Return the table with an id per row: the prefix, and the number in its first column or the first of a range."""
    ids: list[str | None] = []
    seen: set[str] = set()
    for number in (row[0].text.partition("-")[0] for row in table.rows):
        ids.append(f"{prefix}-{number}" if number.isdigit() and number not in seen else None)
        seen.add(number)
    return replace(table, ids=tuple(ids))


def with_links(table: HtmlTable, head: str, pages: Iterable[str | None]) -> HtmlTable:
    """Return the table with links in one column. pages: the target of each row; None for no link."""
    place = [one.text for one in table.heads].index(head)
    rows = [
        (*row[:place], replace(row[place], href=page or ""), *row[place + 1 :])
        for row, page in zip(table.rows, pages, strict=False)
    ]
    return replace(table, rows=tuple(rows))


def _cells(column: Column, values: list[Cell], *, judged: bool) -> list[HtmlCell]:
    """Return the cells of a column. judged: True if gains are better and losses worse."""
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
