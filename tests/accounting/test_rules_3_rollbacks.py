"""Accounting §3, rollbacks: steps that go back in a process that goes on begin no attempt."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from tests.support.story import BASE, Lines, account, end, ledger, restore, save, start, steps, terminated, wait


def beats(first: float, last: float, every: float = 10, run_id: str | None = "r1") -> Lines:
    """Return heartbeats of a recorder, with or without its `run_id`."""
    named = {"run_id": run_id} if run_id else {}
    return [
        json.dumps({"job_name": "j", "goodput_event": "heartbeat", "goodput_time": BASE + at, **named})
        for at in [first + every * number for number in range(int((last - first) // every) + 1)]
    ]


def by_writer(lines: Sequence[str], writer: str) -> Lines:
    """Return the lines as Cloud Logging entries of one process."""
    return [
        json.dumps({"insertId": f"{writer}{at}", "labels": {"python_logger": writer}, "jsonPayload": json.loads(line)})
        for at, line in enumerate(lines)
    ]


FORTH, BACK = steps(1400, 100, at=10, every=1), steps(1300, 100, at=130, every=1)


def test_equal_run_id_around_a_fall_is_a_rollback() -> None:
    story = account(start(0), FORTH, BACK, end(230), beats(5, 225))
    assert (story.attempts, story.disruptions) == (1, 0)
    assert story.seconds == ledger(other=10, wasted=120, productive=100)
    (row,) = story.analysis.disruptions
    assert (row.ended, row.steps_lost, row.downtime_ns, row.cause) == ("rolled_back", 100, 0, None)
    reliability = story.analysis.reliability
    assert reliability is not None
    assert (reliability.disruptions, reliability.failures, reliability.exposure_ns) == (0, 0, 230 * 10**9)
    codes = {one.code for one in story.analysis.diagnostics}
    assert "rolled_back" in codes
    assert "restart_without_start" not in codes


def test_rollback_from_1499_to_1300_wastes_200_steps() -> None:
    story = account(start(0), steps(1, 1499, at=0, every=1), steps(1300, 100, at=1520, every=1), beats(5, 1615))
    (row,) = story.analysis.disruptions
    assert (story.attempts, row.steps_lost, row.attempt) == (1, 200, 1)


ATTEMPT = json.dumps({"job_name": "j", "goodput_event": "attempt", "goodput_time": BASE, "run_id": "r1", "pid": 7})
NAN = json.dumps({"job_name": "j", "goodput_event": "metrics", "goodput_time": BASE + 109, "step": 1499, "loss": "nan"})


@pytest.mark.parametrize("loss", [pytest.param([], id="no loss"), pytest.param([NAN], id="NaN")])
@pytest.mark.parametrize("announced", [pytest.param([], id="no attempt"), pytest.param([ATTEMPT], id="attempt")])
@pytest.mark.parametrize("run_id", ["r1", None, "no heartbeats"])
def test_fall_of_steps_is_a_rollback_or_unknown(run_id: str | None, announced: Lines, loss: Lines) -> None:
    heartbeats = [] if run_id == "no heartbeats" else beats(5, 225, run_id=run_id)
    story = account(announced, start(0), FORTH, loss, BACK, end(230), heartbeats)
    shown = run_id == "r1" or bool(announced) or bool(loss)
    assert (story.attempts, story.disruptions) == ((1, 0) if shown else (2, 1))
    found = {one.code for one in story.analysis.diagnostics} & {"rolled_back", "restart_or_rollback"}
    assert found == {"rolled_back" if shown else "restart_or_rollback"}


def test_unknown_fall_gives_both_readings_and_no_advice() -> None:
    story = account(start(0), FORTH, save(50, 1, 1440), save(100, 1, 1490), BACK, end(230))
    (one,) = [one for one in story.analysis.diagnostics if one.code == "restart_or_rollback"]
    assert one.message.endswith("(if it did not restart: goodput 43.48 %, 0 disruptions)")
    assert "older_checkpoint" not in {one.code for one in story.analysis.insights}
    assert "restart_without_start" in {one.code for one in story.analysis.diagnostics}


def test_attempt_line_between_steps_is_a_restart() -> None:
    again = ATTEMPT.replace(str(BASE), str(BASE + 120)).replace("r1", "r2")
    story = account(ATTEMPT, start(0), FORTH, again, BACK, end(230))
    assert (story.attempts, story.disruptions) == (2, 1)


@pytest.mark.parametrize(
    ("loaded", "attempts"),
    [
        pytest.param([], 2, id="a silence of 90 s"),
        pytest.param([restore(112, 60)], 1, id="the load of a checkpoint in it"),
    ],
)
def test_silence_of_a_process_counts_without_loads(loaded: Lines, attempts: int) -> None:
    late = steps(1300, 100, at=200, every=1)
    assert account(ATTEMPT, start(0), FORTH, loaded, late, end(300)).attempts == attempts


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(start(120), id="a start line"),
        pytest.param(terminated(115), id="a termination"),
        pytest.param(end(115), id="a job end"),
        pytest.param(wait("slice_down", 112, 120), id="an elastic wait"),
    ],
)
def test_new_process_between_steps_is_not_rollback(between: Lines) -> None:
    story = account(start(0), FORTH, between, BACK, end(230), beats(5, 225))
    assert story.attempts == 2


def test_another_run_id_is_a_restart() -> None:
    story = account(start(0), FORTH, BACK, end(230), beats(5, 110), beats(128, 225, run_id="r2"))
    assert (story.attempts, story.disruptions) == (2, 1)


def test_heartbeats_on_one_side_do_not_decide() -> None:
    assert account(start(0), FORTH, BACK, end(230), beats(5, 110)).attempts == 2
    assert account(start(0), FORTH, BACK, end(230), beats(131, 225)).attempts == 2


def test_equal_run_id_is_a_rollback_after_any_silence() -> None:
    late = steps(1300, 100, at=1800, every=1)
    assert account(start(0), FORTH, late, beats(5, 105), beats(1790, 1890)).attempts == 1


@pytest.mark.parametrize(("at", "attempts"), [(170, 2), (169, 1)])
def test_silence_of_a_writer_of_more_than_60_s_is_a_restart(at: float, attempts: int) -> None:
    late = steps(1300, 100, at=at, every=1)
    assert account(by_writer([start(0), *FORTH, *late], "recorder.1")).attempts == attempts


def test_equal_writer_of_entries_is_a_rollback() -> None:
    one = account(by_writer([start(0), *FORTH, *BACK, end(230)], "recorder.1"))
    assert (one.attempts, one.disruptions) == (1, 0)
    assert one.seconds == ledger(other=10, wasted=120, productive=100)
    two = account(by_writer([start(0), *FORTH], "recorder.1"), by_writer([*BACK, end(230)], "recorder.2"))
    assert (two.attempts, two.disruptions) == (2, 1)


def test_restore_in_a_rollback_is_not_downtime() -> None:
    story = account(start(0), FORTH, restore(112, 8), BACK, end(230), beats(5, 225))
    assert (story.attempts, story.disruptions) == (1, 0)
    assert story.seconds == ledger(other=10 + 10, wasted=102, restore=8, productive=100)


def test_rollback_keeps_one_attempt_in_tables() -> None:
    story = account(start(0), FORTH, BACK, start(240), steps(1400, 10, at=250, every=1), end(260), beats(5, 225))
    assert story.analysis.to_frame("attempts")["number"].tolist() == [1, 2]
    assert set(story.analysis.segments["attempt"].dropna()) == {1, 2}
    assert [row.attempt for row in story.analysis.disruptions] == [1, 1]
    assert story.disruptions == 1
