"""Start bursts (accounting §3): many ranks write one start line each, and together they are one start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.columns import rows_of, search
from goodput_cli.accounting.order import ENDINGS
from goodput_cli.arrays import Rows
from goodput_cli.events.schema import NONE, Kind


@dataclass(frozen=True)
class Bursts:
    """Start bursts in time order.

    first, last: row of the first and of the last start line of each burst.
    late_ends: rows of terminations that belong to the attempt before the burst in which they stand.
    burst_of_late_end: position of that burst, for each late end.
    """

    first: Rows
    last: Rows
    late_ends: Rows
    burst_of_late_end: Rows


def find_bursts(kind: NDArray[np.int8], rank: NDArray[np.int32], breakers: Rows) -> Bursts:
    """Group the start lines of one job (rows in time order) into bursts.

    breakers: rows of steps and checkpoint events, which end a burst (terminations and ends do too, but for late
    ones: lines of the attempt before, by a rank that has not started again yet and has not ended there).
    """
    start, terminated, crashed = int(Kind.START), int(Kind.TERMINATED), int(Kind.CRASHED)
    control = rows_of(kind, (Kind.START, *ENDINGS))
    broken = search(breakers, control)
    first: list[int] = []
    last: list[int] = []
    late: list[tuple[int, int]] = []
    # Of the burst being read: its ranks, whether there is an attempt before it, and the ranks that ended in that one.
    open_, ranks, attempt_before, ended_before = False, {NONE}, False, {NONE}
    ended: set[int] = set()
    breaks_seen = 0
    for row, breaks, what, who in zip(
        control.tolist(), broken.tolist(), kind[control].tolist(), rank[control].tolist(), strict=True
    ):
        if breaks != breaks_seen:
            breaks_seen, open_ = breaks, False
        if what == start and open_ and who not in ranks:
            ranks.add(who)
            last[-1] = row
        elif what == start:
            open_, ranks, attempt_before, ended_before = True, {who}, bool(first) or breaks > 0, ended
            first.append(row)
            last.append(row)
            ended = set()
        elif open_ and what in (terminated, crashed) and attempt_before and _is_late(who, ranks, ended_before):
            ended_before.add(who)
            late.append((row, len(first) - 1))
        else:
            ended.add(who)
            open_ = False
    return Bursts(
        np.array(first, dtype=np.intp),
        np.array(last, dtype=np.intp),
        np.array([row for row, _ in late], dtype=np.intp),
        np.array([position for _, position in late], dtype=np.intp),
    )


def _is_late(rank: int, ranks: set[int], ended_before: set[int]) -> bool:
    """Whether a termination inside an open burst still belongs to the attempt before it."""
    return rank != NONE and ranks != {NONE} and rank not in ranks and rank not in ended_before
