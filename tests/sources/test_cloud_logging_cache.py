"""The cache of Cloud Logging: no entry is read twice, and none is stale."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from goodput_cli.sources.base import ReadContext, SourceFilter
from goodput_cli.sources.cloud_logging import CloudLoggingSource
from tests.support.clouds import LOG, answer, filters, logging_server, read
from tests.support.servers import T0, LoggingServer, entry, steps

HOUR = 3600


@pytest.fixture(scope="module")
def running() -> Iterator[LoggingServer]:
    with LoggingServer() as started:
        yield started


@pytest.fixture
def server(running: LoggingServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LoggingServer]:
    with logging_server(monkeypatch, tmp_path, running) as ready:
        yield ready


@pytest.fixture
def cache(server: LoggingServer) -> Path:
    return Path(os.environ["GOODPUT_CACHE_DIR"])


def files(cache: Path) -> list[Path]:
    return sorted(cache.rglob("*.jsonl.gz"))


def step(number: int, seconds: float, **more: float) -> dict[str, object]:
    payload = {"job_name": "j", "step_count": number, "step_start_time": T0 + seconds}
    return entry(payload, seconds, f"late-{number}", **more)


def entries_read(wanted: SourceFilter | None = None) -> list[str]:
    batches = CloudLoggingSource().read(LOG, ReadContext(lambda _: None, wanted=wanted or SourceFilter("j")))
    return [record["insertId"] for batch in batches for record in getattr(batch, "records", ())]


def test_second_reading_requests_only_the_last_hour(server: LoggingServer) -> None:
    server.add(*steps(9000))
    first = answer(LOG)
    assert len(filters(server)) == 10
    assert answer(LOG) == first
    texts = filters(server)
    assert len(texts) == 1 + 4  # late entries, and an hour of entries
    assert 'timestamp<"2026-01-01T01:30:00.250000000Z" AND receiveTimestamp>=' in texts[0]
    assert all('timestamp>="2026-01-01T01:30:00.250000000Z"' in text for text in texts[1:])


def test_newer_entries_are_found_once(server: LoggingServer) -> None:
    server.add(*steps(5000))
    entries_read()
    server.add(*[step(at, at + 1.5) for at in range(5000, 5010)])
    ids = entries_read()
    assert len(ids) == len(set(ids)) == 5011
    assert sorted(entries_read()) == sorted(ids)


@pytest.mark.parametrize("age", [600, 2 * HOUR])
def test_late_entry_is_found(server: LoggingServer, age: int) -> None:
    server.add(*steps(9000))
    read()
    late = step(9999, 9000 - age, received=time.time() - T0)
    server.add(late)
    ids = entries_read()
    assert ids.count("idlate-9999") == 1
    assert entries_read() == ids


def test_server_without_receive_times_is_supported(server: LoggingServer) -> None:
    server.add(*steps(4500))
    read()
    server.add(step(9999, 100.25))
    server.fault("INVALID_ARGUMENT")
    ids = entries_read()
    assert "idlate-9999" in ids
    assert len(ids) == len(set(ids)) == 4502


def test_result_is_equal_with_and_without_cache(server: LoggingServer) -> None:
    server.add(*steps(5000))
    read()
    server.add(*[step(at, at + 1.5) for at in range(5000, 5010)], step(20_000, 30.25, received=time.time() - T0))
    assert answer(LOG) == answer(LOG, use_cache=False) == answer(LOG)


def test_no_cache_disables_reading_and_writing(server: LoggingServer, cache: Path) -> None:
    server.add(*steps(2000))
    read(use_cache=False)
    assert files(cache) == []
    read()
    filters(server)
    read(use_cache=False)
    assert len(filters(server)) == 3


def test_longer_lookback_reads_missing_entries(server: LoggingServer) -> None:
    server.add(*steps(9000))
    days = (time.time() - T0 - 8000) / 86_400
    assert 900 < len(entries_read(SourceFilter("j", lookback_days=days))) < 1100
    filters(server)
    ids = entries_read()
    assert len(ids) == len(set(ids)) == 9001
    assert any("timestamp<" in text and "receive" not in text for text in filters(server))
    assert 900 < len(entries_read(SourceFilter("j", lookback_days=days))) < 1100


@pytest.mark.parametrize("damage", ["cut", "header", "foreign"])
def test_damaged_cache_is_replaced(server: LoggingServer, cache: Path, damage: str) -> None:
    server.add(*steps(3000))
    right = answer(LOG)
    (path,) = files(cache)
    data = path.read_bytes()
    path.write_bytes({"cut": data[:-50], "header": data[30:], "foreign": b"hello"}[damage])
    assert answer(LOG) == right
    assert answer(LOG) == right


def test_each_job_and_log_has_its_own_cache(server: LoggingServer, cache: Path) -> None:
    server.add(*steps(10), *steps(10, job="k", start=50))
    assert read().table.jobs == ("j",)
    assert read(job="k").table.jobs == ("k",)
    assert read(job=None).table.jobs == ("j", "k")
    assert len(files(cache)) == 3


def test_unusable_cache_folder_is_reported(server: LoggingServer, cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    server.add(*steps(10))
    notices: list[str] = []
    assert len(read(notices=notices).table) == 11
    assert "reading without it" in notices[0]


def test_two_processes_leave_a_complete_cache(server: LoggingServer, cache: Path) -> None:
    server.add(*steps(3000))
    server.fault("SLOW", after=1, times=4, seconds=0.3)
    command = [sys.executable, "-m", "goodput_cli", "analyze", LOG, "-j", "j", "--format", "csv"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    outputs = {process.communicate(timeout=120)[0] for process in processes}
    assert len(outputs) == 1
    ids = entries_read()
    assert len(ids) == len(set(ids)) == 3001
    assert len(files(cache)) == 1
    assert not list(cache.rglob("*.tmp"))
