"""A scheduler's accounting beside the text of its jobs: which allocations are of which job, and whose start counts."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from goodput_cli.events.text.marks import ENDS, Mark, What
from goodput_cli.events.text.meaning import said
from goodput_cli.vocabulary.units import NS_PER_SECOND

NAME = "sacct"
_DOWN = (What.STEP, *ENDS)


def allocations(marks: Sequence[Mark]) -> list[list[Mark]]:
    """The marks of one source; those of each allocation, and what is no allocation together."""
    by_number: defaultdict[tuple[str, str], list[Mark]] = defaultdict(list)
    others = []
    for mark in marks:
        if said(mark).format == NAME:
            by_number[said(mark).job, said(mark).name].append(mark)
        else:
            others.append(mark)
    return [others, *by_number.values()]


def started_by_scheduler(parts: Sequence[list[Mark]]) -> None:
    """Of a start that the scheduler shows and those that the text of its allocation shows, the scheduler's counts: the
    others become signs of life, so that what lies between is the start-up of the first step."""
    starts = [mark for part in parts for mark in part if said(mark).format == NAME and said(mark).what is What.START]
    if not starts:
        return
    ends = {said(mark).name: mark.time for part in parts for mark in part if _is_end(mark)}
    downs = sorted(
        mark.end for part in parts for mark in part if said(mark).what in _DOWN and said(mark).format != NAME
    )
    for start in starts:
        until = min([ends.get(said(start).name, 1 << 62), *[time for time in downs if time > start.time][:1]])
        for part in parts:
            part[:] = [_alive(mark) if _is_start(mark, start.time, until) else mark for mark in part]


def ends_in_their_second(parts: Sequence[list[Mark]]) -> None:
    """An end that was written in whole seconds was in the course of that second: not before what the job did in it, as
    far as it had not begun anew. parts: the marks of one job by source."""
    every = sorted((mark for part in parts for mark in part), key=lambda mark: mark.time)
    times = [mark.time for mark in every]
    for mark in [mark for mark in every if said(mark).what in ENDS and _in_whole_seconds(mark)]:
        for other in every[bisect_right(times, mark.time) : bisect_left(times, mark.time + NS_PER_SECOND)]:
            if said(other).what is What.START:
                break
            if said(other).what not in ENDS:
                mark.time = mark.end = other.time


def _in_whole_seconds(mark: Mark) -> bool:
    stamp = said(mark).at or mark.stamp
    return stamp is not None and stamp.whole


def _is_end(mark: Mark) -> bool:
    return said(mark).format == NAME and said(mark).what not in (What.START, What.SCHEDULED)


def _is_start(mark: Mark, begin: int, end: int) -> bool:
    return said(mark).format != NAME and said(mark).what is What.START and begin <= mark.time < end


def _alive(mark: Mark) -> Mark:
    return replace(mark, said=replace(said(mark), what=What.ALIVE))
