"""Lines of a log: the events and keys of the native format, their serialization, and their importance if not all can be
kept.

The native format has facts that no other library writes, one per line. This table is its only declaration. A line has
`job_name`, `goodput_event` (one of `EVENTS`), `goodput_time` (epoch seconds, a number) and the keys of its event.
`goodput_time` is a number because ml-goodput-measurement takes the first key that contains "time" for the time of a
line.
"""

from __future__ import annotations

import math
from json import JSONEncoder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

JOB_NAME, EVENT, TIME, RUN_ID, STEP, RANK, REASON = (
    "job_name",
    "goodput_event",
    "goodput_time",
    "run_id",
    "step",
    "rank",
    "reason",
)
PHASES, STEPS, FIRST_STEP, STEP_SECONDS, PHASE_PREFIX = (
    "phases",
    "steps",
    "first_step",
    "step_seconds",
    "phase_",
)
"""Keys of the event `phases`: its number of steps, up to `step`; the first step of its process; the time of the steps
without time that has a separate category; and the prefix of the key of each phase."""
WORK = ("tokens", "samples", "flops")
"""The amount of work of the whole job in these steps."""
RESTARTED_BY = "restarted_by"
"""Who restarted the job, if a person did: `hand`."""
REASON_CHARACTERS = 200
"""Maximum length of a reason. It is a class name or the name of a signal, never a message, because messages contain
paths and secrets."""


class NativeEvent:
    """An event of the format. keys: optional keys in addition to those of every line. means: the equivalent event of
    the resiliency library, or "" if it has none. about: its meaning otherwise."""

    __slots__ = ("about", "keys", "means")

    def __init__(self, keys: tuple[str, ...], about: str, means: str = "") -> None:
        self.keys = keys
        self.about = about
        self.means = means


EVENTS: dict[str, NativeEvent] = {
    "attempt": NativeEvent(
        (RUN_ID, RANK, "world_size", "accelerators", "host", "pid", "writer"),
        "identifies the writing process; it does not start an attempt",
    ),
    "heartbeat": NativeEvent((RUN_ID, STEP, RANK), "the process is alive; no progress"),
    "scheduled": NativeEvent((RANK,), "the job waits for machines", "user_scheduled"),
    "started": NativeEvent((RANK, RESTARTED_BY), "a process of the job has started", "job_started"),
    "step_finished": NativeEvent((STEP, RANK), "a step has ended", "step_finished"),
    "checkpoint_saved": NativeEvent((STEP, RANK), "a checkpoint is complete", "checkpoint_saved"),
    "checkpoint_loaded": NativeEvent((STEP, RANK), "a restore has ended", "checkpoint_loaded"),
    "preemption_notice": NativeEvent(
        ("signal", REASON, RANK), "the machine will be preempted; the attempt ends as preempted"
    ),
    "terminated": NativeEvent((REASON, RANK), "the process has ended without a cause", "job_terminated"),
    "crashed": NativeEvent((REASON, STEP, RANK), "an exception has ended the process", "job_crashed"),
    "stopped": NativeEvent((REASON, RANK), "a planned stop", "user_terminated"),
    "finished": NativeEvent((RANK,), "a clean end", "job_finished"),
    "metrics": NativeEvent((RUN_ID, STEP), "named numbers of a step; they do not change any category"),
    PHASES: NativeEvent(
        (RUN_ID, STEP, STEPS, FIRST_STEP, RANK, "host", STEP_SECONDS, *WORK),
        "step phases of a rank as `phase_NAME` (seconds); they do not change any category",
    ),
    "dropped": NativeEvent(
        (RUN_ID, "lines", "steps", "from", "to", "sink", REASON), "lines that were not delivered to this sink"
    ),
    "second_writer": NativeEvent((RUN_ID, "pid", "beside"), "another process (`beside`) also writes to this file"),
    "clock_step": NativeEvent((RUN_ID, "seconds", RANK), "the machine's clock was moved forward by `seconds`"),
}
"""Every event, by its name in `goodput_event`."""

BY_RESILIENCY_NAME = {event.means: name for name, event in EVENTS.items() if event.means}
"""The native name of an event of the resiliency library."""


def native_name(name: str) -> str | None:
    """Return the event of this format for `name`, which may be the resiliency library's name; None for other names."""
    return name if name in EVENTS else BY_RESILIENCY_NAME.get(name)


# Lines with the smallest kind are dropped first when a queue is full.
SPARE, LOADING, STEP_LINE, PHASE_LINE, VITAL = range(5)
"""SPARE: heartbeats and metrics. LOADING: data loading. PHASE_LINE: phases. VITAL: starts, ends, checkpoints."""

MOST_BYTES = 64 << 10
"""A longer line is not written."""
LOADING_BEGINS = "data_loading_start_time"
LOADING_START = b'"%s"' % LOADING_BEGINS.encode()
BETWEEN_STEPS = "between_steps"
"""The key of data loading between two steps, which training waits for."""
SECOND = 10**6
"""Microseconds."""

_quote = JSONEncoder(ensure_ascii=True, allow_nan=False).encode


def quote(text: str) -> bytes:
    """Return a JSON string in ASCII; invalid text (half of a surrogate pair) becomes U+FFFD."""
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _quote(text).encode()


def epoch_seconds(us: int) -> bytes:
    """Return epoch seconds with six decimals, from microseconds: unlike `repr(float)`, every language reads the same
    value."""
    return b"%d.%06d" % divmod(us, SECOND)


def value(given: object) -> bytes:
    """Return a JSON value; bytes are JSON already. Raises ValueError for a number that is not finite."""
    if isinstance(given, bytes):
        return given
    if isinstance(given, str):
        return quote(given)
    if given is None or isinstance(given, bool | int):
        return _quote(given).encode()
    number = float(given)  # type: ignore[arg-type]  # what is no number raises TypeError
    if not math.isfinite(number):
        raise ValueError("not a finite number")
    return _quote(number).encode()


class LineSerializer:
    """Serializer of the lines of one job. Keys keep their order after `job_name`.

    run_id: of the attempt, in each line if several processes write one file.
    """

    def __init__(self, job_name: str, run_id: str = "") -> None:
        self._head = b'{"%s": %s' % (JOB_NAME.encode(), quote(job_name))
        self._run_id = run_id
        if run_id:
            self._head += b', "%s": %s' % (RUN_ID.encode(), quote(run_id))
        self._step = self._head + b', "step_count": '

    def step(self, number: int, us: int) -> bytes:
        """Return the line of the start of a step, the most frequent line of a job."""
        return b'%s%d, "step_start_time": %d.%06d}\n' % (self._step, number, us // SECOND, us % SECOND)

    def fact(self, key: str, us: int) -> bytes:
        """Return a line with only a time."""
        return b'%s, "%s": %s}\n' % (self._head, key.encode(), epoch_seconds(us))

    def record(self, fields: Mapping[str, object]) -> bytes:
        """Return a line with any keys; a value may be bytes, which are JSON already. Raises TypeError and ValueError
        for values that JSON cannot represent."""
        parts = [b", %s: %s" % (quote(key), value(given)) for key, given in fields.items()]
        return b"%s%s}\n" % (self._head, b"".join(parts))

    def native(self, event: str, us: int, fields: Mapping[str, object]) -> bytes:
        """Return a line of the native format, without fields that are None."""
        said = RUN_ID if self._run_id else None
        known = {key: given for key, given in fields.items() if given is not None and key != said}
        return self.record({EVENT: event, TIME: epoch_seconds(us), **known})
