"""Runs the reference library on the events of a job, in a separate process. So it can be stopped, and its imports,
logging and cache have no effect here. Requires the extra `reconcile`.

Its input are canonical events as the entries that its recorder writes.

This module also implements the library's rules as claims on time: each stretch of time with its category and rule. Its
amounts are sums of such stretches, so overlaying them on our segments explains every difference, second by second.
Written from the source of ml-goodput-measurement 0.2.3 (`goodput.py`, `goodput_elastic.py`,
`checkpoint_badput_calculator.py`). Like the library, it processes the events one by one. `phases` pairs start and end
lines as the library does.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, NamedTuple

from goodput_cli.errors import GoodputError, UsageError, to_install
from goodput_cli.events.schema import NO_STEP, Edge, EventTable, Kind
from goodput_cli.vocabulary.categories import Category, CategoryKey
from goodput_cli.vocabulary.when import NS_PER_SECOND

Interval = tuple[int, int]
_DURATIONS = {Kind.SAVE: "checkpoint_manager_blocking_duration_secs", Kind.RESTORE: "checkpoint_manager_duration_secs"}
_CUSTOM_TYPE, _ELASTIC_TYPE = "custom_badput_event_type", "elastic_wait_event_type"
_POINTS = {Kind.START: "job_start_time", Kind.JOB_END: "job_end_time", Kind.STEP: "step_start_time"}
_PHASES = {
    Kind.TPU_INIT: "tpu_init",
    Kind.PREP: "training_prep",
    Kind.DATA: "data_loading",
    Kind.CUSTOM: "custom_badput_event",
    Kind.ELASTIC_DOWN: "elastic_wait",
    Kind.ELASTIC_UP: "elastic_wait",
    Kind.ELASTIC_REINIT: "elastic_reinit",
}
_SIDES = {Edge.BEGIN: "start_time", Edge.END: "end_time"}
_ELASTIC_NAMES = {Kind.ELASTIC_DOWN: "slice_down", Kind.ELASTIC_UP: "scale_up"}
_SLICES = ("active_slices", "total_slices", "available_slices")
ELASTIC = (Kind.ELASTIC_DOWN, Kind.ELASTIC_UP, Kind.ELASTIC_REINIT)
"""Kinds of events that only the library's elastic calculator knows."""


def entries(table: EventTable, job: str) -> Iterator[dict[str, Any]]:
    """Yield one entry per event, in the order of the table; times in epoch seconds.

    Kinds without an entry of the recorder (`user_scheduled`, terminations of launchers) are left out: the library
    ignores them.
    """
    columns = (table.time, table.kind, table.edge, table.step, table.label, table.detail)
    for time, kind, edge, step, label, detail in zip(*(column.tolist() for column in columns), strict=True):
        fact = _fact(time / NS_PER_SECOND, kind, edge, table.labels[label] if label >= 0 else None)
        details = table.details[detail] if detail >= 0 else ()
        if kind == Kind.STEP and edge == Edge.POINT:
            fact["step_count"] = step
        elif kind == Kind.SLICES:
            fact = {**dict(zip(_SLICES, details, strict=True)), "elastic_slice_counts_timestamp": time / NS_PER_SECOND}
        elif kind in (Kind.SAVE, Kind.RESTORE):
            fact = {**dict(details), **({} if step == NO_STEP else {"step": step})}
        if fact:
            yield {"job_name": job, **fact}


def _fact(seconds: float, kind: int, edge: int, label: str | None) -> dict[str, Any]:
    """Return an event that is one time, with the name of its type if it has one; empty for other kinds."""
    if kind in _POINTS and edge == Edge.POINT:
        return {_POINTS[Kind(kind)]: seconds}
    if kind not in _PHASES or edge not in _SIDES:
        return {}
    fact: dict[str, Any] = {f"{_PHASES[Kind(kind)]}_{_SIDES[Edge(edge)]}": seconds}
    if kind == Kind.CUSTOM:
        fact[_CUSTOM_TYPE] = label or "UNKNOWN"
    elif kind in _ELASTIC_NAMES:
        fact[_ELASTIC_TYPE] = label or _ELASTIC_NAMES[Kind(kind)]
    return fact


