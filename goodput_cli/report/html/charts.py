"""The charts of an analysis, as Vega-Lite specifications made with Altair."""

from __future__ import annotations

import math
from collections.abc import Sequence

import altair as alt

from goodput_cli.report.html.columns import ChartColumns
from goodput_cli.report.html.drawing import INK, LEFT, Spec, finished, left_axis, legend, texts
from goodput_cli.vocabulary.categories import Category

WIDTH = 860
"""Width of the plots in dots, without the titles at their left."""
_RULES = 25
"""How many disruptions are drawn with strong lines; more of them are fainter, so that the chart can still be seen."""
_LANE = 17
_STATES = ("kept training", "lost training")
KEPT_COLOUR = Category.PRODUCTIVE.look.colour
LOST_COLOUR = Category.WASTED.look.colour
_LOG_SPREAD = 4.0
"""Step times are drawn on a logarithmic scale where the slowest takes more than this many times the fastest."""
_ROLLING_COLOURS = tuple(
    category.look.colour
    for category in (Category.TPU_INITIALIZATION, Category.RESTORE, Category.ELASTIC_UP, Category.SLOWDOWN)
)
_ROLLING_DASHES = ([6, 3], [2, 2], [8, 3, 2, 3], [12, 4])


def main_chart(columns: ChartColumns, title: tuple[str, str] | None = None) -> Spec:
    """Step against wall clock, and under it what the time went to. title: of a picture that stands alone, with a line
    below it."""
    panels = [_lanes_panel(columns)]
    if columns.has("curve"):
        panels.insert(0, _steps_panel(columns))
    chart = alt.vconcat(*panels, spacing=10, bounds="flush").resolve_scale(
        color="independent", strokeDash="independent"
    )
    if title is not None:
        chart = chart.properties(title=alt.TitleParams(text=title[0], subtitle=title[1], offset=22))
    return finished(chart)


def goodput_chart(columns: ChartColumns, windows: Sequence[str]) -> Spec:
    """Cumulative and rolling goodput. windows: the lengths of the rolling ones in words."""
    names = ["cumulative", *(f"window of {window}" for window in windows)]
    dashes = [[1, 0], *(_ROLLING_DASHES[number % len(_ROLLING_DASHES)] for number in range(len(windows)))]
    colours = [KEPT_COLOUR, *(_ROLLING_COLOURS[number % len(_ROLLING_COLOURS)] for number in range(len(windows)))]
    y = alt.Y("percent:Q", axis=left_axis("goodput, %"), scale=alt.Scale(domain=_percents(columns), nice=False))
    domain = alt.Scale(domain=names, range=colours)
    look = {
        "color": alt.Color("name:N", scale=domain, legend=legend()),
        "strokeDash": alt.StrokeDash("name:N", scale=alt.Scale(domain=names, range=dashes), legend=legend()),
    }
    rolling = (
        alt.Chart(alt.NamedData("rolling"))
        .transform_calculate(name=f"{texts(names[1:])}[datum.line]")
        .mark_line(strokeWidth=1.5, clip=True)
        .encode(x=_time(columns), y=y, detail="line:N", **look)
    )
    cumulative = (
        alt.Chart(alt.NamedData("cumulative"))
        .transform_calculate(name=texts(names[:1]) + "[0]")
        .mark_line(strokeWidth=2.5, clip=True)
        .encode(x=_time(columns), y=y, **look)
    )
    return finished(_panel(columns, [_disruption_rules(columns), rolling, cumulative], 200))


