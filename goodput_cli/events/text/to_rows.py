"""Convert log lines to rows of the event table.

Combine the log lines of one source per program, add activity next to its steps, and merge Kubernetes objects with the
records of a job.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import I64
from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.evidence import UntimedEvidence
from goodput_cli.events.formats.base import RUNS, Output
from goodput_cli.events.rows import Origin, RowBuilder
from goodput_cli.events.schema import (
    COUNTS_FROM_0,
    EVAL_LABEL,
    LEFT_OPEN_SAVE,
    NO_STEP,
    NONE,
    PREEMPTED,
    TEXT_PROCESS,
    Edge,
    Kind,
    SaveState,
)
from goodput_cli.events.text.line_timestamps import Timestamp, Zone
from goodput_cli.events.text.living_processes import (
    resumptions,
    stopped_after_saves,
    with_living_processes,
    without_starts_of_others,
)
from goodput_cli.events.text.log_lines import (
    ENDS,
    MAX_STEP,
    NO_STEP_YET,
    EventType,
    LogLine,
    ParsedEvent,
    Stretch,
    event_of,
    save_detail,
)
from goodput_cli.events.text.meaning import event_lines
from goodput_cli.events.text.programs import launcher, megatron, megatron_process, mllog, nemo_rl
from goodput_cli.events.text.runs_in_file import starts_of_saves
from goodput_cli.events.text.stretches import apart_in_time
from goodput_cli.events.values import MAX_SECONDS
from goodput_cli.vocabulary.when import NS_PER_SECOND

if TYPE_CHECKING:
    from goodput_cli.events.cluster_attempts import ApiObject, ClusterAttempt

LEFT_OPEN = "left open"
"""Name of a save or restore without an end line."""
_BEGUN, _BLOCKING_DONE = save_detail(SaveState.BEGUN), save_detail(SaveState.BLOCKING_DONE)
ONE_STORY = frozenset({megatron.NAME})
"""Formats whose ranks are read together: lines of all ranks are one stream."""
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
_LATEST_NS = MAX_SECONDS * NS_PER_SECOND
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
    inside = took <= log_line.time and max(log_line.time, log_line.end) + took < _LATEST_NS
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
    if one.format in ONE_STORY:
        return "", f"{TEXT_PROCESS}{one.format}"
    return one.rank, TEXT_PROCESS + " ".join((one.format, one.rank or source, log_line.stream))


TRANSLATORS: dict[str, Callable[[Sequence[LogLine]], list[LogLine]]] = {
    megatron.NAME: megatron_process.translate,
    megatron.PROGRESS: megatron.translate_progress,
    launcher.NAME: launcher.translate,
    mllog.NAME: mllog.translate,
    nemo_rl.NAME: nemo_rl.translate,
}
"""Functions that combine lines, by format."""

_ON_THE_WAY = (
    EventType.INIT,
    EventType.PREP,
    EventType.DATA,
    EventType.RESTORE,
    EventType.RESUME,
    EventType.REINIT,
    EventType.ALIVE,
)
_DEATHS = (EventType.CRASHED, EventType.TERMINATED, EventType.PREEMPTED)


def meaning_of(log_lines: Sequence[LogLine], seen: Sequence[UntimedEvidence] = ()) -> list[LogLine]:
    """Return the events of one source, in line order within a format, then in order of time. seen: its evidence of
    failures."""
    log_lines = launcher.add_restarts(apart_in_time([*log_lines]))
    by_format: defaultdict[str, list[LogLine]] = defaultdict(list)
    alive: defaultdict[str, list[LogLine]] = defaultdict(list)
    for log_line in log_lines:
        if log_line.event is None:
            alive[log_line.stream].append(log_line)
        else:
            by_format[log_line.event.format].append(log_line)
    translated: list[LogLine] = []
    for name, own in by_format.items():
        translator = TRANSLATORS.get(name)
        translated += translator(own) if translator is not None else own
    end_with_time(sorted(translated, key=lambda log_line: log_line.line))
    shown = [log_line for own in alive.values() for log_line in own]
    events = [
        log_line for log_line in event_lines(translated, seen, shown) if event_of(log_line).type is not EventType.IGNORE
    ]
    events = _without_totals_of_deaths([log_line for log_line in events if not log_line.borrowed], seen)
    events += starts_of_saves(events, shown)
    _done_before(events)
    _begun_before(events, log_lines)
    events = sorted(events, key=lambda log_line: (log_line.end, log_line.line))
    events = without_starts_of_others(stopped_after_saves(events))
    events = [*with_living_processes(events), *resumptions(events)]
    signs = _activity(events, alive)
    return [*_closed(events, signs), *signs]


def _without_totals_of_deaths(events: Sequence[LogLine], seen: Sequence[UntimedEvidence]) -> list[LogLine]:
    """Return the events without totals that precede an exception of the same process: programs print totals on every
    exit."""
    if not any(event_of(log_line).name == launcher.TOTALS for log_line in events):
        return list(events)
    raised = sorted(one.line for one in seen if one.raised)
    starts = sorted(log_line.line for log_line in events if event_of(log_line).type is EventType.START)
    return [
        log_line
        for log_line in events
        if event_of(log_line).name != launcher.TOTALS or _next(raised, log_line.line) >= _next(starts, log_line.line)
    ]


def _next(lines: Sequence[int], line: int) -> float:
    """Return the first of some lines after a line; infinity if there is none."""
    at = bisect_right(lines, line)
    return lines[at] if at < len(lines) else math.inf


def _closed(events: Sequence[LogLine], signs: Sequence[LogLine]) -> list[LogLine]:
    """Return the events, with unfinished saves and restores extended to the next line about the death of the process,
    otherwise to the last activity before the next start."""
    opened = [log_line for log_line in events if _is_open(log_line)]
    if not opened:
        return list(events)
    later = sorted((*events, *signs), key=lambda log_line: (log_line.time, log_line.line))
    ends = {id(log_line): _end_of_open(log_line, later) for log_line in opened}
    return [
        log_line if id(log_line) not in ends else replace(_left_open(log_line), end=ends[id(log_line)])
        for log_line in events
    ]


def _left_open(log_line: LogLine) -> LogLine:
    one = event_of(log_line)
    detail = LEFT_OPEN_SAVE if one.type is EventType.SAVE else one.detail
    return replace(log_line, event=replace(one, edge=Edge.POINT, name=LEFT_OPEN, detail=detail))


def _is_open(log_line: LogLine) -> bool:
    return event_of(log_line).type in (EventType.SAVE, EventType.RESTORE) and event_of(log_line).edge is Edge.BEGIN


def _end_of_open(log_line: LogLine, later: Sequence[LogLine]) -> int:
    end = log_line.time
    for other in later:
        if other is log_line or other.time < log_line.time or other.stream not in (log_line.stream, ""):
            continue
        if event_of(other).type in ENDS:
            return other.time
        if event_of(other).type is EventType.START and other.time > log_line.time:
            break
        end = max(end, other.end)
    return end


def _done_before(events: Sequence[LogLine]) -> None:
    """Move a record right before a start of the same time if it precedes the start line, as it belongs to the previous
    attempt."""
    starts: dict[tuple[str, int], int] = {}
    for log_line in events:
        if event_of(log_line).type is EventType.START:
            key = log_line.stream, log_line.time
            starts[key] = max(log_line.line, starts.get(key, log_line.line))
    for log_line in events if starts else ():
        if event_of(log_line).type is EventType.STEP and log_line.line < starts.get(
            (log_line.stream, log_line.end), log_line.line
        ):
            log_line.end -= 1
            log_line.time = min(log_line.time, log_line.end)


def _begun_before(events: Sequence[LogLine], log_lines: Sequence[LogLine]) -> None:
    """Turn a record of 0 steps into activity if a process start is logged. Otherwise, if nothing precedes it, move it
    to the first dated line, so that the time since is start-up. log_lines: of the source, including those with only a
    timestamp."""
    if not any(event_of(log_line).name == NO_STEP_YET for log_line in events):
        return
    started, first = False, True
    for log_line in sorted(events, key=lambda log_line: (log_line.time, log_line.line)):
        one = event_of(log_line)
        if one.name == NO_STEP_YET and one.type is EventType.START:
            if started:
                log_line.event = replace(one, type=EventType.ALIVE)
            elif first and log_line.stamp is not None:
                dated = (other.time for other in log_lines if other.stamp is not None and not other.borrowed)
                log_line.time = log_line.end = min(dated)
        started = one.type is EventType.START or (started and one.type not in ENDS and one.type is not EventType.STEP)
        first = first and one.type in _ON_THE_WAY


def end_with_time(log_lines: Sequence[LogLine]) -> None:
    """Move an untimed death to the timed end after it: a process dies, and then its launcher logs the death. log_lines:
    in the order in which they were written; only steps and starts separate attempts."""
    following: LogLine | None = None
    for log_line in reversed(log_lines):
        what = event_of(log_line).type
        if what in ENDS and not log_line.odd:
            following = log_line
        elif what in _DEATHS and following is not None:
            log_line.time = log_line.end = max(log_line.time, following.time)
        elif what in (EventType.START, EventType.STEP, EventType.STEP_START):
            following = None


def first_begin(log_lines: Sequence[LogLine]) -> list[LogLine]:
    """Return activity at the begin of the first record, for text without a clock."""
    first = next(
        (log_line for log_line in log_lines if log_line.event is not None and log_line.event.type is EventType.STEP),
        None,
    )
    if first is None or first.time == first.end:
        return []
    return [
        LogLine(
            first.line, first.stream, None, ParsedEvent(event_of(first).format, EventType.ALIVE), first.time, first.time
        )
    ]


def _activity(events: Sequence[LogLine], alive: dict[str, list[LogLine]]) -> list[LogLine]:
    """Return timestamps next to step records as activity, except those of a process before its start."""
    steps = {
        log_line.stream: event_of(log_line).format for log_line in events if event_of(log_line).type is EventType.STEP
    }
    whole = next((name for name in steps.values() if name in ONE_STORY), None)
    by_stream: defaultdict[str, list[LogLine]] = defaultdict(list)
    for log_line in events:
        by_stream[log_line.stream].append(log_line)
    told = [log_line for stream in alive if whole or stream in steps for log_line in alive[stream]]
    early = _starting(events, told) if whole else set()
    for stream, log_lines in alive.items():
        if stream in by_stream and (whole is None or len(by_stream) > 1):
            early |= _starting(by_stream[stream], log_lines)
    return [
        LogLine(
            log_line.line,
            log_line.stream,
            log_line.stamp,
            ParsedEvent(whole or steps[log_line.stream], EventType.ALIVE),
            log_line.time,
            log_line.time,
        )
        for log_line in told
        if id(log_line) not in early
    ]


def _starting(events: Iterable[LogLine], alive: Iterable[LogLine]) -> set[int]:
    """Return the lines of a process before its start line, which are not activity of the previous attempt: lines before
    the first start, and before a later one if the first of them is nearer to that start than to the previous line."""
    quiet = sorted(alive, key=_end)
    times = [log_line.end for log_line in quiet]
    early: set[int] = set()
    before, highest = -1, -1
    for log_line in sorted(events, key=_end):
        one = event_of(log_line)
        step = one.step if one.type is EventType.STEP and one.step is not None else None
        if one.type is EventType.START or (step is not None and step <= highest):
            low, high = bisect_right(times, before), bisect_left(times, log_line.time)
            if low < high and (before < 0 or 2 * times[low] > before + log_line.time):
                early.update(map(id, quiet[low:high]))
            highest = -1
        highest = highest if step is None else max(highest, step)
        before = before if one.type in _ON_THE_WAY else log_line.end
    return early


def _end(log_line: LogLine) -> tuple[int, int]:
    return log_line.end, log_line.line


def without_preludes(parts: Sequence[list[LogLine]]) -> None:
    """Drop activity before the first event of a file if a start in another file is between them: the file belongs to
    the started process. parts: log lines of one job by source."""
    starts = sorted(log_line.time for part in parts for log_line in part if event_of(log_line).type is EventType.START)
    for part in parts if starts else ():
        first = min((log_line.end for log_line in part if event_of(log_line).type not in _ON_THE_WAY), default=0)
        before = bisect_right(starts, first)
        if before:
            start = starts[before - 1]
            part[:] = [log_line for log_line in part if log_line.time >= start or not _is_plain_activity(log_line)]


def _is_plain_activity(log_line: LogLine) -> bool:
    return event_of(log_line).type is EventType.ALIVE and not event_of(log_line).name


KUBERNETES = "kubernetes"
_SETTLED = 60 * NS_PER_SECOND
"""Maximum time for which other processes of a job may write after its first container failed."""
_NO_PROGRESS = (Kind.START, Kind.HEARTBEAT)


@dataclass
class ClusterEvents:
    """Events that Kubernetes objects add to the records of jobs."""

    log_lines: defaultdict[tuple[int, int], list[LogLine]] = field(default_factory=lambda: defaultdict(list))
    """By source and job code."""
    begun: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(job, requested, begin, until): starts of records in this time become activity, as the cluster's start counts;
    output of the first pods before the others are scheduled is not part of an attempt."""
    jobs: dict[str, int] = field(default_factory=dict)
    """Job of each object by name."""


