"""`goodput jobs`: one line per job, and one pass for thousands of jobs."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import goodput_cli.events.read
import goodput_cli.fleet.passes.read
from goodput_cli import analyze
from goodput_cli.analysis.account import by_job
from goodput_cli.analysis.jobs import JobList, list_jobs
from goodput_cli.analysis.question import make_question
from goodput_cli.cli.main import run
from goodput_cli.errors import NotEnoughData, UsageError
from goodput_cli.events.read import read_events
from goodput_cli.events.schema import COLUMNS, EventTable
from tests.support.answers import HOSTILE, check_answer
from tests.support.story import (
    custom,
    end,
    finished,
    iso_time,
    loaded,
    save,
    start,
    started,
    step,
    steps,
    story_lines,
    terminated,
)

ROOT = Path(__file__).parent.parent.parent
Output = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("folder")
RUN = story_lines(start(0), steps(0, 5, at=10), custom("EVAL", 32, 38), save(41, 2, 3), end(60))


def of_job(lines: list[str], name: str, later: float = 0) -> list[str]:
    """Return the lines with another job name, some seconds later."""
    moved = [json.loads(line) | {"job_name": name} for line in lines]
    return [
        json.dumps({key: value + later if key.endswith("_time") else value for key, value in one.items()})
        for one in moved
    ]


def written(lines: list[str], name: str = "run.jsonl") -> str:
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return name


def listed(lines: list[str], **options: Any) -> JobList:
    question = {
        name: options.pop(name) for name in list(options) if name not in ("sort", "limit", "job_name", "jobs_done")
    }
    return list_jobs(read_events([written(lines)]), make_question(**question), **options)


def names(found: JobList) -> list[str]:
    return [job.name for job in found.jobs]


def three() -> list[str]:
    """Return mixed lines of three jobs: `late` with two attempts, `early`, and `broken` with a single line."""
    twice = story_lines(RUN[:-1], start(100), steps(5, 3, at=110), end(140))
    late, early = of_job(twice, "late", 500), of_job(RUN, "early")
    mixed = [line for pair in zip(late, early, strict=False) for line in pair] + late[len(early) :] + early[len(late) :]
    return [*mixed, *of_job([start(70)], "broken")]


def test_every_job_is_a_line_sorted_by_start() -> None:
    found = listed(three())
    assert names(found) == ["early", "broken", "late"]
    early, broken, late = found.jobs
    assert (early.events, early.attempts, early.runs, early.disruptions, early.ending) == (10, 1, 1, 0, "clean")
    assert early.formats == ("orbax", "recorder")
    assert early.ns == 60 * 10**9
    assert (late.events, late.attempts, late.disruptions) == (14, 2, 1)
    assert (broken.goodput_ns, broken.goodput_percent, broken.attempts, broken.ending) == (None, None, None, None)
    assert broken.events == 1
    assert "have the same time" in str(broken.reason)


@pytest.mark.parametrize(
    "question",
    [
        {},
        {"reference_step_time": "5"},
        {"start": "+15s", "end": "+45s"},
        {"as_of": "+35s"},
        {"end": "-20s", "no_hindsight": True},
        {"exclude": ["+20s/+30s"]},
        {"run": "last"},
    ],
    ids=str,
)
def test_job_has_the_goodput_of_analyze(question: dict[str, Any]) -> None:
    lines = three()
    found = {job.name: job for job in listed(lines, **question).jobs}
    for name in ("early", "late"):
        told_alone = analyze(written(lines), job_name=name, **question)
        job = found[name]
        assert job.goodput_ns == told_alone.goodput.ns
        assert job.goodput_percent == told_alone.goodput_percent
        assert (job.start_ns, job.end_ns) == (told_alone.window.start_ns, told_alone.window.end_ns)
        assert job.attempts == told_alone.job.attempts
        assert job.disruptions == told_alone.job.disruptions
        assert job.ending == told_alone.job.ending
        assert job.formats == told_alone.job.formats


def test_job_outside_the_window_has_no_goodput() -> None:
    found = {job.name: job for job in listed(three(), end=iso_time(200), start=iso_time(0)).jobs}
    assert found["early"].goodput_percent is not None
    assert found["late"].goodput_percent is None
    assert "outside" in str(found["late"].reason)


def test_excluded_window_leaves_no_percentage() -> None:
    (job,) = listed(RUN, exclude=[f"{iso_time(0)}/{iso_time(60)}"]).jobs
    assert (job.goodput_percent, job.reason) == (None, "the whole window is excluded")


def test_reused_name_has_two_runs() -> None:
    lines = story_lines(RUN, start(1000), steps(0, 5, at=1010), end(1060))
    assert listed(lines).jobs[0].runs == 2
    last = listed(lines, run="last").jobs[0]
    assert (last.runs, last.attempts, last.ns) == (2, 1, 60 * 10**9)


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("start", ["early", "broken", "late"]),
        ("name", ["broken", "early", "late"]),
        ("goodput", ["late", "early", "broken"]),
        ("events", ["late", "early", "broken"]),
        ("length", ["late", "early", "broken"]),
    ],
)
def test_jobs_are_sorted_as_requested(sort: Any, order: list[str]) -> None:
    assert names(listed(three(), sort=sort)) == order
    limited = listed(three(), sort=sort, limit=1)
    assert (names(limited), limited.found, limited.runs, limited.events) == (order[:1], 3, 3, 25)


def test_one_job_is_selected_by_name() -> None:
    assert names(listed(three(), job_name="late")) == ["late"]
    with pytest.raises(NotEnoughData, match="nobody"):
        listed(three(), job_name="nobody")
    with pytest.raises(NotEnoughData, match="no events"):
        listed([])
    with pytest.raises(UsageError, match="run 7 does not exist"):
        listed(three(), run=7)


def test_analyze_without_a_name_suggests_jobs(capsys: Output) -> None:
    assert run(["analyze", written(three())]) == 2
    err = capsys.readouterr().err
    assert "goodput jobs" in err
    assert "'early'" in err


# Thousands of jobs.


def many(count: int) -> list[str]:
    return [line for number in range(count) for line in of_job(RUN, f"job-{number:04d}", 7 * number)]


def test_log_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    original = goodput_cli.events.read.decode_batches

    def counted(*arguments: Any) -> Any:
        calls.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(goodput_cli.fleet.passes.read, "decode_batches", counted)
    assert run(["jobs", written(many(50))]) == 0
    assert len(calls) == 1


def test_passes_over_the_table_do_not_grow_with_the_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    original = EventTable.take
    sizes: list[int] = []

    def counted(table: EventTable, rows: Any) -> EventTable:
        sizes.append(len(table))
        return original(table, rows)

    monkeypatch.setattr(EventTable, "take", counted)
    for count in (5, 50):
        sizes.clear()
        assert len(listed(many(count)).jobs) == count
        assert len([size for size in sizes if size > 3 * len(RUN)]) == 1


def test_job_table_has_only_its_own_texts() -> None:
    """The engine sorts labels and details by content. It must not sort those of all other jobs each time."""
    lines = many(20) + of_job(story_lines(custom("OTHER", 1, 2)), "job-0003")
    jobs = {log.table.jobs[0]: log for log in by_job(read_events([written(lines)]))}
    assert len(jobs) == 20
    assert jobs["job-0000"].table.labels == ("EVAL",)
    assert jobs["job-0003"].table.labels == ("EVAL", "OTHER")
    assert {len(log.table.details) for log in jobs.values()} == {1}
    assert {len(log.table.jobs) for log in jobs.values()} == {1}


def test_job_keeps_its_rows_in_order_of_arrival() -> None:
    log = read_events([written(three())])
    for job in by_job(log):
        rows = np.flatnonzero(log.table.job == log.table.jobs.index(job.table.jobs[0]))
        for name in set(COLUMNS) - {"job", "label", "detail", "entry"}:
            assert np.array_equal(getattr(job.table, name), getattr(log.table, name)[rows]), name
        for row, place in zip(rows.tolist(), range(len(rows)), strict=True):
            assert job.table.where(place) == log.table.where(row)


def test_progress_is_reported() -> None:
    seen: list[tuple[int, int]] = []
    listed(three(), jobs_done=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


# The command.


def test_table_lists_the_jobs(capsys: Output) -> None:
    assert run(["jobs", written(three())]) == 0
    out, err = capsys.readouterr()
    assert out == (
        " 3 jobs\n"
        " 25 events in 3 runs, logs: orbax + recorder\n"
        "\n"
        " job                   start      window  attempts  goodput  ended\n"
        " early   2026-01-01 00:00:00  1 min 00 s         1  66.67 %  clean\n"
        " broken  2026-01-01 00:01:10         0 s         -        -\n"
        " late    2026-01-01 00:08:20  2 min 20 s         2  51.43 %  clean\n"
        "\n"
        " broken: all events of job 'broken' have the same time; at least two different\n"
        " times are needed\n"
    )
    assert err == ""


def test_json_matches_the_schema(capsys: Output) -> None:
    assert run(["jobs", written([*three(), "{broken"]), "--format", "json"]) == 0
    out, err = capsys.readouterr()
    answer = json.loads(out)
    check_answer(answer, "jobs")
    assert [job["goodput"] is None for job in answer["jobs"]] == [False, True, False]
    assert answer["diagnostics"][0]["code"] == "malformed_lines"
    assert "malformed_lines" in err


def test_csv_has_every_column(capsys: Output) -> None:
    assert run(["jobs", written(three()), "--format", "csv", "--sort", "goodput", "--limit", "1"]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["job"], row["events"], row["runs"], row["formats"]) == ("late", "14", "1", "orbax + recorder")
    assert row["start"] == "2026-01-01T00:08:20Z"


def test_checkpoint_logs_and_step_logs_can_be_mixed(capsys: Output) -> None:
    other = [started(0), loaded(0, 5), finished(10, 65), terminated(70)]
    assert run(["jobs", written([*of_job(RUN, "steps"), *of_job(other, "points"), *of_job([step(0, 5)], "bare")])]) == 0
    out = capsys.readouterr().out
    assert "orbax + recorder + resiliency" in out
    assert "terminated" in out


def test_hostile_names_are_harmless(capsys: Output) -> None:
    path = written([*of_job(RUN, HOSTILE), *of_job([start(5)], f"=1+{HOSTILE}")])
    for name in ("table", "markdown", "csv", "json"):
        assert run(["jobs", path, "--format", name]) == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert "\u202e" not in out
    run(["jobs", path, "--format", "csv"])
    assert "\n'=1+" in capsys.readouterr().out


def test_strict_fails_on_warnings_of_the_reader() -> None:
    assert run(["jobs", written([*RUN, "{broken"]), "--strict"]) == 5
    assert run(["jobs", written(RUN), "--strict"]) == 0


def test_no_jobs_is_not_enough_data(capsys: Output) -> None:
    assert run(["jobs", written([])]) == 4
    assert "no events" in capsys.readouterr().err
