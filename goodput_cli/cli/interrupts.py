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

_raised = False


def end_at_once() -> None:
    """From here on Ctrl-C ends the process, unless somebody decided about it before: `nohup`, a shell's background."""
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _raise):
        signal.signal(signal.SIGINT, _end)


def raise_again() -> None:
    """From here on Ctrl-C is a KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, _raise)


def raise_what_was_lost() -> None:
    """Raise the KeyboardInterrupt of a Ctrl-C once more if a library swallowed it; what runs until then asks each time.

    NumPy clears whatever is raised while it looks for a special attribute of an operand, and to look for one on an
    enumeration runs Python code (until 3.12): of a hundred interrupts of small analyses three were lost there.
    """
    if _raised:
        raise KeyboardInterrupt


def _raise(_number: int, _frame: FrameType | None) -> NoReturn:
    global _raised
    _raised = True
    raise KeyboardInterrupt


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    with contextlib.suppress(OSError):  # standard error may be closed
        os.write(2, f"{WORD}\n".encode())
    os._exit(INTERRUPTED)