MODULE = "ml_goodput_measurement"
NAME = "ml-goodput-measurement"
_WORKER = "goodput_cli.compat.library_worker"


@dataclass(frozen=True)
class LibraryAnswer:
    """Result of the reference library for a job."""

    version: str
    """Its version."""
    failed: str | None
    """Its error message; None if it returned a result."""
    total_ns: int | None
    """The basis of its percentages; None without a result."""
    goodput_percent: float | None
    """Its goodput; None without a result."""
    amounts: dict[CategoryKey, int]
    """ns of each category that it reports, including `productive`, rounded from its seconds; empty without a result."""
    disruptions: int | None
    """Number of disruptions that it counts; None without a result."""
    last_step: int | None
    """The last step that it saw; None without a result."""


def require_library() -> None:
    """Raise UsageError if the library is not installed."""
    if find_spec(MODULE) is None:
        raise UsageError(
            f"the reference library {NAME} is not installed", tip=f"install it with {to_install('reconcile')}"
        )


def ask_library(table: EventTable, job: str, asked_at_ns: int, timeout: float) -> LibraryAnswer:
    """Return the library's cumulative result for a job whose events are in order of time.

    asked_at_ns: the time of the query; a job without an end is measured up to then. timeout: seconds. Raises
    GoodputError after the timeout, or if the process fails. An error of the library itself is a result.
    """
    elastic = any(bool((table.kind == kind).any()) for kind in ELASTIC)
    question = {"job": job, "elastic": elastic, "asked_at": asked_at_ns / NS_PER_SECOND}
    lines = (json.dumps(line) for line in (question, *entries(table, job)))
    return answer_of(json.loads(_run(lines, timeout)))


def _run(lines: Iterable[str], timeout: float) -> str:
    """Feed the process from a thread, so that waiting for its output can time out, and always end it."""
    command = [sys.executable, "-m", _WORKER]
    streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    too_late = threading.Event()
    with subprocess.Popen(command, text=True, encoding="utf-8", **streams) as process:
        clock = threading.Timer(timeout, _end, (process, too_late))
        clock.daemon = True  # Ctrl-C may come at any line, so no thread may keep the command alive
        feeder = threading.Thread(target=_feed, args=(process, lines), daemon=True)
        try:
            clock.start()
            feeder.start()
            assert process.stdout is not None
            answer = process.stdout.read()
        finally:
            clock.cancel()
            process.kill()
            if feeder.ident is not None:
                feeder.join()
    if too_late.is_set():
        raise GoodputError(f"the reference library did not finish within {timeout:g} s", tip="increase --timeout")
    if not answer:
        raise GoodputError("the process of the reference library died, possibly out of memory")
    return str(answer)


def _end(process: subprocess.Popen[str], too_late: threading.Event) -> None:
    too_late.set()
    process.kill()


def _feed(process: subprocess.Popen[str], lines: Iterable[str]) -> None:
    assert process.stdin is not None
    try:
        with process.stdin as stream:
            stream.writelines(f"{line}\n" for line in lines)
    except (OSError, ValueError):
        return  # the process exited; its output decides success or failure


def answer_of(said: dict[str, Any]) -> LibraryAnswer:
    """Return the result in the output of the process."""
    if "failed" in said:
        return LibraryAnswer(said["version"], said["failed"], None, None, {}, None, None)
    amounts = {(category, label): _ns(seconds) for category, label, seconds in said["badput_seconds"]}
    return LibraryAnswer(
        version=said["version"],
        failed=None,
        total_ns=_ns(said["total_seconds"]),
        goodput_percent=said["goodput_percent"],
        amounts={(Category.PRODUCTIVE.id, None): _ns(said["productive_seconds"]), **amounts},
        disruptions=said["disruptions"],
        last_step=said["last_step"],
    )


