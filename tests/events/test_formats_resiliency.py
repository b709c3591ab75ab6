"""Format C and its timestamps, as described in docs/formats.md."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput_cli.errors import UsageError
from goodput_cli.events.schema import NONE
from goodput_cli.events.timestamps import TimestampReader
from goodput_cli.vocabulary.when import load_zone
from tests.support.logs import SECOND, T0, found, read_lines, rows, where
from tests.support.logs import recorded_steps_of as steps


def event(kind: Any, timestamp: Any = "2026-01-01T00:00:01Z", **more: Any) -> dict[str, Any]:
    """Return a line of format C."""
    return {"timestamp": timestamp, "job_name": "j", "event_type": kind, **more}


KINDS = [
    ("user_scheduled", "SCHEDULED"),
    ("job_started", "START"),
    ("checkpoint_loaded", "LOAD"),
    ("checkpoint_saved", "SAVED"),
    ("step_finished", "FINISHED"),
    ("job_terminated", "TERMINATED"),
    ("job_crashed", "CRASHED"),
    ("user_terminated", "USER_TERMINATED"),
    ("job_finished", "JOB_FINISHED"),
]


@pytest.mark.parametrize(("event_type", "kind"), KINDS)
def test_kinds(tmp_path: Path, event_type: str, kind: str) -> None:
    log = read_lines(tmp_path, event(event_type, step=7, node_rank=3))
    assert rows(log) == [(kind, "POINT", 1.0, 1.0)]
    assert steps(log.table) == [7]
    assert log.table.rank.tolist() == [3]
    assert (log.format_names, log.diagnostics) == ((("resiliency",),), ())


def test_optional_keys_may_be_missing(tmp_path: Path) -> None:
    log = read_lines(tmp_path, event("job_started"), event("checkpoint_saved"), event("job_crashed", step=None))
    assert [row[0] for row in rows(log)] == ["START", "CRASHED"]
    assert log.table.rank.tolist() == [NONE, NONE]
    assert steps(log.table) == [None, None]
    assert where(log, "bad_value") == ["2"]


def test_event_with_wrong_rank_is_kept(tmp_path: Path) -> None:
    log = read_lines(tmp_path, *[event("job_started", node_rank=rank) for rank in (1, -1, "x", 1 << 40, "2", 3.0)])
    assert log.table.rank.tolist() == [1, NONE, NONE, NONE, 2, 3]
    assert where(log, "bad_value") == ["2", "3", "4"]


def test_unknown_event_types_are_counted_by_name(tmp_path: Path) -> None:
    log = read_lines(tmp_path, event("job_started"), event("coffee"), event("tea", step="x"), event("coffee"))
    assert [row[0] for row in rows(log)] == ["START"]
    assert [(one.count, "coffee" in one.message) for one in found(log, "unknown_event")] == [(2, True), (1, False)]


def test_unlimited_event_types_are_handled(tmp_path: Path) -> None:
    log = read_lines(tmp_path, *[event(f"type {at}") for at in range(200)], event("x" * 10_000))
    unknown = found(log, "unknown_event")
    assert sum(one.count for one in unknown) == 201
    assert len(unknown) == 51
    assert max(len(one.message) for one in unknown) < 200


@pytest.mark.parametrize("kind", [5, None, ["job_started"], {}])
def test_event_type_that_is_not_text_is_reported(tmp_path: Path, kind: Any) -> None:
    log = read_lines(tmp_path, event("job_started"), event(kind), event("job_finished"))
    assert [row[0] for row in rows(log)] == ["START", "JOB_FINISHED"]
    assert where(log, "unrecognised_lines") == ["2"]


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("2026-01-01T00:00:01", 1_000_000_000),
        ("2026-01-01 00:00:01Z", 1_000_000_000),
        ("2026-01-01T00:00:01.5Z", 1_500_000_000),
        ("2026-01-01T00:00:01.123456", 1_123_456_000),
        ("2026-01-01T00:00:01.123456789Z", 1_123_456_789),
        ("2026-01-01T00:00:01.1234567Z", 1_123_456_700),
        ("2026-01-01T00:00:01.000000001+00:00", 1_000_000_001),
        ("2026-01-01T05:30:01+05:30", 1_000_000_000),
        ("2026-01-01T05:30:01+0530", 1_000_000_000),
        ("2025-12-31T16:00:01.25-08:00", 1_250_000_000),
        ("2026-01-01T00:00:01z", 1_000_000_000),
        ("2026-01-01 00:00:01.5 UTC", 1_500_000_000),
        ("20260101T000001", 1_000_000_000),
        ("2026-01-01T00:00", 0),
        ("2026-01-01T00:00:01.12345678901Z", 1_123_456_789),
    ],
)
def test_timestamps_are_exact(tmp_path: Path, text: str, ns: int) -> None:
    log = read_lines(tmp_path, event("job_started", text))
    assert log.table.time.tolist() == [T0 * SECOND + ns]


@pytest.mark.parametrize(
    "text",
    [
        *("", "soon", "2026-01-01", "2026-13-01T00:00:00", "2026-02-30T00:00:00Z", "2026-01-01T24:00:01"),
        *("1969-12-31T23:59:59", "2255-01-01T00:00:00", "2026-01-01T00:00:60", "2026-01-01T00:00:01 PST"),
        *("\uff12026-01-01T00:00:00", "9999-12-31T23:59:59-08:00", "0001-01-01T00:00:00+08:00", "2026-01-01X00:00:00"),
        *(1767225600, True, []),
    ],
)
def test_invalid_timestamps_are_rejected(tmp_path: Path, text: Any) -> None:
    log = read_lines(tmp_path, event("job_started"), event("job_finished", text), event("job_crashed"))
    assert [row[0] for row in rows(log)] == ["START", "CRASHED"]
    assert where(log, "bad_value") == ["2"]


def test_times_without_a_zone_are_local_time(tmp_path: Path) -> None:
    texts = ["2026-01-01T01:00:00", "2026-01-01T01:00:00.5", "2026-01-01T00:00:02Z", "2026-01-01 01:00"]
    log = read_lines(tmp_path, *[event("job_started", text) for text in texts], timezone="Europe/Berlin")
    assert [row[2] for row in rows(log)] == [0.0, 0.5, 2.0, 0.0]
    (naive,) = found(log, "naive_timestamps")
    assert (naive.severity, naive.count) == ("info", 3)
    assert "read as Europe/Berlin; --timezone sets" in naive.message
    assert where(log, "naive_timestamps") == ["1", "2", "4"]


def test_repeated_and_skipped_hours_are_reported(tmp_path: Path) -> None:
    texts = [
        "2026-10-25T01:59:59",
        "2026-10-25T02:00:00",
        "2026-10-25T02:59",
        "2026-10-25T03:00:00",
        "2026-03-29T02:30:00",
    ]
    log = read_lines(tmp_path, *[event("job_started", text) for text in texts], timezone="Europe/Berlin")
    expected = [
        "2026-10-24T23:59:59",
        "2026-10-25T00:00:00",
        "2026-10-25T00:59:00",
        "2026-10-25T02:00:00",
        "2026-03-29T01:30:00",
    ]
    assert [datetime.fromtimestamp(ns / SECOND, UTC).isoformat()[:19] for ns in log.table.time.tolist()] == expected
    assert sorted(where(log, "ambiguous_local_time")) == ["2", "3"]
    assert where(log, "nonexistent_local_time") == ["5"]
    assert found(log, "ambiguous_local_time")[0].severity == "warning"


@pytest.mark.parametrize("name", ["UTC", "utc", "Z", "+00:00", "Etc/UTC"])
def test_names_of_utc(name: str) -> None:
    assert datetime(2026, 1, 1, tzinfo=load_zone(name)).utcoffset() == timedelta(0)


@pytest.mark.parametrize("name", ["", "Mars", "../../etc/passwd", "America", "/etc/localtime", "+99:99", "x\0"])
def test_invalid_zones_are_rejected(name: str) -> None:
    with pytest.raises(UsageError, match="unknown time zone"):
        load_zone(name)


def test_offset_is_a_zone(tmp_path: Path) -> None:
    log = read_lines(tmp_path, event("job_started", "2026-01-01T05:30:00"), timezone="+05:30")
    assert rows(log)[0][2] == 0.0


_MOMENTS = st.datetimes(datetime(1970, 1, 3), datetime(2254, 12, 30))
_ZONES = ["", "Z", "+00:00", "-08:00", "+0530"]
_STAMPS = st.builds(
    lambda moment, gap, digits, zone: moment.strftime(f"%Y-%m-%d{gap}%H:%M:%S") + digits + zone,
    _MOMENTS,
    st.sampled_from("T "),
    st.text("0123456789", min_size=1, max_size=9).map(lambda digits: "." + digits) | st.just(""),
    st.sampled_from(_ZONES),
) | st.sampled_from(["soon", "2026-02-30T00:00:00", "2026-01-01T00:00:0x", "2026-01-01T25:00:00", "", "ä" * 19])


@given(st.lists(_STAMPS, max_size=12), st.sampled_from(["UTC", "America/New_York", "Australia/Lord_Howe"]))
def test_column_of_timestamps_equals_single_readings(texts: list[str], zone: str) -> None:
    reader = TimestampReader(load_zone(zone))
    column = reader.read_column(texts)
    for at, text in enumerate(texts):
        single = reader.read(text)
        assert bool(column.good[at]) == (single is not None)
        if single is not None:
            assert (int(column.ns[at]), bool(column.naive[at])) == (single.ns, single.naive)
            assert [code for code, places in column.odd.items() if at in places] == [
                one for one in [single.oddity] if one
            ]


@given(_MOMENTS)
def test_local_times_match_the_zone_database(moment: datetime) -> None:
    zone = ZoneInfo("America/St_Johns")
    single = TimestampReader(zone).read(moment.isoformat())
    assert single is not None
    since = moment.replace(tzinfo=zone).astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    assert single.ns == since // timedelta(microseconds=1) * 1000
