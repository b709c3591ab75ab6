"""Time for the same work: what a kept step took all in on two sides, what made the difference, and whether it is more
than noise.

Noise is what a run shows within itself: the step times are cut into blocks of 50 steps (64 at most), and the difference
of two means of blocks has a range (Student's t, 95 %). It does not hold what differs between two nights, so that a
difference is clear only where it lies outside of the range and is 2 % or more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean, variance

from goodput_cli.analysis.summary import Summary

LEAST_PERCENT = 2.0
"""A smaller difference is not called one: two equal runs differ by as much from night to night."""
_LEAST_BLOCKS = 6
_ALL_SHARED = 0.9
_Z = 1.959964


@dataclass(frozen=True)
class Range:
    """A change in percent, and where it lies with 95 %, judged by what differs within the two runs."""

    percent: float
    """the difference itself"""
    low: float
    """the lower end, in percent"""
    high: float
    """the upper end, in percent"""

    @property
    def is_clear(self) -> bool:
        """Whether it is more than noise, and enough to call it a difference."""
        return (self.low > 0 or self.high < 0) and abs(self.percent) >= LEAST_PERCENT


@dataclass(frozen=True)
class WorkTime:
    """What a kept step took on two sides, all in: window over kept steps."""

    baseline_seconds: float
    """the same of the baseline"""
    seconds: float
    """time a kept step took, everything lost included"""
    pace: Range | None
    """Of the step times alone; None where a side has too few of them, or is a saved answer without them."""
    shared_steps: int | None
    """Kept steps by their numbers that both sides have, where they are 90 % of the shorter run's; else None."""

    @property
    def percent(self) -> float:
        """How much longer a kept step took than on the baseline."""
        return 100 * (self.seconds / self.baseline_seconds - 1)

    @property
    def is_clear(self) -> bool:
        """Whether that is more than the noise of the step times, and enough to call it a difference."""
        noise = 0.0 if self.pace is None else (self.pace.high - self.pace.low) / 2
        return abs(self.percent) >= LEAST_PERCENT and abs(self.percent) > noise

    @property
    def longer_ns(self) -> int | None:
        """How much longer the shared steps took (ns)."""
        return None if self.shared_steps is None else round(
            (self.seconds - self.baseline_seconds) * self.shared_steps * 1e9
        )  # fmt: skip


def work_time(before: Summary, after: Summary) -> WorkTime | None:
    """None where a side kept no steps."""
    if not before.kept_steps or not after.kept_steps:
        return None
    was, now = (side.window.counted_ns / 1e9 / float(side.kept_steps or 1) for side in (before, after))
    return WorkTime(was, now, pace_change(before.step_blocks, after.step_blocks), _shared(before, after))


def pace_change(before: Sequence[float], after: Sequence[float]) -> Range | None:
    """From mean step times (s) of blocks; None where a side has too few."""
    if min(len(before), len(after)) < _LEAST_BLOCKS or min(*before, *after) <= 0:
        return None
    logs = [[math.log(value) for value in side] for side in (before, after)]
    errors = [variance(side) / len(side) for side in logs]
    moved, error = fmean(logs[1]) - fmean(logs[0]), math.sqrt(sum(errors))
    spread = sum(one**2 / (len(side) - 1) for one, side in zip(errors, logs, strict=True))
    freedom = sum(errors) ** 2 / spread if spread > 0 else 1e9
    half = _t(freedom) * error
    return Range(*(100 * math.expm1(value) for value in (moved, moved - half, moved + half)))


def _t(freedom: float) -> float:
    """The 97.5 % quantile of Student's t, by the first terms of its expansion: right to 1 % from 5 on."""
    return _Z + (_Z**3 + _Z) / (4 * freedom) + (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / (96 * freedom**2)


def _shared(before: Summary, after: Summary) -> int | None:
    if before.step_range is None or after.step_range is None:
        return None
    first = max(before.step_range[0], after.step_range[0])
    last = min(before.step_range[1], after.step_range[1])
    shorter = min(high - low + 1 for low, high in (before.step_range, after.step_range))
    shared = last - first + 1
    return shared if shared >= _ALL_SHARED * shorter else None


_COUNTED_OUT = 200
_NORMAL_95 = 1.96


def is_rare(before: int, after: int, lengths: tuple[int, int]) -> bool:
    """Whether two counts over times of these lengths differ by more than chance does, with p < 5 %: the exact test of
    two Poisson rates."""
    total, share = before + after, Fraction(lengths[1], sum(lengths))
    if total > _COUNTED_OUT:  # normal by then
        return (after - total * share) ** 2 > Fraction(_NORMAL_95**2) * total * share * (1 - share)
    chances = [math.comb(total, count) * share**count * (1 - share) ** (total - count) for count in range(total + 1)]
    return sum(chance for chance in chances if chance <= chances[after]) < Fraction(5, 100)
