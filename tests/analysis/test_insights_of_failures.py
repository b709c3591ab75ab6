"""Insights of failures: the seconds of each kind, calculated by hand, and its advice."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

import pytest

import goodput_cli
from goodput_cli.analysis.advice.advise import Options, advise_job
from goodput_cli.analysis.insights.kinds import BY_CODE
from goodput_cli.report.base import Page
from tests.support.answers import as_table as table
from tests.support.documents import ROOT
from tests.support.story import (
    BASE,
    account,
    crashed,
    end,
    heartbeat,
    init,
    insights,
    restore,
    save,
    saved,
    start,
    step,
    steps,
    story_lines,
)

PAGE = Page()
WEEK = 7 * 86_400


def saves(first: int, last: int, *, every: int, at: float = 60) -> list[str]:
    """Return a save of one second after each `every`-th step, for steps of `at` seconds from 0 on."""
    return story_lines(*(save((number + 1) * at, 1, number) for number in range(first, last + 1, every)))


def test_insights_of_healthy_run_are_empty() -> None:
    assert insights(start(0), steps(0, 200, at=20, every=60), saves(9, 190, every=10), end(12_020)) == {}


def test_older_checkpoint_costs_the_steps_saved_after_it() -> None:
    """Steps of 60 s with a save every ten. The job fails in step 38, after the save of step 29, and restores step 9.
    Steps 10 to 29 are trained again: 1200 s. Steps 30 to 37 would be lost in any case."""
    seen = insights(
        start(0), steps(0, 39, at=0, every=60), saves(9, 29, every=10),
        start(2400), restore(2400, 10, 9), steps(10, 60, at=2430, every=60), end(6030),
    )  # fmt: skip
    older = seen["older_checkpoint"]
    assert older.seconds == 20 * 60
    assert older.text == "restored step 9, although checkpoints 19 and 29 were complete"
    assert older.percent == 100 * 1200 / 6030
    assert [place.rpartition(":")[2] for place in older.evidence] == ["45", "43"]  # the restore, and the save of 29
    assert seen["disruptions"].seconds == 8 * 60 + 120  # steps 30 to 37, and from step 38 to the next start
    assert older.about.disruptions == seen["disruptions"].about.disruptions == (1,)


def test_newest_checkpoint_gives_no_insight() -> None:
    seen = insights(
        start(0), steps(0, 39, at=0, every=60), saves(9, 29, every=10),
        start(2400), restore(2400, 10, 29), steps(30, 60, at=2430, every=60), end(6030),
    )  # fmt: skip
    assert "older_checkpoint" not in seen


def test_abandoned_checkpoint_is_missed_only_once() -> None:
    """Step 9 is restored although 19 and 29 were saved. The next attempt fails and restores its own newest, step 19."""
    seen = insights(
        start(0), steps(0, 39, at=0, every=60), saves(9, 29, every=10),
        start(2400), restore(2400, 10, 9), steps(10, 15, at=2430, every=60), save(3030, 1, 19),
        start(3600), restore(3600, 10, 19), steps(20, 60, at=3630, every=60), end(7230),
    )  # fmt: skip
    assert seen["older_checkpoint"].count == 1


def bad_day(deaths: int) -> list[str]:
    """Return ten hours of restarts: the job fails 20 s after each start, before its first step."""
    apart = 36_000 // deaths
    lives = [(start(3600 + i * apart), restore(3600 + i * apart, 20, 59)) for i in range(deaths)]
    return story_lines(
        start(0), steps(0, 60, at=0, every=60), *lives, start(39_600), steps(60, 100, at=39_600, every=60)
    )


def test_reused_name_is_neither_outage_nor_older_checkpoint() -> None:
    """40 steps of a minute with saves, an end, and a week later the same again from step 0."""
    seen = insights(
        start(0), steps(0, 40, at=0, every=60), saves(9, 39, every=10), end(2400),
        start(WEEK), steps(0, 40, at=WEEK, every=60), end(WEEK + 2400),
    )  # fmt: skip
    assert list(seen) == ["several_runs"]
    runs = seen["several_runs"]
    assert runs.seconds == WEEK  # the training of the first run, and the time after its end
    assert runs.command_line().endswith("--run last")


def test_repeated_failed_starts_are_one_insight() -> None:
    seen = insights(bad_day(68), end(45_600))
    again = seen["failing_starts"]
    assert (again.count, again.text) == (68, "68 of 70 starts failed within 20.0 s, 01:00 to 11:00 UTC")
    assert list(seen) == ["failing_starts"]
    assert again.about.disruptions == tuple(range(2, 70))  # the first one ended an hour of training
    assert 0.97 * 36_000 - 68 * 20 <= again.seconds <= 36_000


def test_last_failed_start_is_counted_with_the_others() -> None:
    """No next attempt shows what it lost."""
    again = insights(
        start(0),
        steps(0, 100, at=10, every=5),
        crashed(600),
        *([start(at), crashed(at + 20)] for at in (700, 800, 900, 1000)),
    )
    assert again["failing_starts"].text.startswith("4 of 5 starts failed within 20.0 s")
    assert again["failing_starts"].seconds == 300


def test_ten_hours_of_failed_starts_take_three_lines() -> None:
    analysis = account(bad_day(68), end(45_600)).analysis
    first, *rest = table(analysis, PAGE).split(" LOST ")[1].split("\n\n")[0].splitlines()[1:]
    assert "68 of 70 starts failed within 20.0 s" in first
    assert len(rest) <= 2


def crashing(lives: int, at: float, first: int) -> list[str]:
    """Return attempts of 20 steps of 60 s from a step on, each saved after its fifth step. Each loses 14 steps and is
    down for 120 s: the next is up 1320 s after it began."""
    log: list[str] = []
    for begin, step_number in ((at + 1320 * life, first + 5 * life) for life in range(lives)):
        log += story_lines(
            start(begin), steps(step_number, 20, at=begin, every=60), save(begin + 300, 1, step_number + 4)
        )
    return log


def test_insight_of_disruptions_names_those_of_other_insights() -> None:
    """Four failed starts, and three disruptions without another insight."""
    seen = insights(crashing(3, 0, 0), bad_starts(4, 3960), start(9000), steps(15, 100, at=9000, every=60), end(15_000))
    assert seen["failing_starts"].text.startswith("4 of 8 starts failed")
    assert seen["disruptions"].text.startswith("3 other disruptions (3 silent)")


def test_disruption_outside_the_window_is_mentioned() -> None:
    """No events from 1740 until 3000; the job resumes at step 20, which began at 1200."""
    log = (start(0), steps(0, 30, at=0, every=60), start(3000), steps(20, 30, at=3000, every=60), end(4800))
    before = insights(*log, window=(2400, 4800))["disruptions"]
    assert (before.seconds, before.text) == (600, "1 disruption before the window (silent)")
    after = insights(*log, window=(0, 1500))["disruptions"]
    assert (after.seconds, after.text) == (300, "1 disruption after the window (silent): 5 min 00 s of wasted training")
    again = (start(6000), steps(50, 30, at=6000, every=60), end(7800))
    both = insights(*log[:-1], *again, window=(2400, 7800))["disruptions"]
    assert both.text == "2 disruptions (2 silent), 1 of them before the window"


def bad_starts(deaths: int, at: float) -> list[str]:
    """Return starts that fail within 20 s, one every 1000 s."""
    return story_lines(*((start(at + 1000 * i), restore(at + 1000 * i, 20, 14)) for i in range(deaths)))


def test_window_counts_only_its_disruptions() -> None:
    log = [*crashing(3, 0, 0), *story_lines(start(3960)), *steps(15, 100, at=3960, every=60), *story_lines(end(9960))]
    assert insights(log)["disruptions"].text.startswith("3 disruptions")
    assert insights(log, window=(2400, 9960))["disruptions"].text.startswith("2 disruptions")


def test_rare_saves_are_an_insight() -> None:
    """Four attempts of 100 steps of 10 s, each saved once in its middle at a cost of 5 s. Young's interval is sqrt(2 x
    5 x MTBF), about 100 s, but 255 s of training are between saves."""
    seen = insights(attempts_saved_twice([1200 * life for life in range(4)]), start(4800),
                    steps(200, 100, at=4800), end(5800))  # fmt: skip
    assert seen["rare_saves"].text.endswith("since the last checkpoint; checkpoints are 4 min 20 s apart (median)")
    assert seen["rare_saves"].advice == BY_CODE["rare_saves"].advice  # `advise` is inconclusive, too
    assert "wasted" not in seen["disruptions"].text


def attempts_saved_twice(begins: Sequence[float]) -> list[str]:
    """Return attempts of 95 steps of 10 s, each saved after its 25th and 50th step at a cost of 5 s. Each loses 44
    steps and one in flight."""
    log: list[str] = []
    for life, at in enumerate(begins):
        first = life * 50
        log += story_lines(
            start(at), steps(first, 25, at=at), save(at + 250, 5, first + 24), steps(first + 25, 25, at=at + 260),
            save(at + 510, 5, first + 49), steps(first + 50, 45, at=at + 520),
        )  # fmt: skip
    return log


def test_training_lost_by_rare_saves_is_not_in_outages() -> None:
    """Two hours without events follow the third attempt: from 960 s after its start (its last step) to the next
    start."""
    seen = insights(
        attempts_saved_twice([0, 1200, 2400, 10_800]), start(12_000), steps(200, 100, at=12_000), end(13_000)
    )
    assert seen["rare_saves"].seconds == 4 * 44 * 10
    assert seen["long_outage"].seconds == 10_800 - (2400 + 960)
    assert "undid" not in seen["long_outage"].text


def test_rare_saves_need_only_one_save_per_attempt() -> None:
    """Attempts of 100 steps of 10 s, saved once after the 50th at a cost of 1 s, with an MTBF of about 1000 s. Young's
    interval is 45 s, but 500 s of training are between saves."""
    log: list[str] = []
    for at, first in ((1200 * life, 50 * life) for life in range(4)):
        log += story_lines(start(at), steps(first, 50, at=at), save(at + 500, 1, first + 49))
        log += story_lines(steps(first + 50, 50, at=at + 502))
    seen = insights(log, start(4800), steps(200, 100, at=4800), end(5800))
    assert seen["rare_saves"].text.endswith("lost the work since the last checkpoint; checkpoints are 8 min 20 s apart")


def test_rare_saves_are_absent_if_more_saves_would_not_pay() -> None:
    """Two failures with saves at about Young's interval; the same without a save; and with saves of unknown cost."""
    night = [start(0), steps(0, 100, at=0), start(1200), steps(60, 100, at=1200), start(2400), steps(120, 9, at=2400)]
    advice = [
        insights(*night, *blocking, end(2500))["disruptions"].advice
        for blocking in ([], [save(590, 5, 59), save(1790, 5, 119)])
    ]
    assert advice[0] == "save checkpoints, or log them: the log contains no saves"
    assert advice[1] == "check whether to save checkpoints more often: they are 10 min 00 s apart"
    crash = insights(start(0), steps(0, 40, at=0), save(90, 5, 9), save(195, 5, 19), save(300, 5, 29),
                     start(420), steps(30, 200, at=420), end(2420))  # fmt: skip
    assert crash["disruptions"].advice == "checkpoints are frequent enough; check which improvement helps most"
    assert shlex.split(crash["disruptions"].command_line("LOG"))[1] == "advise"


