"""Kept and wasted training (accounting §4): spans, last steps, splits, startup, stalls and slowdown.

How many steps of each training span are kept (accounting §4), and amounts as whole ns (accounting §1).

Lineage (accounting §4): which attempts made the progress that the job ends with, and up to which step.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from goodput_cli.accounting.columns import NOWHERE, Sparse, among, clipped
from goodput_cli.accounting.options import AccountingOptions
from goodput_cli.accounting.sweep import ClaimedTime
from goodput_cli.accounting.training.spans import TrainingSpans, UsualStepTimes
from goodput_cli.arrays import F64, I64, Mask, Rows, blocks
from goodput_cli.events.schema import NO_STEP

ALL_KEPT = np.iinfo(np.int64).max
NOTHING_KEPT = NO_STEP


class Lineage(Struct, frozen=True):
    """What the job's final progress keeps of each attempt: columns of one value an attempt."""

    limit: I64
    """Steps below it are kept (`NOTHING_KEPT` outside the lineage, `ALL_KEPT` for the last attempt)."""
    reached: NDArray[np.bool_]
    """Whether the attempt reached the step from which the lineage resumed."""


def trace(began: I64, last: I64, stride: Callable[[int], int]) -> Lineage:
    """Go back from the last attempt that recorded a step.

    began, last: the step at which each attempt began and the last one it recorded, `NO_STEP` without any.
    stride: an attempt's usual distance between recorded steps (0 in checkpoint logs): "reached" allows for it.
    """
    limit = np.full(len(began), NOTHING_KEPT, dtype=np.int64)
    reached = np.zeros(len(began), dtype=bool)
    stepping = np.flatnonzero(began != NO_STEP)
    if len(stepping) == 0:
        return Lineage(limit, reached)
    place = len(stepping) - 1
    search: _Search | None = None
    steps_began, steps_last = began[stepping].tolist(), last[stepping].tolist()
    limit[stepping[place]] = ALL_KEPT
    while place > 0:
        resumed = steps_began[place]
        if steps_began[place - 1] <= resumed <= steps_last[place - 1]:  # nearly always: spare the search
            maker: int | None = place - 1
        else:
            search = search or _Search(began[stepping], last[stepping], [stride(a) for a in stepping.tolist()])
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


class _Search:
    """Look-ups among the attempts before a place. What a search passes over it never meets again, for the next one
    begins where this one ended; running maxima say at once when there is nothing to find."""

    def __init__(self, began: I64, last: I64, stride: list[int]) -> None:
        self._began, self._last = began, last
        self._reach = last + np.array(stride, dtype=np.int64)
        self._highest_reach = np.maximum.accumulate(self._reach)
        self._highest_began = np.maximum.accumulate(began)
        farthest = last == np.maximum.accumulate(last)
        self._farthest = np.maximum.accumulate(np.where(farthest, np.arange(len(last)), 0))

    def maker(self, place: int, resumed: int) -> int | None:
        """The latest attempt before `place` that began at or below the resumed step and reached it."""
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
        """Of those that began at or below the resumed step, the one that came farthest; the latest of equals."""
        if self._highest_began[place - 1] <= resumed:
            return int(self._farthest[place - 1])
        able = np.flatnonzero(self._began[:place] <= resumed)
        if len(able) == 0:
            return None
        last = self._last[able]
        return int(able[last == last.max()][-1])


def scaled(count: NDArray[np.float64], unit_ns: Fraction | float) -> I64:
    """`count` x `unit_ns` as whole ns, half to even, exact for whole counts where the unit is a Fraction.

    Counts beyond what a product in floating point can hold (amounts above 2^53 ns are 104 days) are split into the
    whole ns of the unit, multiplied as integers, and the rest.
    """
    unit = Fraction(unit_ns)
    whole_unit = unit.numerator // unit.denominator
    whole_count = np.floor(count)
    rest = (count - whole_count) * whole_unit + count * float(unit - whole_unit)
    return whole_count.astype(np.int64) * whole_unit + np.rint(rest).astype(np.int64)


