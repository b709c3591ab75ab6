"""Sources that grow: each poll returns only the data since the previous one.

Files are followed byte by byte, also after renaming; buckets object by object; Cloud Logging entry by entry, including
late ones.

`FollowedFile` returns the new data of one growing file, whole lines only, and detects that it was rewritten.
"""

from __future__ import annotations

import codecs
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from goodput_cli.errors import SourceError, UsageError
from goodput_cli.sources.base import (
    FILE_SCHEME,
    Batch,
    RawBatch,
    ReadContext,
    RecordBatch,
    scheme_of,
    source_for,
    without_password,
)
from goodput_cli.sources.blocks import (
    BLOCK_BYTES,
    GZIP_MAGIC,
    ZSTD_MAGIC,
    count_lines,
    head_of,
    is_published,
    line_blocks,
    until_damaged,
)
from goodput_cli.sources.files import STDIN, dumps_next_to, is_json_value, local_path, member_of
from goodput_cli.sources.layouts import is_dump_file, is_of_tracker, unreadable
from goodput_cli.sources.other_files import shown_path
from goodput_cli.sources.parts import candidates
from goodput_cli.sources.walk import find_files, report_walk
from goodput_cli.vocabulary.text import FilePart, JoinedName

MARK_BYTES = 64
_NOT_BY_LINES = (GZIP_MAGIC, ZSTD_MAGIC, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class _GrowingDocument:
    """A log that is read from one growing file after another, such as a rotated log."""

    def __init__(self, name: str) -> None:
        self._name = JoinedName(name)
        self._next_line = 1
        self._last: tuple[str, int] = "", 0
        """The file of the last line, and the number of the next line there."""

    def numbered(self, batch: RawBatch) -> RawBatch:
        """Return lines of a file as the next lines of the document."""
        line = self._next_line
        if self._last != (batch.source, batch.first_line):
            self._name.parts.append(FilePart(line, batch.source, batch.first_line))
        count = count_lines(batch.data)
        self._next_line += max(count, 1)
        self._last = batch.source, batch.first_line + count
        return replace(batch, source=self._name, first_line=line)

    def rename(self, names: Mapping[str, str]) -> None:
        """Change the names of files, by their names so far."""
        parts = self._name.parts
        parts[:] = [one._replace(file=names.get(one.file, one.file)) for one in parts]
        self._last = names.get(self._last[0], self._last[0]), self._last[1]


@dataclass
class FollowedFile:
    """A followed file, and the position of the reader.

    path: where it is. name: its display name. stream: its descriptor, None if too many are open. published: True if it
    is not a log, but a file that goodput wrote about one.
    offset: bytes read. line: number of the next line. rest: the start of an unterminated line.
    mark: the last bytes before `offset`; if they change, the file was rewritten.
    size, changed: of the file at the last poll; changed in ns. whole: True if it is packed, and only read as a whole.
    idle: consecutive polls without new data. document: the log that its lines belong to.
    """

    path: str
    name: str
    stream: int | None = None
    published: bool = False
    offset: int = 0
    line: int = 1
    rest: list[bytes] = field(default_factory=list)
    mark: bytes = b""
    size: int = -1
    changed: int = -1
    whole: bool = False
    idle: int = 0
    document: _GrowingDocument | None = None

    def read_new(self, descriptor: int, context: ReadContext) -> Iterator[RawBatch]:
        """Yield the new lines. An unterminated line is new once it is a whole JSON value that stays unchanged."""
        status = os.fstat(descriptor)
        if (status.st_size, status.st_mtime_ns) == (self.size, self.changed):
            self.idle += 1
            yield from self._unfinished()
            return
        self.size, self.changed, self.idle = status.st_size, status.st_mtime_ns, 0
        begin = self.offset - len(self.mark)
        if self.offset and not self.whole and os.pread(descriptor, len(self.mark), begin) != self.mark:
            context.say(f"{self.name}: was rewritten; reading it from the start, and keeping the lines read before")
            self.offset, self.line, self.mark = 0, 1, b""
            self.rest.clear()
        if self.offset == 0:
            self.whole = os.pread(descriptor, 4, 0).startswith(_NOT_BY_LINES) or is_dump_file(self.path)
        if self.whole:
            self.offset = self.size
            plain = until_damaged(self.name, _chunks(descriptor, context), context.report)
            yield from line_blocks(self.name, plain, longest_mib=context.wanted.longest_line, report=context.report)
            return
        while chunk := os.pread(descriptor, BLOCK_BYTES, self.offset):
            context.advance(len(chunk))
            self.mark = (self.mark + chunk[-MARK_BYTES:])[-MARK_BYTES:]
            first, self.offset = self.offset == 0, self.offset + len(chunk)
            yield from self._lines(chunk.removeprefix(codecs.BOM_UTF8) if first else chunk)

    def is_truncated(self) -> bool:
        """Return True if the file is shorter than what was read of it."""
        try:
            return bool(self.offset) and not self.whole and os.stat(self.path).st_size < self.offset
        except OSError:
            return False

    def moved_to(self, path: str) -> FollowedFile | None:
        """Return another file that contains what was read of this one, to go on there, and begin this one again. None
        if it does not."""
        descriptor = _opened(path)
        try:
            if os.pread(descriptor, len(self.mark), self.offset - len(self.mark)) != self.mark:
                return None
        finally:
            os.close(descriptor)
        copy = replace(self, path=path, name=shown_path(path), stream=None, size=-1, changed=-1, rest=[*self.rest])
        self.offset, self.line, self.mark, self.size = 0, 1, b"", -1
        self.rest.clear()
        return copy

    def _lines(self, chunk: bytes) -> Iterator[RawBatch]:
        end = chunk.rfind(b"\n") + 1
        if not end:
            self.rest.append(chunk)
            return
        data = b"".join([*self.rest, chunk[:end]])
        self.rest = [chunk[end:]] if chunk[end:] else []
        yield RawBatch(self.name, self.line, data)
        self.line += data.count(b"\n")

    def _unfinished(self) -> Iterator[RawBatch]:
        """Yield the last line, if its writer left out the line end; a writer that stopped inside of it may continue."""
        rest = b"".join(self.rest)
        if rest.rstrip().endswith((b"}", b"]")) and is_json_value(rest):
            self.rest.clear()
            yield RawBatch(self.name, self.line, rest)


def _chunks(descriptor: int, context: ReadContext) -> Iterator[bytes]:
    at = 0
    while chunk := os.pread(descriptor, BLOCK_BYTES, at):
        context.advance(len(chunk))
        at += len(chunk)
        yield chunk


HELD_FILES = 200
"""Maximum number of files kept open, to read data written after they were renamed or removed."""
MAX_IDLE = 30
"""Number of polls without new data after which a renamed or removed file is closed."""
REMOTE_SECONDS = 15.0
"""Minimum seconds between two polls of buckets and Cloud Logging, because reads of a project are limited (60 per
minute)."""

_MOST_NAMED = 5
"""Maximum number of unreadable files in a message."""

Identity = tuple[int, int]


class Follower(Protocol):
    """Reader of a growing source."""

    def look(self) -> Iterator[Batch]:
        """Yield the new data since the last poll. Raises SourceError as `Source.read` does; the next poll may
        succeed."""

    def close(self) -> None:
        """Close open files and connections."""


def follow(uris: Sequence[str], context: ReadContext) -> list[Follower]:
    """Return the followers of these sources. Raises UsageError for sources that cannot be followed."""
    paths = [uri for uri in uris if scheme_of(uri) == FILE_SCHEME]
    if STDIN in paths:
        raise UsageError("-: standard input cannot be followed", tip="pass the log file")
    for path in filter(os.path.exists, map(local_path, paths)):
        if not (os.path.isfile(path) or os.path.isdir(path)):
            raise UsageError.from_sentence(_no_file(path))
        _refuse_tracker(path)
    files: list[Follower] = [FileFollower([local_path(path) for path in paths], context)] if paths else []
    return files + [_remote(uri, context) for uri in uris if scheme_of(uri) != FILE_SCHEME]


def _refuse_tracker(path: str) -> None:
    """Raise UsageError for files of experiment trackers: they can be interpreted only as a whole."""
    try:
        found = find_files(path)
    except SourceError:  # the folder is still empty
        return
    tracked = next((name for name in found.read if is_of_tracker(os.path.abspath(name))), None)
    if tracked is not None:
        named = shown_path(tracked)
        raise UsageError(f"{named}: files of experiment trackers cannot be followed", tip="use `goodput analyze` again")


def _remote(uri: str, context: ReadContext) -> Follower:
    source = source_for(uri)
    if scheme_of(uri) in ("gs", "s3"):  # new objects and new versions: the others are in `seen` of the context
        return _ThrottledFollower(partial(source.read, uri, context))
    if scheme_of(uri) == "cloud-logging":
        return _ThrottledFollower(EntryFollower(uri, context).look)
    raise UsageError(f"{without_password(uri)}: cannot be followed", tip="use a file, gs://, s3:// or cloud-logging://")


class FileFollower:
    """Follower of files, folders and globs: new files, growth, truncation, renaming and replacement."""

    def __init__(self, paths: Sequence[str], context: ReadContext) -> None:
        self._paths = paths
        self._context = context
        self._files: dict[Identity, FollowedFile] = {}
        self._found: set[str] = set()  # the members of `paths` that existed at some time
        self._documents: dict[str, _GrowingDocument] = {}  # by path
        self.is_complete = True
        """False once a file that was read has no longer a followed name: its lines cannot be read again."""

    def look(self) -> Iterator[Batch]:
        """Poll as in `Follower.look`. A missing file is an error until it is found: later it was renamed or removed."""
        present, failures = self._present()
        self._rename(present)
        for identity, file in list(self._files.items()):
            if identity not in present:
                yield from self._leftover(identity, file)
        for identity, path in self._in_order(present):
            try:
                yield from self._grown(identity, path)
            except SourceError as error:  # one file must not prevent reading the others
                failures.append(str(error))
        failures = list(dict.fromkeys(failures))
        if failures:
            if len(failures) == 1:
                raise SourceError.from_sentence(failures[0])
            more = [f"and {len(failures) - _MOST_NAMED} more"] if len(failures) > _MOST_NAMED else []
            raise SourceError("; ".join([*failures[:_MOST_NAMED], *more]))

    def close(self) -> None:
        """Close as in `Follower.close`."""
        for file in self._files.values():
            if file.stream is not None:
                os.close(file.stream)
        self._files.clear()

    def _present(self) -> tuple[dict[Identity, str], list[str]]:
        """Return the existing files, and why the paths that never existed are missing."""
        present: dict[Identity, str] = {}
        failures: list[str] = []
        for path in self._paths:
            try:
                found = find_files(path)
                report_walk(found, self._context)
                for name in (*found.read, *dumps_next_to([path])):
                    present.setdefault(_identity(name), name)
                self._found.add(path)
            except SourceError as error:
                failures += [] if path in self._found else [str(error)]
        return present, failures

    def _leftover(self, identity: Identity, file: FollowedFile) -> Iterator[RawBatch]:
        """Yield the last lines of a file that was renamed or removed."""
        self.is_complete &= not file.offset
        if file.stream is None or file.idle > MAX_IDLE:
            if file.stream is not None:
                os.close(file.stream)
            del self._files[identity]
            return
        yield from self._numbered(file, file.stream)

    def _grown(self, identity: Identity, path: str) -> Iterator[RawBatch]:
        file = self._files.setdefault(identity, FollowedFile(path, shown_path(path)))
        if file.document is None:  # it replaces the file that was there before
            file.document = self._documents.get(path) or _GrowingDocument(shown_path(path))
        self._documents[path] = file.document
        if file.stream is not None:
            yield from self._new(file, file.stream)
            return
        descriptor = _opened(path)
        keep = sum(one.stream is not None for one in self._files.values()) < HELD_FILES
        try:
            # otherwise it was replaced just now: wait for the next poll
            if _identity_of(os.fstat(descriptor)) == identity:
                yield from self._new(file, descriptor)
                file.stream = descriptor if keep and not file.published else None
        finally:
            if file.stream != descriptor:
                os.close(descriptor)

    def _new(self, file: FollowedFile, descriptor: int) -> Iterator[RawBatch]:
        """Yield the new lines of a file, unless the user did not name it and goodput wrote it, such as output of this
        process."""
        if file.offset == 0 and file.path not in self._paths:
            file.published = is_published(head_of(descriptor))
        if not file.published:
            yield from self._numbered(file, descriptor)

    def _numbered(self, file: FollowedFile, descriptor: int) -> Iterator[RawBatch]:
        """Yield the new lines of a file with their numbers in its document. A packed file is read as a whole, again
        with each change."""
        for batch in file.read_new(descriptor, self._context):
            yield batch if file.whole or file.document is None else file.document.numbered(batch)

    def _rename(self, present: Mapping[Identity, str]) -> None:
        """Give files that were renamed or removed their new names, all at once: rotation passes names on."""
        names: dict[str, str] = {}
        for identity, file in self._files.items():
            file.path = present.get(identity, file.path)
            name = shown_path(file.path) if identity in present else f"{shown_path(file.path)} (rotated)"
            if name != file.name:
                names[file.name] = name
                file.name = name
        for document in set(self._documents.values()) if names else ():
            document.rename(names)

    def _follow_copies(self, present: Mapping[Identity, str]) -> list[Identity]:
        """Return new files that a rotation copied from followed ones, which it then truncates; they are read from where
        those were."""
        truncated = [file for identity, file in self._files.items() if identity in present and file.is_truncated()]
        copies: list[Identity] = []
        for identity, path in present.items():
            if identity in self._files:
                continue
            for file in truncated:
                if {file.path, path} in [set(one.orders[0]) for one in candidates([file.path, path])]:
                    copy = file.moved_to(path)
                    if copy is None:
                        continue
                    self._files[identity] = copy
                    if file.document is not None:
                        file.document.rename({file.name: copy.name})
                    truncated.remove(file)
                    copies.append(identity)
                    break
        return copies

    def _in_order(self, present: dict[Identity, str]) -> list[tuple[Identity, str]]:
        """Return known files, then new ones: the parts of a log in order and with one document."""
        copies = self._follow_copies(present)
        new = {path: identity for identity, path in present.items() if identity not in self._files}
        known = [(one, present[one]) for one in dict.fromkeys([*copies, *filter(self._files.__contains__, present)])]
        if self._context.parts_of is None or len(new) < 2:
            return [*known, *((identity, path) for path, identity in new.items())]
        members = [member_of(path, self._context) for path in new]
        paths = {member.name: path for member, path in zip(members, new, strict=True)}
        ordered: list[str] = []
        for name, parts in self._context.parts_of(members):
            document = _GrowingDocument(name)
            for member in parts:
                path = paths[member.name]
                self._files[new[path]] = FollowedFile(path, shown_path(path), document=document)
                ordered.append(path)
        names = dict.fromkeys([*ordered, *new])
        return [*known, *((new[path], path) for path in names)]


def _identity(path: str) -> Identity:
    try:
        return _identity_of(os.stat(path))
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error


def _identity_of(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino


def _opened(path: str) -> int:
    """Return a descriptor of a file. Raises SourceError, also for other types: opening a pipe would block."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise SourceError.from_sentence(_no_file(path))
    return descriptor


def _no_file(path: str) -> str:
    return f"{shown_path(path)}: is not a regular file and cannot be followed; pass the log file"


class EntryFollower:
    """Follower of a log of Cloud Logging: newer and late entries, without duplicates."""

    def __init__(self, uri: str, context: ReadContext) -> None:
        self._uri = uri
        self._context = context
        self._newest_ns: int | None = None
        self._looked_ns: int | None = None
        self._known: set[int] = set()

    def look(self) -> Iterator[Batch]:
        """Poll as in `Follower.look`. The source reads an overlap again, so that late entries are found."""
        now = time.time_ns()
        wanted = self._context.wanted
        if self._newest_ns is not None:
            wanted = replace(wanted, since_ns=self._newest_ns, received_ns=self._looked_ns)
        context = replace(self._context, wanted=wanted, seen=set())
        for batch in source_for(self._uri).read(self._uri, context):
            fresh = self._fresh(batch) if isinstance(batch, RecordBatch) else batch
            if fresh is not None:
                yield fresh
        self._looked_ns = now

    def _fresh(self, batch: RecordBatch) -> RecordBatch | None:
        from goodput_cli.sources.cloud_logging_pages import ns_of

        records = []
        for record in batch.records:
            identity = hash((record.get("logName"), record["timestamp"], record.get("insertId")))
            if identity not in self._known:
                self._known.add(identity)
                records.append(record)
        if not records:
            return None
        newest = ns_of(max(record["timestamp"] for record in records))
        self._newest_ns = max(newest, self._newest_ns or newest)
        return RecordBatch(batch.source, records)


class _ThrottledFollower:
    """A `Follower` that polls at most every `REMOTE_SECONDS`; until the next poll, a failed one keeps failing. look:
    returns the data since the last poll."""

    def __init__(self, look: Callable[[], Iterator[Batch]]) -> None:
        self._look = look
        self._last = float("-inf")
        self._error: SourceError | None = None

    def look(self) -> Iterator[Batch]:
        if time.monotonic() - self._last < REMOTE_SECONDS:
            if self._error is not None:
                raise self._error
            return
        self._last, self._error = time.monotonic(), None
        try:
            yield from self._look()
        except SourceError as error:
            self._error = error
            raise

    def close(self) -> None:
        """Close as in `Follower.close`: nothing is open."""
