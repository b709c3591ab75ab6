"""Marks -> rows of the table of events.

What the marks of one source mean together: those of each program, and signs of life beside its steps.

What objects of Kubernetes say beside the records of a job.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import I64
from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.formats.base import RUNS, Output
from goodput_cli.events.rows import Origin, RowBuilder
from goodput_cli.events.schema import NO_STEP, NONE, PREEMPTED, Edge, Kind
from goodput_cli.events.text.marks import ENDS, MAX_STEP, Mark, Said, What
from goodput_cli.events.text.meaning import meant, said
from goodput_cli.events.text.programs import launcher, megatron, mllog
from goodput_cli.events.text.programs import megatron as megatron_process
from goodput_cli.events.text.stamps import Stamp, Zone
from goodput_cli.events.values import MAX_SECONDS
from goodput_cli.vocabulary.when import NS_PER_SECOND

if TYPE_CHECKING:
    from goodput_cli.events.cluster_attempts import ApiObject, Attempt

LEFT_OPEN = "left open"
"""The name of a save or restore whose end no line says."""
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


TRANSLATORS: dict[str, Callable[[Sequence[Mark]], list[Mark]]] = {
    megatron.NAME: megatron_process.translate,
    megatron.PROGRESS: megatron.translate_progress,
    launcher.NAME: launcher.translate,
    mllog.NAME: mllog.translate,
}
"""By format: what its lines mean together, where a line alone does not say it."""

_ON_THE_WAY = (What.INIT, What.PREP, What.DATA, What.RESTORE, What.RESUME, What.REINIT, What.ALIVE)
_DEATHS = (What.CRASHED, What.TERMINATED, What.PREEMPTED)


def meaning_of(marks: Sequence[Mark]) -> list[Mark]:
    """What the marks of one source mean, in order of lines within a format, then of time."""
    by_format: defaultdict[str, list[Mark]] = defaultdict(list)
    alive: defaultdict[str, list[Mark]] = defaultdict(list)
    for mark in marks:
        if mark.said is None:
            alive[mark.stream].append(mark)
        else:
            by_format[mark.said.format].append(mark)
    translated: list[Mark] = []
    for name, own in by_format.items():
        translator = TRANSLATORS.get(name)
        translated += translator(own) if translator is not None else own
    end_with_time(sorted(translated, key=lambda mark: mark.line))
    events = [mark for mark in meant(translated) if said(mark).what is not What.IGNORE]
    events = [mark for mark in events if not mark.borrowed]
    _done_before(events)
    signs = _signs_of_life(events, alive)
    return [*_closed(events, signs), *signs]


def _closed(events: Sequence[Mark], signs: Sequence[Mark]) -> list[Mark]:
    """The events, where a save or restore that has no end lasts to the next line that says that its process died, else
    to the last sign of life before the next start."""
    opened = [mark for mark in events if _is_open(mark)]
    if not opened:
        return list(events)
    later = sorted((*events, *signs), key=lambda mark: (mark.time, mark.line))
    ends = {id(mark): _end_of_open(mark, later) for mark in opened}
    return [
        mark
        if id(mark) not in ends
        else replace(mark, end=ends[id(mark)], said=replace(said(mark), edge=Edge.POINT, name=LEFT_OPEN))
        for mark in events
    ]


def _is_open(mark: Mark) -> bool:
    return said(mark).what in (What.SAVE, What.RESTORE) and said(mark).edge is Edge.BEGIN


def _end_of_open(mark: Mark, later: Sequence[Mark]) -> int:
    end = mark.time
    for other in later:
        if other is mark or other.time < mark.time or other.stream not in (mark.stream, ""):
            continue
        if said(other).what in ENDS:
            return other.time
        if said(other).what is What.START and other.time > mark.time:
            break
        end = max(end, other.end)
    return end


def _done_before(events: Sequence[Mark]) -> None:
    """A record that stands before a start line of the same instant is of the life before: it is put right before."""
    starts: dict[tuple[str, int], int] = {}
    for mark in events:
        if said(mark).what is What.START:
            key = mark.stream, mark.time
            starts[key] = max(mark.line, starts.get(key, mark.line))
    for mark in events if starts else ():
        if said(mark).what is What.STEP and mark.line < starts.get((mark.stream, mark.end), mark.line):
            mark.end -= 1
            mark.time = min(mark.time, mark.end)


def end_with_time(marks: Sequence[Mark]) -> None:
    """A death whose line has no time is at the end with one that follows: a process dies, and then its launcher writes
    that it did. marks: in the order in which they were said; only steps and starts stand between two lives."""
    following: Mark | None = None
    for mark in reversed(marks):
        what = said(mark).what
        if what in ENDS and not mark.odd:
            following = mark
        elif what in _DEATHS and following is not None:
            mark.time = mark.end = max(mark.time, following.time)
        elif what in (What.START, What.STEP, What.STEP_START):
            following = None


def first_begin(marks: Sequence[Mark]) -> list[Mark]:
    """In a text without a clock the job was alive when its first record began."""
    first = next((mark for mark in marks if mark.said is not None and mark.said.what is What.STEP), None)
    if first is None or first.time == first.end:
        return []
    return [Mark(first.line, first.stream, None, Said(said(first).format, What.ALIVE), first.time, first.time)]


def _signs_of_life(events: Sequence[Mark], alive: dict[str, list[Mark]]) -> list[Mark]:
    """Stamps beside step records, as heartbeats; not those of a process that is about to start."""
    steps = {mark.stream: said(mark).format for mark in events if said(mark).what is What.STEP}
    whole = next((name for name in steps.values() if name in ONE_STORY), None)
    by_stream: defaultdict[str, list[Mark]] = defaultdict(list)
    for mark in events:
        by_stream[mark.stream].append(mark)
    told = [mark for stream in alive if whole or stream in steps for mark in alive[stream]]
    early = _starting(events, told) if whole else set()
    for stream, marks in alive.items():
        if stream in by_stream and (whole is None or len(by_stream) > 1):
            early |= _starting(by_stream[stream], marks)
    return [
        Mark(mark.line, mark.stream, mark.stamp, Said(whole or steps[mark.stream], What.ALIVE), mark.time, mark.time)
        for mark in told
        if id(mark) not in early
    ]


def _starting(events: Iterable[Mark], alive: Iterable[Mark]) -> set[int]:
    """What a process says on its way to its start line is no sign of the life before: lines before the first start, and
    those before a later one of which the first is nearer to that start than to what was said before."""
    quiet = sorted(alive, key=_end)
    times = [mark.end for mark in quiet]
    early: set[int] = set()
    before, highest = -1, -1
    for mark in sorted(events, key=_end):
        one = said(mark)
        step = one.step if one.what is What.STEP and one.step is not None else None
        if one.what is What.START or (step is not None and step <= highest):
            low, high = bisect_right(times, before), bisect_left(times, mark.time)
            if low < high and (before < 0 or 2 * times[low] > before + mark.time):
                early.update(map(id, quiet[low:high]))
            highest = -1
        highest = highest if step is None else max(highest, step)
        before = before if one.what in _ON_THE_WAY else mark.end
    return early


def _end(mark: Mark) -> tuple[int, int]:
    return mark.end, mark.line


def without_preludes(parts: Sequence[list[Mark]]) -> None:
    """Leave out signs of life before the first event of a file, where a start in another file stands between them: the
    file is of the process that started. parts: the marks of one job by source."""
    starts = sorted(mark.time for part in parts for mark in part if said(mark).what is What.START)
    for part in parts if starts else ():
        first = min((mark.end for mark in part if said(mark).what not in _ON_THE_WAY), default=0)
        before = bisect_right(starts, first)
        if before:
            start = starts[before - 1]
            part[:] = [mark for mark in part if mark.time >= start or not _says_nothing(mark)]


def _says_nothing(mark: Mark) -> bool:
    return said(mark).what is What.ALIVE and not said(mark).name


KUBERNETES = "kubernetes"
_SETTLED = 60 * NS_PER_SECOND
"""So long the other processes of a job may write after the first container of it has failed."""
_NO_PROGRESS = (Kind.START, Kind.HEARTBEAT)


@dataclass
class Beside:
    """What objects of Kubernetes add to the records of jobs."""

    marks: defaultdict[tuple[int, int], list[Mark]] = field(default_factory=lambda: defaultdict(list))
    """By the codes of a source and of a job."""
    begun: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(job, asked, begin, until): starts that records show in between are signs of life, since the cluster's start
    counts; what the first pods say while others wait to be scheduled is no life of the job yet."""
    jobs: dict[str, int] = field(default_factory=dict)
    """The job of each object, by name."""


