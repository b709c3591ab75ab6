"""Group runs of ML Diagnostics into jobs, and interpret their records and measurements."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from goodput_cli.events.formats.base import CONFIGS
from goodput_cli.events.formats.base import RUNS as NAME
from goodput_cli.events.schema import COUNTS_FROM_0, PROFILING
from goodput_cli.events.text.entries import RUN_NAME, STEP_TIME
from goodput_cli.events.text.log_lines import ENDS, EventType, LineRule, LogLine, ParsedEvent, event_of, pattern
from goodput_cli.events.trackers.runs import RunExtent, find_continued_runs
from goodput_cli.events.values import counts_from_0
from goodput_cli.vocabulary.when import NS_PER_SECOND

_HASH = re.compile(r"[0-9a-f]{64}")
_STARTED = re.compile(r"(?<!\d{8})-\d{14}$")
_SILENT_NS = 60 * NS_PER_SECOND
RUN_LINES = "mldiagnostics-lines"
"""Format of lines that programs print, until their run is known."""
_ONE_START_NS = 600 * NS_PER_SECOND


@dataclass(frozen=True)
class GroupedRuns:
    """Runs by job."""

    jobs: dict[str, str]
    """Job of each run."""
    together: bool
    """True if runs were merged by name."""
    likely: bool
    """True if runs were merged because of equal configurations and continuing steps."""
    apart: bool
    """True if runs have uninformative names and stayed separate."""
    names: Mapping[str, str]
    """Name that the user gave each run."""


def _line(what: EventType) -> Callable[[Any], ParsedEvent]:
    return lambda found: ParsedEvent(RUN_LINES, what, job=dict(found.groupdict()).get("run") or "")


def _profiling(found: re.Match[str]) -> ParsedEvent:
    return ParsedEvent(RUN_LINES, EventType.PHASE, metrics={PROFILING: float(found["what"] == "started")})


RULES = (
    LineRule(RUN_LINES, "MLRun '",
             pattern(r"MLRun '(?P<run>[^']+)' created successfully"), _line(EventType.START), "created"),
    LineRule(RUN_LINES, "Unhandled exception detected!",
             pattern("Unhandled exception detected!"), _line(EventType.CRASHED),
             "exception"),
    LineRule(RUN_LINES, "SIGTERM received (signum: ",
             pattern(r"SIGTERM received \(signum: "), _line(EventType.TERMINATED),
             "sigterm"),
    LineRule(RUN_LINES, "Program exiting normally. Sending", pattern("Program exiting normally. Sending 'COMPLETED'"),
             _line(EventType.EXITED), "completed"),
    LineRule(RUN_LINES, "profiling_status: ",
             pattern(r"profiling_status: (?:context_)?(?P<what>started|stopped) \(session_phase: "), _profiling,
             "profiling"),
)  # fmt: skip
"""Log lines of the library itself: starts, ends and profile sessions, mostly without a run name."""


def of_their_runs(
    lines: Sequence[tuple[int, LogLine]], log_lines: Mapping[int, Sequence[LogLine]]
) -> Iterator[tuple[int, LogLine]]:
    """Yield printed lines as log lines of their run: the only run of the source, or of all sources. lines, log_lines:
    by source code."""
    everywhere = {event_of(log_line).job for of_source in log_lines.values() for log_line in of_source}
    for code, log_line in lines:
        runs = {event_of(one).job for one in log_lines.get(code, ())} or everywhere
        run = (
            event_of(log_line).job
            if event_of(log_line).job in everywhere
            else next(iter(runs))
            if len(runs) == 1
            else ""
        )
        if run and not (event_of(log_line).type is EventType.START and _has_started(log_line, run, log_lines)):
            yield code, replace(log_line, event=replace(event_of(log_line), format=NAME, job=run))


def _has_started(log_line: LogLine, run: str, log_lines: Mapping[int, Sequence[LogLine]]) -> bool:
    """Return True if the configuration of a run is the same start."""
    starts = (one for of_source in log_lines.values() for one in of_source if event_of(one).type is EventType.START)
    return any(event_of(one).job == run and abs(one.time - log_line.time) <= _ONE_START_NS for one in starts)


def plain_name(name: str) -> str:
    """Return a name as the library writes it in run names: lowercase letters and digits, joined by single dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def group_runs(
    log_lines: Sequence[LogLine], job_name: str | None, jobs: Collection[str], exact: bool = False
) -> GroupedRuns:
    """Return the job of each run. job_name: the requested one. jobs: names of jobs in other lines. exact: True if each
    run is a separate job."""
    runs = dict.fromkeys(event_of(log_line).job for log_line in log_lines)
    apart, shown = {run: run for run in runs}, names_shown(log_lines)
    if exact:
        return GroupedRuns(apart, together=False, likely=False, apart=False, names=shown)
    first_of = apart | _continued_runs(log_lines)
    named = set() if job_name is None else {first_of[run] for run in runs if job_name in (run, shown.get(run))}
    found: dict[str, str] = {}
    by_name: list[str] = []
    for run in runs:
        known = next((job for job in jobs if _is_of(run, job)), None)
        if known is not None:
            found[run] = known
        elif job_name is not None and (
            _is_of(run, job_name) or first_of[run] in named or (not named and _HASH.fullmatch(run))
        ):
            found[run] = job_name
        elif _HASH.fullmatch(run):
            found[run] = first_of[run]
        else:
            found[run] = _STARTED.sub("", run)
            by_name.append(found[run])
    return GroupedRuns(
        found,
        together=len(set(by_name)) < len(by_name),
        likely=(job_name is None or bool(named)) and any(first != run for run, first in first_of.items()),
        apart=job_name is None and any(map(_HASH.fullmatch, found.values())) and len(set(found.values())) > 1,
        names=shown,
    )


