"""The ledger: the running total of every category. Any question about a window is a difference of two look-ups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goodput_cli.timeline.categories import Category
from goodput_cli.timeline.columns import distinct
from goodput_cli.timeline.partition import Segments

I64 = NDArray[np.int64]
Key = tuple[Category, int]
"""A category, and the code of its label (-1 for categories without labels)."""


@dataclass(frozen=True)
class _Account:
    """One category: its segments in time order, and its total (ns) before each."""

    start: I64
    amount: I64
    length: I64
    before: I64

    def upto(self, time: I64) -> I64:
        """Total (ns) up to each instant. Inside a segment the amount grows evenly, rounded half to even."""
        if len(self.start) == 0:
            return np.zeros(len(time), dtype=np.int64)
        place = np.searchsorted(self.start, time, side="right") - 1
        known = np.maximum(place, 0)
        passed = np.clip(time - self.start[known], 0, self.length[known])
        whole = passed == self.length[known]
        part = np.rint(self.amount[known] * (passed / np.maximum(self.length[known], 1))).astype(np.int64)
        part = np.where(self.amount[known] == self.length[known], passed, part)
        inside = np.where(whole, self.amount[known], part)
        return np.where(place >= 0, self.before[known] + inside, 0)


def _account(start: I64, end: I64, amount: I64) -> _Account:
    return _Account(start, amount, end - start, np.cumsum(amount) - amount)


class Ledger:
    """Running totals of the categories of one job's segments."""

    def __init__(self, segments: Segments) -> None:
        length = segments.end - segments.start
        self.start = int(segments.start[0])
        self.end = int(segments.end[-1])
        self._accounts: dict[Key, _Account] = {}
        for category in np.flatnonzero(np.bincount(segments.category)).tolist():
            chosen = np.flatnonzero(segments.category == category)
            labels = segments.label[chosen] if category == Category.CUSTOM else np.full(1, -1)
            for label in distinct(labels).tolist():
                rows = chosen[labels == label] if category == Category.CUSTOM else chosen
                self._accounts[Category(category), label] = _account(
                    segments.start[rows], segments.end[rows], length[rows]
                )
        slow = np.flatnonzero(segments.slowdown)
        self._slowdown = _account(segments.start[slow], segments.end[slow], segments.slowdown[slow])
        self.has_slowdown = len(slow) > 0

    @property
    def keys(self) -> tuple[Key, ...]:
        """The categories that occur, in the order in which people are shown them."""
        keys = set(self._accounts)
        if self.has_slowdown:
            keys |= {(Category.SLOWDOWN, -1), (Category.PRODUCTIVE, -1)}
        return tuple(sorted(keys))

    def between(self, start: I64, end: I64) -> dict[Key, I64]:
        """Amount (ns) of each category in each window [start, end), both cut to the job window. For any windows the
        amounts add up to the length of the window, `excluded` included; windows that tile the job add up to it."""
        start = np.clip(start, self.start, self.end)
        end = np.clip(end, self.start, self.end)
        nothing = np.zeros(len(start), dtype=np.int64)
        amounts = {
            key: self._accounts[key].upto(end) - self._accounts[key].upto(start) if key in self._accounts else nothing
            for key in self.keys
        }
        if self.has_slowdown:
            slow = self._slowdown.upto(end) - self._slowdown.upto(start)
            amounts[Category.SLOWDOWN, -1] = slow
            amounts[Category.PRODUCTIVE, -1] = amounts[Category.PRODUCTIVE, -1] - slow
        return amounts

    def slowdown_upto(self, time: I64) -> I64:
        """Total `training_slowdown` (ns) up to each instant."""
        return self._slowdown.upto(time)
