"""Files: lines are always whole, and no call waits."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import orjson
import pytest

from goodput_cli.cli.main import run as goodput
from goodput_cli.record import Recorder
from tests.record.record_programs import lines, run
from tests.support.commands import LONG_ENOUGH

KILLS = 200
KILLER = """
import ctypes, json, mmap, random
from goodput_cli.record import Recorder

def write(job, told):
    recorder = Recorder(job, sys.argv[1], heartbeat=0)
    for step in range(10**9):
        recorder.begin_step(step)
        told.value = step + 1  # the call has returned; one store, which a kill does not cut

chance = random.Random(1)
returned = {}
for kill in range(int(sys.argv[2]) // 2):
    pair = []
    for child in range(2):
        job, told = f"{kill}-{child}", ctypes.c_int64.from_buffer(mmap.mmap(-1, 8))
        pid = os.fork()
        if not pid:
            write(job, told)
        pair.append((job, told, pid))
    while not all(told.value for _, told, _ in pair):
        time.sleep(0.0005)
    time.sleep(chance.random() * 0.003)
    for _, _, pid in pair:
        os.kill(pid, signal.SIGKILL)
    for job, told, pid in pair:
        os.waitpid(pid, 0)
        returned[job] = told.value
print(json.dumps(returned))
"""


def test_every_returned_line_survives_sigkill(tmp_path: Path) -> None:
    out, _ = run(tmp_path, KILLER, "log.jsonl", str(KILLS))
    returned = json.loads(out)
    content = (tmp_path / "log.jsonl").read_bytes().split(b"\n")
    whole = [line for line in map(_parsed, content) if line is not None]
    cut = sum(1 for line in content if line) - len(whole)
    assert cut <= KILLS
    steps: dict[str, list[int]] = {}
    for line in whole:
        if "step_count" in line:
            steps.setdefault(line["job_name"], []).append(line["step_count"])
    assert len(returned) == KILLS
    for job, count in returned.items():
        assert steps[job] in (list(range(count)), list(range(count + 1)))  # the line being written may be there


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = orjson.loads(line)
    except ValueError:
        return None
    return found


def test_partial_line_of_earlier_attempt_affects_no_other(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"job_name": "j", "job_start_time": 1.0}\n{"job_na')
    Recorder("j", path, heartbeat=0).begin_step(0)
    first, cut, *rest = path.read_bytes().splitlines()
    assert (_parsed(first), _parsed(cut)) == ({"job_name": "j", "job_start_time": 1.0}, None)
    assert [(_parsed(line) or {}).get("step_count") for line in rest] == [None, None, 0]


def test_several_threads_need_no_lock(tmp_path: Path) -> None:
    recorder = Recorder("j", tmp_path / "log.jsonl", heartbeat=0)
    recorder.attempt()
    threads = [threading.Thread(target=lambda: list(recorder.steps(range(2000)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recorder.flush(LONG_ENOUGH)  # On a busy machine, lines go through a queue.
    steps = [line["step_count"] for line in lines(tmp_path / "log.jsonl")[2:]]
    assert sorted(steps) == sorted([*range(2000)] * 4)


FULL = """
import resource
from goodput_cli.record import Recorder
recorder = Recorder("j", "log.jsonl", heartbeat=0, fsync="never")
recorder.begin_step(0)
size = os.path.getsize("log.jsonl")
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 200, hard))
for step in range(1, 50):
    recorder.begin_step(step)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
for step in range(50, 60):
    recorder.begin_step(step)
"""


def test_full_disk_loses_counted_lines(tmp_path: Path) -> None:
    _, said = run(tmp_path, FULL)
    content = (tmp_path / "log.jsonl").read_bytes().splitlines()
    broken = [line for line in content if _parsed(line) is None]
    found = [line for line in map(_parsed, content) if line is not None]
    steps = [line["step_count"] for line in found if "step_count" in line]
    (dropped,) = [line for line in found if line.get("goodput_event") == "dropped"]
    assert len(broken) == 1
    assert len(steps) + dropped["lines"] == 60
    assert dropped["steps"] == dropped["lines"]
    assert steps[-10:] == [*range(50, 60)]
    assert dropped["from"] <= dropped["to"] <= dropped["goodput_time"]
    assert "a write was incomplete" in said


def test_full_device_ends_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    with Recorder("j", "/dev/full", heartbeat=0, warn=said.append).run():
        pass
    assert said[0].startswith("/dev/full: the disk is full (No space left on device)")
    assert "3 lines were lost" in said[-1]
    assert tmp_path.exists()


FULL_AT_RESTART = """
import resource
from goodput_cli.record import Recorder
resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize("log.jsonl"), resource.RLIM_INFINITY))
with Recorder("j", "log.jsonl", heartbeat=0, fsync="never").run():
    pass
