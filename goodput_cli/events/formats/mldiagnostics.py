"""Metrics of google-cloud-mldiagnostics in Cloud Logging: only the entry around a payload names metric and run.

They say when steps were done, when a process began and that hosts are alive; what they measured is kept beside the
events and never feeds the ledger (docs/formats.md, ML Diagnostics).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from goodput_cli.arrays import Mask
from goodput_cli.events.formats.base import Entry, Output, Records
from goodput_cli.events.schema import NS_PER_SECOND
from goodput_cli.events.text.marks import Mark, Said, What
from goodput_cli.events.text.runs import NAME
from goodput_cli.events.text.scan import TextPart
from goodput_cli.events.text.stamps import Stamp, Zone
from goodput_cli.events.values import number, whole_number

CONFIGS = "mlrun_configs"
STEP_TIME = "step_time"
MEASURED = ("step_time", "mfu", "tflops", "throughput", "latency")
"""Metrics whose values are shown."""
SYSTEM = frozenset({
    "tpu_duty_cycle", "tpu_tensorcore_utilization", "hbm_utilization", "host_cpu_utilization",
    "host_memory_utilization",
})  # fmt: skip
"""Written by every host, whether steps go on or not."""
_VALUES, _STEP, _CONFIGS = "values", "step_index", "userConfigs"
_UNIT, _PROCESS, _HOST = "unit", "process_index", "hostname"
_EVERY_NS = 10 * NS_PER_SECOND
"""Signs of life of one host are kept at most this often."""


class MlDiagnostics:
    """See `Format`."""

    name = NAME
    keys = frozenset({_VALUES, _STEP, _CONFIGS, _UNIT, _PROCESS, _HOST, "accelerator_type", "accelerator_labels"})

    def __init__(self) -> None:
        self._alive: dict[tuple[str, str], int] = {}

    def recognises(self, _record: Mapping[str, Any]) -> bool:
        """Never by the payload alone: it names neither its metric nor its run."""
        return False

    def recognises_entry(self, entry: Entry) -> bool:
        """An entry of a generic node with a namespace, whose payload is a metric or the run's configuration."""
        labels = _labels(entry)
        return "namespace" in labels and "node_id" in labels

    def any_key(self, _records: Records) -> bool:
        """Metrics carry the labels of who records them."""
        return True

    def job_of(self, _records: Records) -> str:
        """Told by the runs of the whole log."""
        return NAME

    def translate(self, records: Records, output: Output) -> Mask:
        """Marks of the runs, and what was measured."""
        marks: list[Mark] = []
        assert records.entries is not None
        used = np.zeros(len(records), dtype=np.bool_)
        for at, (record, entry) in enumerate(zip(records.records, records.entries, strict=True)):
            used[at] = _VALUES in record or _CONFIGS in record
            if not used[at]:
                continue
            labels = _labels(entry)
            said, reason = self._said(record, str(labels["namespace"]), str(labels["node_id"]), int(records.stamp[at]))
            if reason:
                output.report("bad_value", reason, records, [at])
            elif said is not None:
                stamp = Stamp(int(records.stamp[at]), Zone.EXACT, False)
                line, of = int(records.origin.line[at]), int(records.origin.entry[at])
                marks.append(Mark(line, said.job, stamp, said, stamp.ns, stamp.ns, entry=of))
        if output.texts is not None:
            output.texts.add(records.origin.source, TextPart(marks))
        return used

    def _said(self, record: Mapping[str, Any], metric: str, run: str, stamp: int) -> tuple[Said | None, str]:
        """What an entry says, or why it says nothing."""
        if stamp < 0:
            return None, "an entry of a metric without a timestamp; dropped"
        if metric == CONFIGS:
            return Said(NAME, What.START, job=run, name=metric), ""
        rank = str(record.get(_PROCESS, ""))
        host = str(record.get(_HOST, "")) or rank
        value = _value(record.get(_VALUES))
        if value is None:
            return None, f"`{_VALUES}` holds no numbers; dropped"
        if metric in SYSTEM or _STEP not in record:
            if metric in MEASURED:
                return Said(NAME, What.ALIVE, job=run, name=metric, metrics={metric: value}), ""
            return self._sign_of_life(run, rank or host, stamp), ""
        if metric == "step":
            return None, ""
        step = whole_number(record[_STEP])
        if step is None or step < 0:
            return None, f"`{_STEP}` is no number of a step; dropped"
        shown = {metric: value} if metric in MEASURED else {}
        unit = record.get(_UNIT)
        detail = (("unit", unit),) if isinstance(unit, str) and shown else ()
        return Said(NAME, What.STEP, step, job=run, name=metric, metrics=shown, detail=detail), ""

    def _sign_of_life(self, run: str, host: str, stamp: int) -> Said | None:
        last = self._alive.get((run, host))
        if last is not None and last <= stamp < last + _EVERY_NS:
            return None
        self._alive[run, host] = stamp
        return Said(NAME, What.ALIVE, job=run, rank=host)


def _labels(entry: Entry) -> Mapping[str, Any]:
    resource = entry.get("resource")
    if not isinstance(resource, dict) or resource.get("type") != "generic_node":
        return {}
    labels = resource.get("labels")
    return labels if isinstance(labels, dict) else {}


def _value(values: Any) -> float | None:
    """The mean of what was measured, mostly of one value a device."""
    if not isinstance(values, list) or not values:
        return None
    numbers = [number(value) for value in values if not isinstance(value, bool)]
    if len(numbers) != len(values) or any(one is None for one in numbers):
        return None
    return float(np.mean([float(one) for one in numbers if one is not None]))
