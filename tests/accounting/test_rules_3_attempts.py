"""Accounting §3: attempts and disruptions. Which life of the job a line belongs to, and how each life ended."""

from __future__ import annotations

from tests.support.story import (
    BASE,
    Account,
    account,
    crashed,
    custom,
    end,
    finished,
    init,
    job_finished,
    ledger,
    loaded,
    loading,
    prep,
    restore,
    save,
    saved,
    scheduled,
    slices,
    start,
    started,
    step,
    steps,
    terminated,
    told,
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


# Clean ends and disruptions


def test_a_crash_right_after_a_checkpoint_is_a_disruption_though_no_step_is_seen_twice() -> None:
    # Step 2 ends with its save at 40; the new life goes on at 3: nothing is lost but the time it was down.
    story = account(start(0), steps(0, 3, at=10), save(36, 4, number=2), start(100), steps(3, 3, at=110), end(140))
    assert story.disruptions == 1
    assert story.seconds == ledger(productive=56, save=4, recovery=60, other=20)


def test_a_clean_end_and_a_later_start_are_no_disruption() -> None:
    story = account(start(0), steps(0, 3, at=10), end(40), start(1000), steps(3, 3, at=1010), end(1040))
    assert (story.attempts, story.disruptions) == (2, 0)
    assert story.seconds == ledger(productive=60, stopped=960, other=20)


def test_stragglers_after_a_clean_end_do_not_move_it() -> None:
    story = account(
        start(0), steps(0, 3, at=10), end(40), save(41, 2), end(44), start(90), steps(3, 3, at=100), end(130)
    )
    assert story.disruptions == 0
    assert story.seconds == ledger(productive=60, stopped=50, other=20)


def test_a_save_reported_behind_a_clean_end_does_not_undo_it() -> None:
    story = account(
        start(0), steps(0, 3, at=10), end(40), saved(2, 40.5), start(90), steps(3, 3, at=100), end(130), saved(5, 130.5)
    )
    assert (story.disruptions, story.analysis.job.ending) == (0, "clean")
    assert story.seconds == ledger(productive=60, stopped=50, other=20.5)


def test_a_repeated_save_behind_the_end_of_a_checkpoint_log_adds_nothing() -> None:
    def night(*lines: str) -> Account:
        return account(
            started(0), loaded(0, 10), finished(20, 30), saved(20, 31), *lines,
            started(50), loaded(20, 60), saved(40, 80), job_finished(80), reference=1,
        )  # fmt: skip

    clean = night(job_finished(40), saved(20, 41, rank=1))
    assert clean.disruptions == 0
    assert clean.seconds == ledger(restore=20, productive=40, save=1, wasted=9, stopped=10)
    down = night(terminated(40), saved(20, 41, rank=1))
    assert down.disruptions == 1
    assert down.seconds == ledger(restore=20, productive=40, save=1, wasted=9, recovery=10)
    # A step above all before is progress: the attempt was still alive, and how it died is not logged.
    alive = night(terminated(40), saved(30, 41, rank=1))
    assert alive.seconds["disruption_undetermined"] == 9


def test_a_save_that_ends_in_the_background_behind_a_clean_end_does_not_undo_it() -> None:
    story = account(
        started(0), loaded(0, 10), finished(20, 30), finished(40, 50), job_finished(52), saved(40, 53),
        started(60), loaded(40, 70), finished(60, 90), job_finished(90),
        async_saves=True, reference=1,
    )  # fmt: skip
    assert story.disruptions == 0
    assert story.seconds["stopped"] == 8


def test_a_rank_of_the_old_attempt_that_ends_later_takes_nothing_from_the_next_one() -> None:
    story = account(
        *(started(0, rank=rank) for rank in range(3)), loaded(0, 10), saved(10, 30),
        started(60, rank=0), started(62, rank=1), terminated(100, rank=2), loaded(10, 110), saved(20, 130),
        job_finished(130), reference=1,
    )  # fmt: skip
    assert story.disruptions == 1
    assert story.seconds == ledger(restore=10 + 48, productive=20, slowdown=20, wasted=30, recovery=2)
    assert story.analysis.reliability is not None
    assert story.analysis.reliability.exposure_ns == (60 + 68) * 10**9


def test_a_repeated_save_behind_a_crash_moves_no_bound_of_the_disruption() -> None:
    log = told(
        start(0), steps(0, 4, at=10), crashed(45), saved(3, 55), start(80), steps(2, 3, at=90), end(120)
    )  # fmt: skip
    story = account(log)
    assert story.seconds == ledger(productive=50, wasted=15, recovery=35, other=20)
    (row,) = story.analysis.disruptions
    assert (row.ended, row.last_sign_of_life_ns, row.death_latest_ns) == ("crashed", *[(BASE + 45) * 10**9] * 2)
    assert (
        account(start(0), steps(0, 3, at=10), end(40), saved(2, 41), as_of=500).analysis.window.end_ns
        == (BASE + 41) * 10**9
    )


def test_a_job_end_written_by_a_crash_is_not_believed() -> None:
    # Step 3 was on its way when the job died at 45; it is redone.
    story = account(start(0), steps(0, 4, at=10), end(45), start(70), steps(3, 3, at=80), end(110))
    assert story.disruptions == 1
    assert story.found("end_not_believed") == 1
    assert story.seconds == ledger(productive=60, wasted=5, recovery=25, other=20)


def test_what_was_known_before_the_steps_were_redone_is_another_matter() -> None:
    log = told(start(0), steps(0, 4, at=10), end(45), start(70), steps(3, 3, at=80), end(110))
    at_the_end = account(log, as_of=60)
    assert at_the_end.seconds == ledger(productive=35, other=10)  # the job has ended
    starting_again = account(log, as_of=75)  # a planned stop, as far as one knows; no lineage resumed from step 3 yet
    assert starting_again.seconds == ledger(productive=30, wasted=5, stopped=25, other=15)


def test_the_next_attempt_that_steps_decides_not_a_start_that_led_nowhere() -> None:
    story = account(start(0), steps(0, 4, at=10), end(45), start(55), start(70), steps(3, 3, at=80), end(110))
    assert (story.attempts, story.disruptions) == (3, 2)
    assert story.seconds == ledger(productive=60, wasted=5, recovery=25, other=20)


# The last sign of life


def test_the_last_sign_of_life_is_the_first_termination_after_the_last_step() -> None:
    story = account(
        start(0), steps(0, 3, at=10), terminated(33), terminated(50), start(60), steps(1, 4, at=70), end(110)
    )
    assert story.seconds == ledger(productive=50, wasted=13, recovery=27, other=20)


def test_else_it_is_the_end_of_the_last_event_such_as_a_save() -> None:
    story = account(start(0), steps(0, 3, at=10), save(32, 8), start(60), steps(1, 4, at=70), end(110))
    assert story.seconds == ledger(productive=50, wasted=20, recovery=20, other=20)


def test_start_up_events_after_the_last_step_are_no_sign_of_life() -> None:
    story = account(start(0), steps(0, 3, at=10), init(35, 38), start(60), steps(1, 4, at=70), end(110))
    assert story.seconds == ledger(productive=50, wasted=10, recovery=30, other=20)


def test_of_an_attempt_without_steps_all_events_count() -> None:
    # The second life initialised from 62 to 70 and died.
    story = account(
        start(0), steps(0, 3, at=10), start(60), init(62, 70), start(90), steps(3, 3, at=100), end(130)
    )  # fmt: skip
    assert story.attempts == 3
    assert story.seconds == ledger(productive=60, recovery=42, init=8, other=20)


def test_scheduled_and_slice_counts_are_no_sign_of_life() -> None:
    story = account(
        start(0), steps(0, 3, at=10), slices(1, 1, 2, at=45), scheduled(50), start(60), steps(1, 4, at=70), end(110)
    )
    assert story.seconds == ledger(productive=50, wasted=10, recovery=20, queued=10, other=20)


def test_it_is_at_least_the_end_of_a_credited_last_step() -> None:
    story = account(start(0), steps(0, 3, at=10), start(60), steps(3, 3, at=70), end(100))
    assert story.seconds["infrastructure_recovery_from_disruption"] == 60 - 40


# Lost end lines


def test_a_lost_end_line_ends_at_the_next_step() -> None:
    story = account(start(0), prep(4), steps(0, 6, at=10), custom("eval", 22), end(70))
    assert story.seconds == ledger({"EVAL": 8}, prep=6, productive=52, other=4)
    assert story.lines("open_interval") == [2, 9]


def test_or_at_the_next_checkpoint_event() -> None:
    story = account(started(0), init(2), loaded(0, 10), saved(20, 30), job_finished(30), reference=1)
    assert story.seconds == ledger(init=8, restore=2, productive=20)


def test_or_at_the_next_start_of_the_same_phase_and_label_if_that_is_sooner() -> None:
    story = account(start(0), steps(0, 6, at=10), custom("eval", 22), custom("eval", 25, 28), end(70))
    assert story.seconds == ledger({"EVAL": 6}, productive=54, other=10)
    assert story.found("open_interval") == 1


def test_not_at_the_start_of_another_label() -> None:
    story = account(start(0), steps(0, 6, at=10), custom("eval", 22), custom("check", 25, 28), end(70))
    assert story.seconds == ledger({"EVAL": 5, "CHECK": 3}, productive=52, other=10)


def test_if_neither_comes_at_the_end_of_the_attempt() -> None:
    story = account(start(0), steps(0, 3, at=10), custom("eval", 36), end(40))
    assert story.seconds == ledger({"EVAL": 4}, productive=26, other=10)


def test_else_at_its_last_sign_of_life() -> None:
    story = account(
        start(0), steps(0, 3, at=10), custom("eval", 34), save(36, 4), start(60), steps(3, 2, at=70), end(90)
    )
    assert story.seconds == ledger({"EVAL": 2}, save=4, productive=44, recovery=20, other=20)


def test_a_start_line_of_a_later_attempt_ends_nothing_of_an_earlier_one() -> None:
    story = account(
        start(0),
        steps(0, 3, at=10),
        custom("eval", 34),
        save(36, 4),
        steps(2, 3, at=60),
        custom("eval", 92, 95),
        end(99),
    )
    assert story.seconds == ledger({"EVAL": 3}, productive=50, wasted=10, recovery=20, other=16)


def test_or_in_the_last_attempt_at_t1() -> None:
    story = account(start(0), steps(0, 3, at=10), custom("eval", 34), save(40, 5))
    assert story.seconds == ledger({"EVAL": 6}, save=5, productive=20, other=14)


def test_a_data_load_left_open_is_dropped_if_training_went_on() -> None:
    story = account(start(0), loading(2), steps(0, 3, at=10), end(40))
    assert story.seconds == ledger(productive=30, other=10)
    assert (story.overlapped, story.found("open_interval")) == (0, 1)


def test_a_data_load_left_open_counts_if_no_step_and_no_load_follows() -> None:
    story = account(start(0), loading(2), end(20))
    assert story.seconds == ledger(loading=18, other=2)


def test_an_end_line_without_a_start_is_dropped() -> None:
    story = account(start(0), init(None, 8), steps(0, 3, at=10), end(40))
    assert story.seconds == ledger(productive=30, other=10)
    assert story.lines("orphan_end") == [2]
