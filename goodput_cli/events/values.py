"""Numbers as logs write them (int, float, digits in a string) -> exact integers, for a whole column at once.

Times and durations are rounded to the microsecond, half to even, without an error of the arithmetic in between
(accounting §1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from goodput_cli.arrays import I64, Mask
from goodput_cli.vocabulary.when import NS_PER_SECOND

MAX_SECONDS = int(datetime(2255, 1, 1, tzinfo=UTC).timestamp())
"""Times from here on are absurd. int64 nanoseconds end in 2262."""
MAX_NS = MAX_SECONDS * NS_PER_SECOND
MAX_WHOLE = 1 << 60
"""The greatest whole number of a log, a step for one: sums of a few still fit into 64 bits."""

_US_PER_SECOND = 1_000_000
_NS_PER_US = 1000
_EXACT_FROM = 8192.0
"""From here on the fraction of a float64 has so few bits that its product with 10^6 is exact."""
_NEAR_A_HALF = 1e-9
"""The product is never wrong by more (2^-34), so that only a product so near to a half may be rounded wrongly."""
_EXACT_INTEGERS = float(1 << 53)
"""Below this every whole number is a float64."""
_MAX_DIGITS = 400
_FIRST_OF_A_NUMBER = frozenset("+-.0123456789")
_NUMERIC = frozenset((int, float))
_HANDFUL = 16
"""So few values are converted sooner one by one than as a column."""


def number(value: Any) -> int | float | None:
    """An int or finite float, or what `int` or `float` read from a string; None for everything else."""
    kind = type(value)
    if kind is int:
        return int(value)
    if kind is float:
        return float(value) if math.isfinite(value) else None
    if kind is str and len(value) <= _MAX_DIGITS and value.isascii() and "_" not in value:
        return _from_text(value)
    return None


def _from_text(text: str) -> int | float | None:
    if text.strip()[:1] not in _FIRST_OF_A_NUMBER:  # most texts; an exception would cost far more
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        parsed = float(text)
    except ValueError:
        return None
    return parsed if math.isfinite(parsed) else None


def round_to_us(seconds: float) -> int:
    """Seconds -> ns, rounded to the microsecond, half to even, exactly."""
    top, bottom = seconds.as_integer_ratio()
    whole, rest = divmod(top * _US_PER_SECOND, bottom)
    up = 2 * rest > bottom or (2 * rest == bottom and whole % 2 == 1)
    return (whole + up) * _NS_PER_US


def epoch_ns(value: Any) -> int | None:
    """Epoch seconds -> ns; None if that is no number or no time between 1970 and 2255."""
    seconds = number(value)
    if seconds is None or not 0 <= seconds < MAX_SECONDS:
        return None
    return round_to_us(seconds)


def epoch_column(values: Sequence[Any]) -> tuple[I64, Mask]:
    """`epoch_ns` of a column: ns int64[n], and bool[n] that tells which of them are good (the others are 0)."""
    if len(values) <= _HANDFUL or not set(map(type, values)) <= _NUMERIC:
        return _one_by_one(values, epoch_ns)
    try:
        seconds = np.array(values, dtype=np.float64)
    except OverflowError:  # an int beyond float64
        return _one_by_one(values, epoch_ns)
    good = (seconds >= 0) & (seconds < MAX_SECONDS)
    seconds = np.where(good, seconds, 0.0)
    whole = np.floor(seconds)
    micros = (seconds - whole) * _US_PER_SECOND
    nearest = np.rint(micros)
    ns = whole.astype(np.int64) * NS_PER_SECOND + nearest.astype(np.int64) * _NS_PER_US
    close = np.abs(np.abs(micros - nearest) - 0.5) < _NEAR_A_HALF
    for at in np.flatnonzero(close & (seconds < _EXACT_FROM)):
        ns[at] = round_to_us(float(seconds[at]))
    return ns, good


def whole_number(value: Any) -> int | None:
    """An int, also written as 500.0 or "500"; None for a fraction, another type or beyond ±2^60."""
    parsed = number(value)
    if parsed is None or parsed != int(parsed) or abs(parsed) > MAX_WHOLE:
        return None
    return int(parsed)


def whole_column(values: Sequence[Any]) -> tuple[I64, Mask]:
    """`whole_number` of a column: int64[n], and bool[n] that tells which of them are good (the others are 0)."""
    if set(map(type, values)) <= _NUMERIC:
        try:
            floats = np.array(values, dtype=np.float64)
        except OverflowError:
            return _one_by_one(values, whole_number)
        if ((np.abs(floats) < _EXACT_INTEGERS) & (np.rint(floats) == floats)).all():
            return floats.astype(np.int64), np.ones(len(floats), dtype=np.bool_)
    return _one_by_one(values, whole_number)


def _one_by_one(values: Sequence[Any], convert: Any) -> tuple[I64, Mask]:
    converted = [convert(value) for value in values]
    good = np.array([value is not None for value in converted], dtype=np.bool_)
    return np.array([value or 0 for value in converted], dtype=np.int64), good


def why_no_time(key: str, value: Any) -> str:
    """Why `epoch_ns` refuses a value, as a sentence about `key`."""
    seconds = number(value)
    if seconds is None:
        return f"`{key}` is no number of epoch seconds"
    for power, unit in ((3, "milliseconds"), (6, "microseconds"), (9, "nanoseconds")):
        if MAX_SECONDS <= seconds < MAX_SECONDS * 10**power:
            return f"`{key}` is no time between 1970 and 2255 in epoch seconds: it looks like {unit}"
    return f"`{key}` is no time between 1970 and 2255 in epoch seconds"
