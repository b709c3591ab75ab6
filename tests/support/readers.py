"""Shared helpers of the reader tests: write small logs and check the resulting rows."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.events.read import read_events
from goodput_cli.events.schema import NO_STEP, Edge, EventLog, EventTable, Kind
from goodput_cli.sources.base import Progress

T0 = 1_767_225_600
"""2026-01-01T00:00:00 UTC, in epoch seconds."""
SECOND = 1_000_000_000


def log_file(folder: Path, *lines: Any, name: str = "run.jsonl") -> str:
    """Write lines (objects as JSON, text and bytes as they are) and return the path."""
    path = folder / name
    path.write_bytes(b"".join(_as_bytes(line) + b"\n" for line in lines))
    return str(path)


def read_lines(folder: Path, *lines: Any, **options: Any) -> EventLog:
    """Read the lines as one file."""
    return read_events([log_file(folder, *lines)], **options)


def zstd(content: bytes) -> bytes:
    """The content as one frame of zstd."""
    module = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    packed: bytes = module.compress(content)
    return packed


def _as_bytes(line: Any) -> bytes:
    if isinstance(line, bytes):
        return line
    return (line if isinstance(line, str) else json.dumps(line)).encode()


def step(number: Any, seconds: Any, job: Any = "j") -> dict[str, Any]:
    """A recorder's step line, `seconds` after T0."""
    return {"job_name": job, "step_count": number, "step_start_time": T0 + seconds}


def envelope(payload: Any, **more: Any) -> dict[str, Any]:
    """A Cloud Logging entry."""
    entry = {
        "insertId": "id1",
        "jsonPayload": payload,
        "logName": "projects/p/logs/goodput_run",
        "resource": {"type": "global", "labels": {"project_id": "p"}},
        "severity": "INFO",
        "timestamp": "2026-01-01T00:00:09.5Z",
    }
    return {**entry, **more}


def rows(log: EventLog) -> list[tuple[str, str, float, float]]:
    """(kind, edge, start, end) of each row, seconds after T0."""
    table = log.table
    return [
        (Kind(table.kind[at]).name, Edge(table.edge[at]).name, _after(table.time[at]), _after(table.end[at]))
        for at in range(len(table))
    ]


def _after(ns: Any) -> float:
    return (int(ns) - T0 * SECOND) / SECOND


def steps(table: EventTable) -> list[int | None]:
    """The step of each row."""
    return [None if value == NO_STEP else value for value in table.step.tolist()]


def lines(table: EventTable) -> list[int]:
    """The line of each row."""
    return list(table.line.tolist())


def found(log: EventLog, code: str) -> list[Diagnostic]:
    """The diagnostics of a code."""
    return [one for one in log.diagnostics if one.code == code]


def where(log: EventLog, code: str) -> list[str]:
    """The line numbers (as text) that the diagnostics of a code name."""
    return [place.rpartition(":")[2] for one in found(log, code) for place in one.where]


def codes(log: EventLog) -> set[str]:
    """The codes of all diagnostics."""
    return {one.code for one in log.diagnostics}


class MessageRecorder(Progress):
    """Recorder of messages."""

    def __init__(self) -> None:
        self.bytes = self.lines = self.expected = 0
        self.finished = False
        self.waits: list[str] = []

    def advance(self, count: int, /) -> None:
        self.bytes += count

    def expect(self, count: int, /) -> None:
        self.expected += count

    def wait(self, what: str, /) -> None:
        self.waits.append(what)

    def add_lines(self, count: int, /) -> None:
        self.lines += count

    def finish(self) -> None:
        self.finished = True
