"""Runs of ML Diagnostics: which of them are one job, what their records count, and what they measured."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from goodput_cli.events.formats.base import RUNS as NAME
from goodput_cli.events.text.entries import STEP_TIME
from goodput_cli.events.text.marks import ENDS, Mark, Rule, Said, What, pattern
from goodput_cli.events.text.meaning import said
from goodput_cli.events.values import counts_from_0
from goodput_cli.vocabulary.when import NS_PER_SECOND

_HASH = re.compile(r"[0-9a-f]{64}")
_STARTED = re.compile(r"(?<!\d{8})-\d{14}$")
_SILENT_NS = 60 * NS_PER_SECOND
RUN_LINES = "mldiagnostics-lines"
"""The format of lines that programs print, until it is known of which run they are."""
_ONE_START_NS = 600 * NS_PER_SECOND


@dataclass(frozen=True)
class Grouped:
    """Runs by job."""

    jobs: dict[str, str]
    """The job of each run."""
    together: bool
    """Whether runs were put together by their names."""
    apart: bool
    """Whether runs have names that tell nothing, and were left apart."""


def _line(what: What) -> Callable[[Any], Said]:
    return lambda found: Said(RUN_LINES, what, job=dict(found.groupdict()).get("run") or "")


RULES = (
    Rule(RUN_LINES, "MLRun '", pattern(r"MLRun '(?P<run>[^']+)' created successfully"), _line(What.START), "created"),
    Rule(RUN_LINES, "Unhandled exception detected!", pattern("Unhandled exception detected!"), _line(What.CRASHED),
         "exception"),
    Rule(RUN_LINES, "SIGTERM received (signum: ", pattern(r"SIGTERM received \(signum: "), _line(What.TERMINATED),
         "sigterm"),
    Rule(RUN_LINES, "Program exiting normally. Sending", pattern("Program exiting normally. Sending 'COMPLETED'"),
         _line(What.EXITED), "completed"),
)  # fmt: skip
"""What the library logs of itself: starts and ends, mostly without the name of the run."""


def of_their_runs(lines: Sequence[tuple[int, Mark]], marks: Mapping[int, Sequence[Mark]]) -> Iterator[tuple[int, Mark]]:
    """What programs printed, as marks of their runs: of the only one of its source, or of all sources. lines, marks: by
    the codes of sources."""
    everywhere = {said(mark).job for of_source in marks.values() for mark in of_source}
    for code, mark in lines:
        runs = {said(one).job for one in marks.get(code, ())} or everywhere
        run = said(mark).job if said(mark).job in everywhere else next(iter(runs)) if len(runs) == 1 else ""
        if run and not (said(mark).what is What.START and _has_started(mark, run, marks)):
            yield code, replace(mark, said=replace(said(mark), format=NAME, job=run))


def _has_started(mark: Mark, run: str, marks: Mapping[int, Sequence[Mark]]) -> bool:
    """Whether the configuration of a run is the same start."""
    starts = (one for of_source in marks.values() for one in of_source if said(one).what is What.START)
    return any(said(one).job == run and abs(one.time - mark.time) <= _ONE_START_NS for one in starts)


def plain_name(name: str) -> str:
    """A name as the library writes it into runs: small letters and digits, parted by single dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def group_runs(runs: Iterable[str], job_name: str | None, jobs: Collection[str], exact: bool = False) -> Grouped:
    """The job of each run. job_name: the one that was asked for. jobs: names of jobs that other lines name. exact:
    whether each run is a job of its own."""
    if exact:
        return Grouped({run: run for run in runs}, False, False)
    found: dict[str, str] = {}
    hashes = together = False
    for run in dict.fromkeys(runs):
        known = next((job for job in jobs if _is_of(run, job)), None)
        if known is not None:
            found[run] = known
        elif job_name is not None and (_is_of(run, job_name) or _HASH.fullmatch(run)):
            found[run] = job_name
        elif _HASH.fullmatch(run):
            found[run], hashes = run, True
        else:
            found[run] = _STARTED.sub("", run)
    if job_name is not None and job_name not in found.values():
        found = dict.fromkeys(found, job_name)
    together = len(set(found.values())) < len(found)
    return Grouped(found, together, hashes and len(found) > 1)


def _is_of(run: str, job: str) -> bool:
    name = plain_name(job)
    return run == job or (bool(name) and (run == name or run.startswith(f"{name}-")))


def run_events(marks: Sequence[Mark], several: bool, other_steps: bool) -> list[Mark]:
    """What the runs of one job say, in order of time. several: whether the job has several runs, of which each is a
    life. other_steps: whether another log says what the job did: then its starts and steps decide."""
    ordered = sorted(marks, key=lambda mark: (mark.time, mark.line))
    ordered = [*(_starts_of_runs(ordered) if several else ()), *_records(ordered)]
    if other_steps:
        ordered = [
            mark if said(mark).what in ENDS else replace(mark, said=replace(said(mark), what=What.ALIVE))
            for mark in ordered
        ]
    return ordered


def _starts_of_runs(ordered: Sequence[Mark]) -> list[Mark]:
    """A start at the first entry of each run that has no entry of its configuration."""
    with_start = {said(mark).job for mark in ordered if said(mark).what is What.START}
    first: dict[str, Mark] = {}
    for mark in ordered:
        first.setdefault(said(mark).job, mark)
    return [replace(mark, said=Said(NAME, What.START, job=run)) for run, mark in first.items() if run not in with_start]


def _records(ordered: Sequence[Mark]) -> list[Mark]:
    """One record a step: that of its time where it was measured, else the earliest of another metric."""
    timed = {(said(mark).job, said(mark).step) for mark in ordered if said(mark).name == STEP_TIME}
    steps = [said(mark).step for mark in ordered if said(mark).what is What.STEP]
    from_0 = counts_from_0(step for step in steps if step is not None)
    out: list[Mark] = []
    last: dict[str, int] = {}
    for mark in ordered:
        one = said(mark)
        if one.what is What.START:
            last.pop(one.job, None)
        if one.what is not What.STEP or one.step is None:
            out.append(mark)
            continue
        beside = one.name != STEP_TIME and (one.job, one.step) in timed
        again = last.get(one.job) == one.step
        if beside or again:
            if not out or out[-1].time < mark.time:
                out.append(replace(mark, said=replace(one, what=What.ALIVE, step=None)))
            continue
        last[one.job] = one.step
        out.append(replace(mark, said=replace(one, step=one.step + from_0)))
    return out


def silent_hosts(marks: Sequence[Mark]) -> list[tuple[str, Mark]]:
    """Hosts whose signs of life stop while others of their run go on, with their last."""
    last: defaultdict[str, dict[str, Mark]] = defaultdict(dict)
    for mark in sorted(marks, key=lambda mark: mark.time):
        one = said(mark)
        if one.format == NAME and one.what is What.ALIVE and one.rank:
            last[one.job][one.rank] = mark
    found = []
    for hosts in last.values():
        latest = max(mark.time for mark in hosts.values())
        found += [(host, mark) for host, mark in hosts.items() if latest - mark.time > _SILENT_NS]
    return found
