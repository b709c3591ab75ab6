"""The interface of sources, and the registry that finds the source of a URI.

A source handles bytes and paging, and knows nothing about events. To add one, register an object with `read` (see
`Source`) under the entry-point group `goodput_cli.sources`; the name of the entry point is the scheme (`gs` for
`gs://…`).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Protocol, runtime_checkable

from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import NO_DATABASE, REMOVED_DATABASES, SourceError, UsageError

ENTRY_POINT_GROUP = "goodput_cli.sources"
FILE_SCHEME = "file"


Record = dict[str, Any]
"""A JSON object of a log."""


@dataclass(frozen=True)
class RawBatch:
    """Some whole lines of one source. Batches of a source arrive in order."""

    source: str
    """The name shown in `file:line`."""
    first_line: int
    """Number of the first line in `data`, from 1; a batch with line 1 begins a new document."""
    data: bytes
    """UTF-8 lines; ends at a newline, except at the end of the source."""
    modified_ns: int | None = None
    """The time of the last change of the source, ns since 1970 UTC; None if unknown."""


@dataclass(frozen=True)
class RecordBatch:
    """Records that arrive parsed (the pages of an API). They have no line; their insertId is the evidence."""

    source: str
    records: Sequence[Record]


Batch = RawBatch | RecordBatch


class Progress(Protocol):
    """Counter of reading progress. Bytes are counted as stored: those of a packed file as packed."""

    def advance(self, count: int, /) -> None:
        """`count` more bytes have been read."""

    def expect(self, count: int, /) -> None:
        """Announce the total number of bytes; not called for a source with an unknown size."""

    def add_lines(self, count: int, /) -> None:
        """Count `count` more parsed or rejected lines."""

    def wait(self, what: str, /) -> None:
        """Report that a server does not answer, with the time of the next attempt; valid until more is read."""

    def finish(self) -> None:
        """Report that everything has been read: the remaining time is accounting."""


@dataclass(frozen=True)
class SourceFilter:
    """The part of a source to read, for sources that support queries."""

    job_name: str | None = None
    """None: not restricted."""
    log_name: str | None = None
    """None: not restricted."""
    lookback_days: float | None = None
    """Days to read back; None: as far as the job goes."""
    use_cache: bool = True
    """True to read from and write to the cache."""
    heartbeats: bool = True
    """True to include entries that only show that a host is alive."""
    since_ns: int | None = None
    """The reader has everything up to this time (ns since 1970 UTC) and wants only newer entries."""
    received_ns: int | None = None
    """The time of that reading (ns since 1970 UTC): entries received later are also wanted, however old."""
    longest_line: int = 16
    """Maximum length of a line, MiB."""


@dataclass
class ReadContext:
    """Services for a source while it reads."""

    report: Callable[[Diagnostic], None]
    """Called with a diagnostic about the source itself (a file that ends too early)."""
    stdin: BinaryIO | None = None
    """The stream for the source `-`; None: standard input."""
    progress: Progress | None = None
    """Counts what has been read; None: no progress display."""
    seen: set[object] = field(default_factory=set)
    """Identities of what has been read, so that a file named twice is read once."""
    wanted: SourceFilter = SourceFilter()
    """The part of the sources to read."""
    notice: Callable[[str], None] | None = None
    """Called with a status message for the user (a quota that is used up); None: no display."""
    is_log: Callable[[bytes], bool] | None = None
    """Returns True if text that begins like this is a log; None: no text is."""
    gives_steps: Callable[[Iterator[Batch]], bool] = lambda _: True
    """Returns True if the beginning of a document contains times of steps."""
    parts_of: Callable[[Sequence[Any]], Sequence[tuple[Any, Sequence[Any]]]] | None = None
    """Returns the name and the files, in order, of each log that consists of several of some files; None: each file is
    a log."""
    expected: list[int] = field(default_factory=list)
    """Bytes of each source with a known size."""
    digest: Callable[[bytes], object] | None = None
    """Called with the stored bytes (the `update` of a hash); None: not needed."""
    folder: str = ""
    """The base of relative paths of documents; "": the current folder of the process."""

    def expect(self, count: int) -> None:
        """Announce the number of bytes of a source, once per `read`."""
        self.expected.append(count)

    def begin(self, sources: int) -> None:
        """Announce that all sources have been found. The total size is passed on if all sizes are known."""
        if self.progress is not None and len(self.expected) == sources:
            self.progress.expect(sum(self.expected))

    def took(self, data: bytes) -> None:
        """Pass on the stored bytes that have been read."""
        if self.digest is not None:
            self.digest(data)
        self.advance(len(data))

    def advance(self, count: int) -> None:
        """Pass on that `count` more bytes have been read."""
        if self.progress is not None:
            self.progress.advance(count)

    def add_lines(self, count: int) -> None:
        """Pass on that `count` more lines have been parsed."""
        if self.progress is not None:
            self.progress.add_lines(count)

    def wait(self, wait: object) -> None:
        """Pass on that a server does not answer; may be called by any thread. wait: the time of the next attempt, as
        text."""
        if self.progress is not None:
            self.progress.wait(str(wait))

    def finish(self) -> None:
        """Pass on that everything has been read."""
        if self.progress is not None:
            self.progress.finish()

    def say(self, sentence: str) -> None:
        """Show a message to the user."""
        if self.notice is not None:
            self.notice(sentence)


def is_new(identity: object, context: ReadContext) -> bool:
    """Return True if this identity was not read before, and mark it as read."""
    if identity in context.seen:
        return False
    context.seen.add(identity)
    return True


class Source(Protocol):
    """A kind of source of logs."""

    def read(self, uri: str, context: ReadContext, /) -> Iterator[Batch]:
        """Return the content of `uri`, in batches.

        The call finds it, and iteration reads it: missing sources are reported before long work. Raises SourceError
        with a message about the problem, the location and the fix.
        """


@dataclass(frozen=True)
class SourceDocument:
    """One file, object or stream of a source, which can be listed and read separately."""

    uri: str
    """Its location, by which documents are sorted."""
    name: str
    """The name shown in `file:line`."""
    size: int | None = None
    """In bytes as stored; None if unknown before reading."""
    version: str = ""
    """Changes whenever the content may have changed; "" if unknown."""
    written_ns: int | None = None
    """The time of the last change, if the version depends on it (ns since 1970 UTC)."""
    identity: tuple[object, ...] = ()
    """Equal for two names of one document; empty: the URI."""
    apart: bool = False
    """True if another process can read it, too."""
    problem: str | None = None
    """Why it cannot be read, if already known."""
    named: bool = True
    """True if the user named it, not a directory above it: then it must be readable."""
    parts: tuple[SourceDocument, ...] = ()
    """The documents that it consists of, if several are meaningful only together."""

    @property
    def location(self) -> str:
        """Return a URI that names a document of it."""
        return self.parts[0].uri if self.parts else self.uri


@runtime_checkable
class Listing(Protocol):
    """Optional interface of a source whose documents can be read one by one."""

    def documents(self, uri: str, context: ReadContext, /) -> list[SourceDocument]:
        """Return the documents that `read` would read, in any order. Raises SourceError if the name does not exist."""

    def read_document(self, document: SourceDocument, context: ReadContext, /) -> Iterator[Batch]:
        """Return the content of one of them, in batches. Raises SourceError."""


def list_documents(uris: Sequence[str], context: ReadContext) -> list[SourceDocument]:
    """Return the documents of some URIs, each once, ordered by URI. A source without `Listing` is one document per URI.

    Raises SourceError for a name without documents, UsageError for an unknown kind of source.
    """
    documents: dict[tuple[object, ...], SourceDocument] = {}
    for uri in uris:
        source = source_for(uri)
        listed = source.documents(uri, context) if isinstance(source, Listing) else [SourceDocument(uri, uri)]
        for one in listed:
            key = one.identity or (one.uri,)
            documents[key] = min(documents.get(key, one), one, key=lambda document: document.uri)
    return sorted(documents.values(), key=lambda one: one.uri.encode("utf-8", "surrogateescape"))


def read_document(document: SourceDocument, context: ReadContext) -> Iterator[Batch]:
    """Return the content of one document, in batches. Raises SourceError."""
    if document.problem is not None:
        raise SourceError.from_sentence(document.problem)
    if document.parts:
        return (batch for part in document.parts for batch in read_document(part, context))
    source = source_for(document.uri)
    if document.version and isinstance(source, Listing):
        return source.read_document(document, context)
    return source.read(document.uri, context)


_BUILT_IN = {
    "cloud-logging": "goodput_cli.sources.cloud_logging:CloudLoggingSource",
    FILE_SCHEME: "goodput_cli.sources.files:FileSource",
    "gs": "goodput_cli.sources.bucket:BucketSource",
    "sqlite": "goodput_cli.sources.databases:DatabaseSource",
    **dict.fromkeys(("mlflow+http", "mlflow+https"), "goodput_cli.sources.mlflow_server:TrackingServerSource"),
    "s3": "goodput_cli.sources.bucket:BucketSource",
}
_KNOWN_ELSEWHERE = {
    "az": "download the objects first, for example with `az storage blob download-batch`, and pass the files",
    "hdfs": "copy the files first with `hdfs dfs -get`, and pass the copies",
}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def scheme_of(uri: str) -> str:
    """Return the scheme of a URI in lower case; a plain path, a glob, a folder and `-` have the scheme `file`."""
    match = _SCHEME.match(uri)
    return match.group(1).lower() if match else FILE_SCHEME


def without_password(uri: str) -> str:
    """Return a URI for display: without the password of an account, and without one in an option."""
    if not _SCHEME.match(uri):
        return uri
    scheme, _, rest = uri.partition("://")
    place, question, options = rest.partition("?")
    account, at, host = place.rpartition("@")
    shown = f"{scheme}://{account.partition(':')[0]}{at}{host}"
    if not question:
        return shown
    kept = [one for one in options.split("&") if "pass" not in one.partition("=")[0].lower()]
    return shown + (f"?{'&'.join(kept)}" if kept else "")


def source_for(uri: str) -> Source:
    """Return the source that reads this URI. Raises UsageError for an unknown scheme, SourceError if it is not
    installed."""
    source: Source
    scheme = scheme_of(uri)
    if scheme in _BUILT_IN:
        module, name = _BUILT_IN[scheme].split(":")
        source = getattr(importlib.import_module(module), name)()
        return source
    from importlib.metadata import entry_points  # slow to import and to query, so only for plug-ins

    plugged_in = {point.name.lower(): point for point in entry_points(group=ENTRY_POINT_GROUP)}
    if scheme in plugged_in:
        point: Any = plugged_in[scheme]
        try:
            source = point.load()()
        except Exception as error:  # the code of another package may fail in any way
            raise SourceError(f"{scheme}://: the plug-in {point.value} cannot be loaded: {error}") from error
        return source
    if scheme.partition("+")[0] in REMOVED_DATABASES:  # for example postgresql+psycopg://…
        raise UsageError(f"{without_password(uri)}: {NO_DATABASE}")
    if scheme in _KNOWN_ELSEWHERE:
        raise SourceError(f"{without_password(uri)}: goodput cannot read {scheme}://", tip=_KNOWN_ELSEWHERE[scheme])
    known = ", ".join(f"{name}://" for name in sorted({*_BUILT_IN, *plugged_in}))
    shown = without_password(uri)
    raise UsageError(f"{shown}: unknown source {scheme}://", tip=f"use a file, a glob, a folder, - or one of {known}")
