"""What was read from each text or event file, kept until all have been read: only then are their jobs and times known.

Light to import: every reading collects, few have anything to collect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from goodput_cli.events.tensorboard.messages import Event
    from goodput_cli.events.text.marks import Mark


@dataclass(frozen=True)
class TextPart:
    """What a part of a source said."""

    marks: Sequence[Mark] = ()
    bad: Sequence[tuple[int, str]] = ()
    """Lines that a rule knows and whose values are wrong: number and reason."""
    noise: int = 0
    """Lines that say nothing."""
    modified_ns: int | None = None
    """When the file was last written to."""
    events: Sequence[tuple[int, Event]] = ()
    """Of an event file, with their numbers."""
    damaged: Sequence[int] = ()
    """Numbers of events that cannot be read."""
    broken: int | None = None
    """The number of the event from which on nothing can be read."""


@dataclass
class CollectedSource:
    """What one source said so far."""

    marks: list[Mark] = field(default_factory=list)
    bad: list[tuple[int, str]] = field(default_factory=list)
    noise: int = 0
    modified_ns: int | None = None
    events: list[tuple[int, Event]] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)
    broken: int | None = None


class Collector:
    """Collects the parts of all sources, by their codes."""

    def __init__(self) -> None:
        self.sources: dict[int, CollectedSource] = {}

    def __bool__(self) -> bool:
        return bool(self.sources)

    @property
    def of_files(self) -> bool:
        """Whether files say some of it, and not only entries of Cloud Logging, which name their job."""
        return any(one.events or (one.marks and one.marks[0].entry < 0) for one in self.sources.values())

    def add(self, source: int, part: TextPart) -> None:
        """What a part of a source said. source: its code."""
        one = self.sources.setdefault(source, CollectedSource())
        one.marks += part.marks
        one.bad += part.bad
        one.noise += part.noise
        one.events += part.events
        one.damaged += part.damaged
        one.broken = part.broken or one.broken
        one.modified_ns = part.modified_ns or one.modified_ns
