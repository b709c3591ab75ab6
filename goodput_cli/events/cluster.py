"""Records that a cluster keeps about a job, as JSON: events and objects of Kubernetes with the recovery events that
they show, and torchrun's `error.json`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from goodput_cli.events.cluster_rows import ApiObject, ContainerRun
from goodput_cli.events.evidence import UntimedEvidence, quoted
from goodput_cli.events.formats.base import Output, Records
from goodput_cli.events.signs import RecoveryEvent, RecoveryEventText, RecoveryPhase
from goodput_cli.events.text.blocks import cause_of_exception, exception_in
from goodput_cli.events.text.causes import CauseRows, by_exit, shipped_rows
from goodput_cli.events.text.collector import TextPart
from goodput_cli.events.text.line_timestamps import Timestamp, Zone, read_or_none
from goodput_cli.events.text.log_lines import EventType
from goodput_cli.events.text.sign_lines import rank_of, sign
from goodput_cli.events.values import number
from goodput_cli.vocabulary.categories import CAUSES, KILLED, UNKNOWN_CAUSE, Role
from goodput_cli.vocabulary.text import file_line

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
    host = str(json_object(record.get("spec")).get("nodeName") or "")
    yield from _of_conditions(record, about, host)
    if about.kind == "Pod":
        yield from _of_pod(record, about, host)


def _of_conditions(record: Mapping[str, Any], about: ApiObject, host: str) -> Iterator[tuple[RecoveryEventText, int]]:
    conditions = json_object(record.get("status")).get("conditions")
    for one in map(json_object, conditions if isinstance(conditions, list) else ()):
        point, by = _CONDITIONS.get((about.kind, str(one.get("type"))), (None, ""))
        ns = exact_ns(one.get("lastTransitionTime")) if one.get("status") == "True" else None
        if point is not None and ns is not None:
            yield sign(point, host=host, by=by), ns


def _of_pod(record: Mapping[str, Any], pod: ApiObject, host: str) -> Iterator[tuple[RecoveryEventText, int]]:
    if pod.created is not None:
        told = json_object(record.get("metadata"))
        named = (json_object(told.get(key)).get(_RESTARTED) for key in ("labels", "annotations"))
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
    status = json_object(record.get("status"))
    allowed = json_object(json_object(record.get("spec")).get("failurePolicy")).get("maxRestarts")
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


RECORDED = "recorded reason"
_MEMORY = "OutOfMemoryError"
_CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")
_KILLS = ("SIGKILL", "SIGTERM")


def recorded(reason: str, line: int, ns: int, rank: int | None, host: str, job: str) -> UntimedEvidence | None:
    """Return the cause in a recorder's reason (an exception class, a signal, or free text); None if it has none."""
    if not reason:
        return None
    code, role, before = _meaning(reason)
    one = UntimedEvidence(code, role, quoted(reason), RECORDED, "process", line, "", Timestamp(ns, Zone.EXACT, False))
    one.rank, one.host, one.job = rank, host, job
    one.before_steps, one.last_line, one.unhandled = before, line, True
    return one


def _meaning(reason: str) -> tuple[str, Role, str]:
    word = reason.strip()
    if word.lower() in CAUSES:
        return word.lower(), "root", ""
    if word in _CRASHES:
        return "native_crash", "exit", ""
    if word in _KILLS:
        return KILLED, "exit", ""
    name, _, what = word.partition(":")
    if name.rpartition(".")[2] == _MEMORY:
        return "device_oom", "root", ""
    found = shipped_rows().read(word)
    if found is not None:
        return found.code, found.role, ""
    last = name.rpartition(".")[2]
    if last.isidentifier() and last.endswith(("Error", "Exception", "Interrupt", "Exit", "Timeout")):
        meaning = cause_of_exception(last, what, [])
        if meaning is not None:
            return meaning.code, meaning.role, meaning.before_steps
    return UNKNOWN_CAUSE, "exit", ""


