"""Allocations and capacity: what a scheduler held for each run, joined to the runs by name and time."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from itertools import pairwise

from goodput_cli.errors import UsageError
from goodput_cli.events.text.entries import nodes_in
from goodput_cli.fleet.labels import TableRow, instant, read_parsable, read_table, whole

_GRES = re.compile(r"gres/(?:gpu|tpu)(?::([^=,]{1,200}))?=(\d+)")
STILL_HELD = (1 << 63) - 1
"""In place of the end of an allocation that had not ended when it was listed."""


@dataclass(frozen=True, eq=False)
class Allocation:
    """Accelerators that were held for a job in [start, end) (ns since 1970 UTC). Each is itself: two rows may say the
    same, and both count."""

    job: str
    start: int
    end: int
    accelerators: int
    waiting_since: int | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    """Team, cluster, user and accelerator, as far as the scheduler says them."""
    hosts: tuple[str, ...] = ()
    """All of its hosts; empty where the table does not list them."""


@dataclass(frozen=True)
class Capacity:
    """How many accelerators there were in [start, end) (ns since 1970 UTC)."""

    cluster: str
    accelerator: str
    start: int
    end: int
    count: int


def read_allocations(tables: Sequence[str], sacct: Sequence[str], zone: tzinfo) -> dict[str, list[Allocation]]:
    """By job, its allocations in order of time. Raises UsageError with file and line."""
    by_job: defaultdict[str, list[Allocation]] = defaultdict(list)
    for path in tables:
        for row in read_table(path, ("job", "start", "end", "accelerators")):
            start, end = _period(row, "start", "end", zone)
            waiting = row.get("waiting_since", instant(zone))
            texts = {name: row.cells[name] for name in ("team", "cluster", "user", "accelerator") if name in row.cells}
            job, count = row.need("job", str), row.need("accelerators", whole)
            by_job[job].append(Allocation(job, start, end, count, waiting, texts))
    for path in sacct:
        for row in read_parsable(path, ("jobname", "start", "end", "alloctres"), free="jobname"):
            found = _of_sacct(row, zone)
            if found is not None:
                by_job[found.job].append(found)
    return {job: sorted(found, key=lambda one: (one.start, one.end)) for job, found in by_job.items()}


def read_capacity(paths: Sequence[str], zone: tzinfo) -> list[Capacity]:
    """What the fleet has. Raises UsageError with file and line, also where two rows say it of one time."""
    rows = [(row, _capacity(row, zone)) for path in paths
            for row in read_table(path, ("from", "to", "count"))]  # fmt: skip
    rows.sort(key=lambda pair: (pair[1].cluster, pair[1].accelerator, pair[1].start))
    for (_, before), (row, one) in pairwise(rows):
        same = (before.cluster, before.accelerator) == (one.cluster, one.accelerator)
        if same and one.start < before.end:
            raise UsageError(f"{row.where}: overlaps another row of the same cluster and accelerator")
    return [one for _, one in rows]


def _of_sacct(row: TableRow, zone: tzinfo) -> Allocation | None:
    """A row of `sacct -X -D`; None for one that never started, or held no accelerator."""
    start, end = row.get("start", instant(zone)), row.get("end", instant(zone))
    count, kind = _accelerators(row.cells.get("alloctres", ""))
    if start is None or not count or (end is not None and end <= start):
        return None
    waiting = row.get("eligible", instant(zone)) or row.get("submit", instant(zone))
    columns = {"account": "team", "cluster": "cluster", "user": "user"}
    texts = {name: row.cells[column] for column, name in columns.items() if column in row.cells}
    if kind:
        texts["accelerator"] = kind
    hosts = nodes_in(row.cells.get("nodelist", ""))
    return Allocation(row.need("jobname", str), start, STILL_HELD if end is None else end, count, waiting, texts, hosts)


def _accelerators(tres: str) -> tuple[int, str]:
    """How many: `gres/gpu=N`, or without that the sum of `gres/gpu:TYPE=N`; and their type, if all are of one."""
    counts = [(kind, int(count)) for kind, count in _GRES.findall(tres)]
    plain = sum(count for kind, count in counts if not kind)
    typed = sum(count for kind, count in counts if kind)
    kinds = {kind for kind, _ in counts if kind}
    return plain or typed, kinds.pop() if len(kinds) == 1 else ""


def _capacity(row: TableRow, zone: tzinfo) -> Capacity:
    start, end = _period(row, "from", "to", zone)
    return Capacity(
        row.cells.get("cluster", ""), row.cells.get("accelerator", ""), start, end, row.need("count", whole)
    )


def _period(row: TableRow, first: str, last: str, zone: tzinfo) -> tuple[int, int]:
    start, end = row.need(first, instant(zone)), row.need(last, instant(zone))
    if start >= end:
        raise UsageError(f"{row.where}: {first} is not before {last}")
    return start, end


@dataclass(frozen=True)
class Holding:
    """A piece [start, end) (ns) of a run's time with one number of accelerators."""

    start: int
    end: int
    accelerators: int | None
    """None where nobody knows."""
    held: bool | None
    """Whether an allocation covers it; None for a run without allocations, whose log says what is held."""


