"""The store of results: what was read and accounted for once is not done again.

It only grows, and everything in it is named by what it was made of, so that several runs may use it at once and none
needs a lock: equal keys have equal contents. Every file is written beside its place and renamed.

    STORE/format.json              {"format": 2, "check": …}
    STORE/documents/HASH.parquet   a row a document that was read
    STORE/results/HASH.parquet     a row a run
    STORE/results/*.pickle         those of a store that is there for one run alone
    STORE/tmp-*                    what is not whole yet, or no longer

Disks and networks lose bits without a word: a part is named by the hash of what is in it, and used only where that
holds. One in which it does not is put away, said, and what it held is read and accounted for again.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import GoodputError, not_written, reason_of
from goodput_cli.fleet.passes.work import DocumentRow
from goodput_cli.fleet.results import RunDisruption, RunResult
from goodput_cli.sources.base import Document
from goodput_cli.vocabulary.categories import CATEGORIES
from goodput_cli.vocabulary.text import plural, well_formed

_NO_DOCUMENT = Document("", "")
_DOCUMENT_COLUMNS = pa.schema([(name, pa.string()) for name in ("uri", "version", "reader", "about")])


@dataclass(frozen=True)
class ReadDocument:
    """A document as it was read."""

    uri: str
    version: str
    reader: str
    """How it was read."""
    read_ns: int
    """An instant before that."""
    row: DocumentRow
    """Of no document: the one that is listed now stands in for it."""

    def of(self, document: Document) -> DocumentRow:
        """What it says of the document, which has not changed."""
        return replace(self.row, document=document)


def has_name(document: Document) -> bool:
    """Whether it can be remembered: names of files are bytes, and not all of them are the UTF-8 that Parquet wants."""
    return bool(document.version) and well_formed(document.uri) == document.uri


def part_of_documents(rows: Sequence[DocumentRow], reader: str, read_ns: int) -> bytes:
    """A file of documents that were read. reader: how; read_ns: an instant before that."""
    listed = (
        {
            "uri": row.document.uri,
            "version": row.document.version,
            "reader": reader,
            "about": json.dumps({"row": asdict(replace(row, document=_NO_DOCUMENT)), "read_ns": read_ns}),
        }
        for row in rows
    )
    return _parquet(listed, _DOCUMENT_COLUMNS)


def read_documents(part: bytes) -> Iterator[ReadDocument]:
    """The rows of such a file."""
    with pq.ParquetFile(pa.BufferReader(part)) as file:
        rows = file.read(columns=_DOCUMENT_COLUMNS.names, use_threads=False).to_pylist()
    for row in rows:
        yield msgspec.convert({**row, **json.loads(row.pop("about"))}, ReadDocument)


def _parquet(rows: Iterable[dict[str, Any]], schema: Any, **settings: Any) -> bytes:
    """The rows as a file of Parquet."""
    lines = b"\n".join(map(msgspec.json.encode, rows))
    table = pj.read_json(
        pa.BufferReader(lines),
        pj.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", **settings)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _listed(**columns: Any) -> Any:
    """A list of rows with these columns."""
    return pa.list_(pa.struct(list(columns.items())))


_INT, _TEXT, _KEY = pa.int64(), pa.string(), "key"
_TYPES = {
    "int": _INT, "int | None": _INT, "bool": pa.bool_(), "str": _TEXT, "str | None": _TEXT,
    "tuple[str, ...]": pa.list_(_TEXT),
    "I64": pa.list_(_INT),
    "tuple[I64, I64]": _listed(start=_INT, end=_INT),
    "tuple[tuple[str, str, int], ...]": _listed(code=_TEXT, severity=_TEXT, count=_INT),
    "Spans": _listed(start=_INT, end=_INT, category=_TEXT, label=_TEXT, slowdown=_INT, steps=pa.float64()),
}  # fmt: skip
"""How the fields of a result are columns, by their types."""
_TYPES["tuple[RunDisruption, ...]"] = _listed(
    **{name: _TYPES[kind] for name, kind in RunDisruption.__annotations__.items()}
)
_RESULT_COLUMNS = pa.schema([
    (_KEY, _TEXT), *((name, _TYPES[kind]) for name, kind in RunResult.__annotations__.items()),
])  # fmt: skip
_ROWS_AT_ONCE = 256
_CODES = {name: code for code, name in enumerate(CATEGORIES)}


def part_of(rows: Sequence[tuple[str, RunResult]]) -> bytes:
    """A file of results, each with the key of its job."""
    return _parquet((_row(key, result) for key, result in rows), _RESULT_COLUMNS, row_group_size=_ROWS_AT_ONCE)


def _row(key: str, result: RunResult) -> dict[str, Any]:
    """Lone surrogates in texts of the log are replaced."""
    spans = result.spans
    labels = [*map(well_formed, spans.labels), None]  # -1: none
    of_spans = (
        spans.start.tolist(), spans.end.tolist(), [CATEGORIES[code] for code in spans.category.tolist()],
        [labels[code] for code in spans.label.tolist()], spans.slowdown.tolist(), spans.steps.tolist(),
    )  # fmt: skip
    lists = {
        "spans": zip(*of_spans, strict=True),
        "up": zip(*(one.tolist() for one in result.up), strict=True),
        "partial": zip(*(one.tolist() for one in result.partial), strict=True),
        "findings": result.findings,
        "disruptions": map(msgspec.structs.astuple, result.disruptions),
    }
    names = {name: [one.name for one in _RESULT_COLUMNS.field(name).type.value_type] for name in lists}
    return {
        _KEY: key,
        **msgspec.structs.asdict(result),
        **{name: [dict(zip(names[name], row, strict=True)) for row in rows] for name, rows in lists.items()},
        "job": well_formed(result.job),
        "hosts": list(map(well_formed, result.hosts)),
        "listed": result.listed.tolist(),
    }


def read_part(part: bytes, wanted: set[str]) -> Iterator[tuple[str, RunResult]]:
    """The results of some jobs, one after the other: a part may be larger than what is wanted of it. Parts are small:
    threads of Arrow would cost memory and gain nothing."""
    with pq.ParquetFile(pa.BufferReader(part)) as file:
        for group in range(file.num_row_groups):
            keys = file.read_row_group(group, columns=[_KEY], use_threads=False).column(_KEY).to_pylist()
            if not wanted.isdisjoint(keys):
                table = file.read_row_group(group, use_threads=False).combine_chunks()
                yield from ((key, _result(table, row)) for row, key in enumerate(keys) if key in wanted)


def read_extents(part: bytes, wanted: set[str]) -> list[tuple[str, int, int, int]]:
    """Job, number, start and end (ns) of the analysed runs of some jobs in a part."""
    with pq.ParquetFile(pa.BufferReader(part)) as file:
        columns = file.read(columns=[_KEY, "job", "run", "start_ns", "end_ns", "reason"], use_threads=False).to_pydict()
    rows = zip(*columns.values(), strict=True)
    return [(job, run, start, end) for key, job, run, start, end, reason in rows if key in wanted and reason is None]


def part_keys(part: bytes) -> list[str]:
    """The keys of the jobs in a part."""
    with pq.ParquetFile(pa.BufferReader(part)) as file:
        keys: list[str] = file.read(columns=[_KEY], use_threads=False).column(_KEY).to_pylist()
        return keys


_ARRAYS = ("spans", "up", "partial", "listed")
"""Columns that are read as arrays: as values of Python they would take time."""


def _result(table: pa.Table, row: int) -> RunResult:
    values = {name: table.column(name)[row] for name in RunResult.__struct_fields__}
    plain = {name: value.as_py() for name, value in values.items() if name not in _ARRAYS}
    spans, up, partial, listed = (values[name].values for name in _ARRAYS)
    names = spans.field("label").to_pylist()
    labels = list(dict.fromkeys(name for name in names if name is not None))
    code_of = {name: code for code, name in enumerate(labels)}
    arrays = {
        "spans": {
            **{name: np.from_dlpack(spans.field(name)) for name in ("start", "end", "slowdown", "steps")},
            "category": np.array([_CODES[name] for name in spans.field("category").to_pylist()], dtype=np.int8),
            "label": np.array([code_of.get(name, -1) for name in names], dtype=np.int32),
            "labels": labels,
        },
        "up": [np.from_dlpack(up.field(name)) for name in ("start", "end")],
        "partial": [np.from_dlpack(partial.field(name)) for name in ("start", "end")],
        "listed": np.from_dlpack(listed),
        "findings": [tuple(one.values()) for one in plain["findings"]],
    }
    return msgspec.convert(plain | arrays, RunResult, dec_hook=lambda _, array: array)


FORMAT = 2
_FORMAT_FILE, _DOCUMENTS, _RESULTS, _UNFINISHED = "format.json", "documents", "results", "tmp-"
_DAY_SECONDS = 86_400
_RACY_NS = 2 * 10**9
"""A file that was written so shortly before it was read may have been written again within the same tick."""
_ROWS = 4096
_MOST_HELD = 24 << 20
"""So much (bytes) of results waits in memory before it is written down."""

Row = tuple[str, RunResult]
"""A result with the key of its job."""


@dataclass
class Store:
    """A store, as it was when it was opened, and what this run has added."""

    folder: Path
    lasting: bool = True
    """Whether it is there for more than this one run. Else it is a folder that nobody else can write into."""
    damaged: list[str] = field(default_factory=list)
    """Files that are not as they were written: what they held is made anew."""
    known: set[str] = field(default_factory=set)
    """Keys of the jobs whose results were there when it was opened."""
    _held: list[Row] = field(default_factory=list)
    _held_bytes: int = 0

    @classmethod
    def open(cls, folder: Path, *, lasting: bool = True) -> Store:
        """A store that is there, or a new one. Raises GoodputError where it cannot be used."""
        try:
            store = cls(folder, lasting)
            store._make()
            if lasting:  # only such a store has parts, and Arrow takes 60 MB
                store.known.update(key for _, part in store._whole(_RESULTS) for key in part_keys(part))
            return store
        except OSError as error:
            raise GoodputError(f"{folder}: the store cannot be used: {reason_of(error)}") from error

    def holds(self, uri: str) -> bool:
        """Whether a document is a file of the store itself, which may lie among the logs."""
        path = os.path.relpath(os.path.abspath(uri), self.folder)
        first = path.partition(os.sep)[0]
        return first in (_FORMAT_FILE, _DOCUMENTS, _RESULTS) or first.startswith(_UNFINISHED)

    def without_own(self, of_listing: Sequence[Diagnostic]) -> list[Diagnostic]:
        """What is said of listed files, but for those of the store itself."""
        others = ((one, tuple(name for name in one.where if not self.holds(name))) for one in of_listing)
        return [
            replace(one, where=where, count=one.count - len(one.where) + len(where))
            for one, where in others
            if where or not one.where
        ]

    def _whole(self, kind: str) -> Iterator[tuple[Path, bytes]]:
        """The parts that are as they were written, with what is in them; others are noted and put away."""
        for path in sorted((self.folder / kind).glob("*.parquet")):
            try:
                part = path.read_bytes()
            except OSError:
                self.damaged.append(f"{kind}/{path.name}")
                continue
            if path.stem == _hash(part):
                yield path, part
            else:
                self.damaged.append(f"{kind}/{path.name}")
                with suppress(
                    OSError
                ):  # a store that may only be read; else said once, and gone with what is left behind
                    os.replace(path, self.folder / f"{_UNFINISHED}damaged-{path.name}")

    def diagnostics(self) -> list[Diagnostic]:
        """What is wrong with the store."""
        names = sorted(set(self.damaged))
        message = "parts of the store that are damaged; what they held is read and accounted for again"
        return [Diagnostic.of("damaged_store_part", message, len(names), tuple(names))] if names else []

    def documents(self, listed: Sequence[Document], reader: str) -> dict[str, DocumentRow]:
        """By URI, what is known of documents that have not changed. reader: what a row must have been read with."""

        wanted = {one.uri: one for one in listed if one.version}
        rows: dict[str, DocumentRow] = {}
        for one in (one for _, part in self._whole(_DOCUMENTS) for one in read_documents(part)):
            document = wanted.get(one.uri)
            if document is not None and one.reader == reader and _same(document, one):
                rows[document.uri] = one.of(document)
        return rows

    def add_documents(self, rows: Sequence[DocumentRow], reader: str, read_ns: int) -> None:
        """Remember documents that were read. read_ns: an instant before that."""

        whole = [row for row in rows if row.problem is None and has_name(row.document)]
        if whole:
            _write_part(self.folder, _DOCUMENTS, part_of_documents(whole, reader, read_ns))

    def hold(self, rows: Sequence[Row]) -> None:
        """Take results that nobody else is to see: they wait in memory, where that is enough."""
        self._held += rows
        self._held_bytes += sum(result.size for _, result in rows)
        if self._held_bytes > _MOST_HELD:
            write_results(self.folder, self._held, lasting=False)
            self._held, self._held_bytes = [], 0

    def extents(self, keys: Mapping[str, Any]) -> list[tuple[str, int, int, int]]:
        """Job, number, start and end (ns) of the analysed runs of these jobs, in any order."""
        wanted = set(keys)
        passing = (result for _, rows in self._passing() for key, result in rows if key in wanted)
        found = [(one.job, one.run, one.start_ns, one.end_ns) for one in passing if one.reason is None]
        if self.lasting:
            found += (extent for _, part in self._whole(_RESULTS) for extent in read_extents(part, wanted))
        return found

    def results(self, keys: Mapping[str, Any]) -> Iterator[Row]:
        """The results of the runs of these jobs, in any order, each once. Raises GoodputError where a part was lost
        after it was found, and where two parts say different things of one job: that is a bug."""
        seen: dict[tuple[str, int], tuple[int, ...]] = {}
        wanted = set(keys)
        for path, rows in self._all(wanted):
            for key, result in rows:
                if key not in wanted:
                    continue
                same = _fingerprint(result)
                before = seen.setdefault((key, result.run), same)
                if before is same:
                    yield key, result
                elif before != same:
                    raise GoodputError(
                        f"{path}: store_inconsistent: two results of the job {result.job!r} differ; this is a bug: "
                        "please report it, and use another store"
                    )
        if lost := wanted - {key for key, _ in seen}:
            raise GoodputError(
                f"{self.folder}: results of {plural(len(lost), 'job')} were lost from the store while they were added "
                "up; run again, and look after the disk"
            )

    def _passing(self) -> Iterator[tuple[Path, Sequence[Row]]]:
        """What this run alone has made."""
        yield self.folder, self._held
        for path in [] if self.lasting else sorted((self.folder / _RESULTS).glob("*.pickle")):
            yield path, pickle.loads(path.read_bytes())  # our own, from a folder that is ours alone

    def _all(self, wanted: set[str]) -> Iterator[tuple[Path, Iterable[Row]]]:
        """The results of these jobs, among others."""
        yield from self._passing()
        if self.lasting:
            yield from ((path, read_part(part, wanted)) for path, part in self._whole(_RESULTS))

    def _make(self) -> None:
        """Make what is missing. Raises GoodputError for a store of another version."""
        for name in (_DOCUMENTS, _RESULTS):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        about = self.folder / _FORMAT_FILE
        said = _version(about.read_bytes()) if about.exists() else None
        if said is None:
            if about.exists():
                self.damaged.append(_FORMAT_FILE)
            _replace(self.folder, about, lambda path: path.write_bytes(_about(FORMAT)))
        elif said != FORMAT:
            raise GoodputError(f"{about}: this store is of another version of goodput; use another folder")
        for path in self.folder.glob(f"{_UNFINISHED}*"):
            if path.stat().st_mtime < time.time() - _DAY_SECONDS:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def write_results(folder: Path, rows: Sequence[Row], *, lasting: bool = True) -> None:
    """Put results into a store. lasting: it is there for more than this one run, and outlives a crash of the machine;
    what is not is written as Python has it, which takes neither Arrow nor time."""
    if not lasting:
        target = folder / _RESULTS / f"{uuid4().hex}.pickle"
        _replace(folder, target, lambda path: path.write_bytes(pickle.dumps(rows)), lasting)
        return

    for some in _whole_jobs(rows):
        _write_part(folder, _RESULTS, part_of(some))


def _whole_jobs(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """The rows in parts; those of a job in one: with half of a job's runs its key would be known."""
    some: list[Row] = []
    for _, of_job in groupby(rows, key=lambda row: row[0]):
        if len(some) >= _ROWS:
            yield some
            some = []
        some += of_job
    if some:
        yield some


