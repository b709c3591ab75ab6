"""The state of the passes: the text sources of a log, what is known of them so far, and the diagnostics about them.

Diagnostics are about bad values, unrecognized lines, timestamps without year or zone, files that may be of several
jobs, and silent hosts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from goodput_cli.diagnostics.diagnostic import DiagnosticCollector, renamed
from goodput_cli.events.formats.base import Output
from goodput_cli.events.inside import RankSteps
from goodput_cli.events.rows import Interner
from goodput_cli.events.schema import Metric
from goodput_cli.events.signs import RecoveryEvent
from goodput_cli.events.text.activity import LEFT_OPEN
from goodput_cli.events.text.allocation_clock import is_table
from goodput_cli.events.text.collector import CollectedSource
from goodput_cli.events.text.infer_times import InferredTimes
from goodput_cli.events.text.jobs import NamedJobs
from goodput_cli.events.text.log_lines import EventType, LogLine, event_of
from goodput_cli.events.text.programs import mllog
from goodput_cli.events.text.programs.runs import GroupedRuns, silent_hosts
from goodput_cli.events.text.source_clocks import FoundZone, begun_again

if TYPE_CHECKING:
    from goodput_cli.events.reading_options import ReadingOptions
    from goodput_cli.events.text.allocation_clock import RowClock
    from goodput_cli.events.trackers.runs import TrackedRun


Part = tuple[int, list[LogLine]]
"""A source, and its log lines of one allocation."""


@dataclass
class TextLog:
    """The text sources of a log. Each pass sets the fields that it finds; dictionaries have source codes as keys."""

    names: Sequence[str]
    """Names of the sources, by code."""
    hints: ReadingOptions
    output: Output
    jobs: Interner[str]
    recorded: Mapping[str, Any]
    """Columns of the events that are not from text."""
    every: dict[int, CollectedSource]
    """All sources."""

    sources: dict[int, CollectedSource] = field(default_factory=dict)
    """Sources with events."""
    texts: dict[int, CollectedSource] = field(default_factory=dict)
    """The same, without lines of ML Diagnostics runs."""
    zones: dict[str, FoundZone] = field(default_factory=dict)
    """Zone of each folder, from collectors' timestamps next to others."""
    times: dict[int, InferredTimes] = field(default_factory=dict)
    """What was observed while times were inferred."""
    events: dict[int, list[LogLine]] = field(default_factory=dict)
    """Log lines that are events."""
    row_clocks: Mapping[int, RowClock] = field(default_factory=dict)
    """Correction or warning for the times of a scheduler's rows."""
    views: dict[int, str | None] = field(default_factory=dict)
    """Folder of the event files that give a text without a clock its times; None if they disagree."""
    phase_lines: dict[int, list[LogLine]] = field(default_factory=dict)
    """Lines about phases inside steps, which are not events."""
    run_lines: list[tuple[int, LogLine]] = field(default_factory=list)
    """Lines of ML Diagnostics runs without a run name."""
    parts: list[Part] = field(default_factory=list)
    """Events by source and allocation."""
    tracked: list[TrackedRun] = field(default_factory=list)
    """Runs of experiment trackers."""
    named: Sequence[str] = ()
    """Job of each part."""
    runs: list[tuple[int, str, list[LogLine]]] = field(default_factory=list)
    """Source, job and log lines of ML Diagnostics runs."""

    earlier: frozenset[str] = frozenset()
    """Jobs that are earlier runs of another one in their folder."""
    former: Mapping[str, str] = field(default_factory=dict)
    """Names of jobs before 0.2."""
    run_names: dict[str, str] = field(default_factory=dict)
    """Name of the run of each job, if it differs."""
    jobs_of_runs: dict[str, str] = field(default_factory=dict)
    """Job of each run of ML Diagnostics or of a tracker."""
    job_of_source: dict[int, str] = field(default_factory=dict)
    """Job of each source with events, and of its neighbors in the folder."""
    signs: list[RecoveryEvent] = field(default_factory=list)
    """Signs of allocations, whose rows may be separate jobs."""
    metrics: list[Metric] = field(default_factory=list)
    """Measurements of all jobs."""
    inside: list[RankSteps] = field(default_factory=list)
    """Times of phases inside steps, of all jobs."""
    unread: dict[str, str] = field(default_factory=dict)
    """See `EvidenceOfLog.unread_steps`."""
    several_runs: dict[str, str] = field(default_factory=dict)
    """See `EvidenceOfLog.several_runs`."""

    @property
    def recorded_jobs(self) -> set[str]:
        """Return the jobs of events that are not from text."""
        return {self.jobs.values()[code] for code in np.unique(self.recorded["job"]).tolist()}

    def by_job(self) -> dict[str, list[Part]]:
        """Return the parts of each job."""
        found: defaultdict[str, list[Part]] = defaultdict(list)
        for part, job in zip(self.parts, self.named, strict=True):
            found[job].append(part)
        return found

    def log_lines(self, code: int) -> Iterator[LogLine]:
        """Yield the log lines of a source in their present state."""
        if self.parts:
            yield from (one for part, lines in self.parts if part == code for one in lines)
        elif self.events:
            yield from self.events.get(code, ())
        elif code in self.texts or code in self.sources or code in self.every:
            yield from (self.texts.get(code) or self.sources.get(code) or self.every[code]).log_lines


