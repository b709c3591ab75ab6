"""Regions, the rows from one start burst to the next: which of them may hold a restart that no start line shows.

Most hold none, and that is seen for all of them at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from goodput_cli.accounting.columns import search
from goodput_cli.arrays import Places, Rows

if TYPE_CHECKING:
    from goodput_cli.accounting.attempts.restarts import StepRecords

_NOWHERE = np.iinfo(np.intp).max


def regions_with_restarts(records: StepRecords, start: Rows, stop: Rows) -> Places:
    """Step logs: the regions start <= row < stop that have to be walked through.

    In the others every step is above the one before, and no step and nothing that resumes stands behind an end line.
    """
    first, last = search(records.row, start), search(records.row, stop)
    falls = np.flatnonzero(records.number[1:] <= records.number[:-1]) + 1  # not above the one before
    inside = search(falls, last) > search(falls, np.minimum(first + 1, last))
    ending = _next(records.endings, start)
    lives_on = (_next(records.row, ending) < stop) | (_next(records.resuming, ending) < stop)
    return np.flatnonzero(inside | lives_on)


def checkpoint_regions_with_restarts(
    progress: Rows, loads: Rows, endings: Rows, resuming: Rows, start: Rows, stop: Rows
) -> Places:
    """Checkpoint logs: the regions that hold a load after progress, or something that resumes after an end line."""
    load = _next(loads, _next(progress, start))
    lost = _next(resuming, _next(endings, start))
    return np.flatnonzero(np.minimum(load, lost) < stop)


def _next(rows: Rows, after: Rows) -> Rows:
    """First of the sorted rows at or after each of `after`; beyond all rows where there is none."""
    following = np.full(len(after), _NOWHERE)
    place = search(rows, after)
    exists = place < len(rows)
    following[exists] = rows[place[exists]]
    return following
