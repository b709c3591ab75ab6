"""Pass 1: each document is read, and each job in it is accounted for at once; only the answers are kept.

Text files of one folder name no job and share their facts, so they are read as one document.

Pass 2: jobs whose events are in several documents. Each such document becomes one file of pieces, one piece per job; a
job's pieces, joined in the order of the documents, are its events.

A piece is an Arrow record batch; the meaning of its codes is JSON next to it. Data from a log is never evaluated or
unpickled.

Memory of a document or a job while it is accounted for, from measurements (docs/fleet.md).
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np

from goodput_cli.accounting.columns import distinct
from goodput_cli.analysis.account import by_job, is_wanted
from goodput_cli.arrays import garbage_collection_paused, group_by_key
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import GoodputError, SourceError
from goodput_cli.events.accelerators.hooks import DEVICE_SAMPLES
from goodput_cli.events.accelerators.samples import DeviceSamples, Quantity, joined_samples
from goodput_cli.events.documents import is_known_table_or_text
from goodput_cli.events.joined_logs import read_parts
from goodput_cli.events.read import decode_batches
from goodput_cli.events.rows import Interner
from goodput_cli.events.schema import COLUMNS, NO_STEP, NONE, EventLog, EventTable, Kind, LogFormat
from goodput_cli.events.text.folders import FolderOfLogs, is_generic, jobs_of_folders, name_of_folder
from goodput_cli.events.text.jobs import is_of_node, reading_folder, stem_of_text
from goodput_cli.events.text.views import output_folders
from goodput_cli.fleet.passes.work import DocumentRow, JobPart, LocalObjects, Origin, Task
from goodput_cli.sources.base import Progress, ReadContext, SourceDocument, read_document
from goodput_cli.sources.blocks import PACKED_ENDINGS, is_event_file
from goodput_cli.sources.layouts import home_of
from goodput_cli.vocabulary.text import files_of

_DIGEST_BYTES = 16
_FEW = 20
_MOST_AT_ONCE, _MOST_HERE = 16, 32
"""A task of 16 small documents takes a third of a second, so a lost worker costs little. Work of this process costs
nothing to hand out."""
_MOST_BYTES = 64 << 20
"""Bytes of a task."""
_TASKS_EACH = 8
HERE = LocalObjects()


Sized = TypeVar("Sized", bound="SourceDocument | DocumentSplit")


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
        """Announce the count of all documents together."""

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
    """Jobs with a hint, in order of their first event."""


def read_batch(
    task: Task,
    batch: Sequence[SourceDocument],
    local: LocalObjects = HERE,
    read_too: Callable[[DocumentRead], None] | None = None,
) -> tuple[list[DocumentRow], dict[tuple[str, str], Any]]:
    """Read documents. Return the row of each, and by URI and job the answer about each job in each, as the task's work
    keeps it. read_too: called with each document before its events are released."""
    rows: list[DocumentRow] = []
    places: list[tuple[str, str]] = []
    answers = []
    for document in batch:
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
                places.append((document.uri, part.job))
                local.job_done()
    return rows, dict(zip(places, task.work.keep(answers), strict=True))


def read_one(task: Task, document: SourceDocument, local: LocalObjects = HERE) -> DocumentRead:
    """Read one document. Raises SourceError."""
    digest = blake2b(digest_size=_DIGEST_BYTES)
    count = _Count(local.progress)
    notices: list[Diagnostic] = []
    context = ReadContext(
        notices.append, local.stdin, count, wanted=task.wanted, notice=local.notice,
        is_log=lambda head: is_known_table_or_text(head, task.hints), digest=digest.update if task.digests else None,
        folder=task.folder,
    )  # fmt: skip
    try:
        parts = document.parts
        batches = read_parts(parts, context, task.hints) if parts else read_document(document, context)
        log = decode_batches([batches], task.timezone, context, [], task.hints)
    except GoodputError as error:
        raise SourceError(error.message, cause=error.cause, tip=error.tip) from error
    former = log.former
    jobs = [job for job in by_job(log) if log.has_text or is_wanted(job.table.jobs[0], task.names)]
    row = DocumentRow(
        document,
        digest.hexdigest() if task.digests else "",
        count.bytes,
        count.lines,
        tuple(_part(job, document, former.get(job.table.jobs[0], "")) for job in jobs),
        tuple(sorted(set(log.table.jobs) - {job.table.jobs[0] for job in jobs})[:_FEW]),
        None,
        tuple(notices),
        log.diagnostics,
        log.has_text or (not len(log.table) and bool(log.table.observed.rows and log.table.observed.read)),
    )
    return DocumentRead(log, row, jobs)


def documents_at_once(count: int, workers: int) -> int:
    """Return how many documents are a task: every worker has several tasks, because they are not equally long."""
    if workers == 1:
        return _MOST_HERE
    return min(max(count // (_TASKS_EACH * workers), 1), _MOST_AT_ONCE)


def batches_of(items: Sequence[Sized], most: int) -> Iterator[list[Sized]]:
    """Yield documents (or objects with one) in order, grouped so that a task is worth sending and fits into memory."""
    batch: list[Sized] = []
    room = _MOST_BYTES
    for item in items:
        size = item.size or 0
        if batch and (len(batch) == most or size > room):
            yield batch
            batch, room = [], _MOST_BYTES
        batch.append(item)
        room -= size
    if batch:
        yield batch


def _part(job: EventLog, document: SourceDocument, former: str) -> JobPart:
    table = job.table
    used = (table.sources[code] for code in distinct(table.source).tolist())
    names = files_of(used) if document.parts else ()
    parts = tuple(one.uri for one in document.parts if one.name in names)
    steps = table.step[(table.kind == Kind.STEP) & (table.step != NO_STEP)]
    first, last = (int(steps.min()), int(steps.max())) if len(steps) else (None, None)
    restores = bool(((table.kind == Kind.RESTORE) & (table.step != 0)).any())
    begin, end = int(table.time.min()), int(table.end.max())
    return JobPart(table.jobs[0], len(table), begin, end, parts, first, last, restores, former)


def group_documents(
    documents: Sequence[SourceDocument], rows: Mapping[str, DocumentRow], shared: int | None
) -> list[SourceDocument]:
    """Return the documents in their order. Text of one folder is one document, with the event logs of trackers that may
    have the same runs, and with folders of the same job. rows: by URI. shared: see `ReadingOptions.shared_levels`.
    Documents that cannot be read twice stay separate."""
    folders: defaultdict[str, list[SourceDocument]] = defaultdict(list)
    homes = {home for one in documents if (home := home_of(one.name)) is not None}
    printed = {reading_folder(one.name) for one in documents if rows[one.uri].has_text and not is_event_file(one.name)}
    for one in documents:
        folder = _folder_read_with(one.name, homes, printed)
        if one.version and (rows[one.uri].has_text or folder in homes):
            folders[folder].append(one)
    of = {folder: folder for folder in folders}
    """By folder, the one with which it is read."""
    for first, *others in _of_one_job(folders, rows, shared):
        for other in others:
            folders[first] += folders.pop(other)
            of[other] = first
    for folder, first in _of_nodes(folders, rows, of):
        folders[first] += folders.pop(folder)
    _add_samples(folders, documents, rows)
    groups = {found[0].uri: _one_of(found, folder) for folder, found in folders.items() if len(found) > 1}
    inside = {part.uri for group in groups.values() for part in group.parts}
    return [groups.get(one.uri, one) for one in documents if one.uri in groups or one.uri not in inside]


def _of_one_job(
    folders: Mapping[str, Sequence[SourceDocument]], rows: Mapping[str, DocumentRow], shared: int | None
) -> list[list[str]]:
    """Return folders of text that contain files of one job whose name is not logged."""
    found: list[FolderOfLogs] = []
    for folder, some in folders.items() if shared is not None else ():
        found += _jobs_of_folder(folder, some, rows, shared or 0)
    of: dict[str, list[str]] = {}
    for job in jobs_of_folders(found):
        groups = {id(group): group for at in job for group in [of.setdefault(found[at].folder, [found[at].folder])]}
        first, *others = groups.values()
        for group in others:
            first += group
            of.update(dict.fromkeys(group, first))
    return [group for group in {id(group): group for group in of.values()}.values() if len(group) > 1]


def _of_nodes(
    folders: Mapping[str, Sequence[SourceDocument]], rows: Mapping[str, DocumentRow], of: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Return folders of nodes whose files contain only failures, each with the one job of the nodes next to it. of: by
    folder, the one with which it is read."""
    near: defaultdict[str, set[str]] = defaultdict(set)
    silent: list[tuple[str, str]] = []
    for folder, first in of.items():
        above, _, name = folder.rpartition("/")
        if not is_of_node(name):
            continue
        if any(rows[one.uri].jobs for one in folders.get(folder, folders[first])):
            near[above].add(first)
        else:
            silent.append((above, folder))
    return [(folder, next(iter(near[above]))) for above, folder in silent if len(near[above]) == 1]


