"""Comparison of our account of a job with that of the reference library: the differences, and the rule that moves each
second.

The library's rules are claims on time (`library_account`). Together with our segments they divide the job into cells.
In every cell both categories of its time are known. Summed by rule, these movements add up to the difference of every
category; the remainder is shown as not explained.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.order import seen_at
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.json_fields import Json, written
from goodput_cli.arrays import I64, sums_by
from goodput_cli.compat.library import OTHER, PRODUCTIVE, LibraryAccount, LibraryAnswer, library_account
from goodput_cli.compat.rules import OUTSIDE, RULES, name_rule, name_surplus
from goodput_cli.events.schema import EventTable
from goodput_cli.vocabulary.categories import CATEGORIES, OVERLAPPED, Category, CategoryKey

Lane = tuple[CategoryKey, str, int]
"""Category, rule and sign of claims: those of one lane differ only in time."""
_MOST_KINDS = 2**62


@dataclass(frozen=True)
class Cell:
    """All time with the same categories in both systems."""

    here: CategoryKey
    """Our category and label; `OUTSIDE` outside of the job window."""
    inside: bool
    """True if it is part of the library's total."""
    claims: tuple[tuple[CategoryKey, str, int, int], ...]
    """The library's claims on it: category, rule, sign, and number."""
    ns: int
    """Its time."""
    slowdown_ns: int
    """Its part that is `training_slowdown` here."""


def overlay(timeline: Timeline, account: LibraryAccount) -> Iterator[Cell]:
    """Yield one cell per combination; `here` is OUTSIDE for claims outside of the job window."""
    lanes = _lanes(account)
    segments, total = timeline.segments, account.total or (timeline.end, timeline.end)
    edges = [segments.start, np.array([timeline.end, *total])]
    edges += [np.array(times) for pair in lanes.values() for times in pair]
    cuts = np.unique(np.concatenate(edges))
    begin, length = cuts[:-1], np.diff(cuts)
    segment = np.maximum(np.searchsorted(segments.start, begin, side="right") - 1, 0)
    ours = (begin >= timeline.start) & (begin < timeline.end)
    slowdown = np.diff(timeline.ledger.slowdown_before(cuts))
    inside = ((begin >= total[0]) & (begin < total[1])).astype(np.int64)
    every = np.arange(len(segments))
    label = np.where(segments.category == Category.CUSTOM, segments.label(every), -1).astype(np.int64)
    here = segments.category.astype(np.int64) * (len(timeline.table.labels) + 1) + label + 1
    kinds = np.where(ours, here[segment] + 1, 0)
    columns = np.vstack([kinds, inside, *(_cover(cuts, *lane) for lane in lanes.values())])
    first, kind = _alike(columns)
    sums, slow = (sums_by(kind, amount, len(first)) for amount in (length, slowdown))
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
    """Return the number of intervals that contain each cell."""
    change = np.zeros(len(cuts), dtype=np.int64)
    for times, sign in ((starts, 1), (ends, -1)):
        np.add.at(change, np.searchsorted(cuts, times), sign)
    return np.cumsum(change)[:-1]


def _alike(columns: I64) -> tuple[I64, I64]:
    """Return the index of the first of each group of equal columns, and the group of every column."""
    kind, kinds = np.zeros(columns.shape[1], dtype=np.int64), 1
    for row in columns:
        size = int(row.max(initial=0)) + 1
        if kinds * size > _MOST_KINDS:
            kind = np.unique(kind, return_inverse=True)[1].astype(np.int64)
            kinds = int(kind.max(initial=0)) + 1
        kind, kinds = kind * size + row, kinds * size
    _, first, kind = np.unique(kind, return_index=True, return_inverse=True)
    return first.astype(np.int64), kind.astype(np.int64)


Movements = Counter[tuple[str, CategoryKey, CategoryKey, CategoryKey | None]]
"""ns by rule, source category, target category and the category that also counts it."""
SLOWDOWN: CategoryKey = (Category.SLOWDOWN.id, None)
_PREFERRED = (Category.PRODUCTIVE.id, Category.WASTED.id, Category.RECOVERY.id)


@written("place", "category of a movement")
@dataclass(frozen=True)
class CategoryOfSystem:
    """Category of time in one system."""

    category: str
    """a category, or outside: not part of the job's time in that system"""
    label: str | None
    """of custom_badput_events"""


