"""Evidence in text that a process continued although its steps went back (accounting §3, Rollbacks)."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from goodput_cli.arrays import I64
from goodput_cli.events.schema import NEXT_EPOCH, NEXT_EPOCH_AFTER_START, UNTIMED_RESTART, Edge
from goodput_cli.events.text.log_lines import ENDS, EventType, LogLine, ParsedEvent, SourceText, event_of
from goodput_cli.events.text.stretches import last_line, last_of, steps_and_ends
from goodput_cli.vocabulary.when import NS_PER_SECOND

_FEW_RECORDS, _USUAL_TIME = 4, 1.1
_LONG_PACES, _LONG = 5, 10 * NS_PER_SECOND
"""Ratio to the usual distance of two records, and time (ns), from which silence is long."""
_LOADS = (EventType.RESTORE, EventType.RESUME)


@dataclass
class _Writer:
    """State of one format and stream while its lines are read."""

    last: LogLine | None = None
    """The last record."""
    has_start: bool = False
    """True if a start line precedes the first record."""
    row: int = -1
    """Index of the last record among the lines."""
    stride: int = 0
    """Steps between the last two records that rise."""
    loaded: bool = False
    """True if a checkpoint was loaded since the last record, without a long silence before."""
    rollback: LogLine | None = None
    """A line since the last record that reports a rollback."""

    def is_rollback(self, record: LogLine, deaths: Sequence[int]) -> bool:
        """Return True if a record whose step does not rise belongs to the process of the last record: a rollback is
        logged, the clock of the process continues, or a checkpoint is loaded without the start line of the first
        process, and without an exception. deaths: lines at which processes may have died, in order."""
        last = self.last
        if last is None or (event_of(record).step or 0) > (event_of(last).step or 0):
            return False
        before, now = event_of(last).running, event_of(record).running
        clocks = (None if before is None else before.elapsed, None if now is None else now.elapsed)
        goes_on = clocks[0] is not None and clocks[1] is not None and clocks[0] < clocks[1]
        if self.rollback is not None or goes_on:
            return True
        return self.loaded and self.has_start and not _died_between(deaths, last, record)

    def resumption(self, record: LogLine) -> LogLine | None:
        """Return the step to which a logged rollback led; None if there is none, or another line contains the
        checkpoint.

        The step is known if the line contains one from which the next record follows.
        """
        line, last = self.rollback, self.last
        if line is None or last is None or self.loaded:
            return None
        step, first = event_of(line).step, event_of(record).step or 0
        event = ParsedEvent(event_of(record).format, EventType.RESUME, counted=False)
        if step is not None and step < first <= step + self.stride:
            return LogLine(line.line, record.stream, None, replace(event, step=step), line.end, line.end)
        time = max(last.end + 1, record.end - 1)
        return LogLine(record.line, record.stream, None, event, time, time)

    def after(self, record: LogLine, row: int) -> _Writer:
        """Return the state after a record at an index."""
        steps = (event_of(record).step or 0) - (0 if self.last is None else event_of(self.last).step or 0)
        return _Writer(record, self.has_start, row, steps if self.last is not None and steps > 0 else self.stride)


def _died_between(deaths: Sequence[int], before: LogLine, after: LogLine) -> bool:
    at = bisect_left(deaths, last_line(before))
    return at < len(deaths) and deaths[at] < after.line


def with_continued_processes(log_lines: Sequence[LogLine], of: SourceText) -> list[LogLine]:
    """Keep a process alive across rollbacks, and add where a restarted process resumed."""
    deaths = sorted(one.line for one in of.seen if one.may_be_death)
    return [*with_living_processes(log_lines, deaths), *resumptions(log_lines)]


def with_living_processes(log_lines: Sequence[LogLine], deaths: Sequence[int] = ()) -> list[LogLine]:
    """Return the events of one source with two heartbeats of one process around each rollback.

    Lines about a rollback become heartbeats, too. A load after such a line takes the time since it. log_lines: in order
    of time. deaths: lines at which processes may have died, in order.
    """
    steps = next((event_of(one).format for one in log_lines if event_of(one).type is EventType.STEP), None)
    if steps is None:
        return [log_line for log_line in log_lines if event_of(log_line).type is not EventType.ROLLBACK]
    writers: dict[tuple[str, str], _Writer] = {}
    found: list[LogLine] = []
    signs: list[LogLine] = []
    latest = max(log_line.end for log_line in log_lines)
    silences = _silences(log_lines, (steps,))
    rollback: LogLine | None = None
    begun = -1  # Index of the last line with which a process began or ended.
    for row, log_line in enumerate(log_lines):
        one = event_of(log_line)
        writer = writers.setdefault((one.format, log_line.stream), _Writer())
        if one.type is EventType.ROLLBACK:
            rollback = log_line
            event = replace(one, type=EventType.ALIVE, format=steps, step=None, took=None)
            log_line = replace(log_line, time=log_line.end, event=event)
        elif one.type is EventType.START or one.type in ENDS:
            writer.has_start |= one.type is EventType.START and writer.last is None
            rollback, begun = None, row
        elif one.type in _LOADS:
            writer.loaded = not silences(row)
            log_line = log_line if rollback is None else _since(rollback, log_line)
        elif one.type is EventType.STEP:
            writer.rollback = rollback
            if writer.last is not None and writer.row > begun and writer.is_rollback(log_line, deaths):
                signs += _around(writer.last, log_line, f"process {len(signs) // 2 + 1}", latest)
                found += [one for one in (writer.resumption(log_line),) if one is not None]
            writers[one.format, log_line.stream] = writer.after(log_line, row)
            rollback = None
        found.append(log_line)
    return [*found, *signs]


def _since(rollback: LogLine, load: LogLine) -> LogLine:
    """Return a load known only as a point, with the time since the line about its rollback."""
    is_point = event_of(load).edge is Edge.POINT and load.time == load.end and not event_of(load).took
    return replace(load, time=rollback.end) if is_point and not (load.odd or rollback.odd) else load


def _around(before: LogLine, after: LogLine, process: str, latest: int) -> Iterator[LogLine]:
    """Yield a heartbeat of a process just before one record and just after another. latest: the last time of the source
    (ns)."""
    for record, time in ((before, before.end - 1), (after, min(after.end + 1, latest))):
        event = ParsedEvent(event_of(record).format, EventType.ALIVE, process=process)
        yield LogLine(record.line, record.stream, None, event, time, time)


@dataclass
class _Passage:
    """The lines of one stream since its last record."""

    record: LogLine
    ended: bool = False
    """True if a line shows the end of its process."""
    first: LogLine | None = None
    """The first line with a time after that end."""
    loads: bool = False
    """True if a checkpoint was loaded after that end."""

    def add(self, log_line: LogLine, deaths: Sequence[int]) -> None:
        """Add a line that is no record. deaths: lines at which processes died, in order."""
        what = None if log_line.event is None else log_line.event.type
        if what in ENDS and what is not EventType.FINISHED:
            self.ended, self.first = True, None
            return
        self.ended = self.ended or _died_between(deaths, self.record, log_line)
        if self.ended:
            self.first = self.first or log_line
            self.loads |= what in _LOADS

    def start_before(self, record: LogLine) -> LogLine | None:
        """Return the first line of another process that trained on to a record; None if there is none, or if steps go
        back, which shows it anyway."""
        return self.first if self.loads and _step_of(record) > last_of(self.record)[1] else None


def with_loads_after_deaths(log_lines: Sequence[LogLine], of: SourceText) -> list[LogLine]:
    """Add a start where a checkpoint is loaded after the end of a process and the steps go on: at the first line with a
    time after that end. log_lines: in order of time."""
    if not any(one.event is not None and one.event.type in _LOADS for one in log_lines):
        return list(log_lines)
    deaths = sorted(one.line for one in of.seen if one.may_be_death)
    passages: dict[str, _Passage] = {}
    starts: dict[int, LogLine] = {}
    for log_line in log_lines:
        what = None if log_line.event is None else log_line.event.type
        passage = passages.get(log_line.stream)
        if what is EventType.STEP:
            first = None if passage is None else passage.start_before(log_line)
            if first is not None:
                event = ParsedEvent(event_of(log_line).format, EventType.START, rank=event_of(log_line).rank)
                starts[id(first)] = replace(first, event=event, end=first.time, inner=None)
            passages[log_line.stream] = _Passage(log_line)
        elif what is EventType.START:
            passages.pop(log_line.stream, None)
        elif passage is not None:
            passage.add(log_line, deaths)
    return [one for row in log_lines for one in (starts.get(id(row)), row) if one is not None]


def stopped_after_saves(log_lines: Sequence[LogLine], _: SourceText) -> list[LogLine]:
    """Move a stop that a program announces after the save that follows it. log_lines: in order of time."""
    found = list(log_lines)
    announced: dict[str, int] = {}
    for place, log_line in enumerate(log_lines):
        one = event_of(log_line)
        if one.type is EventType.STOPPED:
            announced[log_line.stream] = place
        elif one.type in (EventType.STEP, EventType.START, *ENDS):
            announced.pop(log_line.stream, None)
        elif one.type is EventType.SAVE and log_line.stream in announced and (one.took or log_line.end > log_line.time):
            stop = announced[log_line.stream]
            end = max(found[stop].end, log_line.end)
            found[stop] = replace(found[stop], time=end, end=end)
    return sorted(found, key=lambda one: (one.end, one.line))


def without_starts_of_others(log_lines: Sequence[LogLine], _: SourceText) -> list[LogLine]:
    """Turn starts that another process printed into activity. Steps continue across such a start by their usual number,
    in their usual time: a new process would have to load and prepare first. log_lines: in order of time."""
    records: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    breaks = []
    for place, log_line in enumerate(log_lines):
        if event_of(log_line).type is EventType.STEP and event_of(log_line).step is not None:
            records[event_of(log_line).format, log_line.stream].append(place)
        elif event_of(log_line).type in (EventType.START, *_LOADS, *ENDS):
            breaks.append(place)
    others: set[int] = set()
    for places in records.values() if any(event_of(log_lines[one]).type is EventType.START for one in breaks) else ():
        steps, ends = steps_and_ends([log_lines[at] for at in places])
        ahead, apart = np.diff(steps), np.diff(ends)
        stride = _median_low(ahead[ahead > 0], 0)
        usual = apart[(ahead == stride) & (apart > 0)]
        most = _USUAL_TIME * _median_low(usual, 0) if len(usual) >= _FEW_RECORDS else 0
        for a, b in pairwise(places):
            end, step = last_of(log_lines[a])
            between = breaks[bisect_left(breaks, a) : bisect_left(breaks, b)]
            if _step_of(log_lines[b]) - step == stride and 0 < log_lines[b].end - end <= most:
                begun = [
                    at for at in between if event_of(log_lines[at]).type is EventType.START and not log_lines[at].odd
                ]
                others.update(begun if len(begun) == len(between) else ())
    alive = EventType.ALIVE
    return [
        replace(one, event=replace(event_of(one), type=alive)) if place in others else one
        for place, one in enumerate(log_lines)
    ]


def resumptions(log_lines: Sequence[LogLine]) -> Iterator[LogLine]:
    """Yield where a restarted process resumed, if its first record has no timestamp but states how long its steps took,
    and no other line names the step. log_lines: in order of time."""
    stepped: set[tuple[str, str]] = set()
    is_first = False
    for log_line in log_lines:
        one, key = event_of(log_line), (event_of(log_line).format, log_line.stream)
        if one.type is EventType.START:
            is_first = True
        elif one.type in _LOADS and one.step is not None:
            is_first = False
        elif one.type is EventType.STEP:
            if is_first and key in stepped and log_line.odd and one.took and one.step_time:
                step = _step_of(log_line) - round(one.took / one.step_time)
                event = ParsedEvent(one.format, EventType.RESUME, max(step, 0), counted=False)
                yield LogLine(log_line.line, log_line.stream, None, event, log_line.time, log_line.time, odd=True)
            is_first = False
            stepped.add(key)


def unnamed_epochs(
    log_lines: Sequence[LogLine], formats: Collection[str], inferred: Collection[str]
) -> Iterator[LogLine]:
    """Yield a heartbeat at each record of some formats whose count restarts, in the next epoch or phase or in another
    process (accounting §7).

    The log does not show which: nothing starts, ends or loads before it. Processes that all pass the last number of the
    one before do its work again, which phases do not. inferred: formats whose start lines were inferred: without a
    silence before it, such a line may be of a process that trains several times.
    """
    ordered = sorted(log_lines, key=lambda one: (one.end, one.line))
    silences = _silences(ordered, inferred)
    counts: defaultdict[tuple[str, str], _Counts] = defaultdict(_Counts)
    begun = unsure = -1  # Index of the last line with which a process began or ended, and may have begun.
    for place, log_line in enumerate(ordered):
        one, key = event_of(log_line), (event_of(log_line).format, log_line.stream)
        if one.type is EventType.START and one.format in inferred and place and not silences(place):
            unsure = place
        elif one.type is EventType.START or one.type in (*ENDS, *_LOADS):
            begun = place
        elif one.type is EventType.STEP and one.step is not None and one.format in formats:
            counts[key].add(log_line, place, begun, unsure)
    for (name, _), of_writer in counts.items():
        for record, is_unsure in of_writer.begun_again():
            detail = NEXT_EPOCH_AFTER_START if is_unsure else NEXT_EPOCH
            event = ParsedEvent(name, EventType.ALIVE, rank=event_of(record).rank, detail=detail)
            yield LogLine(record.line, record.stream, None, event, record.end, record.end)


def _silences(ordered: Sequence[LogLine], formats: Collection[str]) -> Callable[[int], bool]:
    """Return a function from the index of a line to whether a silence precedes it that is long for the records of some
    formats. ordered: events by end."""
    records = [one for one in ordered if event_of(one).type is EventType.STEP and event_of(one).format in formats]
    apart = np.diff(steps_and_ends(records)[1]) if len(records) > 1 else np.zeros(0, dtype=np.int64)
    long = max(_LONG_PACES * _median_low(apart[apart > 0], 0), _LONG)
    return lambda place: ordered[place].time - last_of(ordered[place - 1])[0] > long


@dataclass
class _Counts:
    """The records of one writer, and where their count restarts."""

    records: list[LogLine] = field(default_factory=list)
    falls: list[int] = field(default_factory=list)
    """Indexes of the records where it does."""
    is_unsure: dict[int, bool] = field(default_factory=dict)
    """For those before which nothing starts, ends or loads: True if a line may be a start."""
    place: int = -1
    """Of the last record among the lines."""

    def add(self, record: LogLine, place: int, begun: int, unsure: int) -> None:
        """Add a record. place, begun, unsure: index of its line, of the last line with which a process began or ended,
        and of the last one with which a process may have begun."""
        if self.records and (event_of(record).step or 0) <= last_of(self.records[-1])[1]:
            self.falls.append(len(self.records))
            if self.place > begun:
                self.is_unsure[len(self.records)] = unsure > self.place
        self.records.append(record)
        self.place = place

    def begun_again(self) -> Iterator[tuple[LogLine, bool]]:
        """Yield the records that may be of the next epoch or phase, and whether a line before them may be a start."""
        if not self.is_unsure:
            return
        ahead = np.diff(steps_and_ends(self.records)[0])
        stride = _median_low(ahead[ahead > 0], 1)
        tops = [last_of(self.records[at - 1])[1] for at in (*self.falls, len(self.records))]
        if all(after > before + stride for before, after in pairwise(tops)):
            return
        for at, is_unsure in self.is_unsure.items():
            if _step_of(self.records[at]) <= stride:
                yield self.records[at], is_unsure


def _median_low(values: I64, default: int) -> int:
    """Return the lower median of values; the default without any."""
    return int(np.sort(values)[(len(values) - 1) // 2]) if len(values) else default


def _step_of(log_line: LogLine) -> int:
    return event_of(log_line).step or 0


def with_untimed_restarts(log_lines: Sequence[LogLine]) -> list[LogLine]:
    """Return the events of a source without any time of day, with a heartbeat at each restart. The downtime before it
    is unknown (accounting §7)."""
    found: list[LogLine] = []
    steps: dict[tuple[str, str], int] = {}
    has_ended = False
    for log_line in sorted(log_lines, key=lambda one: (one.time, one.line)):
        one = event_of(log_line)
        key = one.format, log_line.stream
        step = steps.get(key)
        is_step = one.type is EventType.STEP and one.step is not None
        falls = is_step and step is not None and (has_ended or (one.step or 0) <= step)
        has_ended = one.type in ENDS or (has_ended and not is_step)
        if falls or (one.type is EventType.START and steps):
            event = ParsedEvent(one.format, EventType.ALIVE, detail=UNTIMED_RESTART)
            found.append(LogLine(log_line.line, log_line.stream, None, event, log_line.time, log_line.time))
            steps.clear()
        if is_step:
            steps[key] = last_of(log_line)[1]
    return [*log_lines, *found]
