"""Lines on standard error for people at a terminal who wait: reading, jobs, another program. Gone when all is done."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import TYPE_CHECKING

from goodput_cli.cli.interrupts import raise_again, raise_what_was_lost

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import ProgressColumn, TaskID

    from goodput_cli.sources.base import Progress

_PATIENCE_SECONDS = 0.5
"""What is read sooner, from the first byte on, needs no line: making one takes a while as well."""
_BAR_WIDTH = 16
_READING = "reading"
_SHOWN_EVERY = 25


@contextmanager
def reading_progress(*, wanted: bool, then: str) -> Iterator[Progress | None]:
    """Bytes, lines, rate and the time that is left, once reading takes long; None where nobody would see it.

    then: what is done when everything has been read, in a word; empty where the line should go away. Work begins here:
    Ctrl-C is raised from now on, and at the end if it was lost.
    """
    raise_again()
    with ExitStack() as stack:
        yield _ReadingLine(stack, then) if _is_seen(wanted) else None
    raise_what_was_lost()


@contextmanager
def jobs_progress(*, wanted: bool) -> Iterator[Callable[[int, int], None] | None]:
    """What to call with how many jobs are done, and of how many; None where nobody would see it. The line begins with
    the first job: there is one line at a time."""
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
    """The time that passes while something else computes."""
    if not _is_seen(wanted):
        yield
        return
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    with _bar(SpinnerColumn(), TextColumn(what), TimeElapsedColumn()) as bar:
        bar.add_task(what, total=None)
        yield


class _ReadingLine:
    """A `Progress` that becomes a line once reading takes long."""

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
        with self._one_at_a_time:  # workers say when they wait
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
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            SpinnerColumn,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        bar = self._stack.enter_context(
            _bar(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(_BAR_WIDTH),
                DownloadColumn(),
                TextColumn("{task.fields[lines]}"),
                TransferSpeedColumn(),
                TimeRemainingColumn(compact=True),
            )
        )
        return bar, bar.add_task(_READING, total=None, lines="")


def _is_seen(wanted: bool) -> bool:
    return wanted and sys.stderr.isatty()


def _bar(*columns: ProgressColumn) -> Bar:
    from rich.console import Console
    from rich.progress import Progress as Bar

    return Bar(*columns, console=Console(stderr=True), transient=True)
