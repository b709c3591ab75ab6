"""The command on a terminal of 80 columns, in this process."""

from __future__ import annotations

import contextlib
import os
import pty
from threading import Thread

import pytest

from goodput_cli.cli.main import run


def on_a_terminal(*arguments: str, **variables: str) -> str:
    """Run a command with a terminal as its standard output, and return what the terminal receives."""
    ours, theirs = pty.openpty()
    parts: list[bytes] = []

    def receive() -> None:
        with contextlib.suppress(OSError):  # The other end is closed.
            while part := os.read(ours, 1 << 16):
                parts.append(part)

    receiver = Thread(target=receive)
    receiver.start()
    with pytest.MonkeyPatch.context() as patch, open(theirs, "w", encoding="utf-8") as terminal:
        for name in ("COLORTERM", "TERM"):
            patch.delenv(name, raising=False)
        for name, value in variables.items():
            patch.setenv(name, value)
        with contextlib.redirect_stdout(terminal):
            assert run([*arguments]) == 0
    receiver.join()
    os.close(ours)
    return b"".join(parts).decode().replace("\r\n", "\n")
