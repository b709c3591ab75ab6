"""Convert the log lines of all text sources to rows after everything has been read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.envelope import Identity
from goodput_cli.events.evidence import EvidenceOfLog
from goodput_cli.events.formats.base import RUNS, Output
from goodput_cli.events.inside import RankSteps, within_memory
from goodput_cli.events.rows import Interner, RowBuilder
from goodput_cli.events.schema import Metric
from goodput_cli.events.signs import RecoveryEvent
from goodput_cli.events.tensorboard import folder_of, may_lose_tails, one_start_each
from goodput_cli.events.text.allocation_clock import RowClock, clocks_of_tables, move_rows, with_evidence_moved
from goodput_cli.events.text.allocation_signs import signs_of_allocations
from goodput_cli.events.text.collector import CollectedSource, Collector
from goodput_cli.events.text.counted_steps import by_elapsed, counted_steps
from goodput_cli.events.text.days import local_clock, on_days, zones_of
from goodput_cli.events.text.evidence_times import has_events, observations_of
from goodput_cli.events.text.folders import launch_of, stem_of
from goodput_cli.events.text.infer_times import (
    FoundZone,
    InferredTimes,
    infer_times,
    jumps,
)
from goodput_cli.events.text.inside_lines import inside_of
from goodput_cli.events.text.jobs import NamedJobs, TextFile, name_jobs, reading_folder
from goodput_cli.events.text.kept_stretches import with_stretches
from goodput_cli.events.text.line_timestamps import without_invented_fraction
from goodput_cli.events.text.lines import OTHER_STEPS, UNREAD_STEPS
from goodput_cli.events.text.living_processes import unnamed_epochs, with_untimed_restarts
from goodput_cli.events.text.log_lines import EventType, LogLine, event_of, formats_of
from goodput_cli.events.text.metrics import metrics_of
from goodput_cli.events.text.neighbor_files import (
    completed,
    has_died_after,
    last_steps,
    of_their_programs,
    scalars_with_text,
    times_of_neighbors,
    with_traces,
)
from goodput_cli.events.text.notes import (
    Part,
    note_assumed,
    note_counter,
    note_damage,
    note_few,
    note_jobs,
    note_open,
    note_runs,
    note_source,
)
from goodput_cli.events.text.programs import launcher, megatron, mllog, torchtitan
from goodput_cli.events.text.programs.bar_records import as_records, first_epoch, without_begun_elsewhere
from goodput_cli.events.text.programs.launcher import SACCT, allocations, ends_in_their_second, started_by_scheduler
from goodput_cli.events.text.programs.progress_bars import counted_step, names_trainer
from goodput_cli.events.text.programs.runs import RUN_LINES, group_runs, of_their_runs, run_events
from goodput_cli.events.text.runs_in_file import ends_of_runs
from goodput_cli.events.text.stretches import parts_apart_in_time, placed_stretches
from goodput_cli.events.text.to_rows import (
    ONE_STORY,
    add_rows,
    end_with_time,
    first_begin,
    meaning_of,
    without_preludes,
)
from goodput_cli.events.text.views import one_job_each, placed_by_steps, recorded_steps

if TYPE_CHECKING:
    from goodput_cli.events.reading_options import ReadingOptions
    from goodput_cli.events.trackers.runs import TrackedRun


_NO_TIME = (
    "a trainer's metrics without timestamps; pass its TensorBoard directory instead (runs/), or its "
    "output with the progress bars"
)


_ABOUT_STEPS = frozenset({EventType.STEP, EventType.STEP_START, EventType.STEP_FINISHED})
_OTHER_PROGRAM = 0.05
"""Minimum share of a log's time for training of another program."""
_STARTED_LATE = ("nemo2",)
"""Formats whose programs log their start half a minute late."""


def _note_phase(notes: DiagnosticCollector, code: int, line: int, reason: str) -> None:
    notes.add("bad_phase", notes.bounded("bad_phase", reason), code, [line])


