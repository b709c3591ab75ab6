"""Whole logs with all their jobs: every job in one line (`goodput jobs`), and what is wrong with a log (`goodput
check`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import numpy as np

from goodput_cli.accounting.attempts.endings import END_NAMES, is_cancelled
from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import codes_in
from goodput_cli.accounting.options import GOODPUT, Limits, limits_of
from goodput_cli.accounting.order import OrderedEvents, in_order
from goodput_cli.analysis.account import (
    NO_TRAINING_LOG,
    account_for,
    by_job,
    earlier_runs,
    is_scheduled_alone,
    pick_job,
    pick_run,
    run_starts,
)
from goodput_cli.analysis.analysis_data import Diagnostics
from goodput_cli.analysis.capabilities import CAPABILITIES
from goodput_cli.analysis.check import CheckReport, ProcessRow, check_job, check_unaccountable, processes_of, report
from goodput_cli.analysis.disruptions.find import count_disruptions
from goodput_cli.analysis.goodput.analyse import analyse_window
from goodput_cli.analysis.goodput.phrases import limits_text
from goodput_cli.analysis.hangs.job_columns import JOB_COLUMNS
from goodput_cli.analysis.json_fields import Count, written
from goodput_cli.analysis.question import ALL, Question
from goodput_cli.analysis.rolling import as_known_at
from goodput_cli.analysis.sheet import Audience, Column, DisplayableAnswer, Sheet
from goodput_cli.analysis.table import Facts, JobFacts, TableDeclaration, attribute, column, columns_of, each
from goodput_cli.arrays import garbage_collection_paused
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import GoodputError, NotEnoughData, UsageError
from goodput_cli.events.schema import EventLog
from goodput_cli.vocabulary.categories import CAUSES, CERTAINTIES, CONFIRMED_IN_VERSION_1, Category, cause_text
from goodput_cli.vocabulary.text import plural
from goodput_cli.vocabulary.when import AUTO

JOB_FACTS: tuple[JobFacts, ...] = (JOB_COLUMNS,)
_HEADINGS = tuple(one.heading for facts in JOB_FACTS for one in facts.columns if Audience.PEOPLE in one.audience)

SortKey = Literal["start", "name", "goodput", "events", "length"]


def _goodput(job: JobSummary) -> dict[str, Any] | None:
    if job.goodput_ns is None:
        return None
    return {"seconds": job.goodput_ns / 1e9, "ns": job.goodput_ns, "percent": job.goodput_percent}


def _shown_cause(job: JobSummary) -> str | None:
    return None if job.cause is None else cause_text(job.cause, job.cause_certainty)


@dataclass(frozen=True, kw_only=True)
class JobSummary:
    """One job of a log: its fields are the columns of `JOBS`. Times are ns since 1970 UTC."""

    name: str = column(
        "text", "job_name of its events", name="job", key="name", heading="job",
        people_values=each(lambda job: f"{job.name} #{job.run}" if job.run else job.name),
    )  # fmt: skip
    start_ns: int = column(
        "instant", "start of the window, cut to the job; of a job that cannot be analyzed, its first event",
        heading="start", spare=True,
    )  # fmt: skip
    end_ns: int = column(
        "instant", "end of the window, cut to the job; of a job that cannot be analyzed, the end of its last event"
    )
    events: int = column("count", "events as they came, duplicates included", least=0)
    """Events of the job, each counted once."""
    attempts: int | None = column(
        "count", "attempts of the job; null: it cannot be analyzed", least=0, heading="attempts", spare=True,
        default=None,
    )  # fmt: skip
    runs: int | None = column(
        "count", "how often the job's name was used", least=0, heading="runs", spare=True, default=None
    )
    """Number of runs with the name (accounting §10); None if the job cannot be analyzed."""
    run: int = column("count", "number of the run, from 1; 0: all runs as one", least=0, later=True)
    disruptions: int | None = column("count", "disruptions inside the window", least=0, default=None)
    formats: tuple[str, ...] = column(
        "text", "log formats seen, sorted", json={"type": "array", "items": {"type": "string"}},
        values=each(lambda job: " + ".join(job.formats)), json_values=attribute("formats"),
    )  # fmt: skip
    ending: str | None = column(
        "text", "how the last attempt ended, as logged; cancelled: as the scheduler reports", heading="ended",
        json={"enum": [*END_NAMES]},
    )  # fmt: skip
    cause: str | None = column(
        "text", "why it ended, if the log or the scheduler reports it", json={"enum": [*CAUSES]}, later=True,
        heading="why", people_values=each(_shown_cause), default=None,
    )  # fmt: skip
    """Code of the last end's cause (docs/causes.md); None for a clean end, or if unknown."""
    cause_certainty: str | None = column(
        "text", "confirmed: the log states it; likely: chosen among several, or joined by time", later=True,
        json={"enum": [*CERTAINTIES, CONFIRMED_IN_VERSION_1]}, default=None,
    )  # fmt: skip
    goodput_ns: int | None = column(
        "text", "null: goodput is unknown or only bounds are known; see reason", audience=Audience.JSON, key="goodput",
        values=each(_goodput), default=None, json={
            "type": "object",
            "description": "productive time",
            "properties": {
                "seconds": {"type": "number"},
                "ns": {"type": "integer"},
                "percent": {"type": "number", "description": "of the window without exclusions"},
            },
        },
    )  # fmt: skip
    """Productive time. None if the job cannot be analyzed, goodput is unknown, only bounds are known, or all of the
    window is excluded."""
    goodput_percent: float | None = column(
        "percent", "goodput.percent", name="goodput", heading="goodput", default=None
    )
    """Percentage of the window without excluded time; None like `goodput_ns`."""
    at_least_percent: float | None = column(
        "percent", "the lowest goodput that the log allows: goodput.percent where that is known",
        name="at_least", later=True, default=None,
    )  # fmt: skip
    at_most_percent: float | None = column(
        "percent", "the highest goodput that the log allows: goodput.percent where that is known",
        name="at_most", later=True, default=None,
    )  # fmt: skip
    reason: str | None = column("text", "why the job has no goodput", default=None)
    facts: Facts = field(default_factory=dict)
    """Facts by the name of the capability; empty if the job cannot be analyzed."""

    @property
    def ns(self) -> int:
        """Length of the window (ns)."""
        return self.end_ns - self.start_ns


