"""The native format: lines of goodput's recorder for events that no other library writes. `goodput_cli.record.lines`
declares its events and their keys."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from goodput_cli.arrays import I64, Mask, Rows
from goodput_cli.events.formats import resiliency as named_events
from goodput_cli.events.formats.base import JOB_NAME, Output, Records
from goodput_cli.events.schema import (
    CLOCK_STEP,
    LOST_STEPS,
    NO_STEP,
    NONE,
    PREEMPTED,
    SECOND_WRITER,
    WORLD_SIZE,
    Edge,
    Kind,
)
from goodput_cli.events.signs import RecordedRecoveryEvent, RecoveryEventText, RecoveryPhase
from goodput_cli.events.values import NOT_FINITE, number, whole_number
from goodput_cli.record.lines import EVENT, EVENTS, PHASES, RANK, REASON, RESTARTED_BY, RUN_ID, STEP, TIME
from goodput_cli.sources.base import Record
from goodput_cli.vocabulary.text import safe

_NOTICE = "preemption_notice"
_KINDS = {name: named_events.RESILIENCY_KINDS[event.means] for name, event in EVENTS.items() if event.means}
_KINDS |= {"heartbeat": Kind.HEARTBEAT, _NOTICE: Kind.HEARTBEAT}
_SILENT = {name: 0 for name in EVENTS if name not in _KINDS}
"""Known events without a row."""
_DROPPED, _CLOCK_STEP, _METRICS, _ATTEMPT = "dropped", "clock_step", "metrics", "attempt"
_SIZES_OF_ATTEMPT = ("accelerators", WORLD_SIZE)
_LONGEST_STEP = 1e9
"""Seconds; a clock is never set forward by more."""
_LAST_SECOND = 1e10
_EXIT = "exit"
_HOST = "host"
_DEATHS = ("crashed", "terminated")
_NO_METRICS = {JOB_NAME, EVENT, TIME, RUN_ID, STEP, RANK}


class NativeFormat:
    """The native format of goodput's recorder."""

    name = "goodput"
    keys = frozenset({JOB_NAME, EVENT, TIME}).union(*(event.keys for event in EVENTS.values()))

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """Return True for a record with `goodput_event`."""
        return EVENT in record

    def any_key(self, records: Records) -> bool:
        """Return True for records that may have any keys: metrics and phases have their own names."""
        return all(name in (_METRICS, PHASES) for name in records.column(EVENT))

    def translate(self, records: Records, output: Output) -> Mask:
        """Add a row per record with an event of the job."""
        kind = named_events.codes(records, EVENT, _KINDS)
        silent = named_events.codes(records, EVENT, _SILENT) != named_events.UNKNOWN
        phases = _of_event(records, PHASES)
        if phases.all() and len(phases):
            _read_phases(records, phases, output)
            return records.every()
        output.report("bad_phase", "phases without a number of steps; dropped", records, phases)
        for record in records.records if _HOST in records.keys else ():
            output.texts.nodes[records.origin.source, whole_number(record.get(RANK))] = str(record[_HOST] or "")
        said = {}
        if not _OF_WRITERS.isdisjoint(records.keys):
            facts = ((at, _of_writer(record)) for at, record in enumerate(records.records))
            said = {at: fact for at, fact in facts if fact is not None}
        kind[list(said)] = Kind.HEARTBEAT
        known = kind != named_events.UNKNOWN
        named_events.report_unknown(records, EVENT, ~known & ~silent, output)
        for at in np.flatnonzero(silent).tolist():
            _report(records, at, output)
        metrics = _of_event(records, _METRICS)
        attempts = _of_event(records, _ATTEMPT)
        if not (known | metrics | attempts).any():
            return records.every()
        if TIME not in records.keys:
            output.report("bad_value", f"no `{TIME}`; dropped", records, known | metrics | attempts)
            return records.every()
        time, timed = output.times(records, TIME)
        _measure(records, np.flatnonzero(metrics & timed), time, output)
        _read_attempts(records, np.flatnonzero(attempts & timed), time, output)
        if not known.any():
            return records.every()
        good = known & timed
        step = named_events.steps(records, kind, good, output)
        rank = named_events.ranks(records, RANK, output)
        notice = _of_event(records, _NOTICE)
        detail = np.where(notice, output.details.code(PREEMPTED) if notice.any() else NONE, NONE).astype(np.int32)
        for at, detail_of_line in said.items():
            detail[at] = output.details.code((detail_of_line,))
        origin = structs.replace(records.origin, writer=_writers(records, kind, output))
        output.rows.add(origin, good, kind, Edge.POINT, time, step=step, rank=rank, detail=detail)
        _observe_failure(records, time, output)
        _observe_restart(records, np.flatnonzero(good), time, output)
        return records.every()


