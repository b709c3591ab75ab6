"""Cloud Storage: objects that are written once. Never one that grows: the store cannot append, and writing the whole
again and again is quadratic."""

from __future__ import annotations

import os
import time

from ..names import in_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..queues import Item
    from .base import Context
    from .http import Identity

EMULATOR_VARIABLE = "STORAGE_EMULATOR_HOST"
_ENDPOINT = "https://storage.googleapis.com"
_SECONDS, _EARLY_SECONDS, _EARLY = 60.0, 15.0, 600.0
"""Age of an object's first line when it is written: in general, and in the first ten minutes of an attempt."""
_BYTES = 1 << 20
_LINE = 100
"""Bytes of a usual line."""
_EXISTS = 412


class CloudStorage:
    """See `Delivery`. Objects `PREFIX/JOB/RUN_ID.rRANK.000001.jsonl`; one that is there already was written by an
    attempt to send it whose answer was lost."""

    batch_lines = _BYTES // _LINE
    most_lines = 1 << 20
    most_bytes = _BYTES

    def __init__(self, bucket: str, prefix: str, context: Context) -> None:
        self.name = "gs"
        self._bucket = bucket
        folder = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._stem = f"{folder}{in_path(context.job_name)}/{context.run_id}.r{context.rank}"
        self._number = 1
        self._unsure = False
        """Whether the object may be there already."""
        self._began = time.monotonic()
        self._emulator = os.environ.get(EMULATOR_VARIABLE, "")
        self._identity: Identity | None = None

    def latency(self) -> float:
        """Seconds that a line waits for company."""
        return _EARLY_SECONDS if time.monotonic() - self._began < _EARLY else _SECONDS

    def send(self, items: Sequence[Item]) -> Sequence[Item]:
        """Write one object of all lines."""
        from .http import Identity, Refused

        self._identity = self._identity or Identity()
        body = b"".join(item[3] for item in items)
        while True:
            unsure, self._unsure = self._unsure, True
            try:
                self._write(body)
                break
            except Refused as error:
                if error.status == 401:
                    self._identity.forget()
                if error.status != _EXISTS:
                    raise
                if unsure:  # ours: its answer was lost
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
        base = host.rstrip("/") if self._emulator else _ENDPOINT
        name = quote(f"{self._stem}.{self._number:06d}.jsonl", safe="")
        query = f"uploadType=media&ifGenerationMatch=0&name={name}"
        url = f"{base}/upload/storage/v1/b/{quote(self._bucket, safe='')}/o?{query}"
        token = "" if self._emulator or self._identity is None else self._identity.token()
        post(url, body, "application/x-ndjson", token)

    def close(self) -> None:
        """Nothing is open."""
