"""Accounting §4, step-end logs: records that count finished steps, some with the mean time of a step."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from goodput_cli.cli.main import run
from tests.support.story import (
    account,
    crashed,
    custom,
    done,
    dones,
    dropped,
    end,
    heartbeat,
    init,
    job_finished,
    ledger,
    loaded,
    prep,
    reinit,
    restore,
    save,
    start,
    step,
    steps,
    story_lines,
    terminated,
)

pytestmark = pytest.mark.usefixtures("step_end_lines")
Steps = Callable[[int], int]


def test_first_span_runs_from_the_start_with_startup() -> None:
    story = account(start(0), dones((10, 130), (20, 150), (30, 170), (40, 190)), heartbeat(195))
    assert story.seconds == ledger(startup=110, productive=80, other=5)
    assert story.kept_steps == 40


def test_attempt_begins_a_stride_before_its_first_record() -> None:
    beats = [heartbeat(at) for at in range(5, 200, 10)]
    story = account(
        start(0), dones((10, 130), (20, 150), (30, 170), (40, 190)), beats,
        start(600), dones((30, 720), (40, 740), (50, 760)), heartbeat(765),
    )  # fmt: skip
    assert story.seconds == ledger(startup=110 + 100, productive=40 + 60, wasted=45, recovery=405, other=5)
    (row,) = story.analysis.disruptions
    assert (row.resumed_step, row.steps_lost, row.last_step) == (20, 20, 40)


@pytest.mark.parametrize("stride", [1, 10, 100])
@pytest.mark.parametrize(
    ("resumed_at", "first_record", "found_at"),
    [
        pytest.param(lambda s: 5 * s, lambda s: 6 * s, lambda s: 5 * s, id="at a multiple"),
        pytest.param(lambda s: 5 * s, lambda s: 5 * s + 1, lambda s: 5 * s, id="a record of its first step"),
        pytest.param(lambda s: 5 * s - 1, lambda s: 5 * s, lambda s: 5 * s - min(s, 4), id="before a multiple"),
        pytest.param(lambda s: 4 * s + 1, lambda s: 5 * s, lambda s: 4 * s, id="after a multiple"),
    ],
)
def test_first_record_after_a_resume_covers_what_fits(
    stride: int, resumed_at: Steps, first_record: Steps, found_at: Steps
) -> None:
    """One step takes 1 s, and start-up 2.5 s. resumed_at: the true step. found_at: the step inferred from the
    records."""
    first = first_record(stride)
    up = 5 * stride + 60
    at = up + 2.5 + max(first - resumed_at(stride), 1)
    story = account(
        start(0), dones(*((k * stride, 2.5 + k * stride) for k in range(1, 6))),
        start(up), dones(*((first + k * stride, at + k * stride) for k in range(3))),
    )  # fmt: skip
    (row,) = story.analysis.disruptions
    assert (row.resumed_step, row.steps_lost) == (found_at(stride), 5 * stride - found_at(stride))


def test_no_training_before_the_first_record_without_start() -> None:
    story = account(dones((10, 130), (20, 150), (30, 170), (40, 190)), dones((30, 720), (40, 740), (50, 760)))
    assert story.seconds == ledger(productive=80, wasted=20, recovery=530)


def test_restore_sets_the_begin_of_an_attempt() -> None:
    story = account(
        start(0), dones((10, 20), (20, 40), (30, 60)), crashed(70),
        start(100), restore(105, 5, number=25), dones((30, 120), (40, 140)), job_finished(141),
    )  # fmt: skip
    # From 25: five steps of the first attempt's third ten are kept, and five are redone.
    assert story.seconds == ledger(
        productive=20 + 20 + 10 + 10 + 20, startup=5, restore=5, wasted=20, recovery=30, other=1
    )


def test_extra_first_line_of_a_process_is_one_step() -> None:
    story = account(start(0), dones((501, 60), (510, 78), (520, 98), (530, 118)))
    assert story.seconds == ledger(startup=58, productive=60)
    assert story.kept_steps == 30


def test_gap_left_by_a_mean_is_not_training() -> None:
    story = account(start(0), done(10, 40.5, 4), done(20, 60.5, 1), done(30, 70.5, 1), done(40, 80.5, 1))
    assert story.seconds == ledger(startup=30.5, productive=40, other=10)
    assert story.found("gap_between_steps") == 1


def test_claims_get_their_part_of_a_gap() -> None:
    story = account(
        start(0), done(10, 10.5, 1), done(20, 20.5, 1), custom("eval", 20.5, 24), save(24, 4), done(30, 40.5, 1),
    )  # fmt: skip
    assert story.seconds == ledger({"EVAL": 3.5}, productive=30, startup=0.5, save=4, other=2.5)


def test_clock_of_whole_seconds_tolerates_2_seconds() -> None:
    story = account(start(0), done(10, 10, 1), done(20, 20, 1), done(30, 32, 1), done(40, 44.5, 1))
    assert story.seconds == ledger(productive=42, other=2.5)


def test_mean_above_the_distance_is_a_warning() -> None:
    story = account(start(0), done(10, 10.5, 1), done(20, 20.5, 1), done(30, 30.5, 1.5))
    assert story.seconds == ledger(productive=30, startup=0.5)
    assert story.found("step_longer_than_gap") == 1


def test_time_after_the_last_record_is_lost() -> None:
    story = account(
        start(0), init(0, 20), prep(20, 40), done(10, 100, 6), done(20, 140, 4), save(140, 5, 20),
        done(30, 185, 4), crashed(200),
        start(300), init(300, 320), prep(320, 340), restore(327, 8, 20), done(30, 396, 5.6), done(40, 436, 4),
        job_finished(437),
    )  # fmt: skip
    assert story.seconds == ledger(
        productive=160, startup=36, init=40, prep=32, save=5, restore=8, wasted=55, recovery=100, other=1
    )


def test_crash_loses_the_last_steps_in_progress() -> None:
    story = account(start(0), dones((10, 10), (20, 20), (30, 30)), crashed(36))
    assert story.seconds == ledger(productive=30, wasted=6)
    assert account(start(0), dones((10, 10), (20, 20), (30, 30)), terminated(36)).seconds == ledger(
        productive=30, other=6
    )


def test_clean_end_loses_no_time() -> None:
    story = account(
        start(0), dones((10, 10), (20, 20)), save(20, 5, 20), job_finished(27), start(50), dones((30, 60), (40, 70))
    )
    assert story.seconds == ledger(productive=40, save=5, other=2, stopped=23)
    assert story.disruptions == 0


def test_unrecorded_steps_are_credited() -> None:
    story = account(
        start(0), dones((10, 10), (20, 20), (30, 30)), start(100), loaded(40, 105), dones((50, 120), (60, 130))
    )
    assert story.kept_steps == 60
    assert story.seconds == ledger(productive=60, startup=10, recovery=60)
    assert story.found("unrecorded_steps") == 0  # ten fit into the stride


def test_step_ends_next_to_step_starts_are_only_activity() -> None:
    bare = account(start(0), steps(0, 6, at=10), heartbeat(85))
    story = account(start(0), steps(0, 6, at=10), dones((1, 20), (2, 30), (6, 70), (7, 85)))
    assert story.seconds == bare.seconds
    assert story.kept_steps == bare.kept_steps


def test_job_end_is_believed_if_the_next_attempt_continues() -> None:
    story = account(start(0), dones((10, 10), (20, 20)), end(25), start(50), dones((30, 60), (40, 70)))
    assert story.seconds == ledger(productive=40, other=5, stopped=25)
    redone = account(start(0), dones((10, 10), (20, 20)), end(25), start(50), dones((20, 60), (30, 70)))
    assert redone.disruptions == 1


def test_answer_numbers_steps_as_in_the_log() -> None:
    story = account(start(0), dones((10, 130), (20, 150), (30, 170), (40, 190)), heartbeat(195))
    assert (story.analysis.job.first_step, story.analysis.job.last_step, story.analysis.job.kept_range) == (
        10,
        40,
        (1, 40),
    )


def test_span_after_a_gap_is_first_after_reinitialization() -> None:
    # The gap from 30.5 to 38.5 contains the re-initialization. The step after it is a start-up, outside of all medians.
    later = done(4, 50.5, 12), done(5, 60.5), done(6, 70.5)
    story = account(start(0), done(1, 10), done(2, 20), done(3, 30.5), reinit(31, 37), *later)
    assert story.seconds == ledger(productive=60.5, startup=2, reinit=6, other=2)


def test_all_commands_answer_for_step_end_logs(tmp_path: Path) -> None:
    log = tmp_path / "ends.jsonl"
    first = start(0), *dones((10, 60), (20, 100)), save(100, 5, 20), *dones((30, 145), (40, 185)), crashed(200)
    again = start(300), restore(310, 8, 20), *dones((30, 396), (40, 436), (50, 476)), job_finished(480)
    log.write_text("\n".join(story_lines(*first, *again)) + "\n", encoding="utf-8")
    for command in ("analyze", "advise", "disruptions", "steps", "timeline", "check"):
        written = tmp_path / f"{command}.json"
        assert run([command, str(log), "-q", "-o", str(written)]) in (0, 5)
        assert json.loads(written.read_text(encoding="utf-8"))["schema_version"] == 2
    (slowest, *_) = json.loads((tmp_path / "steps.json").read_text(encoding="utf-8"))["slowest"]
    assert (slowest["step"], slowest["steps"]) == (21, 10)


def test_step_start_is_not_step_end() -> None:
    assert account(start(0), step(0, 10), step(1, 20), end(30)).kept_steps == 2


def test_empty_span_in_lost_lines_is_not_usual_step_time() -> None:
    """The last five steps took a mean of 0 s, and lines were lost from 5 s on. No line shows that a step takes 0 s;
    otherwise all of the first span would be start-up."""
    log = story_lines(
        start(0), done(0, 0), done(5, 3, 0.6), done(10, 6, 0.6), done(15, 9, 0.6),
        dropped(9, 5, 13), done(20, 12, 0),
    )  # fmt: skip
    assert account(log).seconds == ledger(productive=5, other=7)
