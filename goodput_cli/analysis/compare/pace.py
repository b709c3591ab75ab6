"""Test of whether the step times of two runs differ by more than the pace drifts within them.

The step times of a run are cut into blocks (50 steps or more, 64 at most; steps/times.py), and the logarithms of their
levels are k numbers per side. Similar neighbors contain less information than k independent ones:

- The lag-1 autocorrelation of both sides, each by its number of blocks, + (1 + 3 phi)/k for its bias (Marriott and
Pope, "Bias in the estimation of autocorrelations", Biometrika 1954). If it is above 1.645/sqrt(2 k), as happens by
chance once in 20, its standard error sqrt((1 - phi^2)/2 k) is added, to be on the safe side. - If blocks of the two
sides differ in length, one decay time (steps) is taken from it, and each side's phi is that of means over its blocks. -
n_eff = k (1 - phi)/(1 + phi): this many independent numbers have a mean that varies as much (the integrated time of an
autoregression: Sokal, "Monte Carlo methods in statistical mechanics", 1989). - The range is Student's t, 95 %, with
s^2/(1 - 1/n_eff)/n_eff per side and degrees of freedom by Welch: for equal sides the sum of n_eff less 2. - A side with
less than half as many independent numbers as the other is assumed to vary at least as much: its few similar numbers
often vary less than its noise. - With less than 6 on a side there is no range: neither the drift nor its duration can
be estimated. A difference still counts if two independent numbers per side would show it: t with 2 degrees of freedom.

How often the range contains the true difference: `python -m benchmarks.noise`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, variance

LEAST_PERCENT = 2.0
"""A smaller difference is not called one: two equal runs differ by as much from night to night."""
_LEAST_BLOCKS = 6
_LEAST_STRETCHES = 6.0
_STRETCHES_TO_TELL = 12
"""Number of stretches on each side from which a range is useful."""
_FEWER = 2
_Z = 1.959964
_ONE_SIDED = 1.645
_T_OF_TWO = 4.303
_MOST_PHI = 0.99
_SHORTEST, _LONGEST = 1e-3, 1e6
"""Decay times of the pace (steps) that are looked at."""
_HALVINGS = 60


@dataclass(frozen=True)
class PaceChange:
    """Increase of step times over the baseline, with its 95 % range, judged by the variation within the two runs."""

    percent: float
    """The difference itself."""
    span: tuple[float, float] | None
    """Range in percent; None if the pace drifts for so long that one run is inconclusive."""
    noise: float
    """Difference that counts as noise, in percent: half of the range; without one, the possible difference of two
    independent stretches on each side."""
    n_eff: tuple[float, float]
    """Number of independent stretches in the blocks of the baseline and of this side."""
    wander_steps: float
    """Steps for which the pace is alike, on the side that has the fewest stretches for them."""
    steps_to_tell: float
    """Steps a side that would show such a difference, or one of 2 %."""

    @property
    def is_clear(self) -> bool:
        """Return True if it is more than noise, and large enough to be called a difference."""
        if self.span is not None:
            return (self.span[0] > 0 or self.span[1] < 0) and abs(self.percent) >= LEAST_PERCENT
        return abs(self.percent) > max(self.noise, LEAST_PERCENT)


def pace_change(
    before: Sequence[float], after: Sequence[float], block_steps: tuple[float, float] = (1.0, 1.0)
) -> PaceChange | None:
    """Return the change from levels of the step times (s) of blocks; None if a side has too few. block_steps: steps in
    a block of each side."""
    if min(len(before), len(after)) < _LEAST_BLOCKS or min(*before, *after) <= 0:
        return None
    logs = [[math.log(value) for value in side] for side in (before, after)]
    phis = _correlations(logs, block_steps)
    n_eff = [len(side) * (1 - phi) / (1 + phi) for side, phi in zip(logs, phis, strict=True)]
    variances = [variance(side) for side in logs]
    moved = fmean(logs[1]) - fmean(logs[0])
    decided = min(n_eff) >= _LEAST_STRETCHES
    half = _half_range(variances, n_eff) if decided else _T_OF_TWO * math.sqrt(sum(variances))
    spans = [len(side) * steps for side, steps in zip(logs, block_steps, strict=True)]
    wander = max(steps / many for steps, many in zip(spans, n_eff, strict=True))
    return PaceChange(
        percent=100 * math.expm1(moved),
        span=(100 * math.expm1(moved - half), 100 * math.expm1(moved + half)) if decided else None,
        noise=50 * (math.expm1(moved + half) - math.expm1(moved - half)) if decided else 100 * math.expm1(half),
        n_eff=(n_eff[0], n_eff[1]),
        wander_steps=wander,
        steps_to_tell=wander * max(_stretches_for(abs(moved), sum(variances)), _STRETCHES_TO_TELL),
    )


def _correlations(logs: Sequence[Sequence[float]], block_steps: tuple[float, float]) -> tuple[float, float]:
    """phi of neighbouring blocks on each side."""
    counts = [len(side) for side in logs]
    mean_count = sum(counts) / 2
    phi = sum(_lag_one(side) * len(side) for side in logs) / sum(counts)
    phi += (1 + 3 * phi) / mean_count
    if phi > _ONE_SIDED / math.sqrt(2 * mean_count):
        phi += math.sqrt(max(1 - phi**2, 0) / (2 * mean_count))
    phi = min(max(phi, 0.0), _MOST_PHI)
    if phi == 0 or block_steps[0] == block_steps[1]:
        return phi, phi
    shortest, longest = math.log(_SHORTEST), math.log(_LONGEST)
    for _ in range(_HALVINGS):  # the decay time with which both together correlate by phi
        middle = (shortest + longest) / 2
        of_both = [_of_means(steps / math.exp(middle)) for steps in block_steps]
        if sum(one * count for one, count in zip(of_both, counts, strict=True)) < phi * sum(counts):
            shortest = middle
        else:
            longest = middle
    return min(of_both[0], _MOST_PHI), min(of_both[1], _MOST_PHI)


def _lag_one(side: Sequence[float]) -> float:
    mean = fmean(side)
    squares = sum((value - mean) ** 2 for value in side)
    products = sum((one - mean) * (other - mean) for one, other in pairwise(side))
    return products / squares if squares else 0.0


def _of_means(length: float) -> float:
    """Correlation of the means of neighbouring stretches of an autoregression in continuous time, `length` decay times
    long: (1 - e^-a)^2 / 2 (a - 1 + e^-a)."""
    if length < _SHORTEST:
        return 1 - length / 3 * 2
    return math.expm1(-length) ** 2 / (2 * (length + math.expm1(-length)))


def _half_range(variances: Sequence[float], n_eff: Sequence[float]) -> float:
    """Half of the range of the difference of two means (logarithms)."""
    least = [max(variances) if _FEWER * many < max(n_eff) else 0.0 for many in n_eff]
    assumed = [max(one, other) for one, other in zip(variances, least, strict=True)]
    errors = [one / (1 - 1 / many) / many for one, many in zip(assumed, n_eff, strict=True)]
    spread = sum(one**2 / (many - 1) for one, many in zip(errors, n_eff, strict=True))
    freedom = sum(errors) ** 2 / spread if spread > 0 else 1e9
    # the 97.5 % quantile of Student's t, by the first terms of its expansion: right to 1 % from 5 on
    student = _Z + (_Z**3 + _Z) / (4 * freedom) + (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / (96 * freedom**2)
    return student * math.sqrt(sum(errors))


def _stretches_for(moved: float, variances: float) -> int:
    """Independent stretches a side whose range is half as wide as the difference, or as 2 %."""
    return math.ceil(_Z**2 * variances / max(moved, LEAST_PERCENT / 100) ** 2)