def test_incomplete_save_is_not_expected_to_be_restored() -> None:
    """If the log shows when saves are complete, the blocking part of a save marks its begin. The save of step 59 was
    not complete at the failure, so step 29 was the newest. This lost 30 steps of 60 s, and 5 more."""
    log = story_lines(
        start(0), steps(0, 30, at=0, every=60), save(1800, 2, 29), saved(29, 1850), steps(30, 30, at=1810, every=60),
        save(3610, 2, 59), steps(60, 6, at=3620, every=60),
        start(4200), steps(30, 100, at=4200, every=60), end(10_200),
    )  # fmt: skip
    seen = insights(*log)
    assert "older_checkpoint" not in seen
    text = "checkpoint 59 was incomplete when the job failed; training resumed from step 30"
    assert seen["failed_saves"].text == text
    assert seen["failed_saves"].seconds == pytest.approx(30 * 60 + 10, abs=15)


def test_step_in_flight_hung_if_heartbeats_continued() -> None:
    """Step 99 begins at 990; heartbeats continue for an hour."""
    beats = [heartbeat(990 + 60 * beat) for beat in range(1, 61)]
    again = [start(5000), *steps(90, 100, at=5000), end(6000)]
    seen = insights(start(0), steps(0, 100, at=0), beats, again)
    assert seen["hang"].text == "step 99 hung for 1 h 00 min (usually 10.0 s)"
    assert seen["hang"].seconds == 3590
    assert "hang" not in insights(start(0), steps(0, 100, at=0), again), "a log that stops shows no hang"


