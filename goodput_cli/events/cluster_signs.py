"""Recovery events from objects of Kubernetes: pods that failed, were recreated and scheduled, containers that started,
a Workload that waits again, a JobSet that restarts. The API keeps only the last change of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from goodput_cli.events.cluster_attempts import ApiObject
from goodput_cli.events.signs import RecoveryEvent, RecoveryEventText, RecoveryPhase
from goodput_cli.events.text.line_timestamps import Zone, read_or_none
from goodput_cli.events.text.log_lines import EventType
from goodput_cli.events.text.sign_lines import rank_of, sign
from goodput_cli.vocabulary.locations import file_line

_RESTARTED = "jobset.sigs.k8s.io/restart-attempt"
"""The label or annotation of a pod with the restart number of its JobSet."""
_CONDITIONS = {
    ("Pod", "DisruptionTarget"): (RecoveryPhase.DETECTED, ""),
    ("Job", "Failed"): (RecoveryPhase.DETECTED, ""),
    ("JobSet", "Failed"): (RecoveryPhase.DETECTED, ""),
    ("Workload", "Evicted"): (RecoveryPhase.DETECTED, ""),
    ("Workload", "Requeued"): (RecoveryPhase.DECIDED, "scheduler"),
    ("Workload", "Admitted"): (RecoveryPhase.ALLOCATED, ""),
    ("Pod", "PodScheduled"): (RecoveryPhase.ALLOCATED, ""),
}
"""The recovery event of a true condition, by kind and condition, and who restarts the job."""


def signs_of_object(record: Mapping[str, Any], about: ApiObject) -> Iterator[tuple[RecoveryEventText, int]]:
    """Yield the recovery events of an object, each with its time. about: the other contents of the object."""
    host = str(_mapping(record.get("spec")).get("nodeName") or "")
    yield from _of_conditions(record, about, host)
    if about.kind == "Pod":
        yield from _of_pod(record, about, host)


def _of_conditions(record: Mapping[str, Any], about: ApiObject, host: str) -> Iterator[tuple[RecoveryEventText, int]]:
    conditions = _mapping(record.get("status")).get("conditions")
    for one in map(_mapping, conditions if isinstance(conditions, list) else ()):
        point, by = _CONDITIONS.get((about.kind, str(one.get("type"))), (None, ""))
        ns = _ns(one.get("lastTransitionTime")) if one.get("status") == "True" else None
        if point is not None and ns is not None:
            yield sign(point, host=host, by=by), ns


def _of_pod(record: Mapping[str, Any], pod: ApiObject, host: str) -> Iterator[tuple[RecoveryEventText, int]]:
    if pod.created is not None:
        told = _mapping(record.get("metadata"))
        named = (_mapping(told.get(key)).get(_RESTARTED) for key in ("labels", "annotations"))
        again = rank_of(str(next((one for one in named if one is not None), "")))
        yield sign(RecoveryPhase.REQUEUED, host=host, by="launcher" if again else None, used=again), pod.created
    for life in pod.lives:
        yield sign(RecoveryPhase.WORKERS_STARTED, host=host), life.begin
        if life.end is None or life.how is EventType.FINISHED:
            continue
        yield sign(RecoveryPhase.TERMINATED, host=host), life.end
        if life.how is EventType.CRASHED:
            yield sign(RecoveryPhase.FAILED, host=host), life.end


def budget_of(record: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the restarts that a JobSet has left and the allowed number; None if unknown."""
    status = _mapping(record.get("status"))
    allowed = _mapping(_mapping(record.get("spec")).get("failurePolicy")).get("maxRestarts")
    used = status.get("restartsCountTowardsMax", status.get("restarts", 0))
    if type(allowed) is not int or type(used) is not int or not 0 <= used <= allowed:
        return None
    return allowed - used, allowed


def signs_of_objects(
    objects: Iterable[tuple[int, ApiObject]], jobs: Mapping[str, str], names: Sequence[str]
) -> Iterator[RecoveryEvent]:
    """Return the recovery events of objects with a known job. The remaining restarts of a JobSet are attached to its
    last pods. jobs: by object name. names: of the sources, by their codes."""
    every = [(source, one) for source, one in objects if one.name in jobs]
    budgets = {one.job: one.budget for _, one in every if one.budget is not None}
    last: dict[str, int] = {}
    for _, one in every:
        last[one.job] = max([last.get(one.job, 0), *(int(said.facts.get("used", 0)) for said, _ in one.signs)])
    for source, one in every:
        for said, ns in one.signs:
            facts, budget = dict(said.facts), budgets.get(one.job)
            if budget is not None and facts.get("used", 0) == last[one.job] > 0:
                facts |= {"left": budget[0], "of": budget[1]}
            where = file_line(names[source], one.line)
            yield RecoveryEvent(jobs[one.name], said.point, ns, where, said.host, said.rank, facts)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _ns(value: object) -> int | None:
    stamp = read_or_none(value) if isinstance(value, str) else None
    return stamp.ns if stamp is not None and stamp.zone is Zone.EXACT else None
