"""Entries of Cloud Logging -> records as a sink would have written them (formats: envelopes)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from goodput_cli.sources.base import Record


def records_of(entries: Sequence[Any]) -> list[Record]:
    """The records of google.logging.v2.LogEntry messages: `insertId`, `logName`, `timestamp` (nine digits, UTC),
    `resource` and the payload."""
    resources: dict[bytes, Record] = {}  # mostly one, which all of them share
    return [_record(*pair, resources) for pair in zip(entries, _timestamps(entries), strict=True)]


def _record(entry: Any, timestamp: str, resources: dict[bytes, Record]) -> Record:
    record = {"insertId": entry.insert_id, "logName": entry.log_name, "timestamp": timestamp}
    serialised = entry.resource.SerializeToString()
    if serialised not in resources:
        resources[serialised] = {"type": entry.resource.type, "labels": dict(entry.resource.labels)}
    record["resource"] = resources[serialised]
    if entry.HasField("json_payload"):
        record["jsonPayload"] = _object(entry.json_payload)
    else:
        record["textPayload"] = entry.text_payload  # the reader reports that it cannot use it
    return record


def _timestamps(entries: Sequence[Any]) -> list[str]:
    times = [entry.timestamp for entry in entries]
    seconds = np.array([time.seconds for time in times], dtype="datetime64[s]")
    texts = np.datetime_as_string(seconds).tolist()
    return [f"{text}.{time.nanos:09d}Z" for text, time in zip(texts, times, strict=True)]


def _object(struct: Any) -> Record:
    return {key: _value(value) for key, value in struct.fields.items()}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _object(value.struct_value)
    if kind == "list_value":
        return [_value(one) for one in value.list_value.values]
    return None if kind in (None, "null_value") else getattr(value, kind)
