"""Lines that differ in their digits only, read as columns.

A line written by a program is a template: the same keys in the same order, the same names, and numbers of mostly the
same length. A template is made from the shape of one line, which an ordinary parser has read (`line_shapes`). Another
line is of that template if all its bytes are the same but for digits that stand where digits were, and for the letters
of an insertId. So what it means is certain; any odder line is left to the ordinary parser.

The shape of a line: where its digits stand, and what is the same in all lines like it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson
from msgspec import Struct, structs

from goodput_cli.arrays import I64, Characters, Mask, Words, blocks
from goodput_cli.events.columnar import (
    DIGITS,
    END_SECOND,
    FIRST_SECOND,
    FRACTION_DIGITS,
    KEEP_FIRST,
    LONGEST,
    MAX_DIGITS,
    WORD,
    Block,
    Checks,
    Columns,
    Numerals,
    Path,
    Slot,
    Wrapping,
    digit_values,
    joined_columns,
    not_digits,
    number,
    words_of,
)
from goodput_cli.events.envelope import INSERT_ID, LOG_NAME, PAYLOAD, TIMESTAMP

_STRING = rb'"[^"\\\x00-\x1f]*"'
_FIELD = re.compile(
    rb"[ \t]*(?P<key>" + _STRING + rb")[ \t]*:[ \t]*"
    rb"(?:(?P<text>" + _STRING + rb")|(?P<whole>\d+)(?:\.(?P<fraction>\d+))?|true|false|(?P<open>\{))[ \t]*"
)
_TIME = re.compile(rb'"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"')
_LETTERS = re.compile(rb'"[ !#-\[\]-~]+"')
_HEAD_AT_LEAST = DIGITS


class LineShape(Struct, frozen=True):
    """A line, and what is known of the lines like it."""

    line: bytes
    record: dict[str, Any]
    """What the line says, without the envelope."""
    slots: tuple[Slot, ...]
    """In order."""
    fraction: tuple[int, int] | None
    """Start and stop of the digits of the one fraction in the line, if there is one."""
    log_name: str | None
    """That of the envelope; None: there is no envelope."""


def learn_shape(line: bytes) -> LineShape | None:
    """The shape of a line; None if there is nothing to gain by it, or the line is too odd to have one."""
    if len(line) > LONGEST:
        return None
    try:
        entry = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    fields = _fields(line)
    if type(entry) is not dict or fields is None or [path for path, _ in fields] != list(_paths(entry)):
        return None  # with a list, an escape, a null, a sign or an exponent, or with a key twice
    wrapped = PAYLOAD in entry
    record = entry[PAYLOAD] if wrapped else entry
    if type(record) is not dict or any(type(value) is dict for value in record.values()):
        return None
    slots = [slot for path, field in fields for slot in _slots_of(path, field, wrapped)]
    fractions = [field.span("fraction") for path, field in fields if field["fraction"] and _inside(path, wrapped)]
    if len(fractions) > 1 or any(stop - start > FRACTION_DIGITS for start, stop in fractions):
        return None
    fraction = fractions[0] if fractions else None
    if not slots or not all(_can_be_read(slot) for slot in slots) or (wrapped and not _is_whole(entry, slots)):
        return None
    placed = tuple(_placed(slot, fraction, len(line)) for slot in slots)
    return LineShape(line, record, placed, fraction, entry.get(LOG_NAME, "") if wrapped else None)


def _fields(line: bytes) -> list[tuple[Path, re.Match[bytes]]] | None:
    """The values in an object, with the keys that lead to them; None if one of them is no plain one."""
    if not line.startswith(b"{"):
        return None
    found: list[tuple[Path, re.Match[bytes]]] = []
    path: list[str] = []
    place = 1
    while (field := _FIELD.match(line, place)) is not None:
        key, place = orjson.loads(field["key"]), field.end()
        if field["open"]:
            path.append(key)
            continue
        found.append(((*path, key), field))
        while line[place : place + 1] == b"}":
            place += 1
            if not path:
                return None if line[place:].strip() else found
            path.pop()
        if line[place : place + 1] != b",":
            return None
        place += 1
    return None


def _paths(record: dict[str, Any]) -> Iterator[Path]:
    for key, value in record.items():
        if type(value) is dict and value:
            yield from ((key, *rest) for rest in _paths(value))
        else:
            yield (key,)


def _inside(path: Path, wrapped: bool) -> bool:
    """Whether a value is one of the record's, and not of the envelope around it."""
    return not wrapped or path[0] == PAYLOAD


