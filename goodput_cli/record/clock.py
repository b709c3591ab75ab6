"""Timestamps that never go back within an attempt, and parsing of times that a caller passes. Also heartbeats:
occasional lines if nothing else is written, which bound the time of death after a SIGKILL."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

NS = 10**9
_APART_NS = NS
"""Difference between the wall clock and the timestamps from which on the clock counts as set."""
_ELAPSED_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def elapsed_ns() -> int:
    """Return the time since the machine started, including suspended time if the system knows it."""
    return time.clock_gettime_ns(_ELAPSED_CLOCK)


class Clock:
    """A clock. Calling it returns ns since 1970 UTC: the wall clock at the first call, plus the time since then.

    A wall clock that is ahead by more than a second (a machine that was suspended) moves the timestamps forward. One
    that is behind (it was set back) does not change them. Both differences are kept in `step_ns` until `take_step` is
    called. wall, elapsed: the two underlying clocks (ns).
    """

    __slots__ = ("_anchor", "_behind", "_elapsed", "_step", "_wall", "stepped")

    def __init__(self, wall: Callable[[], int] = time.time_ns, elapsed: Callable[[], int] = elapsed_ns) -> None:
        self._wall = wall
        self._elapsed = elapsed
        self._anchor = wall() - elapsed()
        self._behind = 0
        self._step = 0
        self.stepped = False

    def __call__(self) -> int:
        """Return the current timestamp."""
        stamp = self._anchor + self._elapsed()
        apart = self._wall() - stamp
        if -_APART_NS <= apart <= _APART_NS:
            if self._behind:
                self._count_step(-self._behind)
                self._behind = 0
            return stamp
        return self._moved(stamp, apart)

    def _moved(self, stamp: int, apart: int) -> int:
        if apart > 0:
            self._anchor += apart
            self._count_step(apart - self._behind)
            self._behind = 0
            return stamp + apart
        if abs(apart - self._behind) > _APART_NS:
            self._count_step(apart - self._behind)
            self._behind = apart
        return stamp

    def _count_step(self, step: int) -> None:
        self._step += step
        self.stepped = True

    def take_step(self) -> int:
        """Return how far the wall clock was set since the last call (ns; back is negative)."""
        step, self._step, self.stepped = self._step, 0, False
        return step


def microseconds(given: object) -> int | None:
    """Return a time from a caller in microseconds since 1970 UTC; None if it is invalid.

    A datetime (without a zone: local time of this machine, as in `datetime.timestamp`) or epoch seconds.
    """
    if isinstance(given, int | float):
        if isinstance(given, bool) or not 0 <= given < 1e12:  # also rejects NaN
            return None
        whole = int(given)
        return whole * 10**6 + round((given - whole) * 10**6)
    from datetime import datetime, timedelta, timezone  # a caller with a datetime has imported it already

    if not isinstance(given, datetime):
        return None
    aware = given if given.tzinfo is not None else given.astimezone()
    us = (aware - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)
    return us if us >= 0 else None


class Heartbeat:
    """A thread that checks every `seconds` whether a line was written since the last check, and otherwise writes a
    heartbeat.

    written: returns the number of lines so far. beat: writes a heartbeat. It stops when `stop` is called, also from a
    signal handler.
    """

    def __init__(self, seconds: float, written: Callable[[], int], beat: Callable[[], None]) -> None:
        self._seconds = min(seconds, threading.TIMEOUT_MAX)
        self._written = written
        self._beat = beat
        self._stopped = threading.Lock()
        self._stopped.acquire()
        threading.Thread(target=self._run, name="goodput-record heartbeat", daemon=True).start()

    def stop(self) -> None:
        """Stop writing heartbeats."""
        with suppress(RuntimeError):  # it is already stopped
            self._stopped.release()

    def _run(self) -> None:
        before = self._written()
        while not self._stopped.acquire(timeout=self._seconds):
            if self._written() == before:
                self._beat()
            before = self._written()
        self._stopped.release()
