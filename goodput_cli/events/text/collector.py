"""What was read from each text or event file, kept until all have been read: only then are their jobs and times known.

Light to import: every reading collects, few have anything to collect.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from goodput_cli.events.signs import MOST_SIGNS, thin_out

if TYPE_CHECKING:
    from goodput_cli.events.cluster_attempts import ApiObject
    from goodput_cli.events.event_files import FileEvent
    from goodput_cli.events.evidence import UntimedEvidence
    from goodput_cli.events.signs import CycleFile, RecordedRecoveryEvent, UntimedRecoveryEvent
    from goodput_cli.events.text.evidence_lines import EntryObserver
    from goodput_cli.events.text.log_lines import LogLine
    from goodput_cli.events.text.meaning import Interleaved, InTurns
    from goodput_cli.events.text.traces import ProcessKey, TracedProcess


@dataclass
class TextPart:
    """What a part of a source said."""

    log_lines: list[LogLine] = field(default_factory=list)
    bad: list[tuple[int, str]] = field(default_factory=list)
    """Lines that a rule knows and whose values are wrong: number and reason."""
    noise: int = 0
    """Lines that say nothing."""
    modified_ns: int | None = None
    """When the file was last written to."""
    events: list[tuple[int, FileEvent]] = field(default_factory=list)
    """Of an event file, with their numbers."""
    damaged: list[int] = field(default_factory=list)
    """Numbers of events that cannot be read."""
    broken: int | None = None
    """The number of the event from which on nothing can be read."""
    tracked: list[object] = field(default_factory=list)
    """What a file of an experiment tracker says (`events.trackers`)."""
    processes: dict[ProcessKey, TracedProcess] = field(default_factory=dict)
    """What torchtitan's trace says of the steps of each process (`events.text.traces`)."""
    seen: list[UntimedEvidence] = field(default_factory=list)
    """Observations: what lines say about deaths."""
    left_out: int = 0
    """How many observations were too many."""
    signs: list[UntimedRecoveryEvent] = field(default_factory=list)
    """Moments of recoveries that lines name."""
    signs_left_out: int = 0
    """How many of them were too many."""
    by_host: bool = False
    """Whether it is a kernel's log."""
    unread_steps: dict[int, int] = field(default_factory=dict)
    """A few lines that look as if they were about steps, of a document of which no rule reads a step: number of the
    line, and of the step."""
    losses: dict[int, float] = field(default_factory=dict)
    """The loss that the first lines of steps print, by step; of lines that no rank or node is named for."""
    interleaved: Interleaved | None = None
    """Where several runs seem to print so far."""


class CollectedSource(TextPart):
    """What one source said so far: all its parts together."""


class Collector:
    """Collects the parts of all sources, by their codes."""

    def __init__(self) -> None:
        self.sources: dict[int, CollectedSource] = {}
        self.nodes: dict[tuple[int, int | None], str] = {}
        """The host of each rank of a source, as its recorder says."""
        self.objects: list[tuple[int, ApiObject]] = []
        """(source, what an object of Kubernetes says about time)."""
        self.cycles: list[CycleFile] = []
        """What files of NVRx say of cycles."""
        self.recorded: list[RecordedRecoveryEvent] = []
        """Moments of recoveries that recorders name."""
        self.observers: dict[int, EntryObserver] = {}
        """Of sources whose lines come one by one."""
        self.turns: dict[tuple[int, str], InTurns] = {}
        """Who prints the steps of records, by source and format."""
        self._written: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self.sources)

    @property
    def of_files(self) -> bool:
        """Whether files say some of it, and not only entries of Cloud Logging, which name their job."""
        return bool(self.objects) or any(
            one.events or one.tracked or (one.log_lines and one.log_lines[0].entry < 0) for one in self.sources.values()
        )

    @property
    def every(self) -> Iterable[CollectedSource]:
        """What each source said so far."""
        return self.sources.values()

    def written(self, source: int, modified_ns: int) -> None:
        """When a file of records was last written to. source: its code."""
        self._written[source] = modified_ns
        if source in self.sources:
            self.sources[source].modified_ns = modified_ns

    def add(self, source: int, part: TextPart) -> None:
        """What a part of a source said. source: its code."""
        one = self.sources.setdefault(source, CollectedSource())
        one.log_lines += part.log_lines
        one.bad += part.bad
        one.noise += part.noise
        one.seen += part.seen
        one.left_out += part.left_out
        one.signs += part.signs
        if len(one.signs) > 2 * MOST_SIGNS:
            kept = thin_out(one.signs, lambda sign: (sign.said.point, sign.stamp.ns))
            one.signs_left_out += len(one.signs) - len(kept)
            one.signs = kept
        one.by_host |= part.by_host
        one.unread_steps |= part.unread_steps
        one.losses = {**part.losses, **one.losses}
        one.interleaved = one.interleaved or part.interleaved
        one.events += part.events
        one.tracked += part.tracked
        one.processes |= part.processes
        one.damaged += part.damaged
        one.broken = part.broken or one.broken
        one.modified_ns = part.modified_ns or one.modified_ns or self._written.get(source)
