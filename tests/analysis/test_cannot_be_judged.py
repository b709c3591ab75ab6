"""Jobs without any log line of training: their goodput is unknown everywhere, and never 0 (accounting §7)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from goodput_cli import analyze
from goodput_cli.cli.main import run
from goodput_cli.report.base import Page, load_renderer
from tests.support.answers import check_answer
from tests.support.fleets import fleet, put, text_of, training
from tests.support.story import account, end, loaded, scheduled, start, started, steps, story_lines, terminated

pytestmark = pytest.mark.usefixtures("folder")
Output = pytest.CaptureFixture[str]
UNKNOWN = {
    "nothing": story_lines(start(0), end(7200)),
    "killed": story_lines(started(0), loaded(0, 10), terminated(3600)),
    "two records": story_lines(start(0), steps(0, 2, at=10, every=600, stride=500), end(1300)),
}


def log_of(kind: str) -> str:
    Path("one.jsonl").write_text(text_of(*UNKNOWN[kind]))
    return "one.jsonl"


def output_of(capsys: pytest.CaptureFixture[str], *command: str, code: int = 0) -> str:
    assert run([*command, "-q"]) == code
    return capsys.readouterr().out


@pytest.mark.parametrize("kind", UNKNOWN)
def test_lists_and_metrics_give_no_number(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    log = log_of(kind)
    answer = json.loads(output_of(capsys, "analyze", log, "--window", "10m", "--format", "json"))
    check_answer(answer, "analysis")
    assert set(answer["goodput"].values()) == {None}
    assert answer["reliability"]["ettr"] is None
    assert {(row["goodput_ns"], row["goodput_percent"]) for row in answer["rolling"]} == {(None, None)}
    (job,) = json.loads(output_of(capsys, "jobs", log, "--format", "json"))["jobs"]
    assert job["goodput"] is None
    assert "goodput is unknown" in job["reason"]
    metrics = output_of(capsys, "analyze", log, "--format", "openmetrics")
    assert "goodput_ratio{" not in metrics
    assert 'category="productive"' not in metrics
    assert "productive,,,,\n" in output_of(capsys, "analyze", log, "--format", "csv")
    for command in ("rolling", "jobs", "disruptions"):
        shown = output_of(capsys, command, log)
        assert "unknown" in shown
        assert not re.search(r"goodput[^\n]* \d", shown)


@pytest.mark.parametrize("kind", UNKNOWN)
def test_gates_fail_if_goodput_is_unknown(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    log = log_of(kind)
    for gate in (["--fail-under", "1"], ["--fail-if", "goodput>50"], ["--fail-if", "productive<1h"]):
        assert "not recorded" in output_of(capsys, "analyze", log, *gate, code=4)


def test_comparison_refuses_unknown_goodput_saved_or_not(capsys: pytest.CaptureFixture[str]) -> None:
    log = log_of("nothing")
    Path("other.jsonl").write_text(text_of(*story_lines(start(0), steps(0, 50, at=10), end(600))))
    output_of(capsys, "analyze", log, "-o", "saved.json")
    for side in (log, "saved.json"):
        assert run(["compare", "other.jsonl", side, "-q"]) == 4
        assert f"{side}: its goodput is unknown" in capsys.readouterr().err


def test_fleet_leaves_the_run_out_and_reports_it(capsys: pytest.CaptureFixture[str]) -> None:
    put(Path("logs/a.jsonl"), training("trained", 2, 0.5))
    put(Path("logs/b.jsonl"), [line.replace('"j"', '"evaluated"') for line in UNKNOWN["nothing"]])
    answer = fleet("logs")
    assert answer["coverage"]["runs"] == 1
    assert answer["coverage"]["not_analysed"] == 1
    (one,) = answer["not_analysed"]
    assert "goodput is unknown: no step was logged" in one["reason"]
    assert [row["job"] for row in answer["runs"]] == ["trained"]
    assert "1 of 2 runs analyzed" in output_of(capsys, "fleet", "logs")


def test_job_that_was_never_up_has_zero_goodput() -> None:
    """In the queue, or crashed before its first step: zero training is correct."""
    assert account(scheduled(0), started(100)).analysis.goodput_percent == 0


def test_charts_and_tables_have_no_number() -> None:
    log_of("nothing")
    analysis = analyze("one.jsonl", window=("10m",))
    assert analysis.goodput_percent is None
    assert analysis.unavailable_reason == "no step was logged"
    assert analysis.rolling is not None
    frame = analysis.rolling.to_frame()
    assert frame["goodput_percent"].isna().all()
    assert frame["productive_ns"].isna().all()
    assert "unknown" in str(load_renderer("html")(analysis, Page()))


def test_cumulative_scalars_of_tensorboard_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    log = log_of("nothing")
    assert run(["monitor", log, "--publish", "tensorboard:board", "--publish", "prom:out.prom", "-q"]) == 0
    written = b"".join(file.read_bytes() for file in Path("board").rglob("events.*"))
    assert b"goodput/goodput" not in written
    assert b"badput/" in written
    assert "goodput_ratio{" not in Path("out.prom").read_text()


@pytest.mark.parametrize("kind", UNKNOWN)
def test_unexplained_time_is_no_known_loss(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It may all be training, and so may be the start-up that the only step time leaves."""
    shown = output_of(capsys, "analyze", log_of(kind))
    assert not re.search(r"known losses[^\n]*(?:other|startup)", shown)
    assert not re.search(r"^ (?:other|undetermined) [^\n]* \d+\.\d+ %", shown, re.MULTILINE)
    if kind == "two records":
        assert not re.search(r"^ program startup [^\n]* \d+\.\d+ %", shown, re.MULTILINE)
