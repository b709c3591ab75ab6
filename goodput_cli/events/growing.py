"""Columns that grow at their end, each in memory of its own; a column of one value needs none."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FIRST_ROWS = 1 << 12
_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_ANONYMOUS") else {}


def constant(size: int, value: int, dtype: type[np.generic] = np.int32) -> NDArray[Any]:
    """A column of one value that takes no memory; `is_constant` tells it."""
    return np.ndarray((size,), dtype, np.array(value, dtype=dtype), 0, (0,))


def is_constant(column: NDArray[Any]) -> bool:
    """Whether a column is known to hold one value only."""
    return column.strides == (0,)


class GrowingColumn:
    """A column to append to. Pieces do not pile up: a log may have ten thousand blocks.

    The rows lie in pages of their own and not among other objects: they are extended where they are, room that is not
    used yet takes no memory, and nothing is left behind that only later objects of the same size could use.
    """

    def __init__(self, dtype: type[np.generic], narrow: type[np.signedinteger[Any]] | None = None) -> None:
        """narrow: what holds the values as long as all of them fit."""
        self._dtype = dtype
        self._width: np.dtype[Any] = np.dtype(narrow or dtype)
        self._size = 0
        self._value = 0  # of all rows, while there is no room
        self._room: mmap.mmap | None = None
        self._only: NDArray[Any] | None = None  # piece, as long as there is no other: short logs have one block

    def __len__(self) -> int:
        return self._size

    def append(self, piece: NDArray[Any]) -> None:
        """Some more rows."""
        size = self._size + len(piece)
        if self._only is not None:
            only, self._only, self._size = self._only, None, 0
            self._put(only, len(only))
        if self._room is None and is_constant(piece):
            value = int(piece[0])
            if self._size == 0 or value == self._value:
                self._value, self._size = value, size
                return
        if self._size == 0:
            self._only, self._size = piece, size
        else:
            self._put(piece, size)

    def _put(self, piece: NDArray[Any], size: int) -> None:
        if piece.dtype.itemsize > self._width.itemsize and not _fits(piece, self._value, self._width):
            self._widen()
        self._make_room(size)
        self._rows(size)[self._size :] = piece
        self._size = size

    def rows(self) -> NDArray[Any]:
        """The rows so far, as they are now: to be let go before more are appended."""
        if self._only is not None:
            fits = self._only.dtype.itemsize <= self._width.itemsize or _fits(self._only, 0, self._width)
            return self._only.astype(self._width if fits else self._dtype, copy=False)
        if self._room is None:
            return constant(self._size, self._value, self._dtype)
        return self._rows(self._size)

    def snapshot(self) -> NDArray[Any]:
        """A copy of the rows so far, which does not change when more are added."""
        rows = self.rows()
        return rows if is_constant(rows) else rows.copy()

    def finish(self) -> NDArray[Any]:
        """The column, in no more memory than it needs; this one must not be used any more."""
        if self._size == 0:
            return np.empty(0, dtype=self._dtype)
        return self.rows()

    def _rows(self, size: int) -> NDArray[Any]:
        assert self._room is not None
        return np.frombuffer(self._room, dtype=self._width, count=size)

    def _make_room(self, size: int) -> None:
        if self._room is None:
            self._room = mmap.mmap(-1, max(2 * size, _FIRST_ROWS) * self._width.itemsize, **_PRIVATE)
            self._rows(len(self))[:] = self._value
        elif size * self._width.itemsize > len(self._room):
            self._room = _extended(self._room, 2 * size * self._width.itemsize)

    def _widen(self) -> None:
        narrow, self._width = self.rows(), np.dtype(self._dtype)
        if self._room is not None:
            self._room = None
            self._make_room(self._size)
            self._rows(self._size)[:] = narrow


def _fits(piece: NDArray[Any], value: int, width: np.dtype[Any]) -> bool:
    """Whether a piece and the value before it do."""
    bounds = np.iinfo(width)
    low, high = int(piece.min(initial=value)), int(piece.max(initial=value))
    return bounds.min <= low and high <= bounds.max


def _extended(room: mmap.mmap, size: int) -> mmap.mmap:
    """The same memory with more behind it: where it is, or elsewhere, but not copied if the system can help it."""
    try:
        room.resize(size)
    except (SystemError, ValueError):  # there is no such call on macOS
        larger = mmap.mmap(-1, size, **_PRIVATE)
        larger[: len(room)] = room[:]
        return larger
    return room
