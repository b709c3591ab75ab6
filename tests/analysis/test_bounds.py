"""Goodput known only by bounds (accounting §7): no output shows a single number, and gates judge both bounds."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from goodput_cli import analyze
from goodput_cli.accounting.options import Bound
from goodput_cli.analysis.goodput.phrases import headline
from goodput_cli.analysis.goodput.thresholds import parse_threshold
from goodput_cli.analysis.threshold import judged_between
from goodput_cli.cli.main import run
from goodput_cli.report.base import Page, load_renderer
from tests.support.answers import check_answer
from tests.support.fleets import fleet, put, text_of, training
from tests.support.story import finished, job_finished, loaded, started, story_lines

pytestmark = pytest.mark.usefixtures("folder")
Output = pytest.CaptureFixture[str]
TIMES = [*range(100, 1001, 100), *range(1150, 2501, 150)]
RISEN = story_lines(
    started(0), loaded(0, 0), [finished(10 * n, at) for n, at in enumerate(TIMES, 1)], job_finished(2500)
)
"""Ten spans of 100 s, then ten of 150 s: 80 % against the pace of the first ones, 100 % if the change is intended."""
LOW, HIGH = "80.00", "100.00"


@pytest.fixture
def log() -> str:
    Path("one.jsonl").write_text(text_of(*RISEN))
    return "one.jsonl"


def output_of(capsys: Output, *command: str, code: int = 0) -> str:
    assert run([*command, "-q"]) == code
    shown = capsys.readouterr()
    return shown.out + shown.err


def test_screen_shows_the_range_and_what_to_give(log: str, capsys: Output) -> None:
    shown = " ".join(output_of(capsys, "analyze", log).split())
    assert f"GOODPUT {LOW} to {HIGH} %" in shown
    assert "step times rose at step 100 and stayed" in shown
    assert "--reference-step-time" in shown
    assert "LOST 0.00 to 20.00 %" in shown
    assert "productive 33 min 20 s >= 80.00 %" in shown


def test_json_has_bounds_and_no_number(log: str, capsys: Output) -> None:
    answer = json.loads(output_of(capsys, "analyze", log, "--window", "10m", "--format", "json"))
    check_answer(answer, "analysis")
    assert answer["goodput"] == {
        "seconds": None, "ns": None, "percent": None, "at_least_percent": 80.0, "at_most_percent": 100.0,
    }  # fmt: skip
    assert {(one["quantity"], one["direction"], one["seconds"]) for one in answer["bounds"]} == {
        ("goodput", "at_least", 2000.0), ("goodput", "at_most", 2500.0),
        ("training_slowdown", "at_least", 0.0), ("training_slowdown", "at_most", 500.0),
    }  # fmt: skip
    assert answer["bounds"][0]["lines"] == ["one.jsonl:12"]
    assert answer["reliability"]["ettr"] is None
    first, last = answer["rolling"][0], answer["rolling"][-1]
    assert first["goodput_percent"] == first["at_least_percent"] == first["at_most_percent"] == 100
    assert (last["goodput_ns"], last["goodput_percent"]) == (None, None)
    assert last["at_least_percent"] < last["at_most_percent"]
    (slow,) = answer["insights"]
    assert not slow["confirmed"]
    assert slow["advice"] == "pass --reference-step-time, or log `global_batch_size`"


GATES = [
    (["--fail-under", "90"], 4, "inconclusive"),
    (["--fail-under", "80"], 0, ""),
    (["--fail-if", "goodput<=100"], 3, "FAILED"),
    (["--fail-if", "goodput>79"], 3, "FAILED"),
    (["--fail-if", "productive<30m"], 0, ""),
    (["--fail-if", "training_slowdown>5m"], 4, "inconclusive"),
    (["--fail-if", "training_slowdown>30"], 0, ""),
    (["--fail-if", "insight:slow_steps>10"], 4, "inconclusive"),
    (["--fail-if", "insight:slow_steps>50"], 0, ""),
]


@pytest.mark.parametrize(("gate", "code", "words"), GATES)
def test_gate_judges_only_what_both_readings_decide(
    gate: list[str], code: int, words: str, log: str, capsys: Output
) -> None:
    shown = output_of(capsys, "analyze", log, *gate, "--format", "csv", code=code)
    assert words in shown
    assert ("--reference-step-time" in shown) == (code == 4)


@pytest.mark.parametrize(
    ("expression", "low", "high", "met"),
    [
        ("goodput<90", 80, 85, True),
        ("goodput<90", 80, 90, None),
        ("goodput<90", 90, 95, False),
        ("goodput<=90", 80, 90, True),
        ("goodput<=90", 90, 95, None),
        ("goodput>90", 80, 90, False),
        ("goodput>=90", 90, 95, True),
        ("goodput==90", 80, 95, None),
        ("goodput!=90", 91, 95, True),
        ("goodput<90", None, 85, True),
        ("goodput<90", None, 95, None),
        ("goodput<90", 90, None, False),
        ("goodput==90", 90, 90, True),
    ],
)
def test_threshold_between_bounds(expression: str, low: int | None, high: int | None, met: bool | None) -> None:
    least, most = (None if side is None else Fraction(side) for side in (low, high))
    assert judged_between(parse_threshold(expression), least, most, "range", "why").met is met


def test_metrics_have_gauges_for_the_bounds_only(log: str, capsys: Output) -> None:
    metrics = output_of(capsys, "analyze", log, "--format", "openmetrics")
    assert "goodput_ratio{" not in metrics
    assert 'category="productive"' not in metrics
    assert 'category="training_slowdown"' not in metrics
    assert 'goodput_at_least_ratio{job_name="j"} 0.8\n' in metrics
    assert 'goodput_at_most_ratio{job_name="j"} 1\n' in metrics


def test_monitor_publishes_the_bounds_only(log: str, capsys: Output) -> None:
    output_of(capsys, "monitor", log, "--publish", "tensorboard:board", "--publish", "prom:out.prom", "--window", "10m")
    written = b"".join(file.read_bytes() for file in Path("board").rglob("events.*"))
    assert b"goodput/goodput" not in written
    assert b"slowdown" not in written
    metrics = Path("out.prom").read_text()
    assert "goodput_ratio{" not in metrics
    assert "goodput_at_most_ratio{" in metrics
    assert "goodput_rolling_ratio{" not in metrics
    assert "goodput_rolling_at_most_ratio{" in metrics


def test_tables_and_pages_show_no_single_number(log: str, capsys: Output) -> None:
    assert "productive,,,,\ntraining_slowdown,,,,\n" in output_of(capsys, "analyze", log, "--format", "csv")
    for form in ("markdown", "junit"):
        assert f"{LOW} to {HIGH} %" in output_of(capsys, "analyze", log, "--format", form)
    for command in ("rolling", "jobs", "disruptions", "advise"):
        assert f"{LOW} to {HIGH} %" in " ".join(output_of(capsys, command, log).split())
    page = str(load_renderer("html")(analyze(log), Page()))
    assert f"{LOW} to {HIGH} %" in page
    assert "step times rose" in page


def test_fleet_leaves_the_run_out_and_counts_it() -> None:
    put(Path("logs/a.jsonl"), training("trained", 2, 0.5))
    put(Path("logs/b.jsonl"), [line.replace('"j"', '"ramped"') for line in RISEN])
    answer = fleet("logs")
    assert (answer["coverage"]["runs"], answer["coverage"]["not_analysed"]) == (1, 1)
    assert "goodput is known only within bounds" in answer["not_analysed"][0]["reason"]


def test_comparison_is_inconclusive_saved_or_not(log: str, capsys: Output) -> None:
    output_of(capsys, "analyze", log, "-o", "saved.json")
    for side in (log, "saved.json"):
        assert run(["compare", log, side, "--reference-step-time", "10", "-q"]) == (0 if side == log else 4)
        capsys.readouterr()
        assert run(["compare", side, log, "-q"]) == 4
        words = capsys.readouterr().err
        assert f"{side}: inconclusive: its goodput is {LOW} to {HIGH} %" in words
        assert "pass --reference-step-time" in words


def test_python_has_bounds_and_no_percent(log: str) -> None:
    analysis = analyze(log, window=("10m",))
    assert analysis.goodput_percent is None
    assert (analysis.at_least_percent, analysis.at_most_percent) == (80, 100)
    assert analysis.unavailable_reason is not None
    assert f"goodput {LOW} to {HIGH} %" in repr(analysis)
    assert f"goodput {LOW} to {HIGH} %" in analysis._repr_html_()
    assert analysis.rolling is not None
    assert analysis.rolling.to_frame()["goodput_percent"].isna().any()


@pytest.mark.parametrize(
    ("sides", "share"),
    [((("at_most", 2400),), "<= 96.00 %"), ((("at_least", 1000),), ">= 40.00 %")],
)
def test_headline_shows_the_side_that_is_known(sides: tuple[tuple[str, int]], share: str, log: str) -> None:
    bounds = tuple(Bound("goodput", side, seconds * 10**9, "other", "why") for side, seconds in sides)  # type: ignore[arg-type]
    assert headline(replace(analyze(log), bounds=bounds))[0] == share


def test_confirmed_losses_come_before_what_is_open(log: str) -> None:
    again = story_lines(started(2600), loaded(200, 2700), finished(210, 2850), job_finished(2850))
    Path("two.jsonl").write_text(text_of(*RISEN[:-1], *again))
    assert [one.confirmed for one in analyze("two.jsonl").insights] == [True, False]
