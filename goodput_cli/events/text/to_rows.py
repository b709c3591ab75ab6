"""Marks -> rows of the table of events."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from goodput_cli.events.formats.base import Output
from goodput_cli.events.formats.mldiagnostics import NAME as RUNS
from goodput_cli.events.rows import Origin, RowBuilder
from goodput_cli.events.schema import NO_STEP, NONE, PREEMPTED, Edge, Kind
from goodput_cli.events.text.marks import Mark, What
from goodput_cli.events.text.meaning import said
from goodput_cli.events.text.programs import launcher, megatron
from goodput_cli.events.text.rules import MAX_STEP
from goodput_cli.events.values import MAX_SECONDS
from goodput_cli.vocabulary.units import NS_PER_SECOND

ONE_STORY = frozenset({megatron.NAME})
"""Formats whose ranks print one story: lines of all ranks are one stream."""
_KINDS: dict[What, Kind] = {
    What.STEP: Kind.STEP,
    What.STEP_START: Kind.STEP,
    What.STEP_FINISHED: Kind.FINISHED,
    What.START: Kind.START,
    What.FINISHED: Kind.JOB_FINISHED,
    What.STOPPED: Kind.USER_TERMINATED,
    What.EXITED: Kind.JOB_END,
    What.TERMINATED: Kind.TERMINATED,
    What.PREEMPTED: Kind.TERMINATED,
    What.CRASHED: Kind.CRASHED,
    What.SCHEDULED: Kind.SCHEDULED,
    What.SAVE: Kind.SAVE,
    What.SAVED: Kind.SAVED,
    What.RESTORE: Kind.RESTORE,
    What.RESUME: Kind.RESTORE,
    What.EVAL: Kind.CUSTOM,
    What.CUSTOM: Kind.CUSTOM,
    What.INIT: Kind.TPU_INIT,
    What.PREP: Kind.PREP,
    What.DATA: Kind.DATA,
    What.REINIT: Kind.ELASTIC_REINIT,
    What.ALIVE: Kind.HEARTBEAT,
}
_PHASES = frozenset({What.EVAL, What.CUSTOM, What.INIT, What.PREP, What.DATA, What.REINIT})
"""Kinds with a begin and an end; a point of one is only a sign of life."""
_LATEST_NS = MAX_SECONDS * NS_PER_SECOND
_DIGITS = 10
"""Of a rank, which is a number of 32 bits."""
_LABELS = {What.EVAL: megatron.EVAL_LABEL}


def add_rows(builder: RowBuilder, source: int, job: int, events: Sequence[Mark], output: Output, name: str) -> None:
    kept = [mark for mark in events if _is_possible(mark)]
    if len(kept) < len(events):
        lines = sorted({mark.line for mark in events if not _is_possible(mark)})
        output.notes.add(
            "bad_value", "a time that is not between 1970 and 2255, or a step beyond all; dropped", source, lines
        )
    rows = [row for mark in kept for row in _rows_of(mark, output, name)]
    if not rows:
        return
    size = len(rows)
    whole = {column: np.array([row[column] for row in rows], dtype=np.int64) for column in _COLUMNS}
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


def _is_possible(mark: Mark) -> bool:
    """Whether the instants and the number of a mark fit into the table."""
    one = said(mark)
    took = one.took or 0
    inside = took <= mark.time and max(mark.time, mark.end) + took < _LATEST_NS
    return inside and (one.step is None or one.step <= MAX_STEP)


def _rows_of(mark: Mark, output: Output, source: str) -> list[dict[str, int]]:
    """The rows of a mark: two of a phase of which begin and end are known."""
    one = said(mark)
    kind, edge, time, end = _KINDS[one.what], one.edge, mark.time, mark.end
    if one.format == launcher.NAME and one.what is What.ALIVE and one.name != launcher.OUTLIVED:
        return []
    if one.what is What.STEP:
        edge, time = Edge.END, mark.end
    elif end == time and one.took and edge is Edge.POINT:
        time, end = (time, time + one.took) if one.begins else (time - one.took, time)
    if one.what is not What.STEP:
        if end > time:
            edge = Edge.INTERVAL
        elif one.what in _PHASES and edge is Edge.POINT:
            kind = Kind.HEARTBEAT
    label = one.label or _LABELS.get(one.what, "") if kind in (Kind.CUSTOM,) else ""
    row = {
        "time": time,
        "end": end,
        "kind": int(kind),
        "edge": int(edge),
        "step": NO_STEP if one.step is None or one.what in (What.START, What.ALIVE) else one.step,
        "step_time": NONE if one.step_time is None or one.what is not What.STEP else one.step_time,
        "label": output.labels.code(label.upper()) if label else NONE,
        "detail": output.details.code(one.detail) if one.detail and one.what is not What.STEP else NONE,
        "rank": int(one.rank) if one.format == RUNS and one.rank.isdecimal() and len(one.rank) < _DIGITS else NONE,
        "line": mark.line,
        "entry": mark.entry,
        "writer": output.writers.code(_writer(mark, source)),
    }
    if edge is Edge.INTERVAL and one.what in _PHASES:
        begin = row | {"end": time, "edge": int(Edge.BEGIN)}
        return [begin, row | {"time": end, "edge": int(Edge.END)}]
    if one.what is What.PREEMPTED:
        notice = row | {"kind": int(Kind.HEARTBEAT), "edge": int(Edge.POINT), "step": NO_STEP}
        return [row, notice | {"detail": output.details.code(PREEMPTED)}]
    return [row]


def _writer(mark: Mark, source: str) -> tuple[str, str]:
    """(node, process): the node as far as the line names it; the processes of one story are one."""
    one = said(mark)
    if one.format in ONE_STORY:
        return "", one.format
    return one.rank, " ".join((one.format, one.rank or source, mark.stream))
