"""Sweep over claims (accounting §5): if claims overlap, the one with the lowest priority number gets the time."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from goodput_cli.accounting.columns import codes_in, row_type, run_heads
from goodput_cli.arrays import I64, Mask, Rows, blocks
from goodput_cli.events.schema import NO_STEP, NONE

_LONG_AGO = np.iinfo(np.int64).min // 2
"""Lower than any time; differences to it fit into 64 bits."""


class Claims(Struct, frozen=True):
    """k claims of time, each with a begin, an end and an activity of the job: columns of length k."""

    start: I64
    end: I64
    """ns."""
    priority: NDArray[np.int8]
    """`Priority`: the lowest number of overlapping claims wins."""
    category: NDArray[np.int8]
    """`Category`."""
    label: NDArray[np.int32]
    """Code of the user's label, NONE without."""
    attempt: NDArray[np.int32]
    """Attempt of each, from 0; -1 for none."""
    first: I64
    stop: I64
    """The steps first <= s < stop that it concerns, or `NO_STEP`."""
    row: NDArray[np.intp]
    end_row: NDArray[np.intp]
    """Rows of the events that bound it; -1 without one."""

    def __len__(self) -> int:
        return len(self.start)

    def take(self, chosen: Mask | slice) -> Claims:
        """Return the chosen claims."""
        return Claims(*(column[chosen] for column in structs.astuple(self)))


_DTYPES: tuple[type[np.generic], ...] = (
    np.int64,
    np.int64,
    np.int8,
    np.int8,
    np.int32,
    np.int32,
    np.int64,
    np.int64,
    np.intp,
    np.intp,
)


def claim(
    start: object,
    end: object,
    priority: object,
    category: object,
    *,
    label: object = NONE,
    attempt: object = -1,
    first: object = NO_STEP,
    stop: object = NO_STEP,
    row: object = -1,
    end_row: object = -1,
) -> Claims:
    """Return claims; scalars are repeated. Columns are as long as `start` if that is one."""
    values = (start, end, priority, category, label, attempt, first, stop, row, end_row)
    if not isinstance(start, np.ndarray):
        columns = np.broadcast_arrays(*(np.atleast_1d(np.asarray(value)) for value in values))
        return Claims(*(column.astype(dtype) for column, dtype in zip(columns, _DTYPES, strict=True)))
    if len(start) == 0:
        return _NONE
    return Claims(*(_column(value, len(start), dtype) for value, dtype in zip(values, _DTYPES, strict=True)))


def _column(value: object, size: int, dtype: type[np.generic]) -> NDArray[Any]:
    if isinstance(value, np.ndarray) and value.ndim:
        return value.astype(dtype, copy=False)
    return np.full(size, value, dtype=dtype)


_NONE = Claims(*(np.zeros(0, dtype=dtype) for dtype in _DTYPES))


def join(parts: Iterable[Claims]) -> Claims:
    """Return all claims in one table, in the order given."""
    parts_with_claims = [part for part in parts if len(part)]
    if not parts_with_claims:
        return _NONE
    if len(parts_with_claims) == 1:
        return parts_with_claims[0]
    return Claims(*map(np.concatenate, zip(*map(structs.astuple, parts_with_claims), strict=True)))


class ClaimedTime(Struct, frozen=True, dict=True):
    """Result of the sweep: intervals in time order that do not overlap."""

    start: I64
    end: I64
    """ns."""
    claim: Rows
    """Position of the claim that gets each."""

    def __len__(self) -> int:
        return len(self.start)

    def net_clock(self, time: I64) -> I64:
        """Return the unclaimed time (ns) up to each time: it runs with the clock, and stops in claimed time."""
        place = np.searchsorted(self.start, time, side="right")
        inside = self._reach[place] - time
        return np.asarray(time - self._claimed_before[place] + np.maximum(inside, 0))

    def net_between(self, start: I64, end: I64) -> I64:
        """Return the unclaimed time (ns) in each of many intervals."""
        net = np.empty(len(start), dtype=np.int64)
        for first, stop in blocks(len(start)):
            net[first:stop] = self.net_clock(end[first:stop]) - self.net_clock(start[first:stop])
        return net

    def time_at_net(self, net: I64) -> I64:
        """Return the first time at which the net clock shows `net`: the inverse of `net_clock`."""
        return np.asarray(net + self._claimed_before[np.searchsorted(self._net_at_starts, net, side="left")])

    @cached_property
    def _claimed_before(self) -> I64:
        """Claimed time (ns) before each interval, and before the end."""
        return np.append(0, np.cumsum(self.end - self.start))

    @cached_property
    def _net_at_starts(self) -> I64:
        """Net clock at the start of each interval."""
        return self.start - self._claimed_before[:-1]

    @cached_property
    def _reach(self) -> I64:
        """End of the interval before each one, and of the last one."""
        return np.append(_LONG_AGO, self.end)


