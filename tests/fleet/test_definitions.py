"""Definitions of the numbers in docs/fleet.md, on fleets whose amounts are computed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goodput_cli.analysis.disruptions.find import poisson_interval
from goodput_cli.cli.main import run
from tests.support.fleets import HOUR, fleet, of_job, put, text_of, training
from tests.support.story import end, save, start, steps, story_lines

Output = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("folder")


def test_weeks_add_up_exactly_across_a_clock_change() -> None:
    """Two weeks around 2026-03-29 in Berlin, the first of 167 hours; accelerators change inside the second."""
    put(Path("a.jsonl"), training("a", 24 * 12, 24 * 10, at=82 * 86_400))
    rows = ("job,start,end,accelerators", "a,2026-03-20,2026-04-02,64", "a,2026-04-02,2026-04-20,96")
    Path("allocations.csv").write_text(text_of(*rows))
    answer = fleet(
        "a.jsonl", "--timezone", "Europe/Berlin", "--allocations", "allocations.csv", "--reference-step-time", "59.9"
    )
    assert [week["week"] for week in answer["weeks"]] == ["2026-W13", "2026-W14"]
    short = answer["weeks"][0]
    assert (short["start"], short["end"]) == ("2026-03-24T00:00:00Z", "2026-03-29T22:00:00Z")
    assert short["covered_percent"] == pytest.approx(100 * (5 * 24 + 22) / 167)
    for category in answer["categories"]:
        weekly = [
            int(row["chip_ns"])
            for week in answer["weeks"]
            for row in week["categories"]
            if row["category"] == category["category"]
        ]
        assert str(sum(weekly)) == category["chip_ns"]


def test_a_run_across_new_year_is_in_the_weeks_of_both_years() -> None:
    put(Path("a.jsonl"), training("a", 24 * 7, 24 * 6, at=-3 * 86_400))
    weeks = fleet("a.jsonl", "--accelerators", "8")["weeks"]
    assert [week["week"] for week in weeks] == ["2026-W01"]
    put(Path("a.jsonl"), training("a", 24 * 7, 24 * 6, at=-5 * 86_400))
    weeks = fleet("a.jsonl", "--accelerators", "8")["weeks"]
    assert [week["week"] for week in weeks] == ["2025-W52", "2026-W01"]


def mpg_fleet(*ideal: str) -> Any:
    """Return 8 accelerators for 10 h with 6 h kept, 24 for 5 h with 4 h kept, and a capacity of 32."""
    put(Path("logs/a.jsonl"), training("a", 10, 6))
    put(Path("logs/b.jsonl"), training("b", 5, 4))
    Path("labels.csv").write_text(text_of("job,accelerators,ideal_step_seconds", *ideal))
    Path("capacity.csv").write_text(text_of("from,to,count", "2026-01-01,2026-01-01T10:00:00,32"))
    return fleet("logs", "--labels", "labels.csv", "--capacity", "capacity.csv")


def test_mpg_by_hand() -> None:
    """K = 320, A = 200, P = 144 chip hours; 3 ideal hours are half of what a kept, 3/4 of what b kept."""
    mpg = mpg_fleet("a,8,30", "b,24,")["mpg"]
    assert (mpg["scheduling_percent"], mpg["runtime_percent"]) == (62.5, 72.0)
    assert mpg["program_percent"] == pytest.approx(50)
    assert mpg["program_coverage_percent"] == pytest.approx(100 / 3)
    both = mpg_fleet("a,8,30", "b,24,45")["mpg"]
    assert both["program_percent"] == pytest.approx(100 * 96 / 144)
    assert both["mpg_percent"] == pytest.approx(30)
    none = fleet("logs", "--labels", "labels.csv")["mpg"]
    assert (none["scheduling_percent"], none["mpg_percent"], none["runtime_percent"]) == (None, None, 72.0)


def test_mpg_of_a_small_part_is_not_recorded(capsys: Output) -> None:
    mpg_fleet("a,8,30", "b,24,")
    assert run(["fleet", "logs", "--labels", "labels.csv", "--capacity", "capacity.csv", "--workers", "1"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "MPG (program goodput known for 33.33 % of the kept chip time, 80 % needed: --labels with" in shown
    assert (
        "scheduling goodput 62.50 %, runtime goodput 72.00 %, program goodput 50.00 % (allocated time taken from the "
        "logs)" in shown
    )
    assert "MPG 3" not in shown


def test_mttf_by_hand() -> None:
    """Exposures of 100, 50 and 50 h with 2 failures: 100 h, and Garwood's interval; without a failure only its lower
    end."""
    died = story_lines(
        start(0), steps(0, 61, at=0, every=60), start(40 * HOUR), steps(30, 61, at=40 * HOUR, every=60),
        start(70 * HOUR), steps(60, 61, at=70 * HOUR, every=60), end(170 * HOUR),
    )  # fmt: skip
    put(Path("logs/a.jsonl"), of_job(died, "a"))
    for name in "bc":
        put(Path(f"logs/{name}.jsonl"), training(name, 50, 40))
    Path("labels.csv").write_text(text_of("job,accelerators,accelerators_per_node", "a,64,8", "*,64,8"))
    (row,) = fleet("logs", "--labels", "labels.csv")["sizes"]
    lower, upper = poisson_interval(2)
    up = row["up_seconds"]
    assert row["failures"] == 2
    assert row["mttf_seconds"] == pytest.approx(up / 2)
    assert row["mttf_low_seconds"] == pytest.approx(up / upper)
    assert row["mttf_high_seconds"] == pytest.approx(up / lower)
    assert (round(200 / upper, 1), round(200 / lower, 1)) == (27.7, 825.7)
    assert row["per_1000_node_days"] == pytest.approx(2 / (up / 86_400 * 8) * 1000)
    (quiet,) = fleet("logs", "--labels", "labels.csv", "--failures", "preempted")["sizes"]
    assert (quiet["failures"], quiet["mttf_seconds"], quiet["mttf_high_seconds"]) == (0, None, None)
    assert quiet["mttf_low_seconds"] == pytest.approx(up / poisson_interval(0)[1])


def test_without_labels_only_job_time_is_recorded(logs: Path, capsys: Output) -> None:
    answer = fleet(str(logs))
    assert (answer["totals"]["goodput_percent"], answer["totals"]["accelerator_hours"]) == (None, None)
    assert answer["totals"]["time_goodput_percent"] > 0
    assert run(["fleet", str(logs), "--workers", "1"]) == 0
    shown = capsys.readouterr().out
    assert " by job time (by chip time: unknown" in shown
    assert "by job time" in shown
    assert run(["fleet", str(logs), "--workers", "1", "-q", "--fail-if", "mpg<50"]) == 4


def test_mpg_counts_a_run_with_all_it_was_allocated() -> None:
    """a keeps nothing in its first week, and b has no ideal step: A of both weeks of a, 8 x 240 h, is in its share."""
    day = 86_400
    put(Path("logs/a.jsonl"), training("a", 240, 60, at=-2 * day))
    put(Path("logs/b.jsonl"), training("b", 24, 12))
    Path("labels.csv").write_text(text_of("job,accelerators,ideal_step_seconds", "a,8,30", "b,1,"))
    Path("capacity.csv").write_text(text_of("from,to,count", "2025-12-30,2026-01-09,16"))
    mpg = fleet("logs", "--labels", "labels.csv", "--capacity", "capacity.csv")["mpg"]
    allocated, capacity = 8 * 240 + 24, 16 * 240
    assert mpg["scheduling_percent"] == pytest.approx(100 * allocated / capacity)
    assert mpg["program_coverage_percent"] == pytest.approx(100 * 480 / (480 + 12))
    assert mpg["runtime_program_percent"] == pytest.approx(100 * 480 / (8 * 240) * 0.5)
    assert mpg["mpg_percent"] == pytest.approx(100 * allocated / capacity * 480 / (8 * 240) * 0.5)


def test_saved_only_excludes_unsaved_progress() -> None:
    """10 h with 6 h of training; the only save came after 4 of these, so 2 h are at risk."""
    lines = story_lines(
        start(0), steps(0, 241, at=4 * HOUR, every=60), save(8 * HOUR + 60, 0.001, 240),
        steps(241, 120, at=8 * HOUR + 60.001, every=60), end(10 * HOUR),
    )  # fmt: skip
    put(Path("logs/a.jsonl"), of_job(lines, "a"))
    Path("labels.csv").write_text(text_of("job,accelerators,ideal_step_seconds", "a,8,30"))
    Path("capacity.csv").write_text(text_of("from,to,count", "2026-01-01,2026-01-01T10:00:00,8"))
    asked = ("logs", "--labels", "labels.csv", "--capacity", "capacity.csv")
    every, saved = (fleet(*asked, *more)["mpg"] for more in ((), ("--saved-only",)))
    assert every["at_risk_chip_ns"] == saved["at_risk_chip_ns"]
    assert every["runtime_percent"] - saved["runtime_percent"] == pytest.approx(100 * 2 / 10, abs=0.2)
    assert saved["mpg_percent"] == pytest.approx(saved["runtime_percent"] * saved["program_percent"] / 100)
    assert saved["mpg_percent"] < every["mpg_percent"]
