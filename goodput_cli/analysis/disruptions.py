"""Disruptions (accounting §10): what each one lost, how long the job was down, and the log lines that show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from goodput_cli.analysis.losses import Losses, find_losses, first_and_last_steps
from goodput_cli.analysis.proofs import Proofs, find_proofs
from goodput_cli.events.schema import NO_STEP, EventTable, Kind
from goodput_cli.timeline.build import Timeline
from goodput_cli.timeline.categories import Category
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
        return self.wasted_ns + self.downtime_ns + self.restart_ns


@dataclass(frozen=True)
class _Amounts:
    """ns, one value an attempt that another one follows."""

    down: I64
    undetermined: I64
    queued: I64
    restart: I64


def find_disruptions(timeline: Timeline, start: int, end: int) -> tuple[Disruption, ...]:
    """The disruptions whose last sign of life lies in [start, end) (ns), in time order (accounting §10)."""
    attempts = timeline.disruptions
    inside = disruptions_inside(timeline, start, end)
    if len(inside) == 0:
        return ()
    losses, amounts, proofs = find_losses(timeline), _amounts(timeline), find_proofs(timeline)
    ranks = _ranks(timeline)
    return tuple(
        _disruption(timeline, number + 1, int(attempts[number]), losses, amounts, proofs, ranks)
        for number in inside.tolist()
    )


def disruptions_inside(timeline: Timeline, start: int, end: int) -> NDArray[np.intp]:
    """Positions in `Timeline.disruptions` of those inside [start, end) (ns). A last sign of life at the very end of the
    job window, or before it, counts as inside it: windows that tile the job hold each disruption once."""
    down = np.clip(timeline.sign_of_life[timeline.disruptions], timeline.start, timeline.end - 1)
    return np.flatnonzero((down >= start) & (down < end))


def _disruption(
    timeline: Timeline, number: int, attempt: int, losses: Losses, amounts: _Amounts, proofs: Proofs, ranks: I64
) -> Disruption:
    attempts, table = timeline.attempts, timeline.table
    began, last = first_and_last_steps(timeline)
    died, up = int(timeline.sign_of_life[attempt]), int(attempts.up[attempt + 1])
    resumed = int(proofs.resumed[attempt])
    first, regained = int(proofs.first_step[attempt]), int(proofs.regained[attempt])
    ended, ended_row = _ended(timeline, attempt, int(proofs.preempted[attempt]))
    next_start = int(attempts.begin[attempt + 1])
    return Disruption(
        number=number,
        attempt=attempt + 1,
        ended=ended,
        last_step=_step(last[attempt]),
        last_sign_of_life_ns=died,
        death_latest_ns=died if attempts.first_ending[attempt] >= 0 else max(next_start, died),
        next_start_ns=next_start,
        next_up_ns=up,
        resumed_step=_step(began[resumed]) if resumed >= 0 else None,
        steps_lost=_steps_lost(timeline, attempt, losses, amounts),
        wasted_ns=int(losses.ns[attempt]),
        downtime_ns=int(amounts.down[attempt]),
        undetermined_ns=int(amounts.undetermined[attempt]),
        queued_ns=int(amounts.queued[attempt]),
        restart_ns=int(amounts.restart[attempt]),
        time_to_first_step_ns=max(int(table.time[first]) - up, 0) if first >= 0 else None,
        regained_after_ns=max(int(table.time[regained]) - died, 0) if regained >= 0 else None,
        ranks_before=_count(ranks[attempt]),
        ranks_after=_count(ranks[attempt + 1]),
        evidence=Evidence(
            last_step=_where(table, int(proofs.last_step[attempt])),
            last_sign_of_life=_where(table, int(proofs.sign_of_life[attempt])),
            ended=_where(table, ended_row),
            next_start=_where(table, int(attempts.begin_row[attempt + 1])),
            next_up=_where(table, int(attempts.up_row[attempt + 1])),
            resumed_step=_where(table, int(proofs.began[resumed])) if resumed >= 0 else None,
            first_step=_where(table, first),
            regained=_where(table, regained),
        ),
    )


def _steps_lost(timeline: Timeline, attempt: int, losses: Losses, amounts: _Amounts) -> int | None:
    steps = int(losses.steps[attempt])
    unseen = losses.ns[attempt] > 0 or amounts.undetermined[attempt] > 0
    return None if timeline.progress is not None and steps == 0 and unseen else steps


def _ended(timeline: Timeline, attempt: int, preempted: int) -> tuple[Ended, int]:
    """How an attempt ended, and the row that says so (-1: none). A save that had reached a preemption knows why; a
    crash or a termination only says that it was down."""
    if preempted >= 0:
        return "preempted", preempted
    how = timeline.endings.how[attempt]
    if how == End.CRASHED:
        return "crashed", int(timeline.endings.crash_row[attempt])
    ending = int(timeline.attempts.first_ending[attempt])
    return ("terminated" if how == End.TERMINATED else "silent"), ending


def _amounts(timeline: Timeline) -> _Amounts:
    """Time between the last training of each attempt and the next one's start, and until that trained. The spans of
    two passages never overlap, so that no second is counted for two disruptions."""
    attempts = timeline.attempts
    trained_from, trained_to = _training_span(timeline)
    left, up = np.maximum(attempts.up, trained_to)[:-1], attempts.up[1:]
    between = timeline.ledger.between(left, np.maximum(left, up))
    starting = timeline.ledger.between(left, np.maximum(left, trained_from[1:]))
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
    bounds = np.searchsorted(stretches.attempt, np.arange(len(begin) + 1))
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
    pairs = np.unique(np.column_stack((attempts.of_row[rows], table.rank[rows])), axis=0)
    return np.bincount(pairs[:, 0], minlength=len(attempts)).astype(np.int64)


def _step(step: np.int64) -> int | None:
    return None if step == NO_STEP else int(step)


def _count(ranks: np.int64) -> int | None:
    return int(ranks) or None


def _where(table: EventTable, row: int) -> str | None:
    return table.where(row) if row >= 0 else None
