"""Slice efficiency (accounting §9): how many of the job's slices were stepping, and how many were available.

The counts hold from their record to the next one. Time before the first record is unknown and left out, and so is time
after a record that does not say them (or says that there are none in total).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.results import Elastic
from goodput_cli.arrays import F64, I64
from goodput_cli.events.schema import EventTable, Kind

Value = TypeVar("Value", np.int64, np.float64)


@dataclass(frozen=True)
class Share:
    """A share of slices that changes at `time` (ns, sorted, n values); `value`: float64[n], NaN where unknown."""

    time: I64
    value: F64

    def mean(self, start: I64, end: I64) -> F64:
        """Time-weighted mean over what is known of each window [start, end); NaN where nothing of it is."""
        known = self.known(start, end)
        weighted = self._upto(np.nan_to_num(self.value), end) - self._upto(np.nan_to_num(self.value), start)
        return np.where(known > 0, weighted / np.where(known > 0, known, 1.0), np.nan)

    def known(self, start: I64, end: I64) -> I64:
        """How much (ns, exact) of each window [start, end) is known."""
        known = (~np.isnan(self.value)).astype(np.int64)
        return self._upto(known, end) - self._upto(known, start)

    def _upto(self, value: NDArray[Value], time: I64) -> NDArray[Value]:
        """The integral of `value` (0 before the first record) up to each instant."""
        if len(self.time) == 0:
            return np.zeros(len(time), dtype=value.dtype)
        before = np.append(value[:1] * 0, np.cumsum(value[:-1] * np.diff(self.time)))
        place = np.searchsorted(self.time, time, side="right") - 1
        at = np.maximum(place, 0)
        return np.where(place >= 0, before[at] + value[at] * (time - self.time[at]), 0)


@dataclass(frozen=True)
class Slices:
    """The job's slice counts. stepping: active/total; available: available/total. recorded: whether there are any."""

    stepping: Share
    available: Share

    @property
    def recorded(self) -> bool:
        return len(self.stepping.time) > 0


def slice_counts(table: EventTable) -> Slices:
    """The slice counts of a job's events, which are in time order."""
    rows = np.flatnonzero(table.kind == Kind.SLICES)
    codes = table.detail[rows].tolist()
    by_code = {code: _shares(table.details[code]) for code in set(codes)}
    shares = np.array([by_code[code] for code in codes], dtype=np.float64).reshape(len(rows), 2)
    return Slices(Share(table.time[rows], shares[:, 0]), Share(table.time[rows], shares[:, 1]))


def _shares(detail: tuple[object, ...]) -> tuple[float, float]:
    """Active and available slices as shares of all; NaN for what a record does not say."""
    active, total, available = (detail + (None,) * 3)[:3]
    if not isinstance(total, int) or total <= 0:
        return np.nan, np.nan
    stepping, ready = (count / total if isinstance(count, int) else np.nan for count in (active, available))
    return stepping, ready


def elastic_of(timeline: Timeline, start: int, end: int, goodput_percent: float) -> Elastic:
    """Slice efficiency of the window [start, end) (ns), and goodput times it."""
    slices = slice_counts(timeline.table)
    if not slices.recorded:
        return Elastic(None, None, None, None)
    window = np.array([start]), np.array([end])
    stepping, available = (_known(share.mean(*window)) for share in (slices.stepping, slices.available))
    unknown = end - start - int(slices.stepping.known(*window)[0])
    return Elastic(stepping, available, unknown, None if stepping is None else goodput_percent * stepping)


def _known(value: F64) -> float | None:
    return None if np.isnan(value[0]) else float(value[0])
