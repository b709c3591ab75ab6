"""Observes a document of text: shows an observer the few lines that matter, and finds when each was written and whether
its process went on behind it. All else of the document is never looked at, and of a failure that very many lines repeat
none but the first of each kind is read: lines that differ in nothing but digits say the same.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import I64, Rows
from goodput_cli.events.evidence import UntimedEvidence
from goodput_cli.events.text.causes import CauseRows
from goodput_cli.events.text.evidence_reader import Observer
from goodput_cli.events.text.log_lines import ENDS, EventType, ParsedEvent
from goodput_cli.events.text.looked_at import Line
from goodput_cli.events.text.programs.progress_bars import counted_bar, counted_step
from goodput_cli.events.text.stamps import Stamp
from goodput_cli.events.text.survived import is_ordinary
from goodput_cli.vocabulary.when import NS_PER_SECOND

if TYPE_CHECKING:
    from goodput_cli.events.text.evidence_reader import Repeatable
    from goodput_cli.events.text.lines import LineRules, Lines


BEGINS = 256
"""Behind so many lines of a document that are worth a look the others are compared."""
_ALIKE = 64
"""Fewer lines of one shape are not worth comparing."""
_SHAPES = 8
"""So many shapes of one length are compared."""
_LONGEST = 4096
_MOST = 1 << 16
"""So many kinds of lines are known at once."""
_STAMP = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?|\b[WIEF]\d{3,4} \d\d:\d\d:\d\d(?:\.\d+)?|\[ *\d+\.\d{6}\]"
)
_PLACE = re.compile(r"\d\]:|@")
"""What says which process wrote a line, wherever it stands."""
_NOT_ASKED = frozenset({"sequence", "waited"})
"""Fields of rows that say nothing of a line that is counted."""
_ZERO, _NINE = ord("0"), ord("9")
_SHAPE = np.arange(256, dtype=np.uint8)
_SHAPE[_ZERO : _NINE + 1] = _ZERO


@dataclass(slots=True)
class Kind:
    """Lines that say the same."""

    quiet: bool = False
    """Whether no rule reads them, and a row may: what was read of one holds for all."""
    of: Repeatable | None = None
    """What the first of them became; None: each is looked at."""


@dataclass
class Storms:
    """The kinds of lines of one document that were met in a storm."""

    rules: LineRules
    _kinds: dict[bytes, Kind] = field(default_factory=dict)
    _told_apart: dict[bytes, NDArray[np.intp]] = field(default_factory=dict)
    """By shape, the columns that count."""

    @cached_property
    def _with_digits(self) -> list[bytes]:
        """Literals of rules and rows that hold digits, as shapes: digits of a line that has one may be of it."""
        literals = (*(rule.anchor for rule in self.rules.rules), *self.rules.causes.anchors)
        return [one.encode().translate(_SHAPE.tobytes()) for one in literals if any(char.isdigit() for char in one)]

    def kinds(self, block: Lines, lines: I64) -> dict[int, Kind]:
        """By line, its kind, of those that are of a shape with many others."""
        if self.rules.reads_all or block.overwritten.any():
            return {}
        if len(self._kinds) > _MOST:
            self._kinds.clear()
        found: dict[int, Kind] = {}
        length = block.end[lines] - block.start[lines]
        sizes, counts = np.unique(length, return_counts=True)
        for size in sizes[(counts >= _ALIKE) & (sizes <= _LONGEST) & (sizes > 0)].tolist():
            of_size = lines[length == size]
            self._of_size(block.columns(of_size, size), of_size, found)
        return found

    def _of_size(self, rows: NDArray[np.uint8], lines: I64, found: dict[int, Kind]) -> None:
        """Those of lines of one length."""
        shapes = _SHAPE[rows]
        for _ in range(_SHAPES):
            if len(lines) < _ALIKE:
                return
            same = (shapes == shapes[0]).all(axis=1)
            if np.count_nonzero(same) >= _ALIKE:
                self._of_shape(shapes[0].tobytes(), rows[same], lines[same], found)
            rows, shapes, lines = rows[~same], shapes[~same], lines[~same]

    def _of_shape(self, shape: bytes, rows: NDArray[np.uint8], lines: I64, found: dict[int, Kind]) -> None:
        columns = self._told_apart.get(shape)
        if columns is None:
            columns = self._told_apart[shape] = self._columns(rows[0].tobytes())
        told = np.ascontiguousarray(rows[:, columns])
        if told.shape[1] == 0:
            names, which = [b""], np.zeros(len(lines), dtype=np.intp)
        else:
            distinct, which = np.unique(told.view(f"V{told.shape[1]}")[:, 0], return_inverse=True)
            names = [one.tobytes() for one in distinct]
        kinds = [self._kinds.setdefault(shape + b"\0" + name, Kind()) for name in names]
        found.update(zip(lines.tolist(), map(kinds.__getitem__, which.tolist()), strict=True))

    def _columns(self, line: bytes) -> NDArray[np.intp]:
        """The digits of a line that tell lines of its shape apart: all but those of stamps, those of fields that nobody
        asks for, and those behind what the only row that may read it reads."""
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
            for name in row.pattern.groupindex.keys() & _NOT_ASKED:
                low, high = match.span(row.pattern.groupindex[name])
                if low >= 0 and _is_whole(text, low, high):
                    digits[low:high] = False
        for stamp in _STAMP.finditer(text, 0, begin):
            digits[stamp.start() : stamp.end()] = False
        return np.flatnonzero(digits)


def _is_whole(text: Sequence[str], low: int, high: int) -> bool:
    """Whether a number stands there alone, with no digit before or behind it."""
    return not (low > 0 and text[low - 1].isdigit()) and not (high < len(text) and text[high].isdigit())


_LOOKED_AT = frozenset({*ENDS, EventType.ALIVE, EventType.START, EventType.REINIT, EventType.IGNORE, EventType.CUSTOM})
"""What lines may say that say something about a death as well."""
_BEGINS = frozenset({EventType.START, EventType.INIT, EventType.SCHEDULED})
_PROGRESS = frozenset({EventType.STEP, EventType.START, EventType.STEP_START})
_DEATHS = frozenset({EventType.CRASHED, EventType.TERMINATED, EventType.PREEMPTED})
_DYING = 30 * NS_PER_SECOND
"""Within so long of a death, what is said of one is of the same."""
_MOST_WATCHED = 256
_NEXT_LINES = 64
_OF_PROCESS = 256
_TRIES = 20
_NEEDLE = re.compile(r"\[(?:default|rank)?\d+\]:")


def may_say(said: Sequence[ParsedEvent], known: bool) -> bool:
    """Whether a line that the rules read like this is worth a look: not one of the thousands that tell of steps."""
    return not known or not _LOOKED_AT.isdisjoint([one.type for one in said])


@dataclass(slots=True)
class _Watch:
    """What stands behind a root, while it is not known."""

    of: UntimedEvidence
    needle: bytes
    """What lines of the same process begin with; empty if nothing tells them from others."""
    at: int
    """The line of the block behind which they stand."""
    count: int = 1
    """How often it was said so far: what stands between two times shows nothing."""
    undecided: bool = True
    """Whether nobody knows yet if it ends its file."""
    looked: int = 0


@dataclass
class _Passages:
    """Finds the lines between which what is said is told apart: a step, a start, a bar that goes on, a death."""

    _drawn: dict[tuple[str, int | None, int], int | None] = field(default_factory=dict)
    """By name, epoch and total of bars, how far they have come."""
    _died: Stamp | None = None

    def passes(self, said: Sequence[ParsedEvent], written: Callable[[], Stamp | None]) -> bool:
        """Whether a line is such a one. written: when it was, as far as it or the lines before say. A bar that is drawn
        again with the same number is none, nor a death soon after another one, which is the same."""
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
    """Observes one document, block by block."""

    def __init__(self, rows: CauseRows, source: str) -> None:
        self._observer = Observer(rows, source)
        self._last_stamp: Stamp | None = None
        self._passages = _Passages()
        self._open: list[UntimedEvidence] = []  # no stamp was seen behind them so far
        self._watches: list[_Watch] = []
        self._shared = not self._observer.of_one_process
        self._needles: dict[int, bytes] = {}
        """By line number, of those that were looked at in this block, what lines of the same process begin with; empty
        where nothing tells."""
        self._usual: dict[bytes, bool] = {}
        """By prefix of a rank with a blank behind it, whether ordinary lines begin so as well."""

    @property
    def dropped(self) -> int:
        """How many observations were left out."""
        return self._observer.dropped

    @property
    def is_idle(self) -> bool:
        """Return True if a block without lines that may report a death changes nothing."""
        return not self._observer.wants_more and not self._open and not self._watches

    def feed(self, block: Lines, first_line: int, hits: Sequence[int], said: Mapping[int, Sequence[ParsedEvent]],
             stamped: I64, kinds: Mapping[int, Kind]) -> list[UntimedEvidence]:  # fmt: skip
        """What is seen in a block. hits: lines that may say something, ascending. said: what the rules read. stamped:
        lines with what looks like a stamp. kinds: of lines that many others are like."""
        if not hits and self.is_idle:
            self._remember(block, stamped)
            return []
        begins = [at for at, ones in said.items() if any(one.type in _BEGINS for one in ones)]
        stamps = _Stamps(block, stamped)
        progress = [
            at for at, ones in sorted(said.items()) if self._passages.passes(ones, partial(stamps.before, at + 1))
        ]
        consumed = self._visit(block, first_line, hits, progress, kinds)
        fresh = self._observer.fresh()
        for one in self._open:
            one.behind = stamps.behind(-1)
        self._open = [one for one in self._open if one.behind is None]
        places = np.searchsorted(block.number, np.array([one.line - first_line for one in fresh], dtype=np.int64))
        for one, at in zip(fresh, places.tolist(), strict=True):
            at = at if one.line >= first_line else -1
            one.before = stamps.before(at) or self._last_stamp
            one.behind = stamps.behind(at)
            if one.behind is None:
                self._open.append(one)
            if one.role == "root" and one.speaker == "process":
                self._watches.append(_Watch(one, self._needles.get(one.line, b""), at))
        self._watch(block, first_line, consumed, sorted(begins), stamps)
        self._remember(block, stamped)
        self._needles.clear()
        return fresh

    def finish(self) -> list[UntimedEvidence]:
        """The end of the document."""
        self._observer.finish()
        for watch in self._watches:
            watch.of.ends |= watch.undecided
        found = self._observer.fresh(end=True)
        for one in found:
            one.before = one.before or self._last_stamp
        return found

    def _visit(
        self, block: Lines, first_line: int, hits: Sequence[int], progress: Sequence[int], kinds: Mapping[int, Kind]
    ) -> set[int]:
        """Show lines to the observer; those that are part of something."""
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
                if kind is not None and observer.again(kind.of, first_line + int(block.number[at])):
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
                self._observer.has_no_message(line.stream)
        return seen

    def _is_usual(self, prefix: bytes, block: Lines, at: int, consumed: set[int]) -> bool:
        """Whether ordinary lines as well begin as those of the hook for unhandled exceptions do, as far as those before
        its first one in a block tell."""
        if prefix not in self._usual:
            self._usual[prefix] = self._stands_before(prefix, block, at, consumed)
        return self._usual[prefix]

    def _stands_before(self, prefix: bytes, block: Lines, at: int, consumed: set[int]) -> bool:
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

    def _watch(self, block: Lines, first_line: int, consumed: set[int], begins: Sequence[int], stamps: _Stamps) -> None:
        """Find what stands behind the roots, up to the next start."""
        if not self._watches:
            return
        going: list[_Watch] = []
        left = np.ones(len(block), dtype=bool)
        left[np.fromiter(consumed, dtype=np.intp)] = False
        free = np.flatnonzero(left)
        for watch in self._watches[-_MOST_WATCHED:]:
            if watch.of.count != watch.count:
                self._said_again(watch, block, first_line, consumed, stamps)
            begin = watch.at + 1
            place = bisect_left(begins, begin)
            stop = begins[place] if place < len(begins) else len(block)
            first, last = np.searchsorted(free, (begin, stop))
            self._next_lines(watch, block, first_line, free[first : min(last, first + _NEXT_LINES + 1)])
            if watch.needle and watch.of.ordinary is None:
                _same_process(watch, block, first_line, range(begin, stop), consumed)
            late = stamps.last_ordinary(begin, stop, consumed)
            watch.of.late = late or watch.of.late
            watch.at = -1
            if stop == len(block):
                going.append(watch)
            else:
                watch.of.ends |= watch.undecided
        self._watches = going

    def _said_again(self, watch: _Watch, block: Lines, first_line: int, consumed: set[int], stamps: _Stamps) -> None:
        """Look behind the last of the lines that say the same. If the process went on before that line, that line is
        what counts, with its times."""
        one, at = watch.of, int(np.searchsorted(block.number, watch.of.last_line - first_line))
        if watch.needle:
            _same_process(watch, block, first_line, range(watch.at + 1, at), consumed)
        if one.ordinary is not None:
            one.line, one.stamp = one.last_line, Line.of(block.text(at), one.last_line).stamp
            one.before, one.behind = stamps.before(at) or one.before, stamps.behind(at)
            self._open += [one] if one.behind is None else []
        watch.count, watch.at, watch.undecided, watch.looked = one.count, at, True, 0
        one.ordinary = one.late = None

    def _next_lines(self, watch: _Watch, block: Lines, first_line: int, rows: Rows) -> None:
        """Whether anything ordinary follows at once; of a file of one process that shows that it went on. rows: the
        first ones behind it that are of no failure."""
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
        self._last_stamp = _Stamps(block, stamped).before(len(block)) or self._last_stamp


def _same_process(watch: _Watch, block: Lines, first_line: int, rows: range, consumed: set[int]) -> None:
    """Find the first ordinary line with the prefix of a process."""
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


class _Stamps:
    """The stamps of the lines of a block, read when they are asked for."""

    def __init__(self, block: Lines, stamped: I64) -> None:
        self._block, self._rows = block, stamped
        self._latest: dict[tuple[int, int], Stamp | None] = {}

    def before(self, at: int) -> Stamp | None:
        """The last one before a line."""
        place = int(np.searchsorted(self._rows, at))
        return self._first(range(place - 1, -1, -1))

    def behind(self, at: int) -> Stamp | None:
        """The first one behind a line."""
        place = int(np.searchsorted(self._rows, at, side="right"))
        return self._first(range(place, len(self._rows)))

    def last_ordinary(self, begin: int, stop: int, consumed: set[int]) -> Stamp | None:
        """The last one of the ordinary lines among [begin, stop)."""
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

    def _first(self, places: range) -> Stamp | None:
        for place in places[:_TRIES]:
            stamp = Line.of(self._block.text(int(self._rows[place])), 0).stamp
            if stamp is not None:
                return stamp
        return None


_MOST_WATCHED_ENTRIES = 64


class EntryObserver:
    """Observes lines that come one by one, each with the time when a collector took it."""

    def __init__(self, rows: CauseRows) -> None:
        self._observer = Observer(rows)
        self._passages = _Passages()
        self._watched: list[tuple[UntimedEvidence, str]] = []

    def take(self, line: Line, worth: bool, said: Sequence[ParsedEvent]) -> bool:
        """Look at a line. worth: whether it may say something. said: what the rules read in it. Returns whether it is
        part of an observation."""
        if any(one.type in _BEGINS for one in said):
            for one, _ in self._watched:
                one.ends = one.ordinary is None and one.late is None
            self._watched.clear()
        self._observer.epoch += self._passages.passes(said, lambda: line.stamp)
        part = False
        if worth or self._observer.wants_more:
            found, part = self._observer.take(line, lambda _: ())
            if found is not None and found.role == "root" and found.speaker == "process" and found.count == 1:
                found.ends = True  # until something ordinary follows
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
        """What was seen since the last call."""
        return self._observer.fresh()