class _InTime(NamedTuple):
    """A source whose lines have times."""

    source: CollectedSource
    placed: InferredTimes
    """Observations made while times were inferred."""
    meaning: list[LogLine]
    """Log lines of its events."""
    zone: FoundZone | None
    """Zone of its timestamps without one, if its lines reveal it."""


class Texts:
    """Converts collected text to rows."""

    def __init__(self, collected: Collector) -> None:
        self._every = collected.sources
        self._sources: dict[int, CollectedSource] = {}
        """Sources with events; set by `rows`."""
        self.metrics: list[Metric] = []
        """Measurements of all jobs; set by `rows`."""
        self.inside: list[RankSteps] = []
        """Times of phases inside steps, of all jobs; set by `rows`."""
        self.earlier: frozenset[str] = frozenset()
        """Jobs that are earlier runs of another one in their folder; set by `rows`."""
        self._beside: dict[int, list[LogLine]] = {}
        """Lines about phases inside steps by source; they are not events."""
        self.jobs_of_runs: dict[str, str] = {}
        """Job of each run of ML Diagnostics; set by `rows`."""
        self.zones: dict[str, FoundZone] = {}
        """Zone of each folder, from collectors' timestamps next to others; set by `rows`."""
        self.former: Mapping[str, str] = {}
        """Names of jobs before 0.2; set by `rows`."""
        self._unread: dict[str, str] = {}
        self._several_runs: dict[str, str] = {}
        self._run_names: dict[str, str] = {}
        self._views: dict[int, str | None] = {}
        self._odd_rows: Mapping[int, RowClock] = {}
        """Correction or warning for the times of a scheduler's rows, by source."""
        self._signs: list[RecoveryEvent] = []
        """Signs of allocations, whose rows may be separate jobs."""
        self._jobs: dict[int, str] = {}
        """Job of each source with events, and of its neighbors in the folder."""

    def rows(
        self,
        names: Sequence[str],
        hints: ReadingOptions,
        output: Output,
        jobs: Interner[str],
        recorded: Mapping[str, Any],
    ) -> tuple[RowBuilder, dict[str, set[str]]]:
        """Return the rows of all sources, and the formats of each job. names: of the sources. recorded: columns of
        non-text events, which may contain the same run as a tracker."""
        self._settle(names, hints, output, is_text=not len(recorded["time"]))
        sources = self._without_runs(names, hints, output.notes)
        parts, run_lines = self._parts(sources, names, hints, output)
        every = tracked = self._tracked(names, hints, output)
        if tracked:
            tracked = _without_recorded(tracked, recorded, jobs.values(), output.notes)
        asked = replace(hints, job_name=None) if hints.job_name in {run.job for run in tracked} else hints
        others = {jobs.values()[code] for code in np.unique(recorded["job"]).tolist()}
        found = _named(parts, sources, names, asked, others | {run.job for run in tracked})
        of_log = recorded_steps(recorded, jobs.values()) if parts else {}
        joined = one_job_each(parts, found.jobs, self._views, names, of_log, output.notes)
        found = replace(found, jobs=joined, assumed=tuple(name for name in found.assumed if name in joined))
        codes = [code for code, _ in parts]
        note_jobs(found, [names[code] for code in codes], output.notes, codes, hints.job_name)
        named, self.earlier = found.jobs, frozenset(found.earlier)
        self.former = {new: old for new, old in found.former.items() if new in named}
        if tracked:
            named = tuple(_same_runs(tracked, parts, named, output.notes))
        runs = self._runs(hints, jobs.values(), output.notes, run_lines)
        by_job: defaultdict[str, list[Part]] = defaultdict(list)
        for part, job in zip(parts, named, strict=True):
            by_job[job].append(part)
        for job, of_job in by_job.items():
            self._signs += signs_of_allocations(job, of_job, names, output.notes, self._odd_rows)
            self._measure(job, of_job, names, output.notes)
            self._put_together(of_job, names, output.notes)
        self._several_runs = {} if hints.job_name is not None else _several_runs(self._every, by_job, names)
        self._unread = _unread_steps(self._every, by_job, names)
        self._jobs = _jobs_of_sources(self._every, by_job, names, {*by_job, *others})
        builder = RowBuilder()
        formats: defaultdict[str, set[str]] = defaultdict(set)
        for (code, log_lines), job in zip(parts, named, strict=True):
            add_rows(builder, code, jobs.code(job), log_lines, output, names[code])
            formats[job] |= {event_of(log_line).format for log_line in log_lines}
        for code, job, log_lines in runs:
            add_rows(builder, code, jobs.code(job), log_lines, output, names[code])
            formats[job].add(RUNS)
        for run in tracked:
            for code, log_lines in run.by_source().items():
                add_rows(builder, code, jobs.code(run.job), log_lines, output, names[code])
                self._measure_run(run.job, code, log_lines, names[code], output.notes)
            formats[run.job].add(run.tool)
        self.jobs_of_runs |= {run.job: run.job for run in tracked}
        self._keep_printed(every)
        return builder, formats

    def _settle(self, names: Sequence[str], hints: ReadingOptions, output: Output, is_text: bool) -> None:
        """Prepare log lines before times are inferred: sort them, drop ambiguous programs, add days, and drop the
        output of Weights & Biases runs that are read themselves. is_text: True if only text contains events."""
        for one in self._every.values():  # Records are grouped by their keys.
            one.log_lines.sort(key=lambda log_line: log_line.line)
        every = of_their_programs(self._every, names)
        self._every = {code: on_days(code, one, hints, output) for code, one in with_traces(every, names).items()}
        if any(one.tracked for one in self._every.values()):
            from goodput_cli.events.trackers.wandb import without_outputs  # imported late: few logs are from trackers

            self._every = without_outputs(self._every, names)
        self._every = with_stretches(self._every, is_text)
        self._sources = {code: one for code, one in self._every.items() if has_events(one)}

    def _keep_printed(self, runs: Sequence[TrackedRun]) -> None:
        """Assign evidence in the output of trackers' processes to their jobs."""
        for run in runs:
            for code, one in run.seen:
                self._every[code].seen.append(replace(one, job=run.job))

    def _tracked(self, names: Sequence[str], hints: ReadingOptions, output: Output) -> list[TrackedRun]:
        """Return the runs of experiment trackers."""
        tracked = {code: source.tracked for code, source in self._sources.items() if source.tracked}
        if not tracked:
            return []
        from goodput_cli.events.trackers.registry import runs_of  # imported late: few logs are from trackers

        runs = runs_of(tracked, names, hints.job_name, hints.exact_run_name, output)
        self._run_names |= {run.job: run.name for run in runs if run.name}
        return runs

    def observed(
        self, names: Sequence[str], hints: ReadingOptions, output: Output, entries: Sequence[Identity] = ()
    ) -> EvidenceOfLog:
        """Return the evidence of failures and recoveries in all sources. Call after `rows`, which sets the times.
        entries: identities of Cloud Logging entries, by code."""
        zones = zones_of(self._sources, names) if output.zones is not None else {}
        near = times_of_neighbors(self._every, names)

        def local(code: int) -> Callable[[int], int]:
            return local_clock(self._every[code].log_lines, hints, output, zones.get(folder_of(names[code])))[0]

        found = observations_of(self._every, names, local, near, hints.year, hints.now_ns, self._jobs, entries)
        found = replace(found, signs=(*found.signs, *self._signs))
        return replace(
            found,
            hosts_of_job=hints.hosts_of_job,
            quotes=hints.quotes,
            unread_steps=self._unread,
            several_runs=self._several_runs,
            run_names=self._run_names,
        )

    def _in_time(
        self, sources: Mapping[int, CollectedSource], names: Sequence[str], hints: ReadingOptions, output: Output
    ) -> dict[int, _InTime]:
        """Return each source with the times of its lines."""
        zones = self.zones = zones_of(self._sources, names) if output.zones is not None else {}
        near = times_of_neighbors(self._sources, names)
        trainers = {stem_of(names[code]) for code, source in sources.items() if names_trainer(source.log_lines)}
        found: dict[int, _InTime] = {}
        first = first_epoch(source.log_lines for source in sources.values())
        twins = scalars_with_text(sources, names)
        for code, source in completed(sources, names).items():
            if code in twins:
                message = "scalars without a time of day, next to the log output of their run: not read"
                output.notes.add("other_output", message, code, [], (), len(source.log_lines))
                continue
            read = source.log_lines
            source.log_lines = _settled(read, stem_of(names[code]) in trainers, first, hints)
            if read and not source.log_lines and not source.noise:
                output.notes.add("no_time_in_log", _NO_TIME, code, [read[0].line], (), len(read))
            zone = zones.get(folder_of(names[code]))
            placed = self._placed(source, hints, output, zone, near.get(code, ()))
            meaning = meaning_of(source.log_lines, source.seen) + (
                first_begin(source.log_lines) if placed.no_clock else []
            )
            meaning += last_steps(code, meaning, self._every, names)
            if hints.mapping:
                meaning += unnamed_epochs(meaning, hints.mappings.with_unknown_epochs(formats_of(meaning)))
            died = partial(has_died_after, code, sources=self._every, names=names)
            meaning += list(ends_of_runs(meaning, died))
            found[code] = _InTime(source, placed, meaning, zone)
        self._settle_rows(found, names, output)
        return found

    def _settle_rows(self, found: Mapping[int, _InTime], names: Sequence[str], output: Output) -> None:
        """Move scheduler rows into the zone of the text of their allocations, if both show that the zones differ."""
        placed = {code: one.source.log_lines for code, one in found.items()}
        self._odd_rows = clocks_of_tables(placed, names, output.zones is not None)
        for code, clock in self._odd_rows.items():
            output.notes.add("allocation_clock", clock.message, code, [clock.line])
            if clock.ahead:
                rows = {id(one): one for one in (*placed[code], *found[code].meaning)}
                move_rows(rows.values(), clock.ahead)
                self._every[code] = with_evidence_moved(self._every[code], clock.ahead)

    def _parts(
        self, sources: Mapping[int, CollectedSource], names: Sequence[str], hints: ReadingOptions, output: Output
    ) -> tuple[list[Part], list[tuple[int, LogLine]]]:
        """Return the log lines of each source with times, a part per allocation; and lines of ML Diagnostics runs
        without a run name."""
        in_time = self._in_time(sources, names, hints, output)
        of_events = [(code, one.meaning) for code, one in in_time.items() if one.source.events]
        unclocked = {code: one.meaning for code, one in in_time.items() if one.placed.no_clock}
        self._views = placed_by_steps(of_events, unclocked, names) if of_events and unclocked else {}
        parts: list[Part] = []
        run_lines: list[tuple[int, LogLine]] = []
        for code, (source, placed, meaning, zone) in in_time.items():
            if code in self._views:
                placed = replace(placed, no_clock=False, anew=())
            elif placed.no_clock:
                meaning = with_untimed_restarts(meaning)
            note_source(code, source, placed, output, zone)
            if code in self._views and self._views[code] is None:
                message = "no line has a timestamp, and processes or last steps differ from the event files next to it"
                output.notes.add("view_not_joined", f"{message}: not joined", code, [1])
                continue
            jump = jumps(source.log_lines)
            if jump is not None:
                output.notes.add("clock_jumps", jump[1], code, [jump[0]])
            if hints.mapping:
                note_assumed(code, meaning, hints, output.notes)
            note_counter(code, meaning, output.notes)
            if source.interleaved is not None and hints.job_name is None:
                found = source.interleaved
                output.notes.add("several_runs_in_file", found.sentence, code, list(found.lines))
            note_open(code, meaning, output.notes)
            run_lines += [(code, log_line) for log_line in meaning if event_of(log_line).format == RUN_LINES]
            meaning = [log_line for log_line in meaning if event_of(log_line).format != RUN_LINES]
            self._beside[code] = [log_line for log_line in meaning if event_of(log_line).type is EventType.PHASE]
            meaning = [log_line for log_line in meaning if event_of(log_line).type is not EventType.PHASE]
            parts += [(code, part) for part in allocations(meaning) if part]
        return parts, run_lines

    def _without_runs(
        self, names: Sequence[str], hints: ReadingOptions, notes: DiagnosticCollector
    ) -> dict[int, CollectedSource]:
        """Return all sources with the log lines of their text and event files."""
        of_event_files = self._of_event_files(names, hints, notes)
        return {
            code: replace(
                source, log_lines=[one for one in of_event_files.get(code, source.log_lines) if not _is_run(one)]
            )
            for code, source in self._sources.items()
        }

    def _measure(self, job: str, parts: Sequence[Part], names: Sequence[str], notes: DiagnosticCollector) -> None:
        """Collect the measurements of a job, and the times of phases inside its steps."""
        beside = {code: self._beside.get(code, []) for code, _ in parts}
        every = [log_line for _, part in parts for log_line in part]
        self.metrics += metrics_of(job, [*every, *(log_line for lines in beside.values() for log_line in lines)])
        found: list[RankSteps] = []
        for code, lines in (*parts, *beside.items()):
            found += inside_of(job, lines, names[code], partial(_note_phase, notes, code))
        traced = [(code, process) for code in beside for process in self._every[code].processes.values()]
        for code, process in traced:
            for line in process.too_long:
                _note_phase(notes, code, line, "a span is longer than its step; ignored")
        self.inside += within_memory([*found, *torchtitan.inside_of(job, traced, names)])

    def _measure_run(
        self, job: str, code: int, log_lines: Sequence[LogLine], name: str, notes: DiagnosticCollector
    ) -> None:
        """Collect the same for a run of a tracker."""
        if any(event_of(one).phases or event_of(one).metrics for one in log_lines):
            self.metrics += metrics_of(job, log_lines)
            self.inside += within_memory(inside_of(job, log_lines, name, partial(_note_phase, notes, code)))

    def _put_together(self, parts: Sequence[Part], names: Sequence[str], notes: DiagnosticCollector) -> None:
        """Adjust events that depend on all parts of a job: its starts, and lines that depend on others."""
        log_lines = [log_lines for _, log_lines in parts]
        for part, apart in zip(log_lines, parts_apart_in_time(log_lines), strict=True):
            part[:] = apart
        note_few(parts, notes)
        end_with_time(
            sorted(
                (log_line for part in log_lines for log_line in part),
                key=lambda log_line: (log_line.time, log_line.line),
            )
        )
        ends_in_their_second(log_lines)
        started_by_scheduler(log_lines)
        megatron.late_starts(log_lines)
        launcher.started_by_launcher(log_lines, _STARTED_LATE)
        launcher.began_before(log_lines)
        launcher.outlive(log_lines)
        launcher.start_each([(launch_of(names[code]), one) for code, one in parts])
        without_begun_elsewhere(log_lines)
        one_start_each(log_lines)
        without_preludes(log_lines)
        if may_lose_tails(log_lines):
            message = "event files end up to 2 min before their writers died"
            notes.add("tail_may_be_lost", message, parts[0][0], [1])

    def _runs(
        self,
        hints: ReadingOptions,
        jobs: Sequence[str],
        notes: DiagnosticCollector,
        lines: Sequence[tuple[int, LogLine]],
    ) -> list[tuple[int, str, list[LogLine]]]:
        """Return (source, job, log lines) of ML Diagnostics runs. lines: output of their programs."""
        log_lines = {
            code: [log_line for log_line in one.log_lines if _is_run(log_line)] for code, one in self._sources.items()
        }
        for code, log_line in of_their_runs(lines, log_lines):
            log_lines[code].append(log_line)
        every = [log_line for part in log_lines.values() for log_line in part]
        if not every:
            return []
        grouped = group_runs(every, hints.job_name, [job for job in jobs if job != RUNS], hints.exact_run_name)
        self._run_names |= {grouped.jobs[run]: name for run, name in grouped.names.items()}
        self.jobs_of_runs |= grouped.jobs
        note_runs(grouped, every, next(code for code, part in log_lines.items() if part), notes)
        by_job: defaultdict[str, list[LogLine]] = defaultdict(list)
        source_of = {id(log_line): code for code, part in log_lines.items() for log_line in part}
        for log_line in every:
            by_job[grouped.jobs[event_of(log_line).job]].append(log_line)
        found: list[tuple[int, str, list[LogLine]]] = []
        for job, part in by_job.items():
            self.metrics += metrics_of(job, part)
            several = len({event_of(log_line).job for log_line in part}) > 1
            events = [log_line for log_line in part if event_of(log_line).type is not EventType.PHASE]
            meaning = run_events(events, several, job in jobs)
            by_source: defaultdict[int, list[LogLine]] = defaultdict(list)
            places = {(log_line.line, log_line.entry, log_line.time): source_of[id(log_line)] for log_line in part}
            for log_line in meaning:
                by_source[places[log_line.line, log_line.entry, log_line.time]].append(log_line)
            found += [(code, job, rows) for code, rows in by_source.items()]
        return found

    def _of_event_files(
        self, names: Sequence[str], hints: ReadingOptions, notes: DiagnosticCollector
    ) -> dict[int, list[LogLine]]:
        """Return the log lines of event files by source; files of one job share the tag of its steps."""
        folders: defaultdict[str, list[int]] = defaultdict(list)
        for code, source in self._sources.items():
            note_damage(code, source, notes)
            if source.events:
                folders[folder_of(names[code])].append(code)
        if not folders:
            return {}
        from goodput_cli.events import tensorboard

        log_lines: dict[int, list[LogLine]] = {}
        for codes in folders.values():
            files = [self._sources[code].events for code in codes]
            tags = tensorboard.step_tags(files, hints.tensorboard_tag)
            from_0 = hints.tensorboard_tag is None and tensorboard.steps_count_from_0(files, tags)
            for code, events, tag in zip(codes, files, tags, strict=True):
                log_lines[code] = tensorboard.marks_of(events, names[code], tag, from_0)
                if tag is not None:
                    shown = notes.bounded("step_tag", tag)
                    notes.add(
                        "step_tag", f"steps come from the scalar {shown}; --tensorboard-tag selects another", code, [1]
                    )
        return log_lines

    @staticmethod
    def _placed(
        source: CollectedSource, hints: ReadingOptions, output: Output, zone: FoundZone | None, near: Sequence[int]
    ) -> InferredTimes:
        modified = source.modified_ns or hints.now_ns
        local, said_zone = local_clock(source.log_lines, hints, output, zone)
        when = hints.clock_start
        start = None if when is None else when.value if when.kind == "instant" else local(when.value)
        source.log_lines = placed_stretches(source.log_lines, local)
        placed = infer_times(source.log_lines, modified, hints.year, local, ONE_STORY, near, start)
        placed = replace(placed, anew=by_elapsed(source.log_lines))
        return replace(placed, naive=()) if said_zone else placed


