"""Growing columns: the appended values are returned, and one value takes no memory."""

from __future__ import annotations

import resource
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from goodput_cli.events.rows import GrowingColumn, constant, is_constant
from goodput_cli.events.schema import COLUMNS

_PIECES = st.lists(
    st.one_of(st.tuples(st.integers(1, 3000), st.integers(-1, 1)), st.lists(st.integers(-1, 9), min_size=1)), max_size=6
)


@given(_PIECES)
def test_pieces_are_returned_in_order(pieces: list[tuple[int, int] | list[int]]) -> None:
    column = GrowingColumn(np.int32)
    expected: list[int] = []
    for piece in pieces:
        added = constant(*piece) if isinstance(piece, tuple) else np.array(piece, dtype=np.int32)
        column.append(added)
        expected += added.tolist()
        assert len(column) == len(expected)
        assert column.whole().tolist() == expected
    assert column.whole().tolist() == expected


@pytest.mark.parametrize("dtype", sorted(set(COLUMNS.values()), key=str))
def test_one_value_takes_no_memory(dtype: type[np.generic]) -> None:
    column = GrowingColumn(dtype)
    for _ in range(3):
        column.append(constant(1_000_000, -1, dtype))
    whole = column.whole()
    assert is_constant(whole)
    assert (len(whole), whole.dtype) == (3_000_000, np.dtype(dtype))
    column = GrowingColumn(dtype)
    assert len(column.whole()) == 0


@pytest.mark.parametrize("first", [constant(5, 300), constant(5, -1), np.array([300, 1]), np.array([3, -1])])
def test_column_is_narrow_while_values_fit(first: NDArray[np.int32]) -> None:
    column = GrowingColumn(np.int32, np.int8)
    pieces = [first, np.arange(-128, 128, dtype=np.int32)]
    for piece in pieces:
        column.append(piece)
    narrow = column.whole().dtype
    assert narrow == (np.int8 if abs(first).max() < 128 else np.int32)
    pieces.append(np.array([128], dtype=np.int32))
    column.append(pieces[-1])
    assert column.whole().tolist() == np.concatenate(pieces).tolist()
    assert column.whole().dtype == np.int32


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux says what is resident")
def test_grown_column_takes_only_memory_of_its_rows() -> None:
    column = GrowingColumn(np.int64)
    before = resident_bytes()
    for _ in range(400):
        column.append(np.arange(10_000))
    assert resident_bytes() - before < 1.1 * column.whole().nbytes
