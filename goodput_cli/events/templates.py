"""Lines that differ in their digits only, read as columns.

A line written by a program is a template: the same keys in the same order, the same names, and numbers of mostly the
same length. A template is learnt from one line, which an ordinary parser has read. Another line is of that template if
all its bytes are the same but for digits that stand where digits were; so what it means is certain, whatever odd
input there is in the world: that is some other line's, and the ordinary parser's to judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from goodput_cli.events.block import LONGEST, Block
from goodput_cli.events.envelope import PAYLOAD
from goodput_cli.events.numerals import END_SECOND, FIRST_SECOND, FRACTION_DIGITS, MAX_DIGITS, Numerals
from goodput_cli.events.swar import DIGITS, KEEP_FIRST, Words, digit_values, mask_of, not_digits, number

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

_STRING = rb'"[^"\\\x00-\x1f]*"'
_FIELD = re.compile(
    rb"[{,][ \t]*(?P<key>" + _STRING + rb")[ \t]*:[ \t]*"
    rb"(?:(?P<text>" + _STRING + rb")|(?P<whole>\d+)(?:\.(?P<fraction>\d+))?|true|false)[ \t]*"
)
_TIMESTAMP = re.compile(rb'"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"')
_HEAD_AT_LEAST = DIGITS
_SIX, _TOP = 0x06, 0xF0


@dataclass(frozen=True)
class Slot:
    """Where digits may differ. start, stop: places in the line. stretches: whether a fraction follows at `stop`."""

    key: str
    start: int
    stop: int
    text: bool = False
    stretches: bool = False


@dataclass(frozen=True)
class Columns:
    """n lines of one template.

    constants: what is the same in all of them. numbers: columns of numbers. texts: uint8[n, width], the characters of
    timestamps. rows: their positions in the block.
    """

    rows: I64
    keys: frozenset[str]
    constants: dict[str, Any]
    numbers: dict[str, Numerals]
    texts: dict[str, NDArray[np.uint8]]


class Template:
    """One template. The line is a head of fixed length, a fraction of 1 to 8 digits if there is one, and a tail."""

    def __init__(
        self, line: bytes, record: dict[str, Any], slots: list[Slot], fraction: tuple[int, int] | None
    ) -> None:
        head_end, tail_start = fraction or (len(line), len(line))
        self.head, self.tail = head_end, len(line) - tail_start
        self.stretches = fraction is not None
        self._slots = slots
        self._keys = frozenset(record)
        self._constants = {key: value for key, value in record.items() if key not in {slot.key for slot in slots}}
        self._want, self._literal, self._sixes, self._tops = _checks(line[:head_end], slots)
        tail = line[tail_start:]
        self._tail_words = -(-len(tail) // DIGITS)
        self._tail_want, self._tail_literal, _, _ = _checks(tail.rjust(self._tail_words * DIGITS, b"\0"), [])
        for place in range(self._tail_words * DIGITS - len(tail)):
            self._tail_literal[0] &= ~mask_of(place, place + 1)

    def match(self, block: Block, rows: I64) -> Columns | None:
        """Those of the lines that are of this template; None if none is."""
        length = block.length[rows]
        fixed = self.head + self.tail
        fits = (length > fixed) & (length <= fixed + FRACTION_DIGITS) if self.stretches else length == fixed
        rows, length = _chosen(fits, rows, length)
        if not len(rows):
            return None
        start = block.start[rows]
        grid = block.grid(start, len(self._want))
        fits = self._head_fits(grid) & self._tail_fits(block, start + length)
        rows, start, length = _chosen(fits, rows, start, length)
        if not len(rows):
            return None
        grid = grid if len(rows) == len(grid) else grid[fits]
        return self._read(block, grid, rows, start, length - fixed)

    def _head_fits(self, grid: Words) -> Mask:
        wrong = np.zeros(len(grid), dtype=np.uint64)
        for at, (want, literal) in enumerate(zip(self._want, self._literal, strict=True)):
            values = grid[:, at] ^ np.uint64(want)
            wrong |= values & np.uint64(literal)
            if self._tops[at]:
                wrong |= ((values & ~np.uint64(literal)) + np.uint64(self._sixes[at])) & np.uint64(self._tops[at])
                wrong |= values & np.uint64(self._tops[at])
        return np.asarray(wrong == 0)

    def _tail_fits(self, block: Block, end: I64) -> Mask:
        wrong = np.zeros(len(end), dtype=np.uint64)
        if self._tail_words == 0:
            return np.asarray(wrong == 0)
        grid = block.grid(end - self._tail_words * DIGITS, self._tail_words)
        for at, (want, literal) in enumerate(zip(self._tail_want, self._tail_literal, strict=True)):
            wrong |= (grid[:, at] ^ np.uint64(want)) & np.uint64(literal)
        return np.asarray(wrong == 0)

    def _read(self, block: Block, grid: Words, rows: I64, start: I64, digits: I64) -> Columns | None:
        """The columns of lines that fit but for what a word cannot show: numbers that begin with 0, fractions."""
        good = np.ones(len(rows), dtype=np.bool_)
        numbers: dict[str, Numerals] = {}
        texts: dict[str, NDArray[np.uint8]] = {}
        characters = grid.view(np.uint8).reshape(len(rows), -1)
        for slot in self._slots:
            if slot.text:
                texts[slot.key] = characters[:, slot.start : slot.stop]
                continue
            if slot.stop - slot.start > 1:
                good &= characters[:, slot.start] != ord("0")
            whole = _whole(block, start, slot)
            fraction = None
            if slot.stretches:
                fraction, valid = _fraction(block, start + self.head, digits)
                good &= valid & (whole >= FIRST_SECOND) & (whole < END_SECOND)
            numbers[slot.key] = Numerals(whole, fraction)
        if not good.all():
            return self.match(block, rows[good])  # rare, and the others are good the second time
        return Columns(rows, self._keys, self._constants, numbers, texts)


def _chosen(fits: Mask, *columns: I64) -> tuple[I64, ...]:
    return columns if fits.all() else tuple(column[fits] for column in columns)


def _checks(text: bytes, slots: list[Slot]) -> tuple[list[int], list[int], list[int], list[int]]:
    """Per word of a text: what it should be, the mask of what must be equal, and what shows digits to be none."""
    digits = {at for slot in slots for at in range(slot.start, slot.stop) if 0x30 <= text[at] <= 0x39}
    size = -(-len(text) // DIGITS)
    want, literal, sixes, tops = [0] * size, [0] * size, [0] * size, [0] * size
    for at, character in enumerate(text):
        word, shift = at // DIGITS, 8 * (at % DIGITS)
        if at in digits:
            want[word] |= 0x30 << shift
            sixes[word] |= _SIX << shift
            tops[word] |= _TOP << shift
        else:
            want[word] |= character << shift
            literal[word] |= 0xFF << shift
    return want, literal, sixes, tops


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
    if len(line) > LONGEST:
        return None
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    fields = list(_fields(line))
    if type(record) is not dict or [key for key, _ in fields] != list(record) or PAYLOAD in record:
        return None  # nested, escaped, with a null, a sign or an exponent, with a key twice, or an envelope
    slots: list[Slot] = []
    fractions = [field.span("fraction") for _, field in fields if field["fraction"]]
    if len(fractions) > 1 or any(stop - start > FRACTION_DIGITS for start, stop in fractions):
        return None
    for key, field in fields:
        slots += _slots_of(key, field)
    if not slots or any(not _fits(slot, fractions) for slot in slots):
        return None
    return Template(line, record, slots, fractions[0] if fractions else None)


def _fields(line: bytes) -> Iterator[tuple[str, re.Match[bytes]]]:
    """The fields of an object, up to where it is no longer a plain one."""
    place = 0
    while (field := _FIELD.match(line, place)) is not None:
        yield orjson.loads(field["key"]), field
        place = field.end()
        if line[place : place + 1] == b"}":
            return


def _slots_of(key: str, field: re.Match[bytes]) -> Iterator[Slot]:
    if field["whole"]:
        yield Slot(key, *field.span("whole"), stretches=bool(field["fraction"]))
    elif field["text"] and _TIMESTAMP.fullmatch(field["text"]):
        start, stop = field.span("text")
        yield Slot(key, start + 1, stop - 1, text=True)


def _fits(slot: Slot, fractions: list[tuple[int, int]]) -> bool:
    """Whether a slot can be read: a number of not too many digits, in the head or else in front of the fraction."""
    behind = bool(fractions) and slot.start >= fractions[0][1]
    wide = not slot.text and slot.stop - slot.start > MAX_DIGITS
    return not behind and not wide and slot.stop >= _HEAD_AT_LEAST


class Templates:
    """The templates seen so far, those of the last block first."""

    MOST = 32
    LESSONS = 12
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
        for _ in range(self.LESSONS):
            if len(rest) < self.FEW:
                break
            before, middle = len(rest), len(rest) // 2  # a log's first lines are its least ordinary ones
            lesson = learn(block.line(int(rest[middle])))
            if lesson is not None:
                rest = _try(lesson, block, rest, found)
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
