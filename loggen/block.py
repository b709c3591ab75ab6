"""Blocks of a few thousand lines for output, with the time each line was written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from loggen.chance import US

CHUNK = 32_768
"""Steps per block, which bounds memory."""


@dataclass(frozen=True)
class Block:
    """Lines of the log in the order of writing.

    times: int64[n], when each line was written: µs since 1970, UTC. lines: n JSON texts.
    """

    times: NDArray[np.int64]
    lines: list[str]

    def __len__(self) -> int:
        return len(self.lines)


@dataclass
class Page:
    """Collector of lines in any order; `block` sorts them by the time of writing."""

    _times: list[NDArray[np.int64]] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)

    def add(self, time: int, line: str) -> None:
        """Add one line, written at `time` (µs)."""
        self.extend(np.array([time], dtype=np.int64), [line])

    def extend(self, times: NDArray[np.int64], lines: list[str]) -> None:
        """Add lines written at `times` (µs)."""
        self._times.append(times)
        self._lines += lines

    def block(self) -> Block:
        """Return all lines; of two written at the same time, the one added first."""
        if not self._times:
            return Block(np.empty(0, dtype=np.int64), [])
        times = np.concatenate(self._times)
        order = np.argsort(times, kind="stable")
        return Block(times[order], [self._lines[row] for row in order.tolist()])


def chunks(first: int, last: int, size: int = CHUNK) -> Iterator[tuple[int, int]]:
    """Yield the steps `first`..`last` (both included) as (start, stop) ranges of at most `size`."""
    for start in range(first, last + 1, size):
        yield start, min(start + size, last + 1)


def epoch(times: NDArray[np.int64]) -> list[float]:
    """Return µs as epoch seconds. Exact to the µs: a double has 16 digits, and its shortest text is written."""
    seconds: list[float] = (times / US).tolist()
    return seconds
