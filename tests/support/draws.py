"""Fixed draws from many cases: the same in every run, whatever other cases there are. GOODPUT_EXPLORE takes all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from zlib import crc32

EXPLORES = bool(int(os.environ.get("GOODPUT_EXPLORE", "0") or 0))


def number_of(name: str) -> int:
    """Return a number that depends on the name only."""
    return crc32(name.encode())


def drawn(names: Iterable[str], every: int, offset: int = 0) -> list[str]:
    """Return one name of `every`, on average. The draws of all offsets together contain each name once."""
    return [name for name in names if EXPLORES or number_of(name) % every == offset % every]