def _several_runs(
    sources: Mapping[int, CollectedSource], by_job: Mapping[str, Sequence[Part]], names: Sequence[str]
) -> dict[str, str]:
    """See `EvidenceOfLog.several_runs`."""
    found: dict[str, str] = {}
    for code, place in _other_programs(sources):
        for job, parts in by_job.items():
            if any(part == code for part, _ in parts):
                found.setdefault(
                    job, f"{names[code]}:{place} looks like a step of another program, in an unknown format"
                )
    for job, parts in by_job.items():
        for code, log_lines in parts:
            turns = sources[code].interleaved
            if (
                turns is not None
                and not turns.is_question
                and any(event_of(log_line).type in _ABOUT_STEPS for log_line in log_lines)
            ):
                found.setdefault(job, f"several runs seem to print into one file ({names[code]}:{turns.lines[1]})")
    return found


def _other_programs(sources: Mapping[int, CollectedSource]) -> Iterator[tuple[int, int]]:
    """Yield each source in which the steps of another program, which no rule reads, precede the first step that one
    reads, with the line of the first of them. They cover more than a small part of the time."""
    for code, one in sources.items():
        if len(one.unread_steps) < OTHER_STEPS:
            continue
        begin = min(one.unread_steps)
        later = [line for line in one.log_lines if line.line >= begin]
        first = next((at for at, line in enumerate(later) if line.event and counted_step(line.event) is not None), None)
        stamps = [line.stamp.ns for line in later if line.stamp is not None]
        before = [line.stamp.ns for line in later[:first] if line.stamp is not None]
        if first is not None and before and before[-1] - before[0] > _OTHER_PROGRAM * (stamps[-1] - before[0]):
            yield code, begin


