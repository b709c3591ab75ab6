"""Pass 2: jobs whose events lie in several documents. Each such document becomes one file of pieces, a piece a job; a
job's pieces, joined in the order of the documents, are its events.

A piece is an Arrow record batch; what its codes stand for is JSON beside it. Nothing that came from a log is ever
evaluated or unpickled.

How much memory a document or a job takes while it is accounted for, by what was measured (docs/fleet.md).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from goodput_cli.errors import SourceError
from goodput_cli.events.details import Interner
from goodput_cli.events.schema import COLUMNS, NONE, EventLog, EventTable, LogFormat
from goodput_cli.fleet.passes.read import HERE, DocumentRead, read_one
from goodput_cli.fleet.passes.work import Accounted, Local, Origin, Task
from goodput_cli.gc_pause import garbage_collection_paused
from goodput_cli.sources.base import Document
from goodput_cli.sources.blocks import PACKED_ENDINGS


def _plural(name: str) -> str:
    return "entries" if name == "entry" else f"{name}s"


_CODED = tuple(name for name in COLUMNS if name != "job" and _plural(name) in EventTable.__dataclass_fields__)
"""Columns that hold positions in a tuple of the table."""
_STORED = tuple(name for name in COLUMNS if name != "job")
_ABOUT = b"about"


@dataclass(frozen=True)
class Split:
    """A document to be cut into pieces: those of these jobs."""

    document: Document
    jobs: tuple[str, ...]

    @property
    def size(self) -> int | None:
        """Of the document, in bytes."""
        return self.document.size


@dataclass(frozen=True)
class Pieces:
    """A document that was cut: where the piece of each job is."""

    document: Document
    digest: str
    path: str
    places: dict[str, int]
    """By job, the number of its record batch."""
    problem: str | None = None
    """Why it could not be read again."""


@dataclass(frozen=True)
class SharedJob:
    """A job of several documents: its pieces in the order of these, each a file and a place in it."""

    job: str
    apart: str
    """What tells it from other jobs of its name; empty where nothing does."""
    pieces: tuple[tuple[str, int], ...]
    origin: Origin
    events: int


def split_batch(task: Task, folder: str, batch: Sequence[Split], local: Local = HERE) -> list[Pieces]:
    """Read some documents again and write the pieces of the jobs asked for."""
    return [_split(task, folder, one, local) for one in batch]


def _split(task: Task, folder: str, split: Split, local: Local) -> Pieces:
    try:
        return pieces_of(read_one(task, split.document, local), folder, split.jobs)
    except SourceError as error:
        return Pieces(split.document, "", "", {}, str(error))


def pieces_of(read: DocumentRead, folder: str, jobs: Collection[str]) -> Pieces:
    """A document that was read, cut into the pieces of these jobs."""
    path = Path(folder) / f"{uuid4().hex}.arrow"
    return Pieces(read.row.document, read.row.digest, str(path), write_pieces(path, read.jobs, frozenset(jobs)))


def write_pieces(path: Path, jobs: Sequence[EventLog], names: Collection[str]) -> dict[str, int]:
    """Write a file of pieces; the place of each job in it."""
    import pyarrow as pa  # few fleets have jobs in several documents

    from goodput_cli.fleet.store import parts as arrow

    places: dict[str, int] = {}
    schema = pa.schema([(name, pa.from_numpy_dtype(np.dtype(COLUMNS[name]))) for name in _STORED])
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema, options=options) as writer:
        for job in jobs:
            if job.table.jobs[0] in names:
                places[job.table.jobs[0]] = len(places)
                columns = [arrow.numbers(getattr(job.table, name), COLUMNS[name]) for name in _STORED]
                batch = pa.RecordBatch.from_arrays(columns, schema=schema)
                writer.write_batch(batch, custom_metadata={_ABOUT: _about(job)})
    return places


def _about(job: EventLog) -> bytes:
    table = job.table
    formats = [[one.name, one.restores_are_inferred, one.other_system] for one in job.formats[0]]
    values = {_plural(name): tuple(getattr(table, _plural(name))) for name in _CODED}
    return json.dumps({**values, "formats": formats}).encode("utf-8", "surrogatepass")


def account_batch(task: Task, batch: Sequence[SharedJob], local: Local = HERE) -> list[Accounted]:
    """The answers about some jobs of several documents each."""
    answers = []
    for shared in batch:
        with garbage_collection_paused():
            answers.append(task.work.account(join_pieces(shared), shared.origin))
        local.job_done()
    kept = task.work.keep(answers)
    return [Accounted(place, batch[place].job, answer) for place, answer in enumerate(kept)]


def join_pieces(shared: SharedJob) -> EventLog:
    """The events of a job, from all its documents."""
    from goodput_cli.fleet.store import parts as arrow

    interners: dict[str, Interner[Any]] = {name: Interner() for name in _CODED}
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    formats: set[LogFormat] = set()
    for path, place in shared.pieces:
        batch, about = _read_piece(path, place)
        formats.update(LogFormat(*one) for one in about["formats"])
        for name in _STORED:
            columns[name].append(arrow.column(batch.column(name), COLUMNS[name]))
        for name in _CODED:
            codes = interners[name].codes([_hashable(value) for value in about[_plural(name)]])
            columns[name][-1] = np.append(codes, np.int32(NONE))[columns[name][-1]].astype(np.int32)
        columns["job"].append(np.zeros(batch.num_rows, dtype=np.int32))
    whole: dict[str, Any] = {name: np.concatenate(parts) for name, parts in columns.items()}
    tuples: dict[str, Any] = {_plural(name): interner.values() for name, interner in interners.items()}
    table = EventTable(**whole, jobs=(shared.job,), **tuples)
    return EventLog(table, (tuple(sorted(formats)),))


def _read_piece(path: str, place: int) -> tuple[Any, dict[str, Any]]:
    import pyarrow as pa

    with pa.memory_map(path) as source:
        batch = pa.ipc.open_file(source).get_batch_with_custom_metadata(place)
        return batch.batch, json.loads(batch.custom_metadata[_ABOUT].decode("utf-8", "surrogatepass"))


def _hashable(value: Any) -> Any:
    """A value as it was before it was JSON: lists were tuples."""
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


_BASE = 140 << 20
"""Of a process with its modules, and the results of a task."""
_OF_A_BYTE, _OF_A_PACKED_BYTE, _OF_AN_EVENT = 1.6, 16.0, 160
_SAFE = 0.9
"""Of its limit: dask ends a worker that takes more than 0.95."""
LEAST = int(_BASE / _SAFE)
"""Below such a limit (bytes) nothing fits."""


Input = Document | Split | SharedJob


def needed(item: Input) -> int:
    """What a process needs for one item (bytes), as far as its size shows it."""
    if isinstance(item, SharedJob):
        return _BASE + item.events * _OF_AN_EVENT
    packed = name_of(item).lower().endswith(tuple(ending for ending in PACKED_ENDINGS if ending))
    return _BASE + int((item.size or 0) * (_OF_A_PACKED_BYTE if packed else _OF_A_BYTE))


def fits(item: Input, limit: int | None) -> bool:
    """Whether an item can be done by a process with this limit (bytes); None: there is none."""
    return limit is None or needed(item) <= _SAFE * limit


def name_of(item: Input) -> str:
    """The name that people see."""
    return item.job if isinstance(item, SharedJob) else item.document.name if isinstance(item, Split) else item.name


def of_this_machine() -> int:
    """The memory that this process may have (bytes): that of the machine, or less where a container or a limit says so.
    Asked only where dask is."""
    from distributed.system import MEMORY_LIMIT

    return int(MEMORY_LIMIT)
