"""Options that a log format may declare (docs/architecture.md, plug-in points)."""

from __future__ import annotations

import importlib.metadata
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from goodput_cli.arrays import Mask
from goodput_cli.events.formats import registry
from goodput_cli.events.formats.base import Output, Records
from goodput_cli.events.read import read_events
from goodput_cli.events.schema import Edge, EventLog, Kind, LogFormat


class Runs:
    """A format with its own job key and options: {"run": "a", "at": 5, "n": 1}."""

    name = "runs"
    keys = frozenset({"run", "at", "n"})
    job_key = "run"
    restores_are_inferred = True
    other_system = "a calculator"

    def recognises(self, record: Mapping[str, Any]) -> bool:
        return "at" in record

    def translate(self, records: Records, output: Output) -> Mask:
        time, good = output.times(records, "at")
        step, whole = output.whole(records, "n")
        output.rows.add(records.origin, good & whole, Kind.STEP, Edge.POINT, time, step=step)
        return records.every()


class Metrics:
    """A format of entries whose resource names the job and whose payload may have any keys."""

    name = "metrics"
    keys = frozenset({"value", "step"})

    def recognises(self, _: Mapping[str, Any]) -> bool:
        return False

    def recognises_entry(self, entry: Mapping[str, Any]) -> bool:
        return str(entry.get("logName", "")).endswith("/metrics")

    def job_of(self, records: Records) -> Sequence[Any]:
        assert records.entries is not None
        return [entry["resource"]["labels"].get("node", "") for entry in records.entries]

    def translate(self, records: Records, output: Output) -> Mask:
        assert records.entries is not None
        chosen = np.array([entry["labels"]["space"] == "time" for entry in records.entries])
        step, whole = output.whole(records, "step")
        output.rows.add(records.origin, chosen & whole, Kind.STEP, Edge.POINT, records.stamp, step=step)
        return records.every()


@pytest.fixture(autouse=True)
def plugged_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "BUILT_IN", (*registry.BUILT_IN, Runs, Metrics))


def read(tmp_path: Path, *lines: Any) -> EventLog:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_events([str(path)])


def metric(step: int, node: str | None = "a", space: str = "time", log: str = "metrics") -> dict[str, Any]:
    return {
        "insertId": f"id{step:04}",
        "logName": f"projects/p/logs/{log}",
        "timestamp": f"2026-01-01T00:00:{step % 60:02}Z",
        "resource": {"type": "generic", "labels": {"node": node} if node else {}},
        "labels": {"space": space},
        "jsonPayload": {"value": 1.5, "step": step},
    }


def test_format_declares_its_job_key(tmp_path: Path) -> None:
    log = read(tmp_path, {"run": "a", "at": 5, "n": 1}, {"at": 6, "n": 2}, {"run": "b", "at": 7, "n": 3})
    assert log.table.jobs == ("a", "b")
    (missing,) = log.diagnostics
    assert (missing.code, missing.message) == ("missing_job_name", "events without `run` belong to no job; dropped")


@pytest.mark.parametrize("lines", [3, 300])
def test_job_key_is_read_from_columns(tmp_path: Path, lines: int) -> None:
    log = read(tmp_path, *({"run": "a", "at": 1000 + at, "n": 100 + at} for at in range(lines)))
    assert log.table.jobs == ("a",)
    assert log.table.step.tolist() == [100 + at for at in range(lines)]


def test_format_options_are_kept_with_its_jobs(tmp_path: Path) -> None:
    log = read(tmp_path, {"run": "a", "at": 5, "n": 1}, {"job_name": "a", "job_start_time": 1})
    (formats,) = log.formats
    assert formats == (
        LogFormat("recorder", other_system="reference library"),
        LogFormat("runs", restores_are_inferred=True, other_system="a calculator"),
    )


@pytest.mark.parametrize("lines", [4, 400])
def test_format_receives_the_entry_of_its_records(tmp_path: Path, lines: int) -> None:
    """Few lines are read one by one, many as columns, with the same result."""
    entries = [metric(at, "a" if at % 2 else "b") for at in range(lines)]
    entries += [metric(lines, None), metric(lines + 1, space="other"), metric(lines + 2, log="elsewhere")]
    log = read(tmp_path, *entries)
    assert sorted(log.table.jobs) == ["a", "b"]
    assert log.table.step.tolist() == list(range(lines))
    assert [found.code for found in log.diagnostics] == ["missing_job_name", "unrecognised_lines"]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Return the groups of entry points that were looked up, in a process without cached ones."""
    groups: list[str] = []
    ask = importlib.metadata.entry_points

    def entry_points(group: str) -> Any:
        groups.append(group)
        return ask(group=group)

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    registry.plugged_in.cache_clear()
    yield groups
    registry.plugged_in.cache_clear()


ABOUT = {
    "metrics-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: metrics\nVersion: 1\n",
    "metrics-1.dist-info/entry_points.txt": "[goodput_cli.formats]\nmetrics = metrics:Metrics\n",
}


@pytest.mark.parametrize("place", ["folder", "archive.zip"])
def test_entry_points_are_looked_up_once_per_process(
    place: str, tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in ABOUT.items():
        if place == "folder":
            (tmp_path / place / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / place / name).write_text(text)
        else:
            with zipfile.ZipFile(tmp_path / place, "a") as archive:
                archive.writestr(name, text)
    monkeypatch.syspath_prepend(str(tmp_path / place))
    for _ in range(3):
        read(tmp_path, {"job_name": "a", "job_start_time": 1})
    assert [one.name for one in registry.plugged_in()] == ["metrics"]
    assert asked == ["goodput_cli.formats"]
