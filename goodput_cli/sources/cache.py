"""Cache of records in the user's cache folder: one file per query, replaced as a whole.

A file is a sequence of gzip members: the first contains a header line, each other one some records, one per line. Files
are only replaced by renaming, so that a reader sees an old or a new state and needs no lock. Writers take a lock during
the replacement, and add to the records that another process may have written since.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
import uuid
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import copyfileobj
from typing import IO

import orjson

from goodput_cli.sources.base import Record
from goodput_cli.whole_file import lock_folder, replace_file

FOLDER_VARIABLE = "GOODPUT_CACHE_DIR"
VERSION = 1
LEVEL = 1  # logs compress ten to one at any level, and this one costs least
_HEADER_BYTES = 1 << 16
_BLOCK_BYTES = 1 << 20


class DamagedCacheError(Exception):
    """Raised for a file that is not a cache file of this version, or that is damaged."""


@dataclass(frozen=True)
class CacheCoverage:
    """Coverage of a cache: every record from `start_ns` (None: the beginning) to `newest_ns`, ns since 1970 UTC, that
    the server had at `fetched_ns`."""

    start_ns: int | None
    newest_ns: int
    fetched_ns: int

    def joined(self, other: CacheCoverage) -> CacheCoverage:
        """Return the certain coverage of two caches together."""
        starts = (self.start_ns, other.start_ns)
        return CacheCoverage(
            None if None in starts else min(start for start in starts if start is not None),
            max(self.newest_ns, other.newest_ns),
            min(self.fetched_ns, other.fetched_ns),
        )


@dataclass(frozen=True)
class CachedEntries:
    """The state of a cache file when it was opened. state: changes with every replacement."""

    coverage: CacheCoverage
    state: str
    offset: int


def identity(record: Record) -> tuple[str, str, str]:
    """Return the identity that copies of an entry share."""
    return record["logName"], record["timestamp"], record["insertId"]


def cache_folder() -> Path:
    """Return `$GOODPUT_CACHE_DIR`, or `goodput` in the user's cache folder."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "goodput"


class CacheFile:
    """The cache of one query. Every method raises OSError if the folder cannot be used."""

    def __init__(self, kind: str, key: Mapping[str, str | None]) -> None:
        self._key = dict(key)
        digest = hashlib.sha256(orjson.dumps(self._key, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]
        self.path = cache_folder() / kind / f"{digest}.jsonl.gz"

    def load(self) -> CachedEntries | None:
        """Return the header; None if there are no usable entries."""
        try:
            with open(self.path, "rb") as stream:
                return self._header(stream)
        except (FileNotFoundError, DamagedCacheError):
            return None

    def _header(self, stream: IO[bytes]) -> CachedEntries:
        head = stream.read(_HEADER_BYTES)
        unpacker = zlib.decompressobj(wbits=31)
        try:
            header = orjson.loads(unpacker.decompress(head))
            if header["version"] != VERSION or header["key"] != self._key:
                raise DamagedCacheError
            return CachedEntries(
                CacheCoverage(**header["coverage"]), header["state"], len(head) - len(unpacker.unused_data)
            )
        except (zlib.error, ValueError, KeyError, TypeError) as error:
            raise DamagedCacheError from error

    def records(self) -> Iterator[list[Record]]:
        """Yield all cached records, in lists. Raises DamagedCacheError if some cannot be read."""
        try:
            with open(self.path, "rb") as stream:
                stream.seek(self._header(stream).offset)
                yield from _read_members(stream)
        except (EOFError, gzip.BadGzipFile, zlib.error, ValueError) as error:
            raise DamagedCacheError from error

    def discard(self) -> None:
        """Delete the cached entries."""
        self.path.unlink(missing_ok=True)

    def writer(self, before: CachedEntries | None) -> CacheWriter:
        """Return a writer that adds records to the state `before`."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return CacheWriter(self, before)

    def pack_header(self, coverage: CacheCoverage) -> bytes:
        """Return the first member of a file."""
        header = {"version": VERSION, "key": self._key, "coverage": asdict(coverage), "state": uuid.uuid4().hex}
        return gzip.compress(orjson.dumps(header) + b"\n", LEVEL)


class CacheWriter:
    """Writer of records to a temporary file; `commit` adds all of them to the cache at once."""

    def __init__(self, cache: CacheFile, before: CachedEntries | None) -> None:
        self._cache = cache
        self._before = before
        self._stream = tempfile.TemporaryFile(dir=cache.path.parent)  # noqa: SIM115 - closed by commit
        self._whole = 0

    def add(self, records: list[Record]) -> None:
        """Add records. An interrupted call adds none of them."""
        if not records:
            return
        self._stream.seek(self._whole)
        self._stream.write(gzip.compress(b"\n".join(map(orjson.dumps, records)) + b"\n", LEVEL))
        self._whole = self._stream.tell()

    def close(self) -> None:
        """Drop the records that were added and not committed."""
        self._stream.close()

    def commit(self, coverage: CacheCoverage) -> None:
        """Replace the cache by its entries and the added records; `coverage` is that of both together."""
        with lock_folder(self._cache.path.parent):
            now = self._cache.load()
            if now is not None and (self._before is None or now.state != self._before.state):
                self._leave_out_known()  # another process has written in the meantime
                coverage = coverage.joined(now.coverage)
            elif now is None and self._before is not None:
                return  # the cache was cleared: the new records alone would be incomplete
            self._replace(coverage, now)
        self.close()

    def _leave_out_known(self) -> None:
        known = {identity(record) for records in self._cache.records() for record in records}
        added = [record for records in self._added() for record in records if identity(record) not in known]
        self._stream.seek(0)
        self._stream.truncate()
        self._whole = 0
        self.add(added)

    def _added(self) -> Iterator[list[Record]]:
        self._stream.truncate(self._whole)
        self._stream.seek(0)
        return _read_members(self._stream)

    def _replace(self, coverage: CacheCoverage, now: CachedEntries | None) -> None:
        path = self._cache.path
        with replace_file(path, durable=False) as target:
            target.write(self._cache.pack_header(coverage))
            if now is not None:
                with open(path, "rb") as before:
                    before.seek(now.offset)
                    copyfileobj(before, target, _BLOCK_BYTES)
            self._stream.truncate(self._whole)
            self._stream.seek(0)
            copyfileobj(self._stream, target, _BLOCK_BYTES)


def _read_members(stream: IO[bytes]) -> Iterator[list[Record]]:
    with gzip.GzipFile(fileobj=stream) as lines:
        while block := lines.readlines(_BLOCK_BYTES):
            yield orjson.loads(b"".join((b"[", b",".join(block), b"]")))