def eight_attempts(every: int) -> list[str]:
    """Return eight attempts of 90 steps of 10 s, which begin `every` seconds apart."""
    told_ = (line for life in range(8) for line in (start(every * life), *steps(90 * life, 90, at=every * life + 2)))
    return [*told_, end(8 * every)]


def test_faster_restarts_are_advised_only_if_costly() -> None:
    """Limit: a fiftieth of the window. 10 s of 910 s and more are down."""
    assert insights(*eight_attempts(1000))["disruptions"].advice == "detect failures sooner, and restart automatically"
    assert insights(*eight_attempts(915))["disruptions"].advice == "find the cause of each disruption"


def test_three_failures_in_one_step_do_not_advise_more_saves() -> None:
    """Each attempt runs from step 50 to 89 and fails in it, 10 s after its begin; the fourth gets past it. Each attempt
    repeats 40 steps of 10 s, and 100 s pass."""
    lives = [(start(1000 * life), *steps(50 * (life > 0), 90 - 50 * (life > 0), at=1000 * life)) for life in range(4)]
    log = [line for life in lives for line in life] + [start(4000), *steps(50, 200, at=4000), end(6000)]
    seen = insights(*log)
    assert seen["same_step"].text.startswith("4 attempts failed in step 89: ")
    assert "saving more often does not help" in seen["same_step"].advice
    assert "rare_saves" not in seen
    elsewhere = [(start(1000 * life), *steps(50, 40 + life, at=1000 * life)) for life in range(1, 4)]
    log = [start(0), *steps(0, 90, at=0), *(line for life in elsewhere for line in life), start(4000),
           *steps(50, 200, at=4000), end(6000)]  # fmt: skip
    assert "same_step" not in insights(*log)


