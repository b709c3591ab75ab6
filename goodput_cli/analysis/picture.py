"""Pictures of an analysis as columns, ready to be drawn: computed once, the same for every renderer.

They are reduced to the detail that some hundred columns of dots can show (`step_curve.thinned`). Extremes are kept, so
that no slow step, no repeated step and no disruption is lost. A million steps cost no more to draw than some thousand.

Bands: time by category for a picture, without losing a nanosecond.

Each run of equal segments that is at least one column of dots long is kept. Shorter adjacent runs in one bucket become
one group with the time of each category, so that all bands still add up exactly to the ledger.

Metrics of the program (MFU, TFLOP/s, throughput) over time, reduced for a picture.
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
from goodput_cli.analysis.saves import Completion, judge_saves
from goodput_cli.analysis.steps.curve import Buckets, StepCurve, extremes, first_of_each, thinned, whole_curve
from goodput_cli.analysis.steps.times import TimedSteps, timed_steps
from goodput_cli.analysis.timeline.rows import labels_of, segments_inside
from goodput_cli.arrays import F64, I64
from goodput_cli.events.accelerators.hooks import DEVICE_SAMPLES
from goodput_cli.vocabulary.categories import CATEGORIES, Category

_KINDS = len(CATEGORIES)


@dataclass(frozen=True)
class Bands:
    """Time by category in touching intervals, in time order: columns with one row per interval and category."""

    start: I64
    """Start of the interval (ns)."""
    end: I64
    """End of the interval (ns)."""
    category: NDArray[np.int8]
    """`Category`."""
    label: NDArray[np.int32]
    """Code of the label if the interval has a single one, otherwise -1."""
    ns: I64
    """Time of the category in the interval (ns): all of it for an interval of one segment. `training_slowdown` has no
    position in time and may be negative."""
    most: NDArray[np.bool_]
    """True if the category has the most time of its interval, before slowdown is subtracted; one row per interval."""
    grouped: bool
    """True if any interval covers several segments."""

    def __len__(self) -> int:
        return len(self.start)


def bands(timeline: Timeline, buckets: Buckets) -> Bands:
    """Return the bands of the window of `buckets`: at most about four times as many intervals as buckets."""
    begin, stop, categories, labels = _runs(timeline, buckets.start, buckets.end)
    long = (stop - begin >= buckets.width) | (len(begin) <= buckets.count)
    edges = buckets.edges[:-1]  # Short runs are cut here.
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
    """Return start, end, category and label of runs of equal segments, cut to the window."""
    segments, inside = timeline.segments, segments_inside(timeline, start, end)
    category, label = segments.category[inside], labels_of(timeline, inside)
    heads = np.flatnonzero(run_heads(category) | run_heads(label))
    begins = np.maximum(segments.start[inside][heads], start)
    return begins, np.append(begins[1:], end), category[heads], label[heads]


DRAWN = {"mfu": "MFU", "tflops": "TFLOP/s", "throughput": "throughput"}
"""Metrics that are drawn, from the top, with their titles; the table lists all."""


@dataclass(frozen=True)
class MetricLine:
    """One metric in the window, in time order."""

    name: str
    """Name, from `DRAWN`."""
    time: I64
    """Time, ns."""
    value: F64
    """Value, as logged."""


def metric_lines(analysis: Analysis, buckets: Buckets) -> tuple[MetricLine, ...]:
    """Return the metrics of the job that are drawn, and have two values in the window."""
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
"""Maximum number of disruptions for which a chart numbers all, and the number of the most costly ones that it numbers
otherwise."""


@dataclass(frozen=True)
class Marks:
    """Times in order, with those of one bucket combined: columns of one length."""

    time: I64
    """The first of them (ns)."""
    number: I64
    """Position of the first among all times, from 1."""
    count: I64
    """Number of times."""
    worst: I64 | None = None
    """Position by cost, from 1, of the most costly ones, if there are too many to number all; 0 for the others."""

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class Shares:
    """Goodput over time, in columns of one length."""

    window_ns: int
    """Length of the window that ends at `time`, for rolling goodput (ns). 0 for cumulative goodput, which counts from
    the start of the window of the question."""
    time: I64
    """Time, ns."""
    percent: F64
    """Goodput; NaN without counted time."""

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class StepTimePoints:
    """Step times (s) in time order, combined by bucket if there are many: columns of one length."""

    time: I64
    """Start of its first step (ns)."""
    number: I64
    """Number of that step."""
    count: I64
    """Number of combined step times."""
    low: F64
    """The smallest of them."""
    high: F64
    """The largest of them."""
    level: F64
    """Usual step time around then: the median of their median and those of the two rows before and after."""

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class WindowPicture:
    """All drawings of one window."""

    start_ns: int
    """Start of the window, ns since 1970 UTC."""
    end_ns: int
    """End of the window, ns since 1970 UTC."""
    bucket_ns: int
    """Resolution (ns): closer points may be combined."""
    downsampled: bool
    """True if any points were combined."""
    curve: StepCurve
    """Steps over time."""
    bands: Bands
    """Time by category."""
    saves: Marks
    """Times of saved checkpoints."""
    disruptions: Marks
    """Times of disruptions."""
    cumulative: Shares
    """Goodput since the start of the window."""
    rolling: tuple[Shares, ...]
    """Goodput over rolling windows, one length each."""
    step_times: StepTimePoints
    """Step times."""
    busy: MetricLine | None = None
    """Accelerator utilization (%) by bucket; NaN without samples. None if it is not logged."""
    metrics: tuple[MetricLine, ...] = ()
    """Metrics of the program, such as loss."""


def picture_of(analysis: Analysis, count: int) -> WindowPicture:
    """Return the picture of an analysis, in at most `count` columns of dots."""
    return next(pictures_of(analysis, count))


def pictures_of(analysis: Analysis, *counts: int) -> Iterator[WindowPicture]:
    """Yield pictures for several numbers of columns, each made on demand; the parts that do not depend on the number
    are made once."""
    timeline, window = analysis.timeline, analysis.window
    within = (window.start_ns, window.end_ns)
    curve, steps = whole_curve(timeline, *within), timed_steps(timeline, *within)
    for count in counts:
        yield _picture(analysis, curve, steps, Buckets(*within, count))


def _picture(analysis: Analysis, curve: StepCurve, steps: TimedSteps, buckets: Buckets) -> WindowPicture:
    timeline = analysis.timeline
    shown, times = bands(timeline, buckets), _step_times(steps, buckets)
    return WindowPicture(
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
        busy=_busy(analysis, buckets) if DEVICE_SAMPLES.of(analysis.table) else None,
        metrics=metric_lines(analysis, buckets),
    )


def _busy(analysis: Analysis, buckets: Buckets) -> MetricLine | None:
    from goodput_cli.analysis.accelerators.devices import busy_between  # Few logs contain any.

    edges = buckets.edges
    found = busy_between(analysis, edges[:-1], edges[1:])
    return None if found is None else MetricLine("busy", edges[:-1], found)


def save_times(timeline: Timeline, start: int, end: int) -> I64:
    """Return when (ns) each save in [start, end) was complete, or last shown where that is unknown, in time order."""
    saves = judge_saves(timeline)
    times: I64 = np.sort(saves.complete[~saves.are(Completion.UNFINISHED)])
    return np.asarray(times[(times >= start) & ((times < end) | (times == timeline.end))])


def _marks(times: I64, buckets: Buckets, number: I64 | None = None) -> Marks:
    """Return times, with those of one bucket combined."""
    first, count = first_of_each(buckets.of(times))
    return Marks(times[first], (np.arange(1, len(times) + 1) if number is None else number)[first], count)


def _disruptions(analysis: Analysis, buckets: Buckets) -> Marks:
    """Return the last signs of life of the disruptions inside the window.

    If there are many, the most costly ones are marked: in one bucket the worst, with its own number and time.
    """
    found = analysis.disruptions
    times = np.clip(found.column("last_sign_of_life_ns"), buckets.start, buckets.end)
    number = found.column("number")
    marks = _marks(times, buckets, number)
    if len(found) <= NUMBERED:
        return marks
    rows = np.argsort(-found.column("lost_ns"), kind="stable")[:WORST][
        ::-1
    ]  # This puts the worst one of a bucket last.
    place = np.searchsorted(buckets.of(marks.time), buckets.of(times[rows]))
    worst, time, numbers = np.zeros(len(marks), dtype=np.int64), marks.time.copy(), marks.number.copy()
    worst[place], time[place], numbers[place] = np.arange(len(rows), 0, -1), times[rows], number[rows]
    return replace(marks, time=time, number=numbers, worst=worst)


def _cumulative(timeline: Timeline, corners: I64, buckets: Buckets) -> Shares:
    """Return goodput from the start of the window to each corner of the bands, and to every edge of a bucket. It is NaN
    if the window's goodput is unknown, or has only bounds."""
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
    """Return rolling goodput: the windows of the question, otherwise a sliding window of about a tenth of the job."""
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
    """Return the analysis with the rolling windows of the question, otherwise with windows of about a tenth that tile
    it."""
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
    for part in np.split(ordered, first[1:]):  # Many small sorts take a tenth of one `lexsort`.
        part.sort()
    last = first + count - 1
    middle = (ordered[first + (count - 1) // 2] + ordered[first + count // 2]) / 2
    begins = steps.take(first)
    return StepTimePoints(begins.time, begins.number, count, ordered[first], ordered[last], _level(middle))


def _level(values: F64) -> F64:
    """Return the running median of five values; at the ends, of the available ones."""
    if len(values) == 0:
        return values
    padded = np.pad(values, 2, constant_values=np.nan)
    level: F64 = np.nanmedian(np.lib.stride_tricks.sliding_window_view(padded, 5), axis=1)
    return level
