"""Accounting §3: attempts. Which of them a line belongs to, and where each begins."""

from __future__ import annotations

from tests.support.accounts import account, ledger
from tests.support.story import (
    crashed,
    end,
    init,
    job_finished,
    loaded,
    prep,
    restore,
    saved,
    start,
    started,
    step,
    steps,
    terminated,
)

# Start lines and start bursts


def test_a_new_attempt_begins_at_a_start_line() -> None:
    story = account(start(0), steps(0, 3, at=10), start(60), steps(3, 3, at=70), end(100))
    assert (story.attempts, story.disruptions) == (2, 1)
    assert story.seconds == ledger(productive=60, recovery=20, other=20)


def test_one_start_line_a_rank_is_one_burst() -> None:
    story = account(
        started(0, rank=0), started(2, rank=2), started(3, rank=1), loaded(0, 10), saved(20, 30), job_finished(30),
        reference=1,
    )  # fmt: skip
    assert story.attempts == 1
    # The attempt is up when the last rank has started: what came before is `other` in the first attempt.
    assert story.seconds == ledger(other=3, restore=7, productive=20)


def test_from_the_first_start_of_a_later_burst_until_all_are_up_is_recovery() -> None:
    story = account(
        started(0, rank=0), started(2, rank=1), loaded(0, 10), saved(20, 30),
        terminated(40, rank=0), terminated(41, rank=1),
        started(60, rank=0), started(64, rank=1), loaded(20, 74), saved(40, 94), job_finished(94),
        reference=1,
    )  # fmt: skip
    assert story.attempts == 2
    assert story.seconds == ledger(other=2, restore=18, productive=40, wasted=10, recovery=24)


def test_after_a_believed_clean_end_that_time_is_stopped() -> None:
    story = account(
        started(0, rank=0), started(0, rank=1), loaded(0, 10), saved(20, 30), job_finished(30),
        started(60, rank=0), started(64, rank=1), loaded(20, 74), saved(40, 94), job_finished(94),
        reference=1,
    )  # fmt: skip
    assert story.seconds == ledger(restore=20, productive=40, stopped=34)


def test_no_rank_counts_as_one_rank() -> None:
    story = account(start(0), start(5), steps(0, 3, at=10), end(40))
    assert story.attempts == 2
    assert story.seconds == ledger(recovery=5, productive=30, other=5)


def test_a_rank_that_starts_again_begins_a_new_attempt() -> None:
    story = account(
        started(0, rank=0), started(1, rank=1), started(5, rank=0), started(6, rank=1),
        loaded(0, 16), saved(20, 36), job_finished(36),
        reference=1,
    )  # fmt: skip
    assert story.attempts == 2
    assert story.seconds == ledger(recovery=6, restore=10, productive=20)


def test_a_burst_is_over_at_the_first_save() -> None:
    story = account(
        started(0, rank=0), loaded(0, 10), saved(5, 11), started(12, rank=1), loaded(0, 22), saved(20, 42),
        job_finished(42),
    )  # fmt: skip
    assert story.attempts == 2


def test_a_burst_is_over_at_a_termination_of_its_own() -> None:
    story = account(
        started(0, rank=0), terminated(5, rank=0), started(6, rank=1), loaded(0, 16), saved(20, 36), job_finished(36),
        reference=1,
    )  # fmt: skip
    assert story.attempts == 2
    assert story.seconds == ledger(recovery=6, restore=10, productive=20)


def test_a_late_termination_inside_a_burst_belongs_to_the_attempt_before() -> None:
    # Rank 1 of the first life is killed when rank 0 of the second has started: the wasted time ends where that did.
    story = account(
        started(0, rank=0), started(1, rank=1), loaded(0, 11), saved(20, 31),
        started(60, rank=0), terminated(62, rank=1), started(64, rank=1),
        loaded(20, 74), saved(40, 94), job_finished(94),
        reference=1,
    )  # fmt: skip
    assert story.attempts == 2
    assert story.seconds == ledger(other=1, restore=20, productive=40, wasted=29, recovery=4)


