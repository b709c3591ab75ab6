"""Wait of watchdogs: how long processes waited for others until a collective operation timed out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from goodput_cli.events.text.log_lines import ENDS, EventType, LogLine, ParsedEvent, event_of
from goodput_cli.events.text.programs.launcher import NAME, WAIT


def is_wait(event: ParsedEvent) -> bool:
    """Return True for the line of a watchdog whose wait timed out."""
    return (event.format, event.name) == (NAME, WAIT)


def longest_waits(log_lines: list[LogLine]) -> list[LogLine]:
    """Return the log lines with one wait of a watchdog between two steps, the longest: the ranks of a job wait at the
    same time, and each reports it. It ends the process unless a step follows, at the timestamp of the last such line.

    log_lines: of one source, in line order."""
    waits: list[int] = []
    kept: dict[int, LogLine] = {}
    for row, log_line in enumerate(log_lines):
        one = log_line.event
        if one is not None and is_wait(one):
            waits.append(row)
        elif one is not None and one.type in (EventType.STEP, EventType.START):
            kept.update(_longest_wait(log_lines, waits, is_over=one.type is EventType.START))
            waits = []
    kept.update(_longest_wait(log_lines, waits, is_over=True))
    found = (kept.get(row, log_line) for row, log_line in enumerate(log_lines))
    return [one for one in found if one.event is not None or one.stamp is not None]


def _longest_wait(log_lines: Sequence[LogLine], rows: Sequence[int], *, is_over: bool) -> dict[int, LogLine]:
    """Return the lines of some waits without their events, except the longest without a time. is_over: it ended its
    process, at the last time if lines have one."""
    untimed = [row for row in rows if log_lines[row].stamp is None]
    longest = max(untimed, key=lambda row: event_of(log_lines[row]).took or 0, default=-1)
    # The first timestamp shows when the wait began: steps without times ended before. A file without steps, as of
    # another rank, is no job.
    first = -1 if untimed or not rows or not _has_trained(log_lines, rows[0]) else rows[0]
    found = {row: replace(log_lines[row], event=None) for row in rows if row not in (longest, first)}
    last = rows[-1] if rows and longest < 0 and _ends_process(log_lines, rows[-1]) else longest
    if last >= 0 and is_over:
        found[last] = replace(log_lines[last], event=replace(event_of(log_lines[last]), type=EventType.CRASHED))
    return found


def _has_trained(log_lines: Sequence[LogLine], row: int) -> bool:
    """Return True if a step is before a line."""
    return any((one := log_lines[at].event) is not None and one.type is EventType.STEP for at in range(row))


def _ends_process(log_lines: Sequence[LogLine], row: int) -> bool:
    """Return True if a line ends a process that trained, and no line after it shows that end."""
    if not _has_trained(log_lines, row):
        return False
    for at in range(row + 1, len(log_lines)):
        event = log_lines[at].event
        what = None if event is None else event.type
        if what in (EventType.STEP, EventType.START, *ENDS):
            return what not in ENDS
    return True
