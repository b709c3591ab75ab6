"""Training spans (accounting §4): the units of training that are kept or wasted. Here: those of step logs."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.attempts import Attempts, Beginnings, Strides, find_beginnings
from goodput_cli.accounting.columns import owner_type, search
from goodput_cli.arrays import I64, Mask, Patched, Rows, blocks, patched
from goodput_cli.events.schema import NO_STEP, EventTable

_SHORT = 1 << 30


@dataclass(frozen=True)
class TrainingSpans:
    """k spans of training in time order, which do not overlap: one recorded step, or the steps between two records.

    Columns of length k. Some may be views of others: do not write to them.
    """

    start: I64
    end: I64 | Patched
    """ns."""
    first: I64
    stop: I64 | Patched
    """The steps first <= s < stop are trained in it."""
    attempt: Rows
    row: Rows
    """Row of the event that begins it: a step's start, or the checkpoint event before it."""
    end_row: Rows | None
    """Row of the event that ends it. None in step logs, where that is the event that begins the next span."""
    opening: Mask
    """Whether it may hold a start-up: the first of its attempt, or the first behind an elastic re-initialisation."""
    ending: int = -1
    """Step logs: row of the event that ends the job's last span, or -1."""

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def restarted(self) -> Rows:
        """Those that are `opening` without being the first of their attempt."""
        places = np.flatnonzero(self.opening)
        return np.asarray(places[(places > 0) & (self.attempt[places - 1] == self.attempt[places])])

    @property
    def steps(self) -> I64:
        """Number of steps in each span."""
        return self.stop - self.first

    def take(self, chosen: Mask | Rows) -> TrainingSpans:
        """The chosen spans."""
        columns = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "ending"}
        return replace(self, **{name: column[chosen] for name, column in columns.items() if column is not None})

    def end_rows(self, chosen: Rows) -> Rows:
        """The lines that end the chosen spans, -1 where none does."""
        if self.end_row is not None:
            return self.end_row[chosen]
        following = np.minimum(chosen + 1, len(self) - 1)
        ends = np.where(self.attempt[following] == self.attempt[chosen], self.row[following], -1)
        ends[chosen == len(self) - 1] = self.ending
        return ends

    def latest_end(self, otherwise: I64) -> I64:
        """Where (ns) the last span of each attempt ends; `otherwise` (one an attempt) for those without any, or
        where that is later."""
        bounds = search(self.attempt, np.arange(len(otherwise) + 1))
        some = np.flatnonzero(bounds[1:] > bounds[:-1])
        latest = otherwise.copy()
        latest[some] = np.maximum(latest[some], self.end[bounds[1:][some] - 1])
        return latest


@dataclass(frozen=True)
class StepRecordsByAttempt:
    """Step records of a step log, by attempt."""

    rows: Rows
    owner: Rows
    """Row and attempt of every record that counts."""
    number: I64
    time: I64
    """Step number and time (ns) of each."""
    bounds: NDArray[np.intp]
    """The records of attempt a are at bounds[a] .. bounds[a + 1] - 1."""
    following: tuple[I64, I64]
    """Number and time of the record behind each; of the last one anything."""
    beginnings: Beginnings | None = None
    """Of step-end logs, where `number` is how many steps were done; None where it is the step that begins."""

    @property
    def attempts(self) -> int:
        """How many attempts the job has, those without a record included."""
        return len(self.bounds) - 1

    @cached_property
    def has(self) -> Mask:
        """Whether each attempt has a record."""
        return self.bounds[1:] > self.bounds[:-1]

    @cached_property
    def began(self) -> I64:
        """First recorded step of each attempt (of step ends: how many were done when it began), `NO_STEP` without."""
        if self.beginnings is not None:
            return self.beginnings.step
        return np.where(self.has, self._number_at(self.bounds[:-1]), NO_STEP)

    @cached_property
    def last(self) -> I64:
        """Last recorded step of each attempt, `NO_STEP` without any."""
        return np.where(self.has, self._number_at(self.bounds[1:] - 1), NO_STEP)

    @cached_property
    def last_row(self) -> Rows:
        """Row of the last record of each attempt, -1 without any."""
        return np.where(self.has, self.rows[np.maximum(self.bounds[1:] - 1, 0)], -1) if len(self.rows) else self._none

    @property
    def _none(self) -> Rows:
        return np.full(self.attempts, -1, dtype=np.intp)

    def _number_at(self, places: NDArray[np.intp]) -> I64:
        if len(self.number) == 0:
            return np.full(len(places), NO_STEP, dtype=np.int64)
        return self.number[np.minimum(np.maximum(places, 0), len(self.number) - 1)].astype(np.int64)

    def stride(self, attempt: int) -> int:
        """The attempt's usual distance between recorded steps."""
        return self._strides.of(attempt)

    @cached_property
    def _strides(self) -> Strides:
        return Strides(self.number, self.bounds)


