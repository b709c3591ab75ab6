"""Infer the times of lines without timestamps from the lines around them (docs/formats.md, Text).

A stream has a cursor: the last timestamp, or the end of the last record placed after it. A record with a duration
begins there; an event without duration is a point there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from statistics import median_low
from typing import NamedTuple

import numpy as np

from goodput_cli.arrays import I64
from goodput_cli.diagnostics.diagnostic import FEW_PLACES
from goodput_cli.events.text.line_timestamps import Timestamp, Zone, with_year, with_years, year_of
from goodput_cli.events.text.log_lines import ENDS, EventType, LogLine
from goodput_cli.events.text.programs.launcher import is_wait
from goodput_cli.events.text.stretches import count_of, last_of
from goodput_cli.vocabulary.when import NS_PER_SECOND

_BACK = 2 * NS_PER_SECOND
"""Maximum decrease of timestamps written by different threads."""


_AGAIN = {EventType.START, EventType.RESTORE, EventType.RESUME, EventType.ROLLBACK, *ENDS}
"""Events after which a process may do the last step again."""


@dataclass(frozen=True)
class InferredTimes:
    """Observations made while times were inferred: lines by diagnostic."""

    no_clock: bool
    without_year: tuple[int, ...]
    naive: tuple[int, ...]
    back: tuple[int, ...]
    """Lines with an earlier timestamp than one before in the stream, without a restart."""
    missing: tuple[int, ...]
    """Records without timestamp that cover more steps than fit between them and the previous one."""
    anew: tuple[int, ...] = ()
    """Lines where the clock of a process restarts."""
    naive_count: int = 0
    """Number of lines without a zone; `naive` contains the first ones."""


def infer_times(
    log_lines: Sequence[LogLine],
    modified_ns: int,
    year: int | None,
    local: Callable[[int], int],
    one_stream: Container[str] = (),
    near: Sequence[int] = (),
    start: int | None = None,
) -> InferredTimes:
    """Set the times of the log lines of one source, in line order.

    modified_ns: modification time of the source. year: of timestamps without one, if given. local: converts local time
    to ns UTC. one_stream: formats whose ranks are read together. near: times in other sources of the job, which
    determine the year if no timestamp here has one. start: begin (ns), if no log line has a timestamp.
    """
    dated = _with_years(log_lines, modified_ns, year, near)
    no_clock = bool(log_lines) and all(stamp is None for stamp in dated)
    naive, count = _naive(log_lines, dated)
    without_year = tuple(
        log_line.line
        for log_line in log_lines
        if log_line.event and log_line.stamp is not None and log_line.stamp.zone is Zone.YEARLESS
    )
    instants = [None if stamp is None else stamp.ns if stamp.zone is Zone.EXACT else local(stamp.ns) for stamp in dated]
    back: list[int] = []
    whole_source = _of_whole_source(log_lines, instants, one_stream)
    streams: defaultdict[str, list[int]] = defaultdict(list)
    for at, log_line in enumerate(log_lines):
        streams[log_line.stream].append(at)
    own = [[at for at in rows if not whole_source[at]] for rows in streams.values()]
    stories = [(rows, clocks) for rows, clocks in zip(own, streams.values(), strict=True) if rows]
    stories += [([at for at in range(len(log_lines)) if whole_source[at]], list(range(len(log_lines))))]
    lengths, missing = _lengths(log_lines, instants, [rows for rows, _ in stories])
    for rows, clocks in stories:
        until = modified_ns if start is None else start + sum(lengths[at].whole for at in rows)
        back += _set_story_times(log_lines, instants, lengths, rows, clocks, until if no_clock else None)
    if not no_clock:
        _fix_untimed_ends(log_lines, instants)
    for log_line in log_lines:
        if log_line.event is not None and log_line.event.at is not None:
            _own_time(log_line, year, local)
    return InferredTimes(no_clock, without_year, naive, tuple(back), tuple(missing), naive_count=count)


def _set_story_times(
    log_lines: Sequence[LogLine], instants: Sequence[int | None], lengths: Sequence[_Length], rows: Sequence[int],
    clocks: Sequence[int], no_clock_until: int | None,
) -> list[int]:  # fmt: skip
    """Set the times of some log lines from their timestamps and those around them; return lines where the clock goes
    back. rows, clocks: indexes in line order."""
    if not rows:
        return []
    mine = set(rows)
    counted = [at for at in clocks if at in mine or instants[at] is not None]
    stream = _Stream(
        [log_lines[at] if at in mine else replace(log_lines[at]) for at in counted],
        [instants[at] for at in counted],
        [lengths[at] if at in mine else _Length() for at in counted],
    )
    return stream.set_times(no_clock_until)


def _fix_untimed_ends(log_lines: Sequence[LogLine], instants: Sequence[int | None]) -> None:
    """Move an end without timestamp to the time of the last line before it in any stream, if it is earlier than that or
    later than the next timed line."""
    after: list[int | None] = [None] * len(log_lines)
    following: int | None = None
    for at in range(len(log_lines) - 1, -1, -1):
        following = following if instants[at] is None else instants[at]
        after[at] = following
    last: int | None = None
    for log_line, ns, latest in zip(log_lines, instants, after, strict=True):
        last = (
            ns
            if ns is not None
            else max(last or 0, last_of(log_line)[0])
            if log_line.event and log_line.event.type is EventType.STEP
            else last
        )
        is_end = ns is None and log_line.event is not None and log_line.event.type in ENDS
        if is_end and last is not None and (log_line.time < last or (latest is not None and log_line.time > latest)):
            log_line.time = log_line.end = last


def _naive(log_lines: Sequence[LogLine], dated: Sequence[Timestamp | None]) -> tuple[tuple[int, ...], int]:
    """Return the first lines without a zone, and their number: lines with an event, otherwise one of those that bound
    untimed events."""
    local = [
        log_line
        for log_line, stamp in zip(log_lines, dated, strict=True)
        if stamp is not None and stamp.zone is Zone.NAIVE
    ]
    own = [log_line for log_line in local if log_line.event is not None and not _is_exact(log_line.event.at)]
    if own:
        return tuple(islice(_numbers(own), FEW_PLACES)), count_of(own)
    placed = any(log_line.event is not None and log_line.stamp is None for log_line in log_lines)
    return tuple(log_line.line for log_line in local[:1]) if placed else (), len(local[:1]) if placed else 0


def _numbers(log_lines: Iterable[LogLine]) -> Iterator[int]:
    """Yield the numbers of lines, those of stretches among them."""
    for log_line in log_lines:
        yield log_line.line
        if log_line.inner is not None:
            yield from log_line.inner.line.tolist()


def _is_exact(stamp: Timestamp | None) -> bool:
    return stamp is not None and stamp.zone is Zone.EXACT


def _own_time(log_line: LogLine, year: int | None, local: Callable[[int], int]) -> None:
    assert log_line.event is not None
    assert log_line.event.at is not None
    own = log_line.event.at
    if own.zone is Zone.YEARLESS:
        own = with_year(own, year or year_of(log_line.time), None)
    log_line.time = log_line.end = own.ns if own.zone is Zone.EXACT else local(own.ns)


def _of_whole_source(
    log_lines: Sequence[LogLine], instants: Sequence[int | None], one_stream: Container[str]
) -> list[bool]:
    """Return True for log lines between timestamps of the whole source rather than of their stream: those of streams
    without timestamps, and of formats whose ranks are read together."""
    stamped = {log_line.stream for log_line, ns in zip(log_lines, instants, strict=True) if ns is not None}
    return [
        log_line.event is not None and (log_line.event.format in one_stream or log_line.stream not in stamped)
        for log_line in log_lines
    ]


def _with_years(
    log_lines: Sequence[LogLine], modified_ns: int, year: int | None, others: Sequence[int]
) -> list[Timestamp | None]:
    """Return the timestamps of log lines with years. others: times of other sources."""
    dated = iter(with_years([one.stamp for one in log_lines if one.stamp is not None], modified_ns, year, others))
    return [None if one.stamp is None else next(dated) for one in log_lines]


class _Length(NamedTuple):
    """Time (ns) that a log line and the records of its stretch take."""

    own: int = 0
    inner: I64 | None = None
    """Of each record without a timestamp."""

    @property
    def whole(self) -> int:
        """Return the time of all of them."""
        return self.own + (0 if self.inner is None else int(self.inner.sum()))


class _Untimed(NamedTuple):
    """Steps of records with neither a timestamp nor a step time."""

    own: int
    inner: int = 0
    """Of each record of a stretch."""
    records: int = 0
    """Number of these records."""

    @property
    def whole(self) -> int:
        """Return all steps."""
        return self.own + self.inner * self.records


def _lengths(
    log_lines: Sequence[LogLine], instants: Sequence[int | None], streams: Sequence[Sequence[int]]
) -> tuple[list[_Length], list[int]]:
    """Return the time that each log line without timestamp takes (for a step record, its steps at their mean), and the
    lines of records that cover more steps than fit since the previous one."""
    lengths = [_Length()] * len(log_lines)
    missing: list[int] = []
    for rows in streams:
        untimed: dict[int, _Untimed] = {}
        before: dict[str, int] = {}
        again = _shown_again(log_lines, instants, rows)
        strides = _strides([log_lines[at] for at in rows])
        for at in rows:
            log_line, event = log_lines[at], log_lines[at].event
            if event is None or not event.counted:
                continue
            if event.type is not EventType.STEP or event.step is None:
                lengths[at] = _Length(event.took or 0)
                continue
            last = before.get(event.format)
            before[event.format] = event.step if log_line.inner is None else log_line.inner.last
            if at in again:
                continue
            if event.took is not None:
                lengths[at] = _Length(event.took)
                continue
            stride = strides[event.format]
            steps = event.step - last if last is not None and event.step > last else min(stride, max(event.step, 1))
            if steps > 2 * stride:
                missing += [log_line.line] * (instants[at] is None)
                steps = 2 * stride
            lengths[at] = _Length(steps * (event.step_time or 0))
            inner = None if log_line.inner is None or log_line.inner.stamps is not None else log_line.inner
            inside = 0 if inner is None else min(inner.stride, 2 * stride)
            if inner is not None:
                missing += inner.line.tolist() if inner.stride > inside else []
                each = np.zeros(len(inner), dtype=np.int64) if inner.step_time is None else inner.step_time
                lengths[at] = lengths[at]._replace(inner=inside * each)
            if _is_untimed(log_line):
                untimed[at] = _Untimed(steps, inside, 0 if inner is None else len(inner))
        _spread(untimed, rows, instants, lengths)
    return lengths, missing


def _shown_again(log_lines: Sequence[LogLine], instants: Sequence[int | None], rows: Sequence[int]) -> set[int]:
    """Return the indexes of records that show the step of the one before again: two formats, two handlers of a logger
    or several ranks print it. Those of one format have no timestamps."""
    found: set[int] = set()
    latest = ("", -1)
    for at in rows:
        log_line, event = log_lines[at], log_lines[at].event
        if event is None or event.type in _AGAIN:
            latest = latest if event is None else ("", -1)
        elif event.type is EventType.STEP and event.step is not None and event.counted:
            if latest[1] == event.step and (latest[0] != event.format or instants[at] is None):
                found.add(at)
            latest = event.format, event.step if log_line.inner is None else log_line.inner.last
    return found


def _is_untimed(log_line: LogLine) -> bool:
    """Return True for a step record with neither a timestamp nor a step time, whose steps take the usual time."""
    event = log_line.event
    if event is None or log_line.stamp is not None or event.at is not None:
        return False
    return event.usual and not event.step_time and event.took is None


def _spread(
    untimed: dict[int, _Untimed], rows: Sequence[int], instants: Sequence[int | None], lengths: list[_Length]
) -> None:
    """Set the lengths of untimed records to the median time of steps between two timestamps. untimed: by index."""
    if not untimed:
        return
    each: list[float] = []
    last, steps, other = None, 0, 0
    for at in rows:
        ns = instants[at]
        if ns is None:
            steps += untimed[at].whole if at in untimed else 0
            other += lengths[at].whole
            continue
        if last is not None and steps and ns - last > other:
            each.append((ns - last - other) / steps)
        last, steps, other = ns, 0, 0
    usual = median_low(each) if each else 0
    for at, (own, inner, records) in untimed.items():
        lengths[at] = _Length(round(own * usual), np.full(records, round(inner * usual)) if records else None)


def _strides(log_lines: Sequence[LogLine]) -> dict[str, int]:
    """Return the lower median of steps between records by format; 1 for a single record."""
    ahead: defaultdict[str, Counter[int]] = defaultdict(Counter)
    before: dict[str, int] = {}
    for log_line in log_lines:
        event = log_line.event
        if event is None or event.type is not EventType.STEP or event.step is None:
            continue
        last = before.get(event.format)
        before[event.format] = event.step
        if last is not None and event.step > last:
            ahead[event.format][event.step - last] += 1
        if log_line.inner is not None:
            ahead[event.format][log_line.inner.stride] += len(log_line.inner)
            before[event.format] = log_line.inner.last
    return {name: _lower_median(ahead[name]) if ahead[name] else 1 for name in before}


def _lower_median(counts: Mapping[int, int]) -> int:
    """Return the lower median of numbers. counts: how often each is there."""
    half, seen = (sum(counts.values()) - 1) // 2, 0
    for number in sorted(counts):
        seen += counts[number]
        if seen > half:
            return number
    raise ValueError("no numbers")


class _Stream:
    """Log lines of one stream in line order."""

    def __init__(self, log_lines: list[LogLine], instants: list[int | None], lengths: list[_Length]) -> None:
        self._marks, self._instants, self._lengths = log_lines, instants, lengths
        self._record_end: int | None = None
        """End of the last step record."""
        self._evaluated = 0
        """Time (ns) of evaluations since then."""

    def set_times(self, no_clock_until: int | None) -> list[int]:
        """Set the times of all log lines; return the lines where the clock goes back."""
        if no_clock_until is not None:
            self._lay(range(len(self._marks)), no_clock_until - sum(one.whole for one in self._lengths))
            return []
        back: list[int] = []
        waiting: list[int] = []
        last: int | None = None  # The timestamp before the waiting lines.
        earlier: int | None = None  # The latest timestamp before the current one.
        for at, ns in enumerate(self._instants):
            if ns is None:
                waiting.append(at)
                continue
            self._between(waiting, earlier, last, ns, at)
            waiting = []
            self._marks[at].time = self._marks[at].end = ns
            self._follow((at,))
            if last is not None and ns < last - _BACK:
                back.append(self._marks[at].line)
                earlier = None
            elif last is not None and ns > last:
                earlier = last
            last = ns
        self._between(waiting, earlier, last, None, None)
        return back

    def _between(
        self, rows: list[int], earlier: int | None, last: int | None, following: int | None, at: int | None
    ) -> None:
        """Set the times of log lines between two timestamps."""
        if not rows:
            return
        if last is not None:
            self._shorten(rows, last)
        self._lay_between(rows, earlier, last, following, at)
        self._follow(rows)

    def _shorten(self, rows: Sequence[int], last: int) -> None:
        """Reduce the length of a record that takes all the time since the one before to the part after a timestamp
        between them."""
        row = next((row for row in rows if self._is_step(row)), None)
        event = None if row is None else self._marks[row].event
        if row is None or event is None or not event.since_record or self._record_end is None:
            return
        before = max(last - self._record_end - self._evaluated, 0)
        self._lengths[row] = self._lengths[row]._replace(own=max(self._lengths[row].own - before, 0))

    def _follow(self, rows: Sequence[int]) -> None:
        """Follow the lines whose times were set to the last step record."""
        for row in rows:
            log_line = self._marks[row]
            if self._is_step(row):
                self._record_end, self._evaluated = last_of(log_line)[0], 0
            elif log_line.event is not None and log_line.event.type is EventType.EVAL:
                self._evaluated += self._lengths[row].own

    def _lay_between(
        self, rows: list[int], earlier: int | None, last: int | None, following: int | None, at: int | None
    ) -> None:
        """Lay log lines between two timestamps."""
        total = sum(self._lengths[row].whole for row in rows)
        if last is None:
            assert following is not None
            self._lay(rows, following - total - self._waited(at))
            return
        if following is None or following < last:
            self._lay(rows, last)
            return
        records = any(self._is_step(row) for row in rows)
        if records and at is not None and self._is_step(at):
            following -= self._lengths[at].own  # They were completed when the steps of this record began.
        room = following - last - total
        whole = at is not None and self._is_whole(at)
        if room < 0:
            first = following - total
            self._lay(rows, first, at_least=last if earlier is None else max(first, earlier))
        elif records and (room <= (_BACK if whole else 0) or _is_untimed(self._marks[rows[-1]])):
            self._lay(rows, following - total)
        else:
            begin = self._last_begin(rows, at)
            self._lay(rows[:begin], last)
            self._lay(rows[begin:], following - sum(self._lengths[row].whole for row in rows[begin:]))

    def _waited(self, at: int | None) -> int:
        """Return the time (ns) that a watchdog waited, if its timestamp is the one at `at`: the steps before it were
        completed when the wait began."""
        event = None if at is None else self._marks[at].event
        return event.took or 0 if event is not None and is_wait(event) else 0

    def _last_begin(self, rows: Sequence[int], at: int | None) -> int:
        """Return the index at which the last process in some rows begins after steps of another one; their number if
        there is none.

        The unexplained time is then before its begin, unless the line at `at`, which shows that time, is an end.
        """
        steps = [place for place, row in enumerate(rows) if self._is_step(row)]
        following = None if at is None else self._marks[at].event
        if not steps or (following is not None and following.type in ENDS):
            return len(rows)
        starts = (place for place in range(steps[-1], steps[0], -1) if self._is_start(rows[place]))
        return next(starts, len(rows))

    def _is_start(self, at: int) -> bool:
        event = self._marks[at].event
        return event is not None and event.type is EventType.START

    def _is_step(self, at: int) -> bool:
        event = self._marks[at].event
        return event is not None and event.type is EventType.STEP

    def _is_whole(self, at: int) -> bool:
        stamp = self._marks[at].stamp
        return stamp is not None and stamp.whole

    def _lay(self, rows: Sequence[int], start: int, at_least: int | None = None) -> None:
        """Set consecutive times of log lines from a time on; times before `at_least` are cut."""
        cursor = start
        for row in rows:
            log_line, length = self._marks[row], self._lengths[row]
            log_line.odd = True
            begin, cursor = cursor, cursor + length.own
            log_line.time, log_line.end = begin, cursor
            if at_least is not None:
                log_line.time, log_line.end = max(begin, at_least), max(cursor, at_least)
            if log_line.inner is not None and length.inner is not None:
                time = cursor + np.cumsum(length.inner)
                cursor = int(time[-1])
                time = time if at_least is None else np.maximum(time, at_least)
                log_line.inner = replace(log_line.inner, time=time, next_time=int(time[-1]))
