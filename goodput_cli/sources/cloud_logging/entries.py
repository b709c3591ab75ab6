"""Protobuf entries -> records as a sink would have written them (formats: envelopes)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from goodput_cli.sources.cloud_logging.structs import StructDecoder

NS_PER_SECOND = 1_000_000_000
Record = dict[str, Any]


class EntryDecoder:
    """Turns pages into records. Remembers the shapes of payloads and the resources that it has seen."""

    def __init__(self) -> None:
        self._structs = StructDecoder()
        self._resources: dict[bytes, Record] = {}

    def records(self, entries: Sequence[Any]) -> list[Record]:
        """Records with `insertId`, `logName`, `timestamp` (nine digits, UTC), `resource` and the payload."""
        plain = [entry for entry in entries if entry.WhichOneof("payload") == "json_payload"]
        payloads = self._structs.decode([entry.json_payload.SerializePartialToString() for entry in plain])
        stamps = timestamps(plain)
        records = [
            {
                "insertId": entry.insert_id,
                "logName": entry.log_name,
                "timestamp": stamp,
                "resource": self._resource(entry.resource),
                "jsonPayload": payload,
            }
            for entry, stamp, payload in zip(plain, stamps, payloads, strict=True)
        ]
        return records if len(plain) == len(entries) else records + _others(entries)

    def _resource(self, resource: Any) -> Record:
        key = resource.SerializePartialToString()
        known = self._resources.get(key)
        if known is None:
            known = self._resources[key] = {"type": resource.type, "labels": dict(resource.labels)}
        return known


def timestamps(entries: Sequence[Any]) -> list[str]:
    """RFC 3339 of each entry's timestamp, exact to the nanosecond; such texts sort as the instants do."""
    stamps = [entry.timestamp for entry in entries]
    seconds = np.array([stamp.seconds for stamp in stamps], dtype=np.int64)
    ns = np.array([stamp.nanos for stamp in stamps], dtype=np.int64) + seconds * NS_PER_SECOND
    return [text + "Z" for text in np.datetime_as_string(ns.view("datetime64[ns]"), unit="ns").tolist()]


def _others(entries: Sequence[Any]) -> list[Record]:
    """Entries with text or a protobuf message instead of an object: the reader reports that it cannot use them."""
    others = [entry for entry in entries if entry.WhichOneof("payload") != "json_payload"]
    return [
        {"insertId": entry.insert_id, "logName": entry.log_name, "timestamp": stamp, "textPayload": entry.text_payload}
        for entry, stamp in zip(others, timestamps(others), strict=True)
    ]
