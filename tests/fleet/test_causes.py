"""Why the attempts of a fleet died: failures by cause in a thousand accelerator days, with their interval."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.causes.test_rules import FIRST, SECOND, raised
from tests.support.fleets import fleet, put, training

OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
GARWOOD_OF_2 = (0.24221, 7.22469)
"""From a table: half of chi-square's quantiles 0.025 with 4 and 0.975 with 6 degrees of freedom."""
FULL = "OSError: [Errno 28] No space left on device"


def job(name: str, *said: str) -> None:
    put(Path(f"logs/{name}/{name}.log"), [*FIRST, *said, *SECOND])


@pytest.fixture
def answered(folder: Path) -> None:
    """Two deaths for want of memory, one for want of room, one of which no line says why."""
    job("a", *raised(3, OUT_OF_MEMORY))
    job("b", *raised(1, OUT_OF_MEMORY))
    job("c", *raised(0, FULL))
    job("d")


@pytest.mark.usefixtures("answered")
def test_failures_are_counted_by_cause_and_those_that_nobody_explains_come_last() -> None:
    answer = fleet("logs", "--accelerators", "8")
    assert [(row["cause"], row["group"], row["failures"], row["runs"]) for row in answer["causes"]] == [
        ("device_oom", "memory", 2, 2), ("disk_full", "storage", 1, 1), ("unknown", "unknown", 1, 1),
    ]  # fmt: skip
    assert sum(row["failures"] for row in answer["causes"]) == answer["totals"]["failures"]
    assert {row["cause"] for row in answer["disruptions"]} == {"device_oom", "disk_full", "unknown"}


@pytest.mark.usefixtures("answered")
def test_rates_are_of_accelerator_days_up_with_garwood_s_interval() -> None:
    answer = fleet("logs", "--accelerators", "8")
    row, days = answer["causes"][0], sum(size["accelerator_days"] for size in answer["sizes"])
    found = (row["per_1000_accelerator_days"], row["per_1000_low"], row["per_1000_high"])
    assert found == pytest.approx([1000 * count / days for count in (2, *GARWOOD_OF_2)], rel=1e-4)


@pytest.mark.usefixtures("answered")
def test_without_accelerators_there_is_no_rate() -> None:
    """No evidence is null, never a rate of 1 accelerator."""
    row = fleet("logs")["causes"][0]
    assert (row["failures"], row["per_1000_accelerator_days"], row["per_1000_low"], row["accelerator_hours"]) == (
        2, None, None, None,
    )  # fmt: skip


@pytest.mark.usefixtures("folder")
def test_where_no_line_of_any_run_says_why_there_is_no_table() -> None:
    put(Path("logs/a.jsonl"), training("a", 3, 2))
    job("d")
    assert fleet("logs", "--accelerators", "8")["causes"] == []
