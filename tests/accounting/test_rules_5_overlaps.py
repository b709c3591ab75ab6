"""Accounting §5: overlaps. Where several things claim one instant, the first of the list has it, once."""

from __future__ import annotations

from tests.support.accounts import account, ledger
from tests.support.story import (
    custom,
    end,
    init,
    job_finished,
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
    terminated,
    told,
    wait,
)

PLAIN = told(start(0), steps(0, 6, at=10), end(70))
"""10 s until the first step, then six steps of 10 s."""
CRASH = told(start(0), steps(0, 3, at=10), start(100), steps(3, 3, at=110), end(140))
"""Two lives of three steps; the first one's last step is credited up to 40."""

# 1 excluded


def test_an_exclusion_over_unexplained_time() -> None:
    assert account(PLAIN, exclude=[(2, 8)]).seconds == ledger(productive=60, excluded=6, other=4)


def test_an_exclusion_over_everything_else() -> None:
    story = account(
        start(0), reinit(1, 9), steps(0, 3, at=10), start(100), steps(3, 3, at=110), end(140),
        exclude=[(0, 5), (35, 60), (120, 125)],
    )  # fmt: skip
    # Of the credited step five seconds are left, of the downtime 40, of step 4 five.
    assert story.seconds == ledger(excluded=35, reinit=4, other=11, productive=50, recovery=40)


# 2 elastic re-initialisation, 3 elastic waits


def test_reinitialisation_is_before_a_wait() -> None:
    story = account(PLAIN, wait("slice_down", 1, 8), reinit(4, 6))
    assert story.seconds == ledger(slice_down=5, reinit=2, productive=60, other=3)


def test_elastic_waits_inside_recovery() -> None:
    story = account(CRASH, wait("slice_down", 50, 70), wait("scale_up", 70, 80), reinit(80, 90))
    assert story.seconds == ledger(slice_down=20, scale_up=10, reinit=10, recovery=20, productive=60, other=20)


def test_init_and_prep_inside_reinitialisation_are_reinitialisation() -> None:
    story = account(PLAIN, reinit(1, 9), init(2, 4), prep(4, 8), restore(5, 2))
    assert story.seconds == ledger(reinit=8, productive=60, other=2)


def test_an_elastic_wait_inside_wasted_training_is_a_wait() -> None:
    story = account(start(0), steps(0, 4, at=10), wait("slice_down", 32, 36), start(60), steps(1, 4, at=70), end(110))
    assert story.seconds == ledger(slice_down=4, wasted=16, recovery=20, productive=50, other=20)


# 4 queued, 5 downtime


def test_queued_is_before_recovery() -> None:
    story = account(CRASH, scheduled(75))
    assert story.seconds == ledger(queued=25, recovery=35, productive=60, other=20)


def test_downtime_is_before_wasted_training() -> None:
    # A termination that arrives when the next life has begun: what was wasted ends where that begins.
    story = account(
        started(0, rank=0), started(0, rank=1), loaded(0, 10), saved(20, 30),
        started(60, rank=0), terminated(62, rank=1), started(64, rank=1),
        loaded(20, 74), saved(40, 94), job_finished(94),
        reference=1,
    )  # fmt: skip
    assert story.seconds == ledger(restore=20, productive=40, wasted=30, recovery=4)


def test_downtime_is_before_an_init_of_the_life_that_ended() -> None:
    story = account(CRASH, init(60, 80))
    assert story.seconds == ledger(recovery=60, productive=60, other=20)


# 6 wasted spans


def test_wasted_training_is_wasted_with_all_that_happened_in_it() -> None:
    story = account(
        start(0), steps(0, 4, at=10), save(22, 3), custom("eval", 32, 36), restore(26, 2), init(37, 39),
        start(60), steps(1, 4, at=70), end(110),
    )  # fmt: skip
    assert story.seconds == ledger(wasted=20, recovery=20, productive=50, other=20)