@dataclass(frozen=True)
class _Records:
    """When records of a job are, ns UTC, sorted."""

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
        """The last of some times in [begin, end)."""
        low, high = np.searchsorted(times, (begin, end)).tolist()
        return int(times[high - 1]) if low < high else None


def beside_cluster(
    objects: Sequence[tuple[int, ApiObject]], columns: Mapping[str, NDArray[Any]], jobs: Sequence[str],
    notes: DiagnosticCollector,
) -> Beside:  # fmt: skip
    """What objects add: when a job was asked for and was scheduled, and how attempts ended, where records show the same
    attempts. columns: of all records; jobs: the names behind their codes."""
    from goodput_cli.events.cluster_attempts import attempts_of, merged  # few logs lie beside any

    found = Beside()
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
        if job is None or (named is None and not _holds_all(attempts, records[job])):
            why = "no job of the log is called so" if job is None or records else "there is no log beside them"
            message = f"objects of {shown} in Kubernetes: {why}, or it was at another time; -j names the job"
            notes.add("cluster_objects_unused", message, source, [group[0][1].line])
            continue
        found.jobs.update((one.name, job) for _, one in group)
        if not _place(attempts, records[job], (source, job), found):
            message = f"objects of {shown} in Kubernetes are of another time than the log: nothing is taken from them"
            notes.add("cluster_objects_unused", message, source, [group[0][1].line])
            continue
        _note_forgotten([one for _, one in group], shown, source, notes)
    return found