def _ns(seconds: float) -> int:
    return round(seconds * NS_PER_SECOND)


class LibraryEvent(NamedTuple):
    """A row of an `EventTable` as plain values."""

    time: int
    kind: int
    edge: int
    step: int
    label: str | None


def events_of(table: EventTable) -> list[LibraryEvent]:
    """Return every row."""
    labels = [table.labels[code] if code >= 0 else None for code in table.label.tolist()]
    columns = (table.time.tolist(), table.kind.tolist(), table.edge.tolist(), table.step.tolist(), labels)
    return [LibraryEvent(*row) for row in zip(*columns, strict=True)]


def phases(events: Iterable[LibraryEvent], kind: Kind) -> Iterator[tuple[int, int, str | None]]:
    """Yield start lines and end lines of a kind as intervals, paired by type. A start line replaces an open one; end
    lines without a start line, and open start lines, are ignored."""
    opened: dict[str | None, int] = {}
    for event in events:
        if event.kind != kind:
            continue
        if event.edge == Edge.BEGIN:
            opened[event.label] = event.time
        elif event.edge == Edge.END and event.label in opened:
            yield opened.pop(event.label), event.time, event.label


@dataclass
class DataLoads:
    """Data loads: the first one is badput, and so are the last one before a repeated step and the first one after it.

    all: every load. counted: those that are badput; a load can occur twice.
    """

    all: list[Interval] = field(default_factory=list)
    counted: list[Interval] = field(default_factory=list)
    _start: int | None = None
    _newest: Interval | None = None
    _next_counts: bool = True

    def read(self, event: LibraryEvent) -> None:
        """Process a start or end line of a load."""
        if event.edge == Edge.BEGIN:
            self._start = event.time
        elif event.edge == Edge.END and self._start is not None:
            self._newest = (self._start, event.time)
            self.all.append(self._newest)
            if self._next_counts:
                self.counted.append(self._newest)
            self._next_counts, self._start = False, None

    def disruption(self) -> None:
        """Process a repeated step."""
        if self._newest is not None:
            self.counted.append(self._newest)
        self._next_counts, self._newest = True, None


def checkpoint_means(table: EventTable, kind: Kind) -> list[Interval]:
    """Return saves or restores: one per step and location (bucket or local disk), as long as the mean of all its lines,
    of all hosts and attempts. It begins where the first of them began."""
    groups: defaultdict[tuple[int, bool], list[tuple[int, float]]] = defaultdict(list)
    rows = (table.kind == kind).nonzero()[0].tolist()
    for row in rows:
        detail = dict(table.details[table.detail[row]]) if table.detail[row] >= 0 else {}
        seconds = detail.get(_DURATIONS[kind])
        if isinstance(seconds, int | float):
            local = not str(detail.get("directory", "")).startswith("gs://")
            groups[int(table.step[row]), local].append((int(table.time[row]), float(seconds)))
    means = []
    for lines in groups.values():
        start = min(time for time, _ in lines)
        means.append((start, start + round(NS_PER_SECOND * sum(seconds for _, seconds in lines) / len(lines))))
    return means


PRODUCTIVE: CategoryKey = (Category.PRODUCTIVE.id, None)
WASTED: CategoryKey = (Category.WASTED.id, None)
RECOVERY: CategoryKey = (Category.RECOVERY.id, None)
STARTUP: CategoryKey = (Category.PROGRAM_STARTUP.id, None)
SAVE: CategoryKey = (Category.SAVE.id, None)
RESTORE: CategoryKey = (Category.RESTORE.id, None)
OTHER: CategoryKey = (Category.OTHER.id, None)
"""Time that it counts nowhere; claims of it only give the reason."""


@dataclass(frozen=True)
class LibraryClaim:
    """A claim of `category` on [start, end) in ns. rule: the reason. sign: -1 if its time is subtracted."""

    start: int
    end: int
    category: CategoryKey
    rule: str
    sign: int = 1


