"""The command in this process, on a terminal of 80 columns, or in a process that has imported it; and waiting for a
condition instead of a time.

`WarmCommand` starts `python -m tests.support.commands SOCKET` and writes a program `goodput`. The program sends its
arguments, directory, variables and open files to that process, which forks and becomes the command.
"""

from __future__ import annotations

import contextlib
import gc
import io
import marshal
import os
import pty
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import NoReturn, Self

import pytest

from goodput_cli.__main__ import main
from goodput_cli.cli.main import run

ROOT = Path(__file__).parent.parent.parent
_CLIENT = """#!{python} -IS
import _socket, marshal, os, sys
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect({path!r})
files = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
server.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
server.sendall(marshal.dumps((os.getcwd(), sys.argv[1:], dict(os.environ))))
server.shutdown(_socket.SHUT_WR)
code = server.recv(1)
os._exit(code[0] if code else 99)
"""


class WarmCommand:
    """Programs `goodput` and `python` in a directory, for as long as the context lasts."""

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="warm-")  # not below pytest's: the path of a socket is short
        self.bin = Path(self._folder.name)
        path = str(self.bin / "socket")
        texts = {
            "goodput": _CLIENT.format(python=sys.executable, path=path),
            "python": f'#!/bin/sh\nexec "{sys.executable}" "$@"\n',
        }
        for name, text in texts.items():
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.commands", path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=120)  # its standard input ends, and with it the process
        self._folder.cleanup()


def serve(path: str) -> None:
    """Analyze two sample logs, which imports modules and compiles patterns. Then run commands until standard input
    ends."""
    with contextlib.redirect_stdout(io.StringIO()):
        for log in ("llm-pretrain.jsonl", "trainers/torchtitan/train.log"):
            run(["analyze", str(ROOT / "sample_logs" / log), "-q"])
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listening, selectors.DefaultSelector() as ready:
        listening.bind(path)
        listening.listen()
        ready.register(listening, selectors.EVENT_READ)
        ready.register(0, selectors.EVENT_READ)
        print("ready", flush=True)
        while all(key.fileobj is listening for key, _ in ready.select()):
            client, _ = listening.accept()
            with client:
                if os.fork() == 0:
                    _answer(client)
            _wait(os.WNOHANG)
    _wait(0)


def _wait(options: int) -> None:
    """Wait for processes that have ended; for all with options 0. Their processor time then counts as that of tests."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            pass


def _answer(client: socket.socket) -> NoReturn:
    """Run the command of a client in another process, and send its exit code."""
    try:
        _, files, _, _ = socket.recv_fds(client, 1, 3)
        request = b"".join(iter(lambda: client.recv(1 << 16), b""))
        process = os.fork()
        if process == 0:
            _become(files, *marshal.loads(request))
        for file in files:
            os.close(file)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        client.send(bytes([code if code >= 0 else 128 - code]))
    finally:
        os._exit(0)


def _become(files: list[int], folder: str, arguments: list[str], variables: dict[str, str]) -> NoReturn:
    """Become the command with these standard streams."""
    try:
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(variables)
        time.tzset()
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0)), "utf-8")
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w")), "utf-8")
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "w"), "utf-8", "backslashreplace", write_through=True)
        sys.argv = ["goodput", *arguments]
        main()
    finally:
        os._exit(99)


# --- The command on a terminal of 80 columns.


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


# --- Waiting for a condition instead of a time.

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


if __name__ == "__main__":
    serve(sys.argv[1])
    os._exit(0)  # as the command: nothing is taken apart
