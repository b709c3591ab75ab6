"""Accounting §3: the quick load of one rank does not end the start of the others."""

from __future__ import annotations

from tests.support.story import account, job_finished, ledger, loaded, saved, started


def test_rank_may_start_after_the_load_of_another() -> None:
    story = account(
        started(0, rank=0), loaded(0, 10), started(12, rank=1), loaded(0, 22), saved(20, 42), job_finished(42),
        reference=1,
    )  # fmt: skip
    assert (story.attempts, story.disruptions) == (1, 0)
    assert story.seconds == ledger(other=12, restore=10, productive=20)


def test_training_begins_when_the_last_rank_is_up() -> None:
    story = account(started(0, rank=0), loaded(0, 5), started(20, rank=1), saved(20, 40), job_finished(40), reference=1)
    assert story.seconds == ledger(other=20, productive=20)


def test_rank_restart_within_a_minute_is_a_restart_of_all() -> None:
    story = account(
        started(0, rank=0), loaded(0, 10), started(50, rank=1), started(60, rank=0), loaded(0, 70), saved(20, 90),
        job_finished(90), reference=1,
    )  # fmt: skip
    assert (story.attempts, story.disruptions) == (2, 1)


def test_rank_restart_after_a_minute_keeps_the_first_burst() -> None:
    story = account(
        started(0, rank=0), loaded(0, 10), started(12, rank=1), started(90, rank=0), started(91, rank=1),
        loaded(0, 100), saved(20, 120), job_finished(120), reference=1,
    )  # fmt: skip
    assert (story.attempts, story.disruptions) == (2, 1)


def test_rank_start_after_ten_minutes_begins_an_attempt() -> None:
    within = account(started(0, rank=0), loaded(0, 10), started(600, rank=1), saved(20, 700), job_finished(700))
    beyond = account(started(0, rank=0), loaded(0, 10), started(601, rank=1), saved(20, 700), job_finished(700))
    assert (within.attempts, beyond.attempts) == (1, 2)
