"""Insights: the largest losses, in seconds calculated by hand, and none if nothing was lost."""

from __future__ import annotations

import json
import shlex
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.insights.find import _all, is_judged
from goodput_cli.analysis.insights.kinds import BY_CODE
from goodput_cli.analysis.measures import MEASURES
from goodput_cli.errors import UsageError
from goodput_cli.report.base import Page
from goodput_cli.report.insight_lines import insight_lines
from loggen.scenario import Scenario
from loggen.write import write_log
from tests.accounting.test_properties import analyse, slowly
from tests.strategies import any_logs
from tests.support.answers import as_markdown as markdown
from tests.support.answers import as_table as table
from tests.support.answers import losses
from tests.support.documents import ROOT
from tests.support.story import (
    account,
    custom,
    end,
    finished,
    init,
    insights,
    loading,
    prep,
    saved,
    start,
    started,
    step,
    steps,
    terminated,
)

NIGHT = str(ROOT / "sample_logs" / "llm-pretrain.jsonl")
PAGE = Page()


def test_hanging_step_that_is_kept_is_the_stall_of_the_ledger() -> None:
    seen = insights(start(0), steps(0, 50, at=0), step(50, 2000), steps(51, 50, at=2010), end(2510))
    assert seen["hang"].text == "step 49 hung for 25 min 10 s (usually 10.0 s)"
    assert seen["hang"].seconds == 1500
    assert seen["hang"].about.steps == (49,)
    assert seen["hang"].command == ("timeline", "--around", "step:49", "--events")


def test_lost_step_that_hung_is_not_in_the_disruption() -> None:
    """Step 39 takes 1510 s and is lost with steps 30 to 49. The hang has 1500 s. The disruption has the other 19 steps
    of 10 s (one more is in flight), the usual time of step 39, and 100 s of downtime."""
    seen = insights(
        start(0), steps(0, 40, at=0), steps(40, 11, at=1900), start(2100), steps(30, 200, at=2100), end(4100)
    )
    assert seen["hang"].seconds == 1500
    assert seen["hang"].text == "step 39 hung for 25 min 10 s (usually 10.0 s)"
    assert seen["disruptions"].seconds == 300


def test_evaluation_in_lost_training_is_not_a_hang() -> None:
    seen = insights(
        start(0), steps(0, 40, at=0), custom("EVAL", 400, 1900), steps(40, 11, at=1900),
        start(2100), steps(30, 200, at=2100), end(4100),
    )  # fmt: skip
    assert "hang" not in seen


def test_silence_at_the_end_is_a_dead_job() -> None:
    seen = insights(start(0), steps(0, 100, at=0), as_of=4600)
    assert seen["dead_job"].seconds == 4600 - 990
    assert "hang" not in seen


def test_evaluations_above_a_tenth_are_an_insight() -> None:
    evals = [custom("EVAL_LOSS", at, at + 40) for at in range(200, 2000, 200)]
    seen = insights(start(0), *(step(number, 10 * number) for number in range(200)), *evals, end(2000))
    assert seen["evals"].seconds == 9 * 40
    assert seen["evals"].text == "EVAL_LOSS blocked training 9 times, 40.0 s on average"
    assert seen["evals"].about.categories == ("custom_badput_events:EVAL_LOSS",)


def test_insights_of_sample_log_have_the_expected_seconds() -> None:
    found = goodput_cli.analyze(NIGHT).insights
    assert [one.code for one in found] == [
        "unknown_saves",
        "older_checkpoint",
        "hang",
        "rare_saves",
        "disruptions",
        "slow_steps",
    ]
    assert [round(one.seconds) for one in found] == [1781, 1768, 1500, 1341, 1077, 1072]
    assert found[2].text.startswith("step 1503 hung")
    assert found[5].text == "steps 2201 to 2601 took 1.33 x the usual 8.01 s, counted as goodput"
    assert found[5].advice == "restore the missing slices: 3 of 4 were active"


def test_first_thirty_lines_answer_three_questions() -> None:
    lines = table(goodput_cli.analyze(NIGHT, accelerators=256, price_per_hour=4.2), Page()).splitlines()[:30]
    first = "\n".join(lines)
    for answer in (
        "restored step 1400, although checkpoint 1600 was complete", "step 1503 hung for 25 min 08 s",
        "846.75 accelerator hours",
        "3,556.33", "restore the newest complete checkpoint", "save a checkpoint about every 50 steps",
        "goodput timeline ", "goodput advise ",
    ):  # fmt: skip
        assert answer in first, answer
    assert max(len(line) for line in lines if "goodput " not in line) <= 80  # a command is never truncated


