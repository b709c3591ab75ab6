"""Saves: how many checkpoints were saved, and how far apart. What they cost is in the ledger."""

from __future__ import annotations

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import rows_of, run_heads
from goodput_cli.analysis.results import Saves
from goodput_cli.events.schema import Kind


def saves_inside(timeline: Timeline, start: int, end: int) -> Saves | None:
    """The saves that began inside [start, end) (ns); None where the job logs none.

    The reports of several hosts, and an Orbax save and a `checkpoint_saved` line, of one step in one attempt are one
    save, which began with the first of them. Intervals are those between the beginnings of two saves in a row of the
    same attempt: the time a disruption takes is not between two saves.
    """
    table = timeline.table
    rows = rows_of(table.kind, (Kind.SAVE, Kind.SAVED))
    if len(rows) == 0:
        return None
    rows = rows[(table.time[rows] >= start) & (table.time[rows] < end)]
    rows = rows[np.argsort(table.time[rows], kind="stable")]
    step, attempt = table.step[rows], timeline.attempts.of_row[rows]
    by_step = np.lexsort((step, attempt))
    firsts = np.sort(by_step[run_heads(step[by_step]) | run_heads(attempt[by_step])])
    time, attempt = table.time[rows][firsts], attempt[firsts]
    apart = np.diff(time)[attempt[1:] == attempt[:-1]]
    return Saves(len(firsts), float(np.median(apart)) / 1e9 if len(apart) else None)