@dataclass(frozen=True)
class LibraryAccount:
    """The account of the library. claims: all of them. total: [start, end) as the basis of its percentages; None
    without a start line, for which it fails. loading_ns: data loading inside steps. disruptions: its count."""

    claims: tuple[LibraryClaim, ...]
    total: Interval | None
    loading_ns: int
    disruptions: int


def library_account(table: EventTable, asked_at_ns: int) -> LibraryAccount:
    """Return the account by the library's rules of the events of one job, which are in order of time."""
    events = events_of(table)
    custom = ((start, end, label or "UNKNOWN") for start, end, label in phases(events, Kind.CUSTOM) if start < end)
    reader = _LibraryLoop(sorted(custom))
    for event in events:
        reader.read(event)
    reader.finish(asked_at_ns)
    claims = reader.claims
    saves = checkpoint_means(table, Kind.SAVE)
    for start, end in saves:
        claims.append(LibraryClaim(start, end, SAVE, "checkpoint"))
        if reader.steps:
            claims.append(LibraryClaim(start, end, PRODUCTIVE, "save_subtracted", -1))
    claims += [LibraryClaim(start, end, RESTORE, "checkpoint") for start, end in checkpoint_means(table, Kind.RESTORE)]
    claims += _phase_claims(events)
    loads = reader.loads
    claims += [LibraryClaim(start, end, (Category.DATA_LOADING_SYNC.id, None), "load") for start, end in loads.counted]
    claims += [LibraryClaim(start, end, OTHER, "load_between_steps") for start, end in loads.all]
    total = None if reader.first_start is None else (reader.first_start, _or(reader.job_end, asked_at_ns))
    some = tuple(one for one in claims if one.start < one.end)
    loading = sum(end - start for start, end in loads.all) - sum(end - start for start, end in loads.counted)
    return LibraryAccount(some, total, loading, reader.disruptions)


_OF_PHASES = {
    Kind.ELASTIC_REINIT: Category.ELASTIC_REINIT,
    Kind.ELASTIC_DOWN: Category.ELASTIC_DOWN,
    Kind.ELASTIC_UP: Category.ELASTIC_UP,
    Kind.TPU_INIT: Category.TPU_INITIALIZATION,
    Kind.PREP: Category.TRAINING_PREP,
}


def _phase_claims(events: list[LibraryEvent]) -> list[LibraryClaim]:
    """Return the claims of device initialization, preparation and elastic waits, without the time of elastic
    re-initializations."""
    reinits = [(start, end) for start, end, _ in phases(events, Kind.ELASTIC_REINIT)]
    claims = []
    for kind, category in _OF_PHASES.items():
        for start, end, _ in phases(events, kind):
            claims.append(LibraryClaim(start, end, (category.id, None), "phase"))
            for low, high in reinits if kind in (Kind.TPU_INIT, Kind.PREP) else ():
                claims.append(LibraryClaim(max(start, low), min(end, high), (category.id, None), "in_reinit", -1))
    return claims


