"""Interpret log lines with times for a job: step ends, saves, evaluations, starts, ends.

Rules for all text formats: a start counts once per process, a save or evaluation without duration takes the gap between
two step records, and a step printed by two formats is one record.

Also collect the measurements of programs (MFU, TFLOP/s, throughput, reported step time), and detect several runs in one
source: equal steps alternate with different losses.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import attrgetter
from statistics import median
from typing import NamedTuple

import numpy as np

from goodput_cli.arrays import F64, I64
from goodput_cli.events.evidence import UntimedEvidence
from goodput_cli.events.schema import NO_STEP, NONE, Edge, Metric, SaveState
from goodput_cli.events.text.log_lines import ENDS, EventType, LogLine, ParsedEvent, Stretch, changed, save_detail
from goodput_cli.events.text.stretches import apart_in_time, last_of
from goodput_cli.vocabulary.when import NS_PER_MINUTE, NS_PER_SECOND

_SAME_RECORD = 2 * NS_PER_SECOND
_TOLERANCE = 100
"""A gap is at least this fraction of the time of the steps after it."""
_GAP_KINDS = (EventType.SAVE, EventType.EVAL)
_ALL_BUT = 0.8
"""At least this part of the usual time of steps is all of it."""
_FAR_LONGER = 5
"""Ratio to the usual step time from which a step hangs."""
_ENDS = (EventType.STEP, EventType.STEP_START, *ENDS)


def event_lines(
    log_lines: Sequence[LogLine], seen: Sequence[UntimedEvidence] = (), shown: Iterable[LogLine] = ()
) -> list[LogLine]:
    """Return the log lines of one source that become events, in order of time. seen: its evidence of failures. shown:
    its other timed lines."""
    log_lines = apart_in_time([log_line for log_line in log_lines if log_line.event is not None])
    ordered = sorted(log_lines, key=_order)
    errors = [one for one in seen if one.raised or (one.role == "root" and one.ends)]
    ordered = list(_drawn_once(_once(ordered, sorted(errors, key=attrgetter("line")))))
    ordered = list(_paired(ordered))
    ordered = _with_last_records(list(_recorded_once(ordered)))
    _take_usual_time(ordered)
    return list(_ended_evaluations(sorted(_with_gaps(ordered, shown), key=_order)))


def event_of(log_line: LogLine) -> ParsedEvent:
    """Return the event of a log line that has one."""
    assert log_line.event is not None
    return log_line.event


def _order(log_line: LogLine) -> tuple[int, int]:
    return log_line.end if event_of(log_line).type is EventType.STEP else log_line.time, log_line.line


def _once(log_lines: Iterable[LogLine], errors: Sequence[UntimedEvidence]) -> Iterator[LogLine]:
    """Keep the first of consecutive starts of one format without progress in between; after an end in a launcher's log,
    or an error that ended the process, the next start counts. errors: in line order."""
    begun: dict[tuple[str, str], LogLine] = {}
    lines = [error.line for error in errors]
    for log_line in log_lines:
        one = event_of(log_line)
        key = (one.format, log_line.stream)
        if one.type is EventType.START and one.once:
            before, begun[key] = begun.get(key), log_line
            if before is not None:
                since = errors[bisect_left(lines, before.line) : bisect_left(lines, log_line.line)]
                later = log_line.time - before.time > _TOGETHER
                if not any(_ended_before(log_line, error, later) for error in since):
                    log_line = replace(log_line, event=replace(one, type=EventType.ALIVE))
        elif one.type in _ENDS:
            begun.pop(key, None)
            if one.type in ENDS and one.format not in {name for name, _ in begun}:
                begun.clear()  # The launcher's processes ended too.
        yield log_line


def _ended_before(start: LogLine, one: UntimedEvidence, later: bool) -> bool:
    """Return True if an error ended its process before another start: no ordinary line follows. later: True if the
    start is too late for the same launch, so that the last lines may be of any process."""
    return (
        # If one rank prints, another one may end the job.
        (one.unhandled or one.stream in ("", start.stream) or (later and one.ends))
        and not one.beside
        and one.speaker == "process"
        and one.late is None
        and (one.ordinary is None or one.ordinary >= start.line)
    )


def _drawn_once(log_lines: Iterable[LogLine]) -> Iterator[LogLine]:
    """Drop redrawn states of a progress bar, with a different value, and the first state of the next epoch's bar."""
    drawn: dict[tuple[str, str], tuple[int | None, int]] = {}
    for log_line in log_lines:
        one = event_of(log_line)
        if one.type is EventType.STEP and one.running is not None and one.running.elapsed is not None:
            step, elapsed = drawn.get((one.format, log_line.stream), (None, 0))
            drawn[one.format, log_line.stream] = one.step, one.running.elapsed
            if one.step == step and (one.running.elapsed >= elapsed or not one.running.elapsed):
                continue
        yield log_line


