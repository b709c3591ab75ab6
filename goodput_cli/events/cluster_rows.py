"""Objects of Kubernetes next to the records of a job: its attempts (when its pods were created and scheduled, and
when the training containers started and ended), and the rows that they add to the records.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import I64, group_by_key
from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.schema import Kind
from goodput_cli.events.signs import RecoveryEventText
from goodput_cli.events.text.line_timestamps import Timestamp, Zone
from goodput_cli.events.text.log_lines import EventType, LogLine, ParsedEvent
from goodput_cli.events.values import MAX_NS
from goodput_cli.vocabulary.when import NS_PER_SECOND


class ContainerRun(NamedTuple):
    """One run of the training container; ns UTC."""

    begin: int
    end: int | None
    """None: it is running, or its end is unknown."""
    how: EventType | None


@dataclass(frozen=True)
class ApiObject:
    """Times in one object; ns UTC. None: unknown."""

    kind: str
    name: str
    job: str
    """The job name in the object: the JobSet, otherwise the Job, otherwise its owner or its own name."""
    uid: str
    line: int
    created: int | None
    ready: int | None
    """The time of its last change to scheduled (a pod) or admitted (a Workload)."""
    lives: tuple[ContainerRun, ...] = ()
    restarts: int = 0
    again: bool = False
    """True if the time in `ready` replaced an earlier one."""
    ended: tuple[int, EventType] | None = None
    signs: tuple[tuple[RecoveryEventText, int], ...] = ()
    """Recovery events, each with its time."""
    budget: tuple[int, int] | None = None
    """The restarts that a JobSet has left, and the allowed number."""

    @property
    def forgotten(self) -> int:
        """Return how many container runs of the pod are no longer listed."""
        return max(0, self.restarts - sum(1 for life in self.lives[:-1] if life.end is not None))


@dataclass
class ClusterAttempt:
    """One attempt of a job from its objects; ns UTC."""

    begin: int
    created: int | None = None
    """The creation time of its pods; None: unknown, or it created none."""
    asked: int | None = None
    """The creation time of its Workload, for the first attempt of the Workload."""
    end: int | None = None
    how: EventType | None = None
    line: int = 1


def merged(objects: Sequence[tuple[int, ApiObject]]) -> list[tuple[int, ApiObject]]:
    """Return the last state of each object once, with all container runs of a pod that were ever listed."""
    last: dict[str, tuple[int, ApiObject]] = {}
    signs: defaultdict[str, dict[tuple[object, ...], tuple[RecoveryEventText, int]]] = defaultdict(dict)
    lives: defaultdict[str, dict[int, ContainerRun]] = defaultdict(dict)
    for source, one in objects:
        last[one.uid] = source, one
        lives[one.uid].update((life.begin, life) for life in one.lives)
        signs[one.uid].update(((said.point, ns, *said.facts), (said, ns)) for said, ns in one.signs)
    return [
        (source, replace(one, lives=_in_order(lives[uid]), signs=tuple(signs[uid].values())))
        for uid, (source, one) in last.items()
    ]


def _in_order(lives: Mapping[int, ContainerRun]) -> tuple[ContainerRun, ...]:
    return tuple(life for _, life in sorted(lives.items()))


def attempts_of(objects: Sequence[ApiObject]) -> list[ClusterAttempt]:
    """Return the attempts of one job, in order. Overlapping container runs belong to one attempt; the first failure
    ends it."""
    pods = [one for one in objects if one.kind == "Pod"]
    loads = [one for one in objects if one.kind == "Workload"]
    groups: list[list[tuple[ContainerRun, ApiObject]]] = []
    every = [(life, pod) for pod in pods for life in pod.lives]
    failed: int | None = None
    ended: float = -math.inf
    for life, pod in sorted(every, key=lambda pair: pair[0].begin):
        # it belongs to another attempt: the previous one had ended
        if life.begin > (ended if failed is None else failed):
            groups.append([])
            failed, ended = None, -math.inf
        groups[-1].append((life, pod))
        ended = max(ended, math.inf if life.end is None else life.end)
        if life.end is not None and life.how is not EventType.FINISHED:
            failed = life.end if failed is None else min(failed, life.end)
    found = [_attempt(group, loads if at == 0 else ()) for at, group in enumerate(groups)]
    waiting = [pod for pod in pods if not pod.lives and pod.ready is not None]
    early = [pod for _, pod in groups[0] if pod.forgotten] if groups else waiting
    begins = [one.ready for one in early or (loads if not groups else ()) if one.ready is not None]
    if begins:
        created = min((one.created for one in early if one.created is not None), default=None)
        found.insert(0, ClusterAttempt(max(begins), created, _asked(loads), line=(early or loads)[0].line))
    ends = [one.ended for one in objects if one.kind != "Pod" and one.ended is not None]
    if found and found[-1].end is None and ends:
        found[-1].end, found[-1].how = min(ends)
    return found


def _asked(loads: Sequence[ApiObject]) -> int | None:
    return next((one.created for one in loads if not one.again), None)


def _attempt(group: Sequence[tuple[ContainerRun, ApiObject]], loads: Sequence[ApiObject]) -> ClusterAttempt:
    fresh = [pod for life, pod in group if life is pod.lives[0] and not pod.forgotten]
    begin = min(life.begin for life, _ in group)
    found = ClusterAttempt(begin, line=group[0][1].line)
    scheduled = [pod.ready for pod in fresh if pod.ready is not None]
    if fresh and len(scheduled) == len(fresh):
        found.begin = max(scheduled)
        found.created = min((pod.created for pod in fresh if pod.created is not None), default=None)
        found.asked = _asked(loads)
    failed = [(life.end, life.how) for life, _ in group if life.end is not None and life.how is not EventType.FINISHED]
    if failed:
        found.end, found.how = min(failed, key=lambda pair: pair[0])
    elif all(life.end is not None for life, _ in group):
        found.end, found.how = max(life.end or 0 for life, _ in group), EventType.FINISHED
    return found


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
class _JobRecords:
    """Times of a job's records, ns UTC, sorted."""

    progress: I64
    starts: I64
    every: I64

    @classmethod
    def of(cls, columns: Mapping[str, NDArray[Any]], job: int) -> _JobRecords:
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

    found = ClusterEvents()
    by_key = group_by_key((one.job, (source, one)) for source, one in merged(objects))
    records = {int(code): _JobRecords.of(columns, int(code)) for code in np.unique(columns["job"])}
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


