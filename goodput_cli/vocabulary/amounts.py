"""Numbers and lengths of time as options take them: read in one way, each with its bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

from goodput_cli.errors import UsageError
from goodput_cli.vocabulary.units import NS_PER_SECOND
from goodput_cli.vocabulary.when import ACCEPTED_DURATIONS, parse_duration

T = TypeVar("T")
DAY = 86_400


def bounded(
    make: Callable[[Fraction], T],
    complaint: str,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    most: float = math.inf,
    unit: int | None = None,
) -> Callable[[Any], T]:
    """A reader of numbers, exact as written, that are greater than `above`, and from `least` to `most`.

    make: what becomes of the number, such as `float`. complaint: how the sentence ends that begins with a wrong value.
    unit: the value is a length of time in so many seconds: `90s`, `1h30m`, or a number of that unit.
    """

    def read(value: Any) -> T:
        number = _number(value, unit)
        if number is None or not (above < float(number) and least <= float(number) <= most):
            raise UsageError(f"{value!r} {complaint}")
        return make(number)

    return read


def _number(value: Any, unit: int | None) -> Fraction | None:
    """The number that is written, if one is."""
    if isinstance(value, Fraction):
        return value
    text = str(value).strip()
    try:
        rough = float(text)  # 1e-999999999 would be a very long fraction
        return Fraction(text) if math.isfinite(rough) and rough else Fraction(0) if rough == 0 else None
    except ValueError:
        pass
    try:
        return None if unit is None else Fraction(parse_duration(text), unit * NS_PER_SECOND)
    except UsageError:
        return None


read_length = bounded(
    lambda seconds: round(seconds * NS_PER_SECOND),
    f"is not a length of time above 0; write one such as {ACCEPTED_DURATIONS}, or a number of seconds",
    above=0.5 / NS_PER_SECOND,
    most=9e9,
    unit=1,
)
"""A length of time in ns, from text; a plain number is of seconds."""
