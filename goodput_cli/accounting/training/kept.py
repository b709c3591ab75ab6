"""Kept and wasted training (accounting §4): spans, last steps, splits, start-up, stalls and slowdown; and kept
training that became slower than the reference and stayed so (accounting §6).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from goodput_cli.accounting.columns import NOWHERE, SparseColumn, clipped, is_among, search
from goodput_cli.accounting.options import AccountingOptions
from goodput_cli.accounting.sweep import ClaimedTime
from goodput_cli.accounting.training.spans import TrainingSpans, UsualStepTimes
from goodput_cli.arrays import F64, I64, Mask, Rows, blocks
from goodput_cli.events.schema import NO_STEP

ALL_KEPT = np.iinfo(np.int64).max
NOTHING_KEPT = NO_STEP


class Lineage(Struct, frozen=True):
    """Part of each attempt that is in the job's final progress: columns with one value per attempt."""

    limit: I64
    """Steps below it are kept (`NOTHING_KEPT` outside the lineage, `ALL_KEPT` for the last attempt)."""
    reached: NDArray[np.bool_]
    """True if the attempt reached the step from which the lineage resumed."""


def trace(began: I64, last: I64, stride: Callable[[int], int]) -> Lineage:
    """Trace the lineage back from the last attempt that recorded a step.

    began, last: the step at which each attempt began and the last one it recorded; `NO_STEP` without any. stride: an
    attempt's usual distance between recorded steps (0 in checkpoint logs), which "reached" tolerates.
    """
    limit = np.full(len(began), NOTHING_KEPT, dtype=np.int64)
    reached = np.zeros(len(began), dtype=bool)
    stepping = np.flatnonzero(began != NO_STEP)
    if len(stepping) == 0:
        return Lineage(limit, reached)
    place = len(stepping) - 1
    search: _AttemptSearch | None = None
    steps_began, steps_last = began[stepping].tolist(), last[stepping].tolist()
    limit[stepping[place]] = ALL_KEPT
    while place > 0:
        resumed = steps_began[place]
        if steps_began[place - 1] <= resumed <= steps_last[place - 1]:  # the usual case needs no search
            maker: int | None = place - 1
        else:
            search = search or _AttemptSearch(began[stepping], last[stepping], [stride(a) for a in stepping.tolist()])
            maker = search.maker(place, resumed)
        has_reached = maker is not None
        if maker is None and search is not None:
            maker = search.farthest(place, resumed)
        if maker is None:
            break
        limit[stepping[maker]] = resumed
        reached[stepping[maker]] = has_reached
        place = maker
    return Lineage(limit, reached)


class _AttemptSearch:
    """Lookups among the attempts before a position. Each search begins where the one before ended, so no attempt is
    visited twice. Running maxima show at once if there is nothing to find."""

    def __init__(self, began: I64, last: I64, stride: list[int]) -> None:
        self._began, self._last = began, last
        self._reach = last + np.array(stride, dtype=np.int64)
        self._highest_reach = np.maximum.accumulate(self._reach)
        self._highest_began = np.maximum.accumulate(began)
        farthest = last == np.maximum.accumulate(last)
        self._farthest = np.maximum.accumulate(np.where(farthest, np.arange(len(last)), 0))

    def maker(self, place: int, resumed: int) -> int | None:
        """Return the latest attempt before `place` that began at or below the resumed step and reached it."""
        if self._highest_reach[place - 1] < resumed:
            return None
        block, stop = 64, place
        while stop > 0:
            start = max(stop - block, 0)
            able = (self._began[start:stop] <= resumed) & (self._reach[start:stop] >= resumed)
            matches = np.flatnonzero(able)
            if len(matches):
                return start + int(matches[-1])
            stop, block = start, block * 2
        return None

    def farthest(self, place: int, resumed: int) -> int | None:
        """Return the attempt that began at or below the resumed step and came farthest; the latest of equals."""
        if self._highest_began[place - 1] <= resumed:
            return int(self._farthest[place - 1])
        able = np.flatnonzero(self._began[:place] <= resumed)
        if len(able) == 0:
            return None
        last = self._last[able]
        return int(able[last == last.max()][-1])


