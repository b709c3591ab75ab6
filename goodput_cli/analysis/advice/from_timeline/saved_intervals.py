"""Saves as intervals of a life, and what they block: each instant is counted once, for the save that began first."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import I64, Mask


@dataclass(frozen=True)
class SavedLines:
    """What the log says of saves, one row a line or pair of lines; times in counted ns.

    attempt, step: whose, and of which step. start, end: while it blocked. usable: when it could be used. completed:
    whether its end was seen. measured: whether the lines show how long it blocked.
    """

    attempt: I64
    step: I64
    start: I64
    end: I64
    usable: I64
    completed: Mask
    measured: Mask

    def __len__(self) -> int:
        return len(self.attempt)

    def take(self, chosen: Mask | NDArray[np.intp]) -> SavedLines:
        """The chosen rows."""
        return SavedLines(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def within(self, first: I64, stop: I64, begin: I64, end: I64, behind: int) -> SavedLines:
        """Those a life made and completed. By attempt: first and stop position, begin and end (ns); behind: from a step
        to the position at which it is saved. A save that one host did not complete is none."""
        made, owner = self.step + behind, self.attempt
        inside = (made > first[owner]) & (made <= stop[owner]) & (self.start >= begin[owner])
        whole = self.completed & (self.end <= end[owner])
        order = np.lexsort((self.step, owner))
        heads = np.append(True, (np.diff(owner[order]) != 0) | (np.diff(self.step[order]) != 0))[: len(order)]
        if len(order) == 0:
            return self
        all_whole = np.logical_and.reduceat(whole[order], np.flatnonzero(heads))
        kept = np.empty(len(order), dtype=bool)
        kept[order] = all_whole[np.cumsum(heads) - 1]
        chosen = np.flatnonzero(inside & kept)
        return self.take(chosen[np.lexsort((self.end[chosen], self.start[chosen]))])


@dataclass(frozen=True)
class Saves:
    """Saves by attempt and step, sorted by both. cost: ns, counted once. usable: ns. measured: as in the lines."""

    attempt: I64
    step: I64
    start: I64
    cost: I64
    usable: I64
    measured: Mask


def saves_of(lines: SavedLines) -> tuple[Saves, I64]:
    """One row a save, and of each line (in order of start) the instant from which on it blocks for nobody else."""
    reach = np.maximum.accumulate(lines.end) if len(lines) else lines.end
    begins = np.minimum(np.maximum(lines.start, np.append(lines.start[:1], reach[:-1])[: len(lines)]), lines.end)
    order = np.lexsort((lines.start, lines.step, lines.attempt))
    owner, step = lines.attempt[order], lines.step[order]
    heads = np.flatnonzero(np.append(True, (np.diff(owner) != 0) | (np.diff(step) != 0))[: len(order)])
    if len(heads) == 0:
        none = np.zeros(0, dtype=np.int64)
        return Saves(none, none, none, none, none, none.astype(bool)), begins
    return (
        Saves(
            owner[heads],
            step[heads],
            lines.start[order][heads],
            np.add.reduceat((lines.end - begins)[order], heads),
            np.maximum.reduceat(lines.usable[order], heads),
            np.logical_or.reduceat(lines.measured[order], heads),
        ),
        begins,
    )


class Covered:
    """How much of the time up to an instant is covered by intervals, which may overlap."""

    def __init__(self, start: I64, end: I64) -> None:
        some = end > start
        start, end = start[some], end[some]
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
        reach = np.maximum.accumulate(end) if len(end) else end
        self._start = np.minimum(np.maximum(start, np.append(start[:1], reach[:-1])[: len(start)]), end)
        self._end = end
        self._total = np.append(0, np.cumsum(self._end - self._start))

    def upto(self, time: I64) -> I64:
        """ns covered before each instant."""
        place = np.searchsorted(self._start, time, side="right") - 1
        known = np.maximum(place, 0)
        if len(self._start) == 0:
            return np.zeros(len(time), dtype=np.int64)
        inside = np.clip(time, self._start[known], self._end[known]) - self._start[known]
        return np.where(place >= 0, self._total[known] + inside, 0)

    def within(self, start: I64, end: I64) -> I64:
        """ns covered in each interval."""
        return self.upto(end) - self.upto(start)
