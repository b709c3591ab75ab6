"""What every sink is told about the attempt that writes to it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from ..queues import Drops, SayDropped

    class Sink(Protocol):
        """Takes lines in the thread of the program; no method raises.

        write: a line, its kind, and its time (µs). lost: a line that cannot be written at all. flush, close: until a
        deadline (`time.monotonic`); close returns what was lost and could not be said.
        """

        name: str

        def write(self, line: bytes, kind: int, us: int) -> None: ...

        def lost(self, kind: int, us: int, reason: str) -> None: ...

        def flush(self, deadline: float, /) -> bool: ...

        def close(self, deadline: float, /) -> Drops: ...


class Context:
    """The attempt: whose lines they are, and how much may wait.

    warn: takes sentences for the person who runs the program. inline: write files in the caller's thread (None: where
    the file system is local). batch_lines, latency: when Cloud Logging has company enough. log_id: its log, where the
    target names none; "" for `goodput_<job>`.
    """

    __slots__ = (
        "batch_lines",
        "fsync",
        "inline",
        "job_name",
        "latency",
        "log_id",
        "queue_bytes",
        "queue_lines",
        "rank",
        "run_id",
        "say_dropped",
        "say_second",
        "warn",
    )

    def __init__(
        self,
        job_name: str,
        run_id: str,
        rank: int,
        *,
        say_dropped: SayDropped,
        say_second: Callable[[int], bytes],
        warn: Callable[[str], None],
        inline: bool | None,
        fsync: str,
        queue_lines: int,
        queue_bytes: int,
        batch_lines: int = 100,
        latency: float = 2.0,
        log_id: str = "",
    ) -> None:
        self.job_name = job_name
        self.run_id = run_id
        self.rank = rank
        self.say_dropped = say_dropped
        self.say_second = say_second
        self.warn = warn
        self.inline = inline
        self.fsync = fsync
        self.queue_lines = queue_lines
        self.queue_bytes = queue_bytes
        self.batch_lines = batch_lines
        self.latency = latency
        self.log_id = log_id
