"""Risen level (accounting §6): kept training at the end of the job that is slower than the reference step time found in
the log, and never became fast again. The log does not show if it is slow, or longer by design."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from goodput_cli.accounting.columns import search
from goodput_cli.accounting.training.kept import KeptTraining
from goodput_cli.arrays import F64, I64, Mask, Rows, blocks

LEAST_SPANS = 2
"""A single slow span is not a level."""
_LEAST_EXCESS = 1 / 3
"""Least excess of slow spans over fast ones, per span of a level. Steps that randomly take one of two times do not
reach it."""
_AROUND = 2
"""Number of spans on either side that form the level of a span."""


class RisenLevel(Struct, frozen=True):
    """Slow training that may be by design."""

    first: int
    """Row of the kept training with which the level begins."""
    slowdown: I64
    """Slowdown (ns) of each row of the kept training that is productive if the level is by design."""


def find_risen_level(
    kept_training: KeptTraining, judged: Mask, reference_ns: Fraction, alike: float
) -> RisenLevel | None:
    """Return the level that rose and stayed; None without one.

    judged: True for spans whose pace counts. alike: multiple of the reference up to which a pace still counts as fast.
    """
    rows = np.flatnonzero(judged)
    pace = kept_training.net(rows) / kept_training.spans.steps[rows]
    reference = float(reference_ns)
    begin = begin_of_tail(pace > reference * alike)
    if begin is None:
        return None
    rows, level = rows[begin:], levels(pace[begin:])
    slowdown = np.zeros(len(kept_training), dtype=np.int64)
    for start, stop in blocks(len(kept_training)):
        if stop > rows[0]:
            first = max(start, int(rows[0]))
            slowdown[first:stop] = _of_level(kept_training, first, stop, (rows, level), reference, alike)
    return RisenLevel(int(rows[0]), slowdown)


def begin_of_tail(slow: NDArray[np.bool_]) -> int | None:
    """Return the position at which the slow end of a series begins; None without one.

    Read backward, slow spans count 1 and fast ones -1. The job was fast again where this sum falls by log2 of the
    number of spans (rounded down) below its highest value; the tail begins where the sum is highest before that. Two
    thirds of its spans are slow, and at least two.
    """
    total = np.concatenate(([0], np.cumsum(np.where(slow[::-1], 1, -1))))
    fallen = np.maximum.accumulate(total) - total >= max(len(slow).bit_length() - 1, 1)
    stop = int(np.argmax(fallen)) if fallen.any() else len(total)
    length = int(np.argmax(total[:stop]))
    return len(slow) - length if total[length] >= max(LEAST_SPANS, _LEAST_EXCESS * length) else None


def levels(pace: F64) -> F64:
    """Return the running median of five values, of fewer at the ends."""
    level = np.empty_like(pace)
    padded = np.pad(pace, _AROUND, constant_values=np.nan)
    for start, stop in blocks(len(pace)):
        around = np.lib.stride_tricks.sliding_window_view(padded[start : stop + 2 * _AROUND], 2 * _AROUND + 1)
        level[start:stop] = np.nanmedian(around, axis=1)
    return level


def _of_level(
    kept_training: KeptTraining, start: int, stop: int, tail: tuple[Rows, F64], reference: float, alike: float
) -> I64:
    """Return the slowdown (ns) of rows start .. stop - 1 that their level explains. A row that is slower than its level
    keeps the rest as slowdown. tail: the judged rows, and their levels; other rows have the level of the row before."""
    rows, level = tail
    slowdown, steps = kept_training.slowdown[start:stop], kept_training.counted_steps[start:stop]
    at = level[np.maximum(search(rows, np.arange(start, stop), side="right") - 1, 0)]
    stands_out = reference * steps + slowdown > at * alike * steps
    return np.where(stands_out, np.rint((at - reference) * steps).astype(np.int64), slowdown)
