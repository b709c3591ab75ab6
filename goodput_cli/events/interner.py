"""Numbers for values that come again and again: a column holds the number, and each value is held once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from goodput_cli.events.growing import constant

T = TypeVar("T", bound=Hashable)


class Interner(Generic[T]):
    """Numbers distinct values from 0 in the order in which they come."""

    def __init__(self) -> None:
        self._codes: dict[T, int] = {}

    def code(self, value: T) -> int:
        """The number of a value."""
        return self._codes.setdefault(value, len(self._codes))

    def codes(self, values: Sequence[T]) -> NDArray[np.int32]:
        """int32[n]: the number of each value."""
        known = self._codes
        codes = np.array([known.setdefault(value, len(known)) for value in values], dtype=np.int32)
        return constant(len(codes), int(codes[0])) if len(codes) and (codes == codes[0]).all() else codes

    def values(self) -> tuple[T, ...]:
        """All values, in order of their numbers."""
        return tuple(self._codes)
