"""Accounting §2: the categories, each with the smallest log that shows it."""

from __future__ import annotations

import pytest

from tests.support.story import (
    Line,
    account,
    clock_step,
    crashed,
    custom,
    dropped,
    end,
    init,
    job_finished,
    ledger,
    loaded,
    loading,
    prep,
    reinit,
    restore,
    save,
    saved,
    scheduled,
    start,
    started,
    step,
    steps,
    story_lines,
    terminated,
    user_terminated,
    wait,
)

UNTIL_60 = story_lines(start(0), steps(0, 6, at=10))
PLAIN = story_lines(UNTIL_60, end(70))
"""10 s until the first step, then six steps of 10 s."""


# Training


def test_productive_is_kept_training() -> None:
    assert account(PLAIN).seconds == ledger(productive=60, other=10)


def test_startup_is_extra_time_of_the_first_step() -> None:
    story = account(start(0), step(0, 10), steps(1, 5, at=70), end(120))
    assert story.seconds == ledger(startup=50, productive=60, other=10)


def test_wasted_is_training_outside_the_final_progress() -> None:
    # Steps 2 and 3 are redone from 70 on; step 4 has no evidence.
    story = account(start(0), steps(0, 5, at=10), start(60), steps(2, 4, at=70), end(110))
    assert story.seconds == ledger(productive=60, wasted=20, recovery=10, other=20)


def test_recovery_begins_at_the_last_sign_of_activity() -> None:
    story = account(start(0), steps(0, 3, at=10), start(90), steps(3, 3, at=100), end(130))
    assert story.seconds == ledger(productive=60, recovery=50, other=20)


# Start-up, loading, checkpoints


def test_initialization_and_preparation_are_categories() -> None:
    story = account(start(0), init(2, 5), prep(5, 9), steps(0, 6, at=10), end(70))
    assert story.seconds == ledger(init=3, prep=4, productive=60, other=3)


def test_data_loading_outside_steps_is_badput() -> None:
    assert account(PLAIN, loading(2, 8)).seconds == ledger(loading=6, productive=60, other=4)


def test_data_loading_inside_a_step_is_outside_the_ledger() -> None:
    story = account(PLAIN, loading(12, 16), loading(63, 67))  # the second inside the last step
    assert story.seconds == ledger(productive=60, other=10)
    assert story.overlapped == 8


def test_data_loading_is_badput_up_to_the_first_step() -> None:
    story = account(PLAIN, loading(5, 15))
    assert story.seconds == ledger(loading=5, productive=60, other=5)
    assert story.overlapped == 5


def test_blocking_data_loading_is_badput() -> None:
    story = account(PLAIN, loading(12, 16), data_loading="blocking")
    assert story.seconds == ledger(loading=4, productive=56, other=10)
    assert story.overlapped == 0


def test_loading_between_steps_is_badput_if_recorded_as_wait() -> None:
    story = account(PLAIN, loading(18, 20, between_steps=True), loading(32, 36))
    assert story.seconds == ledger(loading=2, productive=58, other=10)
    assert story.overlapped == 4


def test_clock_set_forward_is_excluded() -> None:
    """Six steps of 10 s, with a clock jump of 600 s in the fourth."""
    lines = [*steps(0, 4, at=10), clock_step(645, 600), *steps(4, 2, at=650), end(670)]
    story = account(start(0), *lines)
    assert story.seconds == ledger(excluded=600, productive=60, other=10)
    assert story.analysis.goodput_percent == pytest.approx(100 * 60 / 70)
    assert story.analysis.steps is not None
    assert story.analysis.steps.mean_seconds == story.analysis.steps.p99_seconds == 10


def test_clock_set_back_or_of_another_host_has_no_effect() -> None:
    assert account(PLAIN, clock_step(35, -600), clock_step(45, 30, rank=1)).seconds == account(PLAIN).seconds


LOST = [start(0), *steps(0, 4, at=10), *steps(9, 3, at=100), end(130)]
"""Steps of 10 s. Of the missing steps 4 to 8, the first began at 50 and the last at 90."""


def test_time_of_lost_step_lines_is_unknown() -> None:
    """Between steps 3 and 9 are 60 s. The 40 s between the first and the last lost line are unknown: maybe a save."""
    story = account(*LOST, dropped(101, 50, 90, lost=5))
    assert story.seconds == ledger(productive=80, other=50)
    assert account(*LOST).seconds == ledger(productive=120, other=10)