def _unread_steps(
    sources: Mapping[int, CollectedSource], by_job: Mapping[str, Sequence[Part]], names: Sequence[str]
) -> dict[str, str]:
    """See `EvidenceOfLog.unread_steps`."""
    unread: dict[str, str] = {}
    for code, one in sources.items():
        if len(one.unread_steps) >= UNREAD_STEPS:
            unread.setdefault(reading_folder(names[code]), f"{names[code]}:{min(one.unread_steps)}")
    found: dict[str, str] = {}
    for job, parts in by_job.items() if unread else ():
        first_line = next((unread[home] for code, _ in parts if (home := reading_folder(names[code])) in unread), "")
        if first_line and not any(
            event_of(log_line).type in _ABOUT_STEPS for _, log_lines in parts for log_line in log_lines
        ):
            found[job] = first_line
    if unread and not by_job:
        found[""] = next(iter(unread.values()))
    return found


def _same_runs(
    tracked: Sequence[TrackedRun], parts: Sequence[Part], named: Sequence[str], notes: DiagnosticCollector
) -> list[str]:
    """Return the job of each part, merged with the same run in a tracker."""
    from goodput_cli.events.trackers.registry import same_runs  # imported late: few logs are from trackers

    by_job: defaultdict[str, list[LogLine]] = defaultdict(list)
    for (_, log_lines), job in zip(parts, named, strict=True):
        by_job[job] += log_lines
    renamed = same_runs(tracked, by_job, notes)
    return [renamed.get(job, job) for job in named]


