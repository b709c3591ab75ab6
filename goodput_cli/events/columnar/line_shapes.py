"""The shape of a line: where its digits stand, and what is the same in all lines like it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import orjson

from goodput_cli.events.columnar.block import LONGEST
from goodput_cli.events.columnar.eight_digits import DIGITS
from goodput_cli.events.columnar.numbers import FRACTION_DIGITS, MAX_DIGITS
from goodput_cli.events.envelope import INSERT_ID, LOG_NAME, PAYLOAD, TIMESTAMP

_STRING = rb'"[^"\\\x00-\x1f]*"'
_FIELD = re.compile(
    rb"[ \t]*(?P<key>" + _STRING + rb")[ \t]*:[ \t]*"
    rb"(?:(?P<text>" + _STRING + rb")|(?P<whole>\d+)(?:\.(?P<fraction>\d+))?|true|false|(?P<open>\{))[ \t]*"
)
_TIME = re.compile(rb'"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"')
_LETTERS = re.compile(rb'"[ !#-\[\]-~]+"')
_HEAD_AT_LEAST = DIGITS

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


@dataclass(frozen=True)
class LineShape:
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
    return replace(slot, start=slot.start - length, stop=slot.stop - length)
