"""The lines of a block of text, found and told apart together, and the rules that read them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import I64, Mask, distinct, merged
from goodput_cli.events.text.causes import NO_ROWS, CauseRows
from goodput_cli.events.text.log_lines import LineRule, ParsedEvent, any_of, line_readings
from goodput_cli.events.text.stamps import LONGEST_PREFIX, bare, candidates, is_kernel_log
from goodput_cli.events.values import DIGITS, KEEP_FIRST, WORD

LIKE_A_STEP = rb"(?im)(?:^|[^a-z\n])(?:step|iter(?:ation)?)s?[ \t:=#\[(/]{1,4}(\d{1,9})(?:\D|$)"
"""What a line about a step looks like, whoever prints it; for RE2, as no literal of it is rare."""
UNREAD_STEPS = 3
"""So many lines that look as if they were about steps, of different numbers, are no chance."""
OTHER_STEPS = 20
"""So many of them before the first step that a rule reads are of another program."""
LONGEST = 1 << 16
"""Longer lines are noise."""
_NEWLINE, _RETURN, _BLANK, _BRACE, _QUOTE, _COLON, _CLOSING, _BEFORE_TIME = (ord(one) for one in '\n\r {":]T')
_BAR_BEFORE = re.compile(rb"\[\d[\d:]*<[^\[\]\r\n]*(?:it/s|s/it)[^\[\]\r\n]*\]\Z")
"""The time, the rate and further values of a progress bar, up to the bracket that closes them."""
_LONGEST_RATE = 512
"""Length within which a bar has them."""
_MASK = bytes.maketrans(b"123456789", b"000000000")
_PRIME = np.uint64(0x100000001B3)
_COLLECTED, _NAMED, _DATE = 20, 64, 10
"""A collector's stamp has at least so many characters; prefixes are told apart by so many."""


def text_behind_bars(data: bytes, view: NDArray[np.uint8], starts: I64) -> I64:
    """Return int64[n]: where text begins behind the bracket that closes a progress bar. A bar does not end its line, so
    what another stream prints next is a line of its own. view: the same bytes. starts: where lines begin."""
    if b"it/s" not in data and b"s/it" not in data:
        return np.empty(0, dtype=np.int64)
    closed = np.flatnonzero((view[:-1] == _CLOSING) & (view[1:] > _BLANK)) + 1
    begins = starts[np.searchsorted(starts, closed, side="right") - 1].tolist()
    found = [
        place for place, begin in zip(closed.tolist(), begins, strict=True)
        if _BAR_BEFORE.search(data, max(begin, place - _LONGEST_RATE), place)
    ]  # fmt: skip
    return np.array(found, dtype=np.int64)


class Hit(NamedTuple):
    """A line of a block that rules are tried on."""

    at: int
    raw: bytes
    masked: bytes
    """With each digit replaced by 0."""
    number: int
    """Number of line ends before it."""
    first: int
    """The first line that no line end parts from it."""
    overwritten: bool


