"""Parquet files: what all tables share, their types, what the file says about itself, and how it is written.

This module is imported only when Parquet is asked for, before any log is read.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from goodput_cli.analysis.sheet import SCHEMA_VERSION
from goodput_cli.vocabulary.text import iso, well_formed

if TYPE_CHECKING:
    from goodput_cli.analysis.results import Analysis

__all__ = [
    "INSTANT", "ROWS", "TEXT", "about_analysis", "chunks", "instants", "program_version", "texts_of", "whole",
    "write",
]  # fmt: skip

ROWS = 131_072
"""Rows of a row group: all that is in memory as Arrow columns at a time."""

INSTANT = pa.timestamp("ns", tz="UTC")
TEXT = pa.dictionary(pa.int32(), pa.string())
"""Text that repeats: each value is stored once a row group."""


def write(schema: pa.Schema, row_groups: Iterable[Sequence[pa.Array]], about: Mapping[str, str]) -> bytes:
    """A Parquet file of the row groups; `about` becomes its key-value metadata, each key behind `goodput.`."""
    metadata = {f"goodput.{key}": well_formed(value) for key, value in about.items()}
    out = io.BytesIO()
    with pq.ParquetWriter(out, schema.with_metadata(metadata), compression="zstd") as writer:
        for columns in row_groups:
            writer.write_table(pa.Table.from_arrays(columns, schema=writer.schema), row_group_size=ROWS)
    return out.getvalue()


def chunks(size: int) -> Iterator[slice]:
    """The rows of a table, a row group at a time."""
    return (slice(start, min(start + ROWS, size)) for start in range(0, size, ROWS))


def about_analysis(analysis: Analysis, table: str) -> dict[str, str]:
    """What a table of an analysis says about itself: the job, the window, the headline and the method behind it."""
    window = analysis.window
    method = {
        "reference_step_time_seconds": analysis.reference.step_time_seconds,
        "reference_origin": analysis.reference.origin,
        **asdict(analysis.method),
        "excluded": [[iso(start), iso(end)] for start, end in analysis.timeline.rules.exclusions],
    }
    return {
        "schema_version": str(SCHEMA_VERSION),
        "table": table,
        "job": analysis.job.name,
        "window_start": iso(window.start_ns),
        "window_end": iso(window.end_ns),
        "window_ns": str(window.ns),
        "excluded_ns": str(window.excluded_ns),
        "goodput_ns": str(analysis.goodput.ns),
        "method": json.dumps(method),
        "version": program_version(),
    }


def program_version() -> str:
    """`goodput-cli 0.1.0`."""
    try:
        return f"goodput-cli {version('goodput-cli')}"
    except PackageNotFoundError:
        return "goodput-cli"


def instants(values: NDArray[np.int64], known: NDArray[np.bool_] | None = None) -> pa.Array:
    """ns since 1970 UTC as timestamps; null where not `known`."""
    return pa.array(values, pa.int64(), mask=None if known is None else ~known).cast(INSTANT)


def whole(values: NDArray[np.signedinteger], known: NDArray[np.bool_] | None = None) -> pa.Array:
    """Whole numbers; null where not `known`."""
    return pa.array(np.ascontiguousarray(values, dtype=np.int64), pa.int64(), mask=None if known is None else ~known)


def texts_of(names: Sequence[str]) -> Callable[[NDArray[np.signedinteger]], pa.Array]:
    """From codes to the names that they stand for; null for codes below 0."""
    dictionary = pa.array([well_formed(name) for name in names], pa.string())

    def texts(codes: NDArray[np.signedinteger]) -> pa.Array:
        indices = pa.array(np.ascontiguousarray(codes, dtype=np.int32), pa.int32(), mask=codes < 0)
        return pa.DictionaryArray.from_arrays(indices, dictionary)

    return texts
