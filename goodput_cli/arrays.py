"""The array types that columns are made of, and the pieces in which long ones are worked on."""

from __future__ import annotations

from collections.abc import Iterator
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


def blocks(size: int, most: int = BLOCK) -> Iterator[tuple[int, int]]:
    """[start, stop) of the pieces in which a long column is worked on: what is made on the way stays in the
    processor's cache, and takes no memory to speak of."""
    return ((start, min(start + most, size)) for start in range(0, size, most))
