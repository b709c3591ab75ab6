"""Sums for the improvements, from the ledger of a job (docs/advice.md).

The accounting of a job as advice reads it: which attempts trained, and when each began, ended and was followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import distinct, search
from goodput_cli.analysis.advice.record import ReplayAttempt, ReplayTotals
from goodput_cli.analysis.disruptions.costs import AttemptCosts
from goodput_cli.analysis.disruptions.find import last_failure, time_up
from goodput_cli.analysis.goodput.findings import CoveredTime, not_recorded
from goodput_cli.analysis.steps.regimes import lost_to_pace, step_pace
from goodput_cli.analysis.steps.times import timed_steps
from goodput_cli.arrays import I64, sums_by
from goodput_cli.events.schema import Kind
from goodput_cli.vocabulary.categories import CATEGORIES, Category

PARTS: dict[str, tuple[Category, ...]] = {
    "down": (Category.RECOVERY,),
    "queued": (Category.QUEUED,),
    "init": (Category.TPU_INITIALIZATION,),
    "prep": (Category.TRAINING_PREP,),
    "restore": (Category.RESTORE,),
    "load": (Category.DATA_LOADING_SYNC,),
    "elastic": (Category.ELASTIC_DOWN, Category.ELASTIC_UP, Category.ELASTIC_REINIT),
}
_UNTIL_UP = ("down", "queued")


def amounts_of(timeline: Timeline, lives: Sequence[ReplayAttempt], taken: int) -> ReplayTotals:
    """Sums of the ledger. taken: ns of the wasted time that saves of a given cost take."""
    costs = AttemptCosts(timeline)
    parts, disrupted = _parts(costs, lives), costs.unplanned
    gap = np.searchsorted([life.attempt for life in lives], np.arange(1, len(timeline.attempts)))
    before = {
        name: tuple(sums_by(gap, np.where(disrupted, amount, 0), len(lives) + 1)[:-1].tolist())
        for name, amount in parts.items()
    }
    outages = [(int(gap[at]), int(parts["down"][at])) for at in np.flatnonzero(disrupted & (gap < len(lives))).tolist()]
    unknown = not_recorded(timeline)

    def time_in(category: Category) -> int | None:
        return None if CATEGORIES[category] in unknown else costs.total(category)

    lost = int((costs.taken_back[:-1] + costs.downtime + costs.restart)[disrupted].sum())
    slow = _slow(timeline) if timeline.reference_ns is None else time_in(Category.SLOWDOWN)
    if slow is not None:  # slowness that may be by design is not a slow step
        slow -= int(timeline.undecided_slowdown(np.array([timeline.start]), np.array([timeline.end]))[0])
    lived, begin = {life.attempt for life in lives}, timeline.attempts.begin
    disruptions = int(np.count_nonzero(timeline.failed))
    never = [attempt for attempt in timeline.disruptions.tolist() if attempt not in lived]
    return ReplayTotals(
        before=before,
        outages=tuple(outages),
        restore=costs.total(Category.RESTORE),
        saved=costs.total(Category.SAVE),
        wasted=costs.total(Category.WASTED) + sum(life.undetermined for life in lives),
        data=time_in(Category.DATA_LOADING_SYNC),
        stalls=time_in(Category.STALL),
        slow=slow,
        custom={
            timeline.table.labels[label]: int(amount.sum())
            for (category, label), amount in costs.ledger.items()
            if category == Category.CUSTOM
        },
        disruptions=disruptions,
        lost=lost - taken,
        failed_starts=tuple((attempt, int(begin[attempt + 1] - begin[attempt])) for attempt in never),
        failures=disruptions + (last_failure(timeline) is not None),
        up=time_up(timeline, timeline.start, timeline.end),
    )


def _parts(costs: AttemptCosts, lives: Sequence[ReplayAttempt]) -> dict[str, I64]:
    """Amounts (ns) by what they are of and by attempt that another one follows."""
    parts = {
        name: costs.until_up(*categories) if name in _UNTIL_UP else costs.until_trained(*categories)
        for name, categories in PARTS.items()
    }
    parts["startup"] = costs.first_startup[1:]
    undetermined = costs.until_up(Category.UNDETERMINED)
    before_death = np.zeros(len(undetermined), dtype=np.int64)
    for life in lives:
        if life.attempt < len(before_death):
            before_death[life.attempt] = life.undetermined
    parts["down"] = parts["down"] + np.maximum(undetermined - before_death, 0)
    return parts


def _slow(timeline: Timeline) -> int | None:
    """Time (ns) lost in slow regimes and drifts, in kept steps. None where the log shows too few step times."""
    steps = timed_steps(timeline, timeline.start, timeline.end)
    if len(steps) == 0:
        return None
    return lost_to_pace(timeline, steps, step_pace(timeline, steps))


class JobTimeline:
    """A timeline on the clock of counted time, which has all that the user excluded cut out. Times are counted ns;
    arrays have an item for each attempt."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        rows = np.flatnonzero(timeline.segments.category == Category.EXCLUDED)
        self._excluded = CoveredTime(timeline.segments.start[rows], timeline.segments.end[rows])
        self.step_log = timeline.progress is None
        self.behind = 1 if self.step_log and not timeline.attempts.step_ends else 0
        """Offset from a saved step to the position at which it is saved."""

    def counted(self, time: I64) -> I64:
        """Convert timestamps (ns) to counted time."""
        return time - self._excluded.covered_before(time)

    @cached_property
    def lived(self) -> list[int]:
        """Return the attempts that trained: those with a training span; in checkpoint logs, those that loaded or
        progressed."""
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
        """Return True if Orbax lines show that saves continue after their blocking part."""
        table = self.timeline.table
        used = distinct(table.detail[table.kind == Kind.SAVE])
        return any(("synchronous", False) in table.details[detail] for detail in used[used >= 0].tolist())

    @property
    def asynchronous(self) -> bool:
        progress = self.timeline.progress
        return progress is not None and progress.asynchronous

    @cached_property
    def begin(self) -> I64:
        """Return the start (counted ns) of the training of each attempt; 0 for attempts that did not train."""
        timeline, begin = self.timeline, np.zeros(len(self.timeline.attempts), dtype=np.int64)
        progress, bounds = timeline.progress, self.bounds
        for attempt in self.lived:
            if bounds[attempt] < bounds[attempt + 1]:
                begin[attempt] = timeline.training.spans.start[bounds[attempt]]
            elif progress is not None:
                load = int(progress.load_row[attempt])
                begin[attempt] = timeline.table.time[load] if load >= 0 else progress.position[attempt]
        return self.counted(begin)

    @cached_property
    def alive_until(self) -> I64:
        """Return the counted ns until which each attempt surely ran: its logged end, otherwise its last activity."""
        timeline = self.timeline
        alive = timeline.attempts.cut_at_next(timeline.sign_of_life)
        if timeline.progress is not None:
            unseen = timeline.attempts.first_ending < 0
            alive[unseen] = np.maximum(alive, timeline.progress.position)[unseen]
        alive[-1:] = timeline.end
        return self.counted(alive)

    @cached_property
    def next_begin(self) -> I64:
        return self.counted(np.append(self.timeline.attempts.begin[1:], self.timeline.end))
