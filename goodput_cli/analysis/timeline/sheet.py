"""The segments of a window as a `Sheet`, with the raw events between them where they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import run_heads
from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.sheet import Cell, Column, Lazy, Sheet
from goodput_cli.analysis.timeline.rows import SegmentRows, evidence, folded
from goodput_cli.events.schema import NO_STEP, Edge, EventTable, Kind
from goodput_cli.events.timestamp_text import each_iso
from goodput_cli.vocabulary.categories import CATEGORIES
from goodput_cli.vocabulary.text import duration, iso, period, plural
from goodput_cli.vocabulary.titles import short_title

Rows = NDArray[np.intp]
TimedRow = tuple[int, tuple[Cell, ...]]
_KINDS = [kind.name.lower() for kind in Kind]
_EDGES = [edge.name.lower() for edge in Edge]
_EDGE_WORDS = {Edge.POINT: "", Edge.BEGIN: " begins", Edge.END: " ends", Edge.INTERVAL: ""}


def timeline_sheet(
    analysis: Analysis, rows: SegmentRows, window: tuple[int, int], events: Rows | None, *, filtered: bool
) -> Sheet:
    """Segments, one a row; for the eye, runs of alike ones as one row.

    window: [start, end) in ns. events: rows of the events to interleave. filtered: whether segments were left out.
    """
    timeline, table = analysis.timeline, analysis.table
    runs = folded(rows)
    one_source = len(table.sources) == 1
    shown_events = [] if events is None else list(_folded_events(timeline, events))
    shown = _interleaved(_segment_rows(timeline, runs), shown_events)
    data: dict[str, Any] = {
        "job": {"name": analysis.job.name, "start": iso(analysis.job.start_ns), "end": iso(analysis.job.end_ns)},
        "window": {"start": iso(window[0]), "end": iso(window[1]), "ns": window[1] - window[0]},
        "segments": Lazy(len(rows), lambda: _segment_dicts(timeline, rows)),
    }
    if events is not None:
        data["events"] = Lazy(len(events), lambda: (_event_dict(table, row) for row in events.tolist()))
    total = int((rows.end - rows.start).sum())
    summary = [f"{period(*window)} ({duration(window[1] - window[0])})"]
    summary.append(f"{plural(len(rows), 'segment')} in {plural(len(runs), 'row')}, {duration(total)}")
    return Sheet(
        title=f"Timeline of {analysis.job.name}",
        summary=tuple(summary),
        columns=_columns(rows, one_source=one_source),
        rows=Lazy(len(rows) + (0 if events is None else len(events)), lambda: _exact_rows(timeline, rows, events)),
        folded=tuple(_lines_only(cells) if one_source else cells for cells in shown),
        notes=("segments were left out by --category or --min-duration",) if filtered else (),
        data=data,
    )


def _exact_rows(timeline: Timeline, rows: SegmentRows, events: Rows | None) -> Iterable[tuple[Cell, ...]]:
    """Every segment and every event."""
    segments = _segment_rows(timeline, rows)
    if events is None:
        return (cells for _, cells in segments)
    return _interleaved(segments, (_event_cells(timeline.table, row, row, 1) for row in events.tolist()))


def _segment_rows(timeline: Timeline, rows: SegmentRows) -> Iterator[TimedRow]:
    return (_segment_cells(one) for one in _segment_dicts(timeline, rows))


def _columns(rows: SegmentRows, *, one_source: bool) -> tuple[Column, ...]:
    slow = bool(rows.slowdown.any())
    return (
        Column("start", "instant"),
        Column("end", "instant", "data"),
        Column("time", "duration", "eye"),
        Column("category", "text", "data"),
        Column("label", "text", "data"),
        Column("event", "text", "data"),
        Column("what", "text", "eye"),
        Column("att.", "count", "eye"),
        Column("attempt", "count", "data"),
        Column("steps", "text", "eye"),
        Column("first_step", "count", "data"),
        Column("last_step", "count", "data"),
        Column("slowdown", "duration", "all" if slow else "data"),
        Column("lines" if one_source else "evidence", "text", "eye"),
        Column("evidence", "text", "data"),
    )


def _segment_dicts(timeline: Timeline, rows: SegmentRows) -> Iterator[dict[str, Any]]:
    """The rows as JSON holds them, keys as in the contract of `goodput timeline`."""
    labels = timeline.table.labels
    columns = (
        rows.start, rows.end, rows.category, rows.label, rows.attempt, rows.first, rows.stop, rows.slowdown,
    )  # fmt: skip
    lists = (column.tolist() for column in columns)
    shown = (each_iso(rows.start), each_iso(rows.end), evidence(timeline.table, rows))
    for start, end, category, label, attempt, first, stop, slowdown, begins, ends, places in zip(
        *lists, *shown, strict=True
    ):
        yield {
            "start": begins,
            "end": ends,
            "start_ns": start,
            "end_ns": end,
            "category": CATEGORIES[category],
            "label": labels[label] if label >= 0 else None,
            "attempt": attempt + 1 if attempt >= 0 else None,
            "first_step": None if first == NO_STEP else first,
            "last_step": None if stop == NO_STEP else stop - 1,
            "slowdown_ns": slowdown,
            "evidence": places,
        }


def _short_places(places: Sequence[str]) -> str:
    """Places for the eye: `run.jsonl:3-17` for two lines of a file, without its folder."""
    split = [place.rpartition(":") for place in places]
    files = {file for file, _, _ in split}
    if len(files) != 1 or not all(line.isdigit() for _, _, line in split):
        return " ".join(places)
    return f"{files.pop().rpartition('/')[2]}:{'-'.join(line for _, _, line in split)}"


def _lines_only(cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """The row with its places for the eye (the last column but one) without the file, which is the same everywhere."""
    places = cells[-2]
    file, _, lines = str(places or "").rpartition(":")
    short = lines if file and lines.replace("-", "").isdigit() else places
    return (*cells[:-2], short, cells[-1])


def _segment_cells(segment: dict[str, Any]) -> TimedRow:
    category, label = segment["category"], segment["label"]
    start, end = segment["start_ns"], segment["end_ns"]
    return start, (
        start,
        end,
        end - start,
        category,
        label,
        None,
        short_title(category, label),
        "" if segment["attempt"] is None else segment["attempt"],
        segment["attempt"],
        _steps(segment["first_step"], segment["last_step"]),
        segment["first_step"],
        segment["last_step"],
        segment["slowdown_ns"],
        _short_places(segment["evidence"]),
        " ".join(segment["evidence"]),
    )


def _steps(first: int | None, last: int | None) -> str | None:
    if first is None or last is None:
        return None
    return str(first) if last <= first else f"{first}-{last}"


def _event_dict(table: EventTable, row: int) -> dict[str, Any]:
    time, end, step, rank, label = (
        int(column[row]) for column in (table.time, table.end, table.step, table.rank, table.label)
    )
    interval = table.edge[row] == Edge.INTERVAL
    return {
        "time": iso(time),
        "time_ns": time,
        "end": iso(end) if interval else None,
        "end_ns": end if interval else None,
        "kind": _KINDS[table.kind[row]],
        "edge": _EDGES[table.edge[row]],
        "step": None if step == NO_STEP else step,
        "rank": None if rank < 0 else rank,
        "label": table.labels[label] if label >= 0 else None,
        "where": table.where(row),
    }


def _event_cells(table: EventTable, row: int, last: int, count: int) -> TimedRow:
    """An event as a row (or `count` alike ones, from `row` to `last`): indented under the segment that holds it."""
    event = _event_dict(table, row)
    words = event["kind"] + _EDGE_WORDS[Edge(table.edge[row])]
    words += f" {event['label']}" if event["label"] else ""
    words += f" rank {event['rank']}" if event["rank"] is not None and count == 1 else ""
    words += f" ({count} lines)" if count > 1 else ""
    end = event["end_ns"]
    step, last_step = event["step"], int(table.step[last])
    places = list(dict.fromkeys((event["where"], table.where(last))))
    return event["time_ns"], (
        event["time_ns"],
        end,
        "" if end is None else end - event["time_ns"],
        None,
        event["label"],
        words,
        f"  {words}",
        "",
        None,
        _steps(step, None if step is None else last_step),
        step,
        step,
        None,
        _short_places(places),
        " ".join(places),
    )


def _folded_events(timeline: Timeline, events: Rows) -> Iterator[TimedRow]:
    """Events for the eye: steps of one attempt that follow each other are one row."""
    table = timeline.table
    if len(events) == 0:
        return
    kind, owner = table.kind[events], timeline.attempts.of_row[events]
    heads = run_heads(kind) | run_heads(owner) | (kind != Kind.STEP)
    first = np.flatnonzero(heads)
    last = np.append(first[1:], len(events)) - 1
    for head, tail in zip(first.tolist(), last.tolist(), strict=True):
        yield _event_cells(table, int(events[head]), int(events[tail]), tail - head + 1)


def _interleaved(segments: Iterable[TimedRow], events: Iterable[TimedRow]) -> list[tuple[Cell, ...]]:
    """Both in time order; of what begins together, the segment first."""
    return [cells for _, cells in merge(segments, events, key=lambda row: row[0])]