def _paired(log_lines: Sequence[LogLine]) -> Iterator[LogLine]:
    """Join begin and end lines of saves and restores to intervals; an unfinished one without a later step stays a
    begin."""
    begun_by: dict[tuple[str, str, EventType], LogLine] = {}
    for log_line in log_lines:
        one = event_of(log_line)
        key = (one.format, log_line.stream, one.type)
        if (
            one.type not in (EventType.SAVE, EventType.RESTORE)
            or one.edge is Edge.POINT
            or log_line.end > log_line.time
        ):
            yield log_line
        elif one.edge is Edge.BEGIN:
            if key in begun_by:
                yield _point(begun_by[key]) if _is_passed(begun_by[key], log_lines) else begun_by[key]
            begun_by[key] = log_line
        else:
            begun = begun_by.pop(key, None)
            exact = begun is not None and not begun.odd and not log_line.odd
            step = one.step if one.step is not None or begun is None else event_of(begun).step
            start = begun.time if begun is not None and exact else log_line.time
            yield replace(log_line, time=start, end=log_line.time, event=replace(one, edge=Edge.POINT, step=step))
    yield from (_point(begun) if _is_passed(begun, log_lines) else begun for begun in begun_by.values())


def _is_passed(begun: LogLine, log_lines: Sequence[LogLine]) -> bool:
    """Return True if a process made a step after a begin without an end, which must have ended before."""
    later = (log_line for log_line in log_lines if log_line.stream == begun.stream and log_line.time > begun.time)
    following = next(
        (log_line for log_line in later if event_of(log_line).type in (EventType.STEP, EventType.START, *ENDS)), None
    )
    return following is not None and event_of(following).type is EventType.STEP


def _point(log_line: LogLine) -> LogLine:
    """Return an unfinished begin as a point."""
    one = event_of(log_line)
    detail = one.detail or (save_detail(SaveState.BEGUN) if one.type is EventType.SAVE else ())
    return replace(log_line, event=replace(one, edge=Edge.POINT, detail=detail))


def _recorded_once(log_lines: Sequence[LogLine]) -> Iterator[LogLine]:
    """Merge a step printed by two formats into one record: one with a duration, otherwise the first."""
    records: defaultdict[int, list[LogLine]] = defaultdict(list)
    for log_line in log_lines:
        if event_of(log_line).type is EventType.STEP and event_of(log_line).step is not None:
            records[int(event_of(log_line).step or 0)].append(log_line)
    dropped: set[int] = set()
    for same in records.values():
        if len({event_of(log_line).format for log_line in same}) < 2:
            continue
        same = sorted(same, key=lambda log_line: event_of(log_line).step_time is None)
        kept: list[LogLine] = []
        for log_line in same:
            others = (one for one in kept if event_of(one).format != event_of(log_line).format)
            if any(abs(one.end - log_line.end) <= _SAME_RECORD for one in others):
                dropped.add(id(log_line))
            else:
                kept.append(log_line)
    return (log_line for log_line in log_lines if id(log_line) not in dropped)


def _with_last_records(log_lines: Sequence[LogLine]) -> list[LogLine]:
    """Return log lines, with a final line of a process that contains a higher number of steps, such as a summary of an
    epoch, turned into a record. log_lines: in order of time."""
    last: dict[tuple[str, str], ParsedEvent] = {}
    stated: dict[tuple[str, str], int] = {}
    records: set[int] = set()
    for row, log_line in enumerate(log_lines):
        one = event_of(log_line)
        key = one.format, log_line.stream
        if one.type is EventType.STEP:
            last[key] = one
            stated.pop(key, None)
        elif one.type is EventType.ALIVE and one.step is not None and key in last:
            if one.step > (last[key].step or 0):
                stated[key] = row
        elif one.type in (EventType.START, *ENDS):
            records.update(stated.values())
            last, stated = {}, {}
    records.update(stated.values())
    return [
        replace(one, event=replace(event_of(one), type=EventType.STEP, usual=True, edge=Edge.POINT))
        if row in records
        else one
        for row, one in enumerate(log_lines)
    ]


