"""What programs measured (MFU, TFLOP/s, throughput, the step time that they report), by job and name."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from goodput_cli.events.schema import NO_STEP, Metric
from goodput_cli.events.text.marks import Mark
from goodput_cli.events.text.meaning import said


def metrics_of(job: str, marks: Sequence[Mark]) -> list[Metric]:
    """The metrics in marks of a job, each in order of time; what was written twice counts once."""
    found: defaultdict[str, dict[tuple[int, int, float], None]] = defaultdict(dict)
    units: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for mark in marks:
        one = said(mark)
        for name, value in one.metrics.items():
            found[name][mark.time, NO_STEP if one.step is None else one.step, value] = None
            units[name][str(dict(one.detail).get("unit", ""))] += 1
    return [
        Metric(job, name, units[name].most_common(1)[0][0], *_columns(sorted(rows)))
        for name, rows in sorted(found.items())
    ]


def _columns(rows: Sequence[tuple[int, int, float]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    time, step, value = zip(*rows, strict=True)
    return np.array(time, dtype=np.int64), np.array(step, dtype=np.int64), np.array(value, dtype=np.float64)
