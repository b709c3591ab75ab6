"""Points of an outage (accounting §10, Links): the moments between an attempt's last progress and the training of the
next that lines name, in the order in which they come.

Signs name most of them (`events/signs.py`). Where progress ended, when the next attempt was up, what it restored and
when it trained, the events of the job show.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

import numpy as np

from goodput_cli.accounting.attempts.endings import End
from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import rows_of, search
from goodput_cli.analysis.disruptions.costs import AttemptCosts
from goodput_cli.analysis.disruptions.losses import EvidenceRows, find_evidence
from goodput_cli.events.schema import Kind
from goodput_cli.events.signs import Point, Sign

FIRST = frozenset({Point.FAILED, Point.DETECTED, Point.DECIDED, Point.RENDEZVOUS_BEGUN})
"""Of several lines that name such a point the first counts; of all others the last."""
_OF_ATTEMPT = frozenset({Point.LAST_PROGRESS, Point.TRAINING_AGAIN, Point.CAUGHT_UP})
"""What no sign names: the events of the job do."""
_WHO_FAILED = ("process", "pod", "kernel")
"""Whose words tell of the failure itself: launchers and schedulers tell of what they noticed."""


@dataclass(frozen=True)
class Moment:
    """A point that a line names."""

    point: Point
    """Which one."""
    time: int
    """ns since 1970 UTC; where its line stands before one that comes earlier in the order, the time of that."""
    where: str
    """`file:line`, or the insertId of an entry."""
    moved_ns: int = 0
    """By how much its line stands before that one."""


@dataclass(frozen=True)
class Passage:
    """From the last progress of an attempt to the training of the next, as lines name it."""

    ended: int
    """The attempt that ended, from 0."""
    moments: tuple[Moment, ...]
    """Rising; the first is the last progress."""
    signs: tuple[Sign, ...]
    """All that lie in it."""
    followed: bool
    """Whether another attempt came."""
    trained: bool
    """Whether that one trained."""
    caught_up_later: bool = False
    """Whether progress was regained only by an attempt behind that one."""


def passages_of(timeline: Timeline, costs: AttemptCosts, *, last: bool) -> list[Passage]:
    """The passages of a job in time order: all but scale-ups and rollbacks. last: whether the end of its last attempt,
    which nothing followed, is one."""
    if not len(timeline.attempts):
        return []
    return list(_Finder(timeline, costs).passages(last=last))


class _Finder:
    """Looks the points of one job up."""

    def __init__(self, timeline: Timeline, costs: AttemptCosts) -> None:
        self._timeline, self._costs = timeline, costs
        self._until_up, self._left = costs.behind[1].tolist(), costs.left.tolist()
        self._evidence: EvidenceRows = find_evidence(timeline)
        job = timeline.table.jobs[int(timeline.table.job[0])]
        self._signs = sorted(
            (one for one in timeline.table.observed.signs if one.job in ("", job) and one.point not in _OF_ATTEMPT),
            key=lambda one: (one.time, one.point, one.where),
        )
        told: dict[str, int] = {one.where: one.time for one in self._signs if one.point is not Point.FAILED}
        # a failure that a line works out lies where the line does, however long ago it says that it was
        self._belongs = [
            (told.get(one.where, one.time) if one.point is Point.FAILED else one.time) for one in self._signs
        ]
        order = sorted(range(len(self._signs)), key=self._belongs.__getitem__)
        self._signs, self._belongs = [self._signs[at] for at in order], [self._belongs[at] for at in order]
        self._begins = [self._last_progress(attempt) for attempt in range(len(timeline.attempts))]

    def passages(self, *, last: bool) -> Iterator[Passage]:
        timeline, count = self._timeline, len(self._timeline.attempts)
        planned = timeline.planned.tolist()
        for attempt in range(count - 1):
            if not planned[attempt]:
                yield self._passage(attempt)
        if last:
            yield self._end(count - 1)

    def _end(self, attempt: int) -> Passage:
        """The end of the last attempt: nothing followed."""
        begin = self._begins[attempt]
        signs = [one for one in self._signs[bisect_left(self._belongs, begin.time) :] if one.point <= Point.TERMINATED]
        moments = _in_order([begin, *self._named(attempt, signs, None)])
        return Passage(attempt, moments, tuple(signs), followed=False, trained=False)

    def _passage(self, attempt: int) -> Passage:
        timeline, begin, following = self._timeline, self._begins[attempt], attempt + 1
        trained = self._training_again(following)
        end = max(self._until_up[attempt], begin.time)
        if trained is not None:
            end = max(end, trained.time)
        signs = self._between(begin.time, min(end, max(self._begins[following].time, begin.time)))
        named = list(self._named(attempt, signs, following, end))
        if trained is None:  # the chain closes where it was up
            named = [one for one in named if one.point < Point.WORKERS_STARTED]
            row = int(timeline.attempts.up_row[following])
            named.append(Moment(Point.WORKERS_STARTED, end, timeline.table.where(row)))
            return Passage(attempt, _in_order([begin, *named]), tuple(signs), followed=True, trained=False)
        moments = _in_order([begin, *named, Moment(Point.TRAINING_AGAIN, end, trained.where)])
        row = int(self._evidence.regained[attempt])
        later = row >= 0 and self._life(row) != int(timeline.attempts.number[following])
        if row >= 0 and not later:
            reached = max(int(timeline.table.time[row]), end)  # of a step that is past the old one from its begin on
            caught_up = Moment(Point.CAUGHT_UP, reached, timeline.table.where(row))
            moments = _in_order([*moments, caught_up])
        return Passage(attempt, moments, tuple(signs), followed=True, trained=True, caught_up_later=later)

    def _life(self, row: int) -> int:
        """The number of the attempt of a row."""
        attempts = self._timeline.attempts
        return int(attempts.number[attempts.of_row[row]])

    def _last_progress(self, attempt: int) -> Moment:
        """Its last step; of one without a step, where it was up. What was trained behind its line is its step in
        flight."""
        timeline = self._timeline
        row = int(self._evidence.last_step[attempt])
        time = int(timeline.attempts.up[attempt] if row < 0 else timeline.table.time[row])
        place = int(timeline.attempts.up_row[attempt]) if row < 0 else row
        return Moment(Point.LAST_PROGRESS, min(time, self._left[attempt]), timeline.table.where(place))

    def _training_again(self, attempt: int) -> Moment | None:
        """Where its first step began, its start-up aside; None for one that never trained."""
        timeline = self._timeline
        spans, row = timeline.training.spans, int(self._evidence.first_step[attempt - 1])
        at, stop = self._bounds[attempt], self._bounds[attempt + 1]
        if at == stop:
            if row < 0 or int(timeline.attempts.of_row[row]) != attempt:
                return None
            return Moment(Point.TRAINING_AGAIN, int(timeline.table.time[row]), timeline.table.where(row))
        ends = self._startups.get(attempt)
        begin = self._first_step_began(at, attempt) if ends is None else ends
        shown = row if row >= 0 else int(spans.row[at])
        return Moment(Point.TRAINING_AGAIN, begin, timeline.table.where(shown))

    @cached_property
    def _bounds(self) -> list[int]:
        """Where the spans of each attempt begin."""
        found: list[int] = search(
            self._timeline.training.spans.attempt, np.arange(len(self._timeline.attempts) + 1)
        ).tolist()
        return found

    @cached_property
    def _startups(self) -> Mapping[int, int]:
        """By attempt, where (ns) the start-up of its first span ends."""
        attempt, _, end = self._costs.startups
        return dict(zip(attempt.tolist(), end.tolist(), strict=True))

    def _first_step_began(self, span: int, attempt: int) -> int:
        """Of a span that holds no start-up of the ledger. One that is lost has none, and of one that a line ends nobody
        says when its first step began: usual steps before its end, where it stands out as a start-up does."""
        timeline = self._timeline
        spans, usual = timeline.training.spans, timeline.usual_step
        begin, end = int(spans.start[span]), int(spans.end[span])
        median, deviation = float(usual.median[attempt]), float(usual.deviation[attempt])
        steps = int(spans.stop[span] - spans.first[span])
        if not timeline.attempts.step_ends or not end - begin > steps * (median + 3 * deviation):
            return begin
        return max(begin, end - round(median * steps))

    def _between(self, begin: int, end: int) -> list[Sign]:
        """The signs from the last progress to the training. One at either instant is of the passage that it fits: what
        ends an attempt begins a passage, what starts one ends it."""
        first, stop = bisect_left(self._belongs, begin), bisect_right(self._belongs, end)
        some = zip(self._signs[first:stop], self._belongs[first:stop], strict=True)
        return [
            one
            for one, time in some
            if (time > begin or one.point < Point.REQUEUED) and (time < end or one.point >= Point.REQUEUED)
        ]

    def _named(
        self, attempt: int, signs: Sequence[Sign], following: int | None, end: int | None = None
    ) -> Iterator[Moment]:
        """What lines name between the last progress and the training: signs, what the cause says, and events."""
        found: dict[Point, Moment] = {}
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
                if known is None or (event.point is Point.RESTORED and event.time > known.time):
                    found[event.point] = event
        yield from found.values()

    def _failure(self, attempt: int, signs: Iterable[Sign], end: int | None) -> Iterator[Sign]:
        """When the attempt failed, as the line of its cause says where that has a time of its own."""
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
            yield Sign("", Point.FAILED, one.lo, one.where)

    def _of_events(self, attempt: int, end: int, signs: Iterable[Sign]) -> Iterator[Moment]:
        """What events show of the attempt that follows: its start line, unless that names another point, and where its
        restore ended."""
        timeline = self._timeline
        table, attempts = timeline.table, timeline.attempts
        if attempts.started[attempt]:
            row = int(attempts.up_row[attempt])
            where = table.where(row)
            named = {one.point for one in signs if one.where == where}
            if not named or Point.WORKERS_STARTED in named:
                yield Moment(Point.WORKERS_STARTED, int(attempts.up[attempt]), where)
        restored = self._restored.get(attempt)
        inside = [row for row in restored or () if table.end[row] <= end]
        if inside:
            row = max(inside, key=lambda one: int(table.end[one]))
            yield Moment(Point.RESTORED, int(table.end[row]), table.where(row))

    @cached_property
    def _restored(self) -> Mapping[int, list[int]]:
        """By attempt, the rows of its restores and loads."""
        table, owner = self._timeline.table, self._timeline.attempts.of_row
        found: dict[int, list[int]] = {}
        rows = rows_of(table.kind, (Kind.RESTORE, Kind.LOAD))
        for row, attempt in zip(rows.tolist(), owner[rows].tolist(), strict=True):
            found.setdefault(attempt, []).append(row)
        return found


_POINT = attrgetter("point")


def _in_order(moments: Iterable[Moment]) -> tuple[Moment, ...]:
    """In the order of the points; one whose line stands before an earlier point's is put there, and marked."""
    result: list[Moment] = []
    for one in sorted(moments, key=_POINT):
        before = result[-1].time if result else one.time
        result.append(one if one.time >= before else Moment(one.point, before, one.where, before - one.time))
    return tuple(result)


def is_planned_stop(timeline: Timeline, attempt: int) -> bool:
    """Whether an attempt ended as it was meant to."""
    return bool(timeline.endings.how[attempt] == End.CLEAN)
