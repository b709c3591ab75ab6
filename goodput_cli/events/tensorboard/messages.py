"""The parts of TensorBoard's protocol buffers that say something about time: declared here, parsed by protobuf."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

_FLOAT, _DOUBLE, _INT32, _INT64 = 1, 2, 3, 9
"""`DataType` of tensors."""
_TYPES = {"double": 1, "float": 2, "int64": 3, "int32": 5, "string": 9, "message": 11, "bytes": 12}
_MESSAGES: dict[str, tuple[tuple[str, int, str, bool], ...]] = {
    "Tensor": (
        ("dtype", 1, "int32", False),
        ("tensor_content", 4, "bytes", False),
        ("float_val", 5, "float", True),
        ("double_val", 6, "double", True),
        ("int_val", 7, "int32", True),
        ("int64_val", 10, "int64", True),
    ),
    "Value": (
        ("tag", 1, "string", False),
        ("simple_value", 2, "float", False),
        ("tensor", 8, "Tensor", False),
    ),
    "Summary": (("value", 1, "Value", True),),
    "Event": (
        ("wall_time", 1, "double", False),
        ("step", 2, "int64", False),
        ("file_version", 3, "string", False),
        ("summary", 5, "Summary", False),
    ),
}
_UNPACKED = {_FLOAT: "<f", _DOUBLE: "<d", _INT32: "<i", _INT64: "<q"}


class Scalar(NamedTuple):
    """A value of a tag."""

    tag: str
    value: float


class Event(NamedTuple):
    """What an event says."""

    wall_time: float
    step: int
    opens: bool
    """Whether it is the first of a writer."""
    scalars: tuple[Scalar, ...]


def parse(data: bytes) -> Event | None:
    """The event in a record; None if it is none."""
    event = _event_class()()
    try:
        event.ParseFromString(data)
    except DecodeError:
        return None
    if not math.isfinite(event.wall_time):
        return None
    return Event(event.wall_time, event.step, bool(event.file_version), tuple(_scalars(event)))


def _scalars(event: Any) -> Iterator[Scalar]:
    for value in event.summary.value:
        number = _number(value)
        if number is not None and value.tag:
            yield Scalar(value.tag, number)


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
    file = descriptor_pb2.FileDescriptorProto(name="event_file.proto", package="event_file", syntax="proto2")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, repeated in fields:
            added = message.field.add(name=field, number=number, label=3 if repeated else 1)
            added.type = _TYPES.get(kind, _TYPES["message"])  # type: ignore[assignment]
            if kind in _MESSAGES:
                added.type_name = f".event_file.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("event_file.Event"))
