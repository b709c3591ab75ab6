"""Parts of advice by hand: formulas, random numbers, round intervals, medians and the arithmetic of improvements."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import goodput_cli
from goodput_cli.analysis.advice.curve import Exposure, LossCurve, SaveCost
from goodput_cli.analysis.advice.draws import one_run, spread, uniforms
from goodput_cli.analysis.advice.interval import roundest
from goodput_cli.analysis.advice.record import (
    FLAT,
    EndKind,
    ReplayAttempt,
    SaveColumns,
    linear_total,
    median_share,
    sparse_linear_total,
    step_total,
)
from goodput_cli.analysis.advice.replay import check_replay
from goodput_cli.analysis.advice.replay_attempts import DeathEvidence, JobContext, completed_attempt, record_of
from goodput_cli.analysis.advice.results import daly, exact, formulas, young
from goodput_cli.analysis.goodput.findings import CoveredTime
from tests.simulation.job import Job

SECOND = 10**9
HOUR = 3600.0


@pytest.mark.parametrize(
    ("mtbf", "expected"),
    [(24 * HOUR, (7200, 7001.39, 7001.40)), (6 * HOUR, (3600, 3402.78, 3402.84)), (900.0, (734.85, 548.46, 549.99))],
)
def test_formulas(mtbf: float, expected: tuple[float, float, float]) -> None:
    """Daly's figures 3 to 5 give 117, 57 and 9.1 min for a save of 5 min."""
    assert (young(300, mtbf), daly(300, mtbf), exact(300, mtbf)) == pytest.approx(expected, abs=0.006)


def test_young_formula_is_hidden_when_far_off() -> None:
    assert formulas(300, 900).young_seconds is None
    assert formulas(300, 24 * HOUR).young_seconds == pytest.approx(7200)
    assert daly(300, 100) == 100
    assert formulas(13.7, None).daly_seconds is None


def test_random_numbers_are_the_same_everywhere() -> None:
    assert uniforms(3).tolist() == [0.566561575172281, 0.7457817572627012, 0.9710027535867963]
    assert uniforms(5)[3:].tolist() == uniforms(2, skip=3).tolist()


def exposure(lives: list[float], **changes: Any) -> Exposure:
    values: dict[str, Any] = {
        "budgets": sum(lives),
        "work": 0.9 * sum(lives),
        "gaps": 0.0,
        "fixed": 0.0,
        "extra": 0.0,
        "pace": 1.0,
    }
    values |= {"productive": 0.9 * sum(lives), "window": sum(lives)} | changes
    return Exposure(lives=np.array(lives), **values)


def test_end_of_attempt_loses_unsaved_work() -> None:
    """00-tiny: saves every 4 steps of 10 s, 5 s each; one attempt of 85 s: (2728.125 - 903.125) / 85."""
    curve = LossCurve(exposure([85.0], pace=10.0, budgets=160.0), [4], SaveCost(5.0))
    assert curve.lost[0, 0] == pytest.approx(1825 / 85)


@pytest.mark.parametrize("period", [300, 522, 900])
def test_exponential_attempts_match_the_exact_curve(period: int) -> None:
    mean, cost = 9442.0, 13.7
    lives = (-mean * np.log1p(-(np.arange(2000) + 0.5) / 2000)).tolist()
    one = exposure(lives, work=1.0, productive=1.0)
    kept = 1 / float(LossCurve(one, [period - 14], SaveCost(14.0)).average[0])
    whole = sum(lives) / 2000
    assert kept == pytest.approx((period - 14) / whole / math.expm1(period / whole), abs=1e-4)
    assert cost < mean


def test_constant_long_attempts_give_young_interval() -> None:
    """For attempts of all lengths around one mean, the best period is the square root of 2 C M, within the grid."""
    mean, cost = 100_000.0, 20.0
    intervals = sorted({round(1.1**power) for power in range(100)})
    curve = LossCurve(exposure([mean] * 10), intervals, SaveCost(cost))
    best = float(curve.periods[int(np.argmin(curve.average))])
    assert best == pytest.approx(math.sqrt(2 * cost * mean), rel=0.1)


