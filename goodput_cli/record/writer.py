"""Delivery of lines to sinks, shared by all recorders. It never raises and never waits.

Everything of an attempt that must be correct at the end of the process, and in a fork of it, is here.
"""

from __future__ import annotations

import atexit
import os
import select
import sys
import time
from contextlib import suppress

from .clock import Clock
from .lines import MOST_BYTES, VITAL, LineSerializer, epoch_seconds
from .names import shown
from .queues import Worker
from .sinks.files import FileSink, is_file
from .sinks.targets import open_target, open_targets, split, with_queue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TextIO

    from .queues import Drops
    from .sinks.targets import Sink, Target, Targets

TOO_LONG = "line too long"
_MOST_SAID = 1000
"""Maximum length of a message: less than a pipe with room accepts at once."""


def print_to_stderr(sentence: str) -> None:
    """Print a message for the user of the program; drop it if that would block."""
    with suppress(OSError, ValueError, AttributeError):  # it is closed or missing
        if _has_room(sys.stderr):
            print(f"goodput-record: {shown(sentence)[:_MOST_SAID]}", file=sys.stderr, flush=True)


def _has_room(stream: TextIO) -> bool:
    """Return True if a short text can be written at once: a pipe without an active reader fills up."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError, AttributeError):  # a custom stream of the program, as in notebooks
        return True
    if is_file(descriptor) or not hasattr(select, "poll"):
        return True
    room = select.poll()
    room.register(descriptor, select.POLLOUT)
    return bool(room.poll(0))


class Writer:
    """Distributor of lines to the sinks of one attempt.

    also: targets in addition to those of `to`, or to the default. clock: returns ns since 1970 UTC. grace: seconds that
    all sinks together get at the end. batch_lines, latency, log_id: see `Context`, which this is for every sink; the
    others: see `Recorder`.
    """

    def __init__(
        self,
        job_name: str,
        to: Targets,
        *,
        also: Sequence[Target] = (),
        run_id: str | None = None,
        rank: int = 0,
        grace: float = 5.0,
        inline: bool | None = None,
        fsync: str = "ends",
        queue_lines: int = 10_000,
        queue_bytes: int = 8 << 20,
        batch_lines: int = 100,
        latency: float = 2.0,
        log_id: str = "",
        clock: Callable[[], int] | None = None,
        warn: Callable[[str], None] = print_to_stderr,
    ) -> None:
        self.job_name = job_name
        self.run_id = run_id or os.urandom(6).hex()
        self.lines = LineSerializer(job_name)
        self.clock = clock or Clock()
        self.rank = rank
        self._own_clock = self.clock if isinstance(self.clock, Clock) else None
        self.grace = grace
        self.inline = inline
        self.fsync = fsync
        self.queue_lines = queue_lines
        self.queue_bytes = queue_bytes
        self.batch_lines = batch_lines
        self.latency = latency
        self.log_id = log_id
        self._warned: set[str] = set()
        self.warn = warn
        self._sinks: tuple[Sink, ...] = (
            *open_targets(split(to), self),
            *(open_target(target, self) for target in also),
        )
        for sink in self._sinks:
            if isinstance(sink, FileSink) and inline is None:
                sink.slow = self._add_queue
        self.closed = False
        self.before_close: Callable[[], None] | None = None
        """Called once, before the last lines can be written."""
        _live.add(self)

    @property
    def path(self) -> str | None:
        """Return the path of the first file that is written; None without one."""
        files = [sink.delivery if isinstance(sink, Worker) else sink for sink in self._sinks]
        return next((sink.path for sink in files if isinstance(sink, FileSink) and sink.has_path), None)

    def now_us(self) -> int:
        """Return the current timestamp (µs), after recording whether the clock was set."""
        us = (self.clock() + 500) // 1000
        if self._own_clock is not None and self._own_clock.stepped:
            step_ns = self._own_clock.take_step()
            fields = {"run_id": self.run_id, "seconds": step_ns / 1e9, "rank": self.rank or None}
            self.write(self.lines.native("clock_step", us, fields), VITAL, us)
        return us

    def write(self, line: bytes, kind: int, us: int) -> None:
        """Pass a line with its kind and time (µs) to all sinks."""
        if len(line) > MOST_BYTES:
            for sink in self._sinks:
                sink.lost(kind, us, TOO_LONG)
            self.warn_once(f"a line of more than {MOST_BYTES} bytes is not written")
            return
        for sink in self._sinks:
            sink.write(line, kind, us)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all sinks have all earlier lines; return False if they do not within `timeout` (None: grace)."""
        deadline = time.monotonic() + (self.grace if timeout is None else timeout)
        waiting = [sink for sink in self._sinks if not sink.flush(deadline)]
        return not waiting

    def close(self, grace: float | None = None) -> None:
        """Deliver as much as possible in time, and end. The remaining lines are reported in the first file."""
        last, self.before_close = self.before_close, None
        if last is not None:
            last()
        sinks, self._sinks, self.closed = self._sinks, (), True
        deadline = time.monotonic() + (self.grace if grace is None else grace)
        files = [sink for sink in sinks if isinstance(sink, FileSink)]
        waiting = [sink for sink in sinks if isinstance(sink, Worker)]
        for sink in waiting:  # all begin to deliver, then each is waited for
            sink.hurry()
        for sink in waiting:
            drops = sink.close(deadline)
            if drops.lines and files:
                files[0].write(self.dropped_line(drops, sink.name), VITAL, drops.last)
            elif drops.lines:
                self.warn(f"{sink.name}: {drops.lines} lines were not delivered ({drops.reason})")
        for file in files:
            drops = file.close(deadline)
            if drops.lines:
                self.warn(f"{file.path}: {drops.lines} lines were lost ({drops.reason})")
        _live.discard(self)

    def silence(self) -> None:
        """Forget all sinks without closing them: they belong to the process from which this one was forked."""
        self._sinks, self.closed, self.before_close = (), True, None

    def warn_once(self, sentence: str) -> None:
        """Print a message the first time."""
        if sentence not in self._warned and len(self._warned) < 100:
            self._warned.add(sentence)
            self.warn(sentence)

    def dropped_line(self, drops: Drops, sink: str) -> bytes:
        """Return the line that reports the lines that a sink did not get."""
        fields = {
            "run_id": self.run_id,
            "lines": drops.lines,
            "steps": drops.steps,
            "from": epoch_seconds(drops.first),
            "to": epoch_seconds(drops.last),
            "sink": sink,
            "reason": drops.reason,
        }
        return self.lines.native("dropped", (self.clock() + 500) // 1000, fields)

    def second_writer_line(self, beside: int) -> bytes:
        """Return the line that reports another process in the same file; each later line contains its process."""
        self.lines = LineSerializer(self.job_name, self.run_id)
        fields = {"pid": os.getpid(), "beside": beside}
        return self.lines.native("second_writer", (self.clock() + 500) // 1000, fields)

    def _add_queue(self, slow: FileSink) -> None:
        queued = with_queue(slow, self)
        self._sinks = tuple(queued if sink is slow else sink for sink in self._sinks)


_live: set[Writer] = set()
"""Writers that are not closed. They are kept alive until then, because waiting lines must not be lost with the last
reference."""


def path_of(job_name: str) -> str | None:
    """Return the file that a recorder of this process writes for the job; None without one."""
    return next((writer.path for writer in list(_live) if writer.job_name == job_name and writer.path), None)


def close_all() -> None:
    """Deliver all waiting lines of all recorders."""
    for writer in list(_live):
        writer.close()


def _silence_all() -> None:
    for writer in list(_live):
        writer.silence()
    _live.clear()


atexit.register(close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_silence_all)
