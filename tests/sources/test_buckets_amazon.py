"""s3:// with the same objects, in S3's protocol."""

from __future__ import annotations

import builtins
import gzip
import importlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from goodput_cli.errors import SourceError
from goodput_cli.events.read import read_events
from goodput_cli.sources import bucket as source
from tests.support.clouds import Bucket, bucket_server, goodput, log_lines, read_steps


@pytest.fixture(scope="module")
def server() -> Iterator[Bucket]:
    with bucket_server() as running:
        yield running


def environment(server: Bucket) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL_S3": f"{server.url}/s3",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@pytest.fixture
def bucket(server: Bucket, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    server.reset()
    monkeypatch.setattr(source, "PATIENCE", replace(source.PATIENCE, first=0.01))
    for name, value in environment(server).items():
        monkeypatch.setenv(name, value)
    for number, name in enumerate("abc"):
        server.put(f"x/{name}.jsonl", log_lines(*range(100 * number, 100 * number + 100)))
    return server


def steps(*uris: str) -> list[int]:
    return read_steps(read_events(uris))


def test_objects_folders_prefixes_and_globs(bucket: Bucket) -> None:
    bucket.put("y/odd name+&é.jsonl.gz", gzip.compress(log_lines(7)))
    assert steps("s3://logs/x") == list(range(300))
    assert steps("s3://logs/x/b.jsonl") == list(range(100, 200))
    assert steps("s3://logs/*/[ab].jsonl") == list(range(200))
    assert steps("s3://logs/y/odd name+&é.jsonl.gz", "s3://logs/y/*") == [7]


def test_listing_of_several_pages_is_complete(bucket: Bucket) -> None:
    for number in range(250):
        bucket.put(f"many/{number:03}.jsonl", log_lines(number))
    assert steps("s3://logs/many") == list(range(250))


@pytest.mark.parametrize(("kind", "status"), [("status", 503), ("status", 429), ("reset", 0), ("cut", 0)])
def test_transient_faults_are_retried(bucket: Bucket, kind: str, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PART_BYTES", 1_000)
    bucket.fail("x/b.jsonl", kind, status=status, times=3, after=2)
    assert steps("s3://logs/x") == list(range(300))


def test_replaced_and_deleted_objects_are_reported(bucket: Bucket) -> None:
    bucket.fail("s3/logs/x/a.jsonl", "replace", content=log_lines(900).decode())
    bucket.fail("s3/logs/x/b.jsonl", "delete")
    log = read_events(["s3://logs/x"])
    assert read_steps(log) == [900, *range(200, 300)]
    assert [one.code for one in log.diagnostics] == ["object_deleted"]


def test_errors_are_reported(bucket: Bucket) -> None:
    with pytest.raises(SourceError, match="s3://none: no such bucket none"):
        read_events(["s3://none"])
    bucket.fail("x/a.jsonl", "status", status=403, times=-1)
    with pytest.raises(SourceError, match=r"s3://logs/x/a.jsonl: permission denied .*s3:GetObject"):
        read_events(["s3://logs/x"])
    bucket.fail("x/b.jsonl", "status", status=503, times=-1)
    with pytest.raises(SourceError, match=r"s3://logs/x/b.jsonl: all 5 tries failed"):
        read_events(["s3://logs/x/b.jsonl"])


def test_no_credentials(server: Bucket) -> None:
    settings = {**environment(server), "HOME": "/nonexistent", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    done = goodput(["analyze", "s3://logs/x"], settings)
    assert done.returncode == 1
    assert "no AWS credentials found" in done.stderr


def test_without_boto3(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **options: Any) -> Any:
        if name.partition(".")[0] == "boto3":
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.delitem(sys.modules, "goodput_cli.sources.s3", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SourceError, match=r"pip install '\.\[s3\]'"):
        importlib.import_module("goodput_cli.sources.s3")
