"""Accelerators and operations in logs count if neither labels nor options contain them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.fleets import fleet
from tests.support.story import megatron


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Write a run of 3000 s on 8 accelerators after 600 s of start-up, whose log contains its speed; and one without
    such lines."""
    folder = tmp_path / "logs"
    for name, world, tflops in (("said", 8, 400.0), ("unsaid", None, None)):
        (folder / name).mkdir(parents=True)
        lines = megatron(3000, start_up=600.0, world=world, tflops=tflops)
        if name == "unsaid":  # the same steps at the same times would be one job
            lines = [line.replace("2026-03-01", "2026-03-02") for line in lines]
        (folder / name / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def asked(logs: Path, *options: str) -> Any:
    return fleet(str(logs), *options, out=logs.parent / "out.json")


def test_accelerators_of_logs_count_and_are_reported(logs: Path) -> None:
    answer = asked(logs)
    coverage = answer["coverage"]
    assert (coverage["known_runs"], coverage["runs_with_logged_accelerators"]) == (1, 1)
    assert "runs_with_logged_flops" not in coverage, "nobody says what an accelerator can do"
    assert answer["totals"]["accelerator_hours"] == pytest.approx(8.0)
    assert answer["totals"]["goodput_percent"] == pytest.approx(100 * 3000 / 3600)


def test_program_goodput_takes_operations_of_logs(logs: Path) -> None:
    answer = asked(logs, "--accelerator-type", "h100")
    assert answer["coverage"]["runs_with_logged_flops"] == 1
    assert answer["mpg"]["program_percent"] == pytest.approx(100 * 400 / 989, rel=1e-3)


def test_options_and_labels_win(logs: Path) -> None:
    answer = asked(logs, "--accelerators", "16", "--accelerator-type", "h100")
    assert answer["coverage"]["known_runs"] == 2
    assert "runs_with_logged_accelerators" not in answer["coverage"]
    assert answer["totals"]["accelerator_hours"] == pytest.approx(32.0)
    labels = logs.parent / "labels.csv"
    labels.write_text("job,accelerators,flops_per_step,peak_flops\n*said*,4,1e15,1e15\n", encoding="utf-8")
    answer = asked(logs, "--labels", str(labels))
    assert "runs_with_logged_flops" not in answer["coverage"]
    assert answer["mpg"]["program_percent"] == pytest.approx(25.0, rel=1e-3)


def test_store_keeps_logged_sizes_and_recomputes_other_peaks(logs: Path) -> None:
    store = str(logs.parent / "store")
    first = asked(logs, "--store", store, "--accelerator-type", "h100")
    again = asked(logs, "--store", store, "--accelerator-type", "h100")
    other = asked(logs, "--store", store, "--accelerator-type", "a100")
    assert first["mpg"] == again["mpg"]
    assert other["mpg"]["program_percent"] == pytest.approx(100 * 400 / 312, rel=1e-3)