def step_time_chart(columns: ChartColumns, ideal: float, regimes: Sequence[tuple[float, float, str]]) -> Spec:
    """Step times. ideal: in s. regimes: slow ones: begin and end in ms since the start, and how slow in words."""
    least, most = min(columns.tables["steps"]["low"]), max(columns.tables["steps"]["high"])
    logarithmic = least > 0 and most / least > _LOG_SPREAD
    if logarithmic:
        scale = alt.Scale(type="log", domain=[least / 1.15, most * 1.15], nice=False)
        axis = left_axis("step time, s", values=round_numbers(least / 1.15, most * 1.15), format="~r")
    else:
        scale, axis = alt.Scale(zero=True, nice=True), left_axis("step time, s", tickCount=6, format="~r")
    y = alt.Y("low:Q", scale=scale, axis=axis)
    zero = columns.start_ns / 1e6
    slow = [{"t": zero + begin, "u": zero + end, "text": text} for begin, end, text in regimes]
    base = alt.Chart(alt.NamedData("steps"))
    layers = [
        *_shades(columns, slow),
        base.mark_rule(
            strokeWidth=2, strokeCap="round", color=Category.TPU_INITIALIZATION.look.colour, clip=True
        ).encode(x=_time(columns), y=y, y2="high:Q"),
        base.mark_line(strokeWidth=1.5, color=INK, opacity=0.75, clip=True).encode(x=_time(columns), y="level:Q"),
        alt.Chart(alt.Data(values=[{"ideal": ideal}]))
        .mark_rule(strokeDash=[6, 4], strokeWidth=1.5, color=KEPT_COLOUR)
        .encode(y="ideal:Q"),
    ]
    return finished(_panel(columns, layers, 200))


def _shades(columns: ChartColumns, slow: Sequence[Spec]) -> list[alt.Chart]:
    """Slow regimes behind the step times, and what they are called."""
    if not slow:
        return []
    shade = alt.Chart(alt.Data(values=slow))
    text = {"align": "left", "baseline": "top", "dx": 4, "dy": 4, "fontSize": 12, "color": INK, "clip": True}
    return [
        shade.mark_rect(color=Category.STALL.look.colour, opacity=0.16, clip=True).encode(x=_time(columns), x2="u:T"),
        shade.mark_text(**text).encode(x=_time(columns), y=alt.value(0), text="text:N"),
    ]


def _time(columns: ChartColumns, *, labels: bool = True) -> alt.X:
    """The time axis, in UTC."""
    start, end = columns.start_ns / 1e6, columns.end_ns / 1e6
    axis = alt.Axis(
        title=None, grid=True, labels=labels, ticks=labels, tickCount=9, labelOverlap=True, labelExpr=_clock(start, end)
    )
    return alt.X("t:T", axis=axis, scale=alt.Scale(type="utc", nice=False))


def _clock(start: float, end: float) -> str:
    """Labels of the time axis, as an expression: the time of day, and the date at midnight."""
    fine = "%H:%M:%S" if end - start < 15 * 60_000 else "%H:%M"
    if end - start < 2_000:
        fine = "%S.%L"
    at_midnight = "utchours(datum.value)==0&&utcminutes(datum.value)==0&&utcseconds(datum.value)==0"
    return f"utcFormat(datum.value,{at_midnight}?'%b %d':'{fine}')"


def _steps_panel(columns: ChartColumns) -> alt.LayerChart:
    y = alt.Y("step:Q", axis=left_axis("step", tickCount=6, format=",d"), scale=alt.Scale(zero=False, nice=True))
    states, colours, dashes = list(_STATES), [KEPT_COLOUR, LOST_COLOUR], [[1, 0], [5, 3]]
    curve = (
        alt.Chart(alt.NamedData("curve"))
        .transform_calculate(state=f"{texts(_STATES)}[datum.lost]")
        .mark_line(strokeWidth=2.5, clip=True, strokeJoin="round")
        .encode(
            x=_time(columns, labels=False),
            y=y,
            detail="line:N",
            color=alt.Color("state:N", scale=alt.Scale(domain=states, range=colours), legend=legend()),
            strokeDash=alt.StrokeDash("state:N", scale=alt.Scale(domain=states, range=dashes), legend=legend()),
        )
    )
    falls = (
        alt.Chart(alt.NamedData("falls"))
        .mark_rule(strokeWidth=1, strokeDash=[1, 3], color=INK, opacity=0.8, clip=True)
        .encode(x=_time(columns, labels=False), x2="u:T", y=y, y2="to:Q")
    )
    numbers = (
        alt.Chart(alt.NamedData("disruptions"))
        .transform_filter("datum.text != ''")
        .mark_text(align="left", baseline="top", dx=3, dy=3, fontSize=12, fontWeight="bold", color=INK, clip=True)
        .encode(x=_time(columns, labels=False), y=alt.value(0), text="text:N")
    )
    return _panel(columns, [_disruption_rules(columns, labels=False), falls, curve, numbers], 280, labels=False)


