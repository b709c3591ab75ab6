"""Training stretches (accounting §4): the pieces of training that the lineage judges. This module: step logs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.events.schema import NO_STEP, EventTable
from goodput_cli.timeline.attempts import Attempts
from goodput_cli.timeline.columns import Rows
from goodput_cli.timeline.order import Mask

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Stretches:
    """k stretches of training in time order: they do not overlap. Some columns may be views of others: do not write.

    start, end: ns. first, stop: the steps first <= s < stop are trained in it. attempt: whose it is. row: the line
    that begins it (a step's start, or the checkpoint event before it) and end_row the line that ends it.
    opening: whether it is the first of its attempt.
    """

    start: I64
    end: I64
    first: I64
    stop: I64
    attempt: NDArray[np.int32]
    row: Rows
    end_row: Rows
    opening: Mask

    def __len__(self) -> int:
        return len(self.start)

    @property
    def steps(self) -> I64:
        """Number of steps in each stretch."""
        return self.stop - self.first

    def of_attempt(self, attempt: int) -> slice:
        """The stretches of one attempt."""
        return slice(*np.searchsorted(self.attempt, [attempt, attempt + 1]).tolist())

    def take(self, chosen: Mask | Rows) -> Stretches:
        """The chosen stretches."""
        return Stretches(*(getattr(self, field.name)[chosen] for field in fields(self)))


class PickedStretches(Stretches):
    """Some of the stretches of a table and one row more, each column taken when it is first asked for: most never
    are, and a long log has millions of rows."""

    def __init__(self, whole: Stretches, rows: Rows, more: Stretches | None) -> None:
        self.__dict__.update(_whole=whole, _rows=rows, _more=more)

    def __len__(self) -> int:
        return len(self._rows) + (0 if self._more is None else len(self._more))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        more = None if self._more is None else getattr(self._more, name)
        column = self.__dict__[name] = picked(getattr(self._whole, name), self._rows, more)
        return column


def picked(column: NDArray[Any], rows: Rows, more: NDArray[Any] | None) -> NDArray[Any]:
    """Some rows of a column and `more` behind them, copied once."""
    if more is None:
        return np.asarray(column[rows])
    made = np.empty(len(rows) + len(more), dtype=column.dtype)
    np.take(column, rows, out=made[: len(rows)], mode="clip")
    made[len(rows) :] = more
    return made


@dataclass(frozen=True)
class StepRecordsByAttempt:
    """Step records of a step log, by attempt (m attempts; `NO_STEP`/-1 for those without any).

    rows, owner: of every record that counts. began, last: first and last recorded step. last_row: of the last record.
    """

    rows: Rows
    owner: NDArray[np.int32]
    number: I64
    time: I64
    attempts: int

    @cached_property
    def bounds(self) -> NDArray[np.intp]:
        """Records of attempt a are at bounds[a] .. bounds[a + 1] - 1."""
        return np.searchsorted(self.owner, np.arange(self.attempts + 1))

    @cached_property
    def has(self) -> Mask:
        return self.bounds[1:] > self.bounds[:-1]

    @cached_property
    def began(self) -> I64:
        return np.where(self.has, self._number_at(self.bounds[:-1]), NO_STEP)

    @cached_property
    def last(self) -> I64:
        return np.where(self.has, self._number_at(self.bounds[1:] - 1), NO_STEP)

    @cached_property
    def last_row(self) -> Rows:
        return np.where(self.has, self.rows[np.maximum(self.bounds[1:] - 1, 0)], -1) if len(self.rows) else self._none

    @property
    def _none(self) -> Rows:
        return np.full(self.attempts, -1, dtype=np.intp)

    def _number_at(self, places: NDArray[np.intp]) -> I64:
        if len(self.number) == 0:
            return np.full(len(places), NO_STEP, dtype=np.int64)
        return self.number[np.clip(places, 0, len(self.number) - 1)]

    def stride(self, attempt: int) -> int:
        """Lower median distance between the attempt's recorded steps; with one record, of all attempts'; else 1."""
        own = np.diff(self.number[self.bounds[attempt] : self.bounds[attempt + 1]])
        return _lower_median(own) if len(own) else self._usual_stride

    @cached_property
    def _usual_stride(self) -> int:
        inside = self.owner[1:] == self.owner[:-1]
        distances = np.diff(self.number)[inside]
        return _lower_median(distances) if len(distances) else 1


def _lower_median(values: I64) -> int:
    middle = (len(values) - 1) // 2
    return int(np.partition(values, middle)[middle])


def step_records(table: EventTable, attempts: Attempts) -> StepRecordsByAttempt:
    """The step records that count, by attempt."""
    rows = attempts.steps
    return StepRecordsByAttempt(rows, attempts.of_row[rows], table.step[rows], table.time[rows], len(attempts))


def step_stretches(records: StepRecordsByAttempt) -> tuple[Stretches, NDArray[np.intp]]:
    """Step s runs to the start of the next recorded step of its attempt. The last steps of the attempts that another
    one follows have their place among them, of no length yet: they are judged apart. Also the positions of these.

    What is as in the records is a view of them, not a copy: a long log has little else.
    """
    in_progress = 1 if records.attempts and records.has[-1] else 0  # the last attempt's last step
    size = len(records.rows) - in_progress
    last = (records.bounds[1:] - 1)[:-1][records.has[:-1]]
    opening = np.zeros(size, dtype=bool)
    first = records.bounds[:-1][records.has]
    opening[first[first < size]] = True
    opening[last] = False
    end, stop, end_row = (_following(column, size) for column in (records.time, records.number, records.rows))
    end[last], stop[last], end_row[last] = records.time[last], records.number[last] + 1, -1
    return (
        Stretches(
            records.time[:size], end, records.number[:size], stop, records.owner[:size], records.rows[:size],
            end_row, opening,
        ),
        last,
    )  # fmt: skip


def _following(column: I64, size: int) -> I64:
    """The value behind each of the first `size` ones; of the very last one itself."""
    following = np.empty(size, dtype=column.dtype)
    following[: len(column) - 1] = column[1 : size + 1]
    following[len(column) - 1 :] = column[len(column) - 1 : size]
    return following