_NAMED = 3
"""Maximum number of files in a message."""
_FEW = 3
"""Minimum number of step records for a usual step time."""


def note_source(
    code: int, source: CollectedSource, placed: InferredTimes, output: Output, zone: FoundZone | None
) -> None:  # fmt: skip
    """Report the problems of one source. zone: of its timestamps without one, if its lines reveal it."""
    notes = output.notes
    for line, reason in source.bad:
        notes.add("bad_value", f"{notes.bounded('bad_value', reason)}; the line is ignored", code, [line])
    events = [log_line for log_line in source.log_lines if log_line.event is not None]
    if not events and not source.events:
        if source.noise and not source.bad:
            notes.add("unrecognised_lines", "text in which no line is recognized", code, [1], (), source.noise)
        return
    if source.noise:
        notes.add("other_output", "text lines without information about time", code, [], (), source.noise)
    _note_zone(code, placed, output, zone)
    if placed.without_year:
        message = "timestamps without a year; --year sets it"
        notes.add("assumed_year", message, code, list(placed.without_year), (), len(placed.without_year))
    if placed.no_clock:
        message = "no line has a timestamp; times count back from the file's modification time, or from --start on"
        notes.add("no_clock", message, code, [events[0].line])
    if placed.back and not source.events and not is_table(events):  # Rows are in the order of jobs.
        notes.add("stamps_go_back", "the clock goes back between two lines", code, list(placed.back))
    anew = placed.anew or begun_again(source.log_lines)
    if anew and placed.no_clock:
        message = "elapsed time starts again: a new process began, and the downtime before it is unknown (counted as 0)"
        notes.add("clock_begins_anew", message, code, list(anew))
    if placed.missing:
        message = "step numbers jump between records without timestamps; the jump takes no time"
        notes.add("missing_records", message, code, list(placed.missing))


def _note_zone(code: int, placed: InferredTimes, output: Output, zone: FoundZone | None) -> None:
    notes = output.notes
    if placed.naive and zone is not None:
        message = f"timestamps without a zone are read in {zone}, which the log collector's timestamps reveal"
        notes.add(
            "timezone_found", f"{message}; --timezone overrides it", code, list(placed.naive), (), placed.naive_count
        )
    elif placed.naive:
        message = f"timestamps without a zone are read as {output.clock.zone}; --timezone sets their zone"
        notes.add("naive_timestamps", message, code, list(placed.naive), (), placed.naive_count)


def note_counter(code: int, meaning: Sequence[LogLine], notes: DiagnosticCollector) -> None:
    """Report steps of MLPerf that are samples because the number of samples per step is unknown."""
    lines = [
        log_line.line
        for log_line in meaning
        if log_line.event and (log_line.event.format, log_line.event.name) == (mllog.NAME, mllog.SAMPLES)
    ]
    if lines:
        message = "step numbers count samples, because the log contains no `global_batch_size`"
        notes.add("counter_is_no_step", message, code, lines[:1], (), len(lines))


def note_assumed(code: int, meaning: Sequence[LogLine], hints: ReadingOptions, notes: DiagnosticCollector) -> None:
    """Report the assumptions of the drafted mapping that read these lines."""
    first: dict[str, int] = {}
    for log_line in meaning:
        first.setdefault(event_of(log_line).format, log_line.line)
    for name, sentence in hints.mappings.assumed_of(first):
        message = f"the inferred rules ({name}) assume: {notes.bounded('drafted_mapping', sentence)}"
        notes.add("drafted_mapping", message, code, [first[name]])


def note_few(parts: Sequence[Part], notes: DiagnosticCollector) -> None:
    """Report a job with too few step records to know the usual step time."""
    records = [
        (code, log_line)
        for code, log_lines in parts
        for log_line in log_lines
        if event_of(log_line).type in (EventType.STEP, EventType.STEP_START)
    ]
    if 0 < len({event_of(log_line).step for _, log_line in records}) < _FEW and not _state_intervals(parts):
        message = (
            "only one step record: the step time is unknown"
            if len(records) == 1
            else ("only two step records: one interval is not a usual step time")
        )
        notes.add(
            "few_records",
            message,
            records[0][0],
            [log_line.line for code, log_line in records if code == records[0][0]],
        )


