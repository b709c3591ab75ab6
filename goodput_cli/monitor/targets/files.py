"""Targets that are files: Prometheus text, replaced by renaming, and JSON lines, appended."""

from __future__ import annotations

import os
from pathlib import Path

from goodput_cli.errors import GoodputError, UsageError
from goodput_cli.monitor.snapshot import Update
from goodput_cli.monitor.targets.base import Address, MonitorContext, TargetFailedError
from goodput_cli.monitor.targets.http import health_text, only_job, update_text
from goodput_cli.sources.blocks import head_of, is_published
from goodput_cli.sources.files import is_written_by_goodput


class PrometheusFile:
    """`prom:FILE`, for a node exporter's textfile collector, which must never see a partial file."""

    def __init__(self, address: Address, place: MonitorContext) -> None:
        self._path, self._check = _path_of(address, place), place.check
        self._health = place.health

    def publish(self, update: Update, final: bool) -> None:  # noqa: ARG002 - every update replaces the last one
        """Publish (see `Target`)."""
        from goodput_cli.whole_file import write_whole

        text = update_text(update) + health_text(self._health, only_job(update))
        if self._path.exists() and not is_written_by_goodput(str(self._path)):
            self._check(self._path)
        try:
            write_whole(self._path, text, force=True)
        except GoodputError as error:
            raise TargetFailedError(str(error)) from error

    def close(self) -> None:
        """Close (see `Target`)."""


class JsonLinesTarget:
    """`json:FILE`: the output of `analyze --format json`, a line per update and job, with the last window of each
    length."""

    def __init__(self, address: Address, place: MonitorContext) -> None:
        self._path, self._check = _path_of(address, place), place.check

    def publish(self, update: Update, final: bool) -> None:  # noqa: ARG002 - every update is added
        """Publish (see `Target`)."""
        import orjson

        from goodput_cli.report.base import Page, load_renderer

        render = load_renderer("json")
        lines = b"".join(orjson.dumps(orjson.loads(render(one.analysis, Page()))) + b"\n" for one in update)
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            try:
                if os.fstat(descriptor).st_size and not is_published(head_of(descriptor)):
                    self._check(self._path)
                _append(descriptor, lines)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise TargetFailedError(f"{self._path}: {error.strerror or error}") from error

    def close(self) -> None:
        """Close (see `Target`)."""


def _append(descriptor: int, lines: bytes) -> None:
    """Append lines to a file; a partial line at its end, from a killed monitor, does not affect others."""
    size = os.fstat(descriptor).st_size
    torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
    text = b"\n" + lines if torn else lines
    if os.write(descriptor, text) != len(text):
        raise OSError("the line was truncated; the disk may be full")


def _path_of(address: Address, place: MonitorContext) -> Path:
    """Return the file of a target, which must not be one that the monitor reads, now or later. Our own file is not
    checked again; another one is checked again before it is overwritten."""
    path = Path(address.place)
    if path.is_dir():
        raise UsageError(f"{address.text}: is a folder", tip="use a file in it")
    if not path.parent.is_dir():
        raise UsageError(f"{address.text}: the folder {path.parent} does not exist", tip="create it first")
    place.check(path)
    return path
