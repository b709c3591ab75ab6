"""The fast path of JSON lines: splits a block into columns of ordinary lines and the remaining lines.

Lines written by one program follow a template: the same keys in the same order, the same names, and numbers of mostly
the same length. A template is learned from one line that an ordinary parser has read: the positions of its digits, and
the bytes that are the same in all such lines. Another line matches the template if all its bytes are equal, except for
digits at the positions of digits and the letters of an insertId. So its meaning is certain. The ordinary parser reads
all other lines.

Many lines are tested at once against a template, eight characters at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
import orjson
from msgspec import Struct, structs
from numpy.typing import NDArray

from goodput_cli.arrays import I64, Characters, Mask, Words, blocks
from goodput_cli.events.timestamps import INSERT_ID, LOG_NAME, PAYLOAD, TIMESTAMP
from goodput_cli.events.values import (
    DIGITS,
    END_SECOND,
    FIRST_SECOND,
    FRACTION_DIGITS,
    KEEP_FIRST,
    MAX_DIGITS,
    WORD,
    DecimalColumn,
    digit_values,
    from_digits,
    joined_numerals,
    not_digits,
)
from goodput_cli.sources.base import Record
from goodput_cli.sources.blocks import PIECE

LONGEST = 1024
"""Lines longer than this are not read as columns."""
_NEWLINE = ord("\n")


class Block:
    """Lines of a text; `data` ends anywhere.

    first_line: the number of the first line. start, length: int64[n], of each line, without its line end.
    """

    def __init__(self, data: bytes, first_line: int = 1) -> None:
        self.first_line = first_line
        # Words may extend beyond the end of a line, and so beyond the end of the last one.
        self._text = data + bytes(LONGEST)
        self._size = len(data)
        self._bytes = np.frombuffer(self._text, dtype=np.uint8)
        parts = [
            np.flatnonzero(self._bytes[start:stop] == _NEWLINE) + start for start, stop in blocks(self._size, PIECE)
        ]
        ends = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
        if data and not data.endswith(b"\n"):
            ends = np.append(ends, len(data))
        self.start = np.zeros(len(ends), dtype=np.int64)
        self.start[1:] = ends[:-1] + 1
        self.length: I64 = ends - self.start

    def __len__(self) -> int:
        return len(self.start)

    def grid(self, at: I64, words: int) -> Words:
        """Return uint64[n, words]: `words` words from each offset on. An offset may be up to LONGEST characters from
        the end."""
        width = words * DIGITS
        if not width:
            return np.empty((len(at), 0), dtype=WORD)
        windows: NDArray[Any] = np.ndarray((len(self._bytes) - width,), f"V{width}", self._bytes.data, strides=(1,))
        grid: Words = windows[at].view(WORD).reshape(len(at), words)
        return grid

    def line(self, row: int) -> bytes:
        """Return the text of a line."""
        start = int(self.start[row])
        return self._text[start : start + int(self.length[row])]

    def text(self, rows: I64) -> bytes:
        """Return some lines, each with a line end."""
        if len(rows) == len(self):
            return self._text[: self._size]
        places = zip(self.start[rows].tolist(), (self.start[rows] + self.length[rows]).tolist(), strict=True)
        return b"".join([self._text[start:stop] + b"\n" for start, stop in places])


class _LazyRecords(Sequence[Record]):
    """Records of lines that contain one each, parsed on demand.

    inside: the key of the envelope that contains the record; None without an envelope.
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
        """Return a record, or a slice of them."""
        if isinstance(at, slice):
            return _LazyRecords(self._block, self._rows[at], self._inside)
        return self._parsed(int(self._rows[at]))

    def __iter__(self) -> Iterator[Record]:
        for row in self._rows.tolist():
            yield self._parsed(row)

    def _parsed(self, row: int) -> Record:
        record: Record = orjson.loads(self._block.line(row))
        return record if self._inside is None else record[self._inside]


