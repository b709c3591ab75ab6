"""Disruptions (accounting §10): their losses and durations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.analysis.disruptions.rows import Disruption
from tests.support.story import (
    BASE,
    Line,
    Lines,
    account,
    crashed,
    end,
    finished,
    init,
    job_finished,
    loaded,
    prep,
    save,
    saved,
    scheduled,
    start,
    started,
    steps,
    terminated,
)

SECOND = 10**9
ROOT = Path(__file__).parent.parent.parent
Output = pytest.CaptureFixture[str]


def disruptions(*events: Lines, **options: Any) -> tuple[Disruption, ...]:
    return tuple(account(*events, **options).analysis.disruptions)


def only(*events: Lines, **options: Any) -> Disruption:
    (row,) = disruptions(*events, **options)
    return row


def after(ns: int) -> float:
    """Return seconds after the start of the log."""
    return (ns - BASE * SECOND) / SECOND


# A single disruption.

CRASH = (start(0), steps(0, 6, at=10), start(100), init(102, 110), steps(3, 6, at=120), end(190))
"""Attempt 1 does steps 0 to 5 from 10 s to 60 s; attempt 2 is up at 100 s and resumes at step 3 at 120 s."""


def test_crash_between_two_checkpoints_has_all_losses() -> None:
    row = only(*CRASH)
    assert (row.number, row.attempt, row.ended) == (1, 1, "silent")
    assert (row.last_step, row.resumed_step, row.steps_lost) == (5, 3, 3)
    assert after(row.last_sign_of_life_ns) == 60
    assert (after(row.next_start_ns), after(row.next_up_ns), after(row.death_latest_ns)) == (100, 100, 100)
    assert row.wasted_ns == 20 * SECOND  # steps 3 and 4; step 5 had only begun
    assert row.downtime_ns == 40 * SECOND
    assert row.restart_ns == 8 * SECOND
    assert row.lost_ns == 68 * SECOND
    assert row.time_to_first_step_ns == 20 * SECOND
    assert row.regained_after_ns == 90 * SECOND  # step 6 begins at 150 s
    assert (row.queued_ns, row.undetermined_ns) == (0, 0)
    assert (row.ranks_before, row.ranks_after) == (None, None)


def test_disruption_has_its_log_lines_as_evidence() -> None:
    evidence = only(*CRASH).evidence
    assert (evidence.last_step, evidence.last_sign_of_life, evidence.ended) == ("stdin:7", "stdin:7", None)
    assert (evidence.next_start, evidence.next_up) == ("stdin:8", "stdin:8")
    assert (evidence.resumed_step, evidence.first_step, evidence.regained) == ("stdin:11", "stdin:11", "stdin:14")


def test_crash_after_a_checkpoint_costs_time_but_no_step() -> None:
    row = only(start(0), steps(0, 6, at=10), start(100), steps(6, 4, at=120), end(160))
    assert (row.steps_lost, row.wasted_ns) == (0, 0)
    assert after(row.last_sign_of_life_ns) == 70  # the last step is credited with the usual step time
    assert row.evidence.last_sign_of_life == "stdin:7"
    assert row.downtime_ns == 30 * SECOND
    assert row.regained_after_ns == 50 * SECOND


def test_clean_end_is_not_a_disruption() -> None:
    assert disruptions(start(0), steps(0, 4, at=10), end(50), start(100), steps(4, 4, at=110), end(150)) == ()


def test_progress_that_is_never_regained_is_unknown() -> None:
    row = only(start(0), steps(0, 9, at=10), start(200), steps(2, 3, at=210), end(240))
    assert row.regained_after_ns is None
    assert row.evidence.regained is None


def test_start_without_steps_is_a_disruption() -> None:
    first, second = disruptions(
        start(0), steps(0, 5, at=10), start(100), init(105, 110), start(150), steps(3, 5, at=170), end(220)
    )
    assert (first.last_step, first.steps_lost, first.resumed_step) == (4, 2, 3)
    assert (second.last_step, second.steps_lost, second.resumed_step) == (None, 0, 3)
    assert first.time_to_first_step_ns == 70 * SECOND
    assert second.time_to_first_step_ns == 20 * SECOND
    assert second.evidence.last_step is None
    assert second.regained_after_ns == 80 * SECOND  # from the end of initialization at 110 s to step 5 at 190 s
    assert (first.downtime_ns, second.downtime_ns) == (50 * SECOND, 45 * SECOND)  # initialization is not downtime


def test_rollback_belongs_to_the_disruption_that_caused_it() -> None:
    """Attempt 1 does 0..10; attempt 2 resumes at 5 and fails in 7; attempt 3 goes back to 2."""
    first, second = disruptions(
        start(0), steps(0, 11, at=10), start(200), steps(5, 3, at=210), start(300), steps(2, 12, at=310), end(430)
    )
    assert (first.steps_lost, second.steps_lost) == (6, 6)  # 5..10; then 5..7 of attempt 2 and 2..4 of attempt 1
    assert (first.wasted_ns, second.wasted_ns) == (50 * SECOND, 50 * SECOND)


def test_abandoned_branch_belongs_to_its_own_end() -> None:
    """Attempt 3 resumes at 8, which only attempt 1 had reached: the steps of attempt 2 are lost."""
    first, second = disruptions(
        start(0), steps(0, 11, at=10), start(200), steps(5, 2, at=210), start(300), steps(8, 5, at=310), end(360)
    )
    assert (first.steps_lost, second.steps_lost) == (3, 2)  # 8..10 of attempt 1, 5 and 6 of attempt 2


def test_end_of_attempt_has_its_kind() -> None:
    def ending(*lines: Line) -> Disruption:
        return only(start(0), steps(0, 5, at=10), *lines, start(100), steps(3, 5, at=110), end(170))

    assert ending(terminated(55)).ended == "terminated"
    assert ending(crashed(55)).ended == "crashed"
    assert ending(terminated(55)).evidence.ended == "stdin:7"
    assert after(ending(terminated(55)).death_latest_ns) == 55
    assert ending().ended == "silent"


@pytest.mark.parametrize("flag", [True, 1, "true"])
def test_save_that_saw_a_preemption_gives_the_cause(flag: object) -> None:
    told_why = json.dumps(
        json.loads(save(52, 4, 4)) | {"reached_preemption": flag, "preemption_received_at": BASE + 50}
    )
    row = only(start(0), steps(0, 5, at=10), told_why, terminated(58), start(100), steps(4, 5, at=110), end(170))
    assert (row.ended, row.evidence.ended) == ("preempted", "stdin:7")


def test_save_without_a_preemption_gives_no_cause() -> None:
    said = json.dumps(json.loads(save(52, 4, 4)) | {"reached_preemption": False})
    assert only(start(0), steps(0, 5, at=10), said, start(100), steps(4, 5, at=110), end(170)).ended == "silent"


def test_ranks_are_counted_in_a_start_burst() -> None:
    row = only(
        [started(0, rank) for rank in (0, 1, 2)], loaded(0, 5), saved(20, 50), crashed(60, 1),
        started(100, 0), started(104, 1), loaded(20, 110), saved(40, 150), job_finished(151),
    )  # fmt: skip
    assert (row.ranks_before, row.ranks_after) == (3, 2)
    assert (after(row.next_start_ns), after(row.next_up_ns)) == (100, 104)
    assert (row.evidence.next_start, row.evidence.next_up) == ("stdin:7", "stdin:8")
    assert row.downtime_ns == 44 * SECOND


# Checkpoint logs.


def test_silent_failure_in_a_checkpoint_log_has_bounds() -> None:
    row = only(
        started(0), loaded(0, 10), saved(20, 60), saved(40, 100),
        started(200), loaded(40, 220), saved(60, 260), job_finished(261),
    )  # fmt: skip
    assert (after(row.last_sign_of_life_ns), after(row.death_latest_ns)) == (100, 200)
    assert row.undetermined_ns == row.downtime_ns == 100 * SECOND
    assert (row.wasted_ns, row.steps_lost) == (0, None)  # steps after the last save are not logged: unknown, not 0
    assert (row.last_step, row.resumed_step) == (40, 40)
    assert (row.evidence.last_step, row.evidence.resumed_step) == ("stdin:4", "stdin:6")
    assert row.restart_ns == 20 * SECOND  # the restore; the next steps are not slower than usual


def test_worked_example_has_the_documented_losses() -> None:
    """Accounting §6: a crash at step 70 after a save at 50 costs 40 min of training and 15 min of restart."""
    row = only(
        started(0), loaded(25, 300), finished(50, 3300), saved(50, 3600), finished(70, 6000), crashed(6000),
        started(6900), loaded(50, 7200), finished(75, 11700), saved(75, 12000), job_finished(12000),
    )  # fmt: skip
    assert (row.last_step, row.resumed_step, row.steps_lost) == (70, 50, 20)
    assert (row.wasted_ns, row.downtime_ns, row.restart_ns) == (2400 * SECOND, 900 * SECOND, 300 * SECOND)
    assert row.time_to_first_step_ns == 4800 * SECOND  # the first record of progress: step 75
    assert row.evidence.regained == "stdin:9"
    assert row.ended == "crashed"


def test_queue_time_is_not_downtime() -> None:
    row = only(
        started(0), loaded(0, 10), saved(20, 60), crashed(70), scheduled(80), started(140), loaded(20, 150),
        saved(40, 190), job_finished(191),
    )  # fmt: skip
    assert (row.queued_ns, row.downtime_ns) == (60 * SECOND, 10 * SECOND)
    assert row.lost_ns == row.wasted_ns + row.downtime_ns + row.restart_ns


def test_window_selects_disruptions_that_began_in_it() -> None:
    story = (
        start(0), steps(0, 5, at=10), start(100), steps(4, 5, at=110), start(200), prep(202, 205), steps(8, 5, at=210),
        end(260),
    )  # fmt: skip
    assert [row.number for row in disruptions(*story)] == [1, 2]
    (second,) = disruptions(*story, window=(140, 180))
    assert second == disruptions(*story)[1]  # the whole disruption, also in a smaller window


def test_failed_attempt_at_the_end_is_a_disruption_of_the_job() -> None:
    """A start in the same second as the last termination, as clocks with whole seconds write it."""
    assert len(disruptions(started(0), loaded(0, 1), saved(5, 10), terminated(20), started(20))) == 1
