"""How attempts ended (accounting §3): clean ends and whether they are believed, crashes, the last sign of life."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.attempts import CLEAN_KINDS, STARTUP_KINDS, Attempts
from goodput_cli.accounting.attempts.beginnings import find_beginnings
from goodput_cli.accounting.columns import first_of_each, last_of_each, of_kind, positions
from goodput_cli.arrays import I64, Mask, Rows
from goodput_cli.events.schema import EventTable, Kind


class End(IntEnum):
    """What the lines behind the last progress of an attempt say of its end."""

    NOT_LOGGED = 0
    TERMINATED = 1
    CRASHED = 2
    CLEAN = 3


END_NAMES = ("not_logged", "terminated", "crashed", "clean")


@dataclass(frozen=True)
class Endings:
    """How attempts ended: columns of one value an attempt."""

    how: NDArray[np.int8]
    """`End`."""
    clean_row: Rows
    """Row of the believed clean end, -1 without."""
    crash_row: Rows
    """Row of the first `job_crashed` of those that ended in a crash, -1 of others."""

    @property
    def down(self) -> Mask:
        """Whether a crash left the attempt down."""
        return np.asarray(self.how == End.CRASHED)


def find_endings(table: EventTable, attempts: Attempts) -> Endings:
    """How each attempt ended.

    A `job_terminated` behind a crash is written on the way out of it and says nothing more. A crash behind a clean
    end leaves the job down while nothing follows; what was said to be a planned end stays one once it has gone on.
    """
    rows, count = attempts.closing, len(attempts)
    owner, kind = attempts.of_row[rows], table.kind[rows]
    crashed = kind == Kind.CRASHED
    first_crash = first_of_each(rows[crashed], owner[crashed], count)
    last_crash = last_of_each(rows[crashed], owner[crashed], count)
    believed = (first_crash < 0) & _job_end_believed(table, attempts)
    clean = of_kind(kind, CLEAN_KINDS) & ((kind != Kind.JOB_END) | believed[owner])
    clean_row = first_of_each(rows[clean], owner[clean], count)
    contradicted = last_crash > last_of_each(rows[clean], owner[clean], count)
    contradicted[:-1] = False
    clean_row[contradicted] = -1
    how = np.zeros(count, dtype=np.int8)
    how[owner] = End.TERMINATED
    how[first_crash >= 0] = End.CRASHED
    how[clean_row >= 0] = End.CLEAN
    return Endings(how, clean_row, np.where(how == End.CRASHED, first_crash, -1))


def _job_end_believed(table: EventTable, attempts: Attempts) -> Mask:
    """The recorder's job end is not believed where the next attempt that steps redoes steps (step logs only)."""
    count = len(attempts)
    believed = np.ones(count, dtype=bool)
    if not attempts.step_log or count == 0:
        return believed
    bounds = attempts.step_bounds
    stepping = np.flatnonzero(bounds[1:] > bounds[:-1])
    if attempts.step_ends:
        began = find_beginnings(table, attempts).step[stepping]
        believed[stepping[:-1]] = began[1:] >= table.step[attempts.steps[bounds[1:][stepping] - 1]][:-1]
        return believed
    first, last = (table.step[attempts.steps[place[stepping]]] for place in (bounds[:-1], bounds[1:] - 1))
    believed[stepping[:-1]] = first[1:] > last[:-1]
    return believed


def last_signs_of_life(table: EventTable, attempts: Attempts) -> I64:
    """Last sign of life of each attempt (ns), before crediting a last step: the first termination or end after its
    last step or checkpoint; else the end of its last event, start-up events after its last progress left out. Of its
    steps, which are points, the last one is enough."""
    sign = attempts.begin.copy()
    stepping = np.flatnonzero(attempts.step_bounds[1:] > attempts.step_bounds[:-1])
    last_step = attempts.steps[attempts.step_bounds[1:][stepping] - 1]
    sign[stepping] = np.maximum(sign[stepping], table.end[last_step])
    others = positions((table.kind != Kind.STEP) & (attempts.of_row >= 0))
    owner = attempts.of_row[others]
    last_recorded = attempts.last_recorded[owner]
    silent = of_kind(table.kind[others], STARTUP_KINDS) & (last_recorded >= 0) & (others > last_recorded)
    np.maximum.at(sign, owner[~silent], table.end[others[~silent]])
    logged = attempts.first_ending >= 0
    sign[logged] = table.time[attempts.first_ending[logged]]
    return sign
