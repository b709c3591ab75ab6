"""The time of a run in pieces: a window and its weeks, and the spans of a run cut at any instants, exactly."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

import numpy as np

from goodput_cli.accounting.columns import distinct, union
from goodput_cli.arrays import I64
from goodput_cli.fleet.results import Spans
from goodput_cli.fleet.sums import PRODUCTIVE, SLOWDOWN, LabelledCategory
from goodput_cli.vocabulary.categories import Category

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Week:
    """A week, or what of it lies in the window."""

    name: str
    """`2026-W05`."""
    start: int
    end: int
    """ns since 1970 UTC, inside the window."""
    full_ns: int
    """Length of the whole week."""

    @property
    def partial(self) -> bool:
        """Whether the window holds only a part of it."""
        return self.end - self.start < self.full_ns


class Calendar:
    """A window [start, end) (ns since 1970 UTC) and the weeks in it."""

    def __init__(self, start: int, end: int, zone: tzinfo) -> None:
        self.start, self.end = start, end
        self.weeks = list(_weeks(start, end, zone))
        self._edges = [start, *(week.end for week in self.weeks)]

    def edges(self, start: int, end: int) -> list[int]:
        """The instants at which weeks begin inside [start, end)."""
        return self._edges[bisect_right(self._edges, start) : bisect_left(self._edges, end)]

    def week_at(self, instant: int) -> int:
        """Position of the week that holds an instant of the window."""
        return bisect_right(self._edges, instant) - 1


def _weeks(start: int, end: int, zone: tzinfo) -> Iterator[Week]:
    """The weeks of [start, end) (ns), in order."""
    day = (_EPOCH + timedelta(microseconds=start // 1000)).astimezone(zone).date()
    monday = day - timedelta(days=day.weekday())
    while (begin := _midnight(monday, zone)) < end:
        following = monday + timedelta(days=7)
        stop = _midnight(following, zone)
        year, number, _ = monday.isocalendar()
        if stop > start:
            yield Week(f"{year}-W{number:02d}", max(begin, start), min(stop, end), stop - begin)
        monday = following


def _midnight(day: date, zone: tzinfo) -> int:
    moment = datetime.combine(day, time(), zone).astimezone(UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def cut_spans(spans: Spans, edges: I64) -> Iterator[tuple[dict[LabelledCategory, int], float]]:
    """Each piece between two neighbours of `edges` (ns, rising, inside the run): its time (ns) by category, which adds
    up to its length and is what the ledger has for it (accounting §7), and its kept steps. Inside a span slowdown grows
    evenly, rounded half to even; of a span that is cut, steps count in proportion to its time."""
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
    of_codes = [divmod(code, len(spans.labels) + 1) for code in known.tolist()]
    keys = [(Category(category), spans.labels[label - 1] if label else None) for category, label in of_codes]
    for row, slow, kept in zip(ns.tolist(), slowed.tolist(), steps.tolist(), strict=True):
        amounts = {key: amount for key, amount in zip(keys, row, strict=True) if amount}
        if slow:
            amounts[SLOWDOWN] = amounts.get(SLOWDOWN, 0) + slow
            amounts[PRODUCTIVE] = amounts.get(PRODUCTIVE, 0) - slow
        yield amounts, kept


def _slowdown_upto(spans: Spans, span: I64, time: I64) -> I64:
    """The slowdown (ns) of each span from its start up to an instant in it."""
    length = spans.end[span] - spans.start[span]
    passed = time - spans.start[span]
    amount = spans.slowdown[span]
    part = np.rint(amount * (passed / np.maximum(length, 1))).astype(np.int64)
    return np.where(passed == length, amount, np.where(amount == length, passed, part))
