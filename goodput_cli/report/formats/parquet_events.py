"""`--format parquet-events`: the job's canonical events, each once, as one Parquet table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from goodput_cli.analysis.results import Analysis
from goodput_cli.events.schema import NO_STEP, Edge, Kind
from goodput_cli.report.base import Page
from goodput_cli.report.parquet.file import INSTANT, TEXT, about_analysis, chunks, instants, texts_of, whole, write
from goodput_cli.report.parquet.places import places_of

SCHEMA = pa.schema(
    [
        pa.field("job", TEXT, nullable=False),
        pa.field("time", INSTANT, nullable=False),
        pa.field("end", INSTANT, nullable=False),
        pa.field("kind", TEXT, nullable=False),
        pa.field("edge", TEXT, nullable=False),
        pa.field("step", pa.int64()),
        pa.field("rank", pa.int64()),
        pa.field("label", TEXT),
        pa.field("source", TEXT, nullable=False),
        pa.field("line", pa.int64(), nullable=False),
        pa.field("evidence", pa.string(), nullable=False),
    ]
)
"""The columns of `Analysis.events`, with the job's name in front."""


def render(analysis: Analysis, page: Page) -> bytes:  # noqa: ARG001 - a renderer's signature
    """All events of the job, in time order."""
    return write(SCHEMA, _row_groups(analysis), about_analysis(analysis, "events"))


def _row_groups(analysis: Analysis) -> Iterator[Sequence[pa.Array]]:
    table = analysis.table
    job, sources, labels = texts_of([analysis.job.name]), texts_of(table.sources), texts_of(table.labels)
    kinds, edges = (texts_of([one.name.lower() for one in names]) for names in (Kind, Edge))
    places = places_of(table)
    for part in chunks(len(table)):
        rows = np.arange(part.start, part.stop)
        some = table.take(rows)
        yield (
            job(np.zeros(len(some), dtype=np.int32)),
            instants(some.time),
            instants(np.asarray(some.end)),
            kinds(some.kind),
            edges(some.edge),
            whole(some.step, some.step != NO_STEP),
            whole(some.rank, some.rank >= 0),
            labels(some.label),
            sources(some.source),
            whole(some.line),
            places(rows),
        )
