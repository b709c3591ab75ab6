"""Losses (accounting §10): the training that each disruption took back, and the log lines that bound each
disruption."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import (
    GatheredColumn,
    clipped,
    distinct,
    first_of_each,
    positions,
    rows_of,
    search,
    search_within,
)
from goodput_cli.accounting.training.kept import TrainingOutcome
from goodput_cli.arrays import I64, Mask, Rows, blocks, sums_by
from goodput_cli.events.schema import NO_STEP, Kind
from goodput_cli.vocabulary.categories import Category

_TOP = np.iinfo(np.int64).max


def lost_steps(timeline: Timeline) -> I64:
    """Return the training steps that the end of each attempt lost, whichever attempt had trained them.

    The result is in hindsight: a step that was kept in the end is not lost.
    """
    charged = _charged(timeline)
    if not len(charged.ended):
        return np.zeros(len(timeline.attempts), dtype=np.int64)
    trained = _trained(timeline)
    lost = trained.lost_before(charged.attempt, charged.high) - trained.lost_before(charged.attempt, charged.low)
    return sums_by(charged.ended, lost, len(timeline.attempts))


def lost_time(timeline: Timeline, within: tuple[int, int], below: I64 | None = None) -> I64:
    """Return the same loss as time (ns) inside a window. below: by attempt, the step below which its loss counts; None
    counts all.

    Over all attempts this is at most the wasted time of the ledger: losses of a clean end, and of the last attempt,
    belong to no disruption. The spans of an attempt's ranges tile it, so that its loss after its last record is
    included. Only cuts between two ranges are looked up.
    """
    charged = _charged(timeline)
    if below is not None:
        high = np.minimum(charged.high, below[charged.ended])
        some = charged.low < high
        charged = _LostSteps(charged.ended[some], charged.attempt[some], charged.low[some], high[some])
    if len(charged.attempt) == 0:
        return np.zeros(len(timeline.attempts), dtype=np.int64)
    start, end = (clipped(one, *within) for one in _spans_of(timeline, charged))
    wasted = timeline.ledger.time_in(Category.WASTED, start, np.maximum(start, end))
    return sums_by(charged.ended, wasted, len(timeline.attempts))


def spans_taken_back(timeline: Timeline) -> tuple[Rows, I64, I64]:
    """Return the spans of training that ends of attempts took back: the attempt that ended, begin and end (ns).

    Any attempt may have trained them. Their wasted time in the ledger is `lost_time`; some cover time that is not
    wasted.
    """
    charged = _charged(timeline)
    if len(charged.attempt) == 0:
        nothing = np.zeros(0, dtype=np.int64)
        return charged.ended, nothing, nothing
    start, end = _spans_of(timeline, charged)
    return charged.ended, start, np.maximum(start, end)


def _spans_of(timeline: Timeline, charged: _LostSteps) -> tuple[I64, I64]:
    """Return begin and end (ns) of the training of each row, including its attempt's loss after its last record: the
    spans of an attempt's ranges tile it."""
    attempt, low, high = charged.attempt, charged.low, charged.high
    began, _ = first_and_last_steps(timeline)
    trained, ends = _trained(timeline), np.append(timeline.attempts.begin[1:], timeline.end)
    lowest = low <= np.maximum(began, timeline.lineage.limit)[attempt]
    start = np.where(lowest, timeline.attempts.begin[attempt], trained.time_of_step(attempt, low))
    return start, np.where(high == _TOP, ends[attempt], trained.time_of_step(attempt, high))


class _LostSteps(Struct, frozen=True):
    """Columns: steps low <= s < high of `attempt`, lost by the end of attempt `ended`."""

    ended: Rows
    attempt: Rows
    low: I64
    high: I64


def _charged(timeline: Timeline) -> _LostSteps:
    began, last = first_and_last_steps(timeline)
    ranges = list(_ranges(began, last, timeline.lineage.limit))
    return _LostSteps(*np.array(ranges, dtype=np.int64).reshape(-1, 4).T)


