"""Step against wall clock: the progress of each attempt as a line, and the lost part of it.

Downsample lines and times to the width of a picture, without losing a visible extreme (M4).

A picture is a few hundred columns of dots wide. Of all points of a line in one column, the first, the last, the lowest
and the highest draw the same column of dots as all of them (M4: Jugel et al., "M4: A Visualization-Oriented Time Series
Data Aggregation", VLDB 2014). So a single slow step among a million remains visible.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import distinct, run_heads
from goodput_cli.arrays import F64, I64, Mask, Places


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