class TrainingOutcome(Struct, frozen=True):
    """Training spans and what the lineage keeps of each: columns of one value a span."""

    spans: TrainingSpans
    kept_steps: F64
    """How many of its steps are kept: its first ones. A fraction where a credited last step was cut short."""
    credited: Mask
    """Whether it is a last step, whose time is not recorded but credited (accounting §4)."""
    whole: Mask
    """Whether all of it is kept."""
    outside: F64
    """Share of its time that is not excluded, 0..1 (1 without exclusions)."""
    lost_lines: Mask
    """Whether lines of its steps were lost (accounting §5)."""

    @property
    def sample(self) -> Mask:
        """Whether medians look at it: whole, not credited, touched by no exclusion, and no line of it lost."""
        return np.asarray(self.whole & ~self.credited & ~self.lost_lines & (self.outside == 1))


def apply_lineage(
    spans: TrainingSpans, lineage: Lineage, rules: AccountingOptions, lost: tuple[tuple[int, int], ...] = ()
) -> TrainingOutcome:
    """What the lineage keeps of each span. lost: between which instants (ns) lines of steps were lost."""
    size = len(spans)
    upper = clipped(lineage.limit[spans.attempt], spans.first, spans.stop)
    kept = (upper - spans.first).astype(np.float64)
    outside = share_outside(spans.start, spans.end, rules.exclusions)
    some_lost = np.zeros(size, dtype=bool)
    if lost:
        ends = np.maximum(spans.end, spans.start + 1)  # a span of no length is its instant
        some_lost = (excluded_within(spans.start, ends, lost) > 0) & (spans.stop - spans.first > 1)
    return TrainingOutcome(spans, kept, np.zeros(size, dtype=bool), upper == spans.stop, outside, some_lost)


def share_outside(start: I64, end: I64, exclusions: tuple[tuple[int, int], ...]) -> F64:
    """The share of each interval that is not excluded; of an instant all or nothing."""
    if not exclusions:  # a tenth of a long log, if each span had its own 1
        return np.broadcast_to(np.float64(1), (len(start),))
    length = np.maximum(end - start, 1)
    return np.asarray(1 - excluded_within(start, start + length, exclusions) / length)


def excluded_within(start: I64, end: I64, exclusions: tuple[tuple[int, int], ...]) -> I64:
    """How much (ns) of each interval is excluded."""
    excluded = np.zeros(len(start), dtype=np.int64)
    for begin, stop in merged_exclusions(exclusions):
        excluded += np.maximum(np.minimum(end, stop) - np.maximum(start, begin), 0)
    return excluded


def merged_exclusions(exclusions: tuple[tuple[int, int], ...]) -> list[tuple[int, int]]:
    """Exclusions that do not overlap, in time order."""
    merged: list[tuple[int, int]] = []
    for begin, stop in sorted(exclusions):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((begin, stop))
    return merged


def startup_of(
    training: TrainingOutcome, claimed_time: ClaimedTime, usual_step: UsualStepTimes, may_start: Mask
) -> Sparse:
    """Start-up time (ns) at the beginning of spans: the first one's time above the usual, if it stands out.

    may_start: per attempt, whether its start was seen (a log that starts in the middle of a run shows none).
    """
    spans = training.spans
    first = np.flatnonzero(spans.opening & (training.kept_steps > 0) & ~training.credited)
    first = first[may_start[spans.attempt[first]] | among(first, spans.restarted)]
    owner = spans.attempt[first]
    steps = (spans.stop[first] - spans.first[first]).astype(np.float64)
    net = claimed_time.net_between(spans.start[first], spans.end[first])
    with np.errstate(invalid="ignore"):
        stands_out = net / steps > usual_step.median[owner] + 3 * usual_step.deviation[owner]
    first, owner, steps, net = first[stands_out], owner[stands_out], steps[stands_out], net[stands_out]
    return Sparse(first, net - np.rint(usual_step.median[owner] * steps).astype(np.int64))


