"""Lines on their way out: a few thousand at a time, with the moment each was written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from loggen.chance import US

CHUNK = 32_768
"""How many steps are written at a time: bounds memory."""


@dataclass(frozen=True)
class Block:
    """Lines of the log in the order of writing.

    times: int64[n], when each line was written: µs since 1970, UTC.
    lines: n JSON texts.
    """

    times: NDArray[np.int64]
    lines: list[str]

    def __len__(self) -> int:
        return len(self.lines)


@dataclass
class Page:
    """Collects lines in any order; `block` sorts them by the moment of writing."""

    _times: list[NDArray[np.int64]] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)

    def add(self, time: int, line: str) -> None:
        """One line, written at `time` (µs)."""
        self.extend(np.array([time], dtype=np.int64), [line])

    def extend(self, times: NDArray[np.int64], lines: list[str]) -> None:
        """Lines written at `times` (µs)."""
        self._times.append(times)
        self._lines += lines

    def block(self) -> Block:
        """All lines; of two written at the same moment, the one added first."""
        if not self._times:
            return Block(np.empty(0, dtype=np.int64), [])
        times = np.concatenate(self._times)
        order = np.argsort(times, kind="stable")
        return Block(times[order], [self._lines[row] for row in order.tolist()])


def chunks(first: int, last: int, size: int = CHUNK) -> Iterator[tuple[int, int]]:
    """The steps `first`..`last` (both in) as (start, stop) ranges of at most `size`."""
    for start in range(first, last + 1, size):
        yield start, min(start + size, last + 1)


def epoch(times: NDArray[np.int64]) -> list[float]:
    """µs as epoch seconds. Exact to the µs: a double holds 16 digits, and its shortest text is written."""
    seconds: list[float] = (times / US).tolist()
    return seconds
