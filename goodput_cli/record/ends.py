"""Detection of the end of a process by exceptions, signals and exit. All recorders of the process share one set of
hooks, which call the previous hooks.

A Python signal handler runs between two bytecodes of the main thread: during a long call into C it is late.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading

from . import writer  # noqa: F401  # its hook at exit is registered before ours, so that it comes after ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType, TracebackType
    from typing import Any, Protocol

    class WatchedRecorder(Protocol):
        """A recorder with callbacks. signalled: a signal came; `last` if the process ends by it. end_badly: an uncaught
        exception ended the main thread. failed_in_thread: an exception ended another thread. left: the process
        exits."""

        def signalled(self, name: str, last: bool) -> None: ...

        def end_badly(self, kind: type[BaseException]) -> None: ...

        def failed_in_thread(self, kind: type[BaseException]) -> None: ...

        def left(self) -> None: ...

        def warn(self, sentence: str) -> None: ...


_exceptions: set[WatchedRecorder] = set()
_exits: set[WatchedRecorder] = set()
_signals: dict[int, set[WatchedRecorder]] = {}
_before: dict[int, Any] = {}
"""The previous signal handlers."""
_hooks: dict[str, Any] = {}


def watch(recorder: WatchedRecorder, signals: Iterable[str], excepthook: bool, at_exit: bool) -> None:
    """Notify the recorder of the end of the process, until `unwatch`."""
    if excepthook:
        if not _hooks:
            _hooks.update(main=sys.excepthook, thread=threading.excepthook)
            sys.excepthook = _main_failed
            threading.excepthook = _thread_failed
        _exceptions.add(recorder)
    if at_exit:
        _exits.add(recorder)
    if threading.current_thread() is threading.main_thread():
        for name in signals:
            _watch_signal(recorder, name)


def unwatch(recorder: WatchedRecorder) -> None:
    """Stop notifying the recorder, and restore the previous handlers of signals that are no longer watched."""
    _exceptions.discard(recorder)
    _exits.discard(recorder)
    for number, recorders in _signals.items():
        recorders.discard(recorder)
        if not recorders and number in _before and threading.current_thread() is threading.main_thread():
            before = _before.pop(number)
            if signal.getsignal(number) is _on_signal:
                signal.signal(number, before)


def _main_failed(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    _notify(_exceptions, lambda recorder: recorder.end_badly(kind))
    _hooks["main"](kind, error, trace)


def _thread_failed(given: Any) -> None:
    _notify(_exceptions, lambda recorder: recorder.failed_in_thread(given.exc_type))
    _hooks["thread"](given)


def _watch_signal(recorder: WatchedRecorder, name: str) -> None:
    number = getattr(signal, name, None)
    if not isinstance(number, signal.Signals):
        recorder.warn(f"{name} is not a signal of this system")
        return
    before = signal.getsignal(number)
    if before is None or (before is signal.SIG_DFL and _handled_in_c(number)):
        recorder.warn(f"{name} is handled by a C library, so its arrival will not be recorded")
    elif before is not signal.SIG_IGN:  # an ignored signal stays ignored
        if before is not _on_signal:
            _before[number] = before
            signal.signal(number, _on_signal)
        _signals.setdefault(number, set()).add(recorder)


def _handled_in_c(number: int) -> bool:
    """Return True if the process catches a signal without a Python handler, as JAX' notice of preemptions does."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as stream:
            caught = next(line for line in stream if line.startswith("SigCgt:"))
        return bool(int(caught.split()[1], 16) >> (number - 1) & 1)
    except (OSError, ValueError, StopIteration):
        return False


def _on_signal(number: int, frame: FrameType | None) -> None:
    before = _before.get(number, signal.SIG_DFL)
    last = before is signal.SIG_DFL
    name = signal.Signals(number).name
    _notify(_signals.get(number, set()), lambda recorder: recorder.signalled(name, last))
    if last:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    elif callable(before):
        before(number, frame)


def on_exit() -> None:
    """Notify all recorders that the process ends."""
    _notify(_exits, lambda recorder: recorder.left())


def _forked() -> None:
    """Reset the hooks in a forked child, whose end is not the job's."""
    for recorders in (_exceptions, _exits, *_signals.values()):
        recorders.clear()


def _notify(recorders: set[WatchedRecorder], what: Callable[[WatchedRecorder], None]) -> None:
    for recorder in list(recorders):
        try:
            what(recorder)
        except Exception as error:
            recorder.warn(f"the end of the program could not be recorded ({type(error).__name__})")


atexit.register(on_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
