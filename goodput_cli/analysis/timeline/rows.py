"""Segments of a window as rows, and the columns of segments and of events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import run_heads
from goodput_cli.analysis.sheet import Audience, Column
from goodput_cli.analysis.table import UNKNOWN, FilledTable, TableDeclaration
from goodput_cli.arrays import I64, Mask, Rows, blocks
from goodput_cli.errors import UsageError
from goodput_cli.events.schema import NO_STEP, Edge, EventTable, Kind
from goodput_cli.vocabulary.categories import CATEGORIES, NAMES, Category, category_named
from goodput_cli.vocabulary.text import did_you_mean

CUSTOM_PREFIX = "custom:"


@dataclass(frozen=True)
class SegmentRows:
    """Segments or runs of equal ones, in time order, with their subject and bounds: columns of length n.

    A run consists of touching segments of the same category, label and attempt, from the first one's start to the last
    one's end.
    """

    start: I64
    """ns since 1970 UTC."""
    end: I64
    """ns since 1970 UTC."""
    category: NDArray[np.int8]
    """`Category`."""
    label: NDArray[np.int32]
    """Code of the custom label; -1 without one."""
    attempt: NDArray[np.int32]
    """Attempt, from 0; -1 outside all attempts."""
    first: I64
    """First step of the segment, in the numbering of the log; `NO_STEP` without one."""
    stop: I64
    """Step after the last one; `NO_STEP` without one."""
    slowdown: I64
    """`training_slowdown` in it, ns."""
    row: Rows
    """Event at its begin; -1 without one."""
    end_row: Rows
    """Event at its end; -1 without one."""
    run: Rows
    """Number of its run, ascending."""

    def __len__(self) -> int:
        return len(self.start)

    def take(self, chosen: NDArray[np.bool_] | Rows) -> SegmentRows:
        """Return the chosen rows."""
        return SegmentRows(*(getattr(self, field.name)[chosen] for field in fields(self)))


def segment_rows(timeline: Timeline, start: int, end: int) -> SegmentRows:
    """Return the segments of [start, end) (ns), cut to it: they touch, do not overlap and cover it."""
    rows, label, attempt, heads = _alike(timeline, start, end)
    return _rows_at(timeline, (start, end), rows, rows, label, attempt, np.cumsum(heads) - 1)


def find_runs(timeline: Timeline, start: int, end: int) -> SegmentRows:
    """Return the runs of equal segments of [start, end) (ns): the same as `folded(segment_rows(...))`, without lookups
    for segments inside a run."""
    rows, label, attempt, heads = _alike(timeline, start, end)
    head = np.flatnonzero(heads)
    tail = np.append(head[1:], len(rows))[: len(head)] - 1
    run = np.arange(len(head))
    return _rows_at(timeline, (start, end), rows[head], rows[tail], label[head], attempt[head], run)


def segments_inside(timeline: Timeline, start: int, end: int) -> slice:
    """Return the segments that reach into [start, end) (ns)."""
    segments = timeline.segments
    first = int(np.searchsorted(segments.end, start, side="right"))
    return slice(first, max(first, int(np.searchsorted(segments.start, end, side="left"))))


def labels_of(timeline: Timeline, inside: slice) -> NDArray[np.int32]:
    """Return the codes of the custom labels of some segments; -1 without one."""
    category = timeline.segments.category[inside]
    label = np.full(len(category), -1, dtype=np.int32)
    custom = np.flatnonzero(category == Category.CUSTOM)
    label[custom] = timeline.segments.label(inside.start + custom)
    return label


def _alike(timeline: Timeline, start: int, end: int) -> tuple[Rows, NDArray[np.int32], NDArray[np.int32], Mask]:
    """Return the segments of [start, end) (ns), their labels and attempts, and a mask of the begins of runs."""
    inside = segments_inside(timeline, start, end)
    rows = np.arange(inside.start, inside.stop)
    label, attempt = labels_of(timeline, inside), _owners(timeline, rows)
    return rows, label, attempt, run_heads(timeline.segments.category[inside]) | run_heads(label) | run_heads(attempt)


def _rows_at(
    timeline: Timeline,
    window: tuple[int, int],
    head: Rows,
    tail: Rows,
    label: NDArray[np.int32],
    attempt: NDArray[np.int32],
    run: Rows,
) -> SegmentRows:
    """Return one row from each first segment, at head, to its last, at tail, cut to the window (ns)."""
    segments, ledger = timeline.segments, timeline.ledger
    begins, ends = np.maximum(segments.start[head], window[0]), np.minimum(segments.end[tail], window[1])
    row, end_row = _evidence(timeline, head)
    return SegmentRows(
        start=begins,
        end=ends,
        category=segments.category[head],
        label=label,
        attempt=attempt,
        first=_named(timeline, segments.first(head)),
        stop=_named(timeline, segments.stop(tail)),
        slowdown=ledger.slowdown_before(ends) - ledger.slowdown_before(begins),
        row=row,
        end_row=end_row if tail is head else _evidence(timeline, tail)[1],
        run=run,
    )


def _named(timeline: Timeline, step: I64) -> I64:
    """Return steps in the numbering of the log: step-end logs count finished steps."""
    return np.where(step == NO_STEP, step, step + 1) if timeline.attempts.step_ends else step


def _owners(timeline: Timeline, rows: Rows) -> NDArray[np.int32]:
    """Return the attempt of each segment: that of its claim or training.

    Unclaimed time belongs to the attempt during which it passed. -1 for queued or excluded time, and before the first
    attempt.
    """
    segments = timeline.segments
    attempt, category = segments.attempt(rows), segments.category[rows]
    alive = np.searchsorted(timeline.attempts.begin, segments.start[rows], side="right").astype(np.int32) - 1
    unowned = (attempt < 0) & (category != Category.QUEUED) & (category != Category.EXCLUDED)
    owner = np.where(unowned, alive, attempt)
    number = np.append(timeline.attempts.number, 0)
    return (number[owner] - 1).astype(np.int32)


def _evidence(timeline: Timeline, rows: Rows) -> tuple[Rows, Rows]:
    """Return the events that bound each segment: those of its claim or training span.

    Unclaimed time is bounded by the last event before it and the first one after it. Time that the user excluded has
    none.
    """
    segments, table = timeline.segments, timeline.table
    row, end_row = segments.evidence(rows)
    before = np.searchsorted(table.time, segments.start[rows], side="right") - 1
    after = np.searchsorted(table.time, segments.end[rows], side="left")
    after = np.where(after < len(table), after, -1)
    logged = segments.category[rows] != Category.EXCLUDED
    row = np.where((row < 0) & logged, before, row)
    return row.astype(np.intp), np.where((end_row < 0) & logged, after, end_row).astype(np.intp)


def evidence(table: EventTable, rows: SegmentRows) -> Iterator[list[str]]:
    """Return the log lines that bound each segment (`EventTable.where`), each once; empty without any."""
    for place, end_place in zip(table.locations(rows.row), table.locations(rows.end_row), strict=True):
        yield list(dict.fromkeys(one for one in (place, end_place) if one is not None))


def folded(rows: SegmentRows) -> SegmentRows:
    """Return one row per run of equal segments: from the first one's start to the last one's end."""
    if len(rows) == 0:
        return rows
    head = np.flatnonzero(run_heads(rows.run))
    tail = np.append(head[1:], len(rows)) - 1
    first, last = rows.take(head), rows.take(tail)
    return SegmentRows(
        start=first.start,
        end=last.end,
        category=first.category,
        label=first.label,
        attempt=first.attempt,
        first=first.first,
        stop=last.stop,
        slowdown=np.add.reduceat(rows.slowdown, head),
        row=first.row,
        end_row=last.end_row,
        run=first.run,
    )


def choose_segments(timeline: Timeline, window: tuple[int, int], least: int, names: Sequence[str]) -> SegmentRows:
    """Return the segments of [start, end) (ns) whose run lasts at least `least` ns and whose category is in `names`.

    The names were checked before; without names, all categories match. A label that is not in the log has no segments.
    """
    rows, labels = segment_rows(timeline, *window), timeline.table.labels
    if least > 0 and len(rows):
        length = np.bincount(rows.run, weights=(rows.end - rows.start).astype(np.float64))
        rows = rows.take(length[rows.run] >= least)
    if not names:
        return rows
    chosen = np.zeros(len(rows), dtype=bool)
    for name in names:
        label = name.removeprefix(CUSTOM_PREFIX)
        if label == name:
            chosen |= rows.category == CATEGORIES.index(name)
        elif label in labels:
            chosen |= (rows.category == Category.CUSTOM) & (rows.label == labels.index(label))
    return rows.take(chosen)


def check_category(name: str) -> str:
    """Return the category for any of its names, in full or short, or for `custom:LABEL`. Raise `UsageError` if no
    segment can have it."""
    named = category_named(name)
    if named is None:
        known = f"use {', '.join(CATEGORIES)} or {CUSTOM_PREFIX}LABEL"
        raise UsageError(f"unknown category {name!r}", tip=did_you_mean(name, NAMES, known))
    category, label = named
    if category is Category.SLOWDOWN:
        raise UsageError(f"{category.id} is a part of productive segments: see their slowdown")
    return category.id if label is None else CUSTOM_PREFIX + label


def event_rows(timeline: Timeline, start: int, end: int) -> Rows:
    """Return the rows of the events in [start, end) (ns); at the job's end, including its last ones."""
    time = timeline.table.time
    last = len(time) if end >= timeline.end else int(np.searchsorted(time, end, side="left"))
    return np.arange(int(np.searchsorted(time, start, side="left")), last)


