"""Saves of Orbax in one file of several processes: a save of the first step again is of another process."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.text.support import analysed

_BEGIN = datetime(2026, 3, 1, 10)


def at(second: float, text: str) -> str:
    return f"{_BEGIN + timedelta(seconds=second):%Y-%m-%d %H:%M:%S} [I] {text}\n"


def process(begin: float, saves: int) -> str:
    """Steps of 1 s, of which each hundredth is saved within 5 s."""
    lines = [at(begin, "Created manager"), at(begin + 10, "Finished restoring checkpoint in 4.00 seconds from /base.")]
    for number in range(1, saves + 1):
        second = begin + 20 + 105 * number
        lines += [
            at(second, f"Finished blocking save in 5.00 seconds. Continuing to save asynchronously to /ck/{number}00."),
            at(second + 4, f"Finished asynchronous save (blocking + background) in 9.00 seconds to /ck/{number}00"),
        ]
    return "".join(lines)


def test_save_of_the_first_step_again_begins_an_attempt(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(process(0, 8) + process(5000, 6), encoding="utf-8")
    analysis = analysed(tmp_path / "train.log")
    assert (analysis.job.attempts, analysis.job.disruptions) == (2, 1)
    assert analysis.goodput.seconds == pytest.approx(500, abs=10)


def test_saves_that_go_on_are_of_one_process(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(process(0, 14), encoding="utf-8")
    assert analysed(tmp_path / "train.log").job.attempts == 1