def test_each_rank_has_its_own_late_termination() -> None:
    # Rank 0 had ended at 40, which is when the first life was over; rank 1 is late, and does not end the burst.
    story = account(
        started(0, rank=0), started(1, rank=1), loaded(0, 11), saved(20, 31), terminated(40, rank=0),
        started(60, rank=0), terminated(62, rank=1), started(64, rank=1),
        loaded(20, 74), saved(40, 94), job_finished(94),
        reference=1,
    )  # fmt: skip
    assert story.attempts == 2
    assert story.seconds == ledger(other=1, restore=20, productive=40, wasted=9, recovery=24)


def test_a_late_crash_does_the_same() -> None:
    story = account(
        started(0, rank=0), started(1, rank=1), loaded(0, 11), saved(20, 31),
        started(60, rank=0), crashed(62, rank=1), started(64, rank=1),
        loaded(20, 74), saved(40, 94), job_finished(94),
        reference=1,
    )  # fmt: skip
    assert (story.attempts, story.analysis.job.ending) == (2, "clean")
    assert story.seconds == ledger(other=1, restore=20, productive=40, wasted=29, recovery=4)


def test_a_termination_of_a_rank_that_has_started_in_the_burst_is_of_this_attempt() -> None:
    story = account(
        started(0, rank=0), started(1, rank=1), loaded(0, 11), saved(20, 31),
        started(60, rank=0), terminated(62, rank=0), started(64, rank=0), started(65, rank=1),
        loaded(20, 75), saved(40, 95), job_finished(95),
        reference=1,
    )  # fmt: skip
    assert story.attempts == 3
    assert story.seconds == ledger(other=1, restore=20, productive=40, undetermined=29, recovery=5)


# Steps that go back: restarts without a start line, and second hosts


def test_steps_that_go_back_are_an_in_process_restart() -> None:
    story = account(start(0), steps(0, 4, at=10), steps(2, 4, at=70), end(110))
    assert (story.attempts, story.disruptions) == (2, 1)
    assert story.found("restart_without_start") == 1
    assert story.seconds == ledger(productive=60, wasted=10, recovery=30, other=10)


def test_it_begins_at_the_first_start_up_event_after_the_last_step() -> None:
    story = account(start(0), steps(0, 4, at=10), prep(60, 70), steps(2, 4, at=70), end(110))
    assert story.attempts == 2
    assert story.seconds == ledger(productive=60, wasted=10, recovery=20, prep=10, other=10)


def test_the_end_edge_of_a_start_up_event_will_do() -> None:
    story = account(start(0), steps(0, 4, at=10), init(None, 60), steps(2, 4, at=70), end(110))
    assert story.attempts == 2
    assert story.seconds == ledger(productive=60, wasted=10, recovery=20, other=20)


def test_two_hosts_that_report_the_same_steps_are_one_attempt() -> None:
    story = account(start(0), steps(0, 6, at=10), steps(0, 6, at=14), end(70))
    assert story.attempts == 1
    assert story.found("multi_host_duplicates") == 6
    assert story.seconds == ledger(productive=60, other=10)


def test_the_earliest_report_counts() -> None:
    story = account(start(0), steps(0, 6, at=14), steps(0, 6, at=10), end(70))
    assert story.seconds == ledger(productive=60, other=10)
    assert story.lines("multi_host_duplicates") == [2, 3, 4, 5, 6, 7]


def test_two_hosts_a_step_apart_are_one_attempt() -> None:
    # Every report of the second host comes 12 s after the first one's, when the next number is out.
    story = account(start(0), steps(0, 6, at=10), steps(0, 6, at=22), end(80))
    assert story.attempts == 1
    assert story.found("multi_host_duplicates") == 6
    assert story.seconds == ledger(productive=60, other=20)


def test_two_hosts_further_apart_are_one_attempt_while_the_old_sequence_goes_on() -> None:
    # 25 s apart is more than two steps; but 3 arrives before 1 and 2 have been seen again. The last two reports are
    # told by the longest delay of those before.
    story = account(start(0), steps(0, 6, at=10), steps(0, 6, at=35), end(90))
    assert story.attempts == 1
    assert story.found("multi_host_duplicates") == 6
    assert story.seconds == ledger(productive=60, other=30)


def test_a_start_up_event_in_between_makes_it_a_restart() -> None:
    # Step 2 is seen again after one step time, which could be a second host, but for the init.
    story = account(start(0), steps(0, 3, at=10), init(33, 38), steps(2, 3, at=40), end(70))
    assert story.attempts == 2
    assert story.found("multi_host_duplicates") == 0
    assert story.seconds == ledger(productive=50, recovery=3, init=5, other=12)


