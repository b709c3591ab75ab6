"""The Disruption record, and its columns: each is declared once, here, and filled in find.py.

From its declaration follow the attribute of `Disruption`, the key in JSON, the head in CSV, the type in Parquet, the
entry in docs/schema.json and, where people see it, the column in the terminal. Disruptions are held as columns; a
`Disruption` is made when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

import numpy as np

from goodput_cli.analysis.sheet import Audience
from goodput_cli.analysis.table import INSTANT, UNKNOWN, column, columns_of, people_columns, row_schema
from goodput_cli.arrays import I64, Rows, blocks
from goodput_cli.events.schema import EventTable
from goodput_cli.events.timestamps.text import isos
from goodput_cli.vocabulary.endings import ENDED, Ended
from goodput_cli.vocabulary.text import plural

if TYPE_CHECKING:
    import pandas as pd

Bound = Literal["exact", "at_least"]
BOUNDS: tuple[Bound, ...] = get_args(Bound)
AT_LEAST = BOUNDS.index("at_least")
"""In the column `steps_lost_is`."""
_WORDS: dict[str, tuple[str, ...]] = {"ended": ENDED, "steps_lost_is": BOUNDS}
"""Fields that are words, held as positions in these."""


@dataclass(frozen=True)
class Evidence:
    """The line (file:line or insertId) behind each bound of a disruption; None where no line says it."""

    last_step: str | None = column("text", "the last step")
    last_sign_of_life: str | None = column(
        "text",
        "what ended at the last sign of life; the last step's line where that step was credited beyond any",
    )
    ended: str | None = column("text", "the termination, crash or preempted save")
    next_start: str | None = column("text", "the next start")
    next_up: str | None = column("text", "the last start of its burst")
    resumed_step: str | None = column("text", "the step, load or save that names the step resumed from")
    first_step: str | None = column("text", "the first step or progress after it")
    regained: str | None = column("text", "the first kept step or progress past the old last step")


def _place(name: str) -> Callable[[DisruptionColumns], Any]:
    return lambda part: part.evidence[name]


EVIDENCE_COLUMNS = columns_of(Evidence, _place)


def _died_between(part: DisruptionColumns) -> list[list[str]]:
    return [list(pair) for pair in zip(part.last_signs, isos(part.numbers["death_latest_ns"]), strict=True)]


@dataclass(frozen=True)
class Disruption:
    """One passage to a next attempt that does not follow a believed clean end (accounting §10). Amounts are ns of the
    whole disruption, whatever window was asked for; instants are ns since 1970 UTC. None is "not known".
    """

    number: int = column("count", "from 1, in time order, over the whole job", least=1, people=(0, "no."))
    attempt: int = column("count", "the attempt that ended, from 1", least=1)
    ended: Ended = column(
        "text",
        "how it ended, as far as it was logged; preempted: a save of it had reached a preemption",
        json={"enum": list(ENDED)},
        people=(2, "ended"),
    )
    last_step: int | None = column("count", "last step it recorded; null if it recorded none")
    last_sign_of_life_ns: int = column(
        "instant", "its last sign of life", json_values=attrgetter("last_signs"), people=(1, "down since")
    )
    death_latest_ns: int = column(
        "instant",
        "the attempt died in this time; two equal instants where its end was logged",
        name="died_before",
        key="died_between",
        json={"type": "array", "items": INSTANT, "minItems": 2, "maxItems": 2},
        json_values=_died_between,
    )
    """It died between its last sign of life and this: the same instant where its end was logged, else the next
    start."""
    next_start_ns: int = column(
        "instant", "first start line of the next attempt, or its first event if it has no start line"
    )
    next_up_ns: int = column("instant", "last start line of that burst")
    resumed_step: int | None = column(
        "count", "step from which training went on, in whichever attempt did first; null if none did"
    )
    steps_lost: int | None = column(
        "count",
        "steps whose training was taken back; in checkpoint logs the recorded ones, and null if only unrecorded ones "
        "can have been lost",
        least=0,
        people=(3, "steps lost"),
    )
    """With hindsight, and of earlier attempts too where it resumed before they ended."""
    steps_lost_is: Bound | None = column(
        "text",
        "at_least: the attempt died in silence, and its last lines may be missing; null where steps_lost is",
        json={"enum": [*BOUNDS, None]},
    )
    wasted_ns: int = column("duration", "time of the training that was taken back", least=0, people=(4, "wasted"))
    downtime_ns: int = column(
        "duration",
        "recovery, undetermined and stopped time until the next attempt was up",
        least=0,
        people=(5, "downtime"),
    )
    undetermined_ns: int = column("duration", "part of downtime_seconds that may have been lost training", least=0)
    queued_ns: int = column("duration", "time in the queue", least=0, people=(9, "queued"))
    restart_ns: int = column(
        "duration",
        "initialisation, preparation, restore, loading, elastic waits and program start-up of the next attempt",
        least=0,
    )
    lost_ns: int = column("duration", "wasted + downtime + restart: what is paid for", least=0)
    """Of the time in which the accelerators were held: in the queue nothing is held."""
    time_to_first_step_ns: int | None = column(
        "duration", "from next_up to the next step (checkpoint logs: recorded progress); null if none came", least=0
    )
    """Whichever attempt made that step."""
    regained_after_ns: int | None = column(
        "duration",
        "from the last sign of life until kept training was past the old last step; null if it never was",
        least=0,
        people=(8, "regained"),
    )
    ranks_before: int | None = column(
        "count", "distinct ranks that started the attempt; null if start lines carry no rank", least=1
    )
    ranks_after: int | None = column(
        "count", "distinct ranks that started the next one; null if start lines carry no rank", least=1
    )
    evidence: Evidence = column(
        "text",
        "file:line or insertId behind each bound; null where no line says it",
        audience=Audience.JSON,
        json=row_schema(EVIDENCE_COLUMNS, "evidence", ""),
    )


@dataclass(frozen=True)
class DisruptionColumns:
    """Some disruptions, as columns."""

    numbers: dict[str, I64]
    """By the names of the fields of `Disruption`; `UNKNOWN` is None."""
    evidence: dict[str, list[str | None]]
    """By the names of the fields of `Evidence`."""

    @cached_property
    def last_signs(self) -> list[str]:
        """The last sign of life of each as JSON has it, in two of its columns."""
        return isos(self.numbers["last_sign_of_life_ns"])

    def column(self, name: str) -> Any:
        """A field of each: int64, or a list of texts or objects."""
        if name == "evidence":
            places = zip(*self.evidence.values(), strict=True)
            return [dict(zip(self.evidence, row, strict=True)) for row in places]
        values, words = self.numbers[name], _WORDS.get(name)
        return values if words is None else [None if value == UNKNOWN else words[value] for value in values.tolist()]

    def values(self, name: str) -> list[Any]:
        """A field of each, as `Disruption` has it."""
        values = self.column(name)
        return values if name in _WORDS else [None if value == UNKNOWN else value for value in values.tolist()]


class Disruptions(Sequence[Disruption]):
    """Disruptions in time order. They are held as columns, and a row is made when it is read: a long job has tens of
    thousands, and most answers show none of them.

    columns: int64, by the names of the fields of `Disruption`; `UNKNOWN` is None, and a word is its position in
    `_WORDS`. rows: by the names of the fields of `Evidence`, rows of the table, -1 for none.
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

    def to_frame(self) -> pd.DataFrame:
        """A DataFrame with a row for each, and the columns of CSV: instants in UTC, lengths of time in seconds."""
        from goodput_cli.analysis.disruptions.frame import disruption_frame

        return disruption_frame(self)

    def __repr__(self) -> str:
        """For a session: how many there are, and how to see them."""
        return f"<{plural(len(self), 'disruption')}; .to_frame() has a row for each>"

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(index=False)

    def column(self, name: str) -> I64:
        """A column of numbers: those that are known."""
        column = self._columns[name]
        known: I64 = column[column != UNKNOWN]
        return known

    @property
    def unplanned(self) -> Disruptions:
        """Those that count: all but scale-ups, which somebody ordered."""
        chosen = self._columns["ended"] != ENDED.index("scale_up")
        columns = {name: column[chosen] for name, column in self._columns.items()}
        return Disruptions(self._table, columns, {name: rows[chosen] for name, rows in self._rows.items()})

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


def _field(name: str) -> Callable[[DisruptionColumns], Any]:
    return lambda part: part.column(name)


COLUMNS = columns_of(Disruption, _field)
"""What programs see of a disruption."""
PEOPLE_COLUMNS = people_columns(Disruption, _field)
"""What people see of a disruption, by place."""
FIRST = ("number", "attempt", "ended", "wasted", "downtime", "queued")
"""The columns that CSV and Parquet begin with."""
_COLUMNS = tuple(field.name for field in fields(Disruption) if field.name != "evidence")
_EVIDENCE = tuple(field.name for field in fields(Evidence))
_AT_ONCE = 1024
