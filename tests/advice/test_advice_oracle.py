"""The engine against an oracle that shares no code with it, on generated step logs: attempts, replays and the curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.advice import cover
from benchmarks.advice_jobs import BURSTS, Job, record_of_job
from goodput_cli.analysis.advice.curve import Exposure, LossCurve, SaveCost, exposure_of
from goodput_cli.analysis.advice.draws import block_length, one_run, spread
from goodput_cli.analysis.advice.record import JobRecord
from goodput_cli.analysis.advice.replay import RecordedSaves, SaveEvery, replay
from goodput_cli.analysis.advice.replay_attempts import record_of
from goodput_cli.errors import NotEnoughData
from tests.accounting.test_properties import analyse, slowly
from tests.oracle import advice as oracle
from tests.oracle import advice_replay as plainly
from tests.oracle.advice_ranges import JobFacts, ranges
from tests.oracle.advice_ranges import block_length as block_length_of_oracle
from tests.oracle.advice_ranges import one_run as one_run_of_oracle
from tests.strategies import messy_logs, step_logs

INTERVALS = (1, 2, 3, 5)
EVERY = (10, 50, 200)
few = settings(slowly)


def engine(lines: Sequence[str]) -> JobRecord | None:
    analysis = analyse(lines)
    try:
        return None if analysis is None else record_of(analysis.timeline, "j")
    except NotEnoughData:
        return None


@few
@given(st.one_of(step_logs(), messy_logs()))
def test_engine_and_oracle_agree(lines: Sequence[str]) -> None:
    found, expected = engine(lines), oracle.record(lines)
    if found is None or not found.step_log or expected is None:
        return
    assert attempts_of(found) == [
        (life.first, life.stop, life.startup, life.hang, life.budget, end.kind)
        for life, end in zip(expected.lives, plainly.ends(expected), strict=True)
    ]
    assert (found.end, found.last, found.shift) == (expected.end, expected.last, expected.shift)
    done = replay(found, RecordedSaves(found))
    assert (done.ns, list(done.path)) == plainly.replay(expected, plainly.as_recorded(expected))
    if found.cost is None:
        return
    for interval in INTERVALS:
        done = replay(found, SaveEvery(found, interval))
        ns, path = plainly.replay(expected, plainly.every(expected, interval, found.cost_ns))
        assert (done.ns, done.ns and list(done.path)) == (ns, ns and path)
    if sum(len(life.times) for life in expected.lives) and sum(life.gross for life in expected.lives):
        curve = LossCurve(exposure_of(found), INTERVALS, SaveCost(found.cost))
        plain = [plainly.average(expected, interval, found.cost) for interval in INTERVALS]
        assert curve.average.tolist() == pytest.approx(plain, rel=1e-9)


def attempts_of(record: JobRecord) -> list[tuple[object, ...]]:
    return [
        (life.first, life.stop, life.startup, life.hang, life.budget, end.kind)
        for life, end in zip(record.lives, record.ends, strict=True)
    ]


def known(exposure: Exposure) -> JobFacts:
    return JobFacts(
        exposure.lives.tolist(), exposure.budgets, exposure.work, exposure.gaps, exposure.fixed, exposure.extra,
        exposure.productive, exposure.behind.tolist(),
    )  # fmt: skip


@pytest.mark.parametrize(("failures", "latency"), [(1, 0.0), (4, 30.0), (12, 0.0), (23, 0.0)])
def test_the_range_of_one_run_is_that_of_the_oracle(failures: int, latency: float) -> None:
    job = replace(BURSTS, failures=failures)
    exposure = exposure_of(record_of_job(job, np.random.default_rng(failures)))
    found = one_run(LossCurve(exposure, [job.every], SaveCost(job.cost, latency)))
    of_oracle = one_run_of_oracle(
        known(exposure), job.every * exposure.pace, job.cost, latency,
        lambda: np.random.Generator(np.random.PCG64(1)).random,
    )  # fmt: skip
    assert found == pytest.approx(of_oracle, rel=1e-9)


@pytest.mark.parametrize("failures", [1, 2, 5, 10, 17, 31])
def test_ranges_are_those_of_the_oracle(failures: int) -> None:
    """Failures come in bursts, so that each of the two ranges is the wider one somewhere."""
    job = replace(BURSTS, failures=failures)
    exposure = exposure_of(record_of_job(job, np.random.default_rng(failures)))
    drawn = spread(LossCurve(exposure, EVERY, SaveCost(job.cost)), None, None).goodput
    of_oracle = known(exposure)
    for place, every in enumerate(EVERY):
        assert drawn[:, place].tolist() == pytest.approx(ranges(of_oracle, every * exposure.pace, job.cost), rel=1e-9)


@pytest.mark.parametrize("lives", [[1.0] * 12, [5.0, 1.0, 1.0, 7.0] * 6, [9.0] * 15 + [1.0] * 15])
def test_blocks_are_as_long_as_those_of_the_oracle(lives: list[float]) -> None:
    assert block_length(np.array(lives)) == block_length_of_oracle(lives)


@pytest.mark.parametrize(
    ("job", "least"), [(Job(1.0), 92), (Job(0.7), 88), (BURSTS, 84)], ids=["alone", "wild", "bursts"]
)
def test_ranges_contain_the_average_of_the_job(job: Job, least: float) -> None:
    """Holds from ten failures on; `python -m benchmarks.advice` prints the table."""
    assert cover(replace(job, failures=20), jobs=60) >= least
