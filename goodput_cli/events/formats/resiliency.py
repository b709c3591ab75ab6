"""Format C: events of the resiliency library. ISO-8601 timestamps, usually local time without a zone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import I64, Mask
from goodput_cli.events.formats.base import EVENT_TYPE, JOB_NAME, Output, Records
from goodput_cli.events.schema import NO_STEP, NONE, Edge, Kind
from goodput_cli.events.timestamps import Instants
from goodput_cli.events.values import whole_column

_KINDS = {
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
_WITH_STEP = (Kind.LOAD, Kind.FINISHED, Kind.SAVED)
_TIMESTAMP, _STEP, _RANK = "timestamp", "step", "node_rank"
_MAX_RANK = np.iinfo(np.int32).max
_UNKNOWN = -1


class Resiliency:
    """See `Format`."""

    name = "resiliency"
    restores_are_inferred = True
    keys = frozenset({JOB_NAME, EVENT_TYPE, _TIMESTAMP, _STEP, _RANK})

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """A record with one of the event types, or with any event type, a job name and a timestamp."""
        event_type = record.get(EVENT_TYPE)
        return isinstance(event_type, str) and (event_type in _KINDS or {JOB_NAME, _TIMESTAMP} <= record.keys())

    def translate(self, records: Records, output: Output) -> Mask:
        """A row per record of a known type."""
        kind = _kinds(records)
        good = kind != _UNKNOWN
        if not good.all():
            _report_unknown(records, ~good, output)
        time = _times(records, good, output)
        step = _steps(records, kind, good, output)
        rank = _ranks(records, output)
        output.rows.add(records.origin, good, kind, Edge.POINT, time, step=step, rank=rank)
        return records.every()


def _kinds(records: Records) -> NDArray[np.int8]:
    same = records.same(EVENT_TYPE)
    if same is not None:
        return np.full(len(records), _KINDS.get(same, _UNKNOWN), dtype=np.int8)
    return np.array([_KINDS.get(name, _UNKNOWN) for name in records.column(EVENT_TYPE)], dtype=np.int8)


def _report_unknown(records: Records, unknown: Mask, output: Output) -> None:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for at in np.flatnonzero(unknown).tolist():
        found[output.notes.bounded("unknown_event", records.records[at][EVENT_TYPE])].append(at)
    for name, places in found.items():
        output.report("unknown_event", f"event type {name} is not known; such lines do not count", records, places)


def _times(records: Records, good: Mask, output: Output) -> I64:
    """ns int64[n]; clears `good` where there is no time."""
    if _TIMESTAMP not in records.keys:
        missing = good & (records.stamp < 0)
        output.report("bad_value", f"no `{_TIMESTAMP}`, and no envelope that has one; dropped", records, missing)
        good &= ~missing
        return records.stamp
    characters = records.characters(_TIMESTAMP)
    if characters is None:
        instants = output.clock.read_column(records.column(_TIMESTAMP))
    else:
        instants = output.clock.read_grid(characters, lambda: records.column(_TIMESTAMP))
    message = f"`{_TIMESTAMP}` is no ISO-8601 time between 1970 and 2255; dropped"
    output.report("bad_value", message, records, good & ~instants.good)
    good &= instants.good
    _report_local(records, instants, good, output)
    return instants.ns


def _report_local(records: Records, instants: Instants, good: Mask, output: Output) -> None:
    zone = output.clock.zone
    message = f"timestamps without a zone, read as {zone}; --timezone says which zone they are in"
    naive = instants.naive & good
    output.report("naive_timestamps", message, records, naive)
    stamped = naive & (records.stamp >= 0)
    if output.zones is not None and stamped.any():
        output.zones.add(records.origin, records.stamp, instants.ns, stamped)
    for code, places in instants.odd.items():
        output.report(code, f"{_ODDITIES[code]} (zone {zone})", records, sorted(places))


_ODDITIES = {
    "ambiguous_local_time": "this local time occurs twice because clocks were set back; the first one is taken",
    "nonexistent_local_time": "this local time was skipped when clocks were set forward; read with the offset before",
}


def _steps(records: Records, kind: NDArray[np.int8], good: Mask, output: Output) -> I64:
    """int64[n]; clears `good` where a step is wrong, or missing and needed."""
    if _STEP not in records.keys:
        needed = good & np.isin(kind, _WITH_STEP)
        output.report("bad_value", f"a checkpoint or step event without `{_STEP}`; dropped", records, needed)
        good &= ~needed
        return np.full(len(records), NO_STEP, dtype=np.int64)
    step, whole = output.whole(records, _STEP)
    good &= whole
    return step


def _ranks(records: Records, output: Output) -> NDArray[np.int32]:
    """int32[n]; a rank that is no rank counts as none: the event itself still tells something."""
    if _RANK not in records.keys:
        return np.full(len(records), NONE, dtype=np.int32)
    numerals = records.numerals(_RANK)
    if numerals is not None and numerals.fraction is None:
        rank, whole = numerals.whole, records.every()
    else:
        rank, whole = whole_column(records.column(_RANK))
    fits = whole & (rank >= 0) & (rank <= _MAX_RANK)
    output.report("bad_value", f"`{_RANK}` is no rank from 0; the event counts without it", records, ~fits)
    return np.where(fits, rank, NONE).astype(np.int32)