_FIELDS = columns_of(JobSummary, attribute)
JOBS = TableDeclaration(
    "listed_job",
    "one job of the logs",
    (
        *_FIELDS[:3],
        Column("length", "duration", values=attribute("ns"), words="end - start", key="seconds", title="window",
               spare=True),
        Column("ns", "count", Audience.JSON, attribute("ns"), "the same in ns", least=0),
        *_FIELDS[3:],
        *(one for facts in JOB_FACTS for one in facts.columns),
    ),
    people=("job", "start", "window", "attempts", "runs", "goodput", "ended", "why", *_HEADINGS),
    first=(
        "job", "start", "end", "length", "events", "attempts", "runs", "run", "disruptions", "goodput",
        "ending", "cause", "cause_certainty", "formats",
    ),
)  # fmt: skip


@written("jobs_answer", "goodput jobs --format json", kind="jobs")
@dataclass(frozen=True, repr=False, kw_only=True)
class JobList(DisplayableAnswer):
    """Jobs of a log."""

    found: Count
    """jobs in the logs, and separate runs, before --limit"""
    runs: Count
    """runs of all jobs found; more than jobs if a name was used again"""
    events: Count
    """events of all jobs found, duplicates included"""
    jobs: Annotated[tuple[JobSummary, ...], JOBS]
    """in the order of --sort"""
    diagnostics: Diagnostics
    """warnings about the logs"""

    def sheet(self) -> Sheet:
        return jobs_sheet(self)


