"""Event files as bytes: their frames, and the protocol buffers in them.

A frame is length, checksum, data, checksum; little-endian, CRC-32C, masked. `framed` writes one.

The parts of TensorBoard's protocol buffers about time are declared here and parsed by protobuf. `message_class`
converts such a declaration for protobuf.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import google_crc32c

from goodput_cli.sources.blocks import MONITOR

_LENGTH, _SUM = struct.Struct("<Q"), struct.Struct("<I")
HEAD = _LENGTH.size + _SUM.size
MAX_BYTES = 1 << 28
"""Maximum length of a record; a longer one is damaged."""


class FileRecord(NamedTuple):
    """A record. data: None if its checksum is wrong."""

    data: bytes | None


class BrokenFrameError(ValueError):
    """Raised for a wrong length: the start of the next record is unknown."""


def begins(data: bytes) -> bool:
    """Return True if bytes begin with the head of a frame."""
    return len(data) >= HEAD and _sum(data[: _LENGTH.size]) == data[_LENGTH.size : HEAD]


def frames(data: bytes) -> Iterator[tuple[FileRecord, int]]:
    """Yield the whole frames at the start of the bytes, each with the offset after it. Raises BrokenFrameError."""
    at = 0
    while len(data) - at >= HEAD:
        length = data[at : at + _LENGTH.size]
        if _sum(length) != data[at + _LENGTH.size : at + HEAD]:
            raise BrokenFrameError
        (size,) = _LENGTH.unpack(length)
        if size > MAX_BYTES:
            raise BrokenFrameError
        end = at + HEAD + size + _SUM.size
        if end > len(data):
            return
        body = data[at + HEAD : at + HEAD + size]
        yield FileRecord(body if _sum(body) == data[end - _SUM.size : end] else None), end
        at = end


def framed(data: bytes) -> bytes:
    """Return a record with its frame."""
    length = _LENGTH.pack(len(data))
    return length + _sum(length) + data + _sum(data)


def _sum(data: bytes) -> bytes:
    plain = google_crc32c.value(data)
    return _SUM.pack((((plain >> 15) | (plain << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


_TYPES = {"double": 1, "float": 2, "int64": 3, "int32": 5, "string": 9, "message": 11, "bytes": 12}
Messages = Mapping[str, tuple[tuple[str, int, str, bool], ...]]
"""Fields by message name: name, number, type or message name, and True if repeated."""
_MESSAGES: Messages = {
    "Tensor": (
        ("dtype", 1, "int32", False),
        ("tensor_content", 4, "bytes", False),
        ("float_val", 5, "float", True),
        ("double_val", 6, "double", True),
        ("int_val", 7, "int32", True),
        ("int64_val", 10, "int64", True),
    ),
    "Value": (
        ("tag", 1, "bytes", False),
        ("simple_value", 2, "float", False),
        ("tensor", 8, "Tensor", False),
        ("metadata", 9, "Metadata", False),
    ),
    "Metadata": (("display_name", 2, "bytes", False),),
    "Summary": (("value", 1, "Value", True),),
    "SourceMetadata": (("writer", 1, "bytes", False),),
    "Event": (
        ("wall_time", 1, "double", False),
        ("source_metadata", 10, "SourceMetadata", False),
        ("step", 2, "int64", False),
        ("file_version", 3, "bytes", False),
        ("summary", 5, "Summary", False),
    ),
}
_UNPACKED = {1: "<f", 2: "<d", 3: "<i", 9: "<q"}
"""Struct formats of tensor contents, by `DataType` (float, double, int32, int64)."""


class Scalar(NamedTuple):
    """A value of a tag."""

    tag: str
    value: float


class FileEvent(NamedTuple):
    """An event of the file."""

    wall_time: float
    step: int
    opens: bool
    """True for the first event of a writer."""
    scalars: tuple[Scalar, ...]


def parse(data: bytes) -> FileEvent | None:
    """Return the event in a record; None if it is not an event."""
    from google.protobuf.message import DecodeError

    event = _event_class()()
    try:
        event.ParseFromString(data)
    except DecodeError:
        return None
    if not math.isfinite(event.wall_time):
        return None
    return FileEvent(event.wall_time, event.step, bool(event.file_version), tuple(_scalars(event)))


def opening(wall_time: float) -> bytes:
    """Return the first record of a file of the monitor. wall_time: s since 1970."""
    event = _event_class()(wall_time=wall_time, file_version=b"brain.Event:2")
    event.source_metadata.writer = MONITOR
    return bytes(event.SerializeToString())


def scalar_event(wall_time: float, step: int, tag: str, value: float, shown: str = "") -> bytes:
    """Return the record of one value. shown: its display name if it differs from the tag. Characters that tags must not
    contain become `_`, as in all writers of event files."""
    event = _event_class()(wall_time=wall_time, step=step)
    written = event.summary.value.add(tag=_NO_TAG.sub("_", tag).lstrip("/").encode(), simple_value=value)
    if shown:
        written.metadata.display_name = shown.encode()
    return bytes(event.SerializeToString())


_NO_TAG = re.compile(r"[^-/\w.]")


def _scalars(event: Any) -> Iterator[Scalar]:
    for value in event.summary.value:
        number = _number(value)
        if number is not None and value.tag:
            yield Scalar(value.tag.decode("utf-8", "replace"), number)


def _number(value: Any) -> float | None:
    if value.HasField("simple_value"):
        return float(value.simple_value)
    if not value.HasField("tensor"):
        return None
    tensor = value.tensor
    for numbers in (tensor.float_val, tensor.double_val, tensor.int_val, tensor.int64_val):
        if len(numbers) == 1:
            return float(numbers[0])
    form = _UNPACKED.get(tensor.dtype)
    content = tensor.tensor_content
    if form is not None and len(content) == struct.calcsize(form):
        return float(struct.unpack(form, content)[0])
    return None


@cache
def _event_class() -> Any:
    return message_class("Event", _MESSAGES)


def message_class(root: str, messages: Messages) -> Any:
    """Return the protobuf class of a declared message."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="event_file.proto", package="event_file", syntax="proto2")
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for field, number, kind, repeated in fields:
            added = message.field.add(name=field, number=number, label=3 if repeated else 1)
            added.type = _TYPES.get(kind, _TYPES["message"])  # type: ignore[assignment]
            if kind in messages:
                added.type_name = f".event_file.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"event_file.{root}"))