def _without_recorded(
    tracked: Sequence[TrackedRun], recorded: Mapping[str, Any], jobs: Sequence[str], notes: DiagnosticCollector
) -> list[TrackedRun]:
    from goodput_cli.events.trackers.registry import without_recorded  # imported late: few logs are from trackers

    return without_recorded(tracked, recorded, jobs, notes)


def _settled(log_lines: list[LogLine], of_trainer: bool, first: int, hints: ReadingOptions) -> list[LogLine]:
    """Return the log lines of a text in order of time, without those that better ones replace. first: number of the
    first epoch of bars."""
    if any(log_line.entry >= 0 for log_line in log_lines):  # Entries may be in any order.
        log_lines = sorted(
            log_lines, key=lambda log_line: (0 if log_line.stamp is None else log_line.stamp.ns, log_line.line)
        )
    elif any(b.line < a.line for a, b in pairwise(log_lines)):  # Records are grouped by their keys.
        log_lines = sorted(log_lines, key=lambda log_line: log_line.line)
    stamped = [(log_line, log_line.stamp) for log_line in log_lines if log_line.stamp is not None]
    whole = without_invented_fraction([stamp for _, stamp in stamped])
    for (log_line, _), stamp in zip(stamped, whole, strict=True):
        log_line.stamp = stamp
    records = as_records(counted_steps(launcher.next_jobs(mllog.alone(log_lines))), of_trainer, first)
    log_lines = launcher.longest_waits(records)
    own_clock = hints.mapping and hints.mappings.has_own_clock(formats_of(log_lines))
    return [log_line for log_line in log_lines if log_line.event is not None] if own_clock else log_lines


