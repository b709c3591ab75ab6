"""One attempt of the job in one process: its lines, and its end."""

from __future__ import annotations

import os

from . import ends
from .clock import Heartbeat, microseconds
from .lines import (
    BETWEEN_STEPS,
    LOADING,
    LOADING_BEGINS,
    PHASE_LINE,
    REASON_CHARACTERS,
    SPARE,
    STEP_LINE,
    VITAL,
    epoch_seconds,
)
from .names import find_accelerators, host_name
from .sinks.google import WRITER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from .monitors import MonitorProcess
    from .writer import Writer

_FORGET_US = 600 * 10**6
"""A signal or a notice did not end the attempt if steps still begin this long after it."""


class RecordedAttempt:
    """An attempt. It begins with its lines `attempt` and `job_start_time`, at a given time (µs) or now.

    side: True for another process than the one that writes the steps. sigterm: the meaning of SIGTERM: "terminated" or
    "preempted". failed_step: the step that raised an exception.
    """

    def __init__(self, writer: Writer, rank: int, world_size: int | None, *, sigterm: str, at: object) -> None:
        self.writer = writer
        self.side = rank != 0
        self.ended = False
        self.between_steps = False
        """True between two steps, if the program marks the ends of steps."""
        self.failed_step: object = None
        self._rank = rank
        self._sigterm = sigterm
        self._heart: Heartbeat | None = None
        self._monitors: list[MonitorProcess] = []
        self._last_step: int | None = None
        self._step_us = 0
        self._written = 0
        self._going: tuple[str, int] | None = None
        self._thread_failure: type[BaseException] | None = None
        us, accelerators = self.time_us(at), find_accelerators()
        who: dict[str, Any] = {
            "rank": rank,
            "world_size": world_size,
            **({} if accelerators is None else {"accelerators": accelerators}),
            "host": host_name(),
            "pid": os.getpid(),
            "writer": WRITER,
        }
        self.native("attempt", us, run_id=writer.run_id, **who)
        if self.side:
            self.native("started", us, rank=rank)
        else:
            writer.write(writer.lines.fact("job_start_time", us), VITAL, us)

    def watch(self, signals: Iterable[str], excepthook: bool, at_exit: bool, heartbeat: float) -> None:
        """Record the end of the process from now on, and write heartbeats after `heartbeat` seconds without a line."""
        ends.watch(self, signals, excepthook, at_exit)
        if heartbeat > 0:
            try:
                self._heart = Heartbeat(heartbeat, lambda: self._written, self._beat)
            except RuntimeError as error:
                self.warn(f"heartbeats are not recorded: {error}")

    def close(self) -> None:
        """Deliver all waiting lines."""
        if self._heart is not None:
            self._heart.stop()
        ends.unwatch(self)
        self.writer.close()
        while self._monitors:
            self._monitors.pop().stop()

    def start_monitor(self, arguments: Sequence[str], windows: Sequence[object], options: Sequence[str]) -> bool:
        """Start a monitor of this attempt's file, which runs until `close`. Return True if it was started."""
        path = self.writer.path
        if self.side:
            return False
        if path is None:
            self.warn("no monitor is started: it needs a local file; add one to `to`")
            return False
        from .monitors import MonitorProcess, window_arguments

        given = ["--job-name", self.writer.job_name, *arguments, *window_arguments(windows), *options]
        monitor = MonitorProcess(path, given, self.warn)
        self._monitors.append(monitor)
        return monitor.runs

    def warn(self, sentence: str) -> None:
        """Print a warning for the user of the program, once."""
        self.writer.warn_once(sentence)

    # Lines.

    def time_us(self, at: object) -> int:
        """Return the given time, otherwise now."""
        if at is None:
            return self.writer.now_us()
        us = microseconds(at)
        if us is None:
            self.warn(f"{type(at).__name__} is not a time; the time of the call is recorded")
            return self.writer.now_us()
        return us

    def whole(self, number: Any) -> int | None:
        """Return a step or a count as an int; None, with a warning, for other values."""
        try:
            return int(number)
        except Exception:
            self.warn(f"{type(number).__name__} is not a whole number; such events are not recorded")
            return None

    def step(self, number: Any, at: object) -> None:
        """Record the begin of a step."""
        whole = number if type(number) is int else self.whole(number)
        if whole is None:
            return
        writer = self.writer
        us = writer.now_us() if at is None else self.time_us(at)
        self._last_step, self._step_us, self.ended, self.between_steps = whole, us, False, False
        if not self.side:
            self._written += 1
            writer.write(writer.lines.step(whole, us), STEP_LINE, us)

    def record(self, fields: dict[str, object], kind: int, us: int) -> None:
        """Write a line of another library's format; only the process that writes the steps does."""
        if not self.side:
            self._written += 1
            self.writer.write(self.writer.lines.record(fields), kind, us)

    def edge(self, key: str, label: tuple[str, str] | None, kind: int, at: object) -> None:
        """Record the begin or the end of a phase."""
        us = self.time_us(at)
        fields: dict[str, object] = {} if label is None else {label[0]: label[1]}
        fields[key] = epoch_seconds(us)
        if kind == LOADING and self.between_steps and key == LOADING_BEGINS:
            fields[BETWEEN_STEPS] = True
        self.record(fields, kind, us)

    def native(self, event: str, us: int, kind: int = VITAL, **fields: object) -> None:
        """Write a line of the native format."""
        self._written += 1
        self.writer.write(self.writer.lines.native(event, us, fields), kind, us)

    def event(self, event: str, at: object, **fields: object) -> None:
        """Record an event of the native format, with the process that it comes from."""
        rank = self._rank if self.side else None
        self.native(event, self.time_us(at), VITAL, **fields, rank=rank)

    def of_step(self, event: str, step: Any, at: object) -> None:
        """Record an event of a step."""
        number = self.whole(step)
        if number is not None and not self.side:
            self.event(event, at, step=number)

    def slices(self, at: object, given: dict[str, Any]) -> None:
        """Record slice counts, by their keys; none of them if one is not a number."""
        us = self.time_us(at)
        counts: dict[str, object] = {name: self.whole(count) for name, count in given.items()}
        if None not in counts.values():
            self.record({**counts, "elastic_slice_counts_timestamp": epoch_seconds(us)}, PHASE_LINE, us)

    def metrics(self, step: Any, at: object, given: dict[str, Any]) -> None:
        """Record metrics of a step, by name."""
        number = self.whole(step)
        numbers = {name: value for name, value in given.items() if self._is_finite(name, value)}
        if number is not None and not self.side:
            us = self.time_us(at)
            self.native("metrics", us, SPARE, run_id=self.writer.run_id, step=number, **numbers)

    def _is_finite(self, name: str, number: Any) -> bool:
        try:
            if number - number == 0:
                return True
        except Exception:
            pass
        self.warn(f"metric {name!r} is not a finite number and is not recorded")
        return False

    def _beat(self) -> None:
        rank = self._rank if self.side else None
        now = self.writer.now_us()
        self.native("heartbeat", now, SPARE, run_id=self.writer.run_id, step=self._last_step, rank=rank)

    # End of the attempt. `ends` calls signalled, end_badly, failed_in_thread and left.

    def end(self, at: object) -> None:
        """Record the end: the program is done, or it exits because of a signal or a notice."""
        if self.ended:
            return
        self.ended = True
        going = self._going_now()
        if going is not None:
            self.event("terminated", at, reason=_cut(going))
        elif not self.side:
            us = self.time_us(at)
            self.writer.write(self.writer.lines.fact("job_end_time", us), VITAL, us)

    def end_badly(self, kind: type[BaseException], at: object = None) -> None:
        """Record the end by an exception."""
        if self.ended:
            return
        self.ended = True
        going = self._going_now()
        if going is not None or issubclass(kind, KeyboardInterrupt | SystemExit):
            self.event("terminated", at, reason=_cut(going or kind.__name__))
        else:
            step = None if self.failed_step is None else self.whole(self.failed_step)
            self.event("crashed", at, reason=_cut(kind.__name__), step=step)

    def stopped(self, reason: str, at: object) -> None:
        """Record a planned stop."""
        self.event("stopped", at, reason=_cut(reason))
        self.ended = True

    def notice(self, reason: str, at: object, signal: str | None = None) -> None:
        """Record a notice that the machine will be reclaimed."""
        us = self.time_us(at)
        self._going = (signal or "preempted", us)
        rank = self._rank if self.side else None
        self.native("preemption_notice", us, signal=signal, reason=_cut(reason), rank=rank)

    def signalled(self, name: str, last: bool) -> None:
        """Record a signal; `last`: the process ends by it."""
        if self._sigterm == "preempted" and name == "SIGTERM":
            self.notice("", None, name)
        self._going = (name, self.writer.now_us())
        if last:
            self.left()
            self.close()

    def failed_in_thread(self, kind: type[BaseException]) -> None:
        """Remember that another thread failed: it is the reason if the process then ends without one."""
        self._thread_failure = kind

    def left(self) -> None:
        """Record the end of the process if nothing else recorded it."""
        if self._thread_failure is not None and self._going_now() is None:
            self.end_badly(self._thread_failure)
        elif not self.ended:
            self.ended = True
            self.event("terminated", None, reason=_cut(self._going_now() or "exit"))

    def _going_now(self) -> str | None:
        """Return the signal or notice that explains the end; None if there was none, or it was too long ago."""
        if self._going is None or self._step_us - self._going[1] > _FORGET_US:
            return None
        return self._going[0]


def _cut(reason: str) -> str | None:
    return str(reason)[:REASON_CHARACTERS] or None
