"""A line now and then where nothing else is written: after a SIGKILL it bounds the time of death."""

from __future__ import annotations

import threading
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Heart:
    """Beats in a thread of its own when `seconds` have passed without a line.

    idle: seconds since the last line. beat: writes one. It stops when `stop` is called, from a signal handler too.
    """

    def __init__(self, seconds: float, idle: Callable[[], float], beat: Callable[[], None]) -> None:
        self._seconds = seconds
        self._idle = idle
        self._beat = beat
        self._stopped = threading.Lock()
        self._stopped.acquire()
        threading.Thread(target=self._run, name="goodput-record heartbeat", daemon=True).start()

    def stop(self) -> None:
        """No beat any more."""
        with suppress(RuntimeError):  # it was stopped already
            self._stopped.release()

    def _run(self) -> None:
        wait = self._seconds
        while not self._stopped.acquire(timeout=min(wait, threading.TIMEOUT_MAX)):
            wait = self._seconds - self._idle()
            if wait <= 0.0:
                self._beat()
                wait = self._seconds
        self._stopped.release()
