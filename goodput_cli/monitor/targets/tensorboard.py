"""`tensorboard:DIR`: the tags of ml-goodput-measurement in event files under DIR/goodput, for its existing dashboards.

Each step's deviation is written once. A killed monitor may have written points that are not in its state: the next one
reads them from the last event file.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.errors import GoodputError
from goodput_cli.events import event_files
from goodput_cli.monitor.snapshot import Snapshot, SnapshotAmount, Update, badput_of, badput_of_window
from goodput_cli.monitor.targets.base import (
    Address,
    MonitorContext,
    TargetFailedError,
    keep_state,
    kept_number,
    load_state,
)
from goodput_cli.sources.blocks import MONITOR_STATE
from goodput_cli.vocabulary.text import seconds_text

FOLDER = "goodput"
_STEP_DEVIATION = "step_deviation"

Scalar = tuple[str, float, int, str]
"""Tag, value, global step, display name ("": the tag)."""


class TensorBoard:
    """A separate event file per monitor process. A second monitor of the folder is rejected."""

    def __init__(self, address: Address, place: MonitorContext) -> None:
        self._totals = address.switch("totals")
        self._has_windows = address.switch("windows")
        self._badput = address.switch("badput")
        self._step_deviation = address.switch("step_deviation")
        self._folder = Path(address.place) / FOLDER
        place.check(self._folder / MONITOR_STATE)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._lock = _lock(self._folder, address.text)
        state = load_state(self._folder / MONITOR_STATE)
        self._last_step = max(kept_number(state, "step", -1), _last_step(self._folder / str(state.get("file", ""))))
        now = time.time_ns()
        life = f"{now // 10**9}.{socket.gethostname()}.{os.getpid()}.{now % 10**9:09d}"
        self._file = self._folder / f"events.out.tfevents.{life}"
        self._stream = self._file.open("xb", buffering=1 << 16)
        self._stream.write(event_files.framed(event_files.opening(now / 1e9)))
        self._remember()

    def publish(self, update: Update, final: bool) -> None:  # noqa: ARG002 - each update is a point
        """Publish (see `Target`)."""
        if len(update) > 1:
            raise TargetFailedError(
                f"accepts one job, but {len(update)} are followed; choose one with --job-name and use a separate "
                "monitor and "
                "folder for each job",
                lasting=True,
            )
        snapshot = update[0]
        now = time.time()
        last = self._last_step
        try:
            for tag, value, step, shown in self._scalars(snapshot):
                self._stream.write(event_files.framed(event_files.scalar_event(now, step, tag, value, shown)))
                last = max(last, step) if tag == _STEP_DEVIATION else last
            self._stream.flush()
            os.fsync(self._stream.fileno())  # some mounts of buckets show no data before
            self._last_step = last
            self._remember()
        except OSError as error:
            self._last_step = last  # the points are in the file, or will be
            raise TargetFailedError(f"{self._folder}: {error.strerror or error}") from error

    def close(self) -> None:
        """Close (see `Target`)."""
        with suppress(OSError):  # unwritten points have been reported
            self._stream.close()
        os.close(self._lock)

    def _remember(self) -> None:
        keep_state(self._folder / MONITOR_STATE, {"step": self._last_step, "file": self._file.name})

    def _scalars(self, snapshot: Snapshot) -> Iterator[Scalar]:
        analysis = snapshot.analysis
        step = analysis.job.last_step or 0
        if snapshot.whole and self._totals:
            goodput = analysis.goodput_percent
            if goodput is not None:
                yield "goodput/goodput", goodput, step, "goodput"
            if self._badput:
                yield from (_badput("badput", amount, step) for amount in badput_of(analysis))
            seconds = (analysis.window.end_ns - analysis.job.start_ns) // 10**9
            if goodput is not None:
                yield "goodput_by_time/goodput", goodput, seconds, ""
        if self._has_windows:
            yield from self._windows(analysis, step)
        if self._step_deviation:
            yield from self._deviations(snapshot)

    def _windows(self, analysis: Analysis, step: int) -> Iterator[Scalar]:
        for row in () if analysis.rolling is None else analysis.rolling.rows():
            length = seconds_text(row.window_ns)
            if row.percent is None:
                continue
            yield f"goodput_window/{length}", row.percent, step, ""
            if self._badput:
                amounts = badput_of_window(row, analysis)
                yield from ((*_badput(f"badput_window/{length}", amount, step)[:3], "") for amount in amounts)

    def _deviations(self, snapshot: Snapshot) -> Iterator[Scalar]:
        """Return the deviations of the steps after the last published one, each once."""
        steps, away = snapshot.deviations
        new = np.flatnonzero(steps > self._last_step)
        numbers, first = np.unique(steps[new], return_index=True)
        for number, seconds in zip(numbers.tolist(), away[new[first]].tolist(), strict=True):
            yield _STEP_DEVIATION, seconds, number, ""


def _badput(prefix: str, amount: SnapshotAmount, step: int) -> Scalar:
    if amount.label is None:
        return f"{prefix}/{amount.category}", amount.percent, step, amount.category
    label = amount.label.lower()
    return f"{prefix}/{amount.category}/{label}", amount.percent, step, label


def _lock(folder: Path, shown: str) -> int:
    descriptor = os.open(folder / ".goodput-monitor.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise GoodputError(
            f"{shown}: another monitor writes to this folder", tip="stop it or use another folder"
        ) from None
    return descriptor


def _last_step(path: Path) -> int:
    """Return the last step with a deviation in an event file; -1 without one."""
    last = -1
    try:
        content = path.read_bytes() if path.is_file() else b""
        for frame, _ in event_files.frames(content):
            event = None if frame.data is None else event_files.parse(frame.data)
            if event is not None and any(scalar.tag == _STEP_DEVIATION for scalar in event.scalars):
                last = max(last, event.step)
    except (OSError, event_files.BrokenFrameError):  # unreadable points are written again
        pass
    return last
