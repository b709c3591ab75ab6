"""Which bytes of a serialised entry are values that differ between entries of one shape.

Entries of a log have few shapes (the same fields and keys, as many bytes), and those of one shape differ only in
their numbers, times and the letters of their texts: the slots. Everything else has to be equal, byte by byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from goodput_cli.sources.cloud_logging.wire import EIGHT_BYTES, LENGTH, VARINT, Field, UnusualBytesError, fields

# numbers of fields in google.logging.v2.LogEntry, google.protobuf.Timestamp, Struct and Value
_INSERT_ID, _PAYLOAD, _TIMESTAMP, _RECEIVED = 4, 6, 9, 24
_KEY, _VALUE = 1, 2
_NUMBER, _TEXT = 2, 3

_ALL_BITS, _MORE_FOLLOWS, _NO_BITS = 0xFF, 0x80, 0x00

Bytes = NDArray[np.uint8]


class SlotKind(Enum):
    """What stands in a slot."""

    INSERT_ID = "insertId"
    TIMESTAMP = "timestamp"
    RECEIVED = "receiveTimestamp"
    NUMBER = "a number of the payload"
    TEXT = "a text of the payload"


@dataclass(frozen=True)
class Slot:
    """Bytes `start` up to `end`. key: of the payload, for numbers and texts."""

    kind: SlotKind
    start: int
    end: int
    key: str = ""


@dataclass(frozen=True)
class Shape:
    """The slots of entries that look like a sample, and uint8[length] of the bits that must equal the sample's."""

    slots: tuple[Slot, ...]
    care: Bytes


def shape_of(sample: bytes) -> Shape | None:
    """The shape of a serialised entry; None if its bytes are unusual (it is for the ordinary parser then)."""
    try:
        slots = _entry_slots(sample)
    except (UnusualBytesError, UnicodeDecodeError):
        return None
    care = np.full(len(sample), _ALL_BITS, dtype=np.uint8)
    for slot in slots:
        care[slot.start : slot.end] = _NO_BITS
        if slot.kind in (SlotKind.TIMESTAMP, SlotKind.RECEIVED):
            _care_for_layout(sample, slot, care)
    return Shape(tuple(slots), care)


def _care_for_layout(sample: bytes, slot: Slot, care: Bytes) -> None:
    """Numbers of a timestamp may differ, but neither in their length nor in what they are."""
    care[slot.start : slot.end] = _ALL_BITS
    for field in fields(sample, slot.start, slot.end):
        if field.wire == VARINT:
            care[field.start : field.end] = _MORE_FOLLOWS


def _entry_slots(sample: bytes) -> list[Slot]:
    slots: list[Slot] = []
    numbers = []
    for field in fields(sample, 0, len(sample)):
        numbers.append(field.number)
        if field.wire != LENGTH or field.start == field.end:
            continue
        if field.number == _INSERT_ID:
            slots.append(Slot(SlotKind.INSERT_ID, field.start, field.end))
        elif field.number == _TIMESTAMP:
            slots.append(Slot(SlotKind.TIMESTAMP, field.start, field.end))
        elif field.number == _RECEIVED:
            slots.append(Slot(SlotKind.RECEIVED, field.start, field.end))
        elif field.number == _PAYLOAD:
            slots += _payload_slots(sample, field)
    single = [number for number in numbers if number in (_INSERT_ID, _TIMESTAMP, _RECEIVED, _PAYLOAD)]
    if len(set(single)) < len(single):
        raise UnusualBytesError  # of a field that is there twice, the parser merges both
    return slots


def _payload_slots(sample: bytes, payload: Field) -> list[Slot]:
    slots: list[Slot] = []
    keys: list[str] = []
    for member in fields(sample, payload.start, payload.end):
        parts = list(fields(sample, member.start, member.end))
        if [part.number for part in parts] != [_KEY, _VALUE]:
            raise UnusualBytesError
        key, value = sample[parts[0].start : parts[0].end].decode(), parts[1]
        keys.append(key)
        kinds = list(fields(sample, value.start, value.end))
        if len(kinds) != 1:
            continue
        if kinds[0].number == _NUMBER and kinds[0].wire == EIGHT_BYTES:
            slots.append(Slot(SlotKind.NUMBER, kinds[0].start, kinds[0].end, key))
        elif kinds[0].number == _TEXT and kinds[0].start < kinds[0].end:
            slots.append(Slot(SlotKind.TEXT, kinds[0].start, kinds[0].end, key))
    if len(set(keys)) < len(keys):
        raise UnusualBytesError  # of a key that is there twice, the last one counts
    return slots
