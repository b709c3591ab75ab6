"""What a log does not tell: ends, checkpoints, steps, and long silence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from goodput_cli.accounting.attempts.endings import End
from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import of_kind, rows_of
from goodput_cli.accounting.training.spans import StepRecordsByAttempt
from goodput_cli.analysis.goodput.findings import diagnostic_at, not_recorded
from goodput_cli.arrays import I64, Rows
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.events.schema import Kind
from goodput_cli.vocabulary.categories import Category, in_group
from goodput_cli.vocabulary.text import duration
from goodput_cli.vocabulary.units import NS_PER_SECOND

_CHECKPOINT_KINDS = (Kind.SAVE, Kind.RESTORE, Kind.SAVED, Kind.LOAD)
_MUCH_UNEXPLAINED = 0.1
_LEAST_GAP_NS = 60 * NS_PER_SECOND
_GAP_FACTOR = 20
"""A gap is this many times longer than the usual time between two lines."""
_NOT_EXPLAINING = (*in_group("training"), Category.OTHER)


def check_coverage(timeline: Timeline) -> Iterator[Diagnostic]:
    """Findings about what the log of one job leaves open."""
    yield from _ends(timeline)
    yield from _checkpoints(timeline)
    yield from _steps(timeline)
    yield from _gaps(timeline)
    yield from _unexplained(timeline)


def _ends(timeline: Timeline) -> Iterator[Diagnostic]:
    table, attempts, how = timeline.table, timeline.attempts, timeline.endings.how
    if len(attempts) == 0:
        return
    if how[-1] == End.NOT_LOGGED:
        message = "the last attempt has no termination or end line"
        yield diagnostic_at("end_not_logged", table, np.array([len(table) - 1], dtype=np.intp), message)
    silent = np.flatnonzero(how[:-1] == End.NOT_LOGGED)
    if len(silent):
        rows = np.where(attempts.last_recorded[silent] >= 0, attempts.last_recorded[silent], attempts.begin_row[silent])
        yield diagnostic_at(
            "silent_death",
            table,
            rows,
            "attempts whose end no line says; the places are their last progress",
        )
    unknown = timeline.segments.category == Category.UNDETERMINED
    if np.any(unknown):
        segments = np.flatnonzero(unknown)
        lost = int((timeline.segments.end[segments] - timeline.segments.start[segments]).sum())
        rows = _rows_before(timeline, timeline.segments.start[segments])
        message = f"{duration(lost)} after the last checkpoints of attempts that died at an unlogged moment"
        yield diagnostic_at("undetermined_time", table, rows, message)


def _checkpoints(timeline: Timeline) -> Iterator[Diagnostic]:
    table = timeline.table
    if not np.any(of_kind(table.kind, _CHECKPOINT_KINDS)):
        yield Diagnostic.of("no_checkpoint_events", "no save or restore was logged")
    elif Category.SAVE.id in not_recorded(timeline):
        saves = rows_of(table.kind, (Kind.SAVE, Kind.SAVED))
        if len(saves):
            yield diagnostic_at("save_time_unknown", table, saves[:1], "saves without their duration", len(saves))


def _steps(timeline: Timeline) -> Iterator[Diagnostic]:
    records = timeline.records
    if records is None or len(records.rows) < 2:
        return
    distance = np.diff(records.number)
    distance[records.owner[1:] != records.owner[:-1]] = 0
    jumps = np.flatnonzero(distance > _usual_stride(records, distance))
    if len(jumps):
        message = f"step numbers that jump further than usual, by {int(distance[jumps].max())} at the most"
        yield diagnostic_at("missing_steps", timeline.table, records.rows[jumps + 1], message)


def _usual_stride(records: StepRecordsByAttempt, distance: I64) -> I64:
    """The usual distance of the attempt of each record but the last."""
    stride = np.array([records.stride(attempt) for attempt in range(records.attempts)], dtype=np.int64)
    return stride[records.owner[: len(distance)]]


def _gaps(timeline: Timeline) -> Iterator[Diagnostic]:
    """Silence between two lines of one attempt that no category but training, stalls and `other` explains."""
    table = timeline.table
    rows = np.flatnonzero(timeline.attempts.of_row >= 0)
    if len(rows) < 3:
        return
    reach = np.maximum.accumulate(table.end[rows])[:-1]
    gap = table.time[rows[1:]] - reach
    same = timeline.attempts.of_row[rows[1:]] == timeline.attempts.of_row[rows[:-1]]
    usual = float(np.median(gap[same])) if same.any() else 0.0
    longer = np.flatnonzero(same & (gap > max(_LEAST_GAP_NS, _GAP_FACTOR * usual)))
    if len(longer) == 0:
        return
    amounts = timeline.ledger.between(reach[longer], reach[longer] + gap[longer])
    open_ = sum((ns for (category, _), ns in amounts.items() if category in _NOT_EXPLAINING), np.zeros(len(longer)))
    unexplained = longer[2 * open_ > gap[longer]]
    if len(unexplained):
        longest = duration(int(gap[unexplained].max()))
        message = f"silence of up to {longest} inside an attempt; the places are the lines before it"
        yield diagnostic_at("log_gap", table, rows[unexplained], message)


def _unexplained(timeline: Timeline) -> Iterator[Diagnostic]:
    chosen = np.flatnonzero(timeline.segments.category == Category.OTHER)
    length = timeline.segments.end[chosen] - timeline.segments.start[chosen]
    total, window = int(length.sum()), timeline.end - timeline.start
    if total >= _MUCH_UNEXPLAINED * window:
        message = f"{duration(total)} of {duration(window)} are other ({100 * total / window:.3g} %)"
        longest = chosen[np.argsort(-length, kind="stable")[:3]]
        rows = _rows_before(timeline, timeline.segments.start[longest])
        yield diagnostic_at("unexplained_time", timeline.table, rows, message, len(chosen))


def _rows_before(timeline: Timeline, time: I64) -> Rows:
    """The last row at or before each instant."""
    place = np.searchsorted(timeline.table.time, time, side="right") - 1
    return np.maximum(place, 0)
