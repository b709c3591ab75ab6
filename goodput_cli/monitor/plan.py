"""What a monitor does and when: the options of `goodput monitor`. No NumPy here, as `--help` reads this."""

from __future__ import annotations

from dataclasses import dataclass

from goodput_cli.analysis.threshold import Expression
from goodput_cli.vocabulary.option import bounded, option, read_length

MONITOR = "Monitor"
"""The heading in `--help`."""
_seconds = bounded(float, "is not a length of time; write seconds, or one such as 90s or 6h", least=0, most=1e9, unit=1)
_interval = bounded(
    float, "is not an interval; write seconds from 0.1 to 86400, such as 5", least=0.1, most=86_400, unit=1
)


def _window(value: str | int) -> int:
    return value if isinstance(value, int) else read_length(value)


_count = bounded(int, "is not a number of updates; write a whole number from 1", least=1, most=1e9)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How often to publish, and when to end. Times in s."""

    interval: float = option(60.0, MONITOR, "Time between updates.  [default: 60]", metavar="SECONDS", read=_interval)
    """Between two updates."""
    windows: tuple[int, ...] = option(
        (), MONITOR, "Also of the last W, such as 1d; repeatable.", names=("--window",), metavar="W", read=_window
    )
    """Lengths of rolling windows, ns."""
    settle: float = option(
        60.0, MONITOR, "End so long after a clean end.  [default: 60]", metavar="TIME", read=_seconds
    )
    """After a believed clean end, without a line."""
    idle_end: float | None = option(
        None, MONITOR, "End after so long without a line.  [default: never]", metavar="TIME", read=_seconds
    )
    """After so long without a line, whatever the job did; None: never."""
    forever: bool = option(False, MONITOR, "Do not end with the job.")
    """Not after a clean end either."""
    keep_ended: float = option(
        3600.0, MONITOR, "Beside others, an ended job stays.  [default: 3600]", metavar="TIME", read=_seconds
    )
    """How long a job that has ended stays, with its last figures, beside others."""
    updates: int | None = option(None, MONITOR, "End after N updates.", metavar="N", read=_count)
    """After so many updates."""
    wait: float = option(600.0, MONITOR, "For the first event.  [default: 600]", metavar="TIME", read=_seconds)
    """For the first events."""
    grace: float = option(10.0, MONITOR, "For the last update.  [default: 10]", metavar="TIME", read=_seconds)
    """For the last update."""
    whole_job: bool = option(False, MONITOR, "Publish totals only of a log that begins with the job.")
    """Publish nothing of the whole job where the log begins after the job did."""
    ideal_step_time: float | None = option(
        None, MONITOR, "For step deviations.  [default: of the log]", metavar="SECONDS", read=_seconds
    )
    """None, or 0: that of the log."""
    thresholds: tuple[Expression, ...] = ()
    """Judged at each update."""