def _of_event(records: Records, name: str) -> Mask:
    """Return True for the records of one event."""
    return np.asarray(named_events.codes(records, EVENT, {name: 0}) == 0)


def _read_phases(records: Records, phases: Mask, output: Output) -> None:
    """Collect the step breakdowns of ranks. Their keys belong to no other event."""
    from goodput_cli.events.formats.native_phases import read_phases  # imported late: few logs contain any

    if TIME not in records.keys:
        output.report("bad_value", f"no `{TIME}`; dropped", records, phases)
        return
    time, timed = output.times(records, TIME)
    read_phases(records, np.flatnonzero(phases & timed), time, output)


def _writers(records: Records, kind: NDArray[np.int8], output: Output) -> NDArray[np.int32] | None:
    """Return the writer of each record: from its entry, otherwise from a heartbeat's `run_id`; None if all are
    unknown."""
    writer = records.origin.writer
    if RUN_ID not in records.keys:
        return writer
    beats = np.flatnonzero(kind == Kind.HEARTBEAT if writer is None else (kind == Kind.HEARTBEAT) & (writer == NONE))
    named = {
        at: run_id for at in beats.tolist() if isinstance(run_id := records.records[at].get(RUN_ID), str) and run_id
    }
    if not named:
        return writer
    writer = np.full(len(records.records), NONE, dtype=np.int32) if writer is None else writer.copy()
    writer[list(named)] = [output.writers.code(("", run_id)) for run_id in named.values()]
    return writer


def _observe_failure(records: Records, time: I64, output: Output) -> None:
    """Add the observation that a recorder wrote about a failure: a reason, of a rank on a host."""
    if REASON not in records.keys:
        return
    from goodput_cli.events.cluster import recorded  # imported late: few logs contain failures
    from goodput_cli.events.text.collector import TextPart

    seen = []
    for at, record in enumerate(records.records):
        if record[EVENT] in _DEATHS and isinstance(record[REASON], str):
            rank = whole_number(record.get(RANK))
            host = output.texts.nodes.get((records.origin.source, rank), "")
            job, line = str(record.get(JOB_NAME, "")), int(records.origin.line[at])
            one = recorded(record[REASON], line, int(time[at]), rank, host, job)
            seen += [one] if one is not None else []
    if seen:
        output.texts.add(records.origin.source, TextPart(seen=seen))


def _observe_restart(records: Records, good: Rows, time: I64, output: Output) -> None:
    """Add that a person started the job, if a start states so. good: the positions of the records that are events."""
    for at in good.tolist() if RESTARTED_BY in records.keys else ():
        record = records.records[at]
        if record[EVENT] == _STARTED and record[RESTARTED_BY] == _HAND:
            said = RecoveryEventText(RecoveryPhase.WORKERS_STARTED, {"by": _HAND}, rank=whole_number(record.get(RANK)))
            job, line = int(records.origin.job[at]), int(records.origin.line[at])
            output.texts.recorded.append(RecordedRecoveryEvent(said, int(time[at]), job, records.origin.source, line))