def _add_samples(
    folders: dict[str, list[SourceDocument]], documents: Sequence[SourceDocument], rows: Mapping[str, DocumentRow]
) -> None:
    """Add samples of accelerators, and dumps, to the logs of the one job in the nearest folder that contains any, that
    folder or one above it. folders: documents that are read together, by the folder that names them."""
    samples = [one for one in documents if one.version and _needs_log(rows[one.uri])]
    if not samples:
        return
    of = {one.uri: folder for folder, some in folders.items() for one in some}
    logs = [one for one in documents if rows[one.uri].jobs]
    for one in samples:
        folder = one.name.replace("\\", "/").rpartition("/")[0]
        near = _below(folder, logs)
        while folder and not near:
            folder = folder.rpartition("/")[0]
            near = _below(folder, logs)
        jobs = {of.get(log.uri) or part.job for log in near for part in rows[log.uri].jobs}
        if len(jobs) != 1 or not all(log.version for log in near):
            continue
        together = folders.setdefault(of.get(near[0].uri, folder), [])
        together += [each for each in (*near, one) if each not in together]


def _needs_log(row: DocumentRow) -> bool:
    """Return True for a document that is about the job of the logs next to it."""
    return not row.jobs and any(one.code in ("devices_of_no_job", "unusable_dump") for one in row.of_lines)


