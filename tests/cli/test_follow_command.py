"""`goodput watch` from outside."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import goodput_cli
from goodput_cli.cli.main import goodput as command
from tests.support.clouds import ROOT, goodput, log_lines

SAMPLE = ROOT / "sample_logs" / "primer-50-percent.jsonl"
ENVIRONMENT = {"PYTHONPATH": str(ROOT), "COLUMNS": "80", "LINES": "60", "TERM": "xterm", "PATH": os.defpath}


def start_watch(*arguments: object, stdout: int = subprocess.PIPE) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "goodput_cli", "watch", "--interval", "0.1", *map(str, arguments)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )


def test_each_new_line_is_an_update(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.touch()
    with start_watch(path, "--format", "json", "--updates", 3) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Waiting: ")
        goodputs = []
        for number in (10, 20, 30):
            with path.open("ab") as stream:
                stream.write(log_lines(*range(number - 10, number)))
            update = json.loads(process.stdout.readline())
            goodputs.append(update["goodput"]["ns"])
        assert process.wait(20) == 0
    assert goodputs == sorted(set(goodputs))


def test_answer_agrees_with_analyze() -> None:
    at = ["--as-of", "2030-01-01", "--format", "json"]
    watched = goodput(["watch", str(SAMPLE), "--updates", "1", *at], {})
    analysed = goodput(["analyze", str(SAMPLE), *at], {})
    assert (watched.returncode, watched.stderr) == (0, analysed.stderr)
    assert json.loads(watched.stdout) == json.loads(analysed.stdout)


def test_truncation_is_reported_and_the_end_is_an_interrupt(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(log_lines(*range(20)))
    with start_watch(path, "-q") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        path.write_bytes(log_lines(1))
        assert "was rewritten" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.stderr.read().strip() == "Interrupted."
    assert process.returncode == 130


SWALLOWED = """
import os, signal
import numpy
from goodput_cli.api.watch import WatchedLog

class LooksUp(type):
    def __getattr__(cls, name):
        os.kill(os.getpid(), signal.SIGINT)
        raise AttributeError(name)

class Operand(metaclass=LooksUp):
    pass

def look(watched, before=WatchedLog.look):
    numpy.ones(1) == Operand()
    print("swallowed", flush=True)
    return before(watched)