class EnvelopeColumns(Struct, frozen=True):
    """The envelopes around n records: the name of the log, and uint8[n, width], timestamps and insertIds."""

    log_name: str
    stamps: Characters
    ids: Characters

    def take(self, chosen: Mask) -> EnvelopeColumns:
        """Return the chosen envelopes."""
        return structs.replace(self, stamps=self.stamps[chosen], ids=self.ids[chosen])


class Columns(Struct, frozen=True):
    """n lines of one template."""

    block: Block
    rows: I64
    """Their positions in the block."""
    keys: frozenset[str]
    constants: dict[str, Any]
    """Values that are the same in all lines."""
    numbers: dict[str, DecimalColumn]
    texts: dict[str, Characters]
    """uint8[n, width]: the characters of timestamps."""
    wrapping: EnvelopeColumns | None = None
    """The envelopes; None if the lines have none."""

    @property
    def lines(self) -> I64:
        """Return int64[n]: the line numbers in the document."""
        return self.rows + self.block.first_line

    @property
    def records(self) -> Sequence[Record]:
        """Return the records without their envelopes, parsed on demand."""
        return _LazyRecords(self.block, self.rows, None if self.wrapping is None else PAYLOAD)

    @property
    def entries(self) -> Sequence[Record] | None:
        """Return the envelopes with their contents; None if the lines have none."""
        return None if self.wrapping is None else _LazyRecords(self.block, self.rows)

    def take(self, chosen: Mask) -> Columns:
        """Return the chosen lines."""
        return structs.replace(
            self,
            rows=self.rows[chosen],
            numbers={key: one.take(chosen) for key, one in self.numbers.items()},
            texts={key: one[chosen] for key, one in self.texts.items()},
            wrapping=self.wrapping and self.wrapping.take(chosen),
        )


def joined_columns(parts: Sequence[Columns]) -> Columns | None:
    """Return the concatenated lines of one template; None for no lines."""
    if len(parts) < 2:
        return parts[0] if parts else None
    first = parts[0]
    wrapping = first.wrapping
    if wrapping is not None:
        stamps, ids = (np.concatenate([getattr(part.wrapping, name) for part in parts]) for name in ("stamps", "ids"))
        wrapping = structs.replace(wrapping, stamps=stamps, ids=ids)
    return structs.replace(
        first,
        rows=np.concatenate([part.rows for part in parts]),
        numbers={key: joined_numerals([part.numbers[key] for part in parts]) for key in first.numbers},
        texts={key: np.concatenate([part.texts[key] for part in parts]) for key in first.texts},
        wrapping=wrapping,
    )


Path = tuple[str, ...]


class Slot(Struct, frozen=True):
    """A position where lines of one template may differ: digits in place of digits, or any letters."""

    path: Path
    """The keys that lead to the value."""
    start: int
    stop: int
    """Range in the line, start <= i < stop, counted from its end (0 or less) if the slot is after the fraction."""
    text: bool = False
    """True if the characters matter, False if the number that they spell does."""
    letters: bool = False
    """True if any plain characters may be here, not only digits."""
    has_fraction: bool = False
    """True if a fraction follows at `stop`."""


_SIX, _TOP, _ALL = 0x06, 0xF0, (1 << 64) - 1


