"""The lines of a block of text, found and told apart together."""

from __future__ import annotations

from typing import Any

import numpy as np

from goodput_cli.arrays import I64, Mask
from goodput_cli.events.text.stamps import candidates
from goodput_cli.events.wrapped_lines import LONGEST_PREFIX

LONGEST = 1 << 16
"""Longer lines are noise."""
_NEWLINE, _RETURN, _BLANK, _BRACE, _QUOTE = ord("\n"), ord("\r"), ord(" "), ord("{"), ord('"')
_PRIME = np.uint64(0x100000001B3)
_COLLECTED, _NAMED = 20, 64
"""A collector's stamp has at least so many characters; prefixes are told apart by so many."""


class Lines:
    """The lines of a block; what a carriage return overwrote is one of its own."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._bytes = np.frombuffer(data, dtype=np.uint8)
        newline = self._bytes == _NEWLINE
        ends = np.flatnonzero(newline | (self._bytes == _RETURN) if b"\r" in data else newline)
        if data and not data.endswith(b"\n"):
            ends = np.append(ends, len(data))
        self.start = np.zeros(len(ends), dtype=np.int64)
        self.start[1:] = ends[:-1] + 1
        self.end: I64 = ends
        self.number = np.arange(len(ends), dtype=np.int64)
        """Of each line, how many line ends stand before it."""
        if b"\r" in data:
            self.number = np.searchsorted(np.flatnonzero(newline), self.start)
        self.count = int(self.number[-1]) + 1 if len(ends) else 0
        """How many there are, those with carriage returns once."""
        self.first = np.searchsorted(self.number, self.number)
        """Of each, the first that no line end parts from it."""
        self.overwritten: Mask = np.zeros(len(ends), dtype=np.bool_)
        """Whether a later one of the same stands in its place, which is not blank."""
        if b"\r" in data:
            self.overwritten = self._overwritten()

    def _overwritten(self) -> Mask:
        black = np.append(0, np.cumsum(self._bytes > _BLANK))
        full = np.flatnonzero(black[self.end] > black[self.start])
        last = np.full(self.count, -1, dtype=np.int64)
        last[self.number[full]] = full  # of those with one number the last is kept
        found: Mask = np.arange(len(self.end)) < last[self.number]
        return found

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

    def found(self, anchors: Any) -> I64:
        """int64[n]: the lines, none too long, in which something is found."""
        places = np.array([match.start() for match in anchors.finditer(self._data)], dtype=np.int64)
        lines = np.unique(np.searchsorted(self.start, places, side="right") - 1)
        found: I64 = lines[self.end[lines] - self.start[lines] <= LONGEST]
        return found

    def stamped(self) -> tuple[I64, I64]:
        """The lines with what looks like a stamp, and at which column its date begins."""
        places = candidates(self._bytes)
        line = np.searchsorted(self.start, places, side="right") - 1
        line, first = np.unique(line, return_index=True)
        column = places[first] - self.start[line]
        near = column < 2 * 96
        return line[near], np.maximum(column[near], 0)

    def prefixes(self, lines: I64, columns: I64) -> I64:
        """int64[n]: a number for what stands before a column of each line, equal where that is equal; behind the stamp
        of a collector, which comes first, what follows it counts too."""
        collected = columns <= 1
        start = self.start[lines] + np.where(collected, _COLLECTED, 0)
        length = np.minimum(np.where(collected, _NAMED, columns), self.end[lines] - start)
        total = np.zeros(len(lines), dtype=np.uint64)
        longest = int(length.max(initial=0))
        for at in range(min(longest, _NAMED)):
            inside = length > at
            value = self._bytes[np.where(inside, start + at, 0)].astype(np.uint64) + np.uint64(1)
            total = np.where(inside, total * _PRIME + value, total)
        return total.view(np.int64)

    def braces(self) -> I64:
        """int64[n]: the lines that begin with a brace, and those in which one and a quotation mark stand near the
        begin."""
        full = np.flatnonzero(self.end > self.start)
        begin: I64 = full[self._bytes[self.start[full]] == _BRACE]
        if b'{"' not in self._data:
            return begin
        places = np.flatnonzero((self._bytes[:-1] == _BRACE) & (self._bytes[1:] == _QUOTE))
        line, first = np.unique(np.searchsorted(self.start, places, side="right") - 1, return_index=True)
        return np.union1d(begin, line[places[first] - self.start[line] < LONGEST_PREFIX])