KINDS = [kind.name.lower() for kind in Kind]
EDGES = [edge.name.lower() for edge in Edge]
_SEGMENT_CATEGORIES = [name for name in CATEGORIES if name != CATEGORIES[Category.SLOWDOWN]]
_AT_ONCE = 1024


@dataclass(frozen=True)
class SegmentsPart:
    """Some segments: a part of the table."""

    timeline: Timeline
    rows: SegmentRows

    @cached_property
    def categories(self) -> list[str]:
        """Return the category name of each."""
        return [CATEGORIES[category] for category in self.rows.category.tolist()]

    @cached_property
    def labels(self) -> list[str | None]:
        """Return the label of each; None without one."""
        labels = self.timeline.table.labels
        return [labels[label] if label >= 0 else None for label in self.rows.label.tolist()]

    @cached_property
    def locations(self) -> list[list[str]]:
        """Return the log lines that bound each."""
        return list(evidence(self.timeline.table, self.rows))


@dataclass(frozen=True)
class Events:
    """Some events of a log: a part of the table."""

    table: EventTable
    rows: Rows

    def interval_ends(self) -> I64:
        """Return the end (ns) of an interval that a single line reports."""
        return np.where(self.table.edge[self.rows] == Edge.INTERVAL, self.table.end[self.rows], UNKNOWN)


