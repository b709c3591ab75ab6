"""One monitor for several jobs: each is followed independently of the others."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.cli.main import run
from goodput_cli.monitor import run as life
from goodput_cli.monitor.snapshot import job_labels
from tests.monitor.monitors import Endpoint, Job, monitor, monitor_job, samples, started, value
from tests.support.commands import until


def long_ago(path: Path, name: str, steps: int = 10, ago: float = 86_400.0) -> Path:
    """Write the log of a job that ended cleanly some time ago: a start-up of 100 s, steps of 10 s."""
    start = time.time() - ago - 100 - 10 * steps
    facts: list[dict[str, Any]] = [{"job_start_time": start}]
    facts += [{"step_count": at, "step_start_time": start + 100 + 10 * at} for at in range(steps)]
    facts += [{"job_end_time": start + 100 + 10 * steps}]
    path.write_text("".join(json.dumps({"job_name": name, **fact}) + "\n" for fact in facts), encoding="utf-8")
    return path


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def test_each_job_has_its_own_figures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two jobs, one of two files; a third begins later; one crashes and is restarted; all end."""
    (folder / "logs").mkdir()
    one, other = Job(folder / "logs/a.jsonl", "one"), Job(folder / "logs/b.jsonl", "other")
    late, endpoint = Job(folder / "logs/c.jsonl", "late"), Endpoint(capsys)

    def play() -> None:
        one.start()
        one.steps(0, 3)
        other.start()
        other.steps(0, 6)
        until(lambda: endpoint.value("goodput_last_step", job_name="one") == 3)
        until(lambda: endpoint.value("goodput_last_step", job_name="other") == 6)
        late.start()
        late.steps(0, 1)
        until(lambda: endpoint.value("goodput_last_step", job_name="late") == 1)
        other.end()
        until(lambda: endpoint.value("goodput_job_ended", job_name="other") == 1)
        assert endpoint.value("goodput_job_ended", job_name="one") == 0
        one.start()
        one.steps(2, 5)
        until(lambda: endpoint.value("goodput_attempts", job_name="one") == 2)
        assert endpoint.value("goodput_attempts", job_name="late") == 1
        assert endpoint.value("goodput_last_step", job_name="other") == 6
        one.end()
        late.end()

    targets = ["--publish", "http://:0", "--publish", "prom:m.prom", "--publish", "json:m.json"]
    assert monitor_job(play, "logs/*.jsonl", *targets, "--interval", "0.1", "--settle", "0.3") == 0
    served = samples(Path("m.prom").read_text())
    last = {line["job"]["name"]: line for line in lines_of(Path("m.json"))}
    for name in ("one", "other", "late"):
        assert run(["analyze", "logs", "-j", name, "-q", "-o", "a.prom", "-o", "a.json", "--force"]) == 0
        assert samples(Path("a.prom").read_text()).items() <= served.items()
        assert {**last[name], "asked": None} == {**json.loads(Path("a.json").read_text()), "asked": None}


