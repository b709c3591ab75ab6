"""Lines of JSON as columns, a column a key: numbers as they were written, read without an object per number.

A block of lines is arrays: where each line begins and how long it is, and any part of it as 64-bit words, eight
characters each. Which lines become columns is known by `fast_json`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
import orjson
from msgspec import Struct, structs
from numpy.typing import NDArray

from goodput_cli.arrays import I64, Characters, Mask, Words, blocks
from goodput_cli.events.envelope import PAYLOAD
from goodput_cli.events.values import DIGITS, WORD, Numerals, joined_numerals
from goodput_cli.sources.base import Record
from goodput_cli.sources.blocks import PIECE

LONGEST = 1024
"""Lines longer than this are not read as columns."""
_NEWLINE = ord("\n")


class Block:
    """Lines of a text; `data` ends anywhere.

    first_line: the number of the first. start, length: int64[n], of each line, without its line end.
    """

    def __init__(self, data: bytes, first_line: int = 1) -> None:
        self.first_line = first_line
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
        places = zip(self.start[rows].tolist(), (self.start[rows] + self.length[rows]).tolist(), strict=True)
        return b"".join([self._text[start:stop] + b"\n" for start, stop in places])


class _LazyRecords(Sequence[Record]):
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
            return _LazyRecords(self._block, self._rows[at], self._inside)
        return self._parsed(int(self._rows[at]))

    def __iter__(self) -> Iterator[Record]:
        for row in self._rows.tolist():
            yield self._parsed(row)

    def _parsed(self, row: int) -> Record:
        record: Record = orjson.loads(self._block.line(row))
        return record if self._inside is None else record[self._inside]


class Wrapping(Struct, frozen=True):
    """The envelopes around n records: the name of the log, and uint8[n, width], timestamps and insertIds."""

    log_name: str
    stamps: Characters
    ids: Characters

    def take(self, chosen: Mask) -> Wrapping:
        """Some of them."""
        return structs.replace(self, stamps=self.stamps[chosen], ids=self.ids[chosen])


class Columns(Struct, frozen=True):
    """n lines of one template."""

    block: Block
    rows: I64
    """Their positions in the block."""
    keys: frozenset[str]
    constants: dict[str, Any]
    """What is the same in all of them."""
    numbers: dict[str, Numerals]
    texts: dict[str, Characters]
    """uint8[n, width]: the characters of timestamps."""
    wrapping: Wrapping | None = None
    """The envelopes, if they have some."""

    @property
    def lines(self) -> I64:
        """int64[n]: their numbers in the document."""
        return self.rows + self.block.first_line

    @property
    def records(self) -> Sequence[Record]:
        """What they say, without the envelopes; parsed when somebody asks."""
        return _LazyRecords(self.block, self.rows, None if self.wrapping is None else PAYLOAD)

    @property
    def entries(self) -> Sequence[Record] | None:
        """The envelopes with what is in them, if they have some."""
        return None if self.wrapping is None else _LazyRecords(self.block, self.rows)

    def take(self, chosen: Mask) -> Columns:
        """Some of the lines."""
        return structs.replace(
            self,
            rows=self.rows[chosen],
            numbers={key: one.take(chosen) for key, one in self.numbers.items()},
            texts={key: one[chosen] for key, one in self.texts.items()},
            wrapping=self.wrapping and self.wrapping.take(chosen),
        )


def joined_columns(parts: Sequence[Columns]) -> Columns | None:
    """Lines of one template, one part behind the other; None if there are none."""
    if len(parts) < 2:
        return parts[0] if parts else None
    first = parts[0]
    wrappings = [part.wrapping for part in parts if part.wrapping is not None]
    return structs.replace(
        first,
        rows=np.concatenate([part.rows for part in parts]),
        numbers={key: joined_numerals([part.numbers[key] for part in parts]) for key in first.numbers},
        texts={key: np.concatenate([part.texts[key] for part in parts]) for key in first.texts},
        wrapping=_joined_wrappings(wrappings) if wrappings else None,
    )


def _joined_wrappings(parts: Sequence[Wrapping]) -> Wrapping:
    stamps, ids = (np.concatenate([getattr(part, name) for part in parts]) for name in ("stamps", "ids"))
    return structs.replace(parts[0], stamps=stamps, ids=ids)
