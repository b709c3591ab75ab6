"""What a cluster keeps beside a job, as JSON: events and pods of Kubernetes, and the `error.json` of torchrun's agents.

`kubectl get events -o json`, `kubectl get pods -o json`, either of them watched, and the same in entries of Cloud
Logging. They make observations, and no event.

What recorders and schedulers say of a death in records: the reason that a recorder wrote, and the state in which an
allocation ended. They make observations beside the events that the same records are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from goodput_cli.events.formats.base import Output, Records
from goodput_cli.events.observations import ALLOCATED, Sighting, quoted
from goodput_cli.events.text.blocks import exception_in, raised
from goodput_cli.events.text.causes import CauseRows, by_exit, shipped_rows
from goodput_cli.events.text.marks import TextPart
from goodput_cli.events.text.stamps import Stamp, StampError, Zone, read_dated
from goodput_cli.events.values import number
from goodput_cli.vocabulary.causes import CAUSES, KILLED, UNKNOWN_CAUSE, Role

RECORDED = "recorded reason"
ALLOCATION = "sacct"
_MEMORY = "OutOfMemoryError"
_CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")
_KILLS = ("SIGKILL", "SIGTERM")
_STATES: Mapping[str, str] = {
    "TIMEOUT": "time_limit",
    "DEADLINE": "time_limit",
    "PREEMPTED": "preempted",
    "NODE_FAIL": "node_failure",
    "BOOT_FAIL": "node_failure",
    "OUT_OF_MEMORY": "host_oom",
    "CANCELLED": "cancelled",
}


def recorded(reason: str, line: int, ns: int, rank: int | None, host: str, job: str) -> Sighting | None:
    """What the reason of a recorder says: the class of an exception, a signal, or a word that somebody typed."""
    if not reason:
        return None
    code, role, before = _meaning(reason)
    one = Sighting(code, role, quoted(reason), RECORDED, "process", line, "", Stamp(ns, Zone.EXACT, False))
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
        meaning = raised(last, what, [])
        if meaning is not None:
            return meaning.code, meaning.role, meaning.before_steps
    return UNKNOWN_CAUSE, "exit", ""


_LIST = re.compile(r"([\w.-]++)(?:\[([\d,-]+)\]([\w.-]*))?(?:,|$)")
_MOST_NODES = 65_536


def nodes_in(text: str) -> tuple[str, ...]:
    """The hosts of Slurm's NodeList: `node[01-03,7],big` -> node01, node02, node03, node7, big. What it does not list
    in this form is none: a part of them would be worse than nothing."""
    found: list[str] = []
    at = 0
    while at < len(text):
        match = _LIST.match(text, at)
        if match is None:
            return ()
        at = match.end()
        for part in match[2].split(",") if match[2] else ("",):
            low, _, high = part.partition("-")
            last = int(high or low or 0)
            if high and not int(low) <= last < int(low) + _MOST_NODES:
                return ()
            numbers = [str(one).zfill(len(low)) for one in range(int(low), last + 1)] if high else [low]
            found += [f"{match[1]}{number}{match[3] or ''}" for number in numbers]
    return tuple(dict.fromkeys(found)) if len(found) <= _MOST_NODES else ()


def nodes_of_allocation(record: Mapping[str, Any], line: int, started: Stamp | None) -> Sighting | None:
    """The hosts that an allocation of Slurm had: no evidence of a death, but of where it was."""
    hosts = nodes_in(str(record.get("NodeList", "")))
    if not hosts or started is None or hosts[0].lower() in ("none", "unknown"):
        return None
    one = Sighting(UNKNOWN_CAUSE, "context", "", ALLOCATED, "scheduler", line, "", started)
    one.hosts, one.last_line = dict.fromkeys(hosts, line), line
    return one


def of_allocation(record: Mapping[str, Any], line: int, ended: Stamp | None) -> Sighting | None:
    """Why an allocation of Slurm ended: its state, else the signal of its exit code."""
    state = str(record.get("State", "")).upper()
    code = _STATES.get(state.split(" ", 1)[0].rstrip("+"))
    if code is not None:
        one = Sighting(code, "root", quoted(state), ALLOCATION, "scheduler", line, "", ended)
    else:
        signal = str(record.get("ExitCode", "")).partition(":")[2]
        said = by_exit(-int(signal)) if signal.isdigit() and signal != "0" and len(signal) < 4 else None
        if said is None:
            return None
        one = Sighting(*said, quoted(f"{state} {record.get('ExitCode')}"), ALLOCATION, "scheduler", line, "", ended)
        one.exit = -int(signal)
    one.identity, one.last_line = str(record.get("JobID", "")), line
    return one


_PODS = ("pod", "pod_name", "podName")
_TIMES = ("time", "timestamp", "ts", "eventTime", "lastTimestamp")
_NOT_OF_CLUSTER = frozenset({"job_name", "event", "kind"})
"""Keys of records of other kinds that have a reason as well."""
_KINDS = ("Event", "Pod", "List", "EventList", "PodList")
_PARTS = frozenset({"items", "involvedObject", "regarding", "status"})
_REASONS: Mapping[str, tuple[str, Role]] = {
    "Evicted": ("evicted", "root"),
    "Preempted": ("preempted", "root"),
    "NodeNotReady": ("node_failure", "root"),
    "NodeLost": ("node_failure", "root"),
    "NodeShutdown": ("node_failure", "root"),
    "OOMKilling": ("host_oom", "root"),
    "OOMKilled": ("host_oom", "root"),
    "DeadlineExceeded": ("time_limit", "root"),
    "FailedMount": ("environment", "root"),
    "ErrImagePull": ("environment", "root"),
    "ImagePullBackOff": ("environment", "root"),
    "PreemptionByScheduler": ("preempted", "root"),
    "TerminationByKubelet": ("evicted", "root"),
    "DeletionByTaintManager": ("evicted", "root"),
    "EvictionByEvictionAPI": ("evicted", "root"),
    "DeletionByPodGC": ("node_failure", "root"),
}
"""Reasons of events, of pods, of containers and of their conditions."""
_ON_NODE = re.compile(r"on node (?P<host>[\w.-]+)")
_INDEX = ("batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index")
_JOBS = ("jobset.sigs.k8s.io/jobset-name", "batch.kubernetes.io/job-name", "job-name", "training.kubeflow.org/job-name")
_PULL = re.compile(r"pulling image|pull image")


def is_of_cluster(keys: frozenset[str], record: Mapping[str, Any]) -> bool:
    """Whether a record is one of Kubernetes, or an agent's file of an exception."""
    if "kind" in keys and not _PARTS.isdisjoint(keys):
        return record.get("kind") in _KINDS
    if "reason" in keys and _NOT_OF_CLUSTER.isdisjoint(keys):
        return record["reason"] in _REASONS if isinstance(record["reason"], str) else False
    message = record.get("message")
    return keys <= {"message", "timestamp"} and isinstance(message, Mapping) and "message" in message


