"""`--format parquet`: the segments of the window as one Parquet table (docs/recipes.md says what to do with it)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.timeline.rows import segment_rows
from goodput_cli.events.schema import NO_STEP
from goodput_cli.report.base import Page
from goodput_cli.report.parquet.file import INSTANT, TEXT, about_analysis, chunks, instants, texts_of, whole, write
from goodput_cli.report.parquet.places import lists_of_two, places_of
from goodput_cli.vocabulary.categories import CATEGORIES

SCHEMA = pa.schema(
    [
        pa.field("job", TEXT, nullable=False),
        pa.field("start", INSTANT, nullable=False),
        pa.field("end", INSTANT, nullable=False),
        pa.field("ns", pa.int64(), nullable=False),
        pa.field("seconds", pa.float64(), nullable=False),
        pa.field("category", TEXT, nullable=False),
        pa.field("label", TEXT),
        pa.field("attempt", pa.int64()),
        pa.field("first_step", pa.int64()),
        pa.field("last_step", pa.int64()),
        pa.field("slowdown_ns", pa.int64(), nullable=False),
        pa.field("evidence", pa.list_(pa.string()), nullable=False),
    ]
)
"""The columns of `Analysis.segments`, with the job's name in front."""


def render(analysis: Analysis, page: Page) -> bytes:  # noqa: ARG001 - a renderer's signature
    """The segments of the window, in time order."""
    return write(SCHEMA, _row_groups(analysis), about_analysis(analysis, "segments"))


def _row_groups(analysis: Analysis) -> Iterator[Sequence[pa.Array]]:
    table, window = analysis.timeline.table, analysis.window
    rows = segment_rows(analysis.timeline, window.start_ns, window.end_ns)
    job, categories, labels = texts_of([analysis.job.name]), texts_of(CATEGORIES), texts_of(table.labels)
    places = places_of(table)
    for part in chunks(len(rows)):
        some = rows.take(np.arange(part.start, part.stop))
        length, steps = some.end - some.start, some.first != NO_STEP
        yield (
            job(np.zeros(len(some), dtype=np.int32)),
            instants(some.start),
            instants(some.end),
            whole(length),
            pa.array(length / 1e9),
            categories(some.category),
            labels(some.label),
            whole(some.attempt + 1, some.attempt >= 0),
            whole(some.first, steps),
            whole(some.stop - 1, steps),
            whole(some.slowdown),
            lists_of_two(places(some.row), places(some.end_row)),
        )
