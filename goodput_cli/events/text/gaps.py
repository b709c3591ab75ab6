"""Time saves and evaluations without a duration: the gap between the step records around them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import NamedTuple

import numpy as np

from goodput_cli.arrays import F64
from goodput_cli.events.schema import SAVE_STATE, Edge
from goodput_cli.events.text.log_lines import BEYOND_ALL, ENDS, EventType, LogLine, SourceText, event_of
from goodput_cli.events.text.stretches import last_record
from goodput_cli.vocabulary.when import NS_PER_SECOND

_TOLERANCE = 100
"""A gap is at least this fraction of the time of the steps after it."""
PHASES = (EventType.SAVE, EventType.EVAL)
_ALL_BUT = 0.8
"""At least this part of the usual time of steps is all of it."""
_FAR_LONGER = 5
"""Ratio to the usual step time from which a step hangs."""
_FEW_PAIRS, LEAST_PAIRS = 3, 2
"""Minimum number of pairs of records, and of those without a save of unknown length."""


def with_gaps(log_lines: Sequence[LogLine], of: SourceText) -> Iterator[LogLine]:
    """Extend saves and evaluations without a time to the gap between two records.

    The gap is the time beyond step times between records that have them; for saves also the time beyond usual steps
    between others, if nothing else is in it. log_lines: in order of time.
    """
    marked = _MarkedGaps.of(log_lines, of.shown_times)
    before: LogLine | None = None
    waiting: list[LogLine] = []
    edges: list[LogLine] = []
    claimed = False
    for log_line in log_lines:
        one = event_of(log_line)
        if one.type in PHASES and one.edge is not Edge.POINT:
            edges.append(log_line)
        elif one.type in PHASES:
            timed = log_line.end > log_line.time or bool(one.took)
            claimed |= timed
            if not timed:
                waiting.append(log_line)
                continue
        elif one.type is EventType.STEP:
            yield from _gap(before, log_line, waiting, edges, claimed, marked)
            before, waiting, edges, claimed = log_line, [], [], False
        elif one.type in (EventType.START, EventType.CRASHED, EventType.TERMINATED, EventType.PREEMPTED):
            yield from waiting
            before, waiting, edges, claimed = None, [], [], False
        yield log_line
    yield from waiting


def _gap(
    before: LogLine | None, after: LogLine, waiting: Sequence[LogLine], edges: Sequence[LogLine], claimed: bool,
    marked: _MarkedGaps,
) -> Iterator[LogLine]:  # fmt: skip
    """Yield the log lines between two records: one kind takes the whole gap except other phases with a begin or end; of
    two kinds, a save takes it from its timestamp on. edges: begins and ends of other phases in it."""
    kinds = {event_of(log_line).type for log_line in waiting}
    gap = None if before is None else _gap_between(before, after)
    if before is not None and gap is None and kinds and all(map(_is_mark, waiting)):
        gap = marked.gap_between(before, after)
    if gap is None or claimed or not kinds:
        yield from waiting
        return
    first, *rest = sorted(waiting, key=lambda log_line: event_of(log_line).type is not EventType.SAVE)
    begin, end = _without_others(gap, first, edges)
    others = [] if first.odd else [one for one in rest if event_of(one).type is EventType.EVAL and not one.odd]
    marks = [one.time for one in others if one.line < first.line]
    if event_of(first).since_line and max(marks, default=begin) <= end:
        begin = min(max(begin, shown_between(marked.shown, before, first), *marks), end)
        end = end if len(marks) == len(others) else max(begin, min(end, first.time))
    elif len(kinds) > 1:
        begin = first.time if not first.odd and begin <= first.time <= end else (begin + end) // 2
    yield replace(first, time=begin, end=end)
    yield from rest


def _without_others(gap: tuple[int, int], mark: LogLine, edges: Sequence[LogLine]) -> tuple[int, int]:
    """Return the part of a gap after the phases that end before a mark, and before those that begin after it."""
    begin, end = gap
    for one in edges:
        if one.line < mark.line and event_of(one).edge is not Edge.BEGIN:
            begin = max(begin, one.end)
        elif one.line > mark.line and event_of(one).edge is not Edge.END:
            end = min(end, one.time)
    return begin, max(begin, end)


def _gap_between(before: LogLine, after: LogLine) -> tuple[int, int] | None:
    """Return [begin, end) of the time without training between two records, if the second one has a step time; None if
    there is none."""
    one, other = event_of(before), event_of(after)
    if other.step_time is None or one.step is None or other.step is None or other.step <= one.step:
        return None
    trained = (other.step - one.step) * other.step_time
    begin, end = before.end, after.end - trained
    whole = any(log_line.stamp is not None and log_line.stamp.whole for log_line in (before, after))
    if end - begin <= trained // _TOLERANCE + (2 * NS_PER_SECOND if whole else 0):
        return None
    return begin, end


class _MarkedGaps(NamedTuple):
    """Gaps for saves without duration between records without step times."""

    usual: float
    """Usual step time (ns); 0 if unknown."""
    beyond: float
    """Median time (ns) of gaps with a mark beyond usual steps."""
    shown: Sequence[tuple[int, int]] = ()
    """Line and time (ns) of other lines, in order of lines."""

    @classmethod
    def of(cls, log_lines: Sequence[LogLine], shown: Sequence[tuple[int, int]] = ()) -> _MarkedGaps:
        """Return those of log lines in order of time. shown: line and time (ns) of other lines."""
        usual = usual_step(log_lines) if any(map(_is_mark, log_lines)) else None
        if not usual or usual <= 0:
            return cls(0, 0, shown)
        found: list[float] = []
        before: LogLine | None = None
        has_mark = False
        for log_line in log_lines:
            if _is_mark(log_line):
                has_mark = True
            elif event_of(log_line).type is EventType.STEP:
                if has_mark and before is not None and (steps := steps_between(before, log_line)):
                    found.append(max(log_line.end - before.end - steps * usual, 0))
                before, has_mark = log_line, False
            elif event_of(log_line).type in (EventType.START, *ENDS):
                before = None
        return cls(usual, median(found) if found else 0, shown)

    def gap_between(self, before: LogLine, after: LogLine) -> tuple[int, int] | None:
        """Return [begin, end) of the gap of a mark between two records; None if there is none, or if it is far longer
        than other gaps with a mark."""
        step = event_of(after).step
        if step is not None and step == event_of(before).step:  # The phase prints the step again at its end.
            return before.end, after.end
        steps = 0 if event_of(after).step_time is not None else steps_between(before, after)
        beyond = after.end - before.end - steps * self.usual
        if not steps or not self.usual or not self.usual / 2 < beyond <= _FAR_LONGER * self.beyond:
            return None
        return before.end, before.end + round(beyond)


def shown_between(shown: Sequence[tuple[int, int]], record: LogLine | None, mark: LogLine) -> int:
    """Return the time (ns) of the last line between a record and a mark; 0 without one. shown: line and time of lines
    without an event."""
    row = bisect_left(shown, (mark.line, 0)) - 1
    return shown[row][1] if row >= 0 and record is not None and shown[row][0] > record.line else 0


def _is_mark(log_line: LogLine) -> bool:
    """Return True for a save known only as a point, or an evaluation without a timestamp; with one, it ends there."""
    has_place = event_of(log_line).type is EventType.SAVE or log_line.odd
    return has_place and _is_point(log_line)


def _is_point(log_line: LogLine) -> bool:
    """Return True for a save or an evaluation without a length."""
    one = event_of(log_line)
    return one.type in PHASES and one.edge is Edge.POINT and log_line.end == log_line.time and not one.took


def is_untimed(log_line: LogLine) -> bool:
    """Return True for a save or an evaluation that takes time of the training, but whose length is unknown."""
    return _is_point(log_line) and not any(name == SAVE_STATE for name, _ in event_of(log_line).detail)


def steps_between(before: LogLine, after: LogLine) -> int:
    first, last = event_of(before).step, event_of(after).step
    return 0 if first is None or last is None else min(max(last - first, 0), BEYOND_ALL)


def with_ended_evaluations(log_lines: Sequence[LogLine], _: SourceText) -> Iterator[LogLine]:
    """Time evaluations that log only their end: they begin after the last record and the steps trained since.

    If the next steps are trained after the evaluation, it takes all time since the record. log_lines: in order of time.
    """
    usual = usual_step(log_lines) if any(event_of(one).type is EventType.EVAL for one in log_lines) else None
    record: LogLine | None = None
    since = 0
    for log_line, after in zip(log_lines, _next_records(log_lines), strict=True):
        one = event_of(log_line)
        if one.type is EventType.STEP:
            record, since = log_line, log_line.end
        elif one.type in (EventType.START, *ENDS):
            record = None
        elif one.type is EventType.EVAL and one.edge is Edge.POINT and log_line.end == log_line.time and not one.took:
            done = None if record is None else event_of(record).step
            if done is not None and (took := _took_of_evaluation(log_line, since, done, usual)) is not None:
                log_line = replace(log_line, event=replace(one, took=took))
            elif log_line.time > since and _trains_after(log_line, record, after, usual):
                log_line = replace(log_line, event=replace(one, took=log_line.time - since))
            since = log_line.time
        elif one.type is not EventType.ALIVE:
            since = max(since, log_line.end)
        yield log_line


def _next_records(log_lines: Sequence[LogLine]) -> list[LogLine | None]:
    """Return the next record of a step after each log line; None if a process begins or ends before it."""
    found: list[LogLine | None] = []
    record: LogLine | None = None
    for log_line in reversed(log_lines):
        found.append(record)
        if event_of(log_line).type is EventType.STEP:
            record = log_line
        elif event_of(log_line).type in (EventType.START, *ENDS):
            record = None
    return found[::-1]


def _took_of_evaluation(evaluation: LogLine, since: int, done: int, usual: float | None) -> int | None:
    """Return the time (ns) of an evaluation after the steps before it; None if it is at most half a step. done: step of
    the last record."""
    if usual is None:
        return None
    trained = min(max((event_of(evaluation).step or done) - done, 0), BEYOND_ALL) * usual
    took = round(evaluation.time - since - trained)
    return took if took > usual / 2 else None


def _trains_after(mark: LogLine, before: LogLine | None, after: LogLine | None, usual: float | None) -> bool:
    """Return True if the steps between two records are trained after a mark: about their usual time passes there, or
    most of the time if that is unknown."""
    steps = 0 if before is None or after is None else steps_between(before, after)
    if before is None or after is None or mark.odd or not steps:
        return False
    least = (after.end - before.end) / 2 if usual is None else _ALL_BUT * steps * usual
    return after.end - mark.end > least


def usual_step(log_lines: Sequence[LogLine], record: EventType = EventType.STEP) -> float | None:
    """Return the usual step time (ns) between records without a save or an evaluation of unknown length between them;
    None if there are too few. record: type of records."""
    found: list[float] = []
    with_saves = 0
    inner: list[F64] = []
    before: LogLine | None = None
    other, has_save = 0, False
    for log_line in log_lines:
        one = event_of(log_line)
        if one.type is record:
            end, done = (0, None) if before is None else last_record(before)
            took = 0 if before is None else log_line.end - end - other
            if done is not None and one.step is not None and done < one.step and abs(took) < BEYOND_ALL:
                with_saves += has_save
                found += [] if has_save else [took / min(one.step - done, BEYOND_ALL)]
            before, other, has_save = log_line, 0, False
            if log_line.inner is not None:
                inner.append(np.diff(log_line.inner.time, prepend=log_line.end) / log_line.inner.stride)
        elif one.type is EventType.SAVE:
            other += one.took or log_line.end - log_line.time
            has_save |= is_untimed(log_line)
        elif one.type is not EventType.ALIVE:
            before = None
    if inner:
        return float(np.median(np.concatenate([np.array(found), *inner])))
    return median(found) if len(found) >= LEAST_PAIRS and len(found) + with_saves >= _FEW_PAIRS else None
