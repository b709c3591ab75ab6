"""Headers of epochs that are printed again before the epoch was full: a process began there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from goodput_cli.events.text.log_lines import ENDS, EventType, LogLine, ParsedEvent


@dataclass
class _Epoch:
    """The epoch of one writer, as its last lines show it."""

    number: int | None = None
    """None: no header precedes its steps."""
    count: int = 0
    """Steps since the header."""
    total: int = 0
    again: int | None = None
    """The place of a header that repeats or falls, though the epoch was not full and had steps."""


def with_restarts_at_headers(log_lines: Sequence[LogLine]) -> list[LogLine]:
    """Return the log lines of one source, with a start at each header of an epoch at which a process began again.

    The header repeats or falls although its epoch was not full, and the next count falls, too. Headers that several
    processes print have no steps between them. log_lines: in order of lines."""
    epochs: defaultdict[tuple[str, str], _Epoch] = defaultdict(_Epoch)
    starts: dict[int, LogLine] = {}
    for place, log_line in enumerate(log_lines):
        event = log_line.event
        if event is None:
            continue
        if event.type is EventType.START or event.type in ENDS:
            epochs.clear()
        elif event.type is EventType.ALIVE and event.step is None and event.running is not None:
            if event.running.epoch is not None:
                _announce(epochs[event.format, log_line.stream], event.running.epoch, place)
        elif event.type is EventType.STEP and event.running is not None and event.running.epoch is None:
            epoch = epochs[event.format, log_line.stream]
            if epoch.again is not None and (event.step or 0) < epoch.count:
                starts[epoch.again] = _start_at(log_lines[epoch.again], event.format)
            epoch.count, epoch.total, epoch.again = event.step or 0, event.running.of or 0, None
    if not starts:
        return list(log_lines)
    return [one for place, line in enumerate(log_lines) for one in (starts.get(place), line) if one is not None]


def _announce(epoch: _Epoch, number: int, place: int) -> None:
    """Take a header at a place."""
    if epoch.number is not None and number <= epoch.number and 0 < epoch.count < epoch.total:
        epoch.again = place
    elif epoch.number != number:
        epoch.count = 0
    epoch.number = number


def _start_at(header: LogLine, name: str) -> LogLine:
    return LogLine(header.line, header.stream, header.stamp, ParsedEvent(name, EventType.START), entry=header.entry)
