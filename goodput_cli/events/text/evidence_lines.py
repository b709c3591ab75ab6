"""Read failure evidence from a text document: select the few lines that matter, find their times, and check if the
process continued after them.

If very many lines repeat a failure, only the first line of each kind is read; lines that differ only in digits are one
kind.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import I64, Rows
from goodput_cli.events.evidence import DeathsAtEnd, UntimedEvidence
from goodput_cli.events.text.causes import CauseRows
from goodput_cli.events.text.evidence_reader import Observer
from goodput_cli.events.text.following_lines import is_ordinary
from goodput_cli.events.text.line_timestamps import Timestamp
from goodput_cli.events.text.log_lines import ENDS, EventType, ParsedEvent
from goodput_cli.events.text.observed_line import Line
from goodput_cli.events.text.programs.progress_bars import counted_bar, counted_step
from goodput_cli.vocabulary.when import NS_PER_SECOND

if TYPE_CHECKING:
    from goodput_cli.events.text.evidence_reader import Repeatable
    from goodput_cli.events.text.lines import LineRules, Lines


BEGINS = 256
"""Number of selected lines of a document after which the others are compared."""
_ALIKE = 64
"""Minimum number of lines of one shape for a comparison."""
_SHAPES = 8
"""Maximum number of compared shapes per length."""
_LONGEST = 4096
_MOST = 1 << 16
"""Maximum number of kinds of lines in memory."""
_STAMP = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?|\b[WIEF]\d{3,4} \d\d:\d\d:\d\d(?:\.\d+)?|\[ *\d+\.\d{6}\]"
)
_PLACE = re.compile(r"\d\]:|@")
"""Pattern of text that identifies the process of a line, at any position."""
_IGNORED_FIELDS = frozenset({"sequence", "waited"})
"""Fields of rows that are ignored in repeated lines."""
_ZERO, _NINE = ord("0"), ord("9")
_SHAPE = np.arange(256, dtype=np.uint8)
_SHAPE[_ZERO : _NINE + 1] = _ZERO


@dataclass(slots=True)
class LineKind:
    """Lines with the same meaning."""

    quiet: bool = False
    """True if no rule matches them and a row may: the evidence of one line applies to all."""
    of: Repeatable | None = None
    """Evidence of the first line; None: read each line."""


@dataclass
class Storms:
    """Kinds of repeated lines in one document."""

    rules: LineRules
    _kinds: dict[bytes, LineKind] = field(default_factory=dict)
    _distinguishing: dict[bytes, NDArray[np.intp]] = field(default_factory=dict)
    """By shape: the columns that distinguish kinds."""

    @cached_property
    def _with_digits(self) -> list[bytes]:
        """Return the literals of rules and rows that contain digits, as shapes; in a line with one of them, all digits
        count."""
        literals = (*(rule.anchor for rule in self.rules.rules), *self.rules.causes.anchors)
        return [one.encode().translate(_SHAPE.tobytes()) for one in literals if any(char.isdigit() for char in one)]

    def kinds(self, block: Lines, lines: I64) -> dict[int, LineKind]:
        """Return the kind of each line whose shape is frequent."""
        if self.rules.reads_all or block.overwritten.any():
            return {}
        if len(self._kinds) > _MOST:
            self._kinds.clear()
        found: dict[int, LineKind] = {}
        length = block.end[lines] - block.start[lines]
        sizes, counts = np.unique(length, return_counts=True)
        for size in sizes[(counts >= _ALIKE) & (sizes <= _LONGEST) & (sizes > 0)].tolist():
            of_size = lines[length == size]
            self._of_size(block.columns(of_size, size), of_size, found)
        return found

    def _of_size(self, rows: NDArray[np.uint8], lines: I64, found: dict[int, LineKind]) -> None:
        """Add the kinds of lines of one length."""
        shapes = _SHAPE[rows]
        for _ in range(_SHAPES):
            if len(lines) < _ALIKE:
                return
            same = (shapes == shapes[0]).all(axis=1)
            if np.count_nonzero(same) >= _ALIKE:
                self._of_shape(shapes[0].tobytes(), rows[same], lines[same], found)
            rows, shapes, lines = rows[~same], shapes[~same], lines[~same]

    def _of_shape(self, shape: bytes, rows: NDArray[np.uint8], lines: I64, found: dict[int, LineKind]) -> None:
        columns = self._distinguishing.get(shape)
        if columns is None:
            columns = self._distinguishing[shape] = self._columns(rows[0].tobytes())
        told = np.ascontiguousarray(rows[:, columns])
        if told.shape[1] == 0:
            names, which = [b""], np.zeros(len(lines), dtype=np.intp)
        else:
            distinct, which = np.unique(told.view(f"V{told.shape[1]}")[:, 0], return_inverse=True)
            names = [one.tobytes() for one in distinct]
        kinds = [self._kinds.setdefault(shape + b"\0" + name, LineKind()) for name in names]
        found.update(zip(lines.tolist(), map(kinds.__getitem__, which.tolist()), strict=True))

    def _columns(self, line: bytes) -> NDArray[np.intp]:
        """Return the columns of digits that distinguish lines of this shape.

        Digits of timestamps, of ignored fields, and after the match of the only row for the line do not count.
        """
        digits = np.array([_ZERO <= char <= _NINE for char in line])
        shape = line.translate(_SHAPE.tobytes())
        if not line.isascii() or any(literal in shape for literal in self._with_digits):
            return np.flatnonzero(digits)
        text = line.decode("ascii")
        begin = len(text)
        row = self.rules.causes.first_of(text)
        match = None if row is None else row.pattern.search(text)
        if row is not None and match is not None:
            begin = match.start()
            if not _PLACE.search(text, match.end()):
                digits[match.end() :] = False
            for name in row.pattern.groupindex.keys() & _IGNORED_FIELDS:
                low, high = match.span(row.pattern.groupindex[name])
                if low >= 0 and _is_whole(text, low, high):
                    digits[low:high] = False
        for stamp in _STAMP.finditer(text, 0, begin):
            digits[stamp.start() : stamp.end()] = False
        return np.flatnonzero(digits)


def _is_whole(text: Sequence[str], low: int, high: int) -> bool:
    """Return True if a number has no digit before or after it."""
    return not (low > 0 and text[low - 1].isdigit()) and not (high < len(text) and text[high].isdigit())


_REPORTING = frozenset({*ENDS, EventType.ALIVE, EventType.START, EventType.REINIT, EventType.IGNORE, EventType.CUSTOM})
"""Event types of lines that may also report a failure."""
_BEGINS = frozenset({EventType.START, EventType.INIT, EventType.SCHEDULED})
_PROGRESS = frozenset({EventType.STEP, EventType.START, EventType.STEP_START})
_DEATHS = frozenset({EventType.CRASHED, EventType.TERMINATED, EventType.PREEMPTED})
_DYING = 30 * NS_PER_SECOND
"""Maximum time between two deaths that count as one."""
_MOST_WATCHED = 256
_NEXT_LINES = 64
_OF_PROCESS = 256
_TRIES = 20
_NEEDLE = re.compile(r"\[(?:default|rank)?\d+\]:")


def may_contain_evidence(said: Sequence[ParsedEvent], known: bool) -> bool:
    """Return True if a line with these events may contain evidence; lines of steps do not."""
    return not known or not _REPORTING.isdisjoint([one.type for one in said])


@dataclass(slots=True)
class _Watch:
    """Lines after a root cause, until it is known if its process continued."""

    of: UntimedEvidence
    needle: bytes
    """Prefix of the lines of its process; empty if none."""
    at: int
    """Line of the block after which to look."""
    count: int = 1
    """Number of repetitions so far; lines between two of them prove nothing."""
    undecided: bool = True
    """True while it is unknown if it ends its file."""
    looked: int = 0


@dataclass
class _Passages:
    """Finds lines that separate equal evidence: a step, a start, an advancing progress bar, a death."""

    _drawn: dict[tuple[str, int | None, int], int | None] = field(default_factory=dict)
    """By name, epoch and total of a progress bar: its position."""
    _died: Timestamp | None = None

    def passes(self, said: Sequence[ParsedEvent], written: Callable[[], Timestamp | None]) -> bool:
        """Return True if a line separates evidence. Repeated drawings of a bar do not, nor does a second death soon
        after one.

        written: returns the timestamp of the line or of the last one before it.
        """
        goes_on = any(one.type in _PROGRESS for one in said)
        drawn = [(bar, counted_step(one)) for one in said if (bar := counted_bar(one)) is not None]
        if drawn:
            goes_on |= any(self._drawn.get(bar) != done for bar, done in drawn)
            if len(self._drawn) > _MOST_WATCHED:
                self._drawn.clear()
            self._drawn.update(drawn)
        if goes_on or not any(one.type in _DEATHS for one in said):
            return goes_on
        stamp, before = written(), self._died
        if stamp is None or (before is not None and before.zone is stamp.zone and stamp.ns - before.ns <= _DYING):
            return False
        self._died = stamp
        return True


class DocumentObserver:
    """Reads the evidence of one document, block by block."""

    def __init__(self, rows: CauseRows, source: str) -> None:
        self._observer = Observer(rows, source)
        self._last_stamp: Timestamp | None = None
        self._passages = _Passages()
        self._open: list[UntimedEvidence] = []  # No timestamp was found after them yet.
        self._watches: list[_Watch] = []
        self._shared = not self._observer.of_one_process
        self._needles: dict[int, bytes] = {}
        """By number of a line read in this block: the prefix of the lines of its process; empty if none."""
        self._usual: dict[bytes, bool] = {}
        """By rank prefix and blank: True if ordinary lines also begin with it."""

    @property
    def dropped(self) -> int:
        """Return the number of observations left out."""
        return self._observer.dropped

    @property
    def is_idle(self) -> bool:
        """Return True if a block without lines that may report a death changes nothing."""
        return not self._observer.wants_more and not self._open and not self._watches

    def feed(self, block: Lines, first_line: int, hits: Sequence[int], said: Mapping[int, Sequence[ParsedEvent]],
             stamped: I64, kinds: Mapping[int, LineKind]) -> list[UntimedEvidence]:  # fmt: skip
        """Return the evidence in a block.

        hits: lines that may contain evidence, ascending. said: events of the rules by line. stamped: lines with a
        possible timestamp. kinds: of frequent lines.
        """
        if not hits and self.is_idle:
            self._remember(block, stamped)
            return []
        begins = [at for at, ones in said.items() if any(one.type in _BEGINS for one in ones)]
        stamps = _Timestamps(block, stamped)
        progress = [
            at for at, ones in sorted(said.items()) if self._passages.passes(ones, partial(stamps.before, at + 1))
        ]
        consumed = self._visit(block, first_line, hits, progress, kinds)
        fresh = self._observer.fresh()
        for one in self._open:
            one.behind = stamps.after(-1)
        self._open = [one for one in self._open if one.behind is None]
        places = np.searchsorted(block.number, np.array([one.line - first_line for one in fresh], dtype=np.int64))
        for one, at in zip(fresh, places.tolist(), strict=True):
            at = at if one.line >= first_line else -1
            one.before = stamps.before(at) or self._last_stamp
            one.behind = stamps.after(at)
            if one.behind is None:
                self._open.append(one)
            if one.role == "root" and one.speaker == "process":
                self._watches.append(_Watch(one, self._needles.get(one.line, b""), at))
        self._watch(block, first_line, consumed, sorted(begins), stamps)
        self._remember(block, stamped)
        self._needles.clear()
        return fresh

    def at_end(self) -> DeathsAtEnd:
        """Return the evidence if the document ends here, without a change."""
        found = [replace(one, before=one.before or self._last_stamp) for one in self._observer.at_end()]
        return DeathsAtEnd(found, [watch.of for watch in self._watches if watch.undecided])

    def finish(self) -> list[UntimedEvidence]:
        """Return the evidence that is left at the end of the document."""
        self._observer.finish()
        for watch in self._watches:
            watch.of.ends |= watch.undecided
        found = self._observer.fresh(end=True)
        for one in found:
            one.before = one.before or self._last_stamp
        return found

    def _visit(
        self, block: Lines, first_line: int, hits: Sequence[int], progress: Sequence[int], kinds: Mapping[int, LineKind]
    ) -> set[int]:
        """Pass lines to the observer; return the lines that are part of evidence."""
        observer, consumed, cursor = self._observer, set[int](), 0
        base, passed = observer.epoch, 0
        for at in [*hits, len(block)]:
            while cursor < at and observer.wants_more:
                self._show(block, cursor, first_line, consumed)
                cursor += 1
            while passed < len(progress) and progress[passed] < at:
                passed += 1
            observer.epoch = base + passed
            if at < len(block) and cursor <= at:
                kind = kinds.get(at)
                if kind is not None and observer.count_repetition(kind.of, first_line + int(block.number[at])):
                    consumed.add(at)
                else:
                    seen = self._show(block, at, first_line, consumed)
                    if kind is not None:
                        kind.of = observer.repeatable(seen)
            cursor = max(cursor, at + 1)
        observer.epoch = base + len(progress)
        return consumed

    def _show(self, block: Lines, at: int, first_line: int, consumed: set[int]) -> UntimedEvidence | None:
        raw = block.text(at)
        line = Line.of(raw, first_line + int(block.number[at]))
        seen, part = self._observer.take(line, lambda count: [block.text(row) for row in range(max(0, at - count), at)])
        if part:
            consumed.add(at)
            names: list[str] = _NEEDLE.findall(raw[:256])
            needle = self._needles[line.number] = names[-1].encode() if names else b""
            if seen is not None and seen.unhandled and needle and self._is_usual(needle + b" ", block, at, consumed):
                self._observer.drop_message(line.stream)
        return seen

    def _is_usual(self, prefix: bytes, block: Lines, at: int, consumed: set[int]) -> bool:
        """Return True if ordinary lines before this one begin with the prefix of the hook for unhandled exceptions."""
        if prefix not in self._usual:
            self._usual[prefix] = self._find_before(prefix, block, at, consumed)
        return self._usual[prefix]

    def _find_before(self, prefix: bytes, block: Lines, at: int, consumed: set[int]) -> bool:
        begin, end = 0, int(block.start[at])
        for _ in range(_OF_PROCESS):
            place = block.find(prefix, begin, end)
            if place < 0:
                return False
            line = int(np.searchsorted(block.start, place, side="right")) - 1
            begin = int(block.end[line])
            if line not in consumed and is_ordinary(Line.of(block.text(line), 0).text):
                return True
        return False

    def _watch(
        self, block: Lines, first_line: int, consumed: set[int], begins: Sequence[int], stamps: _Timestamps
    ) -> None:
        """Check the lines after root causes, up to the next start."""
        if not self._watches:
            return
        going: list[_Watch] = []
        left = np.ones(len(block), dtype=bool)
        left[np.fromiter(consumed, dtype=np.intp)] = False
        free = np.flatnonzero(left)
        for watch in self._watches[-_MOST_WATCHED:]:
            if watch.of.count != watch.count:
                self._move_to_repetition(watch, block, first_line, consumed, stamps)
            begin = watch.at + 1
            place = bisect_left(begins, begin)
            stop = begins[place] if place < len(begins) else len(block)
            first, last = np.searchsorted(free, (begin, stop))
            self._check_next_lines(watch, block, first_line, free[first : min(last, first + _NEXT_LINES + 1)])
            if watch.needle and watch.of.ordinary is None:
                _find_ordinary_line(watch, block, first_line, range(begin, stop), consumed)
            late = stamps.last_ordinary(begin, stop, consumed)
            watch.of.late = late or watch.of.late
            watch.at = -1
            if stop == len(block):
                going.append(watch)
            else:
                watch.of.ends |= watch.undecided
        self._watches = going

    def _move_to_repetition(
        self, watch: _Watch, block: Lines, first_line: int, consumed: set[int], stamps: _Timestamps
    ) -> None:
        """Look after the last repetition. If the process continued before it, use its line and times."""
        one, at = watch.of, int(np.searchsorted(block.number, watch.of.last_line - first_line))
        if watch.needle:
            _find_ordinary_line(watch, block, first_line, range(watch.at + 1, at), consumed)
        if one.ordinary is not None:
            one.line, one.stamp = one.last_line, Line.of(block.text(at), one.last_line).stamp
            one.before, one.behind = stamps.before(at) or one.before, stamps.after(at)
            self._open += [one] if one.behind is None else []
        watch.count, watch.at, watch.undecided, watch.looked = one.count, at, True, 0
        one.ordinary = one.late = None

    def _check_next_lines(self, watch: _Watch, block: Lines, first_line: int, rows: Rows) -> None:
        """Check if an ordinary line follows at once; in a file of one process, that shows that it continued.

        rows: the first lines after the failure that are not part of any.
        """
        if not watch.undecided:
            return
        for at in rows.tolist():
            watch.looked += 1
            if watch.looked > _NEXT_LINES:
                watch.undecided = False
                return
            if is_ordinary(Line.of(block.text(at), 0).text):
                watch.undecided = False
                if not self._shared and watch.of.ordinary is None:
                    watch.of.ordinary = first_line + int(block.number[at])
                return

    def _remember(self, block: Lines, stamped: I64) -> None:
        self._last_stamp = _Timestamps(block, stamped).before(len(block)) or self._last_stamp


def _find_ordinary_line(watch: _Watch, block: Lines, first_line: int, rows: range, consumed: set[int]) -> None:
    """Find the first ordinary line with the prefix of the process."""
    if not rows:
        return
    begin, end = int(block.start[rows[0]]), int(block.end[rows[-1]])
    for _ in range(_OF_PROCESS):
        place = block.find(watch.needle, begin, end)
        if place < 0:
            return
        at = int(np.searchsorted(block.start, place, side="right")) - 1
        begin = int(block.end[at])
        if at not in consumed and is_ordinary(Line.of(block.text(at), 0).text):
            watch.of.ordinary = first_line + int(block.number[at])
            return


class _Timestamps:
    """Timestamps of the lines of a block, read on demand."""

    def __init__(self, block: Lines, stamped: I64) -> None:
        self._block, self._rows = block, stamped
        self._latest: dict[tuple[int, int], Timestamp | None] = {}

    def before(self, at: int) -> Timestamp | None:
        """Return the last timestamp before a line."""
        place = int(np.searchsorted(self._rows, at))
        return self._first(range(place - 1, -1, -1))

    def after(self, at: int) -> Timestamp | None:
        """Return the first timestamp after a line."""
        place = int(np.searchsorted(self._rows, at, side="right"))
        return self._first(range(place, len(self._rows)))

    def last_ordinary(self, begin: int, stop: int, consumed: set[int]) -> Timestamp | None:
        """Return the last timestamp of an ordinary line in [begin, stop)."""
        if (begin, stop) not in self._latest:
            low, high = np.searchsorted(self._rows, (begin, stop)).tolist()
            some = [at for at in self._rows[max(low, high - 4096) : high].tolist() if at not in consumed]
            self._latest[begin, stop] = None
            for at in some[: -_TRIES - 1 : -1]:
                line = Line.of(self._block.text(at), 0)
                stamp = line.stamp if is_ordinary(line.text) else None
                if stamp is not None:
                    self._latest[begin, stop] = stamp
                    break
        return self._latest[begin, stop]

    def _first(self, places: range) -> Timestamp | None:
        for place in places[:_TRIES]:
            stamp = Line.of(self._block.text(int(self._rows[place])), 0).stamp
            if stamp is not None:
                return stamp
        return None


_MOST_WATCHED_ENTRIES = 64


class EntryObserver:
    """Reads evidence from entries, each with its time of collection."""

    def __init__(self, rows: CauseRows) -> None:
        self._observer = Observer(rows)
        self._passages = _Passages()
        self._watched: list[tuple[UntimedEvidence, str]] = []

    def take(self, line: Line, worth: bool, said: Sequence[ParsedEvent]) -> bool:
        """Read a line; return True if it is part of evidence. worth: it may contain evidence. said: events of the
        rules."""
        if any(one.type in _BEGINS for one in said):
            for one, _ in self._watched:
                one.ends = one.ordinary is None and one.late is None
            self._watched.clear()
        self._observer.epoch += self._passages.passes(said, lambda: line.stamp)
        part = False
        if worth or self._observer.wants_more:
            found, part = self._observer.take(line, lambda _: ())
            if found is not None and found.role == "root" and found.speaker == "process" and found.count == 1:
                found.ends = True  # Until an ordinary line follows.
                prefix = line.raw[: len(line.raw) - len(line.text)].strip()
                self._watched = [*self._watched[1 - _MOST_WATCHED_ENTRIES :], (found, prefix)]
        if not part and self._watched and is_ordinary(line.text):
            for one, prefix in self._watched:
                one.ends = False
                if one.stream == line.stream and prefix and "rank" in prefix and prefix in line.raw:
                    one.ordinary = one.ordinary or line.number
                one.late = line.stamp or one.late
        return part

    def fresh(self) -> list[UntimedEvidence]:
        """Return the evidence since the last call."""
        return self._observer.fresh()
