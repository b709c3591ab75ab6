"""Step statistics (accounting §8)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goodput_cli.analysis.results import StepStatistics
from goodput_cli.timeline.build import Timeline

F64 = NDArray[np.float64]


def step_times(timeline: Timeline, start: int, end: int) -> F64:
    """Seconds per step between consecutive records of one attempt that lie in [start, end] (ns)."""
    records = timeline.records
    if records is None:
        return np.zeros(0)
    same = (records.owner[1:] == records.owner[:-1]) & (records.time[:-1] >= start) & (records.time[1:] <= end)
    return np.asarray(np.diff(records.time)[same] / np.diff(records.number)[same] / 1e9)


def ideal_step_time(times: F64) -> float:
    """Mean of the step times (s) at most median + 3 x MAD (unscaled)."""
    median = np.median(times)
    deviation = np.median(np.abs(times - median))
    return float(times[times <= median + 3 * deviation].mean())


def step_statistics(timeline: Timeline, start: int, end: int) -> StepStatistics:
    """Statistics of the step times in the window."""
    times = step_times(timeline, start, end)
    if len(times) == 0:
        return StepStatistics(0, None, None, None, None, None)
    median, p90, p99 = (float(value) for value in np.percentile(times, [50, 90, 99]))
    return StepStatistics(len(times), ideal_step_time(times), float(times.mean()), median, p90, p99)
