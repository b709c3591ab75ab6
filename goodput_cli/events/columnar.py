"""What lines of one template say, a column a key: numbers as they were written, read without an object per number.

A block of lines is arrays: where each line begins and how long it is, and any part of it as 64-bit words, eight
characters each (little endian: the first is the lowest byte). Many lines are tested at once against the shape of a
template, and eight digits are read at a time: each byte of a word is a lane, and no operation carries into the next
(SWAR, "SIMD within a register").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
import orjson
from msgspec import Struct, structs
from numpy.typing import NDArray

from goodput_cli.arrays import I64, Characters, Mask, Words, blocks
from goodput_cli.events.values import MAX_SECONDS
from goodput_cli.sources.base import Record
from goodput_cli.sources.blocks import PIECE
from goodput_cli.vocabulary.when import NS_PER_SECOND

FRACTION_DIGITS = 8
MAX_DIGITS = 15
"""A whole number of so many digits is exact in a float64."""
FIRST_SECOND, END_SECOND = 1 << 30, 1 << 32
"""Times with a fraction lie between these (2004 to 2106): there a float64 counts in steps of 2^-22 s, and of 2^-21 s
from `_WIDER` (2038) on."""

_UNIT = 10**FRACTION_DIGITS
_WIDER = 1 << 31
_STEPS = 1 << 22
_NS_PER_US = 1000
_EXACT_DIGITS = 100
"""A fraction that is a multiple of this many units has at most six digits."""


class Numerals(Struct, frozen=True):
    """n numbers from 0 up, as digits.

    whole: int64[n], the part before the point. fraction: int64[n], the part behind it in 10^-8, None if there is no
    point; then `whole` has at most MAX_DIGITS digits, else it is FIRST_SECOND <= whole < END_SECOND.
    """

    whole: I64
    fraction: I64 | None = None

    def take(self, chosen: Mask) -> Numerals:
        """Some of them."""
        return Numerals(self.whole[chosen], None if self.fraction is None else self.fraction[chosen])

    def epoch_ns(self) -> tuple[I64, Mask]:
        """What `values.epoch_column` makes of the same numbers: ns int64[n], and which are good."""
        if self.fraction is None:
            good = self.whole < MAX_SECONDS
            return np.where(good, self.whole, 0) * NS_PER_SECOND, good
        ns = self.whole * NS_PER_SECOND + _microseconds(self.whole, self.fraction) * _NS_PER_US
        return ns, np.ones(len(ns), bool)


def joined_numerals(parts: Sequence[Numerals]) -> Numerals:
    """Numbers one behind the other; all of them have a fraction, or none."""
    fractions = [part.fraction for part in parts if part.fraction is not None]
    return Numerals(np.concatenate([part.whole for part in parts]), np.concatenate(fractions) if fractions else None)


def _microseconds(whole: I64, fraction: I64) -> I64:
    """Fractions (10^-8) as microseconds (up to 10^6), as if each number had been a float64 on the way.

    With at most six digits that changes nothing: a float64 of these years is within 0.24 us of what was written.
    """
    micros = fraction // _EXACT_DIGITS
    odd = np.flatnonzero(micros * _EXACT_DIGITS != fraction)
    if len(odd):
        micros[odd] = _through_float(whole[odd], fraction[odd])
    return micros


def _through_float(whole: I64, fraction: I64) -> I64:
    """The nearest multiple of a step (the float64), then the nearest microsecond; both half to even, exactly."""
    steps = np.where(whole < _WIDER, _STEPS, _STEPS // 2)
    scaled = fraction * steps
    below = scaled // _UNIT
    rest = 2 * (scaled - below * _UNIT)
    nearest = below + ((rest > _UNIT) | ((rest == _UNIT) & (below % 2 == 1)))
    micros: I64 = np.rint(nearest * 1_000_000 / steps).astype(np.int64)
    return micros


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


DIGITS = 8
"""How many characters a word holds."""
ZEROS = 0x3030303030303030
"""Eight characters 0."""
WORD = np.dtype("<u8")
_TENS, _BYTE = np.uint64(10), np.uint64(8)
_PAIRS, _TWO_BYTES = np.uint64(0x000000FF000000FF), np.uint64(16)
_HIGH_WEIGHTS, _LOW_WEIGHTS = np.uint64(100 + (1_000_000 << 32)), np.uint64(1 + (10_000 << 32))
_FOUR_BYTES = np.uint64(32)
_SIXES, _TOPS = np.uint64(0x0606060606060606), np.uint64(0xF0F0F0F0F0F0F0F0)


def mask_of(start: int, stop: int) -> int:
    """A word with all bits set in the characters start <= i < stop."""
    return sum(0xFF << (8 * at) for at in range(start, stop))


KEEP_FIRST = np.array([mask_of(0, count) for count in range(DIGITS + 1)], dtype=WORD)
"""By count: a mask of the first so many characters."""


def digit_values(words: Words, kept: Words | np.uint64) -> Words:
    """The value of each character, a byte each, 0 where it is not kept; what is no digit is no byte below 10."""
    return (words ^ np.uint64(ZEROS)) & kept


def not_digits(values: Words) -> Words:
    """Above 0 where a byte of `digit_values` is none of 0 to 9."""
    return (values | (values & ~_TOPS) + _SIXES) & _TOPS


def number(values: Words) -> I64:
    """The numbers that eight bytes of 0 to 9 each spell, the first one worth most."""
    pairs = values * _TENS + (values >> _BYTE)
    high = (pairs & _PAIRS) * _HIGH_WEIGHTS
    low = ((pairs >> _TWO_BYTES) & _PAIRS) * _LOW_WEIGHTS
    return ((high + low) >> _FOUR_BYTES).astype(np.int64)


_NEWLINE = ord("\n")
LONGEST = 1024
"""Lines longer than this are not read as columns."""
Path = tuple[str, ...]


class Slot(Struct, frozen=True):
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
        places = zip(self.start[rows].tolist(), (self.start[rows] + self.length[rows]).tolist(), strict=True)
        return b"".join([self._text[start:stop] + b"\n" for start, stop in places])


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
        size = words_of(ahead + len(text)) * DIGITS
        want, literal, sixes, tops = (bytearray(size) for _ in range(4))
        want[ahead : ahead + len(text)], literal[ahead : ahead + len(text)] = text, b"\xff" * len(text)
        free, digits = _free_places(text, slots)
        for at in free | digits:
            want[ahead + at] = literal[ahead + at] = 0
        for at in digits:
            want[ahead + at], sixes[ahead + at], tops[ahead + at] = ord("0"), _SIX, _TOP
        words = (np.frombuffer(each, dtype=WORD).tolist() for each in (want, literal, sixes, tops))
        self._want, self._literal, self._sixes, self._tops = words

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
