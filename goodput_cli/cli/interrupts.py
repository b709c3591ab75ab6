"""Ctrl-C. Until reading begins, and when all is written, it ends the process on the spot: an exception that is raised
inside an import may be swallowed there, or show a traceback. In between it is raised, so that a half-written file and a
progress line are cleared away."""

from __future__ import annotations

import contextlib
import os
import signal
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130
WORD = "Interrupted."


def end_at_once() -> None:
    """From here on Ctrl-C ends the process, unless somebody decided about it before: `nohup`, a shell's background."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_again() -> None:
    """From here on Ctrl-C is a KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    with contextlib.suppress(OSError):  # standard error may be closed
        os.write(2, f"{WORD}\n".encode())
    os._exit(INTERRUPTED)
