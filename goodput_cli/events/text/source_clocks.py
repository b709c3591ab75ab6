"""Judge the clock of a source: the zone of its timestamps, if a collector's exact timestamps are next to them (`kubectl
logs --timestamps`), the lines at which a process begins again, and jumps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from goodput_cli.arrays import I64, Mask, alike
from goodput_cli.events.text.line_timestamps import Zone
from goodput_cli.events.text.log_lines import EventType, LogLine, Stamps, Stretch
from goodput_cli.events.text.stretches import column_of, steps_and_ends
from goodput_cli.events.timestamps import QUARTER_NS, offset_of_day, offset_text
from goodput_cli.vocabulary.when import NS_PER_DAY, NS_PER_SECOND


class FoundZone:
    """Offsets from UTC by day, according to lines with two times."""

    def __init__(self, log_lines: Sequence[LogLine]) -> None:
        """log_lines: of the sources written by one cluster."""
        both = [
            one for one in log_lines
            if one.local is not None and one.stamp is not None and one.local.zone is Zone.NAIVE
        ]  # fmt: skip
        stamps = column_of(both, lambda one: one.stamp.ns if one.stamp else 0, lambda inner: _ns_of(inner.stamps))
        local = column_of(both, lambda one: one.local.ns if one.local else 0, lambda inner: _ns_of(inner.local))
        ahead, rows = local - stamps, alike(stamps // NS_PER_DAY)
        self._quarters = {day: offset_of_day(ahead[own]) for day, own in rows.items()}

    def __bool__(self) -> bool:
        return any(self._quarters.values())

    def __str__(self) -> str:
        named = sorted({offset_text(quarter) for quarter in self._quarters.values()})
        return f"UTC{', UTC'.join(named)}"

    def from_local(self, ns: int) -> int:
        """Return the time of a local time, with the offset of its day or of the nearest known day."""
        day = min(self._quarters, key=lambda one: abs(one - ns // NS_PER_DAY))
        return ns - self._quarters[day] * QUARTER_NS


def _ns_of(stamps: Stamps | None) -> I64:
    return np.zeros(0, dtype=np.int64) if stamps is None else stamps.ns


def begun_again(log_lines: Sequence[LogLine]) -> tuple[int, ...]:
    """Return lines at which a process continues a job: a start after a step, or a step below the previous one in its
    stream."""
    again: list[int] = []
    before: dict[tuple[str, str], int | None] = {}
    for log_line in log_lines:
        event = log_line.event
        # `by_elapsed` appends these after all others.
        if event is None or (event.type is EventType.START and log_line.odd):
            continue
        stream = event.format, log_line.stream
        last = before.get(stream)
        if event.type is EventType.STEP and event.step is not None:
            again += [log_line.line] * (last is not None and event.step < last)
            before[stream] = event.step
        elif event.type is EventType.START and last is not None:
            again.append(log_line.line)
            before[stream] = None
    return tuple(again)


_SPRING = ((3, 4), (9, 10))
"""Months in which clocks are set forward, in the north and the south."""
_HOUR, _NIGHT = 3600 * NS_PER_SECOND, 4 * 3600 * NS_PER_SECOND
_SUNDAY = 3
"""Of days since 1970, modulo 7."""
_FEW_GAPS = 4
_SLOWEST = 60 * NS_PER_SECOND
"""Maximum distance of records; with a larger one, a jump of quarters of an hour is chance."""


def jumps(log_lines: Sequence[LogLine]) -> tuple[int, str] | None:
    """Return the step line before which timestamps jump by quarters of an hour (to within a step), as if a clock was
    set or zones were mixed, and a description; None if they do not. log_lines: with times, in line order."""
    steps = [
        log_line
        for log_line in log_lines
        if log_line.event is not None and log_line.event.type is EventType.STEP and log_line.stamp is not None
    ]
    numbers, ends = steps_and_ends(steps)
    if not np.any(np.abs(np.diff(ends)) >= QUARTER_NS - _SLOWEST):
        return None
    lines = column_of(steps, lambda one: one.line, lambda inner: inner.line)
    pairs = np.flatnonzero(numbers[1:] >= numbers[:-1])
    gaps = np.diff(ends)[pairs]
    if len(gaps) < _FEW_GAPS:
        return None
    usual = int(np.median(np.diff(np.unique(ends))))
    room = max(usual, 2 * NS_PER_SECOND)
    room = room if usual <= _SLOWEST else usual // 2
    far = np.flatnonzero((gaps <= room - QUARTER_NS) & _are_quarters(gaps - usual, room))
    if len(far) and usual <= _SLOWEST:
        times = "once" if len(far) == 1 else f"{len(far)} times"
        return int(lines[pairs[far[0]] + 1]), (
            f"timestamps jump back by {round((usual - int(gaps[far[0]])) / QUARTER_NS) / 4:g} h, {times}, while steps "
            "continue: a clock was set, or lines have two zones. Times of steps are then wrong, and restarts and "
            "long steps may be false. Read lines of one zone, or log an offset"
        )
    hours = pairs[np.abs(gaps - usual - _HOUR) <= room]
    if not len(hours):
        return None
    naive = column_of(steps, _is_naive, lambda inner: np.full(len(inner), _has_no_zone(inner)))
    stamps = column_of(steps, lambda one: 0 if one.stamp is None else one.stamp.ns, lambda inner: _ns_of(inner.stamps))
    return int(lines[hours[0] + 1]), _forward(bool(naive[hours[0]]), int(stamps[hours[0]]))


def _is_naive(log_line: LogLine) -> bool:
    return log_line.stamp is not None and log_line.stamp.zone is Zone.NAIVE


def _has_no_zone(inner: Stretch) -> bool:
    return inner.stamps is not None and inner.stamps.zone is Zone.NAIVE


def _are_quarters(ns: I64, room: int) -> Mask:
    """Return bool[n]: whether an amount is quarters of an hour, but for a room."""
    rest = ns % QUARTER_NS
    found: Mask = np.minimum(rest, QUARTER_NS - rest) <= room
    return found


def _forward(naive: bool, ns: int) -> str:
    """Describe a clock set forward. naive: True if the timestamp before the gap has no zone. ns: that timestamp."""
    day = str(np.datetime64(ns // NS_PER_DAY, "D"))
    night = ns // NS_PER_DAY % 7 == _SUNDAY and ns % NS_PER_DAY < _NIGHT
    if naive and night and any(low <= int(day[5:7]) <= high for low, high in _SPRING):
        return (
            f"no step for an hour in the night of {day}, when many zones set clocks forward. If the log is from such a "
            "zone, pass it with --timezone: then there was no pause"
        )
    return (
        "one step took almost exactly an hour more than usual, as if a clock was set forward. If it was, there was no "
        "pause, and the window is an hour too long (--exclude removes it)"
    )