def observe(records: Records, output: Output, rows: CauseRows) -> None:
    """Collect what the records say."""
    seen: list[Sighting] = []
    for at, record in enumerate(records.records):
        line = int(records.origin.line[at])
        if "kind" in record:
            seen += _of_kind(record, line)
        else:
            seen += [_reasoned(record, line)] if "reason" in record else _error_file(record, line, rows)
    output.texts.add(records.origin.source, TextPart(seen=seen, by_host=True))


def _of_kind(record: Mapping[str, Any], line: int) -> Iterator[Sighting]:
    items = record.get("items")
    if isinstance(items, list):
        for item in items:
            if isinstance(item, Mapping):
                yield from _of_kind(item, line)
    elif record.get("kind") == "Event" or "involvedObject" in record or "regarding" in record:
        yield from _event(record, line)
    elif record.get("kind") == "Pod" or "status" in record:
        yield from _pod(record, line)


def _reasoned(record: Mapping[str, Any], line: int) -> Sighting:
    """A line that a collector or an operator writes as JSON, with one of the reasons of Kubernetes."""
    named = next((str(record[key]) for key in _PODS if record.get(key)), "")
    said = next((str(record[key]) for key in ("message", "msg") if record.get(key)), "")
    stamp = next((at for at in (_time(record.get(key)) for key in _TIMES) if at), None)
    reason = str(record["reason"])
    one = Sighting(*_REASONS[reason], quoted(f"{reason}: {said}" if said else reason), "reason", "pod", line, "", stamp)
    one.identity, one.last_line = named, line
    return one