def holdings(
    start: int, end: int, allocations: Sequence[Allocation], otherwise: int | None, cuts: Sequence[int]
) -> list[Holding]:
    """The pieces of [start, end) (ns), in order, cut at these instants too. allocations: of the run; those of one time
    add up. Where there is none, the nearest earlier number counts, and before the first one that. otherwise: the number
    of a run without allocations."""
    inside = [one for one in allocations if one.start < end and one.end > start]
    own = (edge for one in inside for edge in (one.start, one.end) if start < edge < end)
    bounds = list(pairwise(sorted({start, end, *cuts, *own})))
    if not inside:
        return [Holding(begin, stop, otherwise, None) for begin, stop in bounds]
    counts = [sum(one.accelerators for one in inside if one.start <= begin and one.end > begin) for begin, _ in bounds]
    last = next(count for count in counts if count)
    pieces: list[Holding] = []
    for (begin, stop), count in zip(bounds, counts, strict=True):
        last = count or last
        pieces.append(Holding(begin, stop, last, count > 0))
    return pieces


def accelerators_at(pieces: Sequence[Holding], instant: int) -> int | None:
    """How many the run has at an instant inside it; None where nobody knows."""
    return next((one.accelerators for one in pieces if one.start <= instant < one.end), None)


_Run = tuple[int, str, int]
"""A run as its owner: start (ns), job, number."""


class JoinedAllocations:
    """Allocations by the names of jobs, and whose each is once all runs are known."""

    def __init__(self, by_job: Mapping[str, Sequence[Allocation]], until: int) -> None:
        """until: where those end (ns) that had not ended when they were listed: the end of the last run."""
        self._by_job = {
            job: [replace(one, end=until) if one.end == STILL_HELD else one for one in found]
            for job, found in by_job.items()
        }
        self._owners: dict[Allocation, _Run] = {}

    def __bool__(self) -> bool:
        return bool(self._by_job)

    def expect(self, job: str, run: int, start: int, end: int) -> None:
        """Said of every run (its window in ns) before anything is asked."""
        for one in self.overlapping(job, start, end):
            owner = (start, job, run)
            self._owners[one] = min(self._owners.get(one, owner), owner)

    def overlapping(self, job: str, start: int, end: int) -> list[Allocation]:
        """Those of a job that have something of [start, end) (ns)."""
        return [one for one in self._by_job.get(job, ()) if one.start < end and one.end > start]

    def of_run(self, job: str, run: int, start: int) -> list[Allocation]:
        """Those that belong to one run, which starts at `start` (ns), and to no other."""
        return [one for one in self._by_job.get(job, ()) if self._owners.get(one) == (start, job, run)]

    def without_run(self) -> Iterator[Allocation]:
        """Those that no run lies in."""
        return (one for found in self._by_job.values() for one in found if one not in self._owners)
