"""A line now and then where nothing else is written: after a SIGKILL it bounds the time of death."""

from __future__ import annotations

import threading
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Heartbeat:
    """Looks every `seconds`, in a thread of its own, whether a line was written since the last look, and beats if none
    was.

    written: how many lines there are by now. beat: writes one. It stops when `stop` is called, from a signal handler
    too.
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
        with suppress(RuntimeError):  # it was stopped already
            self._stopped.release()

    def _run(self) -> None:
        before = self._written()
        while not self._stopped.acquire(timeout=self._seconds):
            if self._written() == before:
                self._beat()
            before = self._written()
        self._stopped.release()
