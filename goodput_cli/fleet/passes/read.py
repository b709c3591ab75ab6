"""Pass 1: each document is read, and each job in it accounted for at once; nothing of it is kept but the answers.

Files of text of one folder: they name no job and share what they say, so that they are read as one document.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from hashlib import blake2b
from typing import Protocol, TypeVar

from goodput_cli.accounting.columns import distinct
from goodput_cli.analysis.pick import by_job
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import GoodputError, SourceError
from goodput_cli.events.documents import says_something
from goodput_cli.events.read import decode_batches
from goodput_cli.events.schema import EventLog
from goodput_cli.events.text.jobs import beside
from goodput_cli.fleet.passes.work import Accounted, DocumentRow, JobPart, Local, Origin, Task
from goodput_cli.gc_pause import garbage_collection_paused
from goodput_cli.sources.base import Document, Progress, ReadContext, read_document
from goodput_cli.sources.blocks import is_event_file
from goodput_cli.sources.layouts import home_of

_DIGEST_BYTES = 16
_FEW = 20
_MOST_AT_ONCE, _MOST_HERE = 16, 32
"""A task of 16 small documents takes a third of a second: a worker that is lost costs little. What this process does
costs nothing to hand out."""
_TASKS_EACH = 8
HERE = Local()


class _HasSize(Protocol):
    @property
    def size(self) -> int | None: ...


Sized = TypeVar("Sized", bound=_HasSize)


@dataclass
class _Count:
    """Counts one document, and passes on what it counts."""

    progress: Progress | None
    bytes: int = 0
    lines: int = 0

    def advance(self, count: int, /) -> None:
        self.bytes += count
        if self.progress is not None:
            self.progress.advance(count)

    def expect(self, count: int, /) -> None:
        """Said for all documents together."""

    def add_lines(self, count: int, /) -> None:
        self.lines += count
        if self.progress is not None:
            self.progress.add_lines(count)

    def wait(self, what: str, /) -> None:
        if self.progress is not None:
            self.progress.wait(what)

    def finish(self) -> None:
        """There may be more documents."""


@dataclass
class DocumentRead:
    """One document with its events."""

    log: EventLog
    row: DocumentRow
    jobs: list[EventLog] = field(default_factory=list)
    """Those that somebody hints for, in order of their first event."""


def read_batch(
    task: Task, batch: Sequence[Document], local: Local = HERE, read_too: Callable[[DocumentRead], None] | None = None
) -> tuple[list[DocumentRow], list[Accounted]]:
    """Some documents: what each holds, and the answer about each job in each, as the task's work keeps it. read_too:
    called with each document before its events are let go."""
    rows: list[DocumentRow] = []
    places: list[tuple[int, str]] = []
    answers = []
    for place, document in enumerate(batch):
        try:
            read = read_one(task, document, local)
        except SourceError as error:
            rows.append(DocumentRow(document, problem=str(error)))
            continue
        rows.append(read.row)
        if read_too is not None:
            read_too(read)
        with garbage_collection_paused():
            for job, part in zip(read.jobs, read.row.jobs, strict=True):
                answers.append(task.work.account(job, read.row.origin(part)))
                places.append((place, job.table.jobs[0]))
                local.job_done()
    kept = task.work.keep(answers)
    return rows, [Accounted(place, job, answer) for (place, job), answer in zip(places, kept, strict=True)]


def read_one(task: Task, document: Document, local: Local = HERE) -> DocumentRead:
    """Read one document. Raises SourceError."""
    digest = blake2b(digest_size=_DIGEST_BYTES)
    count = _Count(local.progress)
    notices: list[Diagnostic] = []
    context = ReadContext(
        notices.append, local.stdin, count, wanted=task.wanted, notice=local.notice,
        is_log=lambda head: says_something(head, task.hints), digest=digest.update,
        folder=task.folder,
    )  # fmt: skip
    try:
        log = decode_batches([read_document(document, context)], task.timezone, context, [], task.hints)
    except GoodputError as error:
        raise SourceError(str(error)) from error
    jobs = [job for job in by_job(log) if is_wanted(job.table.jobs[0], task.names)]
    row = DocumentRow(
        document,
        digest.hexdigest(),
        count.bytes,
        count.lines,
        tuple(_part(job, document) for job in jobs),
        tuple(sorted(set(log.table.jobs) - {job.table.jobs[0] for job in jobs})[:_FEW]),
        None,
        tuple(notices),
        log.diagnostics,
        log.has_text,
    )
    return DocumentRead(log, row, jobs)


def is_wanted(job: str, names: Sequence[str]) -> bool:
    """Whether a job's name matches one of the globs, if there are some."""
    return not names or any(name == job or fnmatchcase(job, name) for name in names)


def documents_at_once(count: int, workers: int) -> int:
    """How many of some documents are a task: every worker has several tasks, as they are not equally long."""
    if workers == 1:
        return _MOST_HERE
    return min(max(count // (_TASKS_EACH * workers), 1), _MOST_AT_ONCE)


def batches_of(items: Sequence[Sized], most: int, most_bytes: int = 64 << 20) -> Iterator[list[Sized]]:
    """Documents (or what has one) in order, so many at once that a task is worth sending and fits into memory."""
    batch: list[Sized] = []
    room = most_bytes
    for item in items:
        size = item.size or 0
        if batch and (len(batch) == most or size > room):
            yield batch
            batch, room = [], most_bytes
        batch.append(item)
        room -= size
    if batch:
        yield batch


def _part(job: EventLog, document: Document) -> JobPart:
    table = job.table
    names = {table.sources[code] for code in distinct(table.source).tolist()} if document.parts else ()
    parts = tuple(one.uri for one in document.parts if one.name in names)
    return JobPart(table.jobs[0], len(table), int(table.time.min()), int(table.end.max()), parts)


def together(documents: Sequence[Document], rows: Mapping[str, DocumentRow]) -> list[Document]:
    """The documents in their order, those of text of one folder as one. rows: by URI, what each holds. What nobody can
    read twice stays alone."""
    folders: defaultdict[str, list[Document]] = defaultdict(list)
    homes = {home for one in documents if (home := home_of(one.name)) is not None}
    for one in documents:
        if one.version and rows[one.uri].has_text:
            folders[_beside(one.name, homes)].append(one)
    groups = {found[0].uri: _one_of(found, folder) for folder, found in folders.items() if len(found) > 1}
    inside = {part.uri for group in groups.values() for part in group.parts}
    return [groups.get(one.uri, one) for one in documents if one.uri in groups or one.uri not in inside]


def _beside(name: str, homes: Collection[str]) -> str:
    """The folder with which a document is read. Event files may be of the run that a tracker beside their folder has
    too. homes: the folders in which folders of trackers lie."""
    folder = beside(name)
    above = folder.rpartition("/")[0]
    return above if is_event_file(name) and above in homes else folder


def origin_of(job: str, holders: Sequence[DocumentRow]) -> Origin:
    """What the events of a job are from. holders: of the documents that hold some of it."""
    return tuple(one for row in holders for part in row.jobs if part.job == job for one in row.origin(part))


def _one_of(parts: Sequence[Document], folder: str) -> Document:
    version = blake2b(repr([(one.uri, one.version) for one in parts]).encode("utf-8", "backslashreplace"))
    written = [one.written_ns for one in parts if one.written_ns is not None]
    return Document(
        f"{parts[0].uri}\0{len(parts)}",
        f"{folder or '.'}/ ({len(parts)} files of text)",
        sum(one.size or 0 for one in parts),
        version.hexdigest(),
        max(written, default=None),
        apart=all(one.apart for one in parts),
        parts=tuple(parts),
    )
