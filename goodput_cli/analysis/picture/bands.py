"""Bands: what the time went to, as a picture can show it, without losing a nanosecond.

Every run of alike segments that a column of dots or more is long stays as it is. What is shorter and lies side by side
in one bucket becomes one group that holds the time of each category, so that the amounts of all bands still add up to
the ledger exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import run_heads, union
from goodput_cli.analysis.picture.downsampling import Buckets
from goodput_cli.arrays import I64
from goodput_cli.vocabulary.categories import CATEGORIES, Category

_KINDS = len(CATEGORIES)


@dataclass(frozen=True)
class Bands:
    """Time by category in intervals that touch, in time order: columns of one row an interval and category."""

    start: I64
    """Start of the interval (ns)."""
    end: I64
    """End of the interval (ns)."""
    category: NDArray[np.int8]
    """`Category`."""
    label: NDArray[np.int32]
    """Code of the label where the interval is of one alone, else -1."""
    ns: I64
    """Time of the category in the interval, all of it where the interval is of one segment; `training_slowdown`, which
    has no place in time, may be negative."""
    most: NDArray[np.bool_]
    """Whether the category has the most time of its interval, before slowdown is taken from it; true of one row of
    every interval."""
    grouped: bool
    """Whether any interval is of several segments."""

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class _Runs:
    """Runs of alike segments, cut to the window."""

    start: I64
    end: I64
    category: NDArray[np.int8]
    label: NDArray[np.int32]


def bands(timeline: Timeline, buckets: Buckets) -> Bands:
    """The bands of the window of `buckets`; at most some four times as many intervals as buckets."""
    runs = _runs(timeline, buckets.start, buckets.end)
    long = (runs.end - runs.start >= buckets.width) | (len(runs.start) <= buckets.count)
    cells, run = _cells(runs, long, buckets)
    heads = np.flatnonzero(run_heads(np.where(long[run], -1 - run, buckets.of(cells))))
    length = np.diff(np.append(cells, buckets.end))
    group = np.repeat(np.arange(len(heads)), np.diff(np.append(heads, len(cells))))
    amount = np.zeros((len(heads), _KINDS), dtype=np.int64)
    np.add.at(amount, (group, runs.category[run]), length)
    start = cells[heads]
    end = np.append(start[1:], buckets.end)
    most = amount.argmax(axis=1)
    if timeline.ledger.has_slowdown:
        slow = timeline.ledger.slowdown_upto(end) - timeline.ledger.slowdown_upto(start)
        amount[:, Category.SLOWDOWN] += slow
        amount[:, Category.PRODUCTIVE] -= slow
    shown = amount != 0
    shown[np.arange(len(heads)), most] = True
    interval, category = np.nonzero(shown)
    label = np.where(long[run[heads]], runs.label[run[heads]], -1)
    return Bands(
        start=start[interval],
        end=end[interval],
        category=category.astype(np.int8),
        label=np.where(category == Category.CUSTOM, label[interval], -1).astype(np.int32),
        ns=amount[interval, category],
        most=category == most[interval],
        grouped=not long.all(),
    )


def _runs(timeline: Timeline, start: int, end: int) -> _Runs:
    segments = timeline.segments
    first = int(np.searchsorted(segments.end, start, side="right"))
    last = int(np.searchsorted(segments.start, end, side="left"))
    category = segments.category[first:last]
    label = np.full(len(category), -1, dtype=np.int32)
    custom = np.flatnonzero(category == Category.CUSTOM)
    if len(custom):
        label[custom] = segments.label(first + custom)
    heads = np.flatnonzero(run_heads(category) | run_heads(label))
    begins = np.maximum(segments.start[first:last][heads], start)
    return _Runs(begins, np.append(begins[1:], end), category[heads], label[heads])


def _cells(runs: _Runs, long: NDArray[np.bool_], buckets: Buckets) -> tuple[I64, NDArray[np.intp]]:
    """Where pieces of runs begin, short ones cut where a bucket ends, and the run of each."""
    edges = buckets.edges[:-1]
    inside = np.searchsorted(runs.start, edges, side="right") - 1
    cells = union(runs.start, edges[~long[inside]])
    return cells, np.searchsorted(runs.start, cells, side="right") - 1
