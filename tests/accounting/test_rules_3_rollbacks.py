"""Accounting §3, rollbacks: steps that go back in a process that lives on begin no attempt."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from tests.support.accounts import account, ledger
from tests.support.story import BASE, Lines, end, restore, start, steps, terminated, wait


def beats(first: float, last: float, every: float = 10, run_id: str = "r1") -> Lines:
    """Heartbeats of a recorder that names its `run_id`."""
    return [
        json.dumps({"job_name": "j", "goodput_event": "heartbeat", "goodput_time": BASE + at, "run_id": run_id})
        for at in [first + every * number for number in range(int((last - first) // every) + 1)]
    ]


def by_writer(lines: Sequence[str], writer: str) -> Lines:
    """The same as Cloud Logging entries of one process."""
    return [
        json.dumps({"insertId": f"{writer}{at}", "labels": {"python_logger": writer}, "jsonPayload": json.loads(line)})
        for at, line in enumerate(lines)
    ]


FORTH, BACK = steps(1400, 100, at=10, every=1), steps(1300, 100, at=130, every=1)


def test_heartbeats_of_one_run_id_around_it_show_a_process_that_lives_on() -> None:
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


def test_a_job_of_1499_steps_that_goes_back_to_1300_wastes_200() -> None:
    story = account(start(0), steps(1, 1499, at=0, every=1), steps(1300, 100, at=1520, every=1), beats(5, 1615))
    (row,) = story.analysis.disruptions
    assert (story.attempts, row.steps_lost, row.attempt) == (1, 200, 1)


def test_without_a_name_of_the_process_it_is_a_restart() -> None:
    story = account(start(0), FORTH, BACK, end(230))
    assert (story.attempts, story.disruptions) == (2, 1)
    assert "restart_without_start" in {one.code for one in story.analysis.diagnostics}


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(start(120), id="a start line"),
        pytest.param(terminated(115), id="a termination"),
        pytest.param(end(115), id="a job end"),
        pytest.param(wait("slice_down", 112, 120), id="an elastic wait"),
    ],
)
def test_what_shows_another_life_between_stands_against_it(between: Lines) -> None:
    story = account(start(0), FORTH, between, BACK, end(230), beats(5, 225))
    assert story.attempts == 2


def test_another_run_id_is_another_process() -> None:
    story = account(start(0), FORTH, BACK, end(230), beats(5, 110), beats(128, 225, run_id="r2"))
    assert (story.attempts, story.disruptions) == (2, 1)


def test_heartbeats_on_one_side_alone_tell_nothing() -> None:
    assert account(start(0), FORTH, BACK, end(230), beats(5, 110)).attempts == 2
    assert account(start(0), FORTH, BACK, end(230), beats(131, 225)).attempts == 2


def test_a_silence_of_more_than_a_minute_and_three_usual_distances_stands_against_it() -> None:
    late = steps(1300, 100, at=180, every=1)
    assert account(start(0), FORTH, late, beats(5, 105), beats(166, 275)).attempts == 2
    assert account(start(0), FORTH, late, beats(5, 105), beats(165, 275)).attempts == 1
    seldom = [beats(5, 85, every=40), beats(190, 280, every=40)]  # 105 s apart: below three times 40 s
    assert account(start(0), FORTH, late, *seldom).attempts == 1


def test_the_writer_of_entries_tells_it_too() -> None:
    one = account(by_writer([start(0), *FORTH, *BACK, end(230)], "recorder.1"))
    assert (one.attempts, one.disruptions) == (1, 0)
    assert one.seconds == ledger(other=10, wasted=120, productive=100)
    two = account(by_writer([start(0), *FORTH], "recorder.1"), by_writer([*BACK, end(230)], "recorder.2"))
    assert (two.attempts, two.disruptions) == (2, 1)


def test_a_restore_between_is_a_restore_and_no_downtime() -> None:
    story = account(start(0), FORTH, restore(112, 8), BACK, end(230), beats(5, 225))
    assert (story.attempts, story.disruptions) == (1, 0)
    assert story.seconds == ledger(other=10 + 10, wasted=102, restore=8, productive=100)


def test_it_is_one_row_of_attempts_and_one_number_in_the_timeline() -> None:
    story = account(start(0), FORTH, BACK, start(240), steps(1400, 10, at=250, every=1), end(260), beats(5, 225))
    assert story.analysis.to_frame("attempts")["number"].tolist() == [1, 2]
    assert set(story.analysis.segments["attempt"].dropna()) == {1, 2}
    assert [row.attempt for row in story.analysis.disruptions] == [1, 1]
    assert story.disruptions == 1
