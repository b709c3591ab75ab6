"""`goodput_cli.fleet_report(...)`: the goodput of a fleet of jobs; the same report that `goodput fleet` shows.

import goodput_cli
report = goodput_cli.fleet_report("logs/", labels=["labels.csv"], by=["team"])
print(report.total.goodput_percent, [row.group for row in report.groups[0].rows])

`goodput_cli.jobs(...)`: every job in the logs, with its goodput.

import goodput_cli
for job in goodput_cli.jobs("logs/").jobs:
    print(job.name, job.goodput_percent)
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from goodput_cli.api.options import JOB, SHARED, Reading, Source, addresses, parsed_options, readable, split, takes
from goodput_cli.errors import GoodputError, NotEnoughData, SourceError
from goodput_cli.fleet.passes.plan import expected_seconds, worker_count
from goodput_cli.fleet.question import FleetQuestion, Grouping, Tables, Workers
from goodput_cli.vocabulary.option import Keywords, declared
from goodput_cli.vocabulary.text import plural, rough_duration, well_formed

if TYPE_CHECKING:
    from goodput_cli.analysis.jobs import JobList, SortKey
    from goodput_cli.analysis.question import Question
    from goodput_cli.api.keywords import FleetOptions, JobOptions
    from goodput_cli.diagnostics.diagnostic import Diagnostic
    from goodput_cli.events.schema import EventLog
    from goodput_cli.fleet.aggregate import Fleet
    from goodput_cli.fleet.passes.plan import Outcome
    from goodput_cli.fleet.passes.work import DocumentRow, Origin
    from goodput_cli.fleet.report import FleetReport
    from goodput_cli.fleet.rows import NotAnalysed
    from goodput_cli.fleet.scheduler import SchedulerRow
    from goodput_cli.fleet.store import Store
    from goodput_cli.sources.base import SourceDocument


FLEET = Keywords.of("FleetOptions", "Options of `fleet_report`.", Grouping, Tables, base=SHARED)


@takes(FLEET)
def fleet_report(
    sources: Source | Sequence[Source],
    *,
    jobs: Sequence[str] = (),
    workers: int | Workers | None = None,
    store: str | os.PathLike[str] | None = None,
    **options: Unpack[FleetOptions],
) -> FleetReport:
    """Read the logs, account for every run of every job, and add them up.

    jobs: globs; only jobs whose names match one. workers: how many processes, None for as many as pay, or `Workers`
    with a dask cluster; the answer is the same. store: a folder in which results are kept and found again. Times are
    absolute. `FleetReport.total` has the whole, `weeks`, `sizes` and `groups` its parts, `runs` a row a run, and
    `not_analysed` what is in none of them.

    Raises UsageError (also with file and line in a table), SourceError where nothing can be listed, NotEnoughData
    where no run lies in the window, and GoodputError where the store or the scheduler cannot be used.
    """
    tables, rest = parsed_options(Tables, options)
    grouping, rest = parsed_options(Grouping, rest)
    question = FleetQuestion(grouping, *split(rest), tuple(jobs))
    folder = None if store is None else Path(store)
    return report_on(question, addresses(sources), tables, _workers(workers), folder)


def _workers(asked: int | Workers | None) -> Workers:
    if isinstance(asked, Workers):
        return asked
    count = next(one for one in declared(Workers) if one.name == "workers")
    return Workers(workers=None if asked is None else count.value(asked))


def report_on(
    question: FleetQuestion, sources: Sequence[str], tables: Tables, workers: Workers, store: Path | None
) -> FleetReport:
    """Return the report, from arguments that were checked."""
    return _Fleet(question, tables, workers, store).report(sources)


def fleet_plan(sources: Source | Sequence[Source], workers: Workers) -> list[str]:
    """Return what would be read, and how long that takes by the cost model: sentences. Nothing is read."""
    from goodput_cli.fleet.passes.read import batches_of, documents_at_once
    from goodput_cli.sources.base import ReadContext, list_documents

    documents = list_documents(addresses(sources), ReadContext(lambda _: None))
    size = sum(one.size or 0 for one in documents)
    count = worker_count(workers, len(documents), size)
    apart = [one for one in documents if one.apart]
    tasks = sum(1 for _ in batches_of(apart, documents_at_once(len(apart), count)))
    seconds = expected_seconds(len(documents), size) / count
    return [
        f"{plural(len(documents), 'document')}, {size / 1e6:,.1f} MB stored, in {plural(tasks, 'task')}",
        f"about {rough_duration(seconds * 1e9)} on {plural(count, 'processor')}",
    ]


class _Fleet:
    """The way from documents to the report."""

    def __init__(self, asked: FleetQuestion, tables: Tables, workers: Workers, store: Path | None) -> None:
        self._asked, self._workers, self._folder, self._tables = asked, workers, store, tables
        self._labels, self._allocations, self._capacity = asked.inventory(tables)

    def report(self, uris: Sequence[str]) -> FleetReport:
        """Both passes, and the sums."""
        from goodput_cli.fleet.store import Store

        with ExitStack() as stack:
            folder = self._folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="goodput-")))
            store = Store.open(folder.absolute(), lasting=self._folder is not None)
            listed, of_listing = _listed(uris, self._asked.reading)
            documents = [one for one in listed if not store.is_own_file(one.uri)]
            self._asked = replace(self._asked, reading=_of_documents(self._asked.reading, documents))
            outcome = self._passes(documents, store)
            rows = self._scheduled(outcome, store)
            fleet, lost = self._summed(outcome, store, rows)
            return self._report(fleet, outcome, lost, store.without_own(of_listing), store, rows)

    def _passes(self, documents: list[SourceDocument], store: Store) -> Outcome:
        from goodput_cli.api.draft import infer_rules
        from goodput_cli.fleet.passes.plan import Passes, open_engine
        from goodput_cli.fleet.passes.work import LocalObjects, Task
        from goodput_cli.fleet.results import AccountRuns, code_version
        from goodput_cli.fleet.store import write_results
        from goodput_cli.sources.base import FILE_SCHEME, scheme_of

        asked, reading, remembers = self._asked, self._asked.reading, self._folder is not None
        question = replace(asked.question, start=None, end=None, as_of=None)  # each job is accounted for whole
        reader = asked.reader(code_version() if remembers else "")
        known = store.documents(documents, reader) if remembers else {}
        size = sum(one.size or 0 for one in documents if one.uri not in known)
        log = next((one.uri for one in documents if one.apart and scheme_of(one.uri) == FILE_SCHEME), None)
        with open_engine(
            self._workers, documents=len(documents) - len(known), size=size, store=store.folder,
            log=None if log is None else os.path.abspath(log),
        ) as engine:  # fmt: skip
            written = partial(write_results, store.folder, lasting=remembers)
            put = store.keep if engine.here and not remembers else written
            work = AccountRuns(question, asked.grouping.runs, asked.as_of, reader, put)
            folder = os.getcwd() if self._workers.scheduler is not None else ""
            task = Task(question.timezone, reading.wanted, reading.hints.checked(), asked.jobs, work, folder, remembers)
            passes = Passes(
                task,
                engine,
                LocalObjects(reading.stdin, reading.progress, reading.notice),
                str(store.folder),
                self._distinguishing_label,
                lambda job, origin, last: key if (key := work.key(job, origin, last)) in store.known else None,
                (lambda some: store.documents(some, reader)) if remembers else (lambda _: {}),
                (lambda rows: store.add_documents(rows, reader, question.now_ns)) if remembers else (lambda _: None),
                partial(infer_rules, reading=reading, timezone=question.timezone),
            )
            return passes.run(documents, known)

    def _distinguishing_label(self, document: SourceDocument) -> str:
        """Return the label that distinguishes two jobs of one name, by document."""
        match self._asked.grouping.distinct_by:
            case "cluster":
                return self._labels.cluster_of(document.location)
            case "source-folder":
                return document.location.rpartition("/")[0]
            case _:
                return ""

    def _scheduled(self, outcome: Outcome, store: Store) -> list[SchedulerRow]:
        """The rows of a scheduler's tables: those among the logs, and those of --sacct."""
        from goodput_cli.fleet.labels import text_of
        from goodput_cli.fleet.passes.work import FailedTask
        from goodput_cli.fleet.scheduler import SACCT, of_their_jobs, once, read_rows, rows_in

        keys = {key: job for job, key in outcome.answers.items() if not isinstance(key, FailedTask)}
        telling: dict[str, set[str]] = {}
        for _, one in store.results(keys):
            for uri in one.documents if SACCT in one.formats else ():
                telling.setdefault(uri, set()).update([one.job] if len(one.formats) > 1 else [])
        silent = {row.document.uri for row in outcome.rows if row.problem is None and not (row.jobs or row.other_jobs)}
        every = [one for row in outcome.rows for one in (row.document, *row.document.parts)]
        chosen = [one for one in every if not one.parts and (well_formed(one.uri) in telling or one.uri in silent)]
        rows = of_their_jobs(read_rows(chosen, self._asked.zone), telling)
        rows += [row for path in self._tables.sacct for row in rows_in(text_of(Path(path)), path, self._asked.zone)]
        wanted = self._asked.jobs
        return once(row for row in rows if not wanted or any(fnmatchcase(row.job, glob) for glob in wanted))

    def _summed(self, outcome: Outcome, store: Store, rows: Sequence[SchedulerRow]) -> tuple[Fleet, list[NotAnalysed]]:
        """Return the sums of the results of all runs, and the jobs without results."""
        from goodput_cli.analysis.account import NO_TRAINING_LOG
        from goodput_cli.fleet.aggregate import Fleet
        from goodput_cli.fleet.labels import FormerNames, JoinedAllocations
        from goodput_cli.fleet.passes.plan import former_names
        from goodput_cli.fleet.passes.work import FailedTask
        from goodput_cli.fleet.rows import NotAnalysed
        from goodput_cli.fleet.sums import Calendar

        asked, answers = self._asked, outcome.answers.items()
        keys = {key: job for job, key in answers if not isinstance(key, FailedTask)}
        lost = [NotAnalysed.of("job", name, key.reason) for (name, _), key in answers if isinstance(key, FailedTask)]
        extents = store.extents(keys)
        if not extents and not rows:
            raise self._no_run_error(outcome, store, keys)
        named = {name for row in rows for name in (*(row.texts or {}), "state")}
        texts = {name for found in self._allocations.values() for one in found for name in one.texts}
        asked.check_dimensions({*self._labels.dimensions, *texts, *named})
        former = FormerNames(former_names(outcome.rows))
        former.note_requested_jobs(asked.jobs)
        self._join(rows)
        self._labels.former = former
        asks = extents or self._extent_of(rows)
        allocations = JoinedAllocations(self._allocations, max(extent[3] for extent in asks), former)
        for extent in extents:
            allocations.expect(*extent)
        allocations.settle()
        calendar = Calendar(*asked.window(asks), asked.zone)
        fleet = Fleet(asked.grouping, self._labels, allocations, calendar, self._capacity)
        as_of = asked.as_of
        windowed = any(one is not None for one in (asked.question.start, asked.question.end, asked.grouping.last))
        for _, result in store.results(keys):
            if result.reason == NO_TRAINING_LOG and rows:
                continue  # its rows are known already
            fleet.add(result, windowed=windowed)
            silent = as_of is not None and not as_of.counts_for(result.last_event_ns)
            fleet.lost_sight_of += int(silent and result.reason is None and not result.ended)
        fleet.finish()
        if not fleet.runs and not rows:
            raise NotEnoughData("no run of the fleet is in the window")
        return fleet, lost

    def _join(self, rows: Sequence[SchedulerRow]) -> None:
        """Add tables found among the logs to the allocations, as those of --sacct; allocations of --sacct that cover
        them count once."""
        joined = {job: list(found) for job, found in self._allocations.items()}
        known = {(job, one.start) for job, found in joined.items() for one in found}
        for one in filter(None, (row.allocation() for row in rows)):
            if (one.job, one.start) not in known:
                joined.setdefault(one.job, []).append(one)
        self._allocations = {job: sorted(found, key=lambda one: (one.start, one.end)) for job, found in joined.items()}

    @staticmethod
    def _extent_of(rows: Sequence[SchedulerRow]) -> list[tuple[str, int, int, int]]:
        """Return the extent of tables, as that of a run."""
        times = [at for row in rows for at in row.times()]
        return [("", 0, min(times), max(max(times), min(times) + 1))] if times else []

    def _no_run_error(self, outcome: Outcome, store: Store, keys: Mapping[str, Any]) -> GoodputError:
        """Return the error if no job could be analyzed."""
        from goodput_cli.analysis.account import no_events
        from goodput_cli.fleet.passes.plan import reading_diagnostics

        reasons = [f"{one.job}: {one.reason}" for _, one in store.results(keys)]
        reasons += [row.problem for row in outcome.rows if row.problem is not None]
        others = sorted({job for row in outcome.rows for job in row.other_jobs})
        if reasons:
            return NotEnoughData("no job could be analyzed", cause=min(reasons))
        if others and self._asked.jobs:
            matching = " or ".join(self._asked.jobs)
            return NotEnoughData(f"no job matches {matching}", cause=f"the logs contain {', '.join(others[:10])}")
        return no_events(reading_diagnostics(outcome.rows))

    def _report(
        self, fleet: Fleet, outcome: Outcome, lost: list[NotAnalysed], of_listing: list[Diagnostic], store: Store,
        rows: Sequence[SchedulerRow],
    ) -> FleetReport:  # fmt: skip
        from goodput_cli.fleet.build import report_of, scheduled_part
        from goodput_cli.fleet.passes.plan import reading_diagnostics, two_clusters, warnings_of_reading
        from goodput_cli.fleet.rows import NotAnalysed

        asked, labels = self._asked, self._labels
        unread = [NotAnalysed.of("document", row.document.name, row.problem) for row in outcome.rows if row.problem]
        tables = {row.table for row in rows}
        empty = [
            NotAnalysed("document", row.document.name, _empty_reason(row))
            for row in outcome.rows
            if row.problem is None and not (row.jobs or row.other_jobs) and well_formed(row.document.uri) not in tables
        ]
        diagnostics = (
            *reading_diagnostics(outcome.rows, of_listing),
            *two_clusters(outcome.rows, labels.cluster_of if asked.grouping.distinct_by == "name" else None),
            *fleet.diagnostics(),
            *labels.diagnostics(),
            *labels.former.diagnostics(),
            *asked.reading.renamed_settings(labels.former.by_job, (), "".join(asked.jobs)),
            *store.diagnostics({job for job, _ in outcome.answers}),
        )
        documents = sum(len(row.document.parts) or 1 for row in outcome.rows)
        return report_of(
            fleet, documents=documents, unreadable=(*unread, *empty, *lost),
            timezone=asked.question.timezone, method=asked.method(), diagnostics=diagnostics,
            doubts=warnings_of_reading(outcome.rows), allocations=scheduled_part(fleet, rows),
        )  # fmt: skip


