"""The passes over text: what is done, in order, to make events of the log lines of all sources.

Readers (`scan`, `entries`) find the lines that contain something. Each pass then decides one question for all
sources, for one source, or for one job. The lists are the documentation: docs/text-engine.md is made from them, and
`goodput check --explain FILE:LINE` shows what each pass did to a line.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from goodput_cli.events.capability import InputLine
from goodput_cli.events.evidence import EvidenceOfLog
from goodput_cli.events.formats.base import RUNS
from goodput_cli.events.rows import RowBuilder
from goodput_cli.events.schema import Edge
from goodput_cli.events.tensorboard import folder_of
from goodput_cli.events.text import job_passes, source_passes
from goodput_cli.events.text.event_passes import EVENT_PASSES
from goodput_cli.events.text.evidence_times import SourceClock, observations_of
from goodput_cli.events.text.log_lines import EventType, LogLine, ParsedEvent, SourceText, Stretch, event_of
from goodput_cli.events.text.neighbor_files import times_of_neighbors
from goodput_cli.events.text.source_clocks import local_clock, zones_of
from goodput_cli.events.text.stretches import apart_in_time
from goodput_cli.events.text.text_log import Part, TextLog
from goodput_cli.events.text.to_rows import add_rows
from goodput_cli.events.timestamps import Identity
from goodput_cli.vocabulary.text import iso, seconds_text


class Trace(Protocol):
    """Follows the passes."""

    def __call__(self, name: str, lines_of: Callable[[int], Iterable[LogLine]]) -> None:
        """Take the log lines after a pass. lines_of: returns those of a source, by its code."""


READ = "read"
"""Name of the state before all passes."""


class LogPass(NamedTuple):
    """A pass over all sources."""

    name: str
    run: Callable[[TextLog], None]


class JobPass(NamedTuple):
    """A pass over the events of one job: it changes its parts."""

    name: str
    run: Callable[[Sequence[Part], TextLog], None]


TIME_PASSES = (
    LogPass("order", source_passes.sort_lines),
    LogPass("bar_states", source_passes.drop_states_at_borders),
    LogPass("programs", source_passes.drop_ambiguous_lines),
    LogPass("traces", source_passes.add_traces),
    LogPass("days", source_passes.add_days),
    LogPass("tracker_outputs", source_passes.drop_tracker_outputs),
    LogPass("stages_alone", source_passes.drop_stages_alone),
    LogPass("columns", source_passes.expand_columns),
    LogPass("event_files", source_passes.read_event_files),
    LogPass("neighbors", source_passes.complete_from_neighbors),
    LogPass("counters", source_passes.count_steps),
    LogPass("times", source_passes.set_times),
)
"""From the lines that were read to lines with times."""

LOG_PASSES = (
    LogPass("first_begin", job_passes.add_first_begins),
    LogPass("last_steps", job_passes.add_last_steps),
    LogPass("unnamed_epochs", job_passes.add_unnamed_epochs),
    LogPass("runs_in_file", job_passes.add_ends_of_runs),
    LogPass("scheduler_clock", source_passes.move_scheduler_rows),
    LogPass("views", job_passes.match_event_files),
    LogPass("untimed_restarts", job_passes.separate_untimed_restarts),
    LogPass("report", job_passes.report_sources),
    LogPass("allocations", job_passes.split_allocations),
    LogPass("trackers", job_passes.find_tracked_runs),
    LogPass("identity", job_passes.name_parts),
    LogPass("diagnostics_runs", job_passes.group_diagnostics_runs),
    LogPass("measures", job_passes.measure),
)
"""From the events of all sources to jobs."""

JOB_PASSES = (
    JobPass("job_columns", job_passes.expand_overlapping_columns),
    JobPass("deaths", job_passes.time_deaths),
    JobPass("job_starts", job_passes.join_starts),
    JobPass("launcher_activity", job_passes.add_launcher_activity),
    JobPass("launches", job_passes.start_launches),
    JobPass("second_starts", job_passes.drop_second_starts),
)
"""From the events of one job's files to the events of the job."""


def run_passes(log: TextLog, trace: Trace | None = None) -> None:
    """Run all passes in order. trace: is called after each."""
    if trace is not None:
        trace(READ, log.log_lines)
    _run_on_log(TIME_PASSES, log, trace)
    texts = {code: SourceText(apart_in_time([*one.log_lines]), one.seen) for code, one in log.texts.items()}
    log.events = {code: list(of.lines) for code, of in texts.items()}
    for each in EVENT_PASSES:
        log.events = {code: list(each.run(log.events[code], of)) for code, of in texts.items()}
        if trace is not None:
            trace(each.name, log.log_lines)
    _run_on_log(LOG_PASSES, log, trace)
    by_job = log.by_job()
    for one in JOB_PASSES:
        for parts in by_job.values():
            one.run(parts, log)
        if trace is not None:
            trace(one.name, log.log_lines)
    job_passes.find_unread_steps(log)