_PODS = ("pod", "pod_name", "podName")
_TIMES = ("time", "timestamp", "ts", "eventTime", "lastTimestamp")
_NOT_OF_CLUSTER = frozenset({"job_name", "event", "kind"})
"""Keys of other kinds of records that also have a reason."""
_OBJECTS = ("Pod", "Job", "JobSet", "Workload")
_KINDS = ("Event", "EventList", "List", *_OBJECTS, *(f"{kind}List" for kind in _OBJECTS))
_PARTS = frozenset({"items", "involvedObject", "regarding", "status"})
_OF_CAUSE = {
    "evicted": (
        "Evicted", "EvictedDueToPodsReadyTimeout", "PodsReadyTimeout", "EvictedDueToAdmissionCheck", "AdmissionCheck",
        "TerminationByKubelet", "DeletionByTaintManager", "EvictionByEvictionAPI", "ScaleDown",
    ),
    "cancelled": (
        "EvictedDueToClusterQueueStopped", "ClusterQueueStopped", "EvictedDueToLocalQueueStopped", "LocalQueueStopped",
        "EvictedDueToInactiveWorkload", "InactiveWorkload", "EvictedDueToDeactivated", "Deactivated",
    ),
    "preempted": ("Preempted", "EvictedDueToPreempted", "WorkloadEvictedDueToPreempted", "PreemptionByScheduler"),
    "node_failure": (
        "EvictedDueToNodeFailures", "NodeFailures", "NodeNotReady", "NodeLost", "NodeShutdown", "DeletionByPodGC",
    ),
    "host_oom": ("OOMKilling", "OOMKilled"),
    "time_limit": (
        "DeadlineExceeded", "EvictedDueToMaximumExecutionTimeExceeded", "MaximumExecutionTimeExceeded",
    ),
    "environment": (
        "FailedMount", "ErrImagePull", "ImagePullBackOff", "CreateContainerConfigError", "UnexpectedAdmissionError",
    ),
}  # fmt: skip
REASONS: Mapping[str, tuple[str, Role]] = {
    **{reason: (cause, "root") for cause, reasons in _OF_CAUSE.items() for reason in reasons},
    **dict.fromkeys(("Suspended", "JobSuspended", "SuspendedJobs", "JobsSuspended"), ("evicted", "exit")),
}
"""Reasons of events, pods, containers and their conditions."""
_ON_NODE = re.compile(r"on node (?P<host>[\w.-]+)")
_INDEX = ("batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index")
_JOBS = ("jobset.sigs.k8s.io/jobset-name", "batch.kubernetes.io/job-name", "job-name", "training.kubeflow.org/job-name")
_PULL = re.compile(r"pulling image|pull image|^Error: (?:secret|configmap) .* not found")
_PROBE = "failed liveness probe"


def is_of_cluster(keys: frozenset[str], record: Mapping[str, Any]) -> bool:
    """Return True for a record of Kubernetes, or for an agent's file of an exception."""
    if "kind" in keys and not _PARTS.isdisjoint(keys):
        return record.get("kind") in _KINDS
    if "reason" in keys and _NOT_OF_CLUSTER.isdisjoint(keys):
        return record["reason"] in REASONS if isinstance(record["reason"], str) else False
    message = record.get("message")
    return keys <= {"message", "timestamp"} and isinstance(message, Mapping) and "message" in message


def observe(records: Records, output: Output, rows: CauseRows) -> None:
    """Collect the observations of the records."""
    seen: list[UntimedEvidence] = []
    for at, record in enumerate(records.records):
        line = int(records.origin.line[at])
        if "kind" in record:
            for one in objects_in(record):
                seen += _of_kind(one, line)
                found = _object(one, line)
                if found is not None:
                    budget = budget_of(one) if found.kind == "JobSet" else None
                    found = replace(found, signs=tuple(signs_of_object(one, found)), budget=budget)
                    output.texts.objects.append((records.origin.source, found))
        else:
            known = record.get("reason") in REASONS if isinstance(record.get("reason"), str) else False
            seen += [_reasoned(record, line)] if known else _error_file(record, line, rows)
    output.texts.add(records.origin.source, TextPart(seen=seen, by_host=True))


