"""Find the jobs of all sources, and adjust events that depend on other files of their job."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.evidence import UntimedEvidence
from goodput_cli.events.formats.base import RUNS
from goodput_cli.events.inside import RankSteps, within_memory
from goodput_cli.events.tensorboard import folder_of, may_lose_tails, one_start_each
from goodput_cli.events.text.activity import end_with_time, first_begin, without_preludes
from goodput_cli.events.text.allocation_signs import signs_of_allocations
from goodput_cli.events.text.collector import CollectedSource
from goodput_cli.events.text.folders import launch_of
from goodput_cli.events.text.inside_lines import inside_of, metrics_of
from goodput_cli.events.text.jobs import NamedJobs, TextFile, name_jobs, reading_folder
from goodput_cli.events.text.lines import OTHER_STEPS, UNREAD_STEPS
from goodput_cli.events.text.living_processes import unnamed_epochs, with_untimed_restarts
from goodput_cli.events.text.log_lines import ENDS, EventType, LogLine, event_of, formats_of
from goodput_cli.events.text.neighbor_files import has_died_after, last_steps
from goodput_cli.events.text.programs import launcher, megatron, mllog, torchtitan
from goodput_cli.events.text.programs.bar_records import without_begun_elsewhere
from goodput_cli.events.text.programs.launcher import SACCT, allocations, ends_in_their_second, started_by_scheduler
from goodput_cli.events.text.programs.progress_bars import counted_step
from goodput_cli.events.text.programs.runs import RUN_LINES, group_runs, of_their_runs, run_events
from goodput_cli.events.text.runs_in_file import ends_of_runs, without_later_programs
from goodput_cli.events.text.source_clocks import jumps
from goodput_cli.events.text.source_passes import is_of_run
from goodput_cli.events.text.stretches import parts_apart_in_time
from goodput_cli.events.text.text_log import (
    Part,
    TextLog,
    note_assumed,
    note_counter,
    note_few,
    note_jobs,
    note_open,
    note_runs,
    note_source,
)
from goodput_cli.events.text.untimed_phases import with_unclocked_phases
from goodput_cli.events.text.views import one_job_each, placed_by_steps, recorded_steps
from goodput_cli.vocabulary.text import file_line

if TYPE_CHECKING:
    from goodput_cli.events.reading_options import ReadingOptions
    from goodput_cli.events.trackers.runs import TrackedRun

_ABOUT_STEPS = frozenset({EventType.STEP, EventType.STEP_START, EventType.STEP_FINISHED})
_OTHER_PROGRAM = 0.05
"""Minimum share of a log's time for training of another program."""
_STARTED_LATE = ("nemo2",)
"""Formats whose programs log their start half a minute late."""


def add_first_begins(log: TextLog) -> None:
    """Begin a text without a clock where its first record began."""
    for code, events in log.events.items():
        if log.times[code].no_clock:
            events += first_begin(log.texts[code].log_lines)


def add_last_steps(log: TextLog) -> None:
    """End a process whose last step is the last planned one, unless evidence of a death follows."""
    for code, events in log.events.items():
        events += last_steps(code, events, log.every, log.names)


def add_unnamed_epochs(log: TextLog) -> None:
    """Mark where steps begin again in the next epoch or phase, or in another process (two readings)."""
    for events in log.events.values():
        formats, mappings = formats_of(events), log.hints.mappings
        events += unnamed_epochs(events, mappings.with_unknown_epochs(formats), mappings.inferred_of(formats))


def add_ends_of_runs(log: TextLog) -> None:
    """End each run of a file that another run follows, and the last one before programs that do no step."""
    for code, events in log.events.items():
        died = partial(has_died_after, code, sources=log.every, names=log.names)
        kept, ends = without_later_programs(events, died)
        events[:] = [*kept, *ends, *ends_of_runs(kept, died)]


def match_event_files(log: TextLog) -> None:
    """Give a text without a clock the times of the event files of the same processes."""
    of_events = [(code, events) for code, events in log.events.items() if log.texts[code].events]
    unclocked = {code: events for code, events in log.events.items() if log.times[code].no_clock}
    log.views = placed_by_steps(of_events, unclocked, log.names) if of_events and unclocked else {}
    for code in log.views:
        log.times[code] = replace(log.times[code], no_clock=False, anew=())


def separate_untimed_restarts(log: TextLog) -> None:
    """Mark restarts, saves and evaluations of unknown length in a text without a clock."""
    for code, events in log.events.items():
        if log.times[code].no_clock:
            log.events[code] = [*with_unclocked_phases(with_untimed_restarts(events))]


