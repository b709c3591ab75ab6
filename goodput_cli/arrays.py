"""The array types that columns are made of, the pieces in which long ones are worked on, and no garbage collection
while they are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

import numpy as np
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
