"""Memory: garbage collection seldom in a command and paused where no cycles are made, and freed memory given back."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_SELDOM = (100_000, 20, 100)


def collect_seldom() -> None:
    """From here on. A command takes a twentieth longer if it searches for cycles as often as others do, and neither its
    modules nor an analysis leave any: what nothing refers to any more is freed anyway."""
    gc.set_threshold(*_SELDOM)


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Records and events hold no cycles: searching them for some is in vain, and took a quarter of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


_MUCH = 1 << 19
"""Below so many rows it is not worth the call."""


def give_back(rows: int) -> None:
    """After work on so many rows. Only glibc can be asked; elsewhere nothing happens."""
    if rows < _MUCH or not sys.platform.startswith("linux"):
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
