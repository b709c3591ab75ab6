"""Downtime (accounting §3 and §4): time in which no attempt of the job was alive, and in which it was coming up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.attempts import Attempts
from goodput_cli.accounting.attempts.endings import End, Endings
from goodput_cli.accounting.claims.priority import Priority
from goodput_cli.accounting.sweep import Claims, claim, join
from goodput_cli.accounting.training.checkpoints import CheckpointProgress
from goodput_cli.arrays import I64, Rows
from goodput_cli.events.schema import EventTable
from goodput_cli.vocabulary.categories import Category


def downtime(
    table: EventTable,
    attempts: Attempts,
    endings: Endings,
    sign_of_life: I64,
    progress: CheckpointProgress | None,
    job_end: int,
) -> Claims:
    """From each attempt's last sign of life to the next start, and on until the last rank of that one is up.

    sign_of_life: ns, one an attempt. progress: of checkpoint logs. job_end: ns.
    """
    dead = np.arange(max(len(attempts) - 1, 0))
    clean = endings.how[dead] == End.CLEAN
    unlogged = _death_unlogged(attempts, progress, dead)
    recovering, stopped = dead[~unlogged & ~clean], dead[clean]
    clean_row = endings.clean_row
    return join(
        (
            _after_last_crash(table, endings, len(attempts) - 1, job_end),
            _coming_up(attempts, dead + 1, clean),
            _undetermined(attempts, progress, dead[unlogged]),
            _until_next_start(attempts, recovering, sign_of_life, attempts.first_ending, Category.RECOVERY),
            _until_next_start(attempts, stopped, table.time[clean_row], clean_row, Category.STOPPED),
        )
    )


def _after_last_crash(table: EventTable, endings: Endings, last: int, job_end: int) -> Claims:
    """A crash after which nothing of the job came: recovery, still going on."""
    if last < 0 or not endings.down[last]:
        return join([])
    row = endings.crash_row[last]
    return claim(table.time[row], job_end, Priority.DOWNTIME, Category.RECOVERY, attempt=last, row=row)


def _coming_up(attempts: Attempts, chosen: Rows, stopped: NDArray[np.bool_]) -> Claims:
    """From the first to the last start line of each chosen attempt. stopped: whether a planned stop came before it."""
    return claim(
        attempts.begin[chosen],
        attempts.up[chosen],
        Priority.DOWNTIME,
        np.where(stopped, Category.STOPPED, Category.RECOVERY),
        attempt=chosen,
        row=attempts.begin_row[chosen],
        end_row=attempts.up_row[chosen],
    )


def _death_unlogged(attempts: Attempts, progress: CheckpointProgress | None, dead: Rows) -> NDArray[np.bool_]:
    """Checkpoint logs: whether nothing logged the end of an attempt that had loaded or progressed."""
    if progress is None:
        return np.zeros(len(dead), dtype=bool)
    return np.asarray((attempts.first_ending[dead] < 0) & (progress.position_row[dead] >= 0))


def _undetermined(attempts: Attempts, progress: CheckpointProgress | None, dead: Rows) -> Claims:
    """From the last progress of attempts that died at a moment that nobody logged to the next start."""
    if progress is None:
        return join([])
    return claim(
        progress.position[dead],
        attempts.begin[dead + 1],
        Priority.DOWNTIME,
        Category.UNDETERMINED,
        attempt=dead,
        row=progress.position_row[dead],
        end_row=attempts.begin_row[dead + 1],
    )


def _until_next_start(attempts: Attempts, dead: Rows, start: I64, row: Rows, category: Category) -> Claims:
    """From an instant of each dead attempt to the next start. start, row: ns and event, one an attempt."""
    return claim(
        start[dead],
        attempts.begin[dead + 1],
        Priority.DOWNTIME,
        category,
        attempt=dead,
        row=row[dead],
        end_row=attempts.begin_row[dead + 1],
    )


def planned_stops_excluded(downtime: Claims) -> Claims:
    """The planned stops of some downtime as excluded time (`--exclude-stopped`)."""
    stops = downtime.category == Category.STOPPED
    return claim(
        downtime.start[stops],
        downtime.end[stops],
        Priority.EXCLUDED,
        Category.EXCLUDED,
        attempt=downtime.attempt[stops],
        row=downtime.row[stops],
        end_row=downtime.end_row[stops],
    )
