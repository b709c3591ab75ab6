"""Step times (accounting §8), one by one with their lines or nothing but the seconds of each; sizes that a log states
once and the samples of each step; and the pace of stretches, which comparisons look at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.training.kept import excluded_within
from goodput_cli.accounting.training.spans import StepRecordsByAttempt
from goodput_cli.analysis.results import StepStatistics
from goodput_cli.arrays import F64, I64, Rows, blocks
from goodput_cli.events.schema import ACCELERATORS, NO_STEP, SAMPLES, TOKENS_PER_STEP, WORLD_SIZE, Kind, Metric
from goodput_cli.vocabulary.when import NS_PER_SECOND


def first_valid_ns(timeline: Timeline, time: I64, step: I64) -> I64:
    """Return since when (ns) each stated value applies, for steps that end then or later and for time (accounting §8).

    A value that names a step applies to that step and later ones. A value without a step is stated by a process: it
    applies to no step that ended before, and belongs to the attempt whose steps follow. The first value of an attempt
    applies from the begin of that attempt. time, step: of the values; `NO_STEP` for none.
    """
    begin = timeline.attempts.begin
    if not len(begin):
        return time
    attempt = np.maximum(np.searchsorted(begin, time, side="right") - 1, 0)
    names_no_step = step == NO_STEP
    follows = names_no_step & (time >= _last_records(timeline)[attempt]) & (attempt + 1 < len(begin))
    attempt = attempt + follows
    since = np.maximum(time + names_no_step, begin[attempt])
    order = np.argsort(since, kind="stable")
    of_attempt, first = np.unique(attempt[order], return_index=True)
    since[order[first]] = begin[of_attempt]
    return np.asarray(since, dtype=np.int64)


def _last_records(timeline: Timeline) -> I64:
    """Return the time (ns) of the last step record of each attempt; beyond all times for one without any."""
    last = np.full(len(timeline.attempts.begin), np.iinfo(np.int64).max)
    records = timeline.records
    if records is not None and len(records.time):
        closes = np.append(records.owner[1:] != records.owner[:-1], True)
        last[records.owner[closes]] = records.time[closes]
    return last


class StatedValues(NamedTuple):
    """Values that apply until the next one, in order."""

    since: I64
    """Time (ns) from which each applies."""
    value: F64

    @staticmethod
    def of(timeline: Timeline, time: I64, step: I64, value: F64) -> StatedValues:
        """Return stated values in the order in which they apply. time: ns. step: `NO_STEP` for none."""
        since = first_valid_ns(timeline, time, step)
        order = np.argsort(since, kind="stable")
        return StatedValues(since[order], value[order])

    def at(self, end: I64) -> F64:
        """Return the value that applies to steps that end then (ns); before the first, the first."""
        latest = np.searchsorted(self.since, end, side="right") - 1
        return np.asarray(self.value[np.maximum(latest, 0)])


_EVERY = 1 << 30
_SIZES_OF_WORK: tuple[tuple[str, tuple[str, ...], int], ...] = (
    ("global batch", SAMPLES, _EVERY),
    ("accelerators", ACCELERATORS, _EVERY),
    ("slices", ("slices",), _EVERY),
    ("tokens per step", (TOKENS_PER_STEP,), 8),
)
"""Sources of the size of a step: a label, the metrics in order of preference, and the largest number of values. Tokens
that vary from step to step do not make steps of another size."""
PACE_STEPS, PACE_BLOCKS = 50, 64
_LEAST_PACE_TIMES = 5
_TRIMMED = 4
"""One of this many steps is cut to the next one, at either end."""


@dataclass(frozen=True, repr=False)
class TimedSteps:
    """Step times in time order: from one record to the next of the same attempt, never across attempts. A column is
    computed on each access: memory of a long log suffices for few of them at once."""

    seconds: F64
    """Seconds per step, without what a clock that was set forward adds."""
    records: StepRecordsByAttempt | None
    """None in checkpoint logs."""
    here: Rows
    """Record that begins each step time, in `records`."""
    named: int
    """Offset from that record to the one that names the step: 1 if records are of step ends."""

    def __len__(self) -> int:
        return len(self.seconds)

    @property
    def number(self) -> I64:
        """Step of the record that begins it."""
        return np.asarray(self._of("number") + self.named)

    @property
    def count(self) -> I64:
        """Steps up to the next record; above 1 where not every step is logged."""
        return np.asarray(self._of("number", 1) - self._of("number"))

    @property
    def attempt(self) -> Rows:
        """Attempt numbers, from 0."""
        return self._of("owner")

    @property
    def time(self) -> I64:
        """ns."""
        return self._of("time")

    @property
    def end(self) -> I64:
        """ns."""
        return self._of("time", 1)

    @property
    def row(self) -> Rows:
        """Row of the record that begins it."""
        return self._of("rows", self.named)

    def take(self, places: Rows) -> TimedSteps:
        """Return some of them, in the given order."""
        return TimedSteps(self.seconds[places], self.records, self.here[places], self.named)

    def _of(self, column: str, later: int = 0) -> NDArray[Any]:
        if self.records is None:
            return np.zeros(0, dtype=np.int64)
        values: NDArray[Any] = getattr(self.records, column)[later:][self.here]
        return values


def timed_steps(timeline: Timeline, start: int, end: int) -> TimedSteps:
    """The step times of consecutive records of one attempt that lie in [start, end] (ns). Checkpoint logs have none."""
    records = timeline.records
    if records is None:
        return TimedSteps(np.zeros(0), None, np.zeros(0, dtype=np.intp), 0)
    same = (records.owner[1:] == records.owner[:-1]) & (records.time[:-1] >= start) & (records.time[1:] <= end)
    return TimedSteps(step_times(timeline, start, end), records, np.flatnonzero(same), int(timeline.attempts.step_ends))


def step_times(timeline: Timeline, start: int, end: int) -> F64:
    """Seconds per step between consecutive records of one attempt that lie in [start, end] (ns)."""
    times = np.empty(_most_times(timeline))
    size = 0
    for seconds in step_time_parts(timeline, start, end):
        times[size : size + len(seconds)] = seconds
        size += len(seconds)
    return times[:size]


def step_time_parts(timeline: Timeline, start: int, end: int) -> Iterator[F64]:
    """Yield the step times, some thousand at a time."""
    for first, stop in blocks(_most_times(timeline)):
        records = timeline.records
        assert records is not None
        owner, time, number = (column[first : stop + 1] for column in (records.owner, records.time, records.number))
        inside = (owner[1:] == owner[:-1]) & (time[:-1] >= start) & (time[1:] <= end)
        took = np.diff(time)[inside]
        if timeline.clock_steps:
            took -= excluded_within(time[:-1][inside], time[1:][inside], timeline.clock_steps)
        yield took / np.diff(number)[inside] / 1e9


def _most_times(timeline: Timeline) -> int:
    return 0 if timeline.records is None else max(len(timeline.records.rows) - 1, 0)


def with_precise_times(timeline: Timeline, steps: TimedSteps) -> TimedSteps:
    """Return step times with those that lines state, where timestamps are whole seconds (accounting §8).

    Most stated times must agree with the timestamps within the second that these are rounded by: some programs state
    another time, as that of the dispatch of a step.
    """
    records = steps.records
    if records is None or not len(steps) or not timeline.attempts.step_ends or (steps.end % NS_PER_SECOND).any():
        return steps
    stated = timeline.table.step_time[records.rows[steps.here + 1]]
    known, seconds = stated > 0, stated / NS_PER_SECOND
    agree = known & (np.abs(seconds - steps.seconds) * steps.count <= 1)
    if 2 * np.count_nonzero(agree) <= np.count_nonzero(known):
        return steps
    return replace(steps, seconds=np.where(known, seconds, steps.seconds))


def sizes_of_work(timeline: Timeline, steps: TimedSteps) -> F64 | None:
    """Return a number for each step, equal for steps of one size: of as many samples and tokens, on as many
    accelerators and slices. None where all are alike, or no size is stated."""
    stated = [size.at(steps.end) for _, size in _stated_sizes(timeline)]
    if len(stated) < 2:
        return stated[0] if stated else None
    _, of_which = np.unique(np.column_stack(stated), axis=0, return_inverse=True)
    return np.asarray(of_which, dtype=np.float64).reshape(len(steps))


def _stated_sizes(timeline: Timeline) -> list[tuple[str, StatedValues]]:
    """Return the sizes of the job that change, by what they are called."""
    found = []
    for words, names, most in _SIZES_OF_WORK:
        metric = next((one for name in names if (one := metric_of(timeline, name)) is not None), None)
        if metric is not None and 1 < len(np.unique(metric.value)) <= most:
            found.append((words, StatedValues.of(timeline, metric.time, metric.step, metric.value)))
    slices = _total_slices(timeline)
    return found if slices is None else [*found, ("slices", slices)]


def _total_slices(timeline: Timeline) -> StatedValues | None:
    """Return how many slices the job has; None if that does not change, or is not logged. Fewer active ones are not
    another size: the rest is missing."""
    table = timeline.table
    rows = np.flatnonzero(table.kind == Kind.SLICES)
    known = {code: counts for code in set(table.detail[rows].tolist()) if (counts := slices_of(table.details[code]))}
    if len({total for _, total in known.values()}) < 2:
        return None
    rows = rows[np.isin(table.detail[rows], list(known))]
    total = np.array([known[code][1] for code in table.detail[rows].tolist()], dtype=np.float64)
    return StatedValues.of(timeline, table.time[rows], np.full(len(rows), NO_STEP), total)


def slices_of(detail: tuple[object, ...]) -> tuple[int, int] | None:
    """Return how many slices were active and how many the job has, as a record of slices states; None without both."""
    active, total = (*detail, None, None)[:2]
    return (active, total) if isinstance(active, int) and isinstance(total, int) and 0 < active <= total else None


def metric_of(timeline: Timeline, name: str) -> Metric | None:
    """A metric of the job; None where it recorded none of that name."""
    table = timeline.table
    job = table.jobs[int(table.job[0])] if len(table) else ""
    return next((one for one in table.metrics if (one.job, one.name) == (job, name) and len(one.value)), None)


def processes_by_attempt(timeline: Timeline) -> F64 | None:
    """Return how many processes each attempt had; None where that is not logged."""
    metric = metric_of(timeline, WORLD_SIZE)
    if metric is None or not len(timeline.attempts):
        return None
    ends = np.append(timeline.attempts.begin[1:] - 1, timeline.end)
    return StatedValues.of(timeline, metric.time, metric.step, metric.value).at(ends)


def changes_of_size(timeline: Timeline, start: int, end: int) -> list[str]:
    """Return a sentence for each change of the size of a step in [start, end] (ns), in order of time."""
    stated = _stated_sizes(timeline)
    if not stated:
        return []
    spans = timeline.training.spans
    inside = (spans.start >= start) & (spans.end <= end)
    ends, first, found = spans.end[inside], spans.first[inside] + int(timeline.attempts.step_ends), []
    for words, size in stated:
        values = size.at(ends)
        found += [
            (at, f"changed on purpose: {words} {values[at - 1]:g} -> {values[at]:g} from step {int(first[at])} on")
            for at in (np.flatnonzero(values[1:] != values[:-1]) + 1).tolist()
        ]
    return [sentence for _, sentence in sorted(found, key=lambda one: one[0])]


def winsorised_mean(values: F64) -> float:
    """The mean, where the largest and the smallest quarter count as the next value does."""
    ordered = np.sort(values)
    cut = len(ordered) // _TRIMMED
    return float(np.clip(ordered, ordered[cut], ordered[len(ordered) - 1 - cut]).mean())


def pace_blocks(seconds: F64, steps_each: float = 1.0) -> tuple[float, ...]:
    """Levels (s) of stretches of 50 steps or more, 64 at most: how a pace varies within a run. steps_each: steps of
    which one step time is the mean; a stretch has five step times at least."""
    least = max(math.ceil(PACE_STEPS / steps_each), _LEAST_PACE_TIMES)
    count = min(len(seconds) // least, PACE_BLOCKS)
    return tuple(winsorised_mean(part) for part in np.array_split(seconds, count)) if count else ()


def step_statistics(timeline: Timeline, start: int, end: int) -> StepStatistics:
    """Statistics of the step times in [start, end] (ns); all None where there are none."""
    times = step_times(timeline, start, end)
    if len(times) == 0:
        return StepStatistics(0)
    count, mean = len(times), float(times.mean())
    p50, p90, p99 = np.percentile(times, (50, 90, 99)).tolist()
    middle = float(np.median(times))
    limit = middle + 3 * float(np.median(abs(times - middle), overwrite_input=True))
    return StepStatistics(count, float(times[times <= limit].mean()), mean, p50, p90, p99)
