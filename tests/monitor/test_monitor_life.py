"""When a monitor publishes, when it ends, and with which exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.api.watch import WatchedLog
from goodput_cli.cli.main import run
from goodput_cli.events.decode import Decoder
from tests.monitor.monitors import Endpoint, Job, ended, monitor, monitor_job, samples, started, value
from tests.support.commands import until


def updates(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a JSON target."""
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def test_last_values_equal_those_of_analyze(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = ended(folder / "run.jsonl")
    assert monitor(log, "--publish", "prom:m.prom", "--publish", "json:m.json", "--window", "1m") == 0
    assert run(["analyze", str(log), "-o", "a.prom", "-o", "a.json"]) == 0
    mine, theirs = samples(Path("m.prom").read_text()), samples(Path("a.prom").read_text())
    assert theirs.items() <= mine.items()
    (line,) = updates(Path("m.json"))
    answer = json.loads(Path("a.json").read_text())
    assert {**line, "rolling": None} == {**answer, "rolling": None}
    assert value(mine, "goodput_job_ended") == 1
    assert value(mine, "goodput_rolling_ratio", window="60") == 1
    assert value(mine, "goodput_rolling_category_seconds", category="productive") == 60


def test_monitor_follows_a_job_to_its_end(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job, endpoint = Job(folder / "run.jsonl"), Endpoint(capsys)

    def play() -> None:
        until(lambda: endpoint.value("goodput_monitor_source_failing") == 1)  # the log does not exist yet
        job.start()
        job.steps(0, 3)
        until(lambda: endpoint.value("goodput_last_step") == 3)
        assert endpoint.value("goodput_job_ended") == 0
        assert endpoint.value("goodput_monitor_source_failing") == 0
        job.add(goodput_event="crashed", goodput_time=time.time(), reason="ValueError")
        before = endpoint.value("goodput_window_end_timestamp_seconds") or 0.0
        until(lambda: (endpoint.value("goodput_window_end_timestamp_seconds") or 0.0) > before + 0.5)
        job.start()  # it has come back
        job.steps(2, 5)
        until(lambda: endpoint.value("goodput_last_step") == 5)
        assert endpoint.value("goodput_attempts") == 2
        assert (endpoint.value("goodput_seconds_since_last_step") or 0.0) < 60
        job.end()

    targets = ["--publish", "http://:0", "--publish", "prom:m.prom"]
    assert monitor_job(play, "run.jsonl", *targets, "--interval", "0.1", "--settle", "0.3") == 0
    assert run(["analyze", "run.jsonl", "-q", "-o", "a.prom"]) == 0
    assert samples(Path("a.prom").read_text()).items() <= samples(Path("m.prom").read_text()).items()


@pytest.mark.parametrize("how", ["idle", "updates"])
def test_monitor_can_leave_an_unfinished_job(folder: Path, how: str, capsys: pytest.CaptureFixture[str]) -> None:
    job = Job(folder / "run.jsonl")
    job.start()
    job.steps(0, 3)
    last = {"idle": ["--idle-end", "0.2"], "updates": ["--updates", "3"]}[how]
    assert monitor("run.jsonl", "--publish", "json:m.json", "--interval", "0.1", *last) == 0
    final = updates(folder / "m.json")[-1]
    assert run(["analyze", "run.jsonl", "-q", "-o", "a.json"]) == 0
    as_of_the_last_event = json.loads(Path("a.json").read_text())["window"]["ns"] == final["window"]["ns"]
    assert as_of_the_last_event == (how == "idle")


def test_forever_continues_after_the_job(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = ended(folder / "run.jsonl")
    target = ["--publish", "json:m.json", "--interval", "0.1"]
    assert monitor(log, *target, "--forever", "--settle", "0", "--updates", "3") == 0
    count = len(updates(folder / "m.json"))
    assert 1 <= count <= 3  # a target takes the newest update, and none that came while it was busy
    assert monitor(log, *target, "--settle", "0") == 0
    assert len(updates(folder / "m.json")) == count + 1


@pytest.mark.parametrize(
    ("content", "said"), [(None, "no such file"), (b"", "the job logged no event within"), (b'{"a": 1}\n', "no event")]
)
def test_monitor_without_events_exits_with_4(
    folder: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, said: str
) -> None:
    if content is not None:
        Path("run.jsonl").write_bytes(content)
    assert monitor("run.jsonl", "--publish", "prom:m.prom", "--interval", "0.1", "--wait", "0.2") == 4
    assert said in capsys.readouterr().err.lower()
    assert not Path("m.prom").exists()


def test_thresholds_of_the_last_update_decide(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = ended(folder / "run.jsonl")
    target = ["--publish", "prom:m.prom"]
    assert monitor(log, *target, "--fail-under", "99") == 3
    assert "threshold goodput<99: FAILED" in capsys.readouterr().err
    assert value(samples(Path("m.prom").read_text()), "goodput_threshold_verdict", verdict="failed") == 1
    assert monitor(log, *target, "--fail-under", "50", "--warn-if", "goodput<99") == 0


def test_unaccepted_last_update_is_a_failure(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = ended(folder / "run.jsonl")
    (folder / "there").mkdir()
    targets = ["--publish", "json:/dev/full", "--publish", "prom:there/m.prom"]
    assert monitor(log, *targets, "--grace", "1") == 1
    said = capsys.readouterr().err
    assert "json:/dev/full: /dev/full: No space left on device (retrying)" in said
    assert "json:/dev/full: did not accept the last update within 1 s" in said
    assert Path("there/m.prom").exists()


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("s3:x", "is not a publish target\ntip: use one of prom:FILE, json:FILE, http://HOST:PORT"),
        ("prom:", "is incomplete"),
        ("http://nowhere", "is not an address to listen on"),
        ("http://h:99999", "is not an address to listen on"),
        ("gcm:p?colour=red", "unknown parameter colour=red"),
        ("tensorboard:tb?badput=maybe", "unknown parameter badput=maybe"),
        ("prom:missing/m.prom", "the folder missing does not exist"),
        ("json:.", "is a folder"),
    ],
)
def test_invalid_target_is_refused_at_once(
    folder: Path, capsys: pytest.CaptureFixture[str], target: str, said: str
) -> None:
    assert monitor(ended(folder / "run.jsonl"), "--publish", target) == 2
    assert said in capsys.readouterr().err


def test_used_address_is_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        target = f"http://127.0.0.1:{taken.getsockname()[1]}"
        assert monitor(ended(folder / "run.jsonl"), "--publish", target) == 1
    assert "Address already in use" in capsys.readouterr().err


def test_sigterm_sends_one_last_update(folder: Path) -> None:
    job = Job(folder / "run.jsonl")
    job.start()
    job.steps(0, 3)
    with started("run.jsonl", "--publish", "json:m.json", "--interval", "3600", cwd=folder) as process:
        until(lambda: updates(folder / "m.json"))
        job.steps(4, 5)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=120)
    assert (process.returncode, "Traceback" in said) == (0, False)
    assert [update["job"]["last_step"] for update in updates(folder / "m.json")] == [3, 5]


def test_monitor_ends_with_its_parent(folder: Path) -> None:
    job = Job(folder / "run.jsonl")
    job.start()
    job.steps(0, 3)
    program = """
import os, subprocess, sys, time
command = [sys.executable, "-m", "goodput_cli", "monitor", "run.jsonl", "--publish", "json:m.json"]
child = subprocess.Popen([*command, "--interval", "3600", "--parent", str(os.getpid())], start_new_session=True)
while not os.path.exists("m.json"): time.sleep(0.01)
print(child.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    root = Path(__file__).parent.parent.parent
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL
    child = int(done.stdout)
    until(lambda: _is_gone(child))
    assert len(updates(folder / "m.json")) == 2


def _is_gone(process: int) -> bool:
    """Return True if a process of another parent has ended; an unreaped one remains as a zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def _until_longer(path: Path, lines: int) -> None:
    until(lambda: len(updates(path)) > lines)


def test_randomly_killed_monitor_leaves_whole_lines(folder: Path) -> None:
    job = Job(folder / "run.jsonl")
    job.start()
    job.steps(0, 3)
    for delay in (0.0, 0.07):
        size = len(updates(folder / "m.json"))
        target = ["--publish", "json:m.json", "--publish", "prom:m.prom", "--interval", "0.1"]
        with started("run.jsonl", *target, cwd=folder) as process:
            _until_longer(folder / "m.json", size)
            time.sleep(delay)
            process.kill()
    samples((folder / "m.prom").read_text())
    with (folder / "m.json").open("ab") as stream:
        stream.write(b'{"torn": ')
    job.end()
    assert monitor("run.jsonl", "--publish", "json:m.json", "--publish", "prom:m.prom", "--settle", "0") == 0
    *_, torn, last = (folder / "m.json").read_bytes().splitlines()
    assert (torn, json.loads(last)["job"]["ending"]) == (b'{"torn": ', "clean")


def test_clock_set_back_hides_nothing(folder: Path) -> None:
    log = ended(folder / "run.jsonl")
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:-1]))
    watched = WatchedLog(str(log), as_of="now")
    watched.look()
    analysis = watched.analysis(now_ns=1_767_225_600 * 10**9 + 1)
    assert (analysis.job.last_step, analysis.window.ns) == (8, 110 * 10**9)
    watched.close()


