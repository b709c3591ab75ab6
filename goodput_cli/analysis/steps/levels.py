"""Candidates for lasting changes of the level of the step time (accounting §8), which noise.py tests against correlated
noise.

The method, each step over whole columns:
1. Blocks. The step times, in time order over all attempts, are cut into at most 2 000 blocks of 4 steps or more. Of
   every 24 steps (or of a block, if that is longer) the longest and the shortest quarter count as the next ones do
   (winsorized), so evaluations, saves and stalls do not move a level; a block is the mean of the logarithms.
2. Changes. The best partition: the one of least squares plus a penalty for each change. The penalty is c x variance x
   ln n (c = 3). The variance is the long-run one, from the scatter of successive means of 24 and of 48 steps, so
   similar neighbors (load that comes and goes) are not a change. No part has less than 24 steps.
3. Neighbors that differ by less than 5 % are one part: by the median shift of their quartiles, so a few odd steps are
   not a part. A level is the winsorized mean of a part, so a part in which fast and slow steps alternate has the level
   of both together.
4. Position. Each change is moved to the step at which the squares of the distances from the levels on its two sides are
   least.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from goodput_cli.analysis.steps.times import winsorised_mean
from goodput_cli.arrays import BLOCK, F64, blocks

_LEAST_BLOCK = 4
_MOST_BLOCKS = 2000
LEAST_STEPS = 24
"""Smallest number of step times in a regime, and in each of its neighbors."""
_TRIMMED = 4
"""One of this many steps is cut to the next one, at either end."""
_PENALTY = 3.0
_LEAST_MOVE = 12
"""Number of steps, beyond two blocks, by which a cut may be moved."""
_FEW_STEPS = 700
"""With fewer step times, the variance comes from few means, and the penalty rises as they become fewer."""
_FEW_VISIBLE = 4 * LEAST_STEPS
_LEAST_VARIANCE = 1e-8
LEAST_CHANGE = 0.05
LEAST_STRETCH = 8
"""Smallest length of two stretches that may still show a change, if there are too few step times for two regimes."""
_STEADY = 0.25
"""Each stretch moves within itself by less than this share of what lies between the two."""
_JUMP = 1.25
"""Factor of the jump between them over the largest one between other neighbors."""
_MOVED = float(np.log1p(LEAST_CHANGE))
_MAD_TO_SIGMA = 1.4826


def level_changes(seconds: F64) -> NDArray[np.intp] | None:
    """Positions at which the level of a column of step times (s) may change by 5 % and stay, sorted; see above. None
    where it does not even change by less."""
    coarse = _changes_of_blocks([seconds], len(seconds))
    if not coarse:
        return None
    size = block_size(len(seconds))
    bounds = [0, *(block * size for block in coarse), len(seconds)]
    for _ in range(2):  # the second time from levels that no block of two levels blurs
        bounds = _unlike(seconds, bounds)
        inner = zip(bounds[:-2], bounds[1:-1], bounds[2:], strict=True)
        bounds = [0, *sorted({_refined_position(seconds, *three) for three in inner}), len(seconds)]
    return np.array(_unlike(seconds, bounds)[1:-1], dtype=np.intp)


def separate_stretches(seconds: F64) -> int | None:
    """Return where the second of two stretches of step times (s) begins; None if there are none.

    Every step time of one is longer than all of the other, and their levels differ by 5 %. Values in random order show
    this at any of the n - 15 positions in 1 of 6000 series (of 16 values) or fewer. It is more frequent for a pace that
    drifts or rises: neither stretch may move from its first to its second half by a quarter of the distance between the
    two, and the jump between them is the largest one by a quarter.
    """
    count = len(seconds)
    if count < 2 * LEAST_STRETCH or seconds.min() <= 0:
        return None
    logs = np.log(seconds)
    least, most = np.minimum.accumulate(logs), np.maximum.accumulate(logs)
    least_after, most_after = np.minimum.accumulate(logs[::-1])[::-1], np.maximum.accumulate(logs[::-1])[::-1]
    places = np.arange(LEAST_STRETCH, count - LEAST_STRETCH + 1)
    apart = np.maximum(least_after[places] - most[places - 1], least[places - 1] - most_after[places])
    place = int(places[np.argmax(apart)])
    moved = abs(float(logs[place:].mean() - logs[:place].mean()))
    within = max(_moved_within(logs[:place]), _moved_within(logs[place:]))
    neighbors = np.abs(np.diff(logs))
    jump = neighbors[place - 1] >= _JUMP * np.delete(neighbors, place - 1).max()
    return place if apart.max() > 0 and moved >= _MOVED and within < _STEADY * moved and jump else None


def _moved_within(logs: F64) -> float:
    """Return the distance between the means of the two halves."""
    half = len(logs) // 2
    return abs(float(logs[half:].mean() - logs[:half].mean()))


def least_visible_change(seconds: F64) -> float:
    """Return the smallest change of level, as a share, that a column of step times (s) shows if half of them have it:
    the limit of `best_partition`, and more for few step times, for which noise.py is stricter. Infinite for too few for
    two regimes."""
    means = block_means([seconds], len(seconds))
    if not len(means):
        return math.inf
    penalty = _penalty(means, block_size(len(seconds)))
    return math.expm1(2 * math.sqrt(penalty / len(means)) * (1 + _FEW_VISIBLE / len(seconds)))


def _unlike(seconds: F64, bounds: list[int]) -> list[int]:
    """Return the bounds of parts without those between levels that differ by less than 5 %, the least first, and those
    next to parts that are too short."""
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
    """Return the quartiles as logarithms."""
    return np.asarray(np.log(np.maximum(np.percentile(seconds, (25, 50, 75)), 1e-9)))


def block_size(count: int) -> int:
    """Return the number of steps in a block, for this number of step times."""
    return max(_LEAST_BLOCK, -(-count // _MOST_BLOCKS))


def changes_level(parts: Iterable[F64], count: int) -> bool:
    """Return True if `level_changes` may find anything in these step times (s), which need not be in memory at once."""
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
    if whole:  # too few to show outliers: merged with those before them
        end = _winsorised(np.concatenate((last, rest))[None, -group:])[0, -len(rest) :][: whole * size]
        means.append(np.log(end).reshape(whole, size).mean(axis=1))
    return np.concatenate(means)


def _means(rows: F64, size: int) -> F64:
    """Return the means of groups of steps, one per row: winsorized, as logarithms, block by block."""
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
    penalty = _penalty(means, size)
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


def _penalty(means: F64, size: int) -> float:
    """Return what each change must take off the squares of the block means."""
    steps = len(means) * size
    return max(_FEW_STEPS / steps, 1.0) * _PENALTY * long_run_variance(means, size) * math.log(steps) / size


def _refined_position(seconds: F64, before: int, cut: int, after: int) -> int:
    """Return the position near a cut between two blocks at which the squares of the distances from both sides' levels
    are least; values beyond both sides' middle halves count as their ends."""
    size = block_size(len(seconds))
    left, right = seconds[before:cut], seconds[cut:after]
    low, high = winsorised_mean(left), winsorised_mean(right)
    middle = np.percentile(left, (25, 75)), np.percentile(right, (25, 75))
    start, stop = max(before + 1, cut - _LEAST_MOVE - 2 * size), min(after - 1, cut + _LEAST_MOVE + 2 * size)
    window = np.clip(seconds[start:stop], np.min(middle), np.max(middle))
    gain = (window - low) ** 2 - (window - high) ** 2
    return start + int(np.argmin(np.concatenate(([0.0], np.cumsum(gain)))))
