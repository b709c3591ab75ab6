"""Messages on standard error, the progress line, and Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock
from types import FrameType
from typing import TYPE_CHECKING, NoReturn, TextIO

from goodput_cli.errors import GoodputError, error_from_os, error_lines
from goodput_cli.report.base import Depth, Page
from goodput_cli.vocabulary.text import safe_lines, wrapped

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import ProgressColumn, TaskID

    from goodput_cli.sources.base import Progress

_FALLBACK_WIDTH = 80
_WIDEST = 400
_NARROWEST = 20
_AT_ONCE = 1 << 20
"""Characters per encoded part, so that a long answer is not in memory twice."""
_DRAWN = "█▏"
"""Characters of a page that is not plain ASCII."""


def prepare_streams() -> None:
    """Prevent errors for characters that the terminal cannot show (they are escaped) and for closed streams (`>&-`)."""
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def print_message(line: str) -> None:
    """Write a line to standard error, wrapped between words on a terminal. Errors of writing are ignored."""
    if sys.stderr.isatty():
        line = "\n".join(map(_broken, line.split("\n")))
    with contextlib.suppress(GoodputError):
        _write(sys.stderr, line + "\n", "standard error")


def _broken(line: str) -> str:
    before = " " * (len(line) - len(line.lstrip(" ")))
    width = shutil.get_terminal_size((_FALLBACK_WIDTH, 24)).columns
    return "\n".join(wrapped(line, max(width - 1, _NARROWEST), before + "  "))


def print_messages(lines: Iterable[str]) -> None:
    """Print lines to standard error."""
    for line in lines:
        print_message(line)


def print_safely(sentence: str) -> None:
    """Print a message that can contain untrusted text to standard error."""
    print_message(safe_lines(sentence))


def print_error(message: str, *, cause: str = "", tip: str = "") -> None:
    """Print what failed, why, and what to do, on up to three lines of standard error. They can contain untrusted
    text."""
    print_safely(error_lines(message, cause, tip))


def write_output(content: str | bytes) -> bool:
    """Write text or bytes to standard output. Return False if the reader has gone (`| head`). Raises GoodputError for a
    full disk."""
    return _write(sys.stdout, content, "standard output")


def page_of_terminal() -> Page:
    """Return the properties of standard output: the width of the terminal (COLUMNS takes precedence; 80 without a
    terminal), colors on a terminal unless NO_COLOR is set, and ASCII if the encoding has no bars."""
    columns = os.environ.get("COLUMNS", "")
    width = _FALLBACK_WIDTH
    if columns.isascii() and columns.isdigit() and 0 < len(columns) < 6:
        width = int(columns) or _FALLBACK_WIDTH
    elif sys.stdout.isatty():
        width = shutil.get_terminal_size((_FALLBACK_WIDTH, 24)).columns
    height = shutil.get_terminal_size((_FALLBACK_WIDTH, 24)).lines if sys.stdout.isatty() else 24
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Page(min(width, _WIDEST), colour, _can_draw(sys.stdout), _depth(), height=height)


def _depth() -> Depth:
    """Return the color system of the terminal (COLORTERM, TERM)."""
    if os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return "truecolor"
    return "256" if "256" in os.environ.get("TERM", "") else "standard"


def _can_draw(stream: TextIO) -> bool:
    try:
        _DRAWN.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # stays open until the process ends


def _write(stream: TextIO, content: str | bytes, name: str) -> bool:
    try:
        if isinstance(content, bytes):
            stream.buffer.write(content)
        else:
            for start in range(0, len(content), _AT_ONCE):
                stream.write(content[start : start + _AT_ONCE])
        stream.flush()
    except OSError as error:
        # The interpreter flushes again when it exits, so the descriptor must be valid.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not isinstance(error, BrokenPipeError):
            raise error_from_os(f"cannot write to {name}", error) from error
        return False
    return True


INTERRUPTED = 130
WORD = "Interrupted."

_raised = False


def end_at_once() -> None:
    """Let Ctrl-C end the process, unless it was disabled before: `nohup`, a background job of a shell."""
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _raise):
        signal.signal(signal.SIGINT, _end)


def raise_again() -> None:
    """Restore the default: Ctrl-C raises KeyboardInterrupt."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, _raise)


