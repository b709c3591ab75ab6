"""Pass 2: jobs whose events lie in several documents. Each such document becomes one file of pieces, a piece a job; a
job's pieces, joined in the order of the documents, are its events.

A piece is an Arrow record batch; what its codes stand for is JSON beside it. Nothing that came from a log is ever
evaluated or unpickled.
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
from goodput_cli.events.interner import Interner
from goodput_cli.events.schema import COLUMNS, NONE, EventLog, EventTable, LogFormat
from goodput_cli.fleet.passes.read import HERE, DocumentRead, read_one
from goodput_cli.fleet.passes.work import Accounted, Local, Origin, Task
from goodput_cli.gc_pause import garbage_collection_paused
from goodput_cli.sources.base import Document


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

    from goodput_cli.fleet.store import arrow

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
    from goodput_cli.fleet.store import arrow

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