def scale(count: NDArray[np.float64], unit_ns: Fraction | float) -> I64:
    """Return `count` x `unit_ns` as whole ns, half to even, exact for whole counts if the unit is a Fraction.

    Amounts above 2^53 ns (104 days) do not fit a floating-point product. They are split into the whole ns of the unit,
    multiplied as integers, and the rest.
    """
    unit = Fraction(unit_ns)
    whole_unit = unit.numerator // unit.denominator
    whole_count = np.floor(count)
    rest = (count - whole_count) * whole_unit + count * float(unit - whole_unit)
    return whole_count.astype(np.int64) * whole_unit + np.rint(rest).astype(np.int64)


class TrainingOutcome(Struct, frozen=True):
    """Training spans and the kept part of each: columns with one value per span."""

    spans: TrainingSpans
    kept_steps: F64
    """Number of kept steps of each, its first ones. A fraction if a credited last step was cut short."""
    credited: Mask
    """True for a last step, whose time is not recorded but credited (accounting §4)."""
    whole: Mask
    """True if all of it is kept."""
    outside: F64
    """Share of its time that is not excluded, 0..1 (1 without exclusions)."""
    lost_lines: Mask
    """True if lines of its steps were lost (accounting §5)."""

    @property
    def sample(self) -> Mask:
        """True for spans that medians use: whole, not credited, touched by no exclusion, and without lost lines."""
        return np.asarray(self.whole & ~self.credited & ~self.lost_lines & (self.outside == 1))


def apply_lineage(
    spans: TrainingSpans, lineage: Lineage, rules: AccountingOptions, lost: tuple[tuple[int, int], ...] = ()
) -> TrainingOutcome:
    """Return the kept part of each span. lost: intervals (ns) in which step lines were lost."""
    size = len(spans)
    upper = clipped(lineage.limit[spans.attempt], spans.first, spans.stop)
    kept = (upper - spans.first).astype(np.float64)
    outside = share_outside(spans.start, spans.end, rules.exclusions)
    some_lost = np.zeros(size, dtype=bool)
    if lost:
        ends = np.maximum(spans.end, spans.start + 1)  # give a span without length 1 ns
        some_lost = (excluded_within(spans.start, ends, lost) > 0) & (spans.stop - spans.first > 1)
    return TrainingOutcome(spans, kept, np.zeros(size, dtype=bool), upper == spans.stop, outside, some_lost)


def share_outside(start: I64, end: I64, exclusions: tuple[tuple[int, int], ...]) -> F64:
    """Return the share of each interval that is not excluded; 0 or 1 for an interval without length."""
    if not exclusions:  # one shared 1 saves a tenth of the memory of a long log
        return np.broadcast_to(np.float64(1), (len(start),))
    length = np.maximum(end - start, 1)
    return np.asarray(1 - excluded_within(start, start + length, exclusions) / length)


def excluded_within(start: I64, end: I64, exclusions: tuple[tuple[int, int], ...]) -> I64:
    """Return the excluded time (ns) of each interval."""
    excluded = np.zeros(len(start), dtype=np.int64)
    for begin, stop in merged_exclusions(exclusions):
        excluded += np.maximum(np.minimum(end, stop) - np.maximum(start, begin), 0)
    return excluded


def merged_exclusions(exclusions: tuple[tuple[int, int], ...]) -> list[tuple[int, int]]:
    """Return the exclusions in time order, overlaps merged."""
    merged: list[tuple[int, int]] = []
    for begin, stop in sorted(exclusions):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((begin, stop))
    return merged


def startup_of(
    training: TrainingOutcome, claimed_time: ClaimedTime, usual_step: UsualStepTimes, may_start: Mask
) -> SparseColumn:
    """Return the start-up time (ns) at the beginning of spans: the first span's time above the usual, if it is an
    outlier.

    may_start: True for attempts whose start is in the log (a log that starts in the middle of a run shows none).
    """
    spans = training.spans
    first = np.flatnonzero(spans.opening & (training.kept_steps > 0) & ~training.credited)
    first = first[may_start[spans.attempt[first]] | is_among(first, spans.restarted)]
    owner = spans.attempt[first]
    steps = (spans.stop[first] - spans.first[first]).astype(np.float64)
    net = claimed_time.net_between(spans.start[first], spans.end[first])
    with np.errstate(invalid="ignore"):
        stands_out = net / steps > usual_step.median[owner] + 3 * usual_step.deviation[owner]
    first, owner, steps, net = first[stands_out], owner[stands_out], steps[stands_out], net[stands_out]
    return SparseColumn(first, net - np.rint(usual_step.median[owner] * steps).astype(np.int64))


