"""Why an attempt ended, where no line of its end says so (accounting §10): preemptions and elastic passages."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.attempts import Attempts
from goodput_cli.accounting.columns import first_of_each, of_kind, positions, rows_of, without
from goodput_cli.accounting.order import ENDINGS
from goodput_cli.arrays import Rows
from goodput_cli.events.schema import PREEMPTED, EventTable, Kind

_REACHED_PREEMPTION = PREEMPTED[0][0]
_LATEST_DEATH_NS = 600 * 10**9
"""An attempt that trains on so long behind a notice was not preempted."""
_PROGRESS = (Kind.STEP, Kind.FINISHED, Kind.SAVED)


class Elastic(IntEnum):
    """What an elastic passage shows."""

    NONE = 0
    SLICE_DOWN = 1
    SCALE_UP = 2


def preempted_saves(table: EventTable, attempts: Attempts) -> Rows:
    """The last save of each attempt that had reached a preemption, or a later notice of one behind which it did not
    train for more than 10 min; -1 without."""
    said = np.array([_is_preempted(detail) for detail in table.details] + [False], dtype=bool)
    rows = positions(of_kind(table.kind, (Kind.SAVE, Kind.HEARTBEAT)) & (attempts.of_row >= 0))
    rows = rows[said[table.detail[rows]]]
    trained = attempts.last_progress[attempts.of_row[rows]]
    late = (trained >= 0) & (table.time[trained] - table.time[rows] > _LATEST_DEATH_NS)
    rows = rows[(table.kind[rows] == Kind.SAVE) | ~late]
    saves = np.full(len(attempts), -1, dtype=np.intp)
    saves[attempts.of_row[rows]] = rows
    return saves


def _is_preempted(detail: object) -> bool:
    """Whether the details of an event, (key, value) pairs, say so. Loggers write the flag as a bool, 1 or text."""
    pairs = detail if isinstance(detail, tuple) else ()
    for pair in pairs:
        if isinstance(pair, tuple) and len(pair) == 2 and pair[0] == _REACHED_PREEMPTION:
            return pair[1] is True or pair[1] == 1 or str(pair[1]).lower() == "true"
    return False


def elastic_passages(table: EventTable, attempts: Attempts) -> tuple[NDArray[np.int8], Rows]:
    """What the passage behind each attempt shows (`Elastic`), and the first line that says so (-1: none).

    The passage holds what lies behind the attempt's last progress, and what of the next attempt lies before its first.
    One with a start line or a termination is no elastic passage.
    """
    count = len(attempts)
    cause, row = np.zeros(count, dtype=np.int8), np.full(count, -1, dtype=np.intp)
    if count < 2 or not np.any(of_kind(table.kind, (Kind.ELASTIC_DOWN, Kind.ELASTIC_UP))):
        return cause, row
    progress = without(rows_of(table.kind, _PROGRESS), attempts.dropped, len(table))
    progress = progress[attempts.of_row[progress] >= 0]
    first = first_of_each(progress, attempts.of_row[progress], count)
    first[first < 0] = len(table)
    for kinds, what in (((Kind.ELASTIC_UP,), Elastic.SCALE_UP), ((Kind.ELASTIC_DOWN,), Elastic.SLICE_DOWN)):
        passage, shown = _in_passages(table, attempts, kinds, first)
        cause[passage] = what
        row = np.where(cause == what, first_of_each(shown, passage, count), row)
    ended, _ = _in_passages(table, attempts, ENDINGS, first)
    cause[ended] = Elastic.NONE
    cause[:-1][attempts.started[1:]] = Elastic.NONE
    cause[-1] = Elastic.NONE
    return cause, np.where(cause == Elastic.NONE, -1, row)


def _in_passages(table: EventTable, attempts: Attempts, kinds: tuple[Kind, ...], first: Rows) -> tuple[Rows, Rows]:
    """The attempt behind which each row of some kinds lies in a passage, and the row, in order of rows."""
    rows = rows_of(table.kind, kinds)
    rows = rows[attempts.of_row[rows] >= 0]
    owner = attempts.of_row[rows].astype(np.intp)
    behind = rows > attempts.last_recorded[owner]
    before = (rows < first[owner]) & (owner > 0)
    passage = np.concatenate((owner[behind], owner[before] - 1))
    shown = np.concatenate((rows[behind], rows[before]))
    order = np.argsort(shown, kind="stable")
    return passage[order], shown[order]