def names_shown(log_lines: Iterable[LogLine]) -> dict[str, str]:
    """Return the names that users gave runs in their configurations, by run."""
    return {run: name for run, name in _stated(log_lines, RUN_NAME).items() if name}


def _stated(log_lines: Iterable[LogLine], what: str) -> dict[str, str]:
    """Return the first value in the configuration of each run. what: a key of the detail of starts."""
    found: dict[str, str] = {}
    for log_line in log_lines:
        value = dict(event_of(log_line).detail).get(what) if event_of(log_line).type is EventType.START else None
        if value is not None:
            found.setdefault(event_of(log_line).job, value)
    return found


def _continued_runs(log_lines: Sequence[LogLine]) -> dict[str, str]:
    """Return the first run of the training for each run with a hash as name and a configuration."""
    configs = _stated(log_lines, CONFIGS)
    of_run: defaultdict[str, list[LogLine]] = defaultdict(list)
    for log_line in log_lines:
        if event_of(log_line).job in configs and _HASH.fullmatch(event_of(log_line).job):
            of_run[event_of(log_line).job].append(log_line)
    return find_continued_runs(
        RunExtent(
            run,
            configs[run],
            min(log_line.time for log_line in lines),
            max(log_line.time for log_line in lines),
            sorted({step for log_line in lines if (step := event_of(log_line).step) is not None}),
        )
        for run, lines in of_run.items()
    )


def _is_of(run: str, job: str) -> bool:
    name = plain_name(job)
    return run == job or (bool(name) and (run == name or run.startswith(f"{name}-")))


def run_events(log_lines: Sequence[LogLine], several: bool, other_steps: bool) -> list[LogLine]:
    """Return the events of the runs of one job, in order of time. several: True if the job has several runs, which are
    attempts. other_steps: True if another log has the job's starts and steps, which take precedence."""
    ordered = sorted(log_lines, key=lambda log_line: (log_line.time, log_line.line))
    ordered = [*(_starts_of_runs(ordered) if several else ()), *_records(ordered)]
    if other_steps:
        ordered = [
            log_line
            if event_of(log_line).type in ENDS
            else replace(log_line, event=replace(event_of(log_line), type=EventType.ALIVE))
            for log_line in ordered
        ]
    return ordered


def _starts_of_runs(ordered: Sequence[LogLine]) -> list[LogLine]:
    """Return a start at the first entry of each run without a configuration entry."""
    with_start = {event_of(log_line).job for log_line in ordered if event_of(log_line).type is EventType.START}
    first: dict[str, LogLine] = {}
    for log_line in ordered:
        first.setdefault(event_of(log_line).job, log_line)
    return [
        replace(log_line, event=ParsedEvent(NAME, EventType.START, job=run))
        for run, log_line in first.items()
        if run not in with_start
    ]


def _records(ordered: Sequence[LogLine]) -> list[LogLine]:
    """Return one record per step: the measured step time if there is one, otherwise the earliest of another metric."""
    timed = {
        (event_of(log_line).job, event_of(log_line).step)
        for log_line in ordered
        if event_of(log_line).name == STEP_TIME
    }
    steps = [event_of(log_line).step for log_line in ordered if event_of(log_line).type is EventType.STEP]
    from_0 = counts_from_0(step for step in steps if step is not None)
    out: list[LogLine] = []
    last: dict[str, int] = {}
    for log_line in ordered:
        one = event_of(log_line)
        if one.type is EventType.START:
            last.pop(one.job, None)
            log_line = replace(log_line, event=replace(one, detail=()))
        if one.type is not EventType.STEP or one.step is None:
            out.append(log_line)
            continue
        beside = one.name != STEP_TIME and (one.job, one.step) in timed
        again = last.get(one.job) == one.step
        if beside or again:
            if not out or out[-1].time < log_line.time:
                out.append(replace(log_line, event=replace(one, type=EventType.ALIVE, step=None)))
            continue
        last[one.job] = one.step
        out.append(replace(log_line, event=replace(one, detail=COUNTS_FROM_0 if from_0 else ())))
    return out


def silent_hosts(log_lines: Sequence[LogLine]) -> list[tuple[str, LogLine]]:
    """Return hosts whose activity stops while others of their run continue, each with its last line."""
    last: defaultdict[str, dict[str, LogLine]] = defaultdict(dict)
    for log_line in sorted(log_lines, key=lambda log_line: log_line.time):
        one = event_of(log_line)
        if one.format == NAME and one.type is EventType.ALIVE and one.rank:
            last[one.job][one.rank] = log_line
    found = []
    for hosts in last.values():
        latest = max(log_line.time for log_line in hosts.values())
        found += [(host, log_line) for host, log_line in hosts.items() if latest - log_line.time > _SILENT_NS]
    return found
