"""Start lines of ranks without numbers (accounting §3, Ranks without numbers): which of them are one start."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.columns import of_kind, search
from goodput_cli.arrays import Rows
from goodput_cli.events.schema import NONE, Edge, EventTable, Kind

if TYPE_CHECKING:
    from goodput_cli.accounting.attempts.bursts import Bursts

STARTUP_PHASES = (Kind.TPU_INIT, Kind.PREP, Kind.ELASTIC_DOWN, Kind.ELASTIC_UP, Kind.ELASTIC_REINIT)
"""Start-up events that have a start and an end line."""

_TOGETHER_NS = 60 * 10**9


def burst_mates(table: EventTable, control: Rows, recorded: Rows) -> NDArray[np.bool_]:
    """Which of the rows in `control` (starts, terminations and ends) are start lines without a rank, of an unknown
    writer, that belong to the burst of the start line before them.

    recorded: rows of steps and checkpoint events.
    """
    mates = np.zeros(len(control), dtype=bool)
    plain = (table.kind[control] == Kind.START) & (table.rank[control] == NONE) & (table.writer[control] == NONE)
    between = search(recorded, control)
    follows = np.zeros(len(control), dtype=bool)
    follows[1:] = plain[1:] & plain[:-1] & (between[1:] == between[:-1])
    if not follows.any():
        return mates
    lives = _Lives(table, control)
    heads = np.flatnonzero(~follows & np.append(follows[1:], False))
    for head in heads.tolist():
        size = 1 + int(np.argmin(np.append(follows[head + 1 :], False)))
        before = lives.ranks_before(head)
        _mark(
            mates, table.time[control[head : head + size]], head, lives.ranks_behind(head + size - 1) or before, before
        )
    return mates


def closing_lines(table: EventTable, bursts: Bursts) -> Rows:
    """End lines of start-up phases that close what one of several ranks without numbers began: these show no new
    start. Only the lives of such ranks are looked at."""
    closing: list[int] = []
    stop_of = np.append(bursts.first[1:], len(table))
    for burst in np.flatnonzero(bursts.unnumbered > 1).tolist():
        start, stop = int(bursts.first[burst]), int(stop_of[burst])
        rows = start + np.flatnonzero(of_kind(table.kind[start:stop], STARTUP_PHASES))
        opened: Counter[tuple[int, int]] = Counter()
        columns = (table.kind[rows].tolist(), table.label[rows].tolist(), table.edge[rows].tolist(), rows.tolist())
        for kind, label, edge, row in zip(*columns, strict=True):
            if edge == Edge.BEGIN:
                opened[kind, label] += 1
            elif edge == Edge.END and opened[kind, label]:
                opened[kind, label] -= 1
                closing.append(row)
    return np.array(closing, dtype=np.intp)


def _mark(mates: NDArray[np.bool_], time: NDArray[np.int64], head: int, ranks: int, ranks_before: int) -> None:
    """Start lines with nothing in between, from the last one back: bursts of at most `ranks` lines (of those before the
    last burst: `ranks_before`) within 60 s."""
    stop = len(time)
    while stop:
        first = max(stop - ranks, int(np.searchsorted(time[:stop], time[stop - 1] - _TOGETHER_NS)))
        mates[head + first + 1 : head + stop] = True
        stop, ranks = first, ranks_before


class _Lives:
    """What lies between one start line and the next: by how many ranks its steps were reported."""

    def __init__(self, table: EventTable, control: Rows) -> None:
        starts = np.flatnonzero(table.kind[control] == Kind.START)
        self._steps = np.flatnonzero(table.kind == Kind.STEP)
        self._number = table.step
        self._life_of = np.cumsum(table.kind[control] == Kind.START)
        bounds = search(self._steps, control[starts])
        self._bounds = np.concatenate(([0], bounds, [len(self._steps)]))
        some = np.diff(self._bounds) > 0
        self._last_with_steps = np.maximum.accumulate(np.where(some, np.arange(len(some)), -1))

    def ranks_behind(self, place: int) -> int:
        """The largest number of reports of one step between the start line at this place of `control` and the next;
        0 without a step."""
        return self._reports(int(self._life_of[place]))

    def ranks_before(self, place: int) -> int:
        """The same of the last life with a step before that start line; 1 without any."""
        life = int(self._last_with_steps[int(self._life_of[place]) - 1])
        return self._reports(life) if life >= 0 else 1

    def _reports(self, life: int) -> int:
        rows = self._steps[self._bounds[life] : self._bounds[life + 1]]
        if len(rows) == 0:
            return 0
        return int(np.unique(self._number[rows], return_counts=True)[1].max())