# 7 restore, 8 save, 9 custom


def test_a_restore_inside_training_prep_is_a_restore_once() -> None:
    story = account(start(0), prep(2, 20), restore(5, 10), steps(0, 3, at=20), end(50))
    assert story.seconds == ledger(prep=8, restore=10, productive=30, other=2)


def test_a_restore_is_before_a_save() -> None:
    story = account(PLAIN, restore(22, 6), save(26, 4))
    assert story.seconds == ledger(restore=6, save=2, productive=52, other=10)


def test_four_hosts_in_one_save_cost_as_much_as_the_slowest() -> None:
    story = account(PLAIN, save(30.2, 1), save(30.1, 1), save(30.3, 1), save(30, 9))
    assert story.seconds == ledger(save=9, productive=51, other=10)


def test_a_save_is_before_an_eval() -> None:
    story = account(PLAIN, custom("eval", 22, 28), save(24, 2))
    assert story.seconds == ledger({"EVAL": 4}, save=2, productive=54, other=10)


def test_an_eval_is_before_an_init() -> None:
    story = account(PLAIN, init(2, 8), custom("check", 4, 6))
    assert story.seconds == ledger({"CHECK": 2}, init=4, productive=60, other=4)


def test_an_eval_across_a_step_boundary_counts_whole() -> None:
    # The eval takes two seconds of step 1 and four of step 2, which takes longer for it.
    story = account(start(0), steps(0, 3, at=10), steps(3, 2, at=44), end(64), custom("eval", 28, 34))
    assert story.seconds == ledger({"EVAL": 6}, productive=48, other=10)


# 10 init, 11 prep, 12 inferred restore, 13 data loading


def test_an_init_is_before_prep() -> None:
    story = account(PLAIN, prep(1, 9), init(3, 6))
    assert story.seconds == ledger(init=3, prep=5, productive=60, other=2)


def test_prep_is_before_an_inferred_restore() -> None:
    story = account(started(0), prep(2, 6), loaded(0, 10), saved(20, 30), job_finished(30), reference=1)
    assert story.seconds == ledger(prep=4, restore=6, productive=20)


def test_an_inferred_restore_is_before_data_loading() -> None:
    story = account(started(0), loading(2, 6), loaded(0, 10), saved(20, 30), job_finished(30), reference=1)
    assert story.seconds == ledger(restore=10, productive=20)


def test_prep_is_before_data_loading() -> None:
    story = account(PLAIN, prep(1, 5), loading(3, 9))
    assert story.seconds == ledger(prep=4, loading=4, productive=60, other=2)


# 14 kept spans, 15 unclaimed time of dead attempts, 16 other


def test_data_loading_that_blocks_is_before_kept_training() -> None:
    story = account(PLAIN, loading(32, 36), data_loading="blocking")
    assert story.seconds == ledger(loading=4, productive=56, other=10)


def test_a_gap_before_the_first_step_is_other_and_one_after_the_last_step_of_a_dead_attempt_is_not() -> None:
    story = account(CRASH, save(60, 5))
    assert story.seconds == ledger(save=5, recovery=55, productive=60, other=20)


# Of two with the same rank, the one that started later


def test_nested_custom_events() -> None:
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


def test_custom_events_nested_twice_and_overlapping() -> None:
    story = account(
        start(0), step(0, 10), step(1, 20), steps(2, 3, at=44), end(74),
        custom("a", 21, 31), custom("b", 23, 29), custom("c", 25, 27), custom("d", 30, 35),
    )  # fmt: skip
    assert story.seconds == ledger({"A": 3, "B": 4, "C": 2, "D": 5}, productive=50, other=10)


def test_nested_elastic_waits() -> None:
    story = account(PLAIN, wait("slice_down", 2, 8), wait("scale_up", 4, 6))
    assert story.seconds == ledger(slice_down=4, scale_up=2, productive=60, other=4)
