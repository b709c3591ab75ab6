"""Parquet: the segments of an analysis, its events, and the most detailed table of every other answer.

The kind of a column determines its type: times are timestamps (ns, UTC), amounts of time are `NAME_ns` (int64),
percentages are `NAME_percent` (float64). Unrecorded values are null. Segments and events may have millions of rows, so
they are written from the columns of the timeline and of the log by row group.

This module is imported only for Parquet output, before any log is read.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from goodput_cli.accounting.options import RULES
from goodput_cli.analysis.document import Document
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.sheet import NS, SCHEMA_VERSION, Cell, Column, ColumnKind, Sheet
from goodput_cli.analysis.timeline.rows import segment_rows
from goodput_cli.arrays import Rows
from goodput_cli.events.schema import NO_STEP, Edge, EventTable, Kind
from goodput_cli.report.base import Page
from goodput_cli.report.terminal import table_columns
from goodput_cli.vocabulary.categories import CATEGORIES
from goodput_cli.vocabulary.text import finite, iso, well_formed

ROWS = 131_072
"""Rows of a row group: the maximum that is in memory as Arrow columns."""

_INSTANT = pa.timestamp("ns", tz="UTC")
_TEXT = pa.dictionary(pa.int32(), pa.string())
"""Repeated text: each value is stored once per row group."""
_TYPES: dict[ColumnKind, pa.DataType] = {
    "text": _TEXT,
    "count": pa.int64(),
    "duration": pa.int64(),
    "change": pa.int64(),
    "instant": _INSTANT,
    "number": pa.float64(),
    "percent": pa.float64(),
    "points": pa.float64(),
}
_WHOLE = ("count", "duration", "change", "instant")
SEGMENTS = pa.schema(
    [
        pa.field("job", _TEXT, nullable=False),
        pa.field("start", _INSTANT, nullable=False),
        pa.field("end", _INSTANT, nullable=False),
        pa.field("ns", pa.int64(), nullable=False),
        pa.field("seconds", pa.float64(), nullable=False),
        pa.field("category", _TEXT, nullable=False),
        pa.field("label", _TEXT),
        pa.field("attempt", pa.int64()),
        pa.field("first_step", pa.int64()),
        pa.field("last_step", pa.int64()),
        pa.field("slowdown_ns", pa.int64(), nullable=False),
        pa.field("evidence", pa.list_(pa.string()), nullable=False),
    ]
)
"""The job name and the columns of `Analysis.segments`."""
EVENTS = pa.schema(
    [
        pa.field("job", _TEXT, nullable=False),
        pa.field("time", _INSTANT, nullable=False),
        pa.field("end", _INSTANT, nullable=False),
        pa.field("kind", _TEXT, nullable=False),
        pa.field("edge", _TEXT, nullable=False),
        pa.field("step", pa.int64()),
        pa.field("rank", pa.int64()),
        pa.field("label", _TEXT),
        pa.field("source", _TEXT, nullable=False),
        pa.field("line", pa.int64(), nullable=False),
        pa.field("evidence", pa.string(), nullable=False),
    ]
)
"""The job name and the columns of `Analysis.events`."""


def render(document: Document, page: Page) -> bytes:  # noqa: ARG001 - a renderer's signature
    """Return the most detailed table of the answer."""
    table = document.tables()[-1]
    columns = table_columns(table)
    schema = pa.schema([pa.field(well_formed(column.head(NS)), _TYPES[column.kind]) for _, column in columns])
    return _write(schema, _of_rows(table, columns), _made_by(table.title))


def _of_rows(table: Sheet, columns: Sequence[tuple[int, Column]]) -> Iterator[Sequence[pa.Array]]:
    rows = iter(table.rows)
    while part := list(islice(rows, ROWS)):
        yield [_array(column.kind, [row[position] for row in part]) for position, column in columns]


def _array(kind: ColumnKind, cells: Sequence[Cell]) -> pa.Array:
    if kind == "text":
        return pa.array([None if cell is None else well_formed(str(cell)) for cell in cells], pa.string()).cast(_TEXT)
    if kind in _WHOLE:
        return pa.array([None if cell is None else int(cell) for cell in cells], pa.int64()).cast(_TYPES[kind])
    return pa.array([None if cell is None else finite(float(cell)) for cell in cells], pa.float64())


def segments(analysis: Analysis, page: Page) -> bytes:  # noqa: ARG001 - a renderer's signature
    """Return the segments of the window, sorted by time."""
    return _write(SEGMENTS, _of_segments(analysis), _about_analysis(analysis, "segments"))


def _of_segments(analysis: Analysis) -> Iterator[Sequence[pa.Array]]:
    table, window = analysis.timeline.table, analysis.window
    rows = segment_rows(analysis.timeline, window.start_ns, window.end_ns)
    job, categories, labels = _texts_of([analysis.job.name]), _texts_of(CATEGORIES), _texts_of(table.labels)
    places = locations_of(table)
    for part in _chunks(len(rows)):
        some = rows.take(np.arange(part.start, part.stop))
        length, steps = some.end - some.start, some.first != NO_STEP
        yield (
            job(np.zeros(len(some), dtype=np.int32)),
            _timestamps(some.start),
            _timestamps(some.end),
            _whole(length),
            pa.array(length / 1e9),
            categories(some.category),
            labels(some.label),
            _whole(some.attempt + 1, some.attempt >= 0),
            _whole(some.first, steps),
            _whole(some.stop - 1, steps),
            _whole(some.slowdown),
            lists_of_two(places(some.row), places(some.end_row)),
        )


def events(analysis: Analysis, page: Page) -> bytes:  # noqa: ARG001 - a renderer's signature
    """Return all events of the job, sorted by time."""
    return _write(EVENTS, _of_events(analysis), _about_analysis(analysis, "events"))


def _of_events(analysis: Analysis) -> Iterator[Sequence[pa.Array]]:
    table = analysis.table
    job, sources, labels = _texts_of([analysis.job.name]), _texts_of(table.files), _texts_of(table.labels)
    kinds, edges = (_texts_of([one.name.lower() for one in names]) for names in (Kind, Edge))
    file, line = table.places()
    places = locations_of(table)
    for part in _chunks(len(table)):
        rows = np.arange(part.start, part.stop)
        some = table.take(rows)
        yield (
            job(np.zeros(len(some), dtype=np.int32)),
            _timestamps(some.time),
            _timestamps(np.asarray(some.end)),
            kinds(some.kind),
            edges(some.edge),
            _whole(some.step, some.step != NO_STEP),
            _whole(some.rank, some.rank >= 0),
            labels(some.label),
            sources(file[rows]),
            _whole(line[rows]),
            places(rows),
        )


def _write(schema: pa.Schema, row_groups: Iterable[Sequence[pa.Array]], about: Mapping[str, str]) -> bytes:
    """Return a Parquet file of the row groups. `about` becomes its key-value metadata, with `goodput.` before each
    key."""
    metadata = {f"goodput.{key}": well_formed(value) for key, value in about.items()}
    out = io.BytesIO()
    with pq.ParquetWriter(out, schema.with_metadata(metadata), compression="zstd") as writer:
        for columns in row_groups:
            writer.write_table(pa.Table.from_arrays(columns, schema=writer.schema), row_group_size=ROWS)
    return out.getvalue()


def _chunks(size: int) -> Iterator[slice]:
    """Yield the rows of each row group of a table."""
    return (slice(start, min(start + ROWS, size)) for start in range(0, size, ROWS))


def _about_analysis(analysis: Analysis, table: str) -> dict[str, str]:
    """Return the metadata of a table of an analysis: job, window, headline and method."""
    window = analysis.window
    method = {
        "reference_step_time_seconds": analysis.reference.step_time_seconds,
        "reference_origin": analysis.reference.origin,
        **asdict(analysis.method),
        "excluded": [[iso(start), iso(end)] for start, end in analysis.timeline.rules.exclusions],
    }
    return {
        **_made_by(table),
        "job": analysis.job.name,
        "window_start": iso(window.start_ns),
        "window_end": iso(window.end_ns),
        "window_ns": str(window.ns),
        "excluded_ns": str(window.excluded_ns),
        "goodput_ns": "" if analysis.goodput_unknown else str(analysis.goodput.ns),
        "goodput_at_least_ns": _known(analysis.goodput_limits.at_least),
        "goodput_at_most_ns": _known(analysis.goodput_limits.at_most),
        "method": json.dumps(method),
    }


def _known(ns: int | None) -> str:
    return "" if ns is None else str(ns)


def _made_by(table: str) -> dict[str, str]:
    """Return the metadata of every table. version: such as `goodput-cli 0.2.0`."""
    try:
        program = f"goodput-cli {version('goodput-cli')}"
    except PackageNotFoundError:
        program = "goodput-cli"
    return {"schema_version": str(SCHEMA_VERSION), "rules": str(RULES), "table": table, "version": program}


def _timestamps(values: NDArray[np.int64]) -> pa.Array:
    """Return ns since 1970 UTC as timestamps."""
    return pa.array(values, pa.int64()).cast(_INSTANT)


def _whole(values: NDArray[np.signedinteger], known: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return integers; null where `known` is False."""
    return pa.array(np.ascontiguousarray(values, dtype=np.int64), pa.int64(), mask=None if known is None else ~known)


