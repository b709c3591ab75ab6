"""Random numbers that are the same on every machine and with every version of NumPy.

NumPy guarantees that the raw output of a bit generator never changes, but not for distributions. So only raw numbers
are drawn, and only sums and products (exact by IEEE 754) are made of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

US = 1_000_000
"""Microseconds per second: the generator's times are integer µs since 1970, UTC."""


class Chance:
    """A stream of random numbers, fixed by its seeds."""

    def __init__(self, *seeds: int) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence(seeds))

    def uniform(self, count: int) -> NDArray[np.float64]:
        """Return `count` numbers in [0, 1)."""
        raw = np.asarray(self._bits.random_raw(count), dtype=np.uint64)
        numbers: NDArray[np.float64] = (raw >> np.uint64(11)) * np.float64(2.0**-53)
        return numbers

    def one(self, low: float, high: float) -> float:
        """Return one number in [low, high)."""
        return low + (high - low) * float(self.uniform(1)[0])

    def below(self, stop: int) -> int:
        """Return one integer in [0, stop)."""
        return int(self.uniform(1)[0] * stop)

    def bell(self, count: int) -> NDArray[np.float64]:
        """Return `count` numbers around 0 with standard deviation 1, never beyond 3."""
        draws = self.uniform(3 * count).reshape(3, count)
        bell: NDArray[np.float64] = 2.0 * (draws[0] + draws[1] + draws[2]) - 3.0
        return bell

    def micros(self, seconds: float, spread: float = 0.1) -> int:
        """Return a duration in µs, within `spread` (a share) of `seconds`."""
        return round(seconds * self.one(1.0 - spread, 1.0 + spread) * US)


def to_micros(seconds: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return seconds as whole µs."""
    return np.rint(seconds * US).astype(np.int64)
