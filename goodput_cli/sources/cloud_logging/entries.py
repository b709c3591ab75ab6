"""Serialised entries -> records as a sink would have written them (formats: envelopes), many at once.

One entry of a shape is parsed with care; of the others only the slots are taken out, as columns. That is several
times as fast as a walk through each message, and as exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.sources.cloud_logging.query import rfc3339
from goodput_cli.sources.cloud_logging.shapes import Bytes, Shape, SlotKind, shape_of
from goodput_cli.sources.cloud_logging.wire import VARINT, fields

FEW = 8
"""So few entries of one length are parsed one by one."""
MAX_SHAPES = 16
"""How many shapes of one length are tried in one page; entries of further ones are parsed one by one."""

_BITS = 7  # of a number in each byte of a varint
_NS = (0, 10**9, 1)  # of the fields of a timestamp: 1 seconds, 2 nanoseconds

Record = dict[str, Any]
Column = Iterable[Any]


def decode(entries: Sequence[bytes]) -> list[Record]:
    """Records in order, with `insertId`, `logName`, `timestamp` (nine digits, UTC), `resource` and the payload."""
    if len(set(map(len, entries))) == 1:
        return _decode_equally_long(entries)
    by_length: defaultdict[int, list[int]] = defaultdict(list)
    for at, entry in enumerate(entries):
        by_length[len(entry)].append(at)
    decoded: list[Any] = [None] * len(entries)
    for places in by_length.values():
        records = _decode_equally_long([entries[at] for at in places])
        for at, record in zip(places, records, strict=True):
            decoded[at] = record
    return decoded


def parse(entry: bytes) -> Record:
    """The record of one serialised entry."""
    message = _entry_class().FromString(entry)
    record: Record = {
        "insertId": message.insert_id,
        "logName": message.log_name,
        "timestamp": rfc3339(message.timestamp.ToNanoseconds()),
        "resource": {"type": message.resource.type, "labels": dict(message.resource.labels)},
    }
    if message.WhichOneof("payload") == "json_payload":
        record["jsonPayload"] = _dict(message.json_payload)
    else:
        record["textPayload"] = message.text_payload  # the reader reports that it cannot use it
    return record


@cache
def _entry_class() -> Any:
    from google.cloud.logging_v2.types import LogEntry

    return LogEntry.pb()


def _dict(struct: Any) -> Record:
    return {key: _value(value) for key, value in struct.fields.items()}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _dict(value.struct_value)
    if kind == "list_value":
        return [_value(one) for one in value.list_value.values]
    return None if kind in (None, "null_value") else getattr(value, kind)


def _decode_equally_long(entries: Sequence[bytes]) -> list[Record]:
    decoded: list[Any] = [None] * len(entries)
    left = np.arange(len(entries))
    table = np.frombuffer(b"".join(entries), dtype=np.uint8).reshape(len(entries), -1)
    for _ in range(MAX_SHAPES):
        shape = shape_of(entries[left[0]]) if len(left) >= FEW else None
        if shape is None:
            break
        rows = table[left]
        alike = _alike(rows, shape.care)
        if len(left) == len(entries) and alike.all():
            return _records(rows, entries[0], shape)
        for at, record in zip(left[alike].tolist(), _records(rows[alike], entries[left[0]], shape), strict=True):
            decoded[at] = record
        left = left[~alike]
        if not len(left):
            break
    for at in left.tolist():
        decoded[at] = parse(entries[at])
    return decoded


def _alike(rows: Bytes, care: Bytes) -> NDArray[np.bool_]:
    """bool[n]: which of the rows equal the first one in all bits that matter."""
    different = np.bitwise_xor(rows, rows[0])
    different &= care
    alike: NDArray[np.bool_] = ~different.any(axis=1)
    return alike


def _records(rows: Bytes, sample: bytes, shape: Shape) -> list[Record]:
    """The records of entries of one shape; rows uint8[n, length]."""
    first = parse(sample)
    payload = first.get("jsonPayload", {})
    outside: dict[str, Column] = {key: repeat(value) for key, value in first.items()}
    inside: dict[str, Column] = {key: repeat(value) for key, value in payload.items()}
    for slot in shape.slots:
        part = rows[:, slot.start : slot.end]
        if slot.kind is SlotKind.RECEIVED or (part == part[0]).all():
            continue
        if slot.kind is SlotKind.TIMESTAMP:
            outside[slot.kind.value] = _timestamps(part, sample[slot.start : slot.end])
        elif slot.kind is SlotKind.INSERT_ID:
            outside[slot.kind.value] = _texts(part)
        else:
            inside[slot.key] = _numbers(part) if slot.kind is SlotKind.NUMBER else _texts(part)
    content = "jsonPayload" if "jsonPayload" in first else "textPayload"
    outside[content] = _dicts(inside, len(rows)) if content == "jsonPayload" else repeat(first[content], len(rows))
    columns = [outside[key] for key in ("insertId", "logName", "timestamp", "resource", content)]
    return [
        {"insertId": identifier, "logName": name, "timestamp": time, "resource": resource, content: payload}
        for identifier, name, time, resource, payload in zip(*columns, strict=False)
    ]


def _dicts(columns: dict[str, Column], size: int) -> list[Record]:
    """`size` dicts with a value of each column, which may be longer."""
    if not columns:
        return [{} for _ in range(size)]
    keys = tuple(columns)
    rows = islice(zip(*columns.values(), strict=False), size)
    return list(map(dict, map(zip, repeat(keys), rows)))  # faster than a comprehension


def _numbers(part: Bytes) -> list[float]:
    numbers: list[float] = np.ascontiguousarray(part).view("<f8")[:, 0].tolist()
    return numbers


def _texts(part: Bytes) -> list[str]:
    width = part.shape[1]
    data = part.tobytes()
    starts = range(0, len(data), width)
    if data.isascii():
        text = data.decode("ascii")
        return [text[at : at + width] for at in starts]
    return [data[at : at + width].decode() for at in starts]


def _timestamps(part: Bytes, sample: bytes) -> list[str]:
    """RFC 3339 with nine digits, of serialised timestamps whose numbers stand where they stand in the sample."""
    ns: NDArray[np.int64] = np.zeros(len(part), dtype=np.int64)
    for field in fields(sample, 0, len(sample)):
        if field.wire == VARINT and field.number < len(_NS):
            ns += _varints(part[:, field.start : field.end]) * _NS[field.number]
    return [text + "Z" for text in np.datetime_as_string(ns.view("datetime64[ns]"), unit="ns").tolist()]


def _varints(part: Bytes) -> NDArray[np.int64]:
    shifts = np.arange(part.shape[1], dtype=np.int64) * _BITS
    values: NDArray[np.int64] = ((part.astype(np.int64) & 0x7F) << shifts).sum(axis=1)
    return values
