"""MLflow: runs of a store in files (`mlruns/`) or of a database (docs/formats.md, MLflow).

A run is a job. It contains only the start of its first process. Steps that do not rise are a resume. Its state and end
are those of the last process.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import structs

from goodput_cli.arrays import Mask
from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.accelerators.samples import TABLE, DevicePart, quantity_of_metric, take
from goodput_cli.events.formats.base import MLFLOW, Output, ParsedPart, Records, without_records
from goodput_cli.events.text.collector import TextPart
from goodput_cli.events.text.log_lines import EventType
from goodput_cli.events.trackers.runs import (
    LoggedTime,
    ProcessOfRun,
    Row,
    RunExtent,
    TrackedRun,
    find_continued_runs,
    is_inside,
    logged_of,
)
from goodput_cli.events.trackers.wandb import EARLIEST, whole_of
from goodput_cli.events.values import MAX_SECONDS
from goodput_cli.events.values import number as number_of
from goodput_cli.sources.base import RawBatch
from goodput_cli.sources.layouts import RUN_KEY
from goodput_cli.vocabulary.when import NS_PER_SECOND

_LINE = re.compile(rb"(\d{10,16}) (\S+) (\d{1,18})\r?")
_FIELD = re.compile(r"^(\w+): *+(.*)$", re.MULTILINE)
_MACHINE = "system/"
_ENDED: dict[str, EventType] = {
    "3": EventType.EXITED, "FINISHED": EventType.EXITED, "4": EventType.CRASHED, "FAILED": EventType.CRASHED,
    "5": EventType.TERMINATED, "KILLED": EventType.TERMINATED,
}  # fmt: skip
"""By state, as a number in files and as a word in databases; runs in other states have not ended."""
_NS_PER_MS = 10**6
_MOST_YAML = 1 << 20


@dataclass
class RunMetadata:
    """Metadata of a run in a store."""

    run_id: str
    line: int
    values: dict[str, str]


@dataclass
class MlflowMetric:
    """The values of a metric in one source."""

    run_id: str
    name: str
    rows: list[tuple[int, int, int]] = field(default_factory=list)
    """(line, ns UTC, step) in the order in which they were logged."""
    values: dict[int, float] = field(default_factory=dict)
    """By step, for metrics of the step breakdown."""


class MetaReader:
    """Reader of the `meta.yaml` of a run (see `DocumentReader`)."""

    by_line = False

    def __init__(self) -> None:
        self._text = b""

    def feed(self, batch: RawBatch) -> ParsedPart:
        """Collect the bytes; return nothing yet."""
        self._text = (self._text + batch.data)[:_MOST_YAML]
        return without_records(TextPart())

    def finish(self) -> ParsedPart:
        """Return the contents of the file; nothing for the file of an experiment."""
        text = self._text.decode(errors="replace")
        values = {one[1]: _unquoted(one[2].rstrip()) for one in _FIELD.finditer(text)}
        run_id = values.get("run_id") or values.get("run_uuid")
        return without_records(TextPart(tracked=[RunMetadata(run_id, 1, values)] if run_id else []))


def _unquoted(value: str) -> str:
    inside = value[1:-1]
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" and value[0] not in inside
    return inside if quoted else value


class MetricReader:
    """Reader of a file of a metric: `time_ms value step` per line."""

    by_line = True

    def __init__(self, run_id: str, name: str) -> None:
        self._run_id, self._name = run_id, name

    def feed(self, batch: RawBatch) -> ParsedPart:
        """Return the rows of the next lines."""
        metric, inside = MlflowMetric(self._run_id, self._name), is_inside(self._name)
        devices = DevicePart()
        named = quantity_of_metric(self._name) is not None
        bad: list[tuple[int, str]] = []
        *lines, rest = batch.data.split(b"\n")
        if rest:  # a truncated number may be another one
            bad.append((batch.first_line + len(lines), "a line is cut off"))
        for number, line in enumerate(lines, batch.first_line):
            found = _LINE.fullmatch(line)
            if found is not None and (time := _ns(found[1])) is not None:
                metric.rows.append((number, time, int(found[3])))
                if named:
                    take(devices, number, self._name, time, found[2].decode(errors="replace"), run=self._run_id)
                value = number_of(found[2].decode(errors="replace")) if inside else None
                if value is not None:
                    metric.values[int(found[3])] = float(value)
            elif line.strip():
                bad.append((number, "no time, value and step"))
        return structs.replace(without_records(TextPart(tracked=[metric], bad=bad)), inputs=((TABLE, devices),))

    def finish(self) -> ParsedPart:
        """End the document: nothing is left over."""
        return without_records(TextPart())


def reader_of(run_id: str, inside: str) -> MetaReader | MetricReader:
    """Return the reader of a file of a store, given the result of `store_file`."""
    return MetaReader() if inside == "meta.yaml" else MetricReader(run_id, inside.partition("/")[2])


def _ns(value: Any) -> int | None:
    """Return ns UTC of a number of milliseconds; None for an invalid or too early one, which lost digits."""
    number = whole_of(value)
    time = number * _NS_PER_MS if number is not None and number < MAX_SECONDS * 1000 else 0
    return time if time >= EARLIEST else None


def collect_rows(records: Records, output: Output) -> Mask:
    """Collect the contents of a database (see `sources.databases`), one record per run or value. Return bool[n], all
    true."""
    parts: list[object] = []
    metrics: dict[tuple[str, str], MlflowMetric] = {}
    devices = DevicePart()
    for at, record in enumerate(records.records):
        run_id, line = str(record[RUN_KEY]), int(records.origin.line[at])
        if "key" not in record:
            parts.append(RunMetadata(run_id, line, {key: str(value) for key, value in record.items()}))
            continue
        time, step = _ns(record.get("timestamp")), whole_of(record.get("step"))
        if time is not None and step is not None:
            name = str(record["key"])
            metrics.setdefault((run_id, name), MlflowMetric(run_id, name)).rows.append((line, time, step))
            take(devices, line, name, time, record.get("value"), run=run_id)
    output.texts.add(records.origin.source, TextPart(tracked=[*parts, *metrics.values()]))
    output.take_input(TABLE, records.origin.source, devices)
    return records.every()


@dataclass
class _StoredRun:
    """The contents of a store about one run."""

    about: tuple[int, RunMetadata] | None = None
    metrics: defaultdict[str, list[tuple[LoggedTime, int]]] = field(default_factory=lambda: defaultdict(list))
    """By name, the values: location and step."""
    inside: defaultdict[int, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    """By step, its breakdown."""

    @property
    def steps(self) -> int:
        """Return the number of distinct steps of its training."""
        name = self.step_metric()
        return len({step for _, step in self.metrics[name]}) if name else 0

    def step_metric(self) -> str:
        """Return the metric whose steps are those of training: the one with most steps, and of those the first one
        logged."""
        named = [name for name in self.metrics if not name.startswith(_MACHINE) and self.metrics[name]]
        return min(
            named,
            key=lambda name: (
                -len({step for _, step in self.metrics[name]}), min(place.time for place, _ in self.metrics[name]), name
            ),
            default="",
        )  # fmt: skip


def runs(tracked: Mapping[int, Sequence[object]], notes: DiagnosticCollector, exact: bool) -> list[TrackedRun]:
    """Return the runs of all stores. tracked: the contents by source. exact: True if each run is a separate job."""
    stored: defaultdict[str, _StoredRun] = defaultdict(_StoredRun)
    for code, parts in tracked.items():
        for part in parts:
            if isinstance(part, RunMetadata):
                stored[part.run_id].about = code, part
            elif isinstance(part, MlflowMetric):
                values = ((LoggedTime(time, code, line), step) for line, time, step in part.rows)
                stored[part.run_id].metrics[part.name] += values
                for step, value in part.values.items():
                    stored[part.run_id].inside[step][part.name] = value
    here = {run_id: run for run_id, run in stored.items() if not _is_deleted(run)}
    several = {run_id: run for run_id, run in here.items() if run.steps > 1}
    offered = several or here
    if len(offered) < len(stored):
        code = next(
            code
            for code, parts in tracked.items()
            if any(isinstance(part, RunMetadata | MlflowMetric) for part in parts)
        )
        message = "MLflow runs that were deleted, or have fewer than two steps; ignored"
        notes.add("tracker_runs_left_out", message, code, [], (), len(stored) - len(offered))
    found = {run_id: _run(run_id, run) for run_id, run in offered.items()}
    return list(found.values()) if exact else _without_restarts(found, offered, notes)


def _without_restarts(
    found: Mapping[str, TrackedRun], stored: Mapping[str, _StoredRun], notes: DiagnosticCollector
) -> list[TrackedRun]:
    """Return the runs, with those of one name that continue each other merged."""
    named = {run_id: run for run_id, run in found.items() if run.name and any(True for _ in run.lives[0].locations)}
    extents = (_extent(run, _experiment(stored[run_id])) for run_id, run in named.items())
    first_of = find_continued_runs(extents)
    for run_id, first in first_of.items():
        if run_id != first:
            found[first].lives += found[run_id].lives
            found[first].restarts.append(run_id)
    kept = [run for run_id, run in found.items() if first_of.get(run_id, run_id) == run_id]
    for run in kept:
        if run.restarts:
            message = (
                f"{len(run.restarts) + 1} runs named {notes.bounded('job', run.name)} have continuing steps and are"
            )
            run.note("runs_grouped", f"{message} probably one job; --exact-run-name separates them", notes)
    return kept


def _extent(run: TrackedRun, experiment: str) -> RunExtent:
    """Return the extent of a run, which has one process."""
    (life,) = run.lives
    begin = min(place.time for place in life.locations)
    steps = sorted({step for row in life.rows for step in row.steps.values()})
    return RunExtent(run.job, (experiment, run.name), begin, life.last, steps)


def _experiment(stored: _StoredRun) -> str:
    return "" if stored.about is None else stored.about[1].values.get("experiment_id", "")


def _is_deleted(run: _StoredRun) -> bool:
    return run.about is not None and run.about[1].values.get("lifecycle_stage", "active") == "deleted"


def _run(run_id: str, stored: _StoredRun) -> TrackedRun:
    life = ProcessOfRun(resumes=True)
    name = stored.step_metric()
    ordered = sorted(stored.metrics[name], key=_order) if name else []
    life.rows = [Row(place, {name: step}, logged=logged_of(stored.inside.get(step, {}))) for place, step in ordered]
    times = {row.at.time // NS_PER_SECOND for row in life.rows}
    for other in (place for one, values in stored.metrics.items() if one != name for place, _ in values):
        if other.time // NS_PER_SECOND not in times:  # one activity per second is enough
            times.add(other.time // NS_PER_SECOND)
            life.alive.append(other)
    shown = ""
    if stored.about is not None:
        code, about = stored.about
        shown = about.values.get("run_name") or about.values.get("name") or ""
        start = _ns(about.values.get("start_time"))
        life.begin = None if start is None else LoggedTime(start, code, about.line)
        _end(life, about, code)
    return TrackedRun(MLFLOW, run_id, shown, [life])


def _order(value: tuple[LoggedTime, int]) -> tuple[int, int]:
    """Return the sort key of the values of a metric in the order in which they were logged: by time, then by line."""
    return value[0].time, value[0].line


def _end(life: ProcessOfRun, about: RunMetadata, code: int) -> None:
    """Set the end of the last process, if the store has one that is not before its last row."""
    ended, end = _ENDED.get(about.values.get("status", "")), _ns(about.values.get("end_time"))
    last = max((row.at.time for row in life.rows), default=0)
    if ended is not None and end is not None:
        life.ended, life.end = ended, LoggedTime(max(end, last), code, about.line)
