"""Ends of attempts, and of phases without an end line (accounting §3)."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from itertools import takewhile

from .attempt import Attempt
from .ends import beginnings
from .events import CHECKPOINTS, CLEAN, NS, START_UP, TERMINATIONS, Event


def believed_clean_end(
    attempts: list[Attempt],
    index: int,
    is_step_log: bool,
    planned: str | None = None,
    strays: Collection[int] = (),
) -> Event | None:
    """Return the first believed clean end after the attempt's last step or progress.

    Chosen: a logged crash takes precedence over a `job_end`, and leaves the last attempt down after any clean end. A
    `job_end` after a request to stop does not count, unless the user states that the stop was planned. planned: the
    user's statement about stops between attempts, or None. strays: ids of heartbeats that are ignored.
    """
    lines = attempts[index].ending_lines(is_step_log)
    crashes = [place for place, line in enumerate(lines) if line.kind == "crashed"]
    followed = index < len(attempts) - 1
    doubted = is_step_log and was_redone(attempts, index) if planned is None else followed and planned == "no"
    asked = was_asked_to_stop(attempts[index], is_step_log, strays) and not (planned == "yes" and followed)
    doubted = doubted or bool(crashes) or asked
    kinds = CLEAN | {"terminated"} if planned == "yes" and followed and not crashes else CLEAN
    clean = [
        place for place, line in enumerate(lines) if line.kind in kinds and not (line.kind == "job_end" and doubted)
    ]
    if not clean or (index == len(attempts) - 1 and crashes and crashes[-1] > clean[-1]):
        return None
    return lines[clean[0]]


def was_asked_to_stop(attempt: Attempt, is_step_log: bool, strays: Collection[int]) -> bool:
    """Return True if the attempt had reached a preemption, or had notice of one, and trained for at most 10 min after
    it."""
    trained = attempt.steps if is_step_log else attempt.progress()
    return any(
        event.label == "preempted"
        and id(event) not in strays
        and not any(later.time - event.time > 600 * NS for later in trained)
        for event in attempt.events
    )


def was_redone(attempts: list[Attempt], index: int) -> bool:
    """Return True if the next attempt with a step starts at or below this one's last step."""
    steps = attempts[index].steps
    later = next((attempt.steps for attempt in attempts[index + 1 :] if attempt.steps), None)
    if steps and steps[0].edge == "end":
        following = next((one for one in beginnings(attempts)[index + 1 :] if one is not None), None)
        return following is not None and following.step < steps[-1].number
    return bool(steps) and later is not None and later[0].number <= steps[-1].number


def last_activity_ns(attempt: Attempt, is_step_log: bool, credited_end: int | None) -> int:
    """Return the last sign of life (ns). credited_end: end of its credited last step, if any."""
    endings = attempt.ending_lines(is_step_log)
    if endings:
        life = endings[0].time
    else:
        late = {id(e) for e in attempt.after({"step"} | CHECKPOINTS) if e.kind in START_UP and attempt.has_progress()}
        life = max((event.end for event in attempt.events if id(event) not in late), default=attempt.begin)
    return life if credited_end is None else max(life, credited_end)


@dataclass
class Interval:
    """A phase of the recorder, ns. end: None if the end line is lost. owner: index of the attempt it began in."""

    kind: str
    label: str
    start: int
    end: int | None
    owner: int
    begin: Event


class Pairing:
    """Joins start and end lines. Chosen: a phase may end in a later attempt unless a start line lies between."""

    def __init__(self) -> None:
        self.found: list[Interval] = []
        self.opened: dict[tuple[str, str], deque[Interval]] = {}
        self.spent: set[int] = set()
        self.most_open = 1

    def run(self, attempts: list[Attempt]) -> list[Interval]:
        """Return all phases of all attempts."""
        for owner, attempt in enumerate(attempts):
            if attempt.has_start:
                self.opened.clear()
                self.most_open = max(attempt.unnumbered, 1)
            for event in attempt.events:
                if event.edge == "begin" and id(event) not in self.spent:
                    self.on_begin(event, owner)
                elif event.edge == "end":
                    self.on_end(event, owner, attempt.events)
        return self.found

    def on_begin(self, event: Event, owner: int) -> None:
        """Open a phase. Data loads are first in, first out. Of any other phase and label, as many are open at a time as
        the burst has start lines without a rank: one, if ranks have numbers."""
        interval = Interval(event.kind, event.label, event.time, None, owner, event)
        self.found.append(interval)
        queue = self.opened.setdefault((event.kind, event.label), deque())
        while event.kind != "data" and len(queue) >= self.most_open:
            queue.popleft()
        queue.append(interval)

    def on_end(self, event: Event, owner: int, events: list[Event]) -> None:
        queue = self.opened.get((event.kind, event.label))
        if queue:
            queue.popleft().end = event.time
            return
        for other in events:
            same = (other.kind, other.label, other.time) == (event.kind, event.label, event.time)
            if same and other.edge == "begin" and id(other) not in self.spent:
                self.spent.add(id(other))
                self.found.append(Interval(other.kind, other.label, other.time, other.time, owner, other))
                return


def goes_on_loading(interval: Interval, attempts: list[Attempt]) -> bool:
    """Return True if a step or a load of the same process follows in a later attempt. Only a start line shows a new
    process."""
    later = takewhile(lambda attempt: not attempt.has_start, attempts[interval.owner + 1 :])
    return any(
        attempt.is_step(event) or event.kind == "load" or (event.kind, event.edge) == ("data", "begin")
        for attempt in later
        for event in attempt.events
    )


def lost_end(interval: Interval, attempt: Attempt, life: int, t1: int | None) -> int | None:
    """Return the end (ns) of a phase without an end line (§3 Open intervals). None: the phase is dropped.

    life: the attempt's last sign of life. t1: end of the window if this is the last attempt, otherwise None.
    """
    place = next(i for i, event in enumerate(attempt.events) if event is interval.begin)
    later = attempt.events[place + 1 :]
    same = (interval.kind, interval.label, "begin")
    over = [e for e in later if attempt.is_step(e) or e.kind in CHECKPOINTS or (e.kind, e.label, e.edge) == same]
    if over:
        return None if interval.kind == "data" else over[0].time
    down = [event.time for event in later if event.kind in TERMINATIONS]
    if down:
        return down[0]
    return max(life, interval.start) if t1 is None else t1
