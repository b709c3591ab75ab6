"""Build intervals from start and end lines (accounting §3, open intervals; formats.md for the pairing).

Define which claim gets time that several events claim (accounting.md §5).

Data loading (accounting §5) is a claim while no step is in flight, and is reported outside of the ledger otherwise.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.attempts import PROGRESS_KINDS, Attempts
from goodput_cli.accounting.columns import distinct, of_kind, row_type, rows_of, run_heads, search, without
from goodput_cli.accounting.sweep import Claims, claim, join
from goodput_cli.accounting.training.checkpoints import CheckpointProgress
from goodput_cli.accounting.training.kept import TrainingOutcome
from goodput_cli.accounting.training.spans import StepRecordsByAttempt
from goodput_cli.arrays import I64, ColumnCode, Mask, Rows
from goodput_cli.events.schema import BETWEEN_STEPS, NONE, Edge, EventTable, Kind
from goodput_cli.vocabulary.categories import Category


class Priority(ColumnCode):
    """Priority of claims: if several overlap, the one with the lowest number gets the time.

    After all of these come kept training (16), unclaimed time of lost attempts (17) and `other` (18), which never
    overlap each other.
    """

    EXCLUDED = 1
    ELASTIC_REINIT = 2
    ELASTIC_WAIT = 3
    QUEUED = 4
    DOWNTIME = 5
    INITIAL_SAVE = 6
    WASTED = 7
    RESTORE = 8
    SAVE = 9
    CUSTOM = 10
    TPU_INIT = 11
    PREP = 12
    INFERRED_RESTORE = 13
    DATA = 14
    LOST_LINES = 15


PHASE_KINDS = (Kind.TPU_INIT, Kind.PREP, Kind.CUSTOM, Kind.ELASTIC_DOWN, Kind.ELASTIC_UP, Kind.ELASTIC_REINIT)


class Intervals(Struct, frozen=True):
    """Intervals of k phases or data loads: columns of length k, unless noted."""

    start: I64
    end: I64
    """ns."""
    row: Rows
    end_row: Rows
    """Rows of the start and of the end line; end_row is -1 if the end line is lost."""
    orphans: Rows
    """Rows of end lines without a start line."""
    dropped: Rows
    """Rows of data loads that were left open and were followed by training."""


def phase_intervals(
    table: EventTable,
    attempts: Attempts,
    sign_of_life: I64,
    job_end: int,
    kinds: tuple[Kind, ...] = PHASE_KINDS,
) -> Intervals:
    """Return the intervals of init, prep, custom and elastic events. An end closes the one open start of its phase and
    label, or the oldest one if several ranks without numbers write."""
    rows = np.flatnonzero(of_kind(table.kind, kinds) & (attempts.of_row >= 0))
    rows, group = _group_rows(table, attempts, rows)
    begins = table.edge[rows] == Edge.BEGIN
    end_row = np.full(len(rows), -1, dtype=np.intp)
    closes = np.flatnonzero(begins[:-1] & ~begins[1:] & (group[1:] == group[:-1]))
    end_row[closes] = rows[closes + 1]
    several = np.flatnonzero(attempts.writers[attempts.of_row[rows]] > 1)
    if len(several):
        _close_oldest(table, attempts, rows, group, several, end_row)
    start, end_row, group = rows[begins], end_row[begins], group[begins]
    owner = attempts.of_row[start]
    next_begin = np.full(len(start), _NEVER)
    cut = np.flatnonzero((end_row[:-1] < 0) & (group[1:] == group[:-1]) & (owner[1:] == owner[:-1]))
    next_begin[cut] = table.time[start[cut + 1]]
    end, left_open = table.time[end_row], np.flatnonzero(end_row < 0)
    never = next_begin[left_open]
    end[left_open] = np.minimum(never, _open_end(table, attempts, start[left_open], sign_of_life, job_end, never))
    orphans = np.sort(without(rows[~begins], end_row[end_row >= 0], len(table)))
    none = np.zeros(0, dtype=np.intp)
    return Intervals(table.time[start], np.maximum(end, table.time[start]), start, end_row, orphans, none)


def _close_oldest(table: EventTable, attempts: Attempts, rows: Rows, group: I64, several: Rows, end_row: Rows) -> None:
    """Fill in `end_row` at the positions of `several`, the phases of several ranks without numbers. The i-th end line
    closes the i-th open start line, and at most as many are open as there are ranks."""
    end_row[several] = -1
    begins = table.edge[rows[several]] == Edge.BEGIN
    order = np.lexsort((begins, table.time[rows[several]], group[several]))
    places = several[order]
    most = attempts.writers[attempts.of_row[rows[places]]].tolist()
    opened: deque[int] = deque()
    unmatched: deque[tuple[int, int]] = deque()  # end lines of this time: a start line of the same time may follow
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


def _group_rows(table: EventTable, attempts: Attempts, rows: Rows) -> tuple[Rows, I64]:
    """Return rows sorted by process, phase and label, then time, and the number of each row's group. At one time, an
    end precedes a start if an interval is open, and follows it otherwise."""
    kind = table.kind[rows].astype(np.int64)
    process = attempts.process[attempts.of_row[rows]].astype(np.int64)
    group = (process * 32 + kind) * (len(table.labels) + 1) + table.label[rows] + 1
    begins = table.edge[rows] == Edge.BEGIN
    order = np.lexsort((begins, table.time[rows], group))
    rows, group, begins = rows[order], group[order], begins[order]
    pair = np.zeros(len(rows), dtype=bool)  # an end directly before a start of the same time
    pair[:-1] = ~begins[:-1] & begins[1:] & (group[1:] == group[:-1]) & (table.time[rows[1:]] == table.time[rows[:-1]])
    if not pair.any():
        return rows, group
    swap = np.flatnonzero(pair & ~_open_before(begins, group, pair))
    swapped = rows.copy()
    swapped[swap], swapped[swap + 1] = rows[swap + 1], rows[swap]
    return swapped, group


def _open_before(begins: Mask, group: I64, pair: Mask) -> Mask:
    """Return True for each row with an open start before it. A pair at one time changes nothing and is skipped."""
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
    """Return the end of intervals without an end line: the attempt's next step or checkpoint event. If neither that nor
    a new start of the phase follows, it is the attempt's termination or end, otherwise its last sign of life or the
    job's end."""
    if len(rows) == 0:
        return next_begin
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
    """Return the first line after each of these rows that ended its attempt; -1 without. size: rows of the table."""
    place_of = attempts.of_row.astype(np.int64) * size
    closing = np.sort(place_of[attempts.closing] + attempts.closing)
    place = search(closing, place_of[rows] + rows)
    following = np.append(closing, -1)[place]
    same = following // size == attempts.of_row[rows]
    return np.where((following >= 0) & same, following % size, -1)


