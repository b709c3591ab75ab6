"""Whose fault a lost step is: every wasted stretch charged to the passage between attempts that took it back.

A passage is named by the attempt before it. Attempt 1 runs to 100, attempt 2 from 50 to 60, attempt 3 from 20: the end
of attempt 1 lost its steps 50..100, that of attempt 2 lost 50..60 of its own and 20..49 of attempt 1 (accounting §10).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goodput_cli.events.schema import NO_STEP
from goodput_cli.timeline.build import Timeline
from goodput_cli.timeline.categories import Category
from goodput_cli.timeline.columns import blocks
from goodput_cli.timeline.training import Judged

I64 = NDArray[np.int64]
_TOP = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Losses:
    """One value an attempt, int64: what its end lost, whichever attempt had trained it.

    steps: wasted training steps. ns: wasted time. Over all attempts they are at most what the ledger calls wasted: what
    a clean end lost, and what the last attempt lost, is nobody's disruption.
    """

    steps: I64
    ns: I64


@dataclass(frozen=True)
class _Range:
    """Steps low <= s < high of an attempt, lost by the passage behind attempt `passage`."""

    passage: int
    attempt: int
    low: int
    high: int


def find_losses(timeline: Timeline) -> Losses:
    """Steps and time lost by the end of each attempt, with hindsight: what was kept in the end is not lost."""
    began, last = first_and_last_steps(timeline)
    ranges = list(_ranges(began, last, timeline.lineage.limit))
    count = len(timeline.attempts)
    steps, ns = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    if not ranges:
        return Losses(steps, ns)
    passage = np.array([lost.passage for lost in ranges])
    trained = _Trained(timeline.judged, np.searchsorted(timeline.judged.stretches.attempt, np.arange(count + 1)))
    np.add.at(steps, passage, _steps_lost(trained, ranges))
    ends = np.append(timeline.attempts.begin[1:], timeline.end)
    spans = [_span(timeline, trained, lost, int(ends[lost.attempt])) for lost in ranges]
    start, end = np.array(spans, dtype=np.int64).T
    wasted = timeline.ledger.between(start, np.maximum(start, end)).get((Category.WASTED, -1))
    if wasted is not None:
        np.add.at(ns, passage, wasted)
    return Losses(steps, ns)


def first_and_last_steps(timeline: Timeline) -> tuple[I64, I64]:
    """The step at which each attempt began and the last it recorded; `NO_STEP` for those that show none."""
    if timeline.records is not None:
        return timeline.records.began, timeline.records.last
    assert timeline.progress is not None
    return timeline.progress.began, timeline.progress.last


def _ranges(began: I64, last: I64, limit: I64) -> Iterator[_Range]:
    """For each attempt the steps that later attempts took back, by the attempt that did: the first later one that
    began at or below a step. Steps of a branch that was given up without being redone are charged to its own end."""
    stepping = np.flatnonzero(began != NO_STEP).tolist()
    starts = [int(began[attempt]) for attempt in stepping]
    lower = _next_lower(starts)
    for place, attempt in enumerate(stepping):
        floor = max(int(limit[attempt]), starts[place])
        high = _TOP
        taker: int | None = place + 1 if place + 1 < len(stepping) else None
        while taker is not None and starts[taker] > int(last[attempt]):
            taker = lower[taker]
        while taker is not None and high > floor:
            yield _Range(stepping[taker - 1], attempt, max(starts[taker], floor), high)
            high, taker = starts[taker], lower[taker]
        if high > floor:
            yield _Range(attempt, attempt, floor, high)


def _next_lower(values: list[int]) -> list[int | None]:
    """Position of the next value that is lower, for each value; None where none follows."""
    following: list[int | None] = [None] * len(values)
    waiting: list[int] = []
    for place, value in enumerate(values):
        while waiting and values[waiting[-1]] > value:
            following[waiting.pop()] = place
        waiting.append(place)
    return following


@dataclass(frozen=True)
class _Trained:
    """Stretches, and where in them those of each attempt begin: attempt a has bounds[a] .. bounds[a + 1] - 1."""

    judged: Judged
    bounds: NDArray[np.intp]

    def beyond(self, attempt: int, step: int) -> tuple[int, bool]:
        """Position of the attempt's first stretch that goes beyond a step, and whether there is one."""
        start, stop = int(self.bounds[attempt]), int(self.bounds[attempt + 1])
        place = start + int(np.searchsorted(self.judged.stretches.stop[start:stop], step, side="right"))
        return place, place < stop

    def lost(self, start: int, stop: int) -> tuple[I64, I64]:
        """Of the stretches at start .. stop - 1 the first step that is lost, and how many are."""
        stretches, judged = self.judged.stretches, self.judged
        first = stretches.first[start:stop] + judged.kept[start:stop].astype(np.int64)
        return first, np.where(judged.credited[start:stop], 0, stretches.stop[start:stop] - first)

    def when(self, attempt: int, step: int) -> int:
        """When an attempt came to a step (ns); between the records of a stretch, in proportion."""
        stretches = self.judged.stretches
        place, inside = self.beyond(attempt, step)
        if not inside:
            return int(stretches.end[place - 1]) if place > self.bounds[attempt] else 0
        start, first = int(stretches.start[place]), int(stretches.first[place])
        length, steps = int(stretches.end[place]) - start, int(stretches.stop[place]) - first
        return start + length * max(step - first, 0) // max(steps, 1)


def _steps_lost(trained: _Trained, ranges: list[_Range]) -> I64:
    """How many steps of each range were trained for nothing."""
    judged = trained.judged
    before = np.zeros(len(judged.kept) + 1, dtype=np.int64)
    for start, stop in blocks(len(judged.kept)):
        lost = trained.lost(start, stop)[1]
        before[start + 1 : stop + 1] = before[start] + np.cumsum(lost)

    def upto(attempt: int, step: int) -> int:
        place, inside = trained.beyond(attempt, step)
        if not inside:
            return int(before[place])
        first, lost = (int(value[0]) for value in trained.lost(place, place + 1))
        return int(before[place]) + min(max(step - first, 0), lost)

    return np.array([upto(one.attempt, one.high) - upto(one.attempt, one.low) for one in ranges], dtype=np.int64)


def _span(timeline: Timeline, trained: _Trained, lost: _Range, attempt_end: int) -> tuple[int, int]:
    """The time (ns) in which an attempt trained a range of steps. The spans of its ranges tile its life, so that what
    it lost beyond its last record is charged as well: only cuts between two ranges are looked up."""
    began, limit = int(first_and_last_steps(timeline)[0][lost.attempt]), int(timeline.lineage.limit[lost.attempt])
    lowest = lost.low <= max(began, limit)
    start = int(timeline.attempts.begin[lost.attempt]) if lowest else trained.when(lost.attempt, lost.low)
    end = attempt_end if lost.high == _TOP else trained.when(lost.attempt, lost.high)
    return start, end
