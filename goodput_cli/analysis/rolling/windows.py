"""Rolling goodput (accounting §7): many windows, one look-up on the ledger.

With hindsight, a window costs two binary searches a category. Without it, the job is accounted for again as it was
known at each window's end: as much work as `analyze` for every end (windows that end together share it).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.build import Timeline, build_timeline
from goodput_cli.accounting.columns import distinct
from goodput_cli.accounting.ledger import Key, Ledger
from goodput_cli.analysis.goodput.slice_efficiency import slice_counts
from goodput_cli.analysis.rolling.results import Rolling
from goodput_cli.arrays import I64
from goodput_cli.errors import NotEnoughData, UsageError
from goodput_cli.events.schema import EventTable
from goodput_cli.vocabulary.categories import CATEGORIES, Category
from goodput_cli.vocabulary.units import NS_PER_DAY, NS_PER_HOUR, NS_PER_MINUTE, NS_PER_SECOND

MAX_ROWS = 1_000_000
_ROUND = (
    *(n * NS_PER_SECOND for n in (1, 5, 10, 30)),
    *(n * NS_PER_MINUTE for n in (1, 5, 10, 15, 30)),
    *(n * NS_PER_HOUR for n in (1, 2, 4, 6, 12)),
    *(n * NS_PER_DAY for n in (1, 2, 7)),
)


def rolling(
    timeline: Timeline, start: int, end: int, windows: Sequence[int], every: int | None = None, hindsight: bool = True
) -> Rolling:
    """Goodput and badput of windows that end in (start, end] (ns).

    windows: lengths in ns. every: ns between two ends, counted from `start` (default: the shortest window, so that it
    tiles the job); the last row ends at `end`. Windows look back beyond `start` and are cut only to the job window.
    hindsight: whether a step redone later is wasted in every window that holds it, or each row is as it was known at
    its end. `UsageError`: more than a million rows.
    """
    window, begins, ends = window_bounds(timeline, start, end, windows, every or min(windows))
    if hindsight:
        amounts = timeline.ledger.between(begins, ends)
    else:
        ends, amounts = _as_known_then(timeline, begins, ends)
    nothing = np.zeros(len(ends), dtype=np.int64)
    productive = amounts.pop((Category.PRODUCTIVE, -1), nothing)
    excluded = amounts.pop((Category.EXCLUDED, -1), nothing)
    keys = tuple(key for key, amount in amounts.items() if amount.any())
    return Rolling(
        window_ns=window,
        start_ns=begins,
        end_ns=ends,
        excluded_ns=excluded,
        productive_ns=productive,
        categories=tuple((CATEGORIES[category], _label(timeline.table, label)) for category, label in keys),
        badput_ns=np.array([amounts[key] for key in keys], dtype=np.int64).reshape(len(keys), len(ends)),
        stepping=slice_counts(timeline.table).stepping.mean(begins, ends),
        every_ns=every or min(windows),
        hindsight=hindsight,
    )


def last_windows(timeline: Timeline, end: int, windows: Sequence[int]) -> Rolling:
    """The one window of each length (ns) that ends at `end` (ns)."""
    return replace(rolling(timeline, end - 1, end, windows, every=1), every_ns=min(windows))


def as_known_at(timeline: Timeline, as_of: int) -> Timeline:
    """The job as it was known at the instant `as_of` (ns). `NotEnoughData` if that is nothing."""
    if as_of >= timeline.end:
        return timeline
    then = build_timeline(timeline.ordered, timeline.rules, as_of)
    if then is None:
        raise NotEnoughData("nothing of the job was known at the end of the window")
    return then


def default_window(length: int) -> int:
    """A round length (ns) of which some ten fit into `length` (ns)."""
    return next((size for size in _ROUND if 10 * size >= length), _ROUND[-1])


def window_bounds(timeline: Timeline, start: int, end: int, windows: Sequence[int], every: int) -> tuple[I64, I64, I64]:
    """Length asked for, start and end (ns) of every window, length by length and each in time order."""
    rows = -(-(end - start) // every)
    if rows * len(windows) > MAX_ROWS:
        raise UsageError(f"{rows * len(windows)} windows are too many (at most {MAX_ROWS}); choose a longer --every")
    ends = start + every * np.arange(1, rows + 1, dtype=np.int64)
    window = np.repeat(np.array(windows, dtype=np.int64), rows)
    reached = np.tile(ends, len(windows))
    begins, cut = np.maximum(reached - window, timeline.start), np.minimum(reached, end)
    some = begins < cut
    return window[some], begins[some], cut[some]


def _as_known_then(timeline: Timeline, begins: I64, ends: I64) -> tuple[I64, dict[Key, I64]]:
    """Ends and amounts of windows as they were known at each end: a window ends where the job had ended by then (if
    that was before the window began, nothing of it counts)."""
    cut = begins.copy()
    amounts: dict[Key, I64] = {}
    for known_at in distinct(ends).tolist():
        rows = np.flatnonzero(ends == known_at)
        then = build_timeline(timeline.ordered, timeline.rules, known_at)
        if then is not None:
            cut[rows] = np.maximum(np.minimum(ends[rows], then.end), begins[rows])
            _add(amounts, then.ledger, rows, begins, cut)
    return cut, dict(sorted(amounts.items()))


def _add(amounts: dict[Key, I64], ledger: Ledger, rows: NDArray[np.intp], begins: I64, ends: I64) -> None:
    for key, values in ledger.between(begins[rows], ends[rows]).items():
        amounts.setdefault(key, np.zeros(len(ends), dtype=np.int64))[rows] = values


def _label(table: EventTable, label: int) -> str | None:
    return table.labels[label] if label >= 0 else None
