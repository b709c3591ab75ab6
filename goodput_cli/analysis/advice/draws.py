"""Uncertainty of a curve (docs/advice.md, *Ranges*): draws over the rate of failures and over the attempts, singly and
in blocks. All values are real numbers, in seconds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from goodput_cli.analysis.advice.curve import Exposure, LossCurve
from goodput_cli.analysis.advice.results import ENOUGH_FAILURES
from goodput_cli.arrays import F64, I64

DRAWS = 1000
_LOW, _HIGH = 25, 975
"""Nearest ranks of the 95 % interval."""
_AT_ONCE = 100
_SHORTEST_BLOCK = 2
Draws = tuple[F64, F64, F64]
"""Weights of each failure [draws, n] and of an attempt as long as the record [draws], and G [draws] (s)."""


@dataclass(frozen=True)
class DrawRanges:
    """Ranges from the draws. best: 95 % interval of the best interval, in steps. goodput: 95 % interval of the goodput
    of each candidate, [2, candidates], percent. gain: that of the advised interval's gain over today's, points;
    probability: the share of draws in which it is better. Both None if no interval is advised."""

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


def spread(curve: LossCurve, advised: LossCurve | None, today: LossCurve | None) -> DrawRanges:
    """Return the wider of two ranges: from 1000 draws of single attempts and 1000 draws of blocks of attempts, which
    keep bursts of failures together. advised, today: curves of one interval each."""
    alone = _spread(curve, advised, today, _single_draws)
    if curve.exposure.failures < 2:
        return alone
    return _wider_ranges(alone, _widen_ranges(_spread(curve, advised, today, _block_draws), curve, advised, today))


def _spread(
    curve: LossCurve, advised: LossCurve | None, today: LossCurve | None, draws: Callable[[Exposure], Iterator[Draws]]
) -> DrawRanges:
    """Return the ranges of one kind of draws."""
    best, gain, goodput = [], [], []
    for weights, half, gaps in draws(curve.exposure):
        lengths = _lengths(curve, weights, half, gaps)
        best.append(curve.intervals[np.argmin(lengths, axis=1)])
        goodput.append(curve.goodput(lengths))
        if advised is not None and today is not None:
            new, old = (one.goodput(_lengths(one, weights, half, gaps))[:, 0] for one in (advised, today))
            gain.append(new - old)
    ranks = [_LOW - 1, _HIGH - 1]
    low, high = np.sort(np.concatenate(best))[ranks].tolist()
    gains = np.sort(np.concatenate(gain)) if gain else None
    return DrawRanges(
        best=(low, high),
        goodput=np.sort(np.concatenate(goodput), axis=0)[ranks],
        gain=None if gains is None else (float(gains[ranks[0]]), float(gains[ranks[1]])),
        probability=None if gains is None else float(np.mean(gains > 0)),
    )


def _widen_ranges(
    blocks: DrawRanges, curve: LossCurve, advised: LossCurve | None, today: LossCurve | None
) -> DrawRanges:
    """Widen the ranges of blocks to those of a Student t with one degree of freedom less than blocks: lost shares about
    their average, intervals by their ratio, gains by their difference. Unchanged below ten attempts."""
    lives = curve.exposure.lives
    factor = _factor(lives)
    if factor is None:
        return blocks
    usual = 100 - curve.goodput(curve.average)
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.log(np.maximum((100 - blocks.goodput) / usual, 1e-12))
        ends += _skewness(_influence(curve), block_length(lives)) * (ends[0] - ends[1]) / (2 * _NORMAL)
        lost = np.where(usual > 0, usual * np.exp(factor * ends), 100 - blocks.goodput)
    best = int(curve.intervals[np.argmin(curve.chosen_by)])
    steps = (best * (end / best) ** factor for end in (min(blocks.best[0], best), max(blocks.best[1], best)))
    least, most = int(curve.intervals[0]), int(curve.intervals[-1])
    gain = blocks.gain
    if gain is not None and advised is not None and today is not None:
        new, old = (float(one.goodput(one.average)[0]) for one in (advised, today))
        low, high = (new - old + factor * (end - (new - old)) for end in gain)
        gain = (low, high)
    low_best, high_best = (min(max(round(end), least), most) for end in steps)
    return DrawRanges((low_best, high_best), np.clip(100 - lost, 0, 100), gain, blocks.probability)


def _influence(curve: LossCurve) -> F64:
    """Return by how much each attempt changes the logarithm of the lost share, approximately: [n, intervals]."""
    exposure = curve.exposure
    cost = curve.lost + exposure.gaps / exposure.failures
    share = cost / np.maximum(cost.sum(axis=0), 1e-9)
    parts: F64 = share if exposure.mtbf_given is not None else share - (exposure.lives / exposure.budgets)[:, None]
    return parts


def _skewness(parts: F64, length: int) -> F64:
    """Return the skewness of the sum of the attempts' contributions to a figure, from all blocks of `length` neighbors.
    parts: [n, ...]. Percentiles move by it, in standard errors, to the ends of a Student t of skewed attempts (Hall
    1992)."""
    apart = parts - parts.mean(axis=0)
    upto = np.cumsum(np.concatenate((np.zeros_like(apart[:1]), apart, apart[: length - 1])), axis=0)
    sums = upto[length:] - upto[:-length]
    size = np.maximum(np.sqrt(np.mean(sums**2, axis=0)), 1e-100)
    return np.asarray(np.mean((sums / size) ** 3, axis=0) * math.sqrt(length / len(parts)))


def _factor(lives: F64) -> float | None:
    """Return the factor that widens ranges of blocks; None below ten attempts, where no coverage is promised."""
    return _widening(len(lives) / block_length(lives)) if len(lives) >= ENOUGH_FAILURES else None


_NORMAL = 1.959963984540054
"""Quantile 0.975 of the normal distribution."""


def _widening(blocks: float) -> float:
    """Return how much wider than percentiles of resampled blocks a range of their mean is: Student's t with blocks - 1
    degrees of freedom over the normal quantile (Abramowitz and Stegun 26.7.5), and their variance without bias."""
    z, free = _NORMAL, blocks - 1
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    student = z + first / free + second / free**2 + third / free**3
    return student / z * math.sqrt(blocks / free)


def _wider_ranges(one: DrawRanges, other: DrawRanges) -> DrawRanges:
    """Return the wider of each pair of ranges, intervals by their ratio; of the probability the lower."""
    width, others = one.goodput[1] - one.goodput[0], other.goodput[1] - other.goodput[0]
    gains = [some.gain for some in (one, other) if some.gain is not None]
    sure = [some.probability for some in (one, other) if some.probability is not None]
    return DrawRanges(
        best=max(one.best, other.best, key=lambda ends: ends[1] / ends[0]),
        goodput=np.where(others > width, other.goodput, one.goodput),
        gain=max(gains, key=lambda ends: ends[1] - ends[0], default=None),
        probability=min(sure, default=None),
    )


def _single_draws(exposure: Exposure) -> Iterator[Draws]:
    """Yield draws of single attempts, a hundred draws at once."""
    columns = exposure.failures + 2
    for first in range(0, DRAWS, _AT_ONCE):
        yield _weights(exposure, uniforms(_AT_ONCE * columns, first * columns).reshape(_AT_ONCE, columns))


def _weights(exposure: Exposure, given: F64) -> Draws:
    """Return weights of attempts that are drawn singly. The weights of failures are Gamma(1) each, that of the half
    failure Gamma(1/2): the rate has the interval of Jeffreys. A given MTBF leaves only the attempts."""
    failures = exposure.failures
    weights = -np.log(given[:, :failures])
    half = -np.log(given[:, failures]) * np.cos(2 * np.pi * given[:, failures + 1]) ** 2
    if exposure.mtbf_given is not None:
        total = np.maximum(weights.sum(axis=1), 1e-300)
        weights = weights * (failures * exposure.weight / total)[:, None]
        half = np.zeros_like(half)
    rate = (weights.sum(axis=1) + half) / failures if failures else np.ones(len(half))
    return weights, half, exposure.gaps * rate


def _block_draws(exposure: Exposure) -> Iterator[Draws]:
    """Yield draws of blocks of neighboring attempts, each draw with as much attempt time as the record."""
    lives, budgets, failures = exposure.lives, exposure.budgets, exposure.failures
    for place in _blocks(exposure):
        row = np.repeat(np.arange(_AT_ONCE), failures) * failures
        count = np.bincount(row + place.ravel(), minlength=_AT_ONCE * failures).reshape(_AT_ONCE, failures)
        scale: F64 = np.full(_AT_ONCE, exposure.weight)
        if exposure.mtbf_given is None:
            scale = budgets / np.maximum(budgets + (count - 1) @ lives, 1e-9)
        yield count * scale[:, None], np.zeros(_AT_ONCE), exposure.gaps * scale


def _blocks(exposure: Exposure) -> Iterator[I64]:
    """Yield as many attempts as recorded, [draws, n], a hundred draws at once: blocks of neighbors, where the first
    follows the last (circular block bootstrap, Politis and Romano 1992), after the numbers that `_single_draws` takes.
    """
    failures, length = exposure.failures, block_length(exposure.lives)
    blocks, taken = -(-failures // length), DRAWS * (failures + 2)
    for first in range(0, DRAWS, _AT_ONCE):
        given = uniforms(_AT_ONCE * blocks, taken + first * blocks).reshape(_AT_ONCE, blocks)
        start = _positions_below(given, failures)
        yield (start[:, :, None] + np.arange(length)).reshape(_AT_ONCE, -1)[:, :failures] % failures


def _positions_below(given: F64, count: int) -> I64:
    """Convert numbers in [0, 1] to positions below `count`."""
    return np.minimum((given * count).astype(np.int64), count - 1)


def block_length(lives: F64) -> int:
    """Return how many neighboring attempts are drawn together: the length with the least error for a mean (Politis and
    White 2004, with the correction of Patton, Politis and White 2009, circular), at least the cube root of their
    number, because few attempts do not show how long a burst is. 2 for fewer than ten. lives: s."""
    count = len(lives)
    if count < ENOUGH_FAILURES:
        return _SHORTEST_BLOCK
    most = min(3 * math.sqrt(count), count / 3)
    return max(math.ceil(math.cbrt(count) - 1e-9), math.ceil(min(_best_block(lives), most)))


def _best_block(lives: F64) -> float:
    """Return the same before it is rounded and bounded; 0 if all attempts are alike."""
    count = len(lives)
    near = max(5, math.ceil(math.sqrt(math.log10(count))))
    most = min(math.ceil(math.sqrt(count)) + near, count - 1)
    apart = lives - lives.mean()
    cov = np.array([float(apart[lag:] @ apart[: count - lag]) / count for lag in range(most + 1)])
    if cov[0] <= 0:
        return 0.0
    alike = np.flatnonzero(np.abs(cov[1:] / cov[0]) >= 2 * math.sqrt(math.log10(count) / count)) + 1
    ends = (lag for lag in [0, *alike.tolist()] if not np.any((alike > lag) & (alike <= lag + near)))
    lags = np.arange(1, min(2 * max(next(ends), 1), most) + 1)
    flat = np.clip(2 * (1 - lags / lags[-1]), 0, 1)
    level, slope = cov[0] + 2 * float(flat @ cov[lags]), 2 * float((flat * lags) @ cov[lags])
    return float((1.5 * (slope / level) ** 2 * count) ** (1 / 3)) if level else 0.0


def _lengths(curve: LossCurve, weights: F64, half: F64, gaps: F64) -> F64:
    if curve.exposure.mtbf_given is not None and not curve.exposure.failures:
        return np.broadcast_to(curve.average, (len(half), len(curve.intervals)))
    return curve.lengths(weights @ curve.lost + half[:, None] * curve.half, gaps)


_MOST_LIVES = 20
"""A run that needs more attempts than this multiple of the record's never ends."""
_Lives = Callable[[int, I64, np.random.Generator], F64]
"""The next attempt (s) of the runs of some draws, from its number, the draws, and chance."""


