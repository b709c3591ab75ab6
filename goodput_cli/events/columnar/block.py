"""A block of lines as arrays: where each line begins and how long it is, and any part of it as 64-bit words.

Test many lines at once against a learnt line shape, eight characters (one 64-bit word) at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import orjson
from numpy.typing import NDArray

from goodput_cli.arrays import I64, Mask, Words, blocks
from goodput_cli.events.columnar.columns import DIGITS, WORD
from goodput_cli.sources.base import Record
from goodput_cli.sources.blocks import PIECE

_NEWLINE = ord("\n")
LONGEST = 1024
"""Lines longer than this are not read as columns."""
Path = tuple[str, ...]


@dataclass(frozen=True)
class Slot:
    """Where lines of one shape may differ: digits where digits are, or any letters."""

    path: Path
    """The keys that lead to the value."""
    start: int
    stop: int
    """Places in the line, start <= i < stop; counted from its end (0 or less) where the slot is behind the fraction."""
    text: bool = False
    """Whether the characters count, and not the number that they spell."""
    letters: bool = False
    """Whether any plain characters may stand there, not only digits."""
    has_fraction: bool = False
    """Whether a fraction follows at `stop`."""


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


_SIX, _TOP, _ALL = 0x06, 0xF0, (1 << 64) - 1


def words_of(characters: int) -> int:
    """How many words hold so many characters."""
    return -(-characters // DIGITS)


class Checks:
    """Masks that test whether texts have the shape of a learnt one.

    ahead: how many characters of the first word stand before the text.
    """

    def __init__(self, text: bytes, slots: list[Slot], ahead: int) -> None:
        size = words_of(ahead + len(text))
        self._want, self._literal, self._sixes, self._tops = ([0] * size for _ in range(4))
        free, digits = _free_places(text, slots)
        for at, character in enumerate(text):
            word, shift = (at + ahead) // DIGITS, 8 * ((at + ahead) % DIGITS)
            if at in digits:
                self._want[word] |= 0x30 << shift
                self._sixes[word] |= _SIX << shift
                self._tops[word] |= _TOP << shift
            elif at not in free:
                self._want[word] |= character << shift
                self._literal[word] |= 0xFF << shift

    def fits(self, grid: Words) -> Mask:
        """bool[n]: which texts, uint64[n, words], are alike; further words do not matter."""
        wrong = np.zeros(len(grid), dtype=np.uint64)
        for at, (want, literal, tops) in enumerate(zip(self._want, self._literal, self._tops, strict=True)):
            values = grid[:, at] ^ np.uint64(want)
            if tops:  # no byte from 10 on, which six more, or none, would show in its upper half
                digits = values & np.uint64(tops | tops >> 4)
                above = digits + np.uint64(self._sixes[at])
                above |= digits
                above &= np.uint64(tops)
                wrong |= above
            if literal != _ALL:
                values &= np.uint64(literal)
            wrong |= values
        return np.asarray(wrong == 0)


def _free_places(text: bytes, slots: list[Slot]) -> tuple[set[int], set[int]]:
    """The places of a text where any letter may stand, and those where any digit may."""
    free: set[int] = set()
    digits: set[int] = set()
    for slot in slots:
        places = range(slot.start, slot.stop) if slot.stop > 0 else range(len(text) + slot.start, len(text) + slot.stop)
        if slot.letters:
            free.update(places)
        else:
            digits.update(at for at in places if 0x30 <= text[at] <= 0x39)
    return free, digits
