"""The neighbourhood of an incident: of an instant, or of a disruption."""

from __future__ import annotations

import re

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.disruptions.find import find_disruptions
from goodput_cli.errors import NotEnoughData, UsageError
from goodput_cli.vocabulary.when import Anchors, When, parse_when
from goodput_cli.vocabulary.zones import load_zone

DISRUPTION_PREFIX = "disruption:"
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)


def parse_around(text: str) -> int | When:
    """`disruption:3` as its number (from 1, in time order), or a time. `UsageError` for anything else."""
    plain = text.strip().lower()
    if not plain.startswith(DISRUPTION_PREFIX):
        return parse_when(text)
    number = plain.removeprefix(DISRUPTION_PREFIX)
    if not _NUMBER.fullmatch(number) or int(number) == 0:
        raise UsageError(f"{text!r}: disruptions are numbered from 1, as in disruption:3")
    return int(number)


def neighbourhood(timeline: Timeline, what: int | When, margin: int, timezone: str, now_ns: int) -> tuple[int, int]:
    """The window [start, end) (ns) around `what`, `margin` ns on either side, cut to the job window.

    A disruption reaches from the last sign of life to the instant at which the old progress was regained.
    `UsageError`: no such disruption; `NotEnoughData`: an instant outside the job.
    """
    if isinstance(what, int):
        start, end = _disruption(timeline, what)
    else:
        starts = timeline.attempts.begin.tolist()
        anchors = Anchors(timeline.start, timeline.end, starts, now_ns, load_zone(timezone))
        start = end = what.resolve(anchors)
    start, end = max(start - margin, timeline.start), min(end + margin, timeline.end)
    if start >= end:
        raise NotEnoughData("what --around names lies outside the job")
    return start, end


def _disruption(timeline: Timeline, number: int) -> tuple[int, int]:
    disruptions = find_disruptions(timeline, timeline.start, timeline.end)
    if number > len(disruptions):
        how_many = f"{len(disruptions)} disruption{'s' if len(disruptions) != 1 else ''}"
        raise UsageError(f"there is no disruption {number}: the job has {how_many}")
    row = disruptions[number - 1]
    down = row.last_sign_of_life_ns
    return down, timeline.end if row.regained_after_ns is None else down + row.regained_after_ns
