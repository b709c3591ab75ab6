"""Step times (accounting §8), one by one with their lines or nothing but the seconds of each; and slow regimes: where
the level of the step time moved and stayed, and what that cost the job.

The method, each move over whole columns:
1. Blocks. The step times, in time order over all attempts, are cut into at most 2 000 blocks of 4 steps or more. Of
   every 24 steps (or of a block, if that is longer) the longest and the shortest quarter count as the next ones do
   (winsorised), so that evaluations, saves and stalls do not move a level; a block is the mean of the logarithms.
2. Changes. The best partition: the one of least squares plus a penalty for each change. The penalty is c x variance x
   ln n (c = 3). The variance is the long-run one, from how successive means of 24 and of 48 steps scatter, so that
   neighbours that are alike (load that comes and goes) are no change. No part has less than 24 steps.
3. Neighbours that differ by less than 5 % are one part: by the median of what their quartiles moved by, so that a few
   odd steps are no part. A level is the winsorised mean of a part, so that one in which fast and slow steps take
   turns has the level of both together.
4. Place. Each change is moved to the step at which the squares of the distances from the levels on its two sides are
   least.
5. The usual level is the lowest one that holds a tenth of all steps. What lies above it by more than 5 % is slow; slow
   neighbours that differ by less are one regime.

What it finds, and how often it is wrong, is measured in tests/simulation/test_power.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.training.kept import excluded_within
from goodput_cli.accounting.training.spans import StepRecordsByAttempt
from goodput_cli.analysis.table import Table, attribute, column, columns_of
from goodput_cli.arrays import BLOCK, F64, I64, Rows, blocks
from goodput_cli.events.schema import BATCH_SIZE, Metric

_LEAST_BLOCK = 4
_MOST_BLOCKS = 2000
LEAST_STEPS = 24
"""A regime has at least so many step times, and so has what is beside it."""
PACE_STEPS, PACE_BLOCKS = 50, 64
_LEAST_PACE_TIMES = 5
_TRIMMED = 4
"""One of so many steps is cut to the next one, at either end."""
_PENALTY = 3.0
_LEAST_MOVE = 12
"""So many steps and two blocks a cut may be moved."""
_FEW_STEPS = 700
"""Of fewer the variance is known from few means, and the penalty rises as they become less."""
_LEAST_VARIANCE = 1e-8
_LEAST_CHANGE = 0.05
_MOVED = float(np.log1p(_LEAST_CHANGE))
_USUAL_SHARE = 0.1
_MAD_TO_SIGMA = 1.4826


@dataclass(frozen=True, repr=False)
class TimedSteps:
    """Step times in time order: from one record to the next of the same attempt, never across attempts. A column is
    gathered each time somebody asks for it: a long log has room for few of them at once."""

    seconds: F64
    """Seconds per step, without what a clock that was set forward adds."""
    records: StepRecordsByAttempt | None
    """None in checkpoint logs."""
    here: Rows
    """Of each step time the record that begins it, in `records`."""
    named: int
    """How much farther that record is which names the step: 1 where records are of step ends."""

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
        """From 0."""
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
        """Some of them, in the order of their places."""
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
    """The same, some thousand at a time."""
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


@dataclass(frozen=True)
class Regime:
    """A span of slow steps, from one step time to another: its fields are the columns of the table."""

    first_step: int = column("count", "first slow step", name="from_step")
    last_step: int = column("count", "last slow step", name="to_step")
    first_attempt: int = column("count", "from 1", name="from_attempt", least=1)
    last_attempt: int = column("count", "from 1", name="to_attempt", least=1)
    start_ns: int = column("instant", "since when", heading="start")
    end_ns: int = column("instant", "until when")
    ongoing: bool = column("text", "it lasts to the last step time of the window", json={"type": "boolean"})
    steps: int = column("count", "steps in it", least=1)
    seconds: float = column(
        "number",
        "step time in it: the mean of its steps, the longest and shortest quarter cut to the next ones",
        name="step_seconds",
        least=0,
    )
    usual_seconds: float = column("number", "the usual level outside", name="usual_step_seconds", least=0)
    factor: float = column("number", "step_seconds / usual_step_seconds", least=1)
    lost_seconds: float = column("number", "(step_seconds - usual_step_seconds) x steps", least=0)
    where: str = column("text", "file:line or insertId of its first step", name="evidence")


SLOW_REGIMES = Table("slow_regime", "a slow regime", columns_of(Regime, attribute))


def sizes_of_work(timeline: Timeline, steps: TimedSteps) -> F64 | None:
    """How many samples each step takes: the last size that was stated until it ended; None where none is, or all are
    the same."""
    stated = _stated_sizes(timeline)
    if stated is None:
        return None
    order = np.argsort(stated.time, kind="stable")
    latest = np.searchsorted(stated.time[order], steps.end, side="right") - 1
    return np.asarray(stated.value[order][np.maximum(latest, 0)])


def _stated_sizes(timeline: Timeline) -> Metric | None:
    table = timeline.table
    name = table.jobs[int(table.job[0])] if len(table) else ""
    stated = next((one for one in table.metrics if (one.job, one.name) == (name, BATCH_SIZE) and len(one.value)), None)
    return None if stated is None or (stated.value == stated.value[0]).all() else stated


def changes_of_size(timeline: Timeline, start: int, end: int) -> list[str]:
    """A sentence for each change of what a step takes in [start, end] (ns): no slowness, it is so by design."""
    if _stated_sizes(timeline) is None:
        return []
    steps = timed_steps(timeline, start, end)
    sizes = sizes_of_work(timeline, steps)
    if sizes is None:
        return []
    number, places = steps.number, np.flatnonzero(sizes[1:] != sizes[:-1]) + 1
    return [
        f"by design: global batch {sizes[at - 1]:g} -> {sizes[at]:g} from step {int(number[at])} on"
        for at in places.tolist()
    ]


def slow_regimes(timeline: Timeline, steps: TimedSteps) -> tuple[Regime, ...]:
    """Slow regimes of step times, in time order; steps that take other numbers of samples have levels of their own."""
    sizes = sizes_of_work(timeline, steps)
    if sizes is None:
        return _slow_regimes(timeline, steps)
    parts = (steps.take(np.flatnonzero(sizes == size)) for size in np.unique(sizes))
    found = (regime for part in parts for regime in _slow_regimes(timeline, part))
    return tuple(sorted(found, key=lambda regime: regime.start_ns))


def _slow_regimes(timeline: Timeline, steps: TimedSteps) -> tuple[Regime, ...]:
    seconds, count = steps.seconds, steps.count
    cuts = level_changes(seconds)
    if len(cuts) == 0:
        return ()  # one level is the usual one
    bounds = np.concatenate(([0], cuts, [len(seconds)])).astype(np.intp)
    levels = np.array([winsorised_mean(part) for part in np.split(seconds, cuts)])
    usual = _usual_level(levels, np.diff(bounds))
    if usual <= 0:
        return ()
    regimes = []
    for begin, stop in _slow_runs(levels, usual, bounds):
        ends = steps.take(np.array([begin, stop - 1]))
        level, many = winsorised_mean(seconds[begin:stop]), int(count[begin:stop].sum())
        regimes.append(
            Regime(
                first_step=int(ends.number[0]),
                last_step=int(ends.number[1] + ends.count[1] - 1),
                first_attempt=int(timeline.attempts.number[ends.attempt[0]]),
                last_attempt=int(timeline.attempts.number[ends.attempt[1]]),
                start_ns=int(ends.time[0]),
                end_ns=int(ends.end[1]),
                steps=many,
                seconds=level,
                usual_seconds=usual,
                factor=level / usual,
                lost_seconds=(level - usual) * many,
                ongoing=stop == len(seconds),
                where=timeline.table.where(int(ends.row[0])),
            )
        )
    return tuple(regimes)


def level_changes(seconds: F64) -> NDArray[np.intp]:
    """Positions at which the level of a column of step times (s) changes and stays, sorted; see above."""
    coarse = _changes_of_blocks([seconds], len(seconds))
    size = block_size(len(seconds))
    bounds = [0, *(block * size for block in coarse), len(seconds)]
    for _ in range(2):  # the second time from levels that no block of two levels blurs
        bounds = _unlike(seconds, bounds)
        inner = zip(bounds[:-2], bounds[1:-1], bounds[2:], strict=True)
        bounds = [0, *sorted({_place(seconds, *three) for three in inner}), len(seconds)]
    return np.array(_unlike(seconds, bounds)[1:-1], dtype=np.intp)


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


def _unlike(seconds: F64, bounds: list[int]) -> list[int]:
    """The bounds of parts without those between levels that differ by less than 5 %, the least first, and those beside
    parts that are too short."""
    parts = [_quartiles(seconds[begin:stop]) for begin, stop in pairwise(bounds)]
    bounds = list(bounds)
    while len(parts) > 1:
        moved = np.abs(np.median(np.diff(parts, axis=0), axis=1))
        short = np.diff(bounds) < LEAST_STEPS
        beside = short[1:] | short[:-1]
        moved = np.where(beside, moved - 1e3, moved)
        least = int(np.argmin(moved))
        if moved[least] > _MOVED:
            break
        del bounds[least + 1]
        parts[least : least + 2] = [_quartiles(seconds[bounds[least] : bounds[least + 1]])]
    return bounds


def _quartiles(seconds: F64) -> F64:
    """As logarithms."""
    return np.asarray(np.log(np.maximum(np.percentile(seconds, (25, 50, 75)), 1e-9)))


def block_size(count: int) -> int:
    """Steps in a block, of so many step times."""
    return max(_LEAST_BLOCK, -(-count // _MOST_BLOCKS))


def changes_level(parts: Iterable[F64], count: int) -> bool:
    """Whether `level_changes` may find anything in so many step times (s), which nobody has to hold together."""
    return bool(_changes_of_blocks(parts, count))


def _changes_of_blocks(parts: Iterable[F64], count: int) -> list[int]:
    """The blocks before which the level changes; see above."""
    blocks_of_logs = block_means(parts, count)
    return best_partition(blocks_of_logs, block_size(count)) if len(blocks_of_logs) else []


def block_means(parts: Iterable[F64], count: int) -> F64:
    """Mean logarithm of the winsorised times of each block; none if there are too few for a change."""
    size = block_size(count)
    if count < 2 * LEAST_STEPS:
        return np.zeros(0)
    group = size * -(-LEAST_STEPS // size)
    means: list[F64] = []
    rest = last = np.zeros(0)
    for part in parts:
        seconds = np.concatenate((rest, part)) if len(rest) else part
        whole = len(seconds) // group
        rows, rest = seconds[: whole * group].reshape(whole, group), seconds[whole * group :]
        for start, stop in blocks(whole, max(BLOCK // group, 1)):  # to sort is to copy
            means.append(_means(rows[start:stop], size))
        if whole:
            last = rows[-1]
    whole = len(rest) // size
    if whole:  # too few to tell which of them are odd: with those before them
        end = _winsorised(np.concatenate((last, rest))[None, -group:])[0, -len(rest) :][: whole * size]
        means.append(np.log(end).reshape(whole, size).mean(axis=1))
    return np.concatenate(means)


def _means(rows: F64, size: int) -> F64:
    """Of groups of steps, one a row: winsorised, as logarithms, block by block."""
    return np.asarray(np.log(_winsorised(rows)).reshape(-1, size).mean(axis=1))


def _winsorised(rows: F64) -> F64:
    """Groups of steps, one a row, each with its longest and shortest quarter cut to the next ones; above 0."""
    ordered = np.sort(rows, axis=1)
    cut = rows.shape[1] // _TRIMMED
    least, most = ordered[:, cut, None], ordered[:, rows.shape[1] - 1 - cut, None]
    return np.maximum(np.clip(rows, least, most), 1e-9)


def long_run_variance(means: F64, size: int) -> float:
    """Variance a step (of logarithms) that means over many steps have, from how successive ones differ; never 0.

    Differences of neighbours do not see a change of level, but for the one across it. means: of blocks of `size` steps.
    """
    widths = {max(round(steps / size), 1) for steps in (LEAST_STEPS, 2 * LEAST_STEPS)}
    few = max(len(means) // 16, 1)
    variances = [_LEAST_VARIANCE]
    for width in {min(width, few) for width in widths}:
        whole = len(means) // width
        successive = means[: whole * width].reshape(whole, width).mean(axis=1)
        scatter = _MAD_TO_SIGMA * float(np.median(np.abs(np.diff(successive)))) if whole > 1 else 0.0
        variances.append(width * size * scatter**2 / 2)
    return max(variances)


def best_partition(means: F64, size: int) -> list[int]:
    """Blocks before which a new part begins, where squares and penalties together are least."""
    count, least = len(means), -(-LEAST_STEPS // size)
    few = max(_FEW_STEPS / (count * size), 1.0)
    penalty = few * _PENALTY * long_run_variance(means, size) * math.log(count * size) / size
    centred = means - means.mean()
    total, squares = np.append(0.0, np.cumsum(centred)), np.append(0.0, np.cumsum(centred**2))
    best = np.full(count + 1, np.inf)
    best[0] = -penalty
    before = np.zeros(count + 1, dtype=np.intp)
    places = np.arange(count + 1)
    for stop in range(least, count + 1):
        begin = places[: stop - least + 1]
        costs = best[begin] + penalty + squares[stop] - squares[begin]
        costs -= (total[stop] - total[begin]) ** 2 / (stop - begin)
        before[stop] = np.argmin(costs)
        best[stop] = costs[before[stop]]
    cuts: list[int] = []
    stop = count
    while before[stop] > 0:
        stop = int(before[stop])
        cuts.append(stop)
    return cuts[::-1]


def drifts(means: F64, size: int) -> tuple[float, float] | None:
    """The step time (s) at the two ends of a line that rises and fits better than levels do; None where none does.
    means: of blocks of `size` steps, as logarithms."""
    count = len(means)
    if count == 0:
        return None
    place = np.arange(count) - (count - 1) / 2
    slope = float((place * means).sum() / (place**2).sum())
    middle, half = float(means.mean()), slope * (count - 1) / 2
    variance = long_run_variance(means, size)
    penalty = _PENALTY * variance * math.log(count * size) / size
    bounds = [0, *best_partition(means, size), count]
    squares = [float(((means[begin:stop] - means[begin:stop].mean()) ** 2).sum()) for begin, stop in pairwise(bounds)]
    of_levels = sum(squares) + penalty * (len(bounds) - 2)
    of_line = float(((means - middle - slope * place) ** 2).sum()) + penalty
    if slope <= 0 or of_line >= of_levels:
        return None
    return math.exp(middle - half), math.exp(middle + half)


def _place(seconds: F64, before: int, cut: int, after: int) -> int:
    """The position near a cut between two blocks at which the squares of the distances from both sides' levels are
    least; what lies beyond both sides' middle halves counts as their ends."""
    size = block_size(len(seconds))
    left, right = seconds[before:cut], seconds[cut:after]
    low, high = winsorised_mean(left), winsorised_mean(right)
    middle = np.percentile(left, (25, 75)), np.percentile(right, (25, 75))
    start, stop = max(before + 1, cut - _LEAST_MOVE - 2 * size), min(after - 1, cut + _LEAST_MOVE + 2 * size)
    window = np.clip(seconds[start:stop], np.min(middle), np.max(middle))
    gain = (window - low) ** 2 - (window - high) ** 2
    return start + int(np.argmin(np.concatenate(([0.0], np.cumsum(gain)))))


