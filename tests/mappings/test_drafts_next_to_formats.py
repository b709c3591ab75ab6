"""Formats next to drafts: bars whose clock contains saves, timestamps of rich, tables of drafted logs, long logs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.api import contradicted as drafting
from goodput_cli.api.check import draft_mapping
from goodput_cli.cli.main import run
from goodput_cli.errors import NotEnoughData
from tests.mappings.drafting import at, pytorch
from tests.mappings.test_draft_checks import WEEKEND, attempts
from tests.mappings.test_draft_checks import log as log_of
from tests.text.support import codes

OWN_LOOP = Path("sample_logs/trainers/own-loop.log")
TORCHTITAN = Path("sample_logs/trainers/torchtitan/train.log")
CANCELLED = "slurmstepd: error: *** JOB 1234 ON node1 CANCELLED AT 2026-03-01T10:05:00 DUE TO TIME LIMIT ***\n"


def bar_with_saves(took: int) -> str:
    """Return a bar of 200 steps of 1 s with a save after every fortieth, which the bar's clock contains."""
    told, states, elapsed = pytorch(30, "Starting training"), [], 0
    for step in range(0, 201, 2):
        elapsed += 2 if step else 0
        clock = f"{elapsed // 60:02d}:{elapsed % 60:02d}<10:00"
        states.append(f"Training: {step // 2:3d}%|{'#' * 10}| {step}/200 [{clock},  1.00s/it, loss=0.{step:03d}]")
        if took and step % 40 == 0 and step:
            told += "\r".join(states) + "\n" + pytorch(30 + elapsed, "Saving checkpoint")
            states, elapsed = [], elapsed + took
            told += pytorch(30 + elapsed, f"Saved checkpoint ckpt/step_{step} ({took}.0 s)")
    return told + "\r".join(states) + "\n" + pytorch(30 + elapsed, "Training finished")


@pytest.mark.parametrize("took", [0, 15])
def test_saves_inside_a_native_bar_give_a_warning(tmp_path: Path, took: int) -> None:
    log = tmp_path / "train.log"
    log.write_text(bar_with_saves(took), encoding="utf-8", newline="")
    analysis = goodput_cli.analyze(log)
    assert analysis.inferred_rules is None
    said = [one.message for one in analysis.diagnostics if one.code == "saves_in_bars"]
    assert len(said) == bool(took)
    if took:
        assert '8 lines like "2026-03-01 10:01:10,000 INFO __main__: Saving checkpoint"' in said[0]


def test_draft_of_a_bar_separates_its_saves(tmp_path: Path) -> None:
    """200 s of training in 275 s."""
    log, own = tmp_path / "train.log", tmp_path / "my.toml"
    log.write_text(bar_with_saves(15), encoding="utf-8", newline="")
    own.write_text(draft_mapping(str(log)).text, encoding="utf-8")
    analysis = goodput_cli.analyze(log, mapping=(str(own),))
    assert analysis.goodput_percent == pytest.approx(100 * 200 / 275, abs=0.1)
    assert "saves_in_bars" not in codes(analysis)


@pytest.mark.parametrize("form", ["[%H:%M:%S]", "[%m/%d/%y %H:%M:%S]"])
def test_format_is_read_after_rich_timestamps(tmp_path: Path, form: str) -> None:
    """Rich's handler writes the level, the message and `FILE:LINE`, and each second only once."""
    plain = re.findall(r" 10:(\d\d):(\d\d),\d+ - root - INFO - (.*)", TORCHTITAN.read_text(encoding="utf-8"))
    told, before = [], ""
    for minute, second, text in plain:
        stamp = at(60 * int(minute) + int(second), form)
        told.append(f"{stamp if stamp != before else ' ' * len(stamp)} INFO     {text:60s} train.py:120\n")
        before = stamp
    log = tmp_path / "train.log"
    log.write_text("".join(told), encoding="utf-8")
    native, read = goodput_cli.analyze(TORCHTITAN), goodput_cli.analyze(log)
    assert read.job.kept_steps == native.job.kept_steps
    assert read.goodput_percent == pytest.approx(native.goodput_percent, abs=0.5)
    if "%y" in form:
        assert read.window.start_ns == native.window.start_ns


