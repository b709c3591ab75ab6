"""Accounting §4: progress of checkpoint logs, which log saves and loads instead of every step."""

from __future__ import annotations

import pytest

from tests.support.story import (
    account,
    crashed,
    custom,
    end,
    finished,
    job_finished,
    ledger,
    loaded,
    saved,
    saved_asynchronously,
    start,
    started,
    steps,
    story_lines,
    terminated,
)

# Step logs and checkpoint logs


def test_job_with_a_step_is_a_step_log_for_any_as_of() -> None:
    log = story_lines(started(0), loaded(0, 5), saved(20, 30), steps(21, 2, at=40), job_finished(60))
    early = account(log, as_of=35)
    assert early.seconds == ledger(other=35)  # no step is known yet, and checkpoint events are no progress here


def test_checkpoint_events_of_a_step_log_fill_only_a_table() -> None:
    story = account(started(0), loaded(0, 5), steps(0, 4, at=10), saved(2, 38), job_finished(50))
    assert story.seconds == ledger(productive=40, other=10)
    table = story.analysis.reference
    assert (table.min_loaded_step, table.max_saved_step, table.checkpoints_saved) == (0, 2, 1)


def test_log_without_steps_is_a_checkpoint_log() -> None:
    story = account(started(0), loaded(0, 5), saved(20, 25), job_finished(25), reference=1)
    assert story.seconds == ledger(restore=5, productive=20)


# Spans of checkpoint logs


def test_span_ends_at_the_next_higher_checkpoint() -> None:
    story = account(
        started(0), loaded(0, 10), saved(20, 30), saved(20, 31), finished(20, 32), saved(40, 50), job_finished(50),
        reference=1,
    )  # fmt: skip
    # Other ranks' reports of step 20 add nothing: the second span began when 20 was first saved.
    assert story.seconds == ledger(restore=10, productive=40)


@pytest.mark.parametrize("load", [1, 2], ids=["before", "at-once"])
@pytest.mark.parametrize("next_begins_at", [1, 2], ids=["wasted", "kept"])
def test_initial_save_is_save_time(load: int, next_begins_at: int) -> None:
    story = account(
        started(0), loaded(1, load), finished(1, 2), saved(1, 4), saved(2, 8), crashed(8), started(8),
        loaded(next_begins_at, 8), finished(3, 9), reference=1,
    )  # fmt: skip
    trained = 8 - load - 2
    assert story.seconds["unproductive_checkpoint_save_time"] == 2
    lost = story.seconds.get("wasted_progress_from_disruption", 0)
    assert lost == (trained if next_begins_at == 1 else 0)


def test_time_from_finish_to_first_save_is_save_time() -> None:
    story = account(
        started(0), loaded(0, 10), finished(20, 30), saved(20, 35), finished(40, 55), saved(40, 60), job_finished(60),
        reference=1,
    )  # fmt: skip
    assert story.seconds == ledger(restore=10, productive=40, save=10)


def test_async_saves_claim_nothing() -> None:
    story = account(
        started(0), loaded(0, 10), finished(20, 30), saved(20, 35), finished(40, 55), saved(40, 60), job_finished(60),
        reference=1, async_saves=True,
    )  # fmt: skip
    assert story.seconds == ledger(restore=10, productive=40, slowdown=5, other=5)


def test_step_finished_inside_a_save_makes_it_asynchronous() -> None:
    story = account(
        started(0), loaded(0, 10), finished(20, 30), finished(24, 34), saved(20, 35), finished(40, 50),
        saved(40, 55), job_finished(55),
        reference=1,
    )  # fmt: skip
    assert story.seconds == ledger(restore=10, productive=40, other=5)
    assert story.found("async_saves_detected") == 1


def test_finish_inside_the_save_of_a_passed_step_counts() -> None:
    """Step 5 finished after 10, so it is no progress. But 15 finished before the save of 5 was complete."""
    log = story_lines(finished(10, 4), finished(5, 5), saved(10, 10), finished(15, 15), saved(5, 15), saved(15, 15))
    story = account(log, reference=1)
    assert story.seconds == ledger(productive=5, slowdown=6)
    assert story.found("async_saves_detected") == 1
    # 10, a higher step, finished before 5: no step finished inside a save.
    story = account(finished(10, 4), finished(5, 5), saved(5, 7), saved(10, 10), finished(15, 15), reference=1)
    assert story.seconds == ledger(productive=5, save=6)


