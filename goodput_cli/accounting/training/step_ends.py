"""Training spans of step-end logs (accounting §4): a span ends where its steps were done."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.attempts import Attempts
from goodput_cli.accounting.attempts.endings import End, Endings
from goodput_cli.accounting.claims.priority import Priority
from goodput_cli.accounting.columns import owner_type
from goodput_cli.accounting.sweep import Claims, claim
from goodput_cli.accounting.training.spans import StepRecordsByAttempt, TrainingSpans, first_behind
from goodput_cli.arrays import I64, Mask, Rows
from goodput_cli.events.schema import NONE, EventTable
from goodput_cli.vocabulary.categories import Category

_WHOLE_SECONDS_NS = 10**9
_MOST_NS = 2.0**62


def end_spans(
    table: EventTable, records: StepRecordsByAttempt, ending: int, reinitialised: tuple[Rows, I64]
) -> tuple[TrainingSpans, NDArray[np.intp]]:
    """One span from record to record, and one from where each attempt began to its first: what lies between, but for
    what the means of its steps leave over. As `step_spans`, with one span of no length and no step at the last record
    of each attempt, whose positions are returned too."""
    beginnings = records.beginnings
    assert beginnings is not None
    first_record = records.bounds[:-1]
    shown = np.flatnonzero(records.has)
    shown = shown[beginnings.step[shown] < records.number[first_record[shown]]]
    before = first_record[shown]
    rows = np.insert(records.rows.astype(np.intp), before, beginnings.row[shown])
    time = np.insert(records.time, before, beginnings.time[shown])
    number = np.insert(records.number.astype(np.int64), before, beginnings.step[shown])
    owner = np.insert(records.owner, before, shown.astype(owner_type(records.attempts)))
    bounds = np.searchsorted(owner, np.arange(records.attempts + 1)).astype(np.intp)
    last = bounds[1:][records.has] - 1
    end, stop = np.append(time[1:], time[-1:]), np.append(number[1:], number[-1:])
    end[last], stop[last] = time[last], number[last]
    start = time.copy()
    measured = np.ones(len(rows), dtype=bool)
    measured[bounds[:-1][shown[beginnings.started[shown]]]] = False
    _leave_gaps(table, rows, start, end, stop - number, measured)
    opening = np.zeros(len(rows), dtype=bool)
    opening[bounds[:-1][records.has]] = True
    opening[first_behind(start, bounds, reinitialised)] = True
    opening[last] = False
    return TrainingSpans(start, end, number, stop, owner, rows, None, opening, ending), last


def _leave_gaps(table: EventTable, rows: Rows, start: I64, end: I64, steps: I64, measured: Mask) -> None:
    """Begin spans later (`start` is filled in) where the mean of their steps leaves more than a little over."""
    chosen = np.flatnonzero(measured & (steps > 0))
    mean = table.step_time[np.append(rows, rows[-1:])[chosen + 1]]
    gap, slack = gaps_of_means(mean, end[chosen], end[chosen] - start[chosen], steps[chosen])
    long = gap > slack
    start[chosen[long]] += gap[long]


def gaps_of_means(mean: I64, end: I64, length: I64, steps: I64) -> tuple[I64, I64]:
    """How much longer (ns) than their steps took by their mean some stretches between records are (0 without a mean),
    and how much of it says nothing: 1 % of that time, and two seconds where the record's clock shows whole ones."""
    fits = steps.astype(np.float64) * mean < _MOST_NS
    took = np.where(fits, steps * np.where(fits, mean, 0), int(_MOST_NS))
    coarse = end % _WHOLE_SECONDS_NS == 0
    slack = took // 100 + np.where(coarse, 2 * _WHOLE_SECONDS_NS, 0)
    return np.where(mean == NONE, 0, length - took), np.where(mean == NONE, 0, slack)


def lost_behind(
    table: EventTable,
    attempts: Attempts,
    endings: Endings,
    records: StepRecordsByAttempt,
    sign_of_life: I64,
    trained_to: I64,
) -> Claims:
    """What is lost behind the last record of each attempt, or behind what is credited there: in attempts that others
    follow up to the last sign of life, in the last one up to a crash. Nothing before a believed clean end.

    trained_to: where (ns) the last span of each attempt ends.
    """
    until = attempts.cut_at_next(sign_of_life)
    last = len(attempts) - 1
    crash = int(endings.crash_row[last]) if last >= 0 else -1
    until[-1:] = table.time[crash] if crash >= 0 else trained_to[-1:]
    lost = np.flatnonzero(records.has & (endings.how != End.CLEAN) & (until > trained_to))
    return claim(
        trained_to[lost],
        until[lost],
        Priority.WASTED,
        Category.WASTED,
        attempt=lost,
        row=records.last_row[lost],
        end_row=attempts.first_ending[lost],
    )
