"""Recovery chains (accounting §10, Links): each outage as phases between known points, with the loss of each.

A link is named after the point at which it ends. Its amounts are the ledger's between its two points, by the parts of
`AttemptCosts`. The amounts of all links, plus the redone work, add up to those of the disruption, in ns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.disruptions.costs import DOWN, STARTING, AttemptCosts
from goodput_cli.analysis.disruptions.losses import finished_a_step, spans_taken_back
from goodput_cli.analysis.recovery.points import (
    Moment,
    Nodes,
    OutageMoments,
    cycles_of_job,
    is_planned_stop,
    nodes_of,
    outages_of,
)
from goodput_cli.analysis.results import Recovery
from goodput_cli.arrays import I64, sums_by
from goodput_cli.events.signs import RecoveryEvent, RecoveryPhase
from goodput_cli.vocabulary.categories import Category

REDONE = "redone work"
"""Name of the loss before the first link: training of earlier steps that the disruption took back."""
_BY_ITSELF = ("launcher", "agent")
_OF_SCHEDULER = frozenset({RecoveryPhase.REQUEUED, RecoveryPhase.ALLOCATED})
"""Points that do not occur if a launcher or an agent restarts processes in the same allocation."""


@dataclass(frozen=True)
class OutagePhase:
    """A recovery phase: from one known point of an outage to the next (ns)."""

    point: RecoveryPhase
    """Point at which it ends, and after which it is named."""
    start_ns: int
    """Start, ns since 1970 UTC."""
    end_ns: int
    """End, ns since 1970 UTC."""
    where: str
    """Location of the line that shows the point."""
    wasted_ns: int = 0
    """Training that this disruption took back in it: the step in flight."""
    downtime_ns: int = 0
    """Time until the next attempt was up."""
    restart_ns: int = 0
    """Time of starting again, until it trained."""
    queued_ns: int = 0
    """Time in the queue, which has its own category: a loss of the job, and not of the link."""
    elsewhere_ns: int = 0
    """Training in it that another disruption took back, which has these seconds."""
    undetermined_ns: int = 0
    """Part of the downtime that may have been training."""
    at_most: bool = False
    """True if its start is unknown, so that the length is an upper limit."""
    alone: bool = True
    """True if the point right before this one is known or cannot occur. Otherwise the link covers several phases."""
    missing: tuple[RecoveryPhase, ...] = ()
    """Points between its two without a log line; the link includes their time."""
    moved_ns: int = 0
    """Time (ns) by which the line of its point precedes that of an earlier point."""

    @property
    def ns(self) -> int:
        """Return its length."""
        return self.end_ns - self.start_ns

    @property
    def lost_ns(self) -> int:
        """Return wasted + downtime + restart."""
        return self.wasted_ns + self.downtime_ns + self.restart_ns

    @property
    def uncategorized_ns(self) -> int:
        """Return the time in none of the amounts: a save, unexplained time, a restore inside the first step's span.
        Zero for time that was caught up, of which only the length counts."""
        if self.point is RecoveryPhase.CAUGHT_UP:
            return 0
        return self.ns - self.lost_ns - self.queued_ns - self.elsewhere_ns


@dataclass(frozen=True)
class OutageTimeline:
    """An outage as a sequence of touching links."""

    ended: int
    """Index of the attempt that ended, from 0."""
    number: int | None
    """Number of the disruption, from 1. None for a planned stop, and for the end of the last attempt."""
    start: Moment
    """The last progress."""
    links: tuple[OutagePhase, ...]
    """Links in order; the end of one is the start of the next."""
    redone_ns: int
    """Training that this disruption took back, in addition to the part in its links."""
    followed: bool
    """True if another attempt followed."""
    trained: bool
    """True if that attempt trained; otherwise the next disruption's chain continues it."""
    signs: tuple[RecoveryEvent, ...] = ()
    """Lines that show its points."""
    caught_up_later: bool = False
    """True if progress was regained only after the next disruption."""
    at_most: bool = False
    """True if the end of progress is unknown, as in checkpoint logs."""
    stepped: bool = False
    """True if the attempt that ended had finished a step. Otherwise it may still have been starting up, for as long as
    that takes."""
    nodes: Nodes | None = None
    """Nodes that left, joined and were on standby; None if not logged."""
    times: Mapping[RecoveryPhase, int] = field(default_factory=dict, repr=False)
    """Time (ns) of each point that a line shows."""

    def time_of(self, point: RecoveryPhase) -> int | None:
        """Return the time (ns) of a point; None if no line shows it."""
        return self.times.get(point)

    def link(self, point: RecoveryPhase) -> OutagePhase | None:
        """Return the link that ends at a point; None if no line shows that point."""
        return next((one for one in self.links if one.point is point), None)

    @property
    def failed_is_known(self) -> bool:
        """Return True if a line shows the time of the failure; without one, times from then on are upper limits."""
        return RecoveryPhase.FAILED in self.times

    @property
    def silence_is_known(self) -> bool:
        """Return True if the time until detection was silence: since the failure, or since a step of a step log.

        After a checkpoint the job trained, and a start takes its time.
        """
        return self.failed_is_known or (self.stepped and not self.at_most)

    @property
    def detect_ns(self) -> int | None:
        """Return the time to detect, from the failure or else the last progress; None if detection is not logged."""
        return self._since_failure(RecoveryPhase.DETECTED)

    @property
    def recover_ns(self) -> int | None:
        """Return the time to recover, with the queue; None if the next attempt did not train."""
        return self._since_failure(RecoveryPhase.TRAINING_AGAIN)

    def _since_failure(self, point: RecoveryPhase) -> int | None:
        end = self.time_of(point)
        return None if end is None else end - self.times.get(RecoveryPhase.FAILED, self.start.time)

    @property
    def lost_ns(self) -> int:
        """Return the disruption's loss: the redone work, and all links."""
        return self.redone_ns + sum(one.lost_ns for one in self.links)

    @property
    def queued_ns(self) -> int:
        return sum(one.queued_ns for one in self.links)

    @property
    def recovery(self) -> Recovery | None:
        """Return who restarted the job; None if that is not logged. A new job alone does not show it."""
        by = {str(one.facts.get("by", "")) for one in self.signs}
        if "hand" in by:
            return "by hand"
        if by.intersection(_BY_ITSELF):
            return "automatic"
        return "by the scheduler" if "scheduler" in by else None

    @property
    def by(self) -> str | None:
        """Return what restarted the job: `launcher`, `agent` or `scheduler`; None if not logged."""
        by = {str(one.facts.get("by", "")) for one in self.signs}
        return next((one for one in (*_BY_ITSELF, "scheduler") if one in by), None)

    def fact(self, name: str) -> str | int | None:
        """Return a fact from the last line that states it; None without one."""
        return next((one.facts[name] for one in reversed(self.signs) if name in one.facts), None)

    @property
    def budget(self) -> tuple[int, int | None] | None:
        """Return how many restarts were left, and of how many, when this one was decided; None if not logged.

        The first number includes this restart if the launcher counts it.
        """
        left, of = self.fact("left"), self.fact("of")
        return (left, of if isinstance(of, int) else None) if isinstance(left, int) else None

    @property
    def left_after(self) -> int | None:
        """Return how many restarts are left after this one. A launcher that logs its limit counts this one among those
        left."""
        budget = self.budget
        if budget is None:
            return None
        left, of = budget
        return left if of is None else max(left - 1, 0)

    @property
    def timeout_ns(self) -> int | None:
        """Return the timeout (ns) of the watchdog that detected it; None if not logged."""
        value = self.fact("timeout_ns")
        return value if isinstance(value, int) else None