def split_points(training: TrainingOutcome, startup: Sparse, claimed_time: ClaimedTime) -> tuple[NDArray[np.intp], I64]:
    """Spans kept in part, and the instant at which the kept part of each ends: its net time is split in
    proportion to its steps, the kept part first."""
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
    return partial, clipped(claimed_time.when(target), spans.start[partial], spans.end[partial])


class KeptTraining(Struct, frozen=True):
    """The kept part of each training span, in time order: columns of one row a span.

    Where `kept_steps` is 0 nothing of the span is kept, and the rest of its row means nothing.
    """

    spans: TrainingSpans
    end: I64
    """Where the kept part ends (ns); it starts with its span."""
    kept_steps: F64
    """How many steps are kept; a fraction where a credited last step was cut short."""
    outside: F64
    """Share of its time that is not excluded, 0..1."""
    claimed_time: ClaimedTime
    """What claims hold; the rest of a kept part is its net time."""
    startup: Sparse
    """ns of the net time, at its beginning, that are program start-up."""
    stall: Sparse
    """ns of the net time, at its end, that are a stall."""
    slowdown: I64
    """ns of the time between that are beyond steps x reference (negative = faster); 0 without a reference."""

    def __len__(self) -> int:
        return len(self.end)

    @property
    def start(self) -> I64:
        """Where each begins (ns)."""
        return self.spans.start

    @property
    def counted_steps(self) -> F64:
        """How many of the kept steps count: in proportion to the time outside exclusions."""
        return self.kept_steps * self.outside

    def counted_between(self, start: int, end: int) -> F64:
        """How many of the kept steps of each row count in [start, end) (ns); of one that the window cuts, in proportion
        to its time."""
        steps = self.counted_steps
        cut = np.flatnonzero((self.start < start) | (self.end > end) | (self.start >= end))
        if len(cut):
            begin, stop = self.start[cut], self.end[cut]
            inside = np.clip(np.minimum(stop, end) - np.maximum(begin, start), 0, None)
            steps[cut] *= inside / np.maximum(stop - begin, 1)
        return steps

    def net(self, chosen: slice | Rows | Mask) -> I64:
        """Net time (ns) of some rows: looked up each time, for few are needed in the end."""
        return self.claimed_time.net_between(self.start[chosen], self.end[chosen])

    def trained(self, start: int, stop: int) -> I64:
        """Net time (ns) of the rows start .. stop - 1, less their start-up."""
        trained = self.net(slice(start, stop))
        rows, amount = self.startup.part(start, stop)
        trained[rows] -= amount
        return trained


def kept_training_of(
    training: TrainingOutcome, partial: NDArray[np.intp], splits: I64, startup: Sparse, claimed_time: ClaimedTime
) -> KeptTraining:
    """The kept part of every span.

    partial, splits: spans that are kept in part, and where the kept part of each ends.
    """
    start, end = training.spans.start, training.spans.end
    if len(partial):
        end = end.copy()
        end[partial] = splits
    most = claimed_time.net_between(start[startup.rows], end[startup.rows])
    begins = Sparse(startup.rows, np.minimum(startup.amount, most))
    nothing = np.broadcast_to(np.int64(0), (len(end),))
    return KeptTraining(
        training.spans, end, training.kept_steps, training.outside, claimed_time, begins, NOWHERE, nothing
    )


def with_stalls(kept_training: KeptTraining, usual_step: UsualStepTimes, credited: Mask, factor: float) -> KeptTraining:
    """Step logs without a reference: what a kept step took beyond the usual, when it took more than `factor` x it."""
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
    return structs.replace(kept_training, stall=Sparse(np.concatenate(rows), np.concatenate(amounts)))
