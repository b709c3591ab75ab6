"""The step breakdown, and the rank that all others waited for: the barrier model on jobs with a known slow rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.step_breakdown.breakdown import RankRow, StepHostRow, delay_text, slow_ranks
from goodput_cli.analysis.step_breakdown.insights import find_inside, growth_between, slow_one, waited_for_data
from goodput_cli.analysis.step_breakdown.sheet import inside_line
from goodput_cli.arrays import F64
from goodput_cli.events.inside import MOST, NOT_LOGGED, PhaseName, RankSteps
from tests.support.story import account, start, steps

STEPS, SECOND = 480, 10**9
DATA, PASSES = PhaseName("fetching_batch", "data"), PhaseName("fwd_bwd", "forward_backward")


@cache
def _job() -> Analysis:
    """480 steps of a second."""
    return account(start(0), steps(0, STEPS + 1, at=0, every=1)).analysis


def with_ranks(own: F64, hosts: Sequence[str] | None = None, seconds: float = 1.0) -> Analysis:
    """The job with these own times (s) of ranks: float64[ranks, steps]. All wait for the slowest."""
    analysis = _job()
    ranks, count = own.shape
    begin = analysis.window.start_ns
    parts = tuple(
        RankSteps(
            analysis.job.name, "training", rank, "" if hosts is None else hosts[rank], (0, 0),
            time=begin + (np.arange(count, dtype=np.int64) + 1) * SECOND - 1,
            step=np.arange(count, dtype=np.int64),
            count=np.ones(count, dtype=np.int64),
            first=np.arange(count) == 0,
            took=np.full(count, round(seconds * SECOND), dtype=np.int64),
            names=(DATA, PASSES),
            ns=np.rint(np.column_stack([own[rank], own.max(axis=0) - own[rank] + 0.5]) * SECOND).astype(np.int64),
        )
        for rank in range(ranks)
    )  # fmt: skip
    return replace(analysis, table=replace(analysis.table, inside=parts))


def noisy(rng: np.random.Generator, ranks: int, spread: float) -> F64:
    return 0.05 * rng.lognormal(0, spread, (ranks, STEPS))


@pytest.mark.parametrize("ranks", [8, 64, 512])
def test_a_rank_that_costs_two_percent_is_named_with_its_cost(ranks: int) -> None:
    named = close = 0
    seeds = 320 // (ranks + 8)
    for seed in range(seeds or 3):
        rng = np.random.default_rng(seed)
        own = noisy(rng, ranks, 0.1)
        slow = int(rng.integers(ranks))
        others = np.delete(own, slow, axis=0).max(axis=0)
        own[slow] = others + 0.025 * rng.lognormal(0, 0.3, STEPS)
        (inside,) = with_ranks(own).step_phases
        found = slow_one(inside)
        named += isinstance(found, RankRow) and found.rank == slow
        true = float((own[slow] - others)[1:].sum())
        close += abs((inside.ranks[0].cost_ns or 0) / SECOND - true) <= 0.1 * true
    assert (named, close) == (seeds or 3, seeds or 3)


def test_a_host_is_named_where_two_of_its_ranks_are_slow() -> None:
    hosts = [f"node-{rank // 8}" for rank in range(64)]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        own = noisy(rng, 64, 0.1)
        own[16:24] += 0.08
        (inside,) = with_ranks(own, hosts).step_phases
        found = slow_one(inside)
        assert isinstance(found, StepHostRow)
        assert found.host == "node-2"


@pytest.mark.parametrize("spread", [0.0, 0.02, 0.1, 0.5])
def test_healthy_jobs_name_no_rank_or_host(spread: float) -> None:
    named = 0
    for seed in range(100):
        rng = np.random.default_rng(1000 + seed)
        ranks = (2, 4, 8, 32)[seed % 4]
        hosts = [f"node-{rank // 4}" for rank in range(ranks)]
        named += slow_one(with_ranks(noisy(rng, ranks, spread), hosts).step_phases[0]) is not None
    assert named <= 1


def test_cost_of_one_rank_is_reported_once() -> None:
    own = np.full((4, STEPS), 0.02)
    own[1] = 0.3
    analysis = with_ranks(own)
    (inside,) = analysis.step_phases
    assert [one.code for one in find_inside(analysis, analysis.step_phases)] == ["slow_rank"]
    assert next(find_inside(analysis, analysis.step_phases)).ns == round((STEPS - 1) * 0.28 * SECOND)
    assert waited_for_data(analysis, analysis.step_phases) == (0, "")
    assert inside_line(analysis) == (
        f"30.00 % of step time was spent waiting for data (rank 1: up to {2} min 14 s) (counts as goodput)"
    )
    assert inside.ranks[0].cost_ns == round((STEPS - 1) * 0.28 * SECOND)


def test_ranks_waiting_for_data_are_input_bound_without_blame() -> None:
    own = np.full((4, STEPS), 0.3)
    analysis = with_ranks(own)
    assert list(find_inside(analysis, analysis.step_phases)) == []
    ns, text = waited_for_data(analysis, analysis.step_phases)
    assert ns == round((STEPS - 1) * 0.3 * SECOND)
    assert text.startswith("30.00 % of step time was spent waiting for data on its slowest rank")


def test_the_most_of_all_ranks_names_none() -> None:
    analysis = _job()
    part = RankSteps(
        analysis.job.name, "", MOST, "", None,
        time=np.array([analysis.window.start_ns + 100 * SECOND]), step=np.array([100]), count=np.array([100]),
        first=np.array([False]), took=np.array([NOT_LOGGED]), names=(DATA,), ns=np.array([[20 * SECOND]]),
    )  # fmt: skip
    (inside,) = replace(analysis, table=replace(analysis.table, inside=(part,))).step_phases
    assert (inside.net_step_ns, inside.ranks, inside.ranks_logged) == (None, (), 0)
    assert [(row.phase, row.slowest_ns, row.percent) for row in inside.phases] == [("data", 20 * SECOND, None)]


def test_phases_that_overlap_are_shown_so_and_nothing_is_scaled() -> None:
    own = np.full((2, STEPS), 0.7)
    (inside,) = with_ranks(own).step_phases
    assert inside.overlap_ns == round((STEPS - 1) * 0.2 * SECOND)
    assert inside.phase("other") is None
    assert inside.phase("data").slowest_ns == round((STEPS - 1) * 0.7 * SECOND)  # type: ignore[union-attr]


def test_slow_period_is_reported_as_its_phase() -> None:
    analysis = with_ranks(np.full((4, STEPS), 0.02))
    (first, *others) = analysis.table.inside
    grown = tuple(
        replace(
            one,
            took=one.took + 200_000_000 * (one.step >= 300),
            ns=one.ns + np.outer(one.step >= 300, [0, 200_000_000]),
        )
        for one in (first, *others)
    )
    slower = replace(analysis, table=replace(analysis.table, inside=grown))
    found = growth_between(slower, 300, STEPS - 1)
    assert found is not None
    assert (found.phase, found.ns, round(found.share, 3)) == ("forward_backward", 200_000_000, 1.0)
    assert growth_between(analysis, 300, STEPS - 1) is None


def in_blocks(analysis: Analysis, size: int) -> Analysis:
    """Return the same times as means of blocks of steps."""

    def summed(one: RankSteps) -> RankSteps:
        last, count = np.arange(len(one) // size) * size + size - 1, np.full(len(one) // size, size)
        sums = one.ns.reshape(-1, size, len(one.names)).sum(axis=1)
        took = one.took.reshape(-1, size).sum(axis=1)
        return replace(one, time=one.time[last], step=one.step[last], count=count, first=one.first[last],
                       took=took, ns=sums)  # fmt: skip

    return replace(analysis, table=replace(analysis.table, inside=tuple(map(summed, analysis.table.inside))))


def alternating(rng: np.random.Generator, slow: Sequence[int], ranks: int = 16) -> F64:
    """Ranks that take turns in being 0.3 s slower than all others, which differ by noise."""
    own = noisy(rng, ranks, 0.1)
    for turn, rank in enumerate(slow):
        own[rank, turn :: len(slow)] += 0.3
    return own


@pytest.mark.parametrize("slow", [(3,), (3, 5), (1, 2, 7), (0, 3, 5, 9, 12)])
def test_ranks_that_take_turns_are_all_named(slow: tuple[int, ...]) -> None:
    analysis = with_ranks(alternating(np.random.default_rng(1), slow))
    (inside,) = analysis.step_phases
    assert {row.rank for row in slow_ranks(inside)} == set(slow)
    (found,) = find_inside(analysis, analysis.step_phases)
    assert all(f"rank {rank} " in found.text for rank in slow)
    assert found.ns == sum(row.cost_ns or 0 for row in inside.ranks[: len(slow)])


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_two_ranks_that_cost_much_are_named(ranks: int) -> None:
    """No insight can name one of two slow ranks, and each costs 76 s."""
    (inside,) = with_ranks(alternating(np.random.default_rng(1), (0, 1), ranks)).step_phases
    assert {row.rank for row in slow_ranks(inside)} == {0, 1}


@pytest.mark.parametrize("ranks", [3, 4, 16, 64])
def test_no_rank_of_a_healthy_job_is_named(ranks: int) -> None:
    named = [
        slow_ranks(with_ranks(noisy(np.random.default_rng(seed), ranks, 0.2)).step_phases[0]) for seed in range(20)
    ]
    assert not any(named)


def test_sums_of_block_means_are_at_least() -> None:
    """Each rank is 0.28 s slower in every second step: a block of 24 steps shows none of it."""
    own = np.full((4, STEPS), 0.02)
    own[1, ::2], own[3, 1::2] = 0.3, 0.302
    exact, blocks = with_ranks(own), in_blocks(with_ranks(own), 24)
    (of_steps,), (of_blocks,) = exact.step_phases, blocks.step_phases
    assert (of_steps.at_least, of_blocks.at_least) == (False, True)
    assert "at least" not in delay_text(of_steps, slow_ranks(of_steps))
    assert delay_text(of_blocks, slow_ranks(of_blocks)).startswith("rank 3 delayed all others by at least ")
    data = [one.phase("data") for one in (of_steps, of_blocks)]
    assert data[0] is not None
    assert data[1] is not None
    assert data[1].slowest_ns < data[0].slowest_ns
    assert (inside_line(blocks) or "").startswith("at least 16.")
