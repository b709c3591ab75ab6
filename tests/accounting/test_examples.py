"""Worked answers: 18 small logs with the seconds that the rules give, and the two sample logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goodput_cli import analyze
from goodput_cli.analysis.goodput.analysis import Analysis

HERE = Path(__file__).parent.parent
EXAMPLES = sorted(path.stem for path in (HERE / "examples").glob("*.jsonl"))
SAMPLES = HERE.parent / "sample_logs"
MICROSECOND = 1000


def nanoseconds(analysis: Analysis) -> dict[str, int]:
    amounts = {row.name: row.ns for row in (analysis.goodput, *analysis.badput)}
    amounts["excluded"] = analysis.window.excluded_ns
    return {name: ns for name, ns in amounts.items() if ns}


def seconds(analysis: Analysis) -> dict[str, float]:
    return {name: ns / 1e9 for name, ns in nanoseconds(analysis).items()}


def test_all_examples_exist() -> None:
    assert [name[:2] for name in EXAMPLES] == [f"{number:02}" for number in range(1, 19)]


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_gives_its_answer(name: str) -> None:
    expected: dict[str, Any] = json.loads((HERE / "examples" / f"{name}.expected.json").read_text(encoding="utf-8"))
    analysis = analyze(HERE / "examples" / f"{name}.jsonl", **expected["arguments"])
    found = nanoseconds(analysis)
    assert found.keys() == expected["seconds"].keys(), expected["why"]
    for category, amount in expected["seconds"].items():
        assert abs(found[category] - round(amount * 10**9)) < MICROSECOND, (category, expected["why"])
    assert analysis.job.attempts == expected["attempts"]
    assert abs(analysis.window.ns - round(expected["total_seconds"] * 10**9)) < MICROSECOND
    assert sum(found.values()) == analysis.window.ns


def test_checkpoint_step_model_gives_its_answer() -> None:
    analysis = analyze(SAMPLES / "primer-50-percent.jsonl", reference_step_time=120)
    assert analysis.window.ns == 200 * 60 * 10**9
    assert seconds(analysis) == {
        "productive": 100 * 60,
        "unproductive_checkpoint_restore_time": 10 * 60,
        "wasted_progress_from_disruption": 40 * 60,
        "infrastructure_recovery_from_disruption": 15 * 60,
        "unproductive_checkpoint_save_time": 10 * 60,
        "training_slowdown": 25 * 60,
    }
    percents = {row.category: row.percent for row in (analysis.goodput, *analysis.badput)}
    assert percents == {
        "productive": 50.0,
        "unproductive_checkpoint_restore_time": 5.0,
        "wasted_progress_from_disruption": 20.0,
        "infrastructure_recovery_from_disruption": 7.5,
        "unproductive_checkpoint_save_time": 5.0,
        "training_slowdown": 12.5,
    }


def test_calculator_table_of_the_worked_example() -> None:
    table = analyze(SAMPLES / "primer-50-percent.jsonl", reference_step_time=120).reference
    assert (table.step_time_seconds, table.origin) == (120.0, "given")
    assert table.effective_computation_ns == 100 * 60 * 10**9
    assert (table.min_loaded_step, table.max_saved_step, table.step_difference) == (25, 75, 50)
    assert (table.total_events, table.job_started_count) == (11, 2)
    assert (table.checkpoints_loaded, table.checkpoints_saved) == (2, 2)


def test_real_run_of_two_attempts() -> None:
    analysis = analyze(SAMPLES / "fsdp-2-attempts.jsonl", reference_step_time="0.002569")
    assert round(analysis.goodput.percent, 2) == 21.72
    assert analysis.reference.effective_computation_ns == 10_000 * 2_569_000
    expected = {
        "program_startup": 5.299,
        "training_slowdown": 0.947,
        "unproductive_checkpoint_restore_time": 62.50,
        "infrastructure_recovery_from_disruption": 19.48,
        "wasted_progress_from_disruption": 2.33,
        "other": 2.00,
    }
    found = seconds(analysis)
    assert {name: pytest.approx(amount, abs=0.006) for name, amount in expected.items()} == {
        name: amount for name, amount in found.items() if name != "productive"
    }
    assert analysis.window.ns / 1e9 == pytest.approx(118.25, abs=0.005)


def test_calculator_table_of_the_real_run() -> None:
    table = analyze(SAMPLES / "fsdp-2-attempts.jsonl", reference_step_time="0.002569").reference
    assert (table.min_loaded_step, table.max_saved_step, table.step_difference) == (0, 10_000, 10_000)
    assert table.checkpoints_saved == 20
    assert table.job_started_count == 2