def _trained(timeline: Timeline) -> _TrainedSpans:
    bounds = search(timeline.training.spans.attempt, np.arange(len(timeline.attempts) + 1))
    return _TrainedSpans(timeline.training, bounds)


def taken_back_by(timeline: Timeline, attempt: Rows, step: I64) -> Rows:
    """Return, for each of some recorded steps, the attempt whose end took it back; -1 if it was kept."""
    charged = _charged(timeline)
    order = np.lexsort((charged.high, charged.attempt))
    ended, owner, low, high = (one[order] for one in (charged.ended, charged.attempt, charged.low, charged.high))
    bounds = search(owner, np.arange(len(timeline.attempts) + 1))
    place = search_within(high, bounds[attempt], bounds[attempt + 1], step)
    inside = place < bounds[attempt + 1]
    result = np.full(len(place), -1, dtype=np.intp)
    inside[inside] = low[place[inside]] <= step[inside]
    result[inside] = ended[place[inside]]
    return result


def first_and_last_steps(timeline: Timeline) -> tuple[I64, I64]:
    """Return the step at which each attempt began and the last it recorded; `NO_STEP` for attempts without any."""
    if timeline.records is not None:
        return timeline.records.began, timeline.records.last
    assert timeline.progress is not None
    return timeline.progress.began, timeline.progress.last


def finished_a_step(timeline: Timeline) -> Mask:
    """Return, for each attempt, True if it finished a step: bool[attempts].

    An attempt that recorded only the begin of its first step did not, unless the next one continued after it. In
    checkpoint logs, which do not show steps, it is True for all attempts that show progress.
    """
    began, last = first_and_last_steps(timeline)
    recorded = began != NO_STEP
    if timeline.records is None or timeline.attempts.step_ends:
        return np.asarray(recorded)
    credited = np.zeros(len(began), dtype=bool)
    credited[:-1] = (began[1:] != NO_STEP) & (began[1:] > last[:-1])
    credited[-1:] = timeline.ended
    return np.asarray(recorded & ((last > began) | credited))


SHORT_NS = 60 * 10**9


def dying_starts(timeline: Timeline) -> Mask:
    """Return, for each attempt that another one follows, True if it ended before a step finished, or within a
    minute."""
    lived = timeline.sign_of_life - timeline.attempts.begin
    dying = ~finished_a_step(timeline) | (lived < SHORT_NS)
    dying[-1:] = False
    return np.asarray(dying)


def _ranges(began: I64, last: I64, limit: I64) -> Iterator[tuple[int, int, int, int]]:
    """Yield rows of `_LostSteps`: the steps of each attempt that later attempts took back.

    The attempt that took a step back is the first later one that began at or below it. Steps of a branch that was
    discarded without being repeated are charged to its own end.
    """
    stepping = np.flatnonzero(began != NO_STEP).tolist()
    starts, lasts = began[stepping].tolist(), last[stepping].tolist()
    floors = np.maximum(limit, began)[stepping].tolist()
    lower = _next_lower(starts)
    for place, attempt in enumerate(stepping):
        floor, high = floors[place], _TOP
        taker: int | None = place + 1 if place + 1 < len(stepping) else None
        while taker is not None and starts[taker] > lasts[place]:
            taker = lower[taker]
        while taker is not None and high > floor:
            yield stepping[taker - 1], attempt, max(starts[taker], floor), high
            high, taker = starts[taker], lower[taker]
        if high > floor:
            yield attempt, attempt, floor, high


def _next_lower(values: list[int]) -> list[int | None]:
    """Return, for each value, the position of the next lower value; None without one."""
    following: list[int | None] = [None] * len(values)
    waiting: list[int] = []
    for place, value in enumerate(values):
        while waiting and values[waiting[-1]] > value:
            following[waiting.pop()] = place
        waiting.append(place)
    return following