def _event(record: Mapping[str, Any], line: int) -> Iterator[Sighting]:
    reason, message = str(record.get("reason", "")), str(record.get("message") or record.get("note") or "")
    about = _mapping(record.get("involvedObject") or record.get("regarding"))
    said = _REASONS.get(reason)
    if said is None and reason in ("BackOff", "Failed") and _PULL.search(message):
        said = ("environment", "root")
    if reason == "TaintManagerEviction" and message.startswith("Marking for deletion"):
        said = ("evicted", "root")
    stamp = next(
        (at for at in (_time(record.get(key)) for key in ("lastTimestamp", "eventTime", "firstTimestamp")) if at), None
    )
    if said is None or about.get("kind") not in ("Pod", "Node", "Job", None):
        return
    one = Sighting(*said, quoted(message or reason), "event", "pod", line, "", stamp)
    one.last_line = line
    source = _mapping(record.get("source"))
    on_node = _ON_NODE.search(message)
    name = str(about.get("name", ""))
    if about.get("kind") == "Node":
        one.host, one.speaker = name, "kernel"
    else:
        one.identity = name
        one.host = on_node["host"] if on_node else str(source.get("host") or "")
    yield one


def _pod(record: Mapping[str, Any], line: int) -> Iterator[Sighting]:
    status, about = _mapping(record.get("status")), _mapping(record.get("metadata"))
    host = str(_mapping(record.get("spec")).get("nodeName") or "")
    labels, notes = _mapping(about.get("labels")), _mapping(about.get("annotations"))
    job = next((str(labels[key]) for key in _JOBS if labels.get(key)), "")
    index = next((str(one) for one in (labels.get(key) or notes.get(key) for key in _INDEX) if one), "")

    def seen(code: str, role: Role, text: str, stamp: Stamp | None) -> Sighting:
        one = Sighting(code, role, quoted(text), "pod", "pod", line, "", stamp)
        one.host, one.identity, one.job, one.last_line = host, str(about.get("name", "")), job, line
        one.rank = int(index) if index.isdigit() and len(index) < 7 else None
        return one

    said = _REASONS.get(str(status.get("reason", "")))
    if said is not None:
        terminated = [_mapping(_mapping(one.get("state")).get("terminated")) for one in _containers(status)]
        times = [_time(one.get("finishedAt")) for one in terminated]
        yield seen(*said, str(status.get("message") or status["reason"]), next((at for at in times if at), None))
    for condition in status.get("conditions") or ():
        about_condition = _mapping(condition)
        said = _REASONS.get(str(about_condition.get("reason", "")))
        if said is not None and about_condition.get("type") == "DisruptionTarget":
            when = _time(about_condition.get("lastTransitionTime"))
            yield seen(*said, str(about_condition.get("message") or about_condition["reason"]), when)
    for container in _containers(status):
        for state in ("lastState", "state"):
            ended = _mapping(_mapping(container.get(state)).get("terminated"))
            code = number(ended.get("exitCode"))
            said = _REASONS.get(str(ended.get("reason", ""))) or (by_exit(int(code)) if code else None)
            if said is not None:
                text = f"{container.get('name', '')}: {ended.get('reason', '')}, exit code {ended.get('exitCode')}"
                one = seen(*said, text, _time(ended.get("finishedAt")))
                one.exit = int(code) if code else None
                yield one
            waiting = _mapping(_mapping(container.get(state)).get("waiting"))
            said = _REASONS.get(str(waiting.get("reason", "")))
            if said is not None:
                yield seen(*said, str(waiting.get("message") or waiting["reason"]), None)


def _containers(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed = status.get("containerStatuses")
    return [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []


def _error_file(record: Mapping[str, Any], line: int, rows: CauseRows) -> Iterator[Sighting]:
    """An exception as torchrun's `@record` keeps it: text, stack and time."""
    message = _mapping(record.get("message"))
    more = _mapping(message.get("extraInfo"))
    text = str(message.get("message", ""))
    stack = str(more.get("py_callstack", ""))
    last = next((row for row in reversed(stack.split("\n")) if exception_in(row.strip()) and row[:1].strip()), text)
    named = exception_in(last.strip()) or exception_in(text.strip())
    found = rows.read(text) or rows.read(last)
    if found is not None:
        code, role, before = found.code, found.role, ""
    elif named is not None and (meaning := raised(*named, [])) is not None:
        code, role, before = meaning.code, meaning.role, meaning.before_steps
    else:
        return
    seconds = number(more.get("timestamp"))
    if isinstance(more.get("timestamp"), str) and str(more["timestamp"]).isdigit():
        seconds = int(str(more["timestamp"]))
    stamp = Stamp(int(seconds) * 10**9, Zone.EXACT, True) if seconds and 0 < seconds < 9e9 else None
    one = Sighting(code, role, quoted(text or last), "error.json", "process", line, "", stamp)
    one.unhandled, one.before_steps, one.last_line = True, before, line
    one.device = found.fields.get("device", "") if found is not None else ""
    yield one


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _time(value: object) -> Stamp | None:
    if not isinstance(value, str):
        return None
    try:
        return read_dated(value)
    except StampError:
        return None
