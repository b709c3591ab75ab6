"""Times, spans and durations as people write them."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput_cli.errors import UsageError
from goodput_cli.vocabulary.when import Anchors, load_zone, parse_duration, parse_span, parse_when

SECOND = 1_000_000_000
BASE = 1_767_225_600 * SECOND  # 2026-01-01T00:00:00Z
HOUR = 3600 * SECOND


def anchors(zone: str = "UTC") -> Anchors:
    return Anchors(BASE, BASE + 10 * HOUR, [BASE, BASE + 2 * HOUR], BASE + 20 * HOUR, load_zone(zone))


@pytest.mark.parametrize(
    ("text", "offset_ns"),
    [
        ("2026-01-01T01:00:00Z", HOUR),
        ("2026-01-01t01:00:00z", HOUR),
        ("2026-01-01 01:00", HOUR),
        ("20260101T010000Z", HOUR),
        ("2026-01-01T02:00:00+01:00", HOUR),
        ("2026-01-01T02:00:00.5+0100", HOUR + SECOND // 2),
        ("2026-01-01T00:00:00.123456789", 123_456_789),
        ("2026-01-01T00:00:00,25Z", SECOND // 4),
        ("2026-01-02", 24 * HOUR),
        ("2026-01-01 01:00:00 UTC", HOUR),
        ("Jan 1 2026 1:00", HOUR),
        ("1 January 2026 1am", HOUR),
        ("1767225601.5", 3 * SECOND // 2),
        ("now", 20 * HOUR),
        ("-2h", 8 * HOUR),
        ("-0s", 10 * HOUR),
        ("+1h30m", 3 * HOUR // 2),
        ("attempt:1", 0),
        ("attempt:2", 2 * HOUR),
    ],
)
def test_time_resolves_to_a_timestamp(text: str, offset_ns: int) -> None:
    assert parse_when(text).resolve(anchors()) == BASE + offset_ns


def test_time_without_a_zone_is_in_the_zone_of_the_question() -> None:
    berlin = anchors("Europe/Berlin")
    assert parse_when("2026-01-01T01:00").resolve(berlin) == BASE
    assert parse_when("2026-01-01T01:00Z").resolve(berlin) == BASE + HOUR
    assert parse_when("2026-01-01").resolve(berlin) == BASE - HOUR


@pytest.mark.parametrize(("text", "what"), [("2026-03-29T02:30", "does not exist"), ("2026-10-25T02:30", "ambiguous")])
def test_wall_clock_time_at_a_clock_change_is_rejected(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        parse_when(text).resolve(anchors("Europe/Berlin"))
    assert parse_when(text + "+02:00").resolve(anchors("Europe/Berlin"))


def test_python_values_are_times_too() -> None:
    assert parse_when(BASE + 5).resolve(anchors()) == BASE + 5
    assert parse_when(datetime(2026, 1, 1, 1, tzinfo=UTC)).resolve(anchors()) == BASE + HOUR
    assert parse_when(datetime(2026, 1, 1, 1)).resolve(anchors("Europe/Berlin")) == BASE
    assert parse_when(datetime(2026, 1, 1, 1, tzinfo=ZoneInfo("Europe/Berlin"))).resolve(anchors()) == BASE


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "yesterday", "24:00", "Jan 3 14:00", "03/04/2026", "2026-13-01", "-2", "+2x", "-", "--2h", "attempt:",
        "attempt:0", "attempt:-1", "attempt:x", "2026-01-01 14:00 XYZ", "2026-01-01T00:00:00.0123456789", "1" * 400,
        "9999-01-01", "\x1b[31m", "-1h2h", "2026-01-01T00:00:00+99:00",
    ],
)  # fmt: skip
def test_ambiguous_or_invalid_time_is_wrong_usage(text: str) -> None:
    with pytest.raises(UsageError):
        parse_when(text)


def test_missing_attempt_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="2 attempts"):
        parse_when("attempt:3").resolve(anchors())


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("90s", 90 * SECOND),
        ("15m", 900 * SECOND),
        ("2h", 2 * HOUR),
        ("1d", 24 * HOUR),
        ("1w", 168 * HOUR),
        ("1h30m", 3 * HOUR // 2),
        ("1h 30m", 3 * HOUR // 2),
        ("1.5h", 3 * HOUR // 2),
        ("250ms", SECOND // 4),
        ("0.000000001s", 1),
        ("0s", 0),
    ],
)
def test_durations_are_exact(text: str, ns: int) -> None:
    assert parse_duration(text) == ns


@pytest.mark.parametrize("text", ["", "90", "h", "1h1h", "1m1h", "-1h", "1y", "1e3s", "999999999999w", "1h30"])
def test_invalid_duration_is_wrong_usage(text: str) -> None:
    with pytest.raises(UsageError, match="90s, 15m, 2h"):
        parse_duration(text)


def test_spans_are_read() -> None:
    assert parse_span("2026-01-01T01:00/-1h").resolve(anchors()) == (BASE + HOUR, BASE + 9 * HOUR)
    for text in ("2026-01-01", "a/b/c", "/2026-01-01", "2026-01-01/"):
        with pytest.raises(UsageError):
            parse_span(text)
    with pytest.raises(UsageError, match="not after"):
        parse_span("+2h/+1h").resolve(anchors())


def test_zones_are_read() -> None:
    assert load_zone("UTC") is UTC
    assert parse_when("2026-01-01T05:30").resolve(anchors("+05:30")) == BASE
    for name in ("Europe", "../etc/passwd", "", "No/Where", "\x00"):
        with pytest.raises(UsageError):
            load_zone(name)


@given(st.text(max_size=30))
def test_any_text_raises_only_wrong_usage(text: str) -> None:
    for parse in (parse_when, parse_duration, parse_span):
        with contextlib.suppress(UsageError):
            parse(text)
