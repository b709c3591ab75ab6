"""How often slow regimes are found, and how often one is where none is: `python -m tests.simulation.power [SERIES]`.

Series are of 1500 steps. A regime counts as found where 80 % of it are covered.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from goodput_cli.analysis.steps.times import level_changes, winsorised_mean
from goodput_cli.arrays import F64

STEPS = 1500
Noise = Callable[[np.random.Generator], F64]


def white(sigma: float) -> Noise:
    """Independent noise of the logarithms."""
    return lambda random: np.asarray(sigma * random.standard_normal(STEPS))


def correlated(sigma: float, by: float) -> Noise:
    """Noise of which neighbours are alike (an autoregression)."""

    def made(random: np.random.Generator) -> F64:
        new = random.standard_normal(STEPS) * sigma * np.sqrt(1 - by**2)
        for place in range(1, STEPS):
            new[place] += by * new[place - 1]
        return np.asarray(new)

    return made


def with_outliers(sigma: float, share: float) -> Noise:
    """Independent noise, and some steps that take 2 to 20 times as long."""

    def made(random: np.random.Generator) -> F64:
        odd = random.random(STEPS) < share
        return np.where(odd, np.log(random.uniform(2, 20, STEPS)), sigma * random.standard_normal(STEPS))

    return made


def alternating(sigma: float, every: int, longer: float) -> Noise:
    """Each k-th step is longer."""

    def made(random: np.random.Generator) -> F64:
        times = sigma * random.standard_normal(STEPS)
        times[::every] += np.log(longer)
        return np.asarray(times)

    return made


def heavy_tailed(sigma: float) -> Noise:
    """Student's t with 3 degrees of freedom."""
    return lambda random: np.asarray(sigma * random.standard_t(3, STEPS))


def mixed(sigma: float, share: float, longer: float) -> Noise:
    """Two populations, by chance."""

    def made(random: np.random.Generator) -> F64:
        return np.asarray(sigma * random.standard_normal(STEPS) + np.log(longer) * (random.random(STEPS) < share))

    return made


HEALTHY: dict[str, Noise] = {
    "5 %": white(0.05),
    "15 %": white(0.15),
    "0.5 %": white(0.005),
    "5 %, correlated 0.5": correlated(0.05, 0.5),
    "5 %, correlated 0.9": correlated(0.05, 0.9),
    "15 %, correlated 0.5": correlated(0.15, 0.5),
    "5 %, 6 % of steps 2 to 20 x": with_outliers(0.05, 0.06),
    "heavy tails": heavy_tailed(0.05),
    "every other step 2 x": alternating(0.03, 2, 2.0),
    "every 20th step 2 x": alternating(0.03, 20, 2.0),
    "half of the steps 2 x, by chance": mixed(0.03, 0.5, 2.0),
    "a tenth of the steps 2 x, by chance": mixed(0.03, 0.1, 2.0),
}
"""Series without any slow regime."""
SLOWDOWNS: dict[str, tuple[Noise, float, int]] = {
    "10 % over 600, 5 %": (white(0.05), 1.10, 600),
    "34 % over 100, 15 %": (white(0.15), 1.34, 100),
    "7 % over 600, 5 %": (white(0.05), 1.07, 600),
    "10 % over 600, 5 %, correlated 0.5": (correlated(0.05, 0.5), 1.10, 600),
    "34 % over 100, 15 %, correlated 0.5": (correlated(0.15, 0.5), 1.34, 100),
    "10 % over 600, 5 %, correlated 0.9": (correlated(0.05, 0.9), 1.10, 600),
    "10 % over 600, every other step 2 x": (alternating(0.03, 2, 2.0), 1.10, 600),
    "10 % over 600, half 2 x by chance": (mixed(0.03, 0.5, 2.0), 1.10, 600),
}
"""Noise, factor, and over how many steps."""


def is_alarm(noise: Noise, seed: int) -> bool:
    """Whether a regime is found in a series without any."""
    return len(level_changes(8.0 * np.exp(noise(np.random.default_rng(seed))))) > 0


def is_found(noise: Noise, factor: float, length: int, seed: int) -> bool:
    """Whether a slow stretch in the middle of a series is found."""
    random = np.random.default_rng(seed)
    times = 8.0 * np.exp(noise(random))
    first = int(random.integers(200, STEPS - length - 200))
    times[first : first + length] *= factor
    bounds = np.concatenate(([0], level_changes(times), [STEPS])).astype(int)
    levels = np.array([winsorised_mean(part) for part in np.split(times, bounds[1:-1])])
    slow = np.repeat(levels > 1.04 * levels.min(), np.diff(bounds))
    return bool(slow[first : first + length].mean() >= 0.8 and slow.mean() < 1)


def main(series: int) -> None:
    """Both tables, for people."""
    for name, noise in HEALTHY.items():
        print(f"false alarms  {name:40} {sum(is_alarm(noise, seed) for seed in range(series)):4} of {series}")
    for name, slowdown in SLOWDOWNS.items():
        print(f"found         {name:40} {sum(is_found(*slowdown, seed) for seed in range(series)):4} of {series}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 24)