def data_intervals(table: EventTable, attempts: Attempts, sign_of_life: I64, job_end: int) -> Intervals:
    """Return the data loads, first in, first out within a process. An open one counts only if nothing goes on after
    it."""
    rows: Rows = np.flatnonzero((table.kind == Kind.DATA) & (attempts.of_row >= 0)).astype(row_type(len(table)))
    if len(rows) == 0:
        none, never = np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.int64)
        return Intervals(never, never, none, none, none, none)
    process = attempts.process[attempts.of_row[rows]]
    begin_rows, end_row, orphans = _pair_rows(rows, table.edge[rows] == Edge.BEGIN, process, table.time[rows])
    start, end = table.time[begin_rows], table.time[end_row]
    left_open = np.flatnonzero(end_row < 0)
    never = np.full(len(left_open), _NEVER, dtype=np.int64)
    end[left_open] = _open_end(table, attempts, begin_rows[left_open], sign_of_life, job_end, never)
    np.maximum(end, start, out=end)
    goes_on = left_open[_has_continuation(table, attempts, begin_rows[left_open])]
    dropped = begin_rows[goes_on]
    if len(dropped):
        start, end, begin_rows, end_row = (np.delete(each, goes_on) for each in (start, end, begin_rows, end_row))
    return Intervals(start, end, begin_rows, end_row, orphans, dropped)


