"""Thirteen logs with what an independent simulation of the same text makes of them: ns exact, reals to 1e-9.

Its shares are of work (U), not of productive time, and it refuses nothing for being short.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli.analysis.advice import interval as interval_module
from goodput_cli.analysis.advice.curve import exposure_of
from goodput_cli.analysis.advice.interval import Interval, interval_advice
from goodput_cli.analysis.advice.levers import Estimate, ImprovementInputs, all_improvements
from goodput_cli.analysis.advice.record import JobRecord
from goodput_cli.analysis.advice.replay import RecordedSaves, SaveEvery, replay
from goodput_cli.analysis.advice.replay_attempts import record_of
from goodput_cli.analysis.goodput.thresholds import LEVERS as NAMES_OF_LEVERS

EXAMPLES = Path(__file__).parent / "examples"
EXPECTED: dict[str, dict[str, Any]] = json.loads((EXAMPLES / "expected.json").read_text())
NAMES = sorted(EXPECTED)
JUDGED = [name for name in NAMES if "refused" not in EXPECTED[name]["interval"]]


@cache
def record(name: str) -> JobRecord:
    path, _, option = name.partition(" --save-seconds ")
    save_ns = int(option) * 10**9 if option else None
    return record_of(goodput_cli.analyze(EXAMPLES / path).timeline, path, save_ns=save_ns)


@cache
def interval(name: str) -> Interval:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interval_module, "LEAST_STEPS", 0)
        exposure = exposure_of(record(name))
        return interval_advice(record(name), replace(exposure, productive=exposure.work))


@pytest.mark.parametrize("name", NAMES)
def test_job(name: str) -> None:
    job, expected = record(name), EXPECTED[name]
    found = {
        "window_ns": job.window, "log": "step" if job.step_log else "checkpoint", "first": job.lives[0].first,
        "stop": job.end, "usual_step_ns": job.unit, "every": job.every, "latency_ns": job.latency,
        "cost_ns": None if job.cost is None else job.cost_ns, "lead_ns": job.lives[0].begin - job.start,
        "tail_ns": job.tail,
    }  # fmt: skip
    assert found == {key: expected[key] for key in found}


@pytest.mark.parametrize("name", NAMES)
def test_attempts(name: str) -> None:
    job = record(name)
    found = [
        {
            "first": life.first, "steps": life.steps, "budget_ns": life.budget, "startup_ns": life.startup,
            "hang_ns": life.hang, "kind": end.kind, "resume": life.resumed,
            "newest": None if life.resumed is None else end.newest,
            "gap_ns": None if life.resumed is None else job.gaps[index + 1],
        }
        for index, (life, end) in enumerate(zip(job.lives, job.ends, strict=True))
    ]  # fmt: skip
    assert found == [{key: life[key] for key in found[0]} for life in EXPECTED[name]["lives"]]


@pytest.mark.parametrize("name", NAMES)
def test_record_replayed_gives_the_record(name: str) -> None:
    done = replay(record(name), RecordedSaves(record(name)))
    assert done.ns == EXPECTED[name]["record_replayed_ns"] == record(name).window
    assert [list(pair) for pair in done.path] == EXPECTED[name]["path"]


@pytest.mark.parametrize("name", [name for name in NAMES if "replayed_ns" in EXPECTED[name]])
def test_replays(name: str) -> None:
    expected = {int(every): ns for every, ns in EXPECTED[name]["replayed_ns"].items()}
    assert {every: replay(record(name), SaveEvery(record(name), every)).ns for every in expected} == expected


@pytest.mark.parametrize("name", JUDGED)
def test_interval(name: str) -> None:
    found, expected = interval(name), EXPECTED[name]["interval"]
    advice, today = found.advice, found.today
    assert today is not None
    exposure = today.exposure
    whole = {
        "verdict": advice.verdict, "advised": advice.every_steps, "best": advice.best_steps,
        "plateau": [None, None] if advice.plateau_steps is None else list(advice.plateau_steps),
        "every": record(name).every, "n": exposure.failures,
    }  # fmt: skip
    assert whole == {key: expected[key] for key in whole}
    real = {
        "pace": exposure.pace, "C": record(name).cost, "A": exposure.budgets, "U": exposure.work, "G": exposure.gaps,
        "fixed": exposure.fixed, "extra": exposure.extra, "today_total": float(today.average[0]),
        "today_u": advice.today_percent, "advised_u": advice.goodput_percent, "p_gain": advice.probability,
    }  # fmt: skip
    for key, value in real.items():
        if expected[key] is None:
            assert value is None, key
            continue
        assert value == pytest.approx(expected[key], rel=1e-9, abs=1e-9), key
    assert advice.ci95_steps is not None
    assert advice.ci95_steps == (expected["ci"][0], expected["ci"][1] if exposure.failures else None)
    if expected["gain_ci"] is not None:
        assert advice.gain_ci95_points == pytest.approx(expected["gain_ci"], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", JUDGED)
def test_curve(name: str) -> None:
    curve = interval(name).curve
    assert curve is not None
    found = list(zip(curve.intervals.tolist(), curve.average.tolist(), strict=True))
    expected = [(every, float("inf") if length is None else length) for every, length in EXPECTED[name]["curve"]]
    assert [every for every, _ in found] == [every for every, _ in expected]
    assert [length for _, length in found] == pytest.approx([length for _, length in expected], rel=1e-9)


def test_without_a_cost_no_interval() -> None:
    advice = interval("07-async.jsonl").advice
    assert (advice.verdict, advice.reason, advice.every_steps) == ("refused", "save_cost_unknown", None)
    first = advice.if_cost[0]
    assert (first.cost_seconds, first.every_steps, first.plateau_steps) == (1.0, 7, (6, 9))


def test_without_saves_no_interval() -> None:
    advice = interval("11-no-saves.jsonl").advice
    assert (advice.verdict, advice.reason) == ("refused", "no_saves")
    assert "goodput help no_checkpoint_events" in str(advice.say)


def test_twelve_steps_are_too_few() -> None:
    advice = interval_advice(record("00-tiny.jsonl"), exposure_of(record("00-tiny.jsonl"))).advice
    assert (advice.verdict, advice.reason) == ("refused", "too_short")


LEVERS = {"failures/2": "failures", "restore/2": "restore", "down/2": "downtime", "spare 60 s": "spares",
          "use newest": "newest_checkpoint"}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_improvements(name: str) -> None:
    job = record(name)
    question = ImprovementInputs(job, exposure_of(job), interval(name), True, 60 * 10**9)
    found: dict[str, Estimate] = {lever.name: lever for lever in all_improvements(question)}
    assert {lever for lever in found if not lever.startswith("custom:")} <= set(NAMES_OF_LEVERS)
    for key, seconds in EXPECTED[name]["levers_s"].items():
        if key in LEVERS:
            assert found[LEVERS[key]].ns == round(seconds * 1e9), key


def test_newest_checkpoint_of_the_older_one() -> None:
    job = record("08-older-beyond.jsonl")
    shorter = replay(job, RecordedSaves(job), newest=True)
    assert shorter.ns == job.window - 1240 * 10**9
