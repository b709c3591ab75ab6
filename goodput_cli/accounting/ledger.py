"""The ledger: the running total of every category. Any question about a window is a difference of two look-ups."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from goodput_cli.accounting.columns import clipped, codes_in, positions, search
from goodput_cli.accounting.segments import Segments
from goodput_cli.arrays import I64, Rows, alike
from goodput_cli.vocabulary.categories import Category

Key = tuple[Category, int]
"""A category, and the code of its label (-1 for categories without labels)."""
_SLOWED = frozenset({Category.PRODUCTIVE, Category.SLOWDOWN})


class _Account(Struct, frozen=True):
    """One category: its segments in time order (positions), and its total (ns) at the end of each. Before the first
    stands one that is none: -2, with a total of 0."""

    segments: Rows
    total: I64


class Ledger:
    """Running totals of the categories of one job's segments.

    Segments leave no gap, so that the category with the most of them needs no account: it has what the others leave.
    Of a log that is nearly all steps, its account were an eighth of the file.
    """

    def __init__(self, segments: Segments) -> None:
        self._edges = segments.edges
        self.start = int(segments.edges[0])
        self.end = int(segments.edges[-1])
        self._accounts: dict[Key, _Account] = {}
        number = {category: np.count_nonzero(segments.category == category) for category in codes_in(segments.category)}
        most = max(number, key=lambda category: (category != Category.CUSTOM, number[category]))
        self._rest = (Category(most), -1) if most != Category.CUSTOM else None
        for category in number:
            if self._rest == (category, -1):
                continue
            chosen = positions(segments.category == category)
            labelled = alike(segments.label(chosen)) if category == Category.CUSTOM else {-1: slice(None)}
            for label, places in labelled.items():
                rows = chosen[places]
                self._accounts[Category(category), label] = _account(rows, self._edges[rows + 1] - self._edges[rows])
        slow = positions(segments.slowdown != 0)
        self._slowdown = _account(slow, segments.slowdown[slow])
        self.has_slowdown = len(slow) > 0

    def _upto(self, account: _Account, time: I64, segment: NDArray[np.intp]) -> I64:
        """Total (ns) of an account up to each instant. Inside a segment the amount grows evenly, rounded half to even.

        segment: the one that holds each instant; -1 before the job, and behind the last one from its end on.
        """
        place = search(account.segments, segment, side="right") - 1
        total = account.total[place]
        inside = np.flatnonzero(account.segments[place] == segment)
        begin, before = self._edges[segment[inside]], account.total[place[inside] - 1]
        passed = time[inside] - begin
        amount, length = total[inside] - before, self._edges[segment[inside] + 1] - begin
        part = np.rint(amount * (passed / length)).astype(np.int64)
        total[inside] = before + np.where(amount == length, passed, part)
        return total

    def _at(self, time: I64) -> NDArray[np.intp]:
        return search(self._edges, time, side="right") - 1

    @property
    def keys(self) -> tuple[Key, ...]:
        """The categories that occur, in the order in which people are shown them."""
        keys = {*self._accounts, *([self._rest] if self._rest else [])}
        if self.has_slowdown:
            keys |= {(category, -1) for category in _SLOWED}
        return tuple(sorted(keys))

    def between(self, start: I64, end: I64, only: Collection[Category] | None = None) -> dict[Key, I64]:
        """Amount (ns) of each category in each window [start, end), both cut to the job window. For any windows the
        amounts add up to the length of the window, `excluded` included; windows that tile the job add up to it.

        only: the categories that are wanted, if not all. With productive comes `training_slowdown`, and the other way.
        """
        time = clipped(np.concatenate((start, end)), self.start, self.end)
        segment = self._at(time)

        def within(account: _Account) -> I64:
            upto = self._upto(account, time, segment)
            return upto[len(start) :] - upto[: len(start)]

        categories = only if only is None or _SLOWED.isdisjoint(only) else _SLOWED.union(only)
        keys = [key for key in self.keys if categories is None or key[0] in categories]
        nothing = np.zeros(len(start), dtype=np.int64)
        needed = self._accounts if self._rest in keys else self._accounts.keys() & keys
        known = {key: within(self._accounts[key]) for key in needed}
        if self._rest in keys:
            known[self._rest] = time[len(start) :] - time[: len(start)] - sum(known.values(), nothing)
        amounts = {key: known.get(key, nothing) for key in keys}
        if self.has_slowdown and (Category.PRODUCTIVE, -1) in amounts:
            slow = within(self._slowdown)
            amounts[Category.SLOWDOWN, -1] = slow
            amounts[Category.PRODUCTIVE, -1] = amounts[Category.PRODUCTIVE, -1] - slow
        return amounts

    def slowdown_upto(self, time: I64) -> I64:
        """Total `training_slowdown` (ns) up to each instant."""
        return self._upto(self._slowdown, time, self._at(time))


def _account(segments: Rows, amount: I64) -> _Account:
    return _Account(np.append(segments.dtype.type(-2), segments), np.cumsum(np.append(0, amount)))
