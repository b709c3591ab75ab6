"""Measures: every number of an analysis that can be asked for by name, declared once.

Thresholds (`--fail-if`), comparisons and metrics (OpenMetrics) all take them from here, and so does whatever publishes
an analysis. A new measure is a row in `rows`. Values are exact; None is "not recorded", or that there was nothing to
average.
"""

from __future__ import annotations

from fractions import Fraction

from goodput_cli.analysis.measures.rows import (
    CUSTOM,
    FACTS,
    MEASURES,
    PREFIXES,
    Measure,
    amount_ns,
    percent_of,
    seconds_of,
)
from goodput_cli.analysis.summary import Summary
from goodput_cli.vocabulary.categories import ENDED

__all__ = [
    "CUSTOM",
    "ENDED",
    "FACTS",
    "MEASURES",
    "PREFIXES",
    "Measure",
    "amount_ns",
    "percent_of",
    "published_value",
    "value_of",
]


def value_of(summary: Summary, name: str, label: str | None, unit: str) -> Fraction | None:
    """A measure by name (label: of `custom_badput_events`) in the unit "%", "s" or ""; None where it is not recorded,
    or where all of the window is excluded."""
    counted = summary.window.counted_ns
    if counted <= 0:
        return None
    measure = MEASURES[name]
    value = measure.of(summary) if label is None else seconds_of(amount_ns(summary, name, label))
    if value is None or measure.dimension != "share" or unit == "s":
        return value
    return 100 * value * 10**9 / counted


def published_value(summary: Summary, measure: Measure[Summary]) -> Fraction | None:
    """A measure as metrics hold it: shares and ratios from 0 to 1, times in seconds."""
    if measure.dimension in ("share", "ratio"):
        percent = value_of(summary, measure.name, None, "%")
        return None if percent is None else percent / 100
    return measure.of(summary)