def report_sources(log: TextLog) -> None:
    """Report what is wrong or assumed in each source; drop texts that contradict the event files next to them."""
    for code, events in list(log.events.items()):
        _report_source(log, code, events)
        if log.views.get(code, "") is None:
            message = "no line has a timestamp, and processes or last steps differ from the event files next to it"
            log.output.notes.add("view_not_joined", f"{message}: not joined", code, [1])
            del log.events[code]


def _report_source(log: TextLog, code: int, events: Sequence[LogLine]) -> None:
    source, notes = log.texts[code], log.output.notes
    note_source(code, source, log.times[code], log.output, log.zones.get(folder_of(log.names[code])))
    if log.views.get(code, "") is None:
        return
    jump = jumps(source.log_lines)
    if jump is not None:
        notes.add("clock_jumps", jump[1], code, [jump[0]])
    if log.hints.mapping:
        note_assumed(code, events, log.hints, notes)
    note_counter(code, events, notes)
    if source.interleaved is not None and log.hints.job_name is None:
        found = source.interleaved
        notes.add("several_runs_in_file", found.sentence, code, list(found.lines))
    note_open(code, events, notes)


def split_allocations(log: TextLog) -> None:
    """Split events by allocation of a scheduler; set lines about phases and ML Diagnostics runs apart."""
    for code, events in log.events.items():
        log.run_lines += [(code, one) for one in events if event_of(one).format == RUN_LINES]
        events = [one for one in events if event_of(one).format != RUN_LINES]
        log.phase_lines[code] = [one for one in events if event_of(one).type is EventType.PHASE]
        events = [one for one in events if event_of(one).type is not EventType.PHASE]
        log.parts += [(code, part) for part in allocations(events) if part]


def find_tracked_runs(log: TextLog) -> None:
    """Read the runs of experiment trackers, and assign evidence in their output to their jobs."""
    tracked = {code: source.tracked for code, source in log.sources.items() if source.tracked}
    if not tracked:
        return
    from goodput_cli.events.trackers.registry import runs_of, without_recorded  # imported late: few logs have any

    runs = runs_of(tracked, log.names, log.hints.job_name, log.hints.exact_run_name, log.output)
    log.run_names |= {run.job: run.name for run in runs if run.name}
    seen: defaultdict[int, list[UntimedEvidence]] = defaultdict(list)
    for run in runs:
        for code, one in run.seen:
            seen[code].append(replace(one, job=run.job))
    log.every |= {code: replace(log.every[code], seen=[*log.every[code].seen, *more]) for code, more in seen.items()}
    log.tracked = without_recorded(runs, log.recorded, log.jobs.values(), log.output.notes) if runs else []


def name_parts(log: TextLog) -> None:
    """Find the job of each part: by what it logs, its path, its steps, and the files next to it."""
    hints, notes, names = log.hints, log.output.notes, log.names
    tracked = {run.job for run in log.tracked}
    asked = replace(hints, job_name=None) if hints.job_name in tracked else hints
    found = _named(log, asked, log.recorded_jobs | tracked)
    of_log = recorded_steps(log.recorded, log.jobs.values()) if log.parts else {}
    joined = one_job_each(log.parts, found.jobs, log.views, names, of_log, notes)
    found = replace(found, jobs=joined, assumed=tuple(name for name in found.assumed if name in joined))
    codes = [code for code, _ in log.parts]
    note_jobs(found, [names[code] for code in codes], notes, codes, hints.job_name)
    log.named, log.earlier = found.jobs, frozenset(found.earlier)
    log.former = {new: old for new, old in found.former.items() if new in log.named}
    if log.tracked:
        log.named = _named_as_tracked(log.tracked, log.parts, log.named, notes)
        log.jobs_of_runs |= {run.job: run.job for run in log.tracked}


def group_diagnostics_runs(log: TextLog) -> None:
    """Group ML Diagnostics runs into jobs."""
    log_lines = {code: [one for one in source.log_lines if is_of_run(one)] for code, source in log.sources.items()}
    for code, log_line in of_their_runs(log.run_lines, log_lines):
        log_lines[code].append(log_line)
    every = [log_line for part in log_lines.values() for log_line in part]
    if not every:
        return
    jobs = log.jobs.values()
    grouped = group_runs(every, log.hints.job_name, [job for job in jobs if job != RUNS], log.hints.exact_run_name)
    log.run_names |= {grouped.jobs[run]: name for run, name in grouped.names.items()}
    log.jobs_of_runs |= grouped.jobs
    note_runs(grouped, every, next(code for code, part in log_lines.items() if part), log.output.notes)
    by_job: defaultdict[str, list[LogLine]] = defaultdict(list)
    source_of = {id(log_line): code for code, part in log_lines.items() for log_line in part}
    for log_line in every:
        by_job[grouped.jobs[event_of(log_line).job]].append(log_line)
    for job, part in by_job.items():
        log.metrics += metrics_of(job, part)
        several = len({event_of(log_line).job for log_line in part}) > 1
        events = [log_line for log_line in part if event_of(log_line).type is not EventType.PHASE]
        by_source: defaultdict[int, list[LogLine]] = defaultdict(list)
        places = {(log_line.line, log_line.entry, log_line.time): source_of[id(log_line)] for log_line in part}
        for log_line in run_events(events, several, job in jobs):
            by_source[places[log_line.line, log_line.entry, log_line.time]].append(log_line)
        log.runs += [(code, job, rows) for code, rows in by_source.items()]