def objects_in(record: Mapping[str, Any], kind: str = "") -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a list and of nested lists. The items of a list of one kind need not repeat the kind."""
    items = record.get("items")
    if not isinstance(items, list):
        yield record if record.get("kind") or not kind else {**record, "kind": kind}
        return
    own = str(record.get("kind", "")).removesuffix("List")
    for item in items:
        if isinstance(item, Mapping):
            yield from objects_in(item, own)


def _of_kind(record: Mapping[str, Any], line: int) -> Iterator[UntimedEvidence]:
    if record.get("kind") == "Event" or "involvedObject" in record or "regarding" in record:
        yield from _event(record, line)
    elif record.get("kind") == "Pod" or ("status" in record and not record.get("kind")):
        yield from _pod(record, line)
    elif record.get("kind") in _OBJECTS:
        yield from _controller(record, line)


def _reasoned(record: Mapping[str, Any], line: int) -> UntimedEvidence:
    """Return the observation of a JSON line from a collector or an operator with one of the reasons of Kubernetes."""
    named = next((str(record[key]) for key in _PODS if record.get(key)), "")
    said = next((str(record[key]) for key in ("message", "msg") if record.get(key)), "")
    stamp = _first_time(map(record.get, _TIMES))
    reason = str(record["reason"])
    one = UntimedEvidence(
        *REASONS[reason], quoted(f"{reason}: {said}" if said else reason), "reason", "pod", line, "", stamp
    )
    one.identity, one.last_line = named, line
    return one


def _event(record: Mapping[str, Any], line: int) -> Iterator[UntimedEvidence]:
    reason, message = str(record.get("reason", "")), str(record.get("message") or record.get("note") or "")
    about = json_object(record.get("involvedObject") or record.get("regarding"))
    said = REASONS.get(reason)
    if said is None and reason in ("BackOff", "Failed") and _PULL.search(message):
        said = ("environment", "root")
    if reason == "Killing" and _PROBE in message:
        said = (KILLED, "exit")
    if reason == "TaintManagerEviction" and message.startswith("Marking for deletion"):
        said = ("evicted", "root")
    stamp = _first_time(map(record.get, ("lastTimestamp", "eventTime", "firstTimestamp")))
    if said is None or about.get("kind") not in ("Pod", "Node", "Job", "Workload", None):
        return
    name = str(about.get("name", ""))
    text = ": ".join(part for part in (name, message or reason) if part)
    one = UntimedEvidence(*said, quoted(text), "event", "pod", line, "", stamp)
    one.last_line = line
    source = json_object(record.get("source"))
    on_node = _ON_NODE.search(message)
    if about.get("kind") == "Node":
        one.host, one.speaker = name, "kernel"
    else:
        one.identity = name
        one.host = on_node["host"] if on_node else str(source.get("host") or "")
    yield one


def _pod(record: Mapping[str, Any], line: int) -> Iterator[UntimedEvidence]:
    status, about = json_object(record.get("status")), json_object(record.get("metadata"))
    host = str(json_object(record.get("spec")).get("nodeName") or "")
    labels, notes = json_object(about.get("labels")), json_object(about.get("annotations"))
    job = next((str(labels[key]) for key in _JOBS if labels.get(key)), "")
    index = next((str(one) for one in (labels.get(key) or notes.get(key) for key in _INDEX) if one), "")

    def seen(code: str, role: Role, text: str, stamp: Timestamp | None) -> UntimedEvidence:
        name = str(about.get("name", ""))
        one = UntimedEvidence(code, role, quoted(f"{name}: {text}" if name else text), "pod", "pod", line, "", stamp)
        one.host, one.identity, one.job, one.last_line = host, name, job, line
        one.rank = int(index) if index.isdecimal() and len(index) < 7 else None
        return one

    said = REASONS.get(str(status.get("reason", "")))
    if said is not None:
        terminated = [json_object(json_object(one.get("state")).get("terminated")) for one in _containers(status)]
        stamp = _first_time(one.get("finishedAt") for one in terminated)
        yield seen(*said, str(status.get("message") or status["reason"]), stamp)
    for condition in _listed(status.get("conditions")):
        about_condition = json_object(condition)
        said = REASONS.get(str(about_condition.get("reason", "")))
        if said is not None and about_condition.get("type") == "DisruptionTarget":
            when = _time(about_condition.get("lastTransitionTime"))
            yield seen(*said, str(about_condition.get("message") or about_condition["reason"]), when)
    for container in _containers(status):
        for state in ("lastState", "state"):
            ended = json_object(json_object(container.get(state)).get("terminated"))
            code = number(ended.get("exitCode"))
            said = REASONS.get(str(ended.get("reason", ""))) or (by_exit(int(code)) if code else None)
            if said is not None:
                text = f"{container.get('name', '')}: {ended.get('reason', '')}, exit code {ended.get('exitCode')}"
                one = seen(*said, text, _time(ended.get("finishedAt")))
                one.exit = int(code) if code else None
                yield one
            waiting = json_object(json_object(container.get(state)).get("waiting"))
            said = REASONS.get(str(waiting.get("reason", "")))
            if said is not None:
                yield seen(*said, str(waiting.get("message") or waiting["reason"]), None)


_ENDING = ("Failed", "Evicted", "Suspended")
"""Conditions of Jobs, JobSets and Workloads that contain the reason for their end."""


def _controller(record: Mapping[str, Any], line: int) -> Iterator[UntimedEvidence]:
    """Yield why a Job or a JobSet failed, or a Workload was evicted, if its condition has a known reason."""
    about = json_object(record.get("metadata"))
    for condition in _listed(json_object(record.get("status")).get("conditions")):
        told = json_object(condition)
        said = REASONS.get(str(told.get("reason", "")))
        if said is not None and told.get("type") in _ENDING and told.get("status") == "True":
            text = str(told.get("message") or told["reason"])
            stamp = _time(told.get("lastTransitionTime"))
            one = UntimedEvidence(*said, quoted(text), "controller", "pod", line, "", stamp)
            one.identity, one.job, one.last_line = str(about.get("name", "")), key_of_object(record), line
            yield one


def _containers(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for one in _listed(status.get("containerStatuses")) if isinstance(one, Mapping)]


def _error_file(record: Mapping[str, Any], line: int, rows: CauseRows) -> Iterator[UntimedEvidence]:
    """Yield the exception that torchrun's `@record` wrote: text, stack and time."""
    message = json_object(record.get("message"))
    more = json_object(message.get("extraInfo"))
    text = str(message.get("message", ""))
    stack = str(more.get("py_callstack", ""))
    last = next((row for row in reversed(stack.split("\n")) if exception_in(row.strip()) and row[:1].strip()), text)
    named = exception_in(last.strip()) or exception_in(text.strip())
    found = rows.read(text) or rows.read(last)
    if found is not None:
        code, role, before = found.code, found.role, ""
    elif named is not None and (meaning := cause_of_exception(*named, [])) is not None:
        code, role, before = meaning.code, meaning.role, meaning.before_steps
    else:
        return
    seconds = number(more.get("timestamp"))
    stamp = Timestamp(int(seconds) * 10**9, Zone.EXACT, True) if seconds and 0 < seconds < 9e9 else None
    one = UntimedEvidence(code, role, quoted(text or last), "error.json", "process", line, "", stamp)
    one.unhandled, one.before_steps, one.last_line = True, before, line
    one.device = found.fields.get("device", "") if found is not None else ""
    yield one


