"""Segments of a window as a `Sheet` and as an answer, interleaved with the raw events on request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from typing import Annotated

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import run_heads
from goodput_cli.analysis.analysis_data import NamedJob, named_job
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.goodput.phrases import evidence_text, folder_of
from goodput_cli.analysis.insights.hangs import find_hangs
from goodput_cli.analysis.json_fields import Count, Instant, Json, written
from goodput_cli.analysis.sheet import Audience, Cell, Column, Lazy, Sheet
from goodput_cli.analysis.table import FilledTable, seen_by
from goodput_cli.analysis.timeline.rows import (
    EVENTS,
    KINDS,
    SEGMENTS,
    SegmentRows,
    SegmentsPart,
    event_table,
    folded,
    segment_table,
)
from goodput_cli.arrays import Rows
from goodput_cli.events.accelerators.hooks import DEVICE_SAMPLES
from goodput_cli.events.schema import NO_STEP, PROFILING, Edge, EventTable, Kind
from goodput_cli.vocabulary.categories import brief_name, cause_text, full_name
from goodput_cli.vocabulary.text import duration, period, plural

TimedRow = tuple[int, tuple[Cell, ...]]
_LINES = re.compile(r":\d[\d-]*(?: |$)")
"""End of a location: names of files may contain blanks."""
_EDGE_WORDS = {Edge.POINT: "", Edge.BEGIN: " begins", Edge.END: " ends", Edge.INTERVAL: ""}


def timeline_sheet(
    analysis: Analysis, rows: SegmentRows, window: tuple[int, int], events: Rows | None, *, filtered: bool
) -> Sheet:
    """Return segments, one per row; for people, runs of equal ones are combined.

    window: [start, end) in ns. events: rows of the events to interleave. filtered: whether segments were omitted.
    """
    timeline, table = analysis.timeline, analysis.table
    runs = folded(rows)
    sources = table.files
    columns = _columns(rows)
    with_busy = bool(DEVICE_SAMPLES.of(table))
    if with_busy:
        columns = (*columns[:-2], _busy_column(analysis), *columns[-2:])
    shown_events = [] if events is None else _grouped_events(timeline, events)
    beside = merge(shown_events, _profile_sessions(analysis, window), key=lambda row: row[0])
    shown = _interleaved(_segment_rows(columns, timeline, runs), list(_without_busy(beside, with_busy)))
    total = duration(int((rows.end - rows.start).sum()))
    return Sheet(
        title=f"Timeline of {analysis.job.name}",
        summary=(
            f"{period(*window)} ({duration(window[1] - window[0])})",
            f"{plural(len(rows), 'segment')} in {plural(len(runs), 'row')}, {total}",
        ),
        columns=columns,
        rows=Lazy(
            len(rows) + (0 if events is None else len(events)),
            lambda: _exact_rows(columns, timeline, rows, events, with_busy),
        ),
        grouped_rows=tuple(
            _lines_only(cells) if len(sources) == 1 else cells for cells in _without(folder_of(sources), shown)
        ),
        notes=tuple(_notes(timeline, window, filtered=filtered)),
        answer=lambda: timeline_answer(analysis, rows, window, events),
    )


def _notes(timeline: Timeline, window: tuple[int, int], *, filtered: bool) -> Iterator[str]:
    """Yield notes, with the logged causes of attempts that failed in the window (docs/causes.md)."""
    if filtered:
        yield "--category or --min-duration hides some segments"
    sources = timeline.table.files
    folder = folder_of(sources)
    if (words := evidence_text(sources)) is not None:
        yield words
    for number, attempt in enumerate(timeline.disruptions.tolist(), 1):
        why = timeline.causes.why[attempt]
        if why.certainty is not None and window[0] <= timeline.sign_of_life[attempt] < window[1]:
            where = f" ({why.where.removeprefix(folder)})" if why.where else ""
            yield f"disruption {number}: {cause_text(why.code, why.certainty)}{where}"


def _exact_rows(
    columns: Sequence[Column], timeline: Timeline, rows: SegmentRows, events: Rows | None, with_busy: bool
) -> Iterable[tuple[Cell, ...]]:
    """Return the cells of every segment and every event."""
    segments = _segment_rows(columns, timeline, rows)
    if events is None:
        return (cells for _, cells in segments)
    each = (_event_cells(timeline.table, row, row, 1) for row in events.tolist())
    return _interleaved(segments, _without_busy(each, with_busy))


def _segment_rows(columns: Sequence[Column], timeline: Timeline, rows: SegmentRows) -> Iterator[TimedRow]:
    cells = segment_table(timeline, rows).cells(columns)
    return zip(rows.start.tolist(), cells, strict=True)


def _columns(rows: SegmentRows) -> tuple[Column, ...]:
    """Return the columns of people and tables; `_event_cells` has the same order."""
    people = Audience.PEOPLE
    shown = {
        "time": Column("time", "duration", people, lambda part: part.rows.end - part.rows.start),
        "what": Column("category", "text", people, _names, brief=brief_name),
        "number": Column("attempt", "count", people, _attempts, spare=True),
        "steps": Column("steps", "text", people, _step_ranges),
        "lines": Column(
            "evidence", "text", people, lambda part: map(_short_locations, part.locations), brief=_first_location
        ),
    }
    slow = Audience.PEOPLE | Audience.TABLES if rows.slowdown.any() else Audience.TABLES
    tables = {one.name: one for one in seen_by(Audience.TABLES, SEGMENTS.columns)}
    tables["slowdown"] = replace(tables["slowdown"], audience=slow)
    order = (
        "start", "end", "time", "category", "label", "event", "what", "number", "attempt", "steps", "first_step",
        "last_step", "slowdown", "lines", "evidence",
    )  # fmt: skip
    return tuple((shown | tables)[name] for name in order)


def _busy_column(analysis: Analysis) -> Column:
    """Return the column of accelerator utilization per segment, if the log has samples."""
    from goodput_cli.analysis.accelerators.devices import busy_between  # Few logs contain any.

    def values(part: SegmentsPart) -> list[float | None]:
        found = busy_between(analysis, part.rows.start, part.rows.end)
        return [None] * len(part.rows) if found is None else [None if one != one else one for one in found.tolist()]

    return Column("busy", "percent", Audience.PEOPLE, values)


def _without_busy(events: Iterable[TimedRow], with_busy: bool) -> Iterator[TimedRow]:
    """Yield rows of events with an empty cell in the utilization column."""
    return ((time, (*cells[:-2], None, *cells[-2:]) if with_busy else cells) for time, cells in events)


def _names(part: SegmentsPart) -> list[str]:
    return [full_name(category, label) for category, label in zip(part.categories, part.labels, strict=True)]


def _attempts(part: SegmentsPart) -> list[int | str]:
    return [attempt + 1 if attempt >= 0 else "" for attempt in part.rows.attempt.tolist()]


def _step_ranges(part: SegmentsPart) -> list[str | None]:
    first, stop = part.rows.first.tolist(), part.rows.stop.tolist()
    return [None if NO_STEP in (begin, end) else _steps(begin, end - 1) for begin, end in zip(first, stop, strict=True)]


def _short_locations(places: Sequence[str]) -> str:
    """Return locations for people: `run.jsonl:3-17` for two lines of a file."""
    split = [place.rpartition(":") for place in places]
    files = {file for file, _, _ in split}
    if len(files) != 1 or not all(line.isdigit() for _, _, line in split):
        return " ".join(places)
    return f"{files.pop()}:{'-'.join(line for _, _, line in split)}"


def _without(folder: str, rows: Iterable[tuple[Cell, ...]]) -> Iterator[tuple[Cell, ...]]:
    """Yield rows whose locations for people (the last column but one) lack the common directory."""
    for cells in rows:
        places = str(cells[-2] or "")
        short = f" {places}".replace(f" {folder}", " ")[1:] if folder else places
        yield (*cells[:-2], short or None, cells[-1])


def _first_location(places: str) -> str:
    """Return a short form for narrow screens: `run.out:3 +1`."""
    ends = [match.end() for match in _LINES.finditer(places)]
    return places if len(ends) < 2 else f"{places[: ends[0]].strip()} +{len(ends) - 1}"


def _lines_only(cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """Return the row with its locations for people (the last column but one) without the file, if it is always the
    same."""
    places = cells[-2]
    file, _, lines = str(places or "").rpartition(":")
    short = lines if file and lines.replace("-", "").isdigit() else places
    return (*cells[:-2], short, cells[-1])


def _steps(first: int | None, last: int | None) -> str | None:
    if first is None or last is None:
        return None
    return str(first) if last <= first else f"{first}-{last}"


def _event_cells(table: EventTable, row: int, last: int, count: int, hung: int | None = None) -> TimedRow:
    """Return an event as a row (or `count` equal ones, from `row` to `last`), indented under its segment.

    hung: the time (ns) of the step that it names, if that is not a usual time.
    """
    edge = Edge(table.edge[row])
    start, end, rank = int(table.time[row]), int(table.end[row]), int(table.rank[row])
    step, last_step = (None if table.step[one] == NO_STEP else int(table.step[one]) for one in (row, last))
    label = table.labels[table.label[row]] if table.label[row] >= 0 else None
    words = KINDS[table.kind[row]] + _EDGE_WORDS[edge]
    words += f" {label}" if label else ""
    words += f" rank {rank}" if rank >= 0 and count == 1 else ""
    words += f" ({count} lines)" if count > 1 else ""
    words += "" if hung is None else " (hung)"
    interval = edge == Edge.INTERVAL
    places = list(dict.fromkeys((table.where(row), table.where(last))))
    return start, (
        start,
        end if interval else None,
        end - start if interval else "" if hung is None else hung,
        None,
        label,
        words,
        f"  {words}",
        "",
        None,
        None if step is None else _steps(step, last_step),
        step,
        step,
        None,
        _short_locations(places),
        " ".join(places),
    )


def _grouped_events(timeline: Timeline, events: Rows) -> Iterator[TimedRow]:
    """Yield events for people: consecutive steps of one attempt share a row, and a hanging step has its own."""
    table = timeline.table
    if len(events) == 0:
        return
    kind, owner = table.kind[events], timeline.attempts.of_row[events]
    hangs = find_hangs(timeline, (timeline.start, timeline.end))
    hung = dict(zip(hangs.row.tolist(), (hangs.end - hangs.start).tolist(), strict=True))
    alone = np.isin(events, hangs.row)
    heads = run_heads(kind) | run_heads(owner) | (kind != Kind.STEP) | alone
    heads[1:] |= alone[:-1]
    first = np.flatnonzero(heads)
    last = np.append(first[1:], len(events)) - 1
    for head, tail in zip(first.tolist(), last.tolist(), strict=True):
        row = int(events[head])
        yield _event_cells(table, row, int(events[tail]), tail - head + 1, hung.get(row))


def _profile_sessions(analysis: Analysis, window: tuple[int, int]) -> Iterator[TimedRow]:
    """Yield profile sessions from lines of ML Diagnostics, as rows for people."""
    found = [one for one in analysis.table.metrics if one.name == PROFILING and one.job == analysis.job.name]
    begin: int | None = None
    for time, runs in ((time, value > 0) for one in found for time, value in zip(one.time, one.value, strict=True)):
        if begin is None and runs:
            begin = int(time)
        elif begin is not None and not runs and begin < window[1] and time > window[0]:
            yield begin, _event_row(begin, int(time), "profile session")
            begin = None
    if begin is not None and begin < window[1]:
        yield begin, _event_row(begin, None, "profile session (no end)")


def _event_row(start: int, end: int | None, words: str) -> tuple[Cell, ...]:
    took = None if end is None else end - start
    return (start, end, took, None, None, words, f"  {words}", "", *[None] * 7)


def _interleaved(segments: Iterable[TimedRow], events: Iterable[TimedRow]) -> list[tuple[Cell, ...]]:
    """Return both in time order; of rows with equal times, the segment comes first."""
    return [cells for _, cells in merge(segments, events, key=lambda row: row[0])]


@written("timeline_window", keys="start_ns end_ns ns")
@dataclass(frozen=True)
class TimelineWindow:
    """The displayed window."""

    start_ns: Instant
    """start of the window"""
    end_ns: Instant
    """end of the window"""

    @property
    def ns(self) -> Count:
        """its length"""
        return self.end_ns - self.start_ns


@written("timeline_answer", "goodput timeline --format json", kind="timeline")
@dataclass(frozen=True, kw_only=True)
class TimelineAnswer:
    """The segments of a window, and the events on request."""

    job: NamedJob
    window: TimelineWindow
    segments: Annotated[FilledTable, SEGMENTS]
    """segments touch, do not overlap and cover the window, unless some were filtered out"""
    events: Annotated[FilledTable | None, EVENTS, Json(optional=True)] = None
    """with --events only"""


def timeline_answer(
    analysis: Analysis, rows: SegmentRows, window: tuple[int, int], events: Rows | None
) -> TimelineAnswer:
    """Return the segments of the window [start, end) (ns), and the events on request."""
    return TimelineAnswer(
        job=named_job(analysis),
        window=TimelineWindow(*window),
        segments=segment_table(analysis.timeline, rows),
        events=None if events is None else event_table(analysis.table, events),
    )
