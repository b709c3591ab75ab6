"""What the user can choose about the accounting, and the rounding that every computed amount goes through."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Rules:
    """Choices of one analysis.

    reference_ns: reference step time in ns (exact), "auto", or None. Checkpoint logs take "auto" for None.
    exclusions: windows (start, end) in ns that the user took out. exclude_stopped: take planned stops out as well.
    data_blocking: data loading inside steps claims its time. async_saves: saves of a checkpoint log claim nothing.
    stall_factor: a kept step longer than this many usual steps is stalled beyond the usual; 0 = off.
    """

    reference_ns: Fraction | Literal["auto"] | None = None
    exclusions: tuple[tuple[int, int], ...] = ()
    exclude_stopped: bool = False
    data_blocking: bool = False
    async_saves: bool = False
    stall_factor: float = 5.0


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
