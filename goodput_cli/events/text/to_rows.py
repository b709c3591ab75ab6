"""Convert log lines to rows of the event table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from goodput_cli.arrays import I64
from goodput_cli.events.formats.base import RUNS, Output
from goodput_cli.events.rows import Origin, RowBuilder
from goodput_cli.events.schema import (
    COUNTS_FROM_0,
    NO_STEP,
    NONE,
    PREEMPTED,
    TEXT_PROCESS,
    Edge,
    Kind,
    SaveState,
)
from goodput_cli.events.text.log_lines import MAX_STEP, EventType, LogLine, Stretch, event_of, save_detail
from goodput_cli.events.text.programs import launcher, megatron
from goodput_cli.events.values import MAX_NS
from goodput_cli.vocabulary.categories import EVAL_LABEL

_BEGUN, _BLOCKING_DONE = save_detail(SaveState.BEGUN), save_detail(SaveState.BLOCKING_DONE)
_KINDS: dict[EventType, Kind] = {
    EventType.STEP: Kind.STEP,
    EventType.STEP_START: Kind.STEP,
    EventType.STEP_FINISHED: Kind.FINISHED,
    EventType.START: Kind.START,
    EventType.FINISHED: Kind.JOB_FINISHED,
    EventType.STOPPED: Kind.USER_TERMINATED,
    EventType.EXITED: Kind.JOB_END,
    EventType.TERMINATED: Kind.TERMINATED,
    EventType.PREEMPTED: Kind.TERMINATED,
    EventType.CRASHED: Kind.CRASHED,
    EventType.SCHEDULED: Kind.SCHEDULED,
    EventType.SAVE: Kind.SAVE,
    EventType.SAVED: Kind.SAVED,
    EventType.RESTORE: Kind.RESTORE,
    EventType.RESUME: Kind.RESTORE,
    EventType.EVAL: Kind.CUSTOM,
    EventType.CUSTOM: Kind.CUSTOM,
    EventType.INIT: Kind.TPU_INIT,
    EventType.PREP: Kind.PREP,
    EventType.DATA: Kind.DATA,
    EventType.REINIT: Kind.ELASTIC_REINIT,
    EventType.ALIVE: Kind.HEARTBEAT,
}
_PHASES = frozenset(
    {EventType.EVAL, EventType.CUSTOM, EventType.INIT, EventType.PREP, EventType.DATA, EventType.REINIT}
)
"""Kinds with a begin and an end; a point is only activity."""
_DIGITS = 10
"""Of a rank, a 32-bit number."""
_LABELS = {EventType.EVAL: EVAL_LABEL}


def add_rows(builder: RowBuilder, source: int, job: int, events: Sequence[LogLine], output: Output, name: str) -> None:
    kept = [log_line for log_line in events if _is_possible(log_line)]
    if len(kept) < len(events):
        lines = sorted({log_line.line for log_line in events if not _is_possible(log_line)})
        output.notes.add("bad_value", "a time outside 1970 to 2255, or a step out of range; dropped", source, lines)
    rows: list[dict[str, int]] = []
    stretches: list[tuple[int, Stretch]] = []
    for log_line in kept:
        rows += _rows_of(log_line, output, name)
        if log_line.inner is not None:
            stretches.append((len(rows), log_line.inner))
    if not rows:
        return
    whole = _whole_columns(rows, stretches)
    size = len(whole["time"])
    origin = Origin(
        source,
        np.arange(size, dtype=np.int64),
        whole["line"],
        whole["entry"].astype(np.int32),
        np.full(size, job, dtype=np.int32),
        whole["writer"].astype(np.int32),
    )
    builder.add(
        origin,
        np.ones(size, dtype=np.bool_),
        whole["kind"].astype(np.int8),
        whole["edge"].astype(np.int8),
        whole["time"],
        end=whole["end"],
        step=whole["step"],
        step_time=whole["step_time"],
        rank=whole["rank"].astype(np.int32),
        label=whole["label"].astype(np.int32),
        detail=whole["detail"].astype(np.int32),
    )
    builder.end_block()


_COLUMNS = ("time", "end", "kind", "edge", "step", "step_time", "rank", "label", "detail", "line", "entry", "writer")


_OF_RECORDS: dict[str, Callable[[Stretch], I64 | int]] = {
    "time": lambda stretch: stretch.time,
    "end": lambda stretch: stretch.time,
    "step": lambda stretch: stretch.steps,
    "step_time": lambda stretch: NONE if stretch.step_time is None else stretch.step_time,
    "line": lambda stretch: stretch.line,
}
"""Columns in which the records of a stretch differ from the record before it."""


def _whole_columns(rows: Sequence[Mapping[str, int]], stretches: Sequence[tuple[int, Stretch]]) -> dict[str, I64]:
    """Return the columns of rows, with those of stretches inserted after the given numbers of rows."""
    columns = {name: np.array([row[name] for row in rows], dtype=np.int64) for name in _COLUMNS}
    if not stretches:
        return columns
    counts = np.ones(len(rows), dtype=np.int64)
    for after, stretch in stretches:
        counts[after - 1] += len(stretch)
    ends = np.cumsum(counts)
    whole = {name: np.repeat(column, counts) for name, column in columns.items()}
    for name, values_of in _OF_RECORDS.items():
        column = whole[name]
        for after, stretch in stretches:
            column[ends[after - 1] - len(stretch) : ends[after - 1]] = values_of(stretch)
    return whole


def _is_possible(log_line: LogLine) -> bool:
    """Return True if the times and the step of a log line fit into the table."""
    one = event_of(log_line)
    took = one.took or 0
    inside = took <= log_line.time and max(log_line.time, log_line.end) + took < MAX_NS
    return inside and (one.step is None or one.step <= MAX_STEP)


def _position_of(log_line: LogLine) -> tuple[Kind, Edge, int, int]:
    """Return the kind of a row, its edge, and its begin and end (ns)."""
    one = event_of(log_line)
    kind, edge, time, end = _KINDS[one.type], one.edge, log_line.time, log_line.end
    if one.type is EventType.STEP:
        return kind, Edge.END, end, end
    if one.type is EventType.ALIVE or one.name == launcher.WAIT:
        return kind, edge, end, end
    if end == time and one.took and edge is Edge.POINT:
        time, end = (time, time + one.took) if one.begins else (time - one.took, time)
    if end > time:
        return kind, Edge.INTERVAL, time, end
    return (Kind.HEARTBEAT if one.type in _PHASES and edge is Edge.POINT else kind), edge, time, end


def _rows_of(log_line: LogLine, output: Output, source: str) -> list[dict[str, int]]:
    """Return the rows of a log line: two for a phase with known begin and end."""
    one = event_of(log_line)
    is_of_launcher = one.format == launcher.NAME and one.type is EventType.ALIVE
    if is_of_launcher and one.name not in (launcher.OUTLIVED, launcher.WAIT):
        return []
    kind, edge, time, end = _position_of(log_line)
    label = one.label or _LABELS.get(one.type, "") if kind in (Kind.CUSTOM,) else ""
    # Details of steps are mostly measurements of their format.
    detail = one.detail if one.type is not EventType.STEP or one.detail == COUNTS_FROM_0 else ()
    if edge is Edge.INTERVAL and detail == _BEGUN:
        detail = _BLOCKING_DONE  # The interval covers the time that the save blocked training.
    row = {
        "time": time,
        "end": end,
        "kind": int(kind),
        "edge": int(edge),
        "step": NO_STEP if one.step is None or one.type in (EventType.START, EventType.ALIVE) else one.step,
        "step_time": NONE if one.step_time is None or one.type is not EventType.STEP else one.step_time,
        "label": output.labels.code(label.upper()) if label else NONE,
        "detail": output.details.code(detail) if detail else NONE,
        "rank": int(one.rank) if one.format == RUNS and one.rank.isdecimal() and len(one.rank) < _DIGITS else NONE,
        "line": log_line.line,
        "entry": log_line.entry,
        "writer": output.writers.code(_writer(log_line, source)),
    }
    if edge is Edge.INTERVAL and one.type in _PHASES:
        begin = row | {"end": time, "edge": int(Edge.BEGIN)}
        return [begin, row | {"time": end, "edge": int(Edge.END)}]
    if one.type is EventType.PREEMPTED:
        notice = row | {"kind": int(Kind.HEARTBEAT), "edge": int(Edge.POINT), "step": NO_STEP}
        return [row, notice | {"detail": output.details.code(PREEMPTED)}]
    return [row]


def _writer(log_line: LogLine, source: str) -> tuple[str, str]:
    """Return (node, process): the node in the line, if any; the processes of a jointly read format are one."""
    one = event_of(log_line)
    if one.process:
        return one.rank, one.process
    if one.format in megatron.JOINT_FORMATS:
        return "", f"{TEXT_PROCESS}{one.format}"
    return one.rank, TEXT_PROCESS + " ".join((one.format, one.rank or source, log_line.stream))
