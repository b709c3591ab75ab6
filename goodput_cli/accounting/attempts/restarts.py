"""Attempts that no start line shows (accounting §3). In step logs: steps that go back, and activity after an end line.

A region is the rows from one start burst to the next. `_AttemptWalk` reads the step records of a region in blocks and
finds where the next attempt begins. Reports by second hosts are recognized and left out.

Most regions contain no such restart, which is checked for all of them at once.

In checkpoint logs: loads after progress, and activity after an end.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from goodput_cli.accounting.columns import latest_row, next_row, search
from goodput_cli.arrays import I64, Places, Rows
from goodput_cli.vocabulary.when import NS_PER_SECOND

_FIRST_BLOCK = 256
_LARGEST_BLOCK = 1 << 20
_LEAST_NS = 2 * NS_PER_SECOND
"""Time that timestamps of whole seconds may hide."""


def twice_the_median(number: I64, time: I64) -> int | None:
    """Return twice the median time (ns, exact) between step records that set a new highest number; None without any."""
    if len(number) < 2:
        return None
    new = np.ones(len(number), dtype=bool)
    highest = np.maximum.accumulate(number)
    new[1:] = highest[1:] > highest[:-1]
    del highest
    gaps = np.diff(time[new])
    if len(gaps) == 0:
        return None
    middle = (len(gaps) - 1) // 2, len(gaps) // 2
    gaps.partition(middle)
    return int(gaps[middle[0]]) + int(gaps[middle[1]])


class StepLogRecords(Struct, frozen=True):
    """Steps, starts and ends of a step log; rows and records in time order."""

    row: Rows
    number: I64
    time: I64
    """Row, step number and time (ns) of every step record."""
    startup: Rows
    """Rows of start-up events (init, prep, restore, elastic)."""
    endings: Rows
    """Rows of terminations and ends."""
    resuming: Rows
    """Rows of loads, inits, preps and restores that begin."""
    row_time: I64
    """Time of every row of the table (ns)."""
    two_medians: int | None
    """See `twice_the_median`."""


def split_region(records: StepLogRecords, start: int, stop: int) -> tuple[list[int], list[int]]:
    """Return the rows in [start, stop) at which an attempt begins without a start line, and the records (positions in
    `records.row`) that a second host repeated."""
    boundaries: list[int] = []
    dropped: list[int] = []
    begin = start
    while begin < stop:
        walk = _AttemptWalk(records, begin, stop)
        boundary = walk.next_boundary()
        dropped += walk.dropped_before(boundary)
        if boundary is None:
            break
        boundaries.append(boundary)
        begin = boundary
    return boundaries, dropped


class _KeptRecords:
    """Records kept so far in one attempt: positions and numbers both rise. Grows in place, at the end only."""

    def __init__(self) -> None:
        self._records = np.empty(_FIRST_BLOCK, dtype=np.intp)
        self._numbers = np.empty(_FIRST_BLOCK, dtype=np.int64)
        self._count = 0

    @property
    def records(self) -> NDArray[np.intp]:
        return self._records[: self._count]

    @property
    def numbers(self) -> I64:
        return self._numbers[: self._count]

    def extend(self, records: NDArray[np.intp], numbers: I64) -> None:
        count = self._count + len(records)
        if count > len(self._records):
            room = max(2 * len(self._records), count)
            self._records = np.concatenate((self.records, np.empty(room - self._count, dtype=np.intp)))
            self._numbers = np.concatenate((self.numbers, np.empty(room - self._count, dtype=np.int64)))
        self._records[self._count : count] = records
        self._numbers[self._count : count] = numbers
        self._count = count

    def with_more(self, records: NDArray[np.intp], numbers: I64) -> _KeptRecords:
        """Return a view with more records at the end. This one stays as it is and shares the memory."""
        before = self._count
        self.extend(records, numbers)
        view = _KeptRecords.__new__(_KeptRecords)
        view._records, view._numbers, view._count = self._records, self._numbers, self._count
        self._count = before
        return view


class _AttemptWalk:
    """One attempt's way through its step records, from row `begin` until the next attempt begins or row `stop`."""

    def __init__(self, records: StepLogRecords, begin: int, stop: int) -> None:
        self.records = records
        self.begin = begin
        self.stop = stop
        self.position = int(search(records.row, begin))
        self.end = int(search(records.row, stop))
        self.kept = _KeptRecords()
        self.highest: int | None = None
        self.longest_delay = 0
        self.dropped: list[int] = []
        first_ending = int(search(records.endings, begin))
        has_ending = first_ending < len(records.endings) and records.endings[first_ending] < stop
        self.ending: int | None = int(records.endings[first_ending]) if has_ending else None

    def dropped_before(self, boundary: int | None) -> list[int]:
        """Return the records left out as repeats. Those at or after the boundary belong to the next attempt."""
        if boundary is None:
            return self.dropped
        return [record for record in self.dropped if self.records.row[record] < boundary]

    def next_boundary(self) -> int | None:
        """Return the row at which the next attempt begins, or None."""
        block = _FIRST_BLOCK
        checked = self.begin
        while self.position < self.end:
            stop = min(self.position + block, self.end)
            restart, reached = self._read(stop)
            until = self._row_at(reached)
            lost = self._lost_start(checked, until)
            if lost is not None:
                return lost
            if restart is not None:
                return restart
            checked = until
            block = _FIRST_BLOCK if reached < stop else min(block * 2, _LARGEST_BLOCK)
            self.position = reached
        return self._lost_start(checked, self.stop)

    def _row_at(self, position: int) -> int:
        return int(self.records.row[position]) if position < self.end else self.stop

    def _read(self, stop: int) -> tuple[int | None, int]:
        """Read the records up to position `stop`. Return (row of a restart or None, position reached).

        Stops early after a record that was judged alone, because it can change the next judgment.
        """
        number = self.records.number[self.position : stop]
        before = np.empty(len(number), dtype=np.int64)
        floor = np.iinfo(np.int64).min if self.highest is None else self.highest
        before[0] = floor
        np.maximum.accumulate(number[:-1], out=before[1:])
        np.maximum(before, floor, out=before)
        back = number <= before
        if self.highest is None:
            back[0] = False
        suspects = np.flatnonzero(back)
        if len(suspects) == 0:
            self._keep(np.arange(self.position, stop, dtype=np.intp))
            return None, stop
        return self._judge(suspects + self.position, np.flatnonzero(~back) + self.position, stop)

    def _keep(self, records: NDArray[np.intp]) -> None:
        if len(records):
            self.kept.extend(records, self.records.number[records])
            self.highest = int(self.records.number[records[-1]])

    def _judge(self, suspects: NDArray[np.intp], rising: NDArray[np.intp], stop: int) -> tuple[int | None, int]:
        """Judge records whose number is not above the attempt's last one, all at once while they are plain repeats."""
        with_rising = self.kept.with_more(rising, self.records.number[rising])
        repeats, delay = self._delays(suspects, with_rising)
        last_kept = with_rising.records[search(with_rising.records, suspects) - 1]
        started = self._startup_between(self.records.row[last_kept], self.records.row[suspects])
        plain = repeats & ~started & (delay < self._duplicate_window_ns())
        restarting = np.flatnonzero(~plain)
        first_odd = int(restarting[0]) if len(restarting) else len(suspects)
        self.dropped += suspects[:first_odd].tolist()
        if first_odd:
            self.longest_delay = max(self.longest_delay, int(delay[:first_odd].max()))
        if first_odd == len(suspects):
            self._keep(rising)
            return None, stop
        odd_one = int(suspects[first_odd])
        self._keep(rising[rising < odd_one])
        if started[first_odd] or not self._is_report(odd_one, bool(repeats[first_odd]), int(delay[first_odd])):
            return self._restart_row(int(last_kept[first_odd]), odd_one), odd_one
        self.dropped.append(odd_one)
        if repeats[first_odd]:
            self.longest_delay = max(self.longest_delay, int(delay[first_odd]))
        return None, odd_one + 1

    def _delays(self, suspects: NDArray[np.intp], with_rising: _KeptRecords) -> tuple[NDArray[np.bool_], I64]:
        """Return True for each suspect that repeats a number of this attempt, and its delay (ns) after the first
        report."""
        numbers = self.records.number[suspects]
        place = np.minimum(search(with_rising.numbers, numbers), len(with_rising.numbers) - 1)
        repeats = with_rising.numbers[place] == numbers
        first = with_rising.records[place]
        return repeats, np.where(repeats, self.records.time[suspects] - self.records.time[first], 0)

    def _startup_between(self, after: Rows, before: Rows) -> NDArray[np.bool_]:
        """Return True for each pair of rows with a start-up event between them."""
        startup = self.records.startup
        return np.asarray(search(startup, before) > search(startup, after))

    def _duplicate_window_ns(self) -> int:
        """Return the time (ns) after the first report within which a repeat is from another host."""
        return max(self.records.two_medians or 0, 2 * self.longest_delay)

    def _is_report(self, record: int, repeats: bool, delay: int) -> bool:
        """Return True if a repeat is a report by another host: it comes soon enough, or the old sequence goes on after
        it."""
        if repeats and delay < self._duplicate_window_ns():
            return True
        return self._old_sequence_goes_on(record)

    def _old_sequence_goes_on(self, record: int) -> bool:
        """Return True if a number above the highest arrives soon after it, and before all numbers from this one on have
        repeated. Soon is within four median step times: a process that repeats steps needs longer."""
        assert self.highest is not None
        number = self.records.number
        above = self._first_above(record + 1, self.highest)
        if above is None or self.records.time[above] - self.records.time[self.kept.records[-1]] > self._soon_ns():
            return False
        numbers = self.kept.numbers
        expected = numbers[search(numbers, number[record], side="right") :]
        return not bool(np.isin(expected, number[record + 1 : above]).all())

    def _soon_ns(self) -> int:
        return max(2 * (self.records.two_medians or 0), _LEAST_NS)

    def _first_above(self, start: int, limit: int) -> int | None:
        """Return the position of the first record from `start` on, in this region, whose number is above `limit`."""
        block = _FIRST_BLOCK
        while start < self.end:
            stop = min(start + block, self.end)
            above = np.flatnonzero(self.records.number[start:stop] > limit)
            if len(above):
                return start + int(above[0])
            start, block = stop, min(block * 2, _LARGEST_BLOCK)
        return None

    def _restart_row(self, last: int, record: int) -> int:
        """Return the row of a restart: the first start-up event after the attempt's last step, otherwise the step
        itself. An end line in between belongs to the old attempt if the step comes too late after it; then only rows
        after it count."""
        row, after = int(self.records.row[record]), int(self.records.row[last])
        if self.ending is not None and self.ending < row and self._is_late(self.records.time[[record]])[0]:
            after = latest_row(self.records.endings, after, row)
        startup = next_row(self.records.startup, after)
        return row if startup is None else min(startup, row)

    def _lost_start(self, start: int, stop: int) -> int | None:
        """Return the first row in [start, stop) that shows activity too long after an end line of this attempt."""
        if self.ending is None or stop <= self.ending:
            return None
        start = max(start, self.ending + 1)
        resumed = [self._late_resumption(start, stop), self._late_step(start, stop)]
        return min((row for row in resumed if row is not None), default=None)

    def _is_late(self, time: I64) -> NDArray[np.bool_]:
        assert self.ending is not None
        return np.asarray(2 * (time - self.records.row_time[self.ending]) > (self.records.two_medians or 0))

    def _late_resumption(self, start: int, stop: int) -> int | None:
        resuming = self.records.resuming
        rows = resuming[search(resuming, start) : search(resuming, stop)]
        late = rows[self._is_late(self.records.row_time[rows])]
        return int(late[0]) if len(late) else None

    def _late_step(self, start: int, stop: int) -> int | None:
        """Return the row of a step after an end line, unless it continues the step before: one rank left, the others
        went on."""
        kept = self.kept.records
        first = int(search(kept, search(self.records.row, start)))
        last = int(search(kept, search(self.records.row, stop)))
        if first == last:
            return None
        time = self.records.time[kept[max(first - 1, 0) : last]]
        gap = np.diff(time) if first else np.concatenate(([np.iinfo(np.int64).max], np.diff(time)))
        late = self._is_late(time[-len(gap) :]) & (gap > (self.records.two_medians or 0))
        return int(self.records.row[kept[first + int(np.argmax(late))]]) if late.any() else None


