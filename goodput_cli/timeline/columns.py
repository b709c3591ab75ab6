"""Small operations on sorted integer columns. `numpy.unique` and its kin hash or sort from scratch; what the engine
holds is sorted or nearly so, and a merge sort then costs one pass."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

_KINDS = 128


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """The distinct values, sorted."""
    ordered = np.sort(values, kind="stable")
    return ordered[run_heads(ordered)]


def union(*parts: NDArray[Any]) -> NDArray[Any]:
    """The distinct values of several columns, sorted."""
    return distinct(np.concatenate(parts))


def run_heads(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask of the places where a run of equal values begins."""
    heads = np.ones(len(values), dtype=bool)
    heads[1:] = values[1:] != values[:-1]
    return heads


def places(values: NDArray[Any], wanted: NDArray[Any], side: Literal["left", "right"] = "left") -> NDArray[np.intp]:
    """`numpy.searchsorted`, for columns that are sorted both: a count instead of a search for each one wanted."""
    if len(values) * 4 > len(wanted) or not is_sorted(wanted):
        return np.searchsorted(values, wanted, side)
    first_behind = np.searchsorted(wanted, values, "right" if side == "left" else "left")
    return np.cumsum(np.bincount(first_behind, minlength=len(wanted) + 1)[: len(wanted)])


def is_sorted(values: NDArray[Any]) -> bool:
    """Whether a column rises or stays from row to row."""
    return bool(np.all(values[1:] >= values[:-1]))


def without(rows: NDArray[np.intp], left_out: NDArray[np.intp], size: int) -> NDArray[np.intp]:
    """The rows (positions below `size`) that are not among `left_out`, in their order."""
    if len(left_out) == 0:
        return rows
    out = np.zeros(size, dtype=bool)
    out[left_out] = True
    return rows[~out[rows]]


def of_kind(kind: NDArray[np.int8], kinds: Iterable[int]) -> NDArray[np.bool_]:
    """Mask of the rows whose kind is one of `kinds`."""
    table = np.zeros(_KINDS, dtype=bool)
    table[list(kinds)] = True
    return table[kind]


def rows_of(kind: NDArray[np.int8], kinds: Iterable[int]) -> NDArray[np.intp]:
    """The rows whose kind is one of `kinds`, in order."""
    return np.flatnonzero(of_kind(kind, kinds))
