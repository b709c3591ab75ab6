"""The reference library's rules once more, as claims on time: which stretch of time it puts where, and by which rule.

Its amounts are sums of such stretches, so that laying them over our own segments explains every difference, second by
second. Written from the source of ml-goodput-measurement 0.2.3 (`goodput.py`, `goodput_elastic.py`,
`checkpoint_badput_calculator.py`). Like the library this goes through the events one by one: it is only ever run
beside it. `Phases` pairs start and end lines as the library does.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from goodput_cli.events.schema import Edge, EventTable, Kind
from goodput_cli.vocabulary.categories import Category, CategoryKey
from goodput_cli.vocabulary.units import NS_PER_SECOND

Interval = tuple[int, int]
_DURATIONS = {Kind.SAVE: "checkpoint_manager_blocking_duration_secs", Kind.RESTORE: "checkpoint_manager_duration_secs"}


class Event(NamedTuple):
    """A row of an `EventTable` as plain values."""

    time: int
    kind: int
    edge: int
    step: int
    label: str | None


def events_of(table: EventTable) -> list[Event]:
    """Every row."""
    labels = [table.labels[code] if code >= 0 else None for code in table.label.tolist()]
    columns = (table.time.tolist(), table.kind.tolist(), table.edge.tolist(), table.step.tolist(), labels)
    return [Event(*row) for row in zip(*columns, strict=True)]


@dataclass
class Phases:
    """Start lines and end lines of `events` as intervals: a start line replaces an open one, an end line without a
    start line is passed over, what is left open counts nothing."""

    events: list[Event]

    def of(self, kind: Kind) -> list[Interval]:
        """The intervals of a phase; elastic waits are paired by their type."""
        return [(start, end) for start, end, _ in self._paired(kind)]

    def custom(self) -> list[tuple[int, int, str]]:
        """Custom intervals with their types, by start."""
        return sorted(
            (start, end, label or "UNKNOWN") for start, end, label in self._paired(Kind.CUSTOM) if start < end
        )

    def _paired(self, kind: Kind) -> Iterator[tuple[int, int, str | None]]:
        opened: dict[str | None, int] = {}
        for event in self.events:
            if event.kind != kind:
                continue
            if event.edge == Edge.BEGIN:
                opened[event.label] = event.time
            elif event.edge == Edge.END and event.label in opened:
                yield opened.pop(event.label), event.time, event.label


@dataclass
class Loads:
    """Data loads: the first one is badput, the last one before a repeated step, and the first one after it.

    all: every load. counted: those that are badput; one can be there twice.
    """

    all: list[Interval] = field(default_factory=list)
    counted: list[Interval] = field(default_factory=list)
    _start: int | None = None
    _newest: Interval | None = None
    _next_counts: bool = True

    def read(self, event: Event) -> None:
        """A start or end line of a load."""
        if event.edge == Edge.BEGIN:
            self._start = event.time
        elif event.edge == Edge.END and self._start is not None:
            self._newest = (self._start, event.time)
            self.all.append(self._newest)
            if self._next_counts:
                self.counted.append(self._newest)
            self._next_counts, self._start = False, None

    def disruption(self) -> None:
        """A step came a second time."""
        if self._newest is not None:
            self.counted.append(self._newest)
        self._next_counts, self._newest = True, None


def checkpoint_means(table: EventTable, kind: Kind) -> list[Interval]:
    """Saves or restores: one a step and place (bucket or local disk), as long as the mean of all its lines, whichever
    hosts and attempts they are of. It is put where the first of them began."""
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
"""Time that it counts nowhere; claims of it only say why."""


@dataclass(frozen=True)
class LibraryClaim:
    """[start, end) in ns counts as `category`. rule: why. sign: -1 where its time is subtracted instead."""

    start: int
    end: int
    category: CategoryKey
    rule: str
    sign: int = 1


@dataclass(frozen=True)
class LibraryAccount:
    """claims: all of them. total: [start, end) of what its percentages are of; None without a start line, where it
    fails. loading_ns: data loading inside steps. disruptions: as it counts them."""

    claims: tuple[LibraryClaim, ...]
    total: Interval | None
    loading_ns: int
    disruptions: int


def library_account(table: EventTable, asked_at_ns: int) -> LibraryAccount:
    """What the library's rules make of the events of one job, which are in order of time."""
    events = events_of(table)
    reader = _Reader(Phases(events).custom())
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