@dataclass(frozen=True)
class _Records:
    """Times of a job's records, ns UTC, sorted."""

    progress: I64
    starts: I64
    every: I64

    @classmethod
    def of(cls, columns: Mapping[str, NDArray[Any]], job: int) -> _Records:
        rows = np.flatnonzero(columns["job"] == job)
        kind, time = np.asarray(columns["kind"])[rows], np.asarray(columns["time"])[rows]
        hard = ~np.isin(kind, _NO_PROGRESS)
        ends = np.asarray(columns["end"])[rows]
        both = np.unique(np.concatenate((time[hard], ends[hard])))
        return cls(both, np.sort(time[kind == Kind.START]), np.unique(np.concatenate((both, time))))

    @staticmethod
    def last(times: I64, begin: int, end: int) -> int | None:
        """Return the last time in [begin, end); None if there is none."""
        low, high = np.searchsorted(times, (begin, end)).tolist()
        return int(times[high - 1]) if low < high else None


def cluster_events(
    objects: Sequence[tuple[int, ApiObject]], columns: Mapping[str, NDArray[Any]], jobs: Sequence[str],
    notes: DiagnosticCollector,
) -> ClusterEvents:  # fmt: skip
    """Return what objects add: when a job was requested and scheduled, and how attempts ended, if records show the same
    attempts. columns: of all records; jobs: names by code."""
    from goodput_cli.events.cluster_attempts import attempts_of, merged  # imported late: few logs come with objects

    found = ClusterEvents()
    by_key: defaultdict[str, list[tuple[int, ApiObject]]] = defaultdict(list)
    for source, one in merged(objects):
        by_key[one.job].append((source, one))
    records = {int(code): _Records.of(columns, int(code)) for code in np.unique(columns["job"])}
    for key, group in by_key.items():
        named = _named_like(key, {code: jobs[code] for code in records})
        alone = next(iter(records)) if len(records) == len(by_key) == 1 else None
        job = named if named is not None else alone
        attempts = attempts_of([one for _, one in group])
        source, shown = group[0][0], notes.bounded("cluster_objects_unused", key)
        if job is None or (named is None and not _covers_all(attempts, records[job])):
            why = "no job of the log has this name" if job is None or records else "they have no log next to them"
            message = f"Kubernetes objects of {shown}: {why}, or their time differs; select the job with -j"
            notes.add("cluster_objects_unused", message, source, [group[0][1].line])
            continue
        found.jobs.update((one.name, job) for _, one in group)
        if not _add_attempts(attempts, records[job], (source, job), found):
            message = f"Kubernetes objects of {shown} are from another time than the log: they are not used"
            notes.add("cluster_objects_unused", message, source, [group[0][1].line])
            continue
        _note_forgotten([one for _, one in group], shown, source, notes)
    return found


