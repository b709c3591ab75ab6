"""Small operations on sorted integer columns. `numpy.unique` and similar functions hash or sort from scratch. The
columns of the engine are sorted or nearly so, and a merge sort then costs one pass."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, Literal, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from goodput_cli.arrays import Rows, blocks

_FEW_ATTEMPTS = 100
"""8 bits hold the numbers of as many attempts, and a few more."""
_FEW = 1 << 12
"""Number of rows up to which a log is small. `goodput jobs` reads thousands of these, and a call costs more than its
work."""
_HANDFUL = 32
"""Number of values up to which they are searched one by one."""


def row_type(size: int) -> type[np.signedinteger[Any]]:
    """Return the type for the rows of a table of this size: 32 bits if they fit."""
    return np.int32 if size < 1 << 31 else np.int64


def owner_type(attempts: int) -> type[np.signedinteger[Any]]:
    """Return the type for numbers of attempts, one per row: 8 or 16 bits if they fit."""
    if attempts < _FEW_ATTEMPTS:
        return np.int8
    return np.int16 if attempts < 1 << 15 else np.int32


def positions(mask: NDArray[np.bool_]) -> Rows:
    """Return `numpy.flatnonzero` in the smallest type that fits."""
    return mask.nonzero()[0].astype(row_type(len(mask)))


def search(values: NDArray[Any], targets: Any, side: Literal["left", "right"] = "left") -> NDArray[np.intp]:
    """Return `numpy.searchsorted` without its copy of a column that is narrower than the targets."""
    targets = np.asarray(targets)
    if targets.dtype != values.dtype and len(values) > _FEW:
        bounds = np.iinfo(values.dtype)
        targets = np.clip(targets, bounds.min, bounds.max).astype(values.dtype)
    return np.asarray(values.searchsorted(targets, side))


def clipped(values: NDArray[np.int64], low: Any, high: Any) -> NDArray[np.int64]:
    """Return `numpy.clip`, which takes three times as long for a few values."""
    return np.asarray(np.minimum(np.maximum(values, low), high))


def is_among(rows: Rows, known: Rows) -> NDArray[np.bool_]:
    """Return True for each row that is among others, which are sorted."""
    if len(known) == 0:
        return np.zeros(len(rows), dtype=np.bool_)
    return np.asarray(np.append(known, -1)[search(known, rows)] == rows)


def next_row(rows: Rows, after: int | None) -> int | None:
    """Return the first of the sorted rows at or after `after`."""
    if after is None:
        return None
    place = int(search(rows, after))
    return int(rows[place]) if place < len(rows) else None


def latest_row(rows: Rows, floor: int, before: int) -> int:
    """Return the last of the sorted rows before `before`, but not less than `floor`."""
    place = int(search(rows, before))
    return max(int(rows[place - 1]), floor) if place else floor


class SparseColumn(Struct, frozen=True):
    """A column of amounts (ns) that is mostly 0: `amount[i]` is in `rows[i]`, which are sorted."""

    rows: Rows
    amount: NDArray[np.int64]

    def at(self, rows: Rows) -> NDArray[np.int64]:
        """Return the amounts in these rows."""
        if len(self.rows) == 0:
            return np.zeros(len(rows), dtype=np.int64)
        place = search(self.rows, rows)
        here = np.append(self.rows, -1)[place] == rows
        return np.where(here, np.append(self.amount, 0)[place], 0)

    def part(self, start: int, stop: int) -> tuple[Rows, NDArray[np.int64]]:
        """Return rows and amounts of start <= row < stop; rows are counted from `start`."""
        first, last = search(self.rows, np.array((start, stop)))
        return self.rows[first:last] - start, self.amount[first:last]


NOWHERE = SparseColumn(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.int64))
"""A column of zeros."""


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct values, sorted."""
    ordered = np.sort(values, kind="stable")
    return ordered[run_heads(ordered)]


