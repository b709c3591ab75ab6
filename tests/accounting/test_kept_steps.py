"""Kept steps read and fill in as an array does, and hold only what is neither 0 nor all of a span's steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput_cli.accounting.columns import among, codes_in
from goodput_cli.accounting.training.kept import KeptSteps
from goodput_cli.accounting.training.spans import TrainingSpans
from goodput_cli.events.rows import constant

_SPANS = st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=12)
_FILLED_IN = st.lists(st.tuples(st.integers(0, 11), st.sampled_from([0.0, 0.25, 1.0, 2.5])), max_size=6)


def column(spans: list[tuple[int, bool]]) -> tuple[KeptSteps, np.ndarray]:
    """The column of spans of so many steps, wholly kept or not, and the same as an array."""
    steps, whole = np.array([size for size, _ in spans]), np.array([kept for _, kept in spans])
    none = np.zeros(len(spans), dtype=np.int64)
    made = TrainingSpans(none, none, none, steps, none, none, None, whole)
    return KeptSteps(made, whole), np.where(whole, steps, 0.0)


@given(_SPANS, _FILLED_IN)
def test_it_is_what_an_array_is(spans: list[tuple[int, bool]], filled_in: list[tuple[int, float]]) -> None:
    kept, plain = column(spans)
    for place, steps in filled_in:
        kept[place % len(spans)] = plain[place % len(spans)] = steps
    kept[-1] = plain[-1] = 0.5
    rows = np.array([place % len(spans) for place, _ in filled_in], dtype=np.int32)
    assert kept[:].tolist() == plain.tolist()
    assert kept[1:3].tolist() == plain[1:3].tolist()
    assert kept[rows].tolist() == plain[rows].tolist()
    assert kept.some.tolist() == (plain > 0).tolist()
    assert len(kept) == len(plain)


def test_many_are_filled_in_at_once() -> None:
    kept, _ = column([(2, True)] * 5)
    kept[np.array([3, 1])] = np.array([0.5, 1.5])
    kept[np.array([1, 4])] = 0.0
    assert kept[:].tolist() == [2, 0, 2, 0.5, 0]


@given(st.lists(st.integers(0, 20)), st.lists(st.integers(0, 20)))
def test_which_rows_are_among_others(rows: list[int], known: list[int]) -> None:
    there = among(np.array(rows, dtype=np.int32), np.array(sorted(set(known)), dtype=np.intp))
    assert there.tolist() == [row in known for row in rows]


@pytest.mark.parametrize("size", [0, 1, 70_000])
def test_codes_of_a_column(size: int) -> None:
    assert codes_in(constant(size, -1)) == [-1] * (size > 0)
    assert codes_in(np.arange(size, dtype=np.int64) // 30_000) == list(range(-(-size // 30_000)))