def _phase_claims(events: list[Event]) -> list[LibraryClaim]:
    """Device initialisation, preparation, elastic waits; what lies in an elastic re-initialisation is taken out."""
    phases = Phases(events)
    reinits = phases.of(Kind.ELASTIC_REINIT)
    claims = [LibraryClaim(*one, (Category.ELASTIC_REINIT.id, None), "phase") for one in reinits]
    claims += [LibraryClaim(*one, (Category.ELASTIC_DOWN.id, None), "phase") for one in phases.of(Kind.ELASTIC_DOWN)]
    claims += [LibraryClaim(*one, (Category.ELASTIC_UP.id, None), "phase") for one in phases.of(Kind.ELASTIC_UP)]
    for kind, name in ((Kind.TPU_INIT, Category.TPU_INITIALIZATION.id), (Kind.PREP, Category.TRAINING_PREP.id)):
        for start, end in phases.of(kind):
            claims.append(LibraryClaim(start, end, (name, None), "phase"))
            for low, high in reinits:
                claims.append(LibraryClaim(max(start, low), min(end, high), (name, None), "in_reinit", -1))
    return claims


@dataclass
class _Reader:
    """The library's loop: steps since the last one that came twice, the newest start, end and data load.

    custom: all custom intervals with their labels.
    """

    custom: list[tuple[int, int, str]]
    claims: list[LibraryClaim] = field(default_factory=list)
    steps: dict[int, int] = field(default_factory=dict)
    loads: Loads = field(default_factory=Loads)
    first_start: int | None = None
    start: int | None = None
    job_end: int | None = None
    disruptions: int = 0

    def read(self, event: Event) -> None:
        """One event."""
        if event.kind == Kind.START:
            self.start = event.time
            self.first_start = event.time if self.first_start is None else self.first_start
        elif event.kind == Kind.JOB_END:
            self.job_end = event.time
        elif event.kind == Kind.DATA:
            self.loads.read(event)
        elif event.kind == Kind.STEP and event.edge == Edge.POINT:
            self._step(event)

    def _step(self, event: Event) -> None:
        if event.step in self.steps:
            self._disruption(event)
            self.steps = {}
        elif not self.steps and self.first_start is not None:
            self._nowhere(self.first_start, event.time, "before_the_first_step")
        self.steps[event.step] = event.time

    def _disruption(self, event: Event) -> None:
        """A step came a second time: what was recorded before is a segment of its own."""
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
        """The segment that is left, and the last step."""
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
        """The steps recorded since the last disruption: productive up to step `stop`, wasted from there on."""
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
                others.append(self._productive(self._net(start, end)))
        self._first_step(first, others)

    def _first_step(self, net: list[Interval], others: list[int]) -> None:
        """What the first step took beyond the mean of the others is start-up; it stands at its beginning."""
        length = sum(end - start for start, end in net)
        extra = max(length - round(sum(others) / len(others)), 0) if others else 0
        for start, end in net:
            cut = min(start + extra, end)
            extra -= cut - start
            self.claims.append(LibraryClaim(start, cut, STARTUP, "above_the_mean"))
            self.claims.append(LibraryClaim(cut, end, PRODUCTIVE, "first_step"))

    def _productive(self, net: list[Interval]) -> int:
        self.claims += [LibraryClaim(start, end, PRODUCTIVE, "between_steps") for start, end in net]
        return sum(end - start for start, end in net)

    def _net(self, start: int, end: int) -> list[Interval]:
        """The time between two steps without the custom events that lie wholly inside, which it counts. Where these
        overlap, all of their lengths come off."""
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
        """The first `length` ns of the intervals; the rest is counted nowhere."""
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