def _run_on_log(passes: Iterable[LogPass], log: TextLog, trace: Trace | None) -> None:
    for one in passes:
        one.run(log)
        if trace is not None:
            trace(one.name, log.log_lines)


def rows_of(log: TextLog) -> tuple[RowBuilder, dict[str, set[str]]]:
    """Return the rows of all events, and the formats of each job."""
    builder = RowBuilder()
    formats: defaultdict[str, set[str]] = defaultdict(set)

    def add(code: int, job: str, log_lines: Sequence[LogLine]) -> None:
        add_rows(builder, code, log.jobs.code(job), log_lines, log.output, log.names[code])

    for (code, log_lines), job in zip(log.parts, log.named, strict=True):
        add(code, job, log_lines)
        formats[job] |= {event_of(log_line).format for log_line in log_lines}
    for code, job, log_lines in log.runs:
        add(code, job, log_lines)
        formats[job].add(RUNS)
    for run in log.tracked:
        for code, log_lines in run.by_source().items():
            add(code, run.job, log_lines)
            job_passes.measure_tracked_run(log, run.job, code, log_lines)
        formats[run.job].add(run.tool)
    return builder, formats


def evidence_of(log: TextLog, entries: Sequence[Identity] = ()) -> EvidenceOfLog:
    """Return the evidence of failures and recoveries in all sources. entries: identities of Cloud Logging entries, by
    code. Call it after the passes, which set the times."""
    found = observations_of(log.every, log.names, _clocks_of(log), log.job_of_source, entries)
    return replace(
        found,
        signs=(*found.signs, *log.signs),
        hosts_of_job=log.hints.hosts_of_job,
        quotes=log.hints.quotes,
        unread_steps=log.unread,
        several_runs=log.several_runs,
        run_names=log.run_names,
    )


def input_lines(log: TextLog) -> dict[str, list[InputLine]]:
    """Return the lines that capabilities read, by rule, with jobs and times. Call it after the passes."""
    found: defaultdict[str, list[InputLine]] = defaultdict(list)
    clock_of, jobs = _clocks_of(log), set(log.named) | log.recorded_jobs
    for code, source in log.every.items():
        if not source.collected:
            continue
        clock = clock_of(code)
        for one in source.collected:
            time = clock.around(one.number)[0] if one.stamp is None else clock.ns(one.stamp, one.number)
            job = one.job if one.job in jobs else log.job_of_source.get(code, "")
            texts = one.text, one.prefix, one.stream, tuple(one.more)
            found[one.rule].append(InputLine(one.rule, job, log.names[code], one.number, time, *texts))
    return found


def _clocks_of(log: TextLog) -> Callable[[int], SourceClock]:
    """Return a function from a source to its clock."""
    zones = zones_of(log.sources, log.names) if log.output.zones is not None else {}
    near = times_of_neighbors(log.every, log.names)

    def clock_of(code: int) -> SourceClock:
        source, zone = log.every[code], zones.get(folder_of(log.names[code]))
        local = local_clock(source.log_lines, log.hints, log.output, zone)[0]
        return SourceClock(source, local, near.get(code, ()), log.hints.year, log.hints.now_ns)

    return clock_of


_NOTHING = "dropped"


class LineTrace:
    """What each pass changed about a line of the first source. Reading a log again begins anew."""

    def __init__(self, line: int) -> None:
        """line: its number."""
        self._line = line
        self.changes: list[tuple[str, str]] = []
        """Each pass that changed it, in order, and what it is then."""

    def __call__(self, name: str, lines_of: Callable[[int], Iterable[LogLine]]) -> None:
        if name == READ:
            self.changes = []
        now = "; ".join(_described(lines_of(0), self._line)) or _NOTHING
        if now != (self.changes[-1][1] if self.changes else _NOTHING):
            self.changes.append((name, now))


def _described(log_lines: Iterable[LogLine], line: int) -> Iterator[str]:
    """Yield what the log lines of a line are: one, or several such as a start and a record."""
    for one in log_lines:
        if one.line == line:
            yield _description(one.event, None if one.event is None else one.event.step, one.time, one.end)
        elif one.inner is not None and int(one.inner.line[0]) <= line <= int(one.inner.line[-1]):
            yield from _described_in(one.inner, line)


def _described_in(inner: Stretch, line: int) -> Iterator[str]:
    at = int(np.searchsorted(inner.line, line))
    if int(inner.line[at]) == line:
        time = int(inner.time[at])
        yield _description(inner.event, inner.first + inner.stride * at, time, time)


def _description(event: ParsedEvent | None, step: int | None, time: int, end: int) -> str:
    if event is None:
        return f"only a time{_at(time)}"
    named = event.type.value if event.type is not EventType.ALIVE else "activity"
    edge = "" if event.edge is Edge.POINT else f" {event.edge.name.lower()}"
    until = f" to {iso(end)}" if end > time else f", {seconds_text(event.took)} s" if event.took else ""
    return f"{named}{edge}{'' if step is None else f' {step}'}{_at(time)}{until}"


def _at(time: int) -> str:
    return f" at {iso(time)}" if time else ""