def _below(folder: str, documents: Sequence[SourceDocument]) -> list[SourceDocument]:
    start = f"{folder}/" if folder else ""
    return [one for one in documents if one.name.replace("\\", "/").startswith(start)]


def _jobs_of_folder(
    folder: str, some: Sequence[SourceDocument], rows: Mapping[str, DocumentRow], shared: int
) -> Iterator[FolderOfLogs]:
    """The jobs of a folder that are called after it or its files, or after both."""
    stem = stem_of_text(some[0].name) if len(some) == 1 else ""
    by_job = group_by_key((part.job, part) for part in (part for one in some for part in rows[one.uri].jobs))
    own, base = name_of_folder(folder, shared, counters=True), folder.rpartition("/")[2]
    if by_job and by_job.keys() <= {own, base, stem} and (len(some) == 1 or is_generic(base)):
        called = {"": [part for parts in by_job.values() for part in parts]}
    else:
        stems = {stem_of_text(one.name) for one in some}
        called = {job.removeprefix(f"{own}/"): parts for job, parts in by_job.items()}
        called = {name: parts for name, parts in called.items() if name in stems}
    for name, parts in called.items():
        steps = [step for part in parts for step in (part.first_step, part.last_step) if step is not None]
        begin, end = min(part.first_ns for part in parts), max(part.last_ns for part in parts)
        restores, first, last = any(part.restores for part in parts), min(steps, default=None), max(steps, default=None)
        yield FolderOfLogs(folder, name or stem, name, begin, end, first, last, restores)


def _folder_read_with(name: str, homes: Collection[str], printed: Collection[str]) -> str:
    """Return the folder with which a document is read. Event files may be of the run that also has a tracker next to
    their folder, or that printed into it. homes: the folders that contain folders of trackers; printed: those of text.
    """
    folder = reading_folder(name)
    if not is_event_file(name) or folder in printed:
        return folder
    above = folder.rpartition("/")[0]
    return above if above in homes or (above in printed and above in output_folders(name)) else folder


def origin_of(job: str, holders: Sequence[DocumentRow]) -> Origin:
    """Return the origin of the events of a job. holders: of the documents that contain some of it."""
    return tuple(one for row in holders for part in row.jobs if part.job == job for one in row.origin(part))


