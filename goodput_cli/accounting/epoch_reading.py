"""The other reading of steps that begin to count again (accounting §7): they are the next epoch of one process."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.attempts import Attempts
from goodput_cli.accounting.attempts.endings import End
from goodput_cli.accounting.order import OrderedEvents
from goodput_cli.arrays import I64, Mask, Rows
from goodput_cli.events.schema import NEXT_EPOCH, NO_STEP, NONE, EventTable, Kind


def find_unnamed_epochs(table: EventTable, attempts: Attempts, how: NDArray[np.int8], died: Mask) -> Rows:
    """Return the rows at which steps begin to count again, in an attempt that no line opened and after one whose end no
    line shows. how: `End` of each attempt. died: those that an exception ended."""
    rows = np.flatnonzero(table.detail == table.details.index(NEXT_EPOCH))
    attempt = attempts.of_row[rows]
    rows, attempt = rows[attempt > 0], attempt[attempt > 0]
    before = attempt - 1
    is_open = ~attempts.started[attempt] & ~attempts.rolled_back[attempt]
    return np.asarray(rows[is_open & (how[before] == End.NOT_LOGGED) & ~died[before]])


def with_continued_steps(table: EventTable, marked: Rows) -> OrderedEvents:
    """Return the events of a job, where each writer's steps go on at the marked rows instead of beginning again."""
    step = table.step.copy()
    has_step = table.step != NO_STEP
    is_record = has_step & (table.kind == Kind.STEP)
    for writer in np.unique(table.writer[marked]).tolist():
        rows = np.flatnonzero((table.writer == writer) & has_step)
        records = np.flatnonzero((table.writer == writer) & is_record)
        begins = np.unique(np.searchsorted(records, _begin_of(table, records, marked[table.writer[marked] == writer])))
        stride = _stride(table.step[records])
        ahead = np.zeros(len(records), dtype=np.int64)
        for begin in begins[begins > 0].tolist():
            last, first = table.step[records[begin - 1 : begin + 1]].tolist()
            ahead[begin] = last + stride - first
        total = np.cumsum(ahead)
        place = np.searchsorted(records, rows, side="right") - 1
        step[rows] += np.where(place >= 0, total[place], 0)
    detail = table.detail.copy()
    detail[marked] = NONE
    changed = replace(table, step=step, detail=detail)
    return OrderedEvents(changed, changed, np.zeros(0, dtype=np.intp))


def _begin_of(table: EventTable, records: Rows, marked: Rows) -> Rows:
    """Return the record of each mark: the last one that is not after it."""
    last = np.searchsorted(table.time[records], table.time[marked], side="right") - 1
    return records[np.maximum(last, 0)]


def _stride(step: I64) -> int:
    ahead = np.diff(step)
    ahead = np.sort(ahead[ahead > 0])
    return int(ahead[(len(ahead) - 1) // 2]) if len(ahead) else 1