def union(*parts: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct values of several columns, sorted."""
    return distinct(np.concatenate(parts))


def codes_in(values: NDArray[Any]) -> list[int]:
    """Return the distinct values of a column of small numbers, sorted. `numpy.bincount` would first widen a whole
    column."""
    if len(values) and values.strides == (0,):
        return [int(values[0])]
    codes: set[int] = set()
    for start, stop in blocks(len(values)):
        codes.update(distinct(values[start:stop]).tolist())
    return sorted(codes)


def run_heads(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the mask of positions at which a run of equal values begins."""
    heads = np.ones(len(values), dtype=bool)
    heads[1:] = values[1:] != values[:-1]
    return heads


def first_of_each(rows: Rows, owner: Rows, count: int) -> Rows:
    """Return the first of the sorted rows of each of `count` owners; -1 for those without any."""
    return last_of_each(rows[::-1], owner[::-1], count)


def last_of_each(rows: Rows, owner: Rows, count: int) -> Rows:
    """Return the last of the sorted rows of each of `count` owners; -1 for those without any."""
    result = np.full(count, -1, dtype=np.intp)
    result[owner] = rows
    return result


class ReadableColumn(Protocol):
    """A column that can be read by positions."""

    def __getitem__(self, places: Rows, /) -> NDArray[Any]: ...


class GatheredColumn(Struct, frozen=True):
    """`column[rows]`, computed only for the values that are read."""

    column: NDArray[Any]
    rows: Rows

    def __getitem__(self, places: Rows) -> NDArray[Any]:
        """Return the values at some positions."""
        return np.asarray(self.column[self.rows[places]])


def search_within(values: ReadableColumn, start: Rows, stop: Rows, targets: NDArray[Any]) -> NDArray[np.intp]:
    """Return `numpy.searchsorted` from the right for many targets, each one in its sorted part values[start:stop]."""
    if len(targets) <= _HANDFUL:
        wanted = zip(targets.tolist(), start.tolist(), stop.tolist(), strict=True)
        column: Any = values
        return np.array([bisect_right(column, target, *part) for target, *part in wanted], dtype=np.intp)
    low, high = start.astype(np.intp), stop.astype(np.intp)
    searching = np.flatnonzero(low < high)
    while len(searching):
        middle = (low[searching] + high[searching]) // 2
        right = values[middle] <= targets[searching]
        low[searching[right]] = middle[right] + 1
        high[searching[~right]] = middle[~right]
        searching = searching[low[searching] < high[searching]]
    return low


def is_sorted(values: NDArray[Any]) -> bool:
    """Return True if a column never falls from row to row."""
    return bool((values[1:] >= values[:-1]).all())


def largest_within(values: NDArray[Any], start: Rows, stop: Rows) -> NDArray[Any]:
    """Return the largest of values[start:stop] for many parts, which are not empty. The work is the length of the
    column times the logarithm of the longest part, even if parts overlap."""
    result = values[start]
    if len(start) == 0:
        return result
    doublings = np.frexp(stop - start)[1] - 1
    largest = values
    for doubling in range(int(doublings.max()) + 1):  # largest[i] is the maximum of values[i : i + width]
        width = 1 << doubling
        here = doublings == doubling
        result[here] = np.maximum(largest[start[here]], largest[stop[here] - width])
        largest = np.maximum(largest[:-width], largest[width:])
    return result


def without(rows: Rows, left_out: Rows, size: int) -> Rows:
    """Return the rows (positions below `size`) that are not among `left_out`, in their order."""
    if len(left_out) == 0:
        return rows
    out = np.zeros(size, dtype=bool)
    out[left_out] = True
    return rows[~out[rows]]


def of_kind(kind: NDArray[np.int8], kinds: Iterable[int]) -> NDArray[np.bool_]:
    """Return the mask of the rows whose kind is one of `kinds`."""
    mask = np.zeros(len(kind), dtype=bool)
    for one in kinds:  # six comparisons of bytes are faster than one lookup
        mask |= kind == int(one)
    return mask


def rows_of(kind: NDArray[np.int8], kinds: Iterable[int]) -> Rows:
    """Return the rows whose kind is one of `kinds`, in order."""
    return positions(of_kind(kind, kinds))
