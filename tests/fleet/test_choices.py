"""Effects of the options of `goodput fleet`, on fleets whose amounts are computed by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.analysis.jobs import list_jobs
from goodput_cli.analysis.question import Question
from goodput_cli.events.read import read_events
from tests.support.fleets import HOUR, fleet, of_job, put, text_of, training
from tests.support.story import (
    crashed,
    end,
    job_finished,
    notice,
    scheduled,
    slices,
    start,
    started,
    step,
    steps,
    story_lines,
)

pytestmark = pytest.mark.usefixtures("folder")
DAY = 24 * HOUR


def test_job_equals_reading_all_documents_at_once(logs: Path) -> None:
    """The oracle of both passes: one reading of everything, one log, and each job of it accounted for."""
    whole = list_jobs(read_events([str(logs)]), Question())
    expected = {
        job.name: (job.start_ns, job.end_ns, job.events, job.attempts, job.disruptions, job.goodput_ns)
        for job in whole.jobs
        if job.reason is None
    }
    answer = fleet(str(logs), "--runs", "all", "--weight", "time")
    assert len(expected) == len(answer["runs"]) > 20
    for row in answer["runs"]:
        begin, finish, events, attempts, disruptions, goodput = expected[row["job"]]
        assert (row["ns"], row["events"], row["attempts"]) == (finish - begin, events, attempts)
        assert (row["disruptions"], row["goodput_ns"]) == (disruptions, goodput)


def preempted(name: str) -> list[str]:
    lines = story_lines(
        start(0), steps(0, 61, at=0, every=60), notice(HOUR + 1),
        start(2 * HOUR), steps(61, 61, at=2 * HOUR, every=60), end(4 * HOUR),
    )  # fmt: skip
    return of_job(lines, name)


def test_preempted_attempt_fails_only_with_the_option() -> None:
    put(Path("a.jsonl"), preempted("a"))
    counts = [
        fleet("a.jsonl", "--accelerators", "8", *more)["totals"]["failures"]
        for more in ((), ("--failures", "crashed,preempted"))
    ]
    assert counts == [0, 1]


def test_inactive_slices_are_not_allocated() -> None:
    """8 accelerators for 10 h, half of the slices away for the last 4 of them."""
    lines = story_lines(
        start(0), slices(2, 2, 2, 0), steps(0, 601, at=0, every=60), slices(1, 1, 2, 6 * HOUR), end(10 * HOUR)
    )
    put(Path("a.jsonl"), of_job(lines, "a"))
    answer = fleet("a.jsonl", "--accelerators", "8")
    assert answer["mpg"]["allocated_chip_ns"] == str(6 * 8 * HOUR * 10**9)


def test_queued_job_has_no_allocation() -> None:
    """Scheduled at 0, started at 2 h, 10 h in all: 8 x 8 h are allocated, and the lost part of them costs."""
    lines = [
        *story_lines(scheduled(0), started(2 * HOUR)),
        *story_lines(steps(0, 241, at=6 * HOUR, every=60), end(10 * HOUR)),
    ]
    put(Path("a.jsonl"), of_job(lines, "a"))
    answer = fleet("a.jsonl", "--accelerators", "8", "--price-per-hour", "2")
    assert answer["mpg"]["allocated_chip_ns"] == str(8 * 8 * HOUR * 10**9)
    assert answer["mpg"]["waiting_chip_ns"] == str(2 * 8 * HOUR * 10**9)
    assert answer["mpg"]["availability_percent"] == 80
    total = answer["totals"]
    assert (total["lost_hours"], total["held_lost_hours"], total["cost"]) == (48, 32, "64.00 USD")


def test_availability_is_unknown_without_request_times() -> None:
    """A missing queue line does not prove that nothing waited."""
    put(Path("a.jsonl"), training("a", 10, 6))
    assert fleet("a.jsonl", "--accelerators", "8")["mpg"]["availability_percent"] is None


def with_allocations(*rows: str, more: Sequence[str] = ()) -> Any:
    Path("held.csv").write_text(text_of("job,start,end,accelerators,waiting_since", *rows))
    return fleet("a.jsonl", "--allocations", "held.csv", *more)


def test_allocations_without_a_log_count_on_request() -> None:
    """a has 8 for 10 h; b, without a log, waits 1 h for 4 and has them for 2 h during a's time."""
    put(Path("a.jsonl"), training("a", 10, 6))
    rows = (
        "a,2026-01-01T00:00:00,2026-01-01T10:00:00,8,",
        "b,2026-01-01T02:00:00,2026-01-01T04:00:00,4,2026-01-01T01:00:00",
    )
    plain, counted = with_allocations(*rows), with_allocations(*rows, more=["--count-unlogged"])
    for answer in (plain, counted):
        assert (answer["coverage"]["allocations_without_logs"], len(answer["runs"])) == (1, 1)
    names = ("allocated_chip_ns", "waiting_chip_ns")
    assert [int(plain["mpg"][name]) // HOUR // 10**9 for name in names] == [80, 0]
    assert [int(counted["mpg"][name]) // HOUR // 10**9 for name in names] == [88, 4]


def test_allocation_belongs_to_first_run_and_fills_gaps() -> None:
    """An allocation covers two runs of a name; 4 h of the second are covered only by the earlier number."""
    first, second = training("a", 10, 6), training("a", 10, 6, at=30 * HOUR)
    put(Path("a.jsonl"), [*first, *second])
    answer = with_allocations(
        "a,2026-01-01T00:00:00,2026-01-02T08:00:00,8,",
        "a,2026-01-02T08:00:00,2026-01-02T12:00:00,16,",
        more=("--runs", "each"),
    )
    assert [(row["run"], row["accelerators"]) for row in answer["runs"]] == [(1, 8), (2, 16)]
    assert answer["mpg"]["allocated_chip_ns"] == str((32 * 8 + 4 * 16) * HOUR * 10**9)
    assert answer["coverage"]["assumed_chip_ns"] == str(4 * 16 * HOUR * 10**9)
    columns = "job,from,to,team"
    Path("labels.csv").write_text(text_of(columns, "a,,2026-01-02,one", "a,2026-01-02,,two"))
    asked = ("--allocations", "held.csv", "--labels", "labels.csv", "--by", "team", "--runs", "each")
    (table,) = fleet("a.jsonl", *asked)["groups"]
    shares = {row["group"]: row["runtime_percent"] for row in table["rows"]}
    assert shares == {"one": 100 * 6 * 8 / (32 * 8), "two": 100 * 2 * 16 / (4 * 16)}


def test_one_name_in_two_folders_is_one_job_by_default() -> None:
    for place, at in (("east", 0), ("west", 1800)):
        put(Path(f"{place}/log.jsonl"), training("a", 10, 6, at=at))
    Path("labels.csv").write_text(text_of("job,source,cluster", "*,east/*,e", "*,west/*,w"))
    asked = ("east", "west", "--labels", "labels.csv")
    together = fleet(*asked)
    assert len(together["runs"]) == 1
    assert "one_name_in_two_clusters" in {one["code"] for one in together["diagnostics"]}
    for way in ("cluster", "source-folder"):
        apart = fleet(*asked, "--distinct-by", way)
        assert [(row["job"], row["cluster"], row["ns"]) for row in apart["runs"]] == [
            ("a", "e", 10 * HOUR * 10**9), ("a", "w", 10 * HOUR * 10**9)
        ]  # fmt: skip
        assert "one_name_in_two_clusters" not in {one["code"] for one in apart["diagnostics"]}
    put(Path("west/log.jsonl"), training("a", 10, 6, at=20 * HOUR))  # first here, then there
    assert "one_name_in_two_clusters" not in {one["code"] for one in fleet(*asked)["diagnostics"]}


def test_as_of_counts_for_recently_active_runs() -> None:
    """Neither run ended. a has events 2 h before the time, b 20 days: b keeps its end and is reported as lost."""
    for name, at in (("a", 20 * DAY), ("b", 0)):
        put(Path(f"{name}.jsonl"), training(name, 10, 6, at=at)[:-1])
    answer = fleet("a.jsonl", "b.jsonl", "--as-of", "2026-01-21T12:00:00")
    assert {row["job"]: row["ns"] // HOUR // 10**9 for row in answer["runs"]} == {"a": 12, "b": 10}
    assert answer["coverage"]["lost_sight_of"] == 1
    longer = fleet("a.jsonl", "b.jsonl", "--as-of", "2026-01-21T12:00:00", "--alive-within", "30d")
    assert longer["coverage"]["lost_sight_of"] == 0


def test_the_last_days_end_with_the_last_run() -> None:
    for name, at in (("a", 20 * DAY), ("b", 0)):
        put(Path(f"{name}.jsonl"), training(name, 10, 6, at=at))
    answer = fleet("a.jsonl", "b.jsonl", "--last", "4h")
    assert [(row["job"], row["ns"] // HOUR // 10**9) for row in answer["runs"]] == [("a", 4)]
    assert (answer["coverage"]["outside"], answer["window"]["ns"]) == (1, 4 * HOUR * 10**9)
    assert json.dumps(answer["totals"]["time_goodput_percent"]) == "100.0"


def test_week_is_compared_with_a_large_enough_week() -> None:
    """Goodput 60, 50, 40 and 30 % in four weeks of 5, 5, 4 and 5 runs: the third is too small to compare, also with the
    fourth."""
    for week, (runs, hours) in enumerate([(5, 6), (5, 5), (4, 4), (5, 3)]):
        for number in range(runs):
            put(Path(f"logs/{week}-{number}.jsonl"), training(f"{week}-{number}", 10, hours, at=7 * week * DAY))
    weeks = fleet("logs", "--accelerators", "8")["weeks"]
    assert [week["change_points"] for week in weeks] == [None, pytest.approx(-10), None, None]


def test_final_crash_counts_as_failure() -> None:
    """Three jobs of 10 h: one crashed at its end, one ended well, and the end of one is not logged."""
    for name, last in (("a", crashed(10 * HOUR)), ("b", job_finished(10 * HOUR)), ("c", step(99, 10 * HOUR))):
        put(Path(f"{name}.jsonl"), of_job(story_lines(start(0), steps(0, 60, at=0, every=600), last), name))
    answer = fleet("a.jsonl", "b.jsonl", "c.jsonl", "--accelerators", "8")
    assert answer["totals"]["failures"] == 1
    (size,) = answer["sizes"]
    assert (size["failures"], round(size["mttf_seconds"])) == (1, 30 * HOUR)
