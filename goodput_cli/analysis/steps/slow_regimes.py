"""Slow regimes (accounting §8): where the level of the step time moved and stayed.

The method, in four moves, each one over whole columns:
1. Blocks. The step times are cut into at most 2 000 blocks of 8 steps or more, in time order over all attempts, and
   each block is represented by the logarithm of its median: up to half of a block's steps may be evaluations, saves
   or stalls without moving it. A running median of three then drops what lasted for one block only.
2. Changes. Binary segmentation: a run of blocks is cut where the sums of its two sides differ most from their common
   mean (CUSUM). The cut counts if it stands out from the blocks' own scatter (6 x, the scatter taken from
   differences of neighbours, which a change of level does not inflate), if the medians of both sides differ by more
   than 5 %, and if both sides have 3 blocks. The sides are cut further in the same way.
3. Place. Each change is moved to the step at which the absolute deviations from the levels on its two sides are least.
4. Levels. The usual level is the lowest one that holds a tenth of all steps. What lies above it by more than 5 % is
   slow; slow neighbours that differ by less are one regime.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.steps.timed import TimedSteps
from goodput_cli.analysis.table import column
from goodput_cli.arrays import BLOCK, F64, I64, blocks

_LEAST_BLOCK = 8
_MOST_BLOCKS = 2000
_LEAST_BLOCKS = 3
_STANDS_OUT = 6.0
_LEAST_SCATTER = 1e-6
_LEAST_CHANGE = 0.05
_USUAL_SHARE = 0.1
_MAD_TO_SIGMA = 1.4826


@dataclass(frozen=True)
class Regime:
    """A span of slow steps, from one step time to another: its fields are the columns of the table."""

    first_step: int = column("count", "first slow step", name="from_step")
    last_step: int = column("count", "last slow step", name="to_step")
    first_attempt: int = column("count", "from 1", name="from_attempt", least=1)
    last_attempt: int = column("count", "from 1", name="to_attempt", least=1)
    start_ns: int = column("instant", "since when", people=(1, "start"))
    end_ns: int = column("instant", "until when")
    ongoing: bool = column("text", "it lasts to the last step time of the window", json={"type": "boolean"})
    steps: int = column("count", "steps in it", least=1)
    seconds: float = column("number", "median step time in it", name="step_seconds", least=0)
    usual_seconds: float = column("number", "the usual level outside", name="usual_step_seconds", least=0)
    factor: float = column("number", "step_seconds / usual_step_seconds", least=1)
    lost_seconds: float = column("number", "(step_seconds - usual_step_seconds) x steps", least=0)
    where: str = column("text", "file:line or insertId of its first step", name="evidence")


def slow_regimes(timeline: Timeline, steps: TimedSteps) -> tuple[Regime, ...]:
    """Slow regimes of step times, in time order."""
    seconds, count = steps.seconds, steps.count
    cuts = level_changes(seconds)
    if len(cuts) == 0:
        return ()  # one level is the usual one
    bounds = np.concatenate(([0], cuts, [len(seconds)])).astype(np.intp)
    levels = _levels(seconds, cuts)
    usual = _usual_level(levels, np.diff(bounds))
    if usual <= 0:
        return ()
    regimes = []
    for begin, stop in _slow_runs(levels, usual, bounds):
        level, many = float(np.median(seconds[begin:stop])), int(count[begin:stop].sum())
        regimes.append(
            Regime(
                first_step=int(steps.number[begin]),
                last_step=int(steps.number[stop - 1] + count[stop - 1] - 1),
                first_attempt=int(steps.attempt[begin]) + 1,
                last_attempt=int(steps.attempt[stop - 1]) + 1,
                start_ns=int(steps.time[begin]),
                end_ns=int(steps.end[stop - 1]),
                steps=many,
                seconds=level,
                usual_seconds=usual,
                factor=level / usual,
                lost_seconds=(level - usual) * many,
                ongoing=stop == len(seconds),
                where=timeline.table.where(int(steps.row[begin])),
            )
        )
    return tuple(regimes)


def level_changes(seconds: F64) -> NDArray[np.intp]:
    """Positions at which the level of a column of step times (s) changes and stays, sorted; see above."""
    size = _block_size(len(seconds))
    coarse = _changes_of_blocks([seconds], len(seconds))
    if not coarse:
        return np.zeros(0, dtype=np.intp)
    bounds = [0, *(block * size for block in coarse), len(seconds)]
    placed = [
        _place(seconds, before, cut, after)
        for before, cut, after in zip(bounds[:-2], bounds[1:-1], bounds[2:], strict=True)
    ]
    cuts = np.array(sorted(set(placed)), dtype=np.intp)
    if len(cuts) == 0:
        return cuts
    levels = _levels(seconds, cuts)
    moved = np.abs(np.log(np.maximum(levels[1:], 1e-300) / np.maximum(levels[:-1], 1e-300)))
    kept: NDArray[np.intp] = cuts[moved > np.log1p(_LEAST_CHANGE)]
    return kept


def _levels(seconds: F64, cuts: NDArray[np.intp]) -> F64:
    """Median step time (s) of each part."""
    return np.array([np.median(part) for part in np.split(seconds, cuts)])


def _block_size(count: int) -> int:
    return max(_LEAST_BLOCK, -(-count // _MOST_BLOCKS))


def changes_level(parts: Iterable[F64], count: int) -> bool:
    """Whether `level_changes` may find anything in so many step times (s), which nobody has to hold together."""
    return bool(_changes_of_blocks(parts, count))


def _changes_of_blocks(parts: Iterable[F64], count: int) -> list[int]:
    """The blocks at which the level changes; see above."""
    levels = _block_levels(parts, count)
    return _segment(_smoothed(levels), _scatter(levels)) if len(levels) else []


def _block_levels(parts: Iterable[F64], count: int) -> F64:
    """Logarithm of the median of each whole block; none if there are too few for a change."""
    size = _block_size(count)
    if count // size < 2 * _LEAST_BLOCKS:
        return np.zeros(0)
    found: list[F64] = []
    rest = np.zeros(0)
    for part in parts:
        seconds = np.concatenate((rest, part)) if len(rest) else part
        whole = len(seconds) // size
        rows, rest = seconds[: whole * size].reshape(whole, size), seconds[whole * size :]
        for start, stop in blocks(whole, max(BLOCK // size, 1)):  # a median copies what it looks at
            found.append(np.median(rows[start:stop], axis=1))
    medians = np.concatenate(found)
    least = float(medians[medians > 0].min()) if np.any(medians > 0) else 1.0
    return np.asarray(np.log(np.maximum(medians, least)))


def _scatter(levels: F64) -> float:
    """Standard deviation of the blocks around their level, from differences of neighbours; never 0."""
    return max(float(np.median(np.abs(np.diff(levels)))) * _MAD_TO_SIGMA / math.sqrt(2), _LEAST_SCATTER)


def _smoothed(levels: F64) -> F64:
    """The running median of three blocks."""
    padded = np.concatenate((levels[:1], levels, levels[-1:]))
    return np.asarray(np.median(np.stack((padded[:-2], padded[1:-1], padded[2:])), axis=0))


def _segment(blocks: F64, scatter: float) -> list[int]:
    """Blocks before which the level changes, by binary segmentation."""
    cuts: list[int] = []
    waiting = [(0, len(blocks))]
    while waiting:
        start, stop = waiting.pop()
        cut = _best_cut(blocks[start:stop], scatter)
        if cut is not None:
            cuts.append(start + cut)
            waiting += [(start, start + cut), (start + cut, stop)]
    return sorted(cuts)


def _best_cut(blocks: F64, scatter: float) -> int | None:
    """Where a run of blocks is best cut in two; None where no cut stands out."""
    count = len(blocks)
    if count < 2 * _LEAST_BLOCKS:
        return None
    left = np.arange(_LEAST_BLOCKS, count - _LEAST_BLOCKS + 1)
    total = np.cumsum(blocks - blocks.mean())
    contrast = np.abs(total[left - 1]) * np.sqrt(count / (left * (count - left)))
    best = int(np.argmax(contrast))
    if contrast[best] <= _STANDS_OUT * scatter:
        return None
    cut = int(left[best])
    moved = abs(float(np.median(blocks[cut:]) - np.median(blocks[:cut])))
    return cut if moved > np.log1p(_LEAST_CHANGE) else _inner_cut(blocks, scatter, contrast, left)


def _inner_cut(blocks: F64, scatter: float, contrast: F64, left: I64) -> int | None:
    """A level that moves and comes back in the middle leaves the medians of two halves alike: then a cut counts if the
    three blocks on either side of it differ."""
    for best in np.argsort(-contrast)[:8].tolist():
        cut = int(left[best])
        near = abs(float(np.median(blocks[cut : cut + _LEAST_BLOCKS]) - np.median(blocks[cut - _LEAST_BLOCKS : cut])))
        if contrast[best] > _STANDS_OUT * scatter and near > max(np.log1p(_LEAST_CHANGE), _STANDS_OUT * scatter):
            return cut
    return None


def _place(seconds: F64, before: int, cut: int, after: int) -> int:
    """The position between two blocks' reach of the cut at which the deviations from both sides' medians are least."""
    size = _block_size(len(seconds))
    low, high = np.median(seconds[before:cut]), np.median(seconds[cut:after])
    start, stop = max(before + 1, cut - 2 * size), min(after - 1, cut + 2 * size)
    window = seconds[start:stop]
    gain = np.abs(window - low) - np.abs(window - high)
    return start + int(np.argmin(np.concatenate(([0.0], np.cumsum(gain)))))


def _usual_level(levels: F64, sizes: NDArray[np.intp]) -> float:
    """The lowest level that holds a tenth of all step times, with all the levels that differ from it by little."""
    for place in np.argsort(levels, kind="stable").tolist():
        alike = np.abs(levels / levels[place] - 1) <= _LEAST_CHANGE if levels[place] > 0 else levels == 0
        if sizes[alike].sum() >= _USUAL_SHARE * sizes.sum():
            return float(np.average(levels[alike], weights=sizes[alike]))
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
