"""Rows of a scheduler's own tables, with or without job logs: rows of `sacct -P`, and objects of Kubernetes. A row is
one request of a job: when it was made, when it began and ended, how it ended, and the resources allocated in between.
Steps of a job (`12.batch`) are not rows.

The tables are read a second time here, because the log of events has no accelerators, accounts or partitions.
"""

from __future__ import annotations

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from fractions import Fraction
from typing import Any

from goodput_cli.errors import GoodputError, UsageError
from goodput_cli.events.cluster import REASONS, key_of_object, objects_in
from goodput_cli.events.formats.collected import SACCT_DELIMITERS, SACCT_HEADER
from goodput_cli.events.text.entries import nodes_in, state_of
from goodput_cli.fleet.labels import (
    STILL_HELD,
    Allocation,
    TableRow,
    accelerators_in,
    records_of,
    table_row,
    timestamp_reader,
)
from goodput_cli.sources.base import RawBatch, ReadContext, SourceDocument, read_document
from goodput_cli.vocabulary.text import well_formed

SACCT, KUBERNETES = "sacct", "Kubernetes"
"""Sources of rows, as reports name them."""
RUNNING, PENDING = "RUNNING", "PENDING"
_WELL = ("COMPLETED", RUNNING)
"""States of what did not go wrong."""
_MOST_BYTES = 256 << 20
_HEAD = 1 << 16
_ENDED_BY = {
    "node_failure": "NODE_FAIL", "host_oom": "OUT_OF_MEMORY", "time_limit": "TIMEOUT", "preempted": "PREEMPTED",
    "evicted": "EVICTED", "environment": "FAILED",
}  # fmt: skip
"""The states of Slurm for what objects of Kubernetes give as a reason, by its cause."""
_PHASES = {"Succeeded": "COMPLETED", "Failed": "FAILED", "Running": RUNNING, "Pending": PENDING, "Unknown": "UNKNOWN"}
_QUEUE = "kueue.x-k8s.io/queue-name"
_DEVICES = ("/gpu", "/tpu", "/neuron")
"""Suffixes of resource names that are accelerators."""


@dataclass(frozen=True)
class SchedulerRow:
    """One request of a job for accelerators. Times: ns since 1970 UTC."""

    source: str
    """Source of the row: `sacct`, `Kubernetes`."""
    id: str
    """The scheduler's own: rows of one are the same job, requeued."""
    job: str
    """The job's name."""
    state: str
    """The first word of its state, in capitals as Slurm writes it."""
    asked_ns: int | None
    """Time from which it could have begun; None if unknown."""
    start_ns: int | None
    """None: it never began."""
    end_ns: int | None
    """None: it had not ended."""
    pieces: tuple[tuple[int, int | None, int], ...] = ()
    """Allocated pieces: from, until (None: still allocated), count. Slurm has one piece, Kubernetes one per pod."""
    nodes: int = 0
    """Hosts of an allocation without a known number of accelerators; 0 if it is known."""
    texts: Mapping[str, str] | None = None
    """User, account, partition, namespace, queue, team, cluster, as far as the table has them."""
    hosts: tuple[str, ...] = ()
    """All of its hosts; empty if the table does not list them."""
    kind: str = ""
    """Type of all of its accelerators."""
    table: str = ""
    """The document that it is in."""

    @property
    def wait_ns(self) -> int | None:
        """Time from when it could have begun until it did; None if either is unknown."""
        if self.asked_ns is None or self.start_ns is None:
            return None
        return max(self.start_ns - self.asked_ns, 0)

    @property
    def is_waiting(self) -> bool:
        """Return True if it still waited when the table was made."""
        return self.start_ns is None and self.state == PENDING

    def waited_until(self, latest: int) -> int | None:
        """Return the ns that it waited; if it still waits, until the latest time in a table. None if unknown, or if it
        never began."""
        if self.is_waiting and self.asked_ns is not None:
            return max(latest - self.asked_ns, 0)
        return self.wait_ns

    def until(self, latest: int) -> int:
        """Return its end; if it still runs, the latest time in a table."""
        return latest if self.end_ns is None else self.end_ns

    def chip_ns(self, latest: int) -> int:
        """Return the accelerators x ns that were allocated."""
        return sum(count * max((latest if end is None else end) - start, 0) for start, end, count in self.pieces)

    def node_ns(self, latest: int) -> int:
        """Return the nodes x ns of an allocation without a known number of accelerators."""
        return 0 if self.start_ns is None else self.nodes * max(self.until(latest) - self.start_ns, 0)

    def times(self) -> Iterator[int]:
        """Yield every time in the row."""
        yield from (one for one in (self.asked_ns, self.start_ns, self.end_ns) if one is not None)

    def allocation(self) -> Allocation | None:
        """Return the row as an allocation that is joined to runs; None without accelerators, or for pods."""
        if self.source != SACCT or self.start_ns is None or not self.pieces:
            return None
        end, texts = STILL_HELD if self.end_ns is None else self.end_ns, dict(self.texts or {})
        if end <= self.start_ns:
            return None
        texts |= {"accelerator": self.kind} if self.kind else {}
        count = self.pieces[0][2]
        return Allocation(self.job, self.start_ns, end, count, self.asked_ns, texts, self.hosts)


