"""Accounting §1: the promise. Any time of the job window is in exactly one category, for any log."""

from __future__ import annotations

from itertools import pairwise

import pytest

from goodput_cli.errors import NotEnoughData
from tests.support.story import (
    account,
    crashed,
    custom,
    end,
    finished,
    init,
    job_finished,
    ledger,
    loaded,
    save,
    saved,
    scheduled,
    start,
    started,
    step,
    steps,
    story_lines,
    terminated,
)

PLAIN = story_lines(start(0), steps(0, 6, at=10), end(70))
"""10 s until the first step, then six steps of 10 s."""
STEPS = ledger(productive=60, other=10)

FORTY_STEPS = story_lines(started(0), loaded(0, 10), saved(20, 30), saved(40, 50))
"""A checkpoint log: 10 s until the load, then two times 20 steps of 1 s."""


# Times and sums


def test_categories_add_up_to_the_window() -> None:
    plain = account(PLAIN)
    assert plain.seconds == STEPS
    assert plain.total == 70


def test_times_are_rounded_to_microseconds_half_to_even() -> None:
    lower, upper = 0.0078125, 0.0234375  # 7812.5 and 23437.5 microseconds, which floats hold exactly
    assert account(start(0), step(0, 10), end(20 + lower)).total == 20.007812
    assert account(start(0), step(0, 10), end(20 + upper)).total == 20.023438


def test_durations_are_rounded_to_microseconds_half_to_even() -> None:
    told_of_saves = account(PLAIN, save(12, 0.0078125), save(22, 0.0234375))
    assert told_of_saves.seconds["unproductive_checkpoint_save_time"] == 0.007812 + 0.023438


@pytest.mark.parametrize(("resumed", "kept_ns"), [(1, 625_000_062), (3, 1_875_000_188)])
def test_split_is_rounded_once_half_to_even(resumed: int, kept_ns: int) -> None:
    # Sixteen steps in 10.000001 s: one of them is 625 000 062.5 ns, three of them 1 875 000 187.5 ns.
    story = account(
        start(0), step(0, 10), step(16, 20.000001),
        start(40), steps(resumed, 3, at=50, every=20, stride=16), end(110),
    )  # fmt: skip
    amounts = {row.name: row.ns for row in (story.analysis.goodput, *story.analysis.badput)}
    assert amounts["productive"] == 60 * 10**9 + kept_ns
    assert amounts["wasted_progress_from_disruption"] == 10_000_001_000 - kept_ns


def test_time_without_a_rule_is_other() -> None:
    assert account(start(0), init(20, 30), end(100)).seconds == ledger(init=10, other=90)


def test_malformed_line_gives_a_diagnostic_with_its_line() -> None:
    story = account(PLAIN, custom("eval", 22, None), init(None, 4))
    assert story.lines("open_interval") == [len(PLAIN) + 1]
    assert story.lines("orphan_end") == [len(PLAIN) + 2]


@pytest.mark.parametrize("events", [[start(0)], [start(0), init(0)]])
def test_events_without_duration_are_not_enough_data(events: list[str]) -> None:
    with pytest.raises(NotEnoughData):
        account(story_lines(*events))


# T0


def test_t0_is_the_first_start_line() -> None:
    assert account(init(-5, 4), PLAIN).seconds == ledger(init=4, productive=60, other=6)


def test_t0_is_the_scheduled_line_if_first() -> None:
    story = account(scheduled(-60), PLAIN)
    assert story.seconds == ledger(queued=60, productive=60, other=10)


def test_t0_is_the_first_event_if_a_step_precedes_the_start() -> None:
    # The log was cut: an eval and two steps of an attempt whose start is lost, then a start.
    story = account(custom("eval", -5, -2), steps(0, 2, at=0), start(30), steps(2, 3, at=40), end(70))
    assert story.total == 75
    assert story.found("starts_mid_run") == 1


def test_t0_is_the_first_event_without_a_start() -> None:
    story = account(init(0, 8), steps(0, 6, at=10), end(70))
    assert story.seconds == ledger(init=8, productive=60, other=2)
    assert story.lines("starts_mid_run") == [1]


# T1 and --as-of


def test_t1_is_the_end_of_the_last_event() -> None:
    # The step that begins at 30 is in flight, eight seconds of it are the save.
    assert account(start(0), steps(0, 3, at=10), save(32, 8)).seconds == ledger(productive=20, save=8, other=12)


def test_events_after_as_of_are_ignored() -> None:
    assert account(PLAIN, as_of=45).seconds == ledger(productive=30, other=15)


def test_event_at_the_time_of_as_of_is_read() -> None:
    assert account(PLAIN, as_of=20).seconds == ledger(productive=10, other=10)


def test_save_that_spans_as_of_is_cut() -> None:
    story = account(start(0), steps(0, 3, at=10), save(32, 20), as_of=40)
    assert story.seconds == ledger(productive=20, save=8, other=12)


def test_phase_that_spans_as_of_is_cut() -> None:
    assert account(start(0), init(2, 12), steps(0, 6, at=20), as_of=8).seconds == ledger(init=6, other=2)


def test_t1_is_as_of_unless_the_job_had_ended() -> None:
    assert account(PLAIN[:-1], as_of=100).seconds == ledger(productive=50, other=50)


def test_window_of_a_dead_job_ends_without_as_of() -> None:
    assert account(PLAIN[:-1]).seconds == ledger(productive=50, other=10)
    dead = account(FORTY_STEPS, crashed(60), reference=1)
    assert dead.seconds == ledger(restore=10, productive=40, wasted=10)


def test_job_has_ended_at_a_clean_end() -> None:
    assert account(PLAIN, as_of=500).seconds == STEPS