_STARTED, _HAND = "started", "hand"
_OF_WRITERS = frozenset({"seconds", "steps", "beside"})
"""Keys that `_of_writer` looks for, one per detail."""


def _of_writer(record: Record) -> tuple[str, object] | None:
    """Return the detail of a record about the writing process: the amount (ns) by which its clock was set forward, the
    time range (ns) in which lines of steps were lost, or the process whose file it also writes. None for other records.

    The clock of a process that writes no steps is not that of the job. Lines that were not delivered at the exit belong
    to another source than the line that reports them.
    """
    event, seconds, other = record[EVENT], number(record.get("seconds")), whole_number(record.get("beside"))
    if event == _CLOCK_STEP and seconds is not None and 0 < seconds < _LONGEST_STEP:
        return None if whole_number(record.get(RANK)) else (CLOCK_STEP, round(seconds * 10**6) * 1000)
    if event == _DROPPED and record.get(REASON) != _EXIT and (number(record.get("steps")) or 0) > 0:
        begin, end = number(record.get("from")), number(record.get("to"))
        if begin is not None and end is not None and 0 <= begin < end < _LAST_SECOND:
            return LOST_STEPS, (round(begin * 10**6) * 1000, round(end * 10**6) * 1000)
    return (SECOND_WRITER, other) if event == SECOND_WRITER and other is not None else None


def _report(records: Records, at: int, output: Output) -> None:
    """Report the diagnostics that the recorder logged about itself."""
    record = records.records[at]
    if record[EVENT] == _DROPPED:
        lines, steps, reason = number(record.get("lines")), number(record.get("steps")), record.get(REASON)
        lost = "an unknown number of lines" if lines is None else f"{lines} lines"
        lost += f", including {steps} steps" if steps else ""
        lost += f" ({reason})" if isinstance(reason, str) and reason else ""
        message = output.notes.bounded("recorder_dropped", safe(lost))
        output.report("recorder_dropped", f"the recorder lost lines: {message}", records, [at])
    elif record[EVENT] == _CLOCK_STEP:
        seconds = number(record.get("seconds"))
        which = "set" if seconds is None else "set back" if seconds < 0 else "set forward"
        output.report("clock_step", f"the machine's clock was {which} during recording", records, [at])


def _is_bad_loss(name: str, value: object) -> bool:
    """Return True if a metric is a loss that is not finite, as a number or as a word such as `nan`."""
    if "loss" not in name.lower():
        return False
    if isinstance(value, float):
        return not math.isfinite(value)
    return isinstance(value, str) and value.strip().lower().lstrip("+-") in NOT_FINITE


def _measure(records: Records, metrics: Rows, time: I64, output: Output) -> None:
    """Collect metrics, with or without a step. metrics: the positions of the records that contain them."""
    for at in metrics.tolist():
        record = records.records[at]
        job, when, step = int(records.origin.job[at]), int(time[at]), whole_number(record.get(STEP))
        for name in record.keys() - _NO_METRICS:
            value = number(record[name])
            if value is None and _is_bad_loss(name, record[name]):
                output.bad_losses[job].append(when)
            if value is not None and math.isfinite(value):
                output.measured.add(job, name, when, NO_STEP if step is None else step, float(value))


def _read_attempts(records: Records, attempts: Rows, time: I64, output: Output) -> None:
    """Collect the announced processes, and the sizes of the job that they state, as metrics of the same names.
    Processes of ranks above 0 write no steps, so they are not announced."""
    for at in attempts.tolist():
        record, job, when = records.records[at], int(records.origin.job[at]), int(time[at])
        if not whole_number(record.get(RANK)):
            output.announced.append((job, records.origin.source, when))
        for name in _SIZES_OF_ATTEMPT:
            size = whole_number(record.get(name))
            if size is not None and size > 0:
                output.measured.add(job, name, when, NO_STEP, float(size))
