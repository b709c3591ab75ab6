"""Google Cloud: Cloud Logging, and objects of Cloud Storage.

Entries of Cloud Logging, written with `entries:write` over HTTPS, are those of ml-goodput-measurement, each with an
`insertId`: a batch that is sent twice counts once. Objects are written once, and never grow: the store cannot append,
and rewriting everything each time has quadratic cost.
"""

from __future__ import annotations

import os
import time

from ..names import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..queues import Item
    from .http import Identity, RequestRefusedError

WRITER = f"goodput-record {__version__}"
ENDPOINT_VARIABLE = "GOODPUT_LOGGING_WRITE_ENDPOINT"
"""Another server, for tests; it gets no credentials."""
_LOGGING = "https://logging.googleapis.com"
_AHEAD_US, _BEHIND_US = 23 * 3600 * 10**6, 29 * 86400 * 10**6
"""Time range of accepted entries. Others get the time of sending; their line keeps its time."""


class CloudLogging:
    """Sink for Cloud Logging; see `Delivery`. project: "" for that of the environment, found with the first batch.
    prefix: of every insertId, unique to this process."""

    most_lines = 1000
    most_bytes = 1 << 20

    def __init__(self, project: str, log_id: str, prefix: str, batch_lines: int, latency: float) -> None:
        self.name = "cloud-logging"
        self.batch_lines = batch_lines
        self._latency = latency
        self._project = project
        self._log_id = log_id
        self._prefix = prefix
        self._endpoint = os.environ.get(ENDPOINT_VARIABLE, "")
        self._identity: Identity | None = None

    def latency(self) -> float:
        """Return the seconds that a line waits for a batch."""
        return self._latency

    def send(self, items: Sequence[Item]) -> Sequence[Item]:
        """Write a batch; return the entries that the server rejected individually."""
        from .http import Identity, RequestRefusedError, post

        self._identity = self._identity or Identity()
        project = self._project or self._identity.project()
        token = "" if self._endpoint else self._identity.token()
        url = f"{self._endpoint or _LOGGING}/v2/entries:write"
        try:
            post(url, self._body(project, items), "application/json", token)
        except RequestRefusedError as error:
            if error.status == 401:
                self._identity.forget()
            refused = [items[at] for at in _refused(error) if at < len(items)]
            if not refused:
                raise
            return refused
        return ()

    def close(self) -> None:
        """Do nothing: no connection is open."""

    def _body(self, project: str, items: Sequence[Item]) -> bytes:
        from json import dumps
        from urllib.parse import quote

        common = {
            "logName": f"projects/{project}/logs/{quote(self._log_id, safe='')}",
            "resource": {"type": "global", "labels": {"project_id": project}},
            "labels": {"writer": WRITER},
            "partialSuccess": True,
        }
        now = time.time_ns() // 1000
        entries = b",".join(self._entry(item, now) for item in items)
        return b'%s,"entries":[%s]}' % (dumps(common).encode()[:-1], entries)

    def _entry(self, item: Item, now: int) -> bytes:
        number, us, _, line = item
        at = us if now - _BEHIND_US < us < now + _AHEAD_US else now
        whole, fraction = divmod(at, 10**6)
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))
        head = f'{{"severity":"INFO","timestamp":"{moment}.{fraction:06d}000Z","insertId":"{self._prefix}{number:09d}"'
        return b'%s,"jsonPayload":%s}' % (head.encode(), line.rstrip())


def _refused(error: RequestRefusedError) -> list[int]:
    """Return the positions in the batch of the rejected entries, from the server's answer; the others were written."""
    import json

    try:
        details = json.loads(error.body)["error"]["details"]
        return sorted({int(at) for detail in details for at in detail.get("logEntryErrors", ())})
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        return []


def known_project() -> str | None:
    """Return the project of the environment; "" if it must be queried; None if there seems to be none.

    It uses no network, because it is called in the program's thread.
    """
    for name in ("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"):
        if os.environ.get(name):
            return os.environ[name]
    home = os.environ.get("CLOUDSDK_CONFIG") or os.path.expanduser("~/.config/gcloud")
    login = os.path.join(home, "application_default_credentials.json")
    if os.environ.get("GOOGLE_APPLICATION_CREDENTIALS") or os.path.exists(login) or _on_google():
        return ""
    return None


def _on_google() -> bool:
    if os.environ.get("GCE_METADATA_HOST"):
        return True
    try:
        with open("/sys/class/dmi/id/product_name", encoding="utf-8", errors="replace") as stream:
            return "Google" in stream.read()
    except OSError:
        return False


EMULATOR_VARIABLE = "STORAGE_EMULATOR_HOST"
_STORAGE = "https://storage.googleapis.com"
_SECONDS, _EARLY_SECONDS, _EARLY = 60.0, 15.0, 600.0
"""Age of an object's first line when it is written: normally, and in the first ten minutes of an attempt."""
_BYTES = 1 << 20
_LINE = 100
"""Bytes of a typical line."""
_EXISTS = 412


class CloudStorage:
    """Sink for Cloud Storage; see `Delivery`. It writes objects `STEM.000001.jsonl`. An existing one was written by an
    earlier attempt to send it, whose answer was lost."""

    batch_lines = _BYTES // _LINE
    most_lines = 1 << 20
    most_bytes = _BYTES

    def __init__(self, bucket: str, stem: str) -> None:
        self.name = "gs"
        self._bucket = bucket
        self._stem = stem
        self._number = 1
        self._unsure = False
        """True if the object may exist already."""
        self._began = time.monotonic()
        self._emulator = os.environ.get(EMULATOR_VARIABLE, "")
        self._identity: Identity | None = None

    def latency(self) -> float:
        """Return the seconds that a line waits for a batch."""
        return _EARLY_SECONDS if time.monotonic() - self._began < _EARLY else _SECONDS

    def send(self, items: Sequence[Item]) -> Sequence[Item]:
        """Write one object with all lines."""
        from .http import Identity, RequestRefusedError

        self._identity = self._identity or Identity()
        body = b"".join(item[3] for item in items)
        while True:
            unsure, self._unsure = self._unsure, True
            try:
                self._write(body)
                break
            except RequestRefusedError as error:
                if error.status == 401:
                    self._identity.forget()
                if error.status != _EXISTS:
                    raise
                if unsure:  # it is ours, and its answer was lost
                    break
                self._unsure = False
                self._number += 1  # another attempt with the same run_id
        self._unsure = False
        self._number += 1
        return ()

    def _write(self, body: bytes) -> None:
        from urllib.parse import quote

        from .http import post

        host = self._emulator if "://" in self._emulator else f"http://{self._emulator}"
        base = host.rstrip("/") if self._emulator else _STORAGE
        name = quote(f"{self._stem}.{self._number:06d}.jsonl", safe="")
        query = f"uploadType=media&ifGenerationMatch=0&name={name}"
        url = f"{base}/upload/storage/v1/b/{quote(self._bucket, safe='')}/o?{query}"
        token = "" if self._emulator or self._identity is None else self._identity.token()
        post(url, body, "application/x-ndjson", token)

    def close(self) -> None:
        """Do nothing: no connection is open."""
