"""Recording of one event, for launcher scripts: `goodput record TYPE`, and `python -m goodput_record TYPE` without
goodput-cli."""

from __future__ import annotations

import argparse
import sys

from .clock import microseconds
from .lines import BY_RESILIENCY_NAME, EVENTS, RANK, REASON, REASON_CHARACTERS, SPARE, STEP, VITAL, native_name
from .names import default_job_name
from .sinks.targets import check
from .writer import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_OF_A_RECORDER = frozenset(("attempt", "metrics", "phases", "dropped", "second_writer", "clock_step"))
TYPES = tuple(name for name in EVENTS if name not in _OF_A_RECORDER)
"""Events that can be recorded individually."""


def record_event(
    name: str,
    *,
    job_name: str | None = None,
    sinks: Sequence[str] = (),
    step: int | None = None,
    rank: int | None = None,
    reason: str = "",
    time: object = None,
    grace: float = 10.0,
) -> bool:
    """Write one line of the native format. Return True if every sink took it within `grace` seconds.

    name: one of `TYPES`, or the resiliency library's name. sinks: default as in `Recorder`. time: a datetime or epoch
    seconds; None: now. Raises ValueError for invalid arguments.
    """
    event = native_name(name)
    if event not in TYPES:
        raise ValueError(f"{name!r} is not an event; use one of {', '.join((*TYPES, *BY_RESILIENCY_NAME))}")
    given = {STEP: step, RANK: rank, REASON: reason[:REASON_CHARACTERS] or None}
    for key, value in given.items():
        if value is not None and key not in EVENTS[event].keys:
            raise ValueError(f"{event} does not take {key}")
    if step is None and event in ("step_finished", "checkpoint_saved", "checkpoint_loaded"):
        raise ValueError(f"{event} requires --step N")
    for sink in sinks:
        check(sink)
    us = None if time is None else microseconds(time)
    if time is not None and us is None:
        raise ValueError(f"invalid time {time!r}: use ISO 8601 or epoch seconds")
    lost: list[str] = []
    writer = Writer(job_name or default_job_name(), list(sinks) or None, grace=grace, warn=lost.append)
    us = writer.now_us() if us is None else us
    writer.write(writer.lines.native(event, us, given), SPARE if event == "heartbeat" else VITAL, us)
    delivered = writer.flush()
    writer.close()
    for sentence in lost:
        print(f"goodput record: {sentence}", file=sys.stderr)
    return delivered and not lost


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command of the small wheel; return its exit code: 0, or 1 if a sink did not take the line."""
    parser = argparse.ArgumentParser(
        prog="python -m goodput_record", description="Record one event of a training job, from its launcher script."
    )
    parser.add_argument("type", metavar="TYPE", help=f"one of {', '.join(TYPES)}, or the resiliency library's name")
    parser.add_argument("-j", "--job-name", help="default: detected by the recorder")
    parser.add_argument("--sink", action="append", default=[], help="file, folder, gs:// or cloud-logging:; repeatable")
    parser.add_argument("--step", type=int)
    parser.add_argument("--node-rank", type=int, help="rank of the process")
    parser.add_argument("--reason", default="", help="reason, such as the name of a signal")
    parser.add_argument("--time", type=read_time, help="time of the event, as ISO 8601 or epoch seconds; default: now")
    options = parser.parse_args(arguments)
    try:
        delivered = record_event(
            options.type,
            job_name=options.job_name,
            sinks=options.sink,
            step=options.step,
            rank=options.node_rank,
            reason=options.reason,
            time=options.time,
        )
    except ValueError as error:
        parser.error(str(error))
    return 0 if delivered else 1


def read_time(text: str) -> object:
    """Return ISO-8601 or epoch seconds in the form that `record_event` takes. Raises ValueError."""
    try:
        return float(text)
    except ValueError:
        from datetime import datetime

        return datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
