"""Serialised `google.protobuf.Struct`s -> dicts, many at once.

The payloads of a log have few shapes, and payloads of one shape differ only in their numbers and in the letters of
their texts. So one payload of a shape is parsed with care, and of the others with equal bytes everywhere else only
the numbers and texts are taken out, as columns: several times as fast as a walk through each message.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

FEW = 8
"""So few payloads are parsed one by one."""
MAX_SHAPES = 16
"""How many shapes of one length are tried in one page; payloads of further shapes are parsed one by one."""

_FIELD, _KEY, _VALUE = 0x0A, 0x0A, 0x12
_NUMBER, _TEXT = 0x11, 0x1A
_NUMBER_BYTES = 8

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Slot:
    """Where the value of a key stands in the bytes of a payload: `start` up to `end`; a number or a text."""

    key: str
    start: int
    end: int
    is_number: bool


class StructDecoder:
    """Decodes payloads; see the module."""

    def decode(self, payloads: Sequence[bytes]) -> list[dict[str, Any]]:
        """The dicts of serialised Structs, in order. Numbers are floats."""
        by_length: defaultdict[int, list[int]] = defaultdict(list)
        for at, payload in enumerate(payloads):
            by_length[len(payload)].append(at)
        decoded: list[Any] = [None] * len(payloads)
        for length, places in by_length.items():
            rows = _decode_equally_long([payloads[at] for at in places], length)
            for at, row in zip(places, rows, strict=True):
                decoded[at] = row
        return decoded


def parse(payload: bytes) -> dict[str, Any]:
    """The dict of one serialised Struct."""
    from google.protobuf.struct_pb2 import Struct

    return _dict(Struct.FromString(payload))


def _dict(struct: Any) -> dict[str, Any]:
    return {key: _value(value) for key, value in struct.fields.items()}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _dict(value.struct_value)
    if kind == "list_value":
        return [_value(one) for one in value.list_value.values]
    return None if kind in (None, "null_value") else getattr(value, kind)


def _decode_equally_long(payloads: list[bytes], length: int) -> list[dict[str, Any]]:
    if len(payloads) < FEW or not length:
        return [parse(payload) for payload in payloads]
    table = np.frombuffer(b"".join(payloads), dtype=np.uint8).reshape(len(payloads), length)
    decoded: list[Any] = [None] * len(payloads)
    left = np.arange(len(payloads))
    for _ in range(MAX_SHAPES):
        if len(left) < FEW:
            break
        alike = left[_alike(table, left, _slots(payloads[left[0]]))]
        for at, row in zip(alike.tolist(), _rows(table[alike], payloads[alike[0]]), strict=True):
            decoded[at] = row
        left = np.setdiff1d(left, alike, assume_unique=True)
    for at in left.tolist():
        decoded[at] = parse(payloads[at])
    return decoded


def _alike(table: Bytes, rows: NDArray[np.int64], slots: Sequence[Slot]) -> NDArray[np.bool_]:
    """bool[n]: which of the rows equal the first one everywhere but in the slots."""
    fixed = np.ones(table.shape[1], dtype=np.bool_)
    for slot in slots:
        fixed[slot.start : slot.end] = False
    part = table[rows][:, fixed]
    alike: NDArray[np.bool_] = (part == part[0]).all(axis=1)
    return alike


def _rows(table: Bytes, sample: bytes) -> Iterator[dict[str, Any]]:
    """The dicts of payloads that differ from the sample only in the slots."""
    first = parse(sample)
    columns: dict[str, Iterable[Any]] = {key: repeat(value, len(table)) for key, value in first.items()}
    for slot in _slots(sample):
        part = table[:, slot.start : slot.end]
        if (part != part[0]).any():
            columns[slot.key] = _numbers(part) if slot.is_number else _texts(part)
    if not columns:
        return (dict(first) for _ in range(len(table)))
    keys = tuple(columns)
    return (dict(zip(keys, row, strict=True)) for row in zip(*columns.values(), strict=True))


def _numbers(part: Bytes) -> list[float]:
    numbers: list[float] = np.ascontiguousarray(part).view("<f8")[:, 0].tolist()
    return numbers


def _texts(part: Bytes) -> list[str]:
    width = part.shape[1]
    text = part.tobytes()
    return [text[at : at + width].decode() for at in range(0, len(text), width)]


def _slots(payload: bytes) -> list[Slot]:
    """The numbers and texts of a Struct, outermost level only. What is written in an unusual way is no slot."""
    slots: list[Slot] = []
    at = 0
    while at < len(payload):
        start, end = _inside(payload, at, _FIELD)
        if start < 0:
            return slots
        at = end
        slot = _slot(payload, start, end)
        if slot is not None:
            slots.append(slot)
    keys = {slot.key for slot in slots}
    return slots if len(keys) == len(slots) else []  # of a key that is there twice, the last one counts


def _slot(payload: bytes, start: int, end: int) -> Slot | None:
    key_start, key_end = _inside(payload, start, _KEY)
    value_start, value_end = _inside(payload, key_end, _VALUE)
    if key_start < 0 or value_start < 0 or value_end != end or value_start >= end:
        return None
    key = payload[key_start:key_end].decode()
    if payload[value_start] == _NUMBER and value_start + 1 + _NUMBER_BYTES == end:
        return Slot(key, value_start + 1, end, True)
    text_start, text_end = _inside(payload, value_start, _TEXT)
    if text_start < 0 or text_end != end or text_end == text_start:
        return None
    return Slot(key, text_start, text_end, False)


def _inside(payload: bytes, at: int, tag: int) -> tuple[int, int]:
    """Start and end of the content of a field with a length, whose tag stands at `at`; (-1, -1) if there is none."""
    if at < 0 or at >= len(payload) or payload[at] != tag:
        return -1, -1
    length = shift = 0
    for place in range(at + 1, min(at + 6, len(payload))):
        length |= (payload[place] & 0x7F) << shift
        shift += 7
        if payload[place] < 0x80:
            return place + 1, place + 1 + length
    return -1, -1