def _pair_rows(rows: Rows, begins: Mask, process: Rows, time: I64) -> tuple[Rows, Rows, Rows]:
    """Return the start line of each load, the end line that closes it (-1 without), and end lines without a start line.

    If start and end lines of one process alternate, as one loader writes them, each end line follows its start line,
    also at the same time. Only other logs are sorted.
    """
    pairs = len(rows) // 2
    alternate = begins[0::2].all() and not begins[1::2].any() and (process[1:] >= process[:-1]).all()
    if alternate and np.array_equal(process[0::2][:pairs], process[1::2]):
        return rows[0::2], np.append(rows[1::2], rows.dtype.type(-1)) if len(rows) % 2 else rows[1::2], rows[:0]
    order = np.lexsort((~begins, time, process))  # starts first at the same time: an end closes the oldest
    rows, begins, process = rows[order], begins[order], process[order]
    orphan = _orphan_ends(begins, process)
    ends = ~begins & ~orphan
    return rows[begins], _nth_of_group(process[begins], rows[ends], process[ends]), rows[orphan]


def _orphan_ends(begins: Mask, group: Rows) -> Mask:
    """Return True for each end without an open load: the count of open loads would reach a new low below zero."""
    if len(begins) == 0:
        return begins.copy()
    level = np.cumsum(np.where(begins, 1, -1))
    first = np.flatnonzero(run_heads(group))
    size = np.diff(np.append(first, len(group)))
    level -= np.repeat(np.append(0, level)[first], size)
    # Keep each process's minima separate: shift its levels below the previous one's.
    span = int(np.abs(level).max()) + 1
    shift = 2 * span * np.repeat(np.arange(len(first)), size)
    lowest = np.minimum.accumulate(np.minimum(level, 0) - shift)
    before = np.append(0, lowest[:-1])
    before[first] = -shift[first]
    return np.asarray(~begins & (lowest < before))


def _nth_of_group(group: Rows, rows: Rows, group_of_row: Rows) -> Rows:
    """Return for the n-th element of each run in `group` the n-th row of that group; -1 if it has fewer."""
    nth = np.arange(len(group)) - search(group, group)
    place = search(group_of_row, group) + nth
    exists = place < search(group_of_row, group, side="right")
    return np.where(exists, np.append(rows, -1)[np.where(exists, place, -1)], -1)


def _has_continuation(table: EventTable, attempts: Attempts, rows: Rows) -> Mask:
    """Return True for each row that a step or a load of the same process follows."""
    if len(rows) == 0:
        return np.zeros(0, dtype=bool)
    loads = np.flatnonzero((table.kind == Kind.LOAD) | ((table.kind == Kind.DATA) & (table.edge == Edge.BEGIN)))
    later = np.concatenate((attempts.steps, loads))
    later = later[attempts.of_row[later] >= 0]
    last = np.full(len(attempts) + 1, -1, dtype=np.intp)
    np.maximum.at(last, attempts.process[attempts.of_row[later]], later)
    return np.asarray(last[attempts.process[attempts.of_row[rows]]] > rows)


def reinitializations(table: EventTable, attempts: Attempts, sign_of_life: I64) -> tuple[Rows, I64]:
    """Return the attempt in which each elastic re-initialization began, and its end (ns)."""
    if not (table.kind == Kind.ELASTIC_REINIT).any():
        return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.int64)
    phases = phase_intervals(table, attempts, sign_of_life, int(table.end.max()), (Kind.ELASTIC_REINIT,))
    return attempts.of_row[phases.row], phases.end


def steps_in_flight(
    table: EventTable,
    attempts: Attempts,
    training: TrainingOutcome,
    records: StepRecordsByAttempt | None,
    progress: CheckpointProgress | None,
    job_end: int,
) -> tuple[I64, I64]:
    """Return per attempt the span [start, end) (ns) in which a step is in flight. It begins with the first step and
    includes the last one, even if its end is unknown. In checkpoint logs it goes from the begin of training to the last
    progress. Empty without training."""
    never = np.full(len(attempts), np.iinfo(np.int64).max, dtype=np.int64)
    if progress is not None:
        start = never.copy()
        spans = progress.spans
        np.minimum.at(start, spans.attempt, spans.start)
        return start, np.where(start < never, progress.position, start)
    assert records is not None
    start = never.copy()
    start[records.has_records] = records.time[records.bounds[:-1][records.has_records]]
    end = training.spans.latest_end(np.zeros(len(attempts), dtype=np.int64))
    if len(attempts):
        last = attempts.first_ending[-1]
        end[-1] = job_end if last < 0 else table.time[last]
    return start, np.where(start < never, np.maximum(end, start), start)


