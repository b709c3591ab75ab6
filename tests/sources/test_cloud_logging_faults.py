"""Possible faults while Cloud Logging is read. Each test backs a row of the fault matrix in docs/sources.md."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import accumulate, repeat
from pathlib import Path

import pytest

from goodput_cli.cli.main import run
from goodput_cli.errors import SourceError
from tests.support.clouds import LOG, filters, hurry, logging_server, read
from tests.support.commands import LONG_ENOUGH, until
from tests.support.servers import LoggingServer, steps


@pytest.fixture(scope="module")
def running() -> Iterator[LoggingServer]:
    with LoggingServer() as started:
        yield started


@pytest.fixture
def server(running: LoggingServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LoggingServer]:
    with logging_server(monkeypatch, tmp_path, running) as ready:
        yield ready


@pytest.mark.parametrize("code", ["UNAVAILABLE", "INTERNAL", "ABORTED", "DEADLINE_EXCEEDED", "UNKNOWN", "GARBAGE"])
@pytest.mark.parametrize("after", [0, 1])
def test_failed_request_is_retried_without_loss(server: LoggingServer, code: str, after: int) -> None:
    server.add(*steps(2500))
    server.fault(code, after=after, times=2)
    assert len(read().table) == 2501
    assert len(server.requests()) == 5


def test_exhausted_quota_is_reported_and_waited_for(server: LoggingServer) -> None:
    server.add(*steps(2500))
    server.fault("RESOURCE_EXHAUSTED", after=1, times=3)
    notices: list[str] = []
    assert len(read(notices=notices).table) == 2501
    assert len(notices) == 1
    assert "quota of 60 reads per minute" in notices[0]
    assert "1000 entries so far" in notices[0]
    assert "min left" in notices[0]
    tokens = [request["token"] for request in server.requests()]
    assert len(set(tokens[1:5])) == 1  # it continues from the same page


def test_permanently_exhausted_quota_is_an_error(server: LoggingServer) -> None:
    server.add(*steps(10))
    server.fault("RESOURCE_EXHAUSTED", times=1000)
    with pytest.raises(SourceError, match="60 reads per minute"):
        read()


def test_dropped_connection_is_reopened(server: LoggingServer) -> None:
    server.add(*steps(2500))
    server.fault("DROP", after=1)
    assert len(read().table) == 2501


def test_slow_page_is_requested_again(server: LoggingServer, monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch, deadline=1.0)
    server.add(*steps(2500))
    server.fault("SLOW", after=1, seconds=1.5)
    assert len(read().table) == 2501


def test_expired_page_token_is_handled(server: LoggingServer) -> None:
    server.add(*steps(2500))
    server.fault("FORGET", after=1)
    log = read()
    assert len(log.table) == 2501
    assert len(set(log.table.time.tolist())) == 2501
    assert any("timestamp>=" in text for text in filters(server))


@pytest.mark.parametrize(
    ("code", "details", "sentence"),
    [
        ("PERMISSION_DENIED", "The caller does not have permission", "roles/logging.viewer"),
        ("PERMISSION_DENIED", "Cloud Logging API has not been used in project 1 before", "gcloud services enable"),
        ("UNAUTHENTICATED", "", "gcloud auth application-default login"),
        ("NOT_FOUND", "", "no such project"),
        ("UNAVAILABLE", "connection refused", "all retries failed"),
    ],
)
def test_permanent_error_is_one_sentence(
    server: LoggingServer, capsys: pytest.CaptureFixture[str], code: str, details: str, sentence: str
) -> None:
    server.fault(code, times=1000, details=details)
    assert run(["analyze", "-j", "j"]) == 1
    error = capsys.readouterr().err
    assert sentence in error
    assert [line.partition(":")[0] for line in error.splitlines()[1:]] in (["error"], ["error", "tip"])


def test_closed_port_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)
    monkeypatch.setenv("GOODPUT_LOGGING_ENDPOINT", "127.0.0.1:1")
    with pytest.raises(SourceError, match="UNAVAILABLE"):
        read()


def test_data_before_a_network_failure_is_kept(server: LoggingServer) -> None:
    server.add(*steps(9000))
    server.fault("UNAVAILABLE", after=7, times=6)
    with pytest.raises(SourceError):
        read()
    server.requests()
    assert len(read().table) == 9001
    again = server.requests()
    assert all("timestamp>=" in request["filter"] or "receiveTimestamp" in request["filter"] for request in again)
    assert len([request for request in again if request["token"]]) < 7


def test_ctrl_c_keeps_fetched_data(server: LoggingServer) -> None:
    server.add(*steps(9000))
    server.fault("SLOW", after=7, seconds=3 * LONG_ENOUGH)
    process = subprocess.Popen([sys.executable, "-m", "goodput_cli", "analyze", "-j", "j", LOG], stderr=subprocess.PIPE)
    cache = Path(os.environ["GOODPUT_CACHE_DIR"]) / "cloud-logging"
    seen = accumulate(len(server.requests()) for _ in repeat(None))
    until(lambda: next(seen) > 7)  # the last one hangs
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=LONG_ENOUGH)
    assert process.returncode == 130
    assert b"Traceback" not in error
    assert list(cache.glob("*.jsonl.gz"))
    server.requests()
    assert len(read().table) == 9001
    assert all("timestamp" in text.lower() for text in filters(server))
