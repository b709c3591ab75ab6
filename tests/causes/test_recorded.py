"""Failures in records of a recorder or scheduler are shown as the cause, with rank and host."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import goodput_cli


def log(tmp_path: Path, event: str, reason: str) -> Path:
    """Write a recorder's log: five steps, an end with a reason, and a second attempt."""
    records: list[dict[str, object]] = [
        {"goodput_event": "attempt", "run_id": "a", "rank": 0, "host": "node-3", "pid": 7, "goodput_time": 1000.0}
    ]
    records.append({"job_start_time": 1000.0})
    records += [{"step_count": step, "step_start_time": 1010.0 + 10 * step} for step in range(5)]
    records.append({"goodput_event": event, "goodput_time": 1055.0, "reason": reason, "rank": 0})
    records.append({"job_start_time": 1100.0})
    records += [{"step_count": step, "step_start_time": 1100.0 + 10 * step} for step in range(3, 8)]
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps({"job_name": "llm", **one}) + "\n" for one in records))
    return path


@pytest.mark.parametrize(
    ("event", "reason", "cause", "certainty"),
    [
        ("crashed", "ValueError", "python_error", "confirmed"),
        ("crashed", "OutOfMemoryError", "device_oom", "confirmed"),
        ("crashed", "ModuleNotFoundError", "python_error", "confirmed"),
        ("crashed", "DistBackendError", "unknown", None),
        ("crashed", "OSError: [Errno 28] No space left on device", "disk_full", "confirmed"),
        ("crashed", "SIGSEGV", "native_crash", "confirmed"),
        ("crashed", "host_oom", "host_oom", "confirmed"),
        ("terminated", "SIGTERM", "killed", "confirmed"),
    ],
)
def test_recorded_reason_is_the_cause(
    event: str, reason: str, cause: str, certainty: str | None, tmp_path: Path
) -> None:
    (found,) = goodput_cli.analyze(str(log(tmp_path, event, reason))).disruptions
    assert (found.cause, found.cause_certainty) == (cause, certainty)
    if certainty is not None:
        assert (found.first_rank, found.first_host) == (0, "node-3")
        assert found.cause_text == reason
        assert found.evidence.cause == f"{tmp_path / 'run.jsonl'}:8"


def test_recorded_reason_without_a_cause_is_shown(tmp_path: Path) -> None:
    (found,) = goodput_cli.analyze(str(log(tmp_path, "crashed", "OOM"))).disruptions
    assert (found.cause, found.cause_certainty, found.cause_text) == ("unknown", None, "OOM")


@pytest.mark.parametrize(
    ("state", "cause"),
    [
        ("NODE_FAIL", "node_failure"),
        ("TIMEOUT", "time_limit"),
        ("PREEMPTED", "preempted"),
        ("OUT_OF_MEMORY", "host_oom"),
    ],
)
def test_allocation_state_is_the_cause(state: str, cause: str, tmp_path: Path) -> None:
    rows = [
        "JobID|JobName|State|Submit|Start|End|ExitCode",
        f"7|llm|{state}|2026-03-01T10:00:00|2026-03-01T10:00:10|2026-03-01T11:00:00|0:0",
        "8|llm|COMPLETED|2026-03-01T11:01:00|2026-03-01T11:02:00|2026-03-01T12:00:00|0:0",
        f"9|other|{state}|2026-03-01T10:00:00|2026-03-01T10:00:10|2026-03-01T10:30:00|0:0",
    ]
    (tmp_path / "sacct.txt").write_text("\n".join(rows) + "\n")
    found = goodput_cli.analyze(str(tmp_path / "sacct.txt"), job_name="llm").disruptions
    assert [(one.cause, one.cause_certainty) for one in found] == [(cause, "confirmed")]
    assert found[0].evidence.cause == f"{tmp_path / 'sacct.txt'}:2"


def test_signal_after_a_preemption_notice_is_preemption(tmp_path: Path) -> None:
    path = log(tmp_path, "terminated", "SIGTERM")
    lines = path.read_text().splitlines(keepends=True)
    notice = {"job_name": "llm", "goodput_event": "preemption_notice", "goodput_time": 1054.0, "reason": "spot"}
    path.write_text("".join((*lines[:7], json.dumps(notice) + "\n", *lines[7:])))
    analysis = goodput_cli.analyze(str(path))
    (found,) = analysis.disruptions
    assert (found.cause, found.cause_certainty, found.evidence.cause) == ("preempted", "confirmed", f"{path}:8")
    assert analysis.timeline.causes.why[0].code == "preempted"
