"""Lines that differ in their digits only, read as columns.

A line written by a program is a template: the same keys in the same order, the same names, and numbers of mostly the
same length. A template is made from the shape of one line, which an ordinary parser has read (`line_shapes`). Another
line is of that template if all its bytes are the same but for digits that stand where digits were, and for the letters
of an insertId. So what it means is certain; any odder line is left to the ordinary parser.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from goodput_cli.arrays import I64, Characters, Mask, Words
from goodput_cli.events.columnar.block import Block
from goodput_cli.events.columnar.eight_digits import DIGITS, KEEP_FIRST, digit_values, not_digits, number
from goodput_cli.events.columnar.line_shapes import LineShape, Slot, learn_shape
from goodput_cli.events.columnar.numbers import END_SECOND, FIRST_SECOND, FRACTION_DIGITS, Numerals
from goodput_cli.events.envelope import INSERT_ID, TIMESTAMP

_SIX, _TOP = 0x06, 0xF0
_PLAIN = np.array([0x20 <= code < 0x7F and chr(code) not in '"\\' for code in range(256)])
"""By character: whether it stands for itself in a text of JSON."""


@dataclass(frozen=True)
class Wrapping:
    """The envelopes around n records: the name of the log, and uint8[n, width], timestamps and insertIds."""

    log_name: str
    stamps: Characters
    ids: Characters


@dataclass(frozen=True)
class Columns:
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


class Template:
    """One template. The line is a head of fixed length, a fraction of 1 to 8 digits if there is one, and a tail."""

    def __init__(self, shape: LineShape) -> None:
        line, record, slots = shape.line, shape.record, shape.slots
        head_end, tail_start = shape.fraction or (len(line), len(line))
        self.head, self.tail = head_end, len(line) - tail_start
        self.has_fraction = shape.fraction is not None
        self._in_head = [slot for slot in slots if slot.stop > 0]
        self._in_tail = [slot for slot in slots if slot.stop <= 0]
        self._log_name = shape.log_name
        self._keys = frozenset(record)
        self._constants = {key: value for key, value in record.items() if key not in {slot.path[-1] for slot in slots}}
        self._head_checks = _Checks(line[:head_end], self._in_head, 0)
        tail = line[tail_start:]
        self._tail_words = -(-len(tail) // DIGITS)
        self._tail_checks = _Checks(tail, self._in_tail, self._tail_words * DIGITS - len(tail))

    def match(self, block: Block, rows: I64) -> Columns | None:
        """Those of the lines that are of this template; None if none is."""
        length = block.length[rows]
        fixed = self.head + self.tail
        fits = (length > fixed) & (length <= fixed + FRACTION_DIGITS) if self.has_fraction else length == fixed
        rows, length = _chosen(fits, rows, length)
        if not len(rows):
            return None
        start = block.start[rows]
        grid = block.grid(start, self._head_checks.words)
        fits = self._head_checks.fits(grid) & self._tail_checks.fits(self._tail_grid(block, start + length))
        rows, start, length = _chosen(fits, rows, start, length)
        if not len(rows):
            return None
        grid = grid if len(rows) == len(grid) else grid[fits]
        return self._read(block, grid, rows, start, length - fixed)

    def _tail_grid(self, block: Block, end: I64) -> Words:
        if self._tail_words == 0:
            return np.empty((len(end), 0), dtype=np.uint64)
        return block.grid(end - self._tail_words * DIGITS, self._tail_words)

    def _read(self, block: Block, grid: Words, rows: I64, start: I64, digits: I64) -> Columns | None:
        """The columns of lines that fit but for what a word cannot show: numbers that begin with 0, fractions, letters
        that mean something in JSON."""
        good = np.ones(len(rows), dtype=np.bool_)
        numbers: dict[str, Numerals] = {}
        texts: dict[tuple[str, ...], Characters] = {}
        for slot, base, characters in self._places(block, grid, start, start + digits + (self.head + self.tail)):
            if slot.text:
                texts[slot.path] = characters
                if slot.letters:
                    good &= _PLAIN[characters].all(axis=1)
                continue
            if slot.stop - slot.start > 1:
                good &= characters[:, 0] != ord("0")
            whole = _whole(block, base, slot)
            fraction = None
            if slot.has_fraction:
                fraction, valid = _fraction(block, start + self.head, digits)
                good &= valid & (whole >= FIRST_SECOND) & (whole < END_SECOND)
            numbers[slot.path[-1]] = Numerals(whole, fraction)
        if not good.all():
            return self.match(block, rows[good])  # rare, and the others are good the second time
        return self._columns(rows, numbers, texts)

    def _places(self, block: Block, grid: Words, start: I64, end: I64) -> Iterator[tuple[Slot, I64, Characters]]:
        """Each slot with the places it counts from and its characters, uint8[n, width]."""
        head = grid.view(np.uint8).reshape(len(start), -1)
        for slot in self._in_head:
            yield slot, start, head[:, slot.start : slot.stop]
        if self._in_tail:
            width = self._tail_words * DIGITS
            tail = self._tail_grid(block, end).view(np.uint8).reshape(len(start), -1)
            for slot in self._in_tail:
                yield slot, end, tail[:, width + slot.start : width + slot.stop]

    def _columns(self, rows: I64, numbers: dict[str, Numerals], texts: dict[tuple[str, ...], Characters]) -> Columns:
        if self._log_name is None:
            own = {path[-1]: characters for path, characters in texts.items()}
            return Columns(rows, self._keys, self._constants, numbers, own)
        own = {path[-1]: characters for path, characters in texts.items() if len(path) > 1}
        wrapping = Wrapping(self._log_name, texts[(TIMESTAMP,)], texts[(INSERT_ID,)])
        return Columns(rows, self._keys, self._constants, numbers, own, wrapping)


class _Checks:
    """What tells whether texts are like a learnt one, word by word.

    ahead: how many characters of the first word stand before the text.
    """

    def __init__(self, text: bytes, slots: list[Slot], ahead: int) -> None:
        self.words = -(-(ahead + len(text)) // DIGITS)
        self._want, self._literal, self._sixes, self._tops = ([0] * self.words for _ in range(4))
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
        """bool[n]: which texts, uint64[n, words], are alike."""
        wrong = np.zeros(len(grid), dtype=np.uint64)
        for at, (want, literal) in enumerate(zip(self._want, self._literal, strict=True)):
            values = grid[:, at] ^ np.uint64(want)
            wrong |= values & np.uint64(literal)
            if self._tops[at]:
                digits = values & np.uint64(self._tops[at] | self._tops[at] >> 4)
                wrong |= (digits + np.uint64(self._sixes[at])) & np.uint64(self._tops[at])
                wrong |= digits & np.uint64(self._tops[at])
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


def _chosen(fits: Mask, *columns: I64) -> tuple[I64, ...]:
    return columns if fits.all() else tuple(column[fits] for column in columns)


def _whole(block: Block, start: I64, slot: Slot) -> I64:
    """The whole number of a slot whose characters are known to be digits."""
    width = slot.stop - slot.start
    first = min(width, DIGITS)
    value = number(_ending_at(block, start + slot.stop, first))
    if width > DIGITS:
        value += number(_ending_at(block, start + (slot.stop - DIGITS), width - DIGITS)) * 10**DIGITS
    return value


def _ending_at(block: Block, end: I64, width: int) -> Words:
    """Values of the `width` digits before each place, as the last of eight."""
    return digit_values(block.words(end - DIGITS), ~KEEP_FIRST[DIGITS - width])


def _fraction(block: Block, at: I64, digits: I64) -> tuple[I64, Mask]:
    """Fractions of 1 to 8 digits in 10^-8, and whether they are digits indeed."""
    values = digit_values(block.words(at), KEEP_FIRST[digits])
    return number(values), not_digits(values) == 0


def learn(line: bytes) -> Template | None:
    """The template of a line; None if it has nothing to gain by one, or is too odd to have one."""
    shape = learn_shape(line)
    return None if shape is None else Template(shape)


class Templates:
    """The templates seen so far, those of the last block first."""

    MOST = 32
    TRIES = 12
    """How many templates may be learnt, or looked for in vain, in one block."""
    FEW = 16
    """So few lines are not worth another template."""

    def __init__(self) -> None:
        self._known: list[Template] = []

    def split(self, block: Block) -> tuple[list[Columns], I64]:
        """The lines of a block by template, and the positions of those of none, in order."""
        rest = np.arange(len(block), dtype=np.int64)
        found: list[tuple[Template, Columns]] = []
        for template in self._known:
            if len(rest) == 0:
                break
            rest = _try(template, block, rest, found)
        odd: list[int] = []
        for _ in range(self.TRIES):
            if len(rest) < self.FEW:
                break
            before, middle = len(rest), len(rest) // 2  # a log's first lines are its least ordinary ones
            learnt = learn(block.line(int(rest[middle])))
            if learnt is not None:
                rest = _try(learnt, block, rest, found)
            if len(rest) == before:
                odd.append(int(rest[middle]))
                rest = np.delete(rest, middle)
        self._remember([template for template, columns in found if len(columns.rows) >= self.FEW])
        return [columns for _, columns in found], np.union1d(rest, np.array(odd, dtype=np.int64)) if odd else rest

    def _remember(self, used: list[Template]) -> None:
        self._known = [*used, *(one for one in self._known if one not in used)][: self.MOST]


def _try(template: Template, block: Block, rest: I64, found: list[tuple[Template, Columns]]) -> I64:
    columns = template.match(block, rest)
    if columns is None:
        return rest
    found.append((template, columns))
    if len(columns.rows) == len(rest):
        return rest[:0]
    left = np.ones(len(block), dtype=np.bool_)
    left[columns.rows] = False
    return rest[left[rest]]