def test_repeated_history_counts_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = ended(folder / "run.jsonl")
    entries = [
        {"insertId": str(at), "timestamp": "2026-01-01T00:00:00Z", "logName": "l", "jsonPayload": json.loads(line)}
        for at, line in enumerate(log.read_text().splitlines())
    ]
    Path("history.json").write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    assert monitor(log, "--publish", "json:m.json") == 0
    assert monitor(log, "--publish", "json:m.json", "--history", "history.json") == 0
    one, other = updates(folder / "m.json")
    assert one["goodput"] == other["goodput"]
    assert one["job"]["attempts"] == other["job"]["attempts"] == 1


def test_new_job_in_the_log_changes_nothing(folder: Path) -> None:
    job = Job(folder / "run.jsonl")
    job.start()
    job.steps(0, 3)
    watched = WatchedLog("run.jsonl")
    watched.look()
    assert watched.analysis(time.time_ns()).job.name == "job"
    job.add(**{"job_name": "other", "job_start_time": time.time()})
    watched.look()
    assert watched.analysis(time.time_ns()).job.name == "job"
    watched.close()


def test_update_reads_only_new_lines(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    add = Decoder.add

    def counted(self: Decoder, source: str, parsed: Any) -> None:
        read.append(len(parsed))
        add(self, source, parsed)

    monkeypatch.setattr(Decoder, "add", counted)
    job = Job(folder / "run.jsonl")
    job.start()
    job.steps(0, 2000)
    watched = WatchedLog("run.jsonl")
    watched.look()
    first = sum(read)
    job.steps(2001, 2010)
    watched.look()
    assert sum(read) - first <= 10 < first
    watched.close()


@pytest.mark.parametrize("text", ["publish = ['prom:x.prom']", "history = ['x']", "parent = 1"])
def test_settings_file_cannot_set_targets(folder: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    Path("goodput.toml").write_text(f"[monitor]\n{text}\n", encoding="utf-8")
    assert monitor(ended(folder / "run.jsonl"), "--publish", "prom:m.prom") == 2
    assert "can only be set on the command line" in capsys.readouterr().err
    Path("goodput.toml").write_text("[monitor]\nfail-under = 99\nsettle = '1s'\n", encoding="utf-8")
    assert monitor(folder / "run.jsonl", "--publish", "prom:m.prom") == 3
