"""Format B, as described in docs/formats.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.logs import T0, codes, envelope, found, read_lines, rows, step, where
from tests.support.logs import recorded_steps_of as steps


def save(**more: Any) -> dict[str, Any]:
    """Return a save line without times."""
    return {"job_name": "j", "step": 5, "event_type": "save", "directory": "gs://b/c", **more}


def timed(prefix: str, start: float | None, duration: float | None) -> dict[str, Any]:
    """Return the two keys of an interval, `start` seconds after T0."""
    keys = {f"{prefix}_start_time": None if start is None else T0 + start, f"{prefix}_duration_secs": duration}
    return {key: value for key, value in keys.items() if value is not None}


WHOLE = "checkpoint_manager_blocking"
PART, WAIT = "checkpointer_blocking", "wait_for_prev"


def test_save_is_the_managers_blocking_interval(tmp_path: Path) -> None:
    log = read_lines(tmp_path, save(**timed(WHOLE, 10, 2.5), **timed(PART, 11, 30), **timed(WAIT, 0, 1)))
    assert rows(log) == [("SAVE", "INTERVAL", 10.0, 12.5)]
    assert steps(log.table) == [5]
    assert (log.format_names, log.diagnostics) == ((("orbax",),), ())


@pytest.mark.parametrize("event_type", ["restore", "emergency_restore"])
def test_restore(tmp_path: Path, event_type: str) -> None:
    log = read_lines(tmp_path, {**save(**timed("checkpoint_manager", 10, 60)), "event_type": event_type})
    assert rows(log) == [("RESTORE", "INTERVAL", 10.0, 70.0)]


def test_save_without_manager_is_the_hull_of_its_parts(tmp_path: Path) -> None:
    restore = {"job_name": "j", "step": 5, "event_type": "emergency_restore"}
    log = read_lines(
        tmp_path,
        save(**timed(WAIT, 10, 2), **timed(PART, 15, 5), **timed("get_old_steps", 11, 1)),
        {**restore, **timed("broadcast", 40, 5), **timed("checkpointer", 30, 5)},
        save(**timed(WAIT, 50, 2), **timed(PART, 55, None), **timed(WHOLE, 49, None)),
    )
    assert [row[2:] for row in rows(log)] == [(10.0, 20.0), (30.0, 45.0), (50.0, 52.0)]
    assert log.diagnostics == ()


def test_duration_without_start_ends_at_the_envelope(tmp_path: Path) -> None:
    log = read_lines(tmp_path, envelope(save(**timed(WHOLE, None, 4))), envelope(save(**timed(PART, None, 2))))
    assert [row[2:] for row in rows(log)] == [(5.5, 9.5), (7.5, 9.5)]
    assert log.diagnostics == ()


def test_duration_without_start_or_envelope_is_reported(tmp_path: Path) -> None:
    log = read_lines(
        tmp_path,
        save(**timed(WHOLE, None, 4)),
        save(**timed(WHOLE, None, 4), **timed(PART, 20, 1)),
        save(**timed(WHOLE, 30, None)),
        save(),
        envelope(save(**timed(WHOLE, None, 4)), timestamp="soon"),
    )
    assert [row[2:] for row in rows(log)] == [(20.0, 21.0)]
    assert codes(log) == {"unplaced_duration"}
    assert sorted(where(log, "unplaced_duration")) == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"step": "five"},
        timed(WHOLE, 10, -1),
        timed(WHOLE, 10, 1e300),
        timed(WHOLE, 10, 9e9),
        {**timed(WHOLE, 10, 1), f"{WHOLE}_duration_secs": "long"},
        {**timed(WHOLE, 10, 1), f"{WHOLE}_start_time": True},
    ],
)
def test_wrong_values(tmp_path: Path, wrong: dict[str, Any]) -> None:
    log = read_lines(tmp_path, step(1, 1), {**save(**timed(WHOLE, 10, 1)), **wrong}, step(2, 2))
    assert steps(log.table) == [1, 2]
    assert where(log, "bad_value") == ["2"]


def test_durations_are_rounded_to_the_microsecond(tmp_path: Path) -> None:
    text = {f"{WHOLE}_start_time": T0, f"{WHOLE}_duration_secs": "0.0000016"}
    log = read_lines(tmp_path, save(**timed(WHOLE, 0, 1.0000004)), save(**text))
    assert (log.table.end - log.table.time).tolist() == [1_000_000_000, 2_000]


def test_save_without_step_claims_time(tmp_path: Path) -> None:
    log = read_lines(tmp_path, save(step=None, **timed(WHOLE, 10, 1)))
    assert steps(log.table) == [None]


def test_details_distinguish_different_lines(tmp_path: Path) -> None:
    one = save(**timed(WHOLE, 10, 1), synchronous=True, time_between_consecutive_saves_sec=5)
    log = read_lines(
        tmp_path,
        one,
        {**dict(reversed(one.items())), "time_between_consecutive_saves_sec": "5.0", "unheard_of": 1},
        {**one, "directory": "/local"},
        {**one, "synchronous": float("nan")},
        {**one, "synchronous": float("nan")},
        {**one, "directory": {"a": [1]}},
    )
    assert log.table.detail.tolist() == [0, 0, 1, 2, 2, 3]
    assert dict(log.table.details[0])["synchronous"] is True
    assert codes(log) == {"unknown_keys"}


def test_deeply_nested_detail_is_handled(tmp_path: Path) -> None:
    deep = '{"job_name": "j", "event_type": "save", "directory": ' + "[" * 1000 + "]" * 1000
    more = f', "{WHOLE}_start_time": {T0}, "{WHOLE}_duration_secs": 1}}'
    assert len(read_lines(tmp_path, deep + more).table) == 1


def test_save_between_recorder_and_resiliency_lines(tmp_path: Path) -> None:
    started = {"timestamp": "2026-01-01T00:00:00Z", "job_name": "j", "event_type": "job_started"}
    log = read_lines(tmp_path, started, step(1, 1), save(**timed(WHOLE, 10, 1)), step(2, 20))
    assert [row[0] for row in rows(log)] == ["START", "STEP", "SAVE", "STEP"]
    assert log.format_names == (("orbax", "recorder", "resiliency"),)
    assert found(log, "unknown_keys") == []
