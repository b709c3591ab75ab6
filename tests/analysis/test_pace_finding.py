"""A negative statement about slow regimes needs the power to see one (accounting §8)."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

import goodput_cli
from goodput_cli import Analysis
from goodput_cli.analysis.steps.levels import separate_stretches
from goodput_cli.analysis.steps.noise import PaceModel
from goodput_cli.analysis.steps.regimes import pace_model
from goodput_cli.analysis.steps.sheet import step_report
from goodput_cli.arrays import F64
from goodput_cli.cli.main import run
from goodput_cli.report.html.charts import pace_text
from tests.support.story import BEGIN


def series(seed: int, count: int, noise: float, change: float = 0.0) -> F64:
    """Return step times of 8 s; from a random position on, 8 or more are longer by a share."""
    random = np.random.default_rng(seed)
    seconds = 8 * np.exp(noise * random.standard_normal(count))
    seconds[int(random.integers(8, count - 7)) if count >= 16 else count // 2 :] *= 1 + change
    return seconds


def finding(model: PaceModel) -> str:
    return "found" if model.kind != "level" else "inconclusive" if model.unseen else "none"


def test_no_slow_period_in_1000_constant_series() -> None:
    found = [
        seed for seed in range(1000)
        if separate_stretches(series(seed, 16 + seed % 32, (0.003, 0.02, 0.1)[seed % 3])) is not None
    ]  # fmt: skip
    assert found == []


@pytest.mark.parametrize("noise", [0.0, 0.002, 0.02, 0.1])
@pytest.mark.parametrize("change", [0.1, 0.3, 0.5])
def test_change_is_found_or_inconclusive(noise: float, change: float) -> None:
    results = {finding(pace_model(series(count, count, noise, change))) for count in range(8, 61, 4)}
    assert results <= {"found", "inconclusive"}


@pytest.mark.parametrize(
    ("count", "noise", "change", "result"),
    [
        (15, 0.0, 0.5, "inconclusive"),
        (16, 0.002, 0.06, "found"),
        (40, 0.002, 0.3, "found"),
        (40, 0.002, 0.04, "inconclusive"),
        (40, 0.0, 0.0, "inconclusive"),
        (40, 0.2, 0.3, "inconclusive"),
        (48, 0.002, 0.0, "none"),
        (60, 0.1, 0.1, "inconclusive"),
        (400, 0.02, 0.0, "none"),
        (400, 0.3, 0.0, "inconclusive"),
    ],
)
def test_finding_depends_on_records_and_noise(count: int, noise: float, change: float, result: str) -> None:
    assert finding(pace_model(series(1, count, noise, change))) == result


@pytest.mark.parametrize(
    "logs",
    [np.linspace(0, 0.5, 40), np.cumsum(np.random.default_rng(3).normal(0, 0.02, 40)), np.tile([0.0, 0.3], 20)],
    ids=["line", "random walk", "turns"],
)  # fmt: skip
def test_rising_drifting_or_alternating_pace_has_no_stretch(logs: F64) -> None:
    assert separate_stretches(8 * np.exp(logs)) is None


def megatron(path: Path, records: int, each: float, later: float) -> Analysis:
    """Return the analysis of lines of 10 steps with timestamps in whole seconds; the second half takes `later` s per
    step."""
    now, lines = 0.0, []
    for record in range(1, records + 1):
        seconds = each if record <= records // 2 else later
        now += 10 * seconds
        lines.append(
            f" [{BEGIN + timedelta(seconds=int(now)):%Y-%m-%d %H:%M:%S}] iteration {10 * record:8d}/    9000 | elapsed "
            f"time per iteration (ms): {1000 * seconds:.1f} | lm loss: 2.0E+00 |\n"
        )
    path.write_text("".join(lines))
    return goodput_cli.analyze(path, timezone="UTC")


def test_stated_step_times_are_used_before_whole_seconds(tmp_path: Path) -> None:
    """0.211 s and 0.25 s: timestamps give 0.2 or 0.3 s for both."""
    report = step_report(megatron(tmp_path / "train.log", 40, 0.211, 0.25))
    (slow,) = report.regimes
    assert slow.first_step == 201
    assert [slow.usual_seconds, slow.seconds] == pytest.approx([0.211, 0.25])


def test_reason_is_in_text_json_page_and_time_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    analysis = megatron(tmp_path / "train.log", 40, 2.0, 2.0)
    log = str(tmp_path / "train.log")
    assert run(["steps", log, "-q"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "slow periods: inconclusive (39 step times, 48 needed)" in text
    assert "9,000 steps left (logged); changes of step time: inconclusive" in text
    assert run(["steps", log, "-q", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["pace"] == {
        "result": "inconclusive", "reason": "39 step times, 48 needed"
    }  # fmt: skip
    assert analysis.eta is not None
    assert analysis.eta.pace is not None
    assert analysis.eta.pace.result == "inconclusive"
    assert pace_text(step_report(analysis)) == "slow periods: inconclusive (39 step times, 48 needed)"
    assert "slow_steps" not in {one.code for one in analysis.insights}
