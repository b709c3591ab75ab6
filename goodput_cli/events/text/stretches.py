"""Stretches of step records: their location in a block, their conversion back to log lines, and counters in them that
no rule reads, because another program may train there.

The first and last few records of a stretch are log lines, so that lines next to them are handled as usual.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from goodput_cli.arrays import F64, I64, Mask
from goodput_cli.events.text.line_timestamps import Zone
from goodput_cli.events.text.lines import LONGEST, OTHER_STEPS, Lines
from goodput_cli.events.text.log_lines import (
    BEYOND_ALL,
    ENDS,
    EventType,
    LogLine,
    ParsedEvent,
    Stamps,
    Stretch,
    event_of,
    linear,
)
from goodput_cli.events.text.programs.progress_bars import counted_step
from goodput_cli.events.text.step_columns import StepRecords
from goodput_cli.events.timestamps import QUARTER_NS
from goodput_cli.events.values import MAX_NS
from goodput_cli.vocabulary.when import NS_PER_DAY, NS_PER_SECOND

EDGE = 3
"""Number of records at each end of a stretch that are log lines."""
_FEWEST = 4
"""Fewer inner records are log lines, too."""
_FARTHEST = 30 * NS_PER_DAY
"""Records that are farther apart are in two stretches."""


class Inner(NamedTuple):
    """The inner records of a stretch: rows of `Records`."""

    begin: int
    end: int
    stride: int


def inner_records(records: StepRecords, hits: I64, stamped: I64, first: int) -> list[Inner]:
    """Return the inner records of each stretch of a block.

    hits: the lines on which rules are tried, ascending, those of records among them.
    stamped: all lines with a timestamp.
    first: how many records at the beginning of a stretch are log lines.
    """
    links = _links(records, hits, stamped)
    stride = np.diff(records.step)
    begins = links.copy()
    begins[1:] &= ~links[:-1] | (stride[1:] != stride[:-1])
    bounds = np.append(np.flatnonzero(begins | ~links), len(links))
    places = np.flatnonzero(begins[bounds[:-1]])
    long = bounds[places + 1] - bounds[places] >= _FEWEST
    found: list[Inner] = []
    for place in places[long].tolist():
        begin, end = int(bounds[place]), int(bounds[place + 1])
        found += _inner(records, begin, end, int(stride[begin]), first)
    return found


def _links(records: StepRecords, hits: I64, stamped: I64) -> Mask:
    """Return bool[n - 1]: whether a record and the one before it may be in one stretch."""
    at, ns = records.at, np.diff(records.ns)
    places = np.searchsorted(hits, at)
    clocks = np.searchsorted(stamped, at[1:]) - np.searchsorted(stamped, at[:-1], side="right")
    links: Mask = (np.diff(places) == 1) & (clocks == 0) & (np.diff(records.kind) == 0)
    for values in records.same.values():
        links &= np.diff(values) == 0
    links &= (np.diff(records.step) > 0) & (ns >= 0) & (ns < _FARTHEST)
    return links


def _inner(records: StepRecords, first: int, last: int, stride: int, edge: int) -> Iterator[Inner]:
    """Yield the inner records of those from `first` to `last`: all at the time of an edge are at the edge."""
    ns = records.ns[first : last + 1]
    tail = len(ns) - EDGE
    if records.kind_of(first).stamp is not None:
        tail = min(tail, int(np.searchsorted(ns, ns[-1])) - 1)
        tail = int(np.searchsorted(ns, ns[tail])) if tail > 0 else tail
    if tail - edge >= _FEWEST:
        yield Inner(first + edge, first + tail, stride)


def stretch_of(records: StepRecords, inner: Inner, line: I64, next_line: int) -> Stretch:
    """Return inner records as a stretch. line: the number of the line of each. next_line: that of the next record."""
    begin, end, stride = inner
    kind = records.kind_of(begin)
    return Stretch(
        records.event(begin),
        kind.stream,
        None if kind.stamp is None else kind.stamp.stamps(records.ns[begin:end]),
        None if kind.local is None else kind.local.stamps(records.local[begin:end]),
        line,
        int(records.step[begin]),
        stride,
        records.step_time[begin:end].copy() if kind.has_time else None,
        {name: values[begin:end].copy() for name, values in records.metrics.items() if _has_any(values[begin:end])},
        np.zeros(end - begin, dtype=np.int64),
        next_line,
        int(records.ns[end]),
    )


def _has_any(values: F64) -> bool:
    return not bool(np.isnan(values).all())


def expanded(log_lines: Iterable[LogLine], chosen: Collection[int] | None = None) -> list[LogLine]:
    """Return log lines with the records of stretches among them. chosen: indexes of stretches; None for all."""
    found: list[LogLine] = []
    for at, log_line in enumerate(log_lines):
        if log_line.inner is None or (chosen is not None and at not in chosen):
            found.append(log_line)
        else:
            found += [replace(log_line, inner=None), *log_line.inner.records(log_line.end)]
    return found


def has_stretches(log_lines: Iterable[LogLine]) -> bool:
    """Return True if some records are in stretches."""
    return any(log_line.inner is not None for log_line in log_lines)


def apart_from_lines(log_lines: list[LogLine], lines: Iterable[int]) -> list[LogLine]:
    """Return log lines without the stretches that contain one of some lines."""
    ordered = sorted(lines)
    chosen = {
        at
        for at, one in enumerate(log_lines)
        if one.inner is not None and bisect_right(ordered, one.line) < bisect_left(ordered, one.inner.next_line)
    }
    return expanded(log_lines, chosen) if chosen else log_lines


def split_at_lines(log_lines: list[LogLine]) -> list[LogLine]:
    """Return log lines with stretches that end before other lines among theirs, and begin again after them. log_lines:
    by line. Stretches of several writers become lines."""
    numbers = np.array([one.line for one in log_lines], dtype=np.int64)
    found: list[LogLine] = []
    is_split = False
    for at, one in enumerate(log_lines):
        stop = at + 1 if one.inner is None else int(np.searchsorted(numbers, int(one.inner.line[-1])))
        if stop <= at + 1 or one.inner is None:
            found.append(one)
            continue
        if any(other.inner is not None for other in log_lines[at + 1 : stop]):
            return sorted(expanded(log_lines), key=lambda log_line: log_line.line)
        found += _split(one, one.inner, np.searchsorted(one.inner.line, numbers[at + 1 : stop]))
        is_split = True
    return sorted(found, key=lambda log_line: log_line.line) if is_split else log_lines


def _split(before: LogLine, inner: Stretch, places: I64) -> Iterator[LogLine]:
    """Yield the record before a stretch, and the records of the stretch next to some places as lines, with the others
    as their stretches."""
    is_alone = np.zeros(len(inner) + 1, dtype=np.bool_)
    for place in places.tolist():
        is_alone[max(place - EDGE, 0) : place + EDGE] = True
    bounds = [0, *(np.flatnonzero(np.diff(is_alone[:-1])) + 1).tolist(), len(inner)]
    last = replace(before, inner=None)
    for begin, end in pairwise(bounds):
        part = _part_of(inner, begin, end)
        if is_alone[begin] or end - begin < _FEWEST:
            for record in part.records(0):
                yield last
                last = record
        else:
            last.inner = part
    yield last


def _part_of(inner: Stretch, begin: int, end: int) -> Stretch:
    """Return some records of a stretch that is not placed yet."""
    rows = slice(begin, end)
    is_last = end == len(inner)
    return replace(
        inner,
        stamps=None if inner.stamps is None else inner.stamps._replace(ns=inner.stamps.ns[rows]),
        local=None if inner.local is None else inner.local._replace(ns=inner.local.ns[rows]),
        line=inner.line[rows],
        first=inner.first + inner.stride * begin,
        step_time=None if inner.step_time is None else inner.step_time[rows],
        metrics={name: values[rows] for name, values in inner.metrics.items()},
        time=inner.time[rows],
        next_line=inner.next_line if is_last else int(inner.line[end]),
        next_ns=inner.next_ns if is_last or inner.stamps is None else int(inner.stamps.ns[end]),
    )


def placed_stretches(log_lines: list[LogLine], local: Callable[[int], int]) -> list[LogLine]:
    """Return log lines with times for their stretches with timestamps, without stretches in which clocks change.

    local: converts local time to ns UTC.
    """
    offsets: dict[int, int] = {}
    chosen: set[int] = set()
    for at, one in enumerate(log_lines):
        if one.inner is None or one.inner.stamps is None:
            continue
        ahead = _offset(one.inner.stamps, offsets, local)
        if ahead is None:
            chosen.add(at)
        else:
            one.inner = replace(one.inner, time=one.inner.stamps.ns - ahead, next_time=one.inner.next_ns - ahead)
    return expanded(log_lines, chosen) if chosen else log_lines


def _offset(stamps: Stamps, known: dict[int, int], local: Callable[[int], int]) -> int | None:
    """Return how far (ns) the timestamps of a stretch are ahead of UTC; None if that changes."""
    if stamps.zone is Zone.EXACT:
        return 0
    quarters = range(int(stamps.ns[0]) // QUARTER_NS - 1, int(stamps.ns[-1]) // QUARTER_NS + 2)
    for quarter in quarters:
        if quarter not in known:
            known[quarter] = quarter * QUARTER_NS - local(quarter * QUARTER_NS)
    every = {known[quarter] for quarter in quarters}
    return every.pop() if len(every) == 1 else None


def apart_in_time(log_lines: list[LogLine]) -> list[LogLine]:
    """Return placed log lines without the stretches inside which another one is in order of time."""
    return parts_apart_in_time([log_lines])[0]


def parts_apart_in_time(parts: Sequence[list[LogLine]]) -> list[list[LogLine]]:
    """Return placed log lines, by source, without the stretches inside which one of any source is in order of time."""
    if not any(map(has_stretches, parts)):
        return list(parts)
    keys: list[tuple[int, int]] = []
    ends: list[int] = []
    for one in chain.from_iterable(parts):
        is_record = one.event is not None and one.event.type is EventType.STEP  # These are in order of their ends.
        keys += [(one.end, one.line)] if is_record else [(one.time, one.line), (one.end, one.line)]
        if one.event is not None and one.event.type in ENDS:
            ends += [one.time, one.end]
    keys.sort()
    ends.sort()
    return [_expanded_inside(log_lines, keys, ends) for log_lines in parts]


def _expanded_inside(log_lines: list[LogLine], keys: Sequence[tuple[int, int]], ends: Sequence[int]) -> list[LogLine]:
    """Return log lines without the stretches inside which another one is. keys: times and lines of all, in order. ends:
    times of those with which processes end, in order."""
    chosen: set[int] = set()
    for at, one in enumerate(log_lines):
        if one.inner is None:
            continue
        # without timestamps, nothing may be at the time of the last record: a start there would be after it
        behind = one.inner.next_time, one.inner.next_line if one.inner.stamps is not None else BEYOND_ALL
        inside = bisect_left(keys, behind) > bisect_right(keys, (one.end, one.line))
        # an end that is written in whole seconds may be at any time of its second
        if inside or bisect_left(ends, one.end - NS_PER_SECOND) < bisect_right(ends, behind[0]):
            chosen.add(at)
    return expanded(log_lines, chosen) if chosen else log_lines


def last_of(log_line: LogLine) -> tuple[int, int]:
    """Return the end of a record, or of the last one that follows it in its stretch, and its step."""
    if log_line.inner is not None:
        return int(log_line.inner.time[-1]), log_line.inner.last
    step = None if log_line.event is None else log_line.event.step
    return log_line.end, step or 0


def last_line(log_line: LogLine) -> int:
    """Return the line of a record, or of the last one that follows it in its stretch."""
    return log_line.line if log_line.inner is None else int(log_line.inner.line[-1])


def column_of(log_lines: Iterable[LogLine], of: Callable[[LogLine], int], inner: Callable[[Stretch], Any]) -> I64:
    """Return a value of each log line and of each record of its stretch."""
    pieces: list[Any] = []
    values: list[int] = []
    for log_line in log_lines:
        values.append(of(log_line))
        if log_line.inner is not None:
            pieces += [values, inner(log_line.inner)]
            values = []
    return np.concatenate([np.asarray(one, dtype=np.int64) for one in (*pieces, values)])


def steps_and_ends(records: Sequence[LogLine]) -> tuple[I64, I64]:
    """Return the steps and the ends of records, those of stretches among them. A record after MAX_NS is dropped later,
    whatever its time."""
    steps = column_of(records, lambda one: (one.event and one.event.step) or 0, lambda inner: inner.steps)
    return steps, column_of(records, lambda one: min(one.end, MAX_NS), lambda inner: inner.time)


def count_of(log_lines: Sequence[LogLine]) -> int:
    """Return how many log lines there are, with the records of stretches."""
    return len(log_lines) + sum(len(one.inner) for one in log_lines if one.inner is not None)


def last_record(log_line: LogLine) -> tuple[int, int | None]:
    """Return the end of a record, or of the last one of the stretch that it begins, and its step."""
    return (log_line.end, event_of(log_line).step) if log_line.inner is None else last_of(log_line)


_COUNTER = (
    rb"(?im)(?:^|[^a-z\n])(?:step|iter(?:ation)?|epoch|batch|episode|update|round)s?[ \t:=#\[(/]{1,4}(\d{1,9})(?:\D|$)"
)
"""Pattern of a line with a counter of training, in any format."""
_OF_TOTAL = rb"\[ ?(\d{1,9}) ?/ ?\d{1,9}\][^\n]*[^a-z](?:loss|acc|lr|reward|grad)"
"""The same for a number in brackets, next to a result of training."""
_EVALUATES = rb"(?i)(?:^|[^a-z])(?:eval|val|valid|test|dev|infer|predict|sampl|generat|validat)[a-z]*(?:[^a-z]|$)"
_MASK = bytes.maketrans(b"123456789", b"000000000")
_HEAD = 24
"""Number of bytes after the counter's begin that distinguish two formats."""
_MOST = 64
"""Maximum number of formats that are followed at a time."""


