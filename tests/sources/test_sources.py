"""Sources: a file, a glob, a folder, standard input; missing ones give an error message."""

from __future__ import annotations

import io
import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.errors import SourceError, UsageError
from goodput_cli.events.read import read_events
from goodput_cli.sources import files
from goodput_cli.sources.base import Batch, RawBatch, ReadContext, RecordBatch
from goodput_cli.sources.blocks import line_blocks
from tests.support.logs import MessageRecorder, found, lines, log_file, read_lines, step
from tests.support.logs import recorded_steps_of as steps


def test_rows_are_in_order_of_arrival_with_location(tmp_path: Path) -> None:
    one = log_file(tmp_path, step(5, 50), step(1, 10), name="b.jsonl")
    two = log_file(tmp_path, step(3, 30), name="a.jsonl")
    table = read_events([one, two]).table
    assert steps(table) == [5, 1, 3]
    assert [table.where(row) for row in range(3)] == [f"{one}:1", f"{one}:2", f"{two}:1"]


def test_paths_are_shown_as_typed(folder: Path) -> None:
    log_file(folder, step(1, 1))
    assert read_events(["run.jsonl"]).table.sources == ("run.jsonl",)
    assert read_events(["./run.jsonl"]).table.sources == ("./run.jsonl",)
    assert read_events(["*.jsonl"]).table.sources == ("run.jsonl",)
    assert read_events(["."]).table.sources == ("./run.jsonl",)


def test_glob_is_read_in_sorted_order(tmp_path: Path) -> None:
    for number in (3, 1, 2):
        log_file(tmp_path, step(number, number), name=f"part-{number}.txt")
    (tmp_path / "part-0.folder").mkdir()
    assert steps(read_events([str(tmp_path / "part-*")]).table) == [1, 2, 3]


def test_file_with_a_name_like_a_glob_is_read(tmp_path: Path) -> None:
    assert steps(read_events([log_file(tmp_path, step(7, 1), name="run[1].jsonl")]).table) == [7]


def test_folder_is_read_recursively(tmp_path: Path) -> None:
    for at, name in enumerate(["a.jsonl", "b.json", "c/d.LOG", "c/e/f.ndjson", "readme.md", "x.jsonl.bak"]):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        log_file(tmp_path, step(at, at), name=name)
    os.symlink(tmp_path, tmp_path / "c" / "loop")
    assert steps(read_events([str(tmp_path)]).table) == [0, 1, 2, 3]


def test_glob_of_folders_reads_the_folders(tmp_path: Path) -> None:
    for name in ("r1", "r2"):
        (tmp_path / name).mkdir()
        log_file(tmp_path / name, step(int(name[1]), 1))
    assert steps(read_events([str(tmp_path / "r*")]).table) == [1, 2]


def test_file_named_twice_is_read_once(tmp_path: Path) -> None:
    path = log_file(tmp_path, step(1, 1))
    os.symlink(path, tmp_path / "other.jsonl")
    log = read_events([path, str(tmp_path), f"file://{path}", str(tmp_path / "o*.jsonl")])
    assert steps(log.table) == [1]


def test_file_uri_is_read(tmp_path: Path) -> None:
    path = log_file(tmp_path, step(1, 1), name="a b#c.jsonl")
    log = read_events(["file://" + path.replace(" ", "%20")])
    assert log.table.sources == (path,)
    with pytest.raises(SourceError, match="needs an absolute path"):
        read_events(["file://elsewhere/x.jsonl"])


def test_standard_input_is_read_once() -> None:
    log = read_events(["-", "-"], stdin=io.BytesIO(json.dumps(step(4, 1)).encode()))
    assert steps(log.table) == [4]
    assert log.table.where(0) == "stdin:1"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("missing.jsonl", "no such file; check the path"),
        ("*.nothing", "glob matches no file"),
        ("empty", "no log in this folder"),
        ("nul\0.jsonl", "cannot be read"),
        ("\ud800.jsonl", "cannot be read"),
        ("x" * 5000, "cannot be read"),
    ],
)
def test_unreadable_source_is_reported(tmp_path: Path, name: str, sentence: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match=sentence):
        read_events([str(tmp_path / name)])


def test_missing_source_is_reported_before_reading(tmp_path: Path) -> None:
    told = MessageRecorder()
    path = log_file(tmp_path, step(1, 1))
    with pytest.raises(SourceError):
        read_events([path, str(tmp_path / "missing")], progress=told)
    assert told.bytes == 0
    read_events([path], progress=told)
    assert told.bytes == os.path.getsize(path)


