"""Accounting §3: attempts. The begin of each attempt, and the attempt of each line."""

from __future__ import annotations

from tests.support.story import (
    account,
    crashed,
    end,
    init,
    job_finished,
    ledger,
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


def test_start_line_begins_an_attempt() -> None:
    story = account(start(0), steps(0, 3, at=10), start(60), steps(3, 3, at=70), end(100))
    assert (story.attempts, story.disruptions) == (2, 1)
    assert story.seconds == ledger(productive=60, recovery=20, other=20)


def test_one_start_line_per_rank_is_one_burst() -> None:
    story = account(
        started(0, rank=0), started(2, rank=2), started(3, rank=1), loaded(0, 10), saved(20, 30), job_finished(30),
        reference=1,
    )  # fmt: skip
    assert story.attempts == 1
    # The attempt is up when the last rank has started. Time before that is `other` in the first attempt.
    assert story.seconds == ledger(other=3, restore=7, productive=20)


def test_later_burst_is_recovery_until_all_ranks_are_up() -> None:
    story = account(
        started(0, rank=0), started(2, rank=1), loaded(0, 10), saved(20, 30),
        terminated(40, rank=0), terminated(41, rank=1),
        started(60, rank=0), started(64, rank=1), loaded(20, 74), saved(40, 94), job_finished(94),
        reference=1,
    )  # fmt: skip
    assert story.attempts == 2
    assert story.seconds == ledger(other=2, restore=18, productive=40, wasted=10, recovery=24)


def test_burst_after_a_clean_end_is_stopped() -> None:
    story = account(
        started(0, rank=0), started(0, rank=1), loaded(0, 10), saved(20, 30), job_finished(30),
        started(60, rank=0), started(64, rank=1), loaded(20, 74), saved(40, 94), job_finished(94),
        reference=1,
    )  # fmt: skip
    assert story.seconds == ledger(restore=20, productive=40, stopped=34)


def test_start_lines_without_rank_count_as_one_rank() -> None:
    story = account(start(0), start(5), steps(0, 3, at=10), end(40))
    assert story.attempts == 2
    assert story.seconds == ledger(recovery=5, productive=30, other=5)


def test_rank_that_starts_again_begins_an_attempt() -> None:
    story = account(
        started(0, rank=0), started(1, rank=1), started(5, rank=0), started(6, rank=1),
        loaded(0, 16), saved(20, 36), job_finished(36),
        reference=1,
    )  # fmt: skip
    assert story.attempts == 2
    assert story.seconds == ledger(recovery=6, restore=10, productive=20)


def test_burst_ends_at_the_first_save() -> None:
    story = account(
        started(0, rank=0), loaded(0, 10), saved(5, 11), started(12, rank=1), loaded(0, 22), saved(20, 42),
        job_finished(42),
    )  # fmt: skip
    assert story.attempts == 2


def test_burst_ends_at_its_first_termination() -> None:
    story = account(
        started(0, rank=0), terminated(5, rank=0), started(6, rank=1), loaded(0, 16), saved(20, 36), job_finished(36),
        reference=1,
    )  # fmt: skip
    assert story.attempts == 2
    assert story.seconds == ledger(recovery=6, restore=10, productive=20)


def test_late_termination_in_a_burst_ends_the_attempt_before() -> None:
    # Rank 1 of the first attempt is killed after rank 0 of the second has started: the wasted time ends at that start.
    story = account(
        started(0, rank=0), started(1, rank=1), loaded(0, 11), saved(20, 31),
        started(60, rank=0), terminated(62, rank=1), started(64, rank=1),
        loaded(20, 74), saved(40, 94), job_finished(94),
        reference=1,
    )  # fmt: skip
    assert story.attempts == 2
    assert story.seconds == ledger(other=1, restore=20, productive=40, wasted=29, recovery=4)


def test_late_terminations_are_separate_per_rank() -> None:
    # Rank 0 ended at 40, which ended the first attempt. Rank 1 is late, and does not end the burst.
    story = account(
        started(0, rank=0), started(1, rank=1), loaded(0, 11), saved(20, 31), terminated(40, rank=0),
        started(60, rank=0), terminated(62, rank=1), started(64, rank=1),
        loaded(20, 74), saved(40, 94), job_finished(94),
        reference=1,
    )  # fmt: skip
    assert story.attempts == 2
    assert story.seconds == ledger(other=1, restore=20, productive=40, wasted=9, recovery=24)


def test_late_crash_in_a_burst_ends_the_attempt_before() -> None:
    story = account(
        started(0, rank=0), started(1, rank=1), loaded(0, 11), saved(20, 31),
        started(60, rank=0), crashed(62, rank=1), started(64, rank=1),
        loaded(20, 74), saved(40, 94), job_finished(94),
        reference=1,
    )  # fmt: skip
    assert (story.attempts, story.analysis.job.ending) == (2, "clean")
    assert story.seconds == ledger(other=1, restore=20, productive=40, wasted=29, recovery=4)


def test_termination_of_a_started_rank_ends_this_attempt() -> None:
    story = account(
        started(0, rank=0), started(1, rank=1), loaded(0, 11), saved(20, 31),
        started(60, rank=0), terminated(62, rank=0), started(64, rank=0), started(65, rank=1),
        loaded(20, 75), saved(40, 95), job_finished(95),
        reference=1,
    )  # fmt: skip
    assert story.attempts == 3
    assert story.seconds == ledger(other=1, restore=20, productive=40, undetermined=29, recovery=5)


# Steps that go back: restarts without a start line, and second hosts


def test_steps_that_go_back_begin_an_attempt() -> None:
    story = account(start(0), steps(0, 4, at=10), steps(2, 4, at=70), end(110))
    assert (story.attempts, story.disruptions) == (2, 1)
    assert story.found("restart_without_start") == 1
    assert story.seconds == ledger(productive=60, wasted=10, recovery=30, other=10)


def test_restart_begins_at_the_first_start_up_event() -> None:
    story = account(start(0), steps(0, 4, at=10), prep(60, 70), steps(2, 4, at=70), end(110))
    assert story.attempts == 2
    assert story.seconds == ledger(productive=60, wasted=10, recovery=20, prep=10, other=10)


def test_restart_begins_at_an_end_edge_of_start_up() -> None:
    story = account(start(0), steps(0, 4, at=10), init(None, 60), steps(2, 4, at=70), end(110))
    assert story.attempts == 2
    assert story.seconds == ledger(productive=60, wasted=10, recovery=20, other=20)


def test_two_hosts_with_the_same_steps_are_one_attempt() -> None:
    story = account(start(0), steps(0, 6, at=10), steps(0, 6, at=14), end(70))
    assert story.attempts == 1
    assert story.found("multi_host_duplicates") == 6
    assert story.seconds == ledger(productive=60, other=10)


def test_earliest_report_of_a_step_counts() -> None:
    story = account(start(0), steps(0, 6, at=14), steps(0, 6, at=10), end(70))
    assert story.seconds == ledger(productive=60, other=10)
    assert story.lines("multi_host_duplicates") == [2, 3, 4, 5, 6, 7]


def test_two_hosts_a_step_apart_are_one_attempt() -> None:
    # Every report of the second host comes 12 s after the first one's, after the next number.
    story = account(start(0), steps(0, 6, at=10), steps(0, 6, at=22), end(80))
    assert story.attempts == 1
    assert story.found("multi_host_duplicates") == 6
    assert story.seconds == ledger(productive=60, other=20)


def test_distant_hosts_are_one_attempt_while_steps_go_on() -> None:
    # 25 s apart is more than two steps, but 3 arrives before 1 and 2 repeat. The last two reports are judged by the
    # longest delay before.
    story = account(start(0), steps(0, 6, at=10), steps(0, 6, at=35), end(90))
    assert story.attempts == 1
    assert story.found("multi_host_duplicates") == 6
    assert story.seconds == ledger(productive=60, other=30)


def test_restart_that_records_other_steps_is_no_second_host() -> None:
    # Steps 3, 5 and 7 do not repeat before 8 arrives, but that is 120 s after 7: a process repeated them.
    again = (step(number, at) for number, at in ((2, 100), (4, 120), (6, 140), (8, 160), (10, 180)))
    story = account(start(0), steps(0, 8, at=10), *again, end(200))
    assert story.attempts == 2
    assert story.found("multi_host_duplicates") == 0


def test_start_up_event_between_reports_is_a_restart() -> None:
    # Step 2 repeats after one step time. It could be from a second host, but an init precedes it.
    story = account(start(0), steps(0, 3, at=10), init(33, 38), steps(2, 3, at=40), end(70))
    assert story.attempts == 2
    assert story.found("multi_host_duplicates") == 0
    assert story.seconds == ledger(productive=50, recovery=3, init=5, other=12)


def test_step_after_the_next_start_does_not_continue() -> None:
    story = account(start(0), steps(0, 6, at=10), step(3, 200), start(220), steps(6, 3, at=230), end(260))
    assert story.attempts == 3
    assert story.seconds == ledger(productive=90, recovery=150, other=20)


# Lost start lines


def test_step_after_an_end_line_is_a_lost_start() -> None:
    story = account(start(0), steps(0, 3, at=10), end(40), steps(3, 3, at=100), end(130))
    assert (story.attempts, story.disruptions) == (2, 0)
    assert story.seconds == ledger(productive=60, stopped=60, other=10)


def test_initialization_after_an_end_line_is_a_lost_start() -> None:
    story = account(start(0), steps(0, 3, at=10), end(40), init(90, 100), steps(3, 3, at=100), end(130))
    assert story.attempts == 2
    assert story.seconds == ledger(productive=60, stopped=50, init=10, other=10)


def test_restore_after_a_termination_is_a_lost_start() -> None:
    story = account(start(0), steps(0, 3, at=10), terminated(40), restore(90, 10), steps(3, 3, at=100), end(130))
    assert (story.attempts, story.disruptions) == (2, 1)
    assert story.seconds == ledger(productive=60, recovery=50, restore=10, other=10)


def test_step_right_after_a_termination_continues_the_attempt() -> None:
    story = account(start(0), steps(0, 3, at=10), terminated(31), steps(3, 3, at=42), end(72))
    assert story.attempts == 1
    assert story.seconds == ledger(productive=62, other=10)


def test_step_two_step_times_after_the_last_is_a_lost_start() -> None:
    # One second of the last step passed, and is credited.
    story = account(start(0), steps(0, 3, at=10), terminated(31), steps(3, 3, at=52), end(82))
    assert story.attempts == 2
    assert story.seconds == ledger(productive=51, recovery=21, other=10)


def test_save_after_a_termination_begins_no_attempt() -> None:
    story = account(
        started(0), loaded(0, 10), saved(20, 30), terminated(35, rank=1), saved(40, 50), job_finished(50),
        reference=1,
    )  # fmt: skip
    assert story.attempts == 1
    assert story.seconds == ledger(restore=10, productive=40)


def test_log_without_a_first_start_line_has_an_attempt() -> None:
    story = account(init(0, 8), steps(0, 3, at=10), start(60), steps(3, 3, at=70), end(100))
    assert story.attempts == 2
    assert story.found("starts_mid_run") == 1
    assert story.seconds == ledger(init=8, productive=60, recovery=20, other=12)


def test_checkpoint_after_a_termination_is_a_lost_start() -> None:
    story = account(
        started(0), loaded(0, 10), saved(20, 30), terminated(40), loaded(20, 42), saved(40, 62), job_finished(62),
        reference=1,
    )  # fmt: skip
    assert story.attempts == 2
    assert story.seconds == ledger(restore=10, productive=40, wasted=10, recovery=2)


def test_load_after_progress_begins_an_attempt() -> None:
    story = account(
        started(0), loaded(0, 10), saved(20, 30), saved(40, 50), loaded(40, 80), saved(60, 100), job_finished(100),
        reference=1,
    )  # fmt: skip
    assert story.attempts == 2
    assert story.seconds == ledger(restore=10, productive=60, undetermined=30)


def test_load_attempt_begins_at_the_first_start_up_event() -> None:
    story = account(
        started(0), loaded(0, 10), saved(20, 30), saved(40, 50),
        init(70, 74), loaded(40, 80), saved(60, 100), job_finished(100),
        reference=1,
    )  # fmt: skip
    assert story.seconds == ledger(restore=16, init=4, productive=60, undetermined=20)


def test_loads_before_progress_begin_no_attempt() -> None:
    story = account(started(0), loaded(0, 10), loaded(0, 12), saved(20, 32), job_finished(32), reference=1)
    assert story.attempts == 1
    assert story.seconds == ledger(restore=12, productive=20)
