"""Clients for the tests of buckets and of Cloud Logging: their servers as separate processes, and the library called
through the ordinary clients.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from goodput_cli.api.analyze import analyze
from goodput_cli.events.read import read_events
from goodput_cli.events.schema import NO_STEP, EventLog
from goodput_cli.sources import cloud_logging_pages
from goodput_cli.sources.base import SourceFilter
from tests.support.logs import step
from tests.support.servers import LoggingServer

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Bucket:
    """A running bucket server of ours."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def put(self, name: str, content: bytes, bucket: str = "logs") -> None:
        self._send("PUT", f"/control/object/{bucket}/{quote(name)}", content)

    def delete(self, name: str, bucket: str = "logs") -> None:
        self._send("DELETE", f"/control/object/{bucket}/{quote(name)}")

    def fail(self, match: str, kind: str, **more: Any) -> None:
        """Order a fault, see `bucket_server.Fault`."""
        self._send("POST", "/control/fault", json.dumps({"match": match, "kind": kind, **more}).encode())

    def reset(self) -> None:
        self._send("POST", "/control/reset")

    def asked(self) -> list[str]:
        """The requests so far."""
        answer: list[str] = json.loads(self._send("GET", "/control/log"))
        return answer

    def downloads(self) -> list[str]:
        return [request for request in self.asked() if "alt=media" in request]

    def _send(self, method: str, path: str, body: bytes | None = None) -> bytes:
        request = urllib.request.Request(self.url + path, data=body, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            content: bytes = answer.read()
        return content


@contextlib.contextmanager
def bucket_server() -> Iterator[Bucket]:
    """Our server, stopped at the end; it also stops by itself when this process is gone."""
    command = [sys.executable, str(ROOT / "tests" / "support" / "bucket_server.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield Bucket(int(process.stdout.readline()))
        process.communicate()  # its standard input ends, and with it the process


@contextlib.contextmanager
def emulator(port: int) -> Iterator[str]:
    """The package gcp-storage-emulator with an empty bucket `logs`; the URL is its `STORAGE_EMULATOR_HOST`."""
    options = ["start", "--host", "127.0.0.1", f"--port={port}", "--in-memory", "--default-bucket=logs", "--quiet"]
    process = subprocess.Popen([sys.executable, "-c", _UNTIL_ORPHANED, *options], stdin=subprocess.PIPE)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_for(f"{url}/storage/v1/b/logs/o")
        yield url
    finally:
        process.terminate()
        process.communicate()


_UNTIL_ORPHANED = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
from gcp_storage_emulator.__main__ import main
main(sys.argv[1:])
"""


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except urllib.error.HTTPError:
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def log_lines(*numbers: int, job: str = "j") -> bytes:
    """A log of these steps, one line each."""
    return b"".join(json.dumps(step(number, number, job)).encode() + b"\n" for number in numbers)


def read_steps(log: EventLog) -> list[int]:
    """The steps of a log, as they came."""
    return [number for number in log.table.step.tolist() if number != NO_STEP]


def goodput(arguments: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the command in a separate process."""
    return subprocess.run(
        [sys.executable, "-m", "goodput_cli", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        check=False,
        timeout=60,
    )


# --- Shared helpers of the tests of Cloud Logging.

LOG = "cloud-logging:///goodput_j"


@contextmanager
def logging_server(monkeypatch: pytest.MonkeyPatch, folder: Path, running: LoggingServer) -> Iterator[LoggingServer]:
    """The running server, empty, as what the environment names; with an empty cache, and waits of milliseconds."""
    running.reset()
    monkeypatch.setenv("GOODPUT_LOGGING_ENDPOINT", running.endpoint)
    monkeypatch.setenv("GOODPUT_CACHE_DIR", str(folder / "cache"))
    for name in ("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    hurry(monkeypatch)
    yield running


def hurry(monkeypatch: pytest.MonkeyPatch, *, deadline: float = 10.0) -> None:
    """Short waits."""
    monkeypatch.setattr(
        cloud_logging_pages, "PATIENCE", replace(cloud_logging_pages.PATIENCE, first=0.01, longest=0.1, altogether=0.5)
    )
    monkeypatch.setattr(cloud_logging_pages, "DEADLINE", deadline)


def read(*uris: str, job: str | None = "j", notices: list[str] | None = None, **wanted: Any) -> EventLog:
    """The events of sources; Cloud Logging by default."""
    notice = None if notices is None else notices.append
    return read_events(uris or (LOG,), wanted=SourceFilter(job, **wanted), notice=notice)


def answer(*sources: str, **options: Any) -> tuple[int, dict[str, int], int]:
    """Return the values that must be equal, to the nanosecond: goodput, badput by category, window."""
    analysis = analyze(list(sources), **{"job_name": "j", **options})
    badput = {f"{share.category}:{share.label}": share.ns for share in analysis.badput}
    return analysis.goodput.ns, badput, analysis.window.ns


def filters(server: LoggingServer) -> list[str]:
    """The filters of the requests since the last look."""
    return [request["filter"] for request in server.requests()]
