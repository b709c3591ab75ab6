"""The charts of an analysis, as Vega-Lite specifications."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from goodput_cli.report.html.columns import ChartColumns
from goodput_cli.report.html.drawing import INK, LEFT, finished, left_axis, legend
from goodput_cli.report.html.vegalite import (
    Spec,
    calculated,
    field,
    independent,
    layered,
    marks,
    only,
    texts,
    title,
)
from goodput_cli.vocabulary.categories import Category

WIDTH = 860
"""Width of the plots in dots, without the titles at their left."""
_RULES = 25
"""How many disruptions are drawn with strong lines; more of them are fainter, so that the chart can still be seen."""
_FAINTEST = 0.05
_MOST_SHADES = 400
_LANE, _STEPS = 17, 220
"""How high a lane is, and step against clock: at 1280 x 900 it ends where the first screen does."""
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


def main_chart(columns: ChartColumns, heading: tuple[str, str] | None = None) -> Spec:
    """Step against wall clock, and under it what the time went to. heading: of a picture that stands alone, with a line
    below it."""
    panels = {"lanes": _lanes_panel(columns)}
    if columns.has("curve"):
        panels = {"steps": _steps_panel(columns), **panels}
    above = {} if heading is None else title(*heading, offset=22)
    apart = independent("color", "strokeDash")
    chart = {**above, "vconcat": list(panels.values()), "spacing": 10, "bounds": "flush", **apart}
    return finished(chart, list(panels))


def goodput_chart(columns: ChartColumns, windows: Sequence[str]) -> Spec:
    """Cumulative and rolling goodput. windows: the lengths of the rolling ones in words."""
    names = ["cumulative", *(f"window of {window}" for window in windows)]
    dashes = [[1, 0], *(_ROLLING_DASHES[number % len(_ROLLING_DASHES)] for number in range(len(windows)))]
    colours = [KEPT_COLOUR, *(_ROLLING_COLOURS[number % len(_ROLLING_COLOURS)] for number in range(len(windows)))]
    place = {
        "x": time_axis(columns),
        "y": field("percent", axis=left_axis("goodput, %"), scale={"domain": _percents(columns), "nice": False}),
    }
    look = _line_look("name", names, colours, dashes)
    rolling = marks(
        "rolling", "line", {"strokeWidth": 1.5, "clip": True}, calculated(name=f"{texts(names[1:])}[datum.line]"),
        **place, detail=field("line", "N"), **look,
    )  # fmt: skip
    cumulative = marks(
        "cumulative", "line", {"strokeWidth": 2.5, "clip": True}, calculated(name=texts(names[:1]) + "[0]"),
        **place, **look,
    )  # fmt: skip
    return finished(panel("goodput", columns, [_disruption_rules(columns), rolling, cumulative], 200), ["goodput"])


def _line_look(column: str, names: Sequence[str], colours: Sequence[str], dashes: Sequence[Sequence[int]]) -> Spec:
    """Lines that differ in colour and in dashes."""
    looks: dict[str, Sequence[Any]] = {"color": colours, "strokeDash": dashes}
    return {
        channel: field(column, "N", scale={"domain": list(names), "range": list(values)}, legend=legend())
        for channel, values in looks.items()
    }


def step_time_chart(columns: ChartColumns, ideal: float, regimes: Sequence[tuple[float, float, str]]) -> Spec:
    """Step times. ideal: in s. regimes: slow ones: begin and end in ms since the start, and how slow in words."""
    least, most = min(columns.tables["steps"]["low"]), max(columns.tables["steps"]["high"])
    scale: Spec = {"zero": True, "nice": True}
    axis = left_axis("step time, s", tickCount=6, format="~r")
    if least > 0 and most / least > _LOG_SPREAD:
        scale = {"type": "log", "domain": [least / 1.15, most * 1.15], "nice": False}
        axis = left_axis("step time, s", values=round_numbers(least / 1.15, most * 1.15), format="~r")
    x, y = time_axis(columns), field("low", scale=scale, axis=axis)
    zero = columns.start_ns / 1e6
    slow = [{"t": zero + begin, "u": zero + end, "text": text} for begin, end, text in regimes]
    spread = {"strokeWidth": 2, "strokeCap": "round", "color": Category.TPU_INITIALIZATION.look.colour, "clip": True}
    level = {"strokeWidth": 1.5, "color": INK, "opacity": 0.75, "clip": True}
    best = {"strokeDash": [6, 4], "strokeWidth": 1.5, "color": KEPT_COLOUR}
    layers = [
        *shades(columns, slow),
        marks("steps", "rule", spread, x=x, y=y, y2="high"),
        marks("steps", "line", level, x=x, y=field("level")),
        marks([{"ideal": ideal}], "rule", best, y=field("ideal")),
    ]
    return finished(panel("times", columns, layers, 200), ["times"])


def shades(columns: ChartColumns, slow: Sequence[Spec]) -> list[Spec]:
    """Slow regimes behind the step times, and what they are called."""
    if not slow:
        return []
    shade = {"color": Category.STALL.look.colour, "opacity": 0.16, "clip": True}
    words = {"align": "left", "baseline": "top", "dx": 4, "dy": 4, "fontSize": 12, "color": INK, "clip": True}
    return [
        marks(slow, "rect", shade, x=time_axis(columns), x2="u"),
        marks(slow, "text", words, x=time_axis(columns), y={"value": 0}, text=field("text", "N")),
    ]


def time_axis(columns: ChartColumns, *, labels: bool = True) -> Spec:
    """The time axis, in UTC."""
    words = _clock(columns.start_ns / 1e6, columns.end_ns / 1e6)
    axis = {"title": None, "grid": True, "tickCount": 9, "labelOverlap": True, "labelSeparation": 8,
            "labelExpr": words}  # fmt: skip
    return field("t", "T", axis={**axis, "labels": labels, "ticks": labels}, scale={"type": "utc", "nice": False})


def _clock(start: float, end: float) -> str:
    """Labels of the time axis, as an expression: the time of day, and the date at midnight."""
    fine = "%H:%M:%S" if end - start < 15 * 60_000 else "%H:%M"
    if end - start < 2_000:
        fine = "%S.%L"
    at_midnight = "utchours(datum.value)==0&&utcminutes(datum.value)==0&&utcseconds(datum.value)==0"
    return f"utcFormat(datum.value,{at_midnight}?'%b %d':'{fine}')"


def _steps_panel(columns: ChartColumns) -> Spec:
    x = time_axis(columns, labels=False)
    y = field("step", axis=left_axis("step", tickCount=6, format=",d"), scale={"zero": False, "nice": True})
    line = {"strokeWidth": 2.5, "clip": True, "strokeJoin": "round"}
    look = _line_look("state", _STATES, [KEPT_COLOUR, LOST_COLOUR], [[1, 0], [5, 3]])
    shade = {"color": LOST_COLOUR, "opacity": 0.16, "clip": True}
    fall = {"strokeWidth": 1, "strokeDash": [1, 3], "color": INK, "opacity": 0.8, "clip": True}
    state = calculated(state=f"{texts(_STATES)}[datum.lost]")
    number = {"align": "left", "baseline": "top", "dx": 3, "dy": 3, "fontSize": 12, "fontWeight": "bold", "color": INK}
    lost = columns.tables["curve"]["lost"]
    few = np.count_nonzero(np.diff(lost)) <= _MOST_SHADES  # more of them would be one shade, and slow to draw
    ground = [marks("curve", "area", shade, only("datum.lost == 1"), x=x, y={**y, "stack": None})]
    layers = [
        *(ground if 1 in lost and few else []),
        _disruption_rules(columns, labels=False),
        marks("falls", "line", fall, x=x, y=y),
        *(
            marks("curve", "line", line, [*only(f"datum.lost == {kind}"), *state], x=x, y=y, **look)
            for kind in (1, 0)  # where a dot holds both, what was kept is seen: a lane shows what was lost
            if kind in lost
        ),
        marks("disruptions", "text", {**number, "clip": True}, only("datum.text != ''"),
              x=x, y={"value": 0}, text=field("text", "N")),
    ]  # fmt: skip
    return panel("steps", columns, layers, _STEPS, labels=False)


def _disruption_rules(columns: ChartColumns, *, labels: bool = True) -> Spec:
    opacity = min(0.55, max(_RULES / max(len(columns.tables["disruptions"]["t"]), 1), _FAINTEST))
    look = {"strokeWidth": 1, "color": INK, "opacity": opacity, "clip": True}
    return marks("disruptions", "rule", look, x=time_axis(columns, labels=labels))


def _lanes_panel(columns: ChartColumns) -> Spec:
    """One lane a category, each named at its left: no colour needs to be known."""
    count = len(columns.lanes)
    axis = left_axis(
        values=[lane + 0.5 for lane in range(count)], labelExpr=f"{texts(columns.lanes)}[floor(datum.value)]",
        grid=False, ticks=False, domain=False, labelLimit=LEFT - 8,
    )  # fmt: skip
    place: Spec = {
        "x": time_axis(columns),
        "y": field("high", axis=axis, scale={"domain": [count, 0], "nice": False, "zero": False}),
        "y2": "low",
    }
    looks = {"domain": list(range(len(Category))), "range": [category.look.colour for category in Category]}
    kind = field("kind", "N", legend=None, scale=looks)
    strip, saves = calculated(high="0.05", low="0.95"), calculated(high=f"{count - 0.85}", low=f"{count - 0.15}")
    tick = {"strokeWidth": 1.2, "color": INK, "clip": True}
    layers = [
        _disruption_rules(columns),
        marks("strip", "rect", {"clip": True}, strip, **place, x2="u", color=kind),
        marks("bands", "rect", {"clip": True, "strokeWidth": 0.8}, **place, x2="u", color=kind, stroke=kind),
        marks("saves", "rule", tick, saves, **place),
    ]
    return panel("lanes", columns, layers, _LANE * count)


def panel(name: str, columns: ChartColumns, layers: Sequence[Spec], height: int, *, labels: bool = True) -> Spec:
    """Layers over one time axis, those that have something to show. One that shows nothing holds both ends of the
    window, so that the axis does too; it has the name."""
    shown = [layer for layer in layers if columns.has(layer["data"].get("name"))]
    window = {"name": name, **marks("window", "rule", {"opacity": 0}, x=time_axis(columns, labels=labels))}
    return layered(*shown, window, width=WIDTH, height=height)


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