def _take_usual_time(log_lines: Sequence[LogLine]) -> None:
    """Set the usual step time for records without step times, if their mapping requests it and the time since the
    previous record is more than half as long again: the excess is not training."""
    before: defaultdict[tuple[str, str], deque[LogLine]] = defaultdict(lambda: deque(maxlen=_WRITERS))
    apart: defaultdict[tuple[str, str], list[tuple[LogLine, int, int, bool]]] = defaultdict(list)
    stretches: defaultdict[tuple[str, str], list[tuple[LogLine, Stretch]]] = defaultdict(list)
    for log_line in log_lines:
        one, key = event_of(log_line), (event_of(log_line).format, log_line.stream)
        if one.type is EventType.STEP and one.usual and one.step is not None:
            last = _continued_by(one.step, before[key])
            end, step = (0, None) if last is None else _last_record(last)
            steps = 0 if last is None else one.step - (step or 0)
            if last is not None and steps > 0 and log_line.end > end:
                whole = any(_is_whole(each) for each in (last, log_line))
                apart[key].append((log_line, log_line.end - end, steps, whole))
            before[key].append(log_line)
            if log_line.inner is not None:
                stretches[key].append((log_line, log_line.inner))
        elif one.type is EventType.START:
            before.clear()
    for key, rows in apart.items():
        inner = [np.diff(one.time, prepend=first.end) / one.stride for first, one in stretches[key]]
        each = [np.array([length / steps for _, length, steps, _ in rows]), *(one[one > 0] for one in inner)]
        usual = int(np.median(np.concatenate(each)))
        for first, stretch in stretches[key]:
            first.inner = _with_usual_time(stretch, first.end, usual)
        for log_line, length, steps, whole in rows:
            log_line.event = _of_usual_time(event_of(log_line), length, steps, whole, usual)


def _continued_by(step: int, records: Collection[LogLine]) -> LogLine | None:
    """Return the record that a step continues most closely, among the last few: that of its own writer, if copies of
    one job's steps alternate. Return the last one if the step is above none."""
    below = [record for record in records if (_last_record(record)[1] or 0) < step]
    return max(reversed(below or list(records)[-1:]), key=lambda record: _last_record(record)[1] or 0, default=None)


