"""The columns of segments and of events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.sheet import Audience, Column
from goodput_cli.analysis.table import UNKNOWN
from goodput_cli.analysis.timeline.rows import SegmentRows, evidence
from goodput_cli.arrays import I64, Rows, blocks
from goodput_cli.events.schema import NO_STEP, Edge, EventTable, Kind
from goodput_cli.vocabulary.categories import CATEGORIES, Category

KINDS = [kind.name.lower() for kind in Kind]
_EDGES = [edge.name.lower() for edge in Edge]
_SEGMENT_CATEGORIES = [name for name in CATEGORIES if name != CATEGORIES[Category.SLOWDOWN]]
_AT_ONCE = 1024


@dataclass(frozen=True)
class Segments:
    """Some segments: a part of the table."""

    timeline: Timeline
    rows: SegmentRows

    @cached_property
    def categories(self) -> list[str]:
        """The name of each one's category."""
        return [CATEGORIES[category] for category in self.rows.category.tolist()]

    @cached_property
    def labels(self) -> list[str | None]:
        """The label of each that has one."""
        labels = self.timeline.table.labels
        return [labels[label] if label >= 0 else None for label in self.rows.label.tolist()]

    @cached_property
    def places(self) -> list[list[str]]:
        """The log lines that bound each."""
        return list(evidence(self.timeline.table, self.rows))


def segment_parts(timeline: Timeline, rows: SegmentRows) -> Iterator[Segments]:
    """All segments, some at a time."""
    for start, stop in blocks(len(rows), _AT_ONCE):
        yield Segments(timeline, rows.take(np.arange(start, stop)))


@dataclass(frozen=True)
class Events:
    """Some events of a log: a part of the table."""

    table: EventTable
    rows: Rows

    def interval_ends(self) -> I64:
        """Where an interval that one line tells ends (ns)."""
        return np.where(self.table.edge[self.rows] == Edge.INTERVAL, self.table.end[self.rows], UNKNOWN)


def event_parts(table: EventTable, rows: Rows) -> Iterator[Events]:
    """All events, some at a time."""
    return (Events(table, rows[start:stop]) for start, stop in blocks(len(rows), _AT_ONCE))


def _attempts(part: Segments) -> I64:
    return np.where(part.rows.attempt >= 0, part.rows.attempt.astype(np.int64) + 1, UNKNOWN)


def _last_steps(part: Segments) -> I64:
    return np.where(part.rows.stop == NO_STEP, UNKNOWN, part.rows.stop - 1)


def _joined_places(part: Segments) -> list[str]:
    return [" ".join(places) for places in part.places]


def _ranks(part: Events) -> I64:
    ranks = part.table.rank[part.rows].astype(np.int64)
    return np.where(ranks < 0, UNKNOWN, ranks)


def _event_labels(part: Events) -> list[str | None]:
    labels = part.table.labels
    return [labels[label] if label >= 0 else None for label in part.table.label[part.rows].tolist()]


SEGMENT_COLUMNS = (
    Column("start", "instant", values=lambda part: part.rows.start, words="start"),
    Column("end", "instant", Audience.PROGRAMS, lambda part: part.rows.end, "end"),
    Column("start_ns", "count", Audience.JSON, lambda part: part.rows.start, "ns since 1970 UTC"),
    Column("end_ns", "count", Audience.JSON, lambda part: part.rows.end, "ns since 1970 UTC"),
    Column("category", "text", Audience.PROGRAMS, lambda part: part.categories, json={"enum": _SEGMENT_CATEGORIES}),
    Column("label", "text", Audience.PROGRAMS, lambda part: part.labels, "of custom_badput_events", nullable=True),
    Column("event", "text", Audience.TABLES, lambda part: [None] * len(part.rows)),
    Column("attempt", "count", Audience.PROGRAMS, _attempts, "whose it is; null: nobody's", nullable=True, least=1),
    Column(
        "first_step", "count", Audience.PROGRAMS, lambda part: part.rows.first, "first step it is about", nullable=True
    ),
    Column("last_step", "count", Audience.PROGRAMS, _last_steps, "last step it is about", nullable=True),
    Column(
        "slowdown_ns",
        "count",
        Audience.JSON,
        lambda part: part.rows.slowdown,
        "how much of a productive segment is training_slowdown: a share, not a place in time; may be negative",
    ),
    Column("slowdown", "duration", Audience.TABLES, lambda part: part.rows.slowdown),
    Column(
        "evidence",
        "text",
        Audience.PROGRAMS,
        _joined_places,
        "file:line or insertId of the events that bound it, or, where nothing was logged for it, of the events around "
        "it",
        json={"type": "array", "items": {"type": "string"}, "maxItems": 2},
        json_values=lambda part: part.places,
    ),
)
"""What programs see of a segment."""
EVENT_COLUMNS = (
    Column("time", "instant", Audience.JSON, lambda part: part.table.time[part.rows], "when"),
    Column("time_ns", "count", Audience.JSON, lambda part: part.table.time[part.rows], "ns since 1970 UTC"),
    Column("end", "instant", Audience.JSON, Events.interval_ends, "of an interval that one line tells", nullable=True),
    Column("end_ns", "count", Audience.JSON, Events.interval_ends, "ns since 1970 UTC", nullable=True),
    Column(
        "kind",
        "text",
        Audience.JSON,
        lambda part: [KINDS[kind] for kind in part.table.kind[part.rows].tolist()],
        "what happened",
    ),
    Column(
        "edge",
        "text",
        Audience.JSON,
        lambda part: [_EDGES[edge] for edge in part.table.edge[part.rows].tolist()],
        json={"enum": _EDGES},
    ),
    Column("step", "count", Audience.JSON, lambda part: part.table.step[part.rows], "the step it names", nullable=True),
    Column(
        "step_time_ns",
        "count",
        Audience.JSON,
        lambda part: np.where(part.table.step_time[part.rows] < 0, UNKNOWN, part.table.step_time[part.rows]),
        "of a step's end: the mean time of one step that it names",
        nullable=True,
    ),
    Column("rank", "count", Audience.JSON, _ranks, "the rank it names", nullable=True),
    Column("label", "text", Audience.JSON, _event_labels, "of custom and elastic events", nullable=True),
    Column("where", "text", Audience.JSON, lambda part: list(part.table.places(part.rows)), "file:line or insertId"),
)
"""What JSON has of an event."""
