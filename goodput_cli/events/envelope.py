"""The Cloud Logging entry around a payload: what a sink writes to a bucket and `gcloud logging read` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.events.timestamps import TimestampReader

PAYLOAD = "jsonPayload"
NO_STAMP = -1
"""In place of an envelope's timestamp that is not there, or is none."""

Identity = tuple[str, str, str]


class EnvelopeReader:
    """Reads the parts of an entry that count."""

    def __init__(self) -> None:
        self._clock = TimestampReader(UTC)

    def stamps(self, entries: Sequence[Mapping[str, Any]]) -> NDArray[np.int64]:
        """The entries' timestamps, ns since 1970 UTC, or NO_STAMP. Cloud Logging always writes a zone."""
        instants = self._clock.read_column([entry.get("timestamp", "") for entry in entries])
        return np.where(instants.good, instants.ns, NO_STAMP)

    def identities(self, entries: Sequence[Mapping[str, Any]], stamps: NDArray[np.int64]) -> list[Identity | None]:
        """(log name, timestamp, insertId) of each, equal for every copy of an entry; None without an insertId.

        stamps: those of `stamps`. The timestamp is written as ns, so that two spellings of an instant are equal.
        """
        ids: list[Any] = [entry.get("insertId") for entry in entries]
        if set(map(type, ids)) != {str} or "" in ids or bool((stamps == NO_STAMP).any()):
            return [_identity(entry, stamp) for entry, stamp in zip(entries, stamps.tolist(), strict=True)]
        logs = [str(entry.get("logName", "")) for entry in entries]
        return list(zip(logs, map(str, stamps.tolist()), ids, strict=True))


def _identity(entry: Mapping[str, Any], stamp: int) -> Identity | None:
    insert_id = entry.get("insertId")
    if not isinstance(insert_id, str) or not insert_id:
        return None
    time = str(stamp) if stamp != NO_STAMP else str(entry.get("timestamp", ""))
    return str(entry.get("logName", "")), time, insert_id
