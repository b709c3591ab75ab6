"""Accounting §3: the start of a replica begins no attempt while the steps of another file go on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import goodput_cli

BEGIN = datetime(2026, 3, 2, 8, tzinfo=UTC)


def line(at: int, text: str) -> str:
    """Return a line of torchtitan."""
    return f"[titan] {BEGIN + timedelta(seconds=at):%Y-%m-%d %H:%M:%S},000 - root - INFO - {text}\n"


def start(at: int) -> str:
    return line(at, "Starting job: ft") + line(at + 5, "Training starts at step 1")


def steps(first: int, last: int, at: int) -> str:
    """Return one step every 10 s."""
    return "".join(
        line(at + 10 * (number - first), f"step: {number:2}  loss:  7.1  memory: 1.00GiB(1%)  tps: 5,000")
        for number in range(first, last + 1)
    )


LOST = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\nValueError: bad batch\n'
ONCE = start(0) + steps(1, 30, 20) + LOST
"""A replica that dies after step 30."""


@pytest.mark.parametrize(
    ("replica", "other", "attempts"),
    [
        (start(0) + steps(1, 60, 20), ONCE + start(400) + steps(42, 60, 435), 1),
        (start(0) + steps(1, 60, 20), ONCE + start(400) + ONCE.replace("step:", "stop:"), 1),
        (start(0) + steps(1, 38, 20) + steps(39, 60, 445), ONCE + start(400), 1),
        (start(0) + steps(1, 38, 20) + steps(39, 60, 600), ONCE + start(400), 2),
        (start(0) + steps(1, 38, 20) + start(402) + steps(39, 60, 420), ONCE + start(400) + steps(39, 60, 420), 2),
        (start(0) + steps(1, 38, 20) + steps(31, 60, 420), ONCE + start(400), 2),
        (steps(1, 60, 20), ONCE + start(400), 2),
    ],
    ids=["joins again", "joins twice", "a short wait", "a long silence", "its own start", "steps go back", "no start"],
)
def test_replica_that_joins_begins_no_attempt(tmp_path: Path, replica: str, other: str, attempts: int) -> None:
    (tmp_path / "replica0.log").write_text(replica)
    (tmp_path / "replica1.log").write_text(other)
    assert goodput_cli.analyze(str(tmp_path), timezone="UTC").job.attempts == attempts
