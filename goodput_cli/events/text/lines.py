"""Find and compare the lines of a block of text, and define the rules that read them."""

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
from goodput_cli.events.text.line_timestamps import LONGEST_PREFIX, candidates, is_kernel_log, strip_prefixes
from goodput_cli.events.text.log_lines import CollectedRule, LineRule, ParsedEvent, any_of, line_readings, literals_of
from goodput_cli.events.values import DIGITS, KEEP_FIRST, WORD

LIKE_A_STEP = rb"(?im)(?:^|[^a-z\n])(?:step|iter(?:ation)?)s?[ \t:=#\[(/]{1,4}(\d{1,9})(?:\D|$)"
"""Pattern of a line about a step, in any format; for RE2, as none of its literals is rare."""
UNREAD_STEPS = 3
"""Number of lines like steps, with different numbers, that cannot be a coincidence."""
OTHER_STEPS = 20
"""Number of such lines, before the first step read by a rule, that reveal another program."""
LONGEST = 1 << 16
"""Maximum length of a line; longer ones are noise."""
_NEWLINE, _RETURN, _BLANK, _BRACE, _QUOTE, _COLON, _CLOSING, _BEFORE_TIME = (ord(one) for one in '\n\r {":]T')
_BAR_BEFORE = re.compile(rb"\[\d[\d:]*<[^\[\]\r\n]*(?:[a-z]/s|s/[a-z])[^\[\]\r\n]*\]\Z")
"""Time, rate and other values of a progress bar, up to the closing bracket."""
_LONGEST_RATE = 512
"""Maximum length of these values."""
FRAME = re.compile(rb'File "[^"\n]*", line [0-9]')
"""Frame of a traceback; code may follow."""
MASK = bytes.maketrans(b"123456789", b"000000000")
_PRIME = np.uint64(0x100000001B3)
_DATE = 10
"""Characters of a date."""


def follows_frame(line: bytes, before: bytes) -> bool:
    """Return True if a line is indented deeper than the frame of a traceback on the line before: it is code."""
    frame = FRAME.search(before)
    return frame is not None and line[frame.start() : frame.start() + 2] == b"  "


def text_after_bars(data: bytes, view: NDArray[np.uint8], starts: I64) -> I64:
    """Return the positions of text after the closing bracket of a progress bar, int64[n]. A bar does not end its line,
    so text that another stream prints next is a separate line. view: the same bytes. starts: begins of lines."""
    closed = np.flatnonzero((view[:-1] == _CLOSING) & (view[1:] > _BLANK)) + 1
    if not len(closed) or not any(sign in data for sign in (b"%|", b"it/s", b"s/it")):
        return np.empty(0, dtype=np.int64)
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
    """First line that no line end separates from it."""
    overwritten: bool


