"""Format B: Orbax' structured checkpoint log. Start times in epoch seconds, durations in seconds.

Its lines claim time and are not part of a lineage (accounting §3). The interval is the one in which the checkpoint
manager blocked the program; otherwise the hull of its parts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct

from goodput_cli.arrays import Mask
from goodput_cli.events.formats.base import EVENT_TYPE, JOB_NAME, Output, Records
from goodput_cli.events.schema import NO_STEP, Edge, Kind
from goodput_cli.events.values import MAX_NS, epoch_ns, invalid_time_reason, number, round_to_us, whole_number
from goodput_cli.record.lines import RUN_ID
from goodput_cli.sources.base import Record

_START, _DURATION = "_start_time", "_duration_secs"


class _Layout(Struct, frozen=True):
    """The keys of an event type: prefix of the whole interval, and prefixes of its parts."""

    kind: Kind
    whole: str
    parts: tuple[str, ...]


_LAYOUTS = {
    "save": _Layout(
        Kind.SAVE, "checkpoint_manager_blocking", ("wait_for_prev", "checkpointer_blocking", "get_old_steps")
    ),
    "restore": _Layout(Kind.RESTORE, "checkpoint_manager", ("checkpointer",)),
    "emergency_restore": _Layout(Kind.RESTORE, "checkpoint_manager", ("checkpointer", "broadcast")),
}
_PREFIXES = tuple(dict.fromkeys(prefix for layout in _LAYOUTS.values() for prefix in (layout.whole, *layout.parts)))
_PLAIN_DETAILS = (
    EVENT_TYPE, "directory", "reached_preemption", "preemption_received_at", "synchronous",
    "time_between_consecutive_saves_sec", "is_restoring_slice", "in_primary_slice",
)  # fmt: skip
_DETAILS = (*_PLAIN_DETAILS, *(prefix + ending for prefix in _PREFIXES for ending in (_START, _DURATION)))
_STEP = "step"

Interval = tuple[int, int]


class _UnusableError(Exception):
    """Raised for a record with an invalid value, which gives no row; args: the message of the diagnostic."""


class Orbax:
    """Format of Orbax' structured checkpoint log."""

    name = "orbax"
    keys = frozenset({JOB_NAME, RUN_ID, _STEP, *_DETAILS})

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """Return True for a record with an event type of Orbax."""
        event_type = record.get(EVENT_TYPE)
        return isinstance(event_type, str) and event_type in _LAYOUTS

    def translate(self, records: Records, output: Output) -> Mask:
        """Add a row per record: an interval with its step; `detail` has the other fields of the record as (key, value)
        pairs."""
        records = records.parsed()
        size = len(records)
        kind = np.zeros(size, dtype=np.int8)
        time, end, step = (np.zeros(size, dtype=np.int64) for _ in range(3))
        good = records.every()
        for at, record in enumerate(records.records):
            layout = _LAYOUTS[record[EVENT_TYPE]]
            try:
                step[at] = _step(record)
                interval, unplaced = _interval(record, layout, int(records.stamp[at]))
            except _UnusableError as why:
                output.report("bad_value", f"{why}; dropped", records, [at])
                good[at] = False
                continue
            if unplaced:
                output.report("unplaced_duration", unplaced, records, [at])
            good[at] = interval is not None
            kind[at], (time[at], end[at]) = layout.kind, interval or (0, 0)
        keys = tuple(key for key in _DETAILS if key in records.keys)
        values = [tuple(_plain(record[key]) for key in keys) for record in records.records]
        detail = output.details.codes_of_pairs(keys, values)
        output.rows.add(records.origin, good, kind, Edge.INTERVAL, time, end=end, step=step, detail=detail)
        return records.every()


def _step(record: Record) -> int:
    if _STEP not in record:
        return NO_STEP
    step = whole_number(record[_STEP])
    if step is None:
        raise _UnusableError(f"`{_STEP}` is not a whole number")
    return step


def _interval(record: Record, layout: _Layout, stamp: int) -> tuple[Interval | None, str]:
    """Return the interval of a record, [start, end) in ns: the whole's if it is complete, otherwise the hull of the
    complete parts, None without any. Also return a message about incomplete intervals; "" for none."""
    whole = _placed(record, layout.whole, stamp)
    if whole is not None:
        return whole, ""
    parts = [placed for prefix in layout.parts if (placed := _placed(record, prefix, stamp)) is not None]
    hull = (min(start for start, _ in parts), max(end for _, end in parts)) if parts else None
    if layout.whole + _DURATION in record:
        lost = f"`{layout.whole}{_DURATION}` without `{layout.whole}{_START}` or an envelope's timestamp"
        return hull, f"{lost}: its time is unknown; only parts with a time count"
    if hull is None:
        return None, f"`{record[EVENT_TYPE]}` has neither start nor duration, so its time is unknown; dropped"
    return hull, ""


def _placed(record: Record, prefix: str, stamp: int) -> Interval | None:
    """Return the interval of a start with a duration, or of a duration that ends at the envelope's timestamp `stamp`
    (-1: none)."""
    if prefix + _DURATION not in record:
        return None
    duration = _duration(record, prefix + _DURATION)
    if prefix + _START in record:
        start = _start(record, prefix + _START)
    elif stamp >= 0:
        start = stamp - duration
    else:
        return None
    if start < 0 or start + duration >= MAX_NS:
        raise _UnusableError(f"`{prefix}{_DURATION}` is out of range (years 1970 to 2255)")
    return start, start + duration


def _start(record: Record, key: str) -> int:
    start = epoch_ns(record[key])
    if start is None:
        raise _UnusableError(invalid_time_reason(key, record[key]))
    return start


def _duration(record: Record, key: str) -> int:
    seconds = number(record[key])
    if seconds is None or seconds < 0:
        raise _UnusableError(f"`{key}` is not a duration in seconds (0 or more)")
    return round_to_us(seconds)


def _plain(value: Any) -> Any:
    """Return a hashable value that is equal for all spellings: 5, 5.0 and "5" are 5."""
    kind = type(value)
    if kind is int or kind is bool:
        return value
    if kind is float and not value.is_integer() and math.isfinite(value):
        return value
    parsed = number(value)
    if parsed is not None:
        return int(parsed) if parsed == int(parsed) else parsed
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, sort_keys=True)
    except RecursionError:  # a detail that is nested so deeply is not regular
        return "…"
