"""Kept and wasted training (accounting §4): stretches, last steps, splits, startup, stalls and slowdown."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.columns import NOWHERE, Sparse
from goodput_cli.accounting.order import Mask
from goodput_cli.accounting.rules import Rules, round_half_even, scaled
from goodput_cli.accounting.sweep import Cover
from goodput_cli.accounting.training.lineage import Lineage
from goodput_cli.accounting.training.spans import Stretches
from goodput_cli.accounting.training.typical_step import Usual
from goodput_cli.arrays import Rows, blocks

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Judged:
    """Stretches with what the lineage keeps of each. kept: number of its steps that are kept, its first ones.
    credited: whether it is a last step whose time is not recorded but credited; one in progress is credited nothing.
    whole: wholly kept. sample: whole, not credited, and touched by no exclusion: what medians look at. outside: the
    share of its time that is not excluded (1 without exclusions)."""

    stretches: Stretches
    kept: F64
    credited: Mask
    whole: Mask
    sample: Mask
    outside: F64


def judge(stretches: Stretches, lineage: Lineage, rules: Rules) -> Judged:
    """What the lineage keeps of each stretch."""
    size = len(stretches)
    kept, whole = np.empty(size), np.empty(size, dtype=bool)
    for start, stop in blocks(size):
        first, behind = stretches.first[start:stop], stretches.stop[start:stop]
        upper = np.clip(lineage.limit[stretches.attempt[start:stop]], first, behind)
        np.subtract(upper, first, out=kept[start:stop])
        np.equal(upper, behind, out=whole[start:stop])
    outside = share_outside(stretches.start, stretches.end, rules.exclusions)
    sample = whole & (outside == 1) if rules.exclusions else whole.copy()
    return Judged(stretches, kept, np.zeros(size, dtype=bool), whole, sample, outside)


def share_outside(start: I64, end: I64, exclusions: tuple[tuple[int, int], ...]) -> F64:
    """The share of each interval that is not excluded; of an instant all or nothing."""
    if not exclusions:
        return np.broadcast_to(np.float64(1), (len(start),))
    length = np.maximum(end - start, 1)
    return np.asarray(1 - _excluded_within(start, start + length, exclusions) / length)


def _excluded_within(start: I64, end: I64, exclusions: tuple[tuple[int, int], ...]) -> I64:
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


def startup_of(judged: Judged, net: I64, usual: Usual, may_start: Mask) -> Sparse:
    """Start-up time (ns) at the beginning of stretches: the first one's time above the usual, if it stands out.

    may_start: per attempt, whether its start was seen (a log that starts in the middle of a run shows none).
    """
    stretches = judged.stretches
    first = np.flatnonzero(stretches.opening & (judged.kept > 0) & ~judged.credited)
    first = first[may_start[stretches.attempt[first]] | np.isin(first, stretches.restarted)]
    owner = stretches.attempt[first]
    steps = (stretches.stop[first] - stretches.first[first]).astype(np.float64)
    with np.errstate(invalid="ignore"):
        stands_out = net[first] / steps > usual.usual[owner] + 3 * usual.deviation[owner]
    first, owner, steps = first[stands_out], owner[stands_out], steps[stands_out]
    return Sparse(first, net[first] - np.rint(usual.usual[owner] * steps).astype(np.int64))


def split_points(judged: Judged, net: I64, startup: Sparse, cover: Cover) -> tuple[NDArray[np.intp], I64]:
    """Stretches kept in part, and the instant at which the kept part of each ends: its net time is split in
    proportion to its steps, the kept part first."""
    stretches = judged.stretches
    partial = np.flatnonzero((judged.kept > 0) & ~judged.whole)
    begins = startup.at(partial)
    left = net[partial] - begins
    steps = stretches.stop[partial] - stretches.first[partial]
    kept_net = np.array(
        [
            round_half_even(Fraction(int(amount)) * Fraction(int(kept), int(whole)))
            for amount, kept, whole in zip(left, judged.kept[partial], steps, strict=True)
        ],
        dtype=np.int64,
    )
    target = cover.net_clock(stretches.start[partial]) + begins + kept_net
    return partial, np.clip(cover.when(target), stretches.start[partial], stretches.end[partial])


@dataclass(frozen=True)
class Pieces:
    """Kept training: a row for each of the `stretches`, cut to what is kept of it. Where `kept` is 0 there is no
    piece, and the rest of the row means nothing. Those there are do not overlap; they are in time order.

    end: ns; they start with their stretches. kept: how many steps are kept (a fraction where a last step was cut
    short). steps: how many of them count: in proportion where an exclusion touches the piece. cover: what others claim;
    the rest of a piece is its net time. startup, stall: ns of the net time at its beginning and at its end. slowdown:
    ns of the time between that is beyond steps x reference (negative = faster); 0 without a reference.
    """

    stretches: Stretches
    end: I64
    kept: F64
    steps: F64
    cover: Cover
    startup: Sparse
    stall: Sparse
    slowdown: I64

    def __len__(self) -> int:
        return len(self.end)

    @property
    def start(self) -> I64:
        """Where each begins (ns)."""
        return self.stretches.start

    def net(self, chosen: slice | Rows | Mask) -> I64:
        """Net time (ns) of some pieces: looked up each time, for few are asked for in the end."""
        return self.cover.net_between(self.start[chosen], self.end[chosen])

    def trained(self, start: int, stop: int) -> I64:
        """Net time (ns) of the pieces at start .. stop - 1, less their startup."""
        trained = self.net(slice(start, stop))
        rows, amount = self.startup.part(start, stop)
        trained[rows] -= amount
        return trained


def kept_pieces(judged: Judged, partial: NDArray[np.intp], splits: I64, startup: Sparse, cover: Cover) -> Pieces:
    """The kept part of every stretch.

    partial, splits: stretches that are kept in part, and where the kept part of each ends.
    """
    start, end = judged.stretches.start, judged.stretches.end
    if len(partial):
        end = end.copy()
        end[partial] = splits
    steps = judged.kept if np.all(judged.outside == 1) else judged.kept * judged.outside
    most = cover.net_between(start[startup.rows], end[startup.rows])
    begins = Sparse(startup.rows, np.minimum(startup.amount, most))
    nothing = np.broadcast_to(np.int64(0), (len(end),))
    return Pieces(judged.stretches, end, judged.kept, steps, cover, begins, NOWHERE, nothing)


def with_stalls(pieces: Pieces, usual: Usual, credited: Mask, factor: float) -> Pieces:
    """Step logs without a reference: what a kept step took beyond the usual, when it took more than `factor` x it."""
    if factor <= 0:
        return pieces
    rows, amounts = [], []
    for start, stop in blocks(len(pieces)):
        left, kept = pieces.trained(start, stop), pieces.kept[start:stop]
        expected = usual.usual[pieces.stretches.attempt[start:stop]] * kept
        with np.errstate(invalid="ignore"):
            stalled = np.flatnonzero((left > factor * expected) & (expected > 0) & ~credited[start:stop])
        rows.append(stalled + start)
        amounts.append(left[stalled] - np.rint(expected[stalled]).astype(np.int64))
    return replace(pieces, stall=Sparse(np.concatenate(rows), np.concatenate(amounts))) if rows else pieces


def with_slowdown(pieces: Pieces, reference_ns: Fraction) -> Pieces:
    """With a reference: kept steps x R are productive, the rest of the net time (less startup) is slowdown. The sum
    over the job is rounded once: each piece takes the difference of two running totals."""
    total = scaled(np.cumsum(pieces.steps), reference_ns)
    slowdown = pieces.trained(0, len(pieces)) - np.diff(total, prepend=0)
    slowdown[pieces.kept == 0] = 0
    return replace(pieces, slowdown=slowdown)


def auto_reference(judged: Judged, net: I64) -> Fraction | None:
    """The 10th percentile (linear) of net time per step (ns) over wholly kept, untouched stretches that are not an
    attempt's first; if there are none, over the first ones; None if there are none either, or if it is 0: clocks of
    whole seconds show no time for most of many steps a second (accounting §6)."""
    stretches = judged.stretches
    for chosen in (judged.sample & ~stretches.opening, judged.sample & stretches.opening):
        if chosen.any():
            rate = net[chosen] / stretches.steps[chosen]
            return Fraction(float(np.percentile(rate, 10))) or None
    return None
