"""Accounting §3: how attempts end. Clean ends and disruptions, the last sign of life, lost end lines."""

from __future__ import annotations

from goodput_cli.analysis.goodput.phrases import all_headline_warnings
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
    save,
    saved,
    scheduled,
    slices,
    start,
    started,
    steps,
    story_lines,
    terminated,
)

# Clean ends and disruptions


def test_crash_right_after_a_checkpoint_is_a_disruption() -> None:
    # Step 2 ends with its save at 40. The new attempt goes on at step 3: only the downtime is lost.
    story = account(start(0), steps(0, 3, at=10), save(36, 4, number=2), start(100), steps(3, 3, at=110), end(140))
    assert story.disruptions == 1
    assert story.seconds == ledger(productive=56, save=4, recovery=60, other=20)


def test_clean_end_and_a_later_start_are_not_disruption() -> None:
    story = account(start(0), steps(0, 3, at=10), end(40), start(1000), steps(3, 3, at=1010), end(1040))
    assert (story.attempts, story.disruptions) == (2, 0)
    assert story.seconds == ledger(productive=60, stopped=960, other=20)


def test_stragglers_do_not_move_a_clean_end() -> None:
    story = account(
        start(0), steps(0, 3, at=10), end(40), save(41, 2), end(44), start(90), steps(3, 3, at=100), end(130)
    )
    assert story.disruptions == 0
    assert story.seconds == ledger(productive=60, stopped=50, other=20)


def test_save_reported_after_a_clean_end_does_not_undo_it() -> None:
    story = account(
        start(0), steps(0, 3, at=10), end(40), saved(2, 40.5), start(90), steps(3, 3, at=100), end(130), saved(5, 130.5)
    )
    assert (story.disruptions, story.analysis.job.ending) == (0, "clean")
    assert story.seconds == ledger(productive=60, stopped=50, other=20.5)


def test_repeated_save_after_the_end_adds_nothing() -> None:
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
    # A step above all before is progress: the attempt was still running, and its end is not logged.
    alive = night(terminated(40), saved(30, 41, rank=1))
    assert alive.seconds["disruption_undetermined"] == 9


def test_background_save_does_not_undo_a_clean_end() -> None:
    story = account(
        started(0), loaded(0, 10), finished(20, 30), finished(40, 50), job_finished(52), saved(40, 53),
        started(60), loaded(40, 70), finished(60, 90), job_finished(90),
        async_saves=True, reference=1,
    )  # fmt: skip
    assert story.disruptions == 0
    assert story.seconds["stopped"] == 8


def test_late_end_of_an_old_rank_costs_the_next_nothing() -> None:
    story = account(
        *(started(0, rank=rank) for rank in range(3)), loaded(0, 10), saved(10, 30),
        started(60, rank=0), started(62, rank=1), terminated(100, rank=2), loaded(10, 110), saved(20, 130),
        job_finished(130), reference=1,
    )  # fmt: skip
    assert story.disruptions == 1
    assert story.seconds == ledger(restore=10 + 48, productive=20, slowdown=20, wasted=30, recovery=2)
    assert story.analysis.reliability is not None
    assert story.analysis.reliability.exposure_ns == (60 + 68) * 10**9


