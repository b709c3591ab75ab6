"""`goodput_cli.fleet_report(...)`: what a fleet of jobs made of its time; the same report that `goodput fleet` shows.

import goodput_cli
report = goodput_cli.fleet_report("logs/", labels=["labels.csv"], by=["team"])
print(report.total.goodput_percent, [row.group for row in report.groups[0].rows])
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import tzinfo
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goodput_cli.api.options import Reading, Source, addresses, split
from goodput_cli.errors import GoodputError, NotEnoughData, UsageError
from goodput_cli.fleet.grouping import DIMENSIONS, Grouping
from goodput_cli.fleet.passes.engine import Workers, expected_seconds, worker_count
from goodput_cli.vocabulary.option import declared
from goodput_cli.vocabulary.text import plural, rough_duration
from goodput_cli.vocabulary.when import Anchors, When
from goodput_cli.vocabulary.zones import load_zone

if TYPE_CHECKING:
    from goodput_cli.analysis.question import Question
    from goodput_cli.diagnostics.diagnostic import Diagnostic
    from goodput_cli.fleet.passes.plan import Outcome
    from goodput_cli.fleet.report.report import FleetReport, NotAnalysed
    from goodput_cli.fleet.store.results import AsOf
    from goodput_cli.fleet.store.store import Store
    from goodput_cli.fleet.totals.aggregate import Fleet
    from goodput_cli.sources.base import Document

_WAYS = ("attempt", "before_end", "after_start")


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Files with what logs do not say."""

    labels: tuple[str, ...] = ()
    sacct: tuple[str, ...] = ()
    allocations: tuple[str, ...] = ()
    capacity: tuple[str, ...] = ()


def fleet_report(
    sources: Source | Sequence[Source],
    *,
    jobs: Sequence[str] = (),
    tables: Tables | None = None,
    workers: Workers | None = None,
    store: str | os.PathLike[str] | None = None,
    **options: Any,
) -> FleetReport:
    """Read the logs, account for every run of every job, and add them up.

    jobs: globs; only jobs whose names match one. tables: labels, allocations and capacity. workers: processes or a dask
    cluster; the answer is the same. store: a folder in which results are kept and found again. Other options are those
    of `Grouping` by name, and those of `goodput_cli.jobs` but `job_name` and `run`; times are absolute.

    Raises UsageError (also with file and line in a table), SourceError where nothing can be listed, NotEnoughData
    where no run lies in the window, and GoodputError where the store or the scheduler cannot be used.
    """
    typed = [(one, options.pop(one.keyword)) for one in declared(Grouping) if one.keyword in options]
    values = {one.name: one.value(value) for one, value in typed if value is not None}
    grouping = Grouping(**values)
    reading, question = split(options)
    asked = _Asked(grouping, tables or Tables(), reading, question, tuple(jobs))
    return asked.answer(addresses(sources), workers or Workers(), None if store is None else Path(store))


def fleet_plan(sources: Source | Sequence[Source], workers: Workers) -> list[str]:
    """What there is to read, and how long that takes by the cost model: sentences. Nothing is read."""
    from goodput_cli.fleet.passes.read import batches_of
    from goodput_cli.sources.base import ReadContext, list_documents

    documents = list_documents(addresses(sources), ReadContext(lambda _: None))
    size = sum(one.size or 0 for one in documents)
    tasks = sum(1 for _ in batches_of([one for one in documents if one.apart]))
    count = worker_count(workers, len(documents), size)
    seconds = expected_seconds(len(documents), size) / count
    return [
        f"{plural(len(documents), 'document')}, {size / 1e6:,.1f} MB as stored, in {plural(tasks, 'task')}",
        f"about {rough_duration(seconds * 1e9)} on {plural(count, 'processor')}",
    ]


