"""Convert steps and times that are counted within an epoch, or since a process or progress bar began; and separate
unnamed processes in one file, also by headers of epochs that are printed again (docs/formats.md, Text).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median_low

from goodput_cli.events.text.log_lines import ENDS, MAX_STEP, EventType, LogLine, ParsedEvent, Running
from goodput_cli.vocabulary.when import NS_PER_SECOND


@dataclass
class _Epoch:
    """The epoch of one writer, as its last lines show it."""

    number: int | None = None
    """None: no header precedes its steps."""
    count: int = 0
    """Steps since the header."""
    total: int = 0
    stride: int = 0
    """Steps between the last two records."""
    again: int | None = None
    """Index of a header that repeats or falls although the epoch was not full and had steps."""


def with_restarts_at_headers(log_lines: Sequence[LogLine]) -> list[LogLine]:
    """Return the log lines of one source, with a start at each header of an epoch at which a process began again.

    The header repeats or falls although its epoch was not full, and the next count falls, too. Without steps between
    two headers, it repeats alone: several processes that print headers print each of them again. log_lines: in order of
    lines."""
    epochs: defaultdict[tuple[str, str], _Epoch] = defaultdict(_Epoch)
    starts: dict[int, LogLine] = {}
    headers = _headers(log_lines)
    alone = {key for key, numbers in headers.items() if 2 * sum(count > 1 for count in numbers.values()) < len(numbers)}
    for place, log_line in enumerate(log_lines if headers else ()):
        event = log_line.event
        if event is None:
            continue
        if event.type is EventType.START or event.type in ENDS:
            epochs.clear()
        elif (number := _number_of(log_line)) is not None:
            epoch = epochs[event.format, log_line.stream]
            if epoch.number == number and not epoch.count and (event.format, log_line.stream) in alone:
                starts[place] = _start_at(log_line, event.format)
            _announce(epoch, number, place)
        elif event.type is EventType.STEP and event.running is not None and event.running.epoch is None:
            epoch = epochs[event.format, log_line.stream]
            if epoch.again is not None and (event.step or 0) < epoch.count:
                starts[epoch.again] = _start_at(log_lines[epoch.again], event.format)
            step = event.step or 0
            epoch.stride = max(step - epoch.count, 0)
            epoch.count, epoch.total, epoch.again = step, event.running.of or 0, None
    if not starts:
        return list(log_lines)
    return [one for place, line in enumerate(log_lines) for one in (starts.get(place), line) if one is not None]


def _headers(log_lines: Sequence[LogLine]) -> dict[tuple[str, str], Counter[int]]:
    """Return how often each writer prints the header of each epoch."""
    found: defaultdict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    for log_line in log_lines:
        number = _number_of(log_line)
        if number is not None and log_line.event is not None:
            found[log_line.event.format, log_line.stream][number] += 1
    return found


def _number_of(log_line: LogLine) -> int | None:
    """Return the epoch that a header names; None for other lines."""
    event = log_line.event
    if event is None or event.type is not EventType.ALIVE or event.step is not None or event.running is None:
        return None
    return event.running.epoch


def _announce(epoch: _Epoch, number: int, place: int) -> None:
    """Add a header at an index."""
    if epoch.number is not None and number <= epoch.number and 0 < epoch.count < epoch.total - epoch.stride:
        epoch.again = place
    elif epoch.number != number:
        epoch.count = 0
    epoch.number = number


def _start_at(header: LogLine, name: str) -> LogLine:
    return LogLine(header.line, header.stream, header.stamp, ParsedEvent(name, EventType.START), entry=header.entry)


_FEW_RECORDS = 4
"""Minimum number of distances between records for a usual one."""
_MULTIPLE = 5
"""Ratio to the usual step time from which a step contains something else."""
_BEGINS = (EventType.START, EventType.CRASHED, EventType.TERMINATED)


@dataclass
class _Counted:
    """State of one writer."""

    epoch: int = 0
    elapsed: int = 0
    step: int | None = None
    step_time: int | None = None
    count: tuple[int, int] | None = None
    """Last number within an unnamed epoch, and the number of steps of that epoch."""
    is_named: bool = False
    """True if lines contain the epoch."""
    begun: bool = False
    """True if a process began or ended since the last record."""
    restored: bool = False


_MOST_WRITERS, _TURNS = 16, 2
_WRITER = "writer "
"""Part of the stream names of unnamed processes."""


def writers_of(steps: Sequence[int], elapsed: Sequence[int]) -> list[int]:
    """Return the writer of each of n records, numbered from 0, for a file that several unnamed processes may share.

    A record belongs to the process whose step and clock it continues best, and to a new process if it continues none.
    There are several writers only if they alternate: at least twice, a process continues after another one wrote. A
    restart never returns to the process before it.

    steps, elapsed: the step of each record, and the time since its process began.
    """
    last: list[tuple[int, int]] = []
    found: list[int] = []
    turns = 0
    for step, clock in zip(steps, elapsed, strict=True):
        fitting = [at for at, (done, shown) in enumerate(last) if done < step and shown <= clock]
        current = found[-1] if found else -1
        if not fitting:
            last.append((step, clock))
            found.append(len(last) - 1)
            if len(last) > _MOST_WRITERS:
                return [0] * len(steps)
            continue
        writer = min(fitting, key=lambda at: (step - last[at][0], clock - last[at][1], at != current))
        turns += writer != current
        last[writer] = (step, clock)
        found.append(writer)
    return found if turns >= _TURNS else [0] * len(steps)


def _by_writer(log_lines: list[LogLine]) -> list[LogLine]:
    """Return the log lines with one stream per process, if several unnamed processes write one file, and without the
    times of first records of processes whose begin is not in the file."""
    separated = list(log_lines)
    for (_, stream), rows in _rows_by_stream(log_lines, _has_clock_of_process).items():
        steps, clocks = [_step_of(log_lines[row]) for row in rows], [_clock_of(log_lines[row]) for row in rows]
        writers = writers_of(steps, clocks)
        for row, writer in zip(rows, writers, strict=True):
            if writer:
                separated[row] = replace(log_lines[row], stream=f"{stream} {_WRITER}{writer + 1}".lstrip())
    for rows in _rows_by_stream(separated, _has_clock_since_0).values():
        if _is_cut([_step_of(separated[row]) for row in rows], [_clock_of(separated[row]) for row in rows]):
            separated[rows[0]] = _without_begin(separated[rows[0]])
    return separated


def _rows_by_stream(
    log_lines: Sequence[LogLine], is_wanted: Callable[[ParsedEvent, Running], bool]
) -> Mapping[tuple[str, str], list[int]]:
    """Return the indexes of wanted lines with a count or clock, by format and stream."""
    streams: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for row, one in enumerate(log_lines):
        if one.event is not None and one.event.running is not None and is_wanted(one.event, one.event.running):
            streams[one.event.format, one.stream].append(row)
    return streams


def _has_clock_since_0(event: ParsedEvent, running: Running) -> bool:
    """Return True for a record with a step of the whole training and a clock."""
    of_whole = running.of is None and running.epoch is None and event.step is not None
    return event.type is EventType.STEP and running.elapsed is not None and of_whole


def _has_clock_of_process(event: ParsedEvent, running: Running) -> bool:
    """Return True for a record with a step of the whole training and a clock of its process."""
    return running.begins and _has_clock_since_0(event, running)


def _is_cut(steps: Sequence[int], clocks: Sequence[int]) -> bool:
    """Return True if the first records of a process are missing: its clock shows more than one record takes, and about
    the time of all steps since 0."""
    pairs = [
        (b - a, d - c) for (a, b), (c, d) in zip(pairwise(steps), pairwise(clocks), strict=True) if b > a and d > c
    ]
    if len(pairs) < _FEW_RECORDS:
        return False
    stride = median_low(ahead for ahead, _ in pairs)
    pace = median_low(took // ahead for ahead, took in pairs)
    return steps[0] > 2 * stride and clocks[0] > max(steps[0] * pace // 2, _MULTIPLE * stride * pace)


def _without_begin(log_line: LogLine) -> LogLine:
    """Return a first record without the begin of its process and the time of its steps."""
    event = log_line.event
    if event is None or event.running is None:
        return log_line
    return replace(log_line, event=replace(event, running=replace(event.running, begins=False, cut=True)))


def _clock_of(log_line: LogLine) -> int:
    return 0 if log_line.event is None or log_line.event.running is None else log_line.event.running.elapsed or 0


def epoch_of(named: int | None, epoch: int, *, was_full: bool, begun: bool, restored: bool) -> int:
    """Return the epoch of a count of steps that restarts.

    named: epoch in its line or a line before it; None if there is none.
    epoch: of the count before.
    was_full: True if that count reached its end.
    begun, restored: True if a process began or died in between, and if it loaded a checkpoint.

    See docs/formats.md, Progress bars.
    """
    if named is not None:
        return named
    if was_full and not begun:
        return epoch + 1
    return epoch if restored else 0


def counted_steps(log_lines: list[LogLine]) -> list[LogLine]:
    """Return the log lines with total steps and step times instead of relative ones. log_lines: of one source, in line
    order."""
    if not any(log_line.event is not None and log_line.event.running is not None for log_line in log_lines):
        return log_lines
    log_lines = with_restarts_at_headers(_by_writer(log_lines))
    streams: defaultdict[tuple[str, str], _Counted] = defaultdict(_Counted)
    told = [
        one
        for log_line in log_lines
        for one in (
            _settled(log_line, streams[log_line.event.format, log_line.stream]) if log_line.event else (log_line,)
        )
    ]
    return _with_evaluations(_of_all_steps(told))


def _of_all_steps(log_lines: list[LogLine]) -> list[LogLine]:
    """Set the step time of records with the time of all their steps; the first record, whose number of steps is
    unknown, gets that of the next."""
    for rows in _rows_by_stream(log_lines, lambda _, running: running.whole is not None).values():
        ahead = [_step_of(log_lines[b]) - _step_of(log_lines[a]) for a, b in pairwise(rows)]
        for row, steps in zip(rows, [*ahead[:1], *ahead] if ahead else [1], strict=True):
            said = log_lines[row].event
            assert said is not None
            assert said.running is not None
            whole, many = said.running.whole or 0, steps if steps > 0 else ahead[0] if ahead[0] > 0 else 1
            log_lines[row] = replace(log_lines[row], event=replace(said, took=whole, step_time=whole // many))
    return log_lines


def _with_evaluations(log_lines: list[LogLine]) -> list[LogLine]:
    """Set the time of all steps of records with only the time of their last step, assuming the usual time for the
    others. That time includes an evaluation if one is logged since the record before, or if it is a multiple of the
    usual one at regular distances; at others, it includes something else."""
    evaluations: dict[int, LogLine] = {}
    for (_, stream), rows in _rows_by_stream(log_lines, lambda _, running: running.last is not None).items():
        times = [_last_of(log_lines[row]) for row in rows]
        usual = sorted(times)[(len(times) - 1) // 2]
        long = [_step_of(log_lines[row]) for row, time in zip(rows, times, strict=True) if time > _MULTIPLE * usual]
        numbers = [_step_of(log_lines[row]) for row in rows]
        stride = min((b - a for a, b in pairwise(numbers) if b > a), default=1)
        before: int | None = None
        since = 0
        for row, time in zip(rows, times, strict=True):
            log_line, step = log_lines[row], _step_of(log_lines[row])
            assert log_line.event is not None
            logged = _untimed_evaluations(log_lines, range(since, row), log_line.event.format, stream)
            # The first record also contains the start-up.
            is_long = before is not None and time > _MULTIPLE * usual
            holds = (is_long and _is_even(long, stride)) or (before is not None and time > usual and len(logged) > 0)
            steps = step - before if before is not None and step > before else 1
            took = (steps - 1) * usual + (usual if holds else time)
            each = usual if is_long else took // steps
            if holds:
                said = ParsedEvent(log_line.event.format, EventType.EVAL, took=time - usual)
                evaluations[row] = replace(log_line, event=said)
                for place in logged:
                    log_lines[place] = replace(log_lines[place], event=None)
            # The evaluation of a record with a timestamp is within the time of its steps.
            own = (None, None) if holds and log_line.stamp is not None else (took, each)
            log_lines[row] = replace(log_line, event=replace(log_line.event, took=own[0], step_time=own[1]))
            before, since = step, row + 1
    return [
        one
        for row, log_line in enumerate(log_lines)
        for one in ((evaluations[row], log_line) if row in evaluations else (log_line,))
    ]


def _untimed_evaluations(log_lines: Sequence[LogLine], rows: Sequence[int], name: str, stream: str) -> list[int]:
    """Return the indexes of evaluations without a time of one format and stream, among some lines."""
    return [
        row
        for row in rows
        if (event := log_lines[row].event) is not None
        and (event.format, event.type, event.took, log_lines[row].stream) == (name, EventType.EVAL, None, stream)
    ]


def _last_of(log_line: LogLine) -> int:
    return 0 if log_line.event is None or log_line.event.running is None else log_line.event.running.last or 0


def _step_of(log_line: LogLine) -> int:
    return 0 if log_line.event is None else log_line.event.step or 0


def _is_even(steps: Sequence[int], stride: int) -> bool:
    """Return True if steps are at equal distances above a stride, or at multiples of one."""
    ahead = [b - a for a, b in pairwise(steps) if b > a]
    return len(ahead) > 0 and min(ahead) > stride and all(one % min(ahead) == 0 for one in ahead)


def _settled(log_line: LogLine, stream: _Counted) -> Iterator[LogLine]:
    """Yield a log line with its total step and time, after a record of the same step if it is an evaluation of an
    unrecorded one."""
    said = log_line.event
    assert said is not None
    if said.type in _BEGINS:
        stream.elapsed = 0
    stream.begun |= said.type is EventType.START or said.type in ENDS
    stream.restored |= said.type in (EventType.RESTORE, EventType.RESUME)
    if said.running is None:
        yield log_line
        return
    is_begin = stream.begun and said.type is EventType.STEP and said.step == 0 and said.running.of is not None
    step = _step_in_epoch(said, said.running, stream)
    if is_begin:  # the first state of a process: no step is done yet
        stream.step, stream.elapsed, stream.begun = step, said.running.elapsed or 0, False
        yield replace(log_line, event=ParsedEvent(said.format, EventType.RESUME, step, counted=False))
        return
    took, passed = said.took, _passed(said.running, stream)
    if said.running.cut:
        took = None
    elif passed is not None and (said.type is not EventType.EVAL or took is None):
        took = passed
    elif took is not None and passed is not None and took < passed and (stream.step or MAX_STEP) < (step or 0):
        ended = replace(said.running, elapsed=(said.running.elapsed or 0) - took)
        record = ParsedEvent(said.format, EventType.STEP, step, took=passed - took, running=ended)
        yield replace(log_line, event=record)
    step_time = said.step_time
    if said.type is EventType.STEP:
        step_time = _across_epochs(said, step, stream)
        stream.step, stream.step_time, stream.begun, stream.restored = step, said.step_time, False, False
    yield replace(log_line, event=replace(said, step=step, took=took, step_time=step_time))


def _step_in_epoch(said: ParsedEvent, running: Running, stream: _Counted) -> int | None:
    """Return the step within the whole training."""
    if running.epoch is not None:
        stream.epoch, stream.is_named = running.epoch, True
        return said.step
    if said.step is None or running.of is None:
        return said.step
    if said.type is EventType.STEP and not stream.is_named:
        _count_epochs(said.step, running.of, stream)
    return said.step + stream.epoch * running.of


def _passed(running: Running, stream: _Counted) -> int | None:
    """Return the time (ns) since the previous record by the line's clock, which may restart; None if it has none."""
    if running.elapsed is None:
        return None
    before, stream.elapsed = stream.elapsed, running.elapsed
    return running.elapsed - before if running.elapsed >= before else running.elapsed