WatchedLog.look = look
from goodput_cli.__main__ import main
main()
"""


@pytest.mark.parametrize(
    "arguments", [["watch"], ["watch", "--format", "json"], ["monitor", "--publish", "json:m.json"]]
)
def test_interrupt_swallowed_by_numpy_ends_watch(arguments: list[str], tmp_path: Path) -> None:
    """numpy swallows it while it looks for special attributes; Python code finds those of an enumeration."""
    (tmp_path / "run.jsonl").write_bytes(log_lines(*range(20)))
    command = [sys.executable, "-c", SWALLOWED, arguments[0], "run.jsonl", *arguments[1:]]
    done = subprocess.run(
        command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.startswith("swallowed\n")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (130, "Interrupted.")


def test_watch_ends_if_the_reader_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(log_lines(*range(20)))
    with start_watch(path, "--format", "json") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        with path.open("ab") as stream:
            stream.write(log_lines(20))
        assert process.wait(20) == 0


def test_terminal_output_is_drawn_in_place(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(log_lines(*range(20), job="first"))
    screen, terminal = pty.openpty()
    with start_watch(path, "--updates", 3, stdout=terminal) as process:
        os.close(terminal)
        shown = _all_of(screen)
        assert process.wait(20) == 0
    assert shown.startswith("\x1b[?1049h\x1b[HReading")
    assert shown.count("\x1b[H") == 1 + 3
    assert shown.count("press Ctrl-C to end") == 1 + 3  # The terminal can be too small for the rest.
    after = shown.partition("\x1b[?1049l")[2]
    assert "first" in after
    assert "\x1b[H" not in after


def _all_of(screen: int) -> str:
    parts = []
    while True:
        try:
            part = os.read(screen, 65_536)
        except OSError:  # Linux reports this error once all writers are gone.
            break
        if not part:
            break
        parts.append(part)
    os.close(screen)
    return b"".join(parts).decode()


def test_watch_waits_for_a_missing_path(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    with start_watch(folder, "--updates", 1, "--format", "json") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert "logs" in process.stderr.readline()
        folder.mkdir()
        (folder / "run.jsonl").write_bytes(log_lines(*range(20)))
        assert json.loads(process.stdout.readline())["job"]["attempts"] == 1
        assert process.wait(20) == 0


def running_job(path: Path, age: float, *, step_seconds: float = 1.0, beats: bool = False, end: bool = False) -> Path:
    """Write a job of 60 steps whose last step began `age` seconds ago."""
    last = time.time() - age
    start = last - 59 * step_seconds
    lines: list[dict[str, object]] = [{"job_name": "j", "job_start_time": start}]
    lines += [{"job_name": "j", "step_count": n, "step_start_time": start + n * step_seconds} for n in range(60)]
    ends = [{"job_name": "j", "job_end_time": last + step_seconds}] if end else []
    beating = range(10, int(age), 10) if beats else ()
    beat = {"job_name": "j", "goodput_event": "heartbeat", "run_id": "r"}
    lines += [beat | {"goodput_time": last + at} for at in beating]
    path.write_text("".join(json.dumps(line) + "\n" for line in [*lines, *ends]))
    return path


@pytest.mark.parametrize(
    ("age", "step_seconds", "lead"),
    [
        (130, 1.0, "no step for 2 min 1"),
        (45, 1.0, ""),  # ten steps, but no minute
        (90, 30.0, ""),  # a minute, but no ten steps
        (320, 30.0, "no step for 5 min 2"),
    ],
)
def test_watch_leads_with_the_time_without_a_step(tmp_path: Path, age: float, step_seconds: float, lead: str) -> None:
    log = running_job(tmp_path / "run.jsonl", age, step_seconds=step_seconds)
    done = CliRunner().invoke(command, ["watch", str(log), "--updates", "1", "-q"])
    assert done.exit_code == 0
    assert done.stdout.strip().startswith(lead or "j")
    assert ("(usually " in done.stdout) is bool(lead)


def test_watch_of_an_ended_job_claims_no_hang(tmp_path: Path) -> None:
    log = running_job(tmp_path / "run.jsonl", 130, end=True)
    shown = CliRunner().invoke(command, ["watch", str(log), "--updates", "1", "-q"]).stdout
    assert "no step for" not in shown


@pytest.mark.parametrize(
    ("beats", "text"),
    [(True, "hangs now: no step for 2 min 1"), (False, "step 59 hangs, or its process has exited")],
)
def test_live_clock_shows_a_hang(tmp_path: Path, beats: bool, text: str) -> None:
    log = str(running_job(tmp_path / "run.jsonl", 130, beats=beats))
    live = {one.code: one.text for one in goodput_cli.analyze(log, as_of="now").insights}
    assert text in live["hung_now"]
    assert "dead_job" not in live
    finished = {one.code for one in goodput_cli.analyze(str(running_job(tmp_path / "run.jsonl", 130))).insights}
    assert "hung_now" not in finished


def test_long_silence_can_be_a_dead_job(tmp_path: Path) -> None:
    log = str(running_job(tmp_path / "run.jsonl", 1300))
    live = {one.code for one in goodput_cli.analyze(log, as_of="now").insights}
    assert "dead_job" in live
    assert "hung_now" not in live


def test_strict_ends_at_the_first_problem(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(log_lines(*range(20)) + b"rubbish\n")
    done = goodput(["watch", str(path), "--strict"], {})
    assert done.returncode == 5
    assert "malformed_lines" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ([], 2, "no SOURCE\ntip: pass the log to follow"),
        (["-"], 2, "standard input cannot be followed"),
        (["x.jsonl", "--interval", "0"], 2, "is not an interval"),
        (["x.jsonl", "--format", "poem"], 2, "unknown format 'poem'"),
    ],
)
def test_errors_are_reported(arguments: list[str], code: int, sentence: str) -> None:
    done = goodput(["watch", *arguments], {})
    assert (done.returncode, done.stdout) == (code, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_help_has_examples() -> None:
    shown = CliRunner().invoke(command, ["watch", "--help"]).output
    assert "goodput watch run.jsonl" in shown
    assert "--interval" in shown