def _of_usual_time(one: ParsedEvent, length: int, steps: int, whole: bool, usual: int) -> ParsedEvent:
    """Return a record with the time of its steps. length: ns since the record before it."""
    least = max(usual * steps // 2, 2 * NS_PER_SECOND if whole else 0)
    trained = _since_begin(one)
    if trained is not None and trained < length:
        return changed(one, step_time=trained // steps, trained=trained)
    if length - usual * steps > least:
        return changed(one, step_time=usual, trained=usual * steps)
    return changed(one, trained=length)


def _with_usual_time(inner: Stretch, begin: int, usual: int) -> Stretch:
    """Return a stretch in which records that took far longer than usual have the usual step time. begin: end of the
    record before it. usual: ns per step."""
    beyond = np.diff(inner.time, prepend=begin) - usual * inner.stride
    least = max(usual * inner.stride // 2, 2 * NS_PER_SECOND if inner.whole else 0)
    is_long = beyond > least
    return replace(inner, step_time=np.where(is_long, usual, NONE) if bool(is_long.any()) else None)


def _since_begin(one: ParsedEvent) -> int | None:
    """Return the time (ns) of all steps of a record whose clock began with them, like that of a restarted bar; None for
    others."""
    elapsed = None if one.running is None else one.running.elapsed
    return elapsed if elapsed and elapsed == one.took else None


def _is_whole(log_line: LogLine) -> bool:
    """Return True if its time has a precision of seconds, by its timestamp or clock."""
    running = event_of(log_line).running
    if log_line.stamp is not None or running is None or running.elapsed is None:
        return log_line.stamp is not None and log_line.stamp.whole
    return running.elapsed % NS_PER_SECOND == 0


def _with_gaps(log_lines: Sequence[LogLine], shown: Iterable[LogLine] = ()) -> Iterator[LogLine]:
    """Yield log lines, with untimed saves and evaluations extended to the gap between two records.

    The gap is the time beyond step times between records that have them; for saves also the time beyond usual steps
    between others, if nothing else is in it. log_lines: in order of time. shown: other timed lines.
    """
    marked = _MarkedGaps.of(log_lines, shown)
    before: LogLine | None = None
    waiting: list[LogLine] = []
    claimed = False
    for log_line in log_lines:
        one = event_of(log_line)
        if one.type in _GAP_KINDS and one.edge is Edge.POINT:
            timed = log_line.end > log_line.time or bool(one.took)
            claimed |= timed
            if not timed:
                waiting.append(log_line)
                continue
        elif one.type is EventType.STEP:
            yield from _gap(before, log_line, waiting, claimed, marked)
            before, waiting, claimed = log_line, [], False
        elif one.type in (EventType.START, EventType.CRASHED, EventType.TERMINATED, EventType.PREEMPTED):
            yield from waiting
            before, waiting, claimed = None, [], False
        yield log_line
    yield from waiting


def _gap(
    before: LogLine | None, behind: LogLine, waiting: Sequence[LogLine], claimed: bool, marked: _MarkedGaps
) -> Iterator[LogLine]:
    """Yield the log lines between two records: one kind takes the whole gap; of two kinds, a save takes it from its
    timestamp on."""
    kinds = {event_of(log_line).type for log_line in waiting}
    gap = None if before is None else _gap_between(before, behind)
    if before is not None and gap is None and len(kinds) == 1 and all(map(_is_mark, waiting)):
        gap = marked.gap_between(before, behind)
    if gap is None or claimed or not kinds:
        yield from waiting
        return
    if len(kinds) == 1:
        first, *rest = waiting
        begin = gap[0]
        if event_of(first).since_line:
            begin = min(max(begin, marked.shown_before(first, before)), gap[1])
    else:
        first, *rest = sorted(waiting, key=lambda log_line: event_of(log_line).type is not EventType.SAVE)
        begin = first.time if not first.odd and gap[0] <= first.time <= gap[1] else (gap[0] + gap[1]) // 2
    yield replace(first, time=begin, end=gap[1])
    yield from rest


def _gap_between(before: LogLine, behind: LogLine) -> tuple[int, int] | None:
    """Return [begin, end) of the time without training between two records, if the second one has a step time; None if
    there is none."""
    one, other = event_of(before), event_of(behind)
    if other.step_time is None or one.step is None or other.step is None or other.step <= one.step:
        return None
    trained = (other.step - one.step) * other.step_time
    begin, end = before.end, behind.end - trained
    whole = any(log_line.stamp is not None and log_line.stamp.whole for log_line in (before, behind))
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
    def of(cls, log_lines: Sequence[LogLine], shown: Iterable[LogLine] = ()) -> _MarkedGaps:
        """Return those of log lines in order of time. shown: other lines with a time."""
        times = sorted((one.line, one.time) for one in shown if one.stamp is not None)
        usual = _usual_step(log_lines) if any(map(_is_mark, log_lines)) else None
        if not usual or usual <= 0:
            return cls(0, 0, times)
        found: list[float] = []
        before: LogLine | None = None
        has_mark = False
        for log_line in log_lines:
            if _is_mark(log_line):
                has_mark = True
            elif event_of(log_line).type is EventType.STEP:
                if has_mark and before is not None and (steps := _steps_between(before, log_line)):
                    found.append(max(log_line.end - before.end - steps * usual, 0))
                before, has_mark = log_line, False
            elif event_of(log_line).type in (EventType.START, *ENDS):
                before = None
        return cls(usual, median(found) if found else 0, times)

    def gap_between(self, before: LogLine, behind: LogLine) -> tuple[int, int] | None:
        """Return [begin, end) of the gap of a mark between two records; None if there is none, or if it is far longer
        than other gaps with a mark."""
        steps = 0 if event_of(behind).step_time is not None else _steps_between(before, behind)
        beyond = behind.end - before.end - steps * self.usual
        if not steps or not self.usual or not self.usual / 2 < beyond <= _FAR_LONGER * self.beyond:
            return None
        return before.end, before.end + round(beyond)

    def shown_before(self, mark: LogLine, record: LogLine | None) -> int:
        """Return the time (ns) of the last line between a record and a mark; 0 without one."""
        row = bisect_left(self.shown, (mark.line, 0)) - 1
        return self.shown[row][1] if row >= 0 and record is not None and self.shown[row][0] > record.line else 0


def _is_mark(log_line: LogLine) -> bool:
    """Return True for a save known only as a point, or an evaluation without a timestamp; with one, it ends there."""
    one = event_of(log_line)
    has_place = one.type is EventType.SAVE or (one.type is EventType.EVAL and log_line.odd)
    return has_place and one.edge is Edge.POINT and log_line.end == log_line.time and not one.took


def _steps_between(before: LogLine, behind: LogLine) -> int:
    first, last = event_of(before).step, event_of(behind).step
    return 0 if first is None or last is None else min(max(last - first, 0), _BEYOND_ALL)


def _ended_evaluations(log_lines: Sequence[LogLine]) -> Iterator[LogLine]:
    """Set the time of evaluations known only by their end and step: the time since the last record, or a save after it,
    that training did not take; all of it if the next steps are trained after the evaluation. log_lines: in order of
    time."""
    usual = _usual_step(log_lines) if any(event_of(one).type is EventType.EVAL for one in log_lines) else None
    record: LogLine | None = None
    since = 0
    for log_line, behind in zip(log_lines, _next_records(log_lines), strict=True):
        one = event_of(log_line)
        if one.type is EventType.STEP:
            record, since = log_line, log_line.end
        elif one.type in (EventType.START, *ENDS):
            record = None
        elif one.type is EventType.EVAL and one.edge is Edge.POINT and log_line.end == log_line.time and not one.took:
            done = None if record is None else event_of(record).step
            if done is not None and (took := _took_of_evaluation(log_line, since, done, usual)) is not None:
                log_line = replace(log_line, event=replace(one, took=took))
            elif log_line.time > since and _trains_after(log_line, record, behind, usual):
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
    trained = min(max((event_of(evaluation).step or done) - done, 0), _BEYOND_ALL) * usual
    took = round(evaluation.time - since - trained)
    return took if took > usual / 2 else None


def _trains_after(mark: LogLine, before: LogLine | None, behind: LogLine | None, usual: float | None) -> bool:
    """Return True if the steps between two records are trained after a mark: about their usual time passes there, or
    most of the time if that is unknown."""
    steps = 0 if before is None or behind is None else _steps_between(before, behind)
    if before is None or behind is None or mark.odd or not steps:
        return False
    least = (behind.end - before.end) / 2 if usual is None else _ALL_BUT * steps * usual
    return behind.end - mark.end > least


def _usual_step(log_lines: Sequence[LogLine]) -> float | None:
    """Return the usual step time (ns) without known events between records; None if there are too few."""
    found: list[float] = []
    inner: list[F64] = []
    before: LogLine | None = None
    other = 0
    for log_line in log_lines:
        one = event_of(log_line)
        if one.type is EventType.STEP:
            end, done = (0, None) if before is None else _last_record(before)
            took = 0 if before is None else log_line.end - end - other
            if done is not None and one.step is not None and done < one.step and abs(took) < _BEYOND_ALL:
                found.append(took / min(one.step - done, _BEYOND_ALL))
            before, other = log_line, 0
            if log_line.inner is not None:
                inner.append(np.diff(log_line.inner.time, prepend=log_line.end) / log_line.inner.stride)
        elif one.type is EventType.SAVE and (took := one.took or log_line.end - log_line.time):
            other += took
        elif one.type is not EventType.ALIVE:
            before = None
    if inner:
        return float(np.median(np.concatenate([np.array(found), *inner])))
    return median(found) if len(found) >= _FEW_PAIRS else None


def _last_record(log_line: LogLine) -> tuple[int, int | None]:
    """Return the end of a record, or of the last one of the stretch that it begins, and its step."""
    return (log_line.end, event_of(log_line).step) if log_line.inner is None else last_of(log_line)


_UNITS = {"tflops": "TFLOP/s", "mfu": "%"}
"""Units of metrics defined by their names."""
_FEW_PAIRS = 3
_WRITERS = 4
"""Number of records without one of a writer after which it has ended."""
_TOGETHER = 5 * NS_PER_MINUTE
"""Maximum time between starts of processes of one launch."""
_BEYOND_ALL = 2**62
"""Value larger than any time or step."""


def metrics_of(job: str, log_lines: Sequence[LogLine]) -> list[Metric]:
    """Return the metrics in log lines of a job, each in order of time and without duplicates."""
    found: defaultdict[str, dict[tuple[int, int, float], None]] = defaultdict(dict)
    units: defaultdict[str, Counter[str]] = defaultdict(Counter)
    inner: defaultdict[str, list[tuple[I64, I64, F64]]] = defaultdict(list)
    for log_line in log_lines:
        one = event_of(log_line)
        if abs(log_line.time) >= _BEYOND_ALL:
            continue
        if log_line.inner is not None:
            for name, columns in _measured(log_line.inner):
                inner[name].append(columns)
                units[name][str(dict(one.detail).get("unit", _UNITS.get(name, "")))] += len(columns[0])
        step = NO_STEP if one.step is None or abs(one.step) >= _BEYOND_ALL else one.step
        sizes = {} if not one.total else {"total_steps": float(one.total)}
        for name, value in {**sizes, **one.metrics}.items():
            found[name][log_line.time, step, value] = None
            units[name][str(dict(one.detail).get("unit", _UNITS.get(name, "")))] += 1
    return [
        Metric(job, name, units[name].most_common(1)[0][0], *_columns(sorted(found[name]), inner.get(name, ())))
        for name in sorted({*found, *inner})
    ]


def _measured(inner: Stretch) -> Iterator[tuple[str, tuple[I64, I64, F64]]]:
    """Yield the metrics of the records of a stretch, each with its times, steps and values."""
    sizes = {} if not inner.event.total else {"total_steps": np.full(len(inner), float(inner.event.total))}
    for name, values in {**sizes, **inner.metrics}.items():
        some = ~np.isnan(values)
        yield name, (inner.time[some], inner.steps[some], values[some])


def _columns(rows: Sequence[tuple[int, int, float]], inner: Sequence[tuple[I64, I64, F64]]) -> tuple[I64, I64, F64]:
    """Return values with their times and steps, each once, in order. rows: in order. inner: those of stretches."""
    time, step, value = zip(*rows, strict=True) if rows else ((), (), ())
    whole = np.array(time, dtype=np.int64), np.array(step, dtype=np.int64), np.array(value, dtype=np.float64)
    if not inner:
        return whole
    times, steps, values = (np.concatenate(columns) for columns in zip(whole, *inner, strict=True))
    order = np.lexsort((values, steps, times))
    columns = times[order], steps[order], values[order]
    first = np.append(True, np.any([one[1:] != one[:-1] for one in columns], axis=0))
    return columns[0][first], columns[1][first], columns[2][first]


_LOSS = re.compile(
    r"(?<![A-Za-z])(?:loss|cost|nll|ppl|perplexity|reward)(?:[ _-]?(?:mean|avg))?['\"]?[ \t]{0,4}[:=]?[ \t]{0,8}"
    r"[\['\"]{0,2}(-?\d{1,20}(?:\.\d{0,20})?(?:[eE][+-]?\d{1,3})?)",
    re.IGNORECASE,
)
REMEMBERED, _LANES, _PAIRS = 1024, 16, 32
"""Maximum number of stored steps per lane, lanes per program, and pairs of lines."""
_TURNS = 3
"""Number of alternations of equal steps with different losses before they are reported."""
_APART = 6
"""The same for runs without common steps."""
_MOST_WORDS, _MOSTLY = 80, 0.9
_TIMES = re.compile(r"\d{4}[-/]\d\d[-/]\d\d[T ,]|\d{1,2}/\d\d/\d{2,4}[ ,]|\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?")
_WORDS = re.compile(r"[A-Za-z]+|\d+(?:_\d+)+|\d+(?:\.\d+)?(?:[eE][+-]\d+)?")
_OF_RANKS = frozenset(
    "rank ranks r node nodes host hosts gpu gpus device devices cuda worker workers proc process processes replica pod "
    "task shard slice stage core tpu npu rank_ w n ip dp tp pp ep cp fsdp".split()
)
_OF_PARTS = frozenset(
    "micro microbatch microstep mb accum accumulation substep inner minibatch batch iter iteration epoch chunk part "
    "train training trn val valid validation eval evaluation test dev actor critic policy value generator "
    "discriminator gen disc g d student teacher encoder decoder main aux master chief leader launcher launch ema "
    "total mean avg last best worker trainer evaluator".split()
)
"""Words for the part of a run that a line is about, or for the process that wrote it."""
_OF_RUNS = frozenset("run runs exp experiment trial seed job fold config sweep array arm lr".split())
_OF_TIMES = frozenset("time times elapsed wall eta s sec secs ms took dt duration timestamp".split())
_DRAWN = re.compile(r"\d%\|.{0,200}?\[\d{1,9}:\d\d|^\s*\{'loss': ")
"""States of bars, and lines that name a rounded epoch instead of a step."""
_CLOCKS = re.compile(r"\b\d{1,2}:\d\d:\d\d\b")
_HIGHEST_RANK, _TAG_DIGITS = 4096, 36


def loss_in(text: str) -> float | None:
    """Return the loss in a line; None if there is none."""
    found = _LOSS.search(text)
    return None if found is None else float(found[1])


class Interleaved(NamedTuple):
    """Location where two runs seem to alternate: a line of each, its step and its loss."""

    lines: tuple[int, int]
    steps: tuple[int, int]
    losses: tuple[float, float] | None
    """None if they have no common step."""
    is_question: bool = False
    """True if they may be one run: one bar may draw a step again with another loss, and ranks keep step."""

    @property
    def sentence(self) -> str:
        """Return the message with the assumption and the remedy."""
        step, other = self.steps
        shown = f"step {step} and step {other}, never the same step"
        if self.losses is not None:
            shown = f"step {step} with loss {self.losses[0]:g} and with loss {self.losses[1]:g}"
        so = ". They count as one job" if self.is_question else ", so goodput is not judged"
        then = "these numbers are wrong: " if self.is_question else ""
        return (
            f"found two interleaved step counters ({shown}){so}. If separate runs share this file, {then}use one file "
            "per run. If it is one job, confirm it with --job-name"
        )


class _StepLine(NamedTuple):
    line: int
    step: int
    text: str


class LineRun(NamedTuple):
    """Lines about steps that rise."""

    numbers: I64
    steps: I64
    line: Callable[[int], str]
    """Returns one of the last lines; `REMEMBERED` are kept."""
    head: str = ""
    """Prefix of each line."""

    def remembered(self) -> Iterator[tuple[int, tuple[int, str]]]:
        """Yield the steps and lines that a lane keeps."""
        for at in range(max(len(self.numbers) - REMEMBERED, 0), len(self.numbers)):
            yield int(self.steps[at]), (int(self.numbers[at]), self.text(at))

    def text(self, at: int) -> str:
        """Return a line by its index."""
        return self.head + self.line(at - max(len(self.numbers) - REMEMBERED, 0))


@dataclass(slots=True)
class _Lane:
    """Lines of rising steps, as one run prints them."""

    first: int
    last: int
    stride: int = 0
    lines: dict[int, tuple[int, str]] = field(default_factory=dict)
    """By step."""
    final: str = ""
    """The last line of its last step, after a bar was redrawn."""
    first_of_step: tuple[str, str] | None = None
    """The first line of that step, and the last of the previous one."""
    waiting: deque[LineRun] = field(default_factory=deque)
    """Further lines, after those of `lines`."""
    held: int = 0
    """Number of waiting lines."""

    def is_carried(self, bar: bool) -> bool:
        """Return True if the first line of that step contains the loss of the previous one, as a bar's line may."""
        if self.first_of_step is None:
            return bar
        losses = loss_in(self.first_of_step[0]), loss_in(self.first_of_step[1])
        return losses[0] == losses[1] and (bar or losses[0] is not None)

    def add(self, line: int, step: int, text: str) -> None:
        self.first_of_step = text, self.final
        self.stride, self.last, self.final = step - self.last, step, text
        if self.waiting:
            self._queue(LineRun(np.array([line]), np.array([step]), lambda _: text))
            return
        lines = self.lines
        lines[step] = line, text
        if len(lines) > REMEMBERED:
            del lines[next(iter(lines))]

    def add_run(self, run: LineRun) -> None:
        """Add consecutive lines."""
        many = len(run.numbers)
        final = run.text(many - 1)
        self.first_of_step = final, run.text(many - 2) if many > 1 else self.final
        before = int(run.steps[-2]) if many > 1 else self.last
        self.last, self.final = int(run.steps[-1]), final
        self.stride = self.last - before
        self._queue(run)

    def _queue(self, run: LineRun) -> None:
        """Queue lines; drop the oldest beyond the limit."""
        self.waiting.append(run)
        self.held += len(run.numbers)
        while self.held - len(self.waiting[0].numbers) >= REMEMBERED:
            self.held -= len(self.waiting.popleft().numbers)
            self.lines.clear()

    def settle(self) -> None:
        """Process the queued lines."""
        for run in self.waiting:
            self.lines.update(run.remembered())
        self.waiting.clear()
        self.held = 0
        for step in list(self.lines)[:-REMEMBERED]:
            del self.lines[step]


class InterleavedRunDetector:
    """Follows the steps in lines of one stream and program, and detects several runs.

    There are several if one repeatedly continues after another one printed steps that do not follow it, with different
    losses. A restart never returns to the previous attempt.
    """

    def __init__(self) -> None:
        self._lanes: list[_Lane] = []  # The last one is the most recently used.
        self._same, self._other = 0, 0  # Numbers of equal steps with the same and with a different loss.
        self._apart: list[tuple[_StepLine, _StepLine]] = []
        self._pairs: list[tuple[_StepLine, _StepLine]] = []
        self._most = 1

    def restart(self) -> None:
        """Forget all lanes, as a process began or died."""
        self._lanes = []

    def take(self, line: int, step: int, text: str, bar: bool = False, rounded: bool = False) -> None:
        """Add the next line about a step. bar: True for a progress bar, which is redrawn with the loss of its step.
        rounded: True if several steps have one number."""
        current = self._lanes[-1] if self._lanes else None
        if current is not None and step - current.last == current.stride > 0:
            current.add(line, step, text)
            return
        if current is not None and step == current.last and (rounded or self._is_redrawn(current, text, bar)):
            current.final = text
            return
        lane = self._lane_of(step)
        if lane is None:
            self._lanes.append(_Lane(step, step, 0, {step: (line, text)}, text))
            del self._lanes[:-_LANES]
            self._most = max(self._most, len(self._lanes))
            return
        if lane is not current and current is not None:
            self._compare(current, lane, _StepLine(line, step, text))
            self._lanes.remove(lane)
            self._lanes.append(lane)
        lane.add(line, step, text)

    def goes_on(self, steps: I64) -> int:
        """Return how many lines belong to what was printed last, whatever they contain. steps: of lines, rising."""
        if not self._lanes or steps[0] <= self._lanes[-1].last:
            return 0
        current = self._lanes[-1]
        if len(self._lanes) == 1:
            return len(steps)
        steps = steps[:REMEMBERED]
        others = np.flatnonzero(np.diff(steps, prepend=current.last) != current.stride)
        return int(others[0]) if len(others) else len(steps)

    def take_run(self, run: LineRun) -> None:
        """Add the next consecutive lines about steps."""
        self._lanes[-1].add_run(run)

    def found(self) -> Interleaved | None:
        """Return an example if several runs seem to print; None otherwise."""
        if self._other >= max(_TURNS, self._same + 1) and not _are_parts_of_one_run(self._pairs, self._most):
            one, other = self._pairs[-1]
            losses = loss_in(one.text), loss_in(other.text)
            assert losses[0] is not None
            assert losses[1] is not None
            is_question = _draw(one, other) or _keep_step(self._pairs)
            shown = losses[0], losses[1]
            return Interleaved((one.line, other.line), (one.step, other.step), shown, is_question)
        rare = len(self._apart) > self._same + self._other
        if len(self._apart) >= _APART and rare and not _are_parts_of_one_run(self._apart, self._most):
            one, other = self._apart[-1]
            return Interleaved((one.line, other.line), (one.step, other.step), None, _draw(one, other))
        return None

    def _lane_of(self, step: int) -> _Lane | None:
        """Return the lane that a step continues: at its usual distance, otherwise the nearest, with preference for the
        current one; None if there is none. Only the very next step returns to another lane."""
        below = [lane for lane in reversed(self._lanes) if lane.last < step]
        if self._lanes and step <= self._lanes[-1].last:
            below = [lane for lane in below if not lane.stride or step - lane.last <= 2 * lane.stride]
        exact = [lane for lane in below if step - lane.last == lane.stride]
        if exact:
            return exact[0] if exact[0] is self._lanes[-1] else exact[-1]
        return min(below, key=lambda lane: step - lane.last, default=None)

    def _is_redrawn(self, lane: _Lane, text: str, bar: bool) -> bool:
        return lane.is_carried(bar) or (bar and loss_in(text) == loss_in(lane.final))

    def _compare(self, left: _Lane, lane: _Lane, said: _StepLine) -> None:
        """Record the result when another lane is continued."""
        left.settle()
        other = left.lines.get(said.step)
        if other is None:
            if said.step < left.first and lane.last < left.first and len(self._apart) < _PAIRS:
                self._apart.append((_StepLine(left.lines[left.last][0], left.last, left.lines[left.last][1]), said))
            return
        line, text = other
        losses = loss_in(text), loss_in(said.text)
        if losses[0] == losses[1]:
            self._same += 1
        elif None not in losses:
            self._other += 1
            if len(self._pairs) < _PAIRS:
                self._pairs.append((_StepLine(line, said.step, text), said))


def _keep_step(pairs: Sequence[tuple[_StepLine, _StepLine]]) -> bool:
    """Return True if the lines of nearly all pairs were written in the same second, and differ in nothing but decimal
    numbers: as those of ranks, which wait for one another."""
    same = sum(_second_and_words(one.text) == _second_and_words(other.text) for one, other in pairs)
    return same >= _MOSTLY * len(pairs) and bool(_CLOCKS.search(pairs[-1][0].text))


def _second_and_words(text: str) -> tuple[list[str], list[str]]:
    return _CLOCKS.findall(text), [word for word in _words(text) if "." not in word]


def _draw(*said: _StepLine) -> bool:
    return any(_DRAWN.search(one.text) for one in said)


def _are_parts_of_one_run(pairs: Sequence[tuple[_StepLine, _StepLine]], lanes: int) -> bool:
    """Return True if the words or numbers of such lines show that they are of ranks, micro-batches, an evaluation
    during training, or another part of one run."""
    rows = [(_words(one.text), _words(other.text)) for one, other in pairs]
    named = [{word.lower() for word in {*a} ^ {*b} if word.isalpha()} for a, b in rows]
    if sum(map(bool, named)) > _MOSTLY * len(rows):
        return all(words <= _OF_PARTS | _OF_RANKS for words in named)
    shapes = [(_shape(a), _shape(b)) for a, b in rows]
    usual = Counter(shape for pair in shapes for shape in pair).most_common(1)[0][0]
    alike = [at for at, pair in enumerate(shapes) if pair == (usual, usual)]
    if len(alike) < _TURNS:
        return False
    lines = [(pairs[at][0].line, pairs[at][1].line) for at in alike]
    columns = ([(rows[at][0][place], rows[at][1][place]) for at in alike] for place in range(len(usual)))
    return any(_is_tag(column, lines, _name_before(usual, place), lanes) for place, column in enumerate(columns))


def _shape(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(word if word.isalpha() else "0" for word in words)


def _words(text: str) -> list[str]:
    return _WORDS.findall(_TIMES.sub(" ", text))[:_MOST_WORDS]


def _name_before(row: Sequence[str], at: int) -> str:
    """Return the word before a number."""
    return next((word.lower() for word in reversed(row[:at]) if word.isalpha()), "")


def _is_tag(values: Sequence[tuple[str, str]], lines: Sequence[tuple[int, int]], name: str, lanes: int) -> bool:
    """Return True if the numbers at a position identify the part of a run: a few distinct ones (ranks, micro-batches),
    or a count that rises from line to line. lines: line numbers of the pairs."""
    if any(a == b or not (a + b).isdecimal() or len(a + b) > _TAG_DIGITS for a, b in values):
        return False
    numbers = [int(one) for pair in values for one in pair]
    few = {*numbers}
    if len(few) <= max(2, lanes) and max(few) < _HIGHEST_RANK and name not in _OF_RUNS:
        return name in _OF_RANKS | _OF_PARTS or (min(few) <= 1 and max(few) - min(few) < len(few))
    placed = sorted(dict(zip((line for pair in lines for line in pair), numbers, strict=True)).items())
    return name not in _OF_TIMES and all(after > before for (_, before), (_, after) in pairwise(placed))


def formats_of(log_lines: Sequence[LogLine]) -> frozenset[str]:
    """Return the formats of log lines."""
    return frozenset(one.format for one in (log_line.event for log_line in log_lines) if one is not None)