def summary_of_job(job: EventLog, timeline: Timeline, start: int, end: int, runs: int, run: int = 0) -> JobSummary:
    """Return a job in one line. job: its log alone. [start, end) (ns): the window of the question, inside the job
    window. runs: number of runs with its name. run: the run of the timeline, 0 for all."""
    amounts = timeline.ledger.in_window(start, end)
    productive = amounts.get((Category.PRODUCTIVE, -1), 0)
    counted = end - start - amounts.get((Category.EXCLUDED, -1), 0)
    reason = None if counted > 0 else "the whole window is excluded"
    if is_scheduled_alone(job.format_names[0]):
        reason = NO_TRAINING_LOG
    limits = Limits(productive, productive) if reason is None else Limits(None, None)
    if reason is None and timeline.unknown(np.array([start]), np.array([end]))[0]:
        reason, limits = f"goodput is unknown: {timeline.why_unknown}", Limits(None, None)
    elif reason is None and (bounds := timeline.bounds(start, end)):
        limits = limits_of(bounds, GOODPUT, productive)
        reason = f"{limits_text(limits, counted)}: {bounds[0].text}"
    low, high = (None if ns is None else 100 * ns / counted for ns in (limits.at_least, limits.at_most))
    attempts, why = timeline.attempts.count, timeline.last_cause
    return JobSummary(
        name=job.table.jobs[0],
        start_ns=start,
        end_ns=end,
        events=len(timeline.ordered.table),
        formats=job.format_names[0],
        attempts=attempts,
        runs=runs,
        run=run,
        disruptions=count_disruptions(timeline, start, end),
        ending=timeline.ending,
        cause=None if why is None else why.code,
        cause_certainty=None if why is None else why.certainty,
        goodput_ns=productive if reason is None else None,
        goodput_percent=100 * productive / counted if reason is None else None,
        at_least_percent=low,
        at_most_percent=high,
        reason=reason,
        facts={one.name: one.of(timeline) for one in JOB_FACTS},
    )


def not_analysed(job: EventLog, reason: str, run: int = 0) -> JobSummary:
    """Return a job that cannot be analyzed: only facts from its lines are known."""
    table = job.table
    reason = NO_TRAINING_LOG if is_scheduled_alone(job.format_names[0]) else reason
    first, last = int(table.time.min()), int(table.end.max())
    events, formats = len(in_order(table).table), job.format_names[0]
    ending = "cancelled" if reason == NO_TRAINING_LOG and is_cancelled(table, int(np.argmax(table.time))) else None
    return JobSummary(
        name=table.jobs[0], start_ns=first, end_ns=last, events=events, formats=formats, run=run, ending=ending,
        reason=reason,
    )  # fmt: skip


def arranged(jobs: Iterable[JobSummary], key: SortKey, limit: int | None) -> tuple[JobSummary, ...]:
    """Return the jobs sorted, ties by start and name, limited to the first `limit`.

    start, name: ascending. goodput: the lowest first, unknown last. events, length: the largest first.
    """
    orders = {
        "start": lambda job: (job.start_ns, job.name),
        "name": lambda job: (job.name, job.start_ns),
        "goodput": lambda job: (job.goodput_percent is None, job.goodput_percent or 0.0, job.start_ns, job.name),
        "events": lambda job: (-job.events, job.start_ns, job.name),
        "length": lambda job: (-job.ns, job.start_ns, job.name),
    }
    return tuple(sorted(jobs, key=orders[key])[:limit])


_MOST_REASONS = 5


