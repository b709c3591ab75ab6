"""Runs (accounting §10): a job name that was used again, from scratch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.attempts import CLEAN_KINDS, Attempts
from goodput_cli.accounting.attempts.beginnings import find_beginnings
from goodput_cli.accounting.columns import of_kind, rows_of
from goodput_cli.events.schema import CHECKPOINT_KINDS, NO_STEP, EventTable, Kind


def find_runs(table: EventTable, attempts: Attempts) -> list[int]:
    """Rows at which runs begin, the first at row 0: a start after a clean end whose attempt begins again at or below
    the run's first step. Any clean end will do here, believed or not: redone steps are what makes a new run."""
    began = _first_steps(table, attempts)
    ended = _clean_ends(table, attempts)
    starts = [0]
    run_first: int | None = None
    candidate: int | None = None
    for attempt in range(len(attempts)):
        if candidate is None and attempt and ended[attempt - 1] and attempts.started[attempt]:
            candidate = attempt
        if began[attempt] == NO_STEP:
            continue
        if run_first is None:
            run_first = int(began[attempt])
        elif candidate is not None and began[attempt] <= run_first:
            starts.append(_with_schedule(table, int(attempts.begin_row[candidate])))
            run_first = int(began[attempt])
        candidate = None
    return starts


def _first_steps(table: EventTable, attempts: Attempts) -> NDArray[np.int64]:
    """First recorded step of each attempt (a load counts; of step ends: where it began), `NO_STEP` without any."""
    first = np.full(len(attempts), NO_STEP, dtype=np.int64)
    if attempts.step_ends:
        return find_beginnings(table, attempts).step
    if attempts.step_log:
        bounds = attempts.step_bounds
        stepping = np.flatnonzero(bounds[1:] > bounds[:-1])
        first[stepping] = table.step[attempts.steps[bounds[stepping]]]
        return first
    rows = rows_of(table.kind, CHECKPOINT_KINDS)
    first[attempts.of_row[rows][::-1]] = table.step[rows][::-1]
    return first


def _clean_ends(table: EventTable, attempts: Attempts) -> NDArray[np.bool_]:
    """Whether an attempt's last end line, terminations aside, is a clean one."""
    rows = attempts.closing[table.kind[attempts.closing] != Kind.TERMINATED]
    clean = np.zeros(len(attempts), dtype=bool)
    clean[attempts.of_row[rows]] = of_kind(table.kind[rows], CLEAN_KINDS)
    return clean


def _with_schedule(table: EventTable, row: int) -> int:
    """A run takes the `user_scheduled` lines directly before its start with it; heartbeats may stand between."""
    first = row
    while row > 0 and table.kind[row - 1] in (Kind.SCHEDULED, Kind.SLICES, Kind.HEARTBEAT):
        row -= 1
        first = first if table.kind[row] == Kind.HEARTBEAT else row
    return first