def sweep(claims: Claims, start: int, end: int) -> ClaimedTime:
    """Assign all time of [start, end) (ns) to the claim with the lowest priority number. Of equals, the one that
    started later wins (of those that started together, the shorter one; then the earlier row)."""
    edges, opens, closes = edges_of(claims.start, claims.end, start, end)
    if len(edges) < 2:
        nothing = np.zeros(0, dtype=np.int64)
        return ClaimedTime(nothing, nothing, np.zeros(0, dtype=np.intp))
    winner = np.full(len(edges) - 1, -1, dtype=opens.dtype)
    for priority in codes_in(claims.priority):
        mine = _order_claims(claims, (claims.priority == priority).nonzero()[0])
        if (opens[mine[1:]] >= closes[mine[:-1]]).all():
            cells, of_claim = cells_inside(opens[mine], closes[mine])
        else:
            cells = np.flatnonzero(winner < 0)
            of_claim = _latest_open(claims.start[mine], claims.end[mine], edges[cells])
            cells, of_claim = cells[of_claim >= 0], of_claim[of_claim >= 0]
        free = winner[cells] < 0
        winner[cells[free]] = mine[of_claim[free]]
    return _merge_cells(edges, winner)


def edges_of(begins: I64, ends: I64, start: int, end: int) -> tuple[I64, Rows, Rows]:
    """Return all times of [start, end] (ns) at which an interval begins or ends, sorted, and the positions of each
    interval's begin and end. Both are equal if no part of it is inside."""
    size = len(begins)
    instants = np.empty(2 * size, dtype=np.int64)
    instants[:size], instants[size:] = begins, ends
    np.minimum(np.maximum(instants, start, out=instants), end, out=instants)
    np.maximum(instants[:size], instants[size:], out=instants[size:])
    order = np.argsort(instants, kind="stable")
    instants = instants[order]
    heads = run_heads(instants)
    place = np.empty(len(order), dtype=row_type(len(order)))
    place[order] = np.cumsum(heads, dtype=place.dtype)
    place -= 1
    return instants[heads], place[:size], place[size:]


def _order_claims(claims: Claims, chosen: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the chosen claims in order: a claim that wins time from another one comes after it."""
    start = claims.start[chosen]
    if (start[1:] > start[:-1]).all():
        return chosen
    return chosen[np.lexsort((-claims.row[chosen], -claims.end[chosen], start))]


def cells_inside(first: Rows, stop: Rows) -> tuple[Rows, NDArray[np.intp]]:
    """Return the cells first <= cell < stop of all intervals in sequence, and the interval of each cell."""
    size = stop - first
    if (size == 1).all():
        return first, np.arange(len(first))
    of_interval = np.repeat(np.arange(len(first)), size)
    behind = np.cumsum(size) - size
    return np.arange(len(of_interval)) + (first - behind)[of_interval], of_interval


def _merge_cells(edges: I64, winner: Rows) -> ClaimedTime:
    """Merge adjacent cells of one claim into one interval; cells without a claim are left out."""
    first = run_heads(winner).nonzero()[0]
    claimed = (winner[first] >= 0).nonzero()[0]
    stop = np.append(first[1:], len(winner))[claimed]
    first = first[claimed]
    return ClaimedTime(edges[first], edges[stop], winner[first])


def _latest_open(start: I64, end: I64, time: I64) -> NDArray[np.intp]:
    """Return for each time the last interval (sorted by start) that contains it, or -1."""
    last = np.searchsorted(start, time, side="right") - 1
    return _last_above(end, last, time)


def _last_above(values: I64, place: NDArray[np.intp], limit: I64) -> NDArray[np.intp]:
    """Return the last position at or before `place` whose value is above `limit`, or -1, by doubling steps to the left.

    `highest[k][i]` is the highest of the 2^k values that end at i; a jump is safe if none of them is above.
    """
    highest = [values]
    while 2 ** len(highest) <= len(values):
        width = 2 ** (len(highest) - 1)
        wider = highest[-1].copy()
        np.maximum(wider[width:], highest[-1][:-width], out=wider[width:])
        highest.append(wider)
    last = place.copy()
    for level in range(len(highest) - 1, -1, -1):
        jumps = _below(highest[level], last, limit)
        last = np.where(jumps, np.maximum(last - 2**level, -1), last)
    return last


def _below(values: I64, place: NDArray[np.intp], limit: I64) -> Mask:
    return np.asarray((place >= 0) & (values[np.maximum(place, 0)] <= limit))