_NOWHERE = np.iinfo(np.intp).max


def regions_with_restarts(records: StepLogRecords, start: Rows, stop: Rows) -> Places:
    """Return the regions start <= row < stop of a step log that must be walked through.

    In the others every step is above the one before, and no step or resuming event follows an end line.
    """
    first, last = search(records.row, start), search(records.row, stop)
    falls = np.flatnonzero(records.number[1:] <= records.number[:-1]) + 1  # not above the previous one
    inside = search(falls, last) > search(falls, np.minimum(first + 1, last))
    ending = _next_rows(records.endings, start)
    lives_on = (_next_rows(records.row, ending) < stop) | (_next_rows(records.resuming, ending) < stop)
    return np.flatnonzero(inside | lives_on)


def checkpoint_regions_with_restarts(
    progress: Rows, loads: Rows, endings: Rows, resuming: Rows, start: Rows, stop: Rows
) -> Places:
    """Return the regions of a checkpoint log with a load after progress, or a resuming event after an end line."""
    load = _next_rows(loads, _next_rows(progress, start))
    lost = _next_rows(resuming, _next_rows(endings, start))
    return np.flatnonzero(np.minimum(load, lost) < stop)


def _next_rows(rows: Rows, after: Rows) -> Rows:
    """Return the first of the sorted rows at or after each of `after`; beyond all rows if there is none."""
    following = np.full(len(after), _NOWHERE)
    place = search(rows, after)
    exists = place < len(rows)
    following[exists] = rows[place[exists]]
    return following


def split_checkpoint_region(
    progress: Rows, loads: Rows, startup: Rows, endings: Rows, resuming: Rows, start: int, stop: int
) -> list[int]:
    """Return the rows in [start, stop) at which an attempt begins without a start line. It begins at a load after
    progress (or at the first start-up event between the two), or at a load, init, prep or restore after an end line.
    All arguments are sorted rows."""
    boundaries: list[int] = []
    begin = start
    while True:
        load = next_row(loads, next_row(progress, begin))
        lost = next_row(resuming, next_row(endings, begin))
        if load is not None and (lost is None or load <= lost):
            shown, begin = load, _first_startup(progress, startup, endings, load)
        elif lost is not None:
            shown = begin = lost
        else:
            return boundaries
        if shown >= stop:
            return boundaries
        boundaries.append(begin)


def _first_startup(progress: Rows, startup: Rows, endings: Rows, load: int) -> int:
    """Return the first start-up event after the last progress (and end line) before a load, otherwise the load."""
    last_progress = int(progress[search(progress, load) - 1])
    first = next_row(startup, latest_row(endings, last_progress, load))
    return load if first is None else min(load, first)
