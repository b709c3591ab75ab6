"""Possible faults while a bucket is read: the rows of the table in docs/sources.md."""

from __future__ import annotations

import gzip
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from goodput_cli.cli.main import run
from goodput_cli.errors import SourceError
from goodput_cli.events.read import read_events
from goodput_cli.events.schema import EventLog
from goodput_cli.sources import bucket as source
from goodput_cli.sources import gcs
from goodput_cli.sources.base import ReadContext, source_for
from goodput_cli.sources.object_store import READ_SECONDS
from goodput_cli.sources.remote import read_ahead
from tests.support.clouds import ROOT, Bucket, bucket_server, goodput, log_lines, read_steps
from tests.support.commands import connections, until
from tests.support.logs import MessageRecorder

ALL = list(range(300))


@pytest.fixture(scope="module")
def server() -> Iterator[Bucket]:
    with bucket_server() as running:
        yield running


@pytest.fixture
def bucket(server: Bucket, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """Return a bucket with three objects of a hundred steps, and pauses that take no time."""
    server.reset()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
    monkeypatch.setattr(source, "PATIENCE", replace(source.PATIENCE, first=0.01))
    for number, name in enumerate("abc"):
        server.put(f"{name}.jsonl", log_lines(*range(100 * number, 100 * number + 100)))
    return server


def read() -> EventLog:
    return read_events(["gs://logs"])


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_busy_server_is_asked_again(bucket: Bucket, status: int) -> None:
    bucket.fail("b.jsonl.*alt=media", "status", status=status, times=2)
    bucket.fail(r"/o\?", "status", status=status, times=2)
    log = read()
    assert (read_steps(log), log.diagnostics) == (ALL, ())


def test_requested_pause_is_respected(bucket: Bucket) -> None:
    bucket.fail("b.jsonl", "status", status=429, headers={"Retry-After": "1"})
    started = time.monotonic()
    assert read_steps(read()) == ALL
    assert time.monotonic() - started > 1


@pytest.mark.parametrize("kind", ["reset", "cut", "flip"])
def test_broken_connection_and_wrong_bytes_are_retried(bucket: Bucket, kind: str) -> None:
    bucket.fail("b.jsonl.*alt=media", kind, times=2)
    log = read()
    assert (read_steps(log), log.diagnostics) == (ALL, ())


@pytest.mark.parametrize("kind", ["reset", "cut"])
def test_broken_part_of_large_object_is_retried(bucket: Bucket, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PART_BYTES", 1_000)
    bucket.fail("b.jsonl.*alt=media", kind, times=3, after=3)
    log = read()
    assert (read_steps(log), log.diagnostics) == (ALL, ())


def test_hanging_server_is_retried(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gcs, "TIMEOUT", (1.0, 0.3))
    bucket.fail("b.jsonl.*alt=media", "slow", seconds=2.0)
    assert read_steps(read()) == ALL


def test_listing_continues_at_the_failed_page(bucket: Bucket) -> None:
    for number in range(250):
        bucket.put(f"many/{number:03}.jsonl", log_lines(number))
    bucket.fail("pageToken=many/099", "status", times=2)
    bucket.fail("pageToken=many/199", "reset")
    assert read_steps(read_events(["gs://logs/many"])) == list(range(250))
    assert sum("/o?" in request for request in bucket.asked()) == 3 + 2 + 1


@pytest.mark.parametrize("kind", ["status", "reset", "cut"])
def test_retries_end_with_an_error_naming_the_object(bucket: Bucket, kind: str) -> None:
    bucket.fail("b.jsonl.*alt=media", kind, times=-1)
    with pytest.raises(SourceError, match=r"^gs://logs/b.jsonl: all 5 tries failed: .*try again later"):
        read()
    assert sum("b.jsonl" in request for request in bucket.downloads()) == 5


def test_missing_server_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PATIENCE", replace(source.PATIENCE, first=0.01))
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:1")
    told = MessageRecorder()
    with pytest.raises(SourceError, match=r"^gs://logs: all 5 tries failed: .*check the network"):
        read_events(["gs://logs"], progress=told)
    assert told.waits == [f"no answer; try {number} of 5 in 1 s" for number in (2, 3, 4, 5)]


@pytest.mark.parametrize(
    ("variable", "uri"), [("STORAGE_EMULATOR_HOST", "gs://logs"), ("AWS_ENDPOINT_URL_S3", "s3://logs")]
)
def test_address_without_scheme_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch, variable: str, uri: str) -> None:
    monkeypatch.setenv(variable, "localhost:9000")
    with pytest.raises(SourceError, match=f"^{variable}=localhost:9000: .*; use http://localhost:9000$"):
        read_events([uri])


def test_denied_error_names_object_and_permission(bucket: Bucket) -> None:
    bucket.fail("b.jsonl.*alt=media", "status", status=403, times=-1)
    with pytest.raises(SourceError, match=r"^gs://logs/b.jsonl: permission denied .*storage.objects.get"):
        read()
    assert sum("b.jsonl" in request for request in bucket.downloads()) == 1


@pytest.mark.parametrize("status", [401, 403])
def test_bucket_without_list_permission_is_read(bucket: Bucket, status: int) -> None:
    bucket.fail(r"/o\?", "status", status=status, times=-1)
    with pytest.raises(SourceError, match=r"^gs://logs: permission denied .*storage.objects.list"):
        read()
    assert read_steps(read_events(["gs://logs/b.jsonl"])) == list(range(100, 200))


def test_rejected_request_is_an_error(bucket: Bucket) -> None:
    bucket.fail(r"/o\?", "status", status=400, times=-1)
    with pytest.raises(SourceError, match=r"^gs://logs: the server rejected the request: HTTP 400: .*as ordered"):
        read()
    with pytest.raises(SourceError, match=r"^gs://-x/a: the server rejected the request: .*start and end"):
        read_events(["gs://-x/a"])


def test_object_replaced_before_reading(bucket: Bucket) -> None:
    bucket.fail("b.jsonl.*alt=media", "replace", content=log_lines(100, 101, 999).decode())
    log = read()
    assert read_steps(log) == [*range(100), 100, 101, 999, *range(200, 300)]
    assert log.diagnostics == ()


def test_object_replaced_during_reading(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PART_BYTES", 1_000)
    monkeypatch.setattr(source, "WORKERS", 1)
    bucket.fail("b.jsonl.*alt=media", "replace", after=3, content=log_lines(*range(100, 250)).decode())
    log = read()
    found = read_steps(log)
    assert sorted(set(found)) == ALL
    assert found[:100] + found[-100:] == [*range(100), *range(200, 300)]
    assert [(one.code, one.severity) for one in log.diagnostics] == [("object_replaced", "warning")]


def test_object_replaced_repeatedly_is_an_error(bucket: Bucket) -> None:
    bucket.fail("b.jsonl.*alt=media", "replace", times=-1, content="x")
    with pytest.raises(SourceError, match=r"^gs://logs/b.jsonl: is replaced faster than it can be read"):
        read()


def test_object_deleted_before_reading(bucket: Bucket) -> None:
    bucket.fail("b.jsonl.*alt=media", "delete")
    log = read()
    assert read_steps(log) == [*range(100), *range(200, 300)]
    assert [(one.code, one.severity) for one in log.diagnostics] == [("object_deleted", "error")]
    assert "its lines are missing" in log.diagnostics[0].message


def test_object_deleted_during_reading(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PART_BYTES", 1_000)
    monkeypatch.setattr(source, "WORKERS", 1)
    bucket.fail("b.jsonl.*alt=media", "delete", after=3)
    log = read()
    kept = [number for number in read_steps(log) if 100 <= number < 200]
    assert kept
    assert kept == list(range(100, 100 + len(kept)))
    assert (
        "the part that was read counts" in next(one for one in log.diagnostics if one.code == "object_deleted").message
    )


def test_only_object_deleted_is_an_error(bucket: Bucket) -> None:
    bucket.fail("b.jsonl.*alt=media", "delete")
    with pytest.raises(SourceError, match=r"^gs://logs/b.jsonl: was deleted before it could be read"):
        read_events(["gs://logs/b.jsonl"])


def test_strict_fails_on_survivable_problems(bucket: Bucket, capsys: pytest.CaptureFixture[str]) -> None:
    bucket.fail("b.jsonl.*alt=media", "delete")
    assert run(["analyze", "gs://logs", "--strict"]) == 5
    assert "gs://logs/b.jsonl: was deleted while the bucket was read" in capsys.readouterr().err


def test_damaged_object_does_not_affect_others(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PART_BYTES", 500)
    packed = bytearray(gzip.compress(log_lines(*range(100, 2_000))))
    packed[len(packed) // 3 :] = b"\xff" * (len(packed) - len(packed) // 3)
    bucket.delete("b.jsonl")
    bucket.put("b.jsonl.gz", bytes(packed))
    log = read()
    assert set(read_steps(log)) > {*range(100), *range(200, 300)}
    assert [one.where for one in log.diagnostics if one.code == "truncated_file"] == [("gs://logs/b.jsonl.gz",)]


@pytest.mark.parametrize("answering", ["refused", "silent"])
def test_missing_credentials_fail_within_seconds(answering: str) -> None:
    with socket.socket() as metadata:
        metadata.bind(("127.0.0.1", 0))
        if answering == "silent":
            metadata.listen(8)
        address = f"127.0.0.1:{metadata.getsockname()[1]}"
        environment = {"HOME": "/nonexistent", "GCE_METADATA_HOST": address, "GCE_METADATA_IP": address}
        done = goodput(["analyze", "gs://logs/a"], environment)
        assert connections(metadata) <= 2, "it gives up instead of asking again"
    assert done.returncode == 1
    assert re.match("error: gs://: (no Google Cloud credentials found|the server that gives)", done.stderr)
    assert "gcloud auth application-default login" in done.stderr
    assert "Traceback" not in done.stderr


def test_interrupt_works_while_the_server_hangs(bucket: Bucket) -> None:
    bucket.fail("b.jsonl.*alt=media", "slow", seconds=2 * READ_SECONDS)
    command = [sys.executable, "-m", "goodput_cli", "analyze", "gs://logs"]
    environment = {"STORAGE_EMULATOR_HOST": bucket.url, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment)
    until(lambda: any("b.jsonl" in request for request in bucket.downloads()))
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=0.75 * READ_SECONDS)  # it has not waited for the response
    assert (process.returncode, said.strip()) == (130, b"Interrupted.")


def test_unread_objects_are_requested_again(bucket: Bucket) -> None:
    context = ReadContext(lambda _: None)
    bucket.fail("b.jsonl.*alt=media", "status", status=403)
    with pytest.raises(SourceError):
        list(source_for("gs://logs").read("gs://logs", context))
    again = [batch.source for batch in source_for("gs://logs").read("gs://logs", context)]
    assert again == ["gs://logs/b.jsonl", "gs://logs/c.jsonl"]


def test_memory_is_bounded() -> None:
    from threading import Event

    started: list[int] = []

    def work(number: int) -> int:
        started.append(number)
        return number

    results = read_ahead(range(10_000), work, Event(), workers=4, held=10)
    assert [next(results).result() for _ in range(5)] == [0, 1, 2, 3, 4]
    time.sleep(0.2)
    assert len(started) <= 15
    results.close()


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        (None, "key.json, which does not exist\ntip: fix the path"),
        ({"type": "authorized_user"}, "run `gcloud auth application-default login`"),
        (
            {
                "type": "authorized_user",
                "client_id": "c",
                "client_secret": "s",
                "refresh_token": "r",
                "token_uri": "http://127.0.0.1:1/token",
            },
            "does not answer; check the network",
        ),
    ],
)
def test_invalid_key_file_is_an_error(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    key: dict[str, str] | None,
    sentence: str,
) -> None:
    path = tmp_path / "key.json"
    if key is not None:
        path.write_text(json.dumps(key), encoding="utf-8")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    assert run(["analyze", "gs://logs/a"]) == 1
    said = capsys.readouterr().err
    assert sentence in said
    assert "Traceback" not in said


@pytest.mark.parametrize("request_", [r"/o\?", "b.jsonl.*alt=media"])
def test_redirect_is_an_error_naming_the_new_host(bucket: Bucket, request_: str) -> None:
    """Also to the very same server by another name."""
    elsewhere = bucket.url.replace("127.0.0.1", "localhost")
    bucket.fail(request_, "status", status=302, headers={"Location": f"{elsewhere}/token"})
    with pytest.raises(SourceError, match=f"the server rejected the request: HTTP 302: a redirect to {elsewhere}$"):
        read()
    assert not [one for one in bucket.asked() if "token" in one]


@pytest.mark.parametrize("request_", [r"/o\?", "b.jsonl.*alt=media", "/s3/logs/b.jsonl"])
def test_oversized_response_is_rejected(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, request_: str) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"{bucket.url}/s3")
    bucket.fail(request_, "blanks", size=40 << 20)
    with pytest.raises(SourceError, match="the answer is longer than 32 MiB"):
        read_events(["s3://logs" if "s3" in request_ else "gs://logs"])
