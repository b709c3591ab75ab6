"""The `.wandb` file of a Weights & Biases run: its frames, and the fields of its records that say something about time.

7 bytes of head, then blocks of 32 KiB as LevelDB's log has them; each record is a message of protocol buffers. A frame
that is cut off, or whose sum is wrong, ends the file: what came before counts.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any

from goodput_cli.vocabulary.when import NS_PER_SECOND

HEAD = b":W&B\xe1\xbe"
"""Of the file; a byte with the version follows."""
_HEAD_BYTES = 7
_BLOCK = 1 << 15
_FRAME = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_MOST = 1 << 28
"""A record that says it is longer is damaged."""
_LONGEST_VALUE = 64
"""A step, a time and a runtime are no longer than so many bytes of JSON."""

HISTORY, STATS, OUTPUT, RUN, EXIT = 2, 7, 13, 17, 18
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """Bytes that are no message."""


class Frames:
    """Cuts the bytes of a file into records as they arrive."""

    def __init__(self) -> None:
        self._rest = b""
        self._at = 0
        """Where the rest begins in the file."""
        self._parts: list[bytes] = []
        self.torn = False
        """Whether the file is damaged from here on."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The records that end in the next bytes of the file."""
        data = self._rest + data
        place = 0
        if self._at == 0:
            if len(data) < _HEAD_BYTES:
                self._rest = data
                return
            place = _HEAD_BYTES
        while (end := self._end(data, place)) is not None:
            body = self._behind_padding(place) + _FRAME.size
            record = self._joined(data[body - 1], data[body:end])
            place = end
            if record is not None:
                yield record
        self._rest = b"" if self.torn else data[place:]
        self._at += place

    def _behind_padding(self, place: int) -> int:
        """Where the next frame begins: no head of one stands across the end of a block."""
        left = _BLOCK - (self._at + place) % _BLOCK
        return place + left if left < _FRAME.size else place

    def _end(self, data: bytes, place: int) -> int | None:
        """Where the frame at a place ends; None where it is not all there, or damaged."""
        place = self._behind_padding(place)
        if self.torn or place + _FRAME.size > len(data):
            return None
        check, size, kind = _FRAME.unpack_from(data, place)
        left = _BLOCK - (self._at + place) % _BLOCK
        end: int = place + _FRAME.size + size
        if not _FULL <= kind <= _LAST or end - place > left:
            self.torn = True
        elif end <= len(data):
            self.torn = zlib.crc32(data[place + _FRAME.size - 1 : end]) != check
        return None if self.torn or end > len(data) else end

    def _joined(self, kind: int, data: bytes) -> bytes | None:
        """The record that a frame ends, if it ends one."""
        if kind in (_FULL, _FIRST):
            self._parts = []
        elif not self._parts:
            return None
        self._parts.append(data)
        if kind in (_FULL, _LAST):
            record = b"".join(self._parts)
            self._parts = []
            return record if len(record) <= _MOST else None
        return None

    @property
    def cut(self) -> bool:
        """Whether the file ends within a record."""
        return self.torn or bool(self._parts) or any(self._rest)


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message: their numbers, with bytes or a whole number each. Raises WireError."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield tag >> 3, value
        elif kind == _BYTES:
            size, at = _varint(data, at)
            if at + size > end:
                raise WireError
            yield tag >> 3, data[at : at + size]
            at += size
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
            if at > end:
                raise WireError
        else:
            raise WireError


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise WireError
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value - (1 << 64) if value >= 1 << 63 else value, at
        shift += 7


def parse(data: bytes, keys: frozenset[str]) -> tuple[int, dict[str, Any]]:
    """The number of a record's kind (`HISTORY`, `RUN` and so on) and what it says that counts here; 0 for kinds that
    say nothing about time. keys: of a history row, those whose values are wanted; the others are there with None.
    Raises WireError."""
    for number, value in fields(data):
        read = _READERS.get(number)
        if read is not None and isinstance(value, bytes):
            return number, read(value)
        if number == HISTORY and isinstance(value, bytes):
            return number, _history(value, keys)
    return 0, {}


def _history(data: bytes, keys: frozenset[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for number, item in fields(data):
        if number == 2 and isinstance(item, bytes):
            for inner, step in fields(item):
                if inner == 1 and isinstance(step, int):
                    values.setdefault("_step", step)
        elif number == 1 and isinstance(item, bytes):
            name, text = _item(item)
            values[name] = _number(text) if name in keys else None
    return values


def _item(data: bytes) -> tuple[str, bytes]:
    name, nested, text = "", [], b""
    for number, value in fields(data):
        if not isinstance(value, bytes):
            continue
        if number == 1:
            name = _text(value)
        elif number == 2:
            nested.append(_text(value))
        elif number == 16:
            text = value
    return name or ".".join(nested), text


def _number(text: bytes) -> float | int | None:
    """The number that a text of JSON is; None for anything else."""
    if len(text) > _LONGEST_VALUE:
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _stamp(data: bytes) -> int:
    """ns since 1970 UTC of a time of protocol buffers."""
    seconds = nanos = 0
    for number, value in fields(data):
        if isinstance(value, int):
            seconds, nanos = (value, nanos) if number == 1 else (seconds, value) if number == 2 else (seconds, nanos)
    return seconds * NS_PER_SECOND + nanos


def _reader(names: dict[int, tuple[str, Any]]) -> Any:
    def read(data: bytes) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for number, value in fields(data):
            if number in names:
                name, convert = names[number]
                if isinstance(value, bytes) != (convert is int):
                    values[name] = convert(value)
        return values

    return read


_READERS: dict[int, Any] = {
    RUN: _reader(
        {1: ("id", _text), 3: ("project", _text), 8: ("name", _text), 13: ("host", _text), 17: ("start", _stamp)}
    ),
    EXIT: _reader({1: ("code", int), 2: ("runtime", int)}),
    OUTPUT: _reader({2: ("time", _stamp), 3: ("text", _text)}),
    STATS: _reader({2: ("time", _stamp)}),
}