class SchedulerTotals:
    """Exact totals of some rows."""

    def __init__(self, rows: Sequence[SchedulerRow], latest: int) -> None:
        self.rows, begun = rows, [row for row in rows if row.start_ns is not None]
        self.allocations, self.known = len(begun), any(row.pieces for row in rows)
        self.chip_ns = sum(row.chip_ns(latest) for row in begun)
        self.failed_ns = sum(row.chip_ns(latest) for row in begun if row.state not in _WELL)
        self.node_ns = sum(row.node_ns(latest) for row in begun)
        self.waits = sorted(wait for row in begun if (wait := row.wait_ns) is not None)
        self.never_started = sum(row.start_ns is None and row.state not in (PENDING, RUNNING) for row in rows)
        times = Counter((row.source, (row.texts or {}).get("cluster", ""), row.id) for row in rows)
        self.jobs = len(times)
        self.requeued_jobs = sum(count > 1 for count in times.values())
        self.requeues = sum(count - 1 for count in times.values())

    def wait(self, percentile: int) -> Fraction | None:
        """Return a percentile of the waits (ns), linear between the two nearest; None without any."""
        if not self.waits:
            return None
        place = Fraction(percentile * (len(self.waits) - 1), 100)
        low = int(place)
        high = min(low + 1, len(self.waits) - 1)
        return self.waits[low] + (place - low) * (self.waits[high] - self.waits[low])

    @property
    def failed(self) -> Fraction | None:
        """Return the share of the allocated time that ended otherwise than completed."""
        return Fraction(self.failed_ns, self.chip_ns) if self.chip_ns else None


def read_rows(documents: Iterable[SourceDocument], zone: tzinfo) -> list[SchedulerRow]:
    """Return the rows of the documents that are such tables. Unreadable parts were reported when events were read: they
    are not rows. zone: of times without one."""
    found: list[SchedulerRow] = []
    for document in documents:
        text = _text_of(document)
        if text is not None:
            found += rows_in(text, well_formed(document.uri), zone)
    return once(found)


def rows_in(text: str, name: str, zone: tzinfo) -> list[SchedulerRow]:
    """The rows of a table or of objects. name: of its document."""
    if text.lstrip()[:1] in ("{", "["):
        return [replace(row, table=name) for row in _of_objects(_objects(text), zone)]
    found: list[SchedulerRow] = []
    try:
        for one in _table(text, name):
            row = _of_sacct(one, zone)
            found += [] if row is None else [replace(row, table=name)]
    except (ValueError, csv.Error):  # a table that is cut off counts as far as it goes, as its events do
        pass
    return found


def once(rows: Iterable[SchedulerRow]) -> list[SchedulerRow]:
    """Each row once, in order of time: one that several tables list is as the last of them to end has it."""
    by_row: dict[tuple[Any, ...], SchedulerRow] = {}
    for one in rows:
        cluster = (one.texts or {}).get("cluster", "")
        key = one.source, cluster, one.id, one.job, one.asked_ns, one.start_ns
        before = by_row.get(key)
        if before is None or before.end_ns is None:
            by_row[key] = one
    return sorted(by_row.values(), key=lambda one: (min(one.times(), default=0), one.id, one.start_ns or 0))


def of_their_jobs(rows: Sequence[SchedulerRow], jobs: Mapping[str, set[str]]) -> list[SchedulerRow]:
    """Return rows under the names that logs have for their jobs: a table of one job next to the log of one job is about
    that job, whatever the names. jobs: by document, those that also appear in other formats."""
    names: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        names[row.table].add(row.job)
    found = []
    for row in rows:
        beside = jobs.get(row.table, set())
        found.append(replace(row, job=next(iter(beside))) if len(beside) == len(names[row.table]) == 1 else row)
    return found


def latest_of(rows: Iterable[SchedulerRow]) -> int:
    """Return the latest time in rows (ns since 1970 UTC)."""
    return max((at for row in rows for at in row.times()), default=0)