def measure(log: TextLog) -> None:
    """Collect signs of allocations, the measurements of each job, and the times of phases inside its steps."""
    for job, parts in log.by_job().items():
        log.signs += signs_of_allocations(job, parts, log.names, log.output.notes, log.row_clocks)
        _measure_job(log, job, parts)


def _measure_job(log: TextLog, job: str, parts: Sequence[Part]) -> None:
    names, notes = log.names, log.output.notes
    phases = {code: log.phase_lines.get(code, []) for code, _ in parts}
    every = [log_line for _, part in parts for log_line in part]
    log.metrics += metrics_of(job, [*every, *(log_line for lines in phases.values() for log_line in lines)])
    found: list[RankSteps] = []
    for code, lines in (*parts, *phases.items()):
        found += inside_of(job, lines, names[code], partial(_note_phase, notes, code))
    traced = [(code, process) for code in phases for process in log.every[code].processes.values()]
    for code, process in traced:
        for line in process.too_long:
            _note_phase(notes, code, line, "a span is longer than its step; ignored")
    log.inside += within_memory([*found, *torchtitan.inside_of(job, traced, names)])


def measure_tracked_run(log: TextLog, job: str, code: int, log_lines: Sequence[LogLine]) -> None:
    """Collect the same for a run of a tracker."""
    if any(event_of(one).phases or event_of(one).metrics for one in log_lines):
        log.metrics += metrics_of(job, log_lines)
        note = partial(_note_phase, log.output.notes, code)
        log.inside += within_memory(inside_of(job, log_lines, log.names[code], note))


def _note_phase(notes: DiagnosticCollector, code: int, line: int, reason: str) -> None:
    notes.add("bad_phase", notes.bounded("bad_phase", reason), code, [line])


def expand_overlapping_columns(parts: Sequence[Part], log: TextLog) -> None:
    """Turn columns of step records into lines where another file of the job has an event among them."""
    log_lines = [part for _, part in parts]
    for part, apart in zip(log_lines, parts_apart_in_time(log_lines), strict=True):
        part[:] = apart
    note_few(parts, log.output.notes)


def time_deaths(parts: Sequence[Part], _: TextLog) -> None:
    """Move a death without a time to the end that the launcher logs after it, and an end with whole seconds after other
    events of its second."""
    every = [log_line for _, part in parts for log_line in part]
    end_with_time(sorted(every, key=lambda log_line: (log_line.time, log_line.line)))
    ends_in_their_second([part for _, part in parts])


def join_starts(parts: Sequence[Part], _: TextLog) -> None:
    """Keep one start of each process: that of the scheduler, of the launcher, or of the program."""
    log_lines = [part for _, part in parts]
    started_by_scheduler(log_lines)
    megatron.late_starts(log_lines)
    launcher.started_by_launcher(log_lines, _STARTED_LATE)
    launcher.began_before(log_lines)


def add_launcher_activity(parts: Sequence[Part], _: TextLog) -> None:
    """Add activity of launchers whose workers continue."""
    launcher.outlive([part for _, part in parts])


def start_launches(parts: Sequence[Part], log: TextLog) -> None:
    """Begin each further launch of a job at its first line, if no start is logged after the launch before it."""
    launcher.start_each([(launch_of(log.names[code]), part) for code, part in parts])


def drop_second_starts(parts: Sequence[Part], log: TextLog) -> None:
    """Drop starts of bars and event files that another file shows, and activity of a process before its start."""
    log_lines = [part for _, part in parts]
    without_begun_elsewhere(log_lines)
    one_start_each(log_lines)
    without_preludes(log_lines)
    if may_lose_tails(log_lines):
        message = "event files end up to 2 min before their writers died"
        log.output.notes.add("tail_may_be_lost", message, parts[0][0], [1])


def find_unread_steps(log: TextLog) -> None:
    """Find jobs with steps that no rule reads, or with several runs in one file: their goodput is unknown."""
    by_job = log.by_job()
    log.several_runs = {} if log.hints.job_name is not None else _several_runs(log.every, by_job, log.names)
    log.unread = _unread_steps(log.every, by_job, log.names)
    log.job_of_source = _jobs_of_sources(log.every, by_job, log.names, {*by_job, *log.recorded_jobs})


