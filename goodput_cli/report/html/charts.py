"""The charts, as Vega-Lite specifications made with Altair, and as SVG and PNG.

Why Vega-Altair: vl-convert draws SVG and PNG in this process, without a browser and without the network, so that a page
shows its charts also where scripts are off; the library that makes them move adds 0.9 MB to a page (plotly: 4.8 MB, and
its pictures need a browser); and it runs under a content security policy without `unsafe-eval`. Charts hold no text of
a log but for the title of a picture that stands alone.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import altair as alt
import vl_convert
from altair.utils import schemapi

from goodput_cli.report.html.columns import ChartColumns
from goodput_cli.report.html.library import library
from goodput_cli.vocabulary.categories import Category

WIDTH = 860
"""Width of the plots in dots, without the titles at their left."""
_LEFT = 148
_RULES = 25
"""How many disruptions are drawn with strong lines; more of them are fainter, so that the chart can still be seen."""
_LANE = 17
_STATES = ("kept training", "lost training")
INK = "currentColor"
"""The colour of text, of the page or of the picture."""
_FONT = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"
KEPT_COLOUR = Category.PRODUCTIVE.look.colour
LOST_COLOUR = Category.WASTED.look.colour
_LOG_SPREAD = 4.0
"""Step times are drawn on a logarithmic scale where the slowest takes more than this many times the fastest."""
_ROLLING_COLOURS = tuple(
    category.look.colour
    for category in (Category.TPU_INITIALIZATION, Category.RESTORE, Category.ELASTIC_UP, Category.SLOWDOWN)
)
_ROLLING_DASHES = ([6, 3], [2, 2], [8, 3, 2, 3], [12, 4])
_CONFIG: dict[str, Any] = {
    "aria": False,
    "font": _FONT,
    "background": "transparent",
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "gridColor": "#8a8a8a",
        "gridOpacity": 0.25,
        "domainColor": "#8a8a8a",
        "tickColor": "#8a8a8a",
    },
    "legend": {"labelColor": INK, "labelFontSize": 12, "titleColor": INK, "symbolStrokeWidth": 2.5},
    "title": {"color": INK, "subtitleColor": INK, "anchor": "start", "fontSize": 18, "subtitleFontSize": 13},
}

Spec = dict[str, Any]


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
        .transform_calculate(name=f"{_texts(names[1:])}[datum.line]")
        .mark_line(strokeWidth=1.5, clip=True)
        .encode(x=_time(columns), y=y, detail="line:N", **look)
    )
    cumulative = (
        alt.Chart(alt.NamedData("cumulative"))
        .transform_calculate(name=_texts(names[:1]) + "[0]")
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


def drawn(spec: Spec, columns: ChartColumns | None, background: str | None = None) -> str:
    """A chart as SVG text. columns: the data, of charts that name theirs. background: a colour; None for none."""
    filled = _filled(spec, columns, background)
    svg: str = vl_convert.vegalite_to_svg(filled, vl_version=_vl_version(), allowed_base_urls=[])
    return svg


def drawn_inside(spec: Spec, columns: ChartColumns | None, name: str) -> str:
    """A chart as an SVG element of a page. name: of the chart; ids in the element begin with it, and so are its own."""
    return _of_page(drawn(spec, columns), name)


def drawn_alone(chart: alt.TopLevelMixin, name: str) -> str:
    """A chart that holds its own data, as an SVG element of a page; name as in `drawn_inside`."""
    spec = {**chart.to_dict(), "config": _CONFIG}
    svg: str = vl_convert.vegalite_to_svg(spec, vl_version=_vl_version(), allowed_base_urls=[])
    return _of_page(svg, name)


def _of_page(svg: str, name: str) -> str:
    svg = re.sub(r"(\d\.\d\d)\d+", r"\1", svg)  # a hundredth of a dot is fine enough
    numbers: dict[str, str] = {}  # Vega counts on from chart to chart; a page should not depend on what came before

    def own(found: re.Match[str]) -> str:
        return f"{found[1]}{name}-clip{numbers.setdefault(found[2], str(len(numbers)))}"

    return re.sub(r'(\bid="|url\(#)clip(\d+)', own, svg)


def painted(spec: Spec, columns: ChartColumns | None) -> bytes:
    """A chart as PNG, two dots a unit, on white."""
    filled = _filled(spec, columns, "#ffffff")
    png: bytes = vl_convert.vegalite_to_png(filled, vl_version=_vl_version(), scale=2, allowed_base_urls=[])
    return png


def moving_library() -> str:
    """The JavaScript that the charts of a page need to move."""
    return library(_vl_version())


@contextmanager
def unchecked() -> Iterator[None]:
    """Charts are made without Altair's validation of each part, which takes a second; tests make them with it."""
    with schemapi.debug_mode(False):
        yield


