"""All claims of time except the training spans (accounting §3 to §5)."""

from __future__ import annotations

from collections.abc import Iterator

from .canvas import RANK, Canvas, Claim
from .events import NO_LIFE, Event
from .job import Job
from .life import Interval, Pairing, goes_on_loading, lost_end
from .training import Training

RECOVERY = "infrastructure_recovery_from_disruption"
CATEGORY = {
    "tpu_init": "tpu_initialization",
    "prep": "training_prep",
    "data": "data_loading_sync",
    "custom": "custom_badput_events",
    "restore": "unproductive_checkpoint_restore_time",
    "save": "unproductive_checkpoint_save_time",
    "elastic_down": "elastic_slice_down",
    "elastic_up": "elastic_scale_up",
    "elastic_reinit": "elastic_reinitialization",
}


def claims_outside_training(job: Job, training: Training) -> Iterator[Claim]:
    """Yield all claims except those of spans."""
    yield from training.claims
    for start, end in job.options.exclude:
        yield Claim(RANK["excluded"], start, end, "excluded")
    yield from queues(job)
    yield from downtimes(job, training)
    yield from unclaimed(job, training)
    yield from orbax(job)
    for interval in Pairing().run(job.attempts):
        yield from phase(job, training, interval)


def queues(job: Job) -> Iterator[Claim]:
    """Yield queues: from `user_scheduled` to the next start, or to T1, if no event of the job is in between."""
    for event in (event for event in job.events if event.kind == "scheduled"):
        later = next((one for one in job.events if id(one) not in job.strays and is_next_after(event, one)), None)
        runs_on = any(other.time <= event.time < other.end for other in job.events)
        if not runs_on and (later is None or later.kind == "start"):
            yield Claim(RANK["queued"], event.time, job.t1 if later is None else later.time, "queued")


def is_next_after(scheduled: Event, other: Event) -> bool:
    """Return True if `other` shows the job after `scheduled`. Chosen: at the same time, only a start does."""
    if other.kind in NO_LIFE:
        return False
    return other.time > scheduled.time or (other.time == scheduled.time and other.kind == "start")


def downtimes(job: Job, training: Training) -> Iterator[Claim]:
    """Yield recovery or `stopped` until the next attempt is up; a job that crashed last is down to T1."""
    for index in range(job.last):
        after, clean = job.attempts[index + 1], job.clean[index]
        if clean is not None:
            yield Claim(RANK["downtime"], clean.time, after.up, "stopped")
        elif index in training.undetermined:
            yield Claim(RANK["downtime"], after.begin, after.up, RECOVERY)
        else:
            yield Claim(RANK["downtime"], min(training.last_activity(job, index), after.begin), after.up, RECOVERY)
    crash = job.crash(job.last) if job.attempts else None
    if crash is not None:
        yield Claim(RANK["downtime"], crash, job.t1, RECOVERY)


def unclaimed(job: Job, training: Training) -> Iterator[Claim]:
    """Yield the unclaimed time after the last span (otherwise the start) of each attempt that another one follows.
    After a clean end, it begins at the first line that states the end."""
    for index in range(job.last):
        ends = [span.end for span in training.spans if span.attempt == index]
        ends += [last[index] for last in (training.wasted_end, training.credited_end) if index in last]
        start = max(ends) if ends else job.attempts[index].begin
        if job.clean[index] is not None:
            start = max(start, job.closing(index)[0].time)
        yield Claim(RANK["unclaimed"], start, job.next_begin(index), RECOVERY)


def orbax(job: Job) -> Iterator[Claim]:
    for event in job.events:
        if event.edge == "interval":
            yield Claim(RANK[event.kind], event.time, event.end, CATEGORY[event.kind])


def phase(job: Job, training: Training, interval: Interval) -> Iterator[Claim]:
    """Yield a phase of the recorder; of a data load only the part outside of steps, unless loading is blocking."""
    end = interval.end
    if end is None and interval.kind == "data" and goes_on_loading(interval, job.attempts):
        return
    if end is None:
        life, t1 = training.last_activity(job, interval.owner), job.t1 if interval.owner == job.last else None
        end = lost_end(interval, job.attempts[interval.owner], life, t1)
    if end is None or end <= interval.start:
        return
    name = CATEGORY[interval.kind] + (f":{interval.label}" if interval.kind == "custom" else "")
    aside = interval.kind == "data" and not job.options.blocking and not interval.begin.between_steps
    steps = training.in_flight if aside else []
    for start, stop in outside(interval.start, end, steps):
        yield Claim(RANK[interval.kind], start, stop, name)


def outside(start: int, end: int, steps: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the parts of [start, end) with no step in flight (checkpoint logs, chosen: outside training spans)."""
    line = Canvas(start, end, end - start)
    for first, last in steps:
        line.paint(Claim(0, first, last, "step"))
    for a, b, owner in line.cells():
        if owner != "step":
            yield a, b