def _category_of_system(key: CategoryKey) -> CategoryOfSystem:
    return CategoryOfSystem(*key)


@written(
    "moved_time",
    "a movement of time between categories; time counted twice reduces the library's `other`",
    keys="rule text here there beside ns",
)
@dataclass(frozen=True)
class Movement:
    """Time that is in one category here and in another in the library, because of a rule."""

    rule: str
    """code of the rule (docs/compatibility.md)"""
    here: Annotated[CategoryKey, Json(made=_category_of_system, kind=CategoryOfSystem)]
    """category here"""
    there: Annotated[CategoryKey, Json(made=_category_of_system, kind=CategoryOfSystem)]
    """category in the library"""
    ns: int
    """time in `here` here and in `there` there"""
    beside: Annotated[CategoryKey | None, Json(made=_category_of_system, kind=CategoryOfSystem)] = None
    """for time counted more than once: the category that already counts it there"""

    @property
    def text(self) -> str:
        """description of the rule"""
        return RULES[self.rule].text


@written(
    "reconciled_category",
    "a category of either side",
    keys=(
        "category label here_ns here_percent there_ns there_percent difference_ns difference_points not_explained_ns"
    ),
)
@dataclass(frozen=True)
class ReconciledRow:
    """One category in both systems."""

    category: str
    """the name here"""
    label: str | None
    """of custom events"""
    here_ns: int
    """time here"""
    here_percent: float | None
    """of the window without excluded time"""
    there_ns: int | None
    """null without a result of the library"""
    there_percent: float | None
    """of the library's total"""
    not_explained_ns: int | None
    """difference that the movements do not explain"""

    @property
    def difference_ns(self) -> int | None:
        """difference, library minus goodput"""
        return None if self.there_ns is None else self.there_ns - self.here_ns

    @property
    def difference_points(self) -> float | None:
        """difference in percentage points"""
        here, there = self.here_percent, self.there_percent
        return None if here is None or there is None else there - here


@dataclass(frozen=True)
class Reconciliation:
    """Both accounts of a job, and the explanation of the differences."""

    answer: LibraryAnswer
    """The result of the library."""
    here_total_ns: int
    """Our window, without excluded time."""
    there_total_ns: int | None
    """The library's total; if it fails, the total by its rules for this log, or None without one."""
    rows: tuple[ReconciledRow, ...]
    """`productive` first, then by difference."""
    movements: tuple[Movement, ...]
    """The largest first. They describe the library's rules even if it fails."""
    overlapped: tuple[int, int]
    """Data loading inside steps (ns): here, there."""
    disruptions_here: int
    """Number of disruptions here."""
    disruptions_there: int
    """Number of disruptions by the library's rules."""

    @property
    def not_explained_ns(self) -> int | None:
        """Return the sum of the absolute unexplained differences; None without a result of the library."""
        if self.answer.failed is not None:
            return None
        return sum(abs(row.not_explained_ns or 0) for row in self.rows)


def reconcile(analysis: Analysis, answer: LibraryAnswer) -> Reconciliation:
    """Return the comparison. `analysis` is of the whole job; `answer` is the library's for the events of
    `events_seen`."""
    timeline = analysis.timeline
    account = library_account(events_seen(timeline), timeline.end)
    movements: Movements = Counter()
    for cell in overlay(timeline, account):
        _move(cell, movements)
    here = _amounts_here(analysis)
    total = None if account.total is None else account.total[1] - account.total[0]
    there = _limit(_moved(here, movements), total, movements)
    rows = _rows(analysis, here, there, answer)
    sizes = sorted(movements.items(), key=lambda item: (-abs(item[1]), item[0][0]))
    return Reconciliation(
        answer=answer,
        here_total_ns=analysis.window.counted_ns,
        there_total_ns=answer.total_ns if answer.failed is None else total,
        rows=rows,
        movements=tuple(
            Movement(rule, source, target, ns, beside) for (rule, source, target, beside), ns in sizes if ns
        ),
        overlapped=(sum(row.ns for row in analysis.overlapped), account.loading_ns),
        disruptions_here=analysis.job.disruptions,
        disruptions_there=account.disruptions,
    )


def events_seen(timeline: Timeline) -> EventTable:
    """Return the input of the library: the events of the job up to its end, in order of time, with duplicates."""
    return seen_at(timeline.ordered.original, timeline.end)


