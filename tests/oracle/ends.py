"""Step-end logs: begin of training in attempts, and the spans between their records (accounting §4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil

from .attempt import Attempt
from .events import NS, Event


@dataclass(frozen=True)
class Beginning:
    """Begin of training. step: number of steps done. time: ns. started: True if it is the last start line of its
    burst."""

    step: int
    time: int
    started: bool = False


def lower_median(values: Sequence[int]) -> int | None:
    """Return the middle value, or the lower of the two middle ones; None if there are none."""
    return sorted(values)[(len(values) - 1) // 2] if values else None


def strides(attempts: list[Attempt]) -> list[int]:
    """Return the lower median difference between recorded steps per attempt; with one record that of all attempts, or
    1."""
    own = [[b.number - a.number for a, b in pairwise(attempt.steps)] for attempt in attempts]
    everywhere = lower_median([difference for differences in own for difference in differences])
    return [lower_median(differences) or everywhere or 1 for differences in own]


def beginnings(attempts: list[Attempt]) -> list[Beginning | None]:
    """Return the beginning of each attempt that has a record."""
    pace = fastest_pace(attempts)
    found: list[Beginning | None] = []
    last: int | None = None
    for attempt, stride in zip(attempts, strides(attempts), strict=True):
        found.append(beginning(attempt, stride, pace, last) if attempt.steps else None)
        last = attempt.steps[-1].number if attempt.steps else last
    return found


def fastest_pace(attempts: list[Attempt]) -> Fraction | None:
    """Return the least ns per step, between two records of one attempt or as stated by a record."""
    paces = [Fraction(b.time - a.time, b.number - a.number) for attempt in attempts for a, b in pairwise(attempt.steps)]
    paces += [Fraction(step.mean) for attempt in attempts for step in attempt.steps if step.mean]
    return min(paces, default=None)


def beginning(attempt: Attempt, stride: int, pace: Fraction | None, last: int | None) -> Beginning:
    """Return the beginning of an attempt: the last restore or load before its first record, if below it. Otherwise, if
    a start line opened it, before the steps that the record covers. Otherwise the record. last: number of the last
    record before the attempt."""
    first = attempt.steps[0]
    place = next(i for i, event in enumerate(attempt.events) if event is first)
    told = [event for event in attempt.events[:place] if event.kind in ("restore", "load") and event.step is not None]
    if told and told[-1].number < first.number:
        at = attempt.up if attempt.has_start else min(told[-1].end, first.time)
        return Beginning(told[-1].number, at, attempt.has_start)
    if not attempt.has_start:
        return Beginning(first.number, first.time)
    is_near = len(attempt.steps) > 1 and attempt.steps[1].number - first.number < stride
    covered = 1 if is_near or last == first.number - 1 else stride
    if pace:
        room = first.time - attempt.up + (2 * NS if first.time % NS == 0 else 0)
        covered = min(covered, max(ceil(room / pace), 1))
    step = min(max(first.number - covered, 0), first.number)
    return Beginning(step, attempt.up, True) if step < first.number else Beginning(step, first.time)


def trained_from(start: int, record: Event, steps: int) -> int:
    """Return the time (ns) at which the `steps` steps of a record began, at `start` or later. The time that their mean
    leaves over is a gap, if it is more than 1 % of them, plus two seconds if the clock shows whole seconds."""
    if record.mean is None:
        return start
    took = steps * record.mean
    slack = Fraction(took, 100) + (2 * NS if record.time % NS == 0 else 0)
    return record.time - took if record.time - start - took > slack else start