def test_broken_log_does_not_stop_others(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The logs: an unreadable one, an empty one, one with a single event, and a missing one."""
    (folder / "logs").mkdir()
    Path("logs/loop.jsonl").symlink_to("loop.jsonl")
    Path("logs/noise.jsonl").write_bytes(os.urandom(5000) + b"\n{\n")
    Path("logs/alone.jsonl").write_text('{"job_name": "alone", "job_start_time": 1.7e9}\n')
    job = Job(folder / "logs/a.jsonl", "a")
    job.start()
    job.steps(0, 3)
    sources = ["logs/loop.jsonl", "logs", "nowhere.jsonl"]
    asked = ["--publish", "prom:m.prom", "--interval", "0.1", "--updates", "3"]
    assert monitor(*sources, *asked) == 1  # some sources could not be read
    served = samples(Path("m.prom").read_text())
    assert value(served, "goodput_last_step", job_name="a") == 3
    assert value(served, "goodput_monitor_source_failing") == 1
    assert {dict(pairs).get("job_name") for _, pairs in served} == {"a"}
    said = capsys.readouterr().err
    assert said.count("nowhere.jsonl: no such file") == 1
    assert said.count("logs/loop.jsonl: cannot be read: Too many levels of symbolic links") == 1
    assert said.count("Waiting: all events of job 'alone' have the same time") == 1


def test_options_not_fitting_a_job_skip_that_job(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = Job(folder / "a.jsonl", "a"), Job(folder / "b.jsonl", "b")
    for job in (first, first, second):
        job.start()
        job.steps(0, 3)
    asked = ["--publish", "prom:m.prom", "--interval", "0.1", "--updates", "2", "--from", "attempt:2"]
    assert monitor("a.jsonl", "b.jsonl", *asked) == 1
    assert "skipping the job 'b': " in capsys.readouterr().err
    assert value(samples(Path("m.prom").read_text()), "goodput_last_step", job_name="a") == 3
    assert monitor("b.jsonl", *asked) == 2  # as for every query without a result


def test_old_jobs_are_dropped_next_to_a_running_one(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are more of them than the limit; the running one is the smallest, and so the last to be followed."""
    monkeypatch.setattr(life, "MOST_JOBS", 2)
    (folder / "logs").mkdir()
    for number in range(5):
        long_ago(Path(f"logs/{number}.jsonl"), f"old-{number}")
    long_ago(Path("logs/recent.jsonl"), "recent", ago=120)
    job = Job(folder / "logs/z.jsonl", "runs")
    job.start()
    job.steps(0, 2)
    asked = ["--publish", "json:m.json", "--interval", "0.1", "--updates", "8", "-q"]
    assert monitor("logs", *asked) == 0
    assert {line["job"]["name"] for line in lines_of(Path("m.json"))[-2:]} == {"recent", "runs"}
    assert monitor("logs", "--publish", "prom:one.prom", "-j", "old-3", "-q") == 0  # alone, however long ago
    assert value(samples(Path("one.prom").read_text()), "goodput_last_step", job_name="old-3") == 9


def test_names_select_jobs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("llm-7b", "llm-70b", "vision"):
        long_ago(Path(f"{name}.jsonl"), name)
    assert monitor(".", "-j", "llm-*", "--publish", "json:m.json", "-q") == 0
    assert [line["job"]["name"] for line in lines_of(Path("m.json"))] == ["llm-70b", "llm-7b"]
    assert monitor(".", "-j", "vision", "-j", "llm-7b", "--publish", "json:n.json", "-q") == 0
    assert sorted(line["job"]["name"] for line in lines_of(Path("n.json"))) == ["llm-7b", "vision"]
    assert monitor(".", "-j", "audio", "--publish", "json:o.json", "-q", "--wait", "0") == 4
    assert "no events for job 'audio'; the log contains 'llm-70b', 'llm-7b', 'vision'" in capsys.readouterr().err


@pytest.mark.parametrize(("names", "code"), [(["good", "bad"], 3), (["good"], 0)])
def test_one_failed_threshold_fails_the_monitor(
    folder: Path, capsys: pytest.CaptureFixture[str], names: list[str], code: int
) -> None:
    for name in names:
        long_ago(Path(f"{name}.jsonl"), name, steps={"good": 90, "bad": 10}[name])
    assert monitor(".", "--publish", "prom:m.prom", "--fail-under", "80") == code
    said = capsys.readouterr().err
    assert ("bad: threshold goodput<80: FAILED" in said) == (code == 3)
    assert ("good: threshold" in said) == (code == 3)  # one job alone needs no name


HOSTILE = [
    'a"} 1\ngoodput_ratio{job_name="b', "<!channel> & <https://evil|x> @here", "\x1b]8;;http://evil\x07x", "x\\x1b",
    "x\x1b", "rtl\u202egnp", "\ud800", "n" * 5000, "n" * 5001, "../../etc/passwd", "=cmd|' /C calc'!A0", "🙂", " ",
]  # fmt: skip


def test_hostile_names_from_logs_are_harmless(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every job has its series, in both formats of Prometheus; no control sequence is printed."""
    (folder / "logs").mkdir()
    for number, name in enumerate(HOSTILE):
        long_ago(Path(f"logs/{number}.jsonl"), name)
    assert monitor("logs", "--publish", "prom:m.prom", "--publish", "json:m.json") == 0
    text = Path("m.prom").read_text(encoding="utf-8")
    assert not set("\x1b\x07\u202e").intersection(text + capsys.readouterr().err)
    served = samples(text)
    ratios = [dict(pairs)["job_name"] for name, pairs in served if name == "goodput_ratio"]
    assert len(set(ratios)) == len(ratios) == len(lines_of(Path("m.json"))) == len(HOSTILE)
    assert max(map(len, ratios)) <= 200


def test_labels_differ_and_plain_names_are_kept() -> None:
    labels = job_labels(["x\x1b", "x\\x1b", "n" * 300, "n" * 301, "plain"])
    assert (labels["x\\x1b"], labels["plain"]) == ("x\\x1b", "plain")
    assert labels["x\x1b"].startswith("x\\x1b #")
    assert len(set(labels.values())) == 5
    again = job_labels(["x\x1b", "x\\x1b", labels["x\x1b"]])
    assert len(set(again.values())) == 3


def test_many_names_stay_cheap(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """20,000 names with an event each do not prevent following the job, and are not all reported."""
    job = Job(folder / "a.jsonl", "a")
    job.start()
    with Path("a.jsonl").open("a") as stream:
        stream.writelines(f'{{"job_name": "n{n}", "job_start_time": {2e9 + n}}}\n' for n in range(20_000))
    job.steps(0, 3)
    assert monitor("a.jsonl", "--publish", "prom:m.prom", "--interval", "0.1", "--updates", "2") == 0
    assert value(samples(Path("m.prom").read_text()), "goodput_last_step", job_name="a") == 3
    assert len(capsys.readouterr().err) < 200_000


def test_sigterm_sends_last_update_of_every_job(folder: Path) -> None:
    first, second = Job(folder / "a.jsonl", "a"), Job(folder / "b.jsonl", "b")
    for job in (first, second):
        job.start()
        job.steps(0, 3)
    with started(".", "--publish", "json:m.out", "--interval", "3600", cwd=folder) as process:
        until(lambda: len(lines_of(folder / "m.out")) == 2)
        second.steps(4, 5)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=120)
    assert (process.returncode, "Traceback" in said) == (0, False)
    assert [(one["job"]["name"], one["job"]["last_step"]) for one in lines_of(folder / "m.out")] == [
        ("a", 3), ("b", 3), ("a", 3), ("b", 5),
    ]  # fmt: skip


def test_tensorboard_accepts_only_one_job(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        long_ago(Path(f"{name}.jsonl"), name)
    targets = ["--publish", "tensorboard:tb", "--publish", "prom:m.prom"]
    assert monitor("a.jsonl", "b.jsonl", *targets, "--grace", "1", "-q") == 1
    assert "tensorboard:tb: accepts one job, but 2 are followed" in capsys.readouterr().err
    assert value(samples(Path("m.prom").read_text()), "goodput_ratio", job_name="b") is not None
    assert monitor("a.jsonl", "b.jsonl", "-j", "a", "--publish", "tensorboard:other", "-q") == 0
