"""Columns that grow at their end, in one piece of memory; a column of one value needs none."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_FIRST_ROOM = 1 << 12
_STEP = 8
"""A column grows by this part of itself."""


def constant(size: int, value: int, dtype: type[np.generic] = np.int32) -> NDArray[Any]:
    """A column of one value that takes no memory; `is_constant` tells it."""
    return np.ndarray((size,), dtype, np.array(value, dtype=dtype), 0, (0,))


def is_constant(column: NDArray[Any]) -> bool:
    """Whether a column is known to hold one value only."""
    return column.strides == (0,)


class GrowingColumn:
    """A column to append to. Pieces do not pile up: a log may have ten thousand blocks."""

    def __init__(self, dtype: type[np.generic]) -> None:
        self._dtype = dtype
        self._size = 0
        self._value = 0  # of all rows, while there is no room
        self._room: NDArray[Any] | None = None

    def __len__(self) -> int:
        return self._size

    def append(self, piece: NDArray[Any]) -> None:
        """Some more rows."""
        size = self._size + len(piece)
        if self._room is None and is_constant(piece):
            value = int(piece[0])
            if self._size == 0 or value == self._value:
                self._value, self._size = value, size
                return
        room = self._room_for(size)
        room[self._size : size] = piece
        self._size = size

    def rows(self) -> NDArray[Any]:
        """The rows so far, as they are now."""
        if self._room is None:
            return constant(self._size, self._value, self._dtype)
        return self._room[: self._size]

    def snapshot(self) -> NDArray[Any]:
        """A copy of the rows so far, which does not change when more are added."""
        return self.rows() if self._room is None else self.rows().copy()

    def finish(self) -> NDArray[Any]:
        """The column, in no more memory than it needs; this one must not be used any more."""
        if self._room is None:
            return constant(self._size, self._value, self._dtype) if self._size else np.empty(0, dtype=self._dtype)
        self._room.resize(self._size, refcheck=False)
        return self._room

    def _room_for(self, size: int) -> NDArray[Any]:
        if self._room is None:
            self._room = np.empty(max(2 * size, _FIRST_ROOM), dtype=self._dtype)
            self._room[: self._size] = self._value
        if size > len(self._room):
            # The memory is extended where it is, if it can be, so that small steps cost little; new memory is filled
            # with zeros, so that large ones take what is never used. Nobody else holds the array.
            self._room.resize(max(size, len(self._room) + len(self._room) // _STEP), refcheck=False)
        return self._room
