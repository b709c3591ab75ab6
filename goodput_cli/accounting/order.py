"""Order and identity of events (accounting §1): the engine sees one sequence, whatever the order of the lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from goodput_cli.accounting.columns import codes_in, distinct, is_among, is_sorted, of_kind, positions, union
from goodput_cli.arrays import Mask, Rows
from goodput_cli.events.schema import Edge, EventTable, Kind

_AFTER_AN_END = 64
"""Added to the rank of events that begin an attempt at the same time at which another one ended."""
_BEGINS_AN_ATTEMPT = (
    Kind.START, Kind.TPU_INIT, Kind.PREP, Kind.RESTORE, Kind.LOAD, Kind.DATA,
    Kind.ELASTIC_DOWN, Kind.ELASTIC_UP, Kind.ELASTIC_REINIT, Kind.STEP,
)  # fmt: skip
ENDINGS = (Kind.TERMINATED, Kind.CRASHED, Kind.USER_TERMINATED, Kind.JOB_FINISHED, Kind.JOB_END)
"""Kinds that are a termination or an end line."""


class OrderedEvents(Struct, frozen=True):
    """Events of one job in the order of accounting §1, each once."""

    table: EventTable
    original: EventTable
    """The same events, with those that were left out."""
    duplicates: Rows
    """Rows of `original` that were left out."""


def in_order(table: EventTable) -> OrderedEvents:
    """Return the events of one job sorted by their time, ties by kind, identical ones once."""
    table = _keep_one_kind_of_steps(table)
    order = None if is_sorted(table.time) else np.argsort(table.time, kind="stable")
    tied = _tied_rows(table.time if order is None else table.time[order])
    if len(tied):
        group = tied if order is None else order[tied]
        sorted_group = group[_tie_order(table.take(group))]
        if not np.array_equal(sorted_group, group):
            order = np.arange(len(table)) if order is None else order
            order[tied] = sorted_group
    ordered = table if order is None else table.take(order)  # a log in order is not copied, another log once
    repeated = _repeated_rows(ordered, tied)
    if len(repeated) == 0:
        return OrderedEvents(ordered, ordered, repeated)
    kept = np.ones(len(ordered), dtype=bool)
    kept[repeated] = False
    return OrderedEvents(ordered.take(kept), ordered, repeated)


def _keep_one_kind_of_steps(table: EventTable) -> EventTable:
    """Keep one kind of steps: if lines state when steps begin, lines that count finished steps are only signs of life
    (accounting §4)."""
    ends = (table.kind == Kind.STEP) & (table.edge == Edge.END)
    if not ends.any() or np.count_nonzero(ends) == np.count_nonzero(table.kind == Kind.STEP):
        return table
    return replace(
        table,
        kind=np.where(ends, np.int8(Kind.HEARTBEAT), table.kind),
        edge=np.where(ends, np.int8(Edge.POINT), table.edge),
    )


def seen_at(table: EventTable, as_of: int) -> EventTable:
    """Return the events known at the time `as_of` (ns): later events are dropped, an interval that spans it is cut."""
    seen = table.take(table.time <= as_of)
    return replace(seen, end=np.minimum(seen.end, as_of))


def _tied_rows(time: NDArray[np.int64]) -> Rows:
    """Return the rows of a sorted column that share their time with a neighbor."""
    tied = np.zeros(len(time), dtype=bool)
    same = time[1:] == time[:-1]
    tied[1:] |= same
    tied[:-1] |= same
    return positions(tied)


def _tie_order(group: EventTable) -> Rows:
    """Return the order of rows with equal times. All columns are compared, so the order of arrival never matters."""
    return np.lexsort(
        (
            group.line,
            group.source,
            _rank_by_content(group.writer, group.writers),
            _rank_by_content(group.detail, group.details),
            _rank_by_content(group.label, group.labels),
            group.rank,
            group.step_time,
            group.step,
            group.end,
            _tie_rank(group),
            group.time,
        )
    ).astype(np.intp)


def _tie_rank(group: EventTable) -> NDArray[np.int64]:
    """Return the rank of each row within its time: by kind, but an attempt never begins before another one's end.

    Kinds that begin an attempt move with the start line. If one attempt ends and the next begins at the same time, the
    first start-up event belongs to the new one. End edges do not move, because they close intervals of the old attempt.
    A start and an end line of the same time stay together.
    """
    rank = group.kind.astype(np.int64)
    starting = distinct(group.time[group.kind == Kind.START])
    ending = distinct(group.time[of_kind(group.kind, ENDINGS)])
    handover = starting[is_among(starting, ending)]
    if len(handover) == 0:
        return rank * 4 + group.edge
    moves = of_kind(group.kind, _BEGINS_AN_ATTEMPT) & np.isin(group.time, handover, kind="sort")
    moves &= (group.edge != Edge.END) | _has_twin(group, moves & (group.edge == Edge.BEGIN))
    return (rank + np.where(moves, _AFTER_AN_END, 0)) * 4 + group.edge


def _has_twin(group: EventTable, begins: Mask) -> Mask:
    """Return the mask of rows that share time, phase and label with one of `begins`. Such an end line moves with its
    start line. An interval of the old attempt that it might have closed ends with that attempt, at the same time."""
    phase = group.kind.astype(np.int64) * (len(group.labels) + 1) + group.label + 1
    instants = distinct(group.time)
    key = np.searchsorted(instants, group.time) * ((int(phase.max()) if len(phase) else 0) + 1) + phase
    return np.asarray(np.isin(key, key[begins], kind="sort"))


def _rank_by_content(codes: NDArray[np.signedinteger], values: Sequence[object]) -> NDArray[np.int64]:
    """Return the position of each value in sorted order, so that codes given by arrival do not decide. NONE comes
    first."""
    used = [code for code in codes_in(codes) if code >= 0]
    ranks = np.full(len(values) + 1, -1, dtype=np.int64)
    ranks[sorted(used, key=lambda code: repr(values[code]))] = np.arange(len(used))
    return np.asarray(ranks[codes])


def _repeated_rows(table: EventTable, candidates: Rows) -> Rows:
    """Return the rows that repeat an earlier row: equal in every field, or the same Cloud Logging entry.

    candidates: the rows that share their time with a neighbor.
    """
    left, right = candidates[:-1], candidates[1:]
    same = np.ones(len(left), dtype=bool)
    for column in ("time", "kind", "edge", "end", "step", "step_time", "rank", "label", "detail"):
        values = getattr(table, column)
        same &= values[left] == values[right]
    again = _repeated_entries(table)
    return union(right[same], again) if len(again) else right[same]


def _repeated_entries(table: EventTable) -> Rows:
    """Return the rows of Cloud Logging entries that an earlier row comes from, too."""
    entered = positions(table.entry >= 0)
    if len(entered) == 0:
        return entered
    key = (table.entry[entered].astype(np.int64) << 8) | (table.kind[entered].astype(np.int64) << 2)
    key |= table.edge[entered]
    again = np.ones(len(entered), dtype=bool)
    again[np.unique(key, return_index=True)[1]] = False
    return entered[again]
