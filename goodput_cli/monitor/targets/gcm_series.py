"""An update as time series of Cloud Monitoring: the metric types and labels of ml-goodput-measurement.

Only what has no value there is added: categories that it does not know are further sources of badput, so that
goodput / (goodput + badput) of its dashboards is our goodput.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.rolling.results import WindowRow
from goodput_cli.arrays import F64
from goodput_cli.monitor.amounts import Amount, badput_of, badput_of_window
from goodput_cli.monitor.snapshot import Snapshot
from goodput_cli.vocabulary.categories import OVERLAPPED
from goodput_cli.vocabulary.text import seconds_text

PREFIX = "compute.googleapis.com/workload"
_RECENT, _BASE, _SPIKE = 100, 1000, 90
"""Steps of the last deviations, of those before, and the percentile of the last."""
_MOST_LABEL = 1024

Series = dict[str, Any]


@dataclass(frozen=True)
class Workload:
    """Whose series they are."""

    location: str
    accelerator: str
    replica: str = "0"
    cluster: str = ""
    prefix: str = PREFIX
    """Of metric types; another one goes with the resource `generic_task`."""
    totals: bool = True
    windows: bool = True
    step_deviation: bool = True
    slices: bool = True
    """What is published."""


def series_of(snapshot: Snapshot, workload: Workload, end_time: str) -> list[Series]:
    """Every series of an update, each with one point. end_time: RFC 3339."""
    resource = _resource(snapshot.analysis.job.name, workload)
    points = {"interval": {"endTime": end_time}}
    return [
        {
            "metric": {"type": f"{workload.prefix}/{one.name}", "labels": dict(one.labels)},
            "resource": resource,
            "metricKind": "GAUGE",
            "valueType": "INT64" if isinstance(one.value, int) else "DOUBLE",
            "points": [{**points, "value": _typed(one.value)}],
        }
        for one in _gauges(snapshot, workload)
    ]


@dataclass(frozen=True)
class _Gauge:
    name: str
    value: float
    """An int is sent as INT64."""
    labels: Mapping[str, str]


def _typed(value: float) -> dict[str, Any]:
    return {"int64Value": str(value)} if isinstance(value, int) else {"doubleValue": value}


def _resource(job: str, workload: Workload) -> dict[str, Any]:
    if workload.prefix == PREFIX:
        labels = {"location": workload.location, "workload_id": job, "replica_id": workload.replica}
        return {"type": "compute.googleapis.com/Workload", "labels": labels}
    labels = {"location": workload.location, "namespace": job, "job": job, "task_id": workload.replica}
    return {"type": "generic_task", "labels": labels}


def _gauges(snapshot: Snapshot, workload: Workload) -> Iterator[_Gauge]:
    common = {"accelerator_type": workload.accelerator}
    if workload.cluster:
        common["cluster_name"] = workload.cluster
    if workload.totals and snapshot.whole:
        yield from _of_job(snapshot, common)
    if workload.step_deviation and len(snapshot.deviations.seconds):
        yield _Gauge("step_time_deviation", step_time_deviation(snapshot.deviations.seconds), common)
    if workload.windows:
        for row in () if snapshot.analysis.rolling is None else snapshot.analysis.rolling.rows():
            yield from _of_window(row, snapshot.analysis, common)
    if workload.slices:
        yield from _of_slices(snapshot, workload, common)


def _of_job(snapshot: Snapshot, common: Mapping[str, str]) -> Iterator[_Gauge]:
    analysis, cumulative = snapshot.analysis, {**common, "window_type": "cumulative"}
    yield _Gauge("goodput_time", analysis.goodput.seconds, {**common, "goodput_source": "TOTAL"})
    for source, amount in _sources(badput_of(analysis)).items():
        yield _Gauge("badput_time", amount[0], {**common, "badput_source": source})
    yield _Gauge("disruptions", analysis.job.disruptions, cumulative)
    yield _Gauge("max_productive_steps", int(analysis.job.kept_range[1]) if analysis.job.kept_range else 0, common)
    yield _Gauge("total_elapsed_time", analysis.window.counted_ns / 1e9, cumulative)
    ideal = snapshot.ideal_step_seconds or analysis.steps.ideal_seconds
    if ideal is not None:
        yield _Gauge("performance", float(ideal), {})


def _of_window(row: WindowRow, analysis: Analysis, common: Mapping[str, str]) -> Iterator[_Gauge]:
    if row.percent is None:
        return
    labels = {**common, "rolling_window_size": seconds_text(row.window_ns)}
    yield _Gauge("interval_goodput", row.percent, {**labels, "goodput_source": "TOTAL"})
    for source, amount in _sources(badput_of_window(row, analysis)).items():
        yield _Gauge("interval_badput", amount[1], {**labels, "badput_source": source})


def _of_slices(snapshot: Snapshot, workload: Workload, common: Mapping[str, str]) -> Iterator[_Gauge]:
    analysis = snapshot.analysis
    whole = {**common, "window_type": "CUMULATIVE", "rolling_window_size": "0"}
    shares = {"stepping": analysis.elastic.stepping, "available": analysis.elastic.available}
    for name, share in shares.items() if snapshot.whole and workload.totals else ():
        if share is not None:
            yield _Gauge(f"{name}_slice_efficiency", float(share), whole)
    for row in analysis.rolling.rows() if analysis.rolling is not None and workload.windows else ():
        if row.stepping is not None:
            size = {"window_type": "INTERVAL", "rolling_window_size": seconds_text(row.window_ns)}
            yield _Gauge("stepping_slice_efficiency", float(row.stepping), {**common, **size})


def _sources(amounts: Sequence[Amount]) -> dict[str, tuple[float, float]]:
    """Seconds and percent by `badput_source`, in capitals. Labels that are the same then are one: two points of a
    series in one request are refused. What overlaps training is not sent, as there."""
    sums: dict[str, int] = {}
    for amount in amounts:
        if amount.category != OVERLAPPED:
            name = amount.category if amount.label is None else f"{amount.category}.{amount.label}"
            source = name.upper()[:_MOST_LABEL]
            sums[source] = sums.get(source, 0) + amount.ns
    counted = amounts[0].counted_ns if amounts else 1
    return {source: (ns / 1e9, 100 * ns / counted) for source, ns in sums.items()}


def step_time_deviation(away: F64) -> float:
    """How far the last steps (s, in order) are from the ideal one: the mean of fewer than 100, else the 90th percentile
    of the last 100, less the median of the 1000 before where there are so many."""
    if len(away) < _RECENT:
        return float(away.mean())
    spike = float(np.percentile(away[-_RECENT:], _SPIKE))
    if len(away) < _RECENT + _BASE:
        return spike
    return spike - float(np.median(away[-_RECENT - _BASE : -_RECENT]))