def json_object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _time(value: object) -> Timestamp | None:
    return read_or_none(value) if isinstance(value, str) else None


def _first_time(values: Iterable[object]) -> Timestamp | None:
    return next((stamp for stamp in map(_time, values) if stamp), None)


def _object(record: Mapping[str, Any], line: int) -> ApiObject | None:
    """Return the object in a record; None for an object of another kind."""
    kind, about, status = (record.get("kind"), json_object(record.get("metadata")), json_object(record.get("status")))
    if kind not in _OBJECTS:
        return None
    name = str(about.get("name", ""))
    told = _conditions(status)
    uid, created = str(about.get("uid") or f"{kind}/{name}"), exact_ns(about.get("creationTimestamp"))
    own = ApiObject(
        kind, name, key_of_object(record), uid, line, created,
        told.get({"Pod": "PodScheduled", "Workload": "Admitted"}.get(kind, ""), (None, ""))[0],
    )  # fmt: skip
    if kind == "Pod":
        return _with_container_runs(own, record, told)
    if kind == "Workload":
        counted = number(json_object(status.get("requeueState")).get("count"))
        every = {str(json_object(one).get("type")) for one in _listed(status.get("conditions"))}
        again = bool(counted) or not every.isdisjoint(("Evicted", "Preempted", "Requeued"))
        evicted = told.get("Evicted")
        how = EventType.PREEMPTED if evicted is not None and evicted[1] == "Preempted" else EventType.TERMINATED
        ended = (evicted[0], how) if evicted is not None and evicted[0] is not None else None
        return replace(own, again=again, ended=ended)
    clean, failed = told.get("Complete") or told.get("Completed"), told.get("Failed")
    end = next(
        ((one[0], how) for one, how in ((clean, EventType.FINISHED), (failed, EventType.CRASHED)) if one and one[0]),
        None,
    )
    return replace(own, again=bool(number(status.get("restarts"))), ended=end)


