"""When lines without a stamp were written: between the stamped lines around them (docs/formats.md, Text).

A stream has a cursor: the last stamp, or the end of the last record placed behind it. A record with a duration begins
there; what has no duration is a point there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace

from goodput_cli.events.text.marks import ENDS, Mark, What
from goodput_cli.events.text.stamps import Stamp, Zone, with_year, year_of
from goodput_cli.vocabulary.units import NS_PER_DAY, NS_PER_SECOND

_BACK = 2 * NS_PER_SECOND
"""Stamps that go back by less were written by other threads."""


@dataclass(frozen=True)
class Placed:
    """What was noticed while marks were placed: lines by code of a diagnostic."""

    no_clock: bool
    without_year: tuple[int, ...]
    naive: tuple[int, ...]
    back: tuple[int, ...]
    """Lines whose stamp is earlier than one before it in the stream, though nothing began anew."""
    missing: tuple[int, ...]
    """Records without a stamp that stand for more steps than there can be between them and the one before."""


def place(
    marks: Sequence[Mark],
    modified_ns: int,
    year: int | None,
    local: Callable[[int], int],
    one_stream: Container[str] = (),
    near: Sequence[int] = (),
    start: int | None = None,
) -> Placed:
    """Set the times of the marks of one source, which are in order of lines.

    modified_ns: when the source was last written to. year: that of stamps without one, where it was given. local: what
    a local time is in ns UTC. one_stream: formats whose ranks print one story. near: times in other sources of the
    job, which tell the year where no stamp of this one has any. start: when it began (ns), if no mark has a stamp.
    """
    dated = _with_years(marks, modified_ns, year, near)
    no_clock = bool(marks) and all(stamp is None for stamp in dated)
    naive = _naive(marks, dated)
    without_year = tuple(
        mark.line for mark in marks if mark.said and mark.stamp is not None and mark.stamp.zone is Zone.YEARLESS
    )
    instants = [None if stamp is None else stamp.ns if stamp.zone is Zone.EXACT else local(stamp.ns) for stamp in dated]
    back: list[int] = []
    whole_source = _of_whole_source(marks, instants, one_stream)
    streams: defaultdict[str, list[int]] = defaultdict(list)
    for at, mark in enumerate(marks):
        streams[mark.stream].append(at)
    own = [[at for at in rows if not whole_source[at]] for rows in streams.values()]
    stories = [(rows, clocks) for rows, clocks in zip(own, streams.values(), strict=True) if rows]
    stories += [([at for at in range(len(marks)) if whole_source[at]], list(range(len(marks))))]
    lengths, missing = _lengths(marks, instants, [rows for rows, _ in stories])
    for rows, clocks in stories:
        until = modified_ns if start is None else start + sum(lengths[at] for at in rows)
        back += _place_story(marks, instants, lengths, rows, clocks, until if no_clock else None)
    if not no_clock:
        _ends_behind(marks, instants)
    for mark in marks:
        if mark.said is not None and mark.said.at is not None:
            _own_time(mark, year, local)
    return Placed(no_clock, without_year, naive, tuple(back), tuple(missing))


def _place_story(
    marks: Sequence[Mark], instants: Sequence[int | None], lengths: Sequence[int], rows: Sequence[int],
    clocks: Sequence[int], no_clock_until: int | None,
) -> list[int]:  # fmt: skip
    """Set the times of some marks, whose clocks are they and stamps around them; gives lines where the clock goes back.
    rows, clocks: positions in order of lines."""
    mine = set(rows)
    counted = [at for at in clocks if at in mine or instants[at] is not None]
    stream = _Stream(
        [marks[at] if at in mine else replace(marks[at]) for at in counted],
        [instants[at] for at in counted],
        [lengths[at] if at in mine else 0 for at in counted],
    )
    return stream.place(no_clock_until) if rows else []


def _ends_behind(marks: Sequence[Mark], instants: Sequence[int | None]) -> None:
    """An end without a stamp is no earlier than the line of any stream that stands before it, records without a time
    among them, and no later than the line of any that stands behind it: else it is at the former."""
    behind: list[int | None] = [None] * len(marks)
    following: int | None = None
    for at in range(len(marks) - 1, -1, -1):
        following = following if instants[at] is None else instants[at]
        behind[at] = following
    last: int | None = None
    for mark, ns, latest in zip(marks, instants, behind, strict=True):
        last = ns if ns is not None else max(last or 0, mark.end) if mark.said and mark.said.what is What.STEP else last
        is_end = ns is None and mark.said is not None and mark.said.what in ENDS
        if is_end and last is not None and (mark.time < last or (latest is not None and mark.time > latest)):
            mark.time = mark.end = last


def _naive(marks: Sequence[Mark], dated: Sequence[Stamp | None]) -> tuple[int, ...]:
    """Lines whose time has no zone: those that say something; else one of those between which they lie."""
    local = [mark for mark, stamp in zip(marks, dated, strict=True) if stamp is not None and stamp.zone is Zone.NAIVE]
    own = tuple(mark.line for mark in local if mark.said is not None and not _is_exact(mark.said.at))
    placed = any(mark.said is not None and mark.stamp is None for mark in marks)
    return own or (tuple(mark.line for mark in local[:1]) if placed else ())


def _is_exact(stamp: Stamp | None) -> bool:
    return stamp is not None and stamp.zone is Zone.EXACT


def _own_time(mark: Mark, year: int | None, local: Callable[[int], int]) -> None:
    assert mark.said is not None
    assert mark.said.at is not None
    own = mark.said.at
    if own.zone is Zone.YEARLESS:
        own = with_year(own, year or year_of(mark.time), None)
    mark.time = mark.end = own.ns if own.zone is Zone.EXACT else local(own.ns)


def _of_whole_source(marks: Sequence[Mark], instants: Sequence[int | None], one_stream: Container[str]) -> list[bool]:
    """Which marks lie between the stamps of their whole source, and not of their stream: those of streams without any
    stamp, and those of formats whose ranks print one story."""
    stamped = {mark.stream for mark, ns in zip(marks, instants, strict=True) if ns is not None}
    return [mark.said is not None and (mark.said.format in one_stream or mark.stream not in stamped) for mark in marks]


def _with_years(marks: Sequence[Mark], modified_ns: int, year: int | None, others: Sequence[int]) -> list[Stamp | None]:
    """The stamps; those without a year get that of the nearest stamp that has one, before it rather than behind, else
    that of the nearest in other sources."""
    stamps = [mark.stamp for mark in marks if mark.stamp is not None]
    near = next((stamp.ns for stamp in stamps if stamp.zone is not Zone.YEARLESS), None)
    if near is None and stamps and others:
        near = min(others, key=lambda ns: abs(with_year(stamps[0], year_of(ns), ns).ns - ns))
    dated: list[Stamp | None] = []
    for mark in marks:
        stamp = mark.stamp
        if stamp is not None and stamp.zone is Zone.YEARLESS:
            if near is None and year is None:
                stamp = with_year(stamp, year_of(modified_ns + NS_PER_DAY), modified_ns + NS_PER_DAY, latest=True)
            else:
                stamp = with_year(stamp, year or year_of(near or 0), None if year else near)
        if stamp is not None:
            near = stamp.ns
        dated.append(stamp)
    return dated


def _lengths(
    marks: Sequence[Mark], instants: Sequence[int | None], streams: Sequence[Sequence[int]]
) -> tuple[list[int], list[int]]:
    """ns that each mark without a stamp takes: of a step record, its steps at its mean; and the lines of records that
    stand for more steps than there can be between them and the one before."""
    lengths = [0] * len(marks)
    missing: list[int] = []
    for rows in streams:
        before: dict[str, int] = {}
        strides = _strides([marks[at] for at in rows])
        for at in rows:
            mark, said = marks[at], marks[at].said
            if said is None or not said.counted:
                continue
            if said.what is not What.STEP or said.step is None:
                lengths[at] = said.took or 0
                continue
            last = before.get(said.format)
            before[said.format] = said.step
            if said.took is not None:
                lengths[at] = said.took
                continue
            stride = strides[said.format]
            steps = said.step - last if last is not None and said.step > last else min(stride, max(said.step, 1))
            if steps > 2 * stride:
                missing += [mark.line] * (instants[at] is None)
                steps = 2 * stride
            lengths[at] = steps * (said.step_time or 0)
    return lengths, missing


def _strides(marks: Sequence[Mark]) -> dict[str, int]:
    """By format, the lower median of the steps from one record to the next; 1 where there is one record."""
    ahead: defaultdict[str, list[int]] = defaultdict(list)
    before: dict[str, int] = {}
    for said in (mark.said for mark in marks):
        if said is None or said.what is not What.STEP or said.step is None:
            continue
        last = before.get(said.format)
        before[said.format] = said.step
        ahead[said.format] += [said.step - last] if last is not None and said.step > last else []
    return {name: sorted(ahead[name])[(len(ahead[name]) - 1) // 2] if ahead[name] else 1 for name in before}


class _Stream:
    """The marks of one stream in order of lines."""

    def __init__(self, marks: list[Mark], instants: list[int | None], lengths: list[int]) -> None:
        self._marks, self._instants, self._lengths = marks, instants, lengths

    def place(self, no_clock_until: int | None) -> list[int]:
        """Set the times of all marks; gives the lines where the clock goes back."""
        if no_clock_until is not None:
            self._lay(range(len(self._marks)), no_clock_until - sum(self._lengths))
            return []
        back: list[int] = []
        waiting: list[int] = []
        last: int | None = None  # the stamp before those that wait
        earlier: int | None = None  # the latest stamp before that of another instant
        for at, ns in enumerate(self._instants):
            if ns is None:
                waiting.append(at)
                continue
            self._between(waiting, earlier, last, ns, at)
            waiting = []
            self._marks[at].time = self._marks[at].end = ns
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
        """Place marks without a stamp between two stamps."""
        if not rows:
            return
        total = sum(self._lengths[row] for row in rows)
        if last is None:
            assert following is not None
            self._lay(rows, following - total)
            return
        if following is None or following < last:
            self._lay(rows, last)
            return
        room = following - last - total
        whole = at is not None and self._is_whole(at)
        records = any(said is not None and said.what is What.STEP for said in (self._marks[row].said for row in rows))
        if room < 0:
            first = following - total
            self._lay(rows, first, at_least=last if earlier is None else max(first, earlier))
        elif records and room <= (_BACK if whole else 0):
            self._lay(rows, following - total)
        else:
            self._lay(rows, last)

    def _is_whole(self, at: int) -> bool:
        stamp = self._marks[at].stamp
        return stamp is not None and stamp.whole

    def _lay(self, rows: Sequence[int], start: int, at_least: int | None = None) -> None:
        """Lay marks one behind the other from an instant; what would lie before `at_least` is cut."""
        cursor = start
        for row in rows:
            mark = self._marks[row]
            mark.odd = True
            begin, cursor = cursor, cursor + self._lengths[row]
            mark.time, mark.end = begin, cursor
            if at_least is not None:
                mark.time, mark.end = max(begin, at_least), max(cursor, at_least)
