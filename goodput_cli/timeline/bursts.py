"""Start bursts (accounting §3): many ranks write one start line each, and together they are one start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goodput_cli.events.schema import NONE, Kind
from goodput_cli.timeline.columns import Rows, rows_of, search
from goodput_cli.timeline.order import ENDINGS


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


@dataclass(slots=True)
class _Burst:
    """The burst being read. `ended_before`: ranks that ended in the attempt before it."""

    first: int
    last: int
    ranks: set[int]
    has_attempt_before: bool
    ended_before: set[int]
    open: bool = True


def find_bursts(kind: NDArray[np.int8], rank: NDArray[np.int32], breakers: Rows) -> Bursts:
    """Group the start lines of one job (rows in time order) into bursts.

    breakers: rows of steps and checkpoint events, which end a burst (terminations and ends do too, but for late
    ones: lines of the attempt before, by a rank that has not started again yet and has not ended there).
    """
    start, terminated, crashed = int(Kind.START), int(Kind.TERMINATED), int(Kind.CRASHED)
    control = rows_of(kind, (Kind.START, *ENDINGS))
    broken = search(breakers, control)
    bursts: list[_Burst] = []
    late: list[tuple[int, int]] = []
    ended: set[int] = set()
    breaks_seen = 0
    for row, breaks, what, who in zip(
        control.tolist(), broken.tolist(), kind[control].tolist(), rank[control].tolist(), strict=True
    ):
        burst = bursts[-1] if bursts else None
        if burst is not None and breaks != breaks_seen:
            burst.open = False
        breaks_seen = breaks
        if what != start:
            if burst is not None and burst.open and (what in (terminated, crashed)) and _is_late(burst, who):
                burst.ended_before.add(who)
                late.append((row, len(bursts) - 1))
                continue
            ended.add(who)
            if burst is not None:
                burst.open = False
        elif burst is not None and burst.open and who not in burst.ranks:
            burst.ranks.add(who)
            burst.last = row
        else:
            bursts.append(_Burst(row, row, {who}, burst is not None or breaks > 0, ended))
            ended = set()
    return Bursts(
        np.array([burst.first for burst in bursts], dtype=np.intp),
        np.array([burst.last for burst in bursts], dtype=np.intp),
        np.array([row for row, _ in late], dtype=np.intp),
        np.array([position for _, position in late], dtype=np.intp),
    )


def _is_late(burst: _Burst, rank: int) -> bool:
    """Whether a termination inside an open burst still belongs to the attempt before it."""
    return (
        burst.has_attempt_before
        and rank != NONE
        and burst.ranks != {NONE}
        and rank not in burst.ranks
        and rank not in burst.ended_before
    )