def _vl_version() -> str:
    """The version of Vega-Lite that Altair writes for, as vl-convert names it."""
    major, minor, *_ = alt.SCHEMA_VERSION.removeprefix("v").split(".")
    return f"{major}.{minor}"


def _filled(spec: Spec, columns: ChartColumns | None, background: str | None) -> Spec:
    """The specification with its data."""
    named = {} if columns is None else {name: columns.rows(name) for name in columns.tables}
    datasets = {**spec.get("datasets", {}), **named}
    return {**spec, "datasets": datasets, **({"background": background, "padding": 16} if background else {})}


def finished(chart: alt.TopLevelMixin, *, zoom: bool = True) -> Spec:
    """The specification of a chart in our style. zoom: whether its time axis moves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # panels share one parameter, on purpose
        spec: Spec = (chart.add_params(_zoom()) if zoom else chart).to_dict(validate=schemapi.DEBUG_MODE)
    return {**spec, "config": _CONFIG}


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


def left_axis(title: str | None = None, **changes: Any) -> alt.Axis:
    """An axis at the left, as wide in all charts: instants stand above each other. Its title stands on top of it."""
    place = {"titleAngle": 0, "titleAlign": "right", "titleBaseline": "bottom", "titleX": -8, "titleY": -8}
    return alt.Axis(title=title, minExtent=_LEFT, maxExtent=_LEFT, **place, **changes)


def legend(offset: int = 8) -> alt.Legend:
    """Names above the chart. offset: dots between them."""
    return alt.Legend(
        title=None,
        orient="top",
        direction="horizontal",
        symbolType="stroke",
        symbolSize=500,
        columnPadding=24,
        offset=offset,
    )


def _steps_panel(columns: ChartColumns) -> alt.LayerChart:
    y = alt.Y("step:Q", axis=left_axis("step", tickCount=6, format=",d"), scale=alt.Scale(zero=False, nice=True))
    states, colours, dashes = list(_STATES), [KEPT_COLOUR, LOST_COLOUR], [[1, 0], [5, 3]]
    curve = (
        alt.Chart(alt.NamedData("curve"))
        .transform_calculate(state=f"{_texts(_STATES)}[datum.lost]")
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
        values=[lane + 0.5 for lane in range(count)], labelExpr=f"{_texts(columns.lanes)}[floor(datum.value)]",
        grid=False, ticks=False, domain=False, labelLimit=_LEFT - 8,
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


def _zoom() -> alt.Parameter:
    """What moves the time axis: drags, a wheel with Ctrl (alone it scrolls the page), and scripts, by the signal
    `zoom_t`."""
    wheel = "wheel![event.ctrlKey||event.metaKey]"
    return alt.selection_interval(name="zoom", bind="scales", encodings=["x"], zoom=wheel, clear=False)


def _texts(texts: Sequence[str]) -> str:
    """Our own words as an array of Vega's expression language."""
    return "[" + ",".join(f"'{text}'" for text in texts) + "]"


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
