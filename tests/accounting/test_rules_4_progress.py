"""Accounting §4: progress of step logs. Kept steps, wasted steps, and the time of spans."""

from __future__ import annotations

from tests.support.story import (
    account,
    crashed,
    custom,
    end,
    finished,
    job_finished,
    ledger,
    loaded,
    loading,
    save,
    saved,
    start,
    started,
    step,
    steps,
    story_lines,
    terminated,
)

# Lineage


def test_lineage_of_three_attempts() -> None:
    story = account(
        start(0), steps(0, 101, at=10, every=1),
        start(200), steps(50, 11, at=210, every=1),
        start(300), steps(20, 11, at=310, every=1), end(321),
    )  # fmt: skip
    # Attempt 1 keeps 0..19 (20 s, and 80 s wasted), attempt 2 keeps none (10 s wasted), attempt 3 all 11 s.
    assert story.seconds == ledger(productive=31, wasted=90, recovery=170, other=30)


def test_rollback_can_undo_an_abandoned_branch() -> None:
    # Attempt 2 reached 6, so it cannot begin at 8. Attempt 3 resumes from attempt 1, which keeps 0..7.
    story = account(
        start(0), steps(0, 11, at=10), start(200), steps(5, 2, at=210), start(300), steps(8, 3, at=310), end(340)
    )
    # Attempt 1: 80 s kept, 20 s of 8 and 9 wasted. Attempt 2: 10 s of step 5 wasted; 6 never went on.
    assert story.seconds == ledger(productive=110, wasted=30, recovery=170, other=30)


def test_resumed_step_comes_from_a_branch_that_reached_it() -> None:
    story = account(
        start(0), steps(0, 11, at=10), start(200), steps(5, 3, at=210), start(300), steps(8, 3, at=310), end(340)
    )
    # Attempt 2 keeps 5..7, the last one credited up to 240; of attempt 1 that leaves 0..4.
    assert story.seconds == ledger(productive=110, wasted=50, recovery=150, other=30)


def test_resumed_step_comes_otherwise_from_the_farthest() -> None:
    story = account(
        start(0), steps(0, 4, at=10), start(100), steps(0, 2, at=110), start(200), steps(10, 3, at=210), end(240)
    )
    # Attempt 1 reached 3, attempt 2 only 1. Attempt 1 keeps all, its last step credited with one step time.
    assert story.seconds == ledger(productive=70, wasted=10, recovery=130, other=30)


def test_lineage_ends_at_the_last_attempt_with_steps() -> None:
    story = account(start(0), steps(0, 4, at=10), start(60), end(70))
    # No attempt resumed from its last step, and its end is not logged.
    assert story.seconds == ledger(productive=30, recovery=20, other=20)


def test_last_attempt_keeps_all_its_steps() -> None:
    story = account(start(0), steps(0, 4, at=10), start(60), steps(2, 6, at=70), end(130))
    assert story.kept_steps == 2 + 6


def test_crashed_checkpoint_log_keeps_only_saved_steps() -> None:
    story = account(started(0), loaded(0, 10), saved(20, 30), finished(40, 50), crashed(60), reference=1)
    assert story.seconds == ledger(restore=10, productive=20, wasted=30)


def test_lineage_of_checkpoint_logs_needs_the_exact_step() -> None:
    # The second attempt got to 50, and the third loads 60, which is a checkpoint of the first.
    story = account(
        started(0), loaded(0, 10), saved(60, 70), terminated(70),
        started(80), loaded(40, 90), saved(50, 100), terminated(100),
        started(110), loaded(60, 120), saved(80, 140), job_finished(140),
        reference=1,
    )  # fmt: skip
    assert story.seconds == ledger(restore=30, productive=80, wasted=10, recovery=20)


# Spans of step logs


def test_log_of_each_tenth_step_has_spans_of_ten() -> None:
    story = account(start(0), steps(0, 6, at=10, stride=10), start(100), steps(60, 3, at=110, stride=10), end(140))
    # 50 is the last record; the lineage resumes at 60, ten steps later: credited with ten steps of 1 s.
    assert story.seconds == ledger(productive=90, recovery=30, other=20)
    assert story.kept_steps == 90