def _listed(uris: Sequence[str], reading: Reading) -> tuple[list[SourceDocument], list[Diagnostic]]:
    """The documents, and what was noticed while they were listed."""
    from goodput_cli.events.read import gives_steps, is_log
    from goodput_cli.sources.base import ReadContext, list_documents

    of_listing: list[Diagnostic] = []
    hints = reading.hints.checked()
    context = ReadContext(of_listing.append, is_log=is_log(hints), gives_steps=gives_steps(hints))
    return list_documents(uris, context), of_listing


NO_FORMAT = "unknown format; create a mapping with `goodput check --suggest FILE`"
"""Reason why a document is counted but is in no total: a fleet infers no rules."""


def _empty_reason(row: DocumentRow) -> str:
    if not row.lines:
        return "is empty"
    nameless = any(one.code == "missing_job_name" for one in row.of_lines)
    return "its events have no job name" if nameless else NO_FORMAT


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
    from goodput_cli.diagnostics.diagnostic import Diagnostic
    from goodput_cli.fleet.passes.plan import former_names, reading_diagnostics
    from goodput_cli.fleet.passes.work import FailedTask

    for failed in (answer for answer in outcome.answers.values() if isinstance(answer, FailedTask)):
        raise SourceError.from_sentence(failed.reason)
    former = former_names(outcome.rows)
    diagnostics = (*reading_diagnostics(outcome.rows, of_listing), *reading.renamed_settings(former, ()))
    if not outcome.answers:
        raise _no_jobs_error(outcome, reading.job_name, diagnostics)
    # a list that is shorter than its logs has a reason
    empty = tuple(row.document.name for row in outcome.rows if not (row.lines or row.jobs))
    if empty:
        words = "empty logs; their jobs are not listed"
        diagnostics = (Diagnostic.of("empty_logs", words, len(empty), empty), *diagnostics)
    return job_list(list(chain.from_iterable(outcome.answers.values())), diagnostics, sort, limit)