def test_permission_denied_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = log_file(tmp_path, step(1, 1))
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(SourceError, match="permission denied"):
        read_events([path])


def test_unknown_schemes_are_rejected() -> None:
    with pytest.raises(UsageError, match="unknown source ftp://"):
        read_events(["ftp://x/y"])
    with pytest.raises(SourceError, match="goodput cannot read hdfs://"):
        read_events(["hdfs://host/prefix"])
    with pytest.raises(UsageError, match="unknown time zone"):
        read_events([], timezone="Mars/Phobos")


class _Pages:
    """A source of another package: records that arrive parsed, and raw lines."""

    def read(self, uri: str, context: ReadContext) -> Iterator[Batch]:
        context.advance(1)
        entry = {"insertId": "a1", "logName": "l", "timestamp": "2026-01-01T00:00:00Z", "jsonPayload": step(1, 1)}
        yield RecordBatch(uri, [entry, {"surprise": None}])
        yield RawBatch("object", 1, json.dumps(step(2, 2)).encode())


class _EntryPoint:
    name = "Pages"
    value = "other:Pages"

    def __init__(self, loaded: Any) -> None:
        self._loaded = loaded

    def load(self) -> Any:
        if self._loaded is None:
            raise ImportError("no module named other")
        return self._loaded


def test_source_of_another_package_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [_EntryPoint(_Pages)])
    log = read_events(["pages://x"])
    assert steps(log.table) == [1, 2]
    assert [log.table.where(row) for row in range(2)] == ["a1", "object:1"]
    assert found(log, "unrecognised_lines")[0].count == 1


def test_broken_source_of_another_package_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [_EntryPoint(None)])
    with pytest.raises(SourceError, match="cannot be loaded"):
        read_events(["pages://x"])


def test_line_ends_blank_lines_and_marks_are_accepted(tmp_path: Path) -> None:
    text = "\r\n".join(["", json.dumps(step(1, 1)), "  ", "", json.dumps(step(2, 2)), json.dumps(step(3, 3))])
    for name, data in {
        "mark.jsonl": b"\xef\xbb\xbf" + text.encode(),
        "wide.jsonl": text.encode("utf-16"),
        "plain.jsonl": text.encode() + b"\r\n\r\n",
    }.items():
        (tmp_path / name).write_bytes(data)
        log = read_events([str(tmp_path / name)])
        assert lines(log.table) == [2, 5, 6]
        assert log.diagnostics == ()


def test_empty_file_is_not_an_error(tmp_path: Path) -> None:
    for name, data in {"a.jsonl": b"", "b.jsonl": b"\n \n", "c.jsonl": b"\xef\xbb\xbf", "d.json": b"[]\n"}.items():
        (tmp_path / name).write_bytes(data)
        log = read_events([str(tmp_path / name)])
        assert (len(log.table), log.table.jobs, log.diagnostics) == (0, (), ())


class _Pipe(io.BytesIO):
    """A pipe that returns its contents in pieces."""

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(min(size or 0, 65_536))


def test_pipe_reads_are_collected_into_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work per block is small only if blocks are large."""
    data = b"".join(json.dumps(step(at, at)).encode() + b"\n" for at in range(3000))
    monkeypatch.setattr(files, "BLOCK_BYTES", 100_000)
    told = MessageRecorder()
    context = ReadContext(lambda _: None, _Pipe(data), told)
    blocks = [batch.data for batch in files.FileSource().read("-", context) if isinstance(batch, RawBatch)]
    assert b"".join(blocks) == data
    assert len(blocks) <= len(data) // 100_000 + 2
    assert told.bytes == len(data)


@pytest.mark.parametrize("size", [1, 2, 7, 64, 10_000])
def test_blocks_end_at_line_ends_and_know_their_first_line(size: int) -> None:
    data = b"a\n\nbb\nccc" * 20
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    blocks = list(line_blocks("s", chunks))
    assert b"".join(block.data for block in blocks) == data
    assert all(block.data.endswith(b"\n") for block in blocks[:-1])
    for before, block in itertools.pairwise(blocks):
        assert block.first_line == before.first_line + before.data.count(b"\n")


def test_events_far_into_a_file_have_the_right_line(tmp_path: Path) -> None:
    many = [step(at, at) for at in range(30_000)]
    many[12_345] = {"job_name": "j", "step_count": 12_345}
    log = read_lines(tmp_path, *many)
    assert lines(log.table) == [at + 1 for at in range(30_000) if at != 12_345]
    assert found(log, "unrecognised_lines")[0].where == (f"{tmp_path}/run.jsonl:12346",)
