"""Autocorrelated noise: how often slow levels are found in series of step times, and where there are none; and how
often the range of `goodput compare` contains the true difference: `python -m benchmarks.noise [SERIES] [PAIRS]`.

Series are of 1500 step times, in logarithms; a slow stretch counts as found if 80 % of it is covered. Pairs are two
runs of the same noise, of 1200 steps each or of 600 and 6000. Neither model of goodput_cli/analysis/steps/noise.py nor
that of analysis/compare/pace.py is true of the moving averages, of the random walks or of the sums of both kinds.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from goodput_cli.analysis.compare.pace import PaceChange, pace_change
from goodput_cli.analysis.steps.regimes import pace_model
from goodput_cli.analysis.steps.times import pace_blocks, winsorised_mean
from goodput_cli.arrays import F64

STEPS = 1500
_USUAL = 8.0
"""Step time (s)."""
Noise = Callable[[np.random.Generator, int], F64]
"""Function that returns logarithms of step times. Arguments: random numbers, count."""


def white(sigma: float) -> Noise:
    """Return independent noise: log-normal step times."""
    return lambda random, count: np.asarray(sigma * random.standard_normal(count))


def autoregression(sigma: float, rho: float, independent: float = 0.0) -> Noise:
    """Return autocorrelated noise of standard deviation sigma, plus independent noise."""

    def made(random: np.random.Generator, count: int) -> F64:
        values = random.standard_normal(count) * sigma * np.sqrt(1 - rho**2)
        values[0] = sigma * random.standard_normal()
        for place in range(1, count):
            values[place] += rho * values[place - 1]
        return np.asarray(values + independent * random.standard_normal(count))

    return made


def moving_average(sigma: float, length: int) -> Noise:
    """Return moving averages of `length` independent values; values farther apart are independent."""

    def made(random: np.random.Generator, count: int) -> F64:
        total = np.append(0.0, np.cumsum(random.standard_normal(count + length - 1)))
        return np.asarray(sigma * (total[length:] - total[:-length]) / np.sqrt(length))

    return made


def random_walk(each: float, independent: float) -> Noise:
    """Return a walk that moves by `each` per step and never returns, plus independent noise."""

    def made(random: np.random.Generator, count: int) -> F64:
        return np.cumsum(each * random.standard_normal(count)) + independent * random.standard_normal(count)

    return made


def pareto(index: float, scale: float) -> Noise:
    """Return step times that are scale x Pareto (Lomax) longer."""
    return lambda random, count: np.asarray(np.log1p(scale * random.pareto(index, count)))


def heavy_tailed(sigma: float) -> Noise:
    """Return Student's t with 3 degrees of freedom."""
    return lambda random, count: np.asarray(sigma * random.standard_t(3, count))


def with_outliers(sigma: float, share: float) -> Noise:
    """Return independent noise, and some steps that take 2 to 20 times as long."""

    def made(random: np.random.Generator, count: int) -> F64:
        odd = random.random(count) < share
        return np.where(odd, np.log(random.uniform(2, 20, count)), sigma * random.standard_normal(count))

    return made


def alternating(sigma: float, every: int, longer: float) -> Noise:
    """Return noise with each k-th step longer."""

    def made(random: np.random.Generator, count: int) -> F64:
        return np.asarray(sigma * random.standard_normal(count) + np.log(longer) * (np.arange(count) % every == 0))

    return made


def mixed(sigma: float, share: float, longer: float) -> Noise:
    """Return two populations, by chance."""

    def made(random: np.random.Generator, count: int) -> F64:
        return np.asarray(sigma * random.standard_normal(count) + np.log(longer) * (random.random(count) < share))

    return made


