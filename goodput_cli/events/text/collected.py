"""The marks of all sources of text, and the rows that they become once everything has been read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from goodput_cli.diagnostics.collector import DiagnosticCollector
from goodput_cli.events.formats.base import Output
from goodput_cli.events.formats.mldiagnostics import NAME as RUNS
from goodput_cli.events.rows import Interner, Origin, RowBuilder
from goodput_cli.events.schema import NO_STEP, NONE, Edge, Kind, Metric
from goodput_cli.events.tensorboard.meaning import folder_of, may_lose_tails, one_start_each
from goodput_cli.events.text import launcher, megatron, mllog, scheduler
from goodput_cli.events.text.jobs import Named, TextFile, name_jobs
from goodput_cli.events.text.marks import Mark, Said, What
from goodput_cli.events.text.meaning import meant, said
from goodput_cli.events.text.measured import metrics_of
from goodput_cli.events.text.parts import CollectedSource, Collector
from goodput_cli.events.text.place import Placed, place
from goodput_cli.events.text.runs import Grouped, group_runs, run_events, silent_hosts
from goodput_cli.events.text.running import settle
from goodput_cli.events.text.scheduler import allocations, started_by_scheduler
from goodput_cli.events.timestamps.iso import TimestampReader
from goodput_cli.vocabulary.zones import load_zone

if TYPE_CHECKING:
    from goodput_cli.events.asked import Asked

TRANSLATORS: dict[str, Callable[[Sequence[Mark]], list[Mark]]] = {
    megatron.NAME: megatron.translate,
    megatron.PROGRESS: megatron.translate_progress,
    launcher.NAME: launcher.translate,
    mllog.NAME: mllog.translate,
}
"""By format: what its lines mean together, where a line alone does not say it."""
ONE_STORY = frozenset({megatron.NAME})
"""Formats whose ranks print one story: lines of all ranks are one stream."""
_KINDS: dict[What, Kind] = {
    What.STEP: Kind.STEP,
    What.STEP_START: Kind.STEP,
    What.STEP_FINISHED: Kind.FINISHED,
    What.START: Kind.START,
    What.FINISHED: Kind.JOB_FINISHED,
    What.STOPPED: Kind.USER_TERMINATED,
    What.TERMINATED: Kind.TERMINATED,
    What.CRASHED: Kind.CRASHED,
    What.SCHEDULED: Kind.SCHEDULED,
    What.SAVE: Kind.SAVE,
    What.SAVED: Kind.SAVED,
    What.RESTORE: Kind.RESTORE,
    What.RESUME: Kind.RESTORE,
    What.EVAL: Kind.CUSTOM,
    What.CUSTOM: Kind.CUSTOM,
    What.INIT: Kind.TPU_INIT,
    What.PREP: Kind.PREP,
    What.DATA: Kind.DATA,
    What.REINIT: Kind.ELASTIC_REINIT,
    What.ALIVE: Kind.HEARTBEAT,
}
_PHASES = frozenset({What.EVAL, What.CUSTOM, What.INIT, What.PREP, What.DATA, What.REINIT})
"""Kinds with a begin and an end; a point of one is only a sign of life."""
_DIGITS = 10
"""Of a rank, which is a number of 32 bits."""
_LABELS = {What.EVAL: megatron.EVAL_LABEL}


class Texts:
    """Makes rows of what was collected."""

    def __init__(self, collected: Collector) -> None:
        self._sources = collected.sources
        self.metrics: list[Metric] = []
        """What was measured, of all jobs; made by `rows`."""

    def rows(
        self, names: Sequence[str], question: Asked, output: Output, jobs: Interner[str]
    ) -> tuple[RowBuilder, dict[str, set[str]]]:
        """The rows of all sources, and the formats of each job. names: of the sources."""
        builder = RowBuilder()
        formats: defaultdict[str, set[str]] = defaultdict(set)
        events: list[tuple[int, list[Mark]]] = []
        sources = dict(self._sources)
        for code, marks in self._of_event_files(names, question, output.notes).items():
            sources[code] = replace(sources[code], marks=marks)
        for code, whole in sources.items():
            source = replace(whole, marks=[mark for mark in whole.marks if not _is_run(mark)])
            if any(mark.entry >= 0 for mark in source.marks):  # entries come in any order
                source.marks.sort(key=lambda mark: (0 if mark.stamp is None else mark.stamp.ns, mark.line))
            settle(source.marks)
            placed = self._placed(source, question, output)
            _note(names[code], code, source, placed, output)
            meaning = _meant(source.marks) + (_first_begin(source.marks) if placed.no_clock else [])
            events += [(code, part) for part in allocations(meaning) if part]
        files = [_file(names[code], part, _own_job(sources[code].marks, names[code], question)) for code, part in events]
        named = name_jobs(files, question.job_name)
        _note_jobs(named, [names[code] for code, _ in events], output.notes, [code for code, _ in events])
        by_job: defaultdict[str, list[list[Mark]]] = defaultdict(list)
        for (_, part), job in zip(events, named.jobs, strict=True):
            by_job[job].append(part)
        runs = self._runs(question, jobs.values(), output.notes)
        for job, parts in by_job.items():
            self.metrics += metrics_of(job, [mark for part in parts for mark in part])
            started_by_scheduler(parts)
            launcher.outlive(parts)
            one_start_each(parts)
            if may_lose_tails(parts):
                code = next(code for code, part in events if part is parts[0])
                output.notes.add("tail_may_be_lost", "event files end up to 2 min before their writers died", code, [1])
        for (code, part), job in zip(events, named.jobs, strict=True):
            _add_rows(builder, code, jobs.code(job), part, output, names[code])
            formats[job] |= {said(mark).format for mark in part}
        for code, job, part in runs:
            _add_rows(builder, code, jobs.code(job), part, output, names[code])
            formats[job].add(RUNS)
        return builder, formats

    def _runs(
        self, question: Asked, jobs: Sequence[str], notes: DiagnosticCollector
    ) -> list[tuple[int, str, list[Mark]]]:
        """(source, job, marks) of runs of ML Diagnostics."""
        marks = {code: [mark for mark in one.marks if _is_run(mark)] for code, one in self._sources.items()}
        every = [mark for part in marks.values() for mark in part]
        if not every:
            return []
        grouped = group_runs(
            (said(mark).job for mark in every), question.job_name, [job for job in jobs if job != RUNS]
        )
        _note_runs(grouped, every, next(code for code, part in marks.items() if part), notes)
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
            places = {(mark.line, mark.entry): source_of[id(mark)] for mark in part}
            for mark in meaning:
                by_source[places[mark.line, mark.entry]].append(mark)
            found += [(code, job, rows) for code, rows in by_source.items()]
        return found

    def _of_event_files(
        self, names: Sequence[str], question: Asked, notes: DiagnosticCollector
    ) -> dict[int, list[Mark]]:
        """The marks of event files, by source; files of one job share the tag whose steps count."""
        folders: defaultdict[str, list[int]] = defaultdict(list)
        for code, source in self._sources.items():
            _note_damage(code, source, notes)
            if source.events:
                folders[folder_of(names[code])].append(code)
        if not folders:
            return {}
        from goodput_cli.events.tensorboard import meaning

        marks: dict[int, list[Mark]] = {}
        for codes in folders.values():
            files = [self._sources[code].events for code in codes]
            tags = meaning.step_tags(files, question.tensorboard_tag)
            from_0 = question.tensorboard_tag is None and meaning.counts_from_0(files, tags)
            for code, events, tag in zip(codes, files, tags, strict=True):
                marks[code] = meaning.marks_of(events, names[code], tag, from_0)
                if tag is not None:
                    shown = notes.bounded("step_tag", tag)
                    notes.add(
                        "step_tag", f"steps are those of the scalar {shown}; --tensorboard-tag names another", code, [1]
                    )
        return marks

    @staticmethod
    def _placed(source: CollectedSource, question: Asked, output: Output) -> Placed:
        modified = source.modified_ns if source.modified_ns is not None else question.now_ns
        zone = question.mappings.zone_of(_formats(source.marks)) if question.mapping and output.zones else ""
        clock = TimestampReader(load_zone(zone)) if zone else output.clock
        placed = place(source.marks, modified, question.year, clock.from_local, ONE_STORY)
        return replace(placed, naive=()) if zone else placed


def _meant(marks: Sequence[Mark]) -> list[Mark]:
    """What the marks of one source mean, in order of lines within a format, then of time."""
    by_format: defaultdict[str, list[Mark]] = defaultdict(list)
    alive: defaultdict[str, list[Mark]] = defaultdict(list)
    for mark in marks:
        if mark.said is None:
            alive[mark.stream].append(mark)
        else:
            by_format[mark.said.format].append(mark)
    translated: list[Mark] = []
    for name, own in by_format.items():
        translator = TRANSLATORS.get(name)
        translated += translator(own) if translator is not None else own
    events = [mark for mark in meant(translated) if said(mark).what is not What.IGNORE]
    return [*events, *_signs_of_life(events, alive)]


def _first_begin(marks: Sequence[Mark]) -> list[Mark]:
    """In a text without a clock the job was alive when its first record began."""
    first = next((mark for mark in marks if mark.said is not None and mark.said.what is What.STEP), None)
    if first is None or first.time == first.end:
        return []
    return [Mark(first.line, first.stream, None, Said(said(first).format, What.ALIVE), first.time, first.time)]


def _signs_of_life(events: Sequence[Mark], alive: dict[str, list[Mark]]) -> list[Mark]:
    """Stamps beside step records, as heartbeats."""
    steps = {mark.stream: said(mark).format for mark in events if said(mark).what is What.STEP}
    whole = next((name for name in steps.values() if name in ONE_STORY), None)
    chosen: list[Mark] = []
    for stream, marks in alive.items():
        name = whole or steps.get(stream)
        if name is None:
            continue
        for mark in marks:
            chosen.append(Mark(mark.line, mark.stream, mark.stamp, Said(name, What.ALIVE), mark.time, mark.time))
    return chosen


def _file(name: str, events: Sequence[Mark], own_job: str) -> TextFile:
    steps: dict[int, int] = {}
    for mark in events:
        one = said(mark)
        if one.what is What.STEP and one.step is not None:
            steps.setdefault(one.step, mark.end)
    times = [time for mark in events for time in (mark.time, mark.end)]
    numbers = frozenset(said(mark).name for mark in events if said(mark).format == scheduler.NAME)
    own = said(events[0]).job if numbers else own_job
    return TextFile(name, own, min(times), max(times), steps, numbers)


def _own_job(marks: Sequence[Mark], source: str, question: Asked) -> str:
    """The name that the text of a source gives its job: that of an experiment rather than that of a folder."""
    of_mllog = [mark for mark in marks if mark.said is not None and mark.said.format == mllog.NAME]
    if of_mllog:
        return mllog.job_of(of_mllog, source)
    names = {one.name: one.job for one in (mark.said for mark in marks) if one is not None and one.job}
    names.pop("log_interval", None)
    of_path = question.mappings.job_in(source, _formats(marks)) if question.mapping else ""
    return of_path or names.get("wandb_exp_name") or next(iter(names.values()), "")


def _formats(marks: Sequence[Mark]) -> frozenset[str]:
    return frozenset(one.format for one in (mark.said for mark in marks) if one is not None)


def _add_rows(builder: RowBuilder, source: int, job: int, events: Sequence[Mark], output: Output, name: str) -> None:
    rows = [row for mark in events for row in _rows_of(mark, output, name)]
    if not rows:
        return
    size = len(rows)
    whole = {column: np.array([row[column] for row in rows], dtype=np.int64) for column in _COLUMNS}
    origin = Origin(
        source,
        np.arange(size, dtype=np.int64),
        whole["line"],
        whole["entry"].astype(np.int32),
        np.full(size, job, dtype=np.int32),
        whole["writer"].astype(np.int32),
    )
    builder.add(
        origin,
        np.ones(size, dtype=np.bool_),
        whole["kind"].astype(np.int8),
        whole["edge"].astype(np.int8),
        whole["time"],
        end=whole["end"],
        step=whole["step"],
        step_time=whole["step_time"],
        rank=whole["rank"].astype(np.int32),
        label=whole["label"].astype(np.int32),
        detail=whole["detail"].astype(np.int32),
    )
    builder.end_block()


_COLUMNS = ("time", "end", "kind", "edge", "step", "step_time", "rank", "label", "detail", "line", "entry", "writer")


def _rows_of(mark: Mark, output: Output, source: str) -> list[dict[str, int]]:
    """The rows of a mark: two of a phase of which begin and end are known."""
    one = said(mark)
    kind, edge, time, end = _KINDS[one.what], one.edge, mark.time, mark.end
    if one.format == launcher.NAME and one.what is What.ALIVE and one.name != launcher.OUTLIVED:
        return []
    if one.what is What.STEP:
        edge, time = Edge.END, mark.end
    elif end == time and one.took and edge is Edge.POINT:
        time, end = (time, time + one.took) if one.begins else (time - one.took, time)
    if one.what is not What.STEP:
        if end > time:
            edge = Edge.INTERVAL
        elif one.what in _PHASES and edge is Edge.POINT:
            kind = Kind.HEARTBEAT
    label = one.label or _LABELS.get(one.what, "") if kind in (Kind.CUSTOM,) else ""
    row = {
        "time": time,
        "end": end,
        "kind": int(kind),
        "edge": int(edge),
        "step": NO_STEP if one.step is None or one.what in (What.START, What.ALIVE) else one.step,
        "step_time": NONE if one.step_time is None or one.what is not What.STEP else one.step_time,
        "label": output.labels.code(label.upper()) if label else NONE,
        "detail": output.details.code(one.detail) if one.detail and one.what is not What.STEP else NONE,
        "rank": int(one.rank) if one.format == RUNS and one.rank.isdecimal() and len(one.rank) < _DIGITS else NONE,
        "line": mark.line,
        "entry": mark.entry,
        "writer": output.writers.code(_writer(mark, source)),
    }
    if edge is Edge.INTERVAL and one.what in _PHASES:
        begin = row | {"end": time, "edge": int(Edge.BEGIN)}
        return [begin, row | {"time": end, "edge": int(Edge.END)}]
    return [row]


def _writer(mark: Mark, source: str) -> tuple[str, str]:
    """(node, process): the node as far as the line names it; the processes of one story are one."""
    one = said(mark)
    if one.format in ONE_STORY:
        return "", one.format
    return one.rank, " ".join((one.format, one.rank or source, mark.stream))


def _note(name: str, code: int, source: CollectedSource, placed: Placed, output: Output) -> None:
    """What was noticed in one source."""
    notes = output.notes
    for line, reason in source.bad:
        notes.add("bad_value", f"{notes.bounded('bad_value', reason)}; the line says nothing", code, [line])
    events = [mark for mark in source.marks if mark.said is not None]
    if not events and not source.events:
        if source.noise and not source.bad:
            message = f"text in which no line says anything: `goodput check --suggest {name}` drafts a mapping"
            notes.add("unrecognised_lines", message, code, [1], (), source.noise)
        return
    if source.noise:
        notes.add("other_output", "lines of text that say nothing about time", code, [], (), source.noise)
    if placed.naive:
        zone = output.clock.zone
        message = f"timestamps without a zone, read as {zone}; --timezone says which zone they are in"
        notes.add("naive_timestamps", message, code, list(placed.naive), (), len(placed.naive))
    if placed.without_year:
        message = "stamps without a year; --year says which it is"
        notes.add("assumed_year", message, code, list(placed.without_year), (), len(placed.without_year))
    if placed.no_clock:
        message = "no line has a time; counted back from when the file was last written"
        notes.add("no_clock", message, code, [events[0].line])
    if placed.back and not source.events:
        notes.add("stamps_go_back", "a clock goes back between two lines", code, list(placed.back))
    if placed.missing:
        message = "records without a time that follow a jump of the steps; the jump takes no time"
        notes.add("missing_records", message, code, list(placed.missing))


def _is_run(mark: Mark) -> bool:
    return mark.said is not None and mark.said.format == RUNS


def _note_runs(grouped: Grouped, marks: Sequence[Mark], code: int, notes: DiagnosticCollector) -> None:
    first = [marks[0].line], [marks[0].entry]
    if grouped.together:
        notes.add("runs_grouped", "runs whose names differ in their time of start are one job", code, *first)
    if grouped.apart:
        message = "runs are named by numbers that do not say which are of one job; --job-name says that all are"
        notes.add("runs_not_grouped", message, code, *first)
    for host, mark in silent_hosts(marks):
        shown = notes.bounded("host_silent", host)
        notes.add(
            "host_silent", f"host {shown} gives no more signs of life while others do", code, [mark.line], [mark.entry]
        )


def _note_damage(code: int, source: CollectedSource, notes: DiagnosticCollector) -> None:
    if source.damaged:
        message = "records of an event file whose checksum is wrong, or that hold no event; left out"
        notes.add("malformed_records", message, code, source.damaged)
    if source.broken is not None:
        message = "an event file is damaged here; nothing behind the place can be read"
        notes.add("malformed_records", message, code, [source.broken])


def _note_jobs(named: Named, names: Sequence[str], notes: DiagnosticCollector, codes: Sequence[int]) -> None:
    for name in named.assumed:
        at = named.jobs.index(name)
        shown = notes.bounded("job_name_assumed", name)
        notes.add("job_name_assumed", f"text names no job; by its file or folder it is {shown}", codes[at], [1])
    for folder in named.disagreeing:
        at = next(at for at, name in enumerate(names) if (name.rpartition("/")[0] or ".") == folder)
        shown = notes.bounded("several_jobs_in_folder", folder)
        message = f"files of {shown} overlap and disagree about steps: they are different jobs, named by their files"
        notes.add("several_jobs_in_folder", message, codes[at], [1])
