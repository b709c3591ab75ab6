"""What the search for slow regimes finds and how often it is wrong, as docs/accounting.md says."""

from __future__ import annotations

import numpy as np
import pytest

from goodput_cli.analysis.steps.times import level_changes, winsorised_mean
from tests.simulation.power import HEALTHY, SLOWDOWNS, is_alarm, is_found

FOUND_OF_8 = {
    "10 % over 600, 5 %": 8,
    "34 % over 100, 15 %": 8,
    "7 % over 600, 5 %": 8,
    "10 % over 600, 5 %, correlated 0.5": 8,
    "34 % over 100, 15 %, correlated 0.5": 6,
    "10 % over 600, every other step 2 x": 8,
}


@pytest.mark.parametrize("name", HEALTHY)
def test_no_healthy_series_has_a_slow_regime(name: str) -> None:
    assert not any(is_alarm(HEALTHY[name], seed) for seed in range(24))


@pytest.mark.parametrize("name", FOUND_OF_8)
def test_slowdowns_are_found(name: str) -> None:
    assert sum(is_found(*SLOWDOWNS[name], seed) for seed in range(8)) >= FOUND_OF_8[name]


def test_a_burst_of_ten_slow_steps_is_no_regime() -> None:
    times = np.ones(1000)
    times[500:510] = 3.0
    assert len(level_changes(times)) == 0


def test_two_populations_cost_what_they_cost() -> None:
    """Every other step takes 12 s, the others 6; for 500 steps each takes 1.8 s longer."""
    times = np.where(np.arange(2000) % 2, 6.0, 12.0)
    times[1000:1500] += 1.8
    first, last = level_changes(times).tolist()
    assert (first, last) == pytest.approx((1000, 1500), abs=4)
    assert winsorised_mean(times[first:last]) - winsorised_mean(times[:first]) == pytest.approx(1.8, abs=0.05)