class Lines:
    """The lines of a block; what a carriage return overwrote is one of its own."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._bytes = np.frombuffer(data, dtype=np.uint8)
        newline, returns = self._bytes == _NEWLINE, b"\r" in data
        ends = np.flatnonzero(newline | (self._bytes == _RETURN) if returns else newline)
        if data and not data.endswith(b"\n"):
            ends = np.append(ends, len(data))
        self.start = np.zeros(len(ends), dtype=np.int64)
        self.start[1:] = ends[:-1] + 1
        behind = text_behind_bars(data, self._bytes, self.start)
        if len(behind):
            returns = True
            self.start = merged(self.start, behind)
            ends = merged(ends, behind)
        self.end: I64 = ends
        self.number = np.arange(len(ends), dtype=np.int64)
        """Of each line, how many line ends stand before it."""
        if returns:
            self.number = np.searchsorted(np.flatnonzero(newline), self.start)
        self.count = int(self.number[-1]) + 1 if len(ends) else 0
        """How many there are, those with carriage returns once."""
        self.first = np.searchsorted(self.number, self.number) if returns else self.number
        """Of each, the first that no line end parts from it."""
        self.has_returns = returns
        self.overwritten: Mask = self._overwritten() if returns else np.zeros(len(ends), dtype=np.bool_)
        self.overwritten[np.searchsorted(ends, behind)] = False
        """Whether a later one of the same stands in its place, which is not blank."""

    def _overwritten(self) -> Mask:
        begins = self.start[self.start < len(self._bytes)]
        full = np.flatnonzero(np.maximum.reduceat(self._bytes, begins) > _BLANK)
        last = np.full(self.count, -1, dtype=np.int64)
        last[self.number[full]] = full  # of those with one number the last is kept
        found: Mask = np.arange(len(self.end)) < last[self.number]
        return found

    @property
    def is_alone(self) -> Mask:
        """bool[n]: whether no carriage return parts a line from another one."""
        if not self.has_returns:
            return np.ones(len(self), dtype=np.bool_)
        alone: Mask = np.bincount(self.number, minlength=self.count)[self.number] == 1
        return alone

    def short(self) -> I64:
        """int64[n]: the lines that are not too long."""
        found: I64 = np.flatnonzero(self.end - self.start <= LONGEST)
        return found

    def __len__(self) -> int:
        return len(self.start)

    def text(self, at: int) -> str:
        return self.bytes_of(at, LONGEST).decode(errors="replace")

    def bytes_of(self, at: int, most: int) -> bytes:
        start = int(self.start[at])
        return self._data[start : min(int(self.end[at]), start + most)]

    def hits(self, lines: I64) -> Iterator[Hit]:
        """Yield some lines, none of which is too long."""
        data, masked = self._data, self.masked
        columns = (lines, self.start[lines], self.end[lines], self.number[lines], self.first[lines])
        every = zip(*(column.tolist() for column in columns), self.overwritten[lines].tolist(), strict=True)
        for at, begin, end, number, first, overwritten in every:
            yield Hit(at, data[begin:end], masked[begin:end], number, first, overwritten)

    def columns(self, lines: I64, length: int, begin: int = 0) -> NDArray[np.uint8]:
        """uint8[n, length]: so many bytes of lines, which all have them, from a column on."""
        return np.lib.stride_tricks.sliding_window_view(self._bytes, length)[self.start[lines] + begin]

    def masked_columns(self, lines: I64, length: int) -> NDArray[np.uint8]:
        """uint8[n, length]: the bytes of lines that have this length, each digit replaced by 0."""
        every = np.frombuffer(self.masked, dtype=np.uint8)
        return np.lib.stride_tricks.sliding_window_view(every, length)[self.start[lines]]

    @cached_property
    def masked(self) -> bytes:
        """The block with each digit replaced by 0."""
        return self._data.translate(_MASK)

    @property
    def data(self) -> bytes:
        """The bytes of the block."""
        return self._data

    def find(self, text: bytes, begin: int, end: int) -> int:
        """Where a text stands in some bytes of the block; -1: nowhere."""
        return self._data.find(text, begin, end)

    def texts(self, lines: I64, cut: int) -> Callable[[int], str]:
        """Return what gives the text of each of some lines behind its first characters, which keeps no more of the
        block than from the first to the last of them."""
        first = int(self.start[lines[0]])
        data = self._data[first : int(self.end[lines[-1]])]
        begins, ends = (self.start[lines] + cut - first).tolist(), (self.end[lines] - first).tolist()
        return lambda at: data[begins[at] : ends[at]].decode(errors="replace")

    def found(self, anchors: Any, without: I64 | None = None) -> I64:
        """int64[n]: the lines, none too long, in which something is found. without: lines that are not looked at."""
        pieces = [(0, len(self._data))] if without is None else self._pieces_without(without)
        starts = [match.start() for begin, end in pieces for match in anchors.finditer(self._data, begin, end)]
        places = np.array(starts, dtype=np.int64)
        lines = distinct(np.searchsorted(self.start, places, side="right") - 1)
        found: I64 = lines[self.end[lines] - self.start[lines] <= LONGEST]
        return found

    def _pieces_without(self, lines: I64) -> list[tuple[int, int]]:
        """Return the pieces of the block between some lines."""
        following = np.append(self.start[1:], len(self._data))
        begins = np.append(0, following[lines])
        ends = np.append(self.start[lines], len(self._data))
        full = ends > begins
        return list(zip(begins[full].tolist(), ends[full].tolist(), strict=True))

    def each_found(self, anchors: Any) -> Iterator[int]:
        """Yield the lines, none too long, in which something is found."""
        last = -1
        for match in anchors.finditer(self._data):
            line = int(np.searchsorted(self.start, match.start(), side="right")) - 1
            if line > last and self.end[line] - self.start[line] <= LONGEST:
                yield line
            last = line

    def stamped(self) -> tuple[I64, I64]:
        """The lines with what looks like a stamp, and at which column its date begins."""
        places = candidates(self._bytes)
        line = np.searchsorted(self.start, places, side="right") - 1
        line, first = np.unique(line, return_index=True)
        column = places[first] - self.start[line]
        near = column < 2 * 96
        return line[near], np.maximum(column[near], 0)

    def without_day(self, lines: I64, columns: I64) -> NDArray[np.bool_]:
        """bool[n]: whether the stamp at a column of each line begins with the hour."""
        hours: NDArray[np.bool_] = self._bytes[self.start[lines] + columns + 2] == _COLON
        return hours

    def prefixes(self, lines: I64, columns: I64) -> I64:
        """int64[n]: a number for what stands before a column of each line, equal where that is equal; behind the stamp
        of a collector, which comes first, what follows it counts too."""
        total = np.zeros(len(lines), dtype=np.uint64)
        if not len(lines):
            return total.view(np.int64)
        at = np.minimum(self.start[lines] + columns + _DATE, len(self._bytes) - 1)
        collected = (columns <= 1) & (self._bytes[at] == _BEFORE_TIME)
        start = self.start[lines] + np.where(collected, _COLLECTED, 0)
        length = np.minimum(np.where(collected, _NAMED, columns), self.end[lines] - start).clip(0, _NAMED)
        last = len(self._bytes) - DIGITS
        words: NDArray[Any] = np.ndarray((last + 1,), f"V{DIGITS}", self._bytes.data, strides=(1,))
        for at in range(0, int(length.max()), DIGITS):
            place = np.minimum(start + at, last)  # at the end of the block a word begins sooner
            word = words[place].view(WORD) >> (8 * (start + at - place)).astype(WORD)
            kept = word & KEEP_FIRST[(length - at).clip(0, DIGITS)]
            mixed = (total ^ kept ^ length.astype(WORD)) * _PRIME
            total = np.where(length > at, mixed ^ (mixed >> np.uint64(32)), total)
        return total.view(np.int64)

    def braces(self) -> I64:
        """int64[n]: the lines that begin with a brace, and those in which one and a quotation mark stand near the
        begin."""
        full = np.flatnonzero(self.end > self.start)
        begin: I64 = full[self._bytes[self.start[full]] == _BRACE]
        if b"{" not in self._data or b'{"' not in self._data:  # one byte is found in a thirtieth of the time of two
            return begin
        places = np.flatnonzero((self._bytes[:-1] == _BRACE) & (self._bytes[1:] == _QUOTE))
        line, first = np.unique(np.searchsorted(self.start, places, side="right") - 1, return_index=True)
        return merged(begin, line[places[first] - self.start[line] < LONGEST_PREFIX])


@dataclass(frozen=True)
class LineRules:
    """The rules of all formats, in the order in which they are tried."""

    rules: tuple[LineRule, ...]
    causes: CauseRows = NO_ROWS
    """Rows of evidence of deaths: they make no event."""
    signs: tuple[LineRule, ...] = ()
    """Rules for moments of a recovery alone: they make no event, and read what others read too."""

    @cached_property
    def reads_all(self) -> bool:
        """Whether some rule or row has no literal, and is tried on every line."""
        return any(not rule.anchor for rule in (*self.rules, *self.signs)) or self.causes.reads_all

    @cached_property
    def anchors(self) -> Any:
        """Finds any of the literals in bytes."""
        literals = {rule.anchor for rule in (*self.rules, *self.signs) if rule.anchor} | set(self.causes.anchors)
        return any_of(literals)

    def observes(self, head: bytes) -> bool:
        """Whether a text that begins like this is a kernel's log, or a line of it says something about a death."""
        if not self.causes.rows:
            return False
        lines = {head.count(b"\n", 0, found.start()) for found in self.causes.expression.finditer(head)}
        rows = head.decode(errors="replace").split("\n") if lines else []
        read = any(self.causes.read(bare(rows[at]).text) is not None for at in lines if at < len(rows))
        return read or is_kernel_log(head.decode(errors="replace"))

    def knows(self, head: bytes) -> bool:
        """Whether a rule knows some line of a text that begins like this."""
        head = head.replace(b"\r", b"\n")
        rows = head.split(b"\n")
        lines = {head.count(b"\n", 0, found.start()) for found in self.anchors.finditer(head)}
        lines = set(range(len(rows))) if self.reads_all else lines
        texts = (bare(rows[at][:LONGEST].decode(errors="replace")).text for at in lines)
        return any(self.read(text)[1] or self.signs_in(text) for text in texts)

    def read(self, text: str, overwritten: bool = False) -> tuple[list[ParsedEvent], bool, str]:
        """What a line says, whether a rule knows it, and why it is wrong ("": it is not). overwritten: whether a
        carriage return let something else stand in its place."""
        said: list[ParsedEvent] = []
        known = False
        for reading in line_readings(self.rules, text, overwritten):
            known = True
            if reading.refused is not None:
                return [], True, str(reading.refused)
            if reading.event is not None:
                said.append(reading.event)
        return said, known, ""

    def signs_in(self, text: str, overwritten: bool = False) -> list[ParsedEvent]:
        """The moments of a recovery that rules for nothing else find in a line. A line whose values are wrong names
        none."""
        found = (reading.event for reading in line_readings(self.signs, text, overwritten))
        return [one for one in found if one is not None]
