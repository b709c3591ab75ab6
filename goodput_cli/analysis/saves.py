"""Saves: how many checkpoints were saved, and how far apart. What they cost is in the ledger."""

from __future__ import annotations

import numpy as np

from goodput_cli.analysis.results import Saves
from goodput_cli.events.schema import Kind
from goodput_cli.timeline.build import Timeline
from goodput_cli.timeline.columns import rows_of


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
    attempt = timeline.attempts.of_row[rows].astype(np.int64)
    firsts = np.sort(np.unique(np.column_stack((attempt, table.step[rows])), axis=0, return_index=True)[1])
    time, attempt = table.time[rows][firsts], attempt[firsts]
    apart = np.diff(time)[np.diff(attempt) == 0]
    return Saves(len(firsts), float(np.median(apart)) / 1e9 if len(apart) else None)
