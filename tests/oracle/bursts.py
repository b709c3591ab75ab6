"""Bursts of start lines without rank and writer (accounting §3)."""

from __future__ import annotations

from collections import Counter

from .events import CHECKPOINTS, NS, TERMINATIONS, Event

BREAKING = {"start", "step"} | CHECKPOINTS | TERMINATIONS


def unnumbered_mates(events: list[Event]) -> set[int]:
    """Return the ids of start lines without rank and writer that belong to the burst of the one before them (§3)."""
    marks = [event for event in events if event.kind in BREAKING]
    mates: set[int] = set()
    run: list[Event] = []
    ranks_seen = 1
    for place, event in enumerate([*marks, None]):
        if event is not None and event.kind == "start" and event.rank is None and event.writer is None:
            run.append(event)
            continue
        if run:
            here = reports_of_one_step(marks[place:])
            mates |= mates_of_run(run, here or ranks_seen, ranks_seen)
            run = []
        if event is not None and (place == 0 or event.kind == "start" or marks[place - 1].kind == "start"):
            life = marks[place + 1 :] if event.kind == "start" else marks[place:]
            ranks_seen = reports_of_one_step(life) or ranks_seen
    return mates


def reports_of_one_step(marks: list[Event]) -> int:
    """Return the largest number of reports of one step before the next start line; 0 without a step."""
    life = []
    for event in marks:
        if event.kind == "start":
            break
        life.append(event)
    return max(Counter(event.number for event in life if event.kind == "step").values(), default=0)


def mates_of_run(run: list[Event], ranks: int, ranks_before: int) -> set[int]:
    """Return the ids of start lines in bursts of at most `ranks` lines within 60 s, from the last one back, for start
    lines with nothing in between. Bursts before the last one began attempts without a step."""
    mates: set[int] = set()
    left = list(run)
    while left:
        burst = [event for event in left[-ranks:] if left[-1].time - event.time <= 60 * NS]
        mates |= {id(event) for event in burst[1:]}
        left, ranks = left[: -len(burst)], ranks_before
    return mates
