"""Disruptions of generated logs: no second is counted twice, and every cited line exists and supports its statement."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput_cli.analysis.disruptions.costs import AttemptCosts
from goodput_cli.analysis.disruptions.rows import Disruption
from tests.accounting.test_properties import analyse, slowly
from tests.strategies import any_logs, messy_logs

ROOT = Path(__file__).parent.parent.parent


@slowly
@given(st.one_of(any_logs(), messy_logs()), st.sampled_from(({}, {"exclude": ("+20s/+50s",)}, {"async_saves": True})))
def test_disruptions_never_count_a_second_twice(lines: Sequence[str], question: dict[str, object]) -> None:
    analysis = analyse(lines, **question)
    if analysis is None:
        return
    rows = analysis.disruptions
    assert [row.attempt for row in rows] == (analysis.timeline.disruptions + 1).tolist()
    amounts = {row.category: row.ns for row in analysis.badput}
    down = ("infrastructure_recovery_from_disruption", "disruption_undetermined", "stopped")
    assert sum(row.wasted_ns for row in rows) <= amounts.get("wasted_progress_from_disruption", 0)
    assert sum(row.downtime_ns for row in rows) <= sum(amounts.get(name, 0) for name in down)
    assert sum(row.queued_ns for row in rows) <= amounts.get("queued", 0)
    assert sum(row.lost_ns for row in rows) <= analysis.window.counted_ns
    assert int(AttemptCosts(analysis.timeline).taken_back.sum()) <= amounts.get("wasted_progress_from_disruption", 0)
    assert all(amount is None or amount >= 0 for row in rows for amount in (row.steps_lost, row.regained_after_ns))


@slowly
@given(st.one_of(any_logs(), messy_logs()))
def test_every_line_cited_exists_and_says_so(lines: Sequence[str]) -> None:
    analysis = analyse(lines)
    for row in analysis.disruptions if analysis is not None else ():
        check_evidence(row, lines)


@pytest.mark.parametrize("log", sorted((ROOT / "sample_logs").glob("*.jsonl")), ids=lambda path: str(path.name))
def test_cited_lines_of_sample_logs_support_their_statements(log: Path) -> None:
    from goodput_cli import analyze

    lines = log.read_text(encoding="utf-8").splitlines()
    rows = analyze(log).disruptions
    assert rows
    for row in rows:
        check_evidence(row, lines)


def check_evidence(row: Disruption, lines: Sequence[str]) -> None:
    """Compare each line that a row cites with the statement of the row."""
    cited = {name: line_at(place, lines) for name, place in vars(row.evidence).items() if place is not None}
    died = row.last_sign_of_life_ns
    assert row.next_start_ns in timestamps_in(cited["next_start"])
    assert row.next_up_ns in timestamps_in(cited["next_up"])
    assert died in timestamps_in(cited["last_sign_of_life"]) or number(cited["last_sign_of_life"]) == row.last_step
    assert (row.last_step is None) == ("last_step" not in cited)
    if row.last_step is not None:
        assert number(cited["last_step"]) == row.last_step
    if "resumed_step" in cited:
        assert number(cited["resumed_step"]) == row.resumed_step
    if row.time_to_first_step_ns:
        assert row.next_up_ns + row.time_to_first_step_ns in timestamps_in(cited["first_step"])
    if row.regained_after_ns:
        assert died + row.regained_after_ns in timestamps_in(cited["regained"])
        assert row.last_step is None or number(cited["regained"]) >= row.last_step
    if row.ended in ("crashed", "terminated"):
        assert max(timestamps_in(cited["ended"])) <= row.death_latest_ns or row.ended == "crashed"
        assert any(word in json.dumps(cited["ended"]) for word in ("terminated", "crashed", "end_time", "finished"))


def line_at(place: str, lines: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lines[int(place.rpartition(":")[2]) - 1])
    return found


def number(line: dict[str, Any]) -> int:
    return int(line.get("step_count", line.get("step", -1)))


def timestamps_in(line: dict[str, Any]) -> set[int]:
    """Return every timestamp (ns) in a line, including ends of intervals with a duration."""
    if "timestamp" in line:
        moment = datetime.fromisoformat(line["timestamp"])
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return {round(moment.timestamp() * 10**6) * 1000}
    found = {key: value for key, value in line.items() if key.endswith(("_time", "_timestamp")) and value is not None}
    for key in [key for key in found if key.endswith("_start_time")]:
        duration = line.get(key.replace("_start_time", "_duration_secs"))
        if duration is not None:
            found[key + "+"] = found[key] + duration
    return {round(float(value) * 10**6) * 1000 for value in found.values()}
