"""Find what a process did without a record of its own: lines before its first step, activity, its open intervals."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from statistics import median_low

from goodput_cli.events.schema import LEFT_OPEN_SAVE, Edge
from goodput_cli.events.text.log_lines import ENDS, NO_STEP_YET, EventType, LogLine, ParsedEvent, SourceText, event_of
from goodput_cli.events.text.programs.launcher import is_wait
from goodput_cli.events.text.programs.megatron import JOINT_FORMATS

LEFT_OPEN = "left open"
"""Name of a save or restore without an end line."""
_ON_THE_WAY = (
    EventType.INIT,
    EventType.PREP,
    EventType.DATA,
    EventType.RESTORE,
    EventType.RESUME,
    EventType.REINIT,
    EventType.ALIVE,
)
_BEGINS = {EventType.START, EventType.INIT, EventType.PREP, EventType.RESTORE, EventType.RESUME, *ENDS}
_SLOW = 2
"""Maximum step time of a first record without a start-up, in usual step times."""
_COUNTED = (EventType.STEP, EventType.START)
_DEATHS = (EventType.CRASHED, EventType.TERMINATED, EventType.PREEMPTED)


def with_open_intervals(events: Sequence[LogLine], _: SourceText) -> list[LogLine]:
    """End unfinished saves and restores at the next line about the death of the process, otherwise at the last activity
    before the next start."""
    opened = [log_line for log_line in events if _is_open(log_line)]
    if not opened:
        return list(events)
    later = sorted(events, key=lambda log_line: (log_line.time, log_line.line))
    ends = {id(log_line): _end_of_open(log_line, later) for log_line in opened}
    return [
        log_line if id(log_line) not in ends else replace(_left_open(log_line), end=ends[id(log_line)])
        for log_line in events
    ]


def _left_open(log_line: LogLine) -> LogLine:
    one = event_of(log_line)
    detail = LEFT_OPEN_SAVE if one.type is EventType.SAVE else one.detail
    return replace(log_line, event=replace(one, edge=Edge.POINT, name=LEFT_OPEN, detail=detail))


def _is_open(log_line: LogLine) -> bool:
    return event_of(log_line).type in (EventType.SAVE, EventType.RESTORE) and event_of(log_line).edge is Edge.BEGIN


def _end_of_open(log_line: LogLine, later: Sequence[LogLine]) -> int:
    end = log_line.time
    for other in later:
        if other is log_line or other.time < log_line.time or other.stream not in (log_line.stream, ""):
            continue
        if event_of(other).type in ENDS:
            return other.time
        if event_of(other).type is EventType.START and other.time > log_line.time:
            break
        end = max(end, other.end)
    return end


def with_order_of_lines(events: Sequence[LogLine], _: SourceText) -> Sequence[LogLine]:
    """Move the end of an attempt 1 ns before a start, or a step that is repeated, if both have the same time: the order
    of the lines shows what came first."""
    restarts = _tied_restarts([log_line for log_line in events if event_of(log_line).type in _COUNTED])
    for log_line in events if restarts else ():
        is_end = event_of(log_line).type in ENDS
        later = restarts.get((log_line.stream, log_line.end), ())
        log_line.end -= sum(log_line.line < (until if is_end else after) for after, until in later)
        log_line.time = min(log_line.time, log_line.end)
    return events


def _tied_restarts(counted: Sequence[LogLine]) -> dict[tuple[str, int], list[tuple[int, int]]]:
    """Return where another attempt begins at the time of a record before it, by stream and time: the line after that
    record, and the line at which an end before it must be. counted: records and starts in order of time."""
    restarts: defaultdict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    last: dict[str, tuple[int, int, int]] = {}
    for log_line, later in zip(counted, _highest_later_steps(counted), strict=True):
        step = event_of(log_line).step or 0
        time, highest, line = last.pop(log_line.stream, (0, 0, 0))
        is_start = event_of(log_line).type is EventType.START
        if time == log_line.end and (is_start or max(step, later) < highest):
            restarts[log_line.stream, time].append((line + 1, 0 if is_start else log_line.line))
        elif time == log_line.end:
            step = max(step, highest)
        if not is_start:
            last[log_line.stream] = log_line.end, step, log_line.line
    return restarts


def _highest_later_steps(counted: Sequence[LogLine]) -> list[int]:
    """Return the highest step of the later records of the same time, or one less than that of the next record if that
    is higher: if it reaches the steps before, processes only take turns."""
    later_steps: list[int] = []
    following: dict[str, tuple[int, int, int]] = {}
    for log_line in reversed(counted):
        time, step, highest = following.pop(log_line.stream, (0, 0, 0))
        later_steps.append(max(step, highest) if time == log_line.end else step - 1)
        if event_of(log_line).type is EventType.STEP:
            following[log_line.stream] = log_line.end, event_of(log_line).step or 0, later_steps[-1]
    return later_steps[::-1]


def with_records_of_no_step(events: Sequence[LogLine], of: SourceText) -> Sequence[LogLine]:
    """Turn a record of 0 steps into activity after a start; without one, move it to the first dated line, so that the
    time since is start-up."""
    if not any(event_of(log_line).name == NO_STEP_YET for log_line in events):
        return events
    started, first = False, True
    for log_line in sorted(events, key=lambda log_line: (log_line.time, log_line.line)):
        one = event_of(log_line)
        if one.name == NO_STEP_YET and one.type is EventType.START:
            if started:
                log_line.event = replace(one, type=EventType.ALIVE)
            elif first and log_line.stamp is not None:
                dated = (other.time for other in of.lines if other.stamp is not None and not other.borrowed)
                log_line.time = log_line.end = min(dated)
        started = one.type is EventType.START or (started and one.type not in ENDS and one.type is not EventType.STEP)
        first = first and one.type in _ON_THE_WAY
    return events


def in_order_of_ends(events: Sequence[LogLine], _: SourceText) -> list[LogLine]:
    """Sort the events by their ends."""
    return sorted(events, key=_end)


def with_timed_deaths(log_lines: Sequence[LogLine], _: SourceText) -> Sequence[LogLine]:
    """Move a death without a time to the timed end after it: a process dies, and then its launcher logs the death."""
    end_with_time(sorted(log_lines, key=lambda log_line: log_line.line))
    return log_lines


def end_with_time(log_lines: Sequence[LogLine]) -> None:
    """Move an untimed death to the timed end after it: a process dies, and then its launcher logs the death. log_lines:
    in the order in which they were written; only steps and starts separate attempts."""
    following: LogLine | None = None
    for log_line in reversed(log_lines):
        what = event_of(log_line).type
        if what in ENDS and not log_line.odd:
            following = log_line
        elif what in _DEATHS and following is not None:
            log_line.time = log_line.end = max(log_line.time, following.time)
        elif what in (EventType.START, EventType.STEP, EventType.STEP_START):
            following = None


def first_begin(log_lines: Sequence[LogLine]) -> list[LogLine]:
    """Return the begin of the first record, for text without a clock: where the steps of that record began if the text
    begins in the middle of a run, otherwise activity."""
    first = next(
        (log_line for log_line in log_lines if log_line.event is not None and log_line.event.type is EventType.STEP),
        None,
    )
    if first is None or first.time == first.end:
        return []
    record = event_of(first)
    step = _step_before(first, log_lines)
    begin = (
        ParsedEvent(record.format, EventType.ALIVE)
        if step is None
        else ParsedEvent(record.format, EventType.RESUME, step, counted=False)
    )
    return [LogLine(first.line, first.stream, None, begin, first.time, first.time)]


def _step_before(first: LogLine, log_lines: Sequence[LogLine]) -> int | None:
    """Return the step before the first record of a text that begins in the middle of a run; None if its process began
    in the text, or if the record may contain a start-up."""
    events = [(log_line, log_line.event) for log_line in log_lines if log_line.event is not None]
    if any(log_line.time <= first.time and event.type in _BEGINS for log_line, event in events):
        return None
    record, usual = event_of(first), _usual_step_time(first, log_lines)
    if not record.step_time or usual is None or record.step_time > _SLOW * usual:
        return None
    step = (record.step or 0) - round((first.end - first.time) / record.step_time)
    return step if step > 0 else None


def _usual_step_time(first: LogLine, log_lines: Iterable[LogLine]) -> int | None:
    """Return the lower median of the step times (ns) of the records after the first one; None without any."""
    later = (log_line.event for log_line in log_lines if log_line is not first and log_line.event is not None)
    times = [event.step_time for event in later if event.type is EventType.STEP and event.step_time]
    if first.inner is not None and first.inner.step_time is not None:
        times += first.inner.step_time[first.inner.step_time > 0].tolist()
    return median_low(times) if times else None


def with_activity(events: Sequence[LogLine], of: SourceText) -> list[LogLine]:
    """Add timestamps next to step records as activity, also those of other ranks, except those of a process before its
    start."""
    alive: defaultdict[str, list[LogLine]] = defaultdict(list)
    for log_line in of.shown:
        alive[log_line.stream].append(log_line)
    steps = {
        log_line.stream: event_of(log_line).format for log_line in events if event_of(log_line).type is EventType.STEP
    }
    whole = next((name for name in steps.values() if name in JOINT_FORMATS), None)
    by_stream: defaultdict[str, list[LogLine]] = defaultdict(list)
    for log_line in events:
        by_stream[log_line.stream].append(log_line)
    of_ranks = set() if whole else _ranks_without_steps(alive, steps)
    shown = [line for stream in alive if whole or stream in steps or stream in of_ranks for line in alive[stream]]
    early = _starting(events, shown) if whole else set()
    for stream, log_lines in alive.items():
        if stream in of_ranks:
            early |= _starting(events, log_lines)
        elif stream in by_stream and (whole is None or len(by_stream) > 1):
            early |= _starting(by_stream[stream], log_lines)
    first = next(iter(steps.values()), "")
    return [
        *events,
        *(
            LogLine(
                log_line.line,
                log_line.stream,
                log_line.stamp,
                ParsedEvent(whole or steps.get(log_line.stream, first), EventType.ALIVE),
                log_line.time,
                log_line.time,
            )
            for log_line in shown
            if id(log_line) not in early
        ),
    ]


def _ranks_without_steps(alive: Iterable[str], steps: Collection[str]) -> set[str]:
    """Return the streams of ranks that print no step, next to ranks or a process without a prefix that do: a watchdog
    of any rank shows that the job was alive. alive, steps: streams with times, and with steps."""
    if not steps or not all(stream == "" or stream.isdecimal() for stream in steps):
        return set()
    return {stream for stream in alive if stream.isdecimal() and stream not in steps}


def _starting(events: Iterable[LogLine], alive: Iterable[LogLine]) -> set[int]:
    """Return the lines of a process before its start line, which are not activity of the previous attempt: lines before
    the first start, and before a later one if the first of them is nearer to that start than to the previous line."""
    quiet = sorted(alive, key=_end)
    times = [log_line.end for log_line in quiet]
    early: set[int] = set()
    before, highest = -1, -1
    for log_line in sorted(events, key=_end):
        one = event_of(log_line)
        step = one.step if one.type is EventType.STEP and one.step is not None else None
        if one.type is EventType.START or (step is not None and step <= highest):
            low, high = bisect_right(times, before), bisect_left(times, log_line.time)
            if low < high and (before < 0 or 2 * times[low] > before + log_line.time):
                early.update(map(id, quiet[low:high]))
            highest = -1
        highest = highest if step is None else max(highest, step)
        before = before if one.type in _ON_THE_WAY else log_line.end
    return early


def _end(log_line: LogLine) -> tuple[int, int]:
    return log_line.end, log_line.line


def without_preludes(parts: Sequence[list[LogLine]]) -> None:
    """Drop activity before the first event of a file if a start in another file is between them: the file belongs to
    the started process. parts: log lines of one job by source."""
    starts = sorted(log_line.time for part in parts for log_line in part if event_of(log_line).type is EventType.START)
    for part in parts if starts else ():
        first = min((log_line.end for log_line in part if event_of(log_line).type not in _ON_THE_WAY), default=0)
        before = bisect_right(starts, first)
        if before:
            start = starts[before - 1]
            part[:] = [log_line for log_line in part if log_line.time >= start or not _is_plain_activity(log_line)]


def _is_plain_activity(log_line: LogLine) -> bool:
    return event_of(log_line).type is EventType.ALIVE and not event_of(log_line).name


def longest_waits(log_lines: list[LogLine]) -> list[LogLine]:
    """Return the log lines with one wait of a watchdog between two steps, the longest: the ranks of a job wait at the
    same time, and each reports it. It ends the process unless a step follows, at the timestamp of the last such line.

    log_lines: of one source, in line order."""
    waits: list[int] = []
    kept: dict[int, LogLine] = {}
    has_trained = False
    for row, log_line in enumerate(log_lines):
        one = log_line.event
        if one is not None and is_wait(one):
            waits.append(row)
        elif one is not None and one.type in (EventType.STEP, EventType.START):
            kept.update(_longest_wait(log_lines, waits, has_trained, is_over=one.type is EventType.START))
            waits = []
            has_trained |= one.type is EventType.STEP
    kept.update(_longest_wait(log_lines, waits, has_trained, is_over=True))
    found = (kept.get(row, log_line) for row, log_line in enumerate(log_lines))
    return [one for one in found if one.event is not None or one.stamp is not None]


def _longest_wait(
    log_lines: Sequence[LogLine], rows: Sequence[int], has_trained: bool, *, is_over: bool
) -> dict[int, LogLine]:
    """Return the lines of some waits without their events, except the longest without a time. has_trained: True if a
    step is before them. is_over: it ended its process, at the last time if lines have one."""
    untimed = [row for row in rows if log_lines[row].stamp is None]
    longest = max(untimed, key=lambda row: event_of(log_lines[row]).took or 0, default=-1)
    # The first timestamp shows when the wait began: steps without times ended before. A file without steps, as of
    # another rank, contains no job.
    first = rows[0] if rows and has_trained and not untimed else -1
    found = {row: replace(log_lines[row], event=None) for row in rows if row not in (longest, first)}
    ends = bool(rows) and longest < 0 and has_trained and not _is_end_logged(log_lines, rows[-1])
    last = rows[-1] if ends else longest
    if last >= 0 and is_over:
        found[last] = replace(log_lines[last], event=replace(event_of(log_lines[last]), type=EventType.CRASHED))
    return found


def _is_end_logged(log_lines: Sequence[LogLine], row: int) -> bool:
    """Return True if a line after a wait shows the end of its process."""
    for at in range(row + 1, len(log_lines)):
        event = log_lines[at].event
        what = None if event is None else event.type
        if what in (EventType.STEP, EventType.START, *ENDS):
            return what in ENDS
    return False
