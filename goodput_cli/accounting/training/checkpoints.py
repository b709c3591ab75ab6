"""Training spans (accounting §4) of checkpoint logs: progress is visible only when a step is finished or saved."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.attempts import Attempts
from goodput_cli.accounting.columns import is_sorted, largest_within, rows_of, run_heads, union
from goodput_cli.accounting.training.spans import TrainingSpans
from goodput_cli.arrays import I64, Mask, Rows
from goodput_cli.events.schema import ASYNCHRONOUS, NO_STEP, EventTable, Kind

_MOST_STEPS = 1 << 31


class CheckpointProgress(Struct, frozen=True):
    """Progress of the m attempts of a checkpoint log: columns of length m, unless noted."""

    spans: TrainingSpans
    """Training, by attempt and time."""
    began: I64
    last: I64
    """Step at which each attempt began, and the last it recorded; `NO_STEP` for attempts without any."""
    position: I64
    position_row: Rows
    """End (ns) of its last span, save or load, and the row of that event; -1 without any."""
    saves: NDArray[np.intp]
    """Rows [k, 2] of the step_finished and the checkpoint_saved that bound a blocking save."""
    load_row: Rows
    """Row of the last load before the first progress; -1 without."""
    last_save: I64
    """Highest step saved in the attempt; `NO_STEP` without."""
    asynchronous: bool
    """True if saves overlap training in this job, and therefore claim nothing."""
    without_load: Rows
    """Attempts that began without a load (`no_checkpoint_loaded`)."""


class _ProgressRecords(Struct, frozen=True):
    """The n records of progress in order of rows: row, attempt and step of each, and True for a finished step.

    level, floor: int64 [n], rise with the attempt and then with the step: of the record, of its attempt's begin.
    """

    row: Rows
    owner: Rows
    step: I64
    finished: Mask
    level: I64
    floor: I64


class _StepMaxima(Struct, frozen=True):
    """Records that raise the attempt's highest step: row, attempt, step, and the time and row at which the next one
    begins."""

    row: Rows
    owner: Rows
    step: I64
    leaves: I64
    leaves_row: Rows


def checkpoint_progress(table: EventTable, attempts: Attempts, async_saves: bool) -> CheckpointProgress:
    """Read the progress of a checkpoint log."""
    rows = rows_of(table.kind, (Kind.FINISHED, Kind.SAVED))
    owner = attempts.of_row[rows]
    load_row = _loads_before_progress(table, attempts, rows, owner)
    began, begin_time, begin_row = _beginnings(table, attempts, rows, owner, load_row)
    finished, step = table.kind[rows] == Kind.FINISHED, table.step[rows]
    records = _ProgressRecords(rows, owner, step, finished, *_levels(owner, step, began[owner]))
    new = _is_new_maximum(records, begin_row)
    maxima, saves, asynchronous = _with_saves(table, records, new, _finishes(records, new), async_saves)
    spans = _training_spans(table, maxima, began, begin_time, begin_row)
    last = np.where(load_row >= 0, table.step[load_row], NO_STEP)
    np.maximum.at(last, owner, step)
    position, position_row = begin_time.copy(), begin_row.copy()
    saver = attempts.of_row[saves[:, 1]]
    position[saver], position_row[saver] = table.time[saves[:, 1]], saves[:, 1]
    position[maxima.owner], position_row[maxima.owner] = maxima.leaves, maxima.leaves_row
    last_save = np.full(len(attempts), NO_STEP, dtype=np.int64)
    np.maximum.at(last_save, owner[~finished], step[~finished])
    without_load = np.flatnonzero((load_row < 0) & (began != NO_STEP))
    return CheckpointProgress(
        spans, began, last, position, position_row, saves, load_row, last_save, asynchronous, without_load
    )


def _loads_before_progress(table: EventTable, attempts: Attempts, rows: Rows, owner: Rows) -> Rows:
    """Return the row of the last load before each attempt's first progress; a load after progress begins another
    attempt."""
    loads = np.flatnonzero(table.kind == Kind.LOAD)
    load_row = np.full(len(attempts), -1, dtype=np.intp)
    first_progress = np.full(len(attempts), len(table), dtype=np.intp)
    first_progress[owner[::-1]] = rows[::-1]
    before = loads[loads < first_progress[attempts.of_row[loads]]]
    load_row[attempts.of_row[before]] = before
    return load_row


def _beginnings(
    table: EventTable, attempts: Attempts, rows: Rows, owner: Rows, load_row: Rows
) -> tuple[I64, I64, Rows]:
    """Return the step, time and row at which each attempt's training begins (`NO_STEP`, -1, -1 without training)."""
    began = np.where(load_row >= 0, table.step[load_row], NO_STEP)
    time = np.where(load_row >= 0, np.maximum(table.time[load_row], attempts.up), -1)
    row = load_row.copy()
    first = np.flatnonzero(run_heads(owner))
    stepping = owner[first]
    unloaded = load_row[stepping] < 0
    earlier = _EarlierEvents(table)
    for attempt, record in zip(stepping[unloaded].tolist(), rows[first[unloaded]].tolist(), strict=True):
        step = _resumed_without_load(table, attempts, attempt, record, earlier)
        if step is None:
            began[attempt], time[attempt], row[attempt] = table.step[record], table.time[record], record
        else:
            began[attempt], time[attempt], row[attempt] = step, attempts.up[attempt], attempts.up_row[attempt]
    return began, time, row


