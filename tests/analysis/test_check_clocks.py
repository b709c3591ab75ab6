"""`goodput check`: wrong, reset and rounded clocks, each in a small log."""

from __future__ import annotations

import pytest

from tests.support.logs import FINE, checked, found_codes, hosts, lines_of, the, written
from tests.support.story import BASE, custom, end, finished, save, saved, start, started, step, steps, terminated

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize("shift", [30.0, -30.0])
def test_rank_with_a_constant_clock_offset_is_found(shift: float) -> None:
    found = the(checked(hosts(shift)), "clock_skew")
    assert "rank 1" in found.message
    assert "30 s " + ("behind" if shift > 0 else "ahead") in found.message
    assert found.count == 6
    assert found.severity == "warning"


def test_rank_that_differs_from_two_others_is_named() -> None:
    lines = [started(0.5, 0), started(0.5, 1), started(12.5, 2)]
    for number in (1, 2, 3, 4):
        lines += [finished(number, 60 * number + 12 * (rank == 2), rank) for rank in (0, 1, 2)]
    assert "rank 2 reports 12 s behind" in the(checked(lines), "clock_skew").message


def test_host_that_starts_slowly_has_no_skew() -> None:
    lines = [started(0.5, 0), started(30.5, 1), terminated(100, 0), terminated(100.2, 1)]
    lines += [started(200, 0), started(230, 1), terminated(300, 0), terminated(300.2, 1)]
    lines += [started(400, 0), started(430, 1), terminated(500, 0), terminated(500.2, 1)]
    assert "clock_skew" not in found_codes(checked(lines))


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_skew_of_a_second_is_noise(shift: float) -> None:
    assert "clock_skew" not in found_codes(checked(hosts(shift)))


def test_intermittent_differences_are_not_skew() -> None:
    lines = [started(0.5, 0), started(0.5, 1)]
    for number, late in enumerate([20, -15, 3, 40, -30, 0], start=1):
        lines += [saved(number, 100 * number, 0), saved(number, 100 * number + late, 1)]
    assert "clock_skew" not in found_codes(checked(lines))


def test_files_of_two_hosts_with_the_same_steps_are_compared() -> None:
    other = written(steps(0, 12, at=14.25), name="host1.jsonl")
    found = the(checked(FINE, more=(other,)), "clock_skew")
    assert "host1.jsonl reports 4 s behind" in found.message


def test_lines_after_later_ones_are_found() -> None:
    lines = FINE
    shuffled = [*lines[:3], *reversed(lines[3:])]
    report = checked(shuffled)
    assert the(report, "out_of_order").severity == "info"
    assert "of 17 lines" in the(report, "out_of_order").message
    assert "clock_set_back" not in found_codes(report)


def test_long_save_logged_at_its_end_is_in_order() -> None:
    assert "out_of_order" not in found_codes(
        checked(start(0.1), steps(0, 3, at=10.25), save(35, 40, 2), step(3, 80), end(90))
    )


def test_lines_of_different_sources_are_not_compared() -> None:
    later = written(start(0.1), step(0, 10.25), name="a.jsonl")
    assert "out_of_order" not in found_codes(
        checked(step(1, 20.25), step(2, 30.25), save(30.5, 1), end(40.5), more=(later,))
    )


def test_clock_that_is_set_back_is_found() -> None:
    found = the(
        checked(start(0.1), steps(0, 6, at=10.25), steps(6, 6, at=40.25), save(91, 1), end(100.5)), "clock_set_back"
    )
    assert lines_of(found) == [8]
    assert "20 s" in found.message


def test_redone_steps_are_not_a_clock_set_back() -> None:
    report = checked(start(0.1), steps(0, 6, at=10.25), start(80.5), steps(3, 6, at=90.25), save(141, 1), end(150.5))
    assert "clock_set_back" not in found_codes(report)


def test_whole_seconds_with_short_steps_are_found() -> None:
    found = the(checked(start(0), steps(0, 12, at=10, every=2), save(40, 1), end(50)), "coarse_clock")
    assert "2 s" in found.message


@pytest.mark.parametrize(("at", "every"), [(10, 10), (10.25, 2)])
def test_clock_precise_enough_for_its_steps_is_fine(at: float, every: float) -> None:
    lines = (start(0), steps(0, 12, at=at, every=every), save(140, 1), end(150))
    assert "coarse_clock" not in found_codes(checked(lines))


@pytest.mark.parametrize("at", [-BASE + 5, 20 * 365 * 86_400])
def test_line_decades_away_is_found(at: float) -> None:
    found = the(checked(FINE, custom("EVAL", at)[0]), "lonely_time")
    assert lines_of(found) == [18]
    assert "years" in found.message


def test_job_resumed_after_months_is_not_an_outlier() -> None:
    month = 90 * 86_400
    assert "lonely_time" not in found_codes(
        checked(FINE, start(month), steps(12, 12, at=month + 10.5), end(month + 140))
    )


def test_events_in_the_future_are_found() -> None:
    assert "events up to" in the(checked(start(0.1), steps(0, 3, at=4e9), end(4e9 + 60)), "future_times").message
    assert "future_times" not in found_codes(checked(FINE))
