"""An answer as of long after a log fell silent says so."""

from __future__ import annotations

from tests.support.accounts import account
from tests.support.story import end, start, steps

DAY = 86_400


def test_days_of_silence_are_said_with_the_answer_without_them() -> None:
    story = account(start(0), steps(0, 7, at=10), as_of=3 * DAY)
    assert story.found("long_silence") == 1
    assert "no line for 71 h 59 min" in story.message("long_silence")
    assert f"{account(start(0), steps(0, 7, at=10)).percent:.2f} %" in story.message("long_silence")


def test_a_job_that_ended_is_not_silent() -> None:
    assert account(start(0), steps(0, 7, at=10), end(80), as_of=3 * DAY).found("long_silence") == 0


def test_a_pause_within_a_day_is_ordinary() -> None:
    assert account(start(0), steps(0, 7, at=10), as_of=DAY).found("long_silence") == 0


def test_an_instant_inside_the_log_is_not_behind_it() -> None:
    assert account(start(0), steps(0, 3, at=10), steps(3, 2, at=3 * DAY), as_of=2 * DAY).found("long_silence") == 0