def test_job_that_never_ends_has_no_length() -> None:
    """Free saves are made always; attempts shorter than a save make no progress."""
    free = LossCurve(exposure([1000.0]), [1, 10, 100], SaveCost(0.0)).average
    assert np.argmin(free) == 0
    assert LossCurve(exposure([10.0] * 9), [1], SaveCost(1e5)).average[0] == math.inf


def test_repeated_attempts_give_the_same_curve() -> None:
    once, often = exposure([500.0, 900.0, 1500.0]), exposure([500.0, 900.0, 1500.0] * 20)
    curves = [LossCurve(one, [10, 50, 200], SaveCost(5.0)) for one in (once, often)]
    shares = [curve.average / curve.exposure.budgets for curve in curves]
    assert shares[0].tolist() == pytest.approx(shares[1].tolist())


@given(st.integers(1, 3000), st.integers(0, 3000), st.data())
def test_the_roundest_interval(low: int, width: int, data: st.DataObject) -> None:
    best = data.draw(st.integers(low, low + width))

    def digits(number: int) -> int:
        return len(str(number).rstrip("0"))

    wanted = min(range(low, low + width + 1), key=lambda n: (digits(n), abs(math.log(n / best)), n))
    assert roundest(low, low + width, best) == wanted


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 40)), min_size=1, max_size=9), st.booleans())
def test_the_median_of_shares(stretches: list[tuple[int, int]], skip: bool) -> None:
    single = [ns * (step + 1) // count - ns * step // count for count, ns in stretches for step in range(count)][skip:]
    count, amount = (np.array(column) for column in zip(*stretches, strict=True))
    found = median_share(count, amount, skip)
    assert found == (round(float(np.median(single))) if single else None)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 30)), min_size=1, max_size=8), st.integers(0, 40))
