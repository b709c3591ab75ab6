"""The accounting of a job as advice asks it: which attempts trained, and when each began, ended and was followed."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import search
from goodput_cli.analysis.advice.from_timeline.amounts import Clock
from goodput_cli.arrays import I64
from goodput_cli.events.schema import Kind


class JobTimeline:
    """A timeline with its clock. Times are counted ns; arrays have an item for each attempt."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline, self.clock = timeline, Clock(timeline)
        self.step_log = timeline.progress is None
        self.behind = 1 if self.step_log and not timeline.attempts.step_ends else 0
        """From a saved step to the position at which it is saved."""

    @cached_property
    def lived(self) -> list[int]:
        """Attempts that trained: that hold a training span; in checkpoint logs that loaded or progressed."""
        progress = self.timeline.progress
        if progress is not None:
            return np.flatnonzero(progress.position_row >= 0).tolist()
        bounds = self.bounds
        return np.flatnonzero(bounds[1:] > bounds[:-1]).tolist()

    @cached_property
    def bounds(self) -> NDArray[np.intp]:
        return search(self.timeline.training.spans.attempt, np.arange(len(self.timeline.attempts) + 1))

    @cached_property
    def began(self) -> I64:
        source = self.timeline.records or self.timeline.progress
        assert source is not None
        return source.began

    @property
    def background(self) -> bool:
        """Whether Orbax lines say that saves go on behind their blocking part."""
        table = self.timeline.table
        used = np.unique(table.detail[table.kind == Kind.SAVE])
        return any(("synchronous", False) in table.details[detail] for detail in used[used >= 0].tolist())

    @property
    def asynchronous(self) -> bool:
        progress = self.timeline.progress
        return progress is not None and progress.asynchronous

    @cached_property
    def begin(self) -> I64:
        """When (counted ns) each life began; 0 for attempts that are none."""
        timeline, begin = self.timeline, np.zeros(len(self.timeline.attempts), dtype=np.int64)
        progress, bounds = timeline.progress, self.bounds
        for attempt in self.lived:
            if bounds[attempt] < bounds[attempt + 1]:
                begin[attempt] = timeline.training.spans.start[bounds[attempt]]
            elif progress is not None:
                load = int(progress.load_row[attempt])
                begin[attempt] = timeline.table.time[load] if load >= 0 else progress.position[attempt]
        return self.clock.counted(begin)

    @cached_property
    def alive_until(self) -> I64:
        """Counted ns until which each attempt surely lived: its logged end, else its last sign of life."""
        timeline = self.timeline
        alive = timeline.attempts.cut_at_next(timeline.sign_of_life)
        if timeline.progress is not None:
            unseen = timeline.attempts.first_ending < 0
            alive[unseen] = np.maximum(alive, timeline.progress.position)[unseen]
        alive[-1:] = timeline.end
        return self.clock.counted(alive)

    @cached_property
    def next_begin(self) -> I64:
        begin = np.append(self.timeline.attempts.begin[1:], self.timeline.end)
        return self.clock.counted(begin)
