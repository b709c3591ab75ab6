"""Step times (accounting §8): one by one with their lines, or nothing but the seconds of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.training.kept import excluded_within
from goodput_cli.arrays import F64, I64, Rows, blocks


@dataclass(frozen=True)
class TimedSteps:
    """Step times in time order: from one record to the next of the same attempt, never across attempts."""

    seconds: F64
    """Seconds per step, without what a clock that was set forward adds."""
    number: I64
    """Step of the record that begins it."""
    count: I64
    """Steps up to the next record; above 1 where not every step is logged."""
    attempt: Rows
    """From 0."""
    time: I64
    end: I64
    """ns."""
    row: Rows
    """Row of the record that begins it."""

    def __len__(self) -> int:
        return len(self.seconds)


def timed_steps(timeline: Timeline, start: int, end: int) -> TimedSteps:
    """The step times of consecutive records of one attempt that lie in [start, end] (ns). Checkpoint logs have none."""
    records = timeline.records
    if records is None:
        none = np.zeros(0, dtype=np.int64)
        return TimedSteps(np.zeros(0), none, none, none.astype(np.int32), none, none, none.astype(np.intp))
    same = (records.owner[1:] == records.owner[:-1]) & (records.time[:-1] >= start) & (records.time[1:] <= end)
    here = np.flatnonzero(same)
    count = records.number[here + 1] - records.number[here]
    begin, stop = records.time[here], records.time[here + 1]
    seconds = (stop - begin - excluded_within(begin, stop, timeline.clock_steps)) / count / 1e9
    named = here + timeline.attempts.step_ends
    return TimedSteps(
        seconds,
        records.number[here] + timeline.attempts.step_ends,
        count,
        records.owner[here],
        records.time[here],
        records.time[here + 1],
        records.rows[named],
    )


def step_times(timeline: Timeline, start: int, end: int) -> F64:
    """Seconds per step between consecutive records of one attempt that lie in [start, end] (ns)."""
    times = np.empty(_most_times(timeline))
    size = 0
    for seconds in step_time_parts(timeline, start, end):
        times[size : size + len(seconds)] = seconds
        size += len(seconds)
    return times[:size]


def step_time_parts(timeline: Timeline, start: int, end: int) -> Iterator[F64]:
    """The same, some thousand at a time."""
    for first, stop in blocks(_most_times(timeline)):
        records = timeline.records
        assert records is not None
        owner, time, number = (column[first : stop + 1] for column in (records.owner, records.time, records.number))
        inside = (owner[1:] == owner[:-1]) & (time[:-1] >= start) & (time[1:] <= end)
        took = np.diff(time)[inside]
        if timeline.clock_steps:
            took -= excluded_within(time[:-1][inside], time[1:][inside], timeline.clock_steps)
        yield took / np.diff(number)[inside] / 1e9


def _most_times(timeline: Timeline) -> int:
    return 0 if timeline.records is None else max(len(timeline.records.rows) - 1, 0)
