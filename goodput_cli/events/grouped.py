"""Records in groups: parts of a block, by their shape."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from goodput_cli.arrays import I64
from goodput_cli.events.formats.base import Records
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
