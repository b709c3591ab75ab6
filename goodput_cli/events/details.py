"""What events say beyond the columns, each once: a save of Orbax says a dozen things, most of them as no other does.

Numbers for values that come again and again: a column holds the number, and each value is held once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Generic, TypeVar, overload

import numpy as np
import orjson
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


Detail = tuple[Any, ...]
_BLANK = b" "


class Details(Interner[Detail]):
    """Numbers distinct details. Pairs of keys and values are held as the text of the values where that can be: a fifth
    of the memory of their tuples."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: Interner[tuple[str, ...]] = Interner()

    def codes_of_pairs(self, keys: tuple[str, ...], values: Sequence[tuple[Any, ...]]) -> NDArray[np.int32]:
        """int32[n]: the number of each detail of pairs: these keys with its values, which are texts, truth values and
        finite numbers, and no float is a whole number."""
        shape = b"%d " % self._keys.code(keys)
        packed: list[Any] = [_packed(shape, keys, one) for one in values]
        return self.codes(packed)

    def values(self) -> Sequence[Detail]:  # type: ignore[override]
        """All details, in order of their numbers."""
        return DetailList(super().values(), self._keys.values())


class DetailList(Sequence[Detail]):
    """Details, each made when it is read."""

    def __init__(self, held: tuple[Detail | bytes, ...], keys: tuple[tuple[str, ...], ...]) -> None:
        self._held, self._keys = held, keys

    def __len__(self) -> int:
        return len(self._held)

    @overload
    def __getitem__(self, at: int) -> Detail: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Detail]: ...
    def __getitem__(self, at: int | slice) -> Detail | Sequence[Detail]:
        """One of them, or a part."""
        held = self._held[at]
        if isinstance(at, slice):
            return DetailList(held, self._keys)  # type: ignore[arg-type]
        if not isinstance(held, bytes):
            return held
        shape, _, values = held.partition(_BLANK)
        return tuple(zip(self._keys[int(shape)], orjson.loads(values), strict=True))


def _packed(shape: bytes, keys: tuple[str, ...], values: tuple[Any, ...]) -> Detail | bytes:
    try:
        return shape + orjson.dumps(values)
    except TypeError:  # lone surrogates, integers of more than 64 bits
        return tuple(zip(keys, values, strict=True))
