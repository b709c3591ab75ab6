"""Badput of an update, zero where it was recorded and did not occur: a curve must fall when all is well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from goodput_cli.analysis.results import Analysis, CategoryTime
from goodput_cli.analysis.rolling.results import WindowRow
from goodput_cli.vocabulary.categories import NOT_BADPUT, Category
from goodput_cli.vocabulary.text import safe


@dataclass(frozen=True)
class Amount:
    """Time in one category, or in one label of custom events."""

    category: str
    label: str | None
    """Safe to show, as the log has it."""
    ns: int
    counted_ns: int
    """What is 100 %."""

    @property
    def seconds(self) -> float:
        return self.ns / 1e9

    @property
    def percent(self) -> float:
        return 100 * self.ns / self.counted_ns


def badput_of(analysis: Analysis) -> list[Amount]:
    """Of the whole window, and what overlaps training."""
    rows = (*analysis.badput, *analysis.overlapped)
    return list(_amounts(rows, analysis.not_recorded, analysis.window.counted_ns))


def badput_of_window(row: WindowRow, analysis: Analysis) -> list[Amount]:
    """Of a rolling window."""
    return list(_amounts(row.badput, analysis.not_recorded, row.end_ns - row.start_ns - row.excluded_ns))


def _amounts(rows: Iterable[CategoryTime], not_recorded: Iterable[str], counted_ns: int) -> Iterator[Amount]:
    amounts: dict[tuple[str, str | None], int] = {}
    for row in rows:
        key = row.category, None if row.label is None else safe(row.label)
        amounts[key] = amounts.get(key, 0) + row.ns
    seen = {category for category, _ in amounts}
    for category in Category:
        if category not in NOT_BADPUT and category.id not in (*seen, *not_recorded, Category.CUSTOM.id):
            amounts[category.id, None] = 0
    yield from (Amount(category, label, ns, counted_ns) for (category, label), ns in amounts.items())
