"""Test of the time zone of accelerator samples against the log of their job (docs/accelerators.md, Clocks).

`nvidia-smi` prints local time without its zone, and programs often log UTC. Devices are busy during training and mostly
idle during an outage or start-up. If the samples fit only after a shift by some quarters of an hour, their clock is off
by that much.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from goodput_cli.arrays import F64, I64, Mask
from goodput_cli.events.schema import EventTable, Kind
from goodput_cli.events.timestamps import QUARTER_NS, SHIFTS
from goodput_cli.vocabulary.when import NS_PER_SECOND

_MOST_POINTS = 4000
"""Maximum number of points of a series that is tested."""
_LEAST_POINTS = 3
"""Minimum number of points in training, and outside of it."""
_FITS, _MAY_FIT = 0.7, 0.4
"""Minimum correlation of busy and training for a clear fit, and for a possible fit."""
_LEAST_GAP_NS = 60 * NS_PER_SECOND
_USUAL_GAPS = 5
"""Training counts as stopped if no step is logged for a minute and for five usual distances between steps."""


class Activity(NamedTuple):
    """Stretches of training of a job, from its steps: ns UTC."""

    start: int
    end: int
    """`begin` and `end` are the times of its first and last event."""
    begins: I64
    ends: I64
    """The end of each stretch of training."""
    unknown: Mask
    """True for a stretch that may not have ended: the log shows no restart after it, so a step may hang."""

    def is_training(self, time: I64) -> tuple[Mask, Mask]:
        """Return True for each timestamp inside a stretch of training, and True if that is known."""
        at = np.searchsorted(self.begins, time, side="right") - 1
        stretch = np.maximum(at, 0)
        training = (at >= 0) & (time <= self.ends[stretch])
        return np.asarray(training), np.asarray(training | (at < 0) | ~self.unknown[stretch])


class DeviceClock(NamedTuple):
    """Comparison of the clock of a source of samples with the log."""

    ahead_ns: int = 0
    """The shift of its samples to earlier times."""
    unclear: bool = False
    """True if only shifted clocks fit, and more than one of them."""
    overlaps: bool = True
    """True if any sample lies in the job's window."""


def activity_of(table: EventTable, job: int) -> Activity | None:
    """Return the stretches of training of a job; None if its log has too few steps. job: its code."""
    own = np.asarray(table.job) == job
    kind, every, number = (np.asarray(column)[own] for column in (table.kind, table.time, table.step))
    if not len(every):
        return None
    steps, first = np.unique(every[kind == Kind.STEP], return_index=True)
    if len(steps) < _LEAST_POINTS:
        return None
    number = number[kind == Kind.STEP][first]
    gaps = np.diff(steps)
    stops = np.flatnonzero(gaps > max(_LEAST_GAP_NS, _USUAL_GAPS * int(np.median(gaps))))
    begins = steps[np.append(0, stops + 1)]
    ends = steps[np.append(stops, len(steps) - 1)]
    starts = np.sort(every[kind == Kind.START])
    began = np.searchsorted(starts, steps[stops + 1], "right") > np.searchsorted(starts, steps[stops], "right")
    unknown = np.append(~began & (number[stops + 1] > number[stops]), False)
    return Activity(int(every.min()), int(np.asarray(table.end)[own].max()), begins, ends, unknown)


def clock_of_samples(activity: Activity, series: Sequence[tuple[I64, F64]]) -> DeviceClock:
    """Return the clock of a source. series: for each device, times (ns, as read) and how busy it was (%)."""
    time, busy = _busiest(series)
    inside = (time >= activity.start) & (time <= activity.end)
    every = np.ones(len(time), dtype=np.bool_)
    if max(_correlation(activity, time, busy, inside), _correlation(activity, time, busy, every)) >= _MAY_FIT:
        return DeviceClock()
    fitting = [ahead for ahead in SHIFTS if _correlation(activity, time - ahead * QUARTER_NS, busy, every) >= _FITS]
    if len(fitting) == 1:
        return DeviceClock(fitting[0] * QUARTER_NS)
    overlaps = bool(inside.any())
    return DeviceClock(unclear=len(fitting) > 1 and overlaps, overlaps=overlaps)


def _busiest(series: Sequence[tuple[I64, F64]]) -> tuple[I64, F64]:
    """Return at most `_MOST_POINTS` points in order of time, with the busiest device of each, so that a stuck device
    does not hide the training of the others."""
    time, busy = (np.concatenate([one[at] for one in series]) for at in (0, 1))
    order = np.argsort(time, kind="stable")
    time, busy = time[order], busy[order]
    period = max((int(np.median(np.diff(one))) for one, _ in series if len(one) > 1), default=1)
    width = max(int(time[-1] - time[0]) // _MOST_POINTS, period, 1)
    _, first = np.unique((time - time[0]) // width, return_index=True)
    return time[first], np.maximum.reduceat(busy, first)


def _correlation(activity: Activity, time: I64, busy: F64, some: Mask) -> float:
    """Return the correlation of busy devices and training (-1 to 1); 0 if either is constant. Outside of its window the
    job does not train. some: the points that count."""
    training, is_known = activity.is_training(time)
    counted = some & is_known
    training, values = training[counted], busy[counted]
    trained = int(np.count_nonzero(training))
    if min(trained, len(values) - trained) < _LEAST_POINTS or float(values.std()) == 0.0:
        return 0.0
    return float(np.corrcoef(values, training)[0, 1])
