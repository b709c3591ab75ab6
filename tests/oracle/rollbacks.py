"""Steps that go back in a process that goes on (accounting §3, Rollbacks)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from .attempt import Attempt
from .attempts import median
from .events import NS, TERMINATIONS, Event

ANOTHER_LIFE = TERMINATIONS | {"start", "scheduled", "elastic_down", "elastic_up", "elastic_reinit"}


def mark_rollbacks(events: Sequence[Event], attempts: Sequence[Attempt], beside: Sequence[Event]) -> None:
    """Mark each attempt that is a rollback of the previous one. beside: announcements and bad losses."""
    place = {id(event): at for at, event in enumerate(events)}
    for before, attempt in pairwise(attempts):
        if attempt.has_start or not before.steps or not attempt.steps:
            continue
        last, first = before.steps[-1], attempt.steps[0]
        between = events[place[id(last)] : place[id(first)]]
        if first.number > last.number or any(event.kind in ANOTHER_LIFE for event in between):
            continue
        lived = has_continued(events, last, first, [event.time for event in beside if event.kind == "announced"])
        if lived is None:
            undone = next(step for step in before.steps if step.number >= first.number)
            lived = any(one.kind == "bad_loss" and undone.time <= one.time <= first.time for one in beside)
        attempt.rolled_back = lived


def has_continued(events: Sequence[Event], last: Event, first: Event, announced: Sequence[int]) -> bool | None:
    """Return True if one process wrote both; None: the log does not show it."""
    at, behind = (next(place for place, event in enumerate(events) if event is one) for one in (last, first))
    if last.writer and last.writer[1] and last.writer == first.writer:
        return is_heard(
            events, [place for place, event in enumerate(events) if event.writer == last.writer], at, behind
        )
    if last.writer or first.writer:
        return False
    beats = [
        place for place, event in enumerate(events) if event.kind == "heartbeat" and event.writer and event.writer[1]
    ]
    earlier = [place for place in beats if place < at]
    later = [place for place in beats if place > behind]
    if earlier and later:
        return len({events[place].writer for place in beats if earlier[-1] <= place <= later[0]}) == 1
    if not is_heard(events, range(len(events)), at, behind) or any(
        last.time < time <= first.time for time in announced
    ):
        return False
    return True if any(time <= last.time for time in announced) else None


def is_heard(events: Sequence[Event], lines: Sequence[int], since: int, until: int) -> bool:
    """Return True if a process is never silent for longer than 60 s or three of its usual distances. lines: positions
    of the events of the process. An interval is not a silent period."""
    usual = median([events[b].time - events[a].time for a, b in pairwise(lines)]) or 0
    upto = next(place for place in lines if place >= until)
    inside = [events[place] for place in lines if since <= place <= upto]
    covered, longest = inside[0].end, 0
    for event in inside[1:]:
        longest = max(longest, event.time - covered)
        covered = max(covered, event.end)
    return longest <= max(3 * usual, 60 * NS)
