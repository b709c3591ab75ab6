"""The bytes of a protobuf message, as far as reading them in bulk needs it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

VARINT, EIGHT_BYTES, LENGTH, FOUR_BYTES = 0, 1, 2, 5


class Field(NamedTuple):
    """One field of a message: its number, its wire type, and where its content stands (`start` up to `end`)."""

    number: int
    wire: int
    start: int
    end: int


class UnusualBytesError(Exception):
    """The bytes are not what is expected here; the ordinary parser may still read them."""


def fields(data: bytes, start: int, end: int) -> Iterator[Field]:
    """The fields of a message that stands from `start` up to `end`. Raises UnusualBytesError."""
    at = start
    while at < end:
        tag, at = _varint(data, at, end)
        wire = tag & 7
        if wire == VARINT:
            begin, (_, at) = at, _varint(data, at, end)
        elif wire == LENGTH:
            size, begin = _varint(data, at, end)
            at = begin + size
        elif wire in (EIGHT_BYTES, FOUR_BYTES):
            begin, at = at, at + (8 if wire == EIGHT_BYTES else 4)
        else:
            raise UnusualBytesError
        if at > end:
            raise UnusualBytesError
        yield Field(tag >> 3, wire, begin, at)


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """A number and the place after it."""
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise UnusualBytesError


@cache
def page_class() -> Any:
    """A message class like ListLogEntriesResponse that leaves its entries as bytes: they are read in bulk."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="goodput/page.proto", package="goodput", syntax="proto3")
    message = file.message_type.add(name="Page")
    message.field.add(name="entries", number=1, type=kinds.TYPE_BYTES, label=kinds.LABEL_REPEATED)
    message.field.add(name="next_page_token", number=2, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("goodput.Page"))