def _count_epochs(count: int, of: int, stream: _Counted) -> None:
    """Set the epoch of a count within an unnamed epoch."""
    before, stream.count = stream.count, (count, of)
    if before is not None and count < before[0]:
        was_full = before == (of, of)
        stream.epoch = epoch_of(None, stream.epoch, was_full=was_full, begun=stream.begun, restored=stream.restored)


def _across_epochs(said: ParsedEvent, step: int | None, stream: _Counted) -> int | None:
    """Return the mean step time (ns) of a record that began in the previous epoch: steps of that epoch have the step
    time of its last record."""
    running, before = said.running, stream.step
    if said.step_time is None or stream.step_time is None or step is None or before is None or running is None:
        return said.step_time
    begin = 0 if running.of is None else stream.epoch * running.of
    if not before < begin < step:
        return said.step_time
    return ((begin - before) * stream.step_time + (step - begin) * said.step_time) // (step - before)


def by_elapsed(log_lines: list[LogLine]) -> tuple[int, ...]:
    """Set the times of log lines from their clock since the begin of their process or progress bar, and add a start
    where a process began, unless it logged its start. Return the lines where the clock of a process restarts.
    log_lines: with times, in line order."""
    clocks: dict[tuple[str, str], tuple[int, int, int]] = {}  # Begin, last elapsed time, and its time.
    starts: list[LogLine] = []
    logged: set[tuple[str, str]] = set()
    """Writers that logged a start since their last record."""
    anew: list[int] = []
    shown = 0
    for log_line in log_lines:
        said = log_line.event
        if said is not None and said.type is EventType.START:
            logged.add((said.format, log_line.stream))
        if said is None or said.running is None or said.running.elapsed is None:
            if said is not None and log_line.stamp is None and (said.format, log_line.stream) in clocks:
                shown = max(shown, clocks[said.format, log_line.stream][2])
                log_line.time, log_line.end = shown, shown + log_line.end - log_line.time
                shown = log_line.end
            continue
        stream, elapsed = (said.format, log_line.stream), said.running.elapsed
        began, last, when = clocks.get(stream, (0, elapsed + 1, log_line.end - elapsed))
        falls = elapsed < last
        if stream not in clocks and _WRITER in log_line.stream and log_line.stamp is None:
            log_line.end = shown  # Its line follows what another process wrote then.
            log_line.time = log_line.end - (said.took or 0)
        if log_line.stamp is not None:  # A process that began since shows at most the elapsed time.
            falls &= elapsed <= log_line.end - when + NS_PER_SECOND
        if falls or log_line.stamp is not None:
            began = log_line.end - elapsed
        else:
            log_line.end = began + elapsed
            log_line.time = log_line.end - (said.took or 0)
        if falls and said.running.begins:
            anew += [log_line.line] * (stream in clocks)
        if falls and said.running.begins and stream not in logged:
            start = ParsedEvent(said.format, EventType.START)
            starts.append(LogLine(log_line.line, log_line.stream, None, start, began, began, odd=True))
        clocks[stream] = (began, elapsed, log_line.end)
        logged.discard(stream)
        shown = log_line.end
    log_lines += starts
    return tuple(anew)