@dataclass(frozen=True)
class _Asked:
    """A question about a fleet, checked as it is made."""

    grouping: Grouping
    tables: Tables
    reading: Reading
    question: Question
    jobs: tuple[str, ...]

    def __post_init__(self) -> None:
        for name, when in (
            ("--from", self.question.start),
            ("--to", self.question.end),
            ("--as-of", self.question.as_of),
        ):
            if when is not None and when.kind in _WAYS:
                raise UsageError(f"{name} {when.text}: differs from job to job; write a date and time, or now")
        if self.question.start is not None and self.grouping.last is not None:
            raise UsageError("--from and --last exclude each other: --last ends at --to")
        if self.question.run is not None or self.question.window:
            raise UsageError("a fleet has no --run and no --window; see --runs and --last")

    @property
    def zone(self) -> tzinfo:
        return load_zone(self.question.timezone)

    @property
    def as_of(self) -> AsOf | None:
        from goodput_cli.fleet.store.results import AsOf

        when = self._resolved(self.question.as_of)
        return None if when is None else AsOf(when, self.grouping.alive_within)

    def answer(self, uris: Sequence[str], workers: Workers, store: Path | None) -> FleetReport:
        """Both passes, and the sums."""
        from goodput_cli.fleet.inventory.allocations import read_allocations, read_capacity
        from goodput_cli.fleet.inventory.labels import Labels
        from goodput_cli.fleet.store.store import Store

        labels = Labels.read(self.tables.labels, self.zone)
        allocations = read_allocations(self.tables.allocations, self.tables.sacct, self.zone)
        capacity = read_capacity(self.tables.capacity, self.zone)
        _check_dimensions(self.grouping.by, labels.dimensions | _texts_of(allocations))
        with ExitStack() as stack:
            folder = store or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="goodput-")))
            opened = Store.open(folder.absolute())
            documents, of_listing = self._listed(uris)
            outcome = self._passes(documents, opened, store is not None, workers, labels.cluster_of)
            fleet, lost = self._summed(outcome, opened, labels, allocations, capacity)
            return self._report(fleet, outcome, lost, of_listing, opened)

    def _listed(self, uris: Sequence[str]) -> tuple[list[Document], list[Diagnostic]]:
        from goodput_cli.events.documents import says_something
        from goodput_cli.sources.base import ReadContext, list_documents

        of_listing: list[Diagnostic] = []
        asked = self.reading.asked
        context = ReadContext(of_listing.append, is_log=lambda head: says_something(head, asked))
        return list_documents(uris, context), of_listing

    def _passes(
        self, documents: list[Document], store: Store, remembers: bool, workers: Workers, cluster_of: Any
    ) -> Outcome:
        from goodput_cli.fleet.passes.accounting import AccountRuns, code_version
        from goodput_cli.fleet.passes.engine import open_engine
        from goodput_cli.fleet.passes.plan import Plan, run_passes
        from goodput_cli.fleet.passes.work import Local, Task

        question = replace(self.question, start=None, end=None, as_of=None)
        reader = self._reader(code_version())
        work = AccountRuns(question, self.grouping.runs, self.as_of, reader, str(store.folder))
        known = store.documents(documents, reader) if remembers else {}
        read_ns = self.question.now_ns
        apart = {"name": lambda _: "", "cluster": lambda one: cluster_of(one.uri),
                 "source-folder": lambda one: one.uri.rpartition("/")[0]}[self.grouping.distinct_by]  # fmt: skip
        local = Local(self.reading.stdin, self.reading.progress, self.reading.notice)
        task = Task(question.timezone, self.reading.wanted, self.reading.asked, self.jobs, work)
        size = sum(one.size or 0 for one in documents if one.uri not in known)
        with open_engine(workers, documents=len(documents) - len(known), size=size, store=store.folder) as engine:
            plan = Plan(
                task,
                engine,
                local,
                str(store.folder),
                apart,
                lambda job, origin, last: key if (key := work.key(job, origin, last)) in store.known else None,
                (lambda rows: store.add_documents(rows, reader, read_ns)) if remembers else (lambda _: None),
            )
            return run_passes(plan, documents, known)

    def _reader(self, code: str) -> str:
        """What a row of the store must have been read with."""
        wanted = replace(self.reading.wanted, use_cache=True)
        asked = replace(self.reading.asked, now_ns=0)
        made_of = f"{code}\0{self.question.timezone}\0{wanted}\0{self.jobs}\0{asked}"
        return blake2b(made_of.encode(), digest_size=16).hexdigest()

    def _summed(
        self, outcome: Outcome, store: Store, labels: Any, allocations: Mapping[str, Any], capacity: Any
    ) -> tuple[Fleet, list[NotAnalysed]]:
        """The results of all runs, added up, and what there are no results of."""
        from goodput_cli.fleet.passes.work import Failed
        from goodput_cli.fleet.report.report import NotAnalysed
        from goodput_cli.fleet.totals.aggregate import Fleet

        keys = {key: job for job, key in outcome.answers.items() if not isinstance(key, Failed)}
        lost = [
            NotAnalysed("job", name, key.reason)
            for (name, _), key in outcome.answers.items()
            if isinstance(key, Failed)
        ]
        extents = store.extents(keys)
        if not extents:
            raise self._nothing(outcome, store, keys)
        start, end = self._window(extents)
        fleet = Fleet(self.grouping, labels, allocations, capacity, start, end, self.zone)
        for extent in extents:
            fleet.expect(*extent)
        as_of = self.as_of
        for _, result in store.results(keys):
            fleet.add(result)
            silent = as_of is not None and not as_of.counts_for(result.last_event_ns)
            fleet.lost_sight_of += int(silent and result.reason is None and not result.ended)
        fleet.finish()
        if not fleet.runs:
            raise NotEnoughData("no run of the fleet lies in the window")
        return fleet, lost

    def _window(self, extents: Sequence[tuple[str, int, int, int]]) -> tuple[int, int]:
        """[start, end) (ns): as asked, else from the first run's beginning to the last one's end."""
        end = self._resolved(self.question.end)
        end = max(extent[3] for extent in extents) if end is None else end
        start = self._resolved(self.question.start)
        if self.grouping.last is not None:
            start = end - self.grouping.last
        elif start is None:
            start = min(extent[2] for extent in extents)
        if start >= end:
            raise UsageError("the window is empty: --from is not before --to")
        return start, end

    def _resolved(self, when: When | None) -> int | None:
        """An absolute time in ns since 1970 UTC."""
        return None if when is None else when.resolve(Anchors(0, 0, (), self.question.now_ns, self.zone))

    def _nothing(self, outcome: Outcome, store: Store, keys: Mapping[bytes, Any]) -> GoodputError:
        """What to say where no job could be analysed."""
        from goodput_cli.analysis.pick import no_events
        from goodput_cli.fleet.passes.plan import reading_diagnostics

        reasons = [f"{one.job}: {one.reason}" for _, one in store.results(keys)]
        reasons += [row.problem for row in outcome.rows if row.problem is not None]
        others = sorted({job for row in outcome.rows for job in row.other_jobs})
        if reasons:
            return NotEnoughData(f"no job could be analysed; {min(reasons)}")
        if others and self.jobs:
            return NotEnoughData(f"no job matches {' or '.join(self.jobs)}; there are {', '.join(others[:10])}")
        return no_events(reading_diagnostics(outcome.rows))

    def _report(
        self, fleet: Fleet, outcome: Outcome, lost: list[NotAnalysed], of_listing: list[Diagnostic], store: Store
    ) -> FleetReport:
        from goodput_cli.fleet.passes.plan import reading_diagnostics, two_clusters
        from goodput_cli.fleet.report.report import NotAnalysed, report_of

        unread = [NotAnalysed("document", row.document.name, row.problem) for row in outcome.rows if row.problem]
        empty = [
            NotAnalysed("document", row.document.name, "holds no event of goodput's formats")
            for row in outcome.rows
            if row.problem is None and row.lines and not row.jobs and not row.other_jobs
        ]
        found = (
            *reading_diagnostics(outcome.rows, of_listing),
            *two_clusters(outcome.rows, fleet.labels.cluster_of if self.grouping.distinct_by == "name" else None),
            *fleet.labels.diagnostics(),
            *store.diagnostics(),
        )
        return report_of(
            fleet, documents=len(outcome.rows), unreadable=(*unread, *empty, *lost),
            timezone=self.question.timezone, method=self._method(), diagnostics=found,
        )  # fmt: skip

    def _method(self) -> dict[str, str]:
        """How it was accounted for and added up: every option that is not as by default, and the choices of method."""
        method = {one.names[0].removeprefix("--"): one.typed(getattr(self.question.method, one.name))
                  for one in declared(type(self.question.method))}  # fmt: skip
        if self.question.reference_step_time is not None:
            method["reference-step-time"] = str(self.question.reference_step_time)
        if self.question.exclude:
            method["exclude"] = "; ".join(span.text for span in self.question.exclude)
        for one in declared(Grouping):
            value = getattr(self.grouping, one.name)
            if value != one.default or one.name in ("runs", "weight"):
                method[one.names[0].removeprefix("--")] = _typed(value)
        return method


def _typed(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_typed, value))
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def _check_dimensions(by: Iterable[tuple[str, ...]], columns: Iterable[str]) -> None:
    """Raises UsageError for a dimension that nothing names."""
    known = sorted({*DIMENSIONS, *columns})
    for name in (name for dims in by for name in dims):
        if name not in known:
            raise UsageError(f"--by {name}: there is no such dimension; there are {', '.join(known)}")


def _texts_of(allocations: Mapping[str, Any]) -> set[str]:
    return {name for found in allocations.values() for one in found for name in one.texts}
