"""Kept and wasted training (accounting §4): stretches, last steps, splits, startup, stalls and slowdown."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from goodput_cli.timeline.lineage import Lineage
from goodput_cli.timeline.order import Mask
from goodput_cli.timeline.rules import Rules, round_half_even, scaled
from goodput_cli.timeline.stretches import PickedStretches, Stretches, picked
from goodput_cli.timeline.sweep import Cover
from goodput_cli.timeline.usual import Usual

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Judged:
    """Stretches with what the lineage keeps of each. kept: number of its steps that are kept, its first ones.
    credited: whether it is a credited last step. whole: wholly kept. sample: whole, not credited, and touched by no
    exclusion: what medians look at. outside: the share of its time that is not excluded (1 without exclusions)."""

    stretches: Stretches
    kept: F64
    credited: Mask
    whole: Mask
    sample: Mask
    outside: F64


def judge(stretches: Stretches, lineage: Lineage, rules: Rules) -> Judged:
    """What the lineage keeps of each stretch."""
    upper = np.clip(lineage.limit[stretches.attempt], stretches.first, stretches.stop)
    kept = (upper - stretches.first).astype(np.float64)
    whole = upper == stretches.stop
    outside = share_outside(stretches.start, stretches.end, rules.exclusions)
    untouched = outside == 1
    return Judged(stretches, kept, np.zeros(len(stretches), dtype=bool), whole, whole & untouched, outside)


def share_outside(start: I64, end: I64, exclusions: tuple[tuple[int, int], ...]) -> F64:
    """The share of each interval that is not excluded."""
    if not exclusions:
        return np.ones(len(start))
    length = end - start
    return np.where(length > 0, 1 - _excluded_within(start, end, exclusions) / np.maximum(length, 1), 1.0)


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


def startup_of(judged: Judged, net: I64, usual: Usual, may_start: Mask) -> I64:
    """Start-up time (ns) at the beginning of each stretch: the first one's time above the usual, if it stands out.

    may_start: per attempt, whether its start was seen (a log that starts in the middle of a run shows none).
    """
    stretches = judged.stretches
    amount = np.zeros(len(stretches), dtype=np.int64)
    first = np.flatnonzero(stretches.opening & (judged.kept > 0) & ~judged.credited & may_start[stretches.attempt])
    owner = stretches.attempt[first]
    steps = stretches.steps[first].astype(np.float64)
    with np.errstate(invalid="ignore"):
        stands_out = net[first] / steps > usual.usual[owner] + 3 * usual.deviation[owner]
    first, owner, steps = first[stands_out], owner[stands_out], steps[stands_out]
    amount[first] = net[first] - np.rint(usual.usual[owner] * steps).astype(np.int64)
    return amount


def split_points(judged: Judged, net: I64, startup: I64, cover: Cover) -> tuple[NDArray[np.intp], I64]:
    """Stretches kept in part, and the instant at which the kept part of each ends: its net time is split in
    proportion to its steps, the kept part first."""
    stretches = judged.stretches
    partial = np.flatnonzero((judged.kept > 0) & ~judged.whole)
    left = net[partial] - startup[partial]
    kept_net = np.array(
        [
            round_half_even(Fraction(int(amount)) * Fraction(int(kept), int(steps)))
            for amount, kept, steps in zip(left, judged.kept[partial], stretches.steps[partial], strict=True)
        ],
        dtype=np.int64,
    )
    target = cover.net_clock(stretches.start[partial]) + startup[partial] + kept_net
    return partial, np.clip(cover.when(target), stretches.start[partial], stretches.end[partial])


@dataclass(frozen=True)
class Pieces:
    """Kept training, cut to what is kept: p pieces in time order that do not overlap.

    start, end: ns. kept: how many steps are kept (a fraction where a last step was cut short). steps: how many of
    them count: in proportion where an exclusion touches the piece. net: ns that no one else claims. startup, stall:
    ns of the net time at its beginning and at its end. slowdown: ns of the time between that is beyond steps x
    reference (negative = faster); 0 without a reference. stretches: what each piece is of.
    """

    start: I64
    end: I64
    kept: F64
    steps: F64
    net: I64
    startup: I64
    stall: I64
    slowdown: I64
    stretches: Stretches

    def __len__(self) -> int:
        return len(self.start)


def kept_pieces(judged: Judged, ends: I64, net: I64, startup: I64, cover: Cover, last: Pieces | None = None) -> Pieces:
    """The kept part of every stretch that is kept at least in part, then `last`.

    ends: where the kept part of each ends. net: unclaimed ns of each whole stretch.
    """
    kept = np.flatnonzero(judged.kept > 0)
    stretches = PickedStretches(judged.stretches, kept, None if last is None else last.stretches)
    start, end = stretches.start, picked(ends, kept, None if last is None else last.end)
    left = picked(net, kept, None if last is None else last.net)
    cut = np.flatnonzero(ends[kept] != judged.stretches.end[kept])
    left[cut] = cover.net_clock(end[cut]) - cover.net_clock(start[cut])
    count = picked(judged.kept, kept, None if last is None else last.kept)
    steps = count
    if not np.all(judged.outside == 1):
        steps = count * picked(judged.outside, kept, None if last is None else np.ones(1))
    begins = np.minimum(picked(startup, kept, None if last is None else last.startup), left)
    nothing = np.broadcast_to(np.int64(0), (len(start),))
    return Pieces(start, end, count, steps, left, begins, nothing, nothing, stretches)


def with_stalls(pieces: Pieces, usual: Usual, credited: Mask, factor: float) -> Pieces:
    """Step logs without a reference: what a kept step took beyond the usual, when it took more than `factor` x it."""
    if factor <= 0:
        return pieces
    left = pieces.net - pieces.startup
    expected = usual.usual[pieces.stretches.attempt] * pieces.kept
    with np.errstate(invalid="ignore"):
        stalled = (left > factor * expected) & ~credited
    stall = np.zeros(len(pieces), dtype=np.int64)
    stall[stalled] = left[stalled] - np.rint(expected[stalled]).astype(np.int64)
    return replace(pieces, stall=stall)


def with_slowdown(pieces: Pieces, reference_ns: Fraction) -> Pieces:
    """With a reference: kept steps x R are productive, the rest of the net time (less startup) is slowdown. The sum
    over the job is rounded once: each piece takes the difference of two running totals."""
    total = scaled(np.cumsum(pieces.steps), reference_ns)
    productive = np.diff(total, prepend=0)
    return replace(pieces, slowdown=pieces.net - pieces.startup - productive)


def auto_reference(judged: Judged, net: I64) -> Fraction | None:
    """The 10th percentile (linear) of net time per step (ns) over wholly kept, untouched stretches that are not an
    attempt's first; if there are none, over the first ones; None if there are none either (accounting §6)."""
    stretches = judged.stretches
    for chosen in (judged.sample & ~stretches.opening, judged.sample & stretches.opening):
        if chosen.any():
            rate = net[chosen] / stretches.steps[chosen]
            return Fraction(float(np.percentile(rate, 10)))
    return None
