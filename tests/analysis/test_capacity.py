"""Capacity lost while a job trained with fewer slices."""

from __future__ import annotations

from pathlib import Path

import goodput_cli
from goodput_cli.analysis.hangs.report import capacity_of, capacity_text


def log(slices: list[int], *, minute: int = 0, first: int = 0) -> str:
    """Return lines of MaxText: a step every 10 s, each with the number of slices that ran it."""
    return "".join(
        f"2026-03-01 12:{minute + (at + 1) // 6:02d}:{(at + 1) % 6 * 10:02d}.000 I completed step: {first + at}, "
        f"seconds: 10.0, live slice count: {count}, TFLOP/s/device: 100.0, Tokens/s/device: 1000.0, total_weights: "
        "8192, loss: 5.0\n"
        for at, count in enumerate(slices)
    )


def analysed(folder: Path, text: str, **question: str) -> goodput_cli.Analysis:
    (folder / "run.log").write_text(text, encoding="utf-8")
    return goodput_cli.analyze(str(folder / "run.log"), **question)  # type: ignore[arg-type]


def test_capacity_is_lost_while_a_slice_is_out(tmp_path: Path) -> None:
    """Of 4 slices, one is out for 6 steps, and two for 3."""
    analysis = analysed(tmp_path, log([4] * 6 + [3] * 6 + [2] * 3 + [4] * 6))
    found = analysis.to_dict()["capacity"]
    assert found == {"unit": "slice", "most": 4, "reduced_seconds": 90, "lost_seconds": 30}
    assert analysis.to_dict()["goodput"]["percent"] == 100
    assert capacity_text(capacity_of(analysis)) == (
        "steps with fewer than 4 slices took 1 min 30 s: 30.0 s of capacity was lost while training continued (not in "
        "the categories)"
    )


def test_downtime_between_attempts_loses_no_capacity(tmp_path: Path) -> None:
    text = log([2] * 12) + log([1] * 6, minute=30, first=6) + log([2] * 6, minute=31, first=12)
    found = capacity_of(analysed(tmp_path, text))
    assert found is not None
    assert (found.reduced_ns, found.lost_ns) == (50 * 10**9, 25 * 10**9)


def test_capacity_is_that_of_the_window(tmp_path: Path) -> None:
    text = log([2] * 6 + [1] * 12 + [2] * 6)
    found = capacity_of(analysed(tmp_path, text, end="2026-03-01T12:01:30"))
    assert found is not None
    assert (found.reduced_ns, found.lost_ns) == (30 * 10**9, 15 * 10**9)


def test_job_with_all_slices_has_no_line_about_them(tmp_path: Path) -> None:
    analysis = analysed(tmp_path, log([2] * 12))
    assert capacity_text(capacity_of(analysis)) is None
    assert analysis.to_dict()["capacity"]["lost_seconds"] == 0


def test_capacity_is_unknown_without_numbers(tmp_path: Path) -> None:
    text = log([2] * 12).replace(", live slice count: 2", "")
    assert analysed(tmp_path, text).to_dict()["capacity"] is None
