"""The ledger: the running total of every category. Any question about a window is a difference of two look-ups."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from goodput_cli.accounting.columns import clipped, codes_in, positions, search
from goodput_cli.accounting.segments import Segments
from goodput_cli.arrays import I64, Rows, alike, blocks
from goodput_cli.vocabulary.categories import Category

Key = tuple[Category, int]
"""A category, and the code of its label (-1 for categories without labels)."""
_SLOWED = frozenset({Category.PRODUCTIVE, Category.SLOWDOWN})
_CATEGORIES = max(Category) + 1
_NO_ROWS = np.zeros(0, dtype=np.intp)
_LONG = 1 << 16
_STRIDE = 16
"""Of an account of more than `_LONG` segments."""


class _Account(Struct, frozen=True):
    """One category: its segments in time order (positions), the amount of each (None: its length), and the total (ns)
    before every `stride`-th of them: the few in between are added when somebody asks."""

    segments: Rows
    amount: I64 | None
    before: I64
    stride: int


class Ledger:
    """Running totals of the categories of one job's segments.

    Segments leave no gap, so that a long job needs no account of the category with the most of them, mostly kept
    training: it has what the others leave.
    """

    def __init__(self, segments: Segments) -> None:
        self._edges = segments.edges
        self.start = int(segments.edges[0])
        self.end = int(segments.edges[-1])
        self._accounts: dict[Key, _Account] = {}
        self._rest = _most_frequent(segments.category) if len(segments) > _LONG else None
        for category in codes_in(segments.category):
            if self._rest == (category, -1):
                continue
            chosen = positions(segments.category == category)
            if category != Category.CUSTOM:
                self._accounts[Category(category), -1] = self._account(chosen)
                continue
            for label, places in alike(segments.label(chosen)).items():
                self._accounts[Category.CUSTOM, label] = self._account(chosen[places])
        slow = positions(segments.slowdown != 0) if segments.slowdown.strides != (0,) else _NO_ROWS
        self._slowdown = self._account(slow, segments.slowdown[slow])
        self.has_slowdown = len(slow) > 0

    def _account(self, rows: Rows, amount: I64 | None = None) -> _Account:
        if len(rows) <= _LONG:
            before = np.zeros(len(rows) + 1, dtype=np.int64)
            np.cumsum(self._amounts(rows, amount, slice(None)), out=before[1:])
            return _Account(rows, amount, before, 1)
        sums = [np.zeros(1, dtype=np.int64)]
        for start, stop in blocks(len(rows)):
            added = self._amounts(rows, amount, slice(start, stop))
            sums.append(np.add.reduceat(added, np.arange(0, len(added), _STRIDE)))
        return _Account(rows, amount, np.cumsum(np.concatenate(sums)), _STRIDE)

    def _amounts(self, rows: Rows, amount: I64 | None, chosen: slice | NDArray[np.intp]) -> I64:
        """Amounts (ns) of the chosen ones among the segments of an account."""
        if amount is not None:
            return amount[chosen]
        segments = rows[chosen]
        return self._edges[segments + 1] - self._edges[segments]

    def _before(self, account: _Account, place: NDArray[np.intp]) -> I64:
        """Total (ns) before some places of an account."""
        anchor = place // account.stride
        total = account.before[anchor]
        for ahead in range(account.stride - 1):
            counts = np.flatnonzero(anchor * account.stride + ahead < place)
            total[counts] += self._amounts(account.segments, account.amount, anchor[counts] * account.stride + ahead)
        return np.asarray(total)

    def _upto(self, account: _Account, time: I64, segment: NDArray[np.intp]) -> I64:
        """Total (ns) of an account up to each instant. Inside a segment the amount grows evenly, rounded half to even.

        segment: the last one that begins at or before each instant.
        """
        if len(account.segments) == 0:
            return np.zeros(len(time), dtype=np.int64)
        place = search(account.segments, segment, side="right") - 1
        at_or_first = np.maximum(place, 0)
        row = account.segments[at_or_first]
        length = self._edges[row + 1] - self._edges[row]
        inside = passed = np.minimum(np.maximum(time - self._edges[row], 0), length)
        if account.amount is not None:
            amount = account.amount[at_or_first]
            part = np.rint(amount * (passed / np.maximum(length, 1))).astype(np.int64)
            part = np.where(amount == length, passed, part)
            inside = np.where(passed == length, amount, part)
        return np.where(place >= 0, self._before(account, at_or_first) + inside, 0)

    def _at(self, time: I64) -> NDArray[np.intp]:
        return search(self._edges[:-1], time, side="right") - 1

    @property
    def keys(self) -> tuple[Key, ...]:
        """The categories that occur, in the order in which people are shown them."""
        keys = set(self._accounts) | ({self._rest} if self._rest else set())
        if self.has_slowdown:
            keys |= {(category, -1) for category in _SLOWED}
        return tuple(sorted(keys))

    def between(self, start: I64, end: I64, only: Collection[Category] | None = None) -> dict[Key, I64]:
        """Amount (ns) of each category in each window [start, end), both cut to the job window. For any windows the
        amounts add up to the length of the window, `excluded` included; windows that tile the job add up to it.

        only: the categories that are wanted, if not all. With productive comes `training_slowdown`, and the other way.
        """
        start, end = clipped(start, self.start, self.end), clipped(end, self.start, self.end)
        nothing = np.zeros(len(start), dtype=np.int64)
        time = np.concatenate((start, end))
        segment = self._at(time)

        whole = len(start) == 1 and (start[0], end[0]) == (self.start, self.end)

        def within(account: _Account) -> I64:
            if whole:  # of a thousand small jobs nothing else is asked
                return account.before[-1:].copy()
            upto = self._upto(account, time, segment)
            return upto[len(start) :] - upto[: len(start)]

        categories = only if only is None or _SLOWED.isdisjoint(only) else _SLOWED.union(only)
        keys = self.keys if categories is None else [key for key in self.keys if key[0] in categories]
        needed = self._accounts.keys() if self._rest in keys else keys
        known = {key: within(account) for key, account in self._accounts.items() if key in needed}
        if self._rest is not None and self._rest in keys:
            known[self._rest] = end - start - sum(known.values(), nothing)
        amounts = {key: known.get(key, nothing) for key in keys}
        if self.has_slowdown and (Category.PRODUCTIVE, -1) in amounts:
            slow = within(self._slowdown)
            amounts[Category.SLOWDOWN, -1] = slow
            amounts[Category.PRODUCTIVE, -1] = amounts[Category.PRODUCTIVE, -1] - slow
        return amounts

    def slowdown_upto(self, time: I64) -> I64:
        """Total `training_slowdown` (ns) up to each instant."""
        return self._upto(self._slowdown, time, self._at(time))


def _most_frequent(category: NDArray[np.int8]) -> Key | None:
    """The one that most segments have; None where that has labels, and so an account for each."""
    counts = sum(np.bincount(category[start:stop], minlength=_CATEGORIES) for start, stop in blocks(len(category)))
    most = Category(int(np.argmax(counts)))
    return None if most == Category.CUSTOM else (most, -1)