@pytest.mark.parametrize("command", ["timeline", "steps", "disruptions", "rolling"])
def test_csv_shows_that_rules_were_drafted(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, str(OWN_LOOP), "--format", "csv", "-q"]) == 0
    *_, last = capsys.readouterr().out.splitlines()
    assert last.startswith("# read with 6 rules inferred from this log; to check or keep them, run `goodput")


def test_job_list_suggests_a_mapping(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "train.log"
    told = [pytorch(10 * n, f"step {n % 7} loss 1.1") for n in range(1, 40)]
    log.write_text("".join(told) + CANCELLED, encoding="utf-8")
    run(["jobs", str(log), "--format", "json", "-q"])
    (job,) = json.loads(capsys.readouterr().out)["jobs"]
    assert f"no steps found for job 'train'; {log}:1 looks like a step, but the format is unknown" in job["reason"]
    assert f"`goodput check --suggest {log} > my.toml`" in job["reason"]


def test_implausible_result_refuses_a_side_of_a_comparison(tmp_path: Path) -> None:
    """The rules of the first log also match the other one, whose two attempts are a weekend apart."""
    first, second = tmp_path / "a.log", tmp_path / "b.log"
    first.write_text(log_of(attempts(2, 60)), encoding="utf-8")
    second.write_text(log_of(attempts(2, WEEKEND)), encoding="utf-8")
    with pytest.raises(NotEnoughData, match=r"do not fit this log; the step rule .*: with this rule, goodput is 0"):
        goodput_cli.compare([str(first), str(second)])


@pytest.mark.parametrize("limit", ["_MOST_LINES", "_MOST_BYTES"])
def test_long_log_is_drafted_from_its_beginning_and_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:  # fmt: skip
    """1,000 steps of 10 s; the draft is inferred from and proven on 400 lines, or the first 16 KiB."""
    log = tmp_path / "train.log"
    log.write_text("".join(pytorch(10 * n, f"step {n} loss 1.1") for n in range(1, 1001)), encoding="utf-8")
    monkeypatch.setattr(drafting, limit, 400 if limit == "_MOST_LINES" else 1 << 14)
    analysis = goodput_cli.analyze(log)
    assert analysis.inferred_rules is not None
    assert (analysis.inferred_rules.lines < 401, analysis.job.last_step) == (True, 1000)
    assert re.fullmatch(
        r"its rules were checked on the first [23]?\d\d+ lines only", analysis.inferred_rules.doubts[-1]
    )


def test_later_contradiction_of_a_draft_refuses_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """60 attempts of ten steps, only five of them in the first 50 lines: the whole result is checked against all
    lines."""
    log = tmp_path / "train.log"
    lives = (pytorch(200 * life + 10 * n, f"step {n} loss 1.1") for life in range(60) for n in range(1, 11))
    log.write_text("".join(lives), encoding="utf-8")
    monkeypatch.setattr(drafting, "_MOST_LINES", 50)
    assert draft_mapping(str(log)).refused_by == "W1"


def test_logs_of_one_folder_have_the_answers_of_each_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two programs count in other words; the log of the second one is short, and a list of packages is no log."""
    (tmp_path / "a.log").write_text("".join(pytorch(9 * n, f"step {n} loss 1.1 {'-' * 90}") for n in range(1, 900)))
    (tmp_path / "b.log").write_text("".join(pytorch(30 * n, f"epoch {n} train_loss 1.{n}") for n in range(1, 9)))
    (tmp_path / "requirements.txt").write_text("torch==2.1\nnumpy==1.26\n")
    run(["jobs", str(tmp_path), "--format", "json", "-q"])
    answer = json.loads(capsys.readouterr().out)
    of_job = {one["name"]: one["goodput"]["percent"] for one in answer["jobs"]}
    assert of_job == {name: goodput_cli.analyze(tmp_path / f"{name}.log").goodput_percent for name in "ab"}
    left_out = [one["where"] for one in answer["diagnostics"] if one["code"] == "not_a_log"]
    assert left_out == [[str(tmp_path / "requirements.txt")]]


def test_rules_of_one_log_do_not_join_another_to_its_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both logs have the same words, a day apart. Their lines together contradict each rule: no answer."""
    for day in (1, 2):
        lines = (f"2026-03-0{day} 10:0{n}:00 epoch {n} train_loss 1.{n}\n" for n in range(1, 9))
        (tmp_path / f"train{day}.log").write_text("".join(lines))
    assert run(["jobs", str(tmp_path)]) == 4
    assert "no events found" in capsys.readouterr().err
