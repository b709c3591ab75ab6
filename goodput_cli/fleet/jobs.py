"""`goodput_cli.jobs(...)`: every job in the logs, with its goodput.

import goodput_cli
for job in goodput_cli.jobs("logs/").jobs:
    print(job.name, job.goodput_percent)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from goodput_cli.api.options import JOB, Reading, Source, addresses, readable, split, takes
from goodput_cli.errors import SourceError

if TYPE_CHECKING:
    from goodput_cli.analysis.jobs import JobList, SortKey
    from goodput_cli.analysis.question import Question
    from goodput_cli.api.keywords import JobOptions
    from goodput_cli.diagnostics.diagnostic import Diagnostic
    from goodput_cli.events.schema import EventLog
    from goodput_cli.fleet.passes.plan import Outcome
    from goodput_cli.fleet.passes.work import DocumentRow, Origin


@takes(JOB)
def jobs(
    sources: Source | Sequence[Source],
    *,
    sort: SortKey = "start",
    limit: int | None = None,
    jobs_done: Callable[[int, int], None] | None = None,
    **options: Unpack[JobOptions],
) -> JobList:
    """Read the logs and list their jobs; those that cannot be analysed have no goodput.

    Documents are read one after the other, and of a job nothing is kept but its line.

    sort: the order; "goodput" puts the worst first. limit: how many to give, None for all. jobs_done: called after
    each job with how many are done, and of how many that are known so far. The others are those of
    `goodput_cli.analyze`, and count for each job; so are the errors. UsageError also where the question fits none of
    the jobs.
    """
    reading, question = split(options)
    from goodput_cli.analysis.jobs import job_list, list_jobs

    if not all(isinstance(one, str) for one in readable(sources)):  # events that a program has are there already
        log = reading.read(sources, question.timezone)
        return list_jobs(log, question, job_name=reading.job_name, sort=sort, limit=limit, jobs_done=jobs_done)
    outcome, of_listing = _both_passes(reading, question, addresses(sources), jobs_done)
    from goodput_cli.fleet.passes.plan import reading_diagnostics
    from goodput_cli.fleet.passes.work import Failed

    for failed in (answer for answer in outcome.answers.values() if isinstance(answer, Failed)):
        raise SourceError(failed.reason)
    diagnostics = reading_diagnostics(outcome.rows, of_listing)
    if not outcome.answers:
        raise _nothing(outcome, reading.job_name, diagnostics)
    diagnostics = (*_without_a_line(outcome.rows), *diagnostics)
    return job_list(list(outcome.answers.values()), diagnostics, sort, limit)


@dataclass(frozen=True)
class _InALine:
    """What is made of each job: its line, and the error where there is one."""

    question: Question

    def account(self, job: EventLog, origin: Origin, /) -> Any:  # noqa: ARG002 - see `Work`
        from goodput_cli.analysis.jobs import job_summary

        return job_summary(job, self.question)

    def keep(self, answers: Sequence[Any], /) -> Sequence[Any]:
        return answers


def _both_passes(
    reading: Reading, question: Question, uris: list[str], jobs_done: Callable[[int, int], None] | None
) -> tuple[Outcome, list[Diagnostic]]:
    """The lines of all jobs, and what was noticed while documents were listed."""
    from goodput_cli.events.read import gives_steps, is_log
    from goodput_cli.fleet.passes.engine import InProcess
    from goodput_cli.fleet.passes.plan import Passes, run_passes
    from goodput_cli.fleet.passes.work import Local, Task
    from goodput_cli.sources.base import ReadContext, list_documents

    of_listing: list[Diagnostic] = []
    hints = reading.hints.checked()
    documents = list_documents(
        uris, ReadContext(of_listing.append, is_log=is_log(hints), gives_steps=gives_steps(hints))
    )
    _raise_first(one.problem for one in documents)
    done = _Count(jobs_done)
    names = () if reading.job_name is None else (reading.job_name,)
    task = Task(question.timezone, reading.wanted, hints, names, _InALine(question))
    local = Local(reading.stdin, reading.progress, reading.notice, done.add)
    outcome = run_passes(Passes(task, InProcess(), local), documents)
    _raise_first(row.problem for row in outcome.rows)
    return outcome, of_listing


@dataclass
class _Count:
    """How many jobs are done."""

    tell: Callable[[int, int], None] | None
    jobs: int = 0

    def add(self) -> None:
        self.jobs += 1
        if self.tell is not None:
            self.tell(self.jobs, self.jobs)


def _without_a_line(rows: Sequence[DocumentRow]) -> Iterator[Diagnostic]:
    """The documents that have no job because they are empty: a list that is shorter than its logs says why."""
    from goodput_cli.diagnostics.diagnostic import Diagnostic

    names = tuple(row.document.name for row in rows if row.problem is None and not (row.lines or row.jobs))
    if names:
        yield Diagnostic.of("empty_logs", "empty logs, so that no job of theirs is listed", len(names), names)


def _raise_first(problems: Iterable[str | None]) -> None:
    """One document that cannot be read is the end of a list of jobs: a line less would not be seen."""
    for problem in problems:
        if problem is not None:
            raise SourceError(problem)


def _nothing(outcome: Outcome, job_name: str | None, diagnostics: Sequence[Diagnostic]) -> Exception:
    """What to say where there is no job to list."""
    from goodput_cli.analysis.account import no_events, no_such_job

    others = sorted({name for row in outcome.rows for name in row.other_jobs})
    return no_such_job(job_name, others) if job_name is not None and others else no_events(diagnostics)