def one_run(curve: LossCurve) -> tuple[float, float] | None:
    """Return the 95 % range (percent) of the goodput of a single run like the record, for a curve of one interval: the
    wider of two, as in `spread`. Each draw takes a mean time between failures and attempts of that mean, half to one
    and a half times as long, each followed by the time after any failure, until the work is done. None if no failure
    was recorded but the MTBF is given."""
    exposure = curve.exposure
    if exposure.mtbf_given is not None and not exposure.failures:
        return None
    kinds = [_single_attempts(exposure), *([_neighbours(exposure)] if exposure.failures >= 2 else [])]
    runs = (np.sort(curve.goodput(_lived(curve, lives))) for lives in kinds)
    low, high = max(((run[_LOW - 1], run[_HIGH - 1]) for run in runs), key=lambda ends: ends[1] - ends[0])
    return float(low), float(high)


def _single_attempts(exposure: Exposure) -> _Lives:
    """Draw single attempts, each as often as its weight; without a failure all are as long as their mean."""
    failures = exposure.failures
    weights, half, _ = _weights(exposure, uniforms(DRAWS * (failures + 2)).reshape(DRAWS, failures + 2))
    mean = exposure.budgets / np.maximum(weights.sum(axis=1) + half, 1e-300)
    if not failures:
        return lambda _number, draws, _random: mean[draws]
    total = weights.sum(axis=1)
    scale = mean * total / np.maximum(weights @ exposure.lives, 1e-9)
    upto: F64 = np.cumsum(weights / total[:, None], axis=1) + np.arange(DRAWS)[:, None]

    def draw(_number: int, draws: I64, random: np.random.Generator) -> F64:
        place = np.searchsorted(upto.ravel(), draws + random.random(len(draws))) - draws * failures
        return np.asarray(exposure.lives[np.clip(place, 0, failures - 1)] * scale[draws])

    return draw


