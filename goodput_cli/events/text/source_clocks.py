"""Clocks of sources: the zone of timestamps, the days of times of day, the lines at which a process begins again, and
jumps.

Exact timestamps of a collector next to those of the program show their zone (`kubectl logs --timestamps`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from goodput_cli.arrays import I64, Mask, alike
from goodput_cli.events.formats.base import Output
from goodput_cli.events.signs import UntimedRecoveryEvent
from goodput_cli.events.tensorboard import folder_of
from goodput_cli.events.text.collector import CollectedSource
from goodput_cli.events.text.line_timestamps import Timestamp, Zone, with_days
from goodput_cli.events.text.log_lines import EventType, LogLine, Running, Stamps, Stretch, formats_of
from goodput_cli.events.text.stretches import column_of, steps_and_ends
from goodput_cli.events.timestamps import QUARTER_NS, TimestampReader, offset_of_day, offset_text
from goodput_cli.vocabulary.when import NS_PER_DAY, NS_PER_MINUTE, NS_PER_SECOND, load_zone

if TYPE_CHECKING:
    from goodput_cli.events.reading_options import ReadingOptions


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
    apart = np.diff(np.sort(ends))
    usual = int(np.median(apart[apart > 0]))
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


def on_days(code: int, source: CollectedSource, hints: ReadingOptions, output: Output) -> CollectedSource:
    """Return a source with days for its times of day. The original stays unchanged: a dated line may follow."""
    if not _has_times_of_day(source):
        return _with_days_of_signs(source, hints)
    lines = [replace(one, event=None if one.event is None else replace(one.event)) for one in source.log_lines]
    seen = [replace(one) for one in source.seen]
    places: list[tuple[int, Any, str]] = [(one.line, one, "stamp") for one in lines]
    places += [(one.line, one.event, "at") for one in lines if one.event is not None]
    places += [(one.line, one, name) for one in seen for name in _STAMPS]
    places = sorted((one for one in places if getattr(*one[1:]) is not None), key=itemgetter(0))
    if _are_since_a_start([getattr(one, name) for _, one, name in places]):
        return _without_times_of_day(source, lines, seen)
    from_local = local_clock(lines, hints, output, None)[0]
    changed, begin = source.modified_ns or hints.now_ns, hints.clock_start
    changed += changed - from_local(changed)  # In the zone of the timestamps.
    at = None if begin is None else begin.value
    if begin is not None and begin.kind == "instant":
        at = 2 * begin.value - from_local(begin.value)
    stamps, assumed = with_days([getattr(one, name) for _, one, name in places], changed, at, hints.year)
    for (_, one, name), stamp in zip(places, stamps, strict=True):
        setattr(one, name, stamp)
    if assumed:
        message = "no line has a date: the day comes from the file's modification time"
        output.notes.add("day_assumed", message, code, [places[0][0]])
    return _with_days_of_signs(replace(source, log_lines=lines, seen=seen), hints)


def _are_since_a_start(stamps: Sequence[Timestamp]) -> bool:
    """Return True if times of day are times since the start of each process: they begin at 0, and fall to 0 again."""
    ns = np.array([one.ns for one in stamps], dtype=np.int64)
    falls = ns[1:][np.diff(ns) < -_THREADS]
    return bool(
        len(falls) and max(ns[0], falls.max()) < NS_PER_MINUTE and all(one.zone is Zone.DAYLESS for one in stamps)
    )


def _without_times_of_day(source: CollectedSource, lines: list[LogLine], seen: list[Any]) -> CollectedSource:
    """Return a source with the times of its step records since the start of their processes."""
    for one in lines:
        if one.event is not None and one.stamp is not None and one.event.type is EventType.STEP:
            running = one.event.running or Running()
            one.event.running = replace(running, elapsed=one.stamp.ns, begins=True)
        one.stamp = None
        if one.event is not None:
            one.event.at = None
    for each in seen:
        for name in _STAMPS:
            setattr(each, name, None)
    return replace(source, log_lines=lines, seen=seen, signs=[])


def _with_days_of_signs(source: CollectedSource, hints: ReadingOptions) -> CollectedSource:
    """Return a source whose signs have the days of the lines around them; the lines stay unchanged. If no line has a
    day, drop signs that have only a time of day."""
    if not any(one.stamp.zone is Zone.DAYLESS for one in source.signs):
        return source
    lines = [(one.line, one.stamp) for one in source.log_lines if one.stamp is not None]
    if not lines:
        return replace(source, signs=[one for one in source.signs if one.stamp.zone is not Zone.DAYLESS])
    places: list[tuple[int, Timestamp, UntimedRecoveryEvent | None]] = [(line, stamp, None) for line, stamp in lines]
    places = sorted([*places, *((one.line, one.stamp, one) for one in source.signs)], key=itemgetter(0))
    stamps, _ = with_days([stamp for _, stamp, _ in places], source.modified_ns or hints.now_ns, None, hints.year)
    signs = [replace(one, stamp=stamp) for (_, _, one), stamp in zip(places, stamps, strict=True) if one is not None]
    return replace(source, signs=signs)


_THREADS = 2 * NS_PER_SECOND
"""Maximum decrease of timestamps that threads write."""
_STAMPS = ("before", "stamp", "behind", "late")
"""Fields of evidence that are timestamps."""


def _has_times_of_day(source: CollectedSource) -> bool:
    stamps = chain(
        (one.stamp for one in source.log_lines),
        (one.event.at for one in source.log_lines if one.event is not None),
        (getattr(one, name) for one in source.seen for name in _STAMPS),
    )
    return any(stamp is not None and stamp.zone is Zone.DAYLESS for stamp in stamps)


def local_clock(
    log_lines: Sequence[LogLine], hints: ReadingOptions, output: Output, zone: FoundZone | None
) -> tuple[Callable[[int], int], str]:
    """Return the conversion of a source's local time to ns UTC, and the zone that a mapping names."""
    said_zone = hints.mappings.zone_of(formats_of(log_lines)) if hints.mapping and output.zones else ""
    if said_zone:
        return TimestampReader(load_zone(said_zone)).from_local, said_zone
    return output.clock.from_local if zone is None else zone.from_local, ""


def zones_of(sources: Mapping[int, CollectedSource], names: Sequence[str]) -> dict[str, FoundZone]:
    """Return the zone of each folder whose lines have both a collector's time and their own."""
    log_lines: defaultdict[str, list[LogLine]] = defaultdict(list)
    for code, source in sources.items():
        log_lines[folder_of(names[code])] += [log_line for log_line in source.log_lines if log_line.local is not None]
    found = {folder: FoundZone(of_folder) for folder, of_folder in log_lines.items() if of_folder}
    return {folder: zone for folder, zone in found.items() if zone}
