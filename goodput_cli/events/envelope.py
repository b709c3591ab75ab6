"""The Cloud Logging entry around a payload, as a sink writes it to a bucket and `gcloud logging read` prints it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import I64, Characters
from goodput_cli.events.timestamps import ParsedTimestamps, TimestampReader

PAYLOAD, TIMESTAMP, INSERT_ID, LOG_NAME = "jsonPayload", "timestamp", "insertId", "logName"
TEXT_PAYLOAD, MESSAGE = "textPayload", "message"
"""Keys with a line of text: an entry's own payload, or the message that a logger wrote as JSON."""
GENERIC_NAMES = frozenset({"logging.googleapis.com/diagnostic"})
"""Keys of records that a writer's own library adds without information about a job: Google's client library writes its
name and version once per process."""
PRINTED_AS_YAML = "an entry printed as YAML"
NO_STAMP = -1
"""Replaces a missing or invalid timestamp of an envelope."""

_LABELS, _RESOURCE, _LOGGER, _NODE = "labels", "resource", "python_logger", ("instance_id", "pod_name")
Identity = tuple[str, str, str]
Writer = tuple[str, str]
"""(node, process): see `EventTable.writers`."""


_CLOCK = TimestampReader(UTC)


def entry_timestamps(entries: Sequence[Mapping[str, Any]]) -> I64:
    """Return the timestamps of entries, ns since 1970 UTC, or NO_STAMP. Cloud Logging always writes a zone."""
    return _timestamps(_CLOCK.read_column([entry.get(TIMESTAMP, "") for entry in entries]))


def character_timestamps(characters: Characters) -> I64:
    """Return `entry_timestamps` of timestamps of one length, given as uint8[n, length]."""
    return _timestamps(_CLOCK.read_grid(characters, lambda: _texts(characters)))


def identities(entries: Sequence[Mapping[str, Any]], times: I64) -> list[Identity | None]:
    """Return (log name, timestamp, insertId) of each entry, equal for every copy of it; None without an insertId.

    times: those of `entry_timestamps`. The timestamp is written as ns, so that two spellings of one time are equal.
    """
    ids: list[Any] = [entry.get(INSERT_ID) for entry in entries]
    if set(map(type, ids)) != {str} or "" in ids or bool((times == NO_STAMP).any()):
        return [_identity(entry, stamp) for entry, stamp in zip(entries, times.tolist(), strict=True)]
    logs = [str(entry.get(LOG_NAME, "")) for entry in entries]
    return list(zip(logs, map(str, times.tolist()), ids, strict=True))


def identities_of(log_name: str, stamps: I64, times: Characters, ids: Characters) -> list[Identity]:
    """Return `identities` of entries of one log, with their timestamps and insertIds as characters, uint8[n, width]."""
    named = list(map(str, stamps.tolist()))
    for at in np.flatnonzero(stamps == NO_STAMP).tolist():
        named[at] = times[at].tobytes().decode()
    return [(log_name, time, insert_id) for time, insert_id in zip(named, _texts(ids), strict=True)]


def named_writer(entry: Mapping[str, Any]) -> Writer | None:
    """Return the writer of an entry from its labels and those of its resource: the instance and pod, and the logger.
    Each recorder of a process has its own logger."""
    resource = labels_in(entry.get(_RESOURCE))
    node = [str(resource.get(key) or "") for key in _NODE]
    logger = str(labels_in(entry).get(_LOGGER) or "")
    return ("/".join(node) if any(node) else "", logger) if logger or any(node) else None


def numbered_writer(insert_id: object) -> Writer | None:
    """Return the writer of an entry without named labels: writers number their entries, as `624b-17`."""
    prefix = insert_id.rpartition("-")[0] if isinstance(insert_id, str) else ""
    return ("", prefix) if prefix else None


def numbered_writers(ids: Characters) -> tuple[list[Writer | None], NDArray[np.intp]]:
    """Return `numbered_writer` of many insertIds, uint8[n, width]: the writers, and the index of the writer of each."""
    dashes = ids == ord("-")
    if not dashes.any():
        return [None], np.zeros(len(ids), dtype=np.intp)
    behind = np.where(dashes.any(axis=1), ids.shape[1] - 1 - np.argmax(dashes[:, ::-1], axis=1), 0)
    prefixes = np.where(np.arange(ids.shape[1]) < behind[:, None], ids, 0).astype(np.uint8)
    heads = np.append(True, (prefixes[1:] != prefixes[:-1]).any(axis=1))  # a process writes many consecutive lines
    texts = (row.tobytes().rstrip(b"\0").decode("ascii") for row in prefixes[heads])
    return [("", text) if text else None for text in texts], np.cumsum(heads) - 1


def labels_in(holder: object) -> Mapping[str, Any]:
    """Return the labels of an entry or a resource; empty if it has none."""
    labels = holder.get(_LABELS) if isinstance(holder, dict) else None
    return labels if isinstance(labels, dict) else {}


def _timestamps(instants: ParsedTimestamps) -> I64:
    return np.where(instants.good, instants.ns, NO_STAMP)


def _texts(characters: Characters) -> list[str]:
    """Return ASCII texts of one length, given as uint8[n, length]."""
    width = characters.shape[1]
    joined = characters.tobytes().decode("ascii")
    return [joined[at : at + width] for at in range(0, len(joined), width)]


def _identity(entry: Mapping[str, Any], stamp: int) -> Identity | None:
    insert_id = entry.get(INSERT_ID)
    if not isinstance(insert_id, str) or not insert_id:
        return None
    time = str(stamp) if stamp != NO_STAMP else str(entry.get(TIMESTAMP, ""))
    return str(entry.get(LOG_NAME, "")), time, insert_id