def _text_of(document: SourceDocument) -> str | None:
    """Return the text of a document that may be such a table; None for any other, where only the head is read."""
    data, size = list[bytes](), 0
    try:
        for batch in read_document(document, ReadContext(lambda _: None)):
            if not isinstance(batch, RawBatch):
                return None
            if not data and not _may_be(batch.data[:_HEAD]):
                return None
            data.append(batch.data)
            size += len(batch.data)
            if size > _MOST_BYTES:
                return None
    except (GoodputError, OSError):
        return None
    return b"".join(data).decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\r", "\n")


def _may_be(head: bytes) -> bool:
    text = head.decode("utf-8-sig", errors="replace").lstrip()
    if text.startswith(("{", "[")):
        return '"kind"' in text or '"items"' in text
    return _delimiter(text) is not None


def _delimiter(text: str) -> str | None:
    """Return the column separator of a table of `sacct`; None for any other text."""
    first = text.lstrip().split("\n", 1)[0].strip()
    return next((one for one in SACCT_DELIMITERS if {*first.split(one)} >= SACCT_HEADER), None)


def _table(text: str, name: str) -> Iterator[TableRow]:
    delimiter = _delimiter(text)
    if delimiter is None:
        return
    lines = text.lstrip().rstrip("\n").split("\n")
    header = [column.strip().lower() for column in lines[0].strip().split(delimiter)]
    if delimiter == "|":
        free = header.index("jobname") if "jobname" in header else 0
        rows: Iterable[tuple[int, dict[str, str]]] = records_of(header, free, [one for one in lines[1:] if one.strip()])
    else:
        rows = ((at, dict(zip(header, cells, strict=False))) for at, cells in enumerate(csv.reader(lines[1:]), start=2))
    for number, cells in rows:
        if cells.get("jobid", "").strip() != "JobID":  # a header that comes again, of tables put together
            yield table_row(f"{name}:{number}", cells)


def _of_sacct(row: TableRow, zone: tzinfo) -> SchedulerRow | None:
    cells = row.cells
    number = cells.get("jobidraw") or cells.get("jobid", "")
    if not number or "." in cells.get("jobid", ""):
        return None
    try:
        submitted, start, end = (row.get(name, timestamp_reader(zone)) for name in ("submit", "start", "end"))
        asked = row.get("eligible", timestamp_reader(zone))
    except UsageError:  # diagnostics of its events report it
        return None
    count, kind = accelerators_in(cells.get("alloctres", ""))
    nodes = cells.get("nnodes", "")
    held = start is not None and (end is None or end >= start)
    texts = {name: cells[name] for name in ("user", "account", "partition", "cluster") if name in cells}
    if "account" in texts:
        texts["team"] = texts["account"]
    return SchedulerRow(
        SACCT, number, cells.get("jobname", ""), state_of({"State": cells.get("state", "")}) or "UNKNOWN",
        submitted if asked is None else asked, start if held else None, end,
        ((start, end, count),) if held and start is not None and count else (),
        int(nodes) if held and not count and nodes.isdecimal() and len(nodes) < 7 else 0,
        texts, nodes_in(cells.get("nodelist", "")), kind,
    )  # fmt: skip