def _named_like(key: str, jobs: Mapping[int, str]) -> int | None:
    """The job whose name is that of some objects, else the only one whose name holds it or stands in it."""
    key = key.lower()
    same = [code for code, name in jobs.items() if name.lower() == key]
    alike = [code for code, name in jobs.items() if _stands_in(key, name.lower()) or _stands_in(name.lower(), key)]
    found = same or alike
    return found[0] if len(found) == 1 else None


def _stands_in(part: str, whole: str) -> bool:
    at = whole.find(part) if len(part) > _SHORTEST else -1
    around = whole[max(at - 1, 0) : at] + whole[at + len(part) : at + len(part) + 1] if at >= 0 else "x"
    return not any(char.isalnum() for char in around)


_SHORTEST = 2
"""Shorter names are in others by chance."""


def _holds_all(attempts: Sequence[Attempt], records: _Records) -> bool:
    """Whether all progress lies within the attempts that objects tell of: names that differ are of one job then."""
    if not attempts or not len(records.progress):
        return False
    last = attempts[-1].end
    return attempts[0].begin <= records.progress[0] and (last is None or records.progress[-1] <= last + _SETTLED)


def _place(attempts: Sequence[Attempt], records: _Records, key: tuple[int, int], found: Beside) -> bool:
    """Add the attempts of which there are records; whether there are any."""
    placed = False
    for at, one in enumerate(attempts):
        following = attempts[at + 1].begin if at + 1 < len(attempts) else _LATEST_NS
        until = min(following, _LATEST_NS if one.end is None else one.end + NS_PER_SECOND)
        if records.last(records.progress, one.begin, until) is None:
            continue
        placed = True
        asked = _asked_at(one, records)
        if asked < one.begin:
            found.marks[key].append(_of_cluster(one.line, asked, What.SCHEDULED))
        found.marks[key].append(_of_cluster(one.line, one.begin, What.START))
        first = records.progress[np.searchsorted(records.progress, one.begin)]
        found.begun.append((key[1], asked, one.begin, int(first)))
        end = _end_of(one, following, records)
        if end is not None and one.how is not None:
            found.marks[key].append(_of_cluster(one.line, end, one.how))
    return placed


def _asked_at(one: Attempt, records: _Records) -> int:
    """When an attempt was asked for, else when it began: with its Workload, before which no other attempt was, or with
    its pods; never before the last progress of the attempt before."""
    first = records.every[0]
    asked = one.asked if one.asked is not None and one.asked <= first else one.created
    if asked is None or asked >= one.begin or records.last(records.progress, asked, one.begin) is not None:
        return one.begin
    return asked


def _end_of(one: Attempt, following: int, records: _Records) -> int | None:
    """When an attempt ended: in the second that its object says, or when others of its processes made progress for the
    last time; None where they went on for long."""
    if one.end is None:
        return None
    later = records.starts[np.searchsorted(records.starts, one.end + NS_PER_SECOND) :]
    until = min([following, *later[:1].tolist()])
    last = records.last(records.progress, one.end, until)
    if last is None:
        return one.end
    return last if last < one.end + _SETTLED else None


def _of_cluster(line: int, time: int, what: What) -> Mark:
    return Mark(line, "", Stamp(time, Zone.EXACT, False), Said(KUBERNETES, what), time, time)


def _note_forgotten(objects: Sequence[ApiObject], shown: str, source: int, notes: DiagnosticCollector) -> None:
    """What the API no longer tells: it keeps the last end of a container, and the last change of a condition."""
    lost = max((one.forgotten for one in objects if one.kind == "Pod"), default=0)
    if lost:
        message = f"a pod of {shown} began again {lost} times more than it tells of: how these lives ended is unknown"
        notes.add("cluster_forgets", message, source, [objects[0].line])
    if any(one.again for one in objects):
        message = f"{shown} was admitted or set up more than once, and only the last time is known: time in the queue "
        notes.add("cluster_forgets", f"{message}before an earlier attempt is unknown", source, [objects[0].line])
