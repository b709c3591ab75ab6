"""Garbage collection: seldom in a command, and paused where millions of objects without cycles are made."""

from __future__ import annotations

import gc
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
