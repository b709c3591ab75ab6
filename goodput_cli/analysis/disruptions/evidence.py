"""Evidence of disruptions (accounting §10): which event shows each fact of a disruption."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import Gathered, first_of_each, places_within, positions, search
from goodput_cli.analysis.disruptions.losses import first_and_last_steps
from goodput_cli.arrays import I64, Rows, blocks
from goodput_cli.events.schema import NO_STEP, Kind


@dataclass(frozen=True)
class EvidenceRows:
    """Rows of the table, one value an attempt (m of them); -1 where no row shows it."""

    last_step: Rows
    """The last step (checkpoint logs: load or progress) that it recorded, and `sign_of_life` what ended last."""
    sign_of_life: Rows
    began: Rows
    """What shows the step at which it began."""
    resumed: NDArray[np.intp]
    """No row, but the next attempt that recorded a step, -1 without."""
    first_step: Rows
    """The first step (checkpoint logs: progress) of a later attempt."""
    regained: Rows
    """The first kept one that is past the last step this attempt, or else the latest one before it with steps, had
    recorded."""


@dataclass(frozen=True)
class _Progress:
    """What shows progress, in time order: row, owner and step of each; kept: whether the lineage holds it."""

    row: Rows
    owner: Rows
    step: I64
    kept: NDArray[np.bool_]


def find_evidence(timeline: Timeline) -> EvidenceRows:
    """The events that show the disruptions of a job."""
    began, last = first_and_last_steps(timeline)
    stepping = np.flatnonzero(began != NO_STEP)
    progress = _progress_of_steps(timeline) if timeline.records is not None else _progress_of_checkpoints(timeline)
    return EvidenceRows(
        last_step=_last_step_rows(timeline, last),
        sign_of_life=signs_of_life(timeline),
        began=_began_rows(timeline, began),
        resumed=_following(stepping, len(began)),
        first_step=_first_of_later_attempts(progress, len(began)),
        regained=_regained(
            progress, stepping, last, past=timeline.records is not None and not timeline.attempts.step_ends
        ),
    )


def _progress_of_steps(timeline: Timeline) -> _Progress:
    records = timeline.records
    assert records is not None
    kept = np.empty(len(records.rows), dtype=bool)
    for start, stop in blocks(len(kept)):
        limit = timeline.lineage.limit[records.owner[start:stop]]
        compare = np.less_equal if timeline.attempts.step_ends else np.less
        compare(records.number[start:stop], limit, out=kept[start:stop])
    return _Progress(records.rows, records.owner, records.number, kept)


def _progress_of_checkpoints(timeline: Timeline) -> _Progress:
    """Where spans of training end: each is a new highest step of its attempt."""
    training, limit = timeline.training, timeline.lineage.limit
    spans, stop = training.spans, np.asarray(training.spans.stop)
    return _Progress(
        spans.end_rows(np.arange(len(spans))),
        spans.attempt,
        stop,
        stop <= limit[spans.attempt],
    )


def _following(stepping: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """The next attempt with steps after each attempt; -1 without."""
    return np.append(stepping, -1)[search(stepping, np.arange(count), side="right")]


def _first_of_later_attempts(progress: _Progress, count: int) -> Rows:
    place = search(progress.owner, np.arange(count), side="right")
    return _or_none(progress.row, place)


def _regained(progress: _Progress, stepping: NDArray[np.intp], last: I64, *, past: bool) -> Rows:
    """Kept steps grow with time, so one look-up an attempt finds the first that is late and high enough. A step log
    shows where a step begins: it is done when a higher one begins. Step ends and checkpoint logs show where it is
    done."""
    count = len(last)
    before = search(stepping, np.arange(count), side="right") - 1
    has_steps = before >= 0
    old = np.where(has_steps, last[np.append(stepping, 0)[before]], NO_STEP)
    kept = positions(progress.kept)
    late = search(kept, search(progress.owner, np.arange(count), side="right"))
    whole = np.zeros(count, dtype=np.intp), np.full(count, len(kept))
    high = places_within(Gathered(progress.step, kept), *whole, old if past else old - 1)
    result = np.where(has_steps, _or_none(kept, np.maximum(late, high)), -1)
    return _or_none(progress.row, np.where(result >= 0, result, len(progress.row)))


def _or_none(rows: Rows, places: Rows) -> Rows:
    """The rows at some places, -1 behind the last."""
    result = np.full(len(places), -1, dtype=np.intp)
    there = places < len(rows)
    result[there] = rows[places[there]]
    return result


def _last_step_rows(timeline: Timeline, last: I64) -> Rows:
    """Checkpoint logs: the first line of the attempt that names its highest step."""
    if timeline.records is not None:
        return timeline.records.last_row
    table, attempts = timeline.table, timeline.attempts
    rows = np.flatnonzero((table.kind == Kind.LOAD) | (table.kind == Kind.FINISHED) | (table.kind == Kind.SAVED))
    owner = attempts.of_row[rows]
    highest = table.step[rows] == last[owner]
    return first_of_each(rows[highest], owner[highest], len(attempts))


def signs_of_life(timeline: Timeline) -> Rows:
    """The event that ends at the last sign of life. A credited last step ends later than any: its line then."""
    attempts, table = timeline.attempts, timeline.table
    result = np.full(len(attempts), -1, dtype=np.intp)
    for start, stop in blocks(len(table)):
        owner = attempts.of_row[start:stop]
        last = np.flatnonzero((owner >= 0) & (table.end[start:stop] == timeline.sign_of_life[owner]))
        np.maximum.at(result, owner[last], last + start)
    logged = attempts.first_ending >= 0
    at_ending = logged & (timeline.sign_of_life == table.time[attempts.first_ending])
    result[at_ending] = attempts.first_ending[at_ending]
    if timeline.records is None:
        return result
    return np.where(result >= 0, result, timeline.records.last_row)


def _began_rows(timeline: Timeline, began: I64) -> Rows:
    """The line that shows the step at which each attempt began: its first step; in checkpoint logs its load, else the
    save that it must have resumed from, else its first record if it names that step."""
    table, attempts, records = timeline.table, timeline.attempts, timeline.records
    if records is not None and records.beginnings is not None:
        return np.where(records.has, records.beginnings.shown, -1)
    if records is not None:
        return np.where(records.has, _or_none(records.rows, records.bounds[:-1]), -1)
    progress = timeline.progress
    assert progress is not None
    shown = progress.load_row.copy()
    naming = np.flatnonzero((table.kind == Kind.SAVED) | (table.kind == Kind.FINISHED) | (table.kind == Kind.LOAD))
    without = progress.without_load
    if len(without) == 0 or len(naming) == 0:
        return shown
    ranks = np.unique(np.concatenate((table.step[naming], began[without])), return_inverse=True)[1]
    size = len(table) + 1
    key = ranks[: len(naming)] * size + naming
    order = np.argsort(key)
    key, naming = key[order], np.append(naming[order], -1)
    targets = ranks[len(naming) - 1 :]
    place = search(key, targets * size + attempts.begin_row[without])
    rank_at = np.append(key // size, -1)
    own = (rank_at[place] == targets) & (attempts.of_row[naming[place]] == without)
    shown[without] = np.where(own, naming[place], -1)
    same = (place > 0) & (rank_at[place - 1] == targets)
    shown[without[same]] = naming[place[same] - 1]
    return shown