def test_lost_lines_do_not_change_the_usual_step() -> None:
    """Two records of steps at the usual pace, and one hang of 60 s: the short time next to lost lines does not
    count."""
    lines = [*steps(0, 3, at=10), *steps(8, 3, at=90), *steps(11, 2, at=180), end(200)]
    story = account(start(0), *lines, dropped(91, 40, 85, lost=5))
    assert story.seconds == ledger(productive=85, stall=60, other=55)


@pytest.mark.parametrize(
    "line",
    [dropped(101, 50, 90, lost=0), dropped(101, 50, 90, reason="exit"), dropped(45, 12, 38), dropped(101, 90, 50)],
    ids=["no steps", "another place", "every step is there", "turned round"],
)
def test_lost_lines_outside_of_the_log_are_ignored(line: Line) -> None:
    assert account(*LOST, line).seconds == account(*LOST).seconds


def test_lost_steps_count_by_number_with_a_reference() -> None:
    plain = account(*LOST, reference=10)
    assert account(*LOST, dropped(101, 50, 90, lost=5), reference=10).seconds == plain.seconds


def test_loading_inside_steps_is_unknown_if_not_logged() -> None:
    assert account(PLAIN).analysis.overlapped == ()


def test_input_bound_warns_above_half_of_step_time() -> None:
    half = [line for at in (10, 20, 30) for line in loading(at, at + 8)]
    more = [line for at in (40, 50) for line in loading(at, at + 8)]
    assert account(PLAIN, half).found("input_bound") == 0
    assert account(PLAIN, half, more).found("input_bound") == 1


def test_blocking_save_and_restore_are_categories() -> None:
    story = account(start(0), restore(3, 5), steps(0, 6, at=10), save(32, 2), end(70))
    assert story.seconds == ledger(restore=5, save=2, productive=58, other=5)


# The user's own events, and elastic ones


def test_custom_events_have_one_row_per_label() -> None:
    evals = custom("eval", 22, 25), custom("Eval", 25, 27), custom("sdc_check", 27, 28)
    story = account(start(0), step(0, 10), step(1, 20), steps(2, 3, at=36), end(66), *evals)
    assert story.seconds == ledger({"EVAL": 5, "SDC_CHECK": 1}, productive=50, other=10)


def test_custom_event_without_label_is_unknown() -> None:
    story = account(start(0), step(0, 10), step(1, 20), steps(2, 3, at=34), end(64), custom(None, 22, 26))
    assert story.seconds == ledger({"UNKNOWN": 4}, productive=50, other=10)


def test_elastic_waits_and_reinitialization_are_categories() -> None:
    story = account(start(0), wait("slice_down", 1, 3), wait("SCALE_UP_event", 3, 6), reinit(6, 10), steps(0, 6, at=10))
    assert story.seconds == ledger(slice_down=2, scale_up=3, reinit=4, productive=50, other=1)


def test_elastic_wait_of_another_type_is_slice_down() -> None:
    assert account(PLAIN, wait("something", 2, 5)).seconds == ledger(slice_down=3, productive=60, other=7)


# Stalls


def with_a_step_of(seconds: float) -> list[str]:
    """Return a log whose step 3 takes some seconds; all others take 10 s."""
    return story_lines(start(0), steps(0, 4, at=10), steps(4, 3, at=40 + seconds), end(70 + seconds))


def test_step_above_5_usual_steps_is_a_stall_beyond_one() -> None:
    assert account(with_a_step_of(51)).seconds == ledger(productive=70, stall=41, other=10)


def test_step_of_exactly_5_usual_steps_is_not_stall() -> None:
    assert account(with_a_step_of(50)).seconds == ledger(productive=110, other=10)


def test_stall_factor_option_sets_the_limit() -> None:
    assert account(with_a_step_of(25)).seconds == ledger(productive=85, other=10)
    assert account(with_a_step_of(25), stall_factor=2).seconds == ledger(productive=70, stall=15, other=10)


def test_stall_factor_0_disables_stalls() -> None:
    assert account(with_a_step_of(600), stall_factor=0).seconds == ledger(productive=660, other=10)


@pytest.mark.parametrize(("seconds", "stall"), [(160, 0), (240, 200)])
def test_span_of_several_steps_is_compared_with_as_many(seconds: float, stall: float) -> None:
    # Steps 3, 4, 5 and 6 are one span: 40 s would be usual, up to 200 s is slow.
    late = 40 + seconds
    story = account(start(0), steps(0, 4, at=10), steps(7, 3, at=late), end(late + 30))
    stalled = {"stall": stall} if stall else {}
    assert story.seconds == ledger(productive=60 + seconds - stall, other=10, **stalled)


