"""Clocks: lines out of order, clocks set back, coarse ones, and times that cannot be meant."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import run_heads
from goodput_cli.analysis.row_diagnostics import diagnostic_at
from goodput_cli.arrays import I64, Rows
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.events.schema import EventTable, Kind
from goodput_cli.vocabulary.text import rough_duration
from goodput_cli.vocabulary.units import NS_PER_DAY, NS_PER_SECOND

TOLERANCE_NS = NS_PER_SECOND
"""How much earlier than the line before it a line may be: threads and ranks race for a log."""
_LONELY_NS = 30 * NS_PER_DAY
_COARSE_BELOW_NS = 10 * NS_PER_SECOND
_COARSE_FROM_EVENTS = 10
_FAR = 10
"""Lonely events lie further away than this many times the span of all the others."""
_MOST_LONELY = 0.02
"""And are fewer than this share of them (three at the least)."""


def check_clocks(timeline: Timeline, now_ns: int) -> Iterator[Diagnostic]:
    """Findings about the times of one job. now_ns: the present, ns since 1970 UTC."""
    yield from _order_of_lines(timeline.ordered.original)
    yield from _coarse(timeline)
    yield from far_times(timeline.ordered.original, now_ns)


def _order_of_lines(table: EventTable) -> Iterator[Diagnostic]:
    """`out_of_order` and `clock_set_back`. A line of an interval is written at its end."""
    rows = np.flatnonzero(table.line > 0)
    rows = rows[np.lexsort((table.end[rows], table.line[rows], table.source[rows]))]
    if len(rows) < 2:
        return
    heads = np.flatnonzero(run_heads(table.source[rows]))
    time = table.end[rows]
    highest = np.concatenate([np.maximum.accumulate(part) for part in np.split(time, heads[1:])])
    late = rows[time < highest - TOLERANCE_NS]
    back = _set_back(table, rows)
    if len(back):
        worst = rough_duration(int((table.time[back[:, 0]] - table.time[back[:, 1]]).max()))
        yield diagnostic_at(
            "clock_set_back", table, back[:, 1], f"steps that are earlier than the step before them, by up to {worst}"
        )
    if len(late):
        share = 100 * len(late) / len(rows)
        yield diagnostic_at(
            "out_of_order",
            table,
            late,
            f"{len(late)} of {len(rows)} lines ({share:.3g} %) stand behind later lines of the same source",
        )


def _set_back(table: EventTable, rows: Rows) -> NDArray[np.intp]:
    """Pairs of step lines, (n, n + 1) in the order of the file, whose times go back. In a shuffled file such pairs
    happen by chance: they count only where most of the steps follow each other."""
    steps = rows[table.kind[rows] == Kind.STEP]
    step, next_ = steps[:-1], steps[1:]
    follows = (table.step[next_] == table.step[step] + 1) & (table.source[next_] == table.source[step])
    if 2 * np.count_nonzero(follows) <= len(step):
        return np.zeros((0, 2), dtype=np.intp)
    back = follows & (table.time[next_] < table.time[step] - TOLERANCE_NS)
    return np.column_stack((step[back], next_[back]))


def _coarse(timeline: Timeline) -> Iterator[Diagnostic]:
    table, spans = timeline.table, timeline.training.spans
    if len(table) < _COARSE_FROM_EVENTS or len(spans) == 0:
        return
    if np.any(table.time % NS_PER_SECOND) or np.any(table.end % NS_PER_SECOND):
        return
    usual = float(np.median(spans.end - spans.start))
    if usual < _COARSE_BELOW_NS:
        what = "steps" if timeline.records is not None else "stretches between checkpoints"
        yield diagnostic_at(
            "coarse_clock",
            table,
            spans.row[:1],
            f"all {len(table)} times are whole seconds, and {what} take {rough_duration(usual)} (median)",
            len(table),
        )


def far_times(table: EventTable, now_ns: int) -> Iterator[Diagnostic]:
    """`lonely_time` and `future_times` of the events of one job, in time order."""
    early, late = _lonely(np.sort(table.end, kind="stable"))
    rows = np.flatnonzero((table.end < early) | (table.end > late))
    if len(rows):
        away = max(int(early - table.end[rows].min()), int(table.end[rows].max() - late))
        message = f"up to {rough_duration(away)} away from the other {len(table) - len(rows)} events of the job"
        yield diagnostic_at("lonely_time", table, rows, message)
    future = np.flatnonzero(table.end > now_ns + NS_PER_DAY)
    if len(future):
        message = f"events up to {rough_duration(int(table.end.max()) - now_ns)} in the future"
        yield diagnostic_at("future_times", table, future, message)


def _lonely(time: I64) -> tuple[int, int]:
    """First and last instant (ns) of the events that belong together; `time` is sorted.

    From the middle outwards: behind a gap of more than 30 days, and of `_FAR` times what lies on this side of it, come
    events that do not belong, if they are few.
    """
    size = len(time)
    few = max(3, int(size * _MOST_LONELY))
    if size < 2 * few + 2:
        return int(time[0]), int(time[-1])
    first, last = 0, size - 1
    gaps = np.flatnonzero(np.diff(time) > _LONELY_NS)
    for gap in gaps[gaps < few].tolist()[::-1]:
        rest = int(time[size - 1 - min(few, size - gap - 2)] - time[gap + 1])
        if gap + 1 < size - few and time[gap + 1] - time[gap] > _FAR * rest:
            first = max(first, gap + 1)
    for gap in gaps[gaps >= size - 1 - few].tolist():
        if gap > first and time[gap + 1] - time[gap] > _FAR * (time[gap] - time[first]):
            last = min(last, gap)
    return int(time[first]), int(time[last])