def test_job_has_ended_at_a_termination() -> None:
    story = account(FORTY_STEPS, terminated(60), as_of=200, reference=1)
    assert story.seconds == ledger(restore=10, productive=40, other=10)


def test_stragglers_after_a_clean_end_move_only_t1() -> None:
    story = account(PLAIN, save(72, 3), as_of=500)
    assert story.seconds == ledger(productive=60, save=3, other=12)
    assert story.total == 75


def test_scheduled_line_after_the_end_keeps_the_job_open() -> None:
    story = account(FORTY_STEPS, terminated(60), scheduled(70), as_of=200, reference=1)
    assert story.seconds == ledger(restore=10, productive=40, other=20, queued=130)


def test_crashed_job_is_in_recovery_until_as_of() -> None:
    story = account(FORTY_STEPS, crashed(60), as_of=200, reference=1)
    assert story.seconds == ledger(restore=10, productive=40, wasted=10, recovery=140)


def test_crash_among_terminations_leaves_the_job_down() -> None:
    story = account(FORTY_STEPS, terminated(60, rank=0), crashed(65, rank=1), as_of=200, reference=1)
    assert story.seconds == ledger(restore=10, productive=40, wasted=15, recovery=135)


def test_crash_after_a_clean_end_leaves_the_job_down() -> None:
    story = account(FORTY_STEPS, job_finished(60), crashed(65), as_of=200, reference=1)
    assert story.seconds["infrastructure_recovery_from_disruption"] == 135
    assert story.total == 200


@pytest.mark.parametrize("as_of", [-10, 0])
def test_as_of_before_all_events_has_no_answer(as_of: float) -> None:
    with pytest.raises(NotEnoughData):
        account(PLAIN, as_of=as_of)


# Order


def test_order_of_lines_does_not_change_the_answer() -> None:
    assert account(PLAIN[::-1]).seconds == STEPS
    assert account(PLAIN[3:], PLAIN[:3]).seconds == STEPS


def test_start_at_the_time_of_a_termination_follows_it() -> None:
    again = story_lines(started(60), loaded(40, 70), saved(60, 90), job_finished(90))
    for story in (story_lines(FORTY_STEPS, terminated(60), again), story_lines(again, terminated(60), FORTY_STEPS)):
        answer = account(story, reference=1)
        assert answer.attempts == 2
        assert answer.seconds == ledger(restore=20, productive=60, wasted=10)


def test_ties_put_load_before_step_and_finish_before_save() -> None:
    story = story_lines(started(0), loaded(0, 10), finished(20, 30), saved(20, 30), job_finished(30))
    for lines in (story, story[::-1]):
        assert account(lines, reference=1).seconds == ledger(restore=10, productive=20)


def test_end_at_the_time_of_a_start_closes_the_open_phase() -> None:
    evals = custom("eval", 22, 25) + custom("eval", 25, 28)
    for order in (evals, evals[::-1]):
        story = account(start(0), step(0, 10), step(1, 20), step(2, 36), end(46), order)
        assert story.seconds == ledger({"EVAL": 6}, productive=30, other=10)
        assert not story.found("open_interval") + story.found("orphan_end")


def test_start_and_end_at_one_time_are_an_empty_interval() -> None:
    both = custom("eval", 22, 22)
    for order in (both, both[::-1]):
        story = account(PLAIN, order)
        assert story.seconds == STEPS
        assert not story.found("open_interval") + story.found("orphan_end")


# Identical events, and the same answer from elsewhere


def test_identical_events_count_once() -> None:
    story = account(PLAIN, PLAIN)
    assert story.seconds == STEPS
    assert story.found("duplicate_events") == len(PLAIN)


def test_events_that_differ_in_a_field_both_count() -> None:
    story = account(started(0, rank=0), started(0, rank=1), loaded(0, 10), saved(20, 30), job_finished(30))
    assert (story.attempts, story.found("duplicate_events")) == (1, 0)


def test_shifted_times_give_the_same_seconds() -> None:
    shift = 86_400.5
    moved = account(start(shift), steps(0, 6, at=10 + shift), end(70 + shift))
    assert moved.seconds == STEPS


# Windows


def test_windows_that_tile_the_job_add_up() -> None:
    story = story_lines(start(0), steps(0, 4, at=10), start(100), steps(2, 4, at=110, every=7), end(145))
    whole = account(story)
    edges = [0, 13.5, 27.25, 44, 103, 112.000001, 131, 145]
    parts = [account(story, window=(left, right)) for left, right in pairwise(edges)]
    for category, amount in whole.seconds.items():
        assert sum(part.seconds.get(category, 0) for part in parts) == pytest.approx(amount, abs=1e-9)


def test_window_inside_an_outage_has_0_percent_goodput() -> None:
    story = account(start(0), steps(0, 4, at=10), start(100), steps(4, 3, at=110), end(140), window=(60, 90))
    assert story.seconds == ledger(recovery=30)
    assert story.percent == 0


def test_window_is_cut_to_the_job_but_not_to_events() -> None:
    assert account(PLAIN, window=(12, 33)).seconds == ledger(productive=21)
    assert account(PLAIN, window=(55, 500)).seconds == ledger(productive=15)


def test_window_outside_the_job_has_no_answer() -> None:
    with pytest.raises(NotEnoughData):
        account(PLAIN, window=(80, 90))


def test_redone_step_is_wasted_in_all_windows() -> None:
    story = story_lines(start(0), steps(0, 5, at=10), start(70), steps(2, 4, at=80), end(120))
    assert account(story, window=(30, 50)).seconds == ledger(wasted=20)
