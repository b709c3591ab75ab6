"""Build the timeline of a job from its events and a question, and analyze a window of it.

Select the events of the question: one job of the log, and one run of it.

Split a log of many jobs into one log per job, with one sort of the whole table. Thousands of jobs must not cost
thousands of passes over it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from goodput_cli.accounting.attempts.attempts import find_attempts, is_step_log, job_start
from goodput_cli.accounting.attempts.endings import find_runs, may_have_separate_runs, separate_runs
from goodput_cli.accounting.attempts.evidence_of_attempts import cause_without_attempts
from goodput_cli.accounting.attempts.failure_cause import FailureCause
from goodput_cli.accounting.build import Timeline, build_timeline, cause_of_last_end
from goodput_cli.accounting.columns import codes_in, distinct
from goodput_cli.accounting.options import AccountingOptions
from goodput_cli.accounting.order import OrderedEvents, in_order
from goodput_cli.analysis.capabilities import CAPABILITIES
from goodput_cli.analysis.goodput.analyse import analyse_window, evaluate
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.goodput.findings import beaten_reference
from goodput_cli.analysis.question import ALL, BASELINE, Price, Question
from goodput_cli.analysis.results import Rolling
from goodput_cli.analysis.rolling import as_known_at, default_window, rolling
from goodput_cli.analysis.threshold import Expression
from goodput_cli.arrays import group_by_key
from goodput_cli.diagnostics.diagnostic import Diagnostic, merge
from goodput_cli.errors import NeedsMapping, NotEnoughData, UsageError
from goodput_cli.events.evidence import NO_EVIDENCE, EvidenceOfLog
from goodput_cli.events.formats.base import SACCT
from goodput_cli.events.rows import is_constant
from goodput_cli.events.schema import COLUMNS, EventLog, EventTable, LogFormat
from goodput_cli.vocabulary.categories import KILLED
from goodput_cli.vocabulary.text import did_you_mean, duration, plural
from goodput_cli.vocabulary.when import AUTO, NS_PER_DAY, Anchors, load_zone

if TYPE_CHECKING:
    from goodput_cli.analysis.check import CheckFinding


_LISTED = 10
NO_TRAINING_LOG = "no training log"
"""Reason for unknown goodput of a job that only appears in a scheduler table."""
_NOTHING = "no events found"


def pick_job(log: EventLog, name: str | None) -> tuple[EventTable, str, tuple[LogFormat, ...]]:
    """Return the events of one job, its name, and their formats.

    Raise `NotEnoughData` without any events, or without events of that job. Raise `UsageError` if no name is given and
    there are several jobs.
    """
    jobs = log.table.jobs
    if len(log.table) == 0:
        raise no_events(log.diagnostics, log.table.observed)
    if name is None:
        present = [jobs[code] for code in codes_in(log.table.job)]
        present = [one for one in present if one not in log.earlier] or present
        if len(present) > 1 and all(is_scheduled_alone(format_names(log, jobs.index(one))) for one in present):
            raise UsageError(
                f"found {len(present)} jobs in the scheduler table, but no training logs",
                tip=f"run `goodput fleet {_only_source(log) or 'TABLE'}`, or add the stdout of one job",
            )
        if len(present) > 1:
            raise UsageError(
                f"the log contains {len(present)} jobs: {_listed(present, log.table.observed.run_names)}",
                tip=f"select one with -j NAME; `{f'goodput jobs {_only_source(log)}'.rstrip()}` lists all of them with "
                "their times and goodput",
            )
        name = present[0]
    if name not in jobs:
        raise no_such_job(name, jobs)
    code = jobs.index(name)
    formats = log.formats[code] if code < len(log.formats) else ()
    table = log.table if len(jobs) == 1 else log.table.take(log.table.job == code)
    if is_scheduled_alone([one.name for one in formats]):
        table = replace(table, observed=replace(table.observed, scheduled_alone=True))
    return table.compacted(), name, formats


def _only_source(log: EventLog) -> str:
    """Return the source as a shell argument; empty if there are several."""
    return shlex.quote(log.table.files[0]) if len(log.table.files) == 1 else ""


def format_names(log: EventLog, code: int) -> tuple[str, ...]:
    """Return the names of the formats of a job's events. code: of the job."""
    return log.format_names[code] if code < len(log.formats) else ()


def is_scheduled_alone(formats: Sequence[str]) -> bool:
    """Return True if a job appears only in a scheduler table: its use of time is unknown, and never 0. formats: the
    names of the formats of its events."""
    return set(formats) == {SACCT}


