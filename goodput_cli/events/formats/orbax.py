"""Format B: Orbax' structured checkpoint log. Start times in epoch seconds, durations in seconds.

Such a line claims time and feeds no lineage (accounting §3). The interval is the one in which the checkpoint manager
blocked the program; without it, the hull of its parts.

Orbax' lines a whole column at a time, where every value of the group is an ordinary one: no line is judged here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from goodput_cli.arrays import I64, Mask
from goodput_cli.events.formats.base import EVENT_TYPE, JOB_NAME, Output, Records
from goodput_cli.events.schema import NO_STEP, Edge, Kind
from goodput_cli.events.values import (
    MAX_NS,
    epoch_column,
    epoch_ns,
    number,
    round_to_us,
    whole_column,
    whole_number,
    why_no_time,
)
from goodput_cli.record.native import RUN_ID
from goodput_cli.sources.base import Record


class Saved(Struct, frozen=True):
    """n records. time, end, step: int64[n], ns since 1970 UTC and `NO_STEP` where there is none."""

    time: I64
    end: I64
    step: I64


def placed_together(records: Records, start_key: str, duration_key: str, step_key: str) -> Saved | None:
    """The intervals and steps of records that all have a start, a duration and good values; None of any others."""
    if not {start_key, duration_key} <= records.keys:
        return None
    time, started = epoch_column(records.column(start_key))
    span, lasted = epoch_column(records.column(duration_key))  # seconds from 0 up, like epoch seconds
    step, whole = _steps(records, step_key)
    end = time + span
    if not (started.all() and lasted.all() and whole.all() and (end < MAX_NS).all()):
        return None
    return Saved(time, end, step)


def _steps(records: Records, key: str) -> tuple[I64, Mask]:
    if key not in records.keys:
        return np.full(len(records), NO_STEP, dtype=np.int64), records.every()
    return whole_column(records.column(key))


def details_together(records: Records, keys: Sequence[str], plain: Callable[[Any], Any]) -> list[tuple[Any, ...]]:
    """Per record, the plain value of each of the keys, which all records have."""
    if not keys:
        return [()] * len(records)
    return list(zip(*(_values(records.column(key), plain) for key in keys), strict=True))


def _values(values: list[Any], plain: Callable[[Any], Any]) -> list[Any]:
    kinds = set(map(type, values))
    if kinds == {float}:
        numbers = np.array(values)
        if (np.isfinite(numbers) & (np.rint(numbers) != numbers)).all():
            return values  # plain already
    elif kinds in ({str}, {bool}):
        made = {value: plain(value) for value in set(values)}  # mostly one
        return [made[value] for value in values]
    return [plain(value) for value in values]


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
    """A value is wrong, so the record gives no row; args: the message of the diagnostic."""


class Orbax:
    """Reads Orbax' structured checkpoint log."""

    name = "orbax"
    keys = frozenset({JOB_NAME, RUN_ID, _STEP, *_DETAILS})

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """A record whose event type is one of Orbax'."""
        event_type = record.get(EVENT_TYPE)
        return isinstance(event_type, str) and event_type in _LAYOUTS

    def translate(self, records: Records, output: Output) -> Mask:
        """A row per record: an interval with its step; `detail` is what else the record says, as (key, value) pairs."""
        records = records.parsed()
        together = _all_together(records)
        if together is None:
            _one_by_one(records, output)
            return records.every()
        kind, found = together
        detail = _details(records, output)
        rows, every = output.rows, records.every()
        rows.add(records.origin, every, kind, Edge.INTERVAL, found.time, end=found.end, step=found.step, detail=detail)
        return every


def _all_together(records: Records) -> tuple[Kind, Saved] | None:
    """What nearly all logs hold: records of one type, with a start and a duration of the whole, and nothing odd."""
    types = set(records.column(EVENT_TYPE))
    if len(types) > 1:
        return None
    layout = _LAYOUTS[types.pop()]
    saved = placed_together(records, layout.whole + _START, layout.whole + _DURATION, _STEP)
    return None if saved is None else (layout.kind, saved)


def _one_by_one(records: Records, output: Output) -> None:
    """Records of which some may be odd: what is wrong with each is said."""
    size = len(records)
    kind = np.zeros(size, dtype=np.int8)
    time, end, step = (np.zeros(size, dtype=np.int64) for _ in range(3))
    good = records.every()
    for at, record in enumerate(records.records):
        layout = _LAYOUTS[record[EVENT_TYPE]]
        try:
            step[at] = _step(record)
            placed = _interval(record, layout, int(records.stamp[at]))
        except _UnusableError as why:
            output.report("bad_value", f"{why}; dropped", records, [at])
            good[at] = False
            continue
        if placed.unplaced:
            output.report("unplaced_duration", placed.unplaced, records, [at])
        good[at] = placed.interval is not None
        kind[at], (time[at], end[at]) = layout.kind, placed.interval or (0, 0)
    detail = _details(records, output)
    output.rows.add(records.origin, good, kind, Edge.INTERVAL, time, end=end, step=step, detail=detail)


def _details(records: Records, output: Output) -> np.ndarray:
    keys = tuple(key for key in _DETAILS if key in records.keys)
    return output.details.codes_of_pairs(keys, details_together(records, keys, _plain))


def _step(record: Record) -> int:
    if _STEP not in record:
        return NO_STEP
    step = whole_number(record[_STEP])
    if step is None:
        raise _UnusableError(f"`{_STEP}` is no whole number")
    return step


class _Place(Struct, frozen=True):
    """Where a record lies in time, if anywhere, and what could not be placed (a message)."""

    interval: Interval | None
    unplaced: str | None = None


def _interval(record: Record, layout: _Layout, stamp: int) -> _Place:
    """[start, end) in ns: the whole's if it has a place, else the hull of the parts that have one."""
    whole = _placed(record, layout.whole, stamp)
    if whole is not None:
        return _Place(whole)
    parts = [placed for prefix in layout.parts if (placed := _placed(record, prefix, stamp)) is not None]
    hull = (min(start for start, _ in parts), max(end for _, end in parts)) if parts else None
    if layout.whole + _DURATION in record:
        lost = f"`{layout.whole}{_DURATION}` without `{layout.whole}{_START}` or an envelope's timestamp"
        return _Place(hull, f"{lost}: it has no place in time; only parts that have one count")
    if hull is None:
        return _Place(None, f"`{record[EVENT_TYPE]}` without a start and a duration has no place in time; dropped")
    return _Place(hull)


def _placed(record: Record, prefix: str, stamp: int) -> Interval | None:
    """A start with a duration; or a duration that ends at the envelope's timestamp `stamp` (-1: there is none)."""
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
        raise _UnusableError(f"`{prefix}{_DURATION}` leads out of the years 1970 to 2255")
    return start, start + duration


def _start(record: Record, key: str) -> int:
    start = epoch_ns(record[key])
    if start is None:
        raise _UnusableError(why_no_time(key, record[key]))
    return start


def _duration(record: Record, key: str) -> int:
    seconds = number(record[key])
    if seconds is None or seconds < 0:
        raise _UnusableError(f"`{key}` is no duration in seconds, from 0")
    return round_to_us(seconds)


def _plain(value: Any) -> Any:
    """A value that equals every other spelling of it and can be a key: 5, 5.0 and "5" are 5."""
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
    except RecursionError:  # nobody nests a detail that deep on purpose
        return "…"
