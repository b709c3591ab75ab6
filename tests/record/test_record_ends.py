"""Ends of programs in real processes: the contents of the log, and an exit status unchanged by the recorder."""

from __future__ import annotations

import signal
import time
from itertools import pairwise
from pathlib import Path

import pytest

from tests.record.record_programs import events, lines, pythons, run, start

HEAD = """
from goodput_cli.record import Recorder
recorder = Recorder("j", "log.jsonl", heartbeat=0{more})
"""
BODIES = {
    "clean": ("with recorder.run(): pass", 0, ["job_end_time"]),
    "exit 0": ("with recorder.run(): sys.exit(0)", 0, ["job_end_time"]),
    "exit 3": ("with recorder.run(): sys.exit(3)", 3, ["terminated SystemExit"]),
    "exception": ("with recorder.run(): 1 / 0", 1, ["crashed ZeroDivisionError"]),
    "no run": ("recorder.begin_step(1)", 0, ["step 1", "terminated exit"]),
    "no run, exception": ("recorder.begin_step(1); 1 / 0", 1, ["step 1", "crashed ZeroDivisionError"]),
    "interrupt": ("with recorder.run(): raise KeyboardInterrupt", -2, ["terminated KeyboardInterrupt"]),
    "no run, interrupt": (
        "recorder.begin_step(1); raise KeyboardInterrupt",
        -2,
        ["step 1", "terminated KeyboardInterrupt"],
    ),
    "stopped": ("with recorder.run(): recorder.stopped('plan')", 0, ["stopped plan"]),
    "notice": ("with recorder.run(): recorder.preemption_notice()", 0, ["preemption_notice", "terminated preempted"]),
    "thread": (
        "import threading; recorder.begin_step(1); t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()",
        0,
        ["step 1", "crashed ZeroDivisionError"],
    ),
    "run in run": (
        "with recorder.run():\n    with recorder.run(): pass\n    recorder.begin_step(2)",
        0,
        ["step 2", "job_end_time"],
    ),
}


def ending(folder: Path) -> list[str]:
    """Return the events after the start, with reasons."""
    found = zip(events(folder / "log.jsonl"), lines(folder / "log.jsonl"), strict=True)
    return [f"{name} {line.get('reason', '')}".strip() for name, line in found][2:]


@pytest.mark.parametrize("name", BODIES)
def test_ends_are_distinguished(tmp_path: Path, name: str) -> None:
    body, code, expected = BODIES[name]
    run(tmp_path, HEAD.format(more="") + body, code=code)
    assert ending(tmp_path) == expected


def test_crash_records_its_step_without_a_message(tmp_path: Path) -> None:
    body = "with recorder.run(), recorder.step(7): raise ValueError('/secret/path')"
    _, said = run(tmp_path, HEAD.format(more="") + body, code=1)
    assert lines(tmp_path / "log.jsonl")[-1]["step"] == 7
    assert "secret" not in (tmp_path / "log.jsonl").read_text(encoding="utf-8")
    assert "ValueError: /secret/path" in said


WAIT = """
recorder.begin_step(1)
print("ready", flush=True)
for _ in range(6000):
    time.sleep(0.01)
    if left: break
"""
HANDLERS = {
    "default": ("left = []", "", -signal.SIGTERM, ["step 1", "terminated SIGTERM"]),
    "default, preempted": (
        "left = []",
        ", sigterm='preempted'",
        -signal.SIGTERM,
        ["step 1", "preemption_notice", "terminated SIGTERM"],
    ),
    "a handler that leaves": (
        "left = []; signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))",
        "",
        5,
        ["step 1", "terminated SIGTERM"],
    ),
    "a handler that takes note": (
        "left = []; signal.signal(signal.SIGTERM, lambda *_: left.append(1))",
        "",
        0,
        ["step 1", "terminated SIGTERM"],
    ),
    "not in the main thread": ("left = []", "", -signal.SIGTERM, ["step 1"]),
}


@pytest.mark.parametrize("name", HANDLERS)
def test_sigterm_is_recorded(tmp_path: Path, name: str) -> None:
    before, more, code, expected = HANDLERS[name]
    text = before + HEAD.format(more=more)
    if name == "not in the main thread":
        text += "import threading; t = threading.Thread(target=recorder.attempt); t.start(); t.join()"
    assert terminated(tmp_path, text + WAIT, signal.SIGTERM) == code
    assert ending(tmp_path) == expected


def terminated(folder: Path, text: str, number: int) -> int:
    """Return the exit code of a program that gets a signal when it is ready."""
    process = start(folder, text)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    process.communicate(timeout=120)
    return int(process.returncode)


def test_ignored_sigterm_stays_ignored(tmp_path: Path) -> None:
    text = "left = []; signal.signal(signal.SIGTERM, signal.SIG_IGN)" + HEAD.format(more="")
    text += "recorder.begin_step(0)\nassert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN\n"
    process = start(tmp_path, text + "print('ready', flush=True)\nsys.stdin.read(1)\nrecorder.begin_step(1)")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    time.sleep(0.05)
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert ending(tmp_path) == ["step 0", "step 1", "terminated exit"]


