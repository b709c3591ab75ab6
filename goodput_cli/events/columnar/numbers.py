"""Columns of numbers as they were written, read without an object per number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from goodput_cli.arrays import I64, Mask
from goodput_cli.events.values import MAX_SECONDS
from goodput_cli.vocabulary.units import NS_PER_SECOND

FRACTION_DIGITS = 8
MAX_DIGITS = 15
"""A whole number of so many digits is exact in a float64."""
FIRST_SECOND, END_SECOND = 1 << 30, 1 << 32
"""Times with a fraction lie between these (2004 to 2106): there a float64 counts in steps of 2^-22 s, and of 2^-21 s
from `_WIDER` (2038) on."""

_UNIT = 10**FRACTION_DIGITS
_WIDER = 1 << 31
_STEPS = 1 << 22
_NS_PER_US = 1000
_EXACT_DIGITS = 100
"""A fraction that is a multiple of this many units has at most six digits."""


@dataclass(frozen=True)
class Numerals:
    """n numbers from 0 up, as digits.

    whole: int64[n], the part before the point. fraction: int64[n], the part behind it in 10^-8, None if there is no
    point; then `whole` has at most MAX_DIGITS digits, else it is FIRST_SECOND <= whole < END_SECOND.
    """

    whole: I64
    fraction: I64 | None = None

    def take(self, chosen: Mask) -> Numerals:
        """Some of them."""
        return Numerals(self.whole[chosen], None if self.fraction is None else self.fraction[chosen])

    def epoch_ns(self) -> tuple[I64, Mask]:
        """What `values.epoch_column` makes of the same numbers: ns int64[n], and which are good."""
        if self.fraction is None:
            good = self.whole < MAX_SECONDS
            return np.where(good, self.whole, 0) * NS_PER_SECOND, good
        ns = self.whole * NS_PER_SECOND + _microseconds(self.whole, self.fraction) * _NS_PER_US
        return ns, np.ones(len(ns), bool)


def joined_numerals(parts: Sequence[Numerals]) -> Numerals:
    """Numbers one behind the other; all of them have a fraction, or none."""
    fractions = [part.fraction for part in parts if part.fraction is not None]
    return Numerals(np.concatenate([part.whole for part in parts]), np.concatenate(fractions) if fractions else None)


def _microseconds(whole: I64, fraction: I64) -> I64:
    """Fractions (10^-8) as microseconds (up to 10^6), as if each number had been a float64 on the way.

    With at most six digits that changes nothing: a float64 of these years is within 0.24 us of what was written.
    """
    micros = fraction // _EXACT_DIGITS
    odd = np.flatnonzero(micros * _EXACT_DIGITS != fraction)
    if len(odd):
        micros[odd] = _through_float(whole[odd], fraction[odd])
    return micros


def _through_float(whole: I64, fraction: I64) -> I64:
    """The nearest multiple of a step (the float64), then the nearest microsecond; both half to even, exactly."""
    steps = np.where(whole < _WIDER, _STEPS, _STEPS // 2)
    scaled = fraction * steps
    below = scaled // _UNIT
    rest = 2 * (scaled - below * _UNIT)
    nearest = below + ((rest > _UNIT) | ((rest == _UNIT) & (below % 2 == 1)))
    micros: I64 = np.rint(nearest * 1_000_000 / steps).astype(np.int64)
    return micros
