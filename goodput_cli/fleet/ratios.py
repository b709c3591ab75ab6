"""Exact ratios, and what becomes of them at the edge. No NumPy here, as `--help` reads this."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from goodput_cli.vocabulary.when import NS_PER_HOUR

HOUR_NS = NS_PER_HOUR


def ratio(part: Fraction | int, whole: Fraction | int) -> Fraction | None:
    """A ratio, exact; None where there is nothing to divide by."""
    return Fraction(part) / Fraction(whole) if whole > 0 else None


def quantile(values: Iterable[Fraction], share: Fraction) -> Fraction | None:
    """A quantile of exact values, linear between neighbours; None without any."""
    ordered: list[Fraction] = sorted(values)
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    low = place.numerator // place.denominator
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def percent(value: Fraction | None) -> float | None:
    """In percent, at the edge."""
    return None if value is None else float(100 * value)


def hours(chip_ns: Fraction | int) -> float:
    """Chip time in accelerator hours, at the edge."""
    return float(Fraction(chip_ns) / HOUR_NS)
