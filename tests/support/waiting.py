"""Waiting for a condition instead of a time."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

LONG_ENOUGH = 120.0
"""Seconds after which a condition counts as never met: a busy machine is slow, and no test fails because of it."""


def until(condition: Callable[[], object]) -> None:
    """Return as soon as the condition is true; it is checked every few milliseconds. Raises TimeoutError if it never
    is."""
    deadline = time.monotonic() + LONG_ENOUGH
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("what was waited for has not happened")
        time.sleep(0.01)


def connections(listening: socket.socket) -> int:
    """Return how often a server that never answers was called."""
    listening.setblocking(False)
    count = 0
    while True:
        try:
            listening.accept()[0].close()
        except OSError:  # no client is waiting, or no server listens
            return count
        count += 1
