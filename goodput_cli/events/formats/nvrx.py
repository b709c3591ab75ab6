"""`cycle_info.JOB.ATTEMPT.CYCLE`: files of NVRx' launcher about each cycle, the time between two rendezvous, with its
active and standby nodes (docs/formats.md, Recovery events). There is one JSON object per file, next to a job's log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goodput_cli.arrays import Mask
from goodput_cli.events.formats.base import Output, Records
from goodput_cli.events.formats.collected import CollectedFormat
from goodput_cli.events.signs import Cycle, CycleFile, plain

_BEGIN, _END, _LOG = "cycle_start_time", "cycle_end_time", "cycle_log_file"
_NUMBERS = ("attempt_index", "cycle_number", "generation")
_NODES = ("active_nodes", "standby_nodes")
_DIGITS = 9
"""Maximum number of digits of a number in a file."""


class NvrxCycles(CollectedFormat):
    """Format of the files of cycles."""

    name = "nvrx"
    keys = frozenset({"job_id", *_NUMBERS, _BEGIN, _END, _LOG, *_NODES, "active_ranks"})

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """Return True for a record with the keys that identify cycles."""
        return {"cycle_number", "attempt_index", "active_nodes"} <= record.keys()

    def translate(self, records: Records, output: Output) -> Mask:
        """Collect the cycles; no row of events comes from them."""
        for at, record in enumerate(records.records):
            begin, end = (_time_ns(record.get(key), output) for key in (_BEGIN, _END))
            numbers = [_number(record.get(key, 0)) for key in _NUMBERS]
            if begin is None or None in numbers:
                message = f"an NVRx cycle without a valid `{_BEGIN}` or number; not read"
                output.report("bad_value", message, records, [at])
                continue
            attempt, number, generation = (one or 0 for one in numbers)
            active, standby = (_nodes(record.get(key)) for key in _NODES)
            over = end is not None and end >= begin
            cycle = Cycle(
                "", plain(str(record.get("job_id", ""))), attempt, number, begin, end if over else None, active, standby
            )
            source, line = records.origin.source, int(records.origin.line[at])
            output.texts.cycles.append(CycleFile(source, line, generation, cycle, str(record.get(_LOG, ""))))
        return records.every()


def _number(value: object) -> int | None:
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None


def _time_ns(value: object, output: Output) -> int | None:
    """Return a time in a file, ns UTC; None if it is not set yet or impossible."""
    from goodput_cli.events.text.line_timestamps import Zone, read_or_none
    from goodput_cli.events.text.sign_lines import is_possible  # imported late: few logs contain any

    stamp = read_or_none(value) if isinstance(value, str) and value else None
    if stamp is None or stamp.zone not in (Zone.EXACT, Zone.NAIVE):
        return None
    ns = stamp.ns if stamp.zone is Zone.EXACT else output.clock.from_local(stamp.ns)
    return ns if is_possible(ns) else None


def _nodes(value: object) -> tuple[str, ...]:
    from goodput_cli.events.text.entries import nodes_in

    return tuple(map(plain, nodes_in(value))) if isinstance(value, str) else ()
