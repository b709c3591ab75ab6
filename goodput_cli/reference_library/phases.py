"""How the reference library pairs start and end lines, and what it makes of data loads and checkpoints."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from goodput_cli.events.schema import Edge, EventTable, Kind
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
