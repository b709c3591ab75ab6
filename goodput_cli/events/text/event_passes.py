"""Interpret log lines with times for a job: step ends, saves, evaluations, starts, ends.

Rules for all text formats: a start counts once per process, a save or evaluation without duration takes the gap between
two step records, and a step printed by two formats is one record. `EVENT_PASSES` has them in order.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goodput_cli.events.evidence import UntimedEvidence
from goodput_cli.events.schema import NONE, Edge, SaveState
from goodput_cli.events.text import activity, gaps, untimed_phases
from goodput_cli.events.text.living_processes import (
    stopped_after_saves,
    with_continued_processes,
    with_loads_after_deaths,
    without_starts_of_others,
)
from goodput_cli.events.text.log_lines import (
    ENDS,
    EventType,
    LogLine,
    ParsedEvent,
    SourceText,
    Stretch,
    changed,
    event_of,
    save_detail,
)
from goodput_cli.events.text.programs import launcher, megatron, megatron_process, mllog, nemo_rl
from goodput_cli.events.text.runs_in_file import with_starts_of_saves
from goodput_cli.events.text.stretches import apart_in_time, last_record
from goodput_cli.vocabulary.when import NS_PER_MINUTE, NS_PER_SECOND

_SAME_RECORD = 2 * NS_PER_SECOND
_WRITERS = 4
"""Number of records without one of a writer after which it has ended."""
_TOGETHER = 5 * NS_PER_MINUTE
"""Maximum time between starts of processes of one launch."""
_FEW_RECORDS = 4
"""Number of distances between records that show the usual step time of a run."""
_ENDS = (EventType.STEP, EventType.STEP_START, *ENDS)


def with_columns_apart(log_lines: Iterable[LogLine], _: SourceText) -> list[LogLine]:
    """Sort the lines by time, a record by its end; turn columns into lines where another line is between them."""
    return sorted(apart_in_time(list(log_lines)), key=_order)


def in_order_of_time(log_lines: Iterable[LogLine], _: SourceText) -> list[LogLine]:
    """Sort the lines by time again."""
    return sorted(log_lines, key=_order)


def _order(log_line: LogLine) -> tuple[int, int]:
    return log_line.end if event_of(log_line).type is EventType.STEP else log_line.time, log_line.line


def with_one_start_each(log_lines: Iterable[LogLine], of: SourceText) -> Iterator[LogLine]:
    """Keep the first of several starts of a process. A start counts again after progress, after an end in a launcher's
    log, and after an error that ended the process."""
    errors = [one for one in of.seen if one.raised or (one.role == "root" and one.ends)]
    errors.sort(key=attrgetter("line"))
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


class _States:
    """States of a bar in order."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.again: list[bool] = []
        """True for a state that shows the number of the one before, with a clock that did not fall or is 0."""
        self.steps, self.anew = 0, 0
        """Changes of the number, and those at which the clock falls."""

    def add(self, row: int, is_same: bool, falls: bool, has_clock: bool) -> None:
        """Add a state: its row, whether its number is that of the one before, and its clock below it or not 0."""
        self.rows.append(row)
        self.again.append(is_same and (not falls or not has_clock))
        self.steps += not is_same
        self.anew += falls and not is_same

    @property
    def redrawn(self) -> list[int]:
        """Rows to drop: those that follow a state of their number, or, with a clock for each number, that precede
        one."""
        has_own_clocks = 2 * self.anew > self.steps
        again = [*self.again[1:], False] if has_own_clocks else self.again
        return [row for row, is_again in zip(self.rows, again, strict=True) if is_again]


def without_redraws(log_lines: Iterable[LogLine], _: SourceText) -> Iterator[LogLine]:
    """Drop states of a bar that were drawn again with another value, and the first state of the next epoch's bar. If
    each number has a bar and clock of its own, keep the last state of each: it shows how long the step took."""
    log_lines = list(log_lines)
    drawn: dict[tuple[str, str], tuple[int | None, int]] = {}
    states: defaultdict[tuple[str, str], _States] = defaultdict(_States)
    for row, log_line in enumerate(log_lines):
        one = event_of(log_line)
        if one.type is EventType.STEP and one.running is not None and one.running.elapsed is not None:
            step, elapsed = drawn.get((one.format, log_line.stream), (None, 0))
            drawn[one.format, log_line.stream] = one.step, one.running.elapsed
            falls = one.running.elapsed < elapsed
            states[one.format, log_line.stream].add(row, one.step == step, falls, bool(one.running.elapsed))
    dropped = {row for of_bar in states.values() for row in of_bar.redrawn}
    return (one for row, one in enumerate(log_lines) if row not in dropped)