def data_loading(
    table: EventTable, attempts: Attempts, intervals: Intervals, flight: tuple[I64, I64], blocking: bool
) -> tuple[Claims, tuple[I64, I64]]:
    """Return the claims of data loading, and the start and end (ns) of loading that is not claimed. Loading outside of
    steps is claimed. Loading inside steps is claimed only if the user states that it blocks, or the recorder states it
    between two steps.

    Nearly every load is on one side alone. A part without length claims nothing and is left out.
    """
    nothing = np.zeros(0, dtype=np.int64)
    if len(intervals.row) == 0:
        return join([]), (nothing, nothing)
    claimed: list[Claims] = []
    beside: list[tuple[I64, I64]] = []
    for load in _by_attempt(attempts, intervals):
        start, end = flight[0][load.attempt], flight[1][load.attempt]
        early = np.flatnonzero(load.start < np.minimum(load.end, start))
        late = np.flatnonzero(np.maximum(load.start, end) < load.end)
        claimed.append(load.part(early, load.start[early], np.minimum(load.end[early], start[early])))
        claimed.append(load.part(late, np.maximum(load.start[late], end[late]), load.end[late]))
        np.maximum(load.start, start, out=start)
        np.minimum(load.end, end, out=end)
        during = start < end
        waits = during if blocking else during & _is_blocking(table, load.intervals.row)[load.place]
        if waits.any():
            chosen = np.flatnonzero(waits)
            claimed.append(load.part(chosen, start[chosen], end[chosen]))
            during &= ~waits
        beside.append((start[during], end[during]))
    if len(beside) == 1:
        return join(claimed), beside[0]
    return join(claimed), (np.concatenate([one[0] for one in beside]), np.concatenate([one[1] for one in beside]))


def _is_blocking(table: EventTable, rows: Rows) -> Mask:
    """Return True for each load whose start line states that training waited for it between two steps."""
    detail = table.detail[rows]
    if detail.max(initial=NONE) < 0:
        return np.zeros(len(detail), dtype=bool)
    codes = [code for code in distinct(detail).tolist() if code >= 0 and table.details[code] == BETWEEN_STEPS]
    return np.isin(detail, codes) if codes else np.zeros(len(detail), dtype=bool)


class _LoadsOfAttempts(Struct, frozen=True):
    """Data loads, or the parts of them that reach into later attempts: columns of one length."""

    intervals: Intervals
    place: Rows | slice
    """Positions of the intervals."""
    start: I64
    end: I64
    """ns."""
    attempt: NDArray[np.int32]

    def part(self, chosen: Rows, start: I64, end: I64) -> Claims:
        """Return claims of some loads. start, end: their times (ns)."""
        row, end_row = self.intervals.row[self.place][chosen], self.intervals.end_row[self.place][chosen]
        attempt = self.attempt[chosen]
        category = Category.DATA_LOADING_SYNC
        return claim(start, end, Priority.DATA, category, attempt=attempt, row=row, end_row=end_row)


def _by_attempt(attempts: Attempts, intervals: Intervals) -> Iterator[_LoadsOfAttempts]:
    """Yield data loads, cut where the next attempt begins. The part inside the next attempt is judged by its steps."""
    begins = np.append(attempts.begin, np.iinfo(np.int64).max)
    place: Rows | slice = slice(None)
    start, end = intervals.start, intervals.end
    attempt = attempts.of_row[intervals.row].astype(np.int32, copy=False)
    while len(start):
        border = begins[attempt + 1]
        beyond = np.flatnonzero(end > border)
        rest = (border[beyond], end[beyond], attempt[beyond] + 1)
        np.minimum(end, border, out=border)
        yield _LoadsOfAttempts(intervals, place, start, border, attempt)
        place = np.arange(len(intervals.row))[place][beyond]
        start, end, attempt = rest
