"""When to stop before the job ends: SIGTERM, and a parent that is gone."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

PARENT_SECONDS = 2.0
"""How often to see whether the parent lives."""


def _no() -> None:
    """Nobody pressed Ctrl-C."""


class Stop:
    """Waits between updates, and is woken by SIGTERM. parent: the process that the monitor belongs to, where it does.

    The handler only takes note, as it may run inside anything: an update that is under way is finished, but the process
    ends twice `grace` seconds after the signal at the latest. interrupted: called before each wait; what it raises ends
    the monitor, as Ctrl-C does.
    """

    def __init__(self, parent: int | None = None, grace: float = 10.0, interrupted: Callable[[], None] = _no) -> None:
        self.signalled = False
        self._parent = parent
        self._interrupted = interrupted
        self._limit = threading.Timer(2 * grace, _too_late)
        self._limit.daemon = True
        self._reader, self._writer = os.pipe()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handle SIGTERM; afterwards it does what it did before."""
        if threading.current_thread() is not threading.main_thread():
            yield  # Python handles signals in the main thread alone
            return
        before = signal.signal(signal.SIGTERM, self._terminate)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # one that came while this was starting waits
        try:
            yield
        finally:
            self._limit.cancel()
            signal.signal(signal.SIGTERM, before)

    @property
    def wanted(self) -> bool:
        """Whether to make the last update now."""
        return self.signalled or self._orphaned()

    def wait(self, seconds: float) -> None:
        """Wait so long, or until there is a reason to stop."""
        self._interrupted()
        end = time.monotonic() + seconds
        while not self.wanted and (left := end - time.monotonic()) > 0:
            select.select([self._reader], [], [], left if self._parent is None else min(left, PARENT_SECONDS))

    def _orphaned(self) -> bool:
        """Asked for, and not told by the system (PR_SET_PDEATHSIG): that fires when a thread ends."""
        return self._parent is not None and os.getppid() != self._parent

    def _terminate(self, _number: int, _frame: FrameType | None) -> None:
        if not self.signalled:
            self.signalled = True
            self._limit.start()
        with suppress(OSError):
            os.write(self._writer, b"x")


def _too_late() -> None:
    """End the process at once: a source that never answers cannot be interrupted in another way."""
    with suppress(OSError):
        os.write(2, b"Error: the last update took too long; it was left.\n")
    os._exit(1)