def raise_what_was_lost() -> None:
    """Raise the KeyboardInterrupt of a Ctrl-C again if a library swallowed it. Code that runs until then checks for it.

    NumPy discards exceptions while it looks up a special attribute of an operand, and looking it up on an enumeration
    runs Python code (until 3.12). Of a hundred interrupts of small analyses, three were lost there.
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


_PATIENCE_SECONDS = 0.5
"""Reading that ends earlier, counted from the first byte, shows no progress: creating the line takes time too."""
_BAR_WIDTH = 16
_READING = "reading"
_SHOWN_EVERY = 25


@contextmanager
def reading_progress(*, wanted: bool, then: str) -> Iterator[Progress | None]:
    """Yield a callback that shows bytes, lines, rate and remaining time, once reading takes long; None if it would not
    be visible.

    then: one word for the work after reading; empty to remove the line. Work begins here: Ctrl-C raises from now on,
    and again at the end if it was lost.
    """
    raise_again()
    with ExitStack() as stack:
        yield _ReadingLine(stack, then) if _is_seen(wanted) else None
    raise_what_was_lost()


@contextmanager
def jobs_progress(*, wanted: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a callback for the number of finished jobs and their total; None if it would not be visible. The line
    begins with the first job, because only one line is shown at a time."""
    if not _is_seen(wanted):
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    bar = _bar(TextColumn("jobs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    task = bar.add_task("jobs", total=None)

    def show(done: int, total: int) -> None:
        bar.start()
        if done % _SHOWN_EVERY == 0 or done == total:
            bar.update(task, completed=done, total=total)

    try:
        yield show
    finally:
        bar.stop()


@contextmanager
def waiting(what: str, *, wanted: bool) -> Iterator[None]:
    """Show the elapsed time while another process computes."""
    if not _is_seen(wanted):
        yield
        return
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    with _bar(SpinnerColumn(), TextColumn(what), TimeElapsedColumn()) as bar:
        bar.add_task(what, total=None)
        yield


class _ReadingLine:
    """A `Progress` that shows a line once reading takes long."""

    def __init__(self, stack: ExitStack, then: str) -> None:
        self._stack, self._then = stack, then
        self._begin: float | None = None
        self._bytes = self._lines = self._total = 0
        self._waits = ""
        self._one_at_a_time = Lock()
        self._shown: tuple[Bar, TaskID] | None = None

    def advance(self, count: int, /) -> None:
        self._bytes += count
        self._waits = ""
        self._show()

    def expect(self, count: int, /) -> None:
        self._total = count

    def add_lines(self, count: int, /) -> None:
        self._lines += count
        self._show()

    def wait(self, what: str, /) -> None:
        self._waits = what
        self._show()

    def finish(self) -> None:
        if not self._then:
            self._stack.close()
        elif self._shown is not None:
            bar, task = self._shown
            bar.update(task, description=self._then, total=None)

    def _show(self) -> None:
        now = time.monotonic()
        self._begin = now if self._begin is None else self._begin
        if self._shown is None and now - self._begin < _PATIENCE_SECONDS and not self._waits:
            return
        with self._one_at_a_time:  # workers also report that they wait
            total = self._total if 0 < self._bytes <= self._total else None
            first = self._shown is None
            bar, task = self._shown = self._shown or self._open()
            words = f"{_READING} ({self._waits})" if self._waits else _READING
            lines = f"{self._lines:,} lines" if self._lines else ""
            bar.update(
                task, description=words, completed=self._bytes, total=total, lines=lines,
                refresh=first or bool(self._waits),
            )  # fmt: skip

    def _open(self) -> tuple[Bar, TaskID]:
        from rich import progress

        bar = self._stack.enter_context(
            _bar(
                progress.SpinnerColumn(),
                progress.TextColumn("{task.description}"),
                progress.BarColumn(_BAR_WIDTH),
                progress.DownloadColumn(),
                progress.TextColumn("{task.fields[lines]}"),
                progress.TransferSpeedColumn(),
                progress.TimeRemainingColumn(compact=True),
            )
        )
        return bar, bar.add_task(_READING, total=None, lines="")


def _is_seen(wanted: bool) -> bool:
    return wanted and sys.stderr.isatty()


def _bar(*columns: ProgressColumn) -> Bar:
    from rich.console import Console
    from rich.progress import Progress as Bar

    return Bar(*columns, console=Console(stderr=True), transient=True)
