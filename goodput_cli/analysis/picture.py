"""Pictures of an analysis as columns, ready to be drawn: computed once, the same for every renderer.

They are reduced to the detail that some hundred columns of dots can show, and keep extremes, so that no slow step, no
repeated step and no disruption is lost. A million steps cost no more to draw than some thousand.

Lines: of all points in one column of dots, the first, the last, the lowest and the highest draw the same dots as all of
them (M4: Jugel et al., "M4: A Visualization-Oriented Time Series Data Aggregation", VLDB 2014).

Bands: each run of equal segments that is at least one column of dots long is kept. Shorter adjacent runs in one bucket
become one group with the time of each category, so that all bands still add up exactly to the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import distinct, run_heads, union
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.rolling import default_window, rolling
from goodput_cli.analysis.saves import Completion, judge_saves
from goodput_cli.analysis.steps.times import TimedSteps, timed_steps
from goodput_cli.analysis.timeline.rows import labels_of, segments_inside
from goodput_cli.arrays import F64, I64, Mask, Places
from goodput_cli.events.accelerators.hooks import DEVICE_SAMPLES
from goodput_cli.vocabulary.categories import CATEGORIES, Category


@dataclass(frozen=True)
class Buckets:
    """[start, end) (ns) in at most `count` parts of the same width (ns); the last may be shorter."""

    start: int
    """ns since 1970 UTC."""
    end: int
    """ns since 1970 UTC."""
    count: int
    """Largest number of parts."""

    @property
    def width(self) -> int:
        """Length of a part, in ns."""
        return max(-(-(self.end - self.start) // self.count), 1)

    @property
    def edges(self) -> I64:
        """Return the beginnings of the parts, and the end."""
        return np.append(np.arange(self.start, self.end, self.width, dtype=np.int64), self.end)

    def of(self, time: I64) -> I64:
        """Return the part of each time; the end is in the last one."""
        return (np.minimum(time, self.end - 1) - self.start) // self.width


def extremes(heads: Mask, values: NDArray[np.float64]) -> Places:
    """Return the positions of the first, last, lowest and highest value of each run, sorted, each once.

    heads: marks the first item of each run; the first item is one.
    """
    if len(values) == 0:
        return np.zeros(0, dtype=np.intp)
    first = np.flatnonzero(heads)
    last = np.append(first[1:], len(values)) - 1
    run = np.cumsum(heads) - 1
    lowest = _first_equal(values, np.minimum.reduceat(values, first), run)
    highest = _first_equal(values, np.maximum.reduceat(values, first), run)
    kept: Places = distinct(np.concatenate((first, last, lowest, highest)))
    return kept


def _first_equal(values: NDArray[np.float64], target: NDArray[np.float64], run: NDArray[np.intp]) -> Places:
    """Return the first position in each run with its wanted value."""
    matches = np.flatnonzero(values == target[run])
    return matches[run_heads(run[matches])]


def first_of_each(buckets: I64) -> tuple[Places, I64]:
    """Return the first position of each run of equal buckets, and the length of the run."""
    first = np.flatnonzero(run_heads(buckets))
    return first, np.diff(np.append(first, len(buckets))).astype(np.int64)


@dataclass(frozen=True)
class StepCurve:
    """Step against clock: points of lines, line by line and each in time order. Columns of length n."""

    time: I64
    """ns."""
    step: F64
    """The step the attempt had come to, fractions included."""
    line: I64
    """Line of each point, from 0."""
    lost: Mask
    """True if that training is not part of the final progress."""
    attempt: NDArray[np.int32]
    """Number from 0."""

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class _CurveParts:
    """Straight parts of the curve in time order: from (begin, low) to (end, high)."""

    begin: I64
    end: I64
    low: F64
    high: F64
    lost: Mask
    attempt: NDArray[np.int32]

    def take(self, rows: NDArray[Any]) -> _CurveParts:
        return _CurveParts(*(getattr(self, field.name)[rows] for field in fields(self)))


def whole_curve(timeline: Timeline, start: int, end: int) -> StepCurve:
    """The lines inside [start, end) (ns), with every point."""
    return _joined(_cut_parts(_curve_parts(timeline), start, end))


def thinned(curve: StepCurve, buckets: Buckets) -> StepCurve:
    """The lines, thinned out so that no tooth of the saw is lost.

    Lines that lie in one bucket, and are of one kind, are bundled into one where there are more of them than buckets:
    it reaches from their lowest step to their highest, as their drawing would.
    """
    line = _bundled(curve, buckets)
    order = np.argsort(line, kind="stable")
    line, bucket = line[order], buckets.of(curve.time[order])
    kept = extremes(run_heads(line) | run_heads(bucket), curve.step[order])
    rows = order[kept]
    number = np.cumsum(run_heads(line[kept])) - 1
    return StepCurve(curve.time[rows], curve.step[rows], number, curve.lost[rows], curve.attempt[rows])


def _curve_parts(timeline: Timeline) -> _CurveParts:
    """Every training span, those kept in part as two, cut in proportion to their steps."""
    training = timeline.training
    spans, kept = training.spans, np.minimum(training.kept_steps, training.spans.steps)
    end, low, high = np.asarray(spans.end), spans.first.astype(np.float64), np.asarray(spans.stop, dtype=np.float64)
    split = np.flatnonzero((kept > 0) & (kept < spans.steps))
    whole = _CurveParts(spans.start, end, low, high, kept == 0, spans.attempt)
    if len(split) == 0:
        return whole
    share = kept[split] / spans.steps[split]
    when = spans.start[split] + np.rint((end - spans.start)[split] * share).astype(np.int64)
    step = low[split] + kept[split]
    ends, highs = end.copy(), high.copy()
    ends[split], highs[split] = when, step
    rest = _CurveParts(when, end[split], step, high[split], np.ones(len(split), bool), spans.attempt[split])
    first = _CurveParts(whole.begin, ends, low, highs, whole.lost, whole.attempt)
    both = _CurveParts(*(np.concatenate((getattr(first, f.name), getattr(rest, f.name))) for f in fields(_CurveParts)))
    return both.take(np.argsort(both.begin, kind="stable"))


def _cut_parts(parts: _CurveParts, start: int, end: int) -> _CurveParts:
    """The parts inside [start, end) (ns), cut to it."""
    if len(parts.begin) and parts.begin.min() >= start and parts.begin.max() < end and parts.end.max() <= end:
        return parts
    parts = parts.take((parts.end >= start) & (parts.begin < end))
    length = np.maximum(parts.end - parts.begin, 1)
    slope = (parts.high - parts.low) / length
    begin, stop = np.maximum(parts.begin, start), np.minimum(parts.end, end)
    low = parts.low + slope * (begin - parts.begin)
    high = np.where(stop == parts.end, parts.high, parts.low + slope * (stop - parts.begin))
    return _CurveParts(begin, stop, low, high, parts.lost, parts.attempt)


def _joined(parts: _CurveParts) -> StepCurve:
    """Parts that go on from each other as one line: the beginning of each part, and the end of the last one."""
    count = len(parts.begin)
    if count == 0:
        none = np.zeros(0, dtype=np.int64)
        return StepCurve(none, np.zeros(0), none, np.zeros(0, dtype=bool), none.astype(np.int32))
    new = run_heads(parts.attempt) | run_heads(parts.lost)
    new[1:] |= (parts.begin[1:] != parts.end[:-1]) | (parts.low[1:] != parts.high[:-1])
    line = np.cumsum(new) - 1
    of_begin = np.arange(count) + line
    last = np.append(np.flatnonzero(new)[1:] - 1, count - 1)
    of_end = last + line[last] + 1
    owner = np.empty(count + len(last), dtype=np.intp)
    owner[of_begin], owner[of_end] = np.arange(count), last
    time, step = parts.begin[owner], parts.low[owner]
    time[of_end], step[of_end] = parts.end[last], parts.high[last]
    return StepCurve(time, step, line[owner], parts.lost[owner], parts.attempt[owner])


def _bundled(curve: StepCurve, buckets: Buckets) -> I64:
    """Return the line of each point; lines that look the same have the number of the first of them."""
    first = np.flatnonzero(run_heads(curve.line))
    if len(first) <= buckets.count:
        return curve.line
    last = np.append(first[1:], len(curve)) - 1
    bucket = buckets.of(curve.time[first])
    alone = bucket != buckets.of(curve.time[last])
    kind = np.where(alone, -1 - np.arange(len(first)), 2 * bucket + curve.lost[first])
    _, earliest, which = np.unique(kind, return_index=True, return_inverse=True)
    made: I64 = earliest[which].astype(np.int64)[curve.line]
    return made


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
