"""Lines that programs of several kinds print alike: times, and deaths."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from tests.truth.world import Happening

BEGIN = datetime(2026, 3, 1, 10, tzinfo=UTC)


def time(at: float) -> datetime:
    """Return the time of day, this many seconds after the world began."""
    return BEGIN + timedelta(seconds=at)


def failed(one: Happening, prefix: str, launcher: str = "") -> Iterator[str]:
    """Yield an uncaught exception, and the line of a launcher."""
    yield f"{prefix}Traceback (most recent call last):"
    yield f'{prefix}  File "/opt/train/main.py", line 88, in <module>'
    yield f"{prefix}    main()"
    yield f"{prefix}{one.text}"
    if launcher:
        yield launcher


def elastic(one: Happening) -> str:
    """Torchrun's line of it."""
    return (f"E{time(one.end):%m%d %H:%M:%S.%f} 4711 torch/distributed/elastic/multiprocessing/api.py:869] failed "
            "(exitcode: 1) local_rank: 3 (pid: 4750) of binary: /usr/bin/python3")  # fmt: skip
