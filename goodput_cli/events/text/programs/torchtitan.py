"""Read torchtitan's structured logs: a file of JSON lines per process, with a line at the begin and end of each span.

The spans of the lowest rank of a launch are the job's events; those of all ranks are phases inside steps
(docs/inside-steps.md). Times are host times; the host launches kernels asynchronously.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from goodput_cli.arrays import F64, I64, Mask
from goodput_cli.events.formats.base import Output, Records
from goodput_cli.events.inside import LONGEST_NAME, MOST_RANKS, PhaseName, RankSteps
from goodput_cli.events.schema import SaveState
from goodput_cli.events.text.collector import TextPart
from goodput_cli.events.text.line_timestamps import Timestamp, Zone
from goodput_cli.events.text.log_lines import MAX_STEP, EventType, LogLine, ParsedEvent, save_detail
from goodput_cli.events.text.traces import (
    ALIVE_NS,
    BEGAN,
    CLOCKS_US,
    DONE,
    ENDED,
    ERROR,
    NOTHING,
    SAVED_TAG,
    SHORTEST_SAVE_MS,
    SPAN_EVENTS,
    SPAN_PHASES,
    SPANS,
    ProcessKey,
    SpanColumns,
    TracedProcess,
)
from goodput_cli.events.values import MAX_NS, decimal

NAME = "torchtitan"


def collect(records: Records, output: Output) -> Mask:
    """Collect the spans of processes; return True for valid records."""
    code, good = _codes(records), records.every()
    time, timed = _whole(records, "time_us", MAX_NS // 1000)
    good &= timed
    ms = _numbers(records, "value")
    bad = (code >= 0) & ~((ms >= 0) & (ms < 1e12))
    output.report("bad_phase", "a span without a valid duration; dropped", records, bad & good)
    output.report("bad_value", "`time_us` is not a time; dropped", records, ~timed)
    step, relative = _whole(records, "step", MAX_STEP)[0], _whole(records, "relative_step", MAX_STEP)[0]
    tags = records.column("step_tags") if "step_tags" in records.keys else None
    source = records.origin.source
    part = TextPart()
    known = output.texts.sources[source].processes if source in output.texts.sources else {}
    for key, rows in _by_process(records).items():
        chosen = rows[good[rows]]
        if not len(chosen) or not 0 <= key[1] < MOST_RANKS:
            continue
        line = np.asarray(records.origin.line)[chosen].astype(np.int64)
        process = known.get(key)
        if process is None:
            host = str(records.records[int(chosen[0])].get("host_name", ""))
            process = TracedProcess(key[0], key[1], host[:LONGEST_NAME], int(time[chosen[0]]), int(line[0]), 0)
        tasks = _tasks(records, process, chosen)
        spans = SpanColumns(code[chosen], time[chosen], ms[chosen], step[chosen], relative[chosen], line, tasks)
        if tags is not None:
            process.tagged |= {
                int(step[at]) for at in chosen.tolist() if isinstance(tags[at], list) and SAVED_TAG in tags[at]
            }
        said = spans.code != NOTHING
        process.add(spans.take(said & ~bad[chosen]), _alive(spans))
        part.processes[key] = process
    output.texts.add(source, part)
    return records.every()


def _codes(records: Records) -> I64:
    types = records.column("log_type_name")
    if "log_type" in records.keys and records.same("log_type") != "event":
        of_event = [one == "event" for one in records.column("log_type")]
        types = [name if event else "" for name, event in zip(types, of_event, strict=True)]
    return np.array([_code(name) for name in types], dtype=np.int64)


def _code(name: Any) -> int:
    if not isinstance(name, str):
        return NOTHING
    if name in ENDED:
        return ENDED[name]
    if name in BEGAN:
        return BEGAN[name]
    if name.endswith("_error"):
        return ERROR
    return DONE if name == "torch_distributed_teardown_start" else NOTHING


def _alive(spans: SpanColumns) -> list[tuple[int, int]]:
    """Return us and line of the first and last record, and of one per 10 s between."""
    order = np.argsort(spans.line, kind="stable")
    time, line = spans.time[order], spans.line[order]
    _, first = np.unique(time // (ALIVE_NS // 1000), return_index=True)
    rows = np.union1d(first, [len(time) - 1])
    return list(zip(time[rows].tolist(), line[rows].tolist(), strict=True))


def _tasks(records: Records, process: TracedProcess, rows: I64) -> I64:
    if "task_name" not in records.keys:
        return np.zeros(len(rows), dtype=np.int64)
    names = records.column("task_name")
    codes = process.tasks
    return np.array([codes.setdefault(str(names[at]), len(codes) + 1) for at in rows.tolist()], dtype=np.int64)


def _by_process(records: Records) -> dict[ProcessKey, I64]:
    size = len(records)
    columns = [records.column(key) if key in records.keys else [None] * size for key in ("source", "rank", "pid")]
    found: defaultdict[ProcessKey, list[int]] = defaultdict(list)
    for at, (pool, rank, pid) in enumerate(zip(*columns, strict=True)):
        key = (
            pool if isinstance(pool, str) else "",
            rank if type(rank) is int else 0,
            pid if type(pid) is int else 0,
        )
        found[key].append(at)
    return {(pool[:LONGEST_NAME], rank, pid): np.array(rows) for (pool, rank, pid), rows in found.items()}


def _whole(records: Records, key: str, most: int) -> tuple[I64, Mask]:
    """Return integers from 0 to `most`, -1 for others, and True for valid ones."""
    if key not in records.keys:
        return np.full(len(records), -1, dtype=np.int64), np.zeros(len(records), dtype=np.bool_)
    values = [one if type(one) is int and 0 <= one <= most else -1 for one in records.column(key)]
    column = np.array(values, dtype=np.int64)
    return column, column >= 0


def _numbers(records: Records, key: str) -> F64:
    """Return numbers; NaN for other values."""
    if key not in records.keys:
        return np.full(len(records), np.nan)
    values = records.column(key)
    return np.array([one if type(one) is float else _or_nan(one) for one in values], dtype=np.float64)


def _or_nan(value: Any) -> float:
    found = None if isinstance(value, bool) else decimal(value)
    return np.nan if found is None else found


_TIMES_A_CALL = 5.0
"""Minimum ratio between a real save and a call that saves nothing."""


class Traced(NamedTuple):
    """A process with its launch."""

    source: int
    process: TracedProcess
    resumed: int
    """Step from which it resumed; 0: from the beginning."""
    turn: int
    """Number of earlier processes of its rank that resumed from there."""


def launches(processes: Iterable[tuple[int, TracedProcess]]) -> list[Traced]:
    """Return processes with their launch, which is the step from which they resumed and how often their rank had
    resumed from it before. This matches ranks of one launch without clocks."""
    turns: defaultdict[tuple[str, int, int], int] = defaultdict(int)
    found: list[Traced] = []
    for source, process in sorted(processes, key=lambda one: (one[1].begin, one[0])):
        resumed = _resumed_from(process)
        key = process.pool, process.rank, resumed
        found.append(Traced(source, process, resumed, turns[key]))
        turns[key] += 1
    return found


def _resumed_from(process: TracedProcess) -> int:
    steps = process.steps()
    said = steps is not None and bool((steps.relative > 0).any())
    if steps is None or not said:
        return max(process.begun[0] - process.begun_relative, 0) if process.begun_relative > 0 else 0
    return max(int((steps.step - steps.relative)[steps.relative > 0].min()), 0)


def log_lines_of(processes: Iterable[tuple[int, TracedProcess]]) -> dict[int, list[LogLine]]:
    """Return the log lines of the processes of one job by source: events for the lowest rank of each launch, activity
    for others."""
    every = launches(processes)
    lowest: dict[tuple[int, int], Traced] = {}
    for one in every:
        if _has_steps(one.process):
            key = one.resumed, one.turn
            if key not in lowest or one.process.rank < lowest[key].process.rank:
                lowest[key] = one
    found: defaultdict[int, list[LogLine]] = defaultdict(list)
    for one in every:
        leader = lowest.get((one.resumed, one.turn))
        lines = _lines_of_leader(one) if one is leader else _signs(one, _ahead(one, leader))
        found[one.source] += lines
    return dict(found)


def _ahead(one: Traced, leader: Traced | None) -> int:
    """Return how far (us) a clock is ahead of that of its leader according to common steps; 0 if only a few seconds."""
    own, others = one.process.steps(), None if leader is None else leader.process.steps()
    if own is None or others is None:
        return 0
    _, here, there = np.intersect1d(own.step, others.step, return_indices=True)
    ahead = int(np.median(own.time[here] - others.time[there])) // 1000 if len(here) else 0
    return ahead if abs(ahead) > CLOCKS_US else 0


def _has_steps(process: TracedProcess) -> bool:
    return process.has_steps and (process.begun[0] >= 0 or process.steps() is not None)


def _line(one: Traced, us: int, line: int, what: EventType, **more: Any) -> LogLine:
    stamp = Timestamp(us * 1000, Zone.EXACT, False)
    event = ParsedEvent(NAME, what, rank=one.process.host, **more)
    return LogLine(line, "", stamp, event)


def _signs(one: Traced, ahead: int = 0) -> list[LogLine]:
    process = one.process
    ends = [(process.begin, process.first_line), *process.alive, (process.end, max(process.last_line, 1))]
    return [_line(one, us - ahead, line, EventType.ALIVE) for us, line in dict.fromkeys(ends)]


def _lines_of_leader(one: Traced) -> list[LogLine]:
    """Return the events of a launch."""
    process, events = one.process, one.process.events()
    lines = [_line(one, process.begin, process.first_line, EventType.START)]
    if one.resumed:
        lines.append(_line(one, process.begin, process.first_line, EventType.RESUME, step=one.resumed))
    steps, ended = process.steps(), False
    last_step = max(process.begun[0], int(steps.step[-1]) if steps is not None else -1)
    if steps is not None:
        for ns, step, line in zip(
            (steps.time - steps.took).tolist(), steps.step.tolist(), steps.line.tolist(), strict=True
        ):
            lines.append(_line(one, ns // 1000, line, EventType.STEP_START, step=step))
    shortest = _shortest_save(process, 0 if steps is None else len(steps.step))
    for code, us, ms, step, line in zip(
        *(column.tolist() for column in (events.code, events.time, events.ms, events.step, events.line)), strict=True
    ):
        if code == ERROR and step == last_step:
            lines.append(_line(one, us, line, EventType.CRASHED))
            ended = True
            break
        if code == DONE:
            lines.append(_line(one, us, line, EventType.FINISHED))
            ended = True
        elif code >= 0:
            lines += _of_span(one, SPANS[code], us, ms, step, line, shortest)
    if steps is None or last_step > int(steps.step[-1]):
        step, us, line = process.begun
        lines.append(_line(one, us, line, EventType.STEP_START, step=step))
    elif not ended:  # Its loop continues with the next step at once.
        us = int(steps.time[-1]) // 1000
        lines.append(_line(one, us, int(steps.line[-1]), EventType.STEP_START, step=last_step + 1))
    lines += _signs(one)
    return lines


def _shortest_save(process: TracedProcess, steps: int) -> float:
    """Return the minimum time (ms) of a span with a real save if no step is tagged. If there is one at every step, most
    are calls that save nothing."""
    events = process.events()
    own = events.ms[[code >= 0 and SPAN_EVENTS.get(SPANS[code]) is EventType.SAVE for code in events.code.tolist()]]
    if 2 * len(own) < steps or not len(own):
        return SHORTEST_SAVE_MS
    return max(SHORTEST_SAVE_MS, _TIMES_A_CALL * float(np.median(own)))


def _of_span(one: Traced, name: str, us: int, ms: float, step: int, line: int, shortest: float) -> list[LogLine]:
    what, took = SPAN_EVENTS.get(name), round(ms * 1e6)
    if what is None or (what is EventType.RESTORE and not one.resumed):
        return []
    if what is EventType.SAVE and not (step in one.process.tagged if one.process.tagged else ms >= shortest):
        return []
    number_of = one.resumed if what is EventType.RESTORE else step if step >= 0 else None
    # Asynchronous saves have the span too, for the part that blocks.
    detail = save_detail(SaveState.BLOCKING_DONE) if what is EventType.SAVE else ()
    return [_line(one, us, line, what, step=number_of, took=took, detail=detail)]


def inside_of(job: str, processes: Iterable[tuple[int, TracedProcess]], names: Sequence[str]) -> list[RankSteps]:
    """Return the time by phase of each process of a job. names: of the sources."""
    found: list[RankSteps] = []
    for source, process, resumed, turn in launches(processes):
        steps = process.steps()
        if steps is None or not len(steps.step):
            continue
        spans = list(steps.spans)
        table = [steps.spans[name] for name in spans]
        found.append(
            RankSteps(
                job, process.pool, process.rank, process.host, (resumed, turn),
                time=steps.time,
                step=steps.step,
                count=np.ones(len(steps.step), dtype=np.int64),
                first=np.asarray(steps.relative == 1),
                took=steps.took,
                names=tuple(PhaseName(name, SPAN_PHASES[name]) for name in spans),
                ns=np.column_stack(table) if table else np.zeros((len(steps.step), 0), dtype=np.int64),
                source=names[source],
            )
        )  # fmt: skip
    return found
