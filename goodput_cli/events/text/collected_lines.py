"""Lines of text that capabilities read, each with the lines that belong to it, and their rules.

Such lines are no events. The text of a line is kept, and the capability reads it when the job and the time of all
lines are known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from goodput_cli.events.text.line_timestamps import Timestamp
from goodput_cli.events.text.log_lines import Pattern


@dataclass(frozen=True, kw_only=True, eq=False)
class CollectedRule:
    """Rule for lines that a capability reads."""

    name: str
    """Name of the rule, unique among all capabilities."""
    anchors: tuple[str, ...]
    """Literals, one of which is in each line."""
    begins: Pattern
    """Pattern of a line without prefixes of launchers and collectors."""
    goes_on: Pattern | None = None
    """Pattern of the next lines of the same process that belong to it; None: it is alone."""
    most: int = 0
    """Maximum number of these lines."""


@dataclass(slots=True)
class CollectedLine:
    """A line that a capability reads, before its job and time are known."""

    rule: str
    number: int
    text: str
    """Text without prefixes of launchers and collectors."""
    prefix: str
    """These prefixes."""
    stream: str
    stamp: Timestamp | None
    job: str = ""
    """Job that a collector's entry names."""
    more: list[str] = field(default_factory=list)
    """The lines that belong to it."""


def literals_of(rules: Iterable[CollectedRule]) -> set[str]:
    """Return the literals of some rules."""
    return {anchor for rule in rules for anchor in rule.anchors}
