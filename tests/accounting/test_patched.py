"""A column that is another but in a few rows is read and filled in as an array is."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput_cli import arrays
from goodput_cli.accounting.build import build_timeline
from goodput_cli.accounting.rules import Rules
from goodput_cli.analysis.account import analyze_log, pick_ordered
from goodput_cli.analysis.question import make_question
from goodput_cli.arrays import Patched, patched
from goodput_cli.events.read import read_events
from goodput_cli.events.schema import COLUMNS, lasting
from loggen.scenario import Scenario
from loggen.write import log_bytes

SIZE = 12
_ROWS = st.lists(st.integers(0, SIZE - 1), unique=True, max_size=5).map(sorted)


def columns(rows: list[int]) -> tuple[Patched, np.ndarray]:
    """The column whose rows are 0, 10, 20, ... but for some that have 1000, 1001, ..., and the same as an array."""
    plain = np.arange(SIZE) * 10
    own = 1000 + np.arange(len(rows))
    column = Patched(plain.copy(), np.array(rows, dtype=np.intp), own)
    plain[rows] = own
    return column, plain


@given(_ROWS, st.lists(st.integers(-SIZE, SIZE - 1)), st.slices(SIZE), st.integers(0, 5))
def test_it_is_what_an_array_is(rows: list[int], wanted: list[int], part: slice, many: int) -> None:
    column, plain = columns(rows)
    mask = plain % 3 == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "_MANY", many)
        assert column[np.array(wanted, dtype=np.int32)].tolist() == plain[np.array(wanted, dtype=int)].tolist()
        assert column[part].tolist() == plain[part].tolist()
        assert column[mask].tolist() == plain[mask].tolist()
    assert [int(column[at]) for at in range(-SIZE, SIZE)] == [int(plain[at]) for at in range(-SIZE, SIZE)]
    assert (column - plain).tolist() == [0] * SIZE
    assert (np.maximum(column, 15) == np.maximum(plain, 15)).all()
    assert np.sort(column).tolist() == sorted(plain.tolist())
    assert (column.tolist(), int(column.sum())) == (plain.tolist(), int(plain.sum()))
    assert (column.max(), len(column), column.shape) == (plain.max(), SIZE, (SIZE,))


@given(_ROWS, st.lists(st.tuples(st.integers(-SIZE, SIZE - 1), st.integers(0, 9)), max_size=5), st.slices(SIZE))
def test_it_is_filled_in_as_an_array_is(rows: list[int], filled_in: list[tuple[int, int]], part: slice) -> None:
    column, plain = columns(rows)
    before, unchanged = column.copy(), plain.copy()
    for place, value in filled_in:
        column[place] = plain[place] = value
    column[part] = plain[part] = 7
    column[np.array([3, 1])] = plain[np.array([3, 1])] = np.array([8, 9])
    assert column[:].tolist() == plain.tolist()
    assert before[:].tolist() == unchanged.tolist()


@given(_ROWS, st.permutations(range(SIZE)), st.lists(st.booleans(), min_size=SIZE, max_size=SIZE))
def test_of_some_rows_it_has_the_patches_of_those(rows: list[int], order: list[int], mask: list[bool]) -> None:
    column, plain = columns(rows)
    for chosen in (np.array(order), np.array(order[:5]), np.array(mask)):
        places, own = column.patches_of(chosen)
        assert Patched(column.column[chosen], places, own)[:].tolist() == plain[chosen].tolist()


def test_short_columns_and_those_with_many_patches_are_arrays() -> None:
    long = np.zeros(1 << 16, dtype=np.int64)
    few, many = np.arange(1 << 14), np.arange((1 << 14) + 1)
    assert type(patched(long[1:], few, few)) is np.ndarray
    assert type(patched(long, many, many)) is np.ndarray
    assert type(patched(long, few, few)) is Patched


def test_a_log_of_many_lines_is_accounted_for_as_one_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    text, _ = log_bytes(Scenario(seed=5, lines=2000, disruption_every=40, eval_every=7, save_every=5))
    log = read_events(["-"], stdin=io.BytesIO(text))
    plain = analyze_log(log, make_question())
    monkeypatch.setattr("goodput_cli.arrays._LONG", 0)
    monkeypatch.setattr("goodput_cli.arrays._MANY", 3)
    again = read_events(["-"], stdin=io.BytesIO(text))
    timeline = build_timeline(pick_ordered(again, None)[0], Rules())
    assert timeline is not None
    columns = (again.table.end, timeline.training.spans.end, timeline.training.spans.stop, timeline.kept_training.end)
    assert {type(column) for column in columns} == {Patched}
    assert analyze_log(again, make_question()).to_dict() == plain.to_dict()
    assert lasting(again.table.time, again.table.end).tolist() == lasting(log.table.time, log.table.end).tolist()
    order = np.random.default_rng(1).permutation(len(log.table))
    mixed, expected = again.table.take(order), log.table.take(order)
    assert type(mixed.end) is Patched
    for name in COLUMNS:
        assert np.array_equal(getattr(mixed, name), getattr(expected, name)), name