def _objects(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a document: of a list, one per line, or concatenated. Invalid JSON ends them."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, Mapping):
                yield from objects_in(one.get("object", one) if "type" in one else one)
        while at < len(text) and text[at] in " \t\n,":
            at += 1


@dataclass(frozen=True)
class _Pod:
    """A pod, or the Workload of one, with its known times."""

    key: str
    created: int | None
    begun: int | None
    ended: int | None
    count: int
    state: str
    texts: Mapping[str, str]


def _of_objects(objects: Iterable[Mapping[str, Any]], zone: tzinfo) -> Iterator[SchedulerRow]:
    """Yield the rows of each job: pods that overlap in time are one request."""
    pods: defaultdict[str, dict[str, _Pod]] = defaultdict(dict)
    asked: dict[str, _Pod] = {}
    for one in objects:
        kind, about = one.get("kind"), _mapping(one.get("metadata"))
        if kind not in ("Pod", "Workload"):
            continue
        found = _pod(one, about, zone) if kind == "Pod" else _workload(one, about, zone)
        if kind == "Pod":  # a pod that is listed again is as it was last
            pods[found.key][str(about.get("uid") or about.get("name"))] = found
        else:
            asked[found.key] = found
    for key in [*pods, *(one for one in asked if one not in pods)]:
        yield from _rows_of_job(key, list(pods[key].values()), asked.get(key))


def _rows_of_job(key: str, pods: Sequence[_Pod], workload: _Pod | None) -> Iterator[SchedulerRow]:
    ordered = sorted((one for one in pods if one.begun is not None), key=lambda one: one.begun or 0)
    texts = {**(pods[0].texts if pods else {}), **(workload.texts if workload else {})}
    times: list[list[_Pod]] = []
    until: int | None = None
    for one in ordered:
        if times and (until is None or (one.begun or 0) < until):
            times[-1].append(one)
            until = None if until is None or one.ended is None else max(until, one.ended)
        else:
            times.append([one])
            until = one.ended
    if not times:
        waiting = workload or next(iter(pods), None)
        if waiting is not None:
            yield SchedulerRow(KUBERNETES, key, key, waiting.state, waiting.created, None, None, texts=texts)
        return
    for number, some in enumerate(times):
        yield _row_of_time(key, some, workload if number == 0 else None, texts)


def _row_of_time(key: str, pods: Sequence[_Pod], workload: _Pod | None, texts: Mapping[str, str]) -> SchedulerRow:
    ends, states = [one.ended for one in pods], [one.state for one in pods]
    state = next((one for one in states if one not in ("COMPLETED", RUNNING)), states[0])
    begun = max(one.begun or 0 for one in pods)  # it begins when the last pod is placed
    asked = min((one.created for one in pods if one.created is not None), default=None)
    if workload is not None and workload.created is not None and workload.begun is not None:
        asked, begun = workload.created, workload.begun  # Kueue logs the waiting time itself
    pieces = tuple((one.begun or 0, one.ended, one.count) for one in pods if one.count)
    end = None if None in ends else max(one for one in ends if one is not None)
    return SchedulerRow(KUBERNETES, key, key, state, asked, begun, end, pieces, 0 if pieces else len(pods), texts)


def _pod(one: Mapping[str, Any], about: Mapping[str, Any], zone: tzinfo) -> _Pod:
    status, spec = _mapping(one.get("status")), _mapping(one.get("spec"))
    told = {str(row.get("type")): row for row in _listed(status.get("conditions")) if row.get("status") == "True"}
    begun = _time(_mapping(told.get("PodScheduled")).get("lastTransitionTime"), zone)
    states = [_mapping(row.get("state")) for row in _listed(status.get("containerStatuses"))]
    ends = [_time(_mapping(row.get("terminated")).get("finishedAt"), zone) for row in states]
    known = [end for end in ends if end is not None]
    ended = max(known) if known and len(known) == len(states) else None
    reasons = [str(status.get("reason") or ""), str(_mapping(told.get("DisruptionTarget")).get("reason") or "")]
    reasons += [str(_mapping(row.get("terminated")).get("reason") or "") for row in states]
    causes = [REASONS[reason][0] for reason in reasons if reason in REASONS]
    phase = _PHASES.get(str(status.get("phase")), "UNKNOWN")
    state = _ENDED_BY.get(causes[0], phase) if causes and phase != "COMPLETED" else phase
    count = sum(_accelerators(_mapping(row.get("resources"))) for row in _listed(spec.get("containers")))
    created = _time(about.get("creationTimestamp"), zone)
    return _Pod(key_of_object(one), created, begun, ended, count, state, _texts(about))


def _workload(one: Mapping[str, Any], about: Mapping[str, Any], zone: tzinfo) -> _Pod:
    told = {str(row.get("type")): row for row in _listed(_mapping(one.get("status")).get("conditions"))}
    admitted = _mapping(told.get("Admitted"))
    begun = _time(admitted.get("lastTransitionTime"), zone) if admitted.get("status") == "True" else None
    queue = _mapping(one.get("spec")).get("queueName")
    texts = _texts(about) | ({"queue": str(queue)} if queue else {})
    created = _time(about.get("creationTimestamp"), zone)
    return _Pod(key_of_object(one), created, begun, None, 0, "PENDING", texts)


def _texts(about: Mapping[str, Any]) -> dict[str, str]:
    """Return namespace and queue; the namespace is the team unless labels name another."""
    namespace, queue = about.get("namespace"), _mapping(about.get("labels")).get(_QUEUE)
    texts = {"namespace": str(namespace), "team": str(namespace)} if namespace else {}
    return texts | ({"queue": str(queue)} if queue else {})


def _accelerators(resources: Mapping[str, Any]) -> int:
    """Return the number of accelerators of a container: its limits, otherwise its requests."""
    for amounts in (_mapping(resources.get("limits")), _mapping(resources.get("requests"))):
        counts = [str(count) for name, count in amounts.items() if str(name).endswith(_DEVICES)]
        whole = [int(count) for count in counts if count.isdecimal() and len(count) < 7]
        if whole:
            return sum(whole)
    return 0


def _time(value: object, zone: tzinfo) -> int | None:
    if not isinstance(value, str):
        return None
    try:
        return timestamp_reader(zone)(value)
    except UsageError:
        return None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _listed(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
