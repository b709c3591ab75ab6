"""The engine on long logs: its memory and copies, and equal results for work in parts. No test measures time."""

from __future__ import annotations

import gc
import io
import tracemalloc
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from goodput_cli.accounting.build import Timeline, build_timeline
from goodput_cli.accounting.columns import (
    SparseColumn,
    codes_in,
    is_among,
    owner_type,
    row_type,
    search,
    search_within,
)
from goodput_cli.accounting.options import AccountingOptions
from goodput_cli.accounting.order import in_order
from goodput_cli.accounting.segments import partition
from goodput_cli.analysis.account import analyze_log, pick_job
from goodput_cli.analysis.question import make_question
from goodput_cli.events.read import read_events
from goodput_cli.events.rows import constant
from goodput_cli.events.schema import COLUMNS, EventLog, EventTable
from loggen.scenario import Scenario
from loggen.write import log_bytes

SORTED = st.lists(st.integers(0, 300), max_size=300).map(sorted)


def log_of(**scenario: object) -> EventLog:
    text, _ = log_bytes(replace(Scenario(seed=5), **scenario))  # type: ignore[arg-type]
    return read_events(["-"], stdin=io.BytesIO(text))


def timeline_of(log: EventLog) -> Timeline:
    made = build_timeline(in_order(pick_job(log, None)[0]), AccountingOptions())
    assert made is not None
    return made


def shuffled(table: EventTable) -> EventTable:
    return table.take(np.random.default_rng(1).permutation(len(table)))


def test_log_in_order_is_not_copied() -> None:
    table = in_order(log_of(lines=2000).table).table
    assert in_order(table).table is table


def test_log_out_of_order_is_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table = shuffled(log_of(lines=2000).table)
    copied: list[int] = []
    take = EventTable.take

    def counting(self: EventTable, rows: NDArray[Any]) -> EventTable:
        copied.append(len(rows))
        return take(self, rows)

    monkeypatch.setattr(EventTable, "take", counting)
    in_order(table)
    assert copied.count(len(table)) == 1


def test_log_as_read_is_released_during_accounting() -> None:
    log = log_of(lines=2000)
    table = shuffled(log.table)
    column = weakref.ref(table.time)
    held = [EventLog(table, log.formats)]
    del log, table
    analysis = analyze_log(held.pop(), make_question())
    gc.collect()
    assert analysis.job.attempts > 1
    assert column() is None


def test_memory_per_line_is_bounded() -> None:
    log = log_of(lines=300_000, disruption_every=2000)
    size = len(log.table)
    tracemalloc.start()
    try:
        analysis = analyze_log(log, make_question())
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert analysis.job.attempts > 50
    assert held / size < 105
    assert most / size < 140


@pytest.mark.parametrize("at_once", [1, 2, 7, 64])
@pytest.mark.parametrize("job", ["steps", "checkpoints"])
def test_segments_do_not_depend_on_part_borders(at_once: int, job: str) -> None:
    model = {} if job == "steps" else {"model": "resiliency"}
    timeline = timeline_of(log_of(lines=1500, disruption_every=40, eval_every=7, save_every=5, **model))
    whole = timeline.segments
    begin = timeline.attempts.begin
    dead_time = timeline.training.spans.latest_end(begin)[:-1], begin[1:]
    some = dead_time[0] < dead_time[1]
    again = partition(
        whole.claims,
        timeline.kept_training.claimed_time,
        timeline.kept_training,
        (dead_time[0][some], dead_time[1][some]),
        timeline.start,
        timeline.end,
        at_once,
    )
    assert len(whole) > 100
    for name in ("edges", "category", "holder"):
        assert np.array_equal(getattr(again, name), getattr(whole, name)), name


def test_compacted_table_has_the_same_events() -> None:
    table = log_of(lines=2000).table
    compact = table.compacted()
    assert compact.line.dtype == np.int32
    assert compact.label.dtype == np.int8
    assert compact.source.strides == (0,)
    for name in COLUMNS:
        assert np.array_equal(getattr(compact, name), getattr(table, name)), name


def test_line_numbers_keep_64_bits_if_needed() -> None:
    table = log_of(lines=100).table
    far = replace(table, line=table.line.astype(np.int64) + (1 << 33))
    assert far.compacted().where(0) == f"stdin:{int(table.line[0]) + (1 << 33)}"


@pytest.mark.parametrize("number", [1 << 31, 1 << 50, -(1 << 40), (1 << 60) - 4])
def test_step_numbers_beyond_32_bits_are_exact(number: int) -> None:
    lines = [
        f'{{"job_name": "j", "step_count": {number + n}, "step_start_time": {1767225600 + 10 * n}}}' for n in range(5)
    ]
    log = read_events(["-"], stdin=io.BytesIO("\n".join(lines).encode()))
    analysis = analyze_log(log, make_question())
    assert (analysis.job.first_step, analysis.job.last_step) == (number, number + 3)  # the fifth is in progress
    assert analysis.steps.median_seconds == 10


def test_rows_and_owners_use_the_smallest_type() -> None:
    assert row_type((1 << 31) - 1) is np.int32
    assert row_type(1 << 31) is np.int64
    assert owner_type(99) is np.int8
    assert owner_type(100) is np.int16
    assert owner_type((1 << 15) - 1) is np.int16
    assert owner_type(1 << 15) is np.int32


@given(SORTED, SORTED, st.sampled_from(["left", "right"]), st.sampled_from([1, 40]))
def test_search_of_narrow_columns_equals_searchsorted(
    values: list[int], wanted: list[int], side: str, times: int
) -> None:
    column, asked = np.array(values, dtype=np.int64), np.repeat(np.array(wanted, dtype=np.int64), 20 * times)
    expected = np.searchsorted(column, asked, side)  # type: ignore[call-overload]
    assert np.array_equal(search(column.astype(np.int16), asked, side), expected)  # type: ignore[arg-type]


@given(SORTED, st.data())
def test_search_within_a_part_equals_searchsorted(values: list[int], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(values)))
    stop = data.draw(st.integers(start, len(values)))
    wanted = data.draw(st.integers(-1, 301))
    found = search_within(np.array(values), np.array([start]), np.array([stop]), np.array([wanted]))
    assert found.tolist() == [start + int(np.searchsorted(values[start:stop], wanted, "right"))]


@given(st.lists(st.integers(0, 20)), st.lists(st.integers(0, 20)))
def test_among_marks_rows_in_another_column(rows: list[int], known: list[int]) -> None:
    there = is_among(np.array(rows, dtype=np.int32), np.array(sorted(set(known)), dtype=np.intp))
    assert there.tolist() == [row in known for row in rows]


@pytest.mark.parametrize("size", [0, 1, 70_000])
def test_codes_in_returns_distinct_values(size: int) -> None:
    assert codes_in(constant(size, -1)) == [-1] * (size > 0)
    assert codes_in(np.arange(size, dtype=np.int64) // 30_000) == list(range(-(-size // 30_000)))


def test_sparse_column_returns_amounts() -> None:
    column = SparseColumn(np.array([3, 7]), np.array([30, 70]))
    assert column.at(np.array([2, 3, 7, 8])).tolist() == [0, 30, 70, 0]
    rows, amount = column.part(4, 9)
    assert (rows.tolist(), amount.tolist()) == ([3], [70])


def test_disruptions_are_a_sequence() -> None:
    found = analyze_log(log_of(lines=3000, disruption_every=40), make_question()).disruptions
    rows = list(found)
    assert len(rows) == len(found) > 20
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    assert found[-1] == rows[-1]
    assert found[2:5] == tuple(rows[2:5])
