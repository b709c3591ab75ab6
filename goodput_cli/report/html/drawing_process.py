"""A process that draws charts, started before logs are read: the JavaScript engine that draws takes longer to start
than all else of a page, and vl-convert holds Python's lock while it works, so that a thread would gain nothing.

It is a help and no more. Without it (one processor, a program that uses the library), and wherever it fails, charts
are drawn in this process; they are the same to the byte.
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
"""Of Vega-Lite, as vl-convert names it."""
Kind = Literal["svg", "png"]
_PROGRAM = "from goodput_cli.report.html.drawing_process import serve; serve()"
_ANY_CHART = '{"data":{"values":[{"x":1}]},"mark":"rule","encoding":{"x":{"field":"x","type":"quantitative"}}}'
_FILES = 128
"""Where so many may be open, the engine has enough of them."""
_SCALE = 2
"""Dots a unit of PNG."""
_LENGTH = 8
"""Bytes of the number in front of each message."""


class NoEngineError(GoodputError):
    """The engine that draws does not start here."""


def draw(kind: Kind, spec: str) -> bytes:
    """A chart, drawn in this process, if the engine can start in it. spec: JSON. Raises NoEngineError.

    The engine reserves far more address space than it uses, and opens files of its own; where it gets too little it
    ends its process, or leaves it without an engine. So where these are limited it is tried in another one.
    """
    too_little = _limited()
    if not too_little:
        return _drawn(kind, spec)
    if not _without_engine:
        answer = _tried(kind, spec)
        if answer:
            return answer
        _without_engine.append(True)
    raise NoEngineError(f"charts cannot be drawn: the renderer needs more {too_little}; raise the limit")


def _tried(kind: Kind, spec: str) -> bytes:
    """A chart, drawn in a process that is there for it alone; empty where that cannot be done."""
    try:
        trial = _DrawingProcess()
    except OSError:  # no file may be opened any more
        return b""
    answer = trial.begin(kind, spec, lambda: b"")()
    trial.kill()
    return answer


def _limited() -> str:
    """Of what there may be too little for the engine, and what limits it; empty where there is enough."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
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
        if type(error).__name__ != "PanicException":  # no Exception, and in no module that could be imported
            raise
        raise NoEngineError(f"charts cannot be drawn: the renderer failed ({error})") from error


def begin_to_draw(kind: Kind, spec: str) -> Callable[[], bytes]:
    """The same in the process that was started, if there is one. Returned is what waits for the chart."""
    if _started is None:
        return lambda: draw(kind, spec)
    return _started.begin(kind, spec, lambda: draw(kind, spec))


def start() -> None:
    """Start the process. `stop` ends it; it ends by itself as soon as this process is gone. Raises ModuleNotFoundError
    where what draws is not installed: that is said before anything is read."""
    global _started
    if find_spec("vl_convert") is None:
        raise ModuleNotFoundError("No module named 'vl_convert'", name="vl_convert")
    # a frozen program is no Python that could be asked to run ours; on a single processor nothing is gained
    if _started is None and sys.executable and not getattr(sys, "frozen", False) and (os.cpu_count() or 1) > 1:
        with contextlib.suppress(OSError):
            _started = _DrawingProcess()


def stop() -> None:
    """End the process at once, whatever it does."""
    global _started
    if _started is not None:
        _started.kill()
    _started = None


class _DrawingProcess:
    """The process. Requests are answered one after the other, and a thread waits for each."""

    def __init__(self) -> None:
        import subprocess  # neither this nor threads are needed where the process imports this module
        import threading

        pipe = subprocess.PIPE
        # -P: the folder that the user happens to be in holds no modules of ours
        command = [sys.executable, "-P", "-c", _PROGRAM]
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        self._thread, self._turn = threading.Thread, threading.Lock()

    def begin(self, kind: Kind, spec: str, otherwise: Callable[[], bytes]) -> Callable[[], bytes]:
        """Ask for a chart; returned is what waits for it. otherwise: draws it where the process does not."""
        answers: list[bytes | None] = []
        thread = self._thread(target=lambda: answers.append(self._ask(kind, spec)), daemon=True)
        thread.start()

        def wait() -> bytes:
            thread.join()
            return (answers and answers[0]) or otherwise()

        return wait

    def kill(self) -> None:
        with contextlib.suppress(OSError), self._process:  # closes its pipes, with what it did not take, and waits
            self._process.kill()

    def _ask(self, kind: Kind, spec: str) -> bytes | None:
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None
        assert answers is not None
        with self._turn, contextlib.suppress(OSError, ValueError):  # it is gone, or was ended and its pipes are closed
            _send(requests, kind.encode() + spec.encode())
            return _received(answers)
        return None


def serve() -> None:
    """What the process does: it draws until its standard input ends. An empty answer says that it could not."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C reaches this process too, and ends it at once
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what an engine prints is no answer
    with contextlib.suppress(Exception):  # said by who asks, where it happens again
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
    """A message; None where the stream ends instead."""
    length = int.from_bytes(stream.read(_LENGTH), "big")
    message = stream.read(length)
    return message if length == len(message) and length else None


_started: _DrawingProcess | None = None
_without_engine: list[bool] = []
"""Not empty once the engine was tried in vain."""