@dataclass
class _Counter:
    """Rising numbers of lines in one format."""

    first: int
    """Line of the first number."""
    step: int
    count: int = 1


class OtherCounters:
    """Finds lines with a rising number of steps or epochs where no rule reads a step."""

    def __init__(self) -> None:
        self._counters: dict[bytes, _Counter] = {}
        self._since = 0
        """Lines since the last step that a rule reads."""
        self._is_read = False
        """True since the first step that a rule reads: what precedes it is judged by `EvidenceOfLog.unread_steps`."""

    def feed(
        self, block: Lines, first_line: int, said: Mapping[int, Sequence[ParsedEvent]], meant: Sequence[int]
    ) -> dict[int, int]:
        """Return the first and last lines of counters with enough numbers in a block. said: events of lines that were
        read alone; meant: all lines that rules read."""
        quiet = [at for at, some in said.items() if not any(counted_step(one) is not None for one in some)]
        steps = np.setdiff1d(np.array(meant, dtype=np.int64), np.array(quiet, dtype=np.int64))
        if not self._is_read and not len(steps):
            return {}
        bounds = [-1, *steps.tolist(), len(block)]
        gaps = np.flatnonzero(np.diff(bounds) > 1)
        found: dict[int, int] = {}
        for gap in gaps.tolist():
            begin, end = bounds[gap] + 1, bounds[gap + 1]
            if gap:
                self._forget()
            elif not self._is_read:
                continue
            self._since += end - begin
            if self._since >= OTHER_STEPS or end == len(block):
                found |= self._follow(block, first_line, range(begin, end))
        self._is_read |= len(steps) > 0
        if len(steps) and steps[-1] == len(block) - 1:
            self._forget()
        return found

    def _forget(self) -> None:
        self._counters.clear()
        self._since = 0

    def _follow(self, block: Lines, first_line: int, lines: range) -> dict[int, int]:
        counts, of_total, evaluates, either = _compiled()
        found: dict[int, int] = {}
        for at in block.each_found(either, lines):
            raw = block.bytes_of(at, LONGEST)
            step = counts.search(raw) or of_total.search(raw)
            if step is None or evaluates.search(raw) is not None:
                continue
            key = raw[step.start() : step.start(1)].strip() + raw[step.end(1) :][:_HEAD].translate(_MASK)
            number, value = first_line + int(block.number[at]), int(step[1])
            counter = self._counters.get(key)
            if counter is None or value < counter.step:
                if len(self._counters) < _MOST:
                    self._counters[key] = _Counter(number, value)
            elif value > counter.step:
                counter.step, counter.count = value, counter.count + 1
                if counter.count >= OTHER_STEPS:
                    found[counter.first] = number
        return found


@cache
def _compiled() -> tuple[Any, ...]:
    """Return the patterns of counters, of counts next to a result, of evaluations, and of the first two together."""
    patterns = (_COUNTER, b"(?i)" + _OF_TOTAL, _EVALUATES, _COUNTER + b"|" + _OF_TOTAL)
    return tuple(linear().compile(one) for one in patterns)
