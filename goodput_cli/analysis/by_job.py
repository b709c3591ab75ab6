"""A log of many jobs as one log a job, for one sort of the whole table: thousands of jobs must not cost thousands of
passes over it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.columns import distinct
from goodput_cli.events.growing import is_constant
from goodput_cli.events.schema import COLUMNS, EventLog, EventTable


def by_job(log: EventLog) -> Iterator[EventLog]:
    """The log of each job that has events, in order of their first event; rows in order of arrival.

    The diagnostics of reading are of the whole log and stay out.
    """
    table = log.table
    if len(table) == 0:
        return
    if len(table.jobs) == 1:
        yield EventLog(table, log.formats[:1] or ((),))
        return
    sorted_ = table if is_constant(table.job) else table.take(np.argsort(table.job, kind="stable"))
    bounds = np.searchsorted(sorted_.job, np.arange(len(table.jobs) + 1))
    present = np.flatnonzero(bounds[1:] > bounds[:-1])
    first = np.minimum.reduceat(sorted_.time, bounds[present])
    for code in present[np.argsort(first, kind="stable")].tolist():
        formats = log.formats[code] if code < len(log.formats) else ()
        yield EventLog(_slice(sorted_, code, int(bounds[code]), int(bounds[code + 1])), (formats,))


def _slice(table: EventTable, job: int, start: int, stop: int) -> EventTable:
    """The rows of one job, sorted by job before, with only those labels, details, entries and writers that they use."""
    columns = {name: getattr(table, name)[start:stop] for name in COLUMNS}
    columns["job"] = np.zeros(stop - start, dtype=np.int32)
    columns["label"], labels = _used(columns["label"])
    columns["detail"], details = _used(columns["detail"])
    columns["entry"], entries = _used(columns["entry"])
    columns["writer"], writers = _used(columns["writer"])
    return replace(
        table,
        **columns,
        jobs=(table.jobs[job],),
        labels=tuple(table.labels[code] for code in labels),
        details=tuple(table.details[code] for code in details),
        entries=tuple(table.entries[code] for code in entries),
        writers=tuple(table.writers[code] for code in writers),
    )


def _used(codes: NDArray[np.int32]) -> tuple[NDArray[np.int32], list[int]]:
    """The codes numbered anew without holes (NONE stays), and the old codes in the order of the new ones."""
    used = distinct(codes[codes >= 0])
    if len(used) == 0:
        return codes, []
    return np.where(codes >= 0, np.searchsorted(used, codes), codes).astype(np.int32), used.tolist()
