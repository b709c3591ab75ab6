"""Format C: events of the resiliency library. ISO-8601 timestamps, usually local time without a zone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goodput_cli.arrays import I64, Mask
from goodput_cli.events.formats import named_events
from goodput_cli.events.formats.base import EVENT_TYPE, JOB_NAME, Output, Records
from goodput_cli.events.schema import Edge
from goodput_cli.events.timestamps.iso import Instants

_TIMESTAMP, _STEP, _RANK = "timestamp", "step", "node_rank"


class Resiliency:
    """Reads the events of the resiliency library."""

    name = "resiliency"
    restores_are_inferred = True
    keys = frozenset({JOB_NAME, EVENT_TYPE, _TIMESTAMP, _STEP, _RANK})

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """A record with one of the event types, or with any event type, a job name and a timestamp."""
        event_type = record.get(EVENT_TYPE)
        return isinstance(event_type, str) and (
            event_type in named_events.RESILIENCY_KINDS or {JOB_NAME, _TIMESTAMP} <= record.keys()
        )

    def translate(self, records: Records, output: Output) -> Mask:
        """A row per record of a known type."""
        kind = named_events.codes(records, EVENT_TYPE, named_events.RESILIENCY_KINDS)
        good = kind != named_events.UNKNOWN
        if not good.all():
            named_events.report_unknown(records, EVENT_TYPE, ~good, output)
        time = _times(records, good, output)
        step = named_events.steps(records, kind, good, output)
        rank = named_events.ranks(records, _RANK, output)
        output.rows.add(records.origin, good, kind, Edge.POINT, time, step=step, rank=rank)
        return records.every()


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
