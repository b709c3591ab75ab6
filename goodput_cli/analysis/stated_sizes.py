"""Sizes that a log states once (accelerators, samples per step): the steps and the time to which each value applies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.arrays import F64, I64
from goodput_cli.events.schema import NO_STEP


def first_valid_ns(timeline: Timeline, time: I64, step: I64) -> I64:
    """Return since when (ns) each stated value applies, for steps that end then or later and for time (accounting §8).

    A value that names a step applies to that step and later ones. A value without a step is stated by a process: it
    applies to no step that ended before, and belongs to the attempt whose steps follow. The first value of an attempt
    applies from the begin of that attempt. time, step: of the values; `NO_STEP` for none.
    """
    begin = timeline.attempts.begin
    if not len(begin):
        return time
    attempt = np.maximum(np.searchsorted(begin, time, side="right") - 1, 0)
    names_no_step = step == NO_STEP
    follows = names_no_step & (time >= _last_records(timeline)[attempt]) & (attempt + 1 < len(begin))
    attempt = attempt + follows
    since = np.maximum(time + names_no_step, begin[attempt])
    order = np.argsort(since, kind="stable")
    of_attempt, first = np.unique(attempt[order], return_index=True)
    since[order[first]] = begin[of_attempt]
    return np.asarray(since, dtype=np.int64)


def _last_records(timeline: Timeline) -> I64:
    """Return the time (ns) of the last step record of each attempt; beyond all times for one without any."""
    last = np.full(len(timeline.attempts.begin), np.iinfo(np.int64).max)
    records = timeline.records
    if records is not None and len(records.time):
        closes = np.append(records.owner[1:] != records.owner[:-1], True)
        last[records.owner[closes]] = records.time[closes]
    return last


class StatedValues(NamedTuple):
    """Values that apply until the next one, in order."""

    since: I64
    """Time (ns) from which each applies."""
    value: F64

    @staticmethod
    def of(timeline: Timeline, time: I64, step: I64, value: F64) -> StatedValues:
        """Return stated values in the order in which they apply. time: ns. step: `NO_STEP` for none."""
        since = first_valid_ns(timeline, time, step)
        order = np.argsort(since, kind="stable")
        return StatedValues(since[order], value[order])

    def at(self, end: I64) -> F64:
        """Return the value that applies to steps that end then (ns); before the first, the first."""
        latest = np.searchsorted(self.since, end, side="right") - 1
        return np.asarray(self.value[np.maximum(latest, 0)])