def jobs_sheet(jobs: JobList) -> Sheet:
    """Return one row per job.

    People see only columns that fit 80 columns: runs only if a name was used more than once, and causes and ranks that
    held jobs up only if one is known.
    """
    empty = [] if any((job.runs or 1) > 1 for job in jobs.jobs) else ["runs"]
    empty += [] if any(job.cause for job in jobs.jobs) else ["why"]
    facts = (one for facts in JOB_FACTS for one in facts.columns if Audience.PEOPLE in one.audience)
    empty += [one.heading for one in facts if one.values is not None and not any(one.values(jobs.jobs))]
    columns = JOBS.sheet_columns(without=empty)
    return Sheet(
        title=plural(jobs.found, "job"),
        columns=columns,
        rows=JOBS.of_rows(jobs.jobs).cells(columns),
        summary=tuple(_summary(jobs)),
        notes=tuple(_notes(jobs)),
        answer=lambda: jobs,
    )


def _summary(jobs: JobList) -> Iterator[str]:
    formats = sorted({name for job in jobs.jobs for name in job.formats})
    kinds = f"{'log' if len(formats) == 1 else 'logs'}: {' + '.join(formats)}"
    yield f"{plural(jobs.events, 'event')} in {plural(jobs.runs, 'run')}, {kinds}"
    if len(jobs.jobs) < jobs.found:
        yield f"first {len(jobs.jobs)} shown"


def _notes(jobs: JobList) -> Iterator[str]:
    """Yield why jobs have no goodput."""
    unlogged = [job for job in jobs.jobs if job.reason == NO_TRAINING_LOG]
    if unlogged:
        yield (
            f"{plural(len(unlogged), 'job')} without a training log: goodput is unknown; `goodput fleet` shows the "
            "allocated time and the queue time"
        )
    without = [job for job in jobs.jobs if job.reason not in (None, NO_TRAINING_LOG)]
    for job in without[:_MOST_REASONS]:
        yield f"{job.name}: {job.reason}"
    if len(without) > _MOST_REASONS:
        yield f"{len(without) - _MOST_REASONS} more jobs without goodput"


JobsDone = Callable[[int, int], None]
"""Callback after each job: the number of finished jobs, and the total."""


def list_jobs(
    log: EventLog,
    question: Question,
    *,
    job_name: str | None = None,
    sort: SortKey = "start",
    limit: int | None = None,
    jobs_done: JobsDone | None = None,
) -> JobList:
    """Return every job of the log in one line; jobs that cannot be analyzed have no goodput.

    The window, `--as-of` and the run of the question apply to each job. limit: the maximum number, None for all. Raise
    NotEnoughData without events, or without events of `job_name`. Raise UsageError if the question fits no job.
    """
    log = _of_interest(log, job_name)
    with garbage_collection_paused():
        answers = [answer for job in _jobs_of_log(log, jobs_done) for answer in job_summaries(job, question)]
    return job_list(answers, log.diagnostics, sort, limit)


JobAnswer = tuple[JobSummary, GoodputError | None]
"""A job in one line, and the error if it could not be analyzed."""


def job_list(
    answers: Sequence[JobAnswer], diagnostics: Sequence[Diagnostic], sort: SortKey, limit: int | None
) -> JobList:
    """Return the answers about all jobs as a list. diagnostics: of reading. Raise UsageError if the question fits no
    job."""
    _raise_if_all([error for _, error in answers], UsageError)
    jobs = [answer for answer, _ in answers]
    return JobList(
        found=len(jobs),
        runs=sum({job.name: job.runs or 1 for job in jobs}.values()),
        events=sum(job.events for job in jobs),
        jobs=arranged(jobs, sort, limit),
        diagnostics=tuple(diagnostics),
    )


def check_log(
    log: EventLog, question: Question, *, job_name: str | None = None, jobs_done: JobsDone | None = None
) -> CheckReport:
    """Return all problems of the log, and of each of its jobs. Without readable events there are no jobs. Errors are
    the same as in `list_jobs`."""
    seen = log.table.observed.listed
    if len(log.table) == 0 and (log.diagnostics or seen):
        return report(log.diagnostics, [], [], 0, 0, seen)
    log, runs = _of_interest(log, job_name), 0
    names: list[str] = []
    findings: list[tuple[str, tuple[str, ...], Diagnostic]] = []
    errors: list[GoodputError | None] = []
    processes: list[ProcessRow] = []
    with garbage_collection_paused():
        for job in _jobs_of_log(log, jobs_done):
            name, formats = job.table.jobs[0], job.format_names[0] if job.formats else ()
            count, diagnostics, error = _checked(job, question, processes)
            names.append(name)
            findings += [(name, formats, diagnostic) for diagnostic in diagnostics]
            runs += count
            errors.append(error)
    _raise_if_all(errors, UsageError)
    return report(log.diagnostics, names, findings, runs, len(log.table), seen, processes)


