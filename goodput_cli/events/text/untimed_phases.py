"""Saves and evaluations between step records whose usual step time is unknown, because nearly all records have one
between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from goodput_cli.events.schema import UNTIMED_PHASE, Edge
from goodput_cli.events.text.gaps import PHASES, is_untimed, shown_between, steps_between, usual_step
from goodput_cli.events.text.log_lines import ENDS, EventType, LogLine, ParsedEvent, SourceText, event_of

_UNLIMITED = 1 << 62
_LEAST_SHARE = 0.1
"""Share of the time between records from which steps are trained in a part of it."""


class _Interval(NamedTuple):
    """Two step records of one process, and the saves and evaluations between them."""

    before: LogLine
    after: LogLine | None
    """None for the last record of a process."""
    phases: tuple[LogLine, ...]

    @property
    def parts(self) -> tuple[int, int, int]:
        """Return the time (ns) from the record to the first phase, from the last phase to the next record, and between
        the records."""
        if self.after is None:
            return 0, 0, 0
        begin, end = self.before.end, self.after.end
        return max(self.phases[0].time - begin, 0), max(end - self.phases[-1].end, 0), end - begin


def with_untimed_phases(log_lines: Sequence[LogLine], of: SourceText) -> Iterator[LogLine]:
    """Time saves and evaluations where no usual step time is known, because nearly all records have one between them:
    from the save or evaluation before them, or from the record if they are about its step. Mark the others: their time
    is unknown (accounting §7).

    log_lines: in order of time.
    """
    if not any(map(is_untimed, log_lines)):
        yield from log_lines
        return
    has_steps = any(event_of(one).type is EventType.STEP for one in log_lines)
    record = EventType.STEP if has_steps else EventType.STEP_START
    is_known = usual_step(log_lines, record) is not None
    intervals = [*_intervals(log_lines, record)]
    first, last, whole = (sum(parts) for parts in zip((0, 0, 0), *(one.parts for one in intervals), strict=True))
    trains_after = last > _LEAST_SHARE * whole
    trains_before = not trains_after and first > _LEAST_SHARE * whole
    open_lines = {one.line for one in log_lines if event_of(one).type is record and event_of(one).step_time is None}
    in_records = [one for one in log_lines if one.line in open_lines and is_untimed(one)]
    found = {id(one): _timed(one, None, is_known) for one in in_records}
    for one in intervals:
        trained = one.parts[1] if trains_after else one.parts[0] if trains_before else 0
        trained = trained if one.after is not None else _UNLIMITED
        for earlier, phase in pairwise((one.before, *one.phases)):
            if is_untimed(phase):
                begin = _begin(one, earlier, phase, of, None if is_known else trained, trains_after)
                found[id(phase)] = _timed(phase, begin, is_known or one.after is None)
    for log_line in log_lines:
        yield from found.get(id(log_line), (log_line,))


def _intervals(log_lines: Sequence[LogLine], record: EventType) -> Iterator[_Interval]:
    """Yield the intervals without a stated step time in which the time of a save or an evaluation is unknown, except
    those in the lines of records. record: type of step records."""
    records = {one.line for one in log_lines if event_of(one).type is record}
    before: LogLine | None = None
    phases: list[LogLine] = []
    for log_line in log_lines:
        one = event_of(log_line)
        if one.type is record:
            goes_on = before is not None and steps_between(before, log_line) > 0
            if before is not None and goes_on and one.step_time is None and any(map(is_untimed, phases)):
                yield _Interval(before, log_line, tuple(phases))
            before, phases = log_line, []
        elif one.type in (EventType.START, *ENDS):
            if before is not None and any(map(is_untimed, phases)):
                yield _Interval(before, None, tuple(phases))
            before, phases = None, []
        elif one.type in PHASES and one.edge is Edge.POINT and log_line.line not in records:
            phases.append(log_line)
    if before is not None and any(map(is_untimed, phases)):
        yield _Interval(before, None, tuple(phases))


def _begin(
    interval: _Interval, earlier: LogLine, phase: LogLine, of: SourceText, trained: int | None, trains_after: bool
) -> int | None:
    """Return the time (ns) at which a save or an evaluation began; None if it is unknown.

    earlier: the record or phase before it. trained: time (ns) in which steps are trained before the first phase or
    after the last one; None if the usual step time is known. trains_after: True if it is after the last one.
    """
    one, is_first = event_of(phase), earlier is interval.before
    begin = None if is_first else earlier.end
    if one.since_line and (shown := shown_between(of.shown_times, interval.before, phase)):
        begin = shown if begin is None else max(begin, shown)
    elif is_first and trains_after and _is_about(one, event_of(earlier)):
        return earlier.end
    if begin is None or phase.time <= begin:
        return None
    if trained is None:
        return begin if one.since_line and not is_first else None
    return begin if phase.time - begin <= trained else None  # A longer time may contain the training.


def _is_about(phase: ParsedEvent, record: ParsedEvent) -> bool:
    """Return True if a save or an evaluation is of the step of the record before it."""
    return phase.since_step or (phase.step is not None and phase.step == record.step)


def _timed(phase: LogLine, begin: int | None, is_known: bool) -> tuple[LogLine, ...]:
    """Return a phase with its time if its begin (ns) is known, otherwise with a mark. is_known: True if none of its
    time counts as training."""
    if begin is not None:
        return (replace(phase, time=min(begin, phase.time), end=phase.time),)
    return (phase,) if is_known else (phase, _mark(phase))


def _mark(phase: LogLine) -> LogLine:
    event = ParsedEvent(event_of(phase).format, EventType.ALIVE, detail=UNTIMED_PHASE)
    return LogLine(phase.line, phase.stream, None, event, phase.time, phase.time)


def with_unclocked_phases(log_lines: Sequence[LogLine]) -> Iterator[LogLine]:
    """Mark saves and evaluations without a duration in a source without a clock, unless its records state the time
    since the one before."""
    has_gaps = any(event_of(one).since_record for one in log_lines)
    for log_line in log_lines:
        yield log_line
        if not has_gaps and is_untimed(log_line):
            yield _mark(log_line)