@pytest.mark.usefixtures("asynchronous_saves")
def test_line_of_a_save_can_state_that_it_is_asynchronous() -> None:
    """No step finished during a save, and the other save is not marked: asynchronous saves are a property of the
    job."""
    story = account(
        started(0), loaded(0, 10), finished(20, 30), saved_asynchronously(20, 35), finished(40, 55), saved(40, 60),
        job_finished(60), reference=1,
    )  # fmt: skip
    assert story.seconds == ledger(restore=10, productive=40, slowdown=5, other=5)
    assert story.found("async_saves_detected") == 1
    assert "program_startup" in story.analysis.not_recorded


def test_startup_is_not_inferred_with_asynchronous_saves() -> None:
    slow_first = story_lines(started(0), loaded(0, 10), saved(20, 60), saved(40, 80), saved(60, 100), job_finished(100))
    assert account(slow_first, reference=1).seconds == ledger(restore=10, startup=30, productive=60)
    story = account(slow_first, reference=1, async_saves=True)
    assert story.seconds == ledger(restore=10, productive=60, slowdown=30)
    assert "program_startup" in story.analysis.not_recorded


def test_first_attempt_without_load_begins_at_0() -> None:
    story = account(started(0), saved(20, 20), saved(40, 40), job_finished(40), reference=1)
    assert story.seconds == ledger(productive=40)
    assert story.found("no_checkpoint_loaded") == 1


def test_attempt_without_start_begins_at_its_first_record() -> None:
    story = account(saved(20, 0), saved(40, 20), saved(60, 40), job_finished(40), reference=1)
    assert story.seconds == ledger(productive=40)
    assert story.found("starts_mid_run") == 1


def test_later_attempt_without_load_begins_at_the_last_save() -> None:
    story = account(
        started(0), loaded(0, 10), saved(20, 30), terminated(30), started(50), saved(40, 70), job_finished(70),
        reference=1,
    )  # fmt: skip
    assert story.seconds == ledger(restore=10, productive=40, recovery=20)


def test_attempt_not_above_the_save_begins_at_first_record() -> None:
    story = account(
        started(0), loaded(0, 10), saved(20, 30), saved(40, 50), terminated(50),
        started(60), saved(30, 80), saved(40, 90), job_finished(90),
        reference=1,
    )  # fmt: skip
    # The first attempt keeps steps up to 30: half of its second span.
    assert story.seconds == ledger(restore=10, productive=40, wasted=10, recovery=10, other=20)


def test_time_after_last_span_is_wasted_up_to_termination() -> None:
    story = account(
        started(0), loaded(0, 10), saved(20, 30), terminated(45),
        started(60), loaded(20, 70), saved(40, 90), job_finished(90),
        reference=1,
    )  # fmt: skip
    assert story.seconds == ledger(restore=20, productive=40, wasted=15, recovery=15)


def test_time_after_load_is_wasted_up_to_termination() -> None:
    story = account(
        started(0), loaded(0, 10), terminated(45), started(60), loaded(0, 70), saved(20, 90), job_finished(90),
        reference=1,
    )  # fmt: skip
    assert story.seconds == ledger(restore=20, productive=20, wasted=35, recovery=15)


def test_time_after_last_span_is_otherwise_undetermined() -> None:
    story = account(
        started(0), loaded(0, 10), finished(20, 30), saved(20, 33),
        started(60), loaded(20, 70), saved(40, 90), job_finished(90),
        reference=1,
    )  # fmt: skip
    assert story.seconds == ledger(restore=20, productive=40, save=3, undetermined=27)


@pytest.mark.parametrize(("last", "category"), [(crashed(60), "wasted"), (terminated(60), "other")])
def test_last_attempt_is_wasted_up_to_a_crash(last: str, category: str) -> None:
    story = account(started(0), loaded(0, 10), saved(20, 30), saved(40, 50), last, reference=1)
    assert story.seconds == ledger(restore=10, productive=40, **{category: 10})


def test_unclaimed_time_of_a_followed_attempt_is_recovery() -> None:
    # Ten seconds between the credited last step and the eval are unknown.
    story = account(start(0), steps(0, 3, at=10), custom("eval", 50, 60), start(80), steps(3, 2, at=90), end(110))
    assert story.seconds == ledger({"EVAL": 10}, productive=50, recovery=30, other=20)
