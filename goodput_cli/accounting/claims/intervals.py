"""Start and end lines become intervals (accounting §3, open intervals; formats.md for the pairing)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from goodput_cli.accounting.attempts.attempts import PROGRESS_KINDS, Attempts
from goodput_cli.accounting.columns import of_kind, rows_of, run_heads, search, without
from goodput_cli.arrays import I64, Mask, Rows
from goodput_cli.events.schema import Edge, EventTable, Kind

PHASE_KINDS = (Kind.TPU_INIT, Kind.PREP, Kind.CUSTOM, Kind.ELASTIC_DOWN, Kind.ELASTIC_UP, Kind.ELASTIC_REINIT)


@dataclass(frozen=True)
class Intervals:
    """Intervals of k phases or data loads: columns of length k unless said otherwise."""

    start: I64
    end: I64
    """ns."""
    row: Rows
    end_row: Rows
    """Rows of the start and of the end line; end_row is -1 where the end line is lost."""
    orphans: Rows
    """Rows of end lines without a start line."""
    dropped: Rows
    """Rows of data loads that were left open and after which training went on."""


def phase_intervals(
    table: EventTable,
    attempts: Attempts,
    sign_of_life: I64,
    job_end: int,
    kinds: tuple[Kind, ...] = PHASE_KINDS,
) -> Intervals:
    """Intervals of init, prep, custom and elastic events: an end closes the one open start of its phase and label, or
    the oldest where several ranks without numbers write."""
    rows = np.flatnonzero(of_kind(table.kind, kinds) & (attempts.of_row >= 0))
    rows, group = _grouped(table, attempts, rows)
    begins = table.edge[rows] == Edge.BEGIN
    end_row = np.full(len(rows), -1, dtype=np.intp)
    closes = np.flatnonzero(begins[:-1] & ~begins[1:] & (group[1:] == group[:-1]))
    end_row[closes] = rows[closes + 1]
    several = np.flatnonzero(attempts.writers[attempts.of_row[rows]] > 1)
    _close_oldest(table, attempts, rows, group, several, end_row)
    start, end_row, group = rows[begins], end_row[begins], group[begins]
    owner = attempts.of_row[start]
    next_begin = np.full(len(start), _NEVER)
    cut = np.flatnonzero((end_row[:-1] < 0) & (group[1:] == group[:-1]) & (owner[1:] == owner[:-1]))
    next_begin[cut] = table.time[start[cut + 1]]
    open_end = _open_end(table, attempts, start, sign_of_life, job_end, next_begin)
    end = np.where(end_row >= 0, table.time[end_row], np.minimum(next_begin, open_end))
    orphans = np.sort(without(rows[~begins], end_row[end_row >= 0], len(table)))
    none = np.zeros(0, dtype=np.intp)
    return Intervals(table.time[start], np.maximum(end, table.time[start]), start, end_row, orphans, none)


def _close_oldest(table: EventTable, attempts: Attempts, rows: Rows, group: I64, several: Rows, end_row: Rows) -> None:
    """Fill in `end_row` at the places of `several`, the phases of several ranks without numbers: the i-th end line
    closes the i-th open start line, and no more are open than there are ranks."""
    end_row[several] = -1
    begins = table.edge[rows[several]] == Edge.BEGIN
    order = np.lexsort((begins, table.time[rows[several]], group[several]))
    places = several[order]
    most = attempts.writers[attempts.of_row[rows[places]]].tolist()
    opened: deque[int] = deque()
    unmatched: deque[tuple[int, int]] = deque()  # end lines of this very instant: a start line of it may follow
    last_group = -1
    columns = (places.tolist(), group[places].tolist(), begins[order].tolist(), table.time[rows[places]].tolist(), most)
    for place, phase, is_begin, time, limit in zip(*columns, strict=True):
        if phase != last_group:
            opened.clear()
            unmatched.clear()
            last_group = phase
        while unmatched and unmatched[0][1] != time:
            unmatched.popleft()
        if not is_begin and opened:
            end_row[opened.popleft()] = rows[place]
        elif not is_begin:
            unmatched.append((place, time))
        elif unmatched:
            end_row[place] = rows[unmatched.popleft()[0]]
        else:
            if len(opened) >= limit:
                opened.popleft()
            opened.append(place)


_NEVER = np.iinfo(np.int64).max


def _grouped(table: EventTable, attempts: Attempts, rows: Rows) -> tuple[Rows, I64]:
    """Rows sorted by process, phase and label, then time; at one instant an end stands before a start if something
    is open, else behind it. Also the number of each row's group."""
    kind = table.kind[rows].astype(np.int64)
    process = attempts.process[attempts.of_row[rows]].astype(np.int64)
    group = (process * 32 + kind) * (len(table.labels) + 1) + table.label[rows] + 1
    begins = table.edge[rows] == Edge.BEGIN
    order = np.lexsort((begins, table.time[rows], group))
    rows, group, begins = rows[order], group[order], begins[order]
    pair = np.zeros(len(rows), dtype=bool)  # an end directly before a start of the same instant
    pair[:-1] = ~begins[:-1] & begins[1:] & (group[1:] == group[:-1]) & (table.time[rows[1:]] == table.time[rows[:-1]])
    swap = np.flatnonzero(pair & ~_open_before(begins, group, pair))
    swapped = rows.copy()
    swapped[swap], swapped[swap + 1] = rows[swap + 1], rows[swap]
    return swapped, group


def _open_before(begins: Mask, group: I64, pair: Mask) -> Mask:
    """Whether a start is open before each row. A pair at one instant leaves that as it was: it is passed over."""
    in_pair = pair.copy()
    in_pair[1:] |= pair[:-1]
    position = np.arange(len(begins))
    last_single = np.maximum.accumulate(np.where(in_pair, -1, position))
    before = np.append(-1, last_single[:-1]) if len(position) else last_single
    has_before = before >= 0
    return np.asarray(has_before & begins[before] & (group[before] == group))