def split_points(
    training: TrainingOutcome, startup: SparseColumn, claimed_time: ClaimedTime
) -> tuple[NDArray[np.intp], I64]:
    """Return the spans kept in part, and the end (ns) of the kept part of each. Net time is split in proportion to
    steps, the kept part first."""
    spans = training.spans
    partial = np.flatnonzero((training.kept_steps > 0) & ~training.whole)
    if len(partial) == 0:
        return partial, np.zeros(0, dtype=np.int64)
    begins = startup.at(partial)
    left = claimed_time.net_between(spans.start[partial], spans.end[partial]) - begins
    steps = spans.stop[partial] - spans.first[partial]
    kept_net = np.array(
        [
            round(Fraction(int(amount)) * Fraction(int(kept), int(whole)))  # half to even (accounting §1)
            for amount, kept, whole in zip(left, training.kept_steps[partial], steps, strict=True)
        ],
        dtype=np.int64,
    )
    target = claimed_time.net_clock(spans.start[partial]) + begins + kept_net
    return partial, clipped(claimed_time.time_at_net(target), spans.start[partial], spans.end[partial])


class KeptTraining(Struct, frozen=True):
    """The kept part of each training span, in time order: columns with one row per span.

    If `kept_steps` is 0, no part of the span is kept, and the rest of its row is meaningless.
    """

    spans: TrainingSpans
    end: I64
    """End of the kept part (ns); it starts with its span."""
    kept_steps: F64
    """Number of kept steps; a fraction if a credited last step was cut short."""
    outside: F64
    """Share of its time that is not excluded, 0..1."""
    claimed_time: ClaimedTime
    """Time of claims; the rest of a kept part is its net time."""
    startup: SparseColumn
    """Part (ns) of the net time, at its beginning, that is program start-up."""
    stall: SparseColumn
    """Part (ns) of the net time, at its end, that is a stall."""
    slowdown: I64
    """Part (ns) of the time in between above steps x reference (negative = faster); 0 without a reference."""

    def __len__(self) -> int:
        return len(self.end)

    @property
    def start(self) -> I64:
        """Begin of each (ns)."""
        return self.spans.start

    @property
    def counted_steps(self) -> F64:
        """Number of kept steps that count, in proportion to the time outside exclusions."""
        return self.kept_steps * self.outside

    def counted_between(self, start: int, end: int) -> F64:
        """Return how many of the kept steps of each row count in [start, end) (ns). A row that the window cuts counts
        in proportion to its time."""
        steps = self.counted_steps
        cut = np.flatnonzero((self.start < start) | (self.end > end) | (self.start >= end))
        if len(cut):
            begin, stop = self.start[cut], self.end[cut]
            inside = np.clip(np.minimum(stop, end) - np.maximum(begin, start), 0, None)
            steps[cut] *= inside / np.maximum(stop - begin, 1)
        return steps

    def net(self, chosen: slice | Rows | Mask) -> I64:
        """Return the net time (ns) of some rows. It is computed on each call, because only few rows are needed."""
        return self.claimed_time.net_between(self.start[chosen], self.end[chosen])

    def trained(self, start: int, stop: int) -> I64:
        """Return the net time (ns) of the rows start .. stop - 1, less their start-up."""
        trained = self.net(slice(start, stop))
        rows, amount = self.startup.part(start, stop)
        trained[rows] -= amount
        return trained


def kept_training_of(
    training: TrainingOutcome, partial: NDArray[np.intp], splits: I64, startup: SparseColumn, claimed_time: ClaimedTime
) -> KeptTraining:
    """Return the kept part of every span.

    partial, splits: spans that are kept in part, and the end (ns) of the kept part of each.
    """
    start, end = training.spans.start, training.spans.end
    if len(partial):
        end = end.copy()
        end[partial] = splits
    most = claimed_time.net_between(start[startup.rows], end[startup.rows])
    begins = SparseColumn(startup.rows, np.minimum(startup.amount, most))
    nothing = np.broadcast_to(np.int64(0), (len(end),))
    return KeptTraining(
        training.spans, end, training.kept_steps, training.outside, claimed_time, begins, NOWHERE, nothing
    )


