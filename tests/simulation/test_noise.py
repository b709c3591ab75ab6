"""Autocorrelated noise: results of the search for slow levels, its error rate, and results of `compare` for a drifting
pace. `python -m benchmarks.noise` prints the full tables."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.noise import DRIFTS, HEALTHY, SLOWDOWNS, cover, equal_pair, is_found, kind_of, kind_of_drift
from goodput_cli.analysis.compare.pace import pace_change
from goodput_cli.analysis.steps.noise import best_model
from goodput_cli.analysis.steps.regimes import pace_model, wander_text
from goodput_cli.analysis.steps.times import winsorised_mean

FOUND_OF_8 = {
    "10 % of 600, white 5 %": 8,
    "7 % of 600, white 5 %": 8,
    "34 % of 100, lognormal 15 %": 8,
    "34 % of 100, AR .5 15 %": 6,
    "10 % of 600, every other step 2 x": 8,
    "30 % of 400, Pareto 1.5": 8,
    "20 % of 500, AR .95 5 %": 6,
    "40 % of 400, AR .99 5 %": 8,
}


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_series_have_no_slow_level(name: str) -> None:
    assert sum(kind_of(HEALTHY[name], seed) == "levels" for seed in range(12)) <= (name.startswith("walk"))


@pytest.mark.parametrize("name", FOUND_OF_8)
def test_slowdowns_are_found(name: str) -> None:
    assert sum(is_found(*SLOWDOWNS[name], seed) for seed in range(8)) >= FOUND_OF_8[name]


def test_steady_rise_is_a_line_not_a_level() -> None:
    kinds = [kind_of_drift(*DRIFTS["20 %, white 5 %"], seed) for seed in range(8)]
    assert kinds == ["line"] * 8


def test_line_has_the_step_times_of_its_ends() -> None:
    """From 8 to 10 s, in logarithms: a line by hand."""
    model = pace_model(8 * 1.25 ** (np.arange(1600) / 1600))
    assert model.kind == "line"
    assert model.line == pytest.approx((8, 10), rel=0.005)


def test_burst_of_ten_slow_steps_is_not_level() -> None:
    times = np.ones(1000)
    times[500:510] = 3.0
    assert pace_model(times).kind == "level"


def test_two_populations_have_the_known_cost() -> None:
    """Every other step takes 12 s, the others 6 s; 500 steps each take 1.8 s longer."""
    times = np.where(np.arange(2000) % 2, 6.0, 12.0)
    times[1000:1500] += 1.8
    first, last = pace_model(times).cuts.tolist()
    assert (first, last) == pytest.approx((1000, 1500), abs=4)
    assert winsorised_mean(times[first:last]) - winsorised_mean(times[:first]) == pytest.approx(1.8, abs=0.05)


def test_candidate_without_change_is_dropped() -> None:
    times = np.exp(0.05 * np.random.default_rng(1).standard_normal(800))
    times[400:] *= 1.3
    assert best_model(times, np.array([200, 400, 600])).cuts.tolist() == [400]


def test_drift_is_reported_if_changes_are_inconclusive() -> None:
    """Blocks of 8 steps of an autoregression of 0.99 per step: correlated over about 200 steps, with a standard
    deviation of 5 %. The reported drift is twice the standard deviation of differences."""
    wanders = [
        model.wander
        for seed in range(12)
        if (model := pace_model(np.exp(HEALTHY["AR .99 5 %"](np.random.default_rng(seed), 6000)))).wander is not None
    ]
    assert len(wanders) >= 10
    assert float(np.median([wander.steps for wander in wanders])) == pytest.approx(200, rel=0.4)
    assert float(np.median([wander.percent for wander in wanders])) == pytest.approx(14, abs=4)
    assert wander_text(wanders[0]).startswith("step times drift by ")


@pytest.mark.parametrize(("name", "undecided"), [("white 5 %", 0.05), ("AR .9 8 %", 0.1), ("AR .95 8 %", 0.2)])
def test_ranges_of_equal_pairs_contain_0(name: str, undecided: float) -> None:
    right, without, different = cover(HEALTHY[name], (1200, 1200), 60)
    assert right >= 0.9
    assert without <= undecided
    assert different <= 0.1


def test_short_run_against_a_long_one_keeps_a_wide_range() -> None:
    """With 600 steps that are correlated over 50, blocks often vary less than with 6000."""
    right, _, _ = cover(HEALTHY["AR .95 8 %"], (600, 6000), 150)
    assert right >= 0.92


def test_long_drift_has_no_range() -> None:
    change = equal_pair(HEALTHY["AR .99 5 %"], (1200, 1200), 1)
    assert change.span is None
    assert min(change.n_eff) < 6
    assert not change.is_clear


def test_longer_run_is_weighted_by_steps_not_by_blocks() -> None:
    """8 times the steps in 2.7 times the blocks, whose neighbors are less correlated."""
    changes = [equal_pair(HEALTHY["AR .98 6 %"], (1200, 9600), seed) for seed in range(30)]
    stretches = np.mean([change.n_eff for change in changes], axis=0)
    assert stretches[1] / stretches[0] == pytest.approx(6, rel=0.3)


def test_change_beyond_any_drift_needs_no_range() -> None:
    blocks = [1.0] * 10 + [1.05] * 10
    change = pace_change(blocks, [2 * one for one in blocks])
    assert change is not None
    assert (change.span, change.is_clear) == (None, True)


def test_constant_blocks_have_an_empty_range() -> None:
    change = pace_change([1.0] * 12, [1.1] * 12)
    assert change is not None
    assert change.span == pytest.approx((10, 10))
    assert change.is_clear
