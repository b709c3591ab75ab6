"""Where the attempts of a step-end log began to train (accounting §4, Step-end logs): no line says so."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.attempts import Attempts
from goodput_cli.accounting.columns import gathered, last_of_each, of_kind, positions
from goodput_cli.arrays import I64, Mask, Rows
from goodput_cli.events.schema import NO_STEP, Edge, EventTable, Kind


@dataclass(frozen=True)
class Strides:
    """The usual distances between the recorded steps of attempts. number: of every record; bounds: the records of
    attempt a are at bounds[a] .. bounds[a + 1] - 1."""

    number: NDArray[np.signedinteger]
    bounds: NDArray[np.intp]

    def of(self, attempt: int) -> int:
        """Lower median distance between the attempt's recorded steps; with one record, of all attempts'; else 1."""
        own = np.diff(self.number[self.bounds[attempt] : self.bounds[attempt + 1]])
        return _lower_median(own) if len(own) else self._usual

    @cached_property
    def _usual(self) -> int:
        inside = np.ones(max(len(self.number) - 1, 0), dtype=bool)
        heads = self.bounds[1:-1]
        inside[heads[(heads > 0) & (heads < len(self.number))] - 1] = False
        distances = np.diff(self.number)[inside]
        return _lower_median(distances) if len(distances) else 1


def _lower_median(values: NDArray[np.signedinteger]) -> int:
    middle = (len(values) - 1) // 2
    return int(np.partition(values, middle)[middle])


@dataclass(frozen=True)
class Beginnings:
    """Where training began: columns of one value an attempt, which mean nothing for those without a step."""

    step: I64
    """How many steps were done; `NO_STEP` without any record."""
    time: I64
    """ns."""
    row: Rows
    """The event there: the last start line, a restore or load, or the first record."""
    shown: Rows
    """The line that shows the step: a restore or load, else the first record."""
    started: Mask
    """Whether it is a start line: then all time behind it is of the first steps, whatever their mean."""


def find_beginnings(table: EventTable, attempts: Attempts) -> Beginnings:
    """Of each attempt: the step of the last restore or load before its first record, if below that; else, where a start
    line opened it, its stride before its first record (one step, if its first distance is below its stride), at least
    0; else its first record."""
    count, bounds = len(attempts), attempts.step_bounds
    some = np.flatnonzero(bounds[1:] > bounds[:-1])
    first = np.full(count, len(table), dtype=np.intp)
    first[some] = attempts.steps[bounds[some]]
    step = np.full(count, NO_STEP, dtype=np.int64)
    step[some] = table.step[first[some]]
    resumed = _last_resumption(table, attempts, first)
    strides = Strides(gathered(table.step, attempts.steps), bounds)
    time, row = attempts.up.copy(), attempts.up_row.astype(np.intp)
    shown, started = np.where(first < len(table), first, -1), np.zeros(count, dtype=bool)
    for attempt in some.tolist():
        record, load = int(first[attempt]), int(resumed[attempt])
        number, at = int(step[attempt]), int(table.time[record])
        loaded = load >= 0 and table.step[load] < number
        if loaded:
            step[attempt], shown[attempt] = table.step[load], load
        elif attempts.started[attempt]:
            step[attempt] = _before(number, strides, attempt)
        started[attempt] = attempts.started[attempt] and step[attempt] < number
        if not started[attempt]:
            row[attempt] = load if loaded else record
            time[attempt] = min(int(table.end[load]), at) if loaded else at
    return Beginnings(step, time, row, shown, started)


def _last_resumption(table: EventTable, attempts: Attempts, first: Rows) -> Rows:
    """The last restore or load of each attempt that names a step, before its first record; -1 without."""
    rows = positions(of_kind(table.kind, (Kind.RESTORE, Kind.LOAD)) & (table.edge != Edge.END))
    rows = rows[(table.step[rows] != NO_STEP) & (attempts.of_row[rows] >= 0)]
    rows = rows[rows < first[attempts.of_row[rows]]]
    return last_of_each(rows, attempts.of_row[rows], len(attempts))


def _before(number: int, strides: Strides, attempt: int) -> int:
    """The step at which an attempt began that a start line opened and no restore: a stride before its first record."""
    stride = strides.of(attempt)
    start, stop = strides.bounds[attempt : attempt + 2].tolist()
    if stop - start > 1 and int(strides.number[start + 1]) - number < stride:
        stride = 1
    return min(max(number - stride, 0), number)
