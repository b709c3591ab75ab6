"""Lineage (accounting §4): which attempts made the progress that the job ends with, and up to which step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goodput_cli.events.schema import NO_STEP

I64 = NDArray[np.int64]
ALL_KEPT = np.iinfo(np.int64).max
NOTHING_KEPT = NO_STEP


@dataclass(frozen=True)
class Lineage:
    """One value an attempt.

    limit: steps below it are kept (`NOTHING_KEPT` outside the lineage, `ALL_KEPT` for the last attempt).
    reached: whether the attempt reached the step from which the lineage resumed.
    """

    limit: I64
    reached: NDArray[np.bool_]


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
    began_there, last_there = began[stepping], last[stepping]
    steps_began, steps_last = began_there.tolist(), last_there.tolist()
    limit[stepping[place]] = ALL_KEPT
    while place > 0:
        resumed = steps_began[place]
        if steps_began[place - 1] <= resumed <= steps_last[place - 1]:  # nearly always: spare the search
            maker: int | None = place - 1
        else:
            maker = _maker(stepping, began_there, last_there, place, resumed, stride)
        has_reached = maker is not None
        if maker is None:
            maker = _farthest(began_there[:place], last_there[:place], resumed)
        if maker is None:
            break
        limit[stepping[maker]] = resumed
        reached[stepping[maker]] = has_reached
        place = maker
    return Lineage(limit, reached)


def _maker(
    stepping: NDArray[np.intp], began: I64, last: I64, place: int, resumed: int, stride: Callable[[int], int]
) -> int | None:
    """The latest attempt before `place` that began at or below the resumed step and reached it."""
    block = 64
    stop = place
    while stop > 0:
        start = max(stop - block, 0)
        for candidate in np.flatnonzero(began[start:stop] <= resumed)[::-1].tolist():
            if last[start + candidate] >= resumed - stride(int(stepping[start + candidate])):
                return int(start + candidate)
        stop, block = start, block * 2
    return None


def _farthest(began: I64, last: I64, resumed: int) -> int | None:
    """Of the attempts that began at or below the resumed step, the one that came farthest; the latest of equals."""
    able = np.flatnonzero(began <= resumed)
    if len(able) == 0:
        return None
    farthest = last[able] == last[able].max()
    return int(able[farthest][-1])
