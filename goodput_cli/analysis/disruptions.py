"""Disruptions (accounting §10): what each one lost, how long the job was down, and the log lines that show it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args, overload

import numpy as np
from numpy.typing import NDArray

from goodput_cli.analysis.losses import Losses, find_losses, first_and_last_steps
from goodput_cli.analysis.proofs import find_proofs
from goodput_cli.events.schema import NO_STEP, EventTable, Kind
from goodput_cli.timeline.build import Timeline
from goodput_cli.timeline.categories import Category
from goodput_cli.timeline.columns import Rows, blocks, distinct, search
from goodput_cli.timeline.endings import End

I64 = NDArray[np.int64]
Ended = Literal["crashed", "terminated", "silent", "preempted"]

_DOWN = (Category.RECOVERY, Category.UNDETERMINED, Category.STOPPED)
_STARTING = (
    Category.TPU_INITIALIZATION, Category.TRAINING_PREP, Category.RESTORE, Category.DATA_LOADING_SYNC,
    Category.ELASTIC_DOWN, Category.ELASTIC_UP, Category.ELASTIC_REINIT,
)  # fmt: skip


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
            return [_ENDED[value] for value in values]
        return [None if value == _UNKNOWN else value for value in values]

    def seconds(self, name: str) -> list[float | None]:
        """An amount of each, from ns."""
        column = self.numbers[name]
        seconds: list[float | None] = (column / 1e9).tolist()
        for place in np.flatnonzero(column == _UNKNOWN).tolist():
            seconds[place] = None
        return seconds

    @property
    def lost_ns(self) -> I64:
        """`Disruption.lost_ns` of each."""
        return np.asarray(sum(self.numbers[name] for name in _LOST))


class Disruptions(Sequence[Disruption]):
    """Disruptions in time order. They are held as columns, and a row is made when it is read: a long job has tens of
    thousands, and most answers show none of them.

    columns: int64, by the names of the fields of `Disruption`; `_UNKNOWN` is None. ended: of each, position in
    `_ENDED`. rows: by the names of the fields of `Evidence`, rows of the table, -1 for none.
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
        known: I64 = column[column != _UNKNOWN]
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


_COLUMNS = tuple(field.name for field in fields(Disruption) if field.name != "evidence")
_EVIDENCE = tuple(field.name for field in fields(Evidence))
_ENDED: tuple[Ended, ...] = get_args(Ended)
_LOST = ("wasted_ns", "downtime_ns", "restart_ns")
_UNKNOWN = NO_STEP
_AT_ONCE = 1024


@dataclass(frozen=True)
class _Amounts:
    """ns, one value an attempt that another one follows."""

    down: I64
    undetermined: I64
    queued: I64
    restart: I64


def find_disruptions(timeline: Timeline, start: int, end: int) -> Disruptions:
    """The disruptions whose last sign of life lies in [start, end) (ns), in time order (accounting §10)."""
    table, attempts = timeline.table, timeline.attempts
    inside = disruptions_inside(timeline, start, end)
    if len(inside) == 0:
        return no_disruptions(table)
    losses, amounts, proofs = find_losses(timeline), _amounts(timeline), find_proofs(timeline)
    began, last = first_and_last_steps(timeline)
    ranks, died = _ranks(timeline), timeline.sign_of_life
    one = timeline.disruptions[inside]  # the attempt that ended
    next_, resumed = one + 1, proofs.resumed[one]
    first_step, regained = proofs.first_step[one], proofs.regained[one]
    ended, ended_row = _ended(timeline, proofs.preempted)
    up, next_start = attempts.up[next_], attempts.begin[next_]
    columns = {
        "number": inside + 1,
        "attempt": one + 1,
        "ended": ended[one],
        "last_step": last[one],
        "last_sign_of_life_ns": died[one],
        "death_latest_ns": np.where(attempts.first_ending[one] >= 0, died[one], np.maximum(next_start, died[one])),
        "next_start_ns": next_start,
        "next_up_ns": up,
        "resumed_step": np.where(resumed >= 0, began[resumed], _UNKNOWN),
        "steps_lost": _steps_lost(timeline, losses, amounts)[one],
        "wasted_ns": losses.ns[one],
        "downtime_ns": amounts.down[one],
        "undetermined_ns": amounts.undetermined[one],
        "queued_ns": amounts.queued[one],
        "restart_ns": amounts.restart[one],
        "time_to_first_step_ns": _since(up, table, first_step),
        "regained_after_ns": _since(died[one], table, regained),
        "ranks_before": _known_count(ranks[one]),
        "ranks_after": _known_count(ranks[next_]),
    }
    rows = {
        "last_step": proofs.last_step[one],
        "last_sign_of_life": proofs.sign_of_life[one],
        "ended": ended_row[one],
        "next_start": attempts.begin_row[next_],
        "next_up": attempts.up_row[next_],
        "resumed_step": np.where(resumed >= 0, proofs.began[resumed], -1),
        "first_step": first_step,
        "regained": regained,
    }
    return Disruptions(table, columns, rows)