def _with_container_runs(
    pod: ApiObject, record: Mapping[str, Any], told: Mapping[str, tuple[int | None, str]]
) -> ApiObject:
    """Return a pod with the runs of its training container: the container that `kubectl logs` shows."""
    status, spec = json_object(record.get("status")), json_object(record.get("spec"))
    notes = json_object(json_object(record.get("metadata")).get("annotations"))
    first = next(iter(_listed(spec.get("containers"))), None)
    named = str(notes.get("kubectl.kubernetes.io/default-container") or json_object(first).get("name") or "")
    every = _containers(status)
    main = next((one for one in every if one.get("name") == named), every[0] if len(every) == 1 else {})
    target = told.get("DisruptionTarget", (None, ""))
    reason = str(status.get("reason") or target[1])
    taken = None
    if reason in REASONS:
        taken = EventType.PREEMPTED if REASONS[reason][0] == "preempted" else EventType.TERMINATED
    states = [json_object(json_object(main.get(state)).get("terminated")) for state in ("lastState", "state")]
    lives = [_finished_run(states[0], None), _finished_run(states[1], taken)]
    running = exact_ns(json_object(json_object(main.get("state")).get("running")).get("startedAt"))
    lives += [ContainerRun(running, None, None)] if running is not None else []
    if not any(lives) and taken is not None and target[0] is not None:
        lives.append(ContainerRun(exact_ns(status.get("startTime")) or pod.ready or target[0], target[0], taken))
    restarts = number(main.get("restartCount"))
    return replace(pod, lives=tuple(one for one in lives if one), restarts=int(restarts) if restarts else 0)


def _finished_run(ended: Mapping[str, Any], taken: EventType | None) -> ContainerRun | None:
    """Return a finished run of a container. taken: the event type if the pod was deleted or evicted."""
    begin, end, code = (
        exact_ns(ended.get("startedAt")),
        exact_ns(ended.get("finishedAt")),
        number(ended.get("exitCode")),
    )
    if end is None or code is None:
        return None
    how = EventType.FINISHED if code == 0 else taken or EventType.CRASHED
    return ContainerRun(end if begin is None else min(begin, end), end, how)


def _conditions(status: Mapping[str, Any]) -> dict[str, tuple[int | None, str]]:
    """Return the time at which each true condition became true, and its reason, by type."""
    listed = [json_object(one) for one in _listed(status.get("conditions"))]
    return {
        str(one.get("type")): (exact_ns(one.get("lastTransitionTime")), str(one.get("reason", "")))
        for one in listed
        if one.get("status") == "True"
    }


def key_of_object(record: Mapping[str, Any]) -> str:
    """Return the job name in an object."""
    about = json_object(record.get("metadata"))
    labels = json_object(about.get("labels"))
    named = next((str(labels[key]) for key in _JOBS if labels.get(key)), "")
    owner = next((str(json_object(one).get("name") or "") for one in _listed(about.get("ownerReferences"))), "")
    return named or owner or str(about.get("name", ""))


def _listed(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def exact_ns(value: object) -> int | None:
    stamp = _time(value)
    return stamp.ns if stamp is not None and stamp.zone is Zone.EXACT else None