def test_span_kept_in_part_is_split_by_steps() -> None:
    log = story_lines(start(0), steps(0, 6, at=10, stride=10), start(100), steps(35, 3, at=110, stride=10), end(140))
    whole = account(log)
    assert whole.seconds == ledger(productive=65, wasted=15, recovery=40, other=20)
    assert whole.kept_steps == 35 + 30
    # Steps 30..39 run from 40 to 50.
    assert account(log, window=(40, 45)).seconds == ledger(productive=5)
    assert account(log, window=(45, 50)).seconds == ledger(wasted=5)


def test_split_uses_net_time() -> None:
    # Eight of the ten seconds of steps 30..39 are an eval; half of the other two are kept.
    story = account(
        start(0), steps(0, 6, at=10, stride=10), custom("eval", 40, 48),
        start(100), steps(35, 3, at=110, stride=10), end(140),
    )  # fmt: skip
    assert story.seconds == ledger({"EVAL": 8}, productive=61, wasted=11, recovery=40, other=20)


def test_resumed_last_step_gets_usual_step_times() -> None:
    story = account(start(0), steps(0, 4, at=10), start(100), steps(4, 3, at=110), end(140))
    assert story.seconds == ledger(productive=70, recovery=50, other=20)


def test_credit_uses_gross_step_times() -> None:
    # Two of the ten seconds of a step are a save, the last one of the dead attempt included.
    saves = [save(at, 2) for at in (12, 22, 32, 42)]
    story = account(start(0), steps(0, 4, at=10), saves, start(100), steps(4, 3, at=110), end(140))
    assert story.seconds == ledger(productive=62, save=8, recovery=50, other=20)


def test_credit_is_cut_at_the_logged_termination() -> None:
    story = account(
        start(0), steps(0, 6, at=10, stride=10), terminated(64),
        start(100), steps(60, 3, at=110, stride=10), end(140),
    )  # fmt: skip
    assert story.seconds == ledger(productive=84, recovery=36, other=20)
    assert story.kept_steps == 50 + 4 + 30


def test_credit_is_otherwise_cut_at_the_next_start() -> None:
    story = account(start(0), steps(0, 6, at=10, stride=10), start(66), steps(60, 3, at=76, stride=10), end(106))
    assert story.seconds == ledger(productive=86, other=20)
    assert story.kept_steps == 50 + 6 + 30


def test_credit_prefers_the_own_first_span() -> None:
    # Attempt 1 has one span of 20 s: 10 s of start-up compared with other attempts. Its last step gets 20 s.
    story = account(start(0), steps(0, 2, at=10, every=20), start(100), steps(2, 4, at=110), end(150))
    assert story.seconds == ledger(startup=10, productive=70, recovery=50, other=20)


def test_redone_last_step_is_wasted_up_to_last_activity() -> None:
    story = account(start(0), steps(0, 4, at=10), terminated(47), start(100), steps(3, 3, at=110), end(140))
    assert story.seconds == ledger(productive=60, wasted=7, recovery=53, other=20)


# The last step of the job


def test_range_of_kept_steps_omits_a_lost_last_step() -> None:
    lost = account(start(0), steps(0, 4, at=10), terminated(45), start(60)).analysis.job
    assert (lost.kept_steps, lost.kept_range, lost.last_step) == (3, (0, 2), 3)
    in_flight = account(start(0), steps(0, 4, at=10), as_of=45).analysis.job
    assert (in_flight.kept_steps, in_flight.kept_range, in_flight.last_step) == (3, (0, 2), 3)
    every_tenth = account(start(0), steps(0, 4, at=10, stride=10), end(50)).analysis.job
    assert (every_tenth.kept_steps, every_tenth.kept_range, every_tenth.last_step) == (40, (0, 39), 30)
    cut = account(start(0), steps(0, 4, at=10, every=10, stride=10), end(41)).analysis.job
    assert (cut.kept_steps, cut.kept_range) == (31, (0, 30))
    nothing = account(start(0), steps(0, 4, at=10), terminated(45), start(60), window=(42, 44)).analysis.job
    assert (nothing.kept_steps, nothing.kept_range) == (0, None)
    saves = account(started(0), loaded(20, 10), saved(40, 30), job_finished(30)).analysis.job
    assert (saves.kept_steps, saves.kept_range) == (20, (20, 40))


def test_hang_after_the_last_step_is_other() -> None:
    story = account(start(0), steps(0, 6, at=10), end(200))
    assert story.seconds == ledger(productive=60, other=140)


def test_last_step_counts_for_a_stride_of_steps() -> None:
    story = account(start(0), steps(0, 6, at=10, stride=10), end(200))
    assert story.seconds == ledger(productive=60, other=140)
    assert story.kept_steps == 60