def test_wait_for_a_failed_rank_is_a_hang_with_advice_on_cause() -> None:
    """A rank ran out of memory, and the others waited 10 min for it until their watchdog ended them."""
    found = {one.code: one for one in goodput_cli.analyze(ROOT / "tests/causes/examples/01-oom-then-timeouts").insights}
    text = "step 151 hung for 10 min 04 s, until a timeout (disruption 1) (usually 4.00 s)"
    noticed = "10 min 00 s of 15 min 00 s passed before the failure was detected (a timeout of 10 min 00 s was set)"
    assert found["hang"].text.startswith(f"{text}; {noticed}: a watchdog of ")
    assert found["hang"].disruptions == (1,)
    assert found["hang"].advice.startswith("find out which rank was missing")
    assert found["disruptions"].text.startswith("1 disruption (likely device_oom on node-01): ")
    assert found["disruptions"].text.endswith("of wasted training; the hang before it is counted separately")
    assert "smaller batch" in found["disruptions"].advice


def test_hang_with_truncated_message_lasts_the_watchdog_timeout() -> None:
    """The last step begins at 2800 s and fails at 3500 s. The watchdog began to wait 600 s earlier."""
    words = (
        "torch.distributed.DistBackendError: [Rank 5] Watchdog caught collective operation timeout: WorkNCCL("
        "SeqNum=912, OpType=_ALLGATHER_BASE, NumelIn=26214400, NumelOut=209715200, Timeout(ms)=600000) ran for 600046 "
        "milliseconds before timing out."
    )
    dead = json.dumps({"job_name": "j", "goodput_event": "crashed", "goodput_time": BASE + 3500, "reason": words})
    by_code = insights(start(0), steps(0, 281, at=0), dead, start(3560), steps(270, 500, at=3600), end(8610))
    assert by_code["hang"].seconds == pytest.approx(600, abs=1)
    assert by_code["hang"].seconds + by_code["disruptions"].seconds == 3560 - 2700


