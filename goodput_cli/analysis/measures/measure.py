"""What a measure is, and the amounts of time that measures are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from goodput_cli.analysis.summary import Summary
from goodput_cli.vocabulary.categories import OVERLAPPED, Category

Dimension = Literal["share", "ratio", "time", "count"]
"""What is measured: time that has a share of the window; a share of something else; a plain time; a number."""
Value = Callable[[Summary], Fraction | None]


@dataclass(frozen=True)
class Measure:
    """One number of an analysis."""

    name: str
    """As a person writes it in a threshold."""
    dimension: Dimension
    """Decides the units in which it may be asked for."""
    meaning: str
    """What it is, in a sentence."""
    of: Value
    """`share` and `time` in seconds, `ratio` in percent, `count` as it is."""
    is_empty: Callable[[Summary], bool] = lambda _: False
    """Where there is no value: whether there was nothing to average, and not nothing recorded."""
    better: Literal["more", "less"] | None = None
    """Of two values, the better one; None where more is as good as less, or a category says it."""
    zero_is_unknown: bool = False
    """Whether a comparison takes 0 for "not recorded"."""
    metric: str | None = None
    """The name under which it is published: a ratio from 0 to 1, times in seconds. None: it is not."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What tells it from other measures of the same metric."""

    def compared(self, value: Fraction | None) -> Fraction | None:
        """The value as a comparison takes it."""
        return None if value == 0 and self.zero_is_unknown else value

    def improved(self, change: Fraction) -> bool | None:
        """Whether a change is for the better; None where there is none, or more is as good as less."""
        return None if change == 0 or self.better is None else (change > 0) == (self.better == "more")


def amount_ns(summary: Summary, category: str, label: str | None = None) -> int | None:
    """Time (ns) in a category, or in one label of custom events; None where it is not recorded. A label that never
    shows is not recorded."""
    if category == Category.PRODUCTIVE.id:
        return summary.goodput_ns
    if category == Category.EXCLUDED.id:
        return summary.window.excluded_ns
    if category == OVERLAPPED:
        return summary.overlapped_ns
    if category in summary.not_recorded:
        return None
    if label is not None:
        return summary.badput.get((category, label))
    return sum(ns for (name, _), ns in summary.badput.items() if name == category)


def percent_of(summary: Summary, ns: int) -> Fraction:
    """Percent of the window without what is excluded."""
    return Fraction(100 * ns, summary.window.counted_ns)


def seconds_of(ns: int | None) -> Fraction | None:
    """Seconds of an amount of time (ns)."""
    return None if ns is None else Fraction(ns, 10**9)