def _disruption_rules(columns: ChartColumns, *, labels: bool = True) -> alt.Chart:
    opacity = min(0.55, max(_RULES / max(len(columns.tables["disruptions"]["t"]), 1), 0.12))
    return (
        alt.Chart(alt.NamedData("disruptions"))
        .mark_rule(strokeWidth=1, color=INK, opacity=opacity, clip=True)
        .encode(x=_time(columns, labels=labels))
    )


def _lanes_panel(columns: ChartColumns) -> alt.LayerChart:
    """One lane a category, each named at its left: no colour needs to be known."""
    count = len(columns.lanes)
    axis = left_axis(
        values=[lane + 0.5 for lane in range(count)], labelExpr=f"{texts(columns.lanes)}[floor(datum.value)]",
        grid=False, ticks=False, domain=False, labelLimit=LEFT - 8,
    )  # fmt: skip
    y = alt.Y("high:Q", axis=axis, scale=alt.Scale(domain=[count, 0], nice=False, zero=False))
    looks = alt.Scale(domain=list(range(len(Category))), range=[category.look.colour for category in Category])
    colour = alt.Color("kind:N", legend=None, scale=looks)
    x = _time(columns)
    bands = alt.Chart(alt.NamedData("bands")).mark_rect(clip=True, strokeWidth=0.8).encode(
        x=x, x2="u:T", y=y, y2="low:Q", color=colour, stroke=alt.Stroke("kind:N", legend=None, scale=looks)
    )  # fmt: skip
    strip = alt.Chart(alt.NamedData("strip")).transform_calculate(high="0.05", low="0.95").mark_rect(clip=True).encode(
        x=x, x2="u:T", y=y, y2="low:Q", color=colour
    )  # fmt: skip
    layers = [_disruption_rules(columns), strip, bands]
    ticks = alt.Chart(alt.NamedData("saves")).transform_calculate(high=f"{count - 0.85}", low=f"{count - 0.15}")
    layers.append(ticks.mark_rule(strokeWidth=1.2, color=INK, clip=True).encode(x=x, y=y, y2="low:Q"))
    return _panel(columns, layers, _LANE * count)


def _panel(columns: ChartColumns, layers: Sequence[alt.Chart], height: int, *, labels: bool = True) -> alt.LayerChart:
    """Layers over one time axis, those that have something to show. One that shows nothing holds both ends of the
    window, so that the axis does too."""
    shown = [layer for layer in layers if columns.has(getattr(layer.data, "name", None))]
    window = alt.Chart(alt.NamedData("window")).mark_rule(opacity=0).encode(x=_time(columns, labels=labels))
    return alt.layer(*shown, window).properties(width=WIDTH, height=height)


def _percents(columns: ChartColumns) -> list[float]:
    """0 to 100, and beyond where goodput was."""
    known = [
        value for name in ("cumulative", "rolling") for value in columns.tables[name]["percent"] if value is not None
    ]
    return [min(0, *known, 0), max(100, *known, 100)]


def round_numbers(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten between two numbers above 0; only the powers where these are many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1, 2, 5) if len(powers) <= 5 else (1,)
    numbers = (float(f"{factor}e{power}") for power in powers for factor in factors)
    return [number for number in numbers if low <= number <= high]