def _move(cell: Cell, movements: Movements) -> None:
    """Add the movements of one cell: between our category, and every claim of the library on it."""
    counted = Counter[CategoryKey]()
    rules: dict[CategoryKey, str] = {}
    reasons = [rule for category, rule, _, _ in cell.claims if category == OTHER]
    for category, rule, sign, count in cell.claims:
        if category != OTHER:
            counted[category] += sign * count
            if sign > 0 or category not in rules:
                rules[category] = rule
    main = _main(cell, counted)
    if main in counted:
        counted[main] -= 1
    if main != cell.here:
        rule = rules.get(main, reasons[0] if reasons else "unclaimed")
        movements[name_rule(rule, cell.here, main), cell.here, main, None] += cell.ns
    for category, count in counted.items():
        if count > 0:
            rule = name_surplus(rules[category], cell.here, cell.inside)
            movements[rule, OTHER, category, main if cell.inside else None] += cell.ns * count
        elif count < 0:
            movements[name_rule(rules[category], OTHER, category), category, OTHER, None] -= cell.ns * count
    if cell.slowdown_ns:
        movements["no_reference", SLOWDOWN, PRODUCTIVE, None] += cell.slowdown_ns


def _main(cell: Cell, counted: Mapping[CategoryKey, int]) -> CategoryKey:
    """Return the one claim that replaces our category; further ones count the cell again."""
    if not cell.inside:
        return OUTSIDE
    positive = [category for category, count in counted.items() if count > 0]
    if cell.here in positive:
        return cell.here
    preferred = [category for category in positive if category[0] in _PREFERRED]
    return min(preferred or positive, key=lambda one: (one[0], one[1] or ""), default=OTHER)


def _moved(here: Mapping[CategoryKey, int], movements: Movements) -> Counter[CategoryKey]:
    there = Counter(here)
    for (_, source, target, _), ns in movements.items():
        there[source] -= ns
        there[target] += ns
    return there


def _limit(there: Counter[CategoryKey], total: int | None, movements: Movements) -> Counter[CategoryKey]:
    """Return the amounts after the library's limits: a type that is negative or beyond the total becomes 0, and `other`
    is never below 0."""
    if total is None:
        return there
    for category, ns in list(there.items()):
        if category not in (OTHER, OUTSIDE, PRODUCTIVE) and not 0 <= ns <= total:
            movements["set_to_zero", category, OTHER, None] += ns
            there[OTHER] += ns
            there[category] = 0
    if there[OTHER] < 0:
        movements["other_below_zero", OUTSIDE, OTHER, None] -= there[OTHER]
        there[OTHER] = 0
    return there


def _amounts_here(analysis: Analysis) -> dict[CategoryKey, int]:
    rows = (analysis.goodput, *analysis.badput)
    amounts: dict[CategoryKey, int] = {(row.category, row.label): row.ns for row in rows}
    excluded = analysis.window.excluded_ns
    return {**amounts, **({(Category.EXCLUDED.id, None): excluded} if excluded else {})}


def _rows(
    analysis: Analysis, here: Mapping[CategoryKey, int], expected: Mapping[CategoryKey, int], answer: LibraryAnswer
) -> tuple[ReconciledRow, ...]:
    total = answer.total_ns
    keys = {key for key in (*here, *answer.amounts, *expected) if key[0] not in (OVERLAPPED, OUTSIDE[0])}
    rows = []
    for category, label in keys:
        ours, theirs = here.get((category, label), 0), answer.amounts.get((category, label), 0)
        if not ours and not theirs and not expected.get((category, label)):
            continue
        rows.append(
            ReconciledRow(
                category=category,
                label=label,
                here_ns=ours,
                here_percent=100 * ours / analysis.window.counted_ns,
                there_ns=theirs if answer.failed is None else None,
                there_percent=100 * theirs / total if total else None,
                not_explained_ns=theirs - expected.get((category, label), 0) if answer.failed is None else None,
            )
        )
    size = {row: -abs(row.difference_ns if row.difference_ns is not None else row.here_ns) for row in rows}
    goodput = Category.PRODUCTIVE.id
    return tuple(sorted(rows, key=lambda row: (row.category != goodput, size[row], row.category, row.label or "")))