class _EarlierEvents:
    """Events before a row of a checkpoint log; None if there is no such event."""

    def __init__(self, table: EventTable) -> None:
        self._saves, self._loads, self._finished = (
            np.flatnonzero(table.kind == kind) for kind in (Kind.SAVED, Kind.LOAD, Kind.FINISHED)
        )
        self._step = table.step
        self._highest = np.maximum.accumulate(table.step[self._finished])

    def last_saved(self, row: int) -> int | None:
        """Return the step of the last save."""
        place = int(np.searchsorted(self._saves, row))
        return int(self._step[self._saves[place - 1]]) if place else None

    def last_loaded(self, row: int) -> int | None:
        """Return the step of the last load."""
        place = int(np.searchsorted(self._loads, row))
        return int(self._step[self._loads[place - 1]]) if place else None

    def highest_finished(self, row: int) -> int | None:
        """Return the highest finished step."""
        place = int(np.searchsorted(self._finished, row))
        return int(self._highest[place - 1]) if place else None


def _resumed_without_load(
    table: EventTable, attempts: Attempts, attempt: int, record: int, earlier: _EarlierEvents
) -> int | None:
    """Return the step at which an attempt without a load began when it was up. None: at its first record."""
    step, begin = int(table.step[record]), int(attempts.begin_row[attempt])
    if attempt == 0:
        resumed: int | None = 0 if attempts.started[0] else None
    else:
        resumed = earlier.last_saved(begin)
        if resumed is None:
            resumed = _begin_without_save(step, begin, bool(attempts.started[attempt]), earlier)
    return resumed if resumed is not None and step > resumed else None


def _begin_without_save(step: int, begin: int, started: bool, earlier: _EarlierEvents) -> int | None:
    """Return the step at which an attempt began if nothing was saved before it: the last step loaded before, otherwise
    0. If it goes on above all finished steps of earlier attempts, the log omits saves: None (at its first record)."""
    loaded, finished = earlier.last_loaded(begin), earlier.highest_finished(begin)
    if loaded is not None:
        return loaded
    goes_on = finished is not None and step > finished
    return 0 if started and not goes_on else None


def _levels(owner: Rows, step: I64, floor: I64) -> tuple[I64, I64]:
    """Return numbers for each record that rise with the attempt and then with the step: of its own step, and of the
    step at which its attempt began. Steps that are too far apart to fit are first numbered in their order."""
    if len(owner) == 0:
        return step, floor
    lowest = int(min(step.min(), floor.min()))
    span = int(max(step.max(), floor.max())) - lowest + 1
    if span > _MOST_STEPS:
        distinct_steps, ranks = np.unique(np.concatenate((step, floor)), return_inverse=True)
        step, floor = ranks[: len(step)], ranks[len(step) :]
        lowest, span = 0, len(distinct_steps)
    base = owner.astype(np.int64)
    base *= span
    base -= lowest
    return base + step, base + floor


def _is_new_maximum(records: _ProgressRecords, begin_row: Rows) -> Mask:
    """Return the mask of records above everything their attempt recorded before, its begin included."""
    highest = np.maximum.accumulate(np.maximum(records.level, records.floor))
    new = records.level > records.floor
    new[1:] &= records.level[1:] > highest[:-1]
    new |= begin_row[records.owner] == records.row
    return np.asarray(new)


def _finishes(records: _ProgressRecords, new: Mask) -> NDArray[np.intp]:
    """Return the positions of the records that a save may follow: finished steps that are new maxima. Also the first
    finish of the step at which an attempt began, before its first maximum (a save before training)."""
    maxima, heads = np.cumsum(new), run_heads(records.owner)
    before_attempt: I64 = (maxima - new)[heads][np.cumsum(heads) - 1]
    initial = records.finished & ~new & (records.level == records.floor) & (maxima == before_attempt)
    first = np.flatnonzero(initial)
    first = first[run_heads(records.owner[first])]
    return union(np.flatnonzero(records.finished & new), first)


