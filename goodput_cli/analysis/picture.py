"""The pictures of an analysis as columns, ready to be drawn: computed once, the same for every renderer.

They are thinned out to what some hundred columns of dots can show (`step_curve.thinned`): extremes stay, so that no
slow step, no tooth of the saw and no disruption is lost, and a million steps cost no more to draw than some thousand.

Bands: what the time went to, as a picture can show it, without losing a nanosecond.

Every run of alike segments that a column of dots or more is long stays as it is. What is shorter and lies side by side
in one bucket becomes one group that holds the time of each category, so that the amounts of all bands still add up to
the ledger exactly.

What the program measured (MFU, TFLOP/s, throughput) against the clock, thinned out for a picture.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import distinct, run_heads, union
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.results import Rolling
from goodput_cli.analysis.rolling import default_window, rolling
from goodput_cli.analysis.steps.curve import Buckets, StepCurve, extremes, first_of_each, thinned, whole_curve
from goodput_cli.analysis.steps.times import TimedSteps, timed_steps
from goodput_cli.analysis.timeline.rows import labels_of, segments_inside
from goodput_cli.arrays import F64, I64, Rows
from goodput_cli.events.schema import Edge, Kind
from goodput_cli.vocabulary.categories import CATEGORIES, Category

_KINDS = len(CATEGORIES)


@dataclass(frozen=True)
class Bands:
    """Time by category in intervals that touch, in time order: columns of one row an interval and category."""

    start: I64
    """Start of the interval (ns)."""
    end: I64
    """End of the interval (ns)."""
    category: NDArray[np.int8]
    """`Category`."""
    label: NDArray[np.int32]
    """Code of the label where the interval is of one alone, else -1."""
    ns: I64
    """Time of the category in the interval, all of it where the interval is of one segment; `training_slowdown`, which
    has no place in time, may be negative."""
    most: NDArray[np.bool_]
    """Whether the category has the most time of its interval, before slowdown is taken from it; true of one row of
    every interval."""
    grouped: bool
    """Whether any interval is of several segments."""

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class _Runs:
    """Runs of alike segments, cut to the window."""

    start: I64
    end: I64
    category: NDArray[np.int8]
    label: NDArray[np.int32]


def bands(timeline: Timeline, buckets: Buckets) -> Bands:
    """The bands of the window of `buckets`; at most some four times as many intervals as buckets."""
    runs = _runs(timeline, buckets.start, buckets.end)
    long = (runs.end - runs.start >= buckets.width) | (len(runs.start) <= buckets.count)
    cells, run = _cells(runs, long, buckets)
    heads = np.flatnonzero(run_heads(np.where(long[run], -1 - run, buckets.of(cells))))
    length = np.diff(np.append(cells, buckets.end))
    group = np.repeat(np.arange(len(heads)), np.diff(np.append(heads, len(cells))))
    amount = np.zeros((len(heads), _KINDS), dtype=np.int64)
    np.add.at(amount, (group, runs.category[run]), length)
    start = cells[heads]
    end = np.append(start[1:], buckets.end)
    most = amount.argmax(axis=1)
    if timeline.ledger.has_slowdown:
        slow = timeline.ledger.slowdown_upto(end) - timeline.ledger.slowdown_upto(start)
        amount[:, Category.SLOWDOWN] += slow
        amount[:, Category.PRODUCTIVE] -= slow
    shown = amount != 0
    shown[np.arange(len(heads)), most] = True
    interval, category = np.nonzero(shown)
    label = np.where(long[run[heads]], runs.label[run[heads]], -1)
    return Bands(
        start=start[interval],
        end=end[interval],
        category=category.astype(np.int8),
        label=np.where(category == Category.CUSTOM, label[interval], -1).astype(np.int32),
        ns=amount[interval, category],
        most=category == most[interval],
        grouped=not long.all(),
    )


def _runs(timeline: Timeline, start: int, end: int) -> _Runs:
    segments, inside = timeline.segments, segments_inside(timeline, start, end)
    category, label = segments.category[inside], labels_of(timeline, inside)
    heads = np.flatnonzero(run_heads(category) | run_heads(label))
    begins = np.maximum(segments.start[inside][heads], start)
    return _Runs(begins, np.append(begins[1:], end), category[heads], label[heads])


def _cells(runs: _Runs, long: NDArray[np.bool_], buckets: Buckets) -> tuple[I64, NDArray[np.intp]]:
    """Where pieces of runs begin, short ones cut where a bucket ends, and the run of each."""
    edges = buckets.edges[:-1]
    inside = np.searchsorted(runs.start, edges, side="right") - 1
    cells = union(runs.start, edges[~long[inside]])
    return cells, np.searchsorted(runs.start, cells, side="right") - 1


DRAWN = {"mfu": "MFU", "tflops": "TFLOP/s", "throughput": "throughput"}
"""Metrics that are drawn, from the top, and their titles; the table names all."""


@dataclass(frozen=True)
class MetricLine:
    """One metric in the window, in order of time."""

    name: str
    """One of `DRAWN`."""
    time: I64
    """ns."""
    value: F64
    """As it was written."""


def metric_lines(analysis: Analysis, buckets: Buckets) -> tuple[MetricLine, ...]:
    """The metrics of the job that are drawn, and have two values in the window."""
    lines = [
        _thinned(metric.name, metric.time, metric.value, buckets)
        for metric in sorted(analysis.table.metrics, key=lambda metric: list(DRAWN).index(metric.name)
                             if metric.name in DRAWN else len(DRAWN))
        if metric.job == analysis.job.name and metric.name in DRAWN
    ]  # fmt: skip
    return tuple(line for line in lines if len(line.time) > 1)


def _thinned(name: str, time: I64, value: F64, buckets: Buckets) -> MetricLine:
    inside = (time >= buckets.start) & (time <= buckets.end) & np.isfinite(value)
    time, value = time[inside], value[inside]
    if len(time) > buckets.count:
        kept = extremes(run_heads(buckets.of(time)), value)
        time, value = time[kept], value[kept]
    return MetricLine(name, time, value)


NUMBERED, WORST = 25, 12
"""How many disruptions a chart numbers all; and of more than these, how many that cost most."""


@dataclass(frozen=True)
class Marks:
    """Instants in time order, those of one bucket as one: columns of one length."""

    time: I64
    """The first of them (ns)."""
    number: I64
    """Which of all instants that is, from 1."""
    count: I64
    """How many there are."""
    worst: I64 | None = None
    """Where there are too many to number all: of those that cost most the place by cost, from 1; 0 for the others."""

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class Shares:
    """Goodput over time, in columns of one length."""

    window_ns: int
    """Of rolling goodput, the length of the window that ends at `time`. 0 of cumulative goodput, which counts from the
    start of the window of the question."""
    time: I64
    """ns."""
    percent: F64
    """NaN where nothing counts."""

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class StepTimePoints:
    """Step times (s) in time order, those of one bucket as one row where there are many: columns of one length."""

    time: I64
    """When its first step began (ns)."""
    number: I64
    """The number of that step."""
    count: I64
    """How many step times it stands for."""
    low: F64
    """The least of them."""
    high: F64
    """The greatest of them."""
    level: F64
    """What a step usually took about then: the median of their median and those of the two rows before and behind."""

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class Picture:
    """Everything that is drawn of one window."""

    start_ns: int
    """Start of the window, ns since 1970 UTC."""
    end_ns: int
    """End of the window, ns since 1970 UTC."""
    bucket_ns: int
    """What lies closer together than this may be drawn as one."""
    downsampled: bool
    """Whether anything was drawn as one."""
    curve: StepCurve
    """Step against clock."""
    bands: Bands
    """Time by category."""
    saves: Marks
    """When checkpoints were saved."""
    disruptions: Marks
    """When attempts were disrupted."""
    cumulative: Shares
    """Goodput since the start of the window."""
    rolling: tuple[Shares, ...]
    """Goodput over rolling windows, one length each."""
    step_times: StepTimePoints
    """How long steps took."""
    metrics: tuple[MetricLine, ...] = ()
    """Metrics of the program, as loss."""


def picture_of(analysis: Analysis, count: int) -> Picture:
    """The pictures of an analysis, in at most `count` columns of dots."""
    return next(pictures_of(analysis, count))


def pictures_of(analysis: Analysis, *counts: int) -> Iterator[Picture]:
    """The same for several numbers of columns, each made when it is asked for: what does not depend on them is made
    once."""
    timeline, window = analysis.timeline, analysis.window
    within = (window.start_ns, window.end_ns)
    curve, steps = whole_curve(timeline, *within), timed_steps(timeline, *within)
    for count in counts:
        yield _picture(analysis, curve, steps, Buckets(*within, count))


def _picture(analysis: Analysis, curve: StepCurve, steps: TimedSteps, buckets: Buckets) -> Picture:
    timeline, window = analysis.timeline, analysis.window
    shown = bands(timeline, buckets)
    times = _step_times(steps, buckets)
    saves = save_times(timeline, window.start_ns, window.end_ns)
    return Picture(
        start_ns=window.start_ns,
        end_ns=window.end_ns,
        bucket_ns=buckets.width,
        downsampled=shown.grouped or len(times) < len(steps),
        curve=thinned(curve, buckets),
        bands=shown,
        saves=_marks(saves, buckets),
        disruptions=_disruptions(analysis, buckets),
        cumulative=_cumulative(timeline, distinct(np.append(shown.start[1:], shown.end)), buckets),
        rolling=_rolling(analysis, buckets),
        step_times=times,
        metrics=metric_lines(analysis, buckets),
    )


def save_times(timeline: Timeline, start: int, end: int) -> I64:
    """When (ns) each save in [start, end) was complete, in time order."""
    table = timeline.table
    saves = np.flatnonzero((table.kind == Kind.SAVE) | (table.kind == Kind.SAVED))
    cut = (table.edge[saves] == Edge.INTERVAL) & (table.end[saves] >= timeline.end) & (not timeline.ended)
    times: I64 = np.sort(table.end[saves[~cut]])
    inside: I64 = times[(times >= start) & ((times < end) | (times == timeline.end))]
    return inside


def _marks(times: I64, buckets: Buckets, number: I64 | None = None) -> Marks:
    """Instants, those of one bucket as one."""
    first, count = first_of_each(buckets.of(times))
    return Marks(times[first], (np.arange(1, len(times) + 1) if number is None else number)[first], count)


def _disruptions(analysis: Analysis, buckets: Buckets) -> Marks:
    """The last signs of life of the disruptions inside the window."""
    found = analysis.disruptions
    times = np.clip(found.column("last_sign_of_life_ns"), buckets.start, buckets.end)
    number = found.column("number")
    marks = _marks(times, buckets, number)
    if len(found) <= NUMBERED:
        return marks
    return _with_the_worst(marks, times, number, buckets, np.argsort(-found.column("lost_ns"), kind="stable")[:WORST])


def _with_the_worst(marks: Marks, times: I64, number: I64, buckets: Buckets, order: Rows) -> Marks:
    """The marks with those that cost most, `order`; of several in one bucket the worst, by its own number and time."""
    place = np.searchsorted(buckets.of(marks.time), buckets.of(times[order]))
    worst, time, numbers = np.zeros(len(marks), dtype=np.int64), marks.time.copy(), marks.number.copy()
    rows = order[::-1]  # so that of one bucket the worst comes last
    worst[place[::-1]] = np.arange(len(order), 0, -1)
    time[place[::-1]], numbers[place[::-1]] = times[rows], number[rows]
    return replace(marks, time=time, number=numbers, worst=worst)


def _cumulative(timeline: Timeline, corners: I64, buckets: Buckets) -> Shares:
    """Goodput from the start of the window to each corner of the bands, and to every edge of a bucket; NaN where that
    of the window cannot be judged."""
    time = union(corners, buckets.edges[1:])
    start = np.full(len(time), buckets.start)
    if bool(timeline.unknown(start[:1], time[-1:])[0]):
        return _downsampled(0, time, np.full(len(time), np.nan), buckets)
    amounts = timeline.ledger.between(start, time)
    nothing = np.zeros(len(time), dtype=np.int64)
    counted = time - start - amounts.get((Category.EXCLUDED, -1), nothing)
    return _downsampled(0, time, _percent(amounts.get((Category.PRODUCTIVE, -1), nothing), counted), buckets)


def _rolling(analysis: Analysis, buckets: Buckets) -> tuple[Shares, ...]:
    """Rolling goodput: the windows that were asked for, else a round tenth of the job that slides along."""
    windows = analysis.rolling or _sliding(analysis, buckets)
    shares = windows.percent
    lengths = dict.fromkeys(windows.window_ns.tolist())
    return tuple(
        _downsampled(length, windows.end_ns[rows], shares[rows], buckets)
        for length in lengths
        for rows in (np.flatnonzero(windows.window_ns == length),)
    )


def tiled_windows(analysis: Analysis) -> Analysis:
    """The analysis with the rolling windows that were asked for, else with windows of a round tenth that tile it."""
    if analysis.rolling is not None:
        return analysis
    window = analysis.window
    tiles = rolling(analysis.timeline, window.start_ns, window.end_ns, [default_window(window.ns)])
    return replace(analysis, rolling=tiles)


def _sliding(analysis: Analysis, buckets: Buckets) -> Rolling:
    window = analysis.window
    return rolling(analysis.timeline, window.start_ns, window.end_ns, [default_window(window.ns)], buckets.width)


def _downsampled(window: int, time: I64, percent: F64, buckets: Buckets) -> Shares:
    if len(time) <= buckets.count:
        return Shares(window, time, percent)
    kept = extremes(run_heads(buckets.of(time)), np.nan_to_num(percent))
    return Shares(window, time[kept], percent[kept])


def _percent(part: I64, whole: I64) -> F64:
    shares: F64 = np.full(len(part), np.nan)
    np.divide(100 * part.astype(np.float64), whole, out=shares, where=whole > 0)
    return shares


def _step_times(steps: TimedSteps, buckets: Buckets) -> StepTimePoints:
    bucket = buckets.of(steps.time) if len(steps) > buckets.count else np.arange(len(steps))
    first, count = first_of_each(bucket)
    ordered = _sorted_in_parts(steps.seconds, first)
    last = first + count - 1
    middle = (ordered[first + (count - 1) // 2] + ordered[first + count // 2]) / 2
    begins = steps.take(first)
    return StepTimePoints(begins.time, begins.number, count, ordered[first], ordered[last], _level(middle))


def _sorted_in_parts(values: F64, first: Rows) -> F64:
    """The values, each part sorted on its own. first: where parts begin. (Many small sorts take a tenth of one
    `lexsort`.)"""
    ordered = values.copy()
    for part in np.split(ordered, first[1:]):
        part.sort()
    return ordered


def _level(values: F64) -> F64:
    """The running median of five values; at the ends of those that are there."""
    if len(values) == 0:
        return values
    padded = np.pad(values, 2, constant_values=np.nan)
    level: F64 = np.nanmedian(np.lib.stride_tricks.sliding_window_view(padded, 5), axis=1)
    return level
