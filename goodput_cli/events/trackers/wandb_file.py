"""The `.wandb` file of a Weights & Biases run: its frames, and the fields of its records about time.

7 bytes of head, then blocks of 32 KiB as in LevelDB's log; each record is a message of protocol buffers. The file ends
at a frame that is truncated or has a wrong checksum; all records before it count.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from functools import cache
from typing import Any

from goodput_cli.events.event_files import Messages, message_class
from goodput_cli.events.trackers.runs import is_inside
from goodput_cli.vocabulary.when import NS_PER_SECOND

HEAD = b":W&B\xe1\xbe"
"""The head of the file; a byte with the version follows."""
_HEAD_BYTES = 7
_BLOCK = 1 << 15
_FRAME = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_MOST = 1 << 28
"""Maximum length of a record; a longer one is damaged."""
_LONGEST_VALUE = 64
"""Maximum number of bytes of a step, a time or a runtime in JSON."""

HISTORY, STATS, OUTPUT, RUN, EXIT = 2, 7, 13, 17, 18
ITEM = "item"
"""Kinds of records, by their field numbers."""


class Frames:
    """Splitter of the bytes of a file into records as they arrive."""

    def __init__(self) -> None:
        self._rest = b""
        self._at = 0
        """Offset of the unread rest in the file."""
        self._parts: list[bytes] = []
        self.torn = False
        """True if the file is damaged from here on."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the records that end in the next bytes of the file."""
        data = self._rest + data
        place = 0
        if self._at == 0:
            if len(data) < _HEAD_BYTES:
                self._rest = data
                return
            place = _HEAD_BYTES
        while (end := self._end(data, place)) is not None:
            body = self._after_padding(place) + _FRAME.size
            record = self._joined(data[body - 1], data[body:end])
            place = end
            if record is not None:
                yield record
        self._rest = b"" if self.torn else data[place:]
        self._at += place

    def _after_padding(self, place: int) -> int:
        """Return the start of the next frame: a frame's head never crosses the end of a block."""
        left = _BLOCK - (self._at + place) % _BLOCK
        return place + left if left < _FRAME.size else place

    def _end(self, data: bytes, place: int) -> int | None:
        """Return the end of the frame at an offset; None if it is incomplete or damaged."""
        place = self._after_padding(place)
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
        """Return the record that a frame completes; None otherwise."""
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
        """Return True if the file ends within a record."""
        return self.torn or bool(self._parts) or any(self._rest)


_MESSAGES: Messages = {
    "Time": (("seconds", 1, "int64", False), ("nanos", 2, "int64", False)),
    "Item": (("key", 1, "bytes", False), ("nested_key", 2, "bytes", True), ("value_json", 16, "bytes", False)),
    "Step": (("num", 1, "int64", False),),
    "History": (("item", 1, "Item", True), ("step", 2, "Step", False)),
    "Stats": (("time", 2, "Time", False), ("item", 3, "Measured", True)),
    "Measured": (("key", 1, "bytes", False), ("value_json", 16, "bytes", False)),
    "Output": (("time", 2, "Time", False), ("text", 3, "bytes", False)),
    "Run": (("id", 1, "bytes", False), ("name", 8, "bytes", False), ("host", 13, "bytes", False),
            ("start", 17, "Time", False)),
    "Exit": (("code", 1, "int64", False), ("runtime", 2, "int64", False)),
    "Record": (
        ("history", HISTORY, "History", False), ("stats", STATS, "Stats", False), ("output", OUTPUT, "Output", False),
        ("run", RUN, "Run", False), ("exit", EXIT, "Exit", False),
    ),
}  # fmt: skip


@cache
def _record_class() -> Any:
    return message_class("Record", _MESSAGES)


def parse(data: bytes, keys: frozenset[str]) -> tuple[int, dict[str, Any]]:
    """Return the number of a record's kind (`HISTORY`, `RUN` and so on) and its values; 0 for kinds without times.
    keys: those of a history row whose values are wanted; the other keys have the value None. Raises DecodeError."""
    record = _record_class()()
    record.ParseFromString(data)
    for kind, message in record.ListFields():
        if kind.number == HISTORY:
            return HISTORY, _history(message, keys)
        values = {one.name: _plain(value) for one, value in message.ListFields() if one.name != ITEM}
        return kind.number, values | ({ITEM: _measured(message)} if kind.number == STATS else {})
    return 0, {}


def _measured(message: Any) -> dict[str, float | int]:
    """Return the system metrics in a record."""
    found = {one.key.decode("utf-8", "replace"): _number(one.value_json) for one in message.item}
    return {name: value for name, value in found.items() if value is not None}


def _history(message: Any, keys: frozenset[str]) -> dict[str, Any]:
    values: dict[str, Any] = {"_step": message.step.num} if message.step.HasField("num") else {}
    for item in message.item:
        name = (item.key or b".".join(item.nested_key)).decode("utf-8", "replace")
        values[name] = _number(item.value_json) if name in keys or is_inside(name) else None
    return values


def _number(text: bytes) -> float | int | None:
    """Return the number in a text of JSON; None for other values."""
    if len(text) > _LONGEST_VALUE:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _plain(value: Any) -> int | str:
    """Return a field's text, its whole number, or its time in ns since 1970 UTC."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, int) else int(value.seconds * NS_PER_SECOND + value.nanos)
