"""What programs measured (MFU, TFLOP/s, throughput, the step time they report), beside the step times of the log.

Programs record one step in many, so that no sums are made: a figure is of n samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.steps.slow_regimes import Regime
from goodput_cli.analysis.table import Table, attribute, column, columns_of
from goodput_cli.events.schema import NO_STEP

SERIES = 1000
"""A series has at most so many values; of longer ones every k-th is given."""


_FALL = 0.05
_LEAST_VALUES = 3
"""Fewer values say nothing about a level."""


@dataclass(frozen=True)
class Measured:
    """One metric in the window: its fields are the columns of the table of metrics."""

    name: str = column("text", "what was measured; step_time is the one that the program reported", heading="metric")
    unit: str = column("text", "as it was written; empty where it was not", heading="unit")
    samples: int = column("count", "values in the window", least=1, heading="samples")
    first_step: int | None = column("count", "the first step of which there is a value; null if none names one")
    last_step: int | None = column("count", "the last one")
    mean: float = column("number", "mean of the values", heading="mean")
    median: float = column("number", "their median", heading="median")
    p10: float = column("number", "10th percentile", heading="p10")
    p90: float = column("number", "90th percentile", heading="p90")
    series: tuple[tuple[int, float], ...] = field(default=(), metadata={})
    """(step, value) in order of time, of the values that name a step."""


METRICS = Table("metric", "one metric in the window", columns_of(Measured, attribute))


def measured(analysis: Analysis) -> list[Measured]:
    """The metrics of the job in the window, by name."""
    start, end = analysis.window.start_ns, analysis.window.end_ns
    rows = []
    for metric in analysis.table.metrics:
        inside = (metric.time >= start) & (metric.time <= end)
        if metric.job != analysis.job.name or not inside.any():
            continue
        step, value = metric.step[inside], metric.value[inside]
        named = step != NO_STEP
        p10, p50, p90 = np.percentile(value, (10, 50, 90)).tolist()
        every = max(1, -(-int(named.sum()) // SERIES))
        series = tuple(zip(step[named][::every].tolist(), value[named][::every].tolist(), strict=True))
        first, last = (int(step[named].min()), int(step[named].max())) if named.any() else (None, None)
        rows.append(
            Measured(metric.name, metric.unit, len(value), first, last, float(value.mean()), p50, p10, p90, series)
        )
    return sorted(rows, key=lambda row: row.name)


def falls_of_mfu(analysis: Analysis, regimes: Sequence[Regime]) -> list[str]:
    """A sentence for each slow regime in which the median of the recorded MFU was lower than outside of all of them,
    by more than 5 % of that."""
    metric = next((one for one in analysis.table.metrics if (one.job, one.name) == (analysis.job.name, "mfu")), None)
    if metric is None or not regimes:
        return []
    inside = [(metric.time >= one.start_ns) & (metric.time <= one.end_ns) for one in regimes]
    in_window = (metric.time >= analysis.window.start_ns) & (metric.time <= analysis.window.end_ns)
    outside = metric.value[in_window & ~np.logical_or.reduce(inside)]
    usual = float(np.median(outside)) if len(outside) >= _LEAST_VALUES else 0.0
    found = []
    for regime, chosen in zip(regimes, inside, strict=True):
        values = metric.value[chosen]
        level = float(np.median(values)) if len(values) >= _LEAST_VALUES else usual
        if usual > 0 and level < (1 - _FALL) * usual:
            found.append(
                f"MFU fell from {_four(usual):g} to {_four(level):g} (medians) in the slow regime of steps "
                f"{regime.first_step} to {regime.last_step}"
            )
    return found


def shown(rows: Sequence[Measured]) -> Sequence[Measured]:
    """The same with figures of four digits, as people read them."""
    return [
        replace(row, mean=_four(row.mean), median=_four(row.median), p10=_four(row.p10), p90=_four(row.p90))
        for row in rows
    ]


def _four(value: float) -> float:
    return float(f"{value:.4g}")