def _named_like(key: str, jobs: Mapping[int, str]) -> int | None:
    """Return the job with the same name as some objects, otherwise the only one whose name contains theirs or is
    contained in it; None if there is none."""
    key = key.lower()
    same = [code for code, name in jobs.items() if name.lower() == key]
    alike = [code for code, name in jobs.items() if _is_part_of(key, name.lower()) or _is_part_of(name.lower(), key)]
    found = same or alike
    return found[0] if len(found) == 1 else None


def _is_part_of(part: str, whole: str) -> bool:
    at = whole.find(part) if len(part) > _SHORTEST else -1
    around = whole[max(at - 1, 0) : at] + whole[at + len(part) : at + len(part) + 1] if at >= 0 else "x"
    return not any(char.isalnum() for char in around)


_SHORTEST = 2
"""Minimum length; shorter names are contained in others by chance."""


def _covers_all(attempts: Sequence[ClusterAttempt], records: _Records) -> bool:
    """Return True if all progress is within the attempts of objects, which then are of the job despite different
    names."""
    if not attempts or not len(records.progress):
        return False
    last = attempts[-1].end
    return attempts[0].begin <= records.progress[0] and (last is None or records.progress[-1] <= last + _SETTLED)


def _add_attempts(
    attempts: Sequence[ClusterAttempt], records: _Records, key: tuple[int, int], found: ClusterEvents
) -> bool:
    """Add the attempts that have records; return True if there are any."""
    placed = False
    for at, one in enumerate(attempts):
        following = attempts[at + 1].begin if at + 1 < len(attempts) else _LATEST_NS
        until = min(following, _LATEST_NS if one.end is None else one.end + NS_PER_SECOND)
        if records.last(records.progress, one.begin, until) is None:
            continue
        placed = True
        asked = _asked_at(one, records)
        if asked < one.begin:
            found.log_lines[key].append(_of_cluster(one.line, asked, EventType.SCHEDULED))
        found.log_lines[key].append(_of_cluster(one.line, one.begin, EventType.START))
        first = records.progress[np.searchsorted(records.progress, one.begin)]
        found.begun.append((key[1], asked, one.begin, int(first)))
        end = _end_of(one, following, records)
        if end is not None and one.how is not None:
            found.log_lines[key].append(_of_cluster(one.line, end, one.how))
    return placed


