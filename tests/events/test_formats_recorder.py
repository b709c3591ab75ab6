"""Format A and numbers in general, as described in docs/formats.md."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput_cli.events.schema import NONE
from goodput_cli.events.values import MAX_SECONDS, epoch_column, epoch_ns, round_to_us, whole_column, whole_number
from tests.support.logs import SECOND, T0, codes, found, lines, read_lines, rows, step, where
from tests.support.logs import recorded_steps_of as steps

FACTS = [
    ("job_start_time", "START", "POINT"),
    ("job_end_time", "JOB_END", "POINT"),
    ("tpu_init_start_time", "TPU_INIT", "BEGIN"),
    ("tpu_init_end_time", "TPU_INIT", "END"),
    ("training_prep_start_time", "PREP", "BEGIN"),
    ("training_prep_end_time", "PREP", "END"),
    ("data_loading_start_time", "DATA", "BEGIN"),
    ("data_loading_end_time", "DATA", "END"),
    ("elastic_reinit_start_time", "ELASTIC_REINIT", "BEGIN"),
    ("elastic_reinit_end_time", "ELASTIC_REINIT", "END"),
]


@pytest.mark.parametrize(("key", "kind", "edge"), FACTS)
def test_facts(tmp_path: Path, key: str, kind: str, edge: str) -> None:
    log = read_lines(tmp_path, {"job_name": "j", key: T0 + 2.5})
    assert rows(log) == [(kind, edge, 2.5, 2.5)]
    assert steps(log.table) == [None]
    assert log.table.rank.tolist() == log.table.label.tolist() == log.table.detail.tolist() == [NONE]
    assert (log.table.jobs, log.format_names, log.diagnostics) == (("j",), (("recorder",),), ())


def test_step(tmp_path: Path) -> None:
    log = read_lines(tmp_path, step(500, 7))
    assert rows(log) == [("STEP", "POINT", 7.0, 7.0)]
    assert steps(log.table) == [500]


def test_custom_event_label_is_upper_case(tmp_path: Path) -> None:
    key = "custom_badput_event"
    log = read_lines(
        tmp_path,
        {"job_name": "j", f"{key}_type": "eval_step", f"{key}_start_time": T0},
        {"job_name": "j", f"{key}_type": "Eval_Step", f"{key}_end_time": T0 + 1},
        {"job_name": "j", f"{key}_start_time": T0 + 2},
        {"job_name": "j", f"{key}_type": "", f"{key}_end_time": T0 + 3},
    )
    assert [row[:2] for row in rows(log)] == [("CUSTOM", "BEGIN"), ("CUSTOM", "END")] * 2
    labels = [log.table.labels[code] for code in log.table.label]
    assert labels == ["EVAL_STEP", "EVAL_STEP", "UNKNOWN", "UNKNOWN"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("scale_up", "ELASTIC_UP"),
        ("Await_SCALE_UP_2", "ELASTIC_UP"),
        ("slice_down", "ELASTIC_DOWN"),
        (None, "ELASTIC_DOWN"),
    ],
)
def test_elastic_waits(tmp_path: Path, name: str | None, kind: str) -> None:
    more = {"elastic_wait_event_type": name}
    log = read_lines(tmp_path, {"job_name": "j", "elastic_wait_start_time": T0, **more})
    assert rows(log) == [(kind, "BEGIN", 0.0, 0.0)]
    assert log.table.labels == ((name or "unknown").upper(),)


def test_slices(tmp_path: Path) -> None:
    key = "elastic_slice_counts_timestamp"
    log = read_lines(
        tmp_path,
        {"job_name": "j", "active_slices": 3, "total_slices": 4.0, "available_slices": "4", key: T0 + 1},
        {"job_name": "j", "active_slices": 3, "total_slices": 4, key: T0 + 2},
        {"job_name": "j", "active_slices": 2.5, "total_slices": 4, key: T0 + 3},
    )
    assert [row[0] for row in rows(log)] == ["SLICES", "SLICES"]
    assert [log.table.details[code] for code in log.table.detail] == [(3, 4, 4), (3, 4, None)]
    assert where(log, "bad_value") == ["3"]


def test_several_facts_in_a_line_give_several_rows(tmp_path: Path) -> None:
    both = {"job_name": "j", "tpu_init_end_time": T0 + 9, "tpu_init_start_time": T0 + 4}
    log = read_lines(tmp_path, step(1, 1), both, step(2, 20))
    assert [row[:3] for row in rows(log)[1:3]] == [("TPU_INIT", "BEGIN", 4.0), ("TPU_INIT", "END", 9.0)]
    assert lines(log.table) == [1, 2, 2, 3]


def test_null_is_absent(tmp_path: Path) -> None:
    everything = dict.fromkeys([key for key, _, _ in FACTS] + ["event_type", "timestamp", "jsonPayload"])
    log = read_lines(tmp_path, {**everything, **step(3, 1)}, {**everything, "job_name": "j"})
    assert [row[0] for row in rows(log)] == ["STEP"]
    assert where(log, "unrecognised_lines") == ["2"]


@pytest.mark.parametrize("number", [500, 500.0, "500", "500.0", " 500 ", "5e2"])
def test_whole_number_accepts_all_spellings(tmp_path: Path, number: Any) -> None:
    assert steps(read_lines(tmp_path, step(number, 1)).table) == [500]


@pytest.mark.parametrize("number", [500.5, True, "abc", "", "5_00", [500], {}, "nan", "inf", 1e300, 1 << 63, "9" * 500])
def test_whole_number_rejects_other_values(tmp_path: Path, number: Any) -> None:
    log = read_lines(tmp_path, step(1, 1), step(number, 2), step(3, 3))
    assert steps(log.table) == [1, 3]
    assert where(log, "bad_value") == ["2"]


@pytest.mark.parametrize("time", ["1767225600", "1767225600.0", "1.7672256e9", T0, float(T0)])
def test_time_accepts_all_spellings(tmp_path: Path, time: Any) -> None:
    log = read_lines(tmp_path, {"job_name": "j", "job_start_time": time})
    assert log.table.time.tolist() == [T0 * SECOND]


@pytest.mark.parametrize(
    "time",
    [
        "NaN",
        "Infinity",
        "1e300",
        "-1",
        "-1e-9",
        "1e400",
        "true",
        '"soon"',
        '"nan"',
        "[]",
        "{}",
        "99999999999",
        "1" * 400,
    ],
)
def test_absurd_times_are_rejected(tmp_path: Path, time: str) -> None:
    log = read_lines(tmp_path, step(1, 1), '{"job_name": "j", "job_start_time": ' + time + "}", step(2, 2))
    assert steps(log.table) == [1, 2]
    assert where(log, "bad_value") == ["2"]
    assert found(log, "bad_value")[0].severity == "error"


def test_time_zero_is_valid(tmp_path: Path) -> None:
    assert read_lines(tmp_path, {"job_name": "j", "job_start_time": 0}).table.time.tolist() == [0]


@pytest.mark.parametrize(("factor", "unit"), [(10**3, "milliseconds"), (10**6, "microseconds"), (10**9, "nanoseconds")])
def test_other_units_are_reported(tmp_path: Path, factor: int, unit: str) -> None:
    log = read_lines(tmp_path, {"job_name": "j", "job_start_time": T0 * factor})
    assert f"looks like {unit}" in found(log, "bad_value")[0].message


def test_step_time_without_a_step_is_reported(tmp_path: Path) -> None:
    log = read_lines(tmp_path, {"job_name": "j", "step_start_time": T0})
    assert (len(log.table), where(log, "bad_value")) == (0, ["1"])


def test_bad_fact_does_not_affect_others_of_its_line(tmp_path: Path) -> None:
    log = read_lines(tmp_path, {"job_name": "j", "tpu_init_start_time": "x", "tpu_init_end_time": T0})
    assert rows(log) == [("TPU_INIT", "END", 0.0, 0.0)]
    assert where(log, "bad_value") == ["1"]


def test_unknown_keys_are_ignored_and_counted(tmp_path: Path) -> None:
    log = read_lines(tmp_path, step(1, 1), {**step(2, 2), "host": "a", "node_rank": 3}, {**step(3, 3), "host": "b"})
    assert steps(log.table) == [1, 2, 3]
    told = {one.message: (one.count, one.severity) for one in found(log, "unknown_keys")}
    assert told == {
        "unknown key host; ignored": (2, "info"),
        "unknown key node_rank; ignored": (1, "info"),
    }


def test_unlimited_unknown_keys_are_handled(tmp_path: Path) -> None:
    many = [{f"key-{at}": at, **step(at, at)} for at in range(300)]
    shuffled = [dict(sorted(record.items(), key=lambda item: hash((item[0], at)))) for at, record in enumerate(many)]
    log = read_lines(tmp_path, *shuffled)
    assert steps(log.table) == list(range(300))
    unknown = found(log, "unknown_keys")
    assert sum(one.count for one in unknown) == 300
    assert len(unknown) == 51
    assert codes(log) == {"unknown_keys"}


def test_jobs_are_in_order_of_first_appearance(tmp_path: Path) -> None:
    save = {"job_name": "b", "event_type": "save", "checkpoint_manager_blocking_start_time": T0}
    save["checkpoint_manager_blocking_duration_secs"] = 1
    log = read_lines(tmp_path, step("x", 0, job="lost"), step(1, 1, job="b"), step(1, 1, job="a"), save)
    assert log.table.jobs == ("b", "a")
    assert log.table.job.tolist() == [0, 1, 0]
    assert log.format_names == (("orbax", "recorder"), ("recorder",))


@given(st.lists(st.floats(0, float(MAX_SECONDS), exclude_max=True) | st.integers(0, MAX_SECONDS - 1), max_size=20))
def test_times_are_rounded_half_to_even_exactly(seconds: list[float]) -> None:
    ns, good = epoch_column(seconds)
    assert ns.tolist() == [round(Fraction(one) * 1_000_000) * 1000 for one in seconds]
    assert good.all()


def test_halves_round_to_the_even_microsecond() -> None:
    assert [round_to_us(half / 2**21) for half in (1, 3)] == [0, 1000]  # 0.4768 and 1.4305 microseconds
    assert [round_to_us(Fraction(odd, 2_000_000)) for odd in (1, 3, 5)] == [0, 2000, 2000]  # type: ignore[arg-type]
    ns, _ = epoch_column([8192 + 2**-7, 5e-7, 2.5e-6])
    assert ns.tolist() == [round(Fraction(one) * 1_000_000) * 1000 for one in (8192 + 2**-7, 5e-7, 2.5e-6)]


_ANYTHING = st.one_of(
    st.integers(-(1 << 70), 1 << 70), st.floats(), st.booleans(), st.text(max_size=5),
    st.integers(-5, 1 << 40).map(str), st.floats(-5, 1e10).map(str), st.lists(st.none(), max_size=1),
)  # fmt: skip


@given(st.lists(_ANYTHING, max_size=8))
def test_column_equals_single_readings(values: list[Any]) -> None:
    for column, single in ((epoch_column, epoch_ns), (whole_column, whole_number)):
        numbers, good = column(values)
        assert [int(n) if g else None for n, g in zip(numbers, good, strict=True)] == [single(one) for one in values]
        assert numbers.dtype == np.int64
