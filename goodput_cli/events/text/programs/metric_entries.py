"""Entries of ML Diagnostics as marks of their runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from goodput_cli.arrays import Mask
from goodput_cli.events.formats.base import Output, Records
from goodput_cli.events.formats.mldiagnostics import CONFIGS, HOST, NAME, PROCESS, STEP, UNIT, VALUES, labels_of
from goodput_cli.events.text.marks import Mark, Said, What
from goodput_cli.events.text.parts import TextPart
from goodput_cli.events.text.stamps import Stamp, Zone
from goodput_cli.events.values import number, whole_number
from goodput_cli.sources.cloud_logging.query import SYSTEM_METRICS
from goodput_cli.vocabulary.units import NS_PER_SECOND

_STARTED = "mlrun_configs"
STEP_TIME = "step_time"
MEASURED = ("step_time", "mfu", "tflops", "throughput", "latency")
"""Metrics whose values are shown."""
_EVERY_NS = 10 * NS_PER_SECOND
"""Signs of life of one host are kept at most this often."""


def collect(records: Records, output: Output, alive: dict[tuple[str, str], int]) -> Mask:
    """Collect what entries say; bool[n]: those that were of the format. alive: when each host was last seen."""
    marks: list[Mark] = []
    assert records.entries is not None
    used = np.zeros(len(records), dtype=np.bool_)
    for at, (record, entry) in enumerate(zip(records.records, records.entries, strict=True)):
        used[at] = VALUES in record or CONFIGS in record
        if not used[at]:
            continue
        labels = labels_of(entry)
        stamp = int(records.stamp[at])
        said, reason = _said(record, str(labels["namespace"]), str(labels["node_id"]), stamp, alive)
        if reason:
            output.report("bad_value", reason, records, [at])
        elif said is not None:
            line, of = int(records.origin.line[at]), int(records.origin.entry[at])
            marks.append(Mark(line, said.job, Stamp(stamp, Zone.EXACT, False), said, stamp, stamp, entry=of))
    output.texts.add(records.origin.source, TextPart(marks))
    return used


def _said(
    record: Mapping[str, Any], metric: str, run: str, stamp: int, alive: dict[tuple[str, str], int]
) -> tuple[Said | None, str]:
    """What an entry says, or why it says nothing."""
    if stamp < 0:
        return None, "an entry of a metric without a timestamp; dropped"
    if metric == _STARTED:
        return Said(NAME, What.START, job=run, name=metric), ""
    rank = str(record.get(PROCESS, ""))
    host = str(record.get(HOST, "")) or rank
    value = _value(record.get(VALUES))
    if value is None:
        return None, f"`{VALUES}` holds no numbers; dropped"
    if metric in SYSTEM_METRICS or STEP not in record:
        if metric in MEASURED:
            return Said(NAME, What.ALIVE, job=run, name=metric, metrics={metric: value}), ""
        return _sign_of_life(run, rank or host, stamp, alive), ""
    if metric == "step":
        return None, ""
    step = whole_number(record[STEP])
    if step is None or step < 0:
        return None, f"`{STEP}` is no number of a step; dropped"
    shown = {metric: value} if metric in MEASURED else {}
    unit = record.get(UNIT)
    detail = (("unit", unit),) if isinstance(unit, str) and shown else ()
    return Said(NAME, What.STEP, step, job=run, name=metric, metrics=shown, detail=detail), ""


def _sign_of_life(run: str, host: str, stamp: int, alive: dict[tuple[str, str], int]) -> Said | None:
    last = alive.get((run, host))
    if last is not None and last <= stamp < last + _EVERY_NS:
        return None
    alive[run, host] = stamp
    return Said(NAME, What.ALIVE, job=run, rank=host)


def _value(values: Any) -> float | None:
    """The mean of what was measured, mostly of one value a device."""
    if not isinstance(values, list) or not values:
        return None
    numbers = [number(value) for value in values if not isinstance(value, bool)]
    if len(numbers) != len(values) or any(one is None for one in numbers):
        return None
    return float(np.mean([float(one) for one in numbers if one is not None]))
