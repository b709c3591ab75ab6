"""Saves: their number and the time between them."""

from __future__ import annotations

import json

from goodput_cli.analysis.advice.replay_attempts import record_of
from goodput_cli.analysis.measures import MEASURES
from goodput_cli.analysis.results import Method, Saves
from goodput_cli.analysis.saves import saves_made
from goodput_cli.analysis.summary import summary_of
from goodput_cli.report.base import Page
from tests.support.answers import as_json as render
from tests.support.story import account, end, finished, loaded, save, saved, start, started, steps, terminated


def counted(saves: Saves | None) -> tuple[int, float | None]:
    assert saves is not None
    return saves.count, saves.interval_seconds


def test_save_time_leaves_out_saves_in_lost_training() -> None:
    """Both saves of the first attempt are in lost training: the other two took 4 s."""
    first = [start(0), *steps(0, 5, at=0), save(20, 2, 2), save(30, 5, 3)]
    second = [start(1000), *steps(2, 5, at=1000), save(1010, 2, 3), save(1030, 2, 5), end(1060)]
    analysis = account(*first, *second).analysis
    assert analysis.saves == Saves(4, 16.5, 2)
    assert MEASURES["saves.time"].of(summary_of(analysis)) == 2


def test_saves_are_counted_with_the_time_between_them() -> None:
    told = account(start(0), steps(0, 10, at=0), save(20, 2, 2), save(50, 2, 5), save(90, 2, 9), end(110))
    assert counted(told.analysis.saves) == (3, 35.0)


def test_reports_of_several_hosts_are_one_save() -> None:
    hosts = [save(20 + late, 2, 2) for late in (0, 0.1, 0.2)]
    told = account(start(0), steps(0, 10, at=0), hosts, save(50, 2, 5), saved(5, 52), end(110))
    assert counted(told.analysis.saves) == (2, 29.8)


def test_save_of_a_repeated_step_counts_without_the_outage() -> None:
    first = [start(0), steps(0, 5, at=0), save(20, 2, 2), save(30, 2, 3)]
    second = [start(1000), steps(2, 5, at=1000), save(1010, 2, 3), save(1030, 2, 5), end(1060)]
    assert counted(account(*first, *second).analysis.saves) == (4, 15.0)


def test_saves_of_a_checkpoint_log_are_counted() -> None:
    told = account(
        started(0), loaded(0, 10), finished(10, 100), saved(10, 105), finished(20, 200), saved(20, 207), terminated(210)
    )
    assert counted(told.analysis.saves) == (2, 102.0)


def test_only_saves_in_the_window_count() -> None:
    told = account(start(0), steps(0, 10, at=0), save(20, 2, 2), save(50, 2, 5), end(110), window=(30, 80))
    assert counted(told.analysis.saves) == (1, None)


def test_no_save_in_the_window_differs_from_none_in_the_log() -> None:
    told = account(start(0), steps(0, 10, at=0), save(20, 2, 2), end(110), window=(30, 80))
    assert counted(told.analysis.saves) == (0, None)
    assert account(start(0), steps(0, 10, at=0), end(110)).analysis.saves is None


def test_analysis_contains_its_question() -> None:
    asked = account(
        start(0), steps(0, 10, at=0), end(110), data_loading="blocking", stall_factor=0.0, no_hindsight=True
    )
    assert asked.analysis.method == Method(data_loading="blocking", stall_factor=0.0, hindsight=False)
    assert json.loads(render(asked.analysis, Page()))["method"] == {
        "data_loading": "blocking",
        "async_saves": False,
        "stall_factor": 0.0,
        "exclude_stopped": False,
        "hindsight": False,
    }


def nameless(at: float, seconds: float) -> str:
    return json.dumps({key: value for key, value in json.loads(save(at, seconds)).items() if key != "step"})


def test_saves_without_a_step_count_and_have_one_interval() -> None:
    """34 saves of 8 s, 60 steps of 5 s apart; two hosts report each."""
    lines, at = [start(0)], 0.0
    for number in range(34):
        lines += steps(60 * number, 60, at=at, every=5)
        at += 300
        lines += [nameless(at, 8), nameless(at + 1, 7)]
        at += 8
    told = account(*lines, end(at + 1))
    assert counted(told.analysis.saves) == (34, 308.0)
    record = record_of(told.analysis.timeline, "j")
    assert (record.every, record.cost, saves_made(told.analysis.timeline).apart_steps) == (60, 8.0, 60)


def test_final_save_does_not_change_the_interval() -> None:
    """Attempts of 52 to 70 steps of 10 s with saves 40 steps apart. The last one ends with a save 12 steps after the
    one before."""
    lines: list[str] = []
    for life, count in enumerate((60, 70, 52)):
        at, first = 1000.0 * life, 40 * life
        lines += [start(at), *steps(first, 40, at=at), save(at + 400, 2, first + 39)]
        lines += steps(first + 40, count - 40, at=at + 402)
    told = account(*lines, save(2524, 2, 131), end(2530))
    assert saves_made(told.analysis.timeline).apart_steps == 40
    assert counted(told.analysis.saves) == (4, 402.0)
    assert record_of(told.analysis.timeline, "j").every == 40
