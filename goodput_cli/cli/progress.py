"""A progress line on standard error, while logs are read, for people at a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from goodput_cli.cli.interrupts import raise_again

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from goodput_cli.sources.base import Progress

_PATIENCE_SECONDS = 0.4
"""What is read sooner needs no line: making one takes a while as well."""
_BAR_WIDTH = 16
_READING = "reading"
_UNITS = ("kB", "MB", "GB", "TB")
_HIGHEST = 999.5
"""From here on three digits are not enough."""


@contextmanager
def reading_progress(*, wanted: bool, then: str) -> Iterator[Progress | None]:
    """What to tell about reading; None where nobody would see it. The line is gone when all is done.

    then: what is done when everything has been read, in a word. Work begins here: Ctrl-C is raised from now on.
    """
    raise_again()
    if not wanted or not sys.stderr.isatty():
        yield None
        return
    with ExitStack() as stack:
        yield _Line(stack, then)


class _Line:
    """Bytes, lines, rate and the time that is left (see `Progress`); the line is there once reading takes long."""

    def __init__(self, stack: ExitStack, then: str) -> None:
        self._stack, self._then = stack, then
        self._begin = time.monotonic()
        self._bytes = self._lines = self._total = 0
        self._bar: Bar | None = None

    def advance(self, count: int, /) -> None:
        self._bytes += count
        self._show()

    def expect(self, count: int, /) -> None:
        self._total = count

    def add_lines(self, count: int, /) -> None:
        self._lines += count
        self._show()

    def finish(self) -> None:
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], description=self._then, total=None, rate="", left="")

    def _show(self) -> None:
        spent = time.monotonic() - self._begin
        if self._bar is None and spent < _PATIENCE_SECONDS:
            return
        first = self._bar is None
        bar = self._bar = self._bar or _bar(self._stack)
        rate = self._bytes / spent
        bar.update(
            bar.task_ids[0],
            description=_READING,
            completed=self._bytes,
            total=self._total if self._bytes <= self._total else None,
            amount=_amount(self._bytes, self._total),
            lines=f"{self._lines:,} lines",
            rate=f"{_size(rate)}/s",
            left=_left(self._total - self._bytes, rate),
            refresh=first,
        )


def _bar(stack: ExitStack) -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    texts = (TextColumn("{task.fields[" + name + "]}") for name in ("amount", "lines", "rate", "left"))
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(_BAR_WIDTH), *texts)
    bar = stack.enter_context(Progress(*columns, console=Console(stderr=True), transient=True))
    bar.add_task(_READING, total=None, amount="", lines="", rate="", left="")
    return bar


def _amount(done: int, total: int) -> str:
    return f"{_size(done)} of {_size(total)}" if total >= done > 0 else _size(done)


def _size(count: float) -> str:
    for unit in _UNITS:
        count /= 1000
        if count < _HIGHEST:
            return f"{count:.3g} {unit}"
    return f"{count:.0f} {_UNITS[-1]}"


def _left(missing: int, rate: float) -> str:
    """The time that reading will still take, where it is known how much there is."""
    if missing < 0 or not rate:
        return ""
    minutes, seconds = divmod(round(missing / rate), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d} left" if hours else f"{minutes}:{seconds:02d} left"
