"""Accounting §5: overlaps. If several claims overlap, the first in the list gets the time, once."""

from __future__ import annotations

from tests.support.story import (
    account,
    custom,
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
    wait,
)

PLAIN = story_lines(start(0), steps(0, 6, at=10), end(70))
"""10 s until the first step, then six steps of 10 s."""
CRASH = story_lines(start(0), steps(0, 3, at=10), start(100), steps(3, 3, at=110), end(140))
"""Two attempts of three steps; the first one's last step is credited up to 40."""

# 1 excluded


def test_exclusion_over_other_time() -> None:
    assert account(PLAIN, exclude=[(2, 8)]).seconds == ledger(productive=60, excluded=6, other=4)


def test_exclusion_precedes_all_claims() -> None:
    story = account(
        start(0), reinit(1, 9), steps(0, 3, at=10), start(100), steps(3, 3, at=110), end(140),
        exclude=[(0, 5), (35, 60), (120, 125)],
    )  # fmt: skip
    # Of the credited step five seconds are left, of the downtime 40, of step 4 five.
    assert story.seconds == ledger(excluded=35, reinit=4, other=11, productive=50, recovery=40)


# 2 elastic re-initialization, 3 elastic waits


def test_reinitialization_precedes_a_wait() -> None:
    story = account(PLAIN, wait("slice_down", 1, 8), reinit(4, 6))
    assert story.seconds == ledger(slice_down=5, reinit=2, productive=60, other=3)


def test_elastic_waits_precede_recovery() -> None:
    story = account(CRASH, wait("slice_down", 50, 70), wait("scale_up", 70, 80), reinit(80, 90))
    assert story.seconds == ledger(slice_down=20, scale_up=10, reinit=10, recovery=20, productive=60, other=20)


def test_reinitialization_precedes_init_and_prep() -> None:
    story = account(PLAIN, reinit(1, 9), init(2, 4), prep(4, 8), restore(5, 2))
    assert story.seconds == ledger(reinit=8, productive=60, other=2)


def test_elastic_wait_precedes_wasted_training() -> None:
    story = account(start(0), steps(0, 4, at=10), wait("slice_down", 32, 36), start(60), steps(1, 4, at=70), end(110))
    assert story.seconds == ledger(slice_down=4, wasted=16, recovery=20, productive=50, other=20)


# 4 queued, 5 downtime


def test_queued_precedes_recovery() -> None:
    story = account(CRASH, scheduled(75))
    assert story.seconds == ledger(queued=25, recovery=35, productive=60, other=20)


def test_downtime_precedes_wasted_training() -> None:
    # A termination after the next attempt has begun: wasted time ends at that begin.
    story = account(
        started(0, rank=0), started(0, rank=1), loaded(0, 10), saved(20, 30),
        started(60, rank=0), terminated(62, rank=1), started(64, rank=1),
        loaded(20, 74), saved(40, 94), job_finished(94),
        reference=1,
    )  # fmt: skip
    assert story.seconds == ledger(restore=20, productive=40, wasted=30, recovery=4)


def test_downtime_precedes_an_init_of_the_ended_attempt() -> None:
    story = account(CRASH, init(60, 80))
    assert story.seconds == ledger(recovery=60, productive=60, other=20)


# 6 wasted spans


def test_wasted_training_includes_events_inside_it() -> None:
    story = account(
        start(0), steps(0, 4, at=10), save(22, 3), custom("eval", 32, 36), restore(26, 2), init(37, 39),
        start(60), steps(1, 4, at=70), end(110),
    )  # fmt: skip
    assert story.seconds == ledger(wasted=20, recovery=20, productive=50, other=20)


# 7 restore, 8 save, 9 custom


def test_restore_inside_training_prep_counts_once() -> None:
    story = account(start(0), prep(2, 20), restore(5, 10), steps(0, 3, at=20), end(50))
    assert story.seconds == ledger(prep=8, restore=10, productive=30, other=2)


def test_restore_precedes_a_save() -> None:
    story = account(PLAIN, restore(22, 6), save(26, 4))
    assert story.seconds == ledger(restore=6, save=2, productive=52, other=10)


def test_save_of_four_hosts_costs_the_slowest() -> None:
    story = account(PLAIN, save(30.2, 1), save(30.1, 1), save(30.3, 1), save(30, 9))
    assert story.seconds == ledger(save=9, productive=51, other=10)


def test_save_precedes_an_eval() -> None:
    story = account(PLAIN, custom("eval", 22, 28), save(24, 2))
    assert story.seconds == ledger({"EVAL": 4}, save=2, productive=54, other=10)


def test_eval_precedes_an_init() -> None:
    story = account(PLAIN, init(2, 8), custom("check", 4, 6))
    assert story.seconds == ledger({"CHECK": 2}, init=4, productive=60, other=4)


def test_eval_across_two_steps_counts_in_full() -> None:
    # The eval takes two seconds of step 1 and four of step 2, which is longer for it.
    story = account(start(0), steps(0, 3, at=10), steps(3, 2, at=44), end(64), custom("eval", 28, 34))
    assert story.seconds == ledger({"EVAL": 6}, productive=48, other=10)


# 10 init, 11 prep, 12 inferred restore, 13 data loading


def test_init_precedes_prep() -> None:
    story = account(PLAIN, prep(1, 9), init(3, 6))
    assert story.seconds == ledger(init=3, prep=5, productive=60, other=2)


def test_prep_precedes_an_inferred_restore() -> None:
    story = account(started(0), prep(2, 6), loaded(0, 10), saved(20, 30), job_finished(30), reference=1)
    assert story.seconds == ledger(prep=4, restore=6, productive=20)


def test_inferred_restore_precedes_data_loading() -> None:
    story = account(started(0), loading(2, 6), loaded(0, 10), saved(20, 30), job_finished(30), reference=1)
    assert story.seconds == ledger(restore=10, productive=20)


def test_prep_precedes_data_loading() -> None:
    story = account(PLAIN, prep(1, 5), loading(3, 9))
    assert story.seconds == ledger(prep=4, loading=4, productive=60, other=2)


# 14 kept spans, 15 unclaimed time of dead attempts, 16 other


def test_blocking_data_loading_precedes_kept_training() -> None:
    story = account(PLAIN, loading(32, 36), data_loading="blocking")
    assert story.seconds == ledger(loading=4, productive=56, other=10)


def test_gap_is_other_before_the_first_step_only() -> None:
    story = account(CRASH, save(60, 5))
    assert story.seconds == ledger(save=5, recovery=55, productive=60, other=20)


# Equal ranks: the one that started later wins


def test_inner_custom_event_precedes_the_outer() -> None:
    story = account(
        start(0),
        step(0, 10),
        step(1, 20),
        steps(2, 3, at=44),
        end(74),
        custom("outer", 22, 36),
        custom("inner", 25, 30),
    )
    assert story.seconds == ledger({"OUTER": 9, "INNER": 5}, productive=50, other=10)


def test_innermost_custom_event_wins() -> None:
    story = account(
        start(0), step(0, 10), step(1, 20), steps(2, 3, at=44), end(74),
        custom("a", 21, 31), custom("b", 23, 29), custom("c", 25, 27), custom("d", 30, 35),
    )  # fmt: skip
    assert story.seconds == ledger({"A": 3, "B": 4, "C": 2, "D": 5}, productive=50, other=10)


def test_inner_elastic_wait_precedes_the_outer() -> None:
    story = account(PLAIN, wait("slice_down", 2, 8), wait("scale_up", 4, 6))
    assert story.seconds == ledger(slice_down=4, scale_up=2, productive=60, other=4)
