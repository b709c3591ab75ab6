"""Following a log in Cloud Logging: new and late entries, without duplicates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from goodput_cli.api.watch import WatchedLog
from goodput_cli.sources import follow as following
from tests.support.clouds import read_steps
from tests.support.servers import LoggingServer, entry, steps


@pytest.fixture(scope="module")
def running() -> Iterator[LoggingServer]:
    with LoggingServer() as started:
        yield started


@pytest.fixture
def server(running: LoggingServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LoggingServer:
    running.reset()
    monkeypatch.setattr(following, "REMOTE_SECONDS", 0.0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("GOODPUT_LOGGING_ENDPOINT", running.endpoint)
    return running


def look(log: WatchedLog) -> list[int]:
    log.look()
    return read_steps(log.log())


def line(step: int, seconds: float) -> dict[str, object]:
    return {"job_name": "j", "step_count": step, "step_start_time": 1_767_225_600 + seconds}


@pytest.mark.parametrize("use_cache", [True, False])
def test_new_and_late_entries_come_once(server: LoggingServer, use_cache: bool) -> None:
    server.add(*steps(6_000))
    log = WatchedLog(["cloud-logging://"], job_name="j", use_cache=use_cache)
    assert look(log) == list(range(6_000))
    first = len(server.requests())
    assert look(log) == list(range(6_000))
    assert len(server.requests()) < first  # the last hour, not all of it
    now = 1e9  # long after the first poll
    server.add(entry(line(30_000, 30_000), 30_000, "new", received=now))
    server.add(entry(line(25_000, 100.5), 100.5, "late", received=now))
    assert sorted(look(log)) == [*range(6_000), 25_000, 30_000]
    assert sorted(look(log)) == [*range(6_000), 25_000, 30_000]
    assert len(log.log().table) == 6_000 + 3


def test_fault_is_reported_and_next_poll_continues(server: LoggingServer) -> None:
    server.add(*steps(10))
    said: list[str] = []
    log = WatchedLog(["cloud-logging://"], job_name="j", use_cache=False, notice=said.append)
    assert look(log) == list(range(10))
    server.add(entry(line(10, 11.5), 11.75, "more", received=1e9))
    server.fault("PERMISSION_DENIED")
    assert look(log) == list(range(10))
    assert said[-1].endswith("(retrying)")
    assert look(log) == list(range(11))
