"""Local times without a zone inside Cloud Logging entries, which have their own time in UTC."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.vocabulary.text import iso

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def entry(second: float, event_type: str, offset: timedelta, late: float = 0.2, **more: Any) -> str:
    """Return a line of a program `offset` from UTC, sent `late` seconds after it was written."""
    instant = NOON + timedelta(seconds=second)
    payload = {"job_name": "j", "event_type": event_type, "timestamp": (instant + offset).isoformat()[:19], **more}
    stamp = (instant + timedelta(seconds=late)).isoformat().replace("+00:00", "Z")
    return json.dumps({"jsonPayload": payload, "timestamp": stamp, "insertId": f"i{second}-{event_type}"})


def story(offset: timedelta, late: float = 0.2) -> list[str]:
    return [
        entry(0, "job_started", offset, late),
        entry(10, "checkpoint_loaded", offset, late, step=0),
        entry(30, "checkpoint_saved", offset, late, step=20),
        entry(30, "job_finished", offset, late),
    ]


def analysed(lines: list[str], **options: Any) -> Analysis:
    return goodput_cli.analyze("-", stdin=io.BytesIO("\n".join(lines).encode()), **options)


def codes(analysis: Analysis) -> set[str]:
    return {one.code for one in analysis.diagnostics}


def test_zone_is_inferred_from_entries() -> None:
    for hours in (-8, 5.5, 5.75, 14):
        analysis = analysed(story(timedelta(hours=hours)))
        assert iso(analysis.job.start_ns) == "2026-01-05T12:00:00Z"
        assert "timezone_found" in codes(analysis)
        assert "naive_timestamps" not in codes(analysis)


def test_given_zone_is_used() -> None:
    analysis = analysed(story(timedelta(hours=-8)), timezone="UTC")
    assert iso(analysis.job.start_ns) == "2026-01-05T04:00:00Z"
    assert "timezone_found" not in codes(analysis)


def test_utc_needs_no_diagnostic() -> None:
    assert "timezone_found" not in codes(analysed(story(timedelta(0))))


def test_entries_hours_later_show_no_zone() -> None:
    analysis = analysed(story(timedelta(0), late=8 * 3600 + 300))
    assert iso(analysis.job.start_ns) == "2026-01-05T12:00:00Z"
    assert "timezone_found" not in codes(analysis)


def test_impossible_offset_is_not_a_zone() -> None:
    analysis = analysed(story(timedelta(hours=7.25)))
    assert iso(analysis.job.start_ns) == "2026-01-05T19:15:00Z"


def test_each_day_has_its_own_offset() -> None:
    # Clocks go back between the two days, and the program continues.
    late = [entry(86_400 + second, "checkpoint_saved", timedelta(hours=-8), step=second) for second in (100, 200)]
    analysis = analysed([*story(timedelta(hours=-7))[:3], *late])
    assert iso(analysis.job.start_ns) == "2026-01-05T12:00:00Z"
    assert analysis.job.end_ns - analysis.job.start_ns == 86_600 * 10**9


def test_records_of_client_library_show_no_zone() -> None:
    own = {"logging.googleapis.com/diagnostic": {"instrumentation_source": [{"name": "python", "version": "3.17.0"}]}}
    lines = [json.dumps(own), json.dumps({"jsonPayload": own, "insertId": "x"}), *story(timedelta(0))]
    assert "unrecognised_lines" not in codes(analysed(lines))
