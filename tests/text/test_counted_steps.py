"""Steps that lines count within an epoch or since a process began, and processes that share a file without a name."""

from __future__ import annotations

from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.events.text.counted_steps import epoch_of, writers_of


@pytest.mark.parametrize(
    ("steps", "clocks", "writers"),
    [
        ([10, 20, 30, 40, 50, 60], [1, 2, 3, 4, 5, 6], 1),
        ([10, 10, 20, 20, 30, 30], [100, 150, 200, 250, 300, 350], 2),
        ([10, 20, 10, 30, 20, 40, 30], [1, 2, 2, 3, 3, 4, 4], 2),
        ([10, 20, 30, 15, 25, 35], [1, 2, 3, 1, 2, 3], 1),  # A restart never returns to the process before.
        ([10, 10, 20, 30, 40, 50], [1, 1, 2, 3, 4, 5], 1),  # A repeated step is not an alternation.
    ],
)
def test_writers_are_several_only_if_they_alternate(steps: list[int], clocks: list[int], writers: int) -> None:
    assert len({*writers_of(steps, clocks)}) == writers


@pytest.mark.parametrize(
    ("named", "was_full", "begun", "restored", "epoch"),
    [
        (7, False, False, False, 7),  # A line contains it.
        (None, True, False, False, 4),  # The count reached its end.
        (None, True, True, False, 0),  # Another process begins from scratch,
        (None, True, True, True, 3),  # or continues in the epoch of the checkpoint.
        (None, False, False, True, 3),
        (None, False, False, False, 0),
    ],
)
def test_epoch_of_a_count_that_begins_again(
    *, named: int | None, was_full: bool, begun: bool, restored: bool, epoch: int
) -> None:
    assert epoch_of(named, 3, was_full=was_full, begun=begun, restored=restored) == epoch


ROW = (
    '{{"current_steps": {}, "total_steps": 5000, "loss": 1.2, "elapsed_time": "{}:{:02}:{:02}", '
    '"remaining_time": "1:00:00"}}\n'
)


def row(step: int, seconds: int) -> str:
    return ROW.format(step, seconds // 3600, seconds // 60 % 60, seconds % 60)


def test_log_cut_at_its_start_begins_at_its_first_record(tmp_path: Path) -> None:
    """The clock covers all 1000 steps, but the rows of the first 990 are missing."""
    log = tmp_path / "trainer_log.jsonl"
    log.write_text("".join(row(1000 + 10 * n, 15_000 + 150 * n) for n in range(6)), encoding="utf-8")
    analysis = goodput_cli.analyze(log)
    assert analysis.window.counted_ns == 750 * 10**9
    assert analysis.goodput_percent == 100


def test_restart_without_a_clock_bounds_goodput(tmp_path: Path) -> None:
    """200 s of training, 40 s of it twice, and an unknown time between the two processes."""
    first = "".join(row(n, 2 * n) for n in range(10, 61, 10))
    second = "".join(row(40 + n, 2 * n) for n in range(10, 61, 10))
    log = tmp_path / "trainer_log.jsonl"
    log.write_text(first + second, encoding="utf-8")
    analysis = goodput_cli.analyze(log)
    assert analysis.goodput_percent is None
    (bound,) = analysis.bounds
    assert (bound.quantity, bound.direction, bound.reason, bound.lines) == (
        "goodput",
        "at_most",
        "no_clock",
        (f"{log}:7",),
    )
    assert "no clock goes on across 1 restart" in bound.text
