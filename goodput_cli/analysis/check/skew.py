"""Clock skew: ranks (or hosts that write files of their own) that report the same things earlier or later than the
others, and always by the same amount.

A report is compared with those that other writers make of the same thing: the starts and the ends of one attempt, and
a step's or checkpoint's line. A slow host starts late but does not end late, so starts alone prove nothing: the skew
must show in the progress, or in starts and ends alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import of_kind, run_heads
from goodput_cli.accounting.order import ENDINGS
from goodput_cli.analysis.row_diagnostics import diagnostic_at
from goodput_cli.arrays import I64, Rows
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.events.schema import NO_STEP, NONE, Kind
from goodput_cli.vocabulary.text import rough_duration
from goodput_cli.vocabulary.units import NS_PER_SECOND

LEAST_NS = 2 * NS_PER_SECOND
"""Skews below this are noise."""
LEAST_REPORTS = 3
_STEADY = 0.25
"""The skew's median deviation is at most this share of it."""
_STARTS, _ENDS, _PROGRESS = 0, 1, 2
_SOURCES = 1 << 40
_PROGRESS_KINDS = (Kind.STEP, Kind.LOAD, Kind.FINISHED, Kind.SAVED)


@dataclass(frozen=True)
class Reports:
    """Reports that several writers made of one thing, one each. Columns of one length."""

    row: Rows
    """Of the table."""
    writer: I64
    """The rank, or of lines without a rank, `_SOURCES` + source."""
    family: NDArray[np.int8]
    """Start, end or progress."""
    offset: I64
    """ns after what the others said of it."""


def check_skew(timeline: Timeline) -> Iterator[Diagnostic]:
    """`clock_skew`, a finding for each rank or source."""
    reports = shared_reports(timeline)
    order = np.argsort(reports.writer, kind="stable")
    heads = np.flatnonzero(run_heads(reports.writer[order])) if len(order) else order
    for chosen in np.split(order, heads[1:]):
        skew = _skew(reports, chosen)
        if skew is None:
            continue
        table, first = timeline.table, reports.row[chosen[0]]
        rank = int(table.rank[first])
        who = f"rank {rank}" if rank != NONE else f"the source {table.sources[table.source[first]]}"
        side = "behind" if skew > 0 else "ahead of"
        message = f"{who} reports {rough_duration(skew)} {side} the others ({len(chosen)} reports compared)"
        yield diagnostic_at("clock_skew", table, reports.row[chosen], message)


def shared_reports(timeline: Timeline) -> Reports:
    """All reports that at least two writers made of one thing."""
    table = timeline.table
    rows, family, thing = _things(timeline)
    writer = np.where(
        table.rank[rows] != NONE, table.rank[rows].astype(np.int64), _SOURCES + table.source[rows].astype(np.int64)
    )
    order = np.lexsort((table.time[rows], writer, thing))  # of one writer's reports of a thing the earliest counts
    rows, family, thing, writer = rows[order], family[order], thing[order], writer[order]
    first = run_heads(thing) | run_heads(writer)
    rows, family, thing, writer = rows[first], family[first], thing[first], writer[first]
    heads = np.flatnonzero(run_heads(thing)) if len(thing) else np.zeros(0, dtype=np.intp)
    size = np.diff(np.append(heads, len(thing)))
    offset = table.time[rows] - np.repeat(_agreed(table.time[rows], thing, heads, size), size)
    shared = np.repeat(size, size) > 1
    return Reports(rows[shared], writer[shared], family[shared], offset[shared])


def _things(timeline: Timeline) -> tuple[Rows, NDArray[np.int8], I64]:
    """Rows that report something others may report as well, which family that is of, and the number of the thing."""
    table, attempts = timeline.table, timeline.attempts
    starts, ends = table.kind == Kind.START, of_kind(table.kind, ENDINGS)
    progress = of_kind(table.kind, _PROGRESS_KINDS) & (table.step != NO_STEP)
    told_apart = table.rank != NONE
    told_apart |= (table.kind == Kind.STEP) & (len(table.sources) > 1)
    rows = np.flatnonzero((starts | ends | progress) & told_apart)
    family = np.select([starts[rows], ends[rows]], [_STARTS, _ENDS], _PROGRESS).astype(np.int8)
    attempt = np.searchsorted(attempts.begin_row, rows, side="right") - 1
    owner = np.where(attempts.of_row[rows] >= 0, attempts.of_row[rows], attempt)
    kind = np.where(family == _ENDS, -1, table.kind[rows])
    step = np.where(family == _PROGRESS, table.step[rows], 0)
    return rows, family, _numbered(owner.astype(np.int64), kind.astype(np.int64), step)


def _numbered(*columns: I64) -> I64:
    """A number for each distinct row of the columns."""
    order = np.lexsort(columns)
    new = np.zeros(len(order), dtype=np.int64)
    for column in columns:
        new |= run_heads(column[order])
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(new)
    return number


def _agreed(time: I64, thing: I64, heads: Rows, size: NDArray[np.intp]) -> I64:
    """When each thing happened (ns): the lower median of three and more reports; of two, the first writer's."""
    by_time = time[np.lexsort((time, thing))]
    return np.where(size > 2, by_time[heads + (size - 1) // 2], time[heads]) if len(heads) else heads


def _skew(reports: Reports, chosen: Rows) -> float | None:
    """How much later than the others a writer's clock runs (ns); None if it does not, or if that cannot be told."""
    offset, family = reports.offset[chosen], reports.family[chosen]
    if len(chosen) < LEAST_REPORTS:
        return None
    skew = float(np.median(offset))
    if abs(skew) < LEAST_NS or np.median(np.abs(offset - skew)) > _STEADY * abs(skew):
        return None
    families = [np.median(offset[family == kind]) for kind in np.flatnonzero(np.bincount(family)).tolist()]
    agree = all(abs(median - skew) <= abs(skew) / 2 for median in families)
    return skew if agree and (len(families) > 1 or np.any(family == _PROGRESS)) else None