class Lines:
    """Lines of a block; text overwritten after a carriage return is a separate line."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._bytes = np.frombuffer(data, dtype=np.uint8)
        newline, returns = self._bytes == _NEWLINE, b"\r" in data
        ends = np.flatnonzero(newline | (self._bytes == _RETURN) if returns else newline)
        if data and not data.endswith(b"\n"):
            ends = np.append(ends, len(data))
        self.start = np.zeros(len(ends), dtype=np.int64)
        self.start[1:] = ends[:-1] + 1
        after = text_after_bars(data, self._bytes, self.start)
        if len(after):
            returns = True
            self.start = merged(self.start, after)
            ends = merged(ends, after)
        self.end: I64 = ends
        self.number = np.arange(len(ends), dtype=np.int64)
        """Number of line ends before each line."""
        if returns:
            self.number = np.searchsorted(np.flatnonzero(newline), self.start)
        self.count = int(self.number[-1]) + 1 if len(ends) else 0
        """Number of lines, counting those with carriage returns once."""
        self.first = np.searchsorted(self.number, self.number) if returns else self.number
        """First line that no line end separates from each."""
        self.has_returns = returns
        self.overwritten: Mask = self._overwritten() if returns else np.zeros(len(ends), dtype=np.bool_)
        self.overwritten[np.searchsorted(ends, after)] = False
        """True for each line replaced by a later one that is not blank."""

    @classmethod
    def of(cls, data: bytes, start: I64, end: I64) -> Lines:
        """Return lines at known positions of some bytes."""
        made = cls(b"")
        made._data, made._bytes = data, np.frombuffer(data, dtype=np.uint8)
        made.start, made.end = start, end
        made.number = made.first = np.arange(len(start))
        made.count, made.overwritten = len(start), np.zeros(len(start), dtype=np.bool_)
        return made

    def _overwritten(self) -> Mask:
        begins = self.start[self.start < len(self._bytes)]
        full = np.flatnonzero(np.maximum.reduceat(self._bytes, begins) > _BLANK)
        last = np.full(self.count, -1, dtype=np.int64)
        last[self.number[full]] = full  # The last of those with one number is kept.
        found: Mask = np.arange(len(self.end)) < last[self.number]
        return found

    @property
    def is_alone(self) -> Mask:
        """Return True for lines that no carriage return separates from another one, bool[n]."""
        if not self.has_returns:
            return np.ones(len(self), dtype=np.bool_)
        alone: Mask = np.bincount(self.number, minlength=self.count)[self.number] == 1
        return alone

    def short(self) -> I64:
        """Return the lines that are not too long, int64[n]."""
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
        """Yield the given lines, which are not too long."""
        data, masked = self._data, self.masked
        columns = (lines, self.start[lines], self.end[lines], self.number[lines], self.first[lines])
        every = zip(*(column.tolist() for column in columns), self.overwritten[lines].tolist(), strict=True)
        for at, begin, end, number, first, overwritten in every:
            yield Hit(at, data[begin:end], masked[begin:end], number, first, overwritten)

    def columns(self, lines: I64, length: int, begin: int = 0) -> NDArray[np.uint8]:
        """Return bytes of lines from a column on, uint8[n, length]; all lines must have them."""
        return np.lib.stride_tricks.sliding_window_view(self._bytes, length)[self.start[lines] + begin]

    def masked_columns(self, lines: I64, length: int) -> NDArray[np.uint8]:
        """Return the bytes of lines with this length, each digit replaced by 0, uint8[n, length]."""
        every = np.frombuffer(self.masked, dtype=np.uint8)
        return np.lib.stride_tricks.sliding_window_view(every, length)[self.start[lines]]

    @cached_property
    def masked(self) -> bytes:
        """Return the block with each digit replaced by 0."""
        return self._data.translate(MASK)

    @property
    def data(self) -> bytes:
        """Return the bytes of the block."""
        return self._data

    def find(self, text: bytes, begin: int, end: int) -> int:
        """Return the position of a text in a range of the block's bytes; -1 if absent."""
        return self._data.find(text, begin, end)

    def texts(self, lines: I64, cut: int) -> Callable[[int], str]:
        """Return a function that gives the text of each line without its first characters; it keeps only the part of
        the block from the first to the last line."""
        first = int(self.start[lines[0]])
        data = self._data[first : int(self.end[lines[-1]])]
        begins, ends = (self.start[lines] + cut - first).tolist(), (self.end[lines] - first).tolist()
        return lambda at: data[begins[at] : ends[at]].decode(errors="replace")

    def found(self, anchors: Any, without: I64 | None = None) -> I64:
        """Return the lines that contain a match, int64[n], without too long ones. without: lines to skip."""
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

    def each_found(self, anchors: Any, lines: range | None = None) -> Iterator[int]:
        """Yield the lines, all or those in a range, that contain a match, without too long ones."""
        last = -1
        part = () if lines is None else (int(self.start[lines[0]]), int(self.end[lines[-1]]))
        for match in anchors.finditer(self._data, *part):
            line = int(np.searchsorted(self.start, match.start(), side="right")) - 1
            if line > last and self.end[line] - self.start[line] <= LONGEST:
                yield line
            last = line

    def stamped(self) -> tuple[I64, I64]:
        """Return the lines with a possible timestamp, and the column at which its date begins."""
        places = candidates(self._bytes)
        line = np.searchsorted(self.start, places, side="right") - 1
        line, first = np.unique(line, return_index=True)
        column = places[first] - self.start[line]
        near = column < 2 * 96
        return line[near], np.maximum(column[near], 0)

    def without_day(self, lines: I64, columns: I64) -> NDArray[np.bool_]:
        """Return True for each line whose timestamp, at the given column, begins with the hour, bool[n]."""
        hours: NDArray[np.bool_] = self._bytes[self.start[lines] + columns + 2] == _COLON
        return hours

    def are_collected(self, lines: I64, columns: I64) -> Mask:
        """Return True for lines that begin with a collector's timestamp, bool[n]. columns: of their dates."""
        at = np.minimum(self.start[lines] + columns + _DATE, len(self._bytes) - 1)
        collected: Mask = (columns <= 1) & (self._bytes[at] == _BEFORE_TIME)
        return collected

    def hashes(self, lines: I64, begin: I64, length: I64, *, masked: bool = False) -> I64:
        """Return a hash of a part of each line, int64[n]. begin: columns. masked: True to take digits as equal."""
        total = np.zeros(len(lines), dtype=np.uint64)
        if not len(lines):
            return total.view(np.int64)
        start = self.start[lines] + begin
        length = np.minimum(length, self.end[lines] - start).clip(0)
        last = len(self._bytes) - DIGITS
        data = self.masked if masked else self._data
        words: NDArray[Any] = np.ndarray((last + 1,), f"V{DIGITS}", data, strides=(1,))
        for at in range(0, int(length.max()), DIGITS):
            place = np.minimum(start + at, last)  # At the end of the block, a word begins earlier.
            word = words[place].view(WORD) >> (8 * (start + at - place)).astype(WORD)
            kept = word & KEEP_FIRST[(length - at).clip(0, DIGITS)]
            mixed = (total ^ kept ^ length.astype(WORD)) * _PRIME
            total = np.where(length > at, mixed ^ (mixed >> np.uint64(32)), total)
        return total.view(np.int64)

    def braces(self) -> I64:
        """Return the lines that begin with a brace, or contain a brace and quotation mark near the beginning,
        int64[n]."""
        full = np.flatnonzero(self.end > self.start)
        begin: I64 = full[self._bytes[self.start[full]] == _BRACE]
        if b"{" not in self._data or b'{"' not in self._data:  # Searching for one byte is 30 times faster than for two.
            return begin
        places = np.flatnonzero((self._bytes[:-1] == _BRACE) & (self._bytes[1:] == _QUOTE))
        line, first = np.unique(np.searchsorted(self.start, places, side="right") - 1, return_index=True)
        return merged(begin, line[places[first] - self.start[line] < LONGEST_PREFIX])