def with_pairs(log_lines: Sequence[LogLine], _: SourceText) -> Iterator[LogLine]:
    """Join begin and end of saves and restores to intervals; a begin without an end and a later step stays one."""
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


def without_second_records(log_lines: Sequence[LogLine], _: SourceText) -> Iterator[LogLine]:
    """Merge a step that two formats printed into one record: one with a duration, otherwise the first."""
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


def with_last_records(log_lines: Sequence[LogLine], _: SourceText) -> list[LogLine]:
    """Turn a final line with a higher number of steps, such as the summary of an epoch, into a record. log_lines: in
    order of time."""
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


@dataclass
class _Distances:
    """Distances between the records of one writer, from its first step to where it begins again."""

    first: int
    """Its first step."""
    records: list[tuple[LogLine, int, int, bool]] = field(default_factory=list)
    """Records, with the time (ns) and number of steps since the one before, and True if times are whole seconds."""
    stretches: list[tuple[LogLine, Stretch]] = field(default_factory=list)

    def times(self) -> NDArray[np.float64]:
        """Return the times per step (ns)."""
        inner = (np.diff(one.time, prepend=first.end) / one.stride for first, one in self.stretches)
        each = np.array([length / steps for _, length, steps, _ in self.records])
        return np.concatenate((each, *(one[one > 0] for one in inner))) if self.records else np.zeros(0)

    def take(self, usual: int) -> None:
        """Set the usual step time (ns) of the records that took far longer."""
        for first, stretch in self.stretches:
            first.inner = _with_usual_time(stretch, first.end, usual)
        for log_line, length, steps, whole in self.records:
            log_line.event = _of_usual_time(event_of(log_line), length, steps, whole, usual)


def with_usual_times(log_lines: Sequence[LogLine], _: SourceText) -> Sequence[LogLine]:
    """Set the usual step time for records without step times, if their mapping requests it and the time since the
    previous record is more than half as long again: the excess is not training. Steps that begin again at the first
    one may be of another model, with its own usual step time."""
    before: defaultdict[tuple[str, str], deque[LogLine]] = defaultdict(lambda: deque(maxlen=_WRITERS))
    runs: dict[tuple[str, str], list[_Distances]] = {}
    for log_line in log_lines:
        one, key = event_of(log_line), (event_of(log_line).format, log_line.stream)
        if one.type is EventType.STEP and one.usual and one.step is not None:
            of_key = runs.setdefault(key, [])
            if not of_key or one.step <= of_key[-1].first:
                of_key.append(_Distances(one.step))
            last = _continued_by(one.step, before[key])
            end, step = (0, None) if last is None else last_record(last)
            steps = 0 if last is None else one.step - (step or 0)
            if last is not None and steps > 0 and log_line.end > end:
                whole = any(_is_whole(each) for each in (last, log_line))
                of_key[-1].records.append((log_line, log_line.end - end, steps, whole))
            before[key].append(log_line)
            if log_line.inner is not None:
                of_key[-1].stretches.append((log_line, log_line.inner))
        elif one.type is EventType.START:
            before.clear()
    for of_key in runs.values():
        together = [one.times() for one in of_key]
        known = np.concatenate(together)
        for run, times in zip(of_key, together, strict=True):
            if len(known):
                run.take(int(np.median(times if len(times) >= _FEW_RECORDS else known)))
    return log_lines


