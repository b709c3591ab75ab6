"""Resolve local times of a text source: the days of times of day, and the zone of timestamps without one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from goodput_cli.events.formats.base import Output
from goodput_cli.events.signs import UntimedRecoveryEvent
from goodput_cli.events.tensorboard import folder_of
from goodput_cli.events.text.collector import CollectedSource
from goodput_cli.events.text.line_timestamps import Timestamp, Zone, with_days
from goodput_cli.events.text.log_lines import LogLine, formats_of
from goodput_cli.events.text.source_clocks import FoundZone
from goodput_cli.events.timestamps import TimestampReader
from goodput_cli.vocabulary.when import load_zone

if TYPE_CHECKING:
    from goodput_cli.events.reading_options import ReadingOptions


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
