"""Logs that grow while they are read: only new data is read, and nothing is lost when files are renamed."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from goodput_cli.api.watch import WatchedLog, watch
from goodput_cli.errors import SourceError, UsageError
from goodput_cli.events.read import read_events
from goodput_cli.sources import follow as following
from goodput_cli.sources import follow as tail
from tests.support.clouds import Bucket, bucket_server, log_lines, read_steps
from tests.support.logs import codes


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the offsets of all reads of followed files, except for checks of earlier data."""
    offsets: list[int] = []
    pread = os.pread

    def noted(descriptor: int, size: int, offset: int) -> bytes:
        data = pread(descriptor, size, offset)
        if size > tail.MARK_BYTES:
            offsets.extend(range(offset, offset + len(data)))
        return data

    monkeypatch.setattr(os, "pread", noted)
    return offsets


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as stream:
        stream.write(data)
    later(path)


def later(path: Path) -> None:
    """Ensure that the time of the file changes, even if the clock of the file system is coarse."""
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))


def look(log: WatchedLog) -> list[int]:
    log.look()
    return read_steps(log.log())


def test_every_byte_is_read_once(tmp_path: Path, read: list[int]) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(log_lines(1))
    log = WatchedLog([str(path)])
    assert look(log) == [1]
    for number in range(2, 30):
        append(path, log_lines(number))
        assert look(log) == list(range(1, number + 1))
    assert not log.look()
    assert read == list(range(path.stat().st_size))
    assert log.log().table.where(28) == f"{path}:29"


def test_followed_log_equals_reading_at_once(tmp_path: Path) -> None:
    content = (Path(__file__).parent.parent.parent / "sample_logs" / "primer-50-percent.jsonl").read_bytes()
    path = tmp_path / "run.jsonl"
    path.touch()
    log = WatchedLog([str(path)])
    for at in range(0, len(content), 97):
        append(path, content[at : at + 97])
        log.look()
    one, other = log.log(), read_events([str(path)])
    assert one.table.time.tolist() == other.table.time.tolist()
    assert one.table.line.tolist() == other.table.line.tolist()
    assert (one.table.jobs, one.formats, one.diagnostics) == (other.table.jobs, other.formats, other.diagnostics)


def test_line_in_two_pieces_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(log_lines(1, 2)[:-20])
    log = WatchedLog([str(path)])
    assert [look(log), look(log)] == [[1], [1]]
    append(path, log_lines(1, 2)[-20:])
    assert look(log) == [1, 2]
    assert log.log().diagnostics == ()


def test_unterminated_last_line_is_read(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(log_lines(1, 2)[:-1])
    log = WatchedLog([str(path)])
    assert look(log) == [1]
    assert look(log) == [1, 2]  # it is a whole value, and was not continued
    append(path, b"\n" + log_lines(3))
    assert look(log) == [1, 2, 3]
    assert log.log().table.line.tolist() == [1, 2, 3]
    assert log.log().diagnostics == ()


@pytest.mark.parametrize("shorter", [True, False])
def test_truncated_file_is_read_again(tmp_path: Path, shorter: bool) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(log_lines(1, 2, 3))
    said: list[str] = []
    log = WatchedLog([str(path)], notice=said.append)
    assert look(log) == [1, 2, 3]
    path.write_bytes(log_lines(4) if shorter else log_lines(*range(11, 21)))
    later(path)
    assert look(log) == [1, 2, 3, *([4] if shorter else range(11, 21))]
    assert said == [f"{path}: was rewritten; reading it from the start, and keeping the lines read before"]
    append(path, log_lines(30))
    assert look(log)[-1] == 30


def test_rewritten_file_of_same_length_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(log_lines(1, 2))
    log = WatchedLog([str(path)])
    assert look(log) == [1, 2]
    path.write_bytes(log_lines(3, 4))
    later(path)
    assert look(log) == [1, 2, 3, 4]


def test_rotation_loses_nothing(tmp_path: Path, read: list[int]) -> None:
    path, old = tmp_path / "run.jsonl", tmp_path / "run.jsonl.1"
    path.write_bytes(log_lines(1))
    log = WatchedLog([str(path)])
    assert look(log) == [1]
    append(path, log_lines(2))
    path.rename(old)
    path.write_bytes(log_lines(10))
    append(old, log_lines(3))  # the writer has not noticed yet
    assert sorted(look(log)) == [1, 2, 3, 10]
    append(old, log_lines(4))
    append(path, log_lines(11))
    assert sorted(look(log)) == [1, 2, 3, 4, 10, 11]
    assert len(read) == path.stat().st_size + old.stat().st_size
    assert log.log().diagnostics == ()


def test_rotation_in_a_glob_reads_nothing_twice(tmp_path: Path, read: list[int]) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(log_lines(1, 2))
    log = WatchedLog([str(tmp_path / "run.jsonl*"), str(path)])
    assert look(log) == [1, 2]
    path.rename(tmp_path / "run.jsonl.1")
    path.write_bytes(log_lines(3))
    assert sorted(look(log)) == [1, 2, 3]
    assert len(read) == len(log_lines(1, 2, 3))


def test_deleted_files_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "MAX_IDLE", 2)
    path = tmp_path / "run.jsonl"
    path.write_bytes(log_lines(1))
    log = WatchedLog([str(tmp_path / "*.jsonl")])
    assert look(log) == [1]
    held = _descriptors()
    path.unlink()
    for _ in range(6):
        assert look(log) == [1]
    assert _descriptors() == held - 1
    path.write_bytes(log_lines(2))
    assert look(log) == [1, 2]