def segment_table(timeline: Timeline, rows: SegmentRows) -> FilledTable:
    """Return segments as a table."""
    return SEGMENTS.of(
        len(rows),
        lambda: (
            SegmentsPart(timeline, rows.take(np.arange(start, stop))) for start, stop in blocks(len(rows), _AT_ONCE)
        ),
    )


def event_table(table: EventTable, rows: Rows) -> FilledTable:
    """Return events as a table."""
    return EVENTS.of(len(rows), lambda: (Events(table, rows[at:stop]) for at, stop in blocks(len(rows), _AT_ONCE)))


def _attempts(part: SegmentsPart) -> I64:
    return np.where(part.rows.attempt >= 0, part.rows.attempt.astype(np.int64) + 1, UNKNOWN)


def _last_steps(part: SegmentsPart) -> I64:
    return np.where(part.rows.stop == NO_STEP, UNKNOWN, part.rows.stop - 1)


def _ranks(part: Events) -> I64:
    ranks = part.table.rank[part.rows].astype(np.int64)
    return np.where(ranks < 0, UNKNOWN, ranks)


def _event_labels(part: Events) -> list[str | None]:
    labels = part.table.labels
    return [labels[label] if label >= 0 else None for label in part.table.label[part.rows].tolist()]


SEGMENTS = TableDeclaration(
    "segment",
    "one segment",
    (
        Column("start", "instant", values=lambda part: part.rows.start, words="start"),
        Column("end", "instant", Audience.PROGRAMS, lambda part: part.rows.end, "end"),
        Column("start_ns", "count", Audience.JSON, lambda part: part.rows.start, "ns since 1970 UTC"),
        Column("end_ns", "count", Audience.JSON, lambda part: part.rows.end, "ns since 1970 UTC"),
        Column("category", "text", Audience.PROGRAMS, lambda part: part.categories, json={"enum": _SEGMENT_CATEGORIES}),
        Column("label", "text", Audience.PROGRAMS, lambda part: part.labels, "of custom_badput_events", nullable=True),
        Column("event", "text", Audience.TABLES, lambda part: [None] * len(part.rows)),
        Column(
            "attempt", "count", Audience.PROGRAMS, _attempts, "its attempt, from 1; null: none", nullable=True,
            least=1,
        ),
        Column(
            "first_step", "count", Audience.PROGRAMS, lambda part: part.rows.first, "first step of the segment",
            nullable=True,
        ),
        Column("last_step", "count", Audience.PROGRAMS, _last_steps, "last step of the segment", nullable=True),
        Column(
            "slowdown_ns", "count", Audience.JSON, lambda part: part.rows.slowdown,
            "training_slowdown in a productive segment: an amount without a position in time; may be negative",
        ),
        Column("slowdown", "duration", Audience.TABLES, lambda part: part.rows.slowdown),
        Column(
            "evidence", "text", Audience.PROGRAMS, lambda part: [" ".join(places) for places in part.locations],
            "file:line or insertId of the events that bound it; if nothing was logged for it, of the events around it",
            json={"type": "array", "items": {"type": "string"}, "maxItems": 2},
            json_values=lambda part: part.locations,
        ),
    ),
)  # fmt: skip
"""Columns of a segment for programs."""
EVENTS = TableDeclaration(
    "event",
    "one event of the log",
    (
        Column("time", "instant", Audience.JSON, lambda part: part.table.time[part.rows], "when"),
        Column("time_ns", "count", Audience.JSON, lambda part: part.table.time[part.rows], "ns since 1970 UTC"),
        Column("end", "instant", Audience.JSON, Events.interval_ends, "end of an interval", nullable=True),
        Column("end_ns", "count", Audience.JSON, Events.interval_ends, "ns since 1970 UTC", nullable=True),
        Column(
            "kind", "text", Audience.JSON, lambda part: [KINDS[kind] for kind in part.table.kind[part.rows].tolist()],
            "what happened",
        ),
        Column(
            "edge", "text", Audience.JSON, lambda part: [EDGES[edge] for edge in part.table.edge[part.rows].tolist()],
            json={"enum": EDGES},
        ),
        Column("step", "count", Audience.JSON, lambda part: part.table.step[part.rows], "its step", nullable=True),
        Column(
            "step_time_ns", "count", Audience.JSON,
            lambda part: np.where(part.table.step_time[part.rows] < 0, UNKNOWN, part.table.step_time[part.rows]),
            "of a step end: the logged mean time of one step", nullable=True,
        ),
        Column("rank", "count", Audience.JSON, _ranks, "its rank", nullable=True),
        Column("label", "text", Audience.JSON, _event_labels, "of custom and elastic events", nullable=True),
        Column(
            "where", "text", Audience.JSON, lambda part: list(part.table.locations(part.rows)), "file:line or insertId"
        ),
    ),
)  # fmt: skip
"""Columns of an event in JSON."""
