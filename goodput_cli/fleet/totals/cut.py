"""The spans of a run, cut at any instants: exact amounts that add up to the whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from goodput_cli.accounting.columns import distinct, union
from goodput_cli.arrays import I64
from goodput_cli.fleet.store.results import Spans
from goodput_cli.vocabulary.categories import Category

Key = tuple[Category, str | None]
"""A category, and the label of custom events."""


@dataclass(frozen=True)
class PieceTime:
    """What the time of one piece went to."""

    ns: dict[Key, int]
    """Time (ns) by category; adds up to the length of the piece."""
    steps: float
    """Kept steps; a span that is cut counts in proportion to its time."""


def cut_spans(spans: Spans, edges: I64) -> list[PieceTime]:
    """Each piece between two neighbours of `edges` (ns, rising, inside the run), with the amounts that the ledger has
    for it (accounting §7): inside a span slowdown grows evenly, rounded half to even."""
    inside = spans.start[(spans.start > edges[0]) & (spans.start < edges[-1])]
    points = union(inside, edges)
    begin, end = points[:-1], points[1:]
    span = np.searchsorted(spans.start, begin, side="right") - 1
    piece = np.searchsorted(edges, begin, side="right") - 1
    codes = spans.category[span].astype(np.int64) * (len(spans.labels) + 1) + spans.label[span] + 1
    known = distinct(codes)
    ns = np.zeros((len(edges) - 1, len(known)), dtype=np.int64)
    np.add.at(ns, (piece, known.searchsorted(codes)), end - begin)
    slowed = np.zeros(len(edges) - 1, dtype=np.int64)
    np.add.at(slowed, piece, _slowdown_upto(spans, span, end) - _slowdown_upto(spans, span, begin))
    length = np.maximum(spans.end - spans.start, 1)[span]
    steps = np.bincount(piece, weights=spans.steps[span] * ((end - begin) / length), minlength=len(edges) - 1)
    keys = [_key(code, spans.labels) for code in known.tolist()]
    return [
        PieceTime(_by_key(keys, row, slow), kept)
        for row, slow, kept in zip(ns.tolist(), slowed.tolist(), steps.tolist(), strict=True)
    ]


def _slowdown_upto(spans: Spans, span: I64, time: I64) -> I64:
    """The slowdown (ns) of each span from its start up to an instant in it."""
    length = spans.end[span] - spans.start[span]
    passed = time - spans.start[span]
    amount = spans.slowdown[span]
    part = np.rint(amount * (passed / np.maximum(length, 1))).astype(np.int64)
    return np.where(passed == length, amount, np.where(amount == length, passed, part))


def _key(code: int, labels: tuple[str, ...]) -> Key:
    category, label = divmod(code, len(labels) + 1)
    return Category(category), labels[label - 1] if label else None


def _by_key(keys: list[Key], row: list[int], slowed: int) -> dict[Key, int]:
    ns = {key: amount for key, amount in zip(keys, row, strict=True) if amount}
    if slowed:
        ns[Category.SLOWDOWN, None] = ns.get((Category.SLOWDOWN, None), 0) + slowed
        ns[Category.PRODUCTIVE, None] = ns.get((Category.PRODUCTIVE, None), 0) - slowed
    return ns