def _covers_all(attempts: Sequence[ClusterAttempt], records: _JobRecords) -> bool:
    """Return True if all progress is within the attempts of objects, which then are of the job despite different
    names."""
    if not attempts or not len(records.progress):
        return False
    last = attempts[-1].end
    return attempts[0].begin <= records.progress[0] and (last is None or records.progress[-1] <= last + _SETTLED)


def _add_attempts(
    attempts: Sequence[ClusterAttempt], records: _JobRecords, key: tuple[int, int], found: ClusterEvents
) -> bool:
    """Add the attempts that have records; return True if there are any."""
    placed = False
    for at, one in enumerate(attempts):
        following = attempts[at + 1].begin if at + 1 < len(attempts) else MAX_NS
        until = min(following, MAX_NS if one.end is None else one.end + NS_PER_SECOND)
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


def _asked_at(one: ClusterAttempt, records: _JobRecords) -> int:
    """Return when an attempt was requested, otherwise when it began: with its Workload if no other attempt was before
    it, or with its pods; never before the last progress of the previous attempt."""
    first = records.every[0]
    asked = one.asked if one.asked is not None and one.asked <= first else one.created
    if asked is None or asked >= one.begin or records.last(records.progress, asked, one.begin) is not None:
        return one.begin
    return asked


def _end_of(one: ClusterAttempt, following: int, records: _JobRecords) -> int | None:
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
