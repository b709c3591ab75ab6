"""The inputs and results of the tasks of a fleet: how to read a document, how to process each job, and the result.

They travel between processes, so they contain no table of events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.events.reading_options import ReadingOptions
from goodput_cli.events.schema import EventLog
from goodput_cli.sources.base import Progress, SourceDocument, SourceFilter

Origin = tuple[tuple[str, str], ...]
"""The documents that a job's events are from, in order: URI, and the hash of the bytes as stored."""


class JobWork(Protocol):
    """Computation on the events of each job."""

    def account(self, job: EventLog, origin: Origin, /) -> Any:
        """The answer about one job. Raises nothing that a log can cause."""

    def keep(self, answers: Sequence[Any], /) -> Sequence[Any]:
        """Store the large parts of answers that were made together; return what the driver receives of each."""


@dataclass(frozen=True)
class Task:
    """Instructions for reading every document and processing every job."""

    timezone: str
    wanted: SourceFilter
    hints: ReadingOptions
    names: tuple[str, ...]
    """Globs: only jobs whose names match one of them; all if there is none."""
    work: JobWork
    folder: str = ""
    """Base folder of relative paths; empty: the working directory of the process."""
    digests: bool = False
    """True if bytes are hashed as they are read, for answers that are stored."""


@dataclass(frozen=True)
class LocalObjects:
    """Objects that exist only in the process with the user's terminal."""

    stdin: BinaryIO | None = None
    progress: Progress | None = None
    notice: Callable[[str], None] | None = None
    job_done: Callable[[], None] = lambda: None
    """Called after each job."""


@dataclass(frozen=True)
class JobPart:
    """Part of one job in one document."""

    job: str
    events: int
    first_ns: int
    last_ns: int
    parts: tuple[str, ...] = ()
    """For a combined document: the URIs of the documents that contain some of the job."""
    first_step: int | None = None
    last_step: int | None = None
    restores: bool = False
    """True if a checkpoint is restored in it."""
    former: str = ""
    """Name of the job before 0.2, if it differed; see `EventLog.former`."""


@dataclass(frozen=True)
class DocumentRow:
    """A document that was read, or why it was not."""

    document: SourceDocument
    digest: str = ""
    """BLAKE2b of the bytes as stored; empty if not requested."""
    bytes: int = 0
    lines: int = 0
    jobs: tuple[JobPart, ...] = ()
    other_jobs: tuple[str, ...] = ()
    """Some of the other jobs in it, which have no hint."""
    problem: str | None = None
    """Reason why it could not be read."""
    of_source: tuple[Diagnostic, ...] = ()
    """Warnings of the source."""
    of_lines: tuple[Diagnostic, ...] = ()
    """Warnings of its lines."""
    has_text: bool = False
    """See `EventLog`."""

    def origin(self, job: JobPart) -> Origin:
        """Return the origin of the events of a job in it. Documents that were read together each name the others: the
        same lines may mean something else next to others, although none of these has an event of the job."""
        read_with = self.digest or (self.document.version if self.document.parts else "")
        return tuple((uri, read_with) for uri in job.parts or (self.document.uri,))


@dataclass(frozen=True)
class FailedTask:
    """Replacement for an answer that failed."""

    reason: str
