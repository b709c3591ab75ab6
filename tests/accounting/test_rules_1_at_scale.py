"""Accounting §1: the promise at the scale of a real log, and work that grows with attempts, not with events."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import pytest

from goodput_cli import analyze
from goodput_cli.accounting.build import build_timeline
from goodput_cli.accounting.options import AccountingOptions
from goodput_cli.accounting.order import in_order
from goodput_cli.analysis.account import pick_job
from goodput_cli.analysis.goodput.analyse import analyse_window
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.events.read import read_events
from goodput_cli.events.schema import EventTable, LogFormat
from loggen import Ending, Entry, PlannedAttempt, Scenario, Truth, log_bytes

# At the scale of a real log


@pytest.fixture(scope="module")
def large() -> tuple[bytes, Truth]:
    """Return a recorder's log of a hundred thousand lines, with restarts, rollbacks and failed starts."""
    return log_bytes(
        Scenario(seed=11, lines=100_000, disruption_every=900, rollback_restarts=5, failed_restarts=7, ranks=2)
    )


def test_log_of_100_000_lines_gives_the_known_truth(large: tuple[bytes, Truth]) -> None:
    log, truth = large
    assert truth.lines > 80_000
    assert truth.disruptions > 50
    analysis = analyze("-", stdin=io.BytesIO(log))
    assert analysis.job.attempts == truth.attempts
    assert analysis.job.disruptions == truth.disruptions
    assert analysis.job.last_step == truth.last_step
    assert analysis.job.kept_steps == truth.kept_steps
    assert analysis.steps.count == truth.steps_worked - (truth.attempts - truth.failed_starts)
    assert analysis.goodput.ns + sum(row.ns for row in analysis.badput) == analysis.window.ns
    segments = analysis.timeline.segments
    assert int((segments.end - segments.start).sum()) == analysis.window.ns
    assert (segments.start[1:] == segments.end[:-1]).all()


def test_work_grows_with_attempts_not_with_events() -> None:
    """Compare a log with one of four times the lines in as many attempts. Both are long enough to be stored like long
    logs. Calls of Python and libraries are counted, because they are the same on every machine."""
    short, long = (_calls(_scenario_of_attempts(20, steps_each=steps_each)) for steps_each in (3600, 14400))
    assert long.lines > 3.9 * short.lines
    assert long.calls < 1.5 * short.calls


def test_work_with_saves_grows_at_most_with_lines() -> None:
    # Each save has its own details, which are read one by one.
    short, long = (
        _calls(_scenario_of_attempts(8, steps_each=steps_each, save_every=20)) for steps_each in (3600, 14400)
    )
    assert long.calls / short.calls < long.lines / short.lines


def test_work_grows_at_most_with_attempts() -> None:
    few, many = (_calls(_scenario_of_attempts(count, steps_each=450)) for count in (20, 200))
    assert many.lines > 8 * few.lines
    assert many.calls < 10 * few.calls


def _scenario_of_attempts(count: int, steps_each: int, save_every: int = 0) -> Scenario:
    """Return a scenario of some attempts; each redoes the last tenth of the one before."""
    lives = tuple(
        PlannedAttempt(
            loaded=number * steps_each * 9 // 10,
            last_step=number * steps_each * 9 // 10 + steps_each,
            ending=Ending.CLEAN if number == count - 1 else Ending.SILENT,
            entry=Entry.START,
            down_seconds=60,
        )
        for number in range(count)
    )
    return Scenario(seed=3, save_every=save_every, eval_every=25, attempts=lives)


@dataclass
class _Counted:
    lines: int
    calls: int = 0


def _calls(scenario: Scenario) -> _Counted:
    """Return the number of calls that the accounting makes for a log that has been read."""
    text, truth = log_bytes(scenario)
    events, name, formats = pick_job(read_events(["-"], stdin=io.BytesIO(text)), None)
    _account_for(events, name, formats)  # imports on first use do not count
    counted = _Counted(truth.lines)
    with _counting(counted):
        analysis = _account_for(events, name, formats)
    assert analysis.job.attempts == truth.attempts
    return counted


def _account_for(events: EventTable, name: str, formats: tuple[LogFormat, ...]) -> Analysis:
    timeline = build_timeline(in_order(events), AccountingOptions())
    assert timeline is not None
    return analyse_window(timeline, name, formats, timeline.start, timeline.end)


@contextmanager
def _counting(counted: _Counted) -> Iterator[None]:
    def count(frame: FrameType, event: str, argument: Any) -> None:
        counted.calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)
