"""Course of an attempt of a checkpoint log (accounting §4)."""

from __future__ import annotations

from dataclasses import dataclass, field

from .attempt import Attempt
from .events import Event


@dataclass
class Course:
    """spans: (step a, its time, step b, its time) of each span; saves: [start, end) of each save time; ns.

    initial_saves: those of the step at which it began, before any progress, likewise.
    began, last: the step that it began at and the last that it recorded (None: none). last_save: highest saved step.
    time, load: when it began at that step, and its load if it has one; ns.
    """

    began: int | None = None
    last: int | None = None
    time: int | None = None
    load: int | None = None
    last_save: int | None = None
    spans: list[tuple[int, int, int, int]] = field(default_factory=list)
    saves: list[tuple[int, int]] = field(default_factory=list)
    initial_saves: list[tuple[int, int]] = field(default_factory=list)

    @property
    def step_range(self) -> tuple[int, int] | None:
        return None if self.began is None or self.last is None else (self.began, self.last)

    @property
    def tail(self) -> int | None:
        """Return the end of the last span or save time, otherwise of the load. Chosen: with no load, its begin."""
        ends = [piece[3] for piece in self.spans] + [save[1] for save in self.saves + self.initial_saves]
        return max(ends) if ends else self.time


def save_spans(records: list[Event]) -> list[tuple[int, int]]:
    """Return the positions of each `step_finished b` and the first `checkpoint_saved b` after it, first reports
    only."""
    first: dict[tuple[str, int], int] = {}
    for place, record in enumerate(records):
        first.setdefault((record.kind, record.number), place)
    spans = []
    for (kind, step), place in first.items():
        saved = first.get(("saved", step), -1)
        if kind == "finished" and saved > place:
            spans.append((place, saved))
    return spans


def are_asynchronous(records: list[Event]) -> bool:
    """Return True if a later step was finished inside a save, or the line of one states it."""
    return any(record.kind == "saved" and record.label == "asynchronous" for record in records) or any(
        later.kind == "finished" and later.number > records[start].number
        for start, end in save_spans(records)
        for later in records[start:end]
    )


def course(attempts: list[Attempt], index: int, asynchronous: bool) -> Course:
    """Return spans and save times of one attempt."""
    attempt = attempts[index]
    records = attempt.records()
    begun = beginning(attempts, index, records)
    if begun is None:
        return Course()
    step, time, at_a_record = begun
    saves = {} if asynchronous else synchronous_saves(records, step)
    loads = [event.time for event in attempt.events if event.kind == "load"]
    result = Course(began=step, time=time, load=loads[-1] if loads else None)
    for place, record in enumerate(records):
        is_progress = record.number > step
        if is_progress:
            result.spans.append((step, time, record.number, record.time))
            step, time = record.number, record.time
        if place in saves:
            which = result.saves if is_progress else result.initial_saves
            which.append((record.time, saves[place]))
            if is_progress or (at_a_record and place == 0):
                time = saves[place]
    result.last = step
    result.last_save = max((record.number for record in records if record.kind == "saved"), default=None)
    return result


def synchronous_saves(records: list[Event], began: int) -> dict[int, int]:
    """Return position of the finish -> end (ns) of each save time.

    Chosen: also of a step that is no progress (an initial save before training), but not of steps passed before.
    """
    spans = {}
    for start, end in save_spans(records):
        passed = max([began, *(record.number for record in records[:start])])
        between = any(record.number > records[start].number for record in records[start:end])
        if records[start].number >= passed and not between:
            spans[start] = records[end].time
    return spans


def beginning(attempts: list[Attempt], index: int, records: list[Event]) -> tuple[int, int, bool] | None:
    """Return the step that an attempt began at, the time (ns), and True if that is its first record: its last load,
    otherwise `no_checkpoint_loaded`."""
    attempt = attempts[index]
    loads = [event for event in attempt.events if event.kind == "load"]
    if loads:
        return loads[-1].number, max(loads[-1].time, attempt.up), False
    if not records:
        return None
    known = checkpoint_before(attempts[:index])
    if known is None and attempt.has_start:
        known = 0
    if known is None or known >= records[0].number:
        return records[0].number, records[0].time, True
    return known, attempt.up, False


def checkpoint_before(earlier: list[Attempt]) -> int | None:
    """Return the step of the last save before an attempt. Chosen: with no save, the last loaded step."""
    for kind in ("saved", "load"):
        steps = [event.number for attempt in earlier for event in attempt.events if event.kind == kind]
        if steps:
            return steps[-1]
    return None
