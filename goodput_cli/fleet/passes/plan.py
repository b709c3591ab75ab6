"""The two passes over a fleet, and the engine that runs their tasks in this process or on workers.

No job is accounted for in halves, and only answers stay in memory. Pass 1 reads every document once and accounts for
every job in it. A job that appears in several documents is combined in pass 2: these documents are read again, cut
into pieces, and the job is accounted for from its pieces.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, TypeVar

from goodput_cli.analysis.account import is_wanted
from goodput_cli.analysis.goodput.phrases import DOUBTS
from goodput_cli.diagnostics.diagnostic import FEW_PLACES, Diagnostic, merge
from goodput_cli.errors import UsageError, to_install
from goodput_cli.fleet.passes.read import (
    HERE,
    DocumentRead,
    DocumentSplit,
    Pieces,
    SharedJob,
    account_batch,
    batches_of,
    documents_at_once,
    fits,
    group_documents,
    name_of,
    needed,
    of_this_machine,
    origin_of,
    pieces_of,
    read_batch,
    split_batch,
)
from goodput_cli.fleet.passes.work import DocumentRow, FailedTask, LocalObjects, Origin, Task
from goodput_cli.fleet.question import Workers
from goodput_cli.sources.base import SourceDocument

_MOST_WORKERS = 8
_LEAST_SECONDS = 10.0
"""Shorter work is done in this process: starting workers takes two seconds."""
_SECONDS_A_DOCUMENT, _SECONDS_A_BYTE = 0.006, 1.3e-8

Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """Runner of tasks. Results may arrive in any order."""

    @property
    def here(self) -> bool:
        """True if tasks run in this process, where bytes can be counted while they are read."""

    @property
    def workers(self) -> int:
        """Number of tasks that run at a time."""

    @property
    def memory(self) -> int | None:
        """Memory of a task (bytes); None: all of the machine."""

    def run(
        self, task: Callable[[Sequence[Item]], Result], batches: Iterator[list[Item]]
    ) -> Iterator[tuple[list[Item], Result | FailedTask]]:
        """Each batch with what the task made of it, or why that could not be done."""


class InProcessEngine:
    """Runner of one task after the other, in order."""

    here = True
    workers = 1
    memory = None

    def run(
        self, task: Callable[[Sequence[Item]], Result], batches: Iterator[list[Item]]
    ) -> Iterator[tuple[list[Item], Result | FailedTask]]:
        """See `Engine.run`."""
        return ((batch, task(batch)) for batch in batches)


@contextmanager
def open_engine(
    workers: Workers, *, documents: int, size: int, store: Path, log: str | None = None
) -> Iterator[Engine]:
    """Open the requested engine; in this process if more do not pay off. documents, size (bytes): input. log: the path
    of one of them that is a file.

    Raises UsageError if several workers are requested and dask is not installed.
    """
    count = worker_count(workers, documents, size)
    if workers.scheduler is None and count == 1:
        yield InProcessEngine()
        return
    if not find_spec("distributed"):
        raise UsageError(
            "using several workers requires dask.distributed", tip=f"install it with {to_install('fleet')}"
        )
    from goodput_cli.fleet.passes.clusters import open_dask

    with open_dask(count, workers, store, log) as engine:
        yield engine


def worker_count(workers: Workers, documents: int, size: int) -> int:
    """Return the number of processes that do the work; 1 is this one. At most the processors that this one may use,
    also in a container."""
    if workers.workers is not None:
        return workers.workers
    if expected_seconds(documents, size) < _LEAST_SECONDS or not find_spec("distributed"):
        return 1
    from dask.system import CPU_COUNT

    return int(min(CPU_COUNT, _MOST_WORKERS))


def expected_seconds(documents: int, size: int) -> float:
    """Return the time for reading and accounting on one processor, by the cost model of docs/fleet.md."""
    return documents * _SECONDS_A_DOCUMENT + size * _SECONDS_A_BYTE


JobKey = tuple[str, str]
"""Identity of a job: its name, and the label that distinguishes jobs of one name (empty without one)."""
Batched = Callable[[Sequence[Any]], Iterator[list[Any]]]
"""Puts items into tasks."""
_JOBS_AT_ONCE, _EVENTS_AT_ONCE = 64, 2_000_000


@dataclass(frozen=True)
class Outcome:
    """Result of both passes."""

    rows: list[DocumentRow]
    """A row a document, in the order of the documents."""
    answers: dict[JobKey, Any]
    """By job, in order of keys: the answer, or `FailedTask`."""


def reading_diagnostics(rows: Sequence[DocumentRow], of_listing: Sequence[Diagnostic] = ()) -> tuple[Diagnostic, ...]:
    """Return the warnings of reading, over all documents: of the sources, then of their lines by code and message."""
    of_lines = merge(one for row in rows for one in row.of_lines)
    shortened = [replace(one, where=one.where[:FEW_PLACES]) if one.severity == "info" else one for one in of_lines]
    of_sources = (one for row in rows for one in row.of_source)
    return (*of_listing, *of_sources, *sorted(shortened, key=lambda one: (one.code, one.message)))


def warnings_of_reading(rows: Sequence[DocumentRow]) -> dict[str, list[str]]:
    """Return why the files of each document may belong to another job, by its URI."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        parts = {one.name: one.uri for one in row.document.parts or (row.document,)}
        for one in row.of_lines:
            if one.code in DOUBTS:
                named = {parts[name] for name in (place.rpartition(":")[0] for place in one.where) if name in parts}
                for uri in named or parts.values():
                    found[uri].append(one.message)
    return found


