"""Memory that was freed, given back to the system: the C library keeps it for later, beside what is made next."""

from __future__ import annotations

import ctypes
import sys

_MUCH = 1 << 19
"""Below so many rows it is not worth the call."""


def give_back(rows: int) -> None:
    """After work on so many rows. Only glibc can be asked; elsewhere nothing happens."""
    if rows < _MUCH or not sys.platform.startswith("linux"):
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