"""


def test_full_disk_at_restart_is_reported(tmp_path: Path) -> None:
    """The last line of the earlier attempt is incomplete: the end of that line is the first write that fails."""
    (tmp_path / "log.jsonl").write_bytes(b'{"job_name": "j", "step_co')
    _, said = run(tmp_path, FULL_AT_RESTART)
    assert "log.jsonl: File too large; lines that cannot be written are counted" in said
    assert "3 lines were lost (File too large)" in said


def test_unopenable_path_is_reported_once(tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / "file").write_text("")
    with Recorder("j", tmp_path / "file" / "log.jsonl", heartbeat=0, warn=said.append).run():
        pass
    assert "log.jsonl: File exists; lines that cannot be written are counted" in said[0]
    assert said[1:] == [f"{tmp_path}/file/log.jsonl: 3 lines were lost (File exists)"]


FLOOD = """
from goodput_cli.record import Recorder
recorder = Recorder(sys.argv[1], "log.jsonl", heartbeat=0)
for step in range(30_000):
    recorder.begin_step(step)
"""


def test_two_processes_at_full_speed_leave_whole_lines(tmp_path: Path) -> None:
    from tests.record.record_programs import start

    pair = [start(tmp_path, FLOOD, job) for job in ("a", "b")]
    assert [process.wait(120) for process in pair] == [0, 0]
    for process in pair:
        process.communicate()
    found = lines(tmp_path / "log.jsonl")
    for job in ("a", "b"):
        assert [line["step_count"] for line in found if line["job_name"] == job and "step_count" in line] == [
            *range(30_000)
        ]


DELETED = """
import shutil
from goodput_cli.record import Recorder
recorder = Recorder("j", "logs/log.jsonl", heartbeat=0)
with recorder.run():
    for step in recorder.steps(range(20)):
        if step in (5, 10):
            time.sleep(0.002)
            (shutil.rmtree("logs") if sys.argv[1] == "folder" else os.remove("logs/log.jsonl"))
            time.sleep(0.002)
if sys.argv[2:] == ["again"]:
    with recorder.run():
        shutil.rmtree("logs")
        open("logs", "w").close()
        time.sleep(0.002)
        recorder.begin_step(0)
"""


@pytest.mark.parametrize("what", ["file", "folder"])
def test_deleted_log_is_recreated_and_reports_losses(
    tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Deleted twice: of 20 steps the newest file has those after step 10, and reports that 2 lines and 11 steps are
    lost."""
    _, said = run(tmp_path, DELETED, what)
    dropped, *rest = lines(tmp_path / "logs" / "log.jsonl")
    assert (dropped["lines"], dropped["steps"], dropped["reason"]) == (13, 11, "the file was deleted")
    assert dropped["from"] <= dropped["to"] <= dropped["goodput_time"]
    assert [line["step_count"] for line in rest if "step_count" in line] == [*range(11, 20)]
    assert "job_end_time" in rest[-1]
    assert said.count("logs/log.jsonl: the file was deleted during recording") == 1
    goodput(["check", str(tmp_path / "logs" / "log.jsonl")])
    assert "13 lines, including 11 steps (the file was deleted)" in " ".join(capsys.readouterr().out.split())


def test_deleted_log_without_replacement_is_counted(tmp_path: Path) -> None:
    _, said = run(tmp_path, DELETED, "folder", "again")
    assert "logs/log.jsonl: File exists; lines that cannot be written are counted" in said
    assert "logs/log.jsonl: 4 lines were lost (File exists)" in said


def test_log_deleted_after_last_line_is_only_reported(tmp_path: Path) -> None:
    said: list[str] = []
    recorder = Recorder("j", tmp_path / "log.jsonl", heartbeat=0, warn=said.append)
    recorder.begin_step(0)
    (tmp_path / "log.jsonl").unlink()
    recorder.close()
    assert said == [f"{tmp_path}/log.jsonl: 3 lines were lost (the file was deleted)"]
    assert list(tmp_path.iterdir()) == []


DESCRIPTORS = """
from goodput_cli.record import Recorder
recorder = Recorder("j", "log.jsonl", heartbeat=0)
with recorder.run():
    for step in recorder.steps(range(10)):
        if step == 4:
            time.sleep(0.002)
            os.closerange(3, 256)
            victims = [os.open(f"{number}.txt", os.O_RDWR | os.O_CREAT) for number in range(int(sys.argv[1]))]
            time.sleep(0.002)
for victim in victims:
    os.write(victim, b"mine")
"""


@pytest.mark.parametrize("files", [0, 8])
def test_closed_descriptors_affect_no_file(tmp_path: Path, files: int) -> None:
    """As python-daemon and some launchers do; the next opened file gets the descriptor that the log had."""
    _, said = run(tmp_path, DESCRIPTORS, str(files))
    steps = [line["step_count"] for line in lines(tmp_path / "log.jsonl") if "step_count" in line]
    assert steps == [*range(10)]
    assert "log.jsonl: the program closed this file; reopening it" in said
    assert {path.read_bytes() for path in tmp_path.glob("*.txt")} == ({b"mine"} if files else set())
