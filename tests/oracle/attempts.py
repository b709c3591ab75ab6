"""Begin and end of attempts (accounting §3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise

from .attempt import Attempt, is_open
from .bursts import unnumbered_mates
from .events import CHECKPOINTS, NO_LIFE, NS, START_UP, TERMINATIONS, Event

LOST_START = {"load", "tpu_init", "prep", "restore"}


def median(values: Sequence[Fraction | int]) -> Fraction | None:
    """Return the middle value, or the mean of the two middle ones; None if there are none."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    if not ordered:
        return None
    return Fraction(ordered[middle]) if len(ordered) % 2 else Fraction(ordered[middle - 1] + ordered[middle]) / 2


def median_step_time(events: Iterable[Event]) -> Fraction:
    """Return §3's median step time: between records that set a new highest number, in time order, over the log. Chosen:
    0 if there are no two."""
    times: list[int] = []
    highest: int | None = None
    for event in events:
        if event.kind == "step" and (highest is None or event.number > highest):
            highest = event.number
            times.append(event.time)
    return median([b - a for a, b in pairwise(times)]) or Fraction(0)


class Splitter:
    """Splits the ordered events into attempts."""

    def __init__(self, events: list[Event], is_step_log: bool) -> None:
        self.events = events
        self.is_step_log = is_step_log
        self.median = median_step_time(events)
        self.attempts: list[Attempt] = []
        self.prelude: list[Event] = []
        self.mates = unnumbered_mates(events)
        self.opened: Counter[tuple[str, str]] = Counter()
        self.closing: set[int] = set()
        self.unmatched: list[Event] = []
        self.twins: dict[int, Event] = {}

    def run(self) -> list[Attempt]:
        """Return all attempts in order; `user_scheduled` and slice counts belong to none."""
        waiting = opens_with_a_start(self.events)
        for place, event in enumerate(self.events):
            if event.kind in NO_LIFE:
                continue
            if event.kind == "heartbeat":  # belongs to the current attempt; it begins none
                (self.attempts[-1].events if self.attempts else self.prelude).append(event)
                continue
            waiting = waiting and event.kind != "start"
            if event.kind == "start":
                self.on_start(event, place)
            elif not waiting:
                self.on_other(event, place)
            elif event.kind not in TERMINATIONS:
                # Chosen: events before the first start belong to the first attempt, except the late lines of an earlier
                # attempt.
                self.prelude.append(event)
        return self.attempts

    def begin(self, event: Event) -> Attempt:
        has_start = event.kind == "start"
        attempt = Attempt(event.time, has_start, event.time, burst_open=has_start)
        if not self.attempts:
            attempt.events += self.prelude
        elif not has_start:
            attempt.unnumbered = self.attempts[-1].unnumbered
        self.attempts.append(attempt)
        return attempt

    def on_start(self, event: Event, place: int) -> None:
        attempt = self.attempts[-1] if self.attempts else None
        if attempt is None or not self.is_in_burst(attempt, event, place):
            attempt = self.begin(event)
            attempt.only_loads = True
            self.opened.clear()
            self.unmatched.clear()
        attempt.ranks.add(event.rank)
        attempt.writers.add(event.writer)
        attempt.unnumbered += event.rank is None
        attempt.up = event.time
        attempt.events.append(event)

    def is_in_burst(self, attempt: Attempt, event: Event, place: int) -> bool:
        """Return True if a start line belongs to the burst that is being read."""
        if event.rank not in attempt.ranks:
            return attempt.burst_open or (attempt.only_loads and self.is_late_rank(attempt, event, place))
        if event.rank is not None or not attempt.burst_open:
            return False
        if event.writer is None or None in attempt.writers:
            return id(event) in self.mates
        if is_agent(event):
            if event.writer in attempt.writers:
                return shares_a_file(event) and event.time - attempt.begin <= 60 * NS
            return event.time - attempt.begin <= 600 * NS
        alive = any(later.writer in attempt.writers for later in self.events[place + 1 :])
        return event.writer not in attempt.writers and alive

    def is_late_rank(self, attempt: Attempt, event: Event, place: int) -> bool:
        """Return True if a rank that has not started yet belongs to a burst after which only loads came. This holds
        within 10 min of the first start, unless a started rank starts again within 60 s."""
        if event.rank is None or event.time - attempt.begin > 600 * NS:
            return False
        soon = [later for later in self.events[place + 1 :] if later.time - event.time <= 60 * NS]
        return not any(later.kind == "start" and later.rank in attempt.ranks for later in soon)

    def on_other(self, event: Event, place: int) -> None:
        if not self.attempts:
            self.begin(event)
        if self.is_of_attempt_before(event):
            self.attempts[-2].events.append(event)
        elif self.is_second_host(event, place):
            self.drop(event)
        else:
            self.begin_if_new_attempt(event)
            self.take(event)

    def begin_if_new_attempt(self, event: Event) -> None:
        """Begin an attempt if an event shows one. Chosen: for a step that goes back after a termination, only start-up
        events after the termination count."""
        lost, back = self.is_lost_start(event), self.goes_back(event)
        start_up = self.start_up_since_progress() if back else []
        if lost:
            behind = {id(later) for later in self.attempts[-1].after(TERMINATIONS)}
            start_up = [earlier for earlier in start_up if id(earlier) in behind]
        if start_up:
            self.begin_earlier(start_up[0])
        elif lost or back:
            twin = self.zero_length_end(event)
            self.begin(event).events += twin

    def zero_length_end(self, event: Event) -> list[Event]:
        """Return the end line of this time that precedes its start line in the order, though no interval of the phase
        is open. The two are a zero-length interval, and join the new attempt together."""
        events = self.attempts[-1].events
        phase = [e for e in events if (e.kind, e.label) == (event.kind, event.label)]
        if event.edge != "begin" or not phase or (phase[-1].edge, phase[-1].time) != ("end", event.time):
            return []
        if is_open(phase[:-1]):
            return []
        return [events.pop(next(i for i, e in enumerate(events) if e is phase[-1]))]

    def take(self, event: Event) -> None:
        attempt = self.attempts[-1]
        attempt.events.append(event)
        if event.kind in START_UP:
            self.count_open(event, attempt.unnumbered)
        if event.kind in TERMINATIONS | CHECKPOINTS | {"step"}:
            attempt.burst_open = False
            attempt.only_loads = attempt.only_loads and event.kind == "load"
        if event.kind == "step":
            attempt.steps.append(event)
            attempt.first_reports[event.number] = event

    def count_open(self, event: Event, ranks: int) -> None:
        """Count an open phase of ranks without numbers. An end line that closes the phase of one of them is not a
        start-up event: the slowest may still be preparing when the first one steps."""
        phase = (event.kind, event.label)
        if event.edge == "begin":
            self.begin_phase(phase, event, ranks)
        elif event.edge == "end" and self.opened[phase]:
            self.opened[phase] -= 1
            self.closing |= {id(event)} if ranks > 1 else set()
        elif event.edge == "end":
            self.unmatched.append(event)

    def begin_phase(self, phase: tuple[str, str], event: Event, ranks: int) -> None:
        """Begin a phase. Together with an end line of this time that closed nothing, it is an interval of length
        zero."""
        for end in self.unmatched:
            if (end.kind, end.label, end.time) == (*phase, event.time):
                self.unmatched.remove(end)
                self.twins[id(event)] = end
                self.closing |= {id(end)} if ranks > 1 else set()
                return
        self.opened[phase] += 1

    # Terminations of the previous attempt, inside the burst of the next

    def is_of_attempt_before(self, event: Event) -> bool:
        """Return True if a termination belongs to the previous attempt. Chosen: a termination without a rank is not "by
        a rank"; "none yet" means none by that rank."""
        current = self.attempts[-1]
        if event.kind in ("terminated", "crashed") and is_agent(event) and len(self.attempts) > 1:
            soon = event.time - current.begin <= 60 * NS
            return current.burst_open and event.writer not in current.writers and soon
        in_burst = current.burst_open and None not in current.ranks
        stranger = event.rank is not None and event.rank not in current.ranks
        if event.kind not in ("terminated", "crashed") or not in_burst or not stranger:
            return False
        if len(self.attempts) < 2:
            return False
        before = self.attempts[-2].events
        return not any(earlier.kind in TERMINATIONS and earlier.rank == event.rank for earlier in before)

    # Steps that go back

    def is_repeat(self, event: Event) -> bool:
        steps = self.attempts[-1].steps
        return event.kind == "step" and bool(steps) and event.number <= steps[-1].number

    def is_second_host(self, event: Event, place: int) -> bool:
        attempt = self.attempts[-1]
        if not self.is_repeat(event) or self.start_up_since_progress():
            return False
        first = attempt.first_reports.get(event.number)
        if first is not None and event.time - first.time < 2 * max(self.median, Fraction(attempt.longest_delay)):
            return True
        return self.old_sequence_goes_on(event, place)

    def old_sequence_goes_on(self, event: Event, place: int) -> bool:
        attempt = self.attempts[-1]
        unseen = {number for number in attempt.first_reports if number > event.number}
        for later in self.events[place + 1 :]:
            if later.kind == "start" or not unseen:
                return False
            if later.kind == "step" and later.number > attempt.steps[-1].number:
                return later.time - attempt.steps[-1].time <= max(4 * self.median, Fraction(2 * NS))
            unseen.discard(later.number if later.kind == "step" else event.number)
        return False

    def drop(self, event: Event) -> None:
        """Drop a report. Chosen: a dropped report does not count as activity (but may be the last event of the job)."""
        attempt = self.attempts[-1]
        first = attempt.first_reports.get(event.number)
        if first is not None:
            attempt.longest_delay = max(attempt.longest_delay, event.time - first.time)

    def goes_back(self, event: Event) -> bool:
        if self.is_step_log:
            return self.is_repeat(event)
        return event.kind == "load" and bool(self.attempts[-1].records())

    def start_up_since_progress(self) -> list[Event]:
        """Return the start-up events after the last step of the last attempt; in checkpoint logs after its last finish
        or save."""
        kinds = {"step"} if self.is_step_log else {"finished", "saved"}
        late = self.attempts[-1].after(kinds)
        return [event for event in late if event.kind in START_UP and id(event) not in self.closing]

    def begin_earlier(self, event: Event) -> None:
        """Begin an attempt at an event that the last one already contains. An end line of the same time, which forms an
        interval of length zero with it, precedes it in the order and moves along."""
        event = self.twins.get(id(event), event)
        old, attempt = self.attempts[-1], self.begin(event)
        cut = next(i for i, earlier in enumerate(old.events) if earlier is event)
        old.events, attempt.events = old.events[:cut], old.events[cut:]

    # A lost start line

    def is_lost_start(self, event: Event) -> bool:
        """Return True if an event shows a lost start line. Chosen: a phase counts from its start line; its end line
        alone shows no start."""
        if event.kind not in LOST_START | {"step"} or (event.kind != "step" and event.edge == "end"):
            return False
        attempt = self.attempts[-1]
        endings = [end for end in attempt.events if end.kind in TERMINATIONS]
        if self.is_step_log:
            endings = [end for end in endings if event.time - end.time > self.median]
        return bool(endings) and not self.is_continuation(event)

    def is_continuation(self, event: Event) -> bool:
        """Return True if a step continues the attempt: one rank left, the others went on."""
        steps = self.attempts[-1].steps
        if event.kind != "step" or not steps or self.is_repeat(event):
            return False
        return event.time - steps[-1].time <= 2 * self.median


def is_agent(event: Event) -> bool:
    """Return True if a launcher agent wrote the event."""
    return event.writer is not None and event.writer[1].startswith("text: launcher ")


def shares_a_file(event: Event) -> bool:
    """Return True if only the file of an agent is known, so that several may write into it."""
    return event.writer is not None and not event.writer[0] and event.writer[1].endswith(" ")


def opens_with_a_start(events: list[Event]) -> bool:
    """Return True if a start line precedes all step and checkpoint events."""
    for event in events:
        if event.kind == "start":
            return True
        if event.kind in CHECKPOINTS or event.kind == "step":
            return False
    return False