def test_a_ramp_is_the_sum_of_its_steps(stretches: list[tuple[int, int]], place: int) -> None:
    single = [ns * (step + 1) // count - ns * step // count for count, ns in stretches for step in range(count)]
    count, amount = (np.array(column) for column in zip(*stretches, strict=True))
    total = linear_total(np.cumsum(count) - count, count, amount, beyond=7)
    assert total.total_at(place) == sum(single[:place]) + 7 * max(place - len(single), 0)


def test_evals_and_saves_by_position() -> None:
    evals = sparse_linear_total(np.array([3, 4, 9]), np.array([4, 5, 10]), np.array([70, 71, 72]))
    assert [evals.total_at(position) for position in (0, 3, 4, 5, 8, 10, 99)] == [0, 0, 70, 141, 141, 213, 213]
    saves = step_total(np.array([5, 9]), np.array([20, 30]))
    assert (saves.total_at(4), saves.total_at(5), saves.total_at(9)) == (0, 20, 50)
    assert (saves.last(0, 8), saves.last(5, 8), saves.last(5, 9)) == (5, None, 9)


def replay_attempt(steps: int, first: int = 0) -> ReplayAttempt:
    """Steps of 10 s, none saved, from second 100 on."""
    none = np.zeros(0, np.int64)
    work = linear_total(np.arange(steps), np.ones(steps, np.int64), np.full(steps, 10 * SECOND), 10 * SECOND)
    return ReplayAttempt(0, first, first + steps, 100 * SECOND, 0, 0, 0, 10 * SECOND, work, FLAT,
                         SaveColumns(none, none, none), False, first, 0)  # fmt: skip


@pytest.mark.parametrize(("behind", "hang"), [(4, 0), (9.999999999, 0), (10, 1e-9), (310, 300 + 1e-9)])
def test_a_hang_at_the_end(behind: float, hang: float) -> None:
    """A step of 10 s that was in flight for longer than that hung: it must not be completed in a replay."""
    one, seen = replay_attempt(3), 130 * SECOND
    death = seen + round(behind * SECOND)
    trace = DeathEvidence(seen, 0, death, death, death, True, True, 1)
    done = completed_attempt(one, trace, JobContext(True, (), 99, FLAT, 0, "middle"))
    assert (done.hang, done.budget + done.hang) == (round(hang * SECOND), death - 100 * SECOND)


@pytest.mark.parametrize(("choice", "lived"), [("earliest", 30), ("middle", 80), ("latest", 130 - 1e-9)])
def test_death_in_checkpoint_logs(choice: str, lived: float) -> None:
    """Three steps seen, the next save ten further on: had it lived for 100 s more, that would have been seen."""
    trace = DeathEvidence(130 * SECOND, 0, None, 130 * SECOND, 900 * SECOND, False, True, 3)
    done = completed_attempt(replay_attempt(3), trace, JobContext(False, (13,), 99, FLAT, 0, choice))  # type: ignore[arg-type]
    assert (done.budget, done.hang) == (round(lived * SECOND), 0)


def test_time_logged_past_the_next_save_is_a_hang() -> None:
    trace = DeathEvidence(130 * SECOND, 0, 500 * SECOND, 500 * SECOND, 900 * SECOND, False, True, 3)
    done = completed_attempt(replay_attempt(3), trace, JobContext(False, (13,), 99, FLAT, 0, "middle"))
    assert done.hang == 270 * SECOND + 1


def test_one_run_varies_more_than_the_average_of_many() -> None:
    """Ten attempts of equal length: the average is known, and a single run still depends on where each fails."""
    curve = LossCurve(exposure([7200.0] * 10, gaps=3000.0, behind=np.full(10, 300.0)), [1200], SaveCost(15.0))
    drawn = spread(curve, None, None).goodput[:, 0]
    alone = one_run(curve)
    assert alone is not None
    low, high = alone
    assert low < float(curve.goodput(curve.average)[0]) < high
    assert high - low > 0.5 * (drawn[1] - drawn[0])
    assert one_run(LossCurve(exposure([], budgets=7200.0, mtbf_given=600.0), [60], SaveCost(1.0))) is None


def background(completes_after: float) -> list[dict[str, object]]:
    """Return a log of 150 steps with background saves after 50 and 100; the job fails 20 s after the second."""
    job = Job(1, noise=0.0)
    job.start()
    for number in range(2):
        job.steps(50)
        job.background_save(completes_after=None if number and completes_after > 20 else completes_after)
    job.steps(2)
    job.now += 4
    job.begin_step()
    job.now += 300
    job.start()
    job.restore(99 if completes_after < 20 else 49)
    job.steps(150)
    job.end()
    return sorted(map(json.loads, job.lines), key=lambda line: min(v for k, v in line.items() if k.endswith("_time")))


@pytest.mark.parametrize("after", [1.0, 200.0])
def test_background_save_is_usable_when_logged_complete(after: float) -> None:
    """The job failed before 200 s after the second save: it resumed at the first, which was then the newest."""
    record = record_of(goodput_cli.analyze(background(after)).timeline, "sim")
    assert check_replay(record).ok
    assert [end.kind for end in record.ends] == [EndKind.NEWEST, EndKind.END]
    assert record.latency == after * 1e9
    assert record.asynchronous
    assert not record.background


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 15)), max_size=6))
def test_overlapping_intervals_count_once(intervals: list[tuple[int, int]]) -> None:
    """However they lie: side by side, over each other or one in another."""
    start, length = np.array(intervals, dtype=np.int64).reshape(-1, 2).T
    until = np.arange(-1, 60)
    seconds = {at for begin, long in intervals for at in range(begin, begin + long)}
    assert CoveredTime(start, start + length).covered_before(until).tolist() == [
        sum(at < end for at in seconds) for end in until
    ]
