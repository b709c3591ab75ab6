"""Cumulative sums that a replay looks up: time that grows with each step (training), and time added at a step (saves).

Plain lists and `bisect`: a replay asks for one value at a time, where NumPy's overhead would be most of the work.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from goodput_cli.arrays import I64


@dataclass(frozen=True)
class LinearTotal:
    """A total (ns) that grows with a place or position.

    at: where its pieces begin, rising, and behind them where the last one ends; a range where each piece is one step.
    total: the total at each of these. Inside a piece it grows evenly, rounded down. beyond: ns a step behind the end.
    Before the beginning the total is that of the beginning.
    """

    at: Sequence[int]
    total: Sequence[int]
    beyond: int = 0

    def upto(self, place: int) -> int:
        """The total up to a place (ns)."""
        at, total = self.at, self.total
        if place >= at[-1]:
            return total[-1] + self.beyond * (place - at[-1])
        if place <= at[0]:
            return total[0]
        if isinstance(at, range):
            return total[place - at[0]]
        piece = bisect_right(at, place) - 1
        width = at[piece + 1] - at[piece]
        return total[piece] + (total[piece + 1] - total[piece]) * (place - at[piece]) // width


FLAT = LinearTotal((0,), (0,))
"""Nothing anywhere."""


def linear_total(first: I64, count: I64, amount: I64, beyond: int = 0) -> LinearTotal:
    """A total of pieces that touch: `count` steps from `first` on take `amount` (ns) together.

    first, count, amount: int64[k]; first[i + 1] == first[i] + count[i], counts above 0.
    """
    if len(first) == 0:
        return LinearTotal((0,), (0,), beyond)
    total = [0, *np.cumsum(amount).tolist()]
    if np.all(count == 1):
        return LinearTotal(range(int(first[0]), int(first[0]) + len(first) + 1), total, beyond)
    return LinearTotal([*first.tolist(), int(first[-1] + count[-1])], total, beyond)


def sparse_linear_total(first: I64, stop: I64, amount: I64) -> LinearTotal:
    """The same where most pieces hold nothing and are left out: `amount` (ns) in first <= step < stop, in order."""
    if len(first) == 0:
        return FLAT
    at = np.column_stack((first, stop)).ravel()
    before = np.cumsum(amount) - amount
    total = np.column_stack((before, before + amount)).ravel()
    new = np.append(at[1:] != at[:-1], True)
    return LinearTotal(at[new].tolist(), total[new].tolist())


@dataclass(frozen=True)
class StepTotal:
    """Amounts (ns) due at positions, which rise. total[i]: of the first i of them."""

    at: Sequence[int]
    total: Sequence[int]

    def upto(self, position: int) -> int:
        """What is due at or below a position (ns)."""
        return self.total[bisect_right(self.at, position)]

    def count(self, position: int) -> int:
        """How many are due at or below a position."""
        return bisect_right(self.at, position)

    def last(self, low: int, high: int) -> int | None:
        """The highest position with low < position <= high at which one is due."""
        place = bisect_right(self.at, high) - 1
        return self.at[place] if place >= 0 and self.at[place] > low else None


def step_total(at: I64, amount: I64) -> StepTotal:
    """at: positions, rising. amount: ns."""
    return StepTotal(at.tolist(), [0, *np.cumsum(amount).tolist()])


def median_share(count: I64, amount: I64, skip_first: bool) -> int | None:
    """Median (rounded half to even) of what single steps take, where `count` steps take `amount` (ns) in equal shares
    that are rounded down one after the other. skip_first: without the very first step. None of nothing."""
    if len(count) == 0:
        return None
    steps = np.maximum(count, 1)  # step-end logs have spans without a step
    low, more = amount // steps, amount % steps
    value, weight = np.concatenate((low, low + 1)), np.concatenate((count - more, more))
    if skip_first:
        weight = weight.copy()
        weight[0] -= 1
    total = int(weight.sum())
    if total <= 0:
        return None
    order = np.argsort(value, kind="stable")
    behind = np.cumsum(weight[order])
    middle = [int(value[order[np.searchsorted(behind, place, "right")]]) for place in ((total - 1) // 2, total // 2)]
    half, odd = divmod(sum(middle), 2)
    return half + (odd & half & 1)