def test_save_interval_is_that_of_advise() -> None:
    """Young's interval is at most twice or half the best one. An insight to change the interval uses the one of
    advise."""
    (found,) = (one for one in goodput_cli.analyze(NIGHT).insights if one.code == "rare_saves")
    interval = goodput_cli.advise(NIGHT).interval
    assert interval.verdict == "change"
    assert interval.replayed is not None
    assert (interval.replayed.saved_seconds or 0) < 60
    average = "it pays on average, although not with the failures of this run"
    assert found.advice == f"save a checkpoint about every {interval.every_steps} steps: {average}"


@pytest.mark.parametrize(("lines", "said"), [(4500, True), (7500, False)])
def test_only_advise_gives_the_interval_for_many_attempts(tmp_path: Path, lines: int, said: bool) -> None:
    """Weighing thousands of attempts takes longer than accounting for them."""
    log = tmp_path / "many.jsonl"
    with log.open("wb") as stream:
        write_log(Scenario(seed=7, disruption_every=10, save_every=5, lines=lines), stream)
    analysis = goodput_cli.analyze(log)
    assert (len(analysis.timeline.attempts) <= 300) is said
    (found,) = (one for one in analysis.insights if one.code == "frequent_saves")
    assert found.advice.startswith("save a checkpoint about every" if said else "check with `goodput advise`")
    assert "goodput advise" in found.command_line()


def test_insights_of_a_long_log_use_little_memory(tmp_path: Path) -> None:
    log = tmp_path / "long.jsonl"
    with log.open("wb") as stream:
        write_log(Scenario(seed=7, disruption_every=2000, save_every=100, eval_every=50, lines=120_000), stream)
    analysis = goodput_cli.analyze(log)
    steps = analysis.steps.count
    assert steps > 100_000
    assert len(analysis.timeline.segments) > 0  # the accounting is complete before the measurement
    tracemalloc.start()
    try:
        begin, _ = tracemalloc.get_traced_memory()
        assert analysis.insights
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (most - begin) / steps < 40, "bytes a step: a column of numbers is 8"


def test_commands_contain_the_named_logs(tmp_path: Path) -> None:
    log = tmp_path / "it's a log.jsonl"
    log.write_text(Path(NIGHT).read_text())
    older = goodput_cli.analyze(log, job_name="llm-pretrain-7b").insights[0]
    words = ["goodput", "timeline", str(log), "-j", "llm-pretrain-7b", "--around", "disruption:4"]
    assert shlex.split(older.command_line()) == words
    assert older.command_line("LOG") == "goodput timeline LOG --around disruption:4"


def test_insights_are_created_on_first_access() -> None:
    analysis = goodput_cli.analyze(NIGHT)
    assert "insights" not in vars(analysis)
    assert analysis.insights is analysis.insights


@given(any_logs())
@slowly
def test_no_second_is_in_two_insights(log: list[str]) -> None:
    """The sum is at most the loss. Slow steps without a reference are in productive time, and data loading during steps
    is outside the ledger."""
    analysis = analyse(log, exclude=())
    if analysis is None:
        return
    found = list(_all(analysis))
    outside = {"slow_steps", "input_bound"}
    total = sum(one.ns - one.in_goodput_ns for one in found if one.code not in outside)
    assert total <= sum(row.ns for row in analysis.badput if row.category != "training_slowdown")
    assert sum(one.in_goodput_ns for one in found if one.code != "input_bound") <= analysis.goodput.ns
    assert all(one.ns >= 0 for one in found if one.code not in outside)


@given(any_logs())
@slowly
def test_windows_cut_what_insights_have(log: list[str]) -> None:
    analysis = analyse(log)
    if analysis is None:
        return
    half = (analysis.job.start_ns + analysis.job.end_ns) // 2
    part = analyse(log, end=half) if half > analysis.job.start_ns else None
    if part is not None:
        lost = sum(row.ns for row in part.badput if row.category != "training_slowdown")
        assert sum(one.ns for one in _all(part) if one.code not in {"slow_steps", "input_bound"}) <= lost


def judged(expression: str, analysis: Analysis | None = None, **options: Any) -> tuple[bool | None, float | None]:
    found = goodput_cli.analyze(NIGHT, thresholds=[expression], **options).thresholds[0]
    return found.met, found.value


