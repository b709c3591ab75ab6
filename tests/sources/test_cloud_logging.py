"""Cloud Logging, read from a gRPC server on loopback with the official client."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.cli.main import run
from goodput_cli.errors import SourceError, UsageError
from tests.support.clouds import LOG, answer, filters, logging_server, read
from tests.support.commands import LONG_ENOUGH, connections
from tests.support.logs import found, log_file
from tests.support.servers import PROJECT, T0, LoggingServer, entry, steps


@pytest.fixture(scope="module")
def running() -> Iterator[LoggingServer]:
    with LoggingServer() as started:
        yield started


@pytest.fixture
def server(running: LoggingServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LoggingServer]:
    with logging_server(monkeypatch, tmp_path, running) as ready:
        yield ready


def as_a_sink_writes(entries: list[dict[str, Any]], folder: Path) -> str:
    lines = []
    for held in entries:
        seconds, ns = divmod(held["ns"], 10**9)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{ns:09d}Z"
        name = f"projects/{PROJECT}/logs/{held['log']}"
        lines.append({"insertId": held["id"], "logName": name, "timestamp": stamp, "jsonPayload": held["payload"]})
    return log_file(folder, *lines, name="sink.jsonl")


def test_every_page_is_read(server: LoggingServer) -> None:
    server.add(*steps(2500))
    log = read()
    assert len(log.table) == 2501
    assert log.diagnostics == ()
    assert log.table.where(0) == "idj-0-0"
    assert [request["size"] for request in server.requests()] == [1000] * 3


def test_result_equals_that_of_the_sink_exactly(server: LoggingServer, tmp_path: Path) -> None:
    entries = steps(300)
    server.add(*entries)
    assert answer(LOG) == answer(as_a_sink_writes(entries, tmp_path))


def test_payload_without_time_uses_entry_time(server: LoggingServer) -> None:
    held = entry({"job_name": "j", "event_type": "job_started"}, 5)
    held["ns"] += 123_456_789
    server.add(held, entry({"job_name": "j", "event_type": "job_terminated"}, 9, "end"))
    assert read().table.time.tolist() == [T0 * 10**9 + 5_123_456_789, (T0 + 9) * 10**9]


@pytest.mark.parametrize("log", ["j-goodput", "goodput_j"])
def test_both_usual_logs_are_read_without_a_source(
    server: LoggingServer, capsys: pytest.CaptureFixture[str], log: str
) -> None:
    server.add(*steps(20, log=log), *steps(20, job="other", start=500, log=log))
    assert run(["analyze", "-j", "j", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["job"]["name"] == "j"
    assert "Cloud Logging" in err
    assert all('jsonPayload.job_name="j"' in text for text in filters(server))


def test_log_name_selects_the_log(server: LoggingServer) -> None:
    server.add(*steps(20, log="mine"), *steps(20, start=500))
    assert len(read("cloud-logging://", log_name="mine").table) == 21
    assert len(read("cloud-logging://", log_name=f"projects/{PROJECT}/logs/mine").table) == 21


@pytest.mark.parametrize(
    "name",
    [
        'a" OR logName="x',
        "back\\slash\\",
        "new\nline",
        'quo"te',
        "é ü 🚀",
        '") OR (',
        'j" AND timestamp>="2030',
        "a/b%2F",
    ],
)
def test_job_name_is_quoted_in_the_filter(server: LoggingServer, name: str) -> None:
    from urllib.parse import quote

    server.add(*steps(3, job=name, log=quote(f"goodput_{name}", safe="")), *steps(5, job="other", start=90))
    log = read("cloud-logging://", job=name)
    assert log.table.jobs == (name,)
    assert len(log.table) == 4


def test_project_may_be_given(server: LoggingServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.add(*steps(3))
    assert len(read(f"cloud-logging://{PROJECT}/goodput_j").table) == 4
    assert len(read("cloud-logging://elsewhere/goodput_j").table) == 0
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "elsewhere")
    assert len(read().table) == 0


def test_mixed_sources_are_merged_without_duplicates(server: LoggingServer, tmp_path: Path) -> None:
    entries = steps(100)
    sink = as_a_sink_writes(entries[:60], tmp_path)
    server.add(*entries[40:])
    assert answer(sink, LOG) == answer(LOG, sink) == answer(as_a_sink_writes(entries, tmp_path))
    assert len(read(LOG, LOG).table) == 61  # a source named twice is read once


def test_missing_job_is_not_enough_data(server: LoggingServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", "-j", "nobody"]) == 4
    assert "no entries of job nobody in nobody-goodput and goodput_nobody" in capsys.readouterr().err


def test_missing_log_and_job_is_an_error(server: LoggingServer) -> None:
    with pytest.raises(UsageError, match="no log; use"):
        read("cloud-logging://", job=None)
    server.add(*steps(3))
    assert len(read(job=None).table) == 4


def test_text_entry_is_reported(server: LoggingServer) -> None:
    server.add(*steps(3), entry({}, 50, "t", text="hello"))
    assert found(read(job=None), "unrecognised_lines")[0].count == 1


def test_lookback_that_cuts_the_job_is_a_warning(server: LoggingServer) -> None:
    days = (time.time() - T0 - 50) / 86_400
    server.add(*steps(100))
    log = read(lookback_days=days)
    assert 40 < len(log.table) < 60
    assert [one.severity for one in found(log, "lookback_truncated")] == ["warning"]
    assert found(read(lookback_days=days + 1), "lookback_truncated") == []


def test_expired_job_start_is_a_warning(server: LoggingServer) -> None:
    server.add(*steps(100)[5:])
    assert "may have expired" in found(read(), "lookback_truncated")[0].message
    server.add(entry({"job_name": "j", "job_start_time": T0 + 700.0}, 700, "restart"))
    assert found(read(), "lookback_truncated")


def test_complete_job_has_no_warning(server: LoggingServer) -> None:
    server.add(*steps(100))
    assert found(read(), "lookback_truncated") == []


@pytest.mark.parametrize("metadata", ["nobody", "silent"])
def test_missing_credentials_fail_within_seconds(tmp_path: Path, metadata: str) -> None:
    silent = socket.create_server(("127.0.0.1", 0))  # accepts, and never answers
    address = f"127.0.0.1:{silent.getsockname()[1] if metadata == 'silent' else 1}"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GCE_METADATA_HOST": address,
                   "GCE_METADATA_IP": address, "GCE_METADATA_ROOT": address}  # fmt: skip
    command = [sys.executable, "-m", "goodput_cli", "analyze", "-j", "j"]
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent.parent.parent,
        timeout=LONG_ENOUGH,
    )
    assert connections(silent) <= 2, "it gives up instead of asking again"
    silent.close()
    assert done.returncode == 1
    assert "gcloud auth application-default login" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (None, "which does not exist"),
        ("{", "which is not JSON"),
        ("{}", "which is not a key file: it has no `type`"),
    ],
)
def test_invalid_key_file_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None, fault: str
) -> None:
    path = tmp_path / "key.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    monkeypatch.delenv("GOODPUT_LOGGING_ENDPOINT", raising=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    with pytest.raises(SourceError, match=f"GOOGLE_APPLICATION_CREDENTIALS names {re.escape(str(path))}, {fault}"):
        read()


def test_help_and_files_import_no_client() -> None:
    program = (
        "import sys; from goodput_cli.cli.main import run; run(['fetch', '--help']); "
        "assert not {'google', 'grpc', 'numpy', 'pyarrow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