def _named(
    parts: Sequence[Part],
    sources: Mapping[int, CollectedSource],
    names: Sequence[str],
    hints: ReadingOptions,
    others: Collection[str],
) -> NamedJobs:
    """Return the job of each part. others: jobs in sources other than text."""
    codes = [code for code, _ in parts]
    own = {code: _own_job(sources[code].log_lines, names[code], hints) for code in codes}
    return name_jobs(
        [
            _file(names[code], log_lines, own[code], sources[code].losses, several=len(parts) > 1)
            for code, log_lines in parts
        ],
        hints.job_name,
        hints.join,
        hints.shared_levels,
        others,
    )


def _file(
    name: str, events: Sequence[LogLine], own_job: str, losses: Mapping[int, float], *, several: bool
) -> TextFile:
    """Return what a file shows of its job. several: whether its steps are compared with those of others."""
    steps: dict[int, int] = {}
    for log_line in events:
        one = event_of(log_line)
        if one.type is EventType.STEP and one.step is not None:
            steps.setdefault(one.step, log_line.end)
        if log_line.inner is not None and several:
            for step, time in zip(log_line.inner.steps.tolist(), log_line.inner.time.tolist(), strict=True):
                steps.setdefault(step, time)
    times = [time for log_line in events for time in (log_line.time, log_line.end)]
    first = event_of(events[0])
    by_scheduler = first.format == SACCT  # Then all are; see `allocations`.
    own, number = (first.job, first.name) if by_scheduler else (own_job, "")
    if first.format == mllog.NAME and first.job:
        own = f"{own}.{first.job}"
    restores = any(event_of(one).type is EventType.RESTORE and event_of(one).step != 0 for one in events)
    return TextFile(name, own, min(times), max(times), steps, number, restores, losses)


