"""A block of lines as arrays: where each line begins and how long it is, and any part of it as 64-bit words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
import orjson
from numpy.typing import NDArray

from goodput_cli.arrays import I64, Words, blocks
from goodput_cli.events.columnar.eight_digits import DIGITS, WORD
from goodput_cli.sources.base import Record
from goodput_cli.sources.blocks import PIECE

_NEWLINE = ord("\n")
LONGEST = 1024
"""Lines longer than this are not read as columns."""


class Block:
    """Lines of a text; `data` ends anywhere.

    start, length: int64[n], of each line, without its line end.
    """

    def __init__(self, data: bytes) -> None:
        # Words may reach beyond the end of a line, and so beyond that of the last one.
        self._text = data + bytes(LONGEST)
        self._size = len(data)
        self._bytes = np.frombuffer(self._text, dtype=np.uint8)
        ends = self._line_ends()
        if data and not data.endswith(b"\n"):
            ends = np.append(ends, len(data))
        self.start = np.zeros(len(ends), dtype=np.int64)
        self.start[1:] = ends[:-1] + 1
        self.length: I64 = ends - self.start

    def _line_ends(self) -> I64:
        """Where they are."""
        characters = self._bytes[: self._size]
        parts = blocks(self._size, PIECE)
        found = [np.flatnonzero(characters[start:stop] == _NEWLINE) + start for start, stop in parts]
        return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.start)

    def grid(self, at: I64, words: int) -> Words:
        """uint64[n, words]: so many words from each place on, which may be up to LONGEST characters from the end."""
        width = words * DIGITS
        if not width:
            return np.empty((len(at), 0), dtype=WORD)
        windows: NDArray[Any] = np.ndarray((len(self._bytes) - width,), f"V{width}", self._bytes.data, strides=(1,))
        grid: Words = windows[at].view(WORD).reshape(len(at), words)
        return grid

    def line(self, row: int) -> bytes:
        """The text of a line."""
        start = int(self.start[row])
        return self._text[start : start + int(self.length[row])]

    def text(self, rows: I64) -> bytes:
        """Some lines, each with a line end."""
        if len(rows) == len(self):
            return self._text[: self._size]
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
