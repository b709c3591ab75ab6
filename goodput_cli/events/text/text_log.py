"""The state of the passes: the text sources of a log, and what is known of them so far."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from goodput_cli.events.formats.base import Output
from goodput_cli.events.inside import RankSteps
from goodput_cli.events.rows import Interner
from goodput_cli.events.schema import Metric
from goodput_cli.events.signs import RecoveryEvent
from goodput_cli.events.text.collector import CollectedSource
from goodput_cli.events.text.log_lines import LogLine

if TYPE_CHECKING:
    from goodput_cli.events.reading_options import ReadingOptions
    from goodput_cli.events.text.allocation_clock import RowClock
    from goodput_cli.events.text.infer_times import InferredTimes
    from goodput_cli.events.text.source_clocks import FoundZone
    from goodput_cli.events.trackers.runs import TrackedRun

Part = tuple[int, list[LogLine]]
"""A source, and its log lines of one allocation."""


@dataclass
class TextLog:
    """The text sources of a log. Each pass sets the fields that it finds; dictionaries have source codes as keys."""

    names: Sequence[str]
    """Names of the sources, by code."""
    hints: ReadingOptions
    output: Output
    jobs: Interner[str]
    recorded: Mapping[str, Any]
    """Columns of the events that are not from text."""
    every: dict[int, CollectedSource]
    """All sources."""

    sources: dict[int, CollectedSource] = field(default_factory=dict)
    """Sources with events."""
    texts: dict[int, CollectedSource] = field(default_factory=dict)
    """The same, without lines of ML Diagnostics runs."""
    zones: dict[str, FoundZone] = field(default_factory=dict)
    """Zone of each folder, from collectors' timestamps next to others."""
    times: dict[int, InferredTimes] = field(default_factory=dict)
    """What was observed while times were inferred."""
    events: dict[int, list[LogLine]] = field(default_factory=dict)
    """Log lines that are events."""
    row_clocks: Mapping[int, RowClock] = field(default_factory=dict)
    """Correction or warning for the times of a scheduler's rows."""
    views: dict[int, str | None] = field(default_factory=dict)
    """Folder of the event files that give a text without a clock its times; None if they disagree."""
    phase_lines: dict[int, list[LogLine]] = field(default_factory=dict)
    """Lines about phases inside steps, which are not events."""
    run_lines: list[tuple[int, LogLine]] = field(default_factory=list)
    """Lines of ML Diagnostics runs without a run name."""
    parts: list[Part] = field(default_factory=list)
    """Events by source and allocation."""
    tracked: list[TrackedRun] = field(default_factory=list)
    """Runs of experiment trackers."""
    named: Sequence[str] = ()
    """Job of each part."""
    runs: list[tuple[int, str, list[LogLine]]] = field(default_factory=list)
    """Source, job and log lines of ML Diagnostics runs."""

    earlier: frozenset[str] = frozenset()
    """Jobs that are earlier runs of another one in their folder."""
    former: Mapping[str, str] = field(default_factory=dict)
    """Names of jobs before 0.2."""
    run_names: dict[str, str] = field(default_factory=dict)
    """Name of the run of each job, if it differs."""
    jobs_of_runs: dict[str, str] = field(default_factory=dict)
    """Job of each run of ML Diagnostics or of a tracker."""
    job_of_source: dict[int, str] = field(default_factory=dict)
    """Job of each source with events, and of its neighbors in the folder."""
    signs: list[RecoveryEvent] = field(default_factory=list)
    """Signs of allocations, whose rows may be separate jobs."""
    metrics: list[Metric] = field(default_factory=list)
    """Measurements of all jobs."""
    inside: list[RankSteps] = field(default_factory=list)
    """Times of phases inside steps, of all jobs."""
    unread: dict[str, str] = field(default_factory=dict)
    """See `EvidenceOfLog.unread_steps`."""
    several_runs: dict[str, str] = field(default_factory=dict)
    """See `EvidenceOfLog.several_runs`."""

    @property
    def recorded_jobs(self) -> set[str]:
        """Return the jobs of events that are not from text."""
        return {self.jobs.values()[code] for code in np.unique(self.recorded["job"]).tolist()}

    def by_job(self) -> dict[str, list[Part]]:
        """Return the parts of each job."""
        found: defaultdict[str, list[Part]] = defaultdict(list)
        for part, job in zip(self.parts, self.named, strict=True):
            found[job].append(part)
        return found

    def log_lines(self, code: int) -> Iterator[LogLine]:
        """Yield the log lines of a source in their present state."""
        if self.parts:
            yield from (one for part, lines in self.parts if part == code for one in lines)
        elif self.events:
            yield from self.events.get(code, ())
        elif code in self.texts or code in self.sources or code in self.every:
            yield from (self.texts.get(code) or self.sources.get(code) or self.every[code]).log_lines
