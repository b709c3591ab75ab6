"""The usual step time (accounting §4): a median that start-ups, rollbacks and exclusions do not disturb."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.columns import search, without
from goodput_cli.accounting.sweep import ClaimedTime
from goodput_cli.accounting.training.spans import TrainingSpans
from goodput_cli.arrays import F64, Mask, Rows, blocks

_AT_ONCE = 1 << 17
"""So many spans are looked at together."""


@dataclass(frozen=True)
class UsualStepTimes:
    """Usual time per step, one value an attempt, in ns; nan where there is none."""

    own: F64
    """Median over the attempt's own spans alone."""
    median: F64
    """The same, and over the spans of all attempts where it has none of its own."""
    deviation: F64
    """Median absolute deviation (unscaled) of the spans that `median` is over."""
    opening: F64
    """Time per step of its own first span, where that is a sample."""
    overall: float
    """Median over all attempts; nan as well where every attempt that trained has its own."""

    def of_last_step(self, attempt: int) -> float:
        """The usual step time by which a last step is judged: its own first span stands before other attempts'."""
        for value in (self.own[attempt], self.opening[attempt], self.overall):
            if not np.isnan(value):
                return float(value)
        return float("nan")


def usual_step_times_of(
    spans: TrainingSpans, claimed_time: ClaimedTime | None, sample: Mask, attempts: int
) -> UsualStepTimes:
    """Median of net time (ns) per step, per attempt; of gross time without claims.

    sample: spans that may be looked at: wholly kept and touched by no exclusion. First ones are set aside.
    """
    bounds = search(spans.attempt, np.arange(attempts + 1))
    opening = without(np.flatnonzero(sample & spans.opening), spans.restarted, len(spans))
    first = np.full(attempts, np.nan)
    first[spans.attempt[opening]] = _rates(spans, claimed_time, opening)
    rate, inside = _rates_by_attempt(spans, claimed_time, sample & ~spans.opening, bounds)
    size = np.diff(inside)
    overall = overall_deviation = float("nan")
    if np.any((size == 0) & (np.diff(bounds) > 0)):  # otherwise nobody asks
        overall, overall_deviation = _median_and_deviation(rate.copy())
    own = np.full(attempts, np.nan)
    deviation = np.full(attempts, overall_deviation)
    for count in np.flatnonzero(np.bincount(size)).tolist():
        if count:
            alike = np.flatnonzero(size == count)
            for begin, stop in blocks(len(alike), max(_AT_ONCE // count, 1)):
                some = alike[begin:stop]
                own[some], deviation[some] = _medians_and_deviations(rate, inside[some], count)
    return UsualStepTimes(own, np.where(np.isnan(own), overall, own), deviation, first, overall)


def _rates(spans: TrainingSpans, claimed_time: ClaimedTime | None, rows: Rows) -> F64:
    """Time (ns) per step of some spans."""
    start, end = spans.start[rows], spans.end[rows]
    ns = end - start if claimed_time is None else claimed_time.net_between(start, end)
    return np.asarray(ns / (spans.stop[rows] - spans.first[rows]))


def _rates_by_attempt(
    spans: TrainingSpans, claimed_time: ClaimedTime | None, chosen: Mask, bounds: NDArray[np.intp]
) -> tuple[F64, NDArray[np.intp]]:
    """The same for very many, and where among them those of each attempt begin; bounds: where its spans do."""
    rate = np.empty(np.count_nonzero(chosen))
    inside = np.full(len(bounds), len(rate), dtype=np.intp)
    size = 0
    for start, stop in blocks(len(chosen)):
        rows = np.flatnonzero(chosen[start:stop]) + start
        first, last = np.searchsorted(bounds, (start, stop)).tolist()
        inside[first:last] = size + np.searchsorted(rows, bounds[first:last])
        rate[size : size + len(rows)] = _rates(spans, claimed_time, rows)
        size += len(rows)
    return rate, inside


def _median_and_deviation(values: F64) -> tuple[float, float]:
    """Median and unscaled median absolute deviation; nan of nothing."""
    if len(values) == 0:
        return float("nan"), float("nan")
    median, deviation = _medians_and_deviations(values, np.zeros(1, dtype=np.intp), len(values))
    return float(median[0]), float(deviation[0])


def _medians_and_deviations(values: F64, starts: NDArray[np.intp], count: int) -> tuple[F64, F64]:
    """The same for several runs of `count` values each: attempts of one length are looked at together, because a log
    may have many. The values of a single run, which may be all there are, are lost."""
    one = slice(int(starts[0]), int(starts[0]) + count)
    runs = values[starts[:, None] + np.arange(count)] if len(starts) > 1 else values[None, one]
    medians = _medians(runs)
    runs -= medians[:, None]
    return medians, _medians(np.abs(runs, out=runs))


def _medians(runs: F64) -> F64:
    """As `numpy.median` of each row, without its overhead. The values of a row change places."""
    count = runs.shape[1]
    middle = count // 2
    if count % 2:
        runs.partition(middle, axis=1)
        return runs[:, middle].copy()
    runs.partition((middle - 1, middle), axis=1)
    return np.asarray((runs[:, middle - 1] + runs[:, middle]) / 2)