def pick_run(whole: OrderedEvents, run: str, before: int | None = None) -> tuple[OrderedEvents, int]:
    """Return the events of one run of a job (accounting §10), and its number.

    run: a number from 1; "last"; "all" for all events, with number 0; or "auto", the last run that began before a time
    (ns). "auto" is the same as "all" if runs are not separate.
    """
    if run == ALL:
        return whole, 0
    table, starts = whole.table, run_starts(whole.table, apart=run == AUTO)
    if run == AUTO and len(starts) == 1:
        return whole, 0
    begun = [row for row in starts if before is None or table.time[row] < before] or starts[:1]
    number = len(begun) if run == AUTO else len(starts) if run == "last" else int(run)
    if not 1 <= number <= len(starts):
        raise UsageError(
            f"run {number} does not exist; the job has {plural(len(starts), 'run')} (--run 1..{len(starts)} or last)"
        )
    first = starts[number - 1] if number > 1 else 0
    stop = starts[number] if number < len(starts) else len(table)
    chosen = table.take(np.arange(first, stop))
    return OrderedEvents(chosen, chosen, np.zeros(0, dtype=np.intp)), number


def run_starts(table: EventTable, *, apart: bool = False) -> list[int]:
    """Return the rows at which runs of a job begin (accounting §10), the first at row 0. apart: only if the runs are
    judged separately."""
    if apart and not may_have_separate_runs(table):
        return [0]
    attempts = find_attempts(table, is_step_log(table))
    return (separate_runs if apart else find_runs)(table, attempts)


@dataclass(frozen=True)
class JobEventSummary:
    """Summary of a log's events of one job."""

    events: int
    last_ns: int
    """End of the last event, ns."""


def jobs_seen(log: EventLog, names: Sequence[str] = ()) -> dict[str, JobEventSummary]:
    """Return the jobs of a log that have events and match one of the globs, without earlier runs of another job. It
    takes one pass for any number of jobs."""
    table = log.table
    counts = np.bincount(table.job, minlength=len(table.jobs))
    last = np.full(len(table.jobs), np.iinfo(np.int64).min)
    np.maximum.at(last, table.job, table.end)
    present = [
        (name, JobEventSummary(int(n), int(ns))) for name, n, ns in zip(table.jobs, counts, last, strict=True) if n
    ]
    wanted = {name: seen for name, seen in present if is_wanted(name, names)}
    return {name: seen for name, seen in wanted.items() if name not in log.earlier} or wanted


def is_wanted(job: str, names: Sequence[str]) -> bool:
    """Return True if a job's name matches one of the globs, or if there are no globs."""
    return not names or any(name == job or fnmatchcase(job, name) for name in names)


def no_job(log: EventLog, names: Sequence[str]) -> NotEnoughData:
    """Return the error for a log without any event of the jobs that match globs."""
    if len(log.table) == 0:
        return no_events(log.diagnostics, log.table.observed)
    return no_such_job(", ".join(names), log.table.jobs)


def no_such_job(name: str, jobs: Iterable[str]) -> NotEnoughData:
    """Return the error for a log that contains other jobs than the named one."""
    known = sorted(jobs)
    return NotEnoughData(
        f"no events for job {name!r}", cause=f"the log contains {_listed(known)}", tip=did_you_mean(name, known)
    )


