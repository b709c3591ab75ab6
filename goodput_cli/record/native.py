"""The native format: facts that no other library writes, one per line. This table is the format's only declaration.

A line has `job_name`, `goodput_event` (one of `EVENTS`), `goodput_time` (epoch seconds, a number) and the keys of its
event. `goodput_time` is a number because ml-goodput-measurement takes the first key that contains "time" for the time
of a line.
"""

from __future__ import annotations

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
