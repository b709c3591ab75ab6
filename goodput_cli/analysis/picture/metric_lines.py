"""What the program measured (MFU, TFLOP/s, throughput) against the clock, thinned out for a picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from goodput_cli.accounting.columns import run_heads
from goodput_cli.analysis.picture.downsampling import Buckets, extremes
from goodput_cli.analysis.results import Analysis
from goodput_cli.arrays import F64, I64

DRAWN = {"mfu": "MFU", "tflops": "TFLOP/s", "throughput": "throughput"}
"""Metrics that are drawn, from the top, and their titles; the table names all."""


@dataclass(frozen=True)
class MetricLine:
    """One metric in the window, in order of time."""

    name: str
    """One of `DRAWN`."""
    time: I64
    """ns."""
    value: F64
    """As it was written."""


def metric_lines(analysis: Analysis, buckets: Buckets) -> tuple[MetricLine, ...]:
    """The metrics of the job that are drawn, and have two values in the window."""
    lines = [
        _thinned(metric.name, metric.time, metric.value, buckets)
        for metric in sorted(analysis.table.metrics, key=lambda metric: list(DRAWN).index(metric.name)
                             if metric.name in DRAWN else len(DRAWN))
        if metric.job == analysis.job.name and metric.name in DRAWN
    ]  # fmt: skip
    return tuple(line for line in lines if len(line.time) > 1)


def _thinned(name: str, time: I64, value: F64, buckets: Buckets) -> MetricLine:
    inside = (time >= buckets.start) & (time <= buckets.end) & np.isfinite(value)
    time, value = time[inside], value[inside]
    if len(time) > buckets.count:
        kept = extremes(run_heads(buckets.of(time)), value)
        time, value = time[kept], value[kept]
    return MetricLine(name, time, value)
