"""The Cloud Logging entry around a payload: what a sink writes to a bucket and `gcloud logging read` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import I64, Characters
from goodput_cli.events.timestamps import Instants, TimestampReader

PAYLOAD, TIMESTAMP, INSERT_ID, LOG_NAME = "jsonPayload", "timestamp", "insertId", "logName"
TEXT_PAYLOAD, MESSAGE = "textPayload", "message"
"""Where a line of text stands: an entry's own payload, or what a logger wrote as JSON."""
SAYS_NOTHING = frozenset({"logging.googleapis.com/diagnostic"})
"""Keys of records that a writer's own library adds, and that say nothing about a job: Google's client library writes
its name and version once a process."""
PRINTED_AS_YAML = "an entry printed as YAML"
NO_STAMP = -1
"""In place of an envelope's timestamp that is not there, or is none."""

_LABELS, _RESOURCE, _LOGGER, _NODE = "labels", "resource", "python_logger", ("instance_id", "pod_name")
Identity = tuple[str, str, str]
Writer = tuple[str, str]
"""(node, process): see `EventTable.writers`."""


_CLOCK = TimestampReader(UTC)


def stamps_in(entries: Sequence[Mapping[str, Any]]) -> I64:
    """The timestamps of entries, ns since 1970 UTC, or NO_STAMP. Cloud Logging always writes a zone."""
    return _stamps(_CLOCK.read_column([entry.get(TIMESTAMP, "") for entry in entries]))


def stamps_of(characters: Characters) -> I64:
    """The same of timestamps of one length, given as uint8[n, length]."""
    return _stamps(_CLOCK.read_grid(characters, lambda: _texts(characters)))


def identities(entries: Sequence[Mapping[str, Any]], times: I64) -> list[Identity | None]:
    """(log name, timestamp, insertId) of each, equal for every copy of an entry; None without an insertId.

    times: those of `stamps_in`. The timestamp is written as ns, so that two spellings of an instant are equal.
    """
    ids: list[Any] = [entry.get(INSERT_ID) for entry in entries]
    if set(map(type, ids)) != {str} or "" in ids or bool((times == NO_STAMP).any()):
        return [_identity(entry, stamp) for entry, stamp in zip(entries, times.tolist(), strict=True)]
    logs = [str(entry.get(LOG_NAME, "")) for entry in entries]
    return list(zip(logs, map(str, times.tolist()), ids, strict=True))


def identities_of(log_name: str, stamps: I64, times: Characters, ids: Characters) -> list[Identity]:
    """The same of one log's entries, with their timestamps and insertIds as characters, uint8[n, width]."""
    named = list(map(str, stamps.tolist()))
    for at in np.flatnonzero(stamps == NO_STAMP).tolist():
        named[at] = times[at].tobytes().decode()
    return [(log_name, time, insert_id) for time, insert_id in zip(named, _texts(ids), strict=True)]


def named_writer(entry: Mapping[str, Any]) -> Writer | None:
    """Who wrote an entry, as its labels and those of its resource name it: the instance and pod, and the logger, of
    which every recorder of a process has one of its own."""
    resource = labels_in(entry.get(_RESOURCE))
    node = [str(resource.get(key) or "") for key in _NODE]
    logger = str(labels_in(entry).get(_LOGGER) or "")
    return ("/".join(node) if any(node) else "", logger) if logger or any(node) else None


def numbered_writer(insert_id: object) -> Writer | None:
    """The same where nothing is named: writers number their entries, as `624b-17`."""
    prefix = insert_id.rpartition("-")[0] if isinstance(insert_id, str) else ""
    return ("", prefix) if prefix else None


def numbered_writers(ids: Characters) -> tuple[list[Writer | None], NDArray[np.intp]]:
    """The same of many insertIds, uint8[n, width]: writers, and which of them wrote each."""
    dashes = ids == ord("-")
    if not dashes.any():
        return [None], np.zeros(len(ids), dtype=np.intp)
    behind = np.where(dashes.any(axis=1), ids.shape[1] - 1 - np.argmax(dashes[:, ::-1], axis=1), 0)
    prefixes = np.where(np.arange(ids.shape[1]) < behind[:, None], ids, 0).astype(np.uint8)
    heads = np.append(True, (prefixes[1:] != prefixes[:-1]).any(axis=1))  # a process writes many lines in a row
    texts = (row.tobytes().rstrip(b"\0").decode("ascii") for row in prefixes[heads])
    return [("", text) if text else None for text in texts], np.cumsum(heads) - 1


def labels_in(holder: object) -> Mapping[str, Any]:
    """The labels of an entry or a resource; empty where they are none."""
    labels = holder.get(_LABELS) if isinstance(holder, dict) else None
    return labels if isinstance(labels, dict) else {}


def _stamps(instants: Instants) -> I64:
    return np.where(instants.good, instants.ns, NO_STAMP)


def _texts(characters: Characters) -> list[str]:
    """Texts of one length, given as uint8[n, length], all of them ASCII."""
    width = characters.shape[1]
    joined = characters.tobytes().decode("ascii")
    return [joined[at : at + width] for at in range(0, len(joined), width)]


def _identity(entry: Mapping[str, Any], stamp: int) -> Identity | None:
    insert_id = entry.get(INSERT_ID)
    if not isinstance(insert_id, str) or not insert_id:
        return None
    time = str(stamp) if stamp != NO_STAMP else str(entry.get(TIMESTAMP, ""))
    return str(entry.get(LOG_NAME, "")), time, insert_id