def test_gates_accept_seconds_and_percent() -> None:
    older, hang = judged("insight:older_checkpoint>4%"), judged("insight:hang>10m")
    assert (older[0], hang[0]) == (True, True)
    assert older[1] == pytest.approx(4.3909, abs=1e-4)
    assert hang[1] == pytest.approx(1499.8, abs=0.1)
    assert judged("insight:hang>30m")[0] is False


def test_gate_is_zero_when_absent_and_unjudged_when_unknown() -> None:
    assert judged("insight:long_outage>0") == (False, 0.0)
    assert judged("insight:queued>0") == (None, None)


def test_checkpoint_log_shows_no_hangs() -> None:
    log = account(started(0), finished(0, 100), saved(0, 110), finished(10, 1000), terminated(1100))
    assert not is_judged(BY_CODE["hang"], log.analysis)
    assert is_judged(BY_CODE["older_checkpoint"], log.analysis)


def test_gate_on_unknown_kind_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match="did you mean older_checkpoint"):
        goodput_cli.analyze(NIGHT, thresholds=["insight:old_checkpoint>0"])


def test_every_kind_declares_its_required_measurements() -> None:
    assert [name for kind in BY_CODE.values() for name in kind.needs if name not in MEASURES] == []


def test_log_text_in_insights_is_escaped(tmp_path: Path) -> None:
    """A label is the only log text in an insight."""
    label = "EVAL\x1b[31m<b>|`x`"
    evals = [custom(label, at, at + 40) for at in range(200, 2000, 200)]
    analysis = account(start(0), *(step(n, 10 * n) for n in range(200)), *evals, end(2000)).analysis
    assert "\x1b" not in table(analysis, PAGE)
    shown = next(line for line in markdown(analysis, PAGE).splitlines() if "blocked training" in line)
    assert "<B>" not in shown.upper()
    assert shown.count("|") == shown.count("\\|")
    assert json.loads(goodput_json(analysis))["insights"][0]["text"].startswith("EVAL")


def goodput_json(analysis: Analysis) -> str:
    from tests.support.answers import as_json as render

    return str(render(analysis, PAGE))


def test_start_with_several_phases_is_one_start() -> None:
    log = [start(0), *init(0, 30), *prep(30, 100), *steps(0, 10, at=100), end(200)]
    (insight,) = account(*log).analysis.insights
    assert (insight.code, insight.count) == ("startups", 1)
    assert insight.text == "1 start-up: initialization, preparation and first steps"


def test_slow_steps_that_wait_for_data_are_attributed() -> None:
    """100 steps of 10 s, then 100 of 20 s with 8 s of data loading each. The last step has no duration: 99 loads, 792
    s, are in the slow period of 1980 s. The other load of 8 s in the other 1020 s means that 15.5 s of loading would be
    usual there."""
    slow = [event for number in range(100) for event in (
        *loading(1001 + 20 * number, 1009 + 20 * number), *steps(100 + number, 1, at=1000 + 20 * number)
    )]  # fmt: skip
    log = [start(0), *steps(0, 100, at=0), *slow, end(3000)]
    (insight,) = account(*log).analysis.insights
    assert insight.text == (
        "steps 100 to 198 took 2.00 x the usual 10.0 s, counted as goodput; data loading took 12 min 56 s longer "
        "than usual"
    )
    assert (insight.seconds, insight.in_goodput_ns) == (990, 990 * 10**9)
    assert insight.advice == "prefetch more data, or read it from nearer storage"


def test_screen_without_insights_shows_the_largest_loss() -> None:
    crash = [start(0), *steps(0, 7, at=10), end(75), start(100), *steps(4, 5, at=110), end(160)]
    text = "\n".join(line.plain for line in insight_lines(losses(account(*crash).analysis), 78, Page()))
    assert text.startswith("LOST     43.75 %  1 min 10 s: recovery 25.0 s, wasted progress 25.0 s,\n         other")
    assert text.endswith("→ find what each disruption cost  goodput disruptions -")
    weekend = [start(0), *steps(0, 7, at=10), end(80), start(9000), *steps(7, 7, at=9010), end(9080)]
    text = "\n".join(line.plain for line in insight_lines(losses(account(*weekend).analysis), 78, Page()))
    assert "1 planned stop\n" in text
    assert "analyze the job without the stops goodput analyze - --exclude-stopped" in " ".join(text.split())
    well = account(start(0), *steps(0, 100, at=1), end(1001)).analysis
    healthy = list(insight_lines(losses(well), 78, Page()))
    assert [line.plain for line in healthy] == ["LOST     0.10 %  1.00 s: other 1.00 s"]
