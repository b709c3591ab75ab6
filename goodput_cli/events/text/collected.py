"""The marks of all sources of text, and the rows that they become once everything has been read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from goodput_cli.diagnostics.collector import DiagnosticCollector
from goodput_cli.events.formats.base import Output
from goodput_cli.events.formats.mldiagnostics import NAME as RUNS
from goodput_cli.events.interner import Interner
from goodput_cli.events.rows import RowBuilder
from goodput_cli.events.schema import Metric
from goodput_cli.events.tensorboard.meaning import folder_of, may_lose_tails, one_start_each
from goodput_cli.events.text.beside import completed, stem_of, times_beside
from goodput_cli.events.text.jobs import TextFile, name_jobs
from goodput_cli.events.text.marks import Mark, What
from goodput_cli.events.text.meaning import said
from goodput_cli.events.text.measured import metrics_of
from goodput_cli.events.text.noticed import note_damage, note_jobs, note_runs, note_source
from goodput_cli.events.text.parts import CollectedSource, Collector
from goodput_cli.events.text.place import Placed, place
from goodput_cli.events.text.programs import launcher, megatron, mllog, scheduler
from goodput_cli.events.text.programs.progress_bars import as_records, names_trainer
from goodput_cli.events.text.programs.runs import RUN_LINES, group_runs, of_their_runs, run_events
from goodput_cli.events.text.programs.scheduler import allocations, ends_in_their_second, started_by_scheduler
from goodput_cli.events.text.running import by_elapsed, settled
from goodput_cli.events.text.to_rows import ONE_STORY, add_rows
from goodput_cli.events.text.translated import end_with_time, first_begin, meaning_of, without_preludes
from goodput_cli.events.text.zones import FoundZone
from goodput_cli.events.timestamps.iso import TimestampReader
from goodput_cli.vocabulary.zones import load_zone

if TYPE_CHECKING:
    from goodput_cli.events.hints import Hints

_Part = tuple[int, list[Mark]]
"""A source, and what it says of one allocation."""
_STARTED_LATE = ("nemo2",)
"""Formats whose programs say that they began half a minute after they did."""


class Texts:
    """Makes rows of what was collected."""

    def __init__(self, collected: Collector) -> None:
        self._sources = collected.sources
        self.metrics: list[Metric] = []
        """What was measured, of all jobs; made by `rows`."""

    def rows(
        self, names: Sequence[str], hints: Hints, output: Output, jobs: Interner[str]
    ) -> tuple[RowBuilder, dict[str, set[str]]]:
        """The rows of all sources, and the formats of each job. names: of the sources."""
        sources = self._without_runs(names, hints, output.notes)
        parts, run_lines = self._parts(sources, names, hints, output)
        named = _named(parts, sources, names, hints, output.notes)
        runs = self._runs(hints, jobs.values(), output.notes, run_lines)
        by_job: defaultdict[str, list[_Part]] = defaultdict(list)
        for part, job in zip(parts, named, strict=True):
            by_job[job].append(part)
        for job, of_job in by_job.items():
            self._put_together(job, of_job, output.notes)
        builder = RowBuilder()
        formats: defaultdict[str, set[str]] = defaultdict(set)
        for (code, marks), job in zip(parts, named, strict=True):
            add_rows(builder, code, jobs.code(job), marks, output, names[code])
            formats[job] |= {said(mark).format for mark in marks}
        for code, job, marks in runs:
            add_rows(builder, code, jobs.code(job), marks, output, names[code])
            formats[job].add(RUNS)
        return builder, formats

    def _parts(
        self, sources: Mapping[int, CollectedSource], names: Sequence[str], hints: Hints, output: Output
    ) -> tuple[list[_Part], list[tuple[int, Mark]]]:
        """What each source says, a part an allocation, placed in time; and the lines of runs of ML Diagnostics, which
        do not name them."""
        zones = _zones(self._sources, names) if output.zones is not None else {}
        near = times_beside(self._sources, names)
        trainers = {stem_of(names[code]) for code, source in sources.items() if names_trainer(source.marks)}
        parts: list[_Part] = []
        run_lines: list[tuple[int, Mark]] = []
        for code, source in completed(sources, names).items():
            source.marks = _settled(source.marks, stem_of(names[code]) in trainers, hints)
            zone = zones.get(folder_of(names[code]))
            placed = self._placed(source, hints, output, zone, near.get(code, ()))
            note_source(names[code], code, source, placed, output, zone)
            meaning = meaning_of(source.marks) + (first_begin(source.marks) if placed.no_clock else [])
            run_lines += [(code, mark) for mark in meaning if said(mark).format == RUN_LINES]
            meaning = [mark for mark in meaning if said(mark).format != RUN_LINES]
            parts += [(code, part) for part in allocations(meaning) if part]
        return parts, run_lines

    def _without_runs(
        self, names: Sequence[str], hints: Hints, notes: DiagnosticCollector
    ) -> dict[int, CollectedSource]:
        """All sources with the marks of their text and event files."""
        of_event_files = self._of_event_files(names, hints, notes)
        return {
            code: replace(source, marks=[one for one in of_event_files.get(code, source.marks) if not _is_run(one)])
            for code, source in self._sources.items()
        }

    def _put_together(self, job: str, parts: Sequence[_Part], notes: DiagnosticCollector) -> None:
        """What only all parts of a job tell: when it was started, and what its lines mean beside one another."""
        marks = [marks for _, marks in parts]
        self.metrics += metrics_of(job, [mark for part in marks for mark in part])
        end_with_time(sorted((mark for part in marks for mark in part), key=lambda mark: (mark.time, mark.line)))
        ends_in_their_second(marks)
        started_by_scheduler(marks)
        megatron.late_starts(marks)
        launcher.started_by_launcher(marks, _STARTED_LATE)
        launcher.began_before(marks)
        launcher.outlive(marks)
        one_start_each(marks)
        without_preludes(marks)
        if may_lose_tails(marks):
            message = "event files end up to 2 min before their writers died"
            notes.add("tail_may_be_lost", message, parts[0][0], [1])

    def _runs(
        self, hints: Hints, jobs: Sequence[str], notes: DiagnosticCollector, lines: Sequence[tuple[int, Mark]]
    ) -> list[tuple[int, str, list[Mark]]]:
        """(source, job, marks) of runs of ML Diagnostics. lines: what their programs printed."""
        marks = {code: [mark for mark in one.marks if _is_run(mark)] for code, one in self._sources.items()}
        for code, mark in of_their_runs(lines, marks):
            marks[code].append(mark)
        every = [mark for part in marks.values() for mark in part]
        if not every:
            return []
        grouped = group_runs(
            (said(mark).job for mark in every),
            hints.job_name,
            [job for job in jobs if job != RUNS],
            hints.exact_run_name,
        )
        note_runs(grouped, every, next(code for code, part in marks.items() if part), notes)
        by_job: defaultdict[str, list[Mark]] = defaultdict(list)
        source_of = {id(mark): code for code, part in marks.items() for mark in part}
        for mark in every:
            by_job[grouped.jobs[said(mark).job]].append(mark)
        found: list[tuple[int, str, list[Mark]]] = []
        for job, part in by_job.items():
            self.metrics += metrics_of(job, part)
            several = len({said(mark).job for mark in part}) > 1
            meaning = run_events(part, several, job in jobs)
            by_source: defaultdict[int, list[Mark]] = defaultdict(list)
            places = {(mark.line, mark.entry, mark.time): source_of[id(mark)] for mark in part}
            for mark in meaning:
                by_source[places[mark.line, mark.entry, mark.time]].append(mark)
            found += [(code, job, rows) for code, rows in by_source.items()]
        return found

    def _of_event_files(self, names: Sequence[str], hints: Hints, notes: DiagnosticCollector) -> dict[int, list[Mark]]:
        """The marks of event files, by source; files of one job share the tag whose steps count."""
        folders: defaultdict[str, list[int]] = defaultdict(list)
        for code, source in self._sources.items():
            note_damage(code, source, notes)
            if source.events:
                folders[folder_of(names[code])].append(code)
        if not folders:
            return {}
        from goodput_cli.events.tensorboard import meaning

        marks: dict[int, list[Mark]] = {}
        for codes in folders.values():
            files = [self._sources[code].events for code in codes]
            tags = meaning.step_tags(files, hints.tensorboard_tag)
            from_0 = hints.tensorboard_tag is None and meaning.counts_from_0(files, tags)
            for code, events, tag in zip(codes, files, tags, strict=True):
                marks[code] = meaning.marks_of(events, names[code], tag, from_0)
                if tag is not None:
                    shown = notes.bounded("step_tag", tag)
                    notes.add(
                        "step_tag", f"steps are those of the scalar {shown}; --tensorboard-tag names another", code, [1]
                    )
        return marks

    @staticmethod
    def _placed(
        source: CollectedSource, hints: Hints, output: Output, zone: FoundZone | None, near: Sequence[int]
    ) -> Placed:
        modified = source.modified_ns if source.modified_ns is not None else hints.now_ns
        said_zone = hints.mappings.zone_of(_formats(source.marks)) if hints.mapping and output.zones else ""
        local = output.clock.from_local if zone is None else zone.from_local
        local = TimestampReader(load_zone(said_zone)).from_local if said_zone else local
        when = hints.clock_start
        start = None if when is None else when.value if when.kind == "instant" else local(when.value)
        placed = place(source.marks, modified, hints.year, local, ONE_STORY, near, start)
        by_elapsed(source.marks)
        return replace(placed, naive=()) if said_zone else placed


def _settled(marks: list[Mark], of_trainer: bool, hints: Hints) -> list[Mark]:
    """The marks of a text in the order in which things were, without those of which better ones tell."""
    if any(mark.entry >= 0 for mark in marks):  # entries come in any order
        marks = sorted(marks, key=lambda mark: (0 if mark.stamp is None else mark.stamp.ns, mark.line))
    marks = as_records(settled(marks), of_trainer)
    own_clock = hints.mapping and hints.mappings.has_own_clock(_formats(marks))
    return [mark for mark in marks if mark.said is not None] if own_clock else marks


def _zones(sources: Mapping[int, CollectedSource], names: Sequence[str]) -> dict[str, FoundZone]:
    """The zone of each folder, where a collector's times stand beside those of its lines."""
    marks: defaultdict[str, list[Mark]] = defaultdict(list)
    for code, source in sources.items():
        marks[folder_of(names[code])] += [mark for mark in source.marks if mark.local is not None]
    found = {folder: FoundZone(of_folder) for folder, of_folder in marks.items() if of_folder}
    return {folder: zone for folder, zone in found.items() if zone}


