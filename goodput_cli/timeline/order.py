"""Order and identity of events (accounting §1): whatever way the lines arrive, the engine sees one sequence."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from goodput_cli.events.schema import Edge, EventTable, Kind
from goodput_cli.timeline.columns import distinct, of_kind

Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]

_AFTER_AN_END = 64
"""Added to the rank of what begins an attempt at the very instant at which another one ended."""
_BEGINS_AN_ATTEMPT = (
    Kind.START, Kind.TPU_INIT, Kind.PREP, Kind.RESTORE, Kind.LOAD, Kind.DATA,
    Kind.ELASTIC_DOWN, Kind.ELASTIC_UP, Kind.ELASTIC_REINIT, Kind.STEP,
)  # fmt: skip
ENDINGS = (Kind.TERMINATED, Kind.CRASHED, Kind.USER_TERMINATED, Kind.JOB_FINISHED, Kind.JOB_END)
"""Kinds that are a termination or an end line."""


@dataclass(frozen=True)
class Ordered:
    """Events of one job in the order of accounting §1, each once. `duplicates`: the rows of `given` left out."""

    table: EventTable
    given: EventTable
    duplicates: Rows


def in_order(table: EventTable) -> Ordered:
    """The events of one job sorted by their own time, ties by kind, identical ones once."""
    by_time = np.argsort(table.time, kind="stable")
    tied = _tied(table.time[by_time])
    rows = by_time.copy()
    if tied.any():
        group = table.take(by_time[tied])
        rows[tied] = by_time[tied][_tie_order(group)]
    ordered = table.take(rows)
    repeated = _repeats(ordered, _tied(ordered.time))
    return Ordered(ordered.take(~repeated) if repeated.any() else ordered, ordered, np.flatnonzero(repeated))


def seen_at(table: EventTable, as_of: int) -> EventTable:
    """What was known at the instant `as_of` (ns): later events are not seen, an interval that spans it is cut."""
    seen = table.take(table.time <= as_of)
    return replace(seen, end=np.minimum(seen.end, as_of))


def _tied(time: NDArray[np.int64]) -> Mask:
    """Mask of the rows of a sorted column that share their instant with a neighbour."""
    tied = np.zeros(len(time), dtype=bool)
    same = time[1:] == time[:-1]
    tied[1:] |= same
    tied[:-1] |= same
    return tied


def _tie_order(group: EventTable) -> Rows:
    """Order of rows that share instants. Every column takes part, so that the order of arrival never does."""
    return np.lexsort(
        (
            group.line,
            group.source,
            _rank_by_content(group.details, group.detail),
            _rank_by_content(group.labels, group.label),
            group.rank,
            group.step,
            group.end,
            _tie_rank(group),
            group.time,
        )
    ).astype(np.intp)


def _tie_rank(group: EventTable) -> NDArray[np.int64]:
    """Rank of each row within its instant: the kind, but an attempt never begins before another's end.

    Kinds that begin an attempt move with the start line: at the instant at which one life ends and the next begins,
    the first start-up event is the new life's. End edges stay: they close what the old life left open.
    """
    rank = group.kind.astype(np.int64)
    starting = distinct(group.time[group.kind == Kind.START])
    ending = distinct(group.time[of_kind(group.kind, ENDINGS)])
    handover = np.intersect1d(starting, ending, assume_unique=True)
    if len(handover) == 0:
        return rank * 4 + group.edge
    moves = of_kind(group.kind, _BEGINS_AN_ATTEMPT) & (group.edge != Edge.END) & np.isin(group.time, handover)
    return (rank + np.where(moves, _AFTER_AN_END, 0)) * 4 + group.edge


def _rank_by_content(values: tuple[object, ...], codes: NDArray[np.int32]) -> NDArray[np.int64]:
    """Codes as ranks of the values they stand for, so that numbers given by arrival do not decide; NONE comes first.

    Only values that occur are looked at: every save has a detail of its own, and few of them share an instant.
    """
    used = distinct(codes)
    order = sorted(used.tolist(), key=lambda code: "" if code < 0 else f" {values[code]!r}")
    ranks = np.empty(len(used), dtype=np.int64)
    ranks[np.searchsorted(used, np.array(order, dtype=used.dtype))] = np.arange(len(used))
    return ranks[np.searchsorted(used, codes)]


def _repeats(table: EventTable, tied: Mask) -> Mask:
    """Mask of rows that say what an earlier row says: equal in every field, or the same Cloud Logging entry."""
    repeated = np.zeros(len(table), dtype=bool)
    candidates = np.flatnonzero(tied)
    if len(candidates):
        left, right = candidates[:-1], candidates[1:]
        same = np.ones(len(left), dtype=bool)
        for column in ("time", "kind", "edge", "end", "step", "rank", "label", "detail"):
            values = getattr(table, column)
            same &= values[left] == values[right]
        repeated[right[same]] = True
    entered = np.flatnonzero(table.entry >= 0)
    if len(entered):
        key = (table.entry[entered].astype(np.int64) << 8) | (table.kind[entered].astype(np.int64) << 2)
        key |= table.edge[entered]
        _, first = np.unique(key, return_index=True)
        again = np.ones(len(entered), dtype=bool)
        again[first] = False
        repeated[entered[again]] = True
    return repeated