def no_disruptions(table: EventTable) -> Disruptions:
    """Of a time in which nothing was disrupted."""
    nothing = np.zeros(0, dtype=np.int64)
    return Disruptions(table, dict.fromkeys(_COLUMNS, nothing), dict.fromkeys(_EVIDENCE, nothing))


def disruptions_inside(timeline: Timeline, start: int, end: int) -> NDArray[np.intp]:
    """Positions in `Timeline.disruptions` of those inside [start, end) (ns). A last sign of life at the very end of the
    job window, or before it, counts as inside it: windows that tile the job hold each disruption once."""
    down = np.clip(timeline.sign_of_life[timeline.disruptions], timeline.start, timeline.end - 1)
    return np.flatnonzero((down >= start) & (down < end))


def _since(instant: I64, table: EventTable, rows: Rows) -> I64:
    """ns from each instant to an event, not below 0; unknown where there is none."""
    return np.where(rows >= 0, np.maximum(table.time[rows] - instant, 0), _UNKNOWN)


def _steps_lost(timeline: Timeline, losses: Losses, amounts: _Amounts) -> I64:
    """By attempt that another one follows; unknown where a checkpoint log shows time lost but no step."""
    steps = losses.steps[:-1]
    if timeline.progress is None:
        return steps
    unseen = (steps == 0) & ((losses.ns[:-1] > 0) | (amounts.undetermined > 0))
    return np.where(unseen, _UNKNOWN, steps)


def _ended(timeline: Timeline, preempted: Rows) -> tuple[I64, Rows]:
    """How each attempt ended, as a position in `_ENDED`, and the row that says so (-1: none). A save that had reached a
    preemption knows why; a crash or a termination only says that it was down."""
    how = timeline.endings.how
    crashed = how == End.CRASHED
    ended = np.where(how == End.TERMINATED, _ENDED.index("terminated"), _ENDED.index("silent"))
    ended[crashed] = _ENDED.index("crashed")
    ended[preempted >= 0] = _ENDED.index("preempted")
    row = np.where(crashed, timeline.endings.crash_row, timeline.attempts.first_ending)
    return ended, np.where(preempted >= 0, preempted, row)


def _amounts(timeline: Timeline) -> _Amounts:
    """Time between the last training of each attempt and the next one's start, and until that trained. The spans of
    two passages never overlap, so that no second is counted for two disruptions."""
    attempts = timeline.attempts
    trained_from, trained_to = _training_span(timeline)
    left, up = np.maximum(attempts.up, trained_to)[:-1], attempts.up[1:]
    between = timeline.ledger.between(left, np.maximum(left, up), (*_DOWN, Category.QUEUED))
    starting = timeline.ledger.between(left, np.maximum(left, trained_from[1:]), _STARTING)
    nothing = np.zeros(len(up), dtype=np.int64)
    restart = sum((starting.get((category, -1), nothing) for category in _STARTING), nothing)
    return _Amounts(
        down=sum((between.get((category, -1), nothing) for category in _DOWN), nothing),
        undetermined=between.get((Category.UNDETERMINED, -1), nothing),
        queued=between.get((Category.QUEUED, -1), nothing),
        restart=restart + _startup(timeline)[1:],
    )


def _training_span(timeline: Timeline) -> tuple[I64, I64]:
    """When (ns) each attempt began to train and when its last stretch ended; both when it was up if it never did."""
    stretches = timeline.judged.stretches
    begin = timeline.attempts.up.copy()
    bounds = search(stretches.attempt, np.arange(len(begin) + 1))
    some = np.flatnonzero(bounds[1:] > bounds[:-1])
    begin[some] = stretches.start[bounds[some]]
    return begin, stretches.latest_end(timeline.attempts.up)


def _startup(timeline: Timeline) -> I64:
    """Program start-up (ns) of each attempt."""
    segments = timeline.segments
    rows = np.flatnonzero(segments.category == Category.PROGRAM_STARTUP)
    startup = np.zeros(len(timeline.attempts), dtype=np.int64)
    np.add.at(startup, segments.attempt(rows), segments.end[rows] - segments.start[rows])
    return startup


def _ranks(timeline: Timeline) -> I64:
    """How many ranks started in each attempt; 0 where its start lines name none."""
    table, attempts = timeline.table, timeline.attempts
    rows = np.flatnonzero((table.kind == Kind.START) & (table.rank >= 0) & (attempts.of_row >= 0))
    pairs = distinct((attempts.of_row[rows].astype(np.int64) << 32) | table.rank[rows])
    return np.bincount(pairs >> 32, minlength=len(attempts)).astype(np.int64)


def _known_count(ranks: I64) -> I64:
    return np.where(ranks > 0, ranks, _UNKNOWN)
