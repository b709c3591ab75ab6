"""Where events end: nearly all of them when they begin, so that only the other ends are held."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import I64, Patched, Rows, patched


def end_times(time: I64, rows: Rows, own: I64) -> I64 | Patched:
    """`time` with these sorted rows' own ends (ns); the very array `time` if there are none."""
    return patched(time, rows, own) if len(rows) else time


def taken_ends(ends: Patched, rows: NDArray[Any], time: I64) -> I64 | Patched:
    """The ends of some rows, an index array or a mask. time: of the same rows."""
    return end_times(time, *ends.patches_of(rows))


def lasting(time: I64, ends: I64 | Patched) -> Rows:
    """Rows that end later than they begin."""
    if not isinstance(ends, Patched):
        return np.flatnonzero(ends > time)
    return np.asarray(ends.rows[ends.own > time[ends.rows]])