def _one_of(parts: Sequence[SourceDocument], folder: str) -> SourceDocument:
    version = blake2b(repr([(one.uri, one.version) for one in parts]).encode("utf-8", "backslashreplace"))
    written = [one.written_ns for one in parts if one.written_ns is not None]
    return SourceDocument(
        f"{parts[0].uri}\0{len(parts)}",
        f"{folder or '.'}/ ({len(parts)} files of text)",
        sum(one.size or 0 for one in parts),
        version.hexdigest(),
        max(written, default=None),
        apart=all(one.apart for one in parts),
        named=any(one.named for one in parts),
        parts=tuple(parts),
    )


_PLURALS = {name: "entries" if name == "entry" else f"{name}s" for name in COLUMNS if name != "job"}
_CODED = {name: texts for name, texts in _PLURALS.items() if texts in EventTable.__dataclass_fields__}
"""Columns that contain positions in a tuple of the table, and the name of that tuple."""
_STORED = tuple(name for name in COLUMNS if name != "job")
_ABOUT = b"about"


@dataclass(frozen=True)
class DocumentSplit:
    """A document to be cut into pieces: those of these jobs."""

    document: SourceDocument
    jobs: tuple[str, ...]

    @property
    def size(self) -> int | None:
        """Size of the document, in bytes."""
        return self.document.size


@dataclass(frozen=True)
class Pieces:
    """A document that was cut: where the piece of each job is."""

    document: SourceDocument
    digest: str
    path: str
    places: dict[str, int]
    """By job, the number of its record batch."""
    problem: str | None = None
    """Reason why it could not be read again."""


@dataclass(frozen=True)
class SharedJob:
    """A job of several documents: its pieces in the order of these, each a file and a place in it."""

    job: str
    apart: str
    """Label that distinguishes it from other jobs of its name; empty without one."""
    pieces: tuple[tuple[str, int], ...]
    origin: Origin
    events: int


def split_batch(task: Task, folder: str, batch: Sequence[DocumentSplit], local: LocalObjects = HERE) -> list[Pieces]:
    """Read some documents again and write the pieces of the jobs asked for."""
    pieces = []
    for one in batch:
        try:
            pieces.append(pieces_of(read_one(task, one.document, local), folder, frozenset(one.jobs)))
        except SourceError as error:
            pieces.append(Pieces(one.document, "", "", {}, str(error)))
    return pieces


def pieces_of(read: DocumentRead, folder: str, jobs: Collection[str]) -> Pieces:
    """A document that was read, cut into the pieces of these jobs: a file."""
    import pyarrow as pa  # few fleets have jobs in several documents

    path = f"{folder}/{uuid4().hex}.arrow"
    places: dict[str, int] = {}
    schema = pa.schema([(name, pa.from_numpy_dtype(np.dtype(COLUMNS[name]))) for name in _STORED])
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, schema, options=options) as writer:
        for job in read.jobs:
            if job.table.jobs[0] in jobs:
                places[job.table.jobs[0]] = len(places)
                job = replace(job, table=job.table.by_file())
                columns = [_numbers(getattr(job.table, name), COLUMNS[name]) for name in _STORED]
                batch = pa.RecordBatch.from_arrays(columns, schema=schema)
                writer.write_batch(batch, custom_metadata={_ABOUT: _about(job)})
                if DEVICE_SAMPLES.of(job.table):
                    _write_samples(f"{path}.{places[job.table.jobs[0]]}.npz", job)
    return Pieces(read.row.document, read.row.digest, path, places)


def _numbers(column: Any, kind: Any) -> Any:
    """A column for Arrow, whose other ways to it import pandas."""
    import pyarrow as pa

    values = np.ascontiguousarray(column, dtype=kind)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


def _about(job: EventLog) -> bytes:
    table = job.table
    formats = [[one.name, one.restores_are_inferred, one.other_system] for one in job.formats[0]]
    values = {texts: tuple(getattr(table, texts)) for texts in _CODED.values()}
    return json.dumps({**values, "formats": formats}).encode("utf-8", "surrogatepass")


_OF_SAMPLES = ("time", "held", "value", "high")


def _write_samples(path: str, job: EventLog) -> None:
    """Write the accelerator samples of a job, next to its piece."""
    devices = [one for one in DEVICE_SAMPLES.of(job.table) if one.job == job.table.jobs[0]]
    about = [[one.host, one.device, one.rank, int(one.quantity), one.about, len(one)] for one in devices]
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(one, name) for one in devices]) for name in _OF_SAMPLES if devices
    }
    np.savez(path, about=np.frombuffer(json.dumps(about).encode(), dtype=np.uint8), **columns)