def test_new_files_of_a_folder_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "HELD_FILES", 3)
    (tmp_path / "0.jsonl").write_bytes(log_lines(0))
    log = WatchedLog([str(tmp_path)])
    assert look(log) == [0]
    for number in range(1, 10):
        (tmp_path / f"{number}.jsonl").write_bytes(log_lines(number))
    assert look(log) == list(range(10))
    for number in range(10):
        append(tmp_path / f"{number}.jsonl", log_lines(100 + number))
    assert sorted(look(log)) == [*range(10), *range(100, 110)]


def test_unreadable_file_does_not_delay_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_bytes(log_lines(1 if name == "a" else 2))
    monkeypatch.setattr(following, "HELD_FILES", 0)
    said: list[str] = []
    log = WatchedLog([str(tmp_path)], notice=said.append)
    assert look(log) == [1, 2]
    real = os.open

    def refused(path: str, *arguments: int) -> int:
        if str(path).endswith("a.jsonl"):
            raise PermissionError
        return real(path, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refused)
        append(tmp_path / "b.jsonl", log_lines(3))
        assert [look(log), look(log)] == [[1, 2, 3]] * 2
    assert len(said) == 1
    assert "permission denied" in said[0]
    append(tmp_path / "a.jsonl", log_lines(4))
    assert sorted(look(log)) == [1, 2, 3, 4]


def test_growing_array_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    objects = [json.loads(line) for line in log_lines(*range(6)).splitlines()]
    text = json.dumps(objects, indent=1).encode() + b"\n"
    path.write_bytes(text[:200])
    log = WatchedLog([str(path)])
    assert 0 < len(look(log)) < 6
    append(path, text[200:])
    assert look(log) == list(range(6))
    assert codes(log.log()) == set()


def test_packed_file_is_read_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl.gz"
    path.write_bytes(gzip.compress(log_lines(1, 2)))
    log = WatchedLog([str(path)])
    assert [look(log), look(log)] == [[1, 2], [1, 2]]
    path.write_bytes(gzip.compress(log_lines(1, 2, 3)))
    later(path)
    assert set(look(log)) == {1, 2, 3}


def test_unsupported_sources_are_refused(tmp_path: Path) -> None:
    for uri, sentence in {"-": "cannot be followed", "ftp://x": "unknown source"}.items():
        with pytest.raises(UsageError, match=sentence):
            WatchedLog([uri])
    with pytest.raises(SourceError, match="no such file"):
        WatchedLog([str(tmp_path / "none.jsonl")]).look()


def test_special_files_are_refused_at_once(tmp_path: Path) -> None:
    """The cases: a pipe without a writer, an endless device, and a pipe that replaced a log."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(UsageError, match="is not a regular file and cannot be followed"):
            WatchedLog([str(path)])
    path = tmp_path / "run.jsonl"
    path.write_bytes(log_lines(1))
    log = WatchedLog([str(path)])
    path.rename(tmp_path / "run.jsonl.1")
    os.mkfifo(path)
    with pytest.raises(SourceError, match="is not a regular file"):
        log.look()


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    monkeypatch.setattr(following, "REMOTE_SECONDS", 0.0)
    with bucket_server() as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        yield server


def test_bucket_returns_new_objects_and_versions(bucket: Bucket) -> None:
    bucket.put("a.jsonl", log_lines(1))
    said: list[str] = []
    log = WatchedLog(["gs://logs"], notice=said.append)
    assert [look(log), look(log)] == [[1], [1]]
    bucket.put("b.jsonl", log_lines(2))
    assert look(log) == [1, 2]
    bucket.fail("b.jsonl.*alt=media", "status", status=403)
    bucket.put("b.jsonl", log_lines(2, 3))
    assert look(log) == [1, 2]
    assert said[0].startswith("gs://logs/b.jsonl: permission denied")
    assert set(look(log)) == {1, 2, 3}
    assert len(bucket.downloads()) == 4


def test_watch_counts_time_without_lines(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.touch()
    updates = watch(path, interval=0.1)
    assert next(updates).waiting
    path.write_bytes(log_lines(*range(50)))
    later(path)
    first = next(updates)
    assert first.analysis is not None
    second = next(updates)
    assert second.analysis is not None
    assert second.analysis.window.end_ns > first.analysis.window.end_ns
    assert (first.changed, second.changed) == (True, False)
    held = _descriptors()
    updates.close()
    assert _descriptors() == held - 1


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