def chains_of(timeline: Timeline, *, last: bool = False, costs: AttemptCosts | None = None) -> list[OutageTimeline]:
    """Return the chains of a job in time order, with those of planned stops; scale-ups and rollbacks have none.

    last: whether its last attempt failed, so that a chain ends in it. costs: of the whole job.
    """
    costs = AttemptCosts(timeline) if costs is None else costs
    passages = outages_of(timeline, costs, last=last)
    if not passages:
        return []
    number = {attempt: place + 1 for place, attempt in enumerate(timeline.disruptions.tolist())}
    taken_back, stepped = costs.taken_back.tolist(), finished_a_step(timeline).tolist()
    amounts, cycles = _PhaseAmounts(timeline, costs, passages), cycles_of_job(timeline)
    chains = []
    for passage, links in zip(passages, amounts.links(), strict=True):
        at, planned = passage.ended, is_planned_stop(timeline, passage.ended)
        redone = taken_back[at] - sum(one.wasted_ns for one in links) if passage.followed else 0
        chains.append(
            OutageTimeline(
                at, None if planned or not passage.followed else number.get(at), passage.moments[0],
                tuple(links), redone, passage.followed, passage.trained,
                passage.signs, passage.caught_up_later, timeline.progress is not None, bool(stepped[at]),
                nodes_of(cycles, passage.moments[0].time, passage.moments[-1].time),
                {one.point: one.time for one in passage.moments},
            )
        )  # fmt: skip
    return chains


@cache
def _missing(known: RecoveryPhase, point: RecoveryPhase, inside: bool) -> tuple[RecoveryPhase, ...]:
    """Return the points between two known ones. inside: in the same allocation, where some points cannot occur."""
    if point is RecoveryPhase.CAUGHT_UP:
        return ()
    return tuple(RecoveryPhase(one) for one in range(known + 1, point) if not (inside and one in _OF_SCHEDULER))


@cache
def _latest_predecessor(point: RecoveryPhase, inside: bool) -> int:
    """Return the last point that can come right before one. inside: in the same allocation."""
    before = point - 1
    while inside and before in _OF_SCHEDULER:
        before -= 1
    return before