HEALTHY: dict[str, Noise] = {
    "white 0.5 %": white(0.005),
    "white 5 %": white(0.05),
    "lognormal 15 %": white(0.15),
    "lognormal 40 %": white(0.40),
    "Pareto 1.5": pareto(1.5, 0.05),
    "Pareto 1.1": pareto(1.1, 0.1),
    "heavy tails": heavy_tailed(0.05),
    "6 % of steps 2 to 20 x": with_outliers(0.05, 0.06),
    "every other step 2 x": alternating(0.03, 2, 2.0),
    "every 20th step 2 x": alternating(0.03, 20, 2.0),
    "two shapes": mixed(0.03, 0.5, 2.0),
    "a tenth of steps 2 x": mixed(0.03, 0.1, 2.0),
    "AR .5 15 %": autoregression(0.15, 0.5),
    "AR .9 8 %": autoregression(0.08, 0.9),
    "AR .95 8 %": autoregression(0.08, 0.95),
    "AR .98 6 %": autoregression(0.06, 0.98),
    "AR .99 5 %": autoregression(0.05, 0.99),
    "AR .995 8 %": autoregression(0.08, 0.995),
    "AR .98 4 % + 15 %": autoregression(0.04, 0.98, 0.15),
    "AR .99 5 % + 5 %": autoregression(0.05, 0.99, 0.05),
    "MA 50 5 %": moving_average(0.05, 50),
    "MA 200 5 %": moving_average(0.05, 200),
    "walk .2 % + 5 %": random_walk(0.002, 0.05),
    "walk .4 % + 5 %": random_walk(0.004, 0.05),
    "walk .2 % + 15 %": random_walk(0.002, 0.15),
    "walk 1 % + 5 %": random_walk(0.01, 0.05),
}
"""Series without any slow level."""
SLOWDOWNS: dict[str, tuple[Noise, float, int]] = {
    "10 % of 600, white 5 %": (white(0.05), 1.10, 600),
    "7 % of 600, white 5 %": (white(0.05), 1.07, 600),
    "34 % of 100, lognormal 15 %": (white(0.15), 1.34, 100),
    "34 % of 100, AR .5 15 %": (autoregression(0.15, 0.5), 1.34, 100),
    "10 % of 600, every other step 2 x": (alternating(0.03, 2, 2.0), 1.10, 600),
    "10 % of 600, two shapes": (mixed(0.03, 0.5, 2.0), 1.10, 600),
    "30 % of 400, Pareto 1.5": (pareto(1.5, 0.05), 1.30, 400),
    "10 % of 600, AR .9 5 %": (autoregression(0.05, 0.9), 1.10, 600),
    "20 % of 500, AR .95 5 %": (autoregression(0.05, 0.95), 1.20, 500),
    "20 % of 100, AR .95 5 %": (autoregression(0.05, 0.95), 1.20, 100),
    "10 % of 500, AR .95 5 %": (autoregression(0.05, 0.95), 1.10, 500),
    "20 % of 400, AR .98 3 % + 5 %": (autoregression(0.03, 0.98, 0.05), 1.20, 400),
    "40 % of 400, AR .99 5 %": (autoregression(0.05, 0.99), 1.40, 400),
}
"""Noise, factor, and number of slow steps."""
DRIFTS: dict[str, tuple[Noise, float]] = {
    "10 %, white 5 %": (white(0.05), 0.10),
    "20 %, white 5 %": (white(0.05), 0.20),
    "20 %, AR .9 5 %": (autoregression(0.05, 0.9), 0.20),
    "40 %, AR .95 5 %": (autoregression(0.05, 0.95), 0.40),
}
"""Noise, and the total rise of the step time."""
PAIRS = (
    "white 5 %", "Pareto 1.5", "two shapes", "AR .9 8 %", "AR .95 8 %", "AR .98 6 %", "AR .99 5 %",
    "AR .98 4 % + 15 %", "MA 50 5 %", "MA 200 5 %", "walk .2 % + 5 %",
)  # fmt: skip
LENGTHS = ((1200, 1200), (600, 6000))


def kind_of(noise: Noise, seed: int) -> str:
    """Return the result for a series without any slow level: `level`, `line` or `levels`."""
    return pace_model(_USUAL * np.exp(noise(np.random.default_rng(seed), STEPS))).kind