def test_outage_of_decades_does_not_overflow() -> None:
    """30 years of downtime between attempts of minutes: fifty times as many ns exceed 64 bits."""
    years = 30 * 365 * 86_400
    seen = insights(
        start(0), steps(0, 20, at=0, every=60), start(1300), steps(10, 20, at=1300, every=60),
        start(years), steps(15, 30, at=years, every=60), end(years + 900),
    )  # fmt: skip
    assert seen["long_outage"].seconds > 0.99 * years


@pytest.mark.parametrize("begins_a_step", [False, True])
def test_failed_starts_are_not_attempts_in_advice(begins_a_step: bool) -> None:
    """14 starts: the first trained, 12 failed after five minutes, and the last ended normally."""
    lines, at = [start(0), *steps(0, 100, at=120, every=5), save(130, 2, 1), save(420, 2, 58), crashed(650)], 650.0
    for _ in range(12):
        lines += [start(at + 30), *([step(59, at + 320)] if begins_a_step else []), crashed(at + 330)]
        at += 330
    lines += [start(at + 30), *steps(59, 400, at=at + 150, every=5), end(at + 2155)]
    analysis = account(*lines).analysis
    found = {one.code: one for one in analysis.insights}
    assert analysis.reliability is not None
    assert (analysis.reliability.failures, found["failing_starts"].count) == (13, 12)
    assert found["failing_starts"].text.startswith("12 of 14 starts failed within 5 min 00 s")
    assert found["failing_starts"].seconds == 12 * 330
    assert not any("cache compiled programs" in (one.advice or "") for one in analysis.insights)
    advice = advise_job(analysis.timeline, "j", Options())
    assert (advice.record.failures, advice.record.failed_lives, advice.record.lives) == (13, 1, 2)
    assert advice.interval.counted_lives == 1


def test_initialization_belongs_to_failed_starts() -> None:
    """Five starts that initialize for 40 s and fail; the next begins 60 s later."""
    lines = [start(0), *steps(0, 100, at=0, every=10), crashed(1000)]
    for at in range(1060, 1560, 100):
        lines += [start(at), *init(at, at + 40), crashed(at + 40)]
    seen = insights(lines, start(1560), init(1560, 1600), steps(100, 300, at=1600, every=10), end(4600))
    assert seen["failing_starts"].seconds == 5 * 100
    assert "startups" not in seen


@pytest.mark.parametrize(("saved_step", "advised"), [(189, "set a watchdog"), (9, "set an alert")])
def test_watchdog_is_advised_if_a_restart_costs_less_than_the_hang(saved_step: int, advised: str) -> None:
    """Step 199 hangs for 1500 s. A watchdog of 120 s would restart the job from the save, 100 s or 1900 s earlier."""
    seen = insights(
        start(0), steps(0, 200, at=0), save((saved_step + 1) * 10, 1, saved_step), steps(200, 100, at=3500), end(4500)
    )
    assert advised in seen["hang"].advice


def test_older_checkpoint_does_not_cost_the_hang_after_it() -> None:
    """Step 14 hangs for 1500 s. Step 9 is restored, although 19 and 29 were complete."""
    seen = insights(
        start(0), steps(0, 15, at=0, every=60), steps(15, 24, at=2400, every=60),
        save(600, 1, 9), save(2700, 1, 19), save(3300, 1, 29),
        start(4000), restore(4000, 10, 9), steps(10, 60, at=4030, every=60), end(7630),
    )  # fmt: skip
    assert seen["hang"].seconds == 1500
    assert seen["older_checkpoint"].seconds == 20 * 60