def former_names(rows: Sequence[DocumentRow]) -> dict[str, str]:
    """Return the name before 0.2 of each job, unless another job has that name now."""
    parts = [part for row in rows for part in row.jobs]
    now = {part.job for part in parts}
    return {part.job: part.former for part in parts if part.former and part.former not in now}


def _asked_for(rows: Sequence[DocumentRow], names: Sequence[str]) -> list[DocumentRow]:
    """Return documents with those of their jobs that were requested. names: globs; one that matches no current name
    selects the jobs that had it before 0.2."""
    now = {part.job for row in rows for part in row.jobs}
    old = [name for name in names if not any(is_wanted(job, (name,)) for job in now)]
    found = []
    for row in rows:
        kept = tuple(
            part for part in row.jobs
            if is_wanted(part.job, names) or (old and part.former and is_wanted(part.former, old))
        )  # fmt: skip
        others = {part.job for part in row.jobs} - {part.job for part in kept}
        other_jobs = tuple(sorted({*row.other_jobs, *others})[:_FEW_OTHERS])
        found.append(replace(row, jobs=kept, other_jobs=other_jobs) if others else row)
    return found


_FEW_OTHERS = 20


def two_clusters(rows: Sequence[DocumentRow], cluster_of: Callable[[str], str] | None) -> Iterator[Diagnostic]:
    """Yield warnings about one name in documents of two clusters at the same time. cluster_of: by URI; None if clusters
    distinguish jobs."""
    if cluster_of is None:
        return
    parts: defaultdict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for row in rows:
        cluster = cluster_of(row.document.location)
        for part in row.jobs if cluster else ():
            parts[part.job].append((part.first_ns, part.last_ns, cluster))
    for job, found in sorted(parts.items()):
        names = sorted({name for _, _, name in found})
        if len(names) > 1 and _overlap(found):
            message = f"the job {job} has events from {' and '.join(names)} at the same time; use --distinct-by cluster"
            yield Diagnostic.of("one_name_in_two_clusters", message)


def _overlap(parts: list[tuple[int, int, str]]) -> bool:
    """Return True if two parts of different clusters overlap in time."""
    ordered = sorted(parts)
    return any(
        other[0] < one[1] and other[2] != one[2] for place, one in enumerate(ordered) for other in ordered[place + 1 :]
    )


