"""The registry of log formats, of other packages and built in, and the choice of the format for each record.

The lines of a log have few shapes (sets of keys), so records are grouped by shape and a format processes whole columns.
Their entries determine the format, otherwise their keys and their kind of event.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from goodput_cli.arrays import I64
from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.formats.base import EVENT_TYPE, JOB_NAME, Entry, Format, FormatOptions, Records
from goodput_cli.events.formats.collected import TRACKED, MlDiagnostics, Sacct, TimelessMetricsFormat, Torchtitan
from goodput_cli.events.formats.native import NativeFormat
from goodput_cli.events.formats.nvrx import NvrxCycles
from goodput_cli.events.formats.orbax import Orbax
from goodput_cli.events.formats.recorder import RecorderFormat
from goodput_cli.events.formats.resiliency import Resiliency
from goodput_cli.events.json_documents import KEYS as WRAPPED
from goodput_cli.events.reading_options import ReadingOptions
from goodput_cli.events.timestamps import GENERIC_NAMES, PAYLOAD
from goodput_cli.sources.base import Record

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "goodput_cli.formats"
BUILT_IN: tuple[Callable[[], Format], ...] = (
    Orbax, RecorderFormat, MlDiagnostics, Resiliency, NativeFormat, Sacct, Torchtitan, TimelessMetricsFormat,
    NvrxCycles, *TRACKED,
)  # fmt: skip
"""One row per format; if two recognize a record, the first reads it."""


def all_formats(notes: DiagnosticCollector) -> tuple[Format, ...]:
    """Return a new object of each format, those of other packages first; report formats that cannot be loaded."""
    foreign: list[Format] = []
    for point in plugged_in():
        try:
            foreign.append(point.load()())
        except Exception as error:  # the code of another package may fail in any way
            message = f"the log format {point.name} ({point.value}) could not be loaded and is not read: {error}"
            notes.add("format_plugin_failed", message, 0, [])
    return (*foreign, *(make() for make in BUILT_IN))


@cache
def plugged_in() -> tuple[EntryPoint, ...]:
    """Return the formats of other packages, looked up once."""
    from importlib.metadata import entry_points  # imported late: it takes longer than reading a small log

    return tuple(entry_points(group=ENTRY_POINT_GROUP))


def grouped(records: Sequence[Any], shape: Callable[[Any], Any]) -> dict[Any, list[int]]:
    """Return the positions of the records of each shape."""
    groups: defaultdict[Any, list[int]] = defaultdict(list)
    for at, record in enumerate(records):
        groups[shape(record)].append(at)
    return groups


def take(block: Records, places: Sequence[int] | I64, keys: frozenset[str], *, loose: bool = False) -> Records:
    """Return the records of a block at some positions, which have these keys; loose: and possibly more (see
    `Records`)."""
    if len(places) == len(block):
        return replace(block, keys=keys, loose=loose or block.loose)
    rows = np.asarray(places, dtype=np.int64)
    records, entries = block.records, block.entries
    return Records(
        [records[int(at)] for at in places],
        keys,
        block.origin.take(rows),
        block.stamp[rows],
        loose,
        entries=None if entries is None else [entries[int(at)] for at in places],
    )


MANY_SHAPES = 64
"""With more shapes than this in a block, only known keys distinguish shapes, so that invented keys or their order
cannot make reading slow."""
_CACHE_SIZE = 4096


class FormatDispatcher:
    """All formats: those that a user declared, the built-in ones, and shipped mappings for records that no other format
    reads."""

    def __init__(self, hints: ReadingOptions, notes: DiagnosticCollector) -> None:
        """notes: collects the errors of plug-ins."""
        self._hints = hints
        self._formats = (*(hints.mappings.first_formats if hints.mapping else ()), *all_formats(notes))
        self._traits: dict[Format, FormatOptions] = {}  # of the formats that read a record
        self._by_their_entries = {
            one: recognises for one in self._formats if (recognises := getattr(one, "recognises_entry", None))
        }
        self._format_of: dict[Hashable, Format | None] = {}

    def traits(self, log_format: Format) -> FormatOptions:
        """Return the options of a format."""
        if log_format not in self._traits:
            self._traits[log_format] = FormatOptions.of(log_format)
        return self._traits[log_format]

    @cached_property
    def _known_keys(self) -> frozenset[str]:
        return frozenset({PAYLOAD, JOB_NAME, EVENT_TYPE, *GENERIC_NAMES, *WRAPPED}).union(
            *(one.keys for one in self._formats)
        )

    def by_shape(self, block: Records) -> Iterable[Records]:
        """Return the records in groups of the same keys (or at least the same known ones)."""
        groups = grouped(block.records, tuple)
        loose = len(groups) > MANY_SHAPES
        if loose:
            groups = grouped(block.records, self._known_keys.intersection)
        return [take(block, places, frozenset(keys), loose=loose) for keys, places in groups.items()]

    def by_format(self, group: Records) -> Iterator[tuple[Format | None, Records]]:
        """Yield the records of a group by the format that reads them; None: no format."""
        for log_format, records in self._by_entry(group) if len(group) else ():
            if log_format is None:
                yield from self._by_event_type(records)
            else:
                yield log_format, records

    def _by_entry(self, group: Records) -> Iterable[tuple[Format | None, Records]]:
        """Return the records by the format that recognizes their entries; None: no such format."""
        if group.entries is None or not self._by_their_entries:
            return [(None, group)]
        if group.columns is not None:  # the entries of a template differ only in time and identity
            return [(self._format_of_entry(group.entries[0]), group)]
        groups = grouped(group.entries, self._format_of_entry)
        return [(one, take(group, places, group.keys)) for one, places in groups.items()]

    def _format_of_entry(self, entry: Entry) -> Format | None:
        return next((one for one, recognises in self._by_their_entries.items() if recognises(entry)), None)

    def _by_event_type(self, group: Records) -> Iterable[tuple[Format | None, Records]]:
        if EVENT_TYPE not in group.keys or group.same(EVENT_TYPE) is not None:
            return [(self._find_format(group.keys, group.records[0]), group)]
        types = [one if type(one) is str else None for one in group.column(EVENT_TYPE)]
        sample = dict(zip(types, group.records, strict=True))
        format_of = {one: self._find_format(group.keys, record) for one, record in sample.items()}
        groups = grouped(types, format_of.__getitem__)
        return [(one, take(group, places, group.keys)) for one, places in groups.items()]

    def _find_format(self, keys: frozenset[str], record: Record) -> Format | None:
        event_type = record.get(EVENT_TYPE)
        shape = (keys, event_type if isinstance(event_type, str) else None)
        if shape in self._format_of:
            return self._format_of[shape]
        if len(self._format_of) >= _CACHE_SIZE:
            self._format_of.clear()
        found = next((one for one in self._formats if one.recognises(record)), None)
        if found is None:
            found = next((one for one in self._hints.mappings.last_formats if one.recognises(record)), None)
        self._format_of[shape] = found
        return found
