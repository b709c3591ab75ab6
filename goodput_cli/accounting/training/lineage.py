"""Lineage (accounting §4): which attempts made the progress that the job ends with, and up to which step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import I64
from goodput_cli.events.schema import NO_STEP

ALL_KEPT = np.iinfo(np.int64).max
NOTHING_KEPT = NO_STEP


@dataclass(frozen=True)
class Lineage:
    """What the job's final progress keeps of each attempt: columns of one value an attempt."""

    limit: I64
    """Steps below it are kept (`NOTHING_KEPT` outside the lineage, `ALL_KEPT` for the last attempt)."""
    reached: NDArray[np.bool_]
    """Whether the attempt reached the step from which the lineage resumed."""


def trace(began: I64, last: I64, stride: Callable[[int], int]) -> Lineage:
    """Go back from the last attempt that recorded a step.

    began, last: the step at which each attempt began and the last one it recorded, `NO_STEP` without any.
    stride: an attempt's usual distance between recorded steps (0 in checkpoint logs): "reached" allows for it.
    """
    limit = np.full(len(began), NOTHING_KEPT, dtype=np.int64)
    reached = np.zeros(len(began), dtype=bool)
    stepping = np.flatnonzero(began != NO_STEP)
    if len(stepping) == 0:
        return Lineage(limit, reached)
    place = len(stepping) - 1
    search: _Search | None = None
    steps_began, steps_last = began[stepping].tolist(), last[stepping].tolist()
    limit[stepping[place]] = ALL_KEPT
    while place > 0:
        resumed = steps_began[place]
        if steps_began[place - 1] <= resumed <= steps_last[place - 1]:  # nearly always: spare the search
            maker: int | None = place - 1
        else:
            search = search or _Search(began[stepping], last[stepping], [stride(a) for a in stepping.tolist()])
            maker = search.maker(place, resumed)
        has_reached = maker is not None
        if maker is None and search is not None:
            maker = search.farthest(place, resumed)
        if maker is None:
            break
        limit[stepping[maker]] = resumed
        reached[stepping[maker]] = has_reached
        place = maker
    return Lineage(limit, reached)


class _Search:
    """Look-ups among the attempts before a place. What a search passes over it never meets again, for the next one
    begins where this one ended; running maxima say at once when there is nothing to find."""

    def __init__(self, began: I64, last: I64, stride: list[int]) -> None:
        self._began, self._last = began, last
        self._reach = last + np.array(stride, dtype=np.int64)
        self._highest_reach = np.maximum.accumulate(self._reach)
        self._highest_began = np.maximum.accumulate(began)
        farthest = last == np.maximum.accumulate(last)
        self._farthest = np.maximum.accumulate(np.where(farthest, np.arange(len(last)), 0))

    def maker(self, place: int, resumed: int) -> int | None:
        """The latest attempt before `place` that began at or below the resumed step and reached it."""
        if self._highest_reach[place - 1] < resumed:
            return None
        block, stop = 64, place
        while stop > 0:
            start = max(stop - block, 0)
            able = (self._began[start:stop] <= resumed) & (self._reach[start:stop] >= resumed)
            matches = np.flatnonzero(able)
            if len(matches):
                return start + int(matches[-1])
            stop, block = start, block * 2
        return None

    def farthest(self, place: int, resumed: int) -> int | None:
        """Of those that began at or below the resumed step, the one that came farthest; the latest of equals."""
        if self._highest_began[place - 1] <= resumed:
            return int(self._farthest[place - 1])
        able = np.flatnonzero(self._began[:place] <= resumed)
        if len(able) == 0:
            return None
        last = self._last[able]
        return int(able[last == last.max()][-1])
