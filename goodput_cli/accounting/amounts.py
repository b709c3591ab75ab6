"""The rounding that every computed amount goes through (accounting §1)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import I64


def round_half_even(value: Fraction | float) -> int:
    """A computed amount as whole ns, half to even (accounting §1)."""
    return round(value)


def scaled(count: NDArray[np.float64], unit_ns: Fraction | float) -> I64:
    """`count` x `unit_ns` as whole ns, half to even, exact for whole counts where the unit is a Fraction.

    Counts beyond what a product in floating point can hold (amounts above 2^53 ns are 104 days) are split into the
    whole ns of the unit, multiplied as integers, and the rest.
    """
    unit = Fraction(unit_ns)
    whole_unit = unit.numerator // unit.denominator
    whole_count = np.floor(count)
    rest = (count - whole_count) * whole_unit + count * float(unit - whole_unit)
    return whole_count.astype(np.int64) * whole_unit + np.rint(rest).astype(np.int64)