def _texts_of(names: Sequence[str]) -> Callable[[NDArray[np.signedinteger]], pa.Array]:
    """Return a function from codes to names; null for codes below 0."""
    dictionary = pa.array([well_formed(name) for name in names], pa.string())

    def texts(codes: NDArray[np.signedinteger]) -> pa.Array:
        indices = pa.array(np.ascontiguousarray(codes, dtype=np.int32), pa.int32(), mask=codes < 0)
        return pa.DictionaryArray.from_arrays(indices, dictionary)

    return texts


def locations_of(table: EventTable) -> Callable[[Rows], pa.Array]:
    """Return a function from rows of the table to their `EventTable.where`; null for rows below 0. It works on columns,
    for millions of rows."""
    sources = pa.array([well_formed(source) for source in table.files], pa.string())
    entries = pa.array([well_formed(insert_id) for _, _, insert_id in table.entries], pa.string())

    all_files, all_lines = table.places()

    def locations(rows: Rows) -> pa.Array:
        some = np.maximum(rows, 0)
        line, entry = all_lines[some], table.entry[some]
        files = sources.take(pa.array(np.ascontiguousarray(all_files[some])))
        lines = pa.compute.binary_join_element_wise(files, pa.array(line).cast(pa.string()), ":")
        by_id = (line <= 0) & (entry >= 0)
        if by_id.any():
            ids = entries.take(pa.array(np.maximum(entry, 0)))
            lines = pa.compute.if_else(pa.array(by_id), ids, lines)
        return pa.compute.if_else(pa.array(rows >= 0), lines, pa.scalar(None, pa.string()))

    return locations


def lists_of_two(first: pa.Array, second: pa.Array) -> pa.Array:
    """Return two columns of locations as one column of lists, without nulls and duplicates."""
    size = len(first)
    has_first, has_second = (~column.is_null().to_numpy(zero_copy_only=False) for column in (first, second))
    same = pa.compute.fill_null(pa.compute.equal(first, second), False).to_numpy(zero_copy_only=False)
    wanted = np.column_stack((has_first, has_second & ~same))
    position = np.column_stack((np.arange(size), size + np.arange(size)))
    values = pa.concat_arrays([first, second]).take(pa.array(position[wanted]))
    offsets = np.concatenate(([0], np.cumsum(wanted.sum(axis=1)))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values)