def test_last_step_uses_net_time() -> None:
    story = account(start(0), steps(0, 6, at=10), custom("eval", 65, 85), end(90))
    assert story.seconds == ledger({"EVAL": 20}, productive=60, other=10)


def test_last_step_is_productive_without_a_usual_step_time() -> None:
    assert account(start(0), step(0, 10), end(60)).seconds == ledger(productive=50, other=10)


def test_last_step_uses_the_own_first_span() -> None:
    assert account(start(0), steps(0, 2, at=10), end(100)).seconds == ledger(productive=20, other=80)


def test_last_step_without_termination_is_in_progress() -> None:
    story = account(start(0), steps(0, 6, at=10), as_of=65)
    assert story.seconds == ledger(productive=50, other=15)


def test_last_step_is_in_flight_for_data_loading() -> None:
    in_progress = account(start(0), steps(0, 3, at=10), loading(35, 38), as_of=50)
    assert in_progress.seconds == ledger(productive=20, other=30)
    ended = account(start(0), steps(0, 3, at=10), loading(35, 38), end(40))
    assert ended.seconds == ledger(productive=30, other=10)
    assert (in_progress.overlapped, ended.overlapped) == (3, 3)


# Usual step time, start-up


def test_usual_step_time_ignores_excluded_spans() -> None:
    # Step 2 takes 20 s, two of them excluded. By step 1 alone 10 s are usual, which the last step gets.
    story = account(start(0), steps(0, 3, at=10), step(3, 50), end(68), exclude=[(40, 42)])
    assert story.seconds == ledger(productive=48, excluded=2, other=18)


def with_a_first_step_of(seconds: float) -> list[str]:
    """Return a log whose other steps take 8, 10 and 12 s: median 10, median absolute deviation 2. The last one gets 10
    s."""
    begin = 10 + seconds
    return story_lines(start(0), step(0, 10), *(step(n, begin + at) for n, at in ((1, 0), (2, 8), (3, 18), (4, 30))),
                end(begin + 40))  # fmt: skip


def test_startup_is_above_the_median_by_more_than_3_mad() -> None:
    assert account(with_a_first_step_of(16)).seconds == ledger(productive=56, other=10)
    assert account(with_a_first_step_of(17)).seconds == ledger(startup=7, productive=50, other=10)


def test_startup_is_net_time() -> None:
    # The first step takes 30 s, but 20 of them are a restore.
    story = account(start(0), step(0, 10), custom("warm", 12, 32), steps(1, 5, at=40), end(90))
    assert story.seconds == ledger({"WARM": 20}, productive=60, other=10)


def test_startup_is_at_the_beginning_of_the_span() -> None:
    log = story_lines(start(0), step(0, 10), steps(1, 5, at=70), end(120))
    assert account(log, window=(10, 60)).seconds == ledger(startup=50)
    assert account(log, window=(60, 70)).seconds == ledger(productive=10)


def test_span_kept_in_part_is_split_after_startup() -> None:
    # Steps 0..9 take 60 s where 10 s are usual; of the 10 s half are kept.
    story = account(
        start(0), step(0, 10), step(10, 70), step(20, 80),
        start(100), steps(5, 3, at=110, stride=10), end(140),
    )  # fmt: skip
    assert story.seconds == ledger(startup=50, productive=35, wasted=15, recovery=20, other=20)


def test_log_that_starts_within_a_run_has_no_startup() -> None:
    story = account(step(0, 0), steps(1, 5, at=40), end(90))
    assert story.seconds == ledger(productive=90)


def test_later_attempt_with_a_lost_start_has_startup() -> None:
    story = account(start(0), steps(0, 4, at=10), step(2, 70), steps(3, 4, at=100), end(140))
    assert story.seconds == ledger(startup=20, productive=70, wasted=10, recovery=30, other=10)


def test_warm_up_after_a_restart_is_startup() -> None:
    story = account(
        started(0), loaded(0, 10), saved(20, 30), saved(40, 50), saved(60, 70), terminated(70),
        started(90), loaded(60, 100), saved(80, 150), saved(100, 170), job_finished(170),
        reference=1,
    )  # fmt: skip
    assert story.seconds == ledger(restore=20, productive=100, startup=30, recovery=20)


def test_initial_save_before_training_is_save_time() -> None:
    story = account(start(0), save(2, 4), steps(0, 3, at=10), end(40))
    assert story.seconds == ledger(save=4, productive=30, other=6)