@dataclass(frozen=True)
class LineRules:
    """Rules of all formats, in the order in which they are tried."""

    rules: tuple[LineRule, ...]
    causes: CauseRows = NO_ROWS
    """Rows of evidence, which make no event."""
    signs: tuple[LineRule, ...] = ()
    """Rules for moments of a recovery, which make no event and are tried in addition."""
    collected: tuple[CollectedRule, ...] = ()
    """Rules for lines that capabilities read."""

    @cached_property
    def reads_all(self) -> bool:
        """Return True if some rule or row has no literal and is tried on every line."""
        return any(not rule.anchor for rule in (*self.rules, *self.signs)) or self.causes.reads_all

    @cached_property
    def anchors(self) -> Any:
        """Return a pattern that finds any of the literals in bytes."""
        literals = {rule.anchor for rule in (*self.rules, *self.signs) if rule.anchor} | set(self.causes.anchors)
        return any_of(literals | literals_of(self.collected))

    def observes(self, head: bytes) -> bool:
        """Return True if text with this beginning is a kernel log, or one of its lines contains evidence of a
        failure."""
        if not self.causes.rows:
            return False
        lines = {head.count(b"\n", 0, found.start()) for found in self.causes.expression.finditer(head)}
        rows = head.decode(errors="replace").split("\n") if lines else []
        read = any(self.causes.read(strip_prefixes(rows[at]).text) is not None for at in lines if at < len(rows))
        return read or is_kernel_log(head.decode(errors="replace"))

    def knows(self, head: bytes) -> bool:
        """Return True if a rule matches some line of text with this beginning."""
        head = head.replace(b"\r", b"\n")
        rows = head.split(b"\n")
        lines = {head.count(b"\n", 0, found.start()) for found in self.anchors.finditer(head)}
        lines = set(range(len(rows))) if self.reads_all else lines
        texts = (strip_prefixes(rows[at][:LONGEST].decode(errors="replace")).text for at in lines)
        return any(self.read(text)[1] or self.signs_in(text) for text in texts)

    def read(self, text: str, overwritten: bool = False) -> tuple[list[ParsedEvent], bool, str]:
        """Return the events of a line, True if a rule matches it, and its error; an empty error if it is valid.
        overwritten: True if a carriage return replaced this text."""
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
        """Return the moments of a recovery in a line, without invalid ones."""
        found = (reading.event for reading in line_readings(self.signs, text, overwritten))
        return [one for one in found if one is not None]
