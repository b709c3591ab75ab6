"""`goodput monitor` as a separate process next to the program: started by exec, never as a thread or a fork."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import time

from . import ends, writer
from .names import TO_INSTALL, variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Say = Callable[[str], None]

STOP_SECONDS = 12.0
"""Time limit of the last update of a monitor, which takes up to 10 s."""
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Environment that limits the monitor to one thread, because the processors belong to the job."""
_SAID_IN = ".monitor.txt"
"""Ending of the file with the monitor's output, next to the log. Not `.log`, because readers of the folder would read
it as one."""


class MonitorProcess:
    """A monitor of the log at `source`, with further arguments of `goodput monitor`. Nothing here raises.

    said_beside: the path of the log. The monitor's output is written next to it.
    """

    def __init__(self, source: str, arguments: Sequence[str], say: Say, said_beside: str | None = None) -> None:
        self._say = say
        self._owner = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        command = find_command()
        if command is None:
            say(f"no monitor is started: the command `goodput` was not found; {TO_INSTALL}, or set "
                "GOODPUT_RECORDER_MONITOR to it")  # fmt: skip
            return
        line = [*command, "monitor", source, "--parent", str(self._owner), *arguments]
        try:
            self._process = _start(line, (said_beside or source) + _SAID_IN)
            _running.add(self)
        except (OSError, ValueError) as error:
            say(f"no monitor is started: {line[0]}: {error}")

    @property
    def runs(self) -> bool:
        """Whether the monitor process is running."""
        return self._process is not None and self._process.poll() is None

    def stop(self, seconds: float | None = STOP_SECONDS, *, kill: bool = False) -> None:
        """Let it make its last update within `seconds` (None: without a limit); `kill`: no update."""
        process, self._process = self._process, None
        _running.discard(self)
        if process is None or self._owner != os.getpid():
            return
        try:
            if kill:
                process.kill()
            else:
                process.terminate()
            if not _ended(process, 2.0 if kill else seconds):
                self._say("the monitor did not stop in time; its last update may be missing")
                process.kill()
                _ended(process, 2.0)
        except OSError as error:
            self._say(f"the monitor cannot be stopped: {error}")

    def wait(self, seconds: float | None) -> None:
        """Wait for its regular end, then stop it."""
        if self._process is not None and _ended(self._process, seconds):
            _running.discard(self)
            self._process = None
        self.stop(0.0)


def find_command() -> list[str] | None:
    """Return the command line in GOODPUT_RECORDER_MONITOR, otherwise `goodput` next to this Python, otherwise the one
    on the path."""
    named = variable("MONITOR")
    if named:
        import shlex

        return shlex.split(named)
    beside = os.path.join(os.path.dirname(sys.executable or ""), "goodput")
    if os.path.isabs(beside) and os.access(beside, os.X_OK):
        return [beside]
    import shutil

    command = shutil.which("goodput")
    return None if command is None else [command]


def window_arguments(windows: Sequence[object]) -> list[str]:
    """Return options for rolling windows: numbers of seconds, or texts such as 1d."""
    return [part for window in windows for part in ("--window", str(window))]


def _start(line: list[str], said_in: str) -> subprocess.Popen[bytes]:
    try:
        os.makedirs(os.path.dirname(said_in) or ".", exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        flags |= getattr(os, "O_NONBLOCK", 0)  # opening a pipe without a reader fails instead of waiting
        output = os.open(said_in, flags, 0o644)
    except OSError:
        output = os.open(os.devnull, os.O_WRONLY)
    # block SIGTERM until the monitor can make its last update
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        return subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C in the terminal is only for the program
            env={**os.environ, **_ONE_THREAD},
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(output)


def _ended(process: subprocess.Popen[bytes], seconds: float | None) -> bool:
    """Wait for the end for at most `seconds`, by polling: signals may interrupt `Popen.wait` forever."""
    deadline = None if seconds is None else time.monotonic() + seconds
    wait = 0.002
    while process.poll() is None:
        if deadline is not None and time.monotonic() >= deadline:
            return False
        time.sleep(wait)
        wait = min(2 * wait, 0.1)
    return True


_running: set[MonitorProcess] = set()


def _at_exit() -> None:
    """Stop the monitors at exit. This is registered after the hooks that write the last lines, which therefore run
    later."""
    if _running:
        ends.on_exit()
        writer.close_all()
    for monitor in list(_running):
        monitor.stop()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.clear)