def _own_job(log_lines: Sequence[LogLine], source: str, hints: ReadingOptions) -> str:
    """Return the job name in the text of a source: that of an experiment before that of a folder."""
    of_mllog = [
        log_line for log_line in log_lines if log_line.event is not None and log_line.event.format == mllog.NAME
    ]
    if of_mllog:
        return mllog.job_of(of_mllog, source)
    names = {one.name: one.job for one in (log_line.event for log_line in log_lines) if one is not None and one.job}
    names.pop("log_interval", None)
    of_path = hints.mappings.job_in(source, formats_of(log_lines)) if hints.mapping else ""
    return of_path or names.get("wandb_exp_name") or next(iter(names.values()), "")


def _is_run(log_line: LogLine) -> bool:
    return log_line.event is not None and log_line.event.format == RUNS


def _jobs_of_sources(
    sources: Mapping[int, CollectedSource], by_job: Mapping[str, Sequence[Part]], names: Sequence[str], jobs: set[str]
) -> dict[int, str]:
    """Return the job of each source: that of its events, otherwise the only job in its folder, otherwise the only job
    of the log. Sources that several jobs may have written are omitted. jobs: all of the log."""
    homes: defaultdict[str, set[str]] = defaultdict(set)
    own: defaultdict[int, set[str]] = defaultdict(set)
    for job, parts in by_job.items():
        for code, log_lines in parts:
            homes[reading_folder(names[code])].add(job)
            if any(event_of(log_line).format != SACCT for log_line in log_lines):
                own[code].add(job)
    found: dict[int, str] = {}
    for code in sources:
        named = next((some for some in (own[code], homes[reading_folder(names[code])], jobs) if some), set())
        if len(named) == 1:
            found[code] = next(iter(named))
    return found