def _named(
    parts: Sequence[_Part],
    sources: Mapping[int, CollectedSource],
    names: Sequence[str],
    hints: Hints,
    notes: DiagnosticCollector,
) -> Sequence[str]:
    """The job of each part."""
    codes = [code for code, _ in parts]
    own = {code: _own_job(sources[code].marks, names[code], hints) for code in codes}
    named = name_jobs([_file(names[code], marks, own[code]) for code, marks in parts], hints.job_name)
    note_jobs(named, [names[code] for code in codes], notes, codes)
    return named.jobs


def _file(name: str, events: Sequence[Mark], own_job: str) -> TextFile:
    steps: dict[int, int] = {}
    for mark in events:
        one = said(mark)
        if one.what is What.STEP and one.step is not None:
            steps.setdefault(one.step, mark.end)
    times = [time for mark in events for time in (mark.time, mark.end)]
    first = said(events[0])
    by_scheduler = first.format == scheduler.NAME  # then all are: see `allocations`
    own, number = (first.job, first.name) if by_scheduler else (own_job, "")
    return TextFile(name, own, min(times), max(times), steps, number)


def _own_job(marks: Sequence[Mark], source: str, hints: Hints) -> str:
    """The name that the text of a source gives its job: that of an experiment rather than that of a folder."""
    of_mllog = [mark for mark in marks if mark.said is not None and mark.said.format == mllog.NAME]
    if of_mllog:
        return mllog.job_of(of_mllog, source)
    names = {one.name: one.job for one in (mark.said for mark in marks) if one is not None and one.job}
    names.pop("log_interval", None)
    of_path = hints.mappings.job_in(source, _formats(marks)) if hints.mapping else ""
    return of_path or names.get("wandb_exp_name") or next(iter(names.values()), "")


def _formats(marks: Sequence[Mark]) -> frozenset[str]:
    return frozenset(one.format for one in (mark.said for mark in marks) if one is not None)


def _is_run(mark: Mark) -> bool:
    return mark.said is not None and mark.said.format == RUNS