def _read_samples(path: str, job: str) -> Iterator[DeviceSamples]:
    if not os.path.exists(path):
        return
    with np.load(path, allow_pickle=False) as file:
        columns = {name: file[name] for name in _OF_SAMPLES if name in file}
        begin = 0
        for host, device, rank, quantity, summed, size in json.loads(file["about"].tobytes()):
            own = {name: column[begin : begin + size] for name, column in columns.items()}
            yield DeviceSamples(job, host, device, rank, Quantity(quantity), about=summed, **own)
            begin += size


def account_batch(task: Task, batch: Sequence[SharedJob], local: LocalObjects = HERE) -> Sequence[Any]:
    """The answers about some jobs of several documents each, as the task's work keeps them."""
    answers = []
    for shared in batch:
        with garbage_collection_paused():
            answers.append(task.work.account(join_pieces(shared), shared.origin))
        local.job_done()
    return task.work.keep(answers)


def join_pieces(shared: SharedJob) -> EventLog:
    """The events of a job, from all its documents."""
    import pyarrow as pa

    interners: dict[str, Interner[Any]] = {name: Interner() for name in _CODED}
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    formats: set[LogFormat] = set()
    devices: list[DeviceSamples] = []
    for path, place in shared.pieces:
        devices += _read_samples(f"{path}.{place}.npz", shared.job)
        with pa.memory_map(path) as source:
            batch, metadata = pa.ipc.open_file(source).get_batch_with_custom_metadata(place)
        about = json.loads(metadata[_ABOUT].decode("utf-8", "surrogatepass"))
        formats.update(LogFormat(*one) for one in about["formats"])
        for name in _STORED:
            columns[name].append(np.from_dlpack(batch.column(name)))
        for name, texts in _CODED.items():
            codes = interners[name].codes([_hashable(value) for value in about[texts]])
            columns[name][-1] = np.append(codes, np.int32(NONE))[columns[name][-1]].astype(np.int32)
        columns["job"].append(np.zeros(batch.num_rows, dtype=np.int32))
    whole: dict[str, Any] = {name: np.concatenate(parts) for name, parts in columns.items()}
    tuples: dict[str, Any] = {_CODED[name]: interner.values() for name, interner in interners.items()}
    table = EventTable(
        **whole, jobs=(shared.job,), **tuples, tables={DEVICE_SAMPLES.name: joined_samples(devices)} if devices else {}
    )
    return EventLog(table, (tuple(sorted(formats)),))


def _hashable(value: Any) -> Any:
    """A value as it was before it was JSON: lists were tuples."""
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


_BASE = 140 << 20
"""Memory of a process with its modules, and of the results of a task."""
_OF_A_BYTE, _OF_A_PACKED_BYTE, _OF_AN_EVENT = 1.6, 16.0, 160
_SAFE = 0.9
"""Share of the limit: dask ends a worker that takes more than 0.95."""
LEAST = int(_BASE / _SAFE)
"""Below such a limit (bytes) nothing fits."""


Input = SourceDocument | DocumentSplit | SharedJob


def needed(item: Input) -> int:
    """Return the memory that a process needs for one item (bytes), estimated from its size."""
    if isinstance(item, SharedJob):
        return _BASE + item.events * _OF_AN_EVENT
    packed = name_of(item).lower().endswith(tuple(ending for ending in PACKED_ENDINGS if ending))
    return _BASE + int((item.size or 0) * (_OF_A_PACKED_BYTE if packed else _OF_A_BYTE))


def fits(item: Input, limit: int | None) -> bool:
    """Return True if an item can be processed with this limit (bytes); None: no limit."""
    return limit is None or needed(item) <= _SAFE * limit


def name_of(item: Input) -> str:
    """The name that people see."""
    return (
        item.job
        if isinstance(item, SharedJob)
        else item.document.name
        if isinstance(item, DocumentSplit)
        else item.name
    )


def of_this_machine() -> int:
    """Return the memory that this process may use (bytes): that of the machine, or less if a container or a limit
    restricts it. Called only if dask is installed."""
    from distributed.system import MEMORY_LIMIT

    return int(MEMORY_LIMIT)