@dataclass
class _LibraryLoop:
    """The library's loop: steps since the last repeated one, the latest start, end and data load.

    custom: all custom intervals with their labels.
    """

    custom: list[tuple[int, int, str]]
    claims: list[LibraryClaim] = field(default_factory=list)
    steps: dict[int, int] = field(default_factory=dict)
    loads: DataLoads = field(default_factory=DataLoads)
    first_start: int | None = None
    start: int | None = None
    job_end: int | None = None
    disruptions: int = 0

    def read(self, event: LibraryEvent) -> None:
        """Process one event."""
        if event.kind == Kind.START:
            self.start = event.time
            self.first_start = event.time if self.first_start is None else self.first_start
        elif event.kind == Kind.JOB_END:
            self.job_end = event.time
        elif event.kind == Kind.DATA:
            self.loads.read(event)
        elif event.kind == Kind.STEP and event.edge == Edge.POINT:
            self._step(event)

    def _step(self, event: LibraryEvent) -> None:
        if event.step in self.steps:
            self._disruption(event)
            self.steps = {}
        elif not self.steps and self.first_start is not None:
            self._nowhere(self.first_start, event.time, "before_the_first_step")
        self.steps[event.step] = event.time

    def _disruption(self, event: LibraryEvent) -> None:
        """Process a repeated step: the steps before it become a segment."""
        self.disruptions += 1
        last = next(reversed(self.steps.values()))
        self._segment(event.step)
        self.loads.disruption()
        if self.start is not None and self.start > last:
            self.claims.append(LibraryClaim(last, self.start, RECOVERY, "from_the_last_step"))
            self._nowhere(self.start, event.time, "before_the_first_step")
        else:
            self._nowhere(last, event.time, "no_start_line")

    def finish(self, asked_at: int) -> None:
        """Process the remaining segment, and the last step."""
        if not self.steps:
            if self.first_start is not None:
                self._nowhere(self.first_start, _or(self.job_end, asked_at), "no_steps")
            return
        last_step = max(self.steps)
        last = self.steps[last_step]
        self._segment(last_step)
        if self.job_end is None:
            self._nowhere(last, asked_at, "no_job_end")
        elif self.job_end >= last:
            self.claims.append(LibraryClaim(last, self.job_end, PRODUCTIVE, "to_the_job_end"))
        else:
            self.claims.append(LibraryClaim(self.job_end, last, PRODUCTIVE, "job_end_before_last_step", -1))

    def _segment(self, stop: int) -> None:
        """Claim the steps since the last disruption: productive up to step `stop`, wasted from there on."""
        recorded = list(self.steps.items())
        if stop == 0:
            self._nowhere(recorded[0][1], recorded[-1][1], "back_to_step_0")
            return
        first_step = min(self.steps)
        first: list[Interval] = []
        others: list[int] = []
        for (before, start), (step, end) in pairwise(recorded):
            if step > stop:
                self.claims.append(LibraryClaim(start, end, WASTED, "recorded_again"))
            elif step - 1 != before:
                self._nowhere(start, end, "steps_left_out")
            elif before == first_step:
                first = self._net(start, end)
            else:
                net = self._net(start, end)
                self.claims += [LibraryClaim(*one, PRODUCTIVE, "between_steps") for one in net]
                others.append(sum(high - low for low, high in net))
        self._first_step(first, others)

    def _first_step(self, net: list[Interval], others: list[int]) -> None:
        """Claim the excess of the first step over the mean of the others as start-up, at its beginning."""
        length = sum(end - start for start, end in net)
        extra = max(length - round(sum(others) / len(others)), 0) if others else 0
        for start, end in net:
            cut = min(start + extra, end)
            extra -= cut - start
            self.claims.append(LibraryClaim(start, cut, STARTUP, "above_the_mean"))
            self.claims.append(LibraryClaim(cut, end, PRODUCTIVE, "first_step"))

    def _net(self, start: int, end: int) -> list[Interval]:
        """Return the time between two steps without the custom events inside it, which count as badput. The lengths of
        overlapping ones are all subtracted."""
        net, at, total = [], start, 0
        first = bisect_left(self.custom, (start,))
        for low, high, label in self.custom[first : bisect_left(self.custom, (end,))]:
            if high <= end:
                self.claims.append(LibraryClaim(low, high, (Category.CUSTOM.id, label), "inside_a_step"))
                net.append((at, low))
                at, total = max(at, high), total + high - low
        net = [(low, high) for low, high in [*net, (at, end)] if low < high]
        return self._shortened(net, max(end - start - total, 0))

    def _shortened(self, net: list[Interval], length: int) -> list[Interval]:
        """Return the first `length` ns of the intervals; the rest is counted nowhere."""
        kept = []
        for low, high in net:
            cut = min(low + length, high)
            length -= cut - low
            kept.append((low, cut))
            self._nowhere(cut, high, "events_overlap")
        return kept

    def _nowhere(self, start: int, end: int, rule: str) -> None:
        self.claims.append(LibraryClaim(start, end, OTHER, rule))


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
