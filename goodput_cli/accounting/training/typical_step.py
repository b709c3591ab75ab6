"""The usual step time (accounting §4): a median that start-ups, rollbacks and exclusions do not disturb."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.columns import search
from goodput_cli.accounting.order import Mask
from goodput_cli.accounting.training.spans import Stretches
from goodput_cli.arrays import Rows, blocks

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
_AT_ONCE = 1 << 17
"""So many stretches are looked at together."""


@dataclass(frozen=True)
class Usual:
    """Usual time per step in ns (nan where there is none), and the median absolute deviation, one an attempt.

    own: over the attempt's own stretches alone. usual, deviation: with the fallback over all attempts.
    opening: time per step of its own first stretch, where that is a sample. overall: over all attempts; nan as well
    where every attempt that trained has its own.
    """

    own: F64
    usual: F64
    deviation: F64
    opening: F64
    overall: float

    def of_last_step(self, attempt: int) -> float:
        """The usual step time by which a last step is judged: its own first stretch stands before other attempts'."""
        for value in (self.own[attempt], self.opening[attempt], self.overall):
            if not np.isnan(value):
                return float(value)
        return float("nan")


def usual_step_times(stretches: Stretches, amount: I64, sample: Mask, attempts: int) -> Usual:
    """Median of `amount` (ns, net or gross) per step, per attempt.

    sample: stretches that may be looked at: wholly kept and touched by no exclusion. First ones are set aside.
    """
    bounds = search(stretches.attempt, np.arange(attempts + 1))
    opening = np.setdiff1d(np.flatnonzero(sample & stretches.opening), stretches.restarted)
    first = np.full(attempts, np.nan)
    first[stretches.attempt[opening]] = _rates(stretches, amount, opening)
    rate, inside = _rates_by_attempt(stretches, amount, sample & ~stretches.opening, bounds)
    size = np.diff(inside)
    overall = overall_deviation = float("nan")
    if np.any((size == 0) & (np.diff(bounds) > 0)):  # otherwise nobody asks
        overall, overall_deviation = _median_and_deviation(rate)
    own = np.full(attempts, np.nan)
    deviation = np.full(attempts, overall_deviation)
    for count in np.flatnonzero(np.bincount(size)).tolist():
        if count:
            alike = np.flatnonzero(size == count)
            for begin, stop in blocks(len(alike), max(_AT_ONCE // count, 1)):
                some = alike[begin:stop]
                own[some], deviation[some] = _medians_and_deviations(rate, inside[some], count)
    return Usual(own, np.where(np.isnan(own), overall, own), deviation, first, overall)


def _rates(stretches: Stretches, amount: I64, rows: Rows) -> F64:
    """`amount` per step of some stretches."""
    return np.asarray(amount[rows] / (stretches.stop[rows] - stretches.first[rows]))


def _rates_by_attempt(
    stretches: Stretches, amount: I64, chosen: Mask, bounds: NDArray[np.intp]
) -> tuple[F64, NDArray[np.intp]]:
    """The same for very many, and where among them those of each attempt begin; bounds: where its stretches do."""
    rate = np.empty(np.count_nonzero(chosen))
    inside = np.full(len(bounds), len(rate), dtype=np.intp)
    size = 0
    for start, stop in blocks(len(chosen)):
        rows = np.flatnonzero(chosen[start:stop]) + start
        first, last = np.searchsorted(bounds, (start, stop)).tolist()
        inside[first:last] = size + np.searchsorted(rows, bounds[first:last])
        rate[size : size + len(rows)] = _rates(stretches, amount, rows)
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
    may have many."""
    runs = (
        values[starts[:, None] + np.arange(count)] if len(starts) > 1 else values[None, starts[0] :][:, :count].copy()
    )
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
