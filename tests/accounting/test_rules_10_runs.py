"""Accounting §10: runs of one name. Some are judged separately, and all commands agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.cli.main import run
from tests.support.fleets import put
from tests.support.story import Lines, account, crashed, end, job_finished, start, steps, story_lines, user_terminated

pytestmark = pytest.mark.usefixtures("folder")
Output = pytest.CaptureFixture[str]
FINISHED = story_lines(start(0), steps(0, 10, at=10), job_finished(110))
AGAIN = story_lines(start(200), steps(0, 20, at=210), job_finished(410))
DIES = story_lines(start(0), steps(0, 30, at=10), end(310))
RESTARTS = story_lines(start(320), steps(0, 3, at=330), end(360))


def answers(capsys: Output, *events: Lines, runs: str = "auto") -> dict[str, Any]:
    """Return the output of `analyze`, `jobs` and `fleet` for one log."""
    put(Path("run.jsonl"), story_lines(*events))
    found = {}
    for command, option in (("analyze", "--run"), ("jobs", "--run"), ("fleet", "--runs")):
        assert run([command, "run.jsonl", option, runs, "--format", "json"]) == 0
        found[command] = json.loads(capsys.readouterr().out)
    return found


def test_run_after_a_finished_end_is_judged_separately() -> None:
    said = account(FINISHED, AGAIN)
    assert said.analysis.window.ns == 210 * 10**9
    assert (said.attempts, said.disruptions, said.kept_steps) == (1, 0, 20)
    assert said.percent > 94
    assert "use --run 1 for an earlier run, or --run all to count all runs as one job" in said.message("earlier_runs")
    assert account(FINISHED, AGAIN, run="1").kept_steps == 10
    everything = account(FINISHED, AGAIN, run="all")
    assert (everything.attempts, everything.total) == (2, 410)
    assert everything.found("restarted_from_scratch") == 1


def test_user_end_begins_a_run_unless_a_crash_follows() -> None:
    by_hand = story_lines(start(0), steps(0, 10, at=10), user_terminated(110))
    assert account(by_hand, AGAIN).attempts == 1
    assert account(FINISHED, crashed(120), AGAIN).attempts == 2


def test_job_end_alone_gives_both_figures() -> None:
    """30 steps, a job end during a crash, and 3 steps from the first on: lost work, or another run."""
    said = account(DIES, RESTARTS)
    assert (said.attempts, said.disruptions) == (2, 1)
    assert said.percent == pytest.approx(100 * 30 / 360)
    assert said.message("restarted_from_scratch").endswith("(goodput of the last run alone: 75.00 %)")
    assert account(DIES, RESTARTS, run="last").percent == 75
    mixed = account(FINISHED, start(200), steps(0, 9, at=210), end(300), start(320), steps(0, 3, at=330), end(360))
    assert mixed.attempts == 3


@pytest.mark.parametrize(("story", "rows"), [((FINISHED, AGAIN), 2), ((DIES, RESTARTS), 1)], ids=["finished", "died"])
def test_all_commands_print_the_same_run(capsys: Output, story: Any, rows: int) -> None:
    said = answers(capsys, *story)
    last, listed, fleet = said["analyze"], said["jobs"]["jobs"], said["fleet"]["runs"]
    assert len(listed) == len(fleet) == rows
    assert listed[-1]["goodput"]["ns"] == last["goodput"]["ns"] == fleet[-1]["goodput_ns"]
    assert listed[-1]["goodput"]["percent"] == last["goodput"]["percent"] == fleet[-1]["goodput_percent"]
    assert [row["run"] for row in listed] == ([1, 2] if rows == 2 else [0])
    assert [row["runs"] for row in listed] == [2] * rows
    for number, row in enumerate(listed, start=1):
        if rows > 1:
            alone = account(*story, run=str(number)).analysis
            assert row["goodput"]["percent"] == alone.goodput_percent


def test_run_that_began_after_the_window_is_not_selected() -> None:
    assert account(FINISHED, AGAIN, as_of=150).kept_steps == 10
    assert account(FINISHED, AGAIN, window=(0, 150)).kept_steps == 10
    assert account(FINISHED, AGAIN, window=(0, 300)).analysis.job.attempts == 1


def test_row_name_contains_the_run(capsys: Output) -> None:
    put(Path("run.jsonl"), story_lines(FINISHED, AGAIN))
    assert run(["jobs", "run.jsonl"]) == 0
    shown = capsys.readouterr().out
    assert [name for name in ("j #1", "j #2", "j #3") if name in shown] == ["j #1", "j #2"]
