"""One job: its events, its attempts and its window (accounting §1, §3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import takewhile

from .attempt import Attempt
from .attempts import Splitter
from .events import CHECKPOINTS, CLEAN, NO_EVENTS, NS, TERMINATIONS, Event, in_order, seen_at
from .life import believed_clean_end
from .rollbacks import mark_rollbacks


@dataclass(frozen=True)
class Options:
    """exclude: pairs of ns. lost: pairs of ns in which lines of steps were lost.
    tick: ns. reference: seconds, "auto" or None."""

    reference: str | float | None
    exclude: tuple[tuple[int, int], ...]
    blocking: bool
    async_saves: bool
    stall_factor: Fraction
    tick: int
    lost: tuple[tuple[int, int], ...] = ()
    planned: str | None = None


@dataclass(frozen=True)
class Job:
    """events: those seen, in order. strays: ids of heartbeats after the end of their attempt. clean: believed clean end
    per attempt. [t0, t1): the job window, ns."""

    events: list[Event]
    is_step_log: bool
    strays: set[int]
    attempts: list[Attempt]
    clean: list[Event | None]
    t0: int
    t1: int
    options: Options

    @property
    def step_ends(self) -> bool:
        """Return True if its records count finished steps."""
        return any(step.edge == "end" for attempt in self.attempts for step in attempt.steps)

    @property
    def last(self) -> int:
        """Return the index of the last attempt."""
        return len(self.attempts) - 1

    def termination(self, index: int) -> int | None:
        """Return the first termination or end line after an attempt's last step or progress."""
        endings = self.closing(index)
        return endings[0].time if endings else None

    def closing(self, index: int) -> list[Event]:
        return self.attempts[index].ending_lines(self.is_step_log)

    def crash(self, index: int) -> int | None:
        """Return the first `job_crashed` among the lines that end an attempt, if it did not end cleanly."""
        if self.clean[index] is not None:
            return None
        return next((event.time for event in self.closing(index) if event.kind == "crashed"), None)

    def next_begin(self, index: int) -> int:
        return self.attempts[index + 1].begin

    def disruptions(self) -> int:
        """Return the number of passages to a next attempt that do not follow a believed clean end, and were no scale-up
        or rollback."""
        return sum(1 for index, end in enumerate(self.clean[:-1]) if end is None and not self.was_planned(index))

    def was_planned(self, index: int) -> bool:
        """Return True if the passage after an attempt contains a scale-up and no slice loss, start line or termination
        (§10)."""
        attempt, after = self.attempts[index], self.attempts[index + 1]
        if after.rolled_back:
            return True
        passage = attempt.after({"step"} | CHECKPOINTS)
        passage = passage + list(takewhile(lambda event: not after.is_step(event), after.events))
        kinds = {event.kind for event in passage}
        preempted = any(self.is_preemption(attempt, event) for event in attempt.events)
        other_causes = {"start", "elastic_down"} | TERMINATIONS
        return "elastic_up" in kinds and not kinds & other_causes and not preempted

    def is_preemption(self, attempt: Attempt, event: Event) -> bool:
        """Return True for a save that had reached a preemption, or a notice, unless a step begins more than 10 min
        after it."""
        if event.label != "preempted" or id(event) in self.strays:
            return False
        trained = attempt.steps if self.is_step_log else attempt.progress()
        return event.kind == "save" or not any(later.time - event.time > 600 * NS for later in trained)

    def ending(self) -> str:
        """Return clean, terminated, crashed or not_logged."""
        kinds = {event.kind for event in self.closing(self.last)} if self.attempts else set()
        if self.clean and self.clean[-1]:
            return "clean"
        return "crashed" if "crashed" in kinds else "terminated" if kinds else "not_logged"


def job_from_events(all_events: list[Event], as_of: int | None, options: Options) -> Job:
    """Return the job of some events. Raises ValueError if none was seen."""
    beside = [event for event in all_events if event.kind in NO_EVENTS]
    all_events = [event for event in all_events if event.kind not in NO_EVENTS]
    is_step_log = any(event.kind == "step" for event in all_events)
    events = seen_at(in_order(all_events), as_of)
    jumps = [(event.time - event.set_forward, event.time) for event in events if event.set_forward]
    lost = tuple(event.lost_steps for event in events if event.lost_steps)
    options = replace(options, exclude=(*options.exclude, *jumps), lost=lost)
    if not events:
        raise ValueError("the log holds no event of a job")
    attempts = Splitter(events, is_step_log).run()
    mark_rollbacks(events, attempts, beside)
    strays = stray_heartbeats(attempts, is_step_log)
    clean = [
        believed_clean_end(attempts, index, is_step_log, options.planned, strays) for index in range(len(attempts))
    ]
    t1 = max(event.end for event in events if id(event) not in strays)
    if as_of is not None and not has_ended(events, attempts, clean, is_step_log):
        t1 = as_of
    return Job(events, is_step_log, strays, attempts, clean, first_time(events), t1, options)


def first_time(events: list[Event]) -> int:
    """Return T0."""
    first = next((event for event in events if event.kind in CHECKPOINTS | {"scheduled", "start", "step"}), events[0])
    if first.kind in ("scheduled", "start"):
        return first.time
    other = next((event for event in events if event.kind != "heartbeat"), events[0])
    return other.time if other.kind in TERMINATIONS else events[0].time


def stray_heartbeats(attempts: list[Attempt], is_step_log: bool) -> set[int]:
    """Return the heartbeats later than the first line that ended their attempt, which are ignored."""
    found: set[int] = set()
    for attempt in attempts:
        ends = attempt.ending_lines(is_step_log)[:1]
        late = [event for event in attempt.events if ends and event.kind == "heartbeat" and event.time > ends[0].time]
        found |= {id(event) for event in late}
    return found


def has_ended(events: list[Event], attempts: list[Attempt], clean: list[Event | None], is_step_log: bool) -> bool:
    """Return True if the job has ended. Chosen: a `job_crashed` among the last lines leaves the job down, unless a
    clean end follows it."""
    told = (attempt.steps if is_step_log else attempt.progress() for attempt in attempts)
    progress = {id(event) for events_of_one in told for event in events_of_one}
    tail: list[Event] = []
    for event in events:
        alive = event.kind in {"scheduled", "start"} or id(event) in progress
        tail = [] if alive else [*tail, event]
    kinds = {event.kind for event in tail}
    stands = bool(clean) and clean[-1] is not None
    return bool(kinds & (CLEAN | {"terminated"})) and (stands or "crashed" not in kinds)