class _TrainedSpans(Struct, frozen=True):
    """Spans by attempt: attempt a has bounds[a] .. bounds[a + 1] - 1."""

    training: TrainingOutcome
    bounds: NDArray[np.intp]

    def beyond(self, attempt: Rows, step: I64) -> tuple[Rows, NDArray[np.bool_]]:
        """Return the position of each attempt's first span that goes beyond a step, and True if there is one."""
        stop = self.bounds[attempt + 1]
        place = search_within(self.training.spans.stop, self.bounds[attempt], stop, step)
        return place, place < stop

    def time_of_step(self, attempt: Rows, step: I64) -> I64:
        """Return when each attempt reached a step (ns); between the records of a span, in proportion."""
        spans = self.training.spans
        place, inside = self.beyond(attempt, step)
        when = np.zeros(len(place), dtype=np.int64)
        behind = ~inside & (place > self.bounds[attempt])
        when[behind] = spans.end[place[behind] - 1]
        when[inside] = spans.start[place[inside]]
        midway = np.flatnonzero(inside)
        midway = midway[step[midway] > spans.first[place[midway]]]
        for at in midway.tolist():  # They are few, and the product may not fit into 64 bits.
            row = place[at]
            first, stop = int(spans.first[row]), int(spans.stop[row])
            when[at] += int(spans.end[row] - spans.start[row]) * (int(step[at]) - first) // (stop - first)
        return when

    def lost_before(self, attempt: Rows, step: I64) -> I64:
        """Return the number of wasted steps below `step` of each attempt, plus those of earlier attempts."""
        place, inside = self.beyond(attempt, step)
        first, lost = self._lost(place[inside])
        upto = self._lost_before(place)
        upto[inside] += np.clip(step[inside] - first, 0, lost)
        return upto

    def _lost_before(self, place: Rows) -> I64:
        """Return the number of wasted steps in all spans before each position."""
        distinct_places = distinct(place)
        before = np.zeros(len(distinct_places), dtype=np.int64)
        total = done = 0
        for start, stop in blocks(len(self.training.kept_steps)):
            upto = np.cumsum(np.append(total, self._lost(slice(start, stop))[1]))
            last = int(search(distinct_places, stop, side="right"))
            before[done:last] = upto[distinct_places[done:last] - start]
            total, done = int(upto[-1]), last
        return before[search(distinct_places, place)]

    def _lost(self, chosen: Rows | slice) -> tuple[I64, I64]:
        """Return the first lost step of each span, and the number of lost ones."""
        spans, training = self.training.spans, self.training
        first = spans.first[chosen] + training.kept_steps[chosen].astype(np.int64)
        return first, np.where(training.credited[chosen], 0, spans.stop[chosen] - first)


class EvidenceRows(Struct, frozen=True):
    """Rows of the table, one value per attempt (m of them); -1 if no row shows it."""

    last_step: Rows
    """Last step (checkpoint logs: load or progress) that it recorded; `sign_of_life` is the row that ended last."""
    sign_of_life: Rows
    began: Rows
    """Row that shows the step at which it began."""
    resumed: NDArray[np.intp]
    """Not a row, but the index of the next attempt that recorded a step; -1 without one."""
    first_step: Rows
    """First step (checkpoint logs: progress) of a later attempt."""
    regained: Rows
    """First kept row after the last step of this attempt, or of the latest earlier one with steps if it has none."""


class _Progress(Struct, frozen=True):
    """Rows that show progress, in time order, with owner and step; kept: True if the lineage contains it."""

    row: Rows
    owner: Rows
    step: I64
    kept: NDArray[np.bool_]


