"""Accounting §4, unrecorded steps: the job resumed above the last step that an attempt recorded."""

from __future__ import annotations

from tests.support.story import account, end, ledger, start, steps, terminated


def test_unrecorded_steps_that_fit_are_credited() -> None:
    # The writer had not flushed steps 4 to 7 when it was killed: five steps from 40 to 90.
    story = account(start(0), steps(0, 4, at=10), start(100), steps(8, 3, at=110), end(140))
    assert story.seconds == ledger(other=20, productive=110, recovery=10)
    assert story.kept_steps == 11


def test_hours_of_silence_are_not_credited() -> None:
    story = account(start(0), steps(0, 4, at=10), start(7240), steps(10_000, 3, at=7250), end(7280))
    assert story.seconds == ledger(other=20, productive=70, recovery=7190)
    assert story.kept_steps == 7


def test_unrecorded_steps_are_limited_to_five_minutes() -> None:
    within = account(start(0), steps(0, 4, at=10), start(1000), steps(33, 3, at=1010), end(1040))
    assert (within.seconds["productive"], within.kept_steps) == (30 + 300 + 30, 36)
    beyond = account(start(0), steps(0, 4, at=10), start(1000), steps(34, 3, at=1010), end(1040))
    assert (beyond.seconds["productive"], beyond.kept_steps) == (30 + 10 + 30, 7)


def test_steps_beyond_the_logged_end_are_not_credited() -> None:
    story = account(start(0), steps(0, 4, at=10), terminated(60), start(100), steps(8, 3, at=110), end(140))
    assert story.seconds == ledger(other=20, productive=70, recovery=50)


def test_one_unrecorded_saved_step_gives_no_warning() -> None:
    story = account(start(0), steps(0, 4, at=10), start(100), steps(4, 3, at=110), end(140))
    assert story.seconds == ledger(other=20, productive=70, recovery=50)
    assert story.found("unrecorded_steps") == 0