def _state_intervals(parts: Sequence[Part]) -> bool:
    """Return True if each record of steps states how long they took, after a line that states where they began."""
    first: LogLine | None = None
    began: int | None = None
    for log_line in (log_line for _, log_lines in parts for log_line in log_lines):
        one = event_of(log_line)
        if one.type is EventType.RESUME and one.step is not None:
            began = log_line.time if began is None else min(began, log_line.time)
        elif one.type in (EventType.STEP, EventType.STEP_START):
            if one.step_time is None:
                return False
            first = log_line if first is None or log_line.time < first.time else first
    return first is not None and began is not None and began < first.time


def note_open(code: int, meaning: Sequence[LogLine], notes: DiagnosticCollector) -> None:
    """Report saves and restores without an end line."""
    lines = [log_line.line for log_line in meaning if event_of(log_line).name == LEFT_OPEN]
    if lines:
        message = "a save or restore without an end line; it is assumed to last until its process ended"
        notes.add("open_interval", message, code, lines, (), len(lines))


def note_runs(grouped: GroupedRuns, log_lines: Sequence[LogLine], code: int, notes: DiagnosticCollector) -> None:
    first = [log_lines[0].line], [log_lines[0].entry]
    apart = "--exact-run-name separates them"
    if grouped.together:
        notes.add("runs_grouped", f"runs whose names differ only in the start time are one job; {apart}", code, *first)
    if grouped.likely:
        message = "runs with equal userConfigs and continuing steps are probably one job"
        notes.add("runs_grouped", f"{message}; {apart}", code, *first)
    if grouped.apart:
        message = "run names are numbers and do not show which runs are one job; --job-name merges all"
        notes.add("runs_not_grouped", message, code, *first)
    for host, log_line in silent_hosts(log_lines):
        shown = notes.bounded("host_silent", host)
        notes.add(
            "host_silent",
            f"host {shown} stopped logging while others continue",
            code,
            [log_line.line],
            [log_line.entry],
        )


def note_damage(code: int, source: CollectedSource, notes: DiagnosticCollector) -> None:
    if source.damaged:
        message = "records of an event file with a wrong checksum or without an event; ignored"
        notes.add("malformed_records", message, code, source.damaged)
    if source.broken is not None:
        message = "an event file is damaged here; the rest of it is unreadable"
        notes.add("malformed_records", message, code, [source.broken])


def note_jobs(
    named: NamedJobs, names: Sequence[str], notes: DiagnosticCollector, codes: Sequence[int], asked: str | None
) -> None:
    """Report the assumptions made when files were grouped into jobs. asked: the requested job."""
    if named.asked and asked is not None:
        then = "--job-name reads them as one job" if len(named.asked) > 1 else "--job-name accepts the old one"
        notes.add("job_renamed", renamed(asked, named.asked, then), codes[named.jobs.index(asked)], [1])
    if named.own_name and asked is not None and asked in named.jobs:
        message = f"the log names the job {named.own_name}; it is read as {asked} (from --job-name)"
        notes.add("job_named_otherwise", message, codes[named.jobs.index(asked)], [1])
    for name in named.assumed:
        at = named.jobs.index(name)
        shown = notes.bounded("job_name_assumed", name)
        notes.add(
            "job_name_assumed", f"no job name in the log; named after its file or directory: {shown}", codes[at], [1]
        )
    for folder in named.disagreeing:
        at = next(at for at, name in enumerate(names) if (name.rpartition("/")[0] or ".") == folder)
        shown = notes.bounded("several_jobs_in_folder", folder)
        message = (
            f"files in {shown} overlap in time with different steps: they are separate jobs, named after their files"
        )
        notes.add("several_jobs_in_folder", message, codes[at], [1])
    for same in named.alike:
        shown = notes.bounded("same_steps_in_files", _listed([names[at].rpartition("/")[2] for at in same]))
        message = (
            f"{len(same)} files record the same steps at the same times: {shown}. They count as processes of one job. "
            "If each is a separate job, pass one of them"
        )
        for at in same:
            notes.add("same_steps_in_files", message, codes[at], [1])
    for same in named.unlike:
        shown = notes.bounded("same_steps_in_files", _listed([names[at].rpartition("/")[2] for at in same]))
        message = (
            f"{len(same)} files record the same steps at the same times with different losses: {shown}. They count as "
            "ranks of one job. If each is a separate run, pass one of them. If they are one job, confirm it with "
            "--job-name"
        )
        for at in same:
            notes.add("same_steps_in_files", message, codes[at], [1])
    for name in dict.fromkeys(named.earlier.values()):
        old = [one for one, last in named.earlier.items() if last == name]
        shown = notes.bounded("earlier_runs", _listed(old))
        last = notes.bounded("earlier_runs", name)
        message = (
            f"{last} is only the last run: its files begin at the first step, without a restore or job name, more "
            f"than 14 days after {shown}; --join reads all as one job"
        )
        notes.add("earlier_runs", message, codes[named.jobs.index(name)], [1])


def _listed(names: Sequence[str]) -> str:
    few = ", ".join(names[:_NAMED])
    return few + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