def step_records(table: EventTable, attempts: Attempts) -> StepRecordsByAttempt:
    """The step records that count, by attempt."""
    rows, bounds = attempts.steps, attempts.step_bounds
    owner = np.repeat(np.arange(len(attempts), dtype=owner_type(len(attempts))), np.diff(bounds))
    beginnings = find_beginnings(table, attempts) if attempts.step_ends else None
    number, next_number = _with_following(table.step, rows, _width(table.step, rows))
    time, next_time = _with_following(table.time, rows, np.int64)
    return StepRecordsByAttempt(rows, owner, number, time, bounds, (next_number, next_time), beginnings)


def _width(step: I64, rows: Rows) -> type[np.signedinteger[Any]]:
    """Step numbers have 32 bits where they, their sums and their differences fit."""
    parts = (step[rows[start:stop]] for start, stop in blocks(len(rows)))
    return np.int32 if all(part.min() > -_SHORT and part.max() < _SHORT for part in parts) else np.int64


def _with_following(column: I64, rows: Rows, width: type[np.signedinteger[Any]]) -> tuple[I64, I64]:
    """`column[rows]`, and the value behind each: the same memory, one place on."""
    values = np.zeros(len(rows) + 1, dtype=width)
    for start, stop in blocks(len(rows)):
        values[start:stop] = column[rows[start:stop]]
    return values[:-1], values[1:]


def first_behind(time: I64, bounds: NDArray[np.intp], reinitialised: tuple[Rows, I64]) -> list[int]:
    """Of times (ns) that are sorted in each attempt (a has bounds[a] .. bounds[a + 1] - 1), the positions of the first
    at or after the end of each elastic re-initialisation: attempt and end (ns)."""
    found = []
    for attempt, end in zip(*(column.tolist() for column in reinitialised), strict=True):
        first, behind = bounds[attempt : attempt + 2].tolist()
        place = first + int(np.searchsorted(time[first:behind], end))
        found += [place] if place < behind else []
    return found


def step_spans(
    records: StepRecordsByAttempt, ending: int, reinitialised: tuple[Rows, I64]
) -> tuple[TrainingSpans, NDArray[np.intp]]:
    """One span a record: step s runs to the start of the next recorded step of its attempt.

    ending: row of the event that ends the job's last step, or -1. reinitialised: attempt and end (ns) of each elastic
    re-initialisation. Also returns the positions of the last steps of
    attempts, which have no length yet: nothing says how long they took (see `last_steps`). Columns that are as in the
    records are views of them, not copies: a long log has little else.
    """
    last = records.bounds[1:][records.has] - 1
    opening = np.zeros(len(records.rows), dtype=bool)
    opening[records.bounds[:-1][records.has]] = True
    opening[first_behind(records.time, records.bounds, reinitialised)] = True
    opening[last] = False
    next_number, next_time = records.following
    end = patched(next_time, last, records.time[last])
    stop = patched(next_number, last, records.number[last] + 1)
    return (
        TrainingSpans(records.time, end, records.number, stop, records.owner, records.rows, None, opening, ending),
        last,
    )