def test_a_higher_number_behind_the_next_start_line_is_not_the_old_sequence_going_on() -> None:
    story = account(start(0), steps(0, 6, at=10), step(3, 200), start(220), steps(6, 3, at=230), end(260))
    assert story.attempts == 3
    assert story.seconds == ledger(productive=90, recovery=150, other=20)


# Lost start lines


def test_a_step_after_an_end_line_is_a_lost_start() -> None:
    story = account(start(0), steps(0, 3, at=10), end(40), steps(3, 3, at=100), end(130))
    assert (story.attempts, story.disruptions) == (2, 0)
    assert story.seconds == ledger(productive=60, stopped=60, other=10)


def test_so_is_an_initialisation_after_an_end_line() -> None:
    story = account(start(0), steps(0, 3, at=10), end(40), init(90, 100), steps(3, 3, at=100), end(130))
    assert story.attempts == 2
    assert story.seconds == ledger(productive=60, stopped=50, init=10, other=10)


def test_so_is_a_restore_after_a_termination() -> None:
    story = account(start(0), steps(0, 3, at=10), terminated(40), restore(90, 10), steps(3, 3, at=100), end(130))
    assert (story.attempts, story.disruptions) == (2, 1)
    assert story.seconds == ledger(productive=60, recovery=50, restore=10, other=10)


def test_not_so_a_step_that_continues_the_numbers_one_rank_left_and_the_others_went_on() -> None:
    story = account(start(0), steps(0, 3, at=10), terminated(31), steps(3, 3, at=42), end(72))
    assert story.attempts == 1
    assert story.seconds == ledger(productive=62, other=10)


def test_but_so_a_step_that_comes_later_than_two_step_times_after_the_one_before() -> None:
    # One second of the last step was lived to see, and is credited.
    story = account(start(0), steps(0, 3, at=10), terminated(31), steps(3, 3, at=52), end(82))
    assert story.attempts == 2
    assert story.seconds == ledger(productive=51, recovery=21, other=10)


def test_a_save_after_a_termination_of_one_rank_begins_nothing() -> None:
    story = account(
        started(0), loaded(0, 10), saved(20, 30), terminated(35, rank=1), saved(40, 50), job_finished(50),
        reference=1,
    )  # fmt: skip
    assert story.attempts == 1
    assert story.seconds == ledger(restore=10, productive=40)


def test_a_lost_job_start_at_the_beginning() -> None:
    story = account(init(0, 8), steps(0, 3, at=10), start(60), steps(3, 3, at=70), end(100))
    assert story.attempts == 2
    assert story.found("starts_mid_run") == 1
    assert story.seconds == ledger(init=8, productive=60, recovery=20, other=12)


def test_in_checkpoint_logs_life_any_time_after_a_termination_is_a_lost_start() -> None:
    story = account(
        started(0), loaded(0, 10), saved(20, 30), terminated(40), loaded(20, 42), saved(40, 62), job_finished(62),
        reference=1,
    )  # fmt: skip
    assert story.attempts == 2
    assert story.seconds == ledger(restore=10, productive=40, wasted=10, recovery=2)


def test_in_checkpoint_logs_a_load_after_progress_begins_a_new_attempt() -> None:
    story = account(
        started(0), loaded(0, 10), saved(20, 30), saved(40, 50), loaded(40, 80), saved(60, 100), job_finished(100),
        reference=1,
    )  # fmt: skip
    assert story.attempts == 2
    assert story.seconds == ledger(restore=10, productive=60, undetermined=30)


def test_that_one_too_begins_at_the_first_start_up_event() -> None:
    story = account(
        started(0), loaded(0, 10), saved(20, 30), saved(40, 50),
        init(70, 74), loaded(40, 80), saved(60, 100), job_finished(100),
        reference=1,
    )  # fmt: skip
    assert story.seconds == ledger(restore=16, init=4, productive=60, undetermined=20)


def test_loads_before_any_progress_begin_nothing() -> None:
    story = account(started(0), loaded(0, 10), loaded(0, 12), saved(20, 32), job_finished(32), reference=1)
    assert story.attempts == 1
    assert story.seconds == ledger(restore=12, productive=20)