@dataclass(frozen=True)
class _JobLines:
    """Work of `jobs`: the line of each job, and its error if there is one."""

    question: Question

    def account(self, job: EventLog, origin: Origin, /) -> Any:  # noqa: ARG002 - see `JobWork`
        from goodput_cli.analysis.jobs import job_summaries

        return job_summaries(job, self.question)

    def keep(self, answers: Sequence[Any], /) -> Sequence[Any]:
        return answers


def _both_passes(
    reading: Reading, question: Question, uris: list[str], jobs_done: Callable[[int, int], None] | None
) -> tuple[Outcome, list[Diagnostic]]:
    """The lines of all jobs, and what was noticed while documents were listed."""
    from goodput_cli.api.draft import infer_rules
    from goodput_cli.fleet.passes.plan import InProcessEngine, Passes
    from goodput_cli.fleet.passes.work import LocalObjects, Task

    documents, of_listing = _listed(uris, reading)
    reading = _of_documents(reading, documents)
    documents = _readable(documents)
    numbers = count(1)

    def job_done() -> None:
        number = next(numbers)
        if jobs_done is not None:
            jobs_done(number, number)

    names = () if reading.job_name is None else (reading.job_name,)
    task = Task(question.timezone, reading.wanted, reading.hints.checked(), names, _JobLines(question))
    local = LocalObjects(reading.stdin, reading.progress, reading.notice, job_done)

    def passes(task: Task, documents: Sequence[SourceDocument]) -> Outcome:
        infer = partial(infer_rules, reading=reading, timezone=question.timezone)
        outcome = Passes(task, InProcessEngine(), local, infer=infer).run(documents)
        of_listing.extend(_unread(outcome.rows))
        return outcome

    if reading.job_name is None or len(documents) < 2 or not all(one.version for one in documents):
        return passes(task, documents), of_listing
    # the name of text that its folder distinguishes is known only after all of it is read
    outcome = passes(replace(task, wanted=replace(task.wanted, job_name=None)), documents)
    texts = [row for row in outcome.rows if row.has_text]
    found = {part.job for row in texts or outcome.rows for part in row.jobs}
    if reading.job_name in found or (found and not texts):
        return outcome, of_listing
    called = [one for row in texts if row.jobs for one in row.document.parts or (row.document,)]  # before 0.2
    return passes(task, called if found else documents), of_listing