def test_hang_is_slowdown_with_a_reference() -> None:
    story = account(with_a_step_of(600), reference=10)
    assert story.seconds == ledger(productive=70, slowdown=590, other=10)


# Slowdown


def test_slowdown_is_kept_training_above_the_reference() -> None:
    assert account(PLAIN, reference=8).seconds == ledger(productive=48, slowdown=12, other=10)


def test_slowdown_is_negative_below_the_reference() -> None:
    story = account(PLAIN, reference=11)
    assert story.seconds == ledger(productive=66, slowdown=-6, other=10)
    assert story.found("reference_too_slow") == 1


# Ends and the time after them


def test_undetermined_is_an_unlogged_end_in_checkpoint_logs() -> None:
    story = account(
        started(0), loaded(0, 10), saved(20, 30), saved(40, 50),
        started(100), loaded(40, 110), saved(60, 130), job_finished(130),
        reference=1,
    )  # fmt: skip
    assert story.seconds == ledger(restore=20, productive=60, undetermined=50)


@pytest.mark.parametrize("clean_end", [user_terminated(30), job_finished(30)])
def test_stopped_is_from_a_clean_end_to_the_next_start(clean_end: str) -> None:
    story = account(
        started(0), loaded(0, 10), saved(20, 30), clean_end,
        started(90), loaded(20, 100), saved(40, 120), job_finished(120),
        reference=1,
    )  # fmt: skip
    assert story.seconds == ledger(restore=20, productive=40, stopped=60)
    assert story.disruptions == 0


def test_exclude_stopped_excludes_planned_stops() -> None:
    story = account(PLAIN, start(170), steps(6, 3, at=180), end(210), exclude_stopped=True)
    assert story.seconds == ledger(productive=90, excluded=100, other=20)
    assert story.percent == pytest.approx(100 * 90 / 110)


# Queued


def test_queued_is_from_scheduled_to_the_next_start() -> None:
    story = account(scheduled(0), started(60), loaded(0, 70), saved(20, 90), job_finished(90), reference=1)
    assert story.seconds == ledger(queued=60, restore=10, productive=20)


def test_queued_after_a_crash_begins_at_the_scheduled_line() -> None:
    story = account(
        started(0), loaded(0, 10), saved(20, 30), crashed(30),
        scheduled(45), started(70), loaded(20, 80), saved(40, 100), job_finished(100),
        reference=1,
    )  # fmt: skip
    assert story.seconds == ledger(restore=20, productive=40, recovery=15, queued=25)


def test_queued_is_empty_if_the_job_logs_in_between() -> None:
    story = account(
        started(0), loaded(0, 10), saved(20, 30), terminated(40),
        scheduled(45), terminated(50), started(70), loaded(20, 80), saved(40, 100), job_finished(100),
        reference=1,
    )  # fmt: skip
    assert story.seconds == ledger(restore=20, productive=40, wasted=10, recovery=30)


def test_queued_is_empty_during_a_save() -> None:
    story = account(UNTIL_60, save(72, 20), scheduled(80), start(100), steps(6, 3, at=110), end(140))
    assert story.seconds == ledger(productive=90, save=20, recovery=10, other=20)


def test_queued_lasts_to_t1_without_a_start() -> None:
    assert account(scheduled(0), as_of=90).seconds == ledger(queued=90)


def test_queued_lasts_to_t1_after_an_attempt_ended() -> None:
    story = account(PLAIN, scheduled(100), as_of=130)
    assert story.seconds == ledger(productive=60, queued=30, other=40)


# Excluded and other


def test_excluded_time_is_outside_of_100_percent() -> None:
    story = account(PLAIN, exclude=[(30, 50)])
    assert story.seconds == ledger(productive=40, excluded=20, other=10)
    assert story.total == 70
    assert story.percent == 80


def test_overlapping_exclusions_count_once() -> None:
    story = account(PLAIN, exclude=[(30, 45), (40, 50)])
    assert story.seconds == ledger(productive=40, excluded=20, other=10)


def test_first_step_in_flight_at_t1_is_other() -> None:
    assert account(start(0), step(0, 10), as_of=60).seconds == ledger(other=60)