def _listed(names: Sequence[str], run_names: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the names as a list in words. run_names: the name that the user gave a run, by job."""
    shown = ", ".join(
        _quoted(name) + (f" ({_quoted(run_names[name])})" if run_names.get(name, name) != name else "")
        for name in names[:_LISTED]
    )
    return shown + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")


def _quoted(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:79] + "…")


def no_events(diagnostics: Sequence[Diagnostic | CheckFinding], observed: EvidenceOfLog = NO_EVIDENCE) -> NotEnoughData:
    """Return the error for a log without events and without inferred rules: the actual content of its sources.
    observed: lines about failures, and lines that look like steps."""
    for place in observed.unread_steps.values():
        looks = f"{place} looks like a step, but the format is unknown"
        return NeedsMapping(_NOTHING, cause=looks, tip=_to_draft(place))
    seen = observed.listed
    if seen and all(one.of_host for one in seen):
        one = min(seen, key=lambda one: (one.source, one.line))
        more = f", and {plural(len(seen) - 1, 'more line')}: `goodput check` lists them" if len(seen) > 1 else ""
        return NotEnoughData(
            f"no training events: {one.source} is a host log ({one.where} may explain a failure: {one.code}{more})",
            tip="pass the job's log as well",
        )
    if seen:
        found = end_in_words(cause_without_attempts(observed))
        return NotEnoughData(
            _NOTHING,
            cause=f"no line is recognized as a step{found and f' ({found})'}",
            tip=_to_draft(min(seen, key=lambda one: (one.source, one.line)).where),
        )
    if not diagnostics:
        return NotEnoughData(
            _NOTHING, cause="the sources are empty", tip="check whether the job has written its log yet"
        )
    most = max(diagnostics, key=lambda diagnostic: diagnostic.count)
    if most.code == "unrecognised_lines" and most.where:
        return NotEnoughData(_NOTHING, cause=f"{most.where[0]}: {most.message}", tip=_to_draft(most.where[0]))
    counts: dict[str, int] = {}
    for diagnostic in diagnostics:
        counts[diagnostic.code] = counts.get(diagnostic.code, 0) + diagnostic.count
    counted = ", ".join(f"{count} x {code}" for code, count in list(counts.items())[:3])
    return NotEnoughData(
        f"{_NOTHING} ({counted})",
        cause=f"{''.join(f'{place}: ' for place in most.where[:1])}{most.message}",
        tip=f"run `goodput help {most.code}` for what to do, and `goodput check` with the same log for all findings",
    )


def end_in_words(why: FailureCause) -> str:
    """Return the cause of a job's end with its line, as refusals and errors quote it; "" without evidence."""
    if why.where is None:
        return f"{why.used[0].where} reports {why.used[0].code}, cause unknown" if why.used else ""
    if not why.is_explained:
        how = f" by a signal ({why.code})" if why.code == KILLED else ""
        return f"it ended{how} at {why.where}, cause unknown"
    return f"{'likely ' if why.certainty == 'likely' else ''}cause of its end: {why.where}: {why.code}"


def _to_draft(place: str) -> str:
    """Return the advice for a log without inferred rules yet, with the commands that make and use a mapping. place:
    FILE:LINE of a line of it."""
    make = f"`goodput check --suggest {shlex.quote(place.rpartition(':')[0])} > my.toml`"
    return f"create a mapping with {make}, then pass `--mapping my.toml`"


def by_job(log: EventLog) -> Iterator[EventLog]:
    """Yield the log of each job that has events, in order of their first event; rows in order of arrival.

    The diagnostics of reading belong to the whole log and are omitted.
    """
    table = log.table
    if len(table) == 0:
        return
    if len(table.jobs) == 1:
        yield EventLog(table, log.formats[:1] or ((),))
        return
    sorted_ = table if is_constant(table.job) else table.take(np.argsort(table.job, kind="stable"))
    bounds = np.searchsorted(sorted_.job, np.arange(len(table.jobs) + 1))
    present = np.flatnonzero(bounds[1:] > bounds[:-1])
    first = np.minimum.reduceat(sorted_.time, bounds[present])
    metrics = group_by_key((one.job, one) for one in table.metrics)
    for code in present[np.argsort(first, kind="stable")].tolist():
        formats = log.formats[code] if code < len(log.formats) else ()
        own = _slice(sorted_, code, int(bounds[code]), int(bounds[code + 1]))
        yield EventLog(replace(own, metrics=tuple(metrics[table.jobs[code]])), (formats,))


def _slice(table: EventTable, job: int, start: int, stop: int) -> EventTable:
    """Return the rows of one job, sorted by job before, with only the labels, details, entries and writers that they
    use."""
    columns = {name: getattr(table, name)[start:stop] for name in COLUMNS}
    columns["job"] = np.zeros(stop - start, dtype=np.int32)
    named: dict[str, Any] = {"jobs": (table.jobs[job],)}
    for column, name in (("label", "labels"), ("detail", "details"), ("entry", "entries"), ("writer", "writers")):
        codes = columns[column]
        used = distinct(codes[codes >= 0])
        if len(used):  # Numbers become contiguous; NONE stays.
            columns[column] = np.where(codes >= 0, np.searchsorted(used, codes), codes).astype(np.int32)
        named[name] = tuple(getattr(table, name)[code] for code in used.tolist())
    return replace(table, **columns, **named)


_LONG_SILENCE_NS = NS_PER_DAY


def analyze_log(
    log: EventLog,
    question: Question,
    job_name: str | None = None,
    thresholds: Sequence[Expression] = (),
    *,
    price: Price | None = None,
    asked: tuple[str, ...] = (),
) -> Analysis:
    """Return the analysis of one job in a log that was read; price and asked are those of `Analysis`.

    The log is released as soon as the job's events are in order: its table is large, so the caller should not keep it.
    """
    events, name, formats = pick_job(log, job_name)
    of_reading = log.diagnostics
    del log
    ordered = in_order(events)
    del events
    last = int(ordered.table.end.max())
    question = replace(question, now_ns=max(question.now_ns, last))  # A clock that was set back must not hide an event.
    timeline, start, end = account_for(ordered, question, name)
    known = timeline if question.method.hindsight else as_known_at(timeline, end)
    analysis = analyse_window(known, name, formats, start, end, of_reading)
    rows = _rolling(timeline, question, start, end) if question.window else None
    noticed = (*_runs_of_name(ordered, analysis, question), *_silence(ordered, timeline, question, name))
    priced = replace(analysis, price=price)
    noticed = (*noticed, *(found for one in CAPABILITIES for found in one.diagnostics(priced)))
    over = analysis.goodput.ns > analysis.window.counted_ns
    if over or (rows is not None and (rows.productive_ns > rows.counted_ns).any()):
        noticed = beaten_reference(known, noticed)
    analysis = replace(
        analysis, diagnostics=merge(noticed), rolling=rows, price=price, work_options=question.work, options=asked
    )
    return replace(analysis, thresholds=evaluate(thresholds, analysis)) if thresholds else analysis


def _runs_of_name(ordered: OrderedEvents, analysis: Analysis, question: Question) -> Iterator[Diagnostic]:
    """Yield the diagnostics of an analysis, with the results of other readings of the runs with its name."""
    yield from earlier_runs(ordered, question)
    yield from with_other_readings(analysis.diagnostics, ordered, question, analysis.job.name)


def earlier_runs(ordered: OrderedEvents, question: Question) -> Iterator[Diagnostic]:
    """Report the earlier runs of a job that an answer about its last run leaves out."""
    _, number = pick_run(ordered, question.run, _until(question)) if question.run == AUTO else (ordered, 0)
    if number > 1:
        earlier = "run 1" if number == 2 else f"runs 1 to {number - 1}"
        yield Diagnostic.of(
            "earlier_runs",
            f"only run {number} of this name is analyzed, because {earlier} ended; use --run "
            f"{'1' if number == 2 else 'N'} for an earlier run, or --run all to count all runs as one job",
            number - 1,
        )


def with_other_readings(
    noticed: Iterable[Diagnostic], ordered: OrderedEvents, question: Question, name: str
) -> Iterator[Diagnostic]:
    """Yield the diagnostics of a job. Those that question its reading get the result of the other reading.

    For all runs together this is the result of the last run alone. For stops that may have been planned it is the
    result if they were.
    """
    for one in noticed:
        if one.code == "restarted_from_scratch":
            alone = replace(question, run="last", start=None, end=None)
            then = f"of the last run alone: {_reading(ordered, alone, name)[1]}"
            one = replace(one, message=f"{one.message} (goodput {then})")
        elif one.code == "planned_or_not":
            method = replace(question.method, planned="yes")
            count, share = _reading(ordered, replace(question, method=method, start=None, end=None), name)
            settle = f"set `planned = true` (or false) under {_table_of(name)} in goodput.toml"
            then = f"if planned: goodput {share}, {plural(count, 'disruption')}"
            one = replace(one, message=f"{one.message} ({then}); {settle}")
        elif one.code == "restart_or_rollback":
            count, share = _as_rollbacks(ordered, replace(question, start=None, end=None), name)
            then = f"if it did not restart: goodput {share}, {plural(count, 'disruption')}"
            one = replace(one, message=f"{one.message} ({then})")
        yield one


def _as_rollbacks(ordered: OrderedEvents, question: Question, name: str) -> tuple[int, str]:
    """Return the number of disruptions, and the goodput in words, if processes survived where the log does not show
    it."""
    timeline, _, _ = account_for(ordered, question, name)
    rules = replace(timeline.rules, unknown_falls="rollbacks")
    other = build_timeline(timeline.ordered, rules, None if question.as_of is None else timeline.end)
    return _share_of(timeline if other is None else other, name)


def _reading(ordered: OrderedEvents, question: Question, name: str) -> tuple[int, str]:
    """Return the number of disruptions of a job in one reading, and its goodput in words."""
    timeline, _, _ = account_for(ordered, question, name)
    return _share_of(timeline, name)


def _share_of(timeline: Timeline, name: str) -> tuple[int, str]:
    """Return the number of disruptions of a timeline, and its goodput in words."""
    percent = analyse_window(timeline, name, (), timeline.start, timeline.end, ()).goodput_percent
    return int(timeline.failed.sum()), "unknown" if percent is None else f"{percent:.2f} %"


def _table_of(name: str) -> str:
    """Return the TOML table of a job, `[job.llm-7b]`, quoted if TOML requires it."""
    shown = name if len(name) <= _LONGEST_KEY else f"{name[:_LONGEST_KEY]}…"
    bare = shown.isascii() and shown.replace("-", "").replace("_", "").isalnum()
    return f"[job.{shown}]" if bare else f"[job.{json.dumps(shown, ensure_ascii=False)}]"


_LONGEST_KEY = 80


def _until(question: Question) -> int | None:
    """Return the time (ns) before which the runs of a question began; None without a limit."""
    absolute = Anchors(0, 0, (), question.now_ns, load_zone(question.timezone))
    named = [one for one in (question.end, question.as_of) if one is not None]
    return min((one.resolve(absolute) for one in named if one.kind in ("instant", "local", "now")), default=None)


def _silence(ordered: OrderedEvents, timeline: Timeline, question: Question, name: str) -> Iterator[Diagnostic]:
    """Report `--as-of` long after the last line of a job without a logged end: most of the window is silence."""
    silent = timeline.end - int(ordered.table.end.max())
    if question.as_of is None or timeline.ended or silent < _LONG_SILENCE_NS:
        return
    logged, start, end = account_for(ordered, replace(question, as_of=None, start=None, end=None), name)
    percent = analyse_window(logged, name, (), start, end, ()).goodput_percent
    then = "unknown" if percent is None else f"{percent:.2f} %"
    yield Diagnostic.of(
        "long_silence",
        f"no log lines for {duration(silent)}: the job has probably ended (goodput without --as-of: {then})",
    )


def _rolling(timeline: Timeline, question: Question, start: int, end: int) -> Rolling:
    """Return the rolling windows that end inside the window of the question, [start, end) (ns)."""
    start, end = max(start, timeline.start), min(end, timeline.end)
    windows = [window or default_window(end - start) for window in question.window]
    return rolling(timeline, start, end, windows, question.every, question.method.hindsight)


def account_for(ordered: OrderedEvents, question: Question, name: str) -> tuple[Timeline, int, int]:
    """Return the timeline of one job, or of the selected run, and the window of the question (ns) as asked.

    Raises NotEnoughData if the events span no time, UsageError if the question does not fit the job.
    """
    ordered, _ = pick_run(ordered, question.run, _until(question))
    timeline, anchors = _timeline(ordered, question, name)
    start = question.start.resolve(anchors) if question.start else timeline.start
    end = question.end.resolve(anchors) if question.end else timeline.end
    if question.start and question.end and start >= end:
        raise UsageError(f"the window is empty: --from {question.start.text} is not before --to {question.end.text}")
    return timeline, start, end


def _timeline(ordered: OrderedEvents, question: Question, name: str) -> tuple[Timeline, Anchors]:
    """Resolve the times that the accounting itself needs, and account for the job."""
    zone = load_zone(question.timezone)
    table = ordered.table
    spans = [when for span in question.exclude for when in (span.start, span.end)]
    named = [question.start, question.end, question.as_of, *spans]
    starts: list[int] = []
    if any(when is not None and when.kind == "attempt" for when in named):
        starts = find_attempts(table, is_step_log(table)).begins.tolist()
    whole = Anchors(job_start(table), int(table.end.max()), starts, question.now_ns, zone)
    as_of = question.as_of.resolve(whole) if question.as_of else None
    reference = question.reference_step_time
    if reference == BASELINE:
        raise UsageError(
            "--reference-step-time baseline: only `goodput compare` has a baseline", tip="use seconds or auto"
        )
    rules = AccountingOptions(
        method=question.method,
        reference_ns=reference * 10**9 if isinstance(reference, Fraction) else reference,
        exclusions=tuple(span.resolve(whole) for span in question.exclude),
    )
    timeline = build_timeline(ordered, rules, as_of)
    if timeline is None:
        place = table.observed.unread_steps.get(name)
        if place:
            looks = f"{place} looks like a step, but the format is unknown"
            raise NeedsMapping(f"no steps found for job {name!r}", cause=looks, tip=_to_draft(place))
        known = " before --as-of" if as_of is not None else ""
        found = end_in_words(cause_of_last_end(table)) if as_of is None else ""
        raise NotEnoughData(
            f"all events of job {name!r}{known} have the same time{found and f' ({found})'}",
            cause="at least two different times are needed",
        )
    return timeline, replace(whole, start_ns=timeline.start, end_ns=timeline.end)