def _open_end(
    table: EventTable, attempts: Attempts, rows: Rows, sign_of_life: I64, job_end: int, next_begin: I64
) -> I64:
    """Where an interval ends whose end line is lost: at the attempt's next step or checkpoint event; if neither that
    nor a new start of the phase comes, at its termination or end, else at its last sign of life or the job's end."""
    owner = attempts.of_row[rows]
    progress = without(rows_of(table.kind, PROGRESS_KINDS), attempts.dropped, len(table))
    place = search(progress, rows, side="right")
    following = progress[np.minimum(place, len(progress) - 1)] if len(progress) else np.zeros(len(rows), dtype=np.intp)
    has_next = (place < len(progress)) & (attempts.of_row[following] == owner) if len(progress) else place < 0
    last_attempt = owner == len(attempts) - 1
    ending = _next_ending(attempts, rows, len(table))
    logged = ending >= 0
    fallback = np.where(last_attempt, job_end, np.maximum(sign_of_life[owner], table.time[rows]))
    fallback = np.where(logged, table.time[ending], fallback)
    return np.where(has_next, table.time[following], np.where(next_begin < _NEVER, _NEVER, fallback))


def _next_ending(attempts: Attempts, rows: Rows, size: int) -> Rows:
    """The first line behind each of these rows that ended its attempt; -1 without. size: rows of the table."""
    place_of = attempts.of_row.astype(np.int64) * size
    closing = np.sort(place_of[attempts.closing] + attempts.closing)
    place = search(closing, place_of[rows] + rows)
    following = np.append(closing, -1)[place]
    same = following // size == attempts.of_row[rows]
    return np.where((following >= 0) & same, following % size, -1)


def data_intervals(table: EventTable, attempts: Attempts, sign_of_life: I64, job_end: int) -> Intervals:
    """Data loads, first in, first out within a process. One left open counts only if nothing goes on after it."""
    rows = np.flatnonzero((table.kind == Kind.DATA) & (attempts.of_row >= 0))
    if len(rows) == 0:
        none, never = np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.int64)
        return Intervals(never, never, none, none, none, none)
    process = attempts.process[attempts.of_row[rows]]
    begins = table.edge[rows] == Edge.BEGIN
    order = np.lexsort((~begins, table.time[rows], process))  # at one instant starts first: an end closes the oldest
    rows, begins, process = rows[order], begins[order], process[order]
    orphan = _orphan_ends(begins, process)
    ends = ~begins & ~orphan
    begin_rows, end_row = rows[begins], _nth_of_group(process[begins], rows[ends], process[ends])
    closed = end_row >= 0
    start = table.time[begin_rows]
    open_ends = _open_end(
        table, attempts, begin_rows, sign_of_life, job_end, np.full(len(begin_rows), _NEVER, dtype=np.int64)
    )
    counts = closed | ~_goes_on(table, attempts, begin_rows)
    end = np.where(closed, table.time[end_row], open_ends)
    return Intervals(
        start[counts],
        np.maximum(end, start)[counts],
        begin_rows[counts],
        end_row[counts],
        rows[orphan],
        begin_rows[~counts],
    )


def _orphan_ends(begins: Mask, group: Rows) -> Mask:
    """Ends that come when nothing is open: where the count of open loads would fall to a new low below zero."""
    if len(begins) == 0:
        return begins.copy()
    level = np.cumsum(np.where(begins, 1, -1))
    first = np.flatnonzero(run_heads(group))
    size = np.diff(np.append(first, len(group)))
    level -= np.repeat(np.append(0, level)[first], size)
    # A low of one process must not count for the next: each one's levels lie below those of the one before.
    span = int(np.abs(level).max()) + 1
    shift = 2 * span * np.repeat(np.arange(len(first)), size)
    lowest = np.minimum.accumulate(np.minimum(level, 0) - shift)
    before = np.append(0, lowest[:-1])
    before[first] = -shift[first]
    return np.asarray(~begins & (lowest < before))


def _nth_of_group(group: Rows, rows: Rows, group_of_row: Rows) -> Rows:
    """For the n-th element of each run in `group`, the n-th of the rows of that group; -1 where it has fewer."""
    nth = np.arange(len(group)) - search(group, group)
    place = search(group_of_row, group) + nth
    exists = place < search(group_of_row, group, side="right")
    return np.where(exists, np.append(rows, -1)[np.where(exists, place, -1)], -1)


def _goes_on(table: EventTable, attempts: Attempts, rows: Rows) -> Mask:
    """Whether a step or a load of the same process follows each row."""
    loads = np.flatnonzero((table.kind == Kind.LOAD) | ((table.kind == Kind.DATA) & (table.edge == Edge.BEGIN)))
    later = np.concatenate((attempts.steps, loads))
    later = later[attempts.of_row[later] >= 0]
    last = np.full(len(attempts) + 1, -1, dtype=np.intp)
    np.maximum.at(last, attempts.process[attempts.of_row[later]], later)
    return np.asarray(last[attempts.process[attempts.of_row[rows]]] > rows)


def reinitialised(table: EventTable, attempts: Attempts, sign_of_life: I64) -> tuple[Rows, I64]:
    """The attempt in which each elastic re-initialisation began, and its end (ns)."""
    if not np.any(table.kind == Kind.ELASTIC_REINIT):
        return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.int64)
    phases = phase_intervals(table, attempts, sign_of_life, int(table.end.max()), (Kind.ELASTIC_REINIT,))
    return attempts.of_row[phases.row], phases.end
