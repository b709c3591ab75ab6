"""Goodput against the interval, averaged over attempts slightly shorter and longer than the recorded ones
(docs/advice.md, *How the interval is chosen*). All values are real numbers, in seconds.

The best interval is never taken from replays of the record: a replay knows when each failure comes, so its best
interval saves just before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from goodput_cli.accounting.columns import distinct
from goodput_cli.analysis.advice.record import FAILURES, EndKind, JobRecord
from goodput_cli.arrays import F64, I64

_GROWTH = 1.1
_FARTHEST = 20
_NS = 1e9


@dataclass(frozen=True)
class Exposure:
    """Inputs of the curve, in seconds; docs/advice.md defines the letters."""

    lives: F64
    """x: training time of each failed attempt whose loss depends on the interval."""
    budgets: float
    """A: training time of all attempts."""
    work: float
    """U: time of the kept work."""
    gaps: float
    """G: time after failures, until training continues."""
    fixed: float
    """V: time that no failure brings."""
    extra: float
    """E: time lost whatever the interval."""
    pace: float
    """Mean time of a step."""
    productive: float
    """P: productive time of the record."""
    window: float
    """T: length of the record."""
    mtbf_given: float | None = None
    """MTBF, if it is known from elsewhere; None: that of the record."""
    behind: F64 = field(default_factory=lambda: np.zeros(0))
    """Time after each failure; the sum is `gaps`."""

    @property
    def failures(self) -> int:
        """n: how many failures the curve counts."""
        return len(self.lives)

    @property
    def mtbf(self) -> float | None:
        """M, in attempt time; None without a failure."""
        if self.mtbf_given is not None:
            return self.mtbf_given
        return self.budgets / self.failures if self.failures else None

    @cached_property
    def weight(self) -> float:
        """Factor by which failures are more frequent than recorded, if the MTBF is given; otherwise 1."""
        if self.mtbf_given is None or not self.failures:
            return 1.0
        return self.budgets / self.mtbf_given / self.failures


def exposure_of(record: JobRecord, mtbf: float | None = None) -> Exposure:
    """Return the sums over the attempts of a record."""
    lives = record.lives
    steps = sum(life.steps for life in lives)
    pace = sum(life.trained for life in lives) / _NS / steps if steps else 0.0
    behind = _times_after_failures(record)
    budgets = sum(life.budget for life in lives if record.trained_step(life))
    gaps = sum(behind)
    return Exposure(
        lives=np.array([life.budget for life in record.counted]) / _NS,
        budgets=budgets / _NS,
        work=sum(life.kept for life in lives) / _NS,
        gaps=gaps / _NS,
        fixed=(record.window - budgets - gaps) / _NS,
        extra=_extra_steps(record) * pace,
        pace=pace,
        productive=record.productive / _NS,
        window=record.window / _NS,
        mtbf_given=mtbf,
        behind=np.array(behind) / _NS,
    )


def _times_after_failures(record: JobRecord) -> list[int]:
    """Return the time (ns) after each failure until training continues. It includes starts that ended before a step
    finished; these are not attempts here."""
    lives, behind = record.lives, list[int]()
    for index, (life, end) in enumerate(zip(lives, record.ends, strict=True)):
        if end.kind not in FAILURES:
            continue
        gap = life.hang + record.gaps[index + 1] + lives[index + 1].startup
        if record.trained_step(life):
            behind.append(gap)
        elif behind:
            behind[-1] += life.budget + gap
    return behind


def _extra_steps(record: JobRecord) -> int:
    """Steps lost that no interval would have saved."""
    lost = 0
    for life, end in zip(record.lives, record.ends, strict=True):
        if life.resumed is None:
            continue
        if end.kind == EndKind.OLDER:
            lost += end.newest - life.resumed
        elif end.kind in (EndKind.BEYOND, EndKind.STOP):
            lost += max(end.died - life.resumed, 0)
    return lost


@dataclass(frozen=True)
class SaveCost:
    """Cost of a save (s)."""

    cost: float
    """Time that a save blocks training."""
    latency: float = 0.0
    """Time from then until the save can be used; 0 if saves block until then."""


def candidates(exposure: Exposure, steps: int, today: int, saving: SaveCost) -> I64:
    """The intervals (steps) that are looked at: about ten per cent apart."""
    longest = float(exposure.lives.max()) if exposure.failures else exposure.budgets
    far = _FARTHEST * max(today, round(longest / exposure.pace) if exposure.pace else 0)
    most = max(2, min(steps, far))
    found, power = [], 0
    while (interval := round(_GROWTH**power)) <= most:
        found.append(interval)
        power += 1
    intervals = distinct(np.array(found, dtype=np.int64))
    if saving.latency:
        intervals = intervals[intervals * exposure.pace >= saving.latency]
    return intervals


class LossCurve:
    """T(N) of some intervals. lost: R, [n, intervals], loss at the end of each failed attempt; half: loss at the end of
    an attempt as long as the record, [intervals]."""

    def __init__(self, exposure: Exposure, intervals: Sequence[int] | I64, saving: SaveCost) -> None:
        self.exposure, self.saving = exposure, saving
        self.intervals = np.asarray(intervals, dtype=np.int64)
        self._training = self.intervals * exposure.pace
        self.periods: F64 = np.asarray(self._training + saving.cost, dtype=np.float64)
        self.lost = lost_at_end(exposure.lives[:, None], self.periods[None, :], saving.latency)
        self.half = lost_at_end(np.array([[exposure.budgets]]), self.periods[None, :], saving.latency)[0]

    def lengths(self, lost: F64, gaps: float | F64) -> F64:
        """T (s; infinite where the job never ends). lost: sums of R, [..., intervals]. gaps: G, [...]."""
        one = self.exposure
        share = self._training / np.maximum(self.periods, 1e-9)
        kept = share * (1 - lost / one.budgets) - one.extra / one.budgets
        with np.errstate(divide="ignore", invalid="ignore"):
            length = one.fixed + one.work / kept * (1 + np.asarray(gaps)[..., None] / one.budgets)
        return np.where(kept > 0, length, np.inf)

    @cached_property
    def average(self) -> F64:
        """T (s) of each interval, as it is shown."""
        one = self.exposure
        if one.mtbf_given is not None and not one.failures:
            return self._exponential(one.mtbf_given)
        return self.lengths(self.lost.sum(axis=0) * one.weight, one.gaps * one.weight)

    @cached_property
    def chosen_by(self) -> F64:
        """T (s) with the next failure on its way: half a failure more. With a known MTBF there is none to guess."""
        one = self.exposure
        if one.mtbf_given is not None:
            return self.average
        return self.lengths(self.lost.sum(axis=0) + self.half / 2, one.gaps)

    def _exponential(self, mtbf: float) -> F64:
        """Return the loss for exponential attempt lengths: no failure was recorded, but the MTBF is given."""
        one = self.exposure
        with np.errstate(over="ignore"):
            kept = self._training / mtbf / np.expm1(self.periods / mtbf) - one.extra / one.budgets
        with np.errstate(divide="ignore"):
            return np.where(kept > 0, one.fixed + one.work / kept * (1 + one.gaps / one.budgets), np.inf)

    def goodput(self, length: F64) -> F64:
        """P / T in percent; 0 where the job never ends."""
        return np.asarray(100 * self.exposure.productive / length)


def lost_at_end(life: F64, period: F64, latency: float = 0.0) -> F64:
    """Return R: the loss at the end of an attempt of `life` seconds, averaged over attempts of half to one and a half
    times that length."""
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = _loss(1.5 * life, period) - _loss(0.5 * life, period)
        if latency:
            lost = lost + _waiting(1.5 * life, period, latency) - _waiting(0.5 * life, period, latency)
        return np.where(life > 0, lost / life, 0.0)


def _loss(life: F64, period: F64) -> F64:
    """F: the integral of the time since the last save."""
    whole = np.floor(life / period)
    rest = life - whole * period
    return np.asarray(whole * period**2 / 2 + rest**2 / 2)


def _waiting(life: F64, period: F64, latency: float) -> F64:
    """L: the same of the time in which the newest save could not be used yet."""
    whole = np.floor(life / period)
    rest = life - whole * period
    return np.asarray(period * (np.maximum(whole - 1, 0) * latency + (whole >= 1) * np.minimum(rest, latency)))