def _slots_of(path: Path, field: re.Match[bytes], wrapped: bool) -> Iterator[Slot]:
    """Of an envelope around the record, only timestamps and the identity may differ."""
    start, stop = field.span("text")
    if field["whole"] and _inside(path, wrapped):
        yield Slot(path, *field.span("whole"), has_fraction=bool(field["fraction"]))
    elif field["text"] and _TIME.fullmatch(field["text"]):
        yield Slot(path, start + 1, stop - 1, text=True)
    elif wrapped and path == (INSERT_ID,) and field["text"] and _LETTERS.fullmatch(field["text"]):
        yield Slot(path, start + 1, stop - 1, text=True, letters=True)


def _can_be_read(slot: Slot) -> bool:
    """A number must not have too many digits, and its last ones are read with what stands before them."""
    return slot.text or (slot.stop - slot.start <= MAX_DIGITS and slot.stop >= _HEAD_AT_LEAST)


def _is_whole(entry: dict[str, Any], slots: list[Slot]) -> bool:
    """Whether an envelope has what makes an identity: a timestamp, an insertId, and a name of the log that is text."""
    paths = {slot.path for slot in slots if slot.text}
    return {(TIMESTAMP,), (INSERT_ID,)} <= paths and type(entry.get(LOG_NAME, "")) is str


def _placed(slot: Slot, fraction: tuple[int, int] | None, length: int) -> Slot:
    if fraction is None or slot.start < fraction[1]:
        return slot
    return structs.replace(slot, start=slot.start - length, stop=slot.stop - length)


_AT_ONCE = 1 << 13
"""So many lines are read together: their words stay in the processor's cache."""
_PLAIN = np.array([0x20 <= code < 0x7F and chr(code) not in '"\\' for code in range(256)])
"""By character: whether it stands for itself in a text of JSON."""


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
        self._head_checks = Checks(line[:head_end], self._in_head, 0)
        self._head_words = words_of(self.head + FRACTION_DIGITS * self.has_fraction)
        self._tail_words = words_of(self.tail)
        self._tail_checks = Checks(line[tail_start:], self._in_tail, self._tail_words * DIGITS - self.tail)

    def match(self, block: Block, rows: I64) -> Columns | None:
        """Those of the lines that are of this template; None if none is."""
        length = block.length[rows]
        fixed = self.head + self.tail
        fits = (length > fixed) & (length <= fixed + FRACTION_DIGITS) if self.has_fraction else length == fixed
        rows = rows if fits.all() else rows[fits]
        parts = [self._read(block, rows[start:stop]) for start, stop in blocks(len(rows), _AT_ONCE)]
        return joined_columns([part for part in parts if part is not None])

    def _read(self, block: Block, rows: I64) -> Columns | None:
        """The same of a few lines of fitting length. Values are read of all of them: what is none is left out then."""
        start, length = block.start[rows], block.length[rows]
        digits, end = length - (self.head + self.tail), start + length
        head = block.grid(start, self._head_words)
        tail = block.grid(end - self._tail_words * DIGITS, self._tail_words)
        good = self._head_checks.fits(head) & self._tail_checks.fits(tail)
        count = int(np.count_nonzero(good))
        if 2 * count < len(rows):
            return self._read(block, rows[good]) if count else None
        numbers: dict[str, Numerals] = {}
        texts: dict[Path, Characters] = {}
        for slot, characters, stop in self._places(head, tail):
            own = characters[:, stop - (slot.stop - slot.start) : stop]
            if slot.text:
                texts[slot.path] = own.copy()
                if slot.letters:
                    good &= _PLAIN[own].all(axis=1)
                continue
            if slot.stop - slot.start > 1:
                good &= own[:, 0] != ord("0")
            whole = _whole(characters, stop, slot.stop - slot.start)
            fraction = None
            if slot.has_fraction:
                fraction, valid = _fraction(characters, stop + 1, digits)
                good &= valid & (whole >= FIRST_SECOND) & (whole < END_SECOND)
            numbers[slot.path[-1]] = Numerals(whole, fraction)
        columns = self._columns(rows, numbers, texts)
        if good.all():
            return columns
        return columns.take(good) if good.any() else None

    def _places(self, head: Words, tail: Words) -> Iterator[tuple[Slot, Characters, int]]:
        """Each slot with uint8[n, width], characters that it is among, and where in them it stops."""
        for words, slots, ahead in ((head, self._in_head, 0), (tail, self._in_tail, self._tail_words * DIGITS)):
            characters = words.view(np.uint8).reshape(len(words), -1)
            for slot in slots:
                yield slot, characters, ahead + slot.stop

    def _columns(self, rows: I64, numbers: dict[str, Numerals], texts: dict[tuple[str, ...], Characters]) -> Columns:
        if self._log_name is None:
            own = {path[-1]: characters for path, characters in texts.items()}
            return Columns(rows, self._keys, self._constants, numbers, own)
        own = {path[-1]: characters for path, characters in texts.items() if len(path) > 1}
        wrapping = Wrapping(self._log_name, texts[(TIMESTAMP,)], texts[(INSERT_ID,)])
        return Columns(rows, self._keys, self._constants, numbers, own, wrapping)