def test_handler_in_c_is_kept(tmp_path: Path) -> None:
    """A library handles SIGTERM in C, as JAX does: `abs` is a handler without an effect."""
    text = "import ctypes; libc = ctypes.CDLL(None)\nlibc.signal.argtypes = ctypes.c_int, ctypes.c_void_p\n"
    text += "libc.signal(signal.SIGTERM, ctypes.cast(libc.abs, ctypes.c_void_p))"
    text += (
        HEAD.format(more="") + "recorder.begin_step(1)\nos.kill(os.getpid(), signal.SIGTERM)\nrecorder.begin_step(2)"
    )
    _, said = run(tmp_path, text)
    assert ending(tmp_path) == ["step 1", "step 2", "terminated exit"]
    assert "SIGTERM is handled by a C library" in said


def test_signal_long_ago_is_not_the_end(tmp_path: Path) -> None:
    text = "left = []; signal.signal(signal.SIGTERM, lambda *_: None)" + HEAD.format(more="")
    text += """
with recorder.run():
    recorder.begin_step(1)
    os.kill(os.getpid(), signal.SIGTERM)
    recorder.begin_step(2, at=time.time() + 601)
"""
    run(tmp_path, text)
    assert ending(tmp_path) == ["step 1", "step 2", "job_end_time"]


def test_previous_handler_is_restored(tmp_path: Path) -> None:
    text = "mine = lambda *_: None\nsignal.signal(signal.SIGTERM, mine)" + HEAD.format(more="")
    run(tmp_path, text + "with recorder.run(): pass\nassert signal.getsignal(signal.SIGTERM) is mine")


FORK = """
with recorder.run():
    recorder.begin_step(1)
    for how in ("silent", "exit", "reopen"):
        pid = os.fork()
        if not pid:
            recorder.begin_step(99)
            if how == "exit":
                sys.exit(0)
            if how == "reopen":
                recorder.reopen()
                recorder.begin_step(50)
                recorder.flush()
            os._exit(0)
        os.waitpid(pid, 0)
    recorder.begin_step(2)
"""


@pytest.mark.parametrize("python", pythons())
@pytest.mark.filterwarnings("ignore")
def test_fork_writes_no_line_twice(tmp_path: Path, python: str) -> None:
    run(tmp_path, HEAD.format(more=", inline=False") + FORK, python=python)
    # reported by the process that opened the file second
    found = [one for one in events(tmp_path / "log.jsonl") if one != "second_writer"]
    child = ["attempt", "job_start_time", "step 50"]
    parent = ["attempt", "job_start_time", "step 1", "step 2", "job_end_time"]
    assert sorted(found) == sorted(child + parent)  # a thread of each writes, now or a moment later
    assert [one for one in found if one in parent[2:]] == parent[2:]


def test_two_recorders_are_both_notified(tmp_path: Path) -> None:
    text = (
        "left = []" + HEAD.format(more="") + "other = Recorder('k', 'other.jsonl', heartbeat=0)\nother.begin_step(1)\n"
    )
    assert terminated(tmp_path, text + WAIT, signal.SIGTERM) == -signal.SIGTERM
    assert events(tmp_path / "other.jsonl")[-1] == events(tmp_path / "log.jsonl")[-1] == "terminated"


def test_run_after_the_end_is_another_attempt(tmp_path: Path) -> None:
    run(tmp_path, HEAD.format(more="") + "for _ in range(2):\n    with recorder.run(): pass\nrecorder.begin_step(1)")
    assert events(tmp_path / "log.jsonl") == ["attempt", "job_start_time", "job_end_time"] * 2


def test_heartbeats_fill_gaps_without_lines(tmp_path: Path) -> None:
    text = HEAD.format(more="").replace("heartbeat=0", "heartbeat=0.05")
    text += "with recorder.run():\n    recorder.begin_step(4)\n"
    run(tmp_path, text + "    while open('log.jsonl').read().count('heartbeat') < 3: time.sleep(0.01)")
    found = lines(tmp_path / "log.jsonl")
    beats = [line for line in found if line.get("goodput_event") == "heartbeat"]
    times = [beat["goodput_time"] for beat in beats]
    assert all(later - earlier > 0.04 for earlier, later in pairwise(times))
    assert {(line["step"], line["run_id"]) for line in beats} == {(4, found[0]["run_id"])}


def test_log_is_correct_after_sigkill(tmp_path: Path) -> None:
    text = HEAD.format(more="") + "left = []\nspan = recorder.checkpoint_save(1); span.__enter__()\n"
    assert terminated(tmp_path, text + WAIT, signal.SIGKILL) == -signal.SIGKILL
    assert ending(tmp_path) == ["step 1"]
