"""Conversion of numbers in logs (int, float, digits in a string) to exact integers, for a whole column at once.

Times and durations are rounded to the microsecond, half to even, without an intermediate rounding error (accounting
§1).

Digits in a text are read eight at a time, without an object per number: each byte of a 64-bit word (little endian: the
first character is the lowest byte) is a lane, and no operation carries into the next (SWAR, "SIMD within a register").
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec import Struct

from goodput_cli.arrays import F64, I64, Mask, Words
from goodput_cli.vocabulary.when import NS_PER_SECOND

NOT_FINITE = frozenset({"nan", "inf", "infinity"})
"""Spellings of numbers that are not finite, in lower case and without a sign."""
MAX_SECONDS = int(datetime(2255, 1, 1, tzinfo=UTC).timestamp())
"""Limit of valid times. int64 nanoseconds end in 2262."""
MAX_NS = MAX_SECONDS * NS_PER_SECOND
MAX_WHOLE = 1 << 60
"""Maximum of whole numbers of a log, such as steps: sums of a few still fit into 64 bits."""

_US_PER_SECOND = 1_000_000
_NS_PER_US = 1000
_EXACT_FROM = 8192.0
"""From this value on, the fraction of a float64 is so short that its product with 10^6 is exact."""
_NEAR_A_HALF = 1e-9
"""Maximum error of the product (2^-34): only a product so close to a half may be rounded incorrectly."""
_EXACT_INTEGERS = float(1 << 53)
"""Below this every whole number is a float64."""
_MAX_DIGITS = 400
_FIRST_OF_A_NUMBER = frozenset("+-.0123456789")
_NUMERIC = frozenset((int, float))
_HANDFUL = 16
"""Number of values up to which single conversions are faster than a column."""


def number(value: Any) -> int | float | None:
    """Return an int or finite float, also one that `int` or `float` reads from a string; None for other values."""
    kind = type(value)
    if kind is int:
        return int(value)
    if kind is float:
        return float(value) if math.isfinite(value) else None
    if kind is not str or len(value) > _MAX_DIGITS or not value.isascii() or "_" in value:
        return None
    if value.strip()[:1] not in _FIRST_OF_A_NUMBER:  # most texts fail this test, and an exception would cost far more
        return None
    try:
        return int(value)
    except ValueError:
        pass
    try:
        parsed = float(value)
    except ValueError:
        return None
    return parsed if math.isfinite(parsed) else None


_CLOCK = re.compile(
    r"(?:(?:(\d{1,9}) ?d(?:ays?)?,? )?(\d{1,9}):)?(\d{1,2}):(\d\d(?:\.\d{1,9})?)"
    r"|(?=\d)(?:(\d{1,9}) ?d(?:ays?)?[ ,]{0,2})?(?:(\d{1,9}) ?h(?:ours?|rs?)?[ ,]{0,2})?"
    r"(?:(\d{1,9}) ?m(?:in(?:ute)?s?)?[ ,]{0,2})?(?:(\d{1,9}(?:\.\d{1,9})?) ?s(?:ec(?:ond)?s?)?)?",
    re.ASCII,
)


def clock_seconds(text: str) -> float | None:
    """Return the seconds of a duration such as 1:02:03, `12 days, 11:22:33`, `1d 00h 05m` or `23m 30s`; None for other
    texts."""
    found = _CLOCK.fullmatch(text.strip())
    if found is None:
        return None
    days, hours, minutes, seconds = found.groups()[:4] if found[4] is not None else found.groups()[4:]
    return ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes or 0)) * 60 + float(seconds or 0)


def decimal(value: Any) -> float | None:
    """Return the number as a float; None also for a whole number that no float can represent."""
    found = number(value)
    return None if found is None or abs(found) > sys.float_info.max else float(found)


def round_to_us(seconds: float) -> int:
    """Return seconds as ns, rounded to the microsecond, half to even, exactly."""
    top, bottom = seconds.as_integer_ratio()
    whole, rest = divmod(top * _US_PER_SECOND, bottom)
    up = 2 * rest > bottom or (2 * rest == bottom and whole % 2 == 1)
    return (whole + up) * _NS_PER_US


def epoch_ns(value: Any) -> int | None:
    """Return epoch seconds as ns; None for other values, and for times outside of 1970 to 2255."""
    seconds = number(value)
    if seconds is None or not 0 <= seconds < MAX_SECONDS:
        return None
    return round_to_us(seconds)


def epoch_column(values: Sequence[Any]) -> tuple[I64, Mask]:
    """Return `epoch_ns` of a column: ns int64[n], and bool[n], True for valid values (the others are 0)."""
    if len(values) <= _HANDFUL or not set(map(type, values)) <= _NUMERIC:
        return _one_by_one(values, epoch_ns)
    try:
        seconds = np.array(values, dtype=np.float64)
    except OverflowError:  # an int beyond float64
        return _one_by_one(values, epoch_ns)
    good = (seconds >= 0) & (seconds < MAX_SECONDS)
    return us_column(np.where(good, seconds, 0.0)), good


def us_column(seconds: F64) -> I64:
    """Return `round_to_us` of a column of numbers from 0 to MAX_SECONDS."""
    whole = np.floor(seconds)
    micros = (seconds - whole) * _US_PER_SECOND
    nearest = np.rint(micros)
    ns = whole.astype(np.int64) * NS_PER_SECOND + nearest.astype(np.int64) * _NS_PER_US
    close = np.abs(np.abs(micros - nearest) - 0.5) < _NEAR_A_HALF
    for at in np.flatnonzero(close & (seconds < _EXACT_FROM)):
        ns[at] = round_to_us(float(seconds[at]))
    return ns


def whole_number(value: Any) -> int | None:
    """Return an int, also one written as 500.0 or "500"; None for a fraction, another type or beyond ±2^60."""
    parsed = number(value)
    if parsed is None or parsed != int(parsed) or abs(parsed) > MAX_WHOLE:
        return None
    return int(parsed)


def whole_column(values: Sequence[Any]) -> tuple[I64, Mask]:
    """Return `whole_number` of a column: int64[n], and bool[n], True for valid values (the others are 0)."""
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


def counts_from_0(numbers: Iterable[int]) -> bool:
    """Return True if steps are numbered from 0, so that n + 1 steps are done at number n: the lowest is 0, or the
    numbers precede round numbers (9, 19, 29)."""
    ordered = sorted(set(numbers))
    strides = Counter(after - before for before, after in pairwise(ordered))
    stride = strides.most_common(1)[0][0] if strides else 1
    return bool(ordered) and (ordered[0] == 0 or (stride > 1 and all(one % stride == stride - 1 for one in ordered)))


def invalid_time_reason(key: str, value: Any) -> str:
    """Return why `epoch_ns` rejects a value, as a sentence about `key`."""
    seconds = number(value)
    if seconds is None:
        return f"`{key}` is not a number of epoch seconds"
    for power, unit in ((3, "milliseconds"), (6, "microseconds"), (9, "nanoseconds")):
        if MAX_SECONDS <= seconds < MAX_SECONDS * 10**power:
            return f"`{key}` is not a time between 1970 and 2255 in epoch seconds: it looks like {unit}"
    return f"`{key}` is not a time between 1970 and 2255 in epoch seconds"


FRACTION_DIGITS = 8
FIRST_SECOND, END_SECOND = 1 << 30, 1 << 32
"""Range of times with a fraction (2004 to 2106): a float64 counts there in steps of 2^-22 s, and of 2^-21 s from
`_WIDER` (2038) on."""
MAX_DIGITS = 15
"""Maximum number of digits of a whole number that is always exact in a float64."""
_UNIT = 10**FRACTION_DIGITS
_WIDER = 1 << 31
_STEPS = 1 << 22
_EXACT_DIGITS = 100
"""A fraction that is a multiple of this number of units has at most six digits."""


class DecimalColumn(Struct, frozen=True):
    """n non-negative numbers, as digits.

    whole: int64[n], the part before the point. fraction: int64[n], the part after it in 10^-8; None without a point.
    Without a fraction `whole` has at most MAX_DIGITS digits, otherwise FIRST_SECOND <= whole < END_SECOND.
    """

    whole: I64
    fraction: I64 | None = None

    def take(self, chosen: Mask) -> DecimalColumn:
        """Return the chosen numbers."""
        return DecimalColumn(self.whole[chosen], None if self.fraction is None else self.fraction[chosen])

    def epoch_ns(self) -> tuple[I64, Mask]:
        """Return what `epoch_column` returns for the same numbers: ns int64[n], and True for valid values."""
        if self.fraction is None:
            good = self.whole < MAX_SECONDS
            return np.where(good, self.whole, 0) * NS_PER_SECOND, good
        ns = self.whole * NS_PER_SECOND + _microseconds(self.whole, self.fraction) * _NS_PER_US
        return ns, np.ones(len(ns), bool)


def joined_numerals(parts: Sequence[DecimalColumn]) -> DecimalColumn:
    """Return the concatenated numbers; all of them have a fraction, or none."""
    fractions = [part.fraction for part in parts if part.fraction is not None]
    return DecimalColumn(
        np.concatenate([part.whole for part in parts]), np.concatenate(fractions) if fractions else None
    )


def _microseconds(whole: I64, fraction: I64) -> I64:
    """Return fractions (10^-8) as microseconds (up to 10^6), as if each number had been a float64 in between.

    With at most six digits that changes nothing: a float64 of these years is within 0.24 us of the logged number.
    """
    micros = fraction // _EXACT_DIGITS
    odd = np.flatnonzero(micros * _EXACT_DIGITS != fraction)
    if len(odd):
        micros[odd] = _through_float(whole[odd], fraction[odd])
    return micros


def _through_float(whole: I64, fraction: I64) -> I64:
    """Round to the nearest multiple of a step (the float64), then to the nearest microsecond; both half to even,
    exactly."""
    steps = np.where(whole < _WIDER, _STEPS, _STEPS // 2)
    scaled = fraction * steps
    below = scaled // _UNIT
    rest = 2 * (scaled - below * _UNIT)
    nearest = below + ((rest > _UNIT) | ((rest == _UNIT) & (below % 2 == 1)))
    micros: I64 = np.rint(nearest * 1_000_000 / steps).astype(np.int64)
    return micros


DIGITS = 8
"""Number of characters in a word."""
ZEROS = 0x3030303030303030
"""Eight characters 0."""
WORD = np.dtype("<u8")
_TENS, _BYTE = np.uint64(10), np.uint64(8)
_PAIRS, _TWO_BYTES = np.uint64(0x000000FF000000FF), np.uint64(16)
_HIGH_WEIGHTS, _LOW_WEIGHTS = np.uint64(100 + (1_000_000 << 32)), np.uint64(1 + (10_000 << 32))
_FOUR_BYTES = np.uint64(32)
_SIXES, _TOPS = np.uint64(0x0606060606060606), np.uint64(0xF0F0F0F0F0F0F0F0)


def mask_of(start: int, stop: int) -> int:
    """Return a word with all bits set in the characters start <= i < stop."""
    return sum(0xFF << (8 * at) for at in range(start, stop))


KEEP_FIRST = np.array([mask_of(0, count) for count in range(DIGITS + 1)], dtype=WORD)
"""By count: a mask of the first characters of a word."""


def digit_values(words: Words, kept: Words | np.uint64) -> Words:
    """Return the value of each character, one byte each, 0 if it is not kept. A character that is not a digit gives a
    byte of 10 or more."""
    return (words ^ np.uint64(ZEROS)) & kept


def not_digits(values: Words) -> Words:
    """Return a word that is above 0 if a byte of `digit_values` is not 0 to 9."""
    return (values | (values & ~_TOPS) + _SIXES) & _TOPS


def from_digits(values: Words) -> I64:
    """Return the numbers that eight bytes of 0 to 9 each spell, the first one most significant."""
    pairs = values * _TENS + (values >> _BYTE)
    high = (pairs & _PAIRS) * _HIGH_WEIGHTS
    low = ((pairs >> _TWO_BYTES) & _PAIRS) * _LOW_WEIGHTS
    return ((high + low) >> _FOUR_BYTES).astype(np.int64)
