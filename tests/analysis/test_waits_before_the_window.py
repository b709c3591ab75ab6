"""Waiting for data in steps that no record of the log begins: it is outside goodput."""

from __future__ import annotations

from pathlib import Path

import pytest

from goodput_cli import analyze

LINE = (
    "2026-03-01 10:{minute:02d}:00,000 - mmdet - INFO - Epoch [1][{step}/5000]\tlr: 0.02000, eta: 1 day, 8:18:01, "
    "time: {each:.3f}, data_time: {data:.3f}, memory: 2677, loss: 0.3071\n"
)


def log_with(first: float) -> str:
    """Return a record of 100 steps that waited `first` seconds each, and five of 0.6 s with a wait of 0.1 s."""
    steps = [(first + 0.5, first), *[(0.6, 0.1)] * 5]
    lines = (LINE.format(minute=at, step=100 * (at + 1), each=each, data=data) for at, (each, data) in enumerate(steps))
    return "".join(lines)


@pytest.mark.parametrize(("first", "found"), [(5.8, 0), (0.1, 1)])
def test_waits_longer_than_goodput_are_not_within_it(first: float, found: int, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(log_with(first))
    analysis = analyze(tmp_path / "train.log")
    insights = [one for one in analysis.insights if one.code == "input_bound"]
    assert len(insights) == found
    assert all(one.in_goodput_ns <= analysis.goodput.ns for one in insights)