def words_of(characters: int) -> int:
    """Return how many words contain this number of characters."""
    return -(-characters // DIGITS)


class Checks:
    """Masks that test whether texts match a template.

    ahead: the number of characters of the first word before the text.
    """

    def __init__(self, text: bytes, slots: list[Slot], ahead: int) -> None:
        size = words_of(ahead + len(text)) * DIGITS
        want, literal, sixes, tops = (bytearray(size) for _ in range(4))
        want[ahead : ahead + len(text)], literal[ahead : ahead + len(text)] = text, b"\xff" * len(text)
        for slot in slots:
            begin = 0 if slot.stop > 0 else len(text)
            for at in range(begin + slot.start, begin + slot.stop):
                is_digit = not slot.letters and 0x30 <= text[at] <= 0x39
                if slot.letters or is_digit:
                    want[ahead + at] = literal[ahead + at] = 0
                if is_digit:
                    want[ahead + at], sixes[ahead + at], tops[ahead + at] = ord("0"), _SIX, _TOP
        words = (np.frombuffer(each, dtype=WORD).tolist() for each in (want, literal, sixes, tops))
        self._want, self._literal, self._sixes, self._tops = words

    def fits(self, grid: Words) -> Mask:
        """Return bool[n]: True for texts, uint64[n, words], that match; further words do not matter."""
        wrong = np.zeros(len(grid), dtype=np.uint64)
        for at, (want, literal, tops) in enumerate(zip(self._want, self._literal, self._tops, strict=True)):
            values = grid[:, at] ^ np.uint64(want)
            if tops:  # no byte is 10 or more: adding six more, or none, would show in its upper half
                digits = values & np.uint64(tops | tops >> 4)
                above = digits + np.uint64(self._sixes[at])
                above |= digits
                above &= np.uint64(tops)
                wrong |= above
            if literal != _ALL:
                values &= np.uint64(literal)
            wrong |= values
        return np.asarray(wrong == 0)


_STRING = rb'"[^"\\\x00-\x1f]*"'
_FIELD = re.compile(
    rb"[ \t]*(?P<key>" + _STRING + rb")[ \t]*:[ \t]*"
    rb"(?:(?P<text>" + _STRING + rb")|(?P<whole>\d+)(?:\.(?P<fraction>\d+))?|true|false|(?P<open>\{))[ \t]*"
)
_TIME = re.compile(rb'"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"')
_LETTERS = re.compile(rb'"[ !#-\[\]-~]+"')


def learn(line: bytes) -> JsonTemplate | None:
    """Return the template of a line, as an ordinary parser reads it; None if a template saves nothing or the line is
    too irregular."""
    if len(line) > LONGEST:
        return None
    try:
        entry = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    fields = _fields(line)
    if type(entry) is not dict or fields is None or [path for path, _ in fields] != list(_paths(entry)):
        return None  # it has a list, an escape, a null, a sign, an exponent, or a key twice
    wrapped = PAYLOAD in entry
    record = entry[PAYLOAD] if wrapped else entry
    if type(record) is not dict or any(type(value) is dict for value in record.values()):
        return None
    slots = [slot for path, field in fields for slot in _slots_of(path, field, wrapped)]
    fractions = [field.span("fraction") for path, field in fields if field["fraction"] and _is_in_record(path, wrapped)]
    if len(fractions) > 1 or any(stop - start > FRACTION_DIGITS for start, stop in fractions):
        return None
    fraction = fractions[0] if fractions else None
    # A number must not have too many digits, because its last ones are read together with the characters before them.
    readable = all(slot.text or (slot.stop - slot.start <= MAX_DIGITS and slot.stop >= DIGITS) for slot in slots)
    if not slots or not readable or (wrapped and not _is_whole(entry, slots)):
        return None
    if fraction is not None:
        size = len(line)
        slots = [
            structs.replace(slot, start=slot.start - size, stop=slot.stop - size) if slot.start >= fraction[1] else slot
            for slot in slots
        ]
    return JsonTemplate(line, record, slots, fraction, entry.get(LOG_NAME, "") if wrapped else None)


def _fields(line: bytes) -> list[tuple[Path, re.Match[bytes]]] | None:
    """Return the values in an object with the keys that lead to them; None if one of them is not a plain value."""
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


def _is_in_record(path: Path, wrapped: bool) -> bool:
    """Return True if a value belongs to the record, not to the envelope around it."""
    return not wrapped or path[0] == PAYLOAD


def _slots_of(path: Path, field: re.Match[bytes], wrapped: bool) -> Iterator[Slot]:
    """Yield the slots of a field. In an envelope, only timestamps and the identity may differ."""
    start, stop = field.span("text")
    if field["whole"] and _is_in_record(path, wrapped):
        yield Slot(path, *field.span("whole"), has_fraction=bool(field["fraction"]))
    elif field["text"] and _TIME.fullmatch(field["text"]):
        yield Slot(path, start + 1, stop - 1, text=True)
    elif wrapped and path == (INSERT_ID,) and field["text"] and _LETTERS.fullmatch(field["text"]):
        yield Slot(path, start + 1, stop - 1, text=True, letters=True)


def _is_whole(entry: dict[str, Any], slots: list[Slot]) -> bool:
    """Return True if an envelope has all parts of an identity: a timestamp, an insertId, and a textual log name."""
    paths = {slot.path for slot in slots if slot.text}
    return {(TIMESTAMP,), (INSERT_ID,)} <= paths and type(entry.get(LOG_NAME, "")) is str


_AT_ONCE = 1 << 13
"""Number of lines read together: their words fit into the processor's cache."""
_PLAIN = np.array([0x20 <= code < 0x7F and chr(code) not in '"\\' for code in range(256)])
"""By character: True if JSON strings contain it unescaped."""


class JsonTemplate:
    """A template. The line is a head of fixed length, an optional fraction of 1 to 8 digits, and a tail."""

    def __init__(
        self, line: bytes, record: dict[str, Any], slots: list[Slot], fraction: tuple[int, int] | None,
        log_name: str | None,
    ) -> None:  # fmt: skip
        """record: the parsed line without the envelope. slots: in order. fraction: start and stop of the digits of the
        only fraction in the line; None for no fraction. log_name: of the envelope; None without an envelope."""
        head_end, tail_start = fraction or (len(line), len(line))
        self.head, self.tail = head_end, len(line) - tail_start
        self.has_fraction = fraction is not None
        self._in_head = [slot for slot in slots if slot.stop > 0]
        self._in_tail = [slot for slot in slots if slot.stop <= 0]
        self._log_name = log_name
        self._keys = frozenset(record)
        self._constants = {key: value for key, value in record.items() if key not in {slot.path[-1] for slot in slots}}
        self._head_checks = Checks(line[:head_end], self._in_head, 0)
        self._head_words = words_of(self.head + FRACTION_DIGITS * self.has_fraction)
        self._tail_words = words_of(self.tail)
        self._tail_checks = Checks(line[tail_start:], self._in_tail, self._tail_words * DIGITS - self.tail)

    def match(self, block: Block, rows: I64) -> Columns | None:
        """Return the lines that match this template; None if none does."""
        length = block.length[rows]
        fixed = self.head + self.tail
        fits = (length > fixed) & (length <= fixed + FRACTION_DIGITS) if self.has_fraction else length == fixed
        rows = rows if fits.all() else rows[fits]
        parts = [self._read(block, rows[start:stop]) for start, stop in blocks(len(rows), _AT_ONCE)]
        return joined_columns([part for part in parts if part is not None])

    def _read(self, block: Block, rows: I64) -> Columns | None:
        """Return the matches among a few lines of suitable length. Values of all lines are read, then those that do not
        match are dropped."""
        start, length = block.start[rows], block.length[rows]
        digits, end = length - (self.head + self.tail), start + length
        head = block.grid(start, self._head_words)
        tail = block.grid(end - self._tail_words * DIGITS, self._tail_words)
        good = self._head_checks.fits(head) & self._tail_checks.fits(tail)
        count = int(np.count_nonzero(good))
        if 2 * count < len(rows):
            return self._read(block, rows[good]) if count else None
        numbers: dict[str, DecimalColumn] = {}
        texts: dict[Path, Characters] = {}
        for slot, characters, stop in self._slot_characters(head, tail):
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
            numbers[slot.path[-1]] = DecimalColumn(whole, fraction)
        columns = self._columns(block, rows, numbers, texts)
        if good.all():
            return columns
        return columns.take(good) if good.any() else None

    def _slot_characters(self, head: Words, tail: Words) -> Iterator[tuple[Slot, Characters, int]]:
        """Yield each slot with uint8[n, width], characters that contain it, and the offset where it ends in them."""
        for words, slots, ahead in ((head, self._in_head, 0), (tail, self._in_tail, self._tail_words * DIGITS)):
            characters = words.view(np.uint8).reshape(len(words), -1)
            for slot in slots:
                yield slot, characters, ahead + slot.stop

    def _columns(
        self, block: Block, rows: I64, numbers: dict[str, DecimalColumn], texts: dict[Path, Characters]
    ) -> Columns:
        own, wrapping = texts, None
        if self._log_name is not None:
            own = {path: characters for path, characters in texts.items() if len(path) > 1}
            wrapping = EnvelopeColumns(self._log_name, texts[(TIMESTAMP,)], texts[(INSERT_ID,)])
        by_key = {path[-1]: characters for path, characters in own.items()}
        return Columns(block, rows, self._keys, self._constants, numbers, by_key, wrapping)


def _whole(characters: Characters, stop: int, width: int) -> I64:
    """Return the whole numbers of `width` digits that end at `stop`; the characters are known to be digits."""
    first = min(width, DIGITS)
    value = from_digits(digit_values(_word(characters, stop), ~KEEP_FIRST[DIGITS - first]))
    if width > DIGITS:
        high = digit_values(_word(characters, stop - DIGITS), ~KEEP_FIRST[2 * DIGITS - width])
        value += from_digits(high) * 10**DIGITS
    return value


def _fraction(characters: Characters, at: int, digits: I64) -> tuple[I64, Mask]:
    """Return fractions of 1 to 8 digits in 10^-8, and True for those that consist of digits."""
    values = digit_values(_word(characters, at + DIGITS), KEEP_FIRST.take(digits))
    return from_digits(values), not_digits(values) == 0


def _word(characters: Characters, stop: int) -> Words:
    """Return the eight characters before `stop`. At the start there may be fewer, and only the last ones matter."""
    missing = np.uint64(8 * max(DIGITS - stop, 0))
    word: Words = characters[:, max(stop - DIGITS, 0) : max(stop, DIGITS)].view(WORD)[:, 0]
    return word << missing if missing else word.copy()


class FastJson:
    """Reader of blocks that tries the known templates, those of the last block first."""

    MOST = 32
    TRIES = 12
    """Maximum number of templates that are learned, or tried without success, in one block."""
    FEW = 256
    """Number of lines up to which parsing is faster than learning and trying a template. Small logs come by the
    thousand."""

    def __init__(self) -> None:
        self._known: list[JsonTemplate] = []

    def read(self, block: Block) -> tuple[list[Columns], I64]:
        """Return the lines of a block as columns, one object per template, and the positions of the remaining lines, in
        order."""
        rest = np.arange(len(block), dtype=np.int64)
        found: list[tuple[JsonTemplate, Columns]] = []
        for template in self._known:
            if len(rest) < self.FEW:
                break
            rest = _try(template, block, rest, found)
        odd: list[int] = []
        for _ in range(self.TRIES):
            if len(rest) < self.FEW:
                break
            before, middle = len(rest), len(rest) // 2  # the first lines of a log are its most irregular ones
            learnt = learn(block.line(int(rest[middle])))
            if learnt is not None:
                rest = _try(learnt, block, rest, found)
            if len(rest) == before:
                odd.append(int(rest[middle]))
                rest = np.delete(rest, middle)
        used = [template for template, columns in found if len(columns.rows) >= self.FEW]
        self._known = [*used, *(one for one in self._known if one not in used)][: self.MOST]
        return [columns for _, columns in found], np.sort(np.append(rest, odd).astype(np.int64)) if odd else rest


def _try(template: JsonTemplate, block: Block, rest: I64, found: list[tuple[JsonTemplate, Columns]]) -> I64:
    columns = template.match(block, rest)
    if columns is None:
        return rest
    found.append((template, columns))
    if len(columns.rows) == len(rest):
        return rest[:0]
    left = np.ones(len(block), dtype=np.bool_)
    left[columns.rows] = False
    return rest[left[rest]]