class _PhaseAmounts:
    """Ledger amounts of the links of all passages, looked up at once."""

    def __init__(self, timeline: Timeline, costs: AttemptCosts, passages: Sequence[OutageMoments]) -> None:
        self._ledger, self._passages = timeline.ledger, passages
        pairs = [(one, *pair) for one in passages for pair in pairwise(one.moments)]
        self._moment = [end for _, _, end in pairs]
        self._owner = np.array([one.ended for one, _, _ in pairs], dtype=np.intp)
        self._start = np.array([begin.time for _, begin, _ in pairs], dtype=np.int64)
        self._end = np.array([end.time for _, _, end in pairs], dtype=np.int64)
        # Time that was caught up is not a loss, and the cost of the end of the last attempt is unknown.
        counts = [one.followed and end.point is not RecoveryPhase.CAUGHT_UP for one, _, end in pairs]
        self._counts = np.array(counts, dtype=bool)
        self._costs, self._timeline = costs, timeline
        self._unsure = timeline.progress is not None  # Checkpoint logs do not show when progress ended.

    def links(self) -> Iterator[list[OutagePhase]]:
        """Yield the links of each passage."""
        left, up, trained = (np.append(one, 0)[self._owner] for one in self._costs.gap_edges)
        queued, down, unsure = self._time_within(left, up, (Category.QUEUED,), DOWN, (Category.UNDETERMINED,))
        (restart,) = self._time_within(left, trained, STARTING)
        restart, wasted = restart + self._startup(), self._wasted()
        (lost,) = self._time_within(self._start, self._end, (Category.WASTED,))
        elsewhere = lost - wasted
        columns = (self._start, wasted, down, restart, queued, elsewhere, unsure)
        rows = iter(zip(self._moment, *(one.tolist() for one in columns), strict=True))
        for passage in self._passages:
            inside = any(one.facts.get("by", "") in _BY_ITSELF for one in passage.signs)
            known = RecoveryPhase.LAST_PROGRESS
            links: list[OutagePhase] = []
            for _ in passage.moments[1:]:
                links.append(_link(known, inside, self._unsure and not links, *next(rows)))
                known = links[-1].point
            yield links

    def _time_within(self, begin: I64, end: I64, *sets: Sequence[Category]) -> list[I64]:
        """Return the time of each set of categories in each link, within [begin, end)."""
        begin, end = np.maximum(self._start, begin), np.minimum(self._end, end)
        amounts = self._ledger.between(begin, np.maximum(begin, end), {one for some in sets for one in some})
        nothing = np.zeros_like(begin)
        found = (sum((ns for (one, _), ns in amounts.items() if one in some), nothing) for some in sets)
        return [np.asarray(np.where(self._counts, one, 0)) for one in found]

    def _startup(self) -> I64:
        """Return the start-up time of the next attempt's first span in each link."""
        attempt, start, end = self._costs.startups
        return self._covered(np.asarray(attempt) - 1, start, end, None)

    def _wasted(self) -> I64:
        """Return the training in each link that the disruption took back."""
        return self._covered(*spans_taken_back(self._timeline), (Category.WASTED,))

    def _covered(self, owner: I64, start: I64, end: I64, only: tuple[Category, ...] | None) -> I64:
        """Return how much of each link lies in intervals of its own passage, in some categories or in any."""
        order = np.argsort(owner, kind="stable")
        owner, start, end = owner[order], start[order], end[order]
        first, stop = np.searchsorted(owner, self._owner, "left"), np.searchsorted(owner, self._owner, "right")
        count = np.where(self._counts, stop - first, 0)
        link = np.repeat(np.arange(len(count)), count)
        place = np.arange(len(link)) - np.repeat(np.cumsum(count) - count, count) + first[link]
        begin, until = np.maximum(self._start[link], start[place]), np.minimum(self._end[link], end[place])
        some = until > begin
        link, begin, until = link[some], begin[some], until[some]
        ns = until - begin
        if only is not None:
            amounts = self._ledger.between(begin, until, only)
            ns = sum((one for (category, _), one in amounts.items() if category in only), np.zeros_like(ns))
        return sums_by(link, ns, len(count))


def _link(
    known: RecoveryPhase, inside: bool, at_most: bool, moment: Moment, start: int, wasted: int, down: int, restart: int,
    queued: int, elsewhere: int, unsure: int,
) -> OutagePhase:  # fmt: skip
    """Return the link to a moment. known: the point at which it begins. inside: in the same allocation."""
    missing = _missing(known, moment.point, inside)
    alone = not missing or missing[-1] < _latest_predecessor(moment.point, inside)
    return OutagePhase(
        moment.point, start, moment.time, moment.where, wasted, down, restart, queued, elsewhere, unsure, at_most,
        alone, missing, moment.moved_ns,
    )  # fmt: skip
