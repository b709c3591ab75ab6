"""Logs in buckets, read from a server on loopback with the official client."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli.cli.main import run
from goodput_cli.errors import SourceError, UsageError
from goodput_cli.events.read import read_events
from goodput_cli.sources import bucket as source
from tests.support.clouds import Bucket, bucket_server, emulator, goodput, log_lines, read_steps
from tests.support.logs import MessageRecorder, row, run_file, run_record, zstd

SAMPLE = Path(__file__).parent.parent.parent / "sample_logs" / "primer-50-percent.jsonl"


@pytest.fixture(scope="module")
def server() -> Iterator[Bucket]:
    with bucket_server() as running:
        yield running


@pytest.fixture
def bucket(server: Bucket, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    server.reset()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
    return server


def steps(*uris: str) -> list[int]:
    return read_steps(read_events(uris))


def test_object_is_read_and_named_in_evidence(bucket: Bucket) -> None:
    bucket.put("a/run.jsonl", log_lines(1, 2, 3))
    log = read_events(["gs://logs/a/run.jsonl"])
    assert read_steps(log) == [1, 2, 3]
    assert log.table.where(2) == "gs://logs/a/run.jsonl:3"
    assert log.diagnostics == ()


def test_only_necessary_requests_are_made(bucket: Bucket) -> None:
    """Google's client looks up the bucket itself, in a thread that outlives the command's work."""
    bucket.put("run.jsonl", log_lines(1))
    assert steps("gs://logs/run.jsonl") == [1]
    assert not [thread for thread in threading.enumerate() if "fetch" in thread.name]
    assert not [request for request in bucket.asked() if "/o" not in request]


def test_object_name_has_priority_over_prefix(bucket: Bucket) -> None:
    bucket.put("run", log_lines(1))
    bucket.put("run.jsonl", log_lines(2))
    bucket.put("run/x.jsonl", log_lines(3))
    assert steps("gs://logs/run") == [1]


def test_folder_is_read_without_neighbors(bucket: Bucket) -> None:
    bucket.put("run1/b.jsonl", log_lines(2))
    bucket.put("run1/a/deep.log", log_lines(1))
    bucket.put("run1/", b"")
    bucket.put("run1/checkpoint.bin", b"\0\1\2")
    bucket.put("run10/c.jsonl", log_lines(9))
    assert steps("gs://logs/run1") == [1, 2]
    assert steps("gs://logs/run1/") == [1, 2]


def test_prefix_and_whole_bucket_are_read(bucket: Bucket) -> None:
    for number, name in enumerate(("x-1.jsonl", "x-2.json.gz", "y.jsonl")):
        content = log_lines(number)
        bucket.put(name, gzip.compress(content) if name.endswith(".gz") else content)
    assert steps("gs://logs/x-") == [0, 1]
    assert steps("gs://logs") == [0, 1, 2]
    assert steps("gs://logs/") == [0, 1, 2]


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("run-*.jsonl", [1, 2]),
        ("run-?.jsonl", [1, 2]),
        ("run-[2-9].jsonl", [2]),
        ("run-[!1].jsonl", [2]),
        ("**/*.jsonl", [3, 1, 2]),
        ("*/*.jsonl", [3]),
        ("old*", [3]),
        ("**", [3, 1, 2, 8]),
        ("odd[1].txt", [8]),
    ],
)
def test_globs_work_as_for_files(bucket: Bucket, glob: str, expected: list[int]) -> None:
    bucket.put("run-1.jsonl", log_lines(1))
    bucket.put("run-2.jsonl", log_lines(2))
    bucket.put("old/run-3.jsonl", log_lines(3))
    bucket.put("z/odd.txt" if glob == "**" else "odd[1].txt", log_lines(8))
    assert steps(f"gs://logs/{glob}") == expected


def test_hourly_folders_of_a_sink_are_read(bucket: Bucket) -> None:
    for hour in (9, 10, 11):
        entry = {
            "insertId": f"id{hour}",
            "logName": "projects/p/logs/j-goodput",
            "timestamp": f"2026-01-01T{hour:02}:30:00Z",
            "jsonPayload": json.loads(log_lines(hour)),
        }
        late = {**entry, "insertId": f"late{hour}", "jsonPayload": json.loads(log_lines(100 + hour))}
        at = f"j-goodput/2026/01/01/{hour:02}:00:00_{hour:02}:59:59"
        bucket.put(f"{at}_S0.json", json.dumps(entry).encode() + b"\n")
        bucket.put(f"{at}_A0:1767225600.json", json.dumps(late).encode() + b"\n")
    assert steps("gs://logs/j-goodput") == [109, 9, 110, 10, 111, 11]
    assert steps("gs://logs/j-goodput/2026/*/*/10*") == [110, 10]


def test_object_in_two_sources_is_read_once(bucket: Bucket) -> None:
    bucket.put("a.jsonl", log_lines(1))
    assert steps("gs://logs/a.jsonl", "gs://logs/*", "gs://logs") == [1]


def test_buckets_and_files_can_be_combined(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "here.jsonl").write_bytes(log_lines(5))
    bucket.put("there.jsonl", log_lines(6))
    assert steps("gs://logs/", str(tmp_path)) == [6, 5]


def test_object_names_with_special_characters(bucket: Bucket) -> None:
    bucket.put("a b/c#d?e%41/ü.jsonl", log_lines(4))
    assert steps("gs://logs/a b/c#d?e%41/ü.jsonl") == [4]
    assert steps("gs://logs/a b") == [4]


def test_hundreds_of_objects_are_listed_in_order(bucket: Bucket) -> None:
    for number in range(350):
        bucket.put(f"many/{number:05}.jsonl", log_lines(number))
    assert steps("gs://logs/many") == list(range(350))
    assert sum("/o?" in request for request in bucket.asked()) == 4


def test_reads_are_pinned_to_the_listed_generation(bucket: Bucket) -> None:
    bucket.put("a.jsonl", log_lines(1))
    steps("gs://logs/a.jsonl")
    (download,) = bucket.downloads()
    assert "generation=1700" in download


def test_large_object_is_read_in_parts(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PART_BYTES", 1_000)
    bucket.put("a.jsonl.gz", gzip.compress(log_lines(*range(5_000))))
    assert steps("gs://logs/a.jsonl.gz") == list(range(5_000))
    assert len(bucket.downloads()) > 10
    assert any(request.endswith("bytes=1000-1999") for request in bucket.downloads())


def test_progress_counts_the_bytes_as_stored(bucket: Bucket) -> None:
    packed = gzip.compress(log_lines(*range(100)))
    bucket.put("a.jsonl.gz", packed)
    told = MessageRecorder()
    read_events(["gs://logs/a.jsonl.gz"], progress=told)
    assert (told.bytes, told.expected) == (len(packed), len(packed))


def test_packed_objects_are_read(bucket: Bucket) -> None:
    bucket.put("a.jsonl.zst", zstd(log_lines(1)))
    bucket.put("b.jsonl.gz", gzip.compress(log_lines(*range(5_000)))[:-100])
    bucket.put("c.jsonl", log_lines(7))
    log = read_events(["gs://logs"])
    found = read_steps(log)
    assert (found[0], found[-1]) == (1, 7)
    assert found[1:-1] == list(range(len(found) - 2))
    assert [one.where for one in log.diagnostics if one.code == "truncated_file"] == [("gs://logs/b.jsonl.gz",)]


def test_name_without_objects_is_an_error(bucket: Bucket) -> None:
    bucket.put("a.bin", b"x")
    for uri, sentence in {
        "gs://nowhere/a": "no such bucket nowhere",
        "gs://logs/b": "no object has this name or prefix",
        "gs://logs/a": "no logs among these objects",
        "gs://logs/*.jsonl": "the glob matches no object",
    }.items():
        with pytest.raises(SourceError, match=sentence) as caught:
            read_events([uri])
        assert str(caught.value).startswith(uri)
    for uri in ("gs://", "gs:///a", "gs://lo*/a"):
        with pytest.raises(UsageError):
            read_events([uri])


def goodput_of_sample() -> dict[str, Any]:
    """Return the goodput of the sample as JSON has it."""
    found: dict[str, Any] = goodput_cli.analyze(SAMPLE).to_dict()["goodput"]
    return found


def test_command_reads_a_bucket(bucket: Bucket) -> None:
    bucket.put("job/run.jsonl", SAMPLE.read_bytes())
    there = goodput(
        ["analyze", "gs://logs/job", "--format", "json", "--as-of", "now"], {"STORAGE_EMULATOR_HOST": bucket.url}
    )
    assert there.returncode == 0, there.stderr
    assert json.loads(there.stdout)["goodput"] == goodput_of_sample()


def test_command_reads_from_other_emulators(capsys: pytest.CaptureFixture[str]) -> None:
    from google.cloud.storage import Client

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with emulator(port) as url, pytest.MonkeyPatch.context() as patch:
        patch.setenv("STORAGE_EMULATOR_HOST", url)
        client = Client(project="p")
        content = SAMPLE.read_bytes()
        client.bucket("logs").blob("job/run.jsonl.gz").upload_from_string(gzip.compress(content), "application/gzip")
        client.bucket("logs").blob("other/run.jsonl").upload_from_string(log_lines(1))
        assert run(["analyze", "gs://logs/job/*", "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["goodput"] == goodput_of_sample()
        assert len(read_events(["gs://logs/other"]).table) == 1
        client.close()


def test_wandb_runs_are_read_without_logs_next_to_them(bucket: Bucket) -> None:
    rows = [row(1795385401.0 + n, n + 1.0, _step=n) for n in range(4)]
    folder = "job/wandb/run-20261122_221000-abc"
    bucket.put(f"{folder}/run-abc.wandb", run_file(run_record("abc", 1795385400.0), *rows))
    bucket.put(f"{folder}/files/wandb-summary.json", b'{\n "_step": 3\n}\n')
    bucket.put(f"{folder}/files/output.log", b"iter 1\n")
    log = read_events(["gs://logs/job"])
    assert (log.table.jobs, log.format_names) == (("abc",), (("wandb",),))
    bucket.put("job/run.jsonl", log_lines(1, 2))
    assert steps("gs://logs/job") == [1, 2]