def test_repeated_save_after_a_crash_moves_no_bound() -> None:
    log = story_lines(
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


def test_job_end_written_by_a_crash_is_not_believed() -> None:
    # Step 3 was in progress when the job died at 45; it is redone.
    story = account(start(0), steps(0, 4, at=10), end(45), start(70), steps(3, 3, at=80), end(110))
    assert story.disruptions == 1
    assert story.found("end_not_believed") == 1
    assert story.seconds == ledger(productive=60, wasted=5, recovery=25, other=20)


def test_planned_option_decides_about_stops() -> None:
    """Step 3 is redone after a save and a job end: a disruption, unless it was planned."""
    redone = story_lines(
        start(0), steps(0, 4, at=10), save(42, 1, number=3), end(45), start(70), steps(3, 3, at=80), end(110)
    )
    doubted, planned = account(redone), account(redone, planned="yes")
    (said,) = (one.message for one in doubted.analysis.diagnostics if one.code == "planned_or_not")
    assert (
        "1 with a job end after a checkpoint, but repeated steps (if planned: goodput 54.55 %, 0 disruptions)" in said
    )
    assert "`planned = true` (or false) under [job." in said
    assert said in all_headline_warnings(doubted.analysis)
    assert (doubted.disruptions, planned.disruptions, planned.analysis.job.ending) == (1, 0, "clean")
    assert planned.seconds == ledger(productive=60, stopped=25, other=20, wasted=5)  # the save is in the wasted time
    no = account(redone, planned="no")
    assert (no.seconds, no.found("planned_or_not"), no.analysis.job.ending) == (doubted.seconds, 0, "clean")
    resumed = story_lines(start(0), steps(0, 4, at=10), end(45), start(70), steps(4, 3, at=80), end(110))
    assert (account(resumed).disruptions, account(resumed).found("planned_or_not")) == (0, 0)
    assert account(resumed, planned="no").disruptions == 1
    unsaved = story_lines(start(0), steps(0, 4, at=10), end(45), start(70), steps(3, 3, at=80), end(110))
    assert account(unsaved).found("planned_or_not") == 0  # no save was expected from a stop
    assert account(unsaved, planned="yes").disruptions == 0


def test_unexplained_termination_may_be_planned() -> None:
    """No step is redone after it. A crash or a redone step shows that it was not planned."""
    log = story_lines(
        start(0), steps(0, 4, at=10), save(42, 1, number=3), terminated(45), start(70), steps(4, 3, at=80), end(110)
    )
    assert (account(log).found("planned_or_not"), account(log).disruptions) == (1, 1)
    planned = account(log, planned="yes")
    assert (planned.disruptions, planned.seconds["stopped"]) == (0, 25)
    crash = story_lines(start(0), steps(0, 4, at=10), crashed(45), start(70), steps(4, 3, at=80), end(110))
    again = story_lines(start(0), steps(0, 4, at=10), terminated(45), start(70), steps(3, 3, at=80), end(110))
    for story in (account(crash), account(again), account(crash, planned="yes")):
        assert (story.found("planned_or_not"), story.disruptions) == (0, 1)


def test_as_of_before_steps_are_redone_is_a_planned_stop() -> None:
    log = story_lines(start(0), steps(0, 4, at=10), end(45), start(70), steps(3, 3, at=80), end(110))
    at_the_end = account(log, as_of=60)
    assert at_the_end.seconds == ledger(productive=35, other=10)  # the job has ended
    starting_again = account(log, as_of=75)  # looks like a planned stop: no lineage has resumed from step 3 yet
    assert starting_again.seconds == ledger(productive=30, wasted=5, stopped=25, other=15)


def test_next_attempt_with_steps_decides_about_a_job_end() -> None:
    story = account(start(0), steps(0, 4, at=10), end(45), start(55), start(70), steps(3, 3, at=80), end(110))
    assert (story.attempts, story.disruptions) == (3, 2)
    assert story.seconds == ledger(productive=60, wasted=5, recovery=25, other=20)


# The last sign of life


def test_last_activity_is_the_termination_after_last_step() -> None:
    story = account(
        start(0), steps(0, 3, at=10), terminated(33), terminated(50), start(60), steps(1, 4, at=70), end(110)
    )
    assert story.seconds == ledger(productive=50, wasted=13, recovery=27, other=20)


def test_last_activity_is_otherwise_the_end_of_a_save() -> None:
    story = account(start(0), steps(0, 3, at=10), save(32, 8), start(60), steps(1, 4, at=70), end(110))
    assert story.seconds == ledger(productive=50, wasted=20, recovery=20, other=20)


def test_start_up_after_the_last_step_is_not_activity() -> None:
    story = account(start(0), steps(0, 3, at=10), init(35, 38), start(60), steps(1, 4, at=70), end(110))
    assert story.seconds == ledger(productive=50, wasted=10, recovery=30, other=20)


def test_all_events_of_an_attempt_without_steps_are_activity() -> None:
    # The second attempt initialized from 62 to 70 and died.
    story = account(
        start(0), steps(0, 3, at=10), start(60), init(62, 70), start(90), steps(3, 3, at=100), end(130)
    )  # fmt: skip
    assert story.attempts == 3
    assert story.seconds == ledger(productive=60, recovery=42, init=8, other=20)


def test_scheduled_lines_and_slice_counts_are_not_activity() -> None:
    story = account(
        start(0), steps(0, 3, at=10), slices(1, 1, 2, at=45), scheduled(50), start(60), steps(1, 4, at=70), end(110)
    )
    assert story.seconds == ledger(productive=50, wasted=10, recovery=20, queued=10, other=20)


def test_last_activity_includes_a_credited_last_step() -> None:
    story = account(start(0), steps(0, 3, at=10), start(60), steps(3, 3, at=70), end(100))
    assert story.seconds["infrastructure_recovery_from_disruption"] == 60 - 40


# Lost end lines


def test_lost_end_line_ends_at_the_next_step() -> None:
    story = account(start(0), prep(4), steps(0, 6, at=10), custom("eval", 22), end(70))
    assert story.seconds == ledger({"EVAL": 8}, prep=6, productive=52, other=4)
    assert story.lines("open_interval") == [2, 9]


def test_lost_end_line_ends_at_the_next_checkpoint_event() -> None:
    story = account(started(0), init(2), loaded(0, 10), saved(20, 30), job_finished(30), reference=1)
    assert story.seconds == ledger(init=8, restore=2, productive=20)


def test_lost_end_line_ends_at_the_next_start_of_its_label() -> None:
    story = account(start(0), steps(0, 6, at=10), custom("eval", 22), custom("eval", 25, 28), end(70))
    assert story.seconds == ledger({"EVAL": 6}, productive=54, other=10)
    assert story.found("open_interval") == 1


def test_lost_end_line_ignores_starts_of_another_label() -> None:
    story = account(start(0), steps(0, 6, at=10), custom("eval", 22), custom("check", 25, 28), end(70))
    assert story.seconds == ledger({"EVAL": 5, "CHECK": 3}, productive=52, other=10)


def test_lost_end_line_ends_at_the_end_of_the_attempt() -> None:
    story = account(start(0), steps(0, 3, at=10), custom("eval", 36), end(40))
    assert story.seconds == ledger({"EVAL": 4}, productive=26, other=10)


def test_lost_end_line_ends_at_the_last_activity() -> None:
    story = account(
        start(0), steps(0, 3, at=10), custom("eval", 34), save(36, 4), start(60), steps(3, 2, at=70), end(90)
    )
    assert story.seconds == ledger({"EVAL": 2}, save=4, productive=44, recovery=20, other=20)


def test_start_of_a_later_attempt_ends_no_earlier_phase() -> None:
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


def test_lost_end_line_of_the_last_attempt_ends_at_t1() -> None:
    story = account(start(0), steps(0, 3, at=10), custom("eval", 34), save(40, 5))
    assert story.seconds == ledger({"EVAL": 6}, save=5, productive=20, other=14)


def test_open_data_load_is_dropped_if_training_went_on() -> None:
    story = account(start(0), loading(2), steps(0, 3, at=10), end(40))
    assert story.seconds == ledger(productive=30, other=10)
    assert (story.overlapped, story.found("open_interval")) == (0, 1)


def test_open_data_load_counts_if_nothing_follows() -> None:
    story = account(start(0), loading(2), end(20))
    assert story.seconds == ledger(loading=18, other=2)


def test_end_line_without_a_start_is_dropped() -> None:
    story = account(start(0), init(None, 8), steps(0, 3, at=10), end(40))
    assert story.seconds == ledger(productive=30, other=10)
    assert story.lines("orphan_end") == [2]