def is_found(noise: Noise, factor: float, length: int, seed: int) -> bool:
    """Return True if a slow stretch in the middle of a series is found."""
    random = np.random.default_rng(seed)
    times = _USUAL * np.exp(noise(random, STEPS))
    first = int(random.integers(200, STEPS - length - 200))
    times[first : first + length] *= factor
    cuts = pace_model(times).cuts
    levels = np.array([winsorised_mean(part) for part in np.split(times, cuts)])
    slow = np.repeat(levels > 1.04 * levels.min(), np.diff(np.concatenate(([0], cuts, [STEPS]))))
    return bool(slow[first : first + length].mean() >= 0.8 and slow.mean() < 1)


def kind_of_drift(noise: Noise, rise: float, seed: int) -> str:
    """Return the result for a series that rises throughout."""
    times = _USUAL * np.exp(noise(np.random.default_rng(seed), STEPS)) * (1 + rise * np.arange(STEPS) / STEPS)
    return pace_model(times).kind


def equal_pair(noise: Noise, lengths: tuple[int, int], seed: int) -> PaceChange:
    """Return the comparison of two runs that differ only by noise."""
    random = np.random.default_rng(seed)
    blocks = [pace_blocks(_USUAL * np.exp(noise(random, length))) for length in lengths]
    each = [length / len(side) for length, side in zip(lengths, blocks, strict=True)]
    change = pace_change(blocks[0], blocks[1], (each[0], each[1]))
    assert change is not None
    return change


def cover(noise: Noise, lengths: tuple[int, int], pairs: int) -> tuple[float, float, float]:
    """Return for equal pairs the share of ranges that contain 0, of pairs without a range, and of those reported as
    different."""
    changes = [equal_pair(noise, lengths, 10_000 + seed) for seed in range(pairs)]
    spans = [change.span for change in changes if change.span is not None]
    right = sum(low <= 0 <= high for low, high in spans)
    different = sum(change.is_clear for change in changes)
    return right / max(len(spans), 1), 1 - len(spans) / pairs, different / pairs


def _rows(series: int, pairs: int) -> Iterator[tuple[str, str, str]]:
    for name, noise in HEALTHY.items():
        kinds = Counter(kind_of(noise, seed) for seed in range(series))
        yield "no slow level", name, f"levels {kinds['levels']}, line {kinds['line']} of {series}"
    for name, slowdown in SLOWDOWNS.items():
        yield "slow levels", name, f"found {sum(is_found(*slowdown, seed) for seed in range(series))} of {series}"
    for name, drift in DRIFTS.items():
        kinds = Counter(kind_of_drift(*drift, seed) for seed in range(series))
        yield "drift", name, f"line {kinds['line']}, levels {kinds['levels']} of {series}"
    for lengths in LENGTHS:
        for name in PAIRS:
            right, undecided, different = cover(HEALTHY[name], lengths, pairs)
            said = f"range right {right:.3f}, no range {undecided:.2f}, called different {different:.3f}"
            yield f"pairs of {lengths[0]} and {lengths[1]}", name, said


def _long_series() -> str:
    """Return the processor time of 10^6 step times that drift."""
    random = np.random.default_rng(1)
    wander = np.repeat(np.cumsum(0.03 * random.standard_normal(500)), 2000)
    times = _USUAL * np.exp(wander + 0.05 * random.standard_normal(len(wander)))
    begin = time.process_time()
    kind = pace_model(times).kind
    return f"{time.process_time() - begin:.2f} s of a processor, {kind}"


def main(series: int, pairs: int) -> None:
    """Print all tables."""
    for what, name, said in _rows(series, pairs):
        print(f"| {what:22} | {name:34} | {said} |", flush=True)
    print(f"| 10^6 step times        | a walk                             | {_long_series()} |")


if __name__ == "__main__":
    sizes = [int(one) for one in sys.argv[1:]]
    main(*(sizes + [200, 400][len(sizes) :]))
