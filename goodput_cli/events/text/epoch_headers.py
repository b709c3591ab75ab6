"""Headers of epochs that are printed again before the epoch was full: a process began there."""

from __future__ import annotations

from collections import Counter, defaultdict
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
    stride: int = 0
    """Steps between the last two records."""
    again: int | None = None
    """Index of a header that repeats or falls although the epoch was not full and had steps."""


def with_restarts_at_headers(log_lines: Sequence[LogLine]) -> list[LogLine]:
    """Return the log lines of one source, with a start at each header of an epoch at which a process began again.

    The header repeats or falls although its epoch was not full, and the next count falls, too. Without steps between
    two headers, it repeats alone: several processes that print headers print each of them again. log_lines: in order of
    lines."""
    epochs: defaultdict[tuple[str, str], _Epoch] = defaultdict(_Epoch)
    starts: dict[int, LogLine] = {}
    headers = _headers(log_lines)
    alone = {key for key, numbers in headers.items() if 2 * sum(count > 1 for count in numbers.values()) < len(numbers)}
    for place, log_line in enumerate(log_lines if headers else ()):
        event = log_line.event
        if event is None:
            continue
        if event.type is EventType.START or event.type in ENDS:
            epochs.clear()
        elif (number := _number_of(log_line)) is not None:
            epoch = epochs[event.format, log_line.stream]
            if epoch.number == number and not epoch.count and (event.format, log_line.stream) in alone:
                starts[place] = _start_at(log_line, event.format)
            _announce(epoch, number, place)
        elif event.type is EventType.STEP and event.running is not None and event.running.epoch is None:
            epoch = epochs[event.format, log_line.stream]
            if epoch.again is not None and (event.step or 0) < epoch.count:
                starts[epoch.again] = _start_at(log_lines[epoch.again], event.format)
            step = event.step or 0
            epoch.stride = max(step - epoch.count, 0)
            epoch.count, epoch.total, epoch.again = step, event.running.of or 0, None
    if not starts:
        return list(log_lines)
    return [one for place, line in enumerate(log_lines) for one in (starts.get(place), line) if one is not None]


def _headers(log_lines: Sequence[LogLine]) -> dict[tuple[str, str], Counter[int]]:
    """Return how often each writer prints the header of each epoch."""
    found: defaultdict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    for log_line in log_lines:
        number = _number_of(log_line)
        if number is not None and log_line.event is not None:
            found[log_line.event.format, log_line.stream][number] += 1
    return found


def _number_of(log_line: LogLine) -> int | None:
    """Return the epoch that a header names; None for other lines."""
    event = log_line.event
    if event is None or event.type is not EventType.ALIVE or event.step is not None or event.running is None:
        return None
    return event.running.epoch


def _announce(epoch: _Epoch, number: int, place: int) -> None:
    """Add a header at an index."""
    if epoch.number is not None and number <= epoch.number and 0 < epoch.count < epoch.total - epoch.stride:
        epoch.again = place
    elif epoch.number != number:
        epoch.count = 0
    epoch.number = number


def _start_at(header: LogLine, name: str) -> LogLine:
    return LogLine(header.line, header.stream, header.stamp, ParsedEvent(name, EventType.START), entry=header.entry)
