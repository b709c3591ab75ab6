"""Reliability (accounting §10): MTBF and its interval, means, the longest unproductive stretch, ETTR."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput_cli.analysis.disruptions.find import poisson_interval
from goodput_cli.analysis.goodput.analyse import evaluate
from goodput_cli.analysis.goodput.thresholds import parse_threshold
from goodput_cli.analysis.results import Reliability
from tests.accounting.test_properties import analyse, slowly
from tests.strategies import any_logs, messy_logs
from tests.support.story import (
    BASE,
    Lines,
    account,
    crashed,
    end,
    job_finished,
    loaded,
    saved,
    start,
    started,
    steps,
    terminated,
    user_terminated,
)

SECOND = 10**9


def reliability(*events: Lines, window: tuple[float, float] | None = None) -> Reliability:
    found = account(*events, window=window).analysis.reliability
    assert found is not None
    return found


# Chi-square quantiles from published tables: (degrees of freedom, probability, quantile).
TABLE = [
    (2, 0.025, 0.0506356), (2, 0.975, 7.377759), (4, 0.975, 11.143287), (20, 0.025, 9.590777), (22, 0.975, 36.780712),
    (200, 0.025, 162.72798), (202, 0.975, 243.253587),
]  # fmt: skip


@pytest.mark.parametrize(("freedom", "probability", "quantile"), TABLE)
def test_interval_uses_chi_square_quantiles(freedom: int, probability: float, quantile: float) -> None:
    low = probability < 0.5
    count = freedom // 2 if low else freedom // 2 - 1
    assert 2 * poisson_interval(count)[0 if low else 1] == pytest.approx(quantile, rel=1e-6)


def test_interval_without_events_has_its_own_upper_bound() -> None:
    low, high = poisson_interval(0)
    assert low == 0
    assert high == pytest.approx(-math.log(0.025))


@given(st.integers(1, 3000))
def test_the_interval_holds_the_count_and_grows_with_it(count: int) -> None:
    low, high = poisson_interval(count)
    assert low < count < high
    assert poisson_interval(count + 1)[0] > low
    assert high - low == pytest.approx(2 * 1.96 * math.sqrt(count), rel=0.05, abs=2)  # the normal approximation


TWO = (
    start(0), steps(0, 5, at=10), start(100), steps(3, 5, at=120), start(200), steps(7, 5, at=210), end(260),
)  # fmt: skip
"""Up 0 to 50 s, 100 to 170 s (step 6 at 150 s; step 7 at 160 s is wasted) and 200 to 260 s."""


def test_mtbf_is_exposure_by_disruptions() -> None:
    found = reliability(*TWO)
    assert found.disruptions == 2
    assert found.exposure_ns == (50 + 60 + 60) * SECOND
    assert found.mtbf_seconds == 85
    low, high = found.mtbf_ci95_seconds
    assert low == pytest.approx(2 * 170 / 14.449375, rel=1e-6)  # chi-square, 6 degrees of freedom, 97.5 %
    assert high == pytest.approx(2 * 170 / 0.484419, rel=1e-5)  # 4 degrees of freedom, 2.5 %


def test_means_and_longest_unproductive_period_are_exact() -> None:
    found = reliability(*TWO)
    assert found.mean_downtime_seconds == 45  # 50 s and 40 s
    # from 50 s to step 5 at 140 s; from 160 s to step 8 at 220 s
    assert found.mean_time_to_regain_seconds == 75
    assert found.longest_unproductive == ((BASE + 40) * SECOND, (BASE + 120) * SECOND)  # step 3 was wasted


def test_ettr_is_productive_time_by_window() -> None:
    told = account(*TWO)
    assert told.analysis.reliability is not None
    assert told.analysis.reliability.ettr == pytest.approx(told.percent / 100)


def test_mtbf_without_a_disruption_has_only_a_lower_bound() -> None:
    found = reliability(start(0), steps(0, 10, at=10), end(110))
    assert (found.disruptions, found.mtbf_seconds, found.mean_downtime_seconds) == (0, None, None)
    low, high = found.mtbf_ci95_seconds
    assert low == pytest.approx(110 / -math.log(0.025))
    assert high is None


def test_planned_stop_is_neither_exposure_nor_disruption() -> None:
    found = reliability(
        started(0), loaded(0, 10), saved(20, 60), user_terminated(65), started(500), loaded(20, 510), saved(40, 560),
        job_finished(565),
    )  # fmt: skip
    assert (found.disruptions, found.exposure_ns) == (0, (65 + 65) * SECOND)


def test_job_down_after_a_crash_has_no_exposure() -> None:
    found = reliability(started(0), loaded(0, 10), saved(20, 60), crashed(70), crashed(300, 1))
    assert found.exposure_ns == 70 * SECOND
    assert found.disruptions == 0  # a disruption requires a next attempt


def test_window_counts_only_its_exposure() -> None:
    found = reliability(*TWO, window=(120, 230))
    assert found.disruptions == 1
    assert found.exposure_ns == (40 + 30) * SECOND
    assert found.mtbf_seconds == 70


def test_threshold_on_mtbf_is_judged() -> None:
    def judged(text: str, *events: Lines) -> bool | None:
        return evaluate([parse_threshold(text)], account(*events).analysis)[0].met

    assert judged("mtbf<2m", *TWO) is True
    assert judged("mtbf<1m", *TWO) is False
    assert judged("mtbf<1m", start(0), steps(0, 10, at=10), end(110)) is None  # no disruptions to average


@slowly
@given(st.one_of(any_logs(), messy_logs()))
def test_what_holds_for_every_log(lines: list[str]) -> None:
    analysis = analyse(lines)
    if analysis is None:
        return
    found, window = analysis.reliability, analysis.window
    assert found is not None
    assert found.disruptions == analysis.job.disruptions
    assert 0 <= found.exposure_ns <= window.ns
    low, high = found.mtbf_ci95_seconds
    if found.mtbf_seconds and low and high:
        assert low < found.mtbf_seconds < high
    if found.longest_unproductive is not None:
        begin, stop = found.longest_unproductive
        assert window.start_ns <= begin < stop <= window.end_ns
        # Slowdown is a share of productive time without a position in time.
        assert stop - begin <= sum(row.ns for row in analysis.badput if row.category != "training_slowdown")


def test_logged_failure_of_last_attempt_is_not_a_disruption() -> None:
    """5 steps, and a crash at 60 s: up for a minute, one failure."""
    found = reliability(start(0), steps(0, 5, at=10), crashed(60))
    assert (found.disruptions, found.failures, found.mtbf_seconds) == (0, 1, 60)
    low, high = found.mtbf_ci95_seconds
    assert low == pytest.approx(60 / 5.5716, rel=1e-3)
    assert high == pytest.approx(60 / 0.025318, rel=1e-3)
    assert reliability(start(0), steps(0, 5, at=10), terminated(60)).failures == 1


@pytest.mark.parametrize("ending", [end(60), job_finished(60), user_terminated(60), ""], ids=str)
def test_last_attempt_without_a_logged_failure_is_censored(ending: str) -> None:
    found = reliability(start(0), steps(0, 5, at=10), *([ending] if ending else []))
    assert (found.failures, found.mtbf_seconds) == (0, None)


def test_failure_after_the_window_is_not_counted() -> None:
    found = reliability(start(0), steps(0, 5, at=10), crashed(60), window=(0, 40))
    assert found.failures == 0
