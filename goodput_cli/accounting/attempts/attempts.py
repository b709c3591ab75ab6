"""Attempts (accounting §3): which life of the job each event belongs to, and how each life ended."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.bursts import Bursts, find_bursts
from goodput_cli.accounting.attempts.regions import checkpoint_regions_with_restarts, regions_with_restarts
from goodput_cli.accounting.attempts.reloads import split_checkpoint_region
from goodput_cli.accounting.attempts.restarts import StepRecords, split_region, twice_the_median
from goodput_cli.accounting.columns import (
    first_of_each,
    gathered,
    of_kind,
    owner_type,
    positions,
    rows_of,
    search,
    union,
    without,
)
from goodput_cli.accounting.order import ENDINGS, Mask
from goodput_cli.arrays import Rows
from goodput_cli.events.schema import Edge, EventTable, Kind

I64 = NDArray[np.int64]
STARTUP_KINDS = (
    Kind.TPU_INIT, Kind.PREP, Kind.RESTORE, Kind.ELASTIC_DOWN, Kind.ELASTIC_UP, Kind.ELASTIC_REINIT
)  # fmt: skip
CHECKPOINT_KINDS = (Kind.LOAD, Kind.FINISHED, Kind.SAVED)
PROGRESS_KINDS = (Kind.STEP, *CHECKPOINT_KINDS)
"""Steps and checkpoint events."""
CLEAN_KINDS = (Kind.USER_TERMINATED, Kind.JOB_FINISHED, Kind.JOB_END)
_RESUMING_KINDS = (Kind.LOAD, Kind.TPU_INIT, Kind.PREP, Kind.RESTORE)
_OF_NO_ATTEMPT = (Kind.SCHEDULED, Kind.SLICES)


@dataclass(frozen=True)
class Attempts:
    """The lives of one job, in time order; arrays of one value an attempt (m of them) unless said otherwise.

    begin, up: ns of the first start line (or of the first event of an attempt without one) and of the last start line
        of its burst. begin_row, up_row: the rows of these.
    started: whether a start line opened it.
    of_row: of length n, attempt of each row of the table; -1 for what belongs to none (scheduled, slice counts, and
        second hosts' reports).
    steps: rows of the step records that count, and `dropped`: those of second hosts' reports. step_bounds: the
        steps of attempt a are at step_bounds[a] .. step_bounds[a + 1] - 1 of `steps`.
    step_log: whether the lineage follows steps (accounting §4).
    last_progress: row of the last step or checkpoint event; -1 without any.
    last_news: row of the last step; in checkpoint logs of the last load or step above all before. A save that another
        rank reports late, behind the end of the attempt, does not undo that end.
    closing: rows of all terminations and ends after their attempt's `last_progress`: what says how it ended.
    first_ending: row of the first of these; -1 where none was logged.
    """

    begin: I64
    up: I64
    begin_row: Rows
    up_row: Rows
    started: Mask
    of_row: Rows
    steps: Rows
    step_bounds: NDArray[np.intp]
    dropped: Rows
    step_log: bool
    last_recorded: Rows
    last_progress: Rows
    closing: Rows
    first_ending: Rows

    def __len__(self) -> int:
        return len(self.begin)

    def cut_at_next(self, time: I64) -> I64:
        """An instant (ns) of each attempt, at the latest where the next one begins: a rank of the old one may be heard
        of later."""
        cut = time.copy()
        cut[:-1] = np.minimum(cut[:-1], self.begin[1:])
        return cut

    @cached_property
    def process(self) -> Rows:
        """Number of the process each attempt ran in: only a start line shows a new one. A phase may begin in one
        attempt and end in the next of the same process: steps that go back after an elastic wait, for one."""
        return np.cumsum(self.started).astype(np.int32)


def find_attempts(table: EventTable, step_log: bool) -> Attempts:
    """Attempts of one job; `table` in the order of accounting §1."""
    kind = table.kind
    steps = positions(kind == Kind.STEP)
    checkpoints = rows_of(kind, CHECKPOINT_KINDS)
    breakers = union(steps, checkpoints) if len(checkpoints) else steps
    bursts = find_bursts(kind, table.rank, breakers)
    regions = _regions(kind, bursts, breakers)
    boundaries, dropped = _split(table, step_log, regions, steps, bursts)
    begin_row = np.array(sorted({*regions, *boundaries}), dtype=np.intp)
    of_row = _attempt_of_row(table, begin_row, bursts)
    of_row[dropped] = -1
    counted, breaking = without(steps, dropped, len(table)), without(breakers, dropped, len(table))
    step_bounds = _bounds(counted, begin_row)
    endings = _endings(table, of_row)
    bounds = _bounds(breaking, begin_row)
    last_recorded = _last_of_each(breaking, bounds)
    last_progress = (
        _last_of_each(counted, step_bounds)
        if step_log
        else _last_progress(table, breaking, bounds, last_recorded, endings, of_row)
    )
    closing = endings[endings > last_progress[of_row[endings]]]
    up_row, started = begin_row.copy(), np.zeros(len(begin_row), dtype=bool)
    opened = search(begin_row, bursts.first)
    up_row[opened], started[opened] = bursts.last, True
    return Attempts(
        begin=table.time[begin_row],
        up=table.time[up_row],
        begin_row=begin_row,
        up_row=up_row,
        started=started,
        of_row=of_row,
        steps=counted,
        step_bounds=step_bounds,
        dropped=dropped,
        step_log=step_log,
        last_recorded=last_recorded,
        last_progress=last_progress,
        closing=closing,
        first_ending=first_of_each(closing, of_row[closing], len(begin_row)),
    )


def _regions(kind: NDArray[np.int8], bursts: Bursts, breakers: Rows) -> list[int]:
    """First rows of the regions: one a start burst, and one before it where the log shows life before any start."""
    first: list[int] = bursts.first.tolist()
    alive = ~of_kind(kind, _OF_NO_ATTEMPT)
    if alive.any() and (not first or (len(breakers) and breakers[0] < first[0])):
        return [int(np.argmax(alive)), *first]
    return first


def _split(
    table: EventTable, step_log: bool, regions: list[int], steps: Rows, bursts: Bursts
) -> tuple[list[int], Rows]:
    """Boundaries inside the regions, and the rows of second hosts' reports."""
    kind = table.kind
    startup = rows_of(kind, STARTUP_KINDS)
    endings = without(rows_of(kind, ENDINGS), bursts.late_ends, len(table))
    resuming = np.flatnonzero(of_kind(kind, _RESUMING_KINDS) & (table.edge != Edge.END))
    start_of, stop_of = np.array(regions, dtype=np.intp), np.array([*regions[1:], len(table)], dtype=np.intp)
    boundaries: list[int] = []
    if not step_log:
        progress = rows_of(kind, (Kind.FINISHED, Kind.SAVED))
        loads = np.flatnonzero(kind == Kind.LOAD)
        restarting = checkpoint_regions_with_restarts(
            progress, loads, endings, resuming, start_of, stop_of[: len(regions)]
        )
        for start, stop in zip(start_of[restarting].tolist(), stop_of[restarting].tolist(), strict=True):
            boundaries += split_checkpoint_region(progress, loads, startup, endings, resuming, start, stop)
        return boundaries, np.zeros(0, dtype=np.intp)
    number, time = gathered(table.step, steps), gathered(table.time, steps)
    records = StepRecords(steps, number, time, startup, endings, resuming, table.time, twice_the_median(number, time))
    dropped: list[int] = []
    restarting = regions_with_restarts(records, start_of, stop_of[: len(regions)])
    for start, stop in zip(start_of[restarting].tolist(), stop_of[restarting].tolist(), strict=True):
        found, repeats = split_region(records, start, stop)
        boundaries += found
        dropped += repeats
    return boundaries, steps[np.array(sorted(dropped), dtype=np.intp)]


def _attempt_of_row(table: EventTable, begin_row: Rows, bursts: Bursts) -> Rows:
    """What comes before the first attempt's start line (an init, a restore) belongs to it."""
    if len(begin_row) == 0:
        return np.full(len(table), -1, dtype=owner_type(0))
    size = np.diff(np.append(begin_row, len(table)))
    size[0] += begin_row[0]
    of_row = np.repeat(np.arange(len(begin_row), dtype=owner_type(len(begin_row))), size)
    of_row[bursts.late_ends] = search(begin_row, bursts.first[bursts.burst_of_late_end]) - 1
    of_row[of_kind(table.kind, _OF_NO_ATTEMPT)] = -1
    return of_row


def _bounds(rows: Rows, begin_row: Rows) -> NDArray[np.intp]:
    """Where in the sorted rows those of each attempt begin, and where the last one's end; the first attempt has what
    comes before it. Not for late ends, which stand among the rows of another one."""
    if len(begin_row) == 0:
        return np.zeros(1, dtype=np.intp)
    return np.concatenate(([0], search(rows, begin_row[1:]), [len(rows)])).astype(np.intp)


def _last_of_each(rows: Rows, bounds: NDArray[np.intp]) -> Rows:
    """The last of the given rows in each attempt; -1 where it has none."""
    if len(rows) == 0:
        return np.full(len(bounds) - 1, -1, dtype=np.intp)
    return np.where(bounds[1:] > bounds[:-1], rows[bounds[1:] - 1], -1)


def _last_progress(
    table: EventTable, checkpoints: Rows, bounds: NDArray[np.intp], last: Rows, endings: Rows, of_row: Rows
) -> Rows:
    """The last load, or step above all before, of each attempt of a checkpoint log. Only those attempts are looked at
    in which an end stands before the last checkpoint event: elsewhere it makes no difference."""
    owner = of_row[endings]
    found = last.copy()
    for attempt in np.flatnonzero(np.bincount(owner[endings < last[owner]], minlength=len(last))).tolist():
        rows = checkpoints[bounds[attempt] : bounds[attempt + 1]]
        loads = rows[table.kind[rows] == Kind.LOAD]
        found[attempt] = max((rows[np.argmax(table.step[rows])], *loads[-1:]))
    return found


def _endings(table: EventTable, of_row: Rows) -> Rows:
    """Rows of all terminations and ends; one before the first attempt's start line ended nothing that is seen."""
    rows = rows_of(table.kind, ENDINGS)
    rows = rows[of_row[rows] >= 0]
    starts = table.kind == Kind.START
    first = int(np.argmax(starts))
    before_any = starts.any() and not np.any(of_kind(table.kind[:first], PROGRESS_KINDS))
    return rows[rows > first] if before_any else rows
