"""The inputs and results of the tasks of a fleet: how to read a document, what to do with each job, what comes back.

They travel between processes, so that they hold no table of events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.events.reading_options import ReadingOptions
from goodput_cli.events.schema import EventLog
from goodput_cli.sources.base import Document, Progress, SourceFilter

Origin = tuple[tuple[str, str], ...]
"""The documents that a job's events are from, in order: URI, and the hash of the bytes as stored."""


class Work(Protocol):
    """What is made of the events of each job."""

    def account(self, job: EventLog, origin: Origin, /) -> Any:
        """The answer about one job. Raises nothing that a log can cause."""

    def keep(self, answers: Sequence[Any], /) -> Sequence[Any]:
        """Put aside what takes much room of answers that were made together; what the driver is given of each."""


@dataclass(frozen=True)
class Task:
    """How every document is read, and what is made of every job."""

    timezone: str
    wanted: SourceFilter
    hints: ReadingOptions
    names: tuple[str, ...]
    """Globs: only jobs whose names match one of them; all if there is none."""
    work: Work
    folder: str = ""
    """Where relative paths start; empty: in the folder that the process is in."""
    digests: bool = False
    """Whether bytes are hashed as they are read: where answers are kept for another time."""


@dataclass(frozen=True)
class Local:
    """What only the process has in which a person waits."""

    stdin: BinaryIO | None = None
    progress: Progress | None = None
    notice: Callable[[str], None] | None = None
    job_done: Callable[[], None] = lambda: None
    """Called after each job."""


@dataclass(frozen=True)
class JobPart:
    """What one document holds of one job."""

    job: str
    events: int
    first_ns: int
    last_ns: int
    parts: tuple[str, ...] = ()
    """Of a document of several: the URIs of those that hold some of it."""
    first_step: int | None = None
    last_step: int | None = None
    restores: bool = False
    """Whether a checkpoint is restored in it."""
    former: str = ""
    """What the job was called before 0.2, where that was otherwise; see `EventLog.former`."""


@dataclass(frozen=True)
class DocumentRow:
    """A document that was read, or why it was not."""

    document: Document
    digest: str = ""
    """BLAKE2b of the bytes as stored; empty where nobody asks for it."""
    bytes: int = 0
    lines: int = 0
    jobs: tuple[JobPart, ...] = ()
    other_jobs: tuple[str, ...] = ()
    """Some of the jobs that it holds besides, of which nobody hints."""
    problem: str | None = None
    """Why it could not be read."""
    of_source: tuple[Diagnostic, ...] = ()
    """What the source noticed."""
    of_lines: tuple[Diagnostic, ...] = ()
    """What its lines got wrong."""
    has_text: bool = False
    """See `EventLog`."""

    def origin(self, job: JobPart) -> Origin:
        """What the events of a job in it are from. Of documents that were read together each says with which: the same
        lines may mean something else beside others, though none of these has an event of the job."""
        read_with = self.digest or (self.document.version if self.document.parts else "")
        return tuple((uri, read_with) for uri in job.parts or (self.document.uri,))


@dataclass(frozen=True)
class Failed:
    """In the place of an answer that could not be had."""

    reason: str
