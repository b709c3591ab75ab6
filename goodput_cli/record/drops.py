"""Lines that a sink did not get: counted, and said in the log as soon as it takes lines again."""

from __future__ import annotations

from .lines import STEP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    SayDropped = Callable[["Drops", str], bytes]
    """Makes the line that says it: of these drops, at the sink of this name."""


class Drops:
    """How many lines, how many of them steps, and when (µs): the first and the last."""

    __slots__ = ("first", "last", "lines", "reason", "steps")

    def __init__(self) -> None:
        self.lines = self.steps = self.first = self.last = 0
        self.reason = ""

    def add(self, kind: int, us: int, reason: str) -> None:
        """One line more. The last reason counts."""
        self.first = min(self.first, us) if self.lines else us
        self.last = max(self.last, us)
        self.steps += kind == STEP
        self.reason = reason
        self.lines += 1

    def merge(self, other: Drops) -> None:
        """Those of another one too."""
        if other.lines:
            self.first = min(self.first, other.first) if self.lines else other.first
            self.last = max(self.last, other.last)
            self.lines += other.lines
            self.steps += other.steps
            self.reason = other.reason
