"""Rollbacks in text: steps that decrease in a process that continues (accounting §3, Rollbacks)."""

from __future__ import annotations

import pytest

from goodput_cli.events.text.living_processes import (
    stopped_after_saves,
    with_living_processes,
    without_starts_of_others,
)
from goodput_cli.events.text.log_lines import EventType, LogLine, ParsedEvent, Running, SourceText

S = 10**9


def line(second: int, what: EventType, step: int | None = None, elapsed: int | None = None) -> LogLine:
    running = None if elapsed is None else Running(elapsed=elapsed * S)
    return LogLine(second, "", None, ParsedEvent("mine", what, step, running=running), second * S, second * S)


STEP, START, LOAD, BACK = EventType.STEP, EventType.START, EventType.RESTORE, EventType.ROLLBACK
STEPS = [line(10 * n, STEP, 10 * n) for n in range(1, 5)]
AGAIN = line(60, STEP, 25)


@pytest.mark.parametrize(
    ("lines", "is_rollback"),
    [
        ([*STEPS, AGAIN], False),
        ([*STEPS, line(45, BACK), AGAIN], True),
        ([*STEPS, line(45, LOAD), AGAIN], False),  # No line shows that the program prints a start line.
        ([line(0, START), *STEPS, line(45, LOAD), AGAIN], True),
        ([line(0, START), *STEPS, line(45, START), line(46, LOAD), AGAIN], False),
        ([*STEPS, line(45, BACK), line(46, EventType.CRASHED), AGAIN], False),
        ([line(40, STEP, 40, 40), line(60, STEP, 25, 60)], True),
        ([line(40, STEP, 40, 40), line(60, STEP, 25, 15)], False),
        ([*STEPS, line(45, BACK), line(60, STEP, 50)], False),  # No step decreases.
    ],
)
def test_process_continues_if_a_line_shows_it(lines: list[LogLine], *, is_rollback: bool) -> None:
    found = with_living_processes(lines)
    named = [(one.event.process, one.time) for one in found if one.event is not None and one.event.process]
    assert [name for name, _ in named] == (["process 1"] * 2 if is_rollback else [])
    assert not any(one.event is not None and one.event.type is BACK for one in found)


def test_rollback_named_without_a_load_leads_to_its_step() -> None:
    back = line(45, BACK, 30)
    found = with_living_processes([*STEPS, back, line(55, STEP, 40)])
    assert [(one.event.step, one.end // S) for one in found if one.event and one.event.type is EventType.RESUME] == [
        (30, 45)
    ]


def test_rollback_to_an_unlikely_step_has_no_step() -> None:
    """The first number in the line means something else."""
    found = with_living_processes([*STEPS, line(45, BACK, 4), line(55, STEP, 40)])
    assert [one.event.step for one in found if one.event and one.event.type is EventType.RESUME] == [None]


def test_load_after_a_named_rollback_takes_the_time_since_it() -> None:
    found = with_living_processes([*STEPS, line(42, BACK), line(45, LOAD, 30), line(55, STEP, 40)])
    assert [(one.time // S, one.end // S) for one in found if one.event and one.event.type is LOAD] == [(42, 45)]


@pytest.mark.parametrize(
    ("later", "is_start"),
    [
        ([line(52, START), line(60, STEP, 60), line(70, STEP, 70)], False),  # the steps go on in their usual time
        ([line(52, START), line(65, STEP, 60), line(75, STEP, 70)], True),
        ([line(52, START), line(60, STEP, 30), line(70, STEP, 40)], True),
        ([line(51, EventType.CRASHED), line(52, START), line(60, STEP, 60), line(70, STEP, 70)], True),
    ],
)
def test_start_inside_usual_steps_is_of_another_process(later: list[LogLine], *, is_start: bool) -> None:
    lines = [line(0, START), *STEPS, line(50, STEP, 50), *later]
    found = without_starts_of_others(lines, SourceText(lines))
    starts = [one for one in found if one.event is not None and one.event.type is START]
    assert len(starts) == 1 + is_start


def test_stop_that_is_announced_comes_after_its_save() -> None:
    stop = line(41, EventType.STOPPED)
    save = LogLine(44, "", None, ParsedEvent("mine", EventType.SAVE, 40), 42 * S, 44 * S)
    late = LogLine(90, "", None, ParsedEvent("mine", EventType.SAVE, 40), 88 * S, 90 * S)
    lines = [*STEPS, stop, save, line(60, START), late]
    found = stopped_after_saves(lines, SourceText(lines))
    assert [one.end // S for one in found if one.event is not None and one.event.type is EventType.STOPPED] == [44]
