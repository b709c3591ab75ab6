"""Attempts of a job from objects of Kubernetes: when its pods were created and scheduled, and when the training
containers started and ended."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from goodput_cli.events.signs import RecoveryEventText
from goodput_cli.events.text.log_lines import EventType


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
