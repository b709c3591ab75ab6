"""Accounting §3, ranks without numbers: Cloud Logging entries that name the process that wrote each line."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest

from tests import oracle
from tests.support.story import Line, Lines, account, crashed, end, start, started, steps, story_lines

_NUMBER = count()


def by(name: str, *events: Lines, pod: str = "") -> list[Line]:
    """Return lines as entries of one process. pod: its pod."""
    resource = {"labels": {"pod_name": pod}} if pod else {}
    return [
        json.dumps(
            {
                "jsonPayload": json.loads(line),
                "labels": {"python_logger": name},
                "resource": resource,
                "insertId": f"x{next(_NUMBER)}",
                "logName": "projects/p/logs/l",
                "timestamp": "2026-01-01T00:00:00Z",
            }
        )
        for line in story_lines(*events)
    ]


def numbered(prefix: str, *events: Lines) -> list[Line]:
    """Return lines as entries that only their insertIds identify."""
    lines = []
    for line in story_lines(*events):
        entry = {"jsonPayload": json.loads(line), "insertId": f"{prefix}-{next(_NUMBER)}", "logName": "l"}
        lines.append(json.dumps({**entry, "timestamp": "2026-01-01T00:00:00Z"}))
    return lines


def test_starts_of_running_processes_are_one_start() -> None:
    # Five minutes apart: without writers they would be two.
    story = account(by("a", start(0), steps(0, 4, at=310)), by("b", start(300), steps(0, 4, at=311)), by("a", end(350)))
    assert (story.attempts, story.disruptions) == (1, 0)
    assert story.seconds["productive"] == 40


def test_starts_that_all_die_are_three_attempts() -> None:
    story = account(by("a", start(0)), by("b", start(600)), by("c", start(1200), steps(0, 4, at=1210)))
    assert (story.attempts, story.disruptions) == (3, 2)
    quick = account(by("a", start(0)), by("b", start(5)), by("c", start(10), steps(0, 4, at=20)))
    assert quick.attempts == 3


def test_process_that_starts_again_begins_an_attempt() -> None:
    story = account(by("a", start(0)), by("b", start(1)), by("a", start(2)), by("b", steps(0, 4, at=10)))
    assert story.attempts == 2


def test_insert_ids_identify_a_process_if_nothing_else_does() -> None:
    together = account(numbered("5f2c", start(0), steps(0, 4, at=310)), numbered("77b0", start(300), end(350)))
    assert together.attempts == 1
    apart = account(numbered("5f2c", start(0)), numbered("77b0", start(3), steps(0, 4, at=10), end(50)))
    assert apart.attempts == 2


def test_ranks_are_counted_by_pod_not_by_process() -> None:
    story = account(
        by("a", start(0), steps(0, 4, at=10), pod="job-0"), by("b", start(1), steps(0, 4, at=11), pod="job-0"),
        by("c", start(2), steps(0, 4, at=10), pod="job-1"),
        by("d", start(100), steps(4, 4, at=110), pod="job-0"), by("e", start(101), steps(4, 4, at=111), pod="job-0"),
    )  # fmt: skip
    (row,) = story.analysis.disruptions
    assert (row.ranks_before, row.ranks_after) == (2, 1)


def test_label_of_a_process_is_not_rank() -> None:
    story = account(by("a", start(0), steps(0, 4, at=10)), by("b", start(100), steps(4, 4, at=110)))
    (row,) = story.analysis.disruptions
    assert (row.ranks_before, row.ranks_after) == (None, None)


def test_known_writer_gives_no_warning_about_ranks() -> None:
    story = account(by("a", start(0)), by("b", start(5), steps(0, 4, at=10)))
    assert story.found("starts_without_rank") == 0
    assert account(start(0), start(5), steps(0, 4, at=10)).found("starts_without_rank") == 1


A, B, FILE = "text: launcher job.log 0", "text: launcher job.log 1", "text: launcher job.log "


@pytest.mark.parametrize(
    ("events", "attempts"),
    [
        pytest.param([(A, 0), (B, 2)], 1, id="another agent joins"),
        pytest.param([(A, 0), (B, 600)], 1, id="within 10 min"),
        pytest.param([(A, 0), (B, 601)], 2, id="not later"),
        pytest.param([(A, 0), (A, 2)], 2, id="an agent that starts again"),
        pytest.param([(A, 0), (B, 2), (A, 30), (B, 32)], 2, id="two starts of two agents"),
        pytest.param([(A, 0), (B, 2), (B, 5, "end"), (A, 30), (B, 32)], 2, id="two starts and a death"),
        pytest.param([(A, 0), (B, 2), (B, 5, "end"), (A, 30), (A, 31, "end"), (A, 40)], 3, id="quick deaths stay"),
        pytest.param([(A, 0), (A, 5, "end"), (A, 10), (B, 12, "end"), (B, 20)], 2, id="a late death"),
        pytest.param([(FILE, 0), (FILE, 60)], 1, id="agents in one file"),
        pytest.param([(FILE, 0), (FILE, 61)], 2, id="a later start in one file"),
        pytest.param([(FILE, 0), (FILE, 5, "end"), (FILE, 10)], 2, id="a death in one file"),
    ],
)
def test_start_lines_of_launcher_agents_are_grouped(events: list[tuple[Any, ...]], attempts: int) -> None:
    """Start lines (agent, second), and deaths (agent, second, "end"), before the first step."""
    lines = [by(agent, crashed(at) if end else started(at)) for agent, at, *end in events]
    lines.append(by("trainer", steps(0, 4, at=1000)))
    assert account(*lines).attempts == attempts
    assert oracle.account(story_lines(*lines)).attempts == attempts
