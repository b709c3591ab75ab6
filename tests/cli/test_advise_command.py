"""`goodput advise`: its text, the reasons for each verdict, gates, formats, and the library function."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.cli.main import run
from goodput_cli.errors import UsageError
from tests.support.answers import check_golden

ROOT = Path(__file__).parents[2]
NIGHT = str(ROOT / "sample_logs" / "llm-pretrain.jsonl")
EXAMPLES = ROOT / "tests" / "advice" / "examples"
PRICED = ["--accelerators", "256", "--price-per-hour", "4.20"]
Output = pytest.CaptureFixture[str]


def run_advise(capsys: Output, log: str, *options: str, code: int = 0) -> str:
    assert run(["advise", log, "--quiet", "--no-progress", *options]) == code
    return capsys.readouterr().out


def test_advise_on_the_sample_night_has_a_recommendation(capsys: Output) -> None:
    text = run_advise(capsys, NIGHT, *PRICED)
    check_golden("advice.txt", text)
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        ("11-no-saves", "the log shows no checkpoint. Log `checkpoint_saved`"),
        ("09-two-failures", "KEEP SAVING EVERY 60 STEPS"),
        ("04-outage", "2 failed attempts are not enough data. Pass --mtbf, or analyze a longer period"),
        ("02-no-failure", "no attempt failed. Based on 4 h 18 min of training, save at most every 50 steps"),
        ("12-running", "the end is not logged: the job may still be running"),
        ("07-async", "how long saving blocks training is not logged"),
        ("00-tiny", "too short: 12 steps kept, 20 needed"),
        ("06-too-rare", "'perfect checkpointing' covers what this run lost; on average, such failures cost more"),
    ],
)
def test_advise_reports_missing_data(log: str, sentence: str, capsys: Output) -> None:
    text = run_advise(capsys, str(EXAMPLES / f"{log}.jsonl"))
    assert sentence in " ".join(text.split())


def test_two_failures_are_inconclusive_in_twelve_lines(capsys: Output) -> None:
    """With --mtbf, the same log has all estimates."""
    log = str(EXAMPLES / "10-checkpoint-log.jsonl")
    brief = run_advise(capsys, log)
    assert "INCONCLUSIVE: 2 failed attempts are not enough data. Pass --mtbf" in " ".join(brief.split())
    assert len(brief.splitlines()) <= 12
    whole = run_advise(capsys, log, "--mtbf", "1h")
    assert "time of failure not logged: expected goodput" in " ".join(whole.split())


@pytest.mark.parametrize(
    ("log", "expression", "code"),
    [
        ("05-too-often", "advice.gain>5pp", 3),
        ("05-too-often", "advice.gain_low>5pp", 3),
        ("05-too-often", "advice.gain>1h", 3),
        ("05-too-often", "advice.interval_ratio<1", 3),
        ("09-two-failures", "advice.gain>0", 0),  # keep: nothing to gain
        ("09-two-failures", "advice.newest_checkpoint>0", 0),  # none older was restored
        ("11-no-saves", "advice.gain>5pp", 4),
        ("02-no-failure", "advice.gain>5pp", 4),
        ("11-no-saves", "advice.restart>10pp", 0),
        ("11-no-saves", "advice.custom:NEVER>1pp", 4),
    ],
)
def test_gates_decide_the_exit_code(log: str, expression: str, code: int, capsys: Output) -> None:
    run_advise(capsys, str(EXAMPLES / f"{log}.jsonl"), "--fail-if", expression, code=code)


@pytest.mark.parametrize(
    "options",
    [
        ["--fail-if", "goodput<90"], ["--fail-if", "advice.luck>1"], ["--fail-if", "advice.gain>5%"],
        ["--from", "-1h"], ["--price-per-hour", "2"], ["--interval-now", "0"],
    ],
)  # fmt: skip
def test_wrong_usage_is_rejected(options: list[str], capsys: Output) -> None:
    run_advise(capsys, NIGHT, *options, code=2)


def test_warning_does_not_fail(capsys: Output) -> None:
    assert run(["advise", NIGHT, "--warn-if", "advice.restart>1m", "--no-progress"]) == 0
    assert "threshold advice.restart>1m: warning (" in capsys.readouterr().err


def test_json_csv_and_the_library_agree(capsys: Output) -> None:
    answer = json.loads(run_advise(capsys, NIGHT, *PRICED, "--format", "json"))
    rows = list(csv.DictReader(io.StringIO(run_advise(capsys, NIGHT, *PRICED, "--format", "csv"))))
    advice = goodput_cli.advise(NIGHT, accelerators=256, price_per_hour=4.2)
    assert [row["name"] for row in rows] == [*(lever["name"] for lever in answer["levers"]), "checkpoint_bound"]
    assert [lever.name for lever in advice.levers] == [lever["name"] for lever in answer["levers"]]
    assert float(rows[0]["seconds"]) == answer["levers"][0]["seconds"] == advice.levers[0].seconds
    assert answer["interval"]["every_steps"] == advice.interval.every_steps == 50


@pytest.mark.parametrize("name", ["markdown", "html", "csv", "table"])
def test_every_format_is_written(name: str, capsys: Output) -> None:
    words = "prevent failures" if name in ("table", "markdown") else "half as many failures"
    assert words in run_advise(capsys, NIGHT, "--format", name)


def test_library_considers_whole_jobs() -> None:
    with pytest.raises(UsageError, match="whole job"):
        goodput_cli.advise(NIGHT, start="-1h")
    with pytest.raises(UsageError, match="accelerators"):
        goodput_cli.advise(NIGHT, price_per_hour=2)
