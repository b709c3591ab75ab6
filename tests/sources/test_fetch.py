"""`goodput fetch`: a snapshot is written as a whole, is incremental, and gives the result of its source."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from goodput_cli.api.analyze import analyze
from goodput_cli.api.fetch import fetch
from goodput_cli.cli.main import run
from goodput_cli.errors import SourceError, UsageError
from goodput_cli.events.read import read_events
from goodput_cli.sources.snapshot import read_manifest, write_snapshot
from tests.support.clouds import LOG, answer, filters, logging_server
from tests.support.logs import envelope, log_file, step
from tests.support.servers import T0, LoggingServer, entry, steps

SAMPLES = Path(__file__).parent.parent.parent / "sample_logs"
KINDS = ("run.jsonl.gz", "run.parquet", "run.jsonl")


@pytest.fixture(scope="module")
def running() -> Iterator[LoggingServer]:
    with LoggingServer() as started:
        yield started


@pytest.fixture
def server(running: LoggingServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LoggingServer]:
    with logging_server(monkeypatch, tmp_path, running) as ready:
        yield ready


def lines_of(path: Path) -> list[bytes]:
    return gzip.decompress(path.read_bytes()).splitlines()


@pytest.mark.parametrize("name", KINDS)
def test_snapshot_gives_the_result_of_the_log(server: LoggingServer, tmp_path: Path, name: str) -> None:
    server.add(*steps(2500))
    path = tmp_path / name
    fetch([LOG], path, job_name="j")
    assert answer(str(path)) == answer(LOG)


@pytest.mark.parametrize("sample", sorted(SAMPLES.glob("*.jsonl")), ids=lambda path: str(path.name))
@pytest.mark.parametrize("name", KINDS)
def test_snapshot_gives_the_result_of_a_file(tmp_path: Path, sample: Path, name: str) -> None:
    path = tmp_path / name
    fetch([str(sample)], path)
    before, after = analyze(str(sample)), analyze(str(path))
    assert (before.goodput, before.badput, before.window) == (after.goodput, after.badput, after.window)
    assert [(one.code, one.count) for one in before.diagnostics] == [(one.code, one.count) for one in after.diagnostics]


def test_lines_are_kept_unchanged(tmp_path: Path) -> None:
    odd = [step(1, 1), "not json", b'{"a": NaN}', b"\xff\xfe{", "", '{"job_name": "j", "step_count": 2']
    path = tmp_path / "run.jsonl.gz"
    fetch([log_file(tmp_path, *odd)], path)
    assert lines_of(path) == [json.dumps(odd[0]).encode(), b"not json", odd[2], odd[3], str(odd[5]).encode()]


def test_array_becomes_lines(tmp_path: Path) -> None:
    source = tmp_path / "gcloud.json"
    source.write_text(json.dumps([envelope(step(2, 2), insertId="b"), envelope(step(1, 1))], indent=2))
    path = tmp_path / "run.jsonl.gz"
    assert fetch([str(source)], path).lines == 2
    assert read_events([str(path)]).table.step.tolist() == [2, 1]


def test_truncated_source_stays_marked(tmp_path: Path) -> None:
    source = tmp_path / "cut.jsonl.gz"
    source.write_bytes(gzip.compress(b"\n".join(json.dumps(step(at, at)).encode() for at in range(500)))[:-40])
    path = tmp_path / "run.parquet"
    fetch([str(source)], path)
    assert [one.code for one in read_events([str(path)]).diagnostics if one.code == "truncated_file"]


def test_manifest_describes_the_snapshot(server: LoggingServer, tmp_path: Path) -> None:
    server.add(*steps(20))
    path = tmp_path / "run.jsonl.gz"
    fetch([LOG], path, job_name="j")
    found = json.loads((tmp_path / "run.jsonl.gz.manifest").read_text())
    assert found["sources"] == [LOG]
    assert (found["job_name"], found["lines"], found["complete"]) == ("j", 21, True)
    assert found["start"] == "2026-01-01T00:00:00.000000000Z"
    assert found["end"] == "2026-01-01T00:00:20.500000000Z"
    assert found["fetched_at"] > "2026"


@pytest.mark.parametrize("name", ["run.jsonl.gz", "run.parquet"])
def test_update_reads_only_new_and_late_entries(server: LoggingServer, tmp_path: Path, name: str) -> None:
    server.add(*steps(4500))
    path = tmp_path / name
    fetch([LOG], path, job_name="j", use_cache=False)
    filters(server)
    server.add(
        entry({"job_name": "j", "step_count": 4500, "step_start_time": T0 + 4501.5}, 4501.5, "new"),
        entry({"job_name": "j", "job_start_time": T0 + 40.0}, 40, "late", received=time.time() - T0),
    )
    manifest = fetch([], path, update=True)
    assert manifest.lines == 4503
    assert len(filters(server)) == 1 + 4
    assert answer(str(path)) == answer(LOG, use_cache=False)
    assert fetch([LOG], path, update=True).lines == 4503


def test_update_of_files_keeps_deleted_lines(tmp_path: Path) -> None:
    first = log_file(tmp_path, step(1, 1), step(2, 2))
    path = tmp_path / "snap.jsonl.gz"
    fetch([first], path)
    log_file(tmp_path, step(2, 2), step(3, 3))
    assert fetch([first], path, update=True).lines == 3


def test_existing_file_is_not_overwritten(server: LoggingServer, tmp_path: Path) -> None:
    server.add(*steps(3000))
    path = tmp_path / "run.jsonl.gz"
    fetch([LOG], path, job_name="j", use_cache=False)
    data = path.read_bytes()
    with pytest.raises(UsageError, match="with --update"):
        fetch([LOG], path)
    with pytest.raises(UsageError, match="is a snapshot of"):
        fetch(["other.jsonl"], path, update=True)
    with pytest.raises(UsageError, match="is a snapshot of"):
        fetch([LOG], path, update=True, job_name="k")
    server.fault("PERMISSION_DENIED", after=1, times=10)
    with pytest.raises(SourceError):
        fetch([LOG], path, force=True, use_cache=False)
    assert path.read_bytes() == data
    (tmp_path / "run.jsonl.gz.manifest").unlink()
    with pytest.raises(UsageError, match="manifest is missing"):
        fetch([], path, update=True)


def test_failed_fetch_keeps_its_data_and_continues(server: LoggingServer, tmp_path: Path) -> None:
    server.add(*steps(3000))
    path = tmp_path / "run.jsonl.gz"
    server.fault("PERMISSION_DENIED", after=2, times=1)
    notices: list[str] = []
    with pytest.raises(SourceError):
        fetch([LOG], path, job_name="j", notice=notices.append)
    assert "continue with --update" in notices[-1]
    manifest = read_manifest(path)
    assert manifest is not None
    assert (manifest.complete, manifest.lines) == (False, 2000)
    assert fetch([], path, update=True).lines == 3001
    assert answer(str(path)) == answer(LOG)


class Interrupted:
    """Progress that is interrupted at the first lines."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None

    def add_lines(self, _count: int) -> None:
        raise KeyboardInterrupt


