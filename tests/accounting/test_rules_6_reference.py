"""Accounting §6: the reference step time. Progress counts as the time that its steps should have taken."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.support.story import (
    Account,
    account,
    custom,
    end,
    finished,
    job_finished,
    ledger,
    loaded,
    save,
    saved,
    start,
    started,
    step,
    steps,
    story_lines,
    terminated,
)

PLAIN = story_lines(start(0), steps(0, 6, at=10), end(70))
"""10 s until the first step, then six steps of 10 s."""


def effective(story: Account) -> float | None:
    """Return the effective computation time in seconds."""
    ns = story.analysis.reference.effective_computation_ns
    return None if ns is None else ns / 1e9


# Effective computation time


def test_kept_steps_times_reference_is_productive() -> None:
    story = account(PLAIN, reference=8)
    assert story.seconds == ledger(productive=48, slowdown=12, other=10)
    assert effective(story) == 6 * 8


def test_goodput_is_effective_time_per_window() -> None:
    assert account(PLAIN, reference=7).percent == pytest.approx(100 * 42 / 70)


def test_startup_is_not_slowdown() -> None:
    story = account(start(0), step(0, 10), steps(1, 5, at=70), end(120), reference=8)
    assert story.seconds == ledger(startup=50, productive=48, slowdown=12, other=10)


def test_saves_and_evals_are_not_slowdown() -> None:
    story = account(start(0), steps(0, 8, at=10), save(22, 1), custom("eval", 32, 34), end(90), reference=7)
    assert story.seconds == ledger({"EVAL": 2}, save=1, productive=56, slowdown=21, other=10)


def test_wasted_steps_have_no_effective_time() -> None:
    story = account(start(0), steps(0, 4, at=10), start(60), steps(1, 4, at=70), end(110), reference=8)
    # Attempt 1 keeps step 0; attempt 2 four steps.
    assert story.seconds == ledger(productive=40, slowdown=10, wasted=20, recovery=20, other=20)


def test_reference_disables_stalls() -> None:
    story = account(start(0), steps(0, 6, at=10), step(6, 600), end(610), reference=10)
    assert story.seconds == ledger(productive=70, slowdown=530, other=10)


def test_short_last_step_of_the_job_counts_in_proportion() -> None:
    story = account(start(0), steps(0, 6, at=10), end(65), reference=8)
    assert story.kept_steps == 5.5
    assert story.seconds == ledger(productive=44, slowdown=11, other=10)


def test_cut_credited_last_step_counts_in_proportion() -> None:
    story = account(
        start(0), steps(0, 4, at=10), terminated(44), start(100), steps(4, 3, at=110), end(140), reference=8
    )
    # 3.4 steps in 34 s, and 3 steps in 30 s.
    assert story.kept_steps == pytest.approx(6.4)
    assert story.seconds == ledger(productive=51.2, slowdown=12.8, recovery=56, other=20)


def test_partly_excluded_steps_count_in_proportion() -> None:
    story = account(PLAIN, reference=8, exclude=[(32, 37)])
    assert story.seconds == ledger(productive=44, slowdown=11, excluded=5, other=10)


def test_empty_steps_count_if_not_excluded() -> None:
    log = story_lines(started(0), loaded(0, 0), finished(10, 10), finished(20, 10), finished(30, 20))
    assert account(log, reference=1, exclude=[(8, 12)]).kept_steps == 16
    assert account(log, reference=1, exclude=[(12, 14)]).kept_steps == 28


def test_step_time_of_0_is_not_reference() -> None:
    # Whole seconds, ten steps per second: nine of ten step times are 0.
    log = story_lines(
        started(0), loaded(0, 0), [finished(10 * second + n, second) for second in range(1, 9) for n in range(10)]
    )
    story = account(log)
    assert story.analysis.reference.step_time_seconds is None
    assert story.seconds == ledger(startup=1, productive=7)
    stepping = account(start(0), [step(10 * second + n, second) for second in range(9) for n in range(10)], end(9))
    assert stepping.seconds == ledger(productive=8, other=1)


def test_last_step_without_usual_time_counts_in_proportion() -> None:
    story = account(start(0), step(0, 10), step(100, 110), end(210), reference=1, exclude=[(100, 210)])
    assert story.seconds == ledger(productive=90, other=10, excluded=110)
    alone = account(start(0), step(0, 10), end(110), reference=80, exclude=[(60, 85)])
    assert alone.seconds == ledger(productive=60, slowdown=15, other=10, excluded=25)


def test_span_kept_in_part_counts_its_kept_steps() -> None:
    story = account(
        start(0), steps(0, 6, at=10, stride=10), start(100), steps(35, 3, at=110, stride=10), end(140), reference=0.9
    )
    assert story.seconds == ledger(productive=58.5, slowdown=6.5, wasted=15, recovery=40, other=20)


def test_checkpoint_logs_count_steps_between_checkpoints() -> None:
    story = account(
        started(0), loaded(0, 10), saved(20, 30), saved(40, 50), terminated(50),
        started(60), loaded(20, 70), saved(60, 110), job_finished(110),
        reference=0.75,
    )  # fmt: skip
    assert story.seconds == ledger(restore=20, productive=45, slowdown=15, wasted=20, recovery=10)
    assert effective(story) == 60 * 0.75


def test_reference_is_used_exactly_as_written() -> None:
    for text, ns in (("0.000000001", 6), ("0.0000000015", 9), ("0.00000000125", 8), ("0.00000000025", 2)):
        story = account(PLAIN, reference=text)
        # 6 x 1.25 = 7.5 and 6 x 0.25 = 1.5, rounded once, half to even.
        assert story.analysis.goodput.ns == ns, text


# A reference that is too slow


def test_too_slow_reference_is_a_warning_with_the_median() -> None:
    story = account(PLAIN, reference=11)
    assert story.seconds == ledger(productive=66, slowdown=-6, other=10)
    assert story.found("reference_too_slow") == 1
    assert "median 10 s" in story.message("reference_too_slow")


def test_goodput_above_100_percent_comes_with_the_warning() -> None:
    story = account(PLAIN, reference=12)
    assert story.percent == pytest.approx(100 * 72 / 70)
    assert story.found("reference_too_slow") == 1


def test_fitting_reference_gives_no_warning() -> None:
    assert account(PLAIN, reference=10).found("reference_too_slow") == 0


def test_window_above_100_percent_comes_with_the_warning() -> None:
    # 20 steps of 12 s, two of 1 s: the job is slower than the reference, a part of it is faster.
    log = story_lines(start(0), steps(0, 20, at=10, every=12), steps(20, 2, at=250, every=1), step(22, 252), end(264))
    assert account(log, reference=10).found("reference_too_slow") == 0
    part = account(log, reference=10, window=(250, 252))
    assert part.percent > 100
    assert part.found("reference_too_slow") == 1


# auto


def test_auto_is_the_usual_pace_without_the_first_step() -> None:
    # Steps of 10 s (the first, ignored), then 10, 12, 14, 16 and 18 s. Neighbors usually differ by 15 %, so all are
    # alike. The last step takes 14 s, which is the median too.
    story = account(
        start(0), *(step(n, at) for n, at in enumerate((10, 20, 30, 42, 56, 72, 90))), end(104), reference="auto"
    )
    assert story.analysis.reference.origin == "auto"
    assert story.analysis.reference.step_time_seconds == pytest.approx(14)
    assert story.seconds == ledger(productive=98, slowdown=-4, other=10)


def paced(seconds: Callable[[int], float]) -> float:
    """Return the reference of a checkpoint log with 60 spans of ten steps. seconds: of a step of each."""
    at = [10.0]
    for span in range(60):
        at.append(at[-1] + 10 * seconds(span))
    saves = [saved(10 * number, time) for number, time in enumerate(at[1:], 1)]
    found = account(started(0), loaded(0, 10), saves, job_finished(at[-1])).analysis.reference.step_time_seconds
    assert found is not None
    return found


def test_auto_gives_no_slowdown_for_noise() -> None:
    dice = random.Random(1)
    noise = [dice.lognormvariate(0, 0.05) for _ in range(60)]
    assert paced(lambda span: 2 * noise[span]) == pytest.approx(2, rel=0.01)


def test_auto_is_the_pace_of_the_fast_level() -> None:
    dice = random.Random(1)
    noise = [dice.lognormvariate(0, 0.03) for _ in range(60)]
    assert paced(lambda span: 2 * noise[span] * (1.3 if span >= 24 else 1)) == pytest.approx(2, rel=0.01)
    assert paced(lambda span: 2 * noise[span] * (1.3 if span % 8 == 0 else 1)) == pytest.approx(2, rel=0.01)


def test_auto_uses_net_time() -> None:
    story = account(PLAIN, *(custom("eval", at, at + 4) for at in (21, 31, 41, 51)), reference="auto")
    assert story.analysis.reference.step_time_seconds == pytest.approx(6)


def test_auto_ignores_wasted_and_excluded_steps() -> None:
    # Fast steps: 1 and 2 of the first attempt are redone, and one of the second is half excluded.
    story = account(
        start(0), step(0, 10), step(1, 20), step(2, 21), step(3, 22),
        start(60), steps(1, 5, at=70), end(120),
        exclude=[(82, 89)], reference="auto",
    )  # fmt: skip
    assert story.analysis.reference.step_time_seconds == pytest.approx(10)


def test_auto_falls_back_to_first_spans() -> None:
    story = account(start(0), steps(0, 2, at=10), end(30), reference="auto")
    assert story.seconds == ledger(productive=20, other=10)
    assert story.analysis.reference.step_time_seconds == 10


def test_auto_is_none_without_spans() -> None:
    story = account(start(0), step(0, 10), end(60), reference="auto")
    assert story.seconds == ledger(productive=50, other=10)
    assert (story.analysis.reference.step_time_seconds, story.analysis.reference.origin) == (None, None)


def test_checkpoint_logs_use_auto_when_nothing_is_given() -> None:
    story = account(started(0), loaded(0, 10), saved(20, 30), saved(40, 55), saved(60, 75), job_finished(75))
    # First 1 s per step (ignored), then 1.25 and 1 s: 1.025 s at the 10th percentile, and only 1 s is like it.
    assert story.analysis.reference.origin == "auto"
    assert story.analysis.reference.step_time_seconds == pytest.approx(1)
    assert story.seconds["productive"] == pytest.approx(60, abs=1e-8)


def test_step_logs_have_no_reference_by_default() -> None:
    story = account(PLAIN)
    assert story.analysis.reference.origin is None
    assert effective(story) is None


def test_auto_prints_its_value_and_advises_to_pin_it() -> None:
    story = account(PLAIN, reference="auto")
    assert "fix it with --reference-step-time 10" in story.message("reference_auto")
    pinned = account(PLAIN, reference=10)
    assert pinned.found("reference_auto") == 0
    assert pinned.seconds == story.seconds


# The calculator's table and the timeline


def test_calculator_table_has_its_values() -> None:
    story = account(
        started(0), loaded(0, 10), saved(20, 30), saved(40, 50), terminated(50),
        started(60), loaded(20, 70), saved(60, 110), job_finished(110),
        reference=0.75,
    )  # fmt: skip
    table = story.analysis.reference
    assert (table.step_time_seconds, table.origin) == (0.75, "given")
    assert (table.total_events, table.job_started_count) == (9, 2)
    assert (table.checkpoints_loaded, table.checkpoints_saved) == (1, 3)  # a load of step 0 does not count
    assert (table.min_loaded_step, table.max_saved_step, table.step_difference) == (0, 60, 60)


def test_identical_lines_count_once_in_the_table() -> None:
    log = story_lines(started(0), loaded(20, 10), saved(40, 30), job_finished(30))
    table = account(log, log, reference=1).analysis.reference
    assert (table.total_events, table.checkpoints_loaded, table.checkpoints_saved) == (4, 1, 1)


def test_unlogged_values_are_null_in_the_table() -> None:
    table = account(PLAIN).analysis.reference
    assert (table.min_loaded_step, table.max_saved_step, table.step_difference) == (None, None, None)


def test_timeline_segment_shows_its_slowdown() -> None:
    frame = account(PLAIN, reference=8).analysis.segments
    productive = frame[frame["category"] == "productive"]
    assert productive["first_step"].tolist() == [0, 1, 2, 3, 4, 5]
    assert productive["seconds"].tolist() == [10.0] * 6
    assert productive["slowdown_ns"].tolist() == [2 * 10**9] * 6
    assert "training_slowdown" not in set(frame["category"])


def test_slowdown_is_a_share_of_its_span_in_all_windows() -> None:
    assert account(PLAIN, reference=8, window=(10, 15)).seconds == ledger(productive=4, slowdown=1)
    assert account(PLAIN, reference=8, window=(33, 58)).seconds == ledger(productive=20, slowdown=5)
