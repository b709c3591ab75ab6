"""Arrow arrays from columns and texts, and back, buffer by buffer.

`pyarrow.array` and `Array.to_numpy` import pandas, should somebody want it: half a second and 40 MB, in every worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goodput_cli.vocabulary.text import well_formed


def numbers(values: NDArray[Any] | Sequence[float], kind: type[np.generic] = np.int64) -> Any:
    """A column of numbers without nulls, of the NumPy type `kind`."""
    column = np.ascontiguousarray(values, dtype=kind)
    return pa.Array.from_buffers(pa.from_numpy_dtype(column.dtype), len(column), [None, pa.py_buffer(column)])


def maybe(values: Sequence[int | None]) -> Any:
    """A column of int64 with nulls."""
    column = np.array([0 if value is None else value for value in values], dtype=np.int64)
    return pa.Array.from_buffers(pa.int64(), len(column), [_validity(values), pa.py_buffer(column)])


def booleans(values: Sequence[bool]) -> Any:
    """A column of truth values."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, _bits(values)])


def texts(values: Sequence[str | None]) -> Any:
    """A column of texts; lone surrogates are replaced."""
    encoded = [b"" if value is None else well_formed(value).encode() for value in values]
    ends = np.array([0, *accumulate(map(len, encoded))], dtype=np.int32)
    buffers = [_validity(values), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def fixed(values: Sequence[bytes], size: int) -> Any:
    """A column of byte strings of one size."""
    return pa.Array.from_buffers(pa.binary(size), len(values), [None, pa.py_buffer(b"".join(values))])


def coded(codes: NDArray[Any], kind: type[np.generic], names: Sequence[str]) -> Any:
    """A column of texts by their positions in `names`; null below 0."""
    column = np.ascontiguousarray(codes, dtype=kind)
    known = column >= 0
    buffers = [_bits(known) if not known.all() else None, pa.py_buffer(np.maximum(column, 0))]
    indices = pa.Array.from_buffers(pa.from_numpy_dtype(column.dtype), len(column), buffers)
    return pa.DictionaryArray.from_arrays(indices, texts(names))


def lists(lengths: Sequence[int], flat: Any) -> Any:
    """Lists of so many items each, of all items behind one another."""
    return pa.ListArray.from_arrays(numbers([0, *accumulate(lengths)], np.int32), flat)


def structs(fields: dict[str, Any]) -> Any:
    """Objects with these columns as fields."""
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields))


def column(array: Any, kind: type[np.generic] = np.int64) -> NDArray[Any]:
    """The numbers of a column, of the NumPy type `kind`; anything where there is none."""
    _, values = array.buffers()
    whole = np.frombuffer(values if values is not None else b"", dtype=kind)
    return whole[array.offset : array.offset + len(array)]


def codes(array: Any, kind: type[np.generic]) -> NDArray[np.int64]:
    """The positions behind a column of coded texts; -1 where there is none."""
    indices = column(array.indices, kind).astype(np.int64)
    valid, _ = array.indices.buffers()
    if valid is not None:
        bits = np.unpackbits(np.frombuffer(valid, dtype=np.uint8), bitorder="little")
        indices[bits[array.offset : array.offset + len(array)] == 0] = -1
    return indices


def _validity(values: Sequence[Any]) -> Any:
    known = [value is not None for value in values]
    return None if all(known) else _bits(known)


def _bits(values: Sequence[bool] | NDArray[np.bool_]) -> Any:
    return pa.py_buffer(np.packbits(np.asarray(values, dtype=np.bool_), bitorder="little"))
