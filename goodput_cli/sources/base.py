"""The plug-in point for places to read from, and the registry that finds the place for a URI.

A source knows bytes and paging and nothing of events. To add one, register an object with `read` (see `Source`) under
the entry-point group `goodput_cli.sources`; the name of the entry point is the scheme (`gs` for `gs://…`).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Protocol, runtime_checkable

from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import SourceError, UsageError
from goodput_cli.vocabulary import removed

ENTRY_POINT_GROUP = "goodput_cli.sources"
FILE_SCHEME = "file"


Record = dict[str, Any]
"""A JSON object of a log."""


@dataclass(frozen=True)
class RawBatch:
    """Some whole lines of one source. Batches of a source come one after the other."""

    source: str
    """The name that people see in `file:line`."""
    first_line: int
    """Number of the first line in `data`, from 1; a batch with line 1 begins a new document."""
    data: bytes
    """UTF-8 lines; ends at a newline, except at the end of the source."""
    modified_ns: int | None = None
    """When the source was last written to, ns since 1970 UTC; None where nobody knows."""


@dataclass(frozen=True)
class RecordBatch:
    """Records that arrive parsed (the pages of an API): they have no line, their insertId is the evidence."""

    source: str
    records: Sequence[Record]


Batch = RawBatch | RecordBatch


class Progress(Protocol):
    """Counts how far reading has come. Bytes are counted as stored: those of a packed file as packed."""

    def advance(self, count: int, /) -> None:
        """`count` more bytes have been read."""

    def expect(self, count: int, /) -> None:
        """So many bytes will be read in all; never said where a source cannot know."""

    def add_lines(self, count: int, /) -> None:
        """`count` more lines have been understood, or found to be bad."""

    def wait(self, what: str, /) -> None:
        """A server does not answer: which try comes when. Until more has been read."""

    def finish(self) -> None:
        """Everything has been read; what takes time from now on is accounting."""


@dataclass(frozen=True)
class SourceFilter:
    """What part of a place is wanted, for places that can be asked for a part."""

    job_name: str | None = None
    """None where the question names none."""
    log_name: str | None = None
    """None where the question names none."""
    lookback_days: float | None = None
    """How far back to read; None: as far as the job goes."""
    use_cache: bool = True
    """Whether what was read before may be kept and used."""
    heartbeats: bool = True
    """Whether entries that only say that a host is alive are wanted."""
    since_ns: int | None = None
    """The reader has everything up to here (ns since 1970 UTC) and wants what is newer."""
    received_ns: int | None = None
    """When it read that (ns since 1970 UTC): it also wants what came later, however old."""
    longest_line: int = 16
    """How much of a line is wanted, MiB."""


@dataclass
class ReadContext:
    """What a source may use while it reads."""

    report: Callable[[Diagnostic], None]
    """Takes a diagnostic about the source itself (a file that ends too early)."""
    stdin: BinaryIO | None = None
    """The stream behind `-`; None: the standard input of the process."""
    progress: Progress | None = None
    """Counts what has been read; None: nobody watches."""
    seen: set[object] = field(default_factory=set)
    """Identities of what has been read, so that a file named twice is read once."""
    wanted: SourceFilter = SourceFilter()
    """What part of a place is wanted."""
    notice: Callable[[str], None] | None = None
    """Takes a sentence for the person who waits (a quota that is used up); None: nobody listens."""
    is_log: Callable[[bytes], bool] | None = None
    """Whether text that begins like this is a log; None: no text is."""
    gives_steps: Callable[[Iterator[Batch]], bool] = lambda _: True
    """Whether a document says when steps were, as far as its beginning tells."""
    expected: list[int] = field(default_factory=list)
    """Bytes that each source that knows will give."""
    digest: Callable[[bytes], object] | None = None
    """Takes the bytes of what is read as they are stored (the `update` of a hash); None: nobody asks for them."""
    folder: str = ""
    """Where relative paths of documents start; empty: in the folder that the process is in."""

    def expect(self, count: int) -> None:
        """For a source, once a `read`: it will give so many bytes."""
        self.expected.append(count)

    def begin(self, sources: int) -> None:
        """All sources have been found. How much there is to read is passed on if each of them knows."""
        if self.progress is not None and len(self.expected) == sources:
            self.progress.expect(sum(self.expected))

    def took(self, data: bytes) -> None:
        """Pass on that these bytes have been read, as they are stored."""
        if self.digest is not None:
            self.digest(data)
        self.advance(len(data))

    def advance(self, count: int) -> None:
        """Pass on that `count` more bytes have been read."""
        if self.progress is not None:
            self.progress.advance(count)

    def add_lines(self, count: int) -> None:
        """Pass on that `count` more lines have been understood."""
        if self.progress is not None:
            self.progress.add_lines(count)

    def wait(self, wait: object) -> None:
        """Pass on that a server does not answer; may be called by any thread. wait: which try comes when, as its text
        has it."""
        if self.progress is not None:
            self.progress.wait(str(wait))

    def finish(self) -> None:
        """Pass on that everything has been read."""
        if self.progress is not None:
            self.progress.finish()

    def say(self, sentence: str) -> None:
        """Tell the person who waits."""
        if self.notice is not None:
            self.notice(sentence)


def is_new(identity: object, context: ReadContext) -> bool:
    """Whether what has this identity was not read before; from now on it was."""
    if identity in context.seen:
        return False
    context.seen.add(identity)
    return True


class Source(Protocol):
    """A kind of place that logs are read from."""

    def read(self, uri: str, context: ReadContext, /) -> Iterator[Batch]:
        """The content behind `uri`, in batches.

        Finding it happens in the call, reading as the result is consumed: what is missing is said before long work.
        Raises SourceError with a sentence that says what, where and what to do.
        """


@dataclass(frozen=True)
class Document:
    """One file, object or stream that a source reads: what a list of documents holds, and what is read on its own."""

    uri: str
    """Where it is: documents are ordered by this."""
    name: str
    """The name that people see in `file:line`."""
    size: int | None = None
    """In bytes as stored; None where nobody knows before it is read."""
    version: str = ""
    """Changes whenever the content may have; empty where nobody knows."""
    written_ns: int | None = None
    """When it was written last, where the version depends on that (ns since 1970 UTC)."""
    identity: tuple[object, ...] = ()
    """What two names of one document have in common; empty: the URI."""
    apart: bool = False
    """Whether another process can read it too."""
    problem: str | None = None
    """Why it cannot be read, where that is seen already."""
    named: bool = True
    """Whether the user named it, and not a directory above it: what is named must be readable."""
    parts: tuple[Document, ...] = ()
    """The documents that it is made of, where it is several that mean something only together."""

    @property
    def place(self) -> str:
        """A URI of it that names a document."""
        return self.parts[0].uri if self.parts else self.uri


@runtime_checkable
class Listing(Protocol):
    """What a source has besides `read` where its documents can be read one by one."""

    def documents(self, uri: str, context: ReadContext, /) -> list[Document]:
        """What `read` would read, in any order. Raises SourceError where there is nothing of that name."""

    def read_document(self, document: Document, context: ReadContext, /) -> Iterator[Batch]:
        """The content of one of them, in batches. Raises SourceError."""


def list_documents(uris: Sequence[str], context: ReadContext) -> list[Document]:
    """The documents behind some URIs, each once, ordered by URI. What cannot be listed is one document a URI.

    Raises SourceError where a name stands for nothing, UsageError for an unknown kind of source.
    """
    documents: dict[tuple[object, ...], Document] = {}
    for uri in uris:
        source = source_for(uri)
        listed = source.documents(uri, context) if isinstance(source, Listing) else [Document(uri, uri)]
        for one in listed:
            key = one.identity or (one.uri,)
            documents[key] = min(documents.get(key, one), one, key=lambda document: document.uri)
    return sorted(documents.values(), key=lambda one: one.uri.encode("utf-8", "surrogateescape"))


def read_document(document: Document, context: ReadContext) -> Iterator[Batch]:
    """The content of one document, in batches. Raises SourceError."""
    if document.problem is not None:
        raise SourceError(document.problem)
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
    """The scheme of a URI in lower case; a plain path, a glob, a folder and `-` are `file`."""
    match = _SCHEME.match(uri)
    return match.group(1).lower() if match else FILE_SCHEME


def without_password(uri: str) -> str:
    """A URI as it is shown: without the password of an account, and without any that is said as an option."""
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
    """The source that reads this URI. Raises UsageError for an unknown scheme, SourceError if none is installed."""
    source: Source
    scheme = scheme_of(uri)
    if scheme in _BUILT_IN:
        module, name = _BUILT_IN[scheme].split(":")
        source = getattr(importlib.import_module(module), name)()
        return source
    from importlib.metadata import entry_points  # slow to import, and to ask: only if a plug-in is meant

    plugged_in = {point.name.lower(): point for point in entry_points(group=ENTRY_POINT_GROUP)}
    if scheme in plugged_in:
        point: Any = plugged_in[scheme]
        try:
            source = point.load()()
        except Exception as error:  # a foreign package may fail in any way
            raise SourceError(f"{scheme}://: the plug-in {point.value} cannot be loaded: {error}") from error
        return source
    if scheme.partition("+")[0] in removed.DATABASES:  # also postgresql+psycopg://…
        raise UsageError(f"{without_password(uri)}: {removed.DATABASE}")
    if scheme in _KNOWN_ELSEWHERE:
        raise SourceError(f"{without_password(uri)}: goodput cannot read {scheme}://; {_KNOWN_ELSEWHERE[scheme]}")
    known = ", ".join(f"{name}://" for name in sorted({*_BUILT_IN, *plugged_in}))
    shown = without_password(uri)
    raise UsageError(f"{shown}: unknown source {scheme}://; use a file, a glob, a folder, - or one of {known}")
