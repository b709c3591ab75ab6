"""Collect the content of each text or event file until all have been read: only then are their jobs and times known.

This module is light to import: every reader uses it, and few logs need it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from goodput_cli.events.signs import MOST_SIGNS, thin_out

if TYPE_CHECKING:
    from goodput_cli.events.cluster_rows import ApiObject
    from goodput_cli.events.event_files import FileEvent
    from goodput_cli.events.evidence import DeathsAtEnd, UntimedEvidence
    from goodput_cli.events.signs import CycleFile, RecordedRecoveryEvent, UntimedRecoveryEvent
    from goodput_cli.events.text.evidence_lines import EntryObserver
    from goodput_cli.events.text.interleaved_runs import Interleaved, InterleavedRunDetector
    from goodput_cli.events.text.log_lines import CollectedLine, LogLine
    from goodput_cli.events.text.observed_line import LineCollector
    from goodput_cli.events.text.traces import ProcessKey, TracedProcess

_MOST_LINES = 5_000
"""Number of lines for capabilities that are kept from the beginning of a source, and again from its end."""


@dataclass
class TextPart:
    """Content of a part of a source."""

    log_lines: list[LogLine] = field(default_factory=list)
    bad: list[tuple[int, str]] = field(default_factory=list)
    """Lines that match a rule but have wrong values: number and reason."""
    noise: int = 0
    """Number of unrecognized lines."""
    modified_ns: int | None = None
    """Modification time of the file."""
    blocks: int = 0
    """Number of blocks of lines, each of which keeps its last states of bars; 0 for other documents."""
    events: list[tuple[int, FileEvent]] = field(default_factory=list)
    """Events of an event file, with their numbers."""
    damaged: list[int] = field(default_factory=list)
    """Numbers of unreadable events."""
    broken: int | None = None
    """Number of the event from which on the file is unreadable."""
    tracked: list[object] = field(default_factory=list)
    """Content of a file of an experiment tracker (`events.trackers`)."""
    processes: dict[ProcessKey, TracedProcess] = field(default_factory=dict)
    """Steps of each process in a torchtitan trace (`events.text.traces`)."""
    seen: list[UntimedEvidence] = field(default_factory=list)
    """Evidence of failures."""
    left_out: int = 0
    """Number of observations beyond the limit."""
    signs: list[UntimedRecoveryEvent] = field(default_factory=list)
    """Moments of recoveries."""
    signs_left_out: int = 0
    """Number of moments beyond the limit."""
    by_host: bool = False
    """True for a kernel log."""
    unread_steps: dict[int, int] = field(default_factory=dict)
    """Some lines that look like steps, before the first step that a rule finds: step by line number."""
    other_steps: dict[int, int] = field(default_factory=dict)
    """First and last lines of rising counters between steps that a rule finds."""
    losses: dict[int, float] = field(default_factory=dict)
    """Loss by step in the first lines of steps, if they name no rank or node."""
    interleaved: Interleaved | None = None
    """Location where several runs seem to print into the source."""
    collected: list[CollectedLine] = field(default_factory=list)
    """Lines that capabilities read."""


class CollectedSource(TextPart):
    """Content of one source so far."""

    def ended(self, deaths: DeathsAtEnd) -> CollectedSource:
        """Return the content if the source ends here."""
        if not deaths.seen and not deaths.last:
            return self
        last = {id(one) for one in deaths.last}
        seen = [replace(one, ends=True) if id(one) in last else one for one in self.seen]
        return replace(self, seen=[*seen, *deaths.seen])


class Collector:
    """Collects the parts of all sources, by code."""

    def __init__(self) -> None:
        self.sources: dict[int, CollectedSource] = {}
        self.nodes: dict[tuple[int, int | None], str] = {}
        """Host of each rank of a source, as recorded."""
        self.objects: list[tuple[int, ApiObject]] = []
        """(source, Kubernetes object with timestamps)."""
        self.cycles: list[CycleFile] = []
        """Cycles in files of NVRx."""
        self.recorded: list[RecordedRecoveryEvent] = []
        """Moments of recoveries from recorders."""
        self.observers: dict[int, EntryObserver] = {}
        """Observers of sources that are read entry by entry."""
        self.line_collectors: dict[int, LineCollector] = {}
        """Collectors of lines that capabilities read, of the same sources."""
        self.turns: dict[tuple[int, str], InterleavedRunDetector] = {}
        """Order of writers of step records, by source and format."""
        self._written: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self.sources)

    @property
    def of_files(self) -> bool:
        """Return True if some content is from files, not only from Cloud Logging entries, which name their job."""
        return bool(self.objects) or any(
            one.events or one.tracked or (one.log_lines and one.log_lines[0].entry < 0) for one in self.sources.values()
        )

    @property
    def every(self) -> Iterable[CollectedSource]:
        """Return all sources."""
        return self.sources.values()

    def written(self, source: int, modified_ns: int) -> None:
        """Set the modification time of a file of records. source: its code."""
        self._written[source] = modified_ns
        if source in self.sources:
            self.sources[source].modified_ns = modified_ns

    def add(self, source: int, part: TextPart) -> None:
        """Add a part of a source. source: its code."""
        one = self.sources.setdefault(source, CollectedSource())
        one.log_lines += part.log_lines
        one.bad += part.bad
        one.noise += part.noise
        one.blocks += part.blocks
        one.seen += part.seen
        one.left_out += part.left_out
        one.signs += part.signs
        if len(one.signs) > 2 * MOST_SIGNS:
            kept = thin_out(one.signs, lambda sign: (sign.said.point, sign.stamp.ns))
            one.signs_left_out += len(one.signs) - len(kept)
            one.signs = kept
        one.by_host |= part.by_host
        one.unread_steps |= part.unread_steps
        one.other_steps |= part.other_steps
        one.losses = {**part.losses, **one.losses}
        one.interleaved = one.interleaved or part.interleaved
        one.collected = _few_lines([*one.collected, *part.collected]) if part.collected else one.collected
        one.events += part.events
        one.tracked += part.tracked
        one.processes |= part.processes
        one.damaged += part.damaged
        one.broken = part.broken or one.broken
        one.modified_ns = part.modified_ns or one.modified_ns or self._written.get(source)


def _few_lines(lines: Sequence[CollectedLine]) -> list[CollectedLine]:
    """Return the first and the last lines of a source."""
    if len(lines) <= 2 * _MOST_LINES:
        return list(lines)
    return [*lines[:_MOST_LINES], *lines[-_MOST_LINES:]]