def test_interrupt_keeps_data_that_cannot_be_reread(tmp_path: Path) -> None:
    """Files can be read again: there is nothing to keep."""
    log = log_file(tmp_path, {"job_name": "j", "job_start_time": T0})
    path = tmp_path / "run.jsonl.gz"
    with pytest.raises(KeyboardInterrupt):
        fetch([log], path, progress=Interrupted())
    assert os.listdir(tmp_path) == [Path(log).name]
    with pytest.raises(KeyboardInterrupt), open(log, "rb") as stream:
        fetch(["-"], path, progress=Interrupted(), stdin=stream)
    manifest = read_manifest(path)
    assert manifest is not None
    assert (manifest.complete, manifest.lines) == (False, 1)


def test_interrupted_write_keeps_the_old_snapshot(tmp_path: Path) -> None:
    class Lines(list[bytes]):
        def __iter__(self) -> Iterator[bytes]:
            yield self[0]
            raise KeyboardInterrupt

    path = tmp_path / "run.jsonl.gz"
    manifest = fetch([log_file(tmp_path, {"job_name": "j", "job_start_time": T0})], path)
    data = path.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        write_snapshot(path, Lines([b"{}", b"{}"]), manifest)
    assert (path.read_bytes(), read_manifest(path)) == (data, manifest)
    assert len(os.listdir(tmp_path)) == 3


def test_snapshot_may_mix_schemes(server: LoggingServer, tmp_path: Path) -> None:
    entries = steps(50)
    server.add(*entries)
    more = log_file(tmp_path, {"job_name": "j", "job_end_time": T0 + 51.5})
    path = tmp_path / "all.parquet"
    fetch([LOG, more], path, job_name="j")
    assert answer(str(path)) == answer(LOG, more)


@pytest.mark.parametrize("name", ["run.txt", "run.gz", "run"])
def test_file_name_determines_the_kind(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="a snapshot must be named"):
        fetch(["x.jsonl"], tmp_path / name)


