"""The library's claims laid over our segments: how much time stands where on both sides, as a few sums."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.arrays import I64
from goodput_cli.reference_library.account import LibraryAccount
from goodput_cli.vocabulary.categories import CATEGORIES, Category, CategoryKey

Lane = tuple[CategoryKey, str, int]
"""Category, rule and sign of claims: those of one lane differ only in when they are."""
OUTSIDE: CategoryKey = ("outside", None)
"""Not part of the job's time on one of the sides."""
_MOST_KINDS = 2**62


@dataclass(frozen=True)
class Cell:
    """All time that looks alike on both sides."""

    here: CategoryKey
    """Our category and label; `OUTSIDE` outside of the job window."""
    inside: bool
    """Whether it is part of the library's total."""
    claims: tuple[tuple[CategoryKey, str, int, int], ...]
    """The library's claims on it: category, rule, sign, and how many."""
    ns: int
    """How much time."""
    slowdown_ns: int
    """How much of it is `training_slowdown` here."""


def overlay(timeline: Timeline, account: LibraryAccount) -> Iterator[Cell]:
    """One cell a kind; `here` is OUTSIDE for claims that lie outside of the job window."""
    lanes = _lanes(account)
    segments, total = timeline.segments, account.total or (timeline.end, timeline.end)
    edges = [segments.start, np.array([timeline.end, *total])]
    edges += [np.array(times) for pair in lanes.values() for times in pair]
    cuts = np.unique(np.concatenate(edges))
    begin, length = cuts[:-1], np.diff(cuts)
    segment = np.maximum(np.searchsorted(segments.start, begin, side="right") - 1, 0)
    ours = (begin >= timeline.start) & (begin < timeline.end)
    slowdown = np.diff(timeline.ledger.slowdown_upto(cuts))
    inside = ((begin >= total[0]) & (begin < total[1])).astype(np.int64)
    every = np.arange(len(segments))
    label = np.where(segments.category == Category.CUSTOM, segments.label(every), -1).astype(np.int64)
    here = segments.category.astype(np.int64) * (len(timeline.table.labels) + 1) + label + 1
    kinds = np.where(ours, here[segment] + 1, 0)
    columns = np.vstack([kinds, inside, *(_cover(cuts, *lane) for lane in lanes.values())])
    first, kind = _alike(columns)
    sums, slow = np.zeros(len(first), dtype=np.int64), np.zeros(len(first), dtype=np.int64)
    np.add.at(sums, kind, length)
    np.add.at(slow, kind, slowdown)
    for position, at in enumerate(first.tolist()):
        counts = columns[2:, at].tolist()
        claims = tuple((*lane, count) for lane, count in zip(lanes, counts, strict=True) if count)
        row = segment[at]
        code = int(label[row])
        name = (CATEGORIES[segments.category[row]], timeline.table.labels[code] if code >= 0 else None)
        yield Cell(name if ours[at] else OUTSIDE, bool(inside[at]), claims, int(sums[position]), int(slow[position]))


def _lanes(account: LibraryAccount) -> dict[Lane, tuple[list[int], list[int]]]:
    lanes: defaultdict[Lane, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for claim in account.claims:
        starts, ends = lanes[claim.category, claim.rule, claim.sign]
        starts.append(claim.start)
        ends.append(claim.end)
    return dict(lanes)


def _cover(cuts: I64, starts: list[int], ends: list[int]) -> I64:
    """How many of the intervals hold each cell."""
    change = np.zeros(len(cuts), dtype=np.int64)
    for times, sign in ((starts, 1), (ends, -1)):
        np.add.at(change, np.searchsorted(cuts, times), sign)
    return np.cumsum(change)[:-1]


def _alike(columns: I64) -> tuple[I64, I64]:
    """Columns that are equal: where the first of each kind is, and the kind of every column."""
    kind, kinds = np.zeros(columns.shape[1], dtype=np.int64), 1
    for row in columns:
        size = int(row.max(initial=0)) + 1
        if kinds * size > _MOST_KINDS:
            kind = np.unique(kind, return_inverse=True)[1].astype(np.int64)
            kinds = int(kind.max(initial=0)) + 1
        kind, kinds = kind * size + row, kinds * size
    _, first, kind = np.unique(kind, return_index=True, return_inverse=True)
    return first.astype(np.int64), kind.astype(np.int64)