def _of_interest(log: EventLog, job_name: str | None) -> EventLog:
    """Return the log of one job or of all. Raise NotEnoughData if it has no events."""
    if job_name is None and len(log.table):
        return log
    table, name, formats = pick_job(log, job_name)
    code = table.jobs.index(name)
    return EventLog(table, (((),) * code) + (formats,), log.diagnostics)


def _jobs_of_log(log: EventLog, jobs_done: JobsDone | None) -> Iterator[EventLog]:
    total = len(codes_in(log.table.job))
    for done, job in enumerate(by_job(log), start=1):
        yield job
        if jobs_done is not None:
            jobs_done(done, total)


def job_summaries(job: EventLog, question: Question) -> list[JobAnswer]:
    """Return one job in one line, or in one per run if its runs are separate (accounting §10). job: its log alone."""
    ordered = in_order(job.table)
    starts = run_starts(ordered.table, apart=True) if question.run == AUTO else [0]
    chosen = [question] if len(starts) == 1 else [
        replace(question, run=str(number)) for number in range(1, len(starts) + 1)
    ]  # fmt: skip
    return [_summary_of_run(job, ordered, one) for one in chosen]


def _summary_of_run(job: EventLog, ordered: OrderedEvents, question: Question) -> JobAnswer:
    run = 0
    try:
        chosen, run = pick_run(ordered, question.run)
        timeline, start, end = account_for(chosen, replace(question, run=ALL), job.table.jobs[0])
        known = timeline if question.method.hindsight else as_known_at(timeline, end)
        start, end = max(start, known.start), min(end, known.end)
        if start >= end:
            raise NotEnoughData("the window lies outside the job")
    except GoodputError as error:
        return not_analysed(job, str(error), run), error
    return summary_of_job(job, known, start, end, _runs(ordered, timeline, question), run), None


def _checked(
    job: EventLog, question: Question, processes: list[ProcessRow]
) -> tuple[int, Sequence[Diagnostic], GoodputError | None]:
    """Return the number of runs of one job, its problems, and the error if accounting failed. processes: its own are
    added."""
    try:
        ordered = in_order(job.table)
        whole = replace(question, run=ALL) if question.run == AUTO else question
        timeline, start, end = account_for(ordered, whole, job.table.jobs[0])
    except GoodputError as error:
        fits = not isinstance(error, UsageError)
        return 1, list(check_unaccountable(job.table, question.now_ns, str(error))) if fits else [], error
    processes += processes_of(timeline)
    noticed = [*check_job(timeline, question.now_ns), *earlier_runs(ordered, question)]
    if any(one.has_inputs(job.table) for one in CAPABILITIES):
        analysis = analyse_window(timeline, job.table.jobs[0], (), start, end, ())
        noticed += [found for one in CAPABILITIES for found in one.diagnostics(analysis)]
    return _runs(ordered, timeline, whole), noticed, None


def _runs(ordered: OrderedEvents, timeline: Timeline, question: Question) -> int:
    """Return the number of runs with the job's name, for any selected run."""
    if question.run in (ALL, AUTO):
        return len(timeline.runs)
    return len(run_starts(ordered.table))


def _raise_if_all(errors: list[GoodputError | None], kind: type[GoodputError]) -> None:
    """Raise the error if the question fits no job: that is wrong usage, and not an empty list."""
    if errors and all(isinstance(error, kind) for error in errors) and errors[0] is not None:
        raise errors[0]