def _asked_at(one: ClusterAttempt, records: _Records) -> int:
    """Return when an attempt was requested, otherwise when it began: with its Workload if no other attempt was before
    it, or with its pods; never before the last progress of the previous attempt."""
    first = records.every[0]
    asked = one.asked if one.asked is not None and one.asked <= first else one.created
    if asked is None or asked >= one.begin or records.last(records.progress, asked, one.begin) is not None:
        return one.begin
    return asked


def _end_of(one: ClusterAttempt, following: int, records: _Records) -> int | None:
    """Return when an attempt ended: at the time in its object, or at the last progress of its other processes; None if
    these continued for long."""
    if one.end is None:
        return None
    later = records.starts[np.searchsorted(records.starts, one.end + NS_PER_SECOND) :]
    until = min([following, *later[:1].tolist()])
    last = records.last(records.progress, one.end, until)
    if last is None:
        return one.end
    return last if last < one.end + _SETTLED else None


def _of_cluster(line: int, time: int, what: EventType) -> LogLine:
    return LogLine(line, "", Timestamp(time, Zone.EXACT, False), ParsedEvent(KUBERNETES, what), time, time)


def _note_forgotten(objects: Sequence[ApiObject], shown: str, source: int, notes: DiagnosticCollector) -> None:
    """Report facts that the API overwrote: it keeps only the last end of a container and the last change of a
    condition."""
    lost = max((one.forgotten for one in objects if one.kind == "Pod"), default=0)
    if lost:
        message = f"a pod of {shown} restarted {lost} more times than it reports: how these attempts ended is unknown"
        notes.add("cluster_forgets", message, source, [objects[0].line])
    if any(one.again for one in objects):
        message = f"{shown} was admitted or set up several times, and only the last is known: queue times"
        notes.add("cluster_forgets", f"{message} of earlier attempts are unknown", source, [objects[0].line])
