"""Convert phases in lines of text to times by rank; the line before determines how many steps a line covers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from goodput_cli.events.inside import (
    NOT_LOGGED,
    STEP_TIME,
    TIMES_ITS_STEP,
    PhaseName,
    RankSteps,
    few_names,
)
from goodput_cli.events.text.log_lines import ENDS, EventType, LogLine, ParsedEvent, event_of
from goodput_cli.vocabulary.text import safe

_FAR = 2
"""A first record farther from 0 than this many usual intervals covers one usual interval."""


_RECORDS = (EventType.STEP, EventType.PHASE)


@dataclass
class _Records:
    """Records of one rank while they are collected."""

    time: list[int] = field(default_factory=list)
    step: list[int] = field(default_factory=list)
    count: list[int] = field(default_factory=list)
    took: list[int] = field(default_factory=list)
    phases: list[dict[PhaseName, int]] = field(default_factory=list)


Report = Callable[[int, str], None]
"""Receives the number of a line, and why a phase in it is invalid."""


def inside_of(job: str, log_lines: Sequence[LogLine], source: str, report: Report) -> list[RankSteps]:
    """Return the time by phase in the log lines of one part of a job, which are in order of time."""
    for log_line in log_lines:
        for reason in event_of(log_line).bad_phases:
            report(log_line.line, reason)
    records = [one for one in log_lines if event_of(one).type in _RECORDS and event_of(one).phases]
    if not records:
        return []
    by_rank: defaultdict[str, list[LogLine]] = defaultdict(list)  # Each rank logs its own steps.
    for log_line in log_lines:
        by_rank[event_of(log_line).rank if event_of(log_line).type is EventType.PHASE else ""].append(log_line)
    counts = {row: count for some in by_rank.values() for row, count in _steps_of(some).items()}
    found: defaultdict[tuple[int, str], _Records] = defaultdict(_Records)
    for log_line in records:
        step = event_of(log_line).step
        if step is not None:
            _add(found, log_line, step, counts[id(log_line)], report)
    return [_columns(job, rank, host, one, source) for (rank, host), one in sorted(found.items())]


def _add(
    found: defaultdict[tuple[int, str], _Records], log_line: LogLine, step: int, count: int, report: Report
) -> None:
    """Add the phases of one line. Equal lines count once."""
    one = event_of(log_line)
    by_rank: defaultdict[tuple[int, str], dict[PhaseName, int]] = defaultdict(dict)
    for part in one.phases:
        ns = part.ns if part.of == "all" else part.ns * count
        of_rank = by_rank[part.rank, part.host]
        of_rank[part.name] = of_rank.get(part.name, 0) + ns
    whole = _whole_of(one, count)
    for key, phases in by_rank.items():
        to = found[key]
        if to.step and to.step[-1] == step and to.time[-1] == log_line.end:
            continue
        took = next((ns for name, ns in phases.items() if name.phase == STEP_TIME), whole)
        to.time.append(log_line.end)
        to.step.append(step)
        to.count.append(count)
        to.took.append(took)
        to.phases.append({})
        for name, ns in phases.items():
            if took != NOT_LOGGED and ns > TIMES_ITS_STEP * took:
                report(log_line.line, f"`{safe(name.name)}` is longer than its steps; ignored")
            elif name.phase != STEP_TIME:
                to.phases[-1][name] = ns


def _whole_of(one: ParsedEvent, count: int) -> int:
    """Return the time of all steps of a record, if its line contains it."""
    if one.running is not None and one.running.whole is not None:
        return one.running.whole
    if one.running is not None and one.running.last is not None:
        return one.running.last * count  # For the last step alone, like its phases.
    if one.step_time is not None:
        return one.step_time * count
    return NOT_LOGGED if one.trained is None else one.trained


def _steps_of(log_lines: Sequence[LogLine]) -> dict[int, int]:
    """Return the number of steps that each record covers, by its identity: since the record before or the step from
    which its process resumed, never across attempts."""
    counts: dict[int, int] = {}
    firsts: list[LogLine] = []
    distances: list[int] = []
    before: int | None = None
    for log_line in sorted(log_lines, key=lambda one: (one.end, one.line)):
        one = event_of(log_line)
        if one.type in (EventType.RESUME, EventType.RESTORE) and one.step is not None:
            before = one.step
        elif one.type is EventType.START or one.type in ENDS:
            before = None
        elif one.type in _RECORDS and one.step is not None:
            if before is not None and one.step > before:
                counts[id(log_line)] = one.step - before
                distances.append(one.step - before)
            else:
                firsts.append(log_line)
            before = one.step
            if log_line.inner is not None:
                distances += [log_line.inner.stride] * len(log_line.inner)
                before = log_line.inner.last
    usual = round(median(distances)) if distances else 1
    for log_line in firsts:
        step = event_of(log_line).step or 0
        counts[id(log_line)] = step if 0 < step < _FAR * usual else usual
    return counts


def _columns(job: str, rank: int, host: str, found: _Records, source: str) -> RankSteps:
    names = few_names(name for phases in found.phases for name in phases)
    ns = np.array([[phases.get(name, NOT_LOGGED) for name in names] for phases in found.phases], dtype=np.int64)
    count = np.array(found.count, dtype=np.int64)
    return RankSteps(
        job, "", rank, host, None,
        time=np.array(found.time, dtype=np.int64),
        step=np.array(found.step, dtype=np.int64),
        count=count,
        first=np.zeros(len(count), dtype=np.bool_),
        took=np.array(found.took, dtype=np.int64),
        names=names,
        ns=ns.reshape(len(count), len(names)),
        source=source,
    )  # fmt: skip