def _version(about: bytes) -> int | None:
    """The version of a store; None where the file that says it is damaged. Version 1 had no check."""
    try:
        said = json.loads(about)
        version = int(said["format"])
        known = about == _about(FORMAT) or (
            version != FORMAT and said in ({"format": version}, json.loads(_about(version)))
        )
        return version if known else None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _about(version: int) -> bytes:
    return json.dumps({"format": version, "check": _hash(b"format %d" % version)[:16]}).encode() + b"\n"


def _hash(part: bytes) -> str:
    """What a part is called."""
    return blake2b(part, digest_size=16).hexdigest()


def _write_part(folder: Path, kind: str, part: bytes) -> None:
    _replace(folder, folder / kind / f"{_hash(part)}.parquet", lambda path: path.write_bytes(part))


def _replace(folder: Path, target: Path, write: Callable[[Path], object], lasting: bool = True) -> None:
    """Write a file whole or not at all. lasting: nor half of it after a crash of the machine. Raises GoodputError."""
    temporary = folder / f"{_UNFINISHED}{uuid4().hex}"
    try:
        write(temporary)
        if lasting:
            with open(temporary, "rb") as stream:
                os.fsync(stream.fileno())
        os.replace(temporary, target)
    except OSError as error:
        raise not_written(target, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _same(document: Document, read: ReadDocument) -> bool:
    settled = document.written_ns is None or read.read_ns - document.written_ns >= _RACY_NS
    return settled and read.version == document.version


def _fingerprint(result: RunResult) -> tuple[int, ...]:
    spans = result.spans
    return (
        result.start_ns, result.end_ns, result.events, result.attempts, len(result.disruptions), len(spans.start),
        int((spans.category.astype("i8") * (spans.end - spans.start)).sum()), int(spans.slowdown.sum()),
    )  # fmt: skip
