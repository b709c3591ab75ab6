"""From the ledger of a job to the sums that levers act on (docs/advice.md, *Levers*)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import search
from goodput_cli.analysis.advice.replay.record import Amounts
from goodput_cli.analysis.disruptions.find import find_disruptions
from goodput_cli.analysis.goodput.not_recorded import not_recorded
from goodput_cli.analysis.steps.lost_in_regimes import lost_in_regimes
from goodput_cli.analysis.steps.slow_regimes import slow_regimes
from goodput_cli.analysis.steps.timed import timed_steps
from goodput_cli.arrays import I64
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


class Clock:
    """Counted time: the clock with all that the user excluded cut out."""

    def __init__(self, timeline: Timeline) -> None:
        segments = timeline.segments
        rows = np.flatnonzero(segments.category == Category.EXCLUDED)
        self._start, self._end = segments.start[rows], segments.end[rows]
        self._before = np.append(0, np.cumsum(self._end - self._start))

    def counted(self, time: I64) -> I64:
        """Instants (ns) on that clock."""
        if len(self._start) == 0:
            return np.array(time, dtype=np.int64)
        place = np.searchsorted(self._start, time, side="right")
        inside = np.append(0, self._end)[place] - time
        return np.asarray(time - self._before[place] + np.where(place > 0, np.maximum(inside, 0), 0))

    def length(self, start: int, end: int) -> int:
        """Counted ns between two instants."""
        return int(np.diff(self.counted(np.array([start, end])))[0])


@dataclass(frozen=True)
class Span:
    """A life, as far as the sums need it."""

    attempt: int
    """From 0."""
    undetermined: int
    """ns of undetermined time before its assumed death."""


@dataclass(frozen=True)
class LedgerAmounts:
    """Sums of the ledger, and program start-up."""

    amounts: Amounts
    """The sums."""
    startup: list[int]
    """Program start-up (ns) by attempt."""


def amounts_of(timeline: Timeline, lives: Sequence[Span], taken: int) -> LedgerAmounts:
    """taken: ns of the wasted time that saves of a given cost take."""
    startup, parts = _startup(timeline), _passages(timeline)
    parts["startup"] = np.array(startup[1:], dtype=np.int64)
    undetermined = parts.pop("undetermined")
    before_death = np.zeros(len(undetermined), dtype=np.int64)
    for life in lives:
        if life.attempt < len(before_death):
            before_death[life.attempt] = life.undetermined
    disrupted = timeline.failed[:-1]
    parts["down"] = parts["down"] + np.maximum(undetermined - before_death, 0)
    gap = np.searchsorted([life.attempt for life in lives], np.arange(1, len(timeline.attempts)))
    before = {}
    for name, amount in parts.items():
        sums = np.zeros(len(lives) + 1, dtype=np.int64)
        np.add.at(sums, gap, np.where(disrupted, amount, 0))
        before[name] = tuple(sums[:-1].tolist())
    outages = [(int(gap[at]), int(parts["down"][at])) for at in np.flatnonzero(disrupted & (gap < len(lives))).tolist()]
    window = np.array([timeline.start]), np.array([timeline.end])
    total = {key: int(value[0]) for key, value in timeline.ledger.between(*window).items()}
    unknown = not_recorded(timeline)

    def known(category: Category) -> int | None:
        return None if CATEGORIES[category] in unknown else total.get((category, -1), 0)

    lost = int(find_disruptions(timeline, timeline.start, timeline.end).unplanned.column("lost_ns").sum())
    slow = known(Category.SLOWDOWN) if timeline.reference_ns is not None else _slow(timeline)
    amounts = Amounts(
        before=before,
        outages=tuple(outages),
        restore=total.get((Category.RESTORE, -1), 0),
        saved=total.get((Category.SAVE, -1), 0),
        wasted=total.get((Category.WASTED, -1), 0) + sum(life.undetermined for life in lives),
        data=known(Category.DATA_LOADING_SYNC),
        stalls=known(Category.STALL),
        slow=slow,
        custom={
            timeline.table.labels[label]: ns for (category, label), ns in total.items() if category == Category.CUSTOM
        },
        disruptions=int(np.count_nonzero(timeline.failed)),
        lost=lost - taken,
        failed_starts=tuple(_failed_starts(timeline, lives)),
    )
    return LedgerAmounts(amounts, startup)


def _startup(timeline: Timeline) -> list[int]:
    """Start-up (ns) of each attempt, without that of elastic re-initialisations within it."""
    segments = timeline.segments
    rows = np.flatnonzero(segments.category == Category.PROGRAM_STARTUP)
    spans = timeline.training.spans
    restarted = np.isin(segments.start[rows], spans.start[spans.restarted])
    rows = rows[~restarted]
    startup = np.zeros(len(timeline.attempts), dtype=np.int64)
    np.add.at(startup, segments.attempt(rows), segments.end[rows] - segments.start[rows])
    return [int(ns) for ns in startup]


def _passages(timeline: Timeline) -> dict[str, I64]:
    """ns of each part between the training of each attempt and that of the next; as a disruption has them."""
    attempts, spans = timeline.attempts, timeline.training.spans
    begin = attempts.up.copy()
    bounds = search(spans.attempt, np.arange(len(begin) + 1))
    some = np.flatnonzero(bounds[1:] > bounds[:-1])
    begin[some] = spans.start[bounds[some]]
    left, up = np.maximum(attempts.up, spans.latest_end(attempts.up))[:-1], attempts.up[1:]
    nothing = np.zeros(len(up), dtype=np.int64)
    down = timeline.ledger.between(left, np.maximum(left, up))
    starting = timeline.ledger.between(left, np.maximum(left, begin[1:]))
    parts = {
        name: sum(((down if name in _UNTIL_UP else starting).get((one, -1), nothing) for one in categories), nothing)
        for name, categories in PARTS.items()
    }
    return {**parts, "undetermined": down.get((Category.UNDETERMINED, -1), nothing)}


def _failed_starts(timeline: Timeline, lives: Sequence[Span]) -> list[tuple[int, int]]:
    """Attempts that others follow and that never trained: number, and ns from its first start to the next one's."""
    lived = {life.attempt for life in lives}
    begin = timeline.attempts.begin
    return [(one, int(begin[one + 1] - begin[one])) for one in timeline.disruptions.tolist() if one not in lived]


def _slow(timeline: Timeline) -> int | None:
    """Time (ns) lost in slow regimes, in kept steps. None where the log shows too few step times."""
    steps = timed_steps(timeline, timeline.start, timeline.end)
    if len(steps) == 0:
        return None
    return lost_in_regimes(timeline, steps, slow_regimes(timeline, steps))