def _with_saves(
    table: EventTable, records: _ProgressRecords, new: Mask, finishes: NDArray[np.intp], async_saves: bool
) -> tuple[_StepMaxima, NDArray[np.intp], bool]:
    """Return the blocking saves: from a step's end to the first save of that step, if nothing higher was recorded in
    between. A higher step finished inside any save, or the line of a save, shows that saves are asynchronous."""
    high = np.flatnonzero(new)
    asynchronous = async_saves or _has_finish_inside_save(records) or _is_logged_asynchronous(table, records)
    finished, saved = _first_saves(records, finishes)
    leaves_row = records.row[high]
    blocking = np.zeros((0, 2), dtype=np.intp)
    if not asynchronous and len(finished):
        maxima = np.cumsum(new)
        uninterrupted = maxima[saved] == maxima[finished]
        finished, saved = finished[uninterrupted], saved[uninterrupted]
        of_high = new[finished]
        leaves_row[maxima[finished[of_high]] - 1] = records.row[saved[of_high]]
        blocking = np.column_stack((records.row[finished], records.row[saved]))
    return (
        _StepMaxima(records.row[high], records.owner[high], records.step[high], table.time[leaves_row], leaves_row),
        blocking,
        asynchronous,
    )


def _first_saves(records: _ProgressRecords, finished: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the finishes (positions of records) that a save of the same step follows, and the first such save of
    each."""
    saved = np.flatnonzero(~records.finished)
    if len(finished) == 0 or len(saved) == 0:
        return finished[:0], saved[:0]
    level = records.level[saved]
    if not is_sorted(level):
        order = np.argsort(level, kind="stable")
        level, saved = level[order], saved[order]
    heads = run_heads(level)
    keys, first_saved, finish_level = level[heads], saved[heads], records.level[finished]
    match = np.minimum(np.searchsorted(keys, finish_level), len(keys) - 1)
    has_save = (keys[match] == finish_level) & (first_saved[match] > finished)
    return finished[has_save], first_saved[match[has_save]]


def _has_finish_inside_save(records: _ProgressRecords) -> bool:
    """Return True if a higher step was finished between a step's first finish and its first save, in any save of the
    job. Steps that the attempt had passed before count, too."""
    finished, saved = _first_saves(records, _first_finishes(records))
    level = np.where(records.finished, records.level, -1)
    highest = np.maximum.accumulate(level)
    if np.any(highest[saved] > highest[finished]):
        return True
    passed = level[finished] < highest[finished]
    finished, saved = finished[passed], saved[passed]
    return bool(np.any(largest_within(level, finished, saved) > level[finished]))


def _first_finishes(records: _ProgressRecords) -> NDArray[np.intp]:
    """Return the positions of the first finish of each step in each attempt, in order."""
    finished = np.flatnonzero(records.finished)
    level = records.level[finished]
    if is_sorted(level):
        return finished[run_heads(level)]
    order = np.argsort(level, kind="stable")
    return np.sort(finished[order[run_heads(level[order])]])


def _is_logged_asynchronous(table: EventTable, records: _ProgressRecords) -> bool:
    """Return True if a line of a save states that saves are asynchronous."""
    if ASYNCHRONOUS not in table.details:
        return False
    return bool((table.detail[records.row] == table.details.index(ASYNCHRONOUS)).any())


def _training_spans(
    table: EventTable, maxima: _StepMaxima, began: I64, begin_time: I64, begin_row: Rows
) -> TrainingSpans:
    """Return the spans from the previous position of the attempt to each new maximum."""
    owner = maxima.owner
    fresh = run_heads(owner)
    start = np.where(fresh, begin_time[owner], np.append(-1, maxima.leaves[:-1])[: len(owner)])
    start_row = np.where(fresh, begin_row[owner], np.append(-1, maxima.leaves_row[:-1])[: len(owner)])
    first = np.where(fresh, began[owner], np.append(NO_STEP, maxima.step[:-1])[: len(owner)])
    # No span leads to the first record of an attempt that began there; its next span is its first.
    empty = first == maxima.step
    opening = fresh | np.append(False, empty[:-1])[: len(owner)]
    made = TrainingSpans(start, table.time[maxima.row], first, maxima.step, owner, start_row, maxima.row, opening)
    return made.take(~empty)
