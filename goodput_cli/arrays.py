"""Array types of columns, helpers for long columns and for groups, and a pause of garbage collection."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
"""Timestamps and durations in ns, steps, counts."""
F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]
"""Selected rows."""
Words = NDArray[np.uint64]
"""Eight characters per value."""
Characters = NDArray[np.uint8]
Rows = NDArray[np.signedinteger[Any]]
"""Rows of a table or positions in a column, in 32 or 64 bits."""
Places = NDArray[np.intp]
"""Positions in a column, as NumPy returns them."""
BLOCK = 1 << 16
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class ColumnCode(IntEnum):
    """Base of the codes of a column. NumPy looks for this attribute on everything that a column is compared with.
    Without it, the comparison of a small column takes twice as long."""

    __array_ufunc__ = np.ndarray.__array_ufunc__


def blocks(size: int, most: int = BLOCK) -> Iterator[tuple[int, int]]:
    """Yield [start, stop) of the blocks of a long column. Intermediate results of one block fit into the processor's
    cache."""
    return ((start, min(start + most, size)) for start in range(0, size, most))


def distinct(ordered: I64) -> I64:
    """Return each of some ordered numbers once. `np.unique` hashes them, which takes ten times as long."""
    first = np.ones(len(ordered), dtype=np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def merged(*columns: I64) -> I64:
    """Return the numbers of some columns, each once, in order."""
    return distinct(np.sort(np.concatenate(columns), kind="stable"))


def sums_by(key: Rows, amount: I64, size: int) -> I64:
    """Return the sum of the amounts of each key from 0 to `size`, exact."""
    sums = np.zeros(size, dtype=np.int64)
    np.add.at(sums, key, amount)
    return sums


def alike(values: NDArray[Any]) -> dict[int, Rows]:
    """Return the positions of each value, both in order."""
    order = np.argsort(values, kind="stable")
    each, heads = np.unique(values[order], return_index=True)
    return dict(zip(each.tolist(), np.split(order, heads[1:]), strict=True)) if len(each) else {}


def group_by_key(pairs: Iterable[tuple[Key, Value]]) -> defaultdict[Key, list[Value]]:
    """Return the values of each key, both in order."""
    groups: defaultdict[Key, list[Value]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Pause garbage collection. Records and events have no reference cycles, and the search took a quarter of the
    time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