def with_stalls(kept_training: KeptTraining, usual_step: UsualStepTimes, credited: Mask, factor: float) -> KeptTraining:
    """Add stalls in step logs without a reference: the time of a kept step above the usual, if it took more than
    `factor` times that."""
    if factor <= 0:
        return kept_training
    rows, amounts = [], []
    for start, stop in blocks(len(kept_training)):
        left, kept = kept_training.trained(start, stop), kept_training.kept_steps[start:stop]
        expected = usual_step.median[kept_training.spans.attempt[start:stop]] * kept
        with np.errstate(invalid="ignore"):
            stalled = np.flatnonzero((left > factor * expected) & (expected > 0) & ~credited[start:stop])
        rows.append(stalled + start)
        amounts.append(left[stalled] - np.rint(expected[stalled]).astype(np.int64))
    if not rows:
        return kept_training
    return structs.replace(kept_training, stall=SparseColumn(np.concatenate(rows), np.concatenate(amounts)))


LEAST_SPANS = 2
"""A single slow span is not a level."""
_LEAST_EXCESS = 1 / 3
"""Least excess of slow spans over fast ones, per span of a level. Steps that randomly take one of two times do not
reach it."""
_AROUND = 2
"""Number of spans on either side that form the level of a span."""


class RisenLevel(Struct, frozen=True):
    """Slow training that may be by design."""

    first: int
    """Row of the kept training with which the level begins."""
    slowdown: I64
    """Slowdown (ns) of each row of the kept training that is productive if the level is by design."""


def find_risen_level(
    kept_training: KeptTraining, judged: Mask, reference_ns: Fraction, alike: float
) -> RisenLevel | None:
    """Return the level that rose and stayed; None without one.

    judged: True for spans whose pace counts. alike: multiple of the reference up to which a pace still counts as fast.
    """
    rows = np.flatnonzero(judged)
    pace = kept_training.net(rows) / kept_training.spans.steps[rows]
    reference = float(reference_ns)
    begin = begin_of_tail(pace > reference * alike)
    if begin is None:
        return None
    rows, level = rows[begin:], levels(pace[begin:])
    slowdown = np.zeros(len(kept_training), dtype=np.int64)
    for start, stop in blocks(len(kept_training)):
        if stop > rows[0]:
            first = max(start, int(rows[0]))
            slowdown[first:stop] = _of_level(kept_training, first, stop, (rows, level), reference, alike)
    return RisenLevel(int(rows[0]), slowdown)


def begin_of_tail(slow: NDArray[np.bool_]) -> int | None:
    """Return the position at which the slow end of a series begins; None without one.

    Read backward, slow spans count 1 and fast ones -1. The job was fast again where this sum falls by log2 of the
    number of spans (rounded down) below its highest value; the tail begins where the sum is highest before that. Two
    thirds of its spans are slow, and at least two.
    """
    total = np.concatenate(([0], np.cumsum(np.where(slow[::-1], 1, -1))))
    fallen = np.maximum.accumulate(total) - total >= max(len(slow).bit_length() - 1, 1)
    stop = int(np.argmax(fallen)) if fallen.any() else len(total)
    length = int(np.argmax(total[:stop]))
    return len(slow) - length if total[length] >= max(LEAST_SPANS, _LEAST_EXCESS * length) else None


def levels(pace: F64) -> F64:
    """Return the running median of five values, of fewer at the ends."""
    level = np.empty_like(pace)
    padded = np.pad(pace, _AROUND, constant_values=np.nan)
    for start, stop in blocks(len(pace)):
        around = np.lib.stride_tricks.sliding_window_view(padded[start : stop + 2 * _AROUND], 2 * _AROUND + 1)
        level[start:stop] = np.nanmedian(around, axis=1)
    return level


def _of_level(
    kept_training: KeptTraining, start: int, stop: int, tail: tuple[Rows, F64], reference: float, alike: float
) -> I64:
    """Return the slowdown (ns) of rows start .. stop - 1 that their level explains. A row that is slower than its level
    keeps the rest as slowdown. tail: the judged rows, and their levels; other rows have the level of the row before."""
    rows, level = tail
    slowdown, steps = kept_training.slowdown[start:stop], kept_training.counted_steps[start:stop]
    at = level[np.maximum(search(rows, np.arange(start, stop), side="right") - 1, 0)]
    stands_out = reference * steps + slowdown > at * alike * steps
    return np.where(stands_out, np.rint((at - reference) * steps).astype(np.int64), slowdown)