def _usual_level(levels: F64, sizes: NDArray[np.intp]) -> float:
    """The lowest level that holds a tenth of all step times, with all the levels that differ from it by little; before
    it, the lowest levels that together do: of a job that became slower in many steps none holds as much."""
    ordered = np.argsort(levels, kind="stable")
    least = _USUAL_SHARE * sizes.sum()
    for count, place in enumerate(ordered.tolist(), 1):
        alike = np.abs(levels / levels[place] - 1) <= _LEAST_CHANGE if levels[place] > 0 else levels == 0
        for some in (np.flatnonzero(alike), ordered[:count]):
            if sizes[some].sum() >= least:
                return float(np.average(levels[some], weights=sizes[some]))
    return float(np.median(levels))


def _slow_runs(levels: F64, usual: float, bounds: NDArray[np.intp]) -> list[tuple[int, int]]:
    """[begin, stop) positions of slow regimes; neighbours of nearly the same level are one."""
    runs: list[tuple[int, int]] = []
    before: float | None = None
    for level, begin, stop in zip(levels.tolist(), bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        slow = level > usual * (1 + _LEAST_CHANGE)
        if slow and before is not None and abs(level / before - 1) <= _LEAST_CHANGE:
            runs[-1] = (runs[-1][0], stop)
        elif slow:
            runs.append((begin, stop))
        before = level if slow else None
    return runs


def lost_in_regimes(timeline: Timeline, steps: TimedSteps, regimes: Sequence[Regime]) -> int:
    """Time (ns) that slow regimes took beyond the usual step, in kept steps: what was lost is lost anyway."""
    kept = np.clip(timeline.lineage.limit[steps.attempt] - steps.number, 0, steps.count)
    start, end, lost = steps.time, steps.end, 0.0
    for regime in regimes:
        inside = (start >= regime.start_ns) & (end <= regime.end_ns)
        lost += (regime.seconds - regime.usual_seconds) * float(kept[inside].sum())
    return round(lost * 1e9)
