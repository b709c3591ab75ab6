"""A progress line on standard error, while logs are read, for people at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from goodput_cli.sources.base import Progress


@contextmanager
def reading_progress(*, wanted: bool) -> Iterator[Progress | None]:
    """What to tell about bytes read; None where nobody would see it. The line is gone when reading is done."""
    if not wanted or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        DownloadColumn,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TransferSpeedColumn,
    )
    from rich.progress import (
        Progress as Bar,
    )

    columns = (SpinnerColumn(), TextColumn("reading"), DownloadColumn(), TransferSpeedColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        yield _Advance(bar)


class _Advance:
    """Passes bytes on to the line."""

    def __init__(self, bar: object) -> None:
        from rich.progress import Progress as Bar

        assert isinstance(bar, Bar)
        self._bar = bar
        self._task = bar.add_task("reading", total=None)

    def advance(self, count: int, /) -> None:
        """`count` more bytes have been read."""
        self._bar.advance(self._task, count)
