"""How the values of measures are read from a summary: by the path of a field, or by what follows from several."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from goodput_cli.analysis.measures.measure import Value, amount_ns, seconds_of
from goodput_cli.analysis.summary import DisruptionSummary, Summary
from goodput_cli.vocabulary.categories import Category


def decimal(value: float | None) -> Fraction | None:
    """The decimal that people see (`repr`), so that 'steps.mean==0.1' can hold; None for NaN and infinities too."""
    return None if value is None or not math.isfinite(value) else Fraction(repr(value))


def time_in(name: str) -> Value:
    """Time in a category."""
    return lambda summary: seconds_of(amount_ns(summary, name))


def number(path: str) -> Value:
    """A number of the summary, by the names of the fields that lead to it."""

    def read(summary: Summary) -> Fraction | None:
        value: Any = summary
        for name in path.split("."):
            value = None if value is None else getattr(value, name)
        return decimal(value)

    return read


def percent(path: str) -> Value:
    """A share of 0 to 1, as `number` reads it."""
    share = number(path)

    def read(summary: Summary) -> Fraction | None:
        value = share(summary)
        return None if value is None else 100 * value

    return read


def ended(how: str) -> Value:
    def count(summary: Summary) -> Fraction | None:
        each_disruption = summary.each_disruption
        return (
            None
            if each_disruption is None
            else Fraction(sum(disruption.ended == how for disruption in each_disruption))
        )

    return count


def mean(amount: Callable[[DisruptionSummary], float | None]) -> Value:
    """Over all disruptions; None where one of them does not say."""

    def read(summary: Summary) -> Fraction | None:
        amounts = [decimal(amount(disruption)) for disruption in summary.each_disruption or ()]
        known = [value for value in amounts if value is not None]
        return sum(known, Fraction(0)) / len(known) if known and len(known) == len(amounts) else None

    return read


def save_time(summary: Summary) -> Fraction | None:
    """What a save blocks, on average."""
    seconds, saves = seconds_of(amount_ns(summary, Category.SAVE.id)), summary.saves
    return None if saves is None or saves.count == 0 or seconds is None else seconds / saves.count


def undisrupted(summary: Summary) -> bool:
    return summary.disruptions == 0


def has_saves(summary: Summary) -> bool:
    return summary.saves is not None


def has_timed_saves(summary: Summary) -> bool:
    return has_saves(summary) and Category.SAVE.id not in summary.not_recorded
