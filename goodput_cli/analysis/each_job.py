"""Questions about whole logs, with all jobs in them: `list_jobs` and `check_log`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from goodput_cli.accounting.attempts.attempts import find_attempts
from goodput_cli.accounting.attempts.endings import find_runs
from goodput_cli.accounting.build import Timeline, is_step_log
from goodput_cli.accounting.columns import codes_in
from goodput_cli.accounting.order import in_order
from goodput_cli.analysis.account import account_for
from goodput_cli.analysis.check.check import CheckReport, check_job, check_unaccountable, report
from goodput_cli.analysis.jobs import JobList, JobSummary, SortKey, arranged, not_analysed, summary_of_job
from goodput_cli.analysis.pick import by_job, pick_job
from goodput_cli.analysis.question import Question
from goodput_cli.analysis.rolling import as_known_at
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import GoodputError, NotEnoughData, UsageError
from goodput_cli.events.schema import EventLog
from goodput_cli.gc_pause import garbage_collection_paused

JobsDone = Callable[[int, int], None]
"""Called after each job: how many are done, and of how many."""


def list_jobs(
    log: EventLog,
    question: Question,
    *,
    job_name: str | None = None,
    sort: SortKey = "start",
    limit: int | None = None,
    jobs_done: JobsDone | None = None,
) -> JobList:
    """Every job of the log in a line; those that cannot be analysed have no goodput.

    The window, `--as-of` and the run of the question count for each job. limit: how many to give, None for all.
    NotEnoughData: no events, or none of `job_name`. UsageError: the question fits none of the jobs.
    """
    log = _of_interest(log, job_name)
    with garbage_collection_paused():
        answers = [job_summary(job, question) for job in _each(log, jobs_done)]
    return job_list(answers, log.diagnostics, sort, limit)


JobAnswer = tuple[JobSummary, GoodputError | None]
"""A job in a line, and why it could not be analysed."""


def job_list(
    answers: Sequence[JobAnswer], diagnostics: Sequence[Diagnostic], sort: SortKey, limit: int | None
) -> JobList:
    """The answers about all jobs as a list. diagnostics: of reading. UsageError: the question fits none of them."""
    _raise_if_all([error for _, error in answers], UsageError)
    jobs = [answer for answer, _ in answers]
    runs = sum(job.runs or 1 for job in jobs)
    events = sum(job.events for job in jobs)
    return JobList(
        found=len(jobs),
        runs=runs,
        events=events,
        jobs=arranged(jobs, sort, limit),
        diagnostics=tuple(diagnostics),
    )


def check_log(
    log: EventLog, question: Question, *, job_name: str | None = None, jobs_done: JobsDone | None = None
) -> CheckReport:
    """Everything that is wrong with the log, and with each of its jobs: of no job where no event could be read. Errors
    as in `list_jobs`."""
    seen = log.table.observed.listed
    if len(log.table) == 0 and (log.diagnostics or seen):
        return report(log.diagnostics, [], [], 0, 0, seen)
    log = _of_interest(log, job_name)
    with garbage_collection_paused():
        checked = [_checked(job, question) for job in _each(log, jobs_done)]
    _raise_if_all([one.error for one in checked], UsageError)
    names = [one.job for one in checked]
    findings = [(one.job, one.formats, diagnostic) for one in checked for diagnostic in one.diagnostics]
    return report(log.diagnostics, names, findings, sum(one.runs for one in checked), len(log.table), seen)


@dataclass(frozen=True)
class _Checked:
    """One job, its runs and what is wrong with it; error: why it could not be accounted for."""

    job: str
    formats: tuple[str, ...]
    runs: int
    diagnostics: tuple[Diagnostic, ...]
    error: GoodputError | None = None


def _of_interest(log: EventLog, job_name: str | None) -> EventLog:
    """The log of one job or of all. NotEnoughData if there is nothing of it."""
    if job_name is None and len(log.table):
        return log
    table, name, formats = pick_job(log, job_name)
    code = table.jobs.index(name)
    return EventLog(table, (((),) * code) + (formats,), log.diagnostics)


def _each(log: EventLog, jobs_done: JobsDone | None) -> Iterator[EventLog]:
    total = len(codes_in(log.table.job))
    for done, job in enumerate(by_job(log), start=1):
        yield job
        if jobs_done is not None:
            jobs_done(done, total)


def job_summary(job: EventLog, question: Question) -> JobAnswer:
    """One job in a line. job: its log alone."""
    try:
        timeline, start, end = account_for(in_order(job.table), question, job.table.jobs[0])
        known = timeline if question.method.hindsight else as_known_at(timeline, end)
        start, end = max(start, known.start), min(end, known.end)
        if start >= end:
            raise NotEnoughData("the window lies outside the job")
    except GoodputError as error:
        return not_analysed(job, str(error)), error
    return summary_of_job(job, known, start, end, _runs(job, timeline, question)), None


def _checked(job: EventLog, question: Question) -> _Checked:
    name, formats = job.table.jobs[0], job.format_names[0] if job.formats else ()
    try:
        timeline, _, _ = account_for(in_order(job.table), question, name)
    except GoodputError as error:
        fits = not isinstance(error, UsageError)
        diagnostics = tuple(check_unaccountable(job.table, question.now_ns, str(error))) if fits else ()
        return _Checked(name, formats, 1, diagnostics, error)
    return _Checked(name, formats, _runs(job, timeline, question), tuple(check_job(timeline, question.now_ns)))


def _runs(job: EventLog, timeline: Timeline, question: Question) -> int:
    """How often the job's name was used, whichever run is asked for."""
    if question.run is None:
        return len(timeline.runs)
    ordered = in_order(job.table).table
    return len(find_runs(ordered, find_attempts(ordered, is_step_log(ordered))))


def _raise_if_all(errors: list[GoodputError | None], kind: type[GoodputError]) -> None:
    """A question that fits no job at all is wrong usage, not a list of nothing."""
    if errors and all(isinstance(error, kind) for error in errors) and errors[0] is not None:
        raise errors[0]
