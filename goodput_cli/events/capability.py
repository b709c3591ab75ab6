"""What a capability reads: lines of text, files next to a log, and how they become its table.

A capability with inputs of its own has a module `hooks` in its folder, which declares one `InputTable`, listed in
`events/capabilities.py`. The rows are in `EventTable.tables`; a capability of `analysis` takes them with
`InputTable.of`. They claim no time and do not affect the ledger.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.formats.base import DocumentReader, PartCollector
from goodput_cli.events.schema import EventTable
from goodput_cli.events.text.log_lines import CollectedRule
from goodput_cli.sources.base import RawBatch
from goodput_cli.vocabulary.text import file_line


class OfJob(Protocol):
    """A row of such a table."""

    @property
    def job(self) -> str:
        """Return the job that it belongs to."""


Row = TypeVar("Row", bound=OfJob)


@dataclass(frozen=True)
class InputLine:
    """A line that a capability reads, with its job and time."""

    rule: str
    """Name of its `CollectedRule`."""
    job: str
    """Job of its source, as for other evidence; "" if several jobs may have written it."""
    source: str
    line: int
    time: int | None
    """ns since 1970 UTC, otherwise the time of the last line before it; None if no time is known."""
    text: str
    """Text without prefixes of launchers and collectors; untrusted."""
    prefix: str
    """These prefixes."""
    stream: str
    """Ranks and pods in them."""
    more: tuple[str, ...] = ()
    """The lines that belong to it."""

    @property
    def where(self) -> str:
        """Return its location."""
        return file_line(self.source, self.line)


@dataclass(frozen=True)
class CollectedInputs:
    """All inputs of a capability, and what is known of their sources."""

    lines: Sequence[InputLine]
    """Lines of text."""
    parts: Any
    """Collector of the parts of documents; None if there are none."""
    table: EventTable
    """The events of all jobs."""
    notes: DiagnosticCollector
    """Receives diagnostics."""
    jobs_of_runs: Mapping[str, str]
    """Job of each run of ML Diagnostics or a tracker."""
    clock_of: Callable[[str], Callable[[int], int]]
    """Returns, for the name of a source, the conversion of its local times to UTC."""
    has_zone: Callable[[str], bool]
    """Returns True if text next to a source shows the zone of its local times."""
    zone: str
    """Zone of local times without one."""
    may_move: bool
    """True if no zone was given for times without one."""


def _no_document(_: RawBatch) -> None:
    return None


def _no_collector() -> PartCollector:
    raise NotImplementedError


@dataclass(frozen=True, kw_only=True, eq=False)
class InputTable(Generic[Row]):
    """Inputs of one capability, and its table."""

    name: str
    """Name of its folder in each layer, and of the table."""
    rows: Callable[[CollectedInputs], Iterable[Row]]
    """Makes the rows of all jobs. It is called only if something was collected."""
    lines: tuple[CollectedRule, ...] = ()
    """Lines of text that it reads."""
    document: Callable[[RawBatch], DocumentReader | None] = _no_document
    """Returns the reader of a document that begins like this; None if it is not one of its files. The reader returns
    `ParsedPart.inputs`."""
    collector: Callable[[], PartCollector] = _no_collector
    """Creates the collector of these parts."""

    def of(self, table: EventTable) -> tuple[Row, ...]:
        """Return the rows of all jobs of a log."""
        return table.tables.get(self.name, ())


def jobs_of_sources(table: EventTable) -> dict[int, set[str]]:
    """Return the jobs that have events in each source, by its code."""
    size = max(len(table.sources), 1)
    found: defaultdict[int, set[str]] = defaultdict(set)
    for pair in np.unique(table.job.astype(np.int64) * size + table.source).tolist():
        found[pair % size].add(table.jobs[pair // size])
    return found


def job_of_source(code: int, sources: Sequence[str], by_source: Mapping[int, set[str]]) -> str | None:
    """Return the job of a source if it has exactly one, otherwise that of the nearest parent folder with logs."""
    if by_source.get(code):
        return next(iter(by_source[code])) if len(by_source[code]) == 1 else None
    folder = sources[code].replace("\\", "/").rpartition("/")[0]
    while True:
        below = f"{folder}/" if folder else ""
        jobs = {
            job for code, own in by_source.items() if sources[code].replace("\\", "/").startswith(below) for job in own
        }
        if jobs:
            return jobs.pop() if len(jobs) == 1 else None
        if not folder:
            every = {job for own in by_source.values() for job in own}
            return every.pop() if len(every) == 1 else None
        folder = folder.rpartition("/")[0]
