"""A block of lines as arrays: where each line begins and how long it is, and any part of it as 64-bit words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
import orjson
from numpy.typing import NDArray

from goodput_cli.arrays import I64, Words
from goodput_cli.events.columnar.eight_digits import DIGITS
from goodput_cli.sources.base import Record

_NEWLINE = ord("\n")
_WORD = np.dtype("<u8")
LONGEST = 1024
"""Lines longer than this are not read as columns."""


class Block:
    """Lines of a text; `data` ends anywhere.

    start, length: int64[n], of each line, without its line end.
    """

    def __init__(self, data: bytes) -> None:
        # Words may reach beyond the end of a line, and so beyond that of the last one.
        self._bytes = np.frombuffer(data + bytes(LONGEST + DIGITS), dtype=np.uint8)
        ends = np.flatnonzero(self._bytes[: len(data)] == _NEWLINE)
        if data and not data.endswith(b"\n"):
            ends = np.append(ends, len(data))
        self.start = np.zeros(len(ends), dtype=np.int64)
        self.start[1:] = ends[:-1] + 1
        self.length: I64 = ends - self.start
        self._data = data

    def __len__(self) -> int:
        return len(self.start)

    def words(self, at: I64) -> Words:
        """uint64[n]: the eight characters from each place (0 <= place <= end of the text)."""
        windows: NDArray[Any] = np.ndarray((len(self._bytes) - DIGITS,), "V8", self._bytes.data, strides=(1,))
        words: Words = windows[at].view(_WORD)
        return words

    def grid(self, at: I64, words: int) -> Words:
        """uint64[n, words]: so many words from each place on."""
        width = words * DIGITS
        windows: NDArray[Any] = np.ndarray((len(self._bytes) - width,), f"V{width}", self._bytes.data, strides=(1,))
        grid: Words = windows[at].view(_WORD).reshape(len(at), words)
        return grid

    def line(self, row: int) -> bytes:
        """The text of a line."""
        start = int(self.start[row])
        return self._data[start : start + int(self.length[row])]

    def text(self, rows: I64) -> bytes:
        """Some lines, each with a line end."""
        if len(rows) == len(self):
            return self._data
        return b"".join([self.line(row) + b"\n" for row in rows.tolist()])


class LazyRecords(Sequence[Record]):
    """The records of lines that are known to hold one each, parsed when somebody asks.

    inside: the key of the envelope that holds the record; None where there is no envelope.
    """

    def __init__(self, block: Block, rows: I64, inside: str | None = None) -> None:
        self._block, self._rows, self._inside = block, rows, inside

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> Record: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Record]: ...
    def __getitem__(self, at: int | slice) -> Record | Sequence[Record]:
        """A record, or a part of them."""
        if isinstance(at, slice):
            return LazyRecords(self._block, self._rows[at], self._inside)
        return self._parsed(int(self._rows[at]))

    def __iter__(self) -> Iterator[Record]:
        for row in self._rows.tolist():
            yield self._parsed(row)

    def _parsed(self, row: int) -> Record:
        record: Record = orjson.loads(self._block.line(row))
        return record if self._inside is None else record[self._inside]
