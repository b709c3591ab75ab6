"""The store of results: what was read and accounted for once is not done again.

It only grows, and everything in it is named by what it was made of, so that several runs may use it at once and none
needs a lock: equal keys have equal contents. Every file is written beside its place and renamed.

    STORE/format.json            {"format": 1}
    STORE/documents/*.parquet    a row a document that was read
    STORE/results/*.parquet      a row a run
    STORE/results/*.pickle       those of a store that is there for one run alone
    STORE/tmp-*                  what is not whole yet
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import GoodputError
from goodput_cli.fleet.passes.work import DocumentRow
from goodput_cli.fleet.store.results import RunResult
from goodput_cli.sources.base import Document

FORMAT = 1
_FORMAT_FILE, _DOCUMENTS, _RESULTS, _UNFINISHED = "format.json", "documents", "results", "tmp-"
_DAY_SECONDS = 86_400
_RACY_NS = 2 * 10**9
"""A file that was written so shortly before it was read may have been written again within the same tick."""
_ROWS = 4096
_MOST_HELD = 24 << 20
"""So much (bytes) of results waits in memory before it is written down."""

Row = tuple[bytes, RunResult]
"""A result with the key of its job."""


@dataclass
class Store:
    """A store, as it was when it was opened, and what this run has added."""

    folder: Path
    lasting: bool = True
    """Whether it is there for more than this one run. Else it is a folder that nobody else can write into."""
    damaged: list[str] = field(default_factory=list)
    """Parts that cannot be read: what they held is made anew."""
    known: set[bytes] = field(default_factory=set)
    """Keys of the jobs whose results were there when it was opened."""
    _held: list[Row] = field(default_factory=list)
    _held_bytes: int = 0

    @classmethod
    def open(cls, folder: Path, *, lasting: bool = True) -> Store:
        """A store that is there, or a new one. Raises GoodputError where it cannot be used."""
        try:
            _make(folder)
            store = cls(folder, lasting)
            for path in store.parts():
                store.known.update(store.readable(path, _parts().part_keys, []))
            return store
        except OSError as error:
            raise GoodputError(f"{folder}: the store cannot be used: {error.strerror or error}") from error

    def parts(self) -> list[Path]:
        """The parts with results."""
        return sorted((self.folder / _RESULTS).glob("*.parquet"))

    def holds(self, uri: str) -> bool:
        """Whether a document is a file of the store itself, which may lie among the logs."""
        path = os.path.relpath(os.path.abspath(uri), self.folder)
        first = path.partition(os.sep)[0]
        return first in (_FORMAT_FILE, _DOCUMENTS, _RESULTS) or first.startswith(_UNFINISHED)

    def readable(self, path: Path, read: Callable[[Path], Any], otherwise: Any) -> Any:
        """What is read of a part; `otherwise` where it is damaged, which is noted."""
        try:
            return read(path)
        except (OSError, ValueError, KeyError, TypeError):  # pyarrow's errors are ValueErrors and OSErrors
            self.damaged.append(f"{path.parent.name}/{path.name}")
            return otherwise

    def diagnostics(self) -> list[Diagnostic]:
        """What is wrong with the store."""
        names = sorted(set(self.damaged))
        message = "parts of the store that cannot be read; what they held is read and accounted for again"
        return [Diagnostic.of("damaged_store_part", message, len(names), tuple(names))] if names else []

    def documents(self, listed: Sequence[Document], reader: str) -> dict[str, DocumentRow]:
        """By URI, what is known of documents that have not changed. reader: what a row must have been read with."""
        from goodput_cli.fleet.store.documents import document_row, read_documents

        wanted = {one.uri: one for one in listed if one.version}
        rows: dict[str, DocumentRow] = {}
        for path in sorted((self.folder / _DOCUMENTS).glob("*.parquet")):
            for row in self.readable(path, read_documents, []):
                document = wanted.get(row["uri"])
                if document is not None and row["reader"] == reader and _same(document, row):
                    rows[document.uri] = document_row(document, row)
        return rows

    def add_documents(self, rows: Sequence[DocumentRow], reader: str, read_ns: int) -> None:
        """Remember documents that were read. read_ns: an instant before that."""
        from goodput_cli.fleet.store.documents import has_name, write_documents

        whole = [row for row in rows if row.problem is None and has_name(row.document)]
        if whole:
            _write_part(self.folder, _DOCUMENTS, lambda path: write_documents(path, whole, reader, read_ns))

    def hold(self, rows: Sequence[Row]) -> None:
        """Take results that nobody else is to see: they wait in memory, where that is enough."""
        self._held += rows
        self._held_bytes += sum(result.size for _, result in rows)
        if self._held_bytes > _MOST_HELD:
            write_results(self.folder, self._held, lasting=False)
            self._held, self._held_bytes = [], 0

    def extents(self, keys: Mapping[bytes, Any]) -> list[tuple[str, int, int, int]]:
        """Job, number, start and end (ns) of the analysed runs of these jobs, in any order."""
        wanted = set(keys)
        passing = (result for _, rows in self._passing() for key, result in rows if key in wanted)
        found = [(one.job, one.run, one.start_ns, one.end_ns) for one in passing if one.reason is None]
        for path in self.parts():
            found += self.readable(path, lambda path: _parts().read_extents(path, wanted), [])
        return found

    def results(self, keys: Mapping[bytes, Any]) -> Iterator[Row]:
        """The results of the runs of these jobs, in any order, each once. Raises GoodputError where two parts say
        different things of one job: that is a bug."""
        seen: dict[tuple[bytes, int], tuple[int, ...]] = {}
        wanted = set(keys)
        for path, rows in chain(self._passing(), self._lasting(wanted)):
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

    def _passing(self) -> Iterator[tuple[Path, Sequence[Row]]]:
        """What this run alone has made."""
        yield self.folder, self._held
        for path in [] if self.lasting else sorted((self.folder / _RESULTS).glob("*.pickle")):
            yield path, pickle.loads(path.read_bytes())  # our own, from a folder that is ours alone

    def _lasting(self, wanted: set[bytes]) -> Iterator[tuple[Path, Sequence[Row]]]:
        for path in self.parts():
            yield path, self.readable(path, lambda path: list(_parts().read_part(path, wanted)), [])


def write_results(folder: Path, rows: Sequence[Row], *, lasting: bool = True) -> None:
    """Put results into a store. lasting: it is there for more than this one run, and outlives a crash of the machine;
    what is not is written as Python has it, which takes neither Arrow nor time."""
    if not lasting:
        target = folder / _RESULTS / f"{uuid4().hex}.pickle"
        _replace(folder, target, lambda path: path.write_bytes(pickle.dumps(rows)), lasting)
        return
    for first in range(0, len(rows), _ROWS):
        some = rows[first : first + _ROWS]
        _write_part(folder, _RESULTS, lambda path, some=some: _parts().write_part(path, some))  # type: ignore[misc]


def _parts() -> ModuleType:
    """How parts are written and read; few fleets in one process have some, and Arrow takes 60 MB."""
    from goodput_cli.fleet.store import parts

    return parts


def _make(folder: Path) -> None:
    """Make the folders that are missing. Raises GoodputError for a store of another version."""
    for name in (_DOCUMENTS, _RESULTS):
        (folder / name).mkdir(parents=True, exist_ok=True)
    about = folder / _FORMAT_FILE
    if not about.exists():
        _replace(folder, about, lambda path: path.write_text(json.dumps({"format": FORMAT}) + "\n"))
    try:
        version = json.loads(about.read_text())["format"]
    except (ValueError, KeyError, TypeError):
        version = None
    if version != FORMAT:
        raise GoodputError(f"{about}: this store is of another version of goodput; use another folder")
    for path in folder.glob(f"{_UNFINISHED}*"):
        if path.stat().st_mtime < time.time() - _DAY_SECONDS:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _write_part(folder: Path, kind: str, write: Callable[[Path], object]) -> None:
    _replace(folder, folder / kind / f"{uuid4().hex}.parquet", write)


def _replace(folder: Path, target: Path, write: Callable[[Path], object], lasting: bool = True) -> None:
    """Write a file whole or not at all. lasting: nor half of it after a crash of the machine."""
    temporary = folder / f"{_UNFINISHED}{uuid4().hex}"
    try:
        write(temporary)
        if lasting:
            with open(temporary, "rb") as stream:
                os.fsync(stream.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _same(document: Document, row: Mapping[str, Any]) -> bool:
    settled = document.written_ns is None or row["about"]["read_ns"] - document.written_ns >= _RACY_NS
    return settled and bool(row["version"] == document.version)


def _fingerprint(result: RunResult) -> tuple[int, ...]:
    spans = result.spans
    return (
        result.start_ns, result.end_ns, result.events, result.attempts, len(result.disruptions), len(spans.start),
        int((spans.category.astype("i8") * (spans.end - spans.start)).sum()), int(spans.slowdown.sum()),
    )  # fmt: skip
