"""Format C: events of the resiliency library. ISO-8601 timestamps, usually local time without a zone. This module also
has the shared parts of formats whose events have a word as name: kind, step and rank."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import I64, Mask
from goodput_cli.events.formats.base import EVENT_TYPE, JOB_NAME, Output, Records, whole_numbers
from goodput_cli.events.schema import CHECKPOINT_KINDS, NO_STEP, NONE, Edge, Kind
from goodput_cli.events.timestamps import ParsedTimestamps

RESILIENCY_KINDS = {
    "user_scheduled": Kind.SCHEDULED,
    "job_started": Kind.START,
    "checkpoint_loaded": Kind.LOAD,
    "step_finished": Kind.FINISHED,
    "checkpoint_saved": Kind.SAVED,
    "job_terminated": Kind.TERMINATED,
    "job_crashed": Kind.CRASHED,
    "user_terminated": Kind.USER_TERMINATED,
    "job_finished": Kind.JOB_FINISHED,
}
"""The events of the resiliency library, in which other formats define theirs."""
UNKNOWN = -1
"""The code of an unknown word."""
_STEP = "step"
_MAX_RANK = np.iinfo(np.int32).max


def codes(records: Records, key: str, known: Mapping[str, int]) -> NDArray[np.int8]:
    """Return int8[n]: the code of the word under `key`, `UNKNOWN` for an unknown word or a value that is not text."""
    same = records.same(key)
    if same is not None:
        return np.full(len(records), _code(known, same), dtype=np.int8)
    return np.array([_code(known, name) for name in records.column(key)], dtype=np.int8)


def _code(known: Mapping[str, int], name: object) -> int:
    return known.get(name, UNKNOWN) if isinstance(name, str) else UNKNOWN


def report_unknown(records: Records, key: str, unknown: Mask, output: Output) -> None:
    """Report each unknown word."""
    lines_of_name: defaultdict[str, list[int]] = defaultdict(list)
    for at in np.flatnonzero(unknown).tolist():
        lines_of_name[output.notes.bounded("unknown_event", str(records.records[at][key]))].append(at)
    for name, places in lines_of_name.items():
        output.report("unknown_event", f"unknown event type {name}; such lines are ignored", records, places)


def steps(records: Records, kind: NDArray[np.int8], good: Mask, output: Output) -> I64:
    """Return int64[n]; clear `good` for a wrong step, or a missing one that is required."""
    if _STEP not in records.keys:
        needed = good & np.isin(kind, CHECKPOINT_KINDS)
        output.report("bad_value", f"a checkpoint or step event without `{_STEP}`; dropped", records, needed)
        good &= ~needed
        return np.full(len(records), NO_STEP, dtype=np.int64)
    step, whole = output.whole(records, _STEP)
    good &= whole
    return step


def ranks(records: Records, key: str, output: Output) -> NDArray[np.int32]:
    """Return int32[n]; an invalid rank counts as unknown, because the event itself is still valid."""
    if key not in records.keys:
        return np.full(len(records), NONE, dtype=np.int32)
    rank, whole = whole_numbers(records, key)
    fits = whole & (rank >= 0) & (rank <= _MAX_RANK)
    output.report("bad_value", f"`{key}` is not a rank (0 or more); the event counts without it", records, ~fits)
    return np.where(fits, rank, NONE).astype(np.int32)


_TIMESTAMP, _RANK = "timestamp", "node_rank"


class Resiliency:
    """Format of the events of the resiliency library."""

    name = "resiliency"
    restores_are_inferred = True
    keys = frozenset({JOB_NAME, EVENT_TYPE, _TIMESTAMP, _STEP, _RANK})

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """Return True for a record with one of the event types, or with any event type, a job name and a timestamp."""
        event_type = record.get(EVENT_TYPE)
        return isinstance(event_type, str) and (
            event_type in RESILIENCY_KINDS or {JOB_NAME, _TIMESTAMP} <= record.keys()
        )

    def translate(self, records: Records, output: Output) -> Mask:
        """Add a row per record of a known type."""
        kind = codes(records, EVENT_TYPE, RESILIENCY_KINDS)
        good = kind != UNKNOWN
        if not good.all():
            report_unknown(records, EVENT_TYPE, ~good, output)
        time = _times(records, good, output)
        step = steps(records, kind, good, output)
        rank = ranks(records, _RANK, output)
        output.rows.add(records.origin, good, kind, Edge.POINT, time, step=step, rank=rank)
        return records.every()


def _times(records: Records, good: Mask, output: Output) -> I64:
    """Return ns int64[n]; clear `good` for records without a time."""
    if _TIMESTAMP not in records.keys:
        missing = good & (records.stamp < 0)
        output.report(
            "bad_value", f"no `{_TIMESTAMP}`, neither in the event nor in its envelope; dropped", records, missing
        )
        good &= ~missing
        return records.stamp
    characters = records.characters(_TIMESTAMP)
    if characters is None:
        instants = output.clock.read_column(records.column(_TIMESTAMP))
    else:
        instants = output.clock.read_grid(characters, lambda: records.column(_TIMESTAMP))
    message = f"`{_TIMESTAMP}` is not an ISO 8601 time between 1970 and 2255; dropped"
    output.report("bad_value", message, records, good & ~instants.good)
    good &= instants.good
    _report_local(records, instants, good, output)
    return instants.ns


def _report_local(records: Records, instants: ParsedTimestamps, good: Mask, output: Output) -> None:
    zone = output.clock.zone
    message = f"timestamps without a zone are read as {zone}; --timezone sets their zone"
    naive = instants.naive & good
    output.report("naive_timestamps", message, records, naive)
    stamped = naive & (records.stamp >= 0)
    if output.zones is not None and stamped.any():
        output.zones.add(records.origin, records.stamp, instants.ns, stamped)
    for code, places in instants.odd.items():
        output.report(code, f"{_ODDITIES[code]} (zone {zone})", records, sorted(places))


_ODDITIES = {
    "ambiguous_local_time": "this local time occurs twice because clocks were set back; the first one is used",
    "nonexistent_local_time": "this local time does not exist (clocks were set forward); read with the earlier offset",
}
