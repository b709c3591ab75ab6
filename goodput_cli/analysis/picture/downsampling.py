"""Downsample lines and instants to the width of a picture, without losing a visible extreme (M4).

A picture is some hundred columns of dots wide. Of all points of a line that fall into one column, the first, the last,
the lowest and the highest draw the same column of dots as all of them (M4: Jugel et al., "M4: A Visualization-Oriented
Time Series Data Aggregation", VLDB 2014). So a single slow step among a million is still seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.columns import distinct
from goodput_cli.arrays import I64, Mask, Places


@dataclass(frozen=True)
class Buckets:
    """[start, end) (ns) in at most `count` parts of the same width (ns); the last may be shorter."""

    start: int
    """ns since 1970 UTC."""
    end: int
    """ns since 1970 UTC."""
    count: int
    """How many parts at most."""

    @property
    def width(self) -> int:
        """Length of a part, in ns."""
        return max(-(-(self.end - self.start) // self.count), 1)

    @property
    def edges(self) -> I64:
        """Where the parts begin, and the end."""
        return np.append(np.arange(self.start, self.end, self.width, dtype=np.int64), self.end)

    def of(self, time: I64) -> I64:
        """The part in which each instant lies; the end lies in the last one."""
        return (np.minimum(time, self.end - 1) - self.start) // self.width


def extremes(heads: Mask, values: NDArray[np.float64]) -> Places:
    """Positions of the first, last, lowest and highest value of each run, sorted, each once.

    heads: where a run begins; the first place is one.
    """
    if len(values) == 0:
        return np.zeros(0, dtype=np.intp)
    first = np.flatnonzero(heads)
    last = np.append(first[1:], len(values)) - 1
    run = np.cumsum(heads) - 1
    lowest = _first_equal(values, np.minimum.reduceat(values, first), run)
    highest = _first_equal(values, np.maximum.reduceat(values, first), run)
    kept: Places = distinct(np.concatenate((first, last, lowest, highest)))
    return kept


def _first_equal(values: NDArray[np.float64], target: NDArray[np.float64], run: NDArray[np.intp]) -> Places:
    """The first place of each run at which its wanted value stands."""
    matches = np.flatnonzero(values == target[run])
    fresh = np.ones(len(matches), dtype=bool)
    fresh[1:] = run[matches[1:]] != run[matches[:-1]]
    return matches[fresh]


def first_of_each(buckets: I64) -> tuple[Places, I64]:
    """The first place of each run of equal buckets, and how many places the run has."""
    heads = np.ones(len(buckets), dtype=bool)
    heads[1:] = buckets[1:] != buckets[:-1]
    first = np.flatnonzero(heads)
    return first, np.diff(np.append(first, len(buckets))).astype(np.int64)
