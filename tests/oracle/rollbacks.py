"""Steps that go back in a process that lives on (accounting §3, Rollbacks)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from .attempt import Attempt
from .attempts import median
from .events import NS, TERMINATIONS, Event

ANOTHER_LIFE = TERMINATIONS | {"start", "scheduled", "elastic_down", "elastic_up", "elastic_reinit"}


def mark_rollbacks(events: Sequence[Event], attempts: Sequence[Attempt]) -> None:
    """Say of each attempt whether it is a rollback of the one before."""
    place = {id(event): at for at, event in enumerate(events)}
    for before, attempt in pairwise(attempts):
        if attempt.has_start or not before.steps or not attempt.steps or attempt.steps[0].edge == "end":
            continue
        last, first = before.steps[-1], attempt.steps[0]
        between = events[place[id(last)] : place[id(first)]]
        fell = first.number <= last.number and not any(event.kind in ANOTHER_LIFE for event in between)
        attempt.rolled_back = fell and lived_on(events, last, first)


def lived_on(events: Sequence[Event], last: Event, first: Event) -> bool:
    """Whether one process wrote both, and was never silent for longer than 60 s or three of its usual distances."""
    at, behind = (next(place for place, event in enumerate(events) if event is one) for one in (last, first))
    if last.writer and last.writer[1] and last.writer == first.writer:
        lines = [place for place, event in enumerate(events) if event.writer == last.writer]
        return heard(events, lines, at, behind)
    if last.writer or first.writer:
        return False
    beats = [
        place for place, event in enumerate(events) if event.kind == "heartbeat" and event.writer and event.writer[1]
    ]
    earlier = [place for place in beats if place < at]
    later = [place for place in beats if place > behind]
    if not earlier or not later:
        return False
    writers = {events[place].writer for place in beats if earlier[-1] <= place <= later[0]}
    own = [place for place in beats if events[place].writer in writers]
    return len(writers) == 1 and heard(events, own, earlier[-1], behind)


def heard(events: Sequence[Event], lines: Sequence[int], since: int, until: int) -> bool:
    """lines: where in the events those of the process stand."""
    usual = median([events[b].time - events[a].time for a, b in pairwise(lines)]) or 0
    upto = next(place for place in lines if place >= until)
    inside = [events[place].time for place in lines if since <= place <= upto]
    return max((b - a for a, b in pairwise(inside)), default=0) <= max(3 * usual, 60 * NS)
