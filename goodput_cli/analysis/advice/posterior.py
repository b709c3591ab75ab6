"""How sure the curve is: draws over the rate of failures and over the lives (docs/advice.md, *How sure*)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from goodput_cli.analysis.advice.curve import Curve, Exposure
from goodput_cli.arrays import F64

DRAWS = 1000
_LOW, _HIGH = 25, 975
"""Nearest ranks of the 95 % interval."""
_AT_ONCE = 100


@dataclass(frozen=True)
class Spread:
    """What the draws say. best: 95 % interval of the best interval, in steps. goodput: that of the goodput of each
    candidate, [2, candidates], percent. gain: that of the advised interval's gain over today's, points; probability:
    the share of draws in which it is better. Both None where no interval is advised."""

    best: tuple[int, int]
    goodput: F64
    gain: tuple[float, float] | None
    probability: float | None


def uniforms(count: int, skip: int = 0) -> F64:
    """Numbers in (0, 1] by SplitMix64 with state 1, so that all machines draw the same."""
    with np.errstate(over="ignore"):
        state = np.uint64(1) + np.arange(skip + 1, skip + count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return np.asarray(((state >> np.uint64(11)) + np.uint64(1)) / 2.0**53)


def spread(curve: Curve, advised: Curve | None, today: Curve | None) -> Spread:
    """1000 draws. advised, today: curves of the one interval each."""
    failures = curve.exposure.failures
    best, gain, goodput = [], [], []
    for first in range(0, DRAWS, _AT_ONCE):
        given = uniforms(_AT_ONCE * (failures + 2), first * (failures + 2)).reshape(_AT_ONCE, failures + 2)
        weights, half, gaps = _weights(curve.exposure, given)
        lengths = _lengths(curve, weights, half, gaps)
        best.append(curve.intervals[np.argmin(lengths, axis=1)])
        goodput.append(curve.goodput(lengths))
        if advised is not None and today is not None:
            new, old = (one.goodput(_lengths(one, weights, half, gaps))[:, 0] for one in (advised, today))
            gain.append(new - old)
    ranks = [_LOW - 1, _HIGH - 1]
    low, high = np.sort(np.concatenate(best))[ranks].tolist()
    gains = np.sort(np.concatenate(gain)) if gain else None
    return Spread(
        best=(low, high),
        goodput=np.sort(np.concatenate(goodput), axis=0)[ranks],
        gain=None if gains is None else (float(gains[ranks[0]]), float(gains[ranks[1]])),
        probability=None if gains is None else float(np.mean(gains > 0)),
    )


def _weights(exposure: Exposure, given: F64) -> tuple[F64, F64, F64]:
    """Weights of each failure [draws, n] and of the half failure [draws], and G [draws]. The failures' are Gamma(1)
    each and the half one's Gamma(1/2): the rate has the interval of Jeffreys. A known MTBF leaves only the lives."""
    failures = exposure.failures
    weights = -np.log(given[:, :failures])
    half = -np.log(given[:, failures]) * np.cos(2 * np.pi * given[:, failures + 1]) ** 2
    if exposure.mtbf_given is not None:
        total = np.maximum(weights.sum(axis=1), 1e-300)
        weights = weights * (failures * exposure.weight / total)[:, None]
        half = np.zeros_like(half)
    rate = (weights.sum(axis=1) + half) / failures if failures else np.ones(len(half))
    return weights, half, exposure.gaps * rate


def _lengths(curve: Curve, weights: F64, half: F64, gaps: F64) -> F64:
    if curve.exposure.mtbf_given is not None and not curve.exposure.failures:
        return np.broadcast_to(curve.average, (len(half), len(curve.intervals)))
    return curve.lengths(weights @ curve.lost + half[:, None] * curve.half, gaps)
