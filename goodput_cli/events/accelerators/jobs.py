"""Assignment of device samples: the job, host and clock of each file next to a log (docs/accelerators.md, Clocks).

`nvidia-smi` prints local time without its zone, and programs often log UTC. Devices are busy during training and
mostly idle during an outage or start-up. If the samples fit only after a shift by some quarters of an hour, their
clock is off by that much.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from goodput_cli.arrays import F64, I64, Mask
from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.accelerators.samples import MOST_DEVICES, DeviceCollector, DeviceSamples
from goodput_cli.events.capability import CollectedInputs, job_of_source, jobs_of_sources
from goodput_cli.events.schema import EventTable, Kind
from goodput_cli.events.timestamps import QUARTER_NS, SHIFTS
from goodput_cli.vocabulary.text import duration
from goodput_cli.vocabulary.when import NS_PER_HOUR, NS_PER_SECOND

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


_TOOL = re.compile(
    r"(?:^|[-_.])(?:nvidia[-_]?smi|smi|dcgmi?|dmon|gpus?|gpu[-_]?(?:stats?|log|util\w*)|accelerators?|devices?|metrics"
    r"|stats?|logs?|monitor|usage|csv|txt|prometheus|query[-_]range)(?=$|[-_.])",
    re.IGNORECASE,
)
"""Words of file names that name a tool, not a host."""
_MOST_COUNTED = 1000
_NO_JOB = "accelerator samples next to logs of several jobs, or of none: their job is unknown; ignored"


def device_tables(inputs: CollectedInputs) -> tuple[DeviceSamples, ...]:
    """Return all samples with their jobs, hosts and UTC times."""
    table, notes, collected = inputs.table, inputs.notes, inputs.parts
    assert isinstance(collected, DeviceCollector)
    sources, by_source = table.sources, jobs_of_sources(table)
    for source in collected.naive:
        if not inputs.has_zone(sources[source]):
            message = f"timestamps without a zone are read as {inputs.zone}; --timezone sets their zone"
            notes.add("naive_timestamps", message, source, [1])
    if collected.left_out:
        words = f"samples of more than {MOST_DEVICES:,} devices; ignored"
        notes.add("bad_sample", words, collected.sources[-1], [1] * min(collected.left_out, _MOST_COUNTED))
    homes = {code: job_of_source(code, sources, by_source) for code in collected.sources}

    said = set[int]()

    def job_of(source: int, run: str) -> str | None:
        found = inputs.jobs_of_runs.get(run) or homes.get(source)
        if found is None and source not in said:
            said.add(source)
            notes.add("devices_of_no_job", _NO_JOB, source, [1])
        return found

    clocks = {code: _column_conversion(inputs.clock_of(sources[code])) for code in collected.naive}
    beside = {code: job for code, job in homes.items() if job is not None and not by_source.get(code)}
    ahead = _offsets(collected, table, beside, clocks, notes, may_move=inputs.may_move)
    for source, reason in collected.refused.items():
        notes.add("unusable_samples", reason, source, [1])
    return collected.tables(job_of, _hosts(sorted(collected.by_name), sources), clocks, ahead)


def _offsets(
    collected: DeviceCollector,
    table: EventTable,
    beside: Mapping[int, str],
    clocks: Mapping[int, Callable[[I64], I64]],
    notes: DiagnosticCollector,
    *,
    may_move: bool,
) -> dict[int, int]:
    """Return by how many ns the samples of each source are ahead of the log of its job. Refuse sources whose offset is
    inconclusive. beside: the job of each source that contains no event."""
    found: dict[int, int] = {}
    of_job = {job: activity_of(table, table.jobs.index(job)) for job in set(beside.values())}
    activities = {source: known for source, job in beside.items() if (known := of_job[job]) is not None}
    for source, series in collected.busy_by_source(activities, clocks).items() if activities else ():
        clock = clock_of_samples(activities[source], series)
        by, is_ahead = duration(abs(clock.ahead_ns)), clock.ahead_ns > 0
        off = f"{by} {'ahead of' if is_ahead else 'behind'} the log's"
        if clock.ahead_ns and may_move:
            found[source] = clock.ahead_ns
            message = (
                f"the clock of accelerator samples is {off}, judging by when devices were busy: they are shifted {by} "
                f"{'back' if is_ahead else 'forward'}"
            )
            notes.add("device_clock", message, source, [1])
        elif clock.ahead_ns or clock.unclear:
            other = f"their clock is {off}" if clock.ahead_ns else "several clock offsets fit"
            collected.refused[source] = f"accelerator samples do not match the log: {other}; ignored"
        elif not clock.overlaps:
            message = "accelerator samples are outside the job's time; ignored"
            notes.add("device_clock", message, source, [1])
    return found


def _hosts(codes: Sequence[int], sources: Sequence[str]) -> dict[int, str]:
    """Return the host of each file: the rest of its name without the tool's, otherwise its folder's if there are
    several."""
    found: dict[int, str] = {}
    for code in codes:
        folder, _, name = sources[code].replace("\\", "/").rpartition("/")
        stem = _TOOL.sub("", name.removesuffix(".gz").rpartition(".")[0] or name).strip("-_. ")
        if stem and not re.fullmatch(r"[\d\-_.T:]+", stem):
            found[code] = stem
        elif len(codes) > 1:
            found[code] = folder.rpartition("/")[2]
    return found


def _column_conversion(from_local: Callable[[int], int]) -> Callable[[I64], I64]:
    """Return the conversion for a whole column: zone changes happen at whole quarters of an hour only."""

    def of(local: I64) -> I64:
        quarter = NS_PER_HOUR // 4
        each, which = np.unique(local // quarter, return_inverse=True)
        ahead = np.array([one * quarter - from_local(one * quarter) for one in each.tolist()], dtype=np.int64)
        return np.asarray(local - ahead[which], dtype=np.int64)

    return of
