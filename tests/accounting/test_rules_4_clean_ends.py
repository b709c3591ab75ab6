"""Accounting §4: unclaimed time before a clean end, and start-ups after a re-initialization."""

from __future__ import annotations

from tests.support.story import account, custom, end, ledger, reinit, start, step, steps, terminated


def test_waiting_before_a_clean_end_is_other() -> None:
    # Step 2 is done at 40; the program waits for its last asynchronous save.
    story = account(start(0), steps(0, 3, at=10), end(50), start(100), steps(3, 2, at=110), end(130))
    assert story.seconds == ledger(other=30, productive=50, stopped=50)


def test_waiting_before_a_termination_is_recovery() -> None:
    story = account(start(0), steps(0, 3, at=10), terminated(50), start(100), steps(3, 2, at=110), end(130))
    assert story.seconds == ledger(other=20, productive=50, recovery=60)


def test_clean_end_without_training_is_not_recovery() -> None:
    story = account(start(0), custom("EVAL", 5, 15), end(20), start(30), steps(0, 2, at=40), end(60))
    assert story.seconds == ledger({"EVAL": 10}, other=20, stopped=10, productive=20)


def test_time_from_termination_to_clean_end_is_recovery() -> None:
    story = account(start(0), steps(0, 3, at=10), terminated(45), end(50), start(100), steps(3, 2, at=110), end(130))
    assert story.seconds == ledger(other=25, productive=50, recovery=5, stopped=50)


def test_recompilation_after_reinitialization_is_startup() -> None:
    # Step 5 takes 40 s, four times the usual: the first one after the re-initialization.
    story = account(
        start(0), steps(0, 5, at=10), reinit(52, 60), step(5, 60), steps(6, 4, at=100), end(140), stall_factor=2.0
    )
    assert story.seconds == ledger(other=10, reinit=8, startup=30, productive=92)


def test_recompilation_does_not_change_the_usual_step_time() -> None:
    # Step 1 is the first one after the re-initialization inside step 0: the median uses steps 2 and 3 alone.
    story = account(start(0), steps(0, 2, at=10), reinit(12, 18), step(2, 60), step(3, 68), step(4, 80), end(90))
    assert story.seconds == ledger(other=10, reinit=6, startup=30, productive=44)
