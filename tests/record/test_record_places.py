"""Selection of the written file: names, folders, links, mounts and slow disks."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli.record import Recorder
from goodput_cli.record.lines import STEP_LINE
from goodput_cli.record.names import in_path
from goodput_cli.record.queues import Worker
from goodput_cli.record.sinks.files import SLOW_WRITES, FileSink, file_system, is_local
from goodput_cli.record.writer import Writer
from tests.record.record_programs import events, lines, run, start
from tests.support.commands import LONG_ENOUGH, until


def test_renamed_file_is_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for interval in ("_LOOK_NS", "_NAME_NS"):
        monkeypatch.setattr(f"goodput_cli.record.sinks.files.{interval}", 0)
    path = tmp_path / "log.jsonl"
    recorder = Recorder("j", path, heartbeat=0)
    recorder.begin_step(0)
    path.rename(tmp_path / "log.jsonl.1")
    recorder.begin_step(1)
    path.unlink()
    recorder.begin_step(2)
    assert events(tmp_path / "log.jsonl.1")[-1] == "step 0"
    assert events(path) == ["dropped", "step 2"]


def test_folder_gets_a_file_per_process_and_attempt(tmp_path: Path) -> None:
    for rank in range(2):
        Recorder("a job", f"{tmp_path}/logs/", rank=rank, ranks="all", heartbeat=0, run_id="r1").attempt()
    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == ["a%20job.r1.r0.jsonl", "a%20job.r1.r1.jsonl"]


def test_job_names_cannot_leave_their_folder(tmp_path: Path) -> None:
    assert in_path("../../etc/passwd") == "%2E.%2F..%2Fetc%2Fpasswd"
    assert in_path("ü") == "%C3%BC"
    assert in_path("") == "_"
    long, other = in_path("x" * 500), in_path("x" * 501)
    assert (len(long), long != other) == (120, True)
    Recorder("../j", heartbeat=0).attempt()
    assert [path.name for path in Path("goodput-logs").iterdir()] == ["%2E.%2Fj.jsonl"]


def test_links_in_the_default_folder_are_not_followed(tmp_path: Path) -> None:
    Path("goodput-logs").mkdir()
    Path("goodput-logs/j.jsonl").symlink_to(tmp_path / "elsewhere")
    said: list[str] = []
    Recorder("j", heartbeat=0, warn=said.append).attempt()
    assert not (tmp_path / "elsewhere").exists()
    assert "j.jsonl: it is a symbolic link" in said[0]
    assert "pass the file itself as `to`" in said[0]


def test_pipe_without_reader_delays_no_call(tmp_path: Path) -> None:
    """No time is asserted: the test ends, although the pipe takes no data."""
    os.mkfifo(tmp_path / "pipe")
    recorder = Recorder("j", tmp_path / "pipe", heartbeat=0, grace=0.2, warn=lambda _: None)
    for _ in recorder.steps(range(20_000)):
        pass
    recorder.close()


def linked_pipe(path: str) -> None:
    os.mkfifo(f"{path}.pipe")
    os.symlink(f"{path}.pipe", path)


def linked_device(path: str) -> None:
    os.symlink("/dev/null", path)


REPLACED: dict[str, Callable[[str], None]] = {
    "a pipe": os.mkfifo,
    "a directory": os.mkdir,
    "a device": linked_device,
    "a pipe behind a link": linked_pipe,
}


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("what", REPLACED)
def test_file_replaced_by_a_pipe_is_not_waited_for(
    what: str, deleted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A renamed file is continued; the lines of a deleted one are counted, until there is a file again."""
    for interval in ("_LOOK_NS", "_NAME_NS"):
        monkeypatch.setattr(f"goodput_cli.record.sinks.files.{interval}", 0)
    path = tmp_path / "run.jsonl"
    said: list[str] = []
    recorder = Recorder("j", path, heartbeat=0, warn=said.append)
    recorder.begin_step(1)
    path.unlink() if deleted else path.rename(tmp_path / "run.1")
    REPLACED[what](str(path))
    for step in range(2, 6):
        recorder.begin_step(step)
    assert [one for one in said if "regular file" in one] == [
        f"{path}: the file was replaced by something that is not a regular file; lines that cannot be written are "
        "counted in the log"
    ]
    path.rmdir() if what == "a directory" else path.unlink()
    recorder.begin_step(6)
    recorder.close()
    files = [path] if deleted else [tmp_path / "run.1", path]
    events = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    steps = [one["step_count"] for one in events if "step_count" in one]
    assert steps == ([6] if deleted else [1, 2, 3, 4, 5, 6])
    assert any(one.get("goodput_event") == "dropped" for one in events) == deleted


def test_slow_writes_add_a_queue(tmp_path: Path) -> None:
    """A pipe of one page, whose reader takes a page every 100 ms: every write of a page blocks for that time."""
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    said: list[str] = []
    writer = Writer("j", tmp_path / "pipe", warn=said.append, inline=True)
    (sink,) = writer._sinks
    assert isinstance(sink, FileSink)
    sink.slow = writer._add_queue  # as without `inline=True`
    page = b"x" * 4095 + b"\n"
    writer.write(page, STEP_LINE, 1)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
    done = threading.Event()

    def read() -> None:
        while not done.wait(0.1):
            with suppress(BlockingIOError):
                os.read(reader, 4096)

    taking = threading.Thread(target=read, daemon=True)
    taking.start()
    written = 0
    while writer._sinks == (sink,):
        writer.write(page, STEP_LINE, 1)
        written += 1
        assert written < 20
    assert written >= SLOW_WRITES
    assert isinstance(writer._sinks[0], Worker)
    assert "slow writes" in said[0]
    for _ in range(100):
        writer.write(page, STEP_LINE, 1)  # would take 10 s
    done.set()
    taking.join()
    writer.close(0.1)
    os.close(reader)