def _whole(characters: Characters, stop: int, width: int) -> I64:
    """The whole numbers of `width` digits that end at a place; the characters are known to be digits."""
    first = min(width, DIGITS)
    value = number(digit_values(_word(characters, stop), ~KEEP_FIRST[DIGITS - first]))
    if width > DIGITS:
        high = digit_values(_word(characters, stop - DIGITS), ~KEEP_FIRST[2 * DIGITS - width])
        value += number(high) * 10**DIGITS
    return value


def _fraction(characters: Characters, at: int, digits: I64) -> tuple[I64, Mask]:
    """Fractions of 1 to 8 digits in 10^-8, and whether they are digits indeed."""
    values = digit_values(_word(characters, at + DIGITS), KEEP_FIRST.take(digits))
    return number(values), not_digits(values) == 0


def _word(characters: Characters, stop: int) -> Words:
    """The eight characters before a place. At the beginning there may be fewer, of which the last matter."""
    missing = np.uint64(8 * max(DIGITS - stop, 0))
    word: Words = characters[:, max(stop - DIGITS, 0) : max(stop, DIGITS)].view(WORD)[:, 0]
    return word << missing if missing else word.copy()


def learn(line: bytes) -> Template | None:
    """The template of a line; None if it has nothing to gain by one, or is too odd to have one."""
    shape = learn_shape(line)
    return None if shape is None else Template(shape)


class Templates:
    """The templates seen so far, those of the last block first."""

    MOST = 32
    TRIES = 12
    """How many templates may be learnt, or looked for in vain, in one block."""
    FEW = 256
    """So few lines are parsed sooner than a template of theirs is learnt and tried: small logs come by the thousand."""

    def __init__(self) -> None:
        self._known: list[Template] = []

    def split(self, block: Block) -> tuple[list[Columns], I64]:
        """The lines of a block by template, and the positions of those of none, in order."""
        rest = np.arange(len(block), dtype=np.int64)
        found: list[tuple[Template, Columns]] = []
        for template in self._known:
            if len(rest) < self.FEW:
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
        return [columns for _, columns in found], np.sort(np.append(rest, odd).astype(np.int64)) if odd else rest

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