def test_parquet_that_is_not_a_snapshot_is_read(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    path = str(tmp_path / "table.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), path)
    assert len(read_events([path]).table) == 0
    Path(path).write_bytes(b"hello")
    with pytest.raises(SourceError, match="not a valid Parquet file"):
        read_events([path])


def test_fetch_command_works(server: LoggingServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server.add(*steps(30, log="j-goodput"))
    path = str(tmp_path / "run.jsonl.gz")
    assert run(["fetch", "-j", "j", "-o", path]) == 0
    assert run(["fetch", "-j", "j", "-o", path]) == 2
    assert run(["fetch", "--update", "-o", path, "-q"]) == 0
    assert run(["analyze", path, "--format", "csv"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("category,")
    assert f"{path}: 31 lines, 2026-01-01 00:00:00 - " in err
    assert run(["fetch", "-o", path]) == 2
    assert run(["fetch", "missing.jsonl", "-o", str(tmp_path / "x.jsonl.gz")]) == 1
    assert sorted(os.listdir(tmp_path)) == ["cache", "run.jsonl.gz", "run.jsonl.gz.manifest"]


def test_strict_fetch_reports_problems(server: LoggingServer, tmp_path: Path) -> None:
    server.add(*steps(30)[4:])
    assert run(["fetch", LOG, "-j", "j", "--strict", "-o", str(tmp_path / "run.jsonl.gz")]) == 5


def test_unsupported_content_is_reported(tmp_path: Path) -> None:
    """Text without its file's name belongs to another job, and event files are left out."""
    (tmp_path / "a.log").write_text((SAMPLES / "trainers" / "torchtitan" / "train.log").read_text())
    log_file(tmp_path, step(1, 10), name="b.jsonl")
    manifest = fetch([str(tmp_path)], tmp_path / "run.jsonl.gz")
    (apart,) = [one for one in manifest.diagnostics if one.code == "not_in_snapshot"]
    assert (apart.count, apart.where) == (1, (str(tmp_path / "a.log"),))
    assert "not_a_log" not in {one.code for one in manifest.diagnostics}  # analyzing the folder reads it, too


@pytest.mark.parametrize("name", KINDS)
def test_changed_snapshot_is_reported_and_not_updated(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(step(number, 30 * number)) + "\n" for number in range(1, 11)))
    assert run(["fetch", str(log), "-o", str(path), "-q"]) == 0
    assert run(["analyze", str(path)]) == 0
    assert "snapshot_changed" not in capsys.readouterr().err
    manifest = read_manifest(path)
    assert manifest is not None
    lines = log.read_bytes().splitlines()
    last = lines[-1].replace(b'"step_count": 10', b'"step_count": 19')
    assert last != lines[-1]
    packed, kept = path.read_bytes(), (tmp_path / f"{name}.manifest").read_bytes()
    write_snapshot(path, [*lines[:-1], last], manifest)
    (tmp_path / f"{name}.manifest").write_bytes(kept)
    assert path.read_bytes() != packed
    assert run(["analyze", str(path), "--strict"]) == 5
    said = capsys.readouterr().err
    assert "snapshot_changed" in said
    assert "goodput fetch --force" in said
    assert run(["fetch", str(log), "-o", str(path), "--update", "-q"]) == 2
    assert "download it again with --force" in capsys.readouterr().err
    assert run(["fetch", str(log), "-o", str(path), "--force", "-q"]) == 0
    assert run(["analyze", str(path)]) == 0
    assert "snapshot_changed" not in capsys.readouterr().err


def test_manifest_without_digest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    (tmp_path / "log").mkdir()
    assert run(["fetch", log_file(tmp_path / "log", [step(1, 30), step(2, 60)]), "-o", str(path), "-q"]) == 0
    manifest = json.loads((tmp_path / "run.jsonl.manifest").read_bytes())
    assert len(manifest.pop("digest")) == 64
    (tmp_path / "run.jsonl.manifest").write_text(json.dumps(manifest))
    before = read_manifest(path)
    assert before is not None
    assert before.lines == 2
    assert run(["fetch", "-o", str(path), "--update", "-q"]) == 0
    after = read_manifest(path)
    assert after is not None
    assert len(after.digest) == 64


def test_file_that_is_not_a_manifest_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "run.jsonl.gz.manifest"
    other.write_text("files of ours\n")
    asked = ["fetch", log_file(tmp_path, [step(1, 30), step(2, 60)]), "-o", str(tmp_path / "run.jsonl.gz"), "-q"]
    assert run(asked) == 2
    assert f"{other}: the file exists" in capsys.readouterr().err
    assert other.read_text() == "files of ours\n"
    assert not (tmp_path / "run.jsonl.gz").exists()
    assert run([*asked, "--force"]) == 0
