"""The figures of a report: the charts of an analysis, each with a text alternative.

SVG and PNG output of an analysis contains only the first: step against wall clock, and time by category.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from goodput_cli.analysis.disruptions.rows import AT_LEAST
from goodput_cli.analysis.goodput import phrases as facts
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.picture import DRAWN, NUMBERED, WORST, WindowPicture, picture_of
from goodput_cli.analysis.steps.regimes import Regime, drift_text
from goodput_cli.analysis.steps.sheet import StepReport, measured, shown
from goodput_cli.report.base import Page
from goodput_cli.report.html.columns import DISRUPTIONS, SAVES, ChartColumns, chart_columns
from goodput_cli.report.html.drawing import (
    INK,
    LEFT,
    Drawing,
    Spec,
    calculated,
    drawing,
    drawn,
    field,
    finished,
    independent,
    layered,
    left_axis,
    left_to_script,
    legend,
    marks,
    only,
    painted,
    texts,
    title,
)
from goodput_cli.vocabulary.categories import Category
from goodput_cli.vocabulary.text import as_typed, percent, plural, safe, shorten

WIDTH = 860
"""Width of the plots in dots, without the titles left of them."""
_MOST_SHADES = 400
_LANE, _STEPS, _BUSY = 17, 220, 48
_BUSY_LABELS = "datum.value==50?'accelerators busy':datum.value==0?'':datum.label+' %'"
"""Heights of a lane and of the chart of steps: at 1280 x 900 it ends at the bottom of the first screen."""
_STATES = ("kept training", "wasted training")
KEPT_COLOUR = Category.PRODUCTIVE.look.colour
LOST_COLOUR = Category.WASTED.look.colour
_LOG_SPREAD = 4.0
"""Limit of slowest to fastest step time; beyond it, step times have a logarithmic scale."""
_ROLLING_COLOURS = tuple(
    category.look.colour
    for category in (Category.TPU_INITIALIZATION, Category.RESTORE, Category.ELASTIC_UP, Category.SLOWDOWN)
)
_ROLLING_DASHES = ([6, 3], [2, 2], [8, 3, 2, 3], [12, 4])


def main_chart(columns: ChartColumns, heading: tuple[str, str] | None = None) -> Spec:
    """Return the chart of step against wall clock, with time by category below. heading: title and subtitle of a single
    chart."""
    panels = {"lanes": _lanes_panel(columns)}
    if "busy" in columns.tables:
        panels = {"busy": _busy_panel(columns), **panels}
    if columns.has_rows("curve"):
        panels = {"steps": _steps_panel(columns), **panels}
    above = {} if heading is None else title(*heading, offset=22)
    apart = independent("color", "strokeDash")
    chart = {**above, "vconcat": list(panels.values()), "spacing": 10, "bounds": "flush", **apart}
    return finished(chart, list(panels))


def goodput_chart(columns: ChartColumns, windows: Sequence[str]) -> Spec:
    """Return the chart of cumulative and rolling goodput. windows: the lengths of the rolling ones in words."""
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
    """Return channels for lines that differ in color and in dashes."""
    looks: dict[str, Sequence[Any]] = {"color": colours, "strokeDash": dashes}
    return {
        channel: field(column, "N", scale={"domain": list(names), "range": list(values)}, legend=legend())
        for channel, values in looks.items()
    }


def step_time_chart(columns: ChartColumns, ideal: float, regimes: Sequence[tuple[float, float, str]]) -> Spec:
    """Return the chart of step times. ideal: in s. regimes: slow periods: begin and end in ms since the start, and the
    slowdown in words."""
    least, most = min(columns.tables["steps"]["low"]), max(columns.tables["steps"]["high"])
    scale: Spec = {"zero": True, "nice": True}
    axis = left_axis("step time, s", tickCount=6, format="~r")
    if least > 0 and most / least > _LOG_SPREAD:
        scale = {"type": "log", "domain": [least / 1.15, most * 1.15], "nice": False}
        axis = left_axis("step time, s", values=round_numbers(least / 1.15, most * 1.15), format="~r")
    x, y = time_axis(columns), field("low", scale=scale, axis=axis)
    spread = {"strokeWidth": 2, "strokeCap": "round", "color": Category.TPU_INITIALIZATION.look.colour, "clip": True}
    level = {"strokeWidth": 1.5, "color": INK, "opacity": 0.75, "clip": True}
    best = {"strokeDash": [6, 4], "strokeWidth": 1.5, "color": KEPT_COLOUR}
    layers = [
        *_shades(columns, regimes),
        marks("steps", "rule", spread, x=x, y=y, y2="high"),
        marks("steps", "line", level, x=x, y=field("level")),
        marks([{"ideal": ideal}], "rule", best, y=field("ideal")),
    ]
    return finished(panel("times", columns, layers, 200), ["times"])


def _shades(columns: ChartColumns, regimes: Sequence[tuple[float, float, str]]) -> list[Spec]:
    """Return shaded areas with labels for the slow periods."""
    zero = columns.start_ns / 1e6
    slow = [{"t": zero + begin, "u": zero + end, "text": text} for begin, end, text in regimes]
    if not slow:
        return []
    shade = {"color": Category.STALL.look.colour, "opacity": 0.16, "clip": True}
    words = {"align": "left", "baseline": "top", "dx": 4, "dy": 4, "fontSize": 12, "color": INK, "clip": True}
    return [
        marks(slow, "rect", shade, x=time_axis(columns), x2="u"),
        marks(slow, "text", words, x=time_axis(columns), y={"value": 0}, text=field("text", "N")),
    ]


def time_axis(columns: ChartColumns, *, labels: bool = True) -> Spec:
    """Return the time axis in UTC."""
    words = _clock(columns.start_ns / 1e6, columns.end_ns / 1e6)
    axis = {"title": None, "grid": True, "tickCount": 9, "labelOverlap": True, "labelSeparation": 8,
            "labelExpr": words}  # fmt: skip
    return field("t", "T", axis={**axis, "labels": labels, "ticks": labels}, scale={"type": "utc", "nice": False})


def _clock(start: float, end: float) -> str:
    """Return the labels of the time axis as an expression: the time of day, and the date at midnight."""
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
    few = np.count_nonzero(np.diff(lost)) <= _MOST_SHADES  # more of them would be one shade and slow to draw
    ground = [marks("curve", "area", shade, only("datum.lost == 1"), x=x, y={**y, "stack": None})]
    layers = [
        *(ground if 1 in lost and few else []),
        _disruption_rules(columns, labels=False),
        marks("falls", "line", fall, x=x, y=y),
        *(
            marks("curve", "line", line, [*only(f"datum.lost == {kind}"), *state], x=x, y=y, **look)
            for kind in (1, 0)  # kept steps cover lost ones: a lane shows the lost ones anyway
            if kind in lost
        ),
        marks("disruptions", "text", {**number, "clip": True}, only("datum.text != ''"),
              x=x, y={"value": 0}, text=field("text", "N")),
    ]  # fmt: skip
    return panel("steps", columns, layers, _STEPS, labels=False)


def _disruption_rules(columns: ChartColumns, *, labels: bool = True) -> Spec:
    """Return marks for disruptions; only the most costly ones if there are many. A separate lane shows all of them."""
    look = {"strokeWidth": 1, "color": INK, "opacity": 0.55, "clip": True}
    which = only("datum.worst == 1") if _are_many(columns) else ()
    return marks("disruptions", "rule", look, which, x=time_axis(columns, labels=labels))


def _are_many(columns: ChartColumns) -> bool:
    return "worst" in columns.tables["disruptions"]


def _busy_panel(columns: ChartColumns) -> Spec:
    """Return the chart of accelerator utilization below the steps."""
    y = field(
        "percent",
        axis=left_axis(values=[0, 50, 100], labelExpr=_BUSY_LABELS),
        scale={"domain": [0, 100], "nice": False},
    )
    look = {"color": Category.TPU_INITIALIZATION.look.colour, "opacity": 0.5, "clip": True, "interpolate": "step-after"}
    layers = [marks("busy", "area", look, x=time_axis(columns, labels=False), y={**y, "stack": None})]
    return panel("busy", columns, layers, _BUSY, labels=False)


def _lanes_panel(columns: ChartColumns) -> Spec:
    """Return one lane per category with its name at the left, so that it can be read without colors."""
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
    strip, saves = calculated(high="0.05", low="0.95"), _in_lane(columns, SAVES)
    tick = {"strokeWidth": 1.2, "color": INK, "clip": True}
    every = [marks("disruptions", "rule", tick, _in_lane(columns, DISRUPTIONS), **place)] if _are_many(columns) else []
    layers = [
        _disruption_rules(columns),
        marks("strip", "rect", {"clip": True}, strip, **place, x2="u", color=kind),
        marks("bands", "rect", {"clip": True, "strokeWidth": 0.8}, **place, x2="u", color=kind, stroke=kind),
        marks("saves", "rule", tick, saves, **place),
        *every,
    ]
    return panel("lanes", columns, layers, _LANE * count)


def _in_lane(columns: ChartColumns, title: str) -> list[Spec]:
    """Return the ends of a tick in a lane; nothing if the lane is missing."""
    lane = columns.lanes.index(title) if title in columns.lanes else len(columns.lanes) - 1
    return calculated(high=f"{lane + 0.15}", low=f"{lane + 0.85}")


def panel(name: str, columns: ChartColumns, layers: Sequence[Spec], height: int, *, labels: bool = True) -> Spec:
    """Return layers with data over one time axis. An empty layer with the name of the panel contains both ends of the
    window, so that the axis covers it."""
    shown = [layer for layer in layers if columns.has_rows(layer["data"].get("name"))]
    window = {"name": name, **marks("window", "rule", {"opacity": 0}, x=time_axis(columns, labels=labels))}
    return layered(*shown, window, width=WIDTH, height=height)


def _percents(columns: ChartColumns) -> list[float]:
    """Return ticks from 0 to 100, and further ones if goodput exceeded 100."""
    known = [
        value for name in ("cumulative", "rolling") for value in columns.tables[name]["percent"] if value is not None
    ]
    return [min(0, *known, 0), max(100, *known, 100)]


def round_numbers(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten between two positive numbers; only the powers if there are many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1, 2, 5) if len(powers) <= 5 else (1,)
    numbers = (float(f"{factor}e{power}") for power in powers for factor in factors)
    return [number for number in numbers if low <= number <= high]


_HEIGHT = 90


def metric_chart(columns: ChartColumns, regimes: Sequence[tuple[float, float, str]]) -> Spec:
    """Return one panel per metric. regimes: slow periods, as in the chart of step times."""
    look = {"strokeWidth": 1.5, "color": Category.TPU_INITIALIZATION.look.colour, "clip": True}
    panels = {}
    for line in sorted({*columns.tables["metrics"]["line"]}):
        axis = left_axis(list(DRAWN.values())[line], tickCount=4, format="~r")
        y = field("value", axis=axis, scale={"zero": False, "nice": True})
        values = marks("metrics", "line", look, only(f"datum.line == {line}"), x=time_axis(columns), y=y)
        name = f"metric-{line}"
        panels[name] = panel(name, columns, [*_shades(columns, regimes), values], _HEIGHT)
    return finished({"vconcat": list(panels.values()), "spacing": 26, "bounds": "flush"}, list(panels))


STILL_COLUMNS = 600
"""Number of dot columns of the charts drawn here."""
_PROGRESS = "progress"
_LONGEST_TITLE = 80


@dataclass(frozen=True)
class Figure:
    """name: an id in the page. drawing: as an SVG element. words: its text alternative."""

    name: str
    drawing: Drawing
    words: str
    spec: Spec


def progress_drawing(coarse: ChartColumns | None) -> Drawing:
    """Return the first figure, which takes longer to draw than the others together. coarse: as for `figures`."""
    return left_to_script(_PROGRESS) if coarse is None else drawing(main_chart(coarse), coarse, _PROGRESS)


def figures(
    analysis: Analysis,
    picture: WindowPicture,
    steps: StepReport | None,
    fine: ChartColumns,
    coarse: ChartColumns | None,
    progress: Drawing,
) -> list[Figure]:
    """Return the charts for which the analysis has data. fine: data for axes and scripts; coarse: data for drawing,
    None if only scripts draw. progress: `progress_drawing`."""
    made = []
    windows = [as_typed(shares.window_ns) for shares in picture.rolling]
    words = " ".join(_goodput_sentences(analysis, picture))
    made.append(("goodput-over-time", words, goodput_chart(fine, windows)))
    if steps is not None and steps.statistics.ideal_seconds is not None:
        slow = [_slow(regime, picture) for regime in steps.regimes]
        spec = step_time_chart(fine, steps.statistics.ideal_seconds, slow)
        drifts = "; ".join(map(drift_text, steps.drifts))
        count = plural(len(steps.regimes), "slow period") if steps.regimes else drifts or pace_text(steps)
        made.append(("step-times", f"Step times: {facts.step_text(analysis)}; {count}.", spec))
    if picture.metrics:
        slow = [] if steps is None else [_slow(regime, picture) for regime in steps.regimes]
        made.append(("metrics", _metric_words(analysis), metric_chart(fine, slow)))
    others = [
        Figure(name, left_to_script(name) if coarse is None else drawing(spec, coarse, name), words, spec)
        for name, words, spec in made
    ]
    return [Figure(_PROGRESS, progress, _progress_words(analysis), main_chart(fine)), *others]


def pace_text(steps: StepReport) -> str:
    """Return the note next to a chart of step times without a slow period."""
    return "no slow period" if steps.finding.result == "none" else steps.finding.text


def svg(analysis: Analysis, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """Return the chart of a job as SVG text without scripts and links."""
    return drawn(*_standing_alone(analysis))


def png(analysis: Analysis, page: Page) -> bytes:  # noqa: ARG001 - a renderer's signature
    """Return the chart of a job as PNG, two dots per unit."""
    return painted(*_standing_alone(analysis))


def _standing_alone(analysis: Analysis) -> tuple[Spec, ChartColumns]:
    """Return the main chart with its title, and its data."""
    share, amount = facts.headline(analysis)
    name = shorten(safe(analysis.job.name), _LONGEST_TITLE)
    counts = f"{facts.attempts_text(analysis)}, {plural(analysis.job.disruptions, 'disruption')}"
    columns = chart_columns(picture_of(analysis, STILL_COLUMNS))
    heading = f"{name}: goodput {share}", f"{amount}; {facts.window_text(analysis)}; {counts}"
    return main_chart(columns, heading), columns


def _slow(regime: Regime, picture: WindowPicture) -> tuple[float, float, str]:
    begin, end = ((time - picture.start_ns) / 1e6 for time in (regime.start_ns, regime.end_ns))
    return begin, end, f"{regime.factor:.2f} x"


def _progress_words(analysis: Analysis) -> str:
    """Return step against wall clock in one or two sentences."""
    parts = [f"Step against wall clock: {facts.attempts_text(analysis)}, {facts.progress_text(analysis)}."]
    lost, bound = (analysis.disruptions.column(name) for name in ("steps_lost", "steps_lost_is"))
    if lost.any():
        least = "at least " if (bound[lost > 0] == AT_LEAST).any() else ""
        parts.append(f"Disruptions undid {least}{plural(int(lost.sum()), 'step')}.")
    lanes = "The lanes below show when each category occurred"
    if len(analysis.disruptions) > NUMBERED:
        parts.append(
            f"Numbered: the {WORST} disruptions that cost most. {lanes}; the lowest lane shows all disruptions."
        )
    else:
        parts.append(f"{lanes}. The tables have every number.")
    return " ".join(parts)


def _goodput_sentences(analysis: Analysis, picture: WindowPicture) -> Iterator[str]:
    if analysis.is_bounded:
        yield f"Goodput over time: at the end {facts.goodput_text(analysis)}; {analysis.unavailable_reason}."
        return
    if analysis.goodput_unknown:
        yield f"Goodput over time is unknown: {analysis.unavailable_reason}."
        return
    yield f"Goodput over time: cumulative, at the end {percent(analysis.goodput.percent)}."
    for shares in picture.rolling:
        whole = shares.percent[shares.time - picture.start_ns >= shares.window_ns]
        known = whole[whole == whole]  # without NaN
        if len(known):
            low, high = percent(float(known.min())), percent(float(known.max()))
            yield f"Rolling windows of {as_typed(shares.window_ns)}: {low} to {high}."


def _metric_words(analysis: Analysis) -> str:
    rows = [row for row in shown(measured(analysis)) if row.name in DRAWN]
    medians = (f"{DRAWN[row.name]} median {row.median:g}, p10 {row.p10:g}, p90 {row.p90:g}" for row in rows)
    return f"Recorded by the program: {'; '.join(medians)}."
