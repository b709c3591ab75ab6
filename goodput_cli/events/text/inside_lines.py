"""Numbers that programs print about their steps: phases, as times by rank, and measurements (MFU, TFLOP/s,
throughput, reported step time). The line before a phase determines how many steps it covers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from goodput_cli.arrays import F64, I64
from goodput_cli.events.inside import NOT_LOGGED, STEP_TIME, TIMES_ITS_STEP, PhaseName, RankSteps, few_names
from goodput_cli.events.schema import NO_STEP, Metric
from goodput_cli.events.text.log_lines import BEYOND_ALL, ENDS, EventType, LogLine, ParsedEvent, Stretch, event_of
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


_UNITS = {"tflops": "TFLOP/s", "mfu": "%"}
"""Units of metrics defined by their names."""


def metrics_of(job: str, log_lines: Sequence[LogLine]) -> list[Metric]:
    """Return the metrics in log lines of a job, each in order of time and without duplicates."""
    found: defaultdict[str, dict[tuple[int, int, float], None]] = defaultdict(dict)
    units: defaultdict[str, Counter[str]] = defaultdict(Counter)
    inner: defaultdict[str, list[tuple[I64, I64, F64]]] = defaultdict(list)
    for log_line in log_lines:
        one = event_of(log_line)
        if abs(log_line.time) >= BEYOND_ALL:
            continue
        if log_line.inner is not None:
            for name, columns in _measured(log_line.inner, log_line.inner.begins(log_line.end)):
                inner[name].append(columns)
                units[name][str(dict(one.detail).get("unit", _UNITS.get(name, "")))] += len(columns[0])
        step = NO_STEP if one.step is None or abs(one.step) >= BEYOND_ALL else one.step
        sizes = {} if not one.total else {"total_steps": float(one.total)}
        for name, value in {**sizes, **one.metrics}.items():
            found[name][log_line.time, step, value] = None
            units[name][str(dict(one.detail).get("unit", _UNITS.get(name, "")))] += 1
    return [
        Metric(job, name, units[name].most_common(1)[0][0], *_metric_columns(sorted(found[name]), inner.get(name, ())))
        for name in sorted({*found, *inner})
    ]


def _measured(inner: Stretch, times: I64) -> Iterator[tuple[str, tuple[I64, I64, F64]]]:
    """Yield the metrics of the records of a stretch, each with its times, steps and values."""
    sizes = {} if not inner.event.total else {"total_steps": np.full(len(inner), float(inner.event.total))}
    steps = inner.steps
    for name, values in {**sizes, **inner.metrics}.items():
        some = ~np.isnan(values)
        yield name, (times, steps, values) if some.all() else (times[some], steps[some], values[some])


def _metric_columns(
    rows: Sequence[tuple[int, int, float]], inner: Sequence[tuple[I64, I64, F64]]
) -> tuple[I64, I64, F64]:
    """Return values with their times and steps, each once, in order. rows: in order. inner: those of stretches."""
    time, step, value = zip(*rows, strict=True) if rows else ((), (), ())
    whole = np.array(time, dtype=np.int64), np.array(step, dtype=np.int64), np.array(value, dtype=np.float64)
    if not inner:
        return whole
    times, steps, values = (np.concatenate(columns) for columns in zip(whole, *inner, strict=True))
    order = np.argsort(times, kind="stable")  # Quick for few stretches, each in order.
    if not _is_rising(times[order]):
        order = np.lexsort((values, steps, times))
    columns = times[order], steps[order], values[order]
    if _is_rising(columns[0]):
        return columns
    first = np.append(True, np.any([one[1:] != one[:-1] for one in columns], axis=0))
    return columns[0][first], columns[1][first], columns[2][first]


def _is_rising(times: I64) -> bool:
    """Return True if no time occurs twice and none is after a later one."""
    return bool((times[1:] > times[:-1]).all())
