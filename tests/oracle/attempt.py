"""One attempt: its events, and the begin and the end that they show (accounting §3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .events import CHECKPOINTS, TERMINATIONS, Event


@dataclass
class Attempt:
    """One attempt of the job.

    begin: its first start (otherwise its first event), ns. up: the last start of its burst, ns. only_loads: True if
    only loads have ended its burst. unnumbered: number of start lines without a rank in its burst (without a start
    line: that of the process). rolled_back: True if it is a part of the previous attempt, whose steps went back.
    events: all of its events in order. steps: its recorded steps (step logs); second hosts' reports are in neither.
    """

    begin: int
    has_start: bool
    up: int
    burst_open: bool = False
    only_loads: bool = False
    unnumbered: int = 0
    ranks: set[int | None] = field(default_factory=set)
    writers: set[tuple[str, str] | None] = field(default_factory=set)
    events: list[Event] = field(default_factory=list)
    steps: list[Event] = field(default_factory=list)
    first_reports: dict[int, Event] = field(default_factory=dict)
    longest_delay: int = 0
    rolled_back: bool = False

    def is_step(self, event: Event) -> bool:
        """Return True if this is one of its recorded steps, not a second host's report of one."""
        return event.kind == "step" and self.first_reports.get(event.number) is event

    def after(self, kinds: set[str]) -> list[Event]:
        """Return events after the last one of these kinds (of steps, recorded ones only); all if there is none."""
        marks = [i for i, e in enumerate(self.events) if e.kind in kinds and (e.kind != "step" or self.is_step(e))]
        return self.events[marks[-1] + 1 :] if marks else self.events

    def has_progress(self) -> bool:
        """Return True if it has a step or a checkpoint."""
        return bool(self.steps) or any(event.kind in CHECKPOINTS for event in self.events)

    def ending_lines(self, is_step_log: bool) -> list[Event]:
        """Return termination and end lines after its last step; in checkpoint logs after its last progress. Chosen: a
        repeated report does not undo an end."""
        progress = {id(event) for event in (self.steps if is_step_log else self.progress())}
        last = max((place for place, event in enumerate(self.events) if id(event) in progress), default=-1)
        return [event for event in self.events[last + 1 :] if event.kind in TERMINATIONS]

    def progress(self) -> list[Event]:
        """Return the loads of a checkpoint log, and its records above all before them."""
        found: list[Event] = []
        highest: int | None = None
        for event in (event for event in self.events if event.kind in CHECKPOINTS):
            if event.kind == "load" or highest is None or event.number > highest:
                found.append(event)
            highest = event.number if highest is None else max(highest, event.number)
        return found

    def records(self) -> list[Event]:
        """Return the finishes and saves of a checkpoint log."""
        return [event for event in self.events if event.kind in ("finished", "saved")]


def is_open(phase: Iterable[Event]) -> bool:
    """Return True if a phase is open after these start and end lines of it. An end without a start and a start of the
    same time are a zero-length interval."""
    opened, ends = False, []
    for event in phase:
        if event.edge == "end":
            ends += [] if opened else [event.time]
            opened = False
        elif event.time in ends:
            ends.remove(event.time)
        else:
            opened = True
    return opened
