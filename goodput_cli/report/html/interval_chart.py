"""Goodput against the interval of saves. Shapes differ, so that no colour needs to be known: a line on average, a band
of 95 %, dots for the job's own failures again, a circle for the advice, diamonds for today."""

from __future__ import annotations

import altair as alt

from goodput_cli.analysis.advice.chart import IntervalChart
from goodput_cli.report.html.charts import KEPT_COLOUR, LOST_COLOUR, WIDTH, round_numbers
from goodput_cli.report.html.drawing import INK, Spec, finished, left_axis, legend
from goodput_cli.vocabulary.text import safe, shorten

_HEIGHT = 320
_LONGEST_TITLE = 80
_KEY = "line: on average; band: 95 %; dots: this job's own failures again; bar on the axis: as good"
_MARKS = {
    "advised": ("circle", KEPT_COLOUR, KEPT_COLOUR),
    "today, on average": ("diamond", LOST_COLOUR, LOST_COLOUR),
    "today, as this job had it": ("diamond", "transparent", LOST_COLOUR),
}
"""Shape, filling and line."""


def interval_spec(chart: IntervalChart) -> Spec:
    """The picture, with its data."""
    layers = [make(chart) for make in (_band, _formulas, _luck, _plateau, _average, _replays, _marks)]
    name, advice = (shorten(safe(text), _LONGEST_TITLE) for text in chart.title)
    picture = alt.layer(*(layer for layer in layers if layer is not None)).properties(
        width=WIDTH, height=_HEIGHT, title=alt.TitleParams(text=name, subtitle=[advice, _KEY], offset=22)
    )
    return finished(picture.resolve_scale(shape="independent", fill="independent", stroke="independent"), zoom=False)


def _rows(chart: IntervalChart) -> alt.InlineData:
    return alt.Data(
        values=[
            {"n": one.every_steps, "p": one.goodput_percent, "low": one.ci95_percent[0], "high": one.ci95_percent[1],
             "again": one.replayed_percent}
            for one in chart.points
        ]
    )  # fmt: skip


def _x(chart: IntervalChart, field: str = "n") -> alt.X:
    """Steps between two saves on a logarithmic axis, below them the training that this is."""
    least, most = chart.points[0].every_steps, chart.points[-1].every_steps
    seconds = f"datum.value*{chart.pace_seconds!r}"
    time = f"({seconds}<90?format({seconds},'.3~r')+' s':{seconds}<5400?format({seconds}/60,'.3~r')+' min':"
    time += f"format({seconds}/3600,'.3~r')+' h')"
    axis = alt.Axis(
        title="steps between two saves, and training time", values=round_numbers(least, most),
        labelExpr=f"[format(datum.value,',d'),{time}]", grid=False, labelOverlap=True,
    )  # fmt: skip
    return alt.X(f"{field}:Q", axis=axis, scale=alt.Scale(type="log", domain=[least, max(most, least + 1)], nice=False))


def _y(chart: IntervalChart, field: str = "p") -> alt.Y:
    """From a tenth below the lowest value of the line: a scale from 0 alone would show no difference."""
    shown = [one.goodput_percent for one in chart.points]
    shown += [point[1] for point in (chart.advised, chart.today, chart.recorded) if point is not None]
    low = min(shown) - (max(shown) - min(shown) or 1) / 10
    high = max(*shown, *(one.ci95_percent[1] for one in chart.points))
    scale = alt.Scale(domain=[max(low, 0), high], nice=False, zero=False)
    return alt.Y(f"{field}:Q", axis=left_axis("goodput, %", tickCount=6), scale=scale)


def _band(chart: IntervalChart) -> alt.Chart:
    area = alt.Chart(_rows(chart)).mark_area(opacity=0.16, color=KEPT_COLOUR, clip=True)
    return area.encode(x=_x(chart), y=_y(chart, "low"), y2="high:Q")


def _average(chart: IntervalChart) -> alt.Chart:
    return (
        alt.Chart(_rows(chart))
        .mark_line(strokeWidth=2.5, color=KEPT_COLOUR, clip=True)
        .encode(x=_x(chart), y=_y(chart))
    )


def _replays(chart: IntervalChart) -> alt.Chart:
    dots = (
        alt.Chart(_rows(chart))
        .transform_filter("isValid(datum.again)")
        .mark_circle(size=14, color=INK, opacity=0.5, clip=True)
    )
    return dots.encode(x=_x(chart), y=_y(chart, "again"))


def _plateau(chart: IntervalChart) -> alt.Chart | None:
    """A thick piece of the axis: intervals that are as good."""
    if chart.plateau is None:
        return None
    data = alt.Data(values=[{"n": chart.plateau[0], "m": max(chart.plateau[1], chart.plateau[0] + 0.5)}])
    rule = alt.Chart(data).mark_rule(strokeWidth=6, color=KEPT_COLOUR, clip=True)
    return rule.encode(x=_x(chart), x2="m:Q", y=alt.value(_HEIGHT))


def _formulas(chart: IntervalChart) -> alt.LayerChart | None:
    """Young's and Daly's intervals as dashed lines; the names of lines that lie close stand below each other."""
    if not chart.formulas:
        return None
    data = alt.Data(values=[{"n": n, "text": name, "row": 4 + 14 * at} for at, (name, n) in enumerate(chart.formulas)])
    base = alt.Chart(data).encode(x=_x(chart))
    return alt.layer(
        base.mark_rule(strokeDash=[5, 4], color=INK, opacity=0.6, clip=True),
        base.mark_text(align="left", baseline="top", dx=4, fontSize=12, color=INK, clip=True).encode(
            y=alt.Y("row:Q", scale=None, axis=None), text="text:N"
        ),
    ).resolve_scale(y="independent")


def _luck(chart: IntervalChart) -> alt.LayerChart | None:
    """From today on average to what this job had: luck."""
    if chart.today is None or chart.recorded is None:
        return None
    data = alt.Data(values=[{"n": chart.today[0], "p": chart.today[1], "to": chart.recorded[1], "text": "luck"}])
    base = alt.Chart(data).encode(x=_x(chart))
    middle = (chart.today[1] + chart.recorded[1]) / 2
    return alt.layer(
        base.mark_rule(color=LOST_COLOUR, clip=True).encode(y=_y(chart), y2="to:Q"),
        base.transform_calculate(mid=repr(middle))
        .mark_text(align="left", dx=6, fontSize=12, color=INK, clip=True)
        .encode(y=_y(chart, "mid"), text="text:N"),
    )


def _marks(chart: IntervalChart) -> alt.Chart | None:
    places = dict(zip(_MARKS, (chart.advised, chart.today, chart.recorded), strict=True))
    values = [{"n": at[0], "p": at[1], "name": name} for name, at in places.items() if at is not None]
    if not values:
        return None
    names = [str(value["name"]) for value in values]
    shapes, fills, lines = (list(column) for column in zip(*(_MARKS[name] for name in names), strict=True))
    look = {"legend": legend()}
    return (
        alt.Chart(alt.Data(values=values))
        .mark_point(size=150, strokeWidth=2, opacity=1, clip=True)
        .encode(
            x=_x(chart),
            y=_y(chart),
            shape=alt.Shape("name:N", scale=alt.Scale(domain=names, range=shapes), **look),
            fill=alt.Fill("name:N", scale=alt.Scale(domain=names, range=fills), **look),
            stroke=alt.Stroke("name:N", scale=alt.Scale(domain=names, range=lines), **look),
        )
    )
