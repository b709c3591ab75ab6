"""What is said of a disruption, and disruptions as columns: a row is made when it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args, overload

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import Rows, blocks
from goodput_cli.events.schema import NO_STEP, EventTable

I64 = NDArray[np.int64]
Ended = Literal["crashed", "terminated", "silent", "preempted"]


@dataclass(frozen=True)
class Evidence:
    """The line (file:line or insertId) behind each bound of a disruption; None where no line says it.

    ended: the termination, crash or preempted save. resumed_step: the step or load it resumed with; None where the log
    shows neither, and the step is inferred.
    """

    last_step: str | None
    last_sign_of_life: str | None
    ended: str | None
    next_start: str | None
    next_up: str | None
    resumed_step: str | None
    first_step: str | None
    regained: str | None


@dataclass(frozen=True)
class Disruption:
    """One passage to a next attempt that does not follow a believed clean end. Amounts are ns of the whole disruption,
    whatever window was asked for; instants are ns since 1970 UTC.

    number: from 1, in time order, over the whole job. attempt: the one that ended, from 1.
    last_step: the last that it recorded. resumed_step: where training began again, in whichever attempt did first.
    death_latest_ns: the attempt died between its last sign of life and this: the same instant where its end was
        logged, else the next start.
    next_start_ns, next_up_ns: the first and the last start line of the next attempt.
    steps_lost, wasted_ns: training that this disruption took back, with hindsight; earlier attempts' too, if it
        resumed before they ended. Checkpoint logs name only the steps that they recorded: there may have been more,
        and where time was lost but no recorded step, steps_lost is None.
    undetermined_ns: the part of downtime_ns that may have been lost training as well.
    downtime_ns: recovery, undetermined and stopped time up to the instant at which the next attempt was up.
    restart_ns: initialisation, preparation, restore, loading, elastic waits and program start-up of the next attempt.
    time_to_first_step_ns: from next_up_ns to the next step (checkpoint logs: recorded progress), whoever made it.
    regained_after_ns: from the last sign of life until kept training was past the old last step; None if never.
    ranks_before, ranks_after: distinct ranks that started; None where start lines carry none.
    """

    number: int
    attempt: int
    ended: Ended
    last_step: int | None
    last_sign_of_life_ns: int
    death_latest_ns: int
    next_start_ns: int
    next_up_ns: int
    resumed_step: int | None
    steps_lost: int | None
    wasted_ns: int
    downtime_ns: int
    undetermined_ns: int
    queued_ns: int
    restart_ns: int
    time_to_first_step_ns: int | None
    regained_after_ns: int | None
    ranks_before: int | None
    ranks_after: int | None
    evidence: Evidence

    @property
    def lost_ns(self) -> int:
        """What it cost of the time in which the accelerators were held: lost training, downtime, starting again. The
        queue is left out: nothing is held there."""
        return sum(int(getattr(self, name)) for name in _LOST)


@dataclass(frozen=True)
class DisruptionColumns:
    """Some disruptions, a column a field. numbers: by the names of the fields of `Disruption`. evidence: by those of
    `Evidence`."""

    numbers: dict[str, I64]
    evidence: dict[str, list[str | None]]

    def values(self, name: str) -> list[Any]:
        """A field of each, as `Disruption` has it."""
        values = self.numbers[name].tolist()
        if name == "ended":
            return [ENDED[value] for value in values]
        return [None if value == UNKNOWN else value for value in values]

    def seconds(self, name: str) -> list[float | None]:
        """An amount of each, from ns."""
        column = self.numbers[name]
        seconds: list[float | None] = (column / 1e9).tolist()
        for place in np.flatnonzero(column == UNKNOWN).tolist():
            seconds[place] = None
        return seconds

    @property
    def lost_ns(self) -> I64:
        """`Disruption.lost_ns` of each."""
        return np.asarray(sum(self.numbers[name] for name in _LOST))


class Disruptions(Sequence[Disruption]):
    """Disruptions in time order. They are held as columns, and a row is made when it is read: a long job has tens of
    thousands, and most answers show none of them.

    columns: int64, by the names of the fields of `Disruption`; `UNKNOWN` is None. ended: of each, position in
    `ENDED`. rows: by the names of the fields of `Evidence`, rows of the table, -1 for none.
    """

    def __init__(self, table: EventTable, columns: dict[str, I64], rows: dict[str, Rows]) -> None:
        self._table = table
        self._columns = columns
        self._rows = rows

    def __len__(self) -> int:
        return len(self._columns["number"])

    def __iter__(self) -> Iterator[Disruption]:
        for start, stop in blocks(len(self), _AT_ONCE):
            yield from self._made(slice(start, stop))

    @overload
    def __getitem__(self, index: int) -> Disruption: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Disruption]: ...
    def __getitem__(self, index: int | slice) -> Disruption | Sequence[Disruption]:
        if isinstance(index, slice):
            return tuple(self._made(index))
        place = range(len(self))[index]
        return next(self._made(slice(place, place + 1)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def column(self, name: str) -> I64:
        """A column of numbers: those that are known."""
        column = self._columns[name]
        known: I64 = column[column != UNKNOWN]
        return known

    def parts(self) -> Iterator[DisruptionColumns]:
        """All of them by column, some at a time."""
        return (self._part(slice(start, stop)) for start, stop in blocks(len(self), _AT_ONCE))

    def _part(self, part: slice) -> DisruptionColumns:
        return DisruptionColumns(
            {name: column[part] for name, column in self._columns.items()},
            {name: list(self._table.places(self._rows[name][part])) for name in _EVIDENCE},
        )

    def _made(self, part: slice) -> Iterator[Disruption]:
        some = self._part(part)
        columns = [some.values(name) for name in _COLUMNS]
        places = some.evidence.values()
        for values, evidence in zip(zip(*columns, strict=True), zip(*places, strict=True), strict=True):
            named: dict[str, Any] = dict(zip(_COLUMNS, values, strict=True))
            yield Disruption(**named, evidence=Evidence(*evidence))


def no_disruptions(table: EventTable) -> Disruptions:
    """Of a time in which nothing was disrupted."""
    nothing = np.zeros(0, dtype=np.int64)
    return Disruptions(table, dict.fromkeys(_COLUMNS, nothing), dict.fromkeys(_EVIDENCE, nothing))


_COLUMNS = tuple(field.name for field in fields(Disruption) if field.name != "evidence")
_EVIDENCE = tuple(field.name for field in fields(Evidence))
ENDED: tuple[Ended, ...] = get_args(Ended)
_LOST = ("wasted_ns", "downtime_ns", "restart_ns")
UNKNOWN = NO_STEP
"""In a column of numbers: None."""
_AT_ONCE = 1024