def test_file_system_is_read_from_the_mounts(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "22 1 8:1 / / rw shared:1 - ext4 /dev/sda rw\n"
        "40 22 0:40 / /home/a\\040b rw - nfs4 host:/x rw\n"
        "41 22 0:41 / /home/a\\040b/scratch rw - fuse.gcsfuse bucket rw\n"
    )
    assert file_system("/home/other", str(mounts)) == "ext4"
    assert file_system("/home/a b/log", str(mounts)) == "nfs4"
    assert file_system("/home/a b/scratch/log", str(mounts)) == "fuse"
    assert (is_local("/x", str(mounts)), is_local("/home/a b/x", str(mounts))) == (True, False)
    assert not is_local("/x", str(tmp_path / "none"))


def test_queued_file_gets_every_line(tmp_path: Path) -> None:
    recorder = Recorder("j", tmp_path / "log.jsonl", heartbeat=0, inline=False)
    with recorder.run():
        for _ in recorder.steps(range(3000)):
            pass
    assert events(tmp_path / "log.jsonl") == [
        "attempt",
        "job_start_time",
        *(f"step {step}" for step in range(3000)),
        "job_end_time",
    ]


NOBODY_READS = """
from goodput_cli.record import Recorder
recorder = Recorder("j", ["-", "log.jsonl"], heartbeat=0, grace=0.2, queue_lines=100)
with recorder.run():
    for step in recorder.steps(range(20_000)):  # more than any pipe takes
        pass
    open("trained", "w").close()
    import time
    time.sleep(600)
"""


def test_unread_output_blocks_neither_step_nor_sigterm(tmp_path: Path) -> None:
    """Both outputs are pipes without a reader: messages of the recorder have no room either."""
    with start(tmp_path, NOBODY_READS) as process:
        try:
            until((tmp_path / "trained").exists)
            process.terminate()
            assert process.wait(LONG_ENOUGH) == -signal.SIGTERM
        finally:
            process.kill()
    written = lines(tmp_path / "log.jsonl")
    assert sum("step_count" in line for line in written) == 20_000
    assert [line["sink"] for line in written if line.get("goodput_event") == "dropped"] == ["file"]


WRITES_ON = """
import sys
import time
from goodput_cli.record import Recorder
recorder = Recorder("j", "log.jsonl", heartbeat=0)
recorder.begin_step(int(sys.argv[1]))
print("wrote", flush=True)
time.sleep(int(sys.argv[2]))
recorder.close()
"""


def test_second_writer_of_a_file_is_warned_and_writes(tmp_path: Path) -> None:
    with start(tmp_path, WRITES_ON, "1", "600") as first:
        try:
            assert first.stdout is not None
            assert first.stdout.readline() == "wrote\n"
            _, said = run(tmp_path, WRITES_ON, "2", "0")
            assert f"log.jsonl: process {first.pid} also writes to this file" in said
            assert "Give each process its own rank" in said
        finally:
            first.kill()
    assert [line["step_count"] for line in lines(tmp_path / "log.jsonl") if "step_count" in line] == [1, 2]
    assert [line.get("run_id") is not None for line in lines(tmp_path / "log.jsonl") if "step_count" in line] == [
        False,
        True,
    ]
    _, said = run(tmp_path, WRITES_ON, "3", "0")
    assert said == ""


def test_two_writers_at_once_are_a_diagnostic(tmp_path: Path) -> None:
    with start(tmp_path, WRITES_ON, "1", "600") as first:
        try:
            assert first.stdout is not None
            assert first.stdout.readline() == "wrote\n"
            run(tmp_path, WRITES_ON, "1", "0")
            run(tmp_path, WRITES_ON, "2", "0")
        finally:
            first.kill()
    analysis = goodput_cli.analyze(tmp_path / "log.jsonl")
    said = {one.code: one for one in analysis.diagnostics}
    assert said["two_writers"].count == 2
    assert "two processes wrote at the same time" in said["two_writers"].message
    assert not {"multi_host_duplicates", "unknown_keys", "unknown_event"} & said.keys()


def test_several_sinks_get_the_same_lines(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    class Mine:
        def __init__(self) -> None:
            self.lines: list[bytes] = []

        def write(self, line: bytes) -> None:
            self.lines.append(line)

    mine = Mine()
    recorder = Recorder("j", [tmp_path / "a.jsonl", f"file://{tmp_path}/b.jsonl", "-", "stderr:", mine], heartbeat=0)
    with recorder.run():
        recorder.begin_step(1)
    content = (tmp_path / "a.jsonl").read_bytes()
    out, err = capfd.readouterr()
    assert content == (tmp_path / "b.jsonl").read_bytes() == b"".join(mine.lines) == out.encode() == err.encode()
    assert content.count(b"\n") == 4


@pytest.mark.parametrize("target", ["s3://bucket/x", "", 7, "http://x"])
def test_invalid_target_is_refused_at_once(target: Any) -> None:
    with pytest.raises(ValueError, match="cannot record to"):
        Recorder("j", target)