def _continued_by(step: int, records: Collection[LogLine]) -> LogLine | None:
    """Return the record that a step continues most closely, among the last few: that of its own writer, if copies of
    one job's steps alternate. Return the last one if the step is above none."""
    below = [record for record in records if (last_record(record)[1] or 0) < step]
    return max(reversed(below or list(records)[-1:]), key=lambda record: last_record(record)[1] or 0, default=None)


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
    least = max(usual * inner.stride // 2, 2 * NS_PER_SECOND if inner.stamps is not None and inner.stamps.whole else 0)
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


TRANSLATORS: dict[str, Callable[[Sequence[LogLine]], list[LogLine]]] = {
    megatron.NAME: megatron_process.translate,
    megatron.PROGRESS: megatron.translate_progress,
    launcher.NAME: launcher.translate,
    mllog.NAME: mllog.translate,
    nemo_rl.NAME: nemo_rl.translate,
}
"""Functions that combine lines, by format."""


def of_programs(log_lines: Sequence[LogLine], _: SourceText) -> list[LogLine]:
    """Combine lines of programs whose events several lines describe; drop the lines without an event."""
    by_format: defaultdict[str, list[LogLine]] = defaultdict(list)
    for log_line in log_lines:
        if log_line.event is not None:
            by_format[log_line.event.format].append(log_line)
    return [one for name, own in by_format.items() for one in TRANSLATORS.get(name, list)(own)]


def without_notes(log_lines: Iterable[LogLine], _: SourceText) -> list[LogLine]:
    """Drop lines that only other lines needed, such as copies from other files."""
    return [one for one in log_lines if event_of(one).type is not EventType.IGNORE and not one.borrowed]


def without_totals_of_deaths(events: Sequence[LogLine], of: SourceText) -> list[LogLine]:
    """Drop totals that precede an exception of the same process: programs print totals on every exit."""
    if not any(event_of(log_line).name == launcher.TOTALS for log_line in events):
        return list(events)
    raised = sorted(one.line for one in of.seen if one.raised)
    starts = sorted(log_line.line for log_line in events if event_of(log_line).type is EventType.START)
    return [
        log_line
        for log_line in events
        if event_of(log_line).name != launcher.TOTALS or _next(raised, log_line.line) >= _next(starts, log_line.line)
    ]


def _next(lines: Sequence[int], line: int) -> float:
    """Return the first of some lines after a line; infinity if there is none."""
    at = bisect_right(lines, line)
    return lines[at] if at < len(lines) else math.inf


class SourcePass(NamedTuple):
    """A pass over the lines of one source, in which each line has a time."""

    name: str
    run: Callable[[Sequence[LogLine], SourceText], Iterable[LogLine]]


EVENT_PASSES = (
    SourcePass("silent_restarts", launcher.with_restarts),
    SourcePass("program_lines", of_programs),
    SourcePass("untimed_deaths", activity.with_timed_deaths),
    SourcePass("time_order", with_columns_apart),
    SourcePass("loads_after_deaths", with_loads_after_deaths),
    SourcePass("starts", with_one_start_each),
    SourcePass("redraws", without_redraws),
    SourcePass("pairs", with_pairs),
    SourcePass("second_records", without_second_records),
    SourcePass("last_records", with_last_records),
    SourcePass("usual_times", with_usual_times),
    SourcePass("gaps", gaps.with_gaps),
    SourcePass("gap_order", in_order_of_time),
    SourcePass("evaluations", gaps.with_ended_evaluations),
    SourcePass("untimed_phases", untimed_phases.with_untimed_phases),
    SourcePass("notes", without_notes),
    SourcePass("totals", without_totals_of_deaths),
    SourcePass("saves_again", with_starts_of_saves),
    SourcePass("order_of_lines", activity.with_order_of_lines),
    SourcePass("records_of_no_step", activity.with_records_of_no_step),
    SourcePass("end_order", activity.in_order_of_ends),
    SourcePass("stops_after_saves", stopped_after_saves),
    SourcePass("other_starts", without_starts_of_others),
    SourcePass("living_processes", with_continued_processes),
    SourcePass("activity", activity.with_activity),
    SourcePass("open_intervals", activity.with_open_intervals),
)
"""From the lines of one source to its events."""


def events_of(log_lines: Sequence[LogLine]) -> list[LogLine]:
    """Return the events of one source. log_lines: with times."""
    of = SourceText(apart_in_time([*log_lines]))
    lines = list(of.lines)
    for one in EVENT_PASSES:
        lines = list(one.run(lines, of))
    return lines
