"""Which format reads which records: told by their entries, else by their keys and their kind of event.

Records in groups: parts of a block, by their shape.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from goodput_cli.arrays import I64
from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.envelope import PAYLOAD, SAYS_NOTHING
from goodput_cli.events.formats.base import EVENT_TYPE, JOB_NAME, Entry, Format, Records, Traits
from goodput_cli.events.formats.registry import all_formats
from goodput_cli.events.hints import Hints
from goodput_cli.events.wrapped_lines import KEYS as WRAPPED
from goodput_cli.sources.base import Record


def grouped(records: Sequence[Any], shape: Callable[[Any], Any]) -> dict[Any, list[int]]:
    """The positions of the records of each shape."""
    groups: dict[Any, list[int]] = {}
    for at, record in enumerate(records):
        key = shape(record)
        if key in groups:
            groups[key].append(at)
        else:
            groups[key] = [at]
    return groups


def take(block: Records, places: Sequence[int] | I64, keys: frozenset[str]) -> Records:
    """The records of a block at some places, which have these keys."""
    if len(places) == len(block):
        return replace(block, keys=keys)
    rows = np.asarray(places, dtype=np.int64)
    records, entries = block.records, block.entries
    return Records(
        [records[int(at)] for at in places],
        keys,
        block.origin.take(rows),
        block.stamp[rows],
        entries=None if entries is None else [entries[int(at)] for at in places],
    )


def without_nulls(records: Sequence[Record], nulls: bool) -> Sequence[Record]:
    """`null` is absent."""
    if not nulls:
        return records
    return [
        {key: value for key, value in record.items() if value is not None} if None in record.values() else record
        for record in records
    ]


def same_name(names: Sequence[Any]) -> str:
    """The name that all have; empty where there is none."""
    first = names[0] if names else ""
    return first if isinstance(first, str) and names.count(first) == len(names) else ""


def places_of_keys(records: Records, known: frozenset[str]) -> dict[str, list[int]]:
    """The positions of the records that have each key that is not known."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for at, record in enumerate(records.records):
        for key in record.keys() - known:
            places[key].append(at)
    return places


MANY_SHAPES = 64
"""With more shapes than this in a block, only keys that some format knows tell shapes apart: nobody can make reading
slow by inventing keys or their order."""
_CACHE_SIZE = 4096


class Recogniser:
    """Knows all formats: those that a user declared, ours, and those of shipped mappings where nothing else reads."""

    def __init__(self, hints: Hints, notes: DiagnosticCollector) -> None:
        """notes: takes what plug-ins get wrong."""
        self._hints = hints
        self._formats = {one: Traits.of(one) for one in (*hints.first_formats, *all_formats(notes))}
        self._last_formats: list[Format] | None = None  # those of shipped mappings, once a record is of no other
        self._by_their_entries = {
            one: traits.recognises_entry for one, traits in self._formats.items() if traits.recognises_entry
        }
        self._known_keys = frozenset({PAYLOAD, JOB_NAME, EVENT_TYPE, *SAYS_NOTHING, *WRAPPED}).union(
            *(one.keys for one in self._formats)
        )
        self._format_of: dict[Hashable, Format | None] = {}

    def traits(self, log_format: Format) -> Traits:
        """What a format says of itself."""
        return self._formats[log_format]

    def by_shape(self, block: Records) -> Iterable[Records]:
        """The records in groups, all of a group with the same keys (or at least the same known ones)."""
        groups = grouped(block.records, tuple)
        loose = len(groups) > MANY_SHAPES
        if loose:
            groups = grouped(block.records, self._known_keys.intersection)
        return [replace(take(block, places, frozenset(keys)), loose=loose) for keys, places in groups.items()]

    def by_format(self, group: Records) -> Iterator[tuple[Format | None, Records]]:
        """The records of a group by the format that reads them; None: there is none."""
        for log_format, records in self._by_entry(group) if len(group) else ():
            if log_format is None:
                yield from self._by_event_type(records)
            else:
                yield log_format, records

    def _by_entry(self, group: Records) -> Iterable[tuple[Format | None, Records]]:
        """By the format that knows the entry around them; None where there is no such entry."""
        if group.entries is None or not self._by_their_entries:
            return [(None, group)]
        if group.columns is not None:  # the entries of a template differ in time and identity only
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
        if len(set(format_of.values())) == 1:
            return [(next(iter(format_of.values())), group)]
        places: defaultdict[Format | None, list[int]] = defaultdict(list)
        for at, one in enumerate(types):
            places[format_of[one]].append(at)
        return [(one, take(group, at, group.keys)) for one, at in places.items()]

    def _find_format(self, keys: frozenset[str], record: Record) -> Format | None:
        event_type = record.get(EVENT_TYPE)
        shape = (keys, event_type if isinstance(event_type, str) else None)
        if shape in self._format_of:
            return self._format_of[shape]
        if len(self._format_of) >= _CACHE_SIZE:
            self._format_of.clear()
        found = next((one for one in self._formats if one.recognises(record)), None) or self._by_mapping(record)
        self._format_of[shape] = found
        return found

    def _by_mapping(self, record: Record) -> Format | None:
        """The shipped mapping that reads a record of no other format."""
        if self._last_formats is None:
            self._last_formats = list(self._hints.last_formats)
        found = next((one for one in self._last_formats if one.recognises(record)), None)
        if found is not None:
            self._formats.setdefault(found, Traits.of(found))
        return found
