"""The entry point of the command `goodput`, and of `python -m goodput_cli`."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from typing import NoReturn

GARBAGE_THRESHOLDS = (100_000, 20, 100)
"""When garbage is collected: a command takes a twentieth longer if it searches for cycles as often as others do, and
neither its modules nor an analysis leave any. What nothing refers to any more is freed anyway."""


def main() -> NoReturn:
    """Run the command. Ctrl-C while it is still being imported ends it as later: a word, and exit code 130."""
    from goodput_cli.cli.console import INTERRUPTED, end_at_once

    end_at_once()
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy starts threads at once; nothing here needs them
    from goodput_cli.cli.main import DEBUG_VARIABLE, run

    try:
        code = run()
        end_at_once()
    except KeyboardInterrupt:  # a second one, while the first is being answered
        code = INTERRUPTED
    if os.environ.get(DEBUG_VARIABLE):
        sys.exit(code)
    _leave(code)


def _leave(code: int) -> NoReturn:
    """End the process at once. Everything is written and closed by now, and to take modules and columns apart object by
    object would be a part of every run that people feel (`make bench`, "without ending at once")."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
