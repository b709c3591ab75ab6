"""The log lines behind rows of a Parquet table: `run.jsonl:3`, or the insertId of an entry of Cloud Logging."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from goodput_cli.arrays import Rows
from goodput_cli.events.schema import EventTable
from goodput_cli.vocabulary.text import well_formed


def places_of(table: EventTable) -> Callable[[Rows], pa.Array]:
    """From rows of the table to `EventTable.where` of each; null for rows below 0. By columns: a million at once."""
    sources = pa.array([well_formed(source) for source in table.sources], pa.string())
    entries = pa.array([well_formed(insert_id) for _, _, insert_id in table.entries], pa.string())

    def places(rows: Rows) -> pa.Array:
        some = np.maximum(rows, 0)
        line, entry = table.line[some], table.entry[some]
        files = sources.take(pa.array(np.ascontiguousarray(table.source[some])))
        lines = pa.compute.binary_join_element_wise(files, pa.array(line).cast(pa.string()), ":")
        by_id = (line <= 0) & (entry >= 0)
        if by_id.any():
            ids = entries.take(pa.array(np.maximum(entry, 0)))
            lines = pa.compute.if_else(pa.array(by_id), ids, lines)
        return pa.compute.if_else(pa.array(rows >= 0), lines, pa.scalar(None, pa.string()))

    return places


def lists_of_two(first: pa.Array, second: pa.Array) -> pa.Array:
    """Two columns of places as one of lists: what is null is left out, and what is the same stands once."""
    size = len(first)
    has_first, has_second = (~column.is_null().to_numpy(zero_copy_only=False) for column in (first, second))
    same = pa.compute.fill_null(pa.compute.equal(first, second), False).to_numpy(zero_copy_only=False)
    wanted = np.column_stack((has_first, has_second & ~same))
    position = np.column_stack((np.arange(size), size + np.arange(size)))
    values = pa.concat_arrays([first, second]).take(pa.array(position[wanted]))
    offsets = np.concatenate(([0], np.cumsum(wanted.sum(axis=1)))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values)