def _several_runs(
    sources: Mapping[int, CollectedSource], by_job: Mapping[str, Sequence[Part]], names: Sequence[str]
) -> dict[str, str]:
    """See `EvidenceOfLog.several_runs`."""
    found: dict[str, str] = {}
    for code, place in _other_programs(sources):
        for job, parts in by_job.items():
            if any(part == code for part, _ in parts):
                found.setdefault(
                    job, f"{file_line(names[code], place)} looks like a step of another program, in an unknown format"
                )
    for job, parts in by_job.items():
        for code, log_lines in parts:
            turns = sources[code].interleaved
            if (
                turns is not None
                and not turns.is_question
                and any(event_of(log_line).type in _ABOUT_STEPS for log_line in log_lines)
            ):
                found.setdefault(
                    job, f"several runs seem to print into one file ({file_line(names[code], turns.lines[1])})"
                )
    return found


def _other_programs(sources: Mapping[int, CollectedSource]) -> Iterator[tuple[int, int]]:
    """Yield each source with steps of another program, which no rule reads, with the line of the first of them. They
    cover more than a small part of the time."""
    for code, one in sources.items():
        begins = [min(one.unread_steps)] if len(one.unread_steps) >= OTHER_STEPS else []
        if not begins and not one.other_steps:
            continue
        lines = sorted(one.log_lines, key=lambda line: line.line)
        steps = [line.line for line in lines if line.event and counted_step(line.event) is not None]
        ends = {begin: min((step for step in steps if step > begin), default=0) for begin in begins} | one.other_steps
        times = [(line.line, line.stamp.ns) for line in lines if line.stamp is not None]
        if steps and times and _covered_ns(times, ends) > _OTHER_PROGRAM * (times[-1][1] - times[0][1]):
            yield code, min(ends)


def _covered_ns(times: Sequence[tuple[int, int]], ends: Mapping[int, int]) -> int:
    """Return the time between the first and last lines of some parts of a source, or the lines around them: those
    between are not kept. times: lines and times (ns), by line. ends: last line of each part by its first one."""
    lines = [line for line, _ in times]
    firsts = (max(bisect_right(lines, begin) - 1, 0) for begin in ends)
    lasts = (min(bisect_left(lines, end), len(lines) - 1) for end in ends.values())
    return sum(max(times[last][1] - times[first][1], 0) for first, last in zip(firsts, lasts, strict=True))


def _unread_steps(
    sources: Mapping[int, CollectedSource], by_job: Mapping[str, Sequence[Part]], names: Sequence[str]
) -> dict[str, str]:
    """See `EvidenceOfLog.unread_steps`."""
    unread: dict[str, str] = {}
    for code, one in sources.items():
        if len(one.unread_steps) >= UNREAD_STEPS:
            unread.setdefault(reading_folder(names[code]), file_line(names[code], min(one.unread_steps)))
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


def _named_as_tracked(
    tracked: Sequence[TrackedRun], parts: Sequence[Part], named: Sequence[str], notes: DiagnosticCollector
) -> list[str]:
    """Return the job of each part, merged with the same run in a tracker."""
    from goodput_cli.events.trackers.registry import same_runs  # imported late: few logs are from trackers

    by_job: defaultdict[str, list[LogLine]] = defaultdict(list)
    for (_, log_lines), job in zip(parts, named, strict=True):
        by_job[job] += log_lines
    renamed = same_runs(tracked, by_job, notes)
    return [renamed.get(job, job) for job in named]


def _named(log: TextLog, hints: ReadingOptions, others: Collection[str]) -> NamedJobs:
    """Return the job of each part. others: jobs in sources other than text."""
    # a table of a scheduler is one source with a part per allocation
    own = {
        code: _own_job(log.texts[code].log_lines, log.names[code], hints) for code in {code for code, _ in log.parts}
    }
    return name_jobs(
        [
            _file(
                log.names[code], log_lines, own[code], log.texts[code].losses,
                several=len(log.parts) > 1, has_clock=not log.times[code].no_clock,
            )
            for code, log_lines in log.parts
        ],
        hints.job_name,
        hints.join,
        hints.shared_levels,
        others,
    )  # fmt: skip


def _file(
    name: str, events: Sequence[LogLine], own_job: str, losses: Mapping[int, float], *, several: bool, has_clock: bool
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
    only_ends = all(event_of(one).type in ENDS for one in events)
    return TextFile(name, own, min(times), max(times), steps, number, restores, losses, only_ends, has_clock)


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
