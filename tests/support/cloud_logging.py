"""Shared helpers of the tests of Cloud Logging: the library called through the ordinary client, with its own cache."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.api.analyze import analyze
from goodput_cli.events.read import read_events
from goodput_cli.events.schema import EventLog
from goodput_cli.sources import cloud_logging_pages
from goodput_cli.sources.base import SourceFilter
from tests.support.logging_server import LoggingServer

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