@dataclass
class Passes:
    """The passes, whatever they read: how they go, and what they have found while they run."""

    task: Task
    engine: Engine
    local: LocalObjects = HERE
    where: str | None = None
    """The folder in which pieces lie, where all workers see them; None for the temporary files of this machine."""
    apart: Callable[[SourceDocument], str] = lambda _: ""
    """Returns the label that distinguishes two jobs of one name, by document."""
    stored: Callable[[str, Origin, int], Any] = lambda *_: None
    """The answer that is there already about a job (its name, documents and last event in ns), or None."""
    known: Callable[[Sequence[SourceDocument]], Mapping[str, DocumentRow]] = lambda _: {}
    """Returns, by URI, the rows of documents that were read before and are unchanged."""
    rows_done: Callable[[Sequence[DocumentRow]], None] = lambda _: None
    """Called with documents that were read, once their jobs are accounted for."""
    infer: Callable[[Sequence[str]], tuple[str, Diagnostic] | None] = lambda _: None
    """Returns the rules that can be inferred from files without known steps, and the warning about it."""
    _rows: dict[str, DocumentRow] = field(default_factory=dict)
    """Documents that were read, by URI."""
    _answers: dict[tuple[str, str], Any] = field(default_factory=dict)
    """Answers of pass 1, by URI and job."""
    _pieces: dict[str, Pieces] = field(default_factory=dict)
    """Documents that were cut, by URI."""
    _keeps_streams: bool = False
    """True if a stream, which cannot be read twice, is cut at once: it may share a job with another document."""
    _stack: ExitStack = field(default_factory=ExitStack)

    def run(self, documents: Sequence[SourceDocument], known: Mapping[str, DocumentRow] | None = None) -> Outcome:
        """The answers about all jobs of some documents. known: by URI, those that were read before and are the same."""
        self._rows.update(known or {})
        self._keeps_streams = len(documents) > 1
        with self._stack:
            self._read([one for one in documents if one.uri not in self._rows])
            documents = self._group_documents(documents)
            self._read(self._lacking(documents))
            self._infer(documents)
            if self.task.names:  # the name of text is known only after all of it is combined
                rows = _asked_for([self._rows[one.uri] for one in documents], self.task.names)
                self._rows.update((row.document.uri, row) for row in rows)
            outcome = Outcome([self._rows[one.uri] for one in documents], self._finish(documents))
        if self.local.progress is not None:
            self.local.progress.finish()
        return outcome

    @cached_property
    def _folder(self) -> str:
        """Return the folder of the pieces; it is deleted with them."""
        return self._stack.enter_context(tempfile.TemporaryDirectory(prefix="goodput-", dir=self.where))

    def _read(self, documents: list[SourceDocument]) -> None:
        """Pass 1 over these documents."""
        progress = self.local.progress
        if progress is not None and documents and all(one.size is not None for one in documents):
            progress.expect(sum(one.size or 0 for one in documents))
        for batch in self._batched([one for one in documents if not one.apart]):  # that this process alone can read
            self._take(batch, read_batch(self.task, batch, self.local, self._cut))
        for batch, result in self._results(read_batch, [one for one in documents if one.apart], self._batched):
            self._take(batch, result)
            self._count(batch)

    def _group_documents(self, documents: Sequence[SourceDocument]) -> list[SourceDocument]:
        """The documents, with what means something only together as one."""
        found = group_documents(documents, self._rows, self.task.hints.shared_levels)
        groups = [one for one in found if one.parts]
        self._rows.update(self.known(groups))
        self._read([one for one in groups if one.uri not in self._rows])
        return found

    def _infer(self, documents: Sequence[SourceDocument]) -> None:
        """Read documents without steps with rules that are inferred from them. A document next to one with steps is
        part of a log that a format reads."""
        rows = [self._rows[one.uri] for one in documents]
        known = {_folder_of(row) for row in rows if _gives_steps(row)}
        stepless = [
            row for row in rows
            if row.problem is None and row.lines and row.document.version and _folder_of(row) not in known
        ]  # fmt: skip
        size = 0
        for row in stepless[:_MOST_INFERRED]:
            size += row.bytes
            if size > _MOST_INFERRED_BYTES:
                return
            self._infer_from(row.document)

    def _infer_from(self, document: SourceDocument) -> None:
        """Read a document with rules that are inferred from all of it, and from each of its parts in which these read
        no step: they may be of other programs. Rules of one part that join others to its job are left out: together,
        their lines contradicted each rule."""
        parts = document.parts or (document,)
        hints, notices = self.task.hints, list[Diagnostic]()
        for some in (parts, *((one,) for one in parts[: _MOST_INFERRED if len(parts) > 1 else 0])):
            if notices and _with_steps(self._rows[document.uri]).issuperset(one.uri for one in some):
                continue
            found = self.infer([one.name for one in some])
            if found is None:
                continue
            text, notice = found
            more = hints.with_draft(_renamed(text, hints.drafted))
            task, before = replace(self.task, hints=more), self._pieces.get(document.uri)
            (read,), answers = read_batch(task, [document], replace(self.local, progress=None), self._cut_inferred)
            if len(some) < len(parts) and any(len(job.parts) > 1 for job in read.jobs):
                self._pieces.pop(document.uri)
                self._pieces |= {} if before is None else {document.uri: before}
                continue
            hints = more
            notices.append(notice)
            self._take([document], ([replace(read, of_lines=(*read.of_lines, *notices))], answers))

    def _cut_inferred(self, read: DocumentRead) -> None:
        """Cut a document while its rules are known."""
        self._pieces[read.row.document.uri] = pieces_of(read, self._folder, [one.job for one in read.row.jobs])

    def _lacking(self, documents: Sequence[SourceDocument]) -> list[SourceDocument]:
        """The documents that were known and are to be read all the same: nothing is known of a job that is in no other
        one."""
        missing: dict[str, SourceDocument] = {}
        for (job, _), holders in self._holders(documents).items():
            uri = holders[0].document.uri
            if len(holders) == 1 and (uri, job) not in self._answers and self._stored(job, holders) is None:
                missing[uri] = holders[0].document
        return [one for one in documents if one.uri in missing]

    def _finish(self, documents: Sequence[SourceDocument]) -> dict[JobKey, Any]:
        """Pass 2, and the answer about every job."""
        whole: dict[JobKey, Any] = {}
        shared: dict[JobKey, list[DocumentRow]] = {}
        for key, holders in self._holders(documents).items():
            place = (holders[0].document.uri, key[0])
            alone = len(holders) == 1 and place in self._answers
            whole[key] = self._answers[place] if alone else self._stored(key[0], holders)
            if whole[key] is None:
                shared[key] = holders
        self._cut_all(shared)
        jobs = [one for key, holders in shared.items() if (one := self._shared_job(key, holders, whole)) is not None]
        for batch, result in self._results(account_batch, jobs, _largest_first):
            for number, job in enumerate(batch):
                whole[job.job, job.apart] = result if isinstance(result, FailedTask) else result[number]
        return whole

    def _results(
        self, work: Any, items: Sequence[Any], batched: Batched, *arguments: Any, quietly: bool = False
    ) -> Iterator[tuple[list[Any], Any]]:
        """Yield the engine's results of items, in batches; in this process every byte is counted as it is read."""
        engine, local = self.engine, self.local
        task = partial(work, self.task, *arguments)
        silent = partial(task, local=replace(local, progress=None))
        here = silent if quietly else partial(task, local=local)
        yield from engine.run(
            here if engine.here else task, batched([one for one in items if fits(one, engine.memory)])
        )
        for item in [one for one in items if not fits(one, engine.memory)]:
            yield [item], self._in_this_process(silent, item)

    def _in_this_process(self, task: Any, item: Any) -> Any:
        """Return a task's result of an item that is too large for a worker: here it may use all memory."""
        size = f"needs about {needed(item) / 1e9:.1f} GB"
        if not fits(item, of_this_machine()):
            return FailedTask(f"too large for --memory: {size}")
        if self.local.notice is not None:
            self.local.notice(f"{name_of(item)}: {size}, more than --memory; analyzed in the main process")
        try:
            return task([item])
        except MemoryError:
            return FailedTask(f"too large for this machine: {size}")

    def _batched(self, items: Sequence[Any]) -> Iterator[list[Any]]:
        return batches_of(items, documents_at_once(len(items), self.engine.workers))

    def _take(self, batch: list[SourceDocument], result: Any) -> None:
        """Keep what pass 1 gave for some documents."""
        if isinstance(result, FailedTask):
            self._rows.update({one.uri: DocumentRow(one, problem=f"{one.name}: {result.reason}") for one in batch})
            return
        rows, answers = result
        self._rows.update({row.document.uri: row for row in rows})
        self._answers.update(answers)
        self.rows_done(rows)

    def _count(self, batch: list[SourceDocument]) -> None:
        """Report progress for documents that were read elsewhere."""
        progress = self.local.progress
        if progress is None or self.engine.here:
            return
        progress.advance(sum(self._rows[one.uri].bytes for one in batch))
        progress.add_lines(sum(self._rows[one.uri].lines for one in batch))

    def _holders(self, documents: Sequence[SourceDocument]) -> dict[JobKey, list[DocumentRow]]:
        """Return, by job, the documents that contain some of it."""
        holders: defaultdict[JobKey, list[DocumentRow]] = defaultdict(list)
        for row in (self._rows[one.uri] for one in documents):
            for part in row.jobs:
                holders[part.job, self.apart(row.document)].append(row)
        return dict(sorted(holders.items()))

    def _stored(self, job: str, holders: Sequence[DocumentRow]) -> Any:
        last = max(part.last_ns for row in holders for part in row.jobs if part.job == job)
        return self.stored(job, origin_of(job, holders), last)

    def _cut(self, read: DocumentRead) -> None:
        """Cut a stream into pieces while it is there."""
        if self._keeps_streams and not read.row.document.version:
            self._pieces[read.row.document.uri] = pieces_of(read, self._folder, [one.job for one in read.row.jobs])

    def _cut_all(self, shared: Mapping[JobKey, Collection[DocumentRow]]) -> None:
        """Cut the documents that contain some of these jobs."""
        jobs: defaultdict[str, list[str]] = defaultdict(list)
        documents: dict[str, SourceDocument] = {}
        for (job, _), holders in shared.items():
            for row in holders:
                jobs[row.document.uri].append(job)
                documents[row.document.uri] = row.document
        uncut = [one for uri, one in documents.items() if uri not in self._pieces]
        if not uncut:
            return
        splits = [DocumentSplit(one, tuple(jobs[one.uri])) for one in uncut]
        for batch, result in self._results(split_batch, splits, self._batched, self._folder, quietly=True):
            if isinstance(result, FailedTask):
                result = [Pieces(one.document, "", "", {}, result.reason) for one in batch]
            self._pieces.update({one.document.uri: one for one in result})

    def _shared_job(self, key: JobKey, holders: Sequence[DocumentRow], whole: dict[JobKey, Any]) -> SharedJob | None:
        """Return a job of several documents; None, with an answer that explains it, if one of them is gone."""
        cut = [self._pieces[row.document.uri] for row in holders]
        problems = [one.problem for one in cut if one.problem is not None]
        if problems:
            whole[key] = FailedTask(problems[0])
            return None
        return SharedJob(
            *key,
            tuple((one.path, one.places[key[0]]) for one in cut if key[0] in one.places),
            origin_of(key[0], [replace(row, digest=one.digest) for row, one in zip(holders, cut, strict=True)]),
            sum(part.events for row in holders for part in row.jobs if part.job == key[0]),
        )


