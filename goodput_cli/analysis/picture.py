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
from goodput_cli.analysis.rolling import default_window, rolling
from goodput_cli.analysis.save_states import Completion, judge_saves
from goodput_cli.analysis.steps.curve import Buckets, StepCurve, extremes, first_of_each, thinned, whole_curve
from goodput_cli.analysis.steps.times import TimedSteps, timed_steps
from goodput_cli.analysis.timeline.rows import labels_of, segments_inside
from goodput_cli.arrays import F64, I64
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


def bands(timeline: Timeline, buckets: Buckets) -> Bands:
    """The bands of the window of `buckets`; at most some four times as many intervals as buckets."""
    begin, stop, categories, labels = _runs(timeline, buckets.start, buckets.end)
    long = (stop - begin >= buckets.width) | (len(begin) <= buckets.count)
    edges = buckets.edges[:-1]  # where short runs are cut
    cells = union(begin, edges[~long[np.searchsorted(begin, edges, side="right") - 1]])
    run = np.searchsorted(begin, cells, side="right") - 1
    heads = np.flatnonzero(run_heads(np.where(long[run], -1 - run, buckets.of(cells))))
    length = np.diff(np.append(cells, buckets.end))
    group = np.repeat(np.arange(len(heads)), np.diff(np.append(heads, len(cells))))
    amount = np.zeros((len(heads), _KINDS), dtype=np.int64)
    np.add.at(amount, (group, categories[run]), length)
    start = cells[heads]
    end = np.append(start[1:], buckets.end)
    most = amount.argmax(axis=1)
    if timeline.ledger.has_slowdown:
        slow = timeline.ledger.slowdown_before(end) - timeline.ledger.slowdown_before(start)
        amount[:, Category.SLOWDOWN] += slow
        amount[:, Category.PRODUCTIVE] -= slow
    shown = amount != 0
    shown[np.arange(len(heads)), most] = True
    interval, category = np.nonzero(shown)
    label = np.where(long[run[heads]], labels[run[heads]], -1)
    return Bands(
        start=start[interval],
        end=end[interval],
        category=category.astype(np.int8),
        label=np.where(category == Category.CUSTOM, label[interval], -1).astype(np.int32),
        ns=amount[interval, category],
        most=category == most[interval],
        grouped=not long.all(),
    )


def _runs(timeline: Timeline, start: int, end: int) -> tuple[I64, I64, NDArray[np.int8], NDArray[np.int32]]:
    """Start, end, category and label of runs of alike segments, cut to the window."""
    segments, inside = timeline.segments, segments_inside(timeline, start, end)
    category, label = segments.category[inside], labels_of(timeline, inside)
    heads = np.flatnonzero(run_heads(category) | run_heads(label))
    begins = np.maximum(segments.start[inside][heads], start)
    return begins, np.append(begins[1:], end), category[heads], label[heads]


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
    drawn = [one for one in analysis.table.metrics if one.job == analysis.job.name and one.name in DRAWN]
    drawn.sort(key=lambda metric: list(DRAWN).index(metric.name))
    lines = [_thinned(metric.name, metric.time, metric.value, buckets) for metric in drawn]
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
    busy: MetricLine | None = None
    """How busy accelerators were (%), by bucket; NaN where none was seen. None: nothing says it."""
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
    timeline = analysis.timeline
    shown, times = bands(timeline, buckets), _step_times(steps, buckets)
    return Picture(
        start_ns=buckets.start,
        end_ns=buckets.end,
        bucket_ns=buckets.width,
        downsampled=shown.grouped or len(times) < len(steps),
        curve=thinned(curve, buckets),
        bands=shown,
        saves=_marks(save_times(timeline, buckets.start, buckets.end), buckets),
        disruptions=_disruptions(analysis, buckets),
        cumulative=_cumulative(timeline, distinct(np.append(shown.start[1:], shown.end)), buckets),
        rolling=_rolling(analysis, buckets),
        step_times=times,
        busy=_busy(analysis, buckets) if analysis.table.devices else None,
        metrics=metric_lines(analysis, buckets),
    )


def _busy(analysis: Analysis, buckets: Buckets) -> MetricLine | None:
    from goodput_cli.analysis.steps.devices import busy_between  # few logs hold any

    edges = buckets.edges
    found = busy_between(analysis, edges[:-1], edges[1:])
    return None if found is None else MetricLine("busy", edges[:-1], found)


