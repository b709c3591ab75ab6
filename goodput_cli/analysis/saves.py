"""Saves of a job, and their distances: shared by analyze, advise, compare and insights."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import distinct, rows_of, run_heads, search
from goodput_cli.arrays import I64, Mask, Rows
from goodput_cli.events.schema import NO_STEP, Kind


class DistanceFromStart(Struct, frozen=True):
    """Distances of saves from the start of their attempts, n items each."""

    ns: I64
    """For the first save of an attempt, the time from the begin of its training to the save's end (ns); otherwise 0."""
    steps: I64
    """For the first save of an attempt, the steps between; 0 if unknown."""
    last: Mask
    """True if its attempt finished no step after it: it was made at exit."""

    def take(self, chosen: Mask) -> DistanceFromStart:
        """Return the chosen saves."""
        return DistanceFromStart(self.ns[chosen], self.steps[chosen], self.last[chosen])


class SavesMade(Struct, frozen=True):
    """Saves, int64[n], in order of their beginnings.

    Reports of one step in one attempt are one save: those of several hosts, or of an Orbax save and a
    `checkpoint_saved` line. Lines without a step are one save if they overlap; every other one is a separate save.
    """

    attempt: I64
    step: I64
    """Step; for lines without a step the last one recorded before the save began; `NO_STEP` if unknown."""
    begin: I64
    """Begin of the first of its lines (ns)."""
    end: I64
    """End of the last of its lines (ns)."""
    behind: DistanceFromStart | None = None
    """Distances from the start of their attempts; None if not computed."""

    def __len__(self) -> int:
        return len(self.step)

    def take(self, chosen: Mask) -> SavesMade:
        """Return the chosen saves."""
        behind = None if self.behind is None else self.behind.take(chosen)
        return SavesMade(self.attempt[chosen], self.step[chosen], self.begin[chosen], self.end[chosen], behind)

    @property
    def apart_ns(self) -> float | None:
        """Return the median time (ns) from the end of a save to that of the next one in the same attempt.

        The time of a disruption is not between two saves. If the second save is always one at exit, which comes at any
        time, use the time from the begin of an attempt's training to its first save. None if unknown.
        """
        firsts = self._firsts
        apart = np.diff(self.end)[self._next] if firsts is None else firsts.ns
        return float(np.median(apart)) if len(apart) else None

    @property
    def apart_steps(self) -> int | None:
        """Return the lower median distance of the same saves in steps; if unknown, that of all saved steps."""
        firsts = self._firsts
        apart = np.diff(self.step)[self._next & (self.step[:-1] != NO_STEP)] if firsts is None else firsts.steps
        apart = apart[apart > 0]
        if len(apart) == 0:
            apart = np.diff(self.steps)
        return int(np.sort(apart)[(len(apart) - 1) // 2]) if len(apart) else None

    @property
    def _next(self) -> Mask:
        """Return, for each save but the last, True if one of the same attempt follows."""
        followed: Mask = self.attempt[1:] == self.attempt[:-1]
        return followed

    @property
    def _firsts(self) -> DistanceFromStart | None:
        """Return the first saves of attempts, if these determine the interval; None if two saves of one attempt do."""
        behind = self.behind
        if behind is None or not self._next.any() or (self._next & ~behind.last[1:]).any():
            return None
        firsts = behind.take((behind.steps > 0) & ~behind.last)
        return firsts if len(firsts.steps) else None

    @property
    def steps(self) -> I64:
        """Return the distinct saved steps, ascending."""
        return distinct(self.step[self.step != NO_STEP])


def saves_made(timeline: Timeline) -> SavesMade:
    """Return all saves of a job, including incomplete ones."""
    table = timeline.table
    rows = rows_of(table.kind, (Kind.SAVE, Kind.SAVED))
    return add_distances_from_start(timeline, joined(
        timeline.attempts.of_row[rows].astype(np.int64), steps_of_saves(timeline, rows), table.step[rows],
        table.time[rows], table.end[rows],
    ))  # fmt: skip


def add_distances_from_start(timeline: Timeline, saves: SavesMade) -> SavesMade:
    """Return saves with their distances from the start of their attempts. Saves of checkpoint logs, in which a save
    itself is progress, stay unchanged."""
    records, spans = timeline.records, timeline.training.spans
    chosen = np.flatnonzero((saves.attempt >= 0) & (saves.step != NO_STEP))
    if records is None or len(chosen) == 0 or len(spans.attempt) == 0:
        return saves
    owner, step = saves.attempt[chosen], saves.step[chosen]
    bounds = records.bounds
    highest = np.full(len(bounds) - 1, np.iinfo(np.int64).max)
    some = np.flatnonzero(bounds[1:] > bounds[:-1])
    highest[some] = np.maximum.reduceat(records.number, bounds[:-1][some]) if len(some) else 0
    last = np.zeros(len(saves), dtype=bool)
    last[chosen] = step >= highest[owner]
    stored = 0 if timeline.attempts.step_ends else 1  # Training continues after the saved step.
    _, of_first = np.unique(owner, return_index=True)  # Saves are in time order.
    begin = np.minimum(search(spans.attempt, owner[of_first]), len(spans.attempt) - 1)
    of_first, begin = of_first[spans.attempt[begin] == owner[of_first]], begin[spans.attempt[begin] == owner[of_first]]
    ns, steps = np.zeros(len(saves), dtype=np.int64), np.zeros(len(saves), dtype=np.int64)
    ns[chosen[of_first]] = saves.end[chosen[of_first]] - spans.start[begin]
    steps[chosen[of_first]] = np.maximum(step[of_first] + stored - records.began[owner[of_first]], 0)
    return SavesMade(saves.attempt, saves.step, saves.begin, saves.end, DistanceFromStart(ns, steps, last))


def joined(attempt: I64, step: I64, said: I64, begin: I64, end: I64) -> SavesMade:
    """Return the saves of some save lines, int64[k] each. said: the logged steps; step: with those that lines omit."""
    order = np.lexsort((begin, said, attempt))
    attempt, step, said, begin, end = (column[order] for column in (attempt, step, said, begin, end))
    if len(order) == 0:
        return SavesMade(attempt, step, begin, end)
    heads = np.flatnonzero(run_heads(attempt) | run_heads(said) | _is_unnumbered(attempt, said, begin, end))
    first, last = begin[heads], np.maximum.reduceat(end, heads)
    by_time = np.lexsort((heads, first))
    return SavesMade(attempt[heads][by_time], step[heads][by_time], first[by_time], last[by_time])


def _is_unnumbered(attempt: I64, said: I64, begin: I64, end: I64) -> Mask:
    """Return, for each line, True if it names no step and begins after all earlier such lines of its attempt."""
    alone = np.zeros(len(said), dtype=bool)
    nameless = np.flatnonzero(said == NO_STEP)
    for owner in distinct(attempt[nameless]).tolist():
        own = nameless[attempt[nameless] == owner]
        alone[own[1:]] = begin[own[1:]] > np.maximum.accumulate(end[own[:-1]])
    return alone


def steps_of_saves(timeline: Timeline, rows: Rows) -> I64:
    """Return the step of each save line: the logged one, otherwise the last one that its attempt recorded before it."""
    table, records = timeline.table, timeline.records
    step = table.step[rows]
    nameless = np.flatnonzero((step == NO_STEP) & (timeline.attempts.of_row[rows] >= 0))
    if len(nameless) == 0 or records is None:
        return step
    step = step.copy()
    owner = timeline.attempts.of_row[rows[nameless]]
    for attempt in distinct(owner).tolist():
        low, high = records.bounds[attempt], records.bounds[attempt + 1]
        own = nameless[owner == attempt]
        before = np.searchsorted(records.time[low:high], table.time[rows[own]], "right") - 1
        known = before >= 0
        step[own[known]] = records.number[low:high][before[known]]
    return step
