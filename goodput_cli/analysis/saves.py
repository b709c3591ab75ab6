"""The saves of a job, and how far apart they are: the one answer of analyze, advise, compare and insights."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import distinct, rows_of, run_heads, search
from goodput_cli.arrays import I64, Mask, Rows
from goodput_cli.events.schema import NO_STEP, Kind


class BehindStarts(Struct, frozen=True):
    """Saves as their attempts see them, n items each."""

    ns: I64
    """Of the first save of an attempt: from where its training began to the save's end; else 0."""
    steps: I64
    """Of the same: the steps between; 0 where nothing says it."""
    last: Mask
    """Whether no step of its attempt was done behind it: it was made on the way out."""

    def take(self, chosen: Mask) -> BehindStarts:
        """Some of them."""
        return BehindStarts(self.ns[chosen], self.steps[chosen], self.last[chosen])


class SavesMade(Struct, frozen=True):
    """Saves, int64[n], in order of their beginnings.

    The reports of several hosts, and an Orbax save and a `checkpoint_saved` line, of one step in one attempt are one
    save. Of lines without a step those are one that overlap: each other one is a save of its own.
    """

    attempt: I64
    step: I64
    """Of lines without a step the last one recorded before the save began; `NO_STEP` where nothing says it."""
    begin: I64
    """When the first of its lines began (ns)."""
    end: I64
    """When the last of them ended (ns)."""
    behind: BehindStarts | None = None
    """How far they are from where their attempts began; None where nobody asked."""

    def __len__(self) -> int:
        return len(self.step)

    def take(self, chosen: Mask) -> SavesMade:
        """Some of them."""
        behind = None if self.behind is None else self.behind.take(chosen)
        return SavesMade(self.attempt[chosen], self.step[chosen], self.begin[chosen], self.end[chosen], behind)

    @property
    def apart_ns(self) -> float | None:
        """Median time (ns) from the end of a save to that of the next of the same attempt: what a disruption takes is
        not between two saves. Where the second is always one on the way out, which comes at any time: to the first save
        of an attempt from where its training began. None where nothing says it."""
        firsts = self._firsts
        apart = np.diff(self.end)[self._next] if firsts is None else firsts.ns
        return float(np.median(apart)) if len(apart) else None

    @property
    def apart_steps(self) -> int | None:
        """Lower median distance in steps of the same; where nothing says it, of all steps that were saved."""
        firsts = self._firsts
        apart = np.diff(self.step)[self._next & (self.step[:-1] != NO_STEP)] if firsts is None else firsts.steps
        apart = apart[apart > 0]
        if len(apart) == 0:
            apart = np.diff(self.steps)
        return int(np.sort(apart)[(len(apart) - 1) // 2]) if len(apart) else None

    @property
    def _next(self) -> Mask:
        """Which saves, but for the last, are followed by one of the same attempt."""
        followed: Mask = self.attempt[1:] == self.attempt[:-1]
        return followed

    @property
    def _firsts(self) -> BehindStarts | None:
        """The first saves of attempts, if these tell how far saves are apart; None: two of one attempt do."""
        behind = self.behind
        if behind is None or not self._next.any() or (self._next & ~behind.last[1:]).any():
            return None
        firsts = behind.take((behind.steps > 0) & ~behind.last)
        return firsts if len(firsts.steps) else None

    @property
    def steps(self) -> I64:
        """Distinct steps that were saved, rising."""
        return distinct(self.step[self.step != NO_STEP])


def saves_made(timeline: Timeline) -> SavesMade:
    """All saves of a job, also those that were never complete."""
    table = timeline.table
    rows = rows_of(table.kind, (Kind.SAVE, Kind.SAVED))
    return behind_starts(timeline, joined(
        timeline.attempts.of_row[rows].astype(np.int64), steps_of_saves(timeline, rows), table.step[rows],
        table.time[rows], table.end[rows],
    ))  # fmt: skip


def behind_starts(timeline: Timeline, saves: SavesMade) -> SavesMade:
    """Saves with how far they are from where their attempts began; as they are in checkpoint logs, in which a save
    itself is progress."""
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
    stored = 0 if timeline.attempts.step_ends else 1  # from a saved step to where training goes on
    _, of_first = np.unique(owner, return_index=True)  # saves are in order of time
    begin = np.minimum(search(spans.attempt, owner[of_first]), len(spans.attempt) - 1)
    of_first, begin = of_first[spans.attempt[begin] == owner[of_first]], begin[spans.attempt[begin] == owner[of_first]]
    ns, steps = np.zeros(len(saves), dtype=np.int64), np.zeros(len(saves), dtype=np.int64)
    ns[chosen[of_first]] = saves.end[chosen[of_first]] - spans.start[begin]
    steps[chosen[of_first]] = np.maximum(step[of_first] + stored - records.began[owner[of_first]], 0)
    return SavesMade(saves.attempt, saves.step, saves.begin, saves.end, BehindStarts(ns, steps, last))


def joined(attempt: I64, step: I64, said: I64, begin: I64, end: I64) -> SavesMade:
    """Lines of saves, int64[k] each, as saves. said: the steps that lines say; step: with those that they leave out."""
    order = np.lexsort((begin, said, attempt))
    attempt, step, said, begin, end = (column[order] for column in (attempt, step, said, begin, end))
    if len(order) == 0:
        return SavesMade(attempt, step, begin, end)
    heads = np.flatnonzero(run_heads(attempt) | run_heads(said) | _alone(attempt, said, begin, end))
    first, last = begin[heads], np.maximum.reduceat(end, heads)
    by_time = np.lexsort((heads, first))
    return SavesMade(attempt[heads][by_time], step[heads][by_time], first[by_time], last[by_time])


def _alone(attempt: I64, said: I64, begin: I64, end: I64) -> Mask:
    """Which lines name no step and begin behind all lines before them of their attempt that name none either."""
    alone = np.zeros(len(said), dtype=bool)
    nameless = np.flatnonzero(said == NO_STEP)
    for owner in distinct(attempt[nameless]).tolist():
        own = nameless[attempt[nameless] == owner]
        alone[own[1:]] = begin[own[1:]] > np.maximum.accumulate(end[own[:-1]])
    return alone


def steps_of_saves(timeline: Timeline, rows: Rows) -> I64:
    """The step of each line of a save: what it says, else the last one that its attempt recorded before it began."""
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
