"""The store of results, which avoids reading and accounting for the same data again.

It only grows, and everything in it is named by a hash of its inputs. Several runs may therefore use it at once without
a lock: equal keys have equal contents. Every file is written to a temporary name and renamed.

    STORE/format.json              {"format": 2, "check": …}
    STORE/documents/HASH.parquet   one row per document that was read
    STORE/results/HASH.parquet     one row per run
    STORE/results/*.pickle         results of a store that exists for one run alone
    STORE/tmp-*                    incomplete files, or files about to be deleted

Disks and networks lose bits silently: a part is named by the hash of its contents, and used only if the hash matches.
Otherwise it is moved away and reported, and its contents are read and accounted for again.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import uuid4

from goodput_cli.accounting.options import RULES
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import GoodputError, error_from_os, not_written
from goodput_cli.fleet.passes.work import DocumentRow
from goodput_cli.fleet.results import RunResult
from goodput_cli.sources.base import SourceDocument
from goodput_cli.vocabulary.text import plural

FORMAT = 2
_FORMAT_FILE, _DOCUMENTS, _RESULTS, _UNFINISHED = "format.json", "documents", "results", "tmp-"
_DAY_SECONDS = 86_400
_RACY_NS = 2 * 10**9
"""A file that was written so shortly before it was read may have been written again within the same tick."""
_ROWS = 4096
_MOST_HELD = 24 << 20
"""Size of results (bytes) that wait in memory before they are written."""

Row = tuple[str, RunResult]
"""A result with the key of its job."""


@dataclass
class Store:
    """A store, as it was when it was opened, and what this run has added."""

    folder: Path
    lasting: bool = True
    """True if it exists for more than this one run. Otherwise it is a folder that others cannot write into."""
    damaged: list[str] = field(default_factory=list)
    """Files that changed after they were written; their contents are made again."""
    known: set[str] = field(default_factory=set)
    """Keys of the jobs whose results were there when it was opened."""
    former: dict[str, int] = field(default_factory=dict)
    """Jobs with results of other rules only, and the newest version of these."""
    _held: list[Row] = field(default_factory=list)
    _held_bytes: int = 0

    @classmethod
    def open(cls, folder: Path, *, lasting: bool = True) -> Store:
        """A store that is there, or a new one. Raises GoodputError where it cannot be used."""
        try:
            store = cls(folder, lasting)
            store._make()
            if lasting:  # only such a store has parts, and Arrow takes 60 MB
                store._look()
            return store
        except OSError as error:
            raise error_from_os(f"{folder}: the store cannot be used", error) from error

    def _look(self) -> None:
        """Note what is there."""
        from goodput_cli.fleet.parts import part_keys

        anew = set()
        for key, job, rules in (one for _, part in self._intact_parts(_RESULTS) for one in part_keys(part)):
            self.known.add(key)
            if rules == RULES:
                anew.add(job)
            else:
                self.former[job] = max(rules, self.former.get(job, 0))
        self.former = {job: rules for job, rules in self.former.items() if job not in anew}

    def is_own_file(self, uri: str) -> bool:
        """Return True if a document is a file of the store itself, which may be among the logs."""
        path = os.path.relpath(os.path.abspath(uri), self.folder)
        first = path.partition(os.sep)[0]
        return first in (_FORMAT_FILE, _DOCUMENTS, _RESULTS) or first.startswith(_UNFINISHED)

    def without_own(self, of_listing: Sequence[Diagnostic]) -> list[Diagnostic]:
        """Return the warnings about listed files, without those of the store itself."""
        others = ((one, tuple(name for name in one.where if not self.is_own_file(name))) for one in of_listing)
        return [
            replace(one, where=where, count=one.count - len(one.where) + len(where))
            for one, where in others
            if where or not one.where
        ]

    def _intact_parts(self, kind: str) -> Iterator[tuple[Path, bytes]]:
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
                with suppress(OSError):  # a read-only store; otherwise the file is reported once and deleted
                    os.replace(path, self.folder / f"{_UNFINISHED}damaged-{path.name}")

    def diagnostics(self, jobs: Iterable[str]) -> Iterator[Diagnostic]:
        """Yield warnings about the store, and about jobs with results of other rules. jobs: those of this report."""
        names = sorted(set(self.damaged))
        if names:
            message = "damaged parts of the store; their logs are read again"
            yield Diagnostic.of("damaged_store_part", message, len(names), tuple(names))
        former = {job: self.former[job] for job in jobs if job in self.former}
        if former:
            versions = " and ".join(map(str, sorted(set(former.values()))))
            message = (
                f"earlier reports from this store used rules of version {versions} for {plural(len(former), 'job')}; "
                f"this one uses version {RULES}. Figures may differ for that reason alone"
            )
            yield Diagnostic.of("rules_differ", message, len(former), tuple(sorted(former)))

    def documents(self, listed: Sequence[SourceDocument], reader: str) -> dict[str, DocumentRow]:
        """Return the rows of unchanged documents, by URI. reader: the reader hash that a row must have."""
        from goodput_cli.fleet.parts import read_documents

        wanted = {one.uri: one for one in listed if one.version}
        rows: dict[str, DocumentRow] = {}
        for one in (one for _, part in self._intact_parts(_DOCUMENTS) for one in read_documents(part)):
            document = wanted.get(one.uri)
            if document is None or one.reader != reader or one.version != document.version:
                continue
            if document.written_ns is None or one.read_ns - document.written_ns >= _RACY_NS:
                rows[document.uri] = replace(one.row, document=document)
        return rows

    def add_documents(self, rows: Sequence[DocumentRow], reader: str, read_ns: int) -> None:
        """Store documents that were read. read_ns: a time before that."""
        from goodput_cli.fleet.parts import has_name, part_of_documents

        whole = [row for row in rows if row.problem is None and has_name(row.document)]
        if whole:
            _write_part(self.folder, _DOCUMENTS, part_of_documents(whole, reader, read_ns))

    def keep(self, rows: Sequence[Row]) -> None:
        """Take results that only this run uses: they wait in memory if that is enough."""
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
            from goodput_cli.fleet.parts import read_extents

            found += (extent for _, part in self._intact_parts(_RESULTS) for extent in read_extents(part, wanted))
        return found

    def results(self, keys: Mapping[str, Any]) -> Iterator[Row]:
        """Yield the results of the runs of these jobs, in any order, each once. Raises GoodputError if a part was lost
        after it was found, and if two parts differ about one job, which is a bug."""
        seen: dict[tuple[str, int], tuple[int, ...]] = {}
        wanted = set(keys)
        for path, rows in self._results_of(wanted):
            for key, result in rows:
                if key not in wanted:
                    continue
                same = _fingerprint(result)
                before = seen.setdefault((key, result.run), same)
                if before is same:
                    yield key, result
                elif before != same:
                    raise GoodputError(
                        f"{path}: store_inconsistent: two results of the job {result.job!r} differ. This is a bug: "
                        "please report it and use another store"
                    )
        if lost := wanted - {key for key, _ in seen}:
            raise GoodputError(
                f"{self.folder}: results of {plural(len(lost), 'job')} disappeared from the store during the report. "
                "Run the command again and check the disk"
            )

    def _passing(self) -> Iterator[tuple[Path, Sequence[Row]]]:
        """Yield the results that only this run has made."""
        yield self.folder, self._held
        for path in [] if self.lasting else sorted((self.folder / _RESULTS).glob("*.pickle")):
            yield path, pickle.loads(path.read_bytes())  # our own, from a folder that is ours alone

    def _results_of(self, wanted: set[str]) -> Iterator[tuple[Path, Iterable[Row]]]:
        """The results of these jobs, among others."""
        yield from self._passing()
        if self.lasting:
            from goodput_cli.fleet.parts import read_part

            yield from ((path, read_part(part, wanted)) for path, part in self._intact_parts(_RESULTS))

    def _make(self) -> None:
        """Make what is missing. Raises GoodputError for a store of another version."""
        for name in (_DOCUMENTS, _RESULTS):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        about = self.folder / _FORMAT_FILE
        said = _version(about.read_bytes()) if about.exists() else None
        if said is None:
            if about.exists():
                self.damaged.append(_FORMAT_FILE)
            _replace(self.folder, about, _about(FORMAT))
        elif said != FORMAT:
            raise GoodputError(f"{about}: this store was made by another version of goodput", tip="use another folder")
        for path in self.folder.glob(f"{_UNFINISHED}*"):
            if path.stat().st_mtime < time.time() - _DAY_SECONDS:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def write_results(folder: Path, rows: Sequence[Row], *, lasting: bool = True) -> None:
    """Put results into a store. lasting: it is there for more than this one run, and outlives a crash of the machine;
    what is not is written as Python has it, which takes neither Arrow nor time."""
    if not lasting:
        _replace(folder, folder / _RESULTS / f"{uuid4().hex}.pickle", pickle.dumps(rows), lasting=False)
        return
    from goodput_cli.fleet.parts import part_of

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
    """Return the version of a store; None if its file is damaged. Version 1 had no check."""
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
    """Return the name of a part."""
    return blake2b(part, digest_size=16).hexdigest()


def _write_part(folder: Path, kind: str, part: bytes) -> None:
    _replace(folder, folder / kind / f"{_hash(part)}.parquet", part)


def _replace(folder: Path, target: Path, content: bytes, *, lasting: bool = True) -> None:
    """Write a file whole or not at all. lasting: nor half of it after a crash of the machine. Raises GoodputError."""
    temporary = folder / f"{_UNFINISHED}{uuid4().hex}"
    try:
        temporary.write_bytes(content)
        if lasting:
            with open(temporary, "rb") as stream:
                os.fsync(stream.fileno())
        os.replace(temporary, target)
    except OSError as error:
        raise not_written(target, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _fingerprint(result: RunResult) -> tuple[int, ...]:
    spans = result.spans
    return (
        result.start_ns, result.end_ns, result.events, result.attempts, len(result.disruptions), len(spans.start),
        int((spans.category.astype("i8") * (spans.end - spans.start)).sum()), int(spans.slowdown.sum()),
    )  # fmt: skip
