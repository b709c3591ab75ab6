"""Follow one line of a text log through the passes, for `goodput check --explain FILE:LINE`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from goodput_cli.events.schema import Edge
from goodput_cli.events.text.log_lines import EventType, LogLine, ParsedEvent, Stretch
from goodput_cli.events.text.passes import READ
from goodput_cli.vocabulary.text import iso, seconds_text

_NOTHING = "dropped"


class LineTrace:
    """What each pass changed about a line of the first source. Reading a log again begins anew."""

    def __init__(self, line: int) -> None:
        """line: its number."""
        self._line = line
        self.changes: list[tuple[str, str]] = []
        """Each pass that changed it, in order, and what it is then."""

    def __call__(self, name: str, lines_of: Callable[[int], Iterable[LogLine]]) -> None:
        if name == READ:
            self.changes = []
        now = "; ".join(_described(lines_of(0), self._line)) or _NOTHING
        if now != (self.changes[-1][1] if self.changes else _NOTHING):
            self.changes.append((name, now))


def _described(log_lines: Iterable[LogLine], line: int) -> Iterator[str]:
    """Yield what the log lines of a line are: one, or several such as a start and a record."""
    for one in log_lines:
        if one.line == line:
            yield _description(one.event, None if one.event is None else one.event.step, one.time, one.end)
        elif one.inner is not None and int(one.inner.line[0]) <= line <= int(one.inner.line[-1]):
            yield from _described_in(one.inner, line)


def _described_in(inner: Stretch, line: int) -> Iterator[str]:
    at = int(np.searchsorted(inner.line, line))
    if int(inner.line[at]) == line:
        time = int(inner.time[at])
        yield _description(inner.event, inner.first + inner.stride * at, time, time)


def _description(event: ParsedEvent | None, step: int | None, time: int, end: int) -> str:
    if event is None:
        return f"only a time{_at(time)}"
    named = event.type.value if event.type is not EventType.ALIVE else "activity"
    edge = "" if event.edge is Edge.POINT else f" {event.edge.name.lower()}"
    until = f" to {iso(end)}" if end > time else f", {seconds_text(event.took)} s" if event.took else ""
    return f"{named}{edge}{'' if step is None else f' {step}'}{_at(time)}{until}"


def _at(time: int) -> str:
    return f" at {iso(time)}" if time else ""