_MOST_INFERRED, _MOST_INFERRED_BYTES = 20, 64 << 20
"""Documents, and bytes of them, that rules are inferred from."""


def _gives_steps(row: DocumentRow) -> bool:
    """Return True if a format reads a document: text with steps, or a log of events."""
    return any(not row.has_text or part.first_step is not None for part in row.jobs)


def _with_steps(row: DocumentRow) -> set[str]:
    """Return the parts of a document, by URI, in whose jobs there are steps."""
    return {uri for job in row.jobs if job.first_step is not None for uri in job.parts}


def _renamed(mapping: str, others: Sequence[str]) -> str:
    """Return an inferred mapping (TOML) with a name that no other one has."""
    first, _, rest = mapping.partition("\n")
    taken = {other.partition("\n")[0] for other in others}
    numbers = (f'{first.removesuffix(chr(34))}-{number}"' for number in range(2, len(taken) + 3))
    return "\n".join((next(one for one in (first, *numbers) if one not in taken), rest))


def _folder_of(row: DocumentRow) -> str:
    return row.document.name.replace("\\", "/").rpartition("/")[0]


def _largest_first(jobs: Sequence[SharedJob]) -> Iterator[list[SharedJob]]:
    """Jobs in tasks; the largest first, so that none is left for the end."""
    batch: list[SharedJob] = []
    events = 0
    for job in sorted(jobs, key=lambda one: (-one.events, one.job, one.apart)):
        if batch and (len(batch) == _JOBS_AT_ONCE or events + job.events > _EVENTS_AT_ONCE):
            yield batch
            batch, events = [], 0
        batch.append(job)
        events += job.events
    if batch:
        yield batch
