"""Window around an incident: around a time, a disruption, or a step."""

from __future__ import annotations

import re

import numpy as np
from msgspec import Struct

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.disruptions.find import find_disruptions
from goodput_cli.errors import NotEnoughData, UsageError
from goodput_cli.vocabulary.text import plural
from goodput_cli.vocabulary.when import Anchors, TimeArgument, load_zone, parse_when

DISRUPTION_PREFIX = "disruption:"
STEP_PREFIX = "step:"
_NUMBER = re.compile(r"\d{1,18}", re.ASCII)


class StepNumber(Struct, frozen=True):
    """A step in the numbering of the log."""

    number: int


Around = int | StepNumber | TimeArgument
"""Number of a disruption, a step, or a time."""


def parse_around(text: str) -> Around:
    """Parse `disruption:3` as its number (from 1, in time order), `step:1503`, or a time. Raise `UsageError` for
    anything else."""
    plain = text.strip().lower()
    prefix = next((one for one in (DISRUPTION_PREFIX, STEP_PREFIX) if plain.startswith(one)), None)
    if prefix is None:
        try:
            return parse_when(text)
        except UsageError as error:
            raise UsageError(f"{error}, {DISRUPTION_PREFIX}3 or {STEP_PREFIX}1503") from error
    number = plain.removeprefix(prefix)
    if prefix == STEP_PREFIX:
        if not _NUMBER.fullmatch(number):
            raise UsageError(f"{text!r} is not a step", tip=f"use its number, as in {STEP_PREFIX}1503")
        return StepNumber(int(number))
    if not _NUMBER.fullmatch(number) or int(number) == 0:
        raise UsageError(f"{text!r}: disruptions are numbered from 1, as in disruption:3")
    return int(number)


def neighbourhood(timeline: Timeline, what: Around, margin: int, timezone: str, now_ns: int) -> tuple[int, int]:
    """Return the window [start, end) (ns) around `what`, with `margin` ns on either side, cut to the job window.

    A disruption extends from the last sign of life to the time at which the old progress was regained. A step that was
    trained several times is taken where it took longest. Raise `UsageError` for an unknown disruption or step, and
    `NotEnoughData` for a time outside the job, or without step times.
    """
    if isinstance(what, int):
        start, end = _disruption(timeline, what)
    elif isinstance(what, StepNumber):
        start, end = _step(timeline, what.number)
    else:
        starts = timeline.attempts.begins.tolist()
        anchors = Anchors(timeline.start, timeline.end, starts, now_ns, load_zone(timezone))
        start = end = what.resolve(anchors)
    start, end = max(start - margin, timeline.start), min(end + margin, timeline.end)
    if start >= end:
        raise NotEnoughData("the time of --around is outside the job")
    return start, end


def _disruption(timeline: Timeline, number: int) -> tuple[int, int]:
    disruptions = find_disruptions(timeline, timeline.start, timeline.end)
    if number > len(disruptions):
        raise UsageError(f"disruption {number} does not exist: the job has {plural(len(disruptions), 'disruption')}")
    row = disruptions[number - 1]
    down = row.last_sign_of_life_ns
    return down, timeline.end if row.regained_after_ns is None else down + row.regained_after_ns


def _step(timeline: Timeline, number: int) -> tuple[int, int]:
    """Return the time from the record at the step's begin to the next one of its attempt. If not every step is logged,
    it is the time between the records around it."""
    records = timeline.records
    if records is None or len(records.number) == 0:
        raise NotEnoughData("the log contains no step times", tip="use a time or a disruption")
    ends = int(timeline.attempts.step_ends)  # Such logs count finished steps.
    done = number - ends
    begin, stop = records.number, np.append(records.number[1:], records.number[-1] + 1)
    same = np.append(records.owner[1:] == records.owner[:-1], False)
    held = np.flatnonzero((begin <= done) & np.where(same, done < stop, done == begin))
    if len(held) == 0:
        first, last = int(begin.min()) + ends, int(begin.max())
        raise UsageError(f"step {number} does not exist: the log contains steps {first} to {last}")
    took = np.where(same[held], np.append(records.time[1:], 0)[held] - records.time[held], 0)
    place = int(held[np.argmax(took)])
    return int(records.time[place]), int(records.time[place] + took.max())
