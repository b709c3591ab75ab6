"""Points and nodes of an outage (accounting §10, Links): logged times between an attempt's last progress and the
training of the next, in order; nodes that left, joined or were on standby; and clocks that are wrong.

Signs name most points (`events/signs.py`). The events of the job show the end of progress, the start of the next
attempt, its restore and its training.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from statistics import median_low

import numpy as np

from goodput_cli.accounting.attempts.endings import End
from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import rows_of, search
from goodput_cli.analysis.disruptions.costs import AttemptCosts
from goodput_cli.analysis.disruptions.losses import EvidenceRows, find_evidence
from goodput_cli.events.schema import Kind
from goodput_cli.events.signs import Cycle, RecoveryEvent, RecoveryPhase
from goodput_cli.vocabulary.text import plural
from goodput_cli.vocabulary.when import NS_PER_SECOND

FIRST = frozenset({RecoveryPhase.FAILED, RecoveryPhase.DETECTED, RecoveryPhase.DECIDED, RecoveryPhase.RENDEZVOUS_BEGUN})
"""Points for which the first of several lines counts; for all others the last one counts."""
_OF_ATTEMPT = frozenset({RecoveryPhase.LAST_PROGRESS, RecoveryPhase.TRAINING_AGAIN, RecoveryPhase.CAUGHT_UP})
"""Points that no sign names: they come from the events of the job."""
_WHO_FAILED = ("process", "pod", "kernel")
"""Sources whose lines are about the failure itself: launchers and schedulers log what they noticed."""


@dataclass(frozen=True)
class Moment:
    """A point that a line names."""

    point: RecoveryPhase
    """The point."""
    time: int
    """ns since 1970 UTC. If its line precedes that of an earlier point, the time of that point."""
    where: str
    """`file:line`, or the insertId of an entry."""
    moved_ns: int = 0
    """Time (ns) by which its line precedes that of an earlier point."""


@dataclass(frozen=True)
class OutageMoments:
    """Logged points from the last progress of an attempt to the training of the next."""

    ended: int
    """Index of the attempt that ended, from 0."""
    moments: tuple[Moment, ...]
    """Points in ascending order; the first is the last progress."""
    signs: tuple[RecoveryEvent, ...]
    """All signs in the passage."""
    followed: bool
    """True if another attempt followed."""
    trained: bool
    """True if that attempt trained."""
    caught_up_later: bool = False
    """True if progress was regained only by an attempt after that one."""


def outages_of(timeline: Timeline, costs: AttemptCosts, *, last: bool) -> list[OutageMoments]:
    """Return the passages of a job in time order: all but scale-ups and rollbacks. last: whether to include the end of
    its last attempt, which no attempt followed."""
    if not len(timeline.attempts):
        return []
    return list(_Finder(timeline, costs).outages(last=last))


class _Finder:
    """Lookup of the points of one job."""

    def __init__(self, timeline: Timeline, costs: AttemptCosts) -> None:
        self._timeline, self._costs = timeline, costs
        self._until_up, self._left = costs.gap_edges[1].tolist(), costs.left.tolist()
        self._evidence: EvidenceRows = find_evidence(timeline)
        job = timeline.table.jobs[int(timeline.table.job[0])]
        self._signs = sorted(
            (one for one in timeline.table.observed.signs if one.job in ("", job) and one.point not in _OF_ATTEMPT),
            key=lambda one: (one.time, one.point, one.where),
        )
        told: dict[str, int] = {one.where: one.time for one in self._signs if one.point is not RecoveryPhase.FAILED}
        # A failure that a line computes belongs to the time of the line, even if the computed time is long before.
        self._belongs = [
            (told.get(one.where, one.time) if one.point is RecoveryPhase.FAILED else one.time) for one in self._signs
        ]
        order = sorted(range(len(self._signs)), key=self._belongs.__getitem__)
        self._signs, self._belongs = [self._signs[at] for at in order], [self._belongs[at] for at in order]
        self._begins = [self._last_progress(attempt) for attempt in range(len(timeline.attempts))]

    def outages(self, *, last: bool) -> Iterator[OutageMoments]:
        timeline, count = self._timeline, len(self._timeline.attempts)
        planned = timeline.planned.tolist()
        for attempt in range(count - 1):
            if not planned[attempt]:
                yield self._outage(attempt)
        if last:
            yield self._end(count - 1)

    def _end(self, attempt: int) -> OutageMoments:
        """Return the passage at the end of the last attempt."""
        begin = self._begins[attempt]
        signs = [
            one
            for one in self._signs[bisect_left(self._belongs, begin.time) :]
            if one.point <= RecoveryPhase.TERMINATED
        ]
        moments = _in_order([begin, *self._named(attempt, signs, None)])
        return OutageMoments(attempt, moments, tuple(signs), followed=False, trained=False)

    def _outage(self, attempt: int) -> OutageMoments:
        timeline, begin, following = self._timeline, self._begins[attempt], attempt + 1
        trained = self._training_again(following)
        end = max(self._until_up[attempt], begin.time)
        if trained is not None:
            end = max(end, trained.time)
        signs = self._between(begin.time, min(end, max(self._begins[following].time, begin.time)))
        named = list(self._named(attempt, signs, following, end))
        if trained is None:  # The chain closes where the attempt was up.
            named = [one for one in named if one.point < RecoveryPhase.WORKERS_STARTED]
            row = int(timeline.attempts.up_row[following])
            named.append(Moment(RecoveryPhase.WORKERS_STARTED, end, timeline.table.where(row)))
            return OutageMoments(attempt, _in_order([begin, *named]), tuple(signs), followed=True, trained=False)
        moments = _in_order([begin, *named, Moment(RecoveryPhase.TRAINING_AGAIN, end, trained.where)])
        row = int(self._evidence.regained[attempt])
        later = row >= 0 and self._attempt_number(row) != int(timeline.attempts.number[following])
        if row >= 0 and not later:
            reached = max(int(timeline.table.time[row]), end)  # A step is past the old one from its begin on.
            caught_up = Moment(RecoveryPhase.CAUGHT_UP, reached, timeline.table.where(row))
            moments = _in_order([*moments, caught_up])
        return OutageMoments(attempt, moments, tuple(signs), followed=True, trained=True, caught_up_later=later)

    def _attempt_number(self, row: int) -> int:
        """Return the number of the attempt of a row."""
        attempts = self._timeline.attempts
        return int(attempts.number[attempts.of_row[row]])

    def _last_progress(self, attempt: int) -> Moment:
        """Return the attempt's last step; without a step, the time at which it was up. Training after its line is its
        step in flight."""
        timeline = self._timeline
        row = int(self._evidence.last_step[attempt])
        time = int(timeline.attempts.up[attempt] if row < 0 else timeline.table.time[row])
        place = int(timeline.attempts.up_row[attempt]) if row < 0 else row
        return Moment(RecoveryPhase.LAST_PROGRESS, min(time, self._left[attempt]), timeline.table.where(place))

    def _training_again(self, attempt: int) -> Moment | None:
        """Return the time of its first step, without its start-up; None for an attempt that never trained."""
        timeline = self._timeline
        spans, row = timeline.training.spans, int(self._evidence.first_step[attempt - 1])
        at, stop = self._bounds[attempt], self._bounds[attempt + 1]
        if at == stop:
            if row < 0 or int(timeline.attempts.of_row[row]) != attempt:
                return None
            return Moment(RecoveryPhase.TRAINING_AGAIN, int(timeline.table.time[row]), timeline.table.where(row))
        ends = self._startups.get(attempt)
        begin = self._first_step_began(at, attempt) if ends is None else ends
        shown = row if row >= 0 else int(spans.row[at])
        return Moment(RecoveryPhase.TRAINING_AGAIN, begin, timeline.table.where(shown))

    @cached_property
    def _bounds(self) -> list[int]:
        """Return the index at which the spans of each attempt begin."""
        found: list[int] = search(
            self._timeline.training.spans.attempt, np.arange(len(self._timeline.attempts) + 1)
        ).tolist()
        return found

    @cached_property
    def _startups(self) -> Mapping[int, int]:
        """Return, by attempt, when (ns) the start-up of its first span ends."""
        attempt, _, end = self._costs.startups
        return dict(zip(attempt.tolist(), end.tolist(), strict=True))

    def _first_step_began(self, span: int, attempt: int) -> int:
        """Return when the first step of a span began that has no start-up in the ledger.

        A lost span has none. If a line ends the span, the begin of its first step is unknown. It is estimated as usual
        steps before the span's end, if the excess stands out as a start-up does.
        """
        timeline = self._timeline
        spans, usual = timeline.training.spans, timeline.usual_step
        begin, end = int(spans.start[span]), int(spans.end[span])
        median, deviation = float(usual.median[attempt]), float(usual.deviation[attempt])
        steps = int(spans.stop[span] - spans.first[span])
        if not timeline.attempts.step_ends or not end - begin > steps * (median + 3 * deviation):
            return begin
        return max(begin, end - round(median * steps))

    def _between(self, begin: int, end: int) -> list[RecoveryEvent]:
        """Return the signs from the last progress to the training. A sign at either time belongs to the passage that it
        fits: the end of an attempt begins a passage, a start ends it."""
        first, stop = bisect_left(self._belongs, begin), bisect_right(self._belongs, end)
        some = zip(self._signs[first:stop], self._belongs[first:stop], strict=True)
        return [
            one
            for one, time in some
            if (time > begin or one.point < RecoveryPhase.REQUEUED)
            and (time < end or one.point >= RecoveryPhase.REQUEUED)
        ]

    def _named(
        self, attempt: int, signs: Sequence[RecoveryEvent], following: int | None, end: int | None = None
    ) -> Iterator[Moment]:
        """Yield the logged points between the last progress and the training: from signs, the cause, and events."""
        found: dict[RecoveryPhase, Moment] = {}
        for one in (*signs, *self._failure(attempt, signs, end)):
            known = found.get(one.point)
            if (
                known is None
                or (one.point not in FIRST and one.time > known.time)
                or (one.point in FIRST and one.time < known.time)
            ):
                found[one.point] = Moment(one.point, one.time, one.where)
        if following is not None and end is not None:
            for event in self._of_events(following, end, signs):
                known = found.get(event.point)
                if known is None or (event.point is RecoveryPhase.RESTORED and event.time > known.time):
                    found[event.point] = event
        yield from found.values()

    def _failure(self, attempt: int, signs: Iterable[RecoveryEvent], end: int | None) -> Iterator[RecoveryEvent]:
        """Yield the time of the failure, if the line of its cause has its own time."""
        observed = self._timeline.table.observed
        if not observed.rows:
            return
        one = self._timeline.causes.why[attempt].evidence
        if one is None or one.role != "root" or one.speaker not in _WHO_FAILED or not one.stamped or one.waited_ns:
            return
        begin = self._begins[attempt].time
        if one.lo is None or one.lo < begin or (end is not None and one.lo > end):
            return
        if all(sign.where != one.where for sign in signs):
            yield RecoveryEvent("", RecoveryPhase.FAILED, one.lo, one.where)

    def _of_events(self, attempt: int, end: int, signs: Iterable[RecoveryEvent]) -> Iterator[Moment]:
        """Yield points from events of the next attempt: its start line, unless that names another point, and the end of
        its restore."""
        timeline = self._timeline
        table, attempts = timeline.table, timeline.attempts
        if attempts.started[attempt]:
            row = int(attempts.up_row[attempt])
            where = table.where(row)
            named = {one.point for one in signs if one.where == where}
            if not named or RecoveryPhase.WORKERS_STARTED in named:
                yield Moment(RecoveryPhase.WORKERS_STARTED, int(attempts.up[attempt]), where)
        restored = self._restored.get(attempt)
        inside = [row for row in restored or () if table.end[row] <= end]
        if inside:
            row = max(inside, key=lambda one: int(table.end[one]))
            yield Moment(RecoveryPhase.RESTORED, int(table.end[row]), table.where(row))

    @cached_property
    def _restored(self) -> Mapping[int, list[int]]:
        """Return the rows of restores and loads by attempt."""
        table, owner = self._timeline.table, self._timeline.attempts.of_row
        found: dict[int, list[int]] = {}
        rows = rows_of(table.kind, (Kind.RESTORE, Kind.LOAD))
        for row, attempt in zip(rows.tolist(), owner[rows].tolist(), strict=True):
            found.setdefault(attempt, []).append(row)
        return found


_POINT = attrgetter("point")


def _in_order(moments: Iterable[Moment]) -> tuple[Moment, ...]:
    """Return the moments in the order of points. If a line precedes that of an earlier point, it is moved there, and
    marked."""
    result: list[Moment] = []
    for one in sorted(moments, key=_POINT):
        before = result[-1].time if result else one.time
        result.append(one if one.time >= before else Moment(one.point, before, one.where, before - one.time))
    return tuple(result)


def is_planned_stop(timeline: Timeline, attempt: int) -> bool:
    """Return True if an attempt ended as planned."""
    return bool(timeline.endings.how[attempt] == End.CLEAN)


@dataclass(frozen=True)
class Nodes:
    """Nodes of the cycles before and after an outage."""

    left: tuple[str, ...]
    """Nodes that trained before, but not after."""
    came: tuple[str, ...]
    """Nodes that trained after, but not before."""
    stood_by: tuple[str, ...]
    """Standby nodes at the begin of the outage."""
    standby: tuple[str, ...]
    """Standby nodes after the outage."""

    @property
    def used(self) -> tuple[str, ...]:
        """Return the standby nodes that joined."""
        return tuple(one for one in self.came if one in self.stood_by)

    @property
    def words(self) -> str:
        """Return `node-03 left, node-05 joined, 1 standby node`."""
        parts = [f"{_nodes_text(some)} {what}" for some, what in ((self.left, "left"), (self.came, "joined")) if some]
        return ", ".join([*parts, _standby_nodes(len(self.standby))])

    @property
    def standby_text(self) -> str:
        """Return `2 standby nodes, 1 used`, or `no standby node`."""
        if not self.stood_by:
            return _standby_nodes(0)
        return f"{_standby_nodes(len(self.stood_by))}, {len(self.used) or 'none'} used"


_MOST_NAMED = 3


def _standby_nodes(count: int) -> str:
    return plural(count, "standby node") if count else "no standby node"


def _nodes_text(nodes: Sequence[str]) -> str:
    return ", ".join(nodes) if len(nodes) <= _MOST_NAMED else f"{len(nodes)} nodes"


def cycles_of_job(timeline: Timeline) -> list[Cycle]:
    """Return the cycles of the job, in order of time."""
    table = timeline.table
    job = table.jobs[int(table.job[0])]
    return [one for one in table.observed.cycles if one.job in ("", job)]


def nodes_of(cycles: Sequence[Cycle], start: int, end: int) -> Nodes | None:
    """Return the nodes of an outage from `start` to `end` (ns). None if neither a cycle before it nor one that began in
    it lists any."""
    place = bisect_right([one.begin for one in cycles], start)
    behind = [one for one in cycles[place:] if one.begin <= end]
    if place == 0 or not behind:
        return None
    old, new = cycles[place - 1], behind[-1]
    left = tuple(one for one in old.active if one not in new.active)
    came = tuple(one for one in new.active if one not in old.active)
    return Nodes(left, came, old.standby, new.standby)


def standby_ns(timeline: Timeline) -> int | None:
    """Return the time (ns, summed over nodes) on standby in the job; None if no cycle lists it."""
    cycles = cycles_of_job(timeline)
    if not cycles:
        return None
    ends = [*(one.begin for one in cycles[1:]), timeline.end]
    total = 0
    for one, following in zip(cycles, ends, strict=True):
        end = min(following if one.end is None else min(one.end, following), timeline.end)
        total += len(one.standby) * max(end - max(one.begin, timeline.start), 0)
    return total


_LEAST_HOSTS, _LEAST_POINTS = 3, 3
_APART_NS = NS_PER_SECOND
"""Smaller differences of clocks are not reported."""


def clocks_apart(signs: Iterable[Sequence[RecoveryEvent]]) -> dict[str, int]:
    """Return, by host, how much (ns) its clock is ahead of the others', if it is a second or more at every point and
    nearly constant. signs: of each outage. A host that is late by chance is not late at every point."""
    apart: defaultdict[str, list[int]] = defaultdict(list)
    for some in signs:
        points: defaultdict[RecoveryPhase, dict[str, int]] = defaultdict(dict)
        for one in some:
            if one.host:
                points[one.point].setdefault(one.host, one.time)
        for times in points.values():
            if len(times) >= _LEAST_HOSTS:
                usual = int(median_low(times.values()))
                for host, time in times.items():
                    apart[host].append(time - usual)
    found = {}
    for host, by in apart.items():
        low, high = min(by), max(by)
        if len(by) >= _LEAST_POINTS and high - low <= _APART_NS and (low >= _APART_NS or high <= -_APART_NS):
            found[host] = int(median_low(by))
    return found