def save_times(timeline: Timeline, start: int, end: int) -> I64:
    """Return when (ns) each save in [start, end) was complete, or last shown where that is unknown, in time order."""
    saves = judge_saves(timeline)
    times: I64 = np.sort(saves.complete[~saves.are(Completion.UNFINISHED)])
    return np.asarray(times[(times >= start) & ((times < end) | (times == timeline.end))])


def _marks(times: I64, buckets: Buckets, number: I64 | None = None) -> Marks:
    """Instants, those of one bucket as one."""
    first, count = first_of_each(buckets.of(times))
    return Marks(times[first], (np.arange(1, len(times) + 1) if number is None else number)[first], count)


def _disruptions(analysis: Analysis, buckets: Buckets) -> Marks:
    """The last signs of life of the disruptions inside the window; where they are many those that cost most are told
    apart, of several in one bucket the worst, by its own number and time."""
    found = analysis.disruptions
    times = np.clip(found.column("last_sign_of_life_ns"), buckets.start, buckets.end)
    number = found.column("number")
    marks = _marks(times, buckets, number)
    if len(found) <= NUMBERED:
        return marks
    rows = np.argsort(-found.column("lost_ns"), kind="stable")[:WORST][
        ::-1
    ]  # so that of one bucket the worst comes last
    place = np.searchsorted(buckets.of(marks.time), buckets.of(times[rows]))
    worst, time, numbers = np.zeros(len(marks), dtype=np.int64), marks.time.copy(), marks.number.copy()
    worst[place], time[place], numbers[place] = np.arange(len(rows), 0, -1), times[rows], number[rows]
    return replace(marks, time=time, number=numbers, worst=worst)


def _cumulative(timeline: Timeline, corners: I64, buckets: Buckets) -> Shares:
    """Goodput from the start of the window to each corner of the bands, and to every edge of a bucket; NaN where that
    of the window cannot be judged, or only bounds of it are known."""
    time = union(corners, buckets.edges[1:])
    start, shares = np.full(len(time), buckets.start), np.full(len(time), np.nan)
    if not timeline.unknown(start[:1], time[-1:])[0]:
        decided = timeline.undecided(start, time) == 0
        amounts, nothing = timeline.ledger.between(start, time), np.zeros(len(time), dtype=np.int64)
        counted = time - start - amounts.get((Category.EXCLUDED, -1), nothing)
        productive = amounts.get((Category.PRODUCTIVE, -1), nothing)
        np.divide(100 * productive.astype(np.float64), counted, out=shares, where=(counted > 0) & decided)
    return _downsampled(0, time, shares, buckets)


def _rolling(analysis: Analysis, buckets: Buckets) -> tuple[Shares, ...]:
    """Rolling goodput: the windows that were asked for, else a round tenth of the job that slides along."""
    within = (buckets.start, buckets.end)
    windows = analysis.rolling or rolling(
        analysis.timeline, *within, [default_window(analysis.window.ns)], every=buckets.width
    )
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


def _downsampled(window: int, time: I64, percent: F64, buckets: Buckets) -> Shares:
    if len(time) <= buckets.count:
        return Shares(window, time, percent)
    kept = extremes(run_heads(buckets.of(time)), np.nan_to_num(percent))
    return Shares(window, time[kept], percent[kept])


def _step_times(steps: TimedSteps, buckets: Buckets) -> StepTimePoints:
    bucket = buckets.of(steps.time) if len(steps) > buckets.count else np.arange(len(steps))
    first, count = first_of_each(bucket)
    ordered = steps.seconds.copy()
    for part in np.split(ordered, first[1:]):  # many small sorts take a tenth of one `lexsort`
        part.sort()
    last = first + count - 1
    middle = (ordered[first + (count - 1) // 2] + ordered[first + count // 2]) / 2
    begins = steps.take(first)
    return StepTimePoints(begins.time, begins.number, count, ordered[first], ordered[last], _level(middle))


def _level(values: F64) -> F64:
    """The running median of five values; at the ends of those that are there."""
    if len(values) == 0:
        return values
    padded = np.pad(values, 2, constant_values=np.nan)
    level: F64 = np.nanmedian(np.lib.stride_tricks.sliding_window_view(padded, 5), axis=1)
    return level
