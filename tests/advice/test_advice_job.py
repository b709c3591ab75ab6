"""Advice on whole jobs: the sample night, what must not change an answer, and honesty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import goodput_cli
from benchmarks.advice_jobs import Job, record_of_job, true_goodput
from goodput_cli.analysis.advice.advise import Advice, Options, advise, advise_job
from goodput_cli.analysis.advice.curve import exposure_of
from goodput_cli.analysis.advice.interval import interval_advice
from goodput_cli.analysis.advice.record import JobRecord
from goodput_cli.analysis.advice.replay import RecordedSaves, SaveEvery, check_replay, replay
from goodput_cli.analysis.advice.replay_attempts import record_of
from goodput_cli.analysis.question import Price
from goodput_cli.errors import NotEnoughData
from tests.accounting.test_properties import analyse, slowly
from tests.strategies import any_logs, messy_logs, unchanged_answers

SAMPLES = Path(__file__).parents[2] / "sample_logs"
EXAMPLES = Path(__file__).parent / "examples"
SECOND = 10**9
few = settings(slowly)


@cache
def night() -> JobRecord:
    return record_of(goodput_cli.analyze(SAMPLES / "llm-pretrain.jsonl").timeline, "llm-pretrain-7b")


@cache
def advice_on_the_night() -> Advice:
    return advise(night(), Options(price=Price(256, 4.20)))


def test_advice_on_the_night_log_is_to_save_more_often() -> None:
    interval = advice_on_the_night().interval
    assert (interval.verdict, interval.every_steps, interval.counted_lives) == ("change", 50, 4)
    assert interval.today_percent == pytest.approx(67.99, abs=0.01)
    assert interval.goodput_percent == pytest.approx(72.25, abs=0.02)
    assert interval.gain_ci95_points == pytest.approx((0.36, 11.77), abs=0.02)
    assert interval.ci95_steps == (34, 97)
    assert interval.probability == pytest.approx(0.98, abs=0.005)


def test_night_log_replayed_with_saves_every_fifty_steps() -> None:
    """Its own failures come at other steps, and it takes four minutes longer: the average is not this one night."""
    assert check_replay(night()).ok
    done = replay(night(), SaveEvery(night(), 50))
    assert done.path == ((791, 751), (1219, 1201), (1834, 1401), (2209, 2201))
    assert done.ns is not None
    assert (done.ns - night().window) / SECOND == pytest.approx(242, abs=1)
    assert replay(night(), RecordedSaves(night())).path == ((801, 801), (1290, 1201), (1850, 1401), (2230, 2201))


def test_improvements_of_the_night_log() -> None:
    levers = {lever.name: lever for lever in advice_on_the_night().levers}
    points = {name: round(lever.points, 2) for name, lever in levers.items()}
    assert points["failures"] == 8.43
    assert points["newest_checkpoint"] == 6.81
    assert (points["evals"], points["slow_steps"], points["spares"]) == (2.38, 1.93, 1.49)
    assert (points["restart"], points["downtime"]) == (1.02, 0.95)
    assert levers["failures"].accelerator_hours == pytest.approx(306.16, abs=0.01)
    assert levers["failures"].cost == pytest.approx(1285.87, abs=0.01)
    assert "async_saves" not in levers  # its saves are in the background: `synchronous` is false
    seconds = [lever.seconds for lever in advice_on_the_night().levers]
    assert seconds == sorted(seconds, reverse=True)
    bound = advice_on_the_night().bound
    assert bound is not None
    assert bound.points == pytest.approx(13.86, abs=0.01)


def test_incomplete_logs_get_no_number() -> None:
    """Without saves, with two failures, with none, still running: a sentence that helps, and no made-up number."""
    found = {}
    for name in ("11-no-saves", "09-two-failures", "02-no-failure", "12-running"):
        timeline = goodput_cli.analyze(EXAMPLES / f"{name}.jsonl").timeline
        found[name] = advise_job(timeline, name, Options())
    assert found["11-no-saves"].interval.every_steps is None
    assert found["09-two-failures"].interval.verdict == "keep"
    assert (found["02-no-failure"].interval.verdict, found["02-no-failure"].interval.every_steps) == ("unclear", None)
    assert "50 steps" in str(found["02-no-failure"].interval.say)
    assert (found["12-running"].interval.verdict, found["12-running"].interval.reason) == ("unclear", "few_failures")
    assert {lever.name for lever in found["11-no-saves"].levers} >= {"failures", "restart"}


def test_interval_known_from_one_save_is_reported() -> None:
    timeline = goodput_cli.analyze(EXAMPLES / "06-too-rare.jsonl").timeline
    codes = {one.code for one in advise_job(timeline, "rare", Options()).diagnostics}
    assert "one_interval_only" in codes
    assert "one_interval_only" not in {
        one.code for one in advise_job(timeline, "rare", Options(), every=60).diagnostics
    }


def test_all_moments_of_failure_are_accepted() -> None:
    job = advise_job(goodput_cli.analyze(EXAMPLES / "10-checkpoint-log.jsonl").timeline, "x", Options())
    assert job.record.death == "middle"
    assert job.deaths is not None
    assert None not in (job.deaths.earliest, job.deaths.latest)
    assert job.deaths.middle == job.interval.today_percent
    assert job.deaths.earliest != job.deaths.latest


def test_given_mtbf_replaces_the_rate() -> None:
    record = record_of(goodput_cli.analyze(EXAMPLES / "02-no-failure.jsonl").timeline, "x")
    found = interval_advice(record, exposure_of(record, 3600.0)).advice
    assert (found.verdict, found.plateau_steps) == ("change", (34, 41))
    assert found.formulas.exact_seconds == pytest.approx(366, abs=1)
    seldom = interval_advice(record, exposure_of(record, 1e6)).advice
    assert seldom.every_steps is not None
    assert found.every_steps is not None
    assert seldom.every_steps > found.every_steps


@few
@given(st.one_of(any_logs(), messy_logs()), st.sampled_from([None, SECOND]), st.booleans())
def test_every_log_replays_as_it_was(lines: Sequence[str], save_ns: int | None, asynchronous: bool) -> None:
    """Replays differ by 0 ns or contain a reason; and no log makes the advice fail."""
    analysis = analyse(lines, async_saves=asynchronous)
    if analysis is None:
        return
    try:
        record = record_of(analysis.timeline, "j", save_ns=save_ns)
    except NotEnoughData:
        return
    found = advise_job(analysis.timeline, "j", Options(), save_ns=save_ns)
    if any(end.died >= record.end for end in record.ends[: record.last]):
        assert found.record.replay.ok or found.record.replay.reason  # an earlier attempt was done already
        return
    assert found.record.replay.ok or found.record.replay.reason
    assert not found.record.replay.ok or replay(record, RecordedSaves(record)).ns == record.window


@few
@given(any_logs(), st.data())
def test_order_and_copies_change_nothing(lines: list[str], data: st.DataObject) -> None:
    changed = data.draw(unchanged_answers(lines))
    one, other = analyse(lines), analyse(*changed)
    if one is None or other is None:
        return
    try:
        found = [advise_job(analysis.timeline, "j", Options()) for analysis in (one, other)]
    except NotEnoughData:
        return
    plain = [replace(advice, diagnostics=()) for advice in found]
    assert repr(plain[0]) == repr(plain[1])


@pytest.mark.parametrize(
    ("shape", "best", "failures", "most"), [(1.0, 55, 4, 1), (1.0, 55, 20, 1), (0.6, 60, 4, 10), (0.6, 60, 20, 10)]
)
def test_best_interval_is_rarely_advised_to_change(shape: float, best: int, failures: int, most: int) -> None:
    """Of a hundred simulated jobs; `python -m benchmarks.advice` prints the whole table. With exponential attempts one
    may get other advice by chance; uneven ones err more often."""
    random, told = np.random.default_rng(11), 0
    job = Job(shape, failures=failures, every=best)
    for _ in range(50):
        record = record_of_job(job, random)
        found = interval_advice(record, exposure_of(record)).advice
        if found.verdict == "change" and found.every_steps is not None:
            told += 1
            # One short attempt among four may mislead if attempts are uneven; the benchmark prints by how much.
            assert shape < 1 or true_goodput(job, found.every_steps) > true_goodput(job, best) - 0.5
    assert told <= most


def test_bad_interval_is_advised_to_change() -> None:
    random, told = np.random.default_rng(12), 0
    for _ in range(20):
        record = record_of_job(Job(1.0, failures=10, every=11), random)
        if all(end.died < record.end for end in record.ends[: record.last]):
            assert replay(record, RecordedSaves(record)).ns == record.window
        told += interval_advice(record, exposure_of(record)).advice.verdict == "change"
    assert told == 20