def find_evidence(timeline: Timeline) -> EvidenceRows:
    """Return the events that show the disruptions of a job."""
    began, last = first_and_last_steps(timeline)
    stepping = np.flatnonzero(began != NO_STEP)
    progress = _progress(timeline)
    return EvidenceRows(
        last_step=_last_step_rows(timeline, last),
        sign_of_life=last_activity_rows(timeline),
        began=_began_rows(timeline, began),
        resumed=np.append(stepping, -1)[search(stepping, np.arange(len(began)), side="right")],
        first_step=_or_none(progress.row, search(progress.owner, np.arange(len(began)), side="right")),
        regained=_regained(
            progress, stepping, last, past=timeline.records is not None and not timeline.attempts.step_ends
        ),
    )


def _progress(timeline: Timeline) -> _Progress:
    """Return the progress. In checkpoint logs it is at the ends of training spans: each is a new highest step of its
    attempt."""
    records = timeline.records
    if records is None:
        spans, done = timeline.training.spans, np.asarray(timeline.training.spans.stop)
        kept = done <= timeline.lineage.limit[spans.attempt]
        return _Progress(spans.end_rows(np.arange(len(spans))), spans.attempt, done, kept)
    kept = np.empty(len(records.rows), dtype=bool)
    for start, stop in blocks(len(kept)):
        limit = timeline.lineage.limit[records.owner[start:stop]]
        compare = np.less_equal if timeline.attempts.step_ends else np.less
        compare(records.number[start:stop], limit, out=kept[start:stop])
    return _Progress(records.rows, records.owner, records.number, kept)


def _regained(progress: _Progress, stepping: NDArray[np.intp], last: I64, *, past: bool) -> Rows:
    """Return the first kept row of each attempt that is late and high enough.

    Kept steps grow with time, so one lookup per attempt is enough. A step log shows where a step begins: it is done
    when a higher one begins. Step ends and checkpoint logs show where it is done.
    """
    count = len(last)
    before = search(stepping, np.arange(count), side="right") - 1
    has_steps = before >= 0
    old = np.where(has_steps, last[np.append(stepping, 0)[before]], NO_STEP)
    kept = positions(progress.kept)
    late = search(kept, search(progress.owner, np.arange(count), side="right"))
    whole = np.zeros(count, dtype=np.intp), np.full(count, len(kept))
    high = search_within(GatheredColumn(progress.step, kept), *whole, old if past else old - 1)
    result = np.where(has_steps, _or_none(kept, np.maximum(late, high)), -1)
    return _or_none(progress.row, np.where(result >= 0, result, len(progress.row)))


def _or_none(rows: Rows, places: Rows) -> Rows:
    """Return the rows at some positions, -1 for positions after the last."""
    result = np.full(len(places), -1, dtype=np.intp)
    there = places < len(rows)
    result[there] = rows[places[there]]
    return result


def _last_step_rows(timeline: Timeline, last: I64) -> Rows:
    """Return, for checkpoint logs, the first line of the attempt that names its highest step."""
    if timeline.records is not None:
        return timeline.records.last_row
    table, attempts = timeline.table, timeline.attempts
    rows = rows_of(table.kind, (Kind.LOAD, Kind.FINISHED, Kind.SAVED))
    owner = attempts.of_row[rows]
    highest = table.step[rows] == last[owner]
    return first_of_each(rows[highest], owner[highest], len(attempts))


def last_activity_rows(timeline: Timeline) -> Rows:
    """Return the event that ends at the last sign of life. If a credited last step ends later than any event, it is the
    line of that step."""
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
    """Return the line that shows the step at which each attempt began: its first step. In checkpoint logs it is its
    load, otherwise the save that it must have resumed from, otherwise its first record if it names that step."""
    table, attempts, records = timeline.table, timeline.attempts, timeline.records
    if records is not None and records.beginnings is not None:
        return np.where(records.has_records, records.beginnings.shown, -1)
    if records is not None:
        return np.where(records.has_records, _or_none(records.rows, records.bounds[:-1]), -1)
    progress = timeline.progress
    assert progress is not None
    shown = progress.load_row.copy()
    naming = rows_of(table.kind, (Kind.SAVED, Kind.FINISHED, Kind.LOAD))
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
