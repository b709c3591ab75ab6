"""The array types that columns are made of, the pieces in which long ones are worked on, and no garbage collection
while they are made."""

from __future__ import annotations

import gc
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

I64 = NDArray[np.int64]
"""Instants and lengths of time in ns, steps, counts."""
F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]
"""Which rows are chosen."""
Words = NDArray[np.uint64]
"""Eight characters each."""
Characters = NDArray[np.uint8]
Rows = NDArray[np.signedinteger[Any]]
"""Rows of a table or places in a column, in 32 or 64 bits."""
Places = NDArray[np.intp]
"""Places in a column, as NumPy gives them."""
BLOCK = 1 << 16
_MANY, _DENSE = 1 << 10, 4
"""More rows than `_MANY`, of which at least one in `_DENSE` is wanted, are read as a slice first."""
_LONG, _FEW = 1 << 16, 4
"""A column of fewer rows than `_LONG` is small, and one row in `_FEW` is still few."""


class Code(IntEnum):
    """The codes of a column. NumPy looks for this attribute on the class of whatever a column is compared with; on an
    enumeration without it, that takes twice as long as the comparison of a small one."""

    __array_ufunc__ = np.ndarray.__array_ufunc__


def blocks(size: int, most: int = BLOCK) -> Iterator[tuple[int, int]]:
    """[start, stop) of the pieces in which a long column is worked on: what is made on the way stays in the
    processor's cache, and takes no memory to speak of."""
    return ((start, min(start + most, size)) for start in range(0, size, most))


def alike(values: NDArray[Any]) -> dict[int, Rows]:
    """The places at which each value stands, both in order."""
    order = np.argsort(values, kind="stable")
    each, heads = np.unique(values[order], return_index=True)
    return dict(zip(each.tolist(), np.split(order, heads[1:]), strict=True)) if len(each) else {}


class Patched(NDArrayOperatorsMixin):
    """A column that is another one but in a few rows, of which alone it holds values. It is read and filled in as an
    array is, by a row, rows, a mask or a slice; operators and NumPy's functions make an array of it."""

    ndim = 1

    def __init__(self, column: NDArray[Any], rows: Rows, own: NDArray[Any]) -> None:
        """rows: sorted, which have values of their own; own: theirs."""
        self.column, self.rows, self.own = column, rows, own.astype(column.dtype, copy=False)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of its values."""
        return self.column.dtype

    @property
    def shape(self) -> tuple[int]:
        """(n,)."""
        return (len(self),)

    def __len__(self) -> int:
        return len(self.column)

    def __getitem__(self, chosen: Any) -> Any:
        """The values of a row, or an array of those of several."""
        if isinstance(chosen, int | np.integer):
            row = range(len(self))[chosen]
            place = bisect_left(self.rows, row)
            return self.own[place] if place < len(self.rows) and self.rows[place] == row else self.column[row]
        if isinstance(chosen, slice):
            start, stop, step = chosen.indices(len(self))
            return self._part(start, max(start, stop)) if step == 1 else np.asarray(self)[chosen]
        rows = np.asarray(chosen)
        if rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        if rows.size > _MANY:
            low, high = int(rows.min()), int(rows.max()) + 1
            if low >= 0 and high - low < _DENSE * rows.size:
                return self._part(low, high)[rows - low]
        values, rows = self.column[rows], np.where(rows < 0, rows + len(self), rows)
        places = np.searchsorted(self.rows, rows)
        here = np.append(self.rows, -1)[places] == rows
        return np.where(here, np.append(self.own, self.own.dtype.type(0))[places], values)

    def __setitem__(self, chosen: int | slice | Rows, values: Any) -> None:
        places = range(len(self))[chosen] if isinstance(chosen, slice) else chosen
        new = np.atleast_1d(np.asarray(places, dtype=np.intp)) % max(len(self), 1)
        left = ~np.isin(self.rows, new)
        rows = np.concatenate((self.rows[left], new))
        own = np.concatenate((self.own[left], np.broadcast_to(np.asarray(values, dtype=self.dtype), new.shape)))
        order = np.argsort(rows, kind="stable")
        self.rows, self.own = rows[order], own[order]

    def _part(self, start: int, stop: int) -> NDArray[Any]:
        values = self.column[start:stop].copy()
        first, last = np.searchsorted(self.rows, (start, stop))
        values[self.rows[first:last] - start] = self.own[first:last]
        return values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The whole column, made each time."""
        whole = self._part(0, len(self))
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's functions on the whole column."""
        arrays = (np.asarray(one) if isinstance(one, Patched) else one for one in inputs)
        return getattr(ufunc, method)(*arrays, **options)

    def __getattr__(self, name: str) -> Any:
        """What else an array has, of the whole column."""
        if name.startswith("_") or name in ("column", "rows", "own"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)

    def copy(self) -> Patched:
        """The same, of which rows can be filled in without changing this one."""
        return Patched(self.column, self.rows, self.own)

    def max(self) -> Any:
        """The highest value, of which there is at least one."""
        return max(self._part(start, stop).max() for start, stop in blocks(len(self)))

    def patches_of(self, rows: NDArray[Any]) -> tuple[Places, NDArray[Any]]:
        """Which of some rows, an index array or a mask, have values of their own, and those."""
        marked = np.zeros(len(self), dtype=np.bool_)
        marked[self.rows] = True
        new = np.flatnonzero(marked[rows])
        old = np.flatnonzero(rows)[new] if rows.dtype == np.bool_ else rows[new]
        return new, self[old]


def patched(column: NDArray[Any], rows: Rows, own: NDArray[Any]) -> NDArray[Any] | Patched:
    """The column with other values in these sorted rows; an array where it is short, or where they are not few."""
    made = Patched(column, rows, own)
    return made if len(column) >= _LONG and len(rows) * _FEW <= len(column) else np.asarray(made)


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Records and events hold no cycles: searching them for some is in vain, and took a quarter of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
