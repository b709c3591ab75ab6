"""The source for `gs://` and similar URIs: finds objects, fetches many at once, and returns their lines in order.

Objects are divided into parts, and several threads fetch parts ahead of the reader. Thousands of small objects and one
large one are the same work, and at most `HELD_PARTS` parts are in memory.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event
from typing import NamedTuple, TypeVar

from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import SourceError, UsageError
from goodput_cli.sources.base import Batch, ReadContext, SourceDocument, is_new, scheme_of
from goodput_cli.sources.blocks import is_packed, line_blocks, until_damaged
from goodput_cli.sources.layouts import DEVICE_HEAD, has_only_samples
from goodput_cli.sources.object_store import (
    DeniedError,
    MissingError,
    ObjectStore,
    StoredObject,
    StoreRefusedError,
    choose,
    fixed_part,
    has_magic,
)
from goodput_cli.sources.parts import ENDS_BYTES, Member, candidates, ends_of_batches
from goodput_cli.sources.remote import RetriesExhaustedError, RetryPolicy, TransientError, read_ahead, try_again

Result = TypeVar("Result")

WORKERS = 16
PART_BYTES = 4 << 20
HELD_PARTS = 24
"""Maximum number of parts being fetched or waiting to be read: 96 MiB."""
PATIENCE = RetryPolicy(first=0.5, longest=30.0, tries=5)
MAX_REPLACED = 3
"""Number of times an object may be replaced while it is read; more is an error."""

_STORES = {
    "gs": "goodput_cli.sources.gcs:GoogleStore",
    "s3": "goodput_cli.sources.s3:AmazonStore",
}


class Part(NamedTuple):
    """Bytes `start` up to `end` of an object."""

    wanted: StoredObject
    start: int
    end: int


class _ReplacedError(Exception):
    """Raised if the listed version was replaced; args: the newer version, number of bytes read before."""


class BucketSource:
    """Source of `gs://bucket/object`, `gs://bucket/folder`, `gs://bucket/prefix` and `gs://bucket/glob*`; s3://
    alike."""

    def __init__(self) -> None:
        self._stores: dict[str, ObjectStore] = {}  # one login is enough for all reads

    def read(self, uri: str, context: ReadContext) -> Iterator[Batch]:
        """Read as in `Source.read`. Raises SourceError for missing or forbidden objects, or after network failures.

        An object that changes during reading is a diagnostic: `object_replaced`, `object_deleted`.
        """
        return (batch for member in self.members(uri, context) for batch in member.read())

    def members(self, uri: str, context: ReadContext) -> list[Member]:
        """Return the objects (see `HasMembers`): those that may be parts of a log one by one, the others together."""
        place, path = self._open_bucket(uri, context)
        chosen = choose(uri, path, place.listed(uri, path), place.samples)
        wanted = [one for one in chosen if is_new(place.identity(one), context)]
        context.expect(sum(one.size for one in wanted))
        parts = {name for one in candidates([place.uri(one.name) for one in wanted]) for name in one.orders[0]}
        others = [one for one in wanted if place.uri(one.name) not in parts]
        found = [
            Member(name, partial(place.again().batches, [one], alone=not others), partial(place.ends, one))
            for one in wanted if (name := place.uri(one.name)) in parts
        ]  # fmt: skip
        return [Member(uri, partial(place.batches, others), None), *found] if others or not found else found

    def documents(self, uri: str, context: ReadContext) -> list[SourceDocument]:
        """Return the objects (see `Listing`), each in its current version."""
        place, path = self._open_bucket(uri, context)
        chosen = choose(uri, path, place.listed(uri, path), place.samples)
        return [
            SourceDocument(uri, uri, one.size, one.version, identity=place.identity(one), apart=True)
            for one, uri in ((one, place.uri(one.name)) for one in chosen)
        ]

    def read_document(self, document: SourceDocument, context: ReadContext) -> Iterator[Batch]:
        """Read one object (see `Listing`)."""
        place, name = self._open_bucket(document.uri, context)
        return place.batches([StoredObject(name, document.size or 0, document.version)])

    def member(self, document: SourceDocument, context: ReadContext) -> Member:
        """Return one object (see `HasMembers`)."""
        place, name = self._open_bucket(document.uri, context)
        wanted = StoredObject(name, document.size or 0, document.version)
        return Member(document.name, partial(place.batches, [wanted]), partial(place.ends, wanted))

    def _open_bucket(self, uri: str, context: ReadContext) -> tuple[_BucketReader, str]:
        """Return the bucket of a URI, and the path in it."""
        scheme = scheme_of(uri)
        bucket, _, path = uri.partition("://")[2].partition("/")
        if not bucket:
            raise UsageError(f"{uri}: no bucket name", tip=f"use {scheme}://BUCKET/OBJECT, a folder or a glob")
        if has_magic(bucket):
            raise UsageError(f"{uri}: a bucket name cannot contain a glob; only the part after it can")
        if scheme not in self._stores:
            module, name = _STORES[scheme].split(":")  # the client is imported only here
            self._stores[scheme] = getattr(importlib.import_module(module), name)()
        return _BucketReader(self._stores[scheme], scheme, bucket, Event(), context), path


@dataclass(frozen=True)
class _BucketReader:
    """A bucket of a store, and the lines of its objects, fetched ahead; errors are messages that name the object."""

    store: ObjectStore
    scheme: str
    bucket: str
    stop: Event
    context: ReadContext
    deleted: list[str] = field(default_factory=list)
    """Objects that were deleted before any of their bytes were read."""

    def again(self) -> _BucketReader:
        """Return a reader for other objects: reading stops with the last object of each."""
        return replace(self, stop=Event(), deleted=[])

    def uri(self, name: str) -> str:
        return f"{self.scheme}://{self.bucket}/{name}"

    def identity(self, wanted: StoredObject) -> tuple[str, ...]:
        return (self.scheme, self.bucket, wanted.name, wanted.version)

    def listed(self, uri: str, path: str) -> list[StoredObject]:
        """Return all objects that begin with the fixed part of the path, or only the named object if listing is
        forbidden."""
        try:
            return list(self._pages(uri, fixed_part(path)))
        except DeniedError as error:
            single = None
            if path and not has_magic(path):
                with suppress(DeniedError, MissingError):
                    single = self._newest(path)
            if single is None:
                raise SourceError(f"{uri}: {_forbidden(error, self.store.list_permission)}") from error
            return [single]
        except MissingError as error:
            raise SourceError(f"{uri}: no such bucket {self.bucket}", tip="check the name and the project") from error

    def _pages(self, uri: str, prefix: str) -> Iterator[StoredObject]:
        token: str | None = None
        while True:
            objects, token = self._persist(uri, partial(self.store.list_page, self.bucket, prefix, token))
            yield from objects
            if not token:
                return

    def samples(self, objects: list[StoredObject]) -> set[str]:
        """Return the names of objects that contain only samples of accelerators."""
        heads = [Part(one, 0, min(one.size, DEVICE_HEAD)) for one in objects if one.size]
        fetched = read_ahead(heads, self._get, Event(), WORKERS, HELD_PARTS)
        found = set()
        for head, future in zip(heads, fetched, strict=True):
            with suppress(SourceError, MissingError):  # unreadable objects are reported if they are wanted
                found.update([head.wanted.name] if has_only_samples(future.result()) else [])
        return found

    def _newest(self, name: str) -> StoredObject | None:
        return self._persist(self.uri(name), lambda: self.store.newest(self.bucket, name))

    def _get(self, part: Part) -> bytes:
        """Return the bytes of a part. Raises SourceError, or MissingError if the version was replaced."""
        uri = self.uri(part.wanted.name)

        def work() -> bytes:
            data = self.store.get(self.bucket, *part)
            if len(data) != part.end - part.start:
                raise TransientError(f"received {len(data)} bytes instead of {part.end - part.start}")
            return data

        try:
            return self._persist(uri, work)
        except DeniedError as error:
            raise SourceError(f"{uri}: {_forbidden(error, self.store.get_permission)}") from error

    def _persist(self, uri: str, work: Callable[[], Result]) -> Result:
        try:
            return try_again(work, PATIENCE, self.stop, lambda _, _seconds, what: self.context.wait(what))
        except RetriesExhaustedError as error:
            raise SourceError(f"{uri}: {error}", tip="check the network and try again later") from error
        except StoreRefusedError as error:
            raise SourceError(f"{uri}: the server rejected the request: {error}") from error

    def ends(self, wanted: StoredObject) -> tuple[bytes, bytes]:
        """Return the first and last bytes of an object, unpacked; none if it cannot be read."""
        size = wanted.size
        try:
            head = self._get(Part(wanted, 0, min(size, ENDS_BYTES))) if size else b""
            if not is_packed(head):
                return head, self._get(Part(wanted, max(size - ENDS_BYTES, 0), size)) if size else b""
            chunks = until_damaged(wanted.name, map(self._get, _parts(wanted)), lambda _: None)
            return ends_of_batches(line_blocks(wanted.name, chunks))
        except (SourceError, MissingError):  # reported when its lines are read
            return b"", b""

    def batches(self, wanted: Sequence[StoredObject], *, alone: bool = True) -> Iterator[Batch]:
        """Yield all lines of all objects, in the given order. alone: True if no other objects are read."""
        parts = (part for one in wanted for part in _parts(one))
        fetched = read_ahead(parts, self._get, self.stop, WORKERS, HELD_PARTS)
        unread = {self.identity(one) for one in wanted}
        try:
            for one in wanted:
                taken = (next(fetched).result for _ in _parts(one))
                yield from self._object(one, taken)
                unread.discard(self.identity(one))
        finally:
            fetched.close()
            self.context.seen.difference_update(unread)  # so that a follower of the bucket requests them again
        if alone and wanted and len(self.deleted) == len(wanted):
            raise SourceError(f"{self.deleted[0]}: was deleted before it could be read, and there are no other logs")

    def _object(self, wanted: StoredObject, ahead: Iterator[Callable[[], bytes]]) -> Iterator[Batch]:
        """Yield the lines of one object, in its current version; all parts of `ahead` are consumed."""
        name, report = self.uri(wanted.name), self.context.report
        replaced = 0
        while True:
            try:
                chunks = until_damaged(name, self._chunks(name, wanted, ahead), report)
                yield from line_blocks(name, chunks, longest_mib=self.context.wanted.longest_line, report=report)
                for _ in ahead:  # the parts after a damaged position
                    pass
                return
            except _ReplacedError as change:
                for _ in ahead:  # the remaining parts of the old version
                    pass
                replaced += 1
                wanted = self._newer(name, change, replaced)
                ahead = (partial(self._get, part) for part in _parts(wanted))

    def _chunks(self, name: str, wanted: StoredObject, ahead: Iterator[Callable[[], bytes]]) -> Iterator[bytes]:
        before = 0
        for result in ahead:
            try:
                data = result()
            except MissingError as error:
                newer = self._newest(wanted.name)
                if newer is not None:
                    raise _ReplacedError(newer, before) from error
                what = "the part that was read counts, the rest is lost" if before else "its lines are missing"
                message = f"{name}: was deleted while the bucket was read; {what}"
                self.context.report(Diagnostic.of("object_deleted", message, 1, (name,)))
                self.deleted.extend([] if before else [name])
                return
            self.context.took(data)
            before += len(data)
            yield data

    def _newer(self, name: str, change: _ReplacedError, times: int) -> StoredObject:
        newer, before = change.args
        if times > MAX_REPLACED:
            raise SourceError(f"{name}: is replaced faster than it can be read", tip="copy it and read the copy")
        self.context.seen.add(self.identity(newer))
        if before:  # otherwise it is as if the bucket had been listed a moment later
            message = f"{name}: was replaced while it was read; the lines of both versions count, each event once"
            self.context.report(Diagnostic.of("object_replaced", message, 1, (name,)))
        assert isinstance(newer, StoredObject)
        return newer


def _parts(wanted: StoredObject) -> Iterator[Part]:
    for start in range(0, wanted.size, PART_BYTES):
        yield Part(wanted, start, min(start + PART_BYTES, wanted.size))


def _forbidden(error: DeniedError, permission: str) -> str:
    return f"permission denied ({error}); ask for the permission {permission}, or use an account that has it"
