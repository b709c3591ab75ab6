"""A process that draws charts, started before logs are read. Its JavaScript engine takes longer to start than the rest
of a page, and vl-convert keeps Python's lock while it works, so that a thread would not help.

The process is optional. Without it (one processor, use as a library) or if it fails, charts are drawn in this process,
with identical bytes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import IO, Literal

from goodput_cli.errors import GoodputError

VERSION = "6.4"
"""Version of Vega-Lite for vl-convert."""
Kind = Literal["svg", "png"]
_PROGRAM = "from goodput_cli.report.html.drawing_process import serve; serve()"
_ANY_CHART = '{"data":{"values":[{"x":1}]},"mark":"rule","encoding":{"x":{"field":"x","type":"quantitative"}}}'
_FILES = 128
"""Number of open files that is enough for the engine."""
_SCALE = 2
"""Dots per unit of PNG."""
_LENGTH = 8
"""Bytes of the length before each message."""


class NoEngineError(GoodputError):
    """Raised if the chart engine cannot start here."""


def draw(kind: Kind, spec: str) -> bytes:
    """Return a chart drawn in this process if the engine can start in it. spec: JSON. Raises NoEngineError.

    The engine reserves far more address space than it uses, and opens its own files. With too little of either it ends
    its process, or leaves it without an engine. So if these are limited, another process tries first.
    """
    too_little = _limited()
    if not too_little:
        return _drawn(kind, spec)
    if not _without_engine:
        answer = _tried(kind, spec)
        if answer:
            return answer
        _without_engine.append(True)
    raise NoEngineError(f"charts cannot be drawn: the renderer needs more {too_little}", tip="raise the limit")


def _tried(kind: Kind, spec: str) -> bytes:
    """Return a chart drawn in a separate process; empty if that fails."""
    try:
        trial = _DrawingProcess()
    except OSError:  # no more files can be opened
        return b""
    answer = trial.begin(kind, spec, lambda: b"")()
    trial.kill()
    return answer


def _limited() -> str:
    """Return the resource that may be too small for the engine, with its limit; empty if there is enough."""
    try:
        import resource
    except ImportError:  # Windows does not have these limits
        return ""
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        return "address space than `ulimit -v` allows"
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return "open files than `ulimit -n` allows" if 0 <= files < _FILES else ""


def _drawn(kind: Kind, spec: str) -> bytes:
    import vl_convert

    try:
        if kind == "png":
            png: bytes = vl_convert.vegalite_to_png(spec, vl_version=VERSION, scale=_SCALE, allowed_base_urls=[])
            return png
        svg: str = vl_convert.vegalite_to_svg(spec, vl_version=VERSION, allowed_base_urls=[])
        return svg.encode()
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # it is no Exception, and its module cannot be imported
            raise
        raise NoEngineError(f"charts cannot be drawn: the renderer failed ({error})") from error


def begin_to_draw(kind: Kind, spec: str) -> Callable[[], bytes]:
    """Begin to draw a chart in the started process, if there is one. Return a function that waits for the chart."""
    if _started is None:
        return lambda: draw(kind, spec)
    return _started.begin(kind, spec, lambda: draw(kind, spec))


def start() -> None:
    """Start the process. `stop` ends it, and it ends by itself when this process is gone. Raises ModuleNotFoundError if
    vl-convert is not installed, before anything is read."""
    global _started
    if find_spec("vl_convert") is None:
        raise ModuleNotFoundError("No module named 'vl_convert'", name="vl_convert")
    # a frozen program cannot run our code as a Python interpreter; a single processor gains nothing
    if _started is None and sys.executable and not getattr(sys, "frozen", False) and (os.cpu_count() or 1) > 1:
        with contextlib.suppress(OSError):
            _started = _DrawingProcess()


def stop() -> None:
    """End the process at once, even while it draws."""
    global _started
    if _started is not None:
        _started.kill()
    _started = None


class _DrawingProcess:
    """The process. It answers requests one after the other, and a thread waits for each."""

    def __init__(self) -> None:
        import subprocess  # the drawing process imports this module, and needs neither this nor threads
        import threading

        pipe = subprocess.PIPE
        # -P: do not import modules from the current directory
        command = [sys.executable, "-P", "-c", _PROGRAM]
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        self._thread, self._turn = threading.Thread, threading.Lock()

    def begin(self, kind: Kind, spec: str, otherwise: Callable[[], bytes]) -> Callable[[], bytes]:
        """Ask for a chart and return a function that waits for it. otherwise: draws the chart if the process fails."""
        answers: list[bytes | None] = []
        thread = self._thread(target=lambda: answers.append(self._ask(kind, spec)), daemon=True)
        thread.start()

        def wait() -> bytes:
            thread.join()
            return (answers and answers[0]) or otherwise()

        return wait

    def kill(self) -> None:
        with contextlib.suppress(OSError), self._process:  # closes its pipes with unread data, and waits
            self._process.kill()

    def _ask(self, kind: Kind, spec: str) -> bytes | None:
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None
        assert answers is not None
        with self._turn, contextlib.suppress(OSError, ValueError):  # the process ended, and its pipes are closed
            _send(requests, kind.encode() + spec.encode())
            return _received(answers)
        return None


def serve() -> None:
    """Draw until standard input ends: the main function of the process. An empty answer means that it failed."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C reaches this process too, and ends it at once
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # output of the engine must not mix with answers
    with contextlib.suppress(Exception):  # the caller reports the error when it draws the chart itself
        _drawn("svg", _ANY_CHART)
    while (request := _received(requests)) is not None:
        answer = b""
        with contextlib.suppress(Exception):
            answer = _drawn("png" if request.startswith(b"png") else "svg", request[3:].decode())
        _send(answers, answer)


def _send(stream: IO[bytes], message: bytes) -> None:
    stream.write(len(message).to_bytes(_LENGTH, "big") + message)
    stream.flush()


def _received(stream: IO[bytes]) -> bytes | None:
    """Return a message; None at the end of the stream."""
    length = int.from_bytes(stream.read(_LENGTH), "big")
    message = stream.read(length)
    return message if length == len(message) and length else None


_started: _DrawingProcess | None = None
_without_engine: list[bool] = []
"""Not empty once the engine failed to start."""