def _of_documents(reading: Reading, documents: Sequence[SourceDocument]) -> Reading:
    """Return how documents are read when there are several."""
    from goodput_cli.sources.layouts import shared_levels

    folders = {one.name.replace("\\", "/").rpartition("/")[0] for one in documents}
    if len(folders) < 2:
        return reading
    return replace(
        reading, hints=replace(reading.hints, shared_levels=shared_levels(one.split("/") for one in folders))
    )


def _is_unread(document: SourceDocument, problem: str | None) -> bool:
    """Return True if a member of a directory cannot be read. Raises SourceError if it was named: a list of jobs would
    be a line shorter."""
    if problem is not None and document.named:
        raise SourceError.from_sentence(problem)
    return problem is not None


def _readable(documents: Sequence[SourceDocument]) -> list[SourceDocument]:
    """Return the documents that can be read; the others were reported when they were listed."""
    return [one for one in documents if not _is_unread(one, one.problem)]


def _unread(rows: Sequence[DocumentRow]) -> list[Diagnostic]:
    """Return a warning for each member of a directory that failed while it was read."""
    from goodput_cli.sources.walk import unread_diagnostic

    return [
        unread_diagnostic((row.problem or "").removeprefix(f"{row.document.name}: "), [row.document.uri])
        for row in rows
        if _is_unread(row.document, row.problem)
    ]


def _no_jobs_error(outcome: Outcome, job_name: str | None, diagnostics: Sequence[Diagnostic]) -> Exception:
    """Return the error if there is no job to list."""
    from goodput_cli.analysis.account import no_events, no_such_job

    others = sorted({name for row in outcome.rows for name in row.other_jobs})
    return no_such_job(job_name, others) if job_name is not None and others else no_events(diagnostics)