def _neighbours(exposure: Exposure) -> _Lives:
    """Blocks of neighbours among those that a draw has: bursts stay together in a run, too."""
    order = np.concatenate(list(_blocks(exposure)))
    total = np.maximum(exposure.lives[order].sum(axis=1), 1e-9)
    mean = _means(exposure, total)
    length, place = block_length(exposure.lives), np.zeros(DRAWS, dtype=np.int64)

    def draw(number: int, draws: I64, random: np.random.Generator) -> F64:
        starts = number % length == 0
        place[draws] = (
            _positions_below(random.random(len(draws)), exposure.failures)
            if starts
            else (place[draws] + 1) % exposure.failures
        )
        of_draw = exposure.lives[order[draws, place[draws]]]
        return np.asarray(of_draw * (mean * exposure.failures / total)[draws])

    return draw


def _means(exposure: Exposure, total: F64) -> F64:
    """Return the mean time (s) between failures of each draw of blocks, as far apart as `_widen_ranges` makes ranges.
    total: time of its attempts, s."""
    usual = exposure.budgets / exposure.failures
    if exposure.mtbf_given is not None:
        return np.full(DRAWS, exposure.mtbf_given)
    off = np.log((exposure.budgets + total - exposure.lives.sum()) / exposure.budgets)
    factor = _factor(exposure.lives)
    if factor is not None:
        ends = np.sort(off)[[_LOW - 1, _HIGH - 1]]
        moved = _skewness(exposure.lives, block_length(exposure.lives)) * (ends[1] - ends[0]) / (2 * _NORMAL)
        off = factor * (off + moved)
    return np.asarray(usual * np.exp(off))


def _lived(curve: LossCurve, lives: _Lives) -> F64:
    """T (s) of one run a draw."""
    one = curve.exposure
    period, training, latency = float(curve.periods[0]), float(curve._training[0]), curve.saving.latency
    random = np.random.Generator(np.random.PCG64(1))
    behind = one.behind if len(one.behind) else np.zeros(1)
    left, clock = np.full(DRAWS, one.work), np.full(DRAWS, one.fixed)
    running = np.arange(DRAWS)
    for number in range(_MOST_LIVES * (len(one.lives) + 1)):
        life = lives(number, running, random) * (0.5 + random.random(len(running)))
        done = left[running] * period / training <= life
        clock[running[done]] += left[running[done]] * period / training
        running, life = running[~done], life[~done]
        if not len(running):
            return clock
        whole, rest = np.divmod(life, period)
        whole -= (whole > 0) & (rest < latency)
        left[running] -= np.maximum(whole * training - one.extra * life / one.budgets, 0)
        clock[running] += life + behind[_positions_below(random.random(len(running)), len(behind))]
    clock[running] = np.inf
    return clock
