"""Insights show the phases of outages (accounting §10, Links), and give no wrong advice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from goodput_cli.analysis.disruptions.find import find_disruptions
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.goodput.phrases import progress_text
from goodput_cli.analysis.insights.find import find_insights
from goodput_cli.analysis.insights.kinds import Insight
from goodput_cli.analysis.recovery.insights import find_storm, longest_silence, watchdog_ns
from goodput_cli.events.signs import RecoveryPhase
from tests.analysis.test_chains import HANG, REQUEUE, SACCT, SECOND, analysis_of, sign, storm
from tests.support.story import Lines, account, crashed, end, finished, loaded, save, saved, start, steps, with_signs

WATCHDOG = "a watchdog of"


def found(analysis: Analysis) -> dict[str, Insight]:
    return {one.code: one for one in analysis.insights}


def every_word(analysis: Analysis) -> str:
    return "; ".join(one.text for one in found(analysis).values())


def test_late_detection_is_shown_with_the_seconds_of_the_hang(tmp_path: Path) -> None:
    seen = found(analysis_of(tmp_path, HANG))
    assert seen["disruptions"].seconds == 721  # as without the sentence, which adds no seconds
    assert seen["disruptions"].text.endswith(
        "10 min 00 s of 14 min 10 s passed before the failure was detected: a watchdog of 2 min 00 s would have saved "
        "8 min 00 s"
    )


def test_configured_timeout_is_named_and_queue_shows_its_reason(tmp_path: Path) -> None:
    seen = found(analysis_of(tmp_path, REQUEUE, sacct=SACCT))
    assert (
        "(a timeout of 30 min 00 s was set): a watchdog of 2 min 00 s would have saved 28 min 00 s" in seen["hang"].text
    )
    assert seen["queued"].text.endswith("6 min 00 s of 45 min 20 s were spent waiting for a node")
    assert WATCHDOG not in seen["disruptions"].text


def test_restart_storm_shows_what_stopping_would_have_saved(tmp_path: Path) -> None:
    """Six failures; the second at 10:10:50, the last at 10:19:50."""
    analysis = analysis_of(tmp_path, storm(6))
    text = "6 failures after step 45, each resumed from step 40; stopping after the second would have saved 9 min 00 s"
    assert text in found(analysis)["same_step"].text
    assert found(analysis)["same_step"].text.endswith("5 of 5 restarts used")
    assert found(analysis)["same_step"].seconds == 621


@pytest.mark.parametrize("deaths", [2, 3, 4])
def test_three_failures_are_a_storm(tmp_path: Path, deaths: int) -> None:
    one = find_storm(analysis_of(tmp_path, storm(deaths)).timeline)
    assert (one is not None) == (deaths >= 3)


def test_restarts_that_helped_are_not_a_storm() -> None:
    """Three failures in step 5, then a restart that gets past it."""
    lives = [(start(200 * n), steps(0, 6, at=200 * n + 10), crashed(200 * n + 75)) for n in range(3)]
    story = [line for life in lives for line in life]
    assert find_storm(account(*story).analysis.timeline) is not None
    past = account(*story, start(600), steps(0, 9, at=610), end(710)).analysis
    assert find_storm(past.timeline) is None
    assert "stopping after" not in every_word(past)


def test_progress_between_failures_is_not_a_storm() -> None:
    """Each attempt resumes from a later step, because a save in between succeeded."""
    lives = [(start(200 * n), steps(3 * n, 6, at=200 * n + 10), crashed(200 * n + 75)) for n in range(4)]
    assert find_storm(account(*(line for life in lives for line in life)).analysis.timeline) is None


def healthy(save_seconds: float, *more: Lines) -> list[Lines]:
    """Return steps of 10 s with a blocking save after every tenth."""
    lines: list[Lines] = [start(0)]
    clock = 10.0
    for number in range(60):
        lines += [steps(number, 1, at=clock)]
        clock += 10
        if number % 10 == 9:
            lines += [save(clock, save_seconds, number)]
            clock += save_seconds
    return [*lines, *more]


def test_advised_watchdog_timeout_respects_saves() -> None:
    """A save of 90 s puts two records of steps 100 s apart: a timeout below 4 min 30 s would be too short."""
    timeline = account(*healthy(90), end(1300)).analysis.timeline
    assert longest_silence(timeline) == 100 * SECOND
    assert watchdog_ns(timeline) == 300 * SECOND


def test_healthy_job_gets_no_advice() -> None:
    analysis = account(*healthy(90), end(1300)).analysis
    assert WATCHDOG not in every_word(analysis)
    assert "noticed" not in every_word(analysis)


def noticed_after(seconds: float, save_seconds: float = 90) -> Sequence[Insight]:
    """Return the insights of a job with saves of a duration, whose failure was detected after some seconds."""
    died = 1140.0
    analysis = account(
        *healthy(save_seconds), crashed(died), start(died + seconds + 20), steps(50, 30, at=died + seconds + 40),
        end(died + seconds + 400),
    ).analysis  # fmt: skip
    signed = with_signs(analysis.timeline, sign(RecoveryPhase.DETECTED, died + seconds, by="launcher"))
    answer = find_disruptions(signed, signed.start, signed.end)
    return find_insights(replace(analysis, timeline=signed, disruptions=answer))


def test_watchdog_that_saves_less_than_a_minute_is_not_advised() -> None:
    texts = "; ".join(one.text for one in noticed_after(250))
    assert "passed before the failure was detected" in texts
    assert WATCHDOG not in texts
    assert "a watchdog of 5 min 00 s would have saved" in "; ".join(one.text for one in noticed_after(900))


def test_last_remaining_restart_is_reported_in_a_running_job(tmp_path: Path) -> None:
    lines = storm(6)
    last = max(n for n, line in enumerate(lines) if "2/5 attempts left" in line)
    running = analysis_of(tmp_path, lines[: last + 6])
    assert "1 restart left" in progress_text(running)
    assert "restart left" not in progress_text(analysis_of(tmp_path, lines[:60]))


def test_slow_start_is_not_silence() -> None:
    """It fails 20 min after its start, in its first step: start-up has a separate timeout."""
    story = [start(0), steps(0, 30, at=10), crashed(310), start(400), steps(30, 1, at=420), crashed(1600)]
    analysis = account(*story, start(1700), steps(30, 30, at=1720), end(2100)).analysis
    signed = with_signs(analysis.timeline, sign(RecoveryPhase.DETECTED, 1599, by="launcher"))
    answer = find_disruptions(signed, signed.start, signed.end)
    texts = "; ".join(one.text for one in find_insights(replace(analysis, timeline=signed, disruptions=answer)))
    assert "noticed" not in texts


def test_time_after_the_last_checkpoint_is_not_silence() -> None:
    """Only checkpoints are logged: the job trained from the last one to its end."""
    story = [
        start(0),
        loaded(10, 0),
        finished(600, 50),
        saved(602, 50),
        start(2500),
        loaded(2530, 50),
        finished(3200, 100),
    ]
    analysis = account(*story, saved(3202, 100)).analysis
    signed = with_signs(analysis.timeline, sign(RecoveryPhase.DETECTED, 2400, by="launcher"))
    answer = find_disruptions(signed, signed.start, signed.end)
    texts = "; ".join(one.text for one in find_insights(replace(analysis, timeline=signed, disruptions=answer)))
    assert "noticed" not in texts
