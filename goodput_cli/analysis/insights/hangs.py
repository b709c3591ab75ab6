"""Hanging steps: kept or lost, and their time beyond a usual step (accounting §5, step_stall)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from goodput_cli.accounting.attempts.endings import End
from goodput_cli.accounting.attempts.failure_cause import FailureCause
from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import of_kind, union
from goodput_cli.accounting.training.spans import StepRecordsByAttempt
from goodput_cli.analysis.disruptions.costs import OlderRestore
from goodput_cli.analysis.disruptions.losses import taken_back_by
from goodput_cli.analysis.goodput.findings import CoveredTime
from goodput_cli.analysis.steps.times import timed_steps
from goodput_cli.arrays import I64, Mask, Rows, blocks, sums_by
from goodput_cli.events.schema import NO_STEP, Edge, Kind
from goodput_cli.vocabulary.categories import Category

_RAN_FOR = re.compile(
    r"(?:[Ww]atchdog|timeout).{0,200}?(?: ran for (?P<waited>\d{1,12}) mil|Timeout\(ms\)=(?P<most>\d{1,12}))", re.DOTALL
)
"""A quote of the line may be cut after the match."""
_NS_PER_MS = 10**6
_LONGEST_NS = 10**18
_KEPT = (Category.PRODUCTIVE, Category.STALL)
_AT_THE_END = (*_KEPT, Category.WASTED, Category.OTHER)
"""Categories of the step in flight at an end. For the last attempt it is `other` beyond a usual step."""
_BEFORE_STEPS = (Category.RECOVERY, Category.OTHER)
"""Categories of an attempt that never stepped."""
HANG_NS = 60 * 10**9
"""A step that exceeds a usual one by less (ns) is slow, but does not hang."""
_MANY = 0.03
"""Share of the window below which occasional long steps, as in every job, are not reported."""


@dataclass(frozen=True)
class Hangs:
    """Hanging steps, in time order: columns of one length."""

    attempt: Rows
    """Attempt, from 0."""
    number: I64
    """Step in the engine's numbering; in logs of step ends, the number of steps done before. `NO_STEP` before the first
    step of an attempt."""
    step: I64
    """Step, or the first of those that one record covers, in the numbering of the log; `NO_STEP` as above."""
    start: I64
    end: I64
    """End, ns."""
    row: Rows
    """Row of the line of its begin, or of its end in logs of step ends. Before the first step, row of the last start
    line."""
    ns: I64
    """Time beyond a usual step, by the ledger (ns)."""
    lost: I64
    """Part of it that the ledger counts as wasted (ns)."""
    usual: I64
    """Time of a usual step (ns), times the number of steps that one record covers."""
    upto: I64
    """Last of the steps that one record covers, in the engine's numbering."""

    def __len__(self) -> int:
        return len(self.ns)

    @property
    def before_first_step(self) -> Mask:
        """Return, for each hang, True if it occurred before its attempt's first step."""
        return np.asarray(self.number == NO_STEP)

    def take(self, some: Mask | Rows) -> Hangs:
        """Return the chosen hangs."""
        return Hangs(*(getattr(self, name)[some] for name in _COLUMNS))


_COLUMNS = [one.name for one in fields(Hangs)]
_NONE = Hangs(*(np.zeros(0, dtype=np.int64) for _ in _COLUMNS))


def find_hangs(timeline: Timeline, within: tuple[int, int]) -> Hangs:
    """Return the hangs within a window (ns) of step times; empty without --stall-factor."""
    if timeline.rules.method.stall_factor <= 0:
        return _NONE
    found = [_between_records(timeline, within), _in_flight(timeline, within), _before_first_step(timeline, within)]
    found = [one for one in found if len(one)]
    if len(found) < 2:
        return found[0] if found else _NONE
    every = Hangs(*(np.concatenate([getattr(one, name) for one in found]) for name in _COLUMNS))
    return every.take(np.argsort(every.start, kind="stable"))


def _between_records(timeline: Timeline, within: tuple[int, int]) -> Hangs:
    """Return hanging steps that ended, as the next record shows."""
    factor, usual, records = timeline.rules.method.stall_factor, timeline.usual_step.median, timeline.records
    place = _long_steps(timeline, within)
    if records is None or len(place) == 0:
        return _NONE
    attempt, number = records.owner[place], records.number[place]
    start, end = records.time[place], records.time[place + 1]
    expected = np.rint(usual[attempt] * (records.number[place + 1] - number)).astype(np.int64)
    ends = int(timeline.attempts.step_ends)
    row, named = records.rows[place], records.rows[place + ends]
    amounts = timeline.ledger.between(start, end, (*_KEPT, Category.WASTED))
    nothing = np.zeros(len(place), dtype=np.int64)
    wasted = amounts.pop((Category.WASTED, -1), nothing)
    spans = timeline.training.spans
    opening = np.isin(row, spans.row[spans.opening])  # In lost training the ledger does not separate the start-up.
    wasted = np.where(opening, 0, np.maximum(wasted - _explained(timeline, start, end), 0))
    kept = sum(amounts.values(), nothing)
    long = (kept + wasted > factor * expected) & ~_is_marked(timeline, place, kept + wasted - expected)
    hung = np.flatnonzero(long)
    beyond = (kept + wasted - expected)[hung]
    lost = np.minimum(wasted[hung], beyond)
    number = number[hung].astype(np.int64)
    return Hangs(
        attempt[hung], number, number + ends, start[hung], end[hung], named[hung], beyond, lost, expected[hung],
        records.number[place[hung] + 1].astype(np.int64) - 1,
    )  # fmt: skip


def significant_hangs(hangs: Hangs, timeline: Timeline, within: tuple[int, int]) -> Hangs:
    """Return the hangs that differ clearly from the occasional long steps of the job. Without any, return all of them
    if they are a considerable part of the window, otherwise none.

    Such a hang exceeds a usual step by a minute or more. Also, step times must not become ever rarer as they grow: with
    a heavy tail, more steps lie between half of a limit and the limit than above it.
    """
    if len(hangs) == 0:
        return hangs
    usual, factor = timeline.usual_step.median, timeline.rules.method.stall_factor
    steps = timed_steps(timeline, *within)
    with np.errstate(divide="ignore", invalid="ignore"):  # A usual step may take no time.
        longer = steps.seconds * 1e9 / usual[steps.attempt]
    limit = factor
    while 0 < np.count_nonzero(longer > limit) <= np.count_nonzero((longer > limit / 2) & (longer <= limit)):
        limit *= 2
    apart = (hangs.ns >= HANG_NS) & (hangs.ns + hangs.usual > limit * hangs.usual)
    if not apart.any() and hangs.ns.sum() >= _MANY * (within[1] - within[0]):
        return hangs
    return hangs.take(apart)


def _in_flight(timeline: Timeline, within: tuple[int, int]) -> Hangs:
    """Return steps in flight when attempts ended, if heartbeats continued or a watchdog reports how long it waited.

    Without either the time of death is unknown. The last attempt counts only if its end is logged.
    """
    records, ends = timeline.records, timeline.ends
    factor, usual = timeline.rules.method.stall_factor, timeline.usual_step.median
    heard, waited = _heard_until(timeline)
    if records is None or not heard.any() or len(records.rows) == 0:
        return _NONE
    last = np.append(np.flatnonzero(np.diff(records.owner)), len(records.rows) - 1)
    attempt = records.owner[last]
    some = (ends.followed | ends.stated)[attempt]
    last, attempt = last[some], attempt[some]
    number, end = records.number[last].astype(np.int64), heard[attempt]
    expected = np.rint(np.nan_to_num(usual[attempt])).astype(np.int64)
    limit, room = timeline.lineage.limit[attempt], np.maximum(end - records.time[last], 0) // np.maximum(expected, 1)
    behind = np.where(limit > number, np.minimum(limit - number, room), 0)  # A checkpoint shows that they ended.
    behind[~ends.followed[attempt]] = 0
    start = records.time[last] + behind * expected
    start = np.where(waited[attempt] > 0, np.maximum(start, end - waited[attempt] - expected), start)
    due = np.where(waited[attempt] > 0, expected, expected * _strides(records, last))  # Until then, no line is missing.
    some = (end - start > factor * due) & (expected > 0) & (start >= within[0]) & (end <= within[1])
    last, attempt, start, end, expected, number = (
        one[some] for one in (last, attempt, start, end, expected, number + behind)
    )
    amounts, nothing = timeline.ledger.between(start, end, _AT_THE_END), np.zeros(len(start), dtype=np.int64)
    wasted = amounts.get((Category.WASTED, -1), nothing)
    explained = np.where(wasted > 0, _explained(timeline, start, end), 0)  # The ledger does it for other time.
    unclaimed = np.where(ends.followed[attempt], 0, sum(amounts.values(), nothing) - wasted)
    beyond = np.maximum(wasted + unclaimed - explained - expected, 0)
    some = beyond > factor * expected
    rows = records.rows[last]
    step = number + int(timeline.attempts.step_ends)
    lost = np.minimum(beyond, wasted)
    return Hangs(attempt, number, step, start, end, rows, beyond, lost, expected, number).take(some)


def _strides(records: StepRecordsByAttempt, last: Rows) -> I64:
    """Return the number of steps between the last two records of attempts, at least 1. last: indices in the records."""
    before = np.maximum(last - 1, 0)
    steps = records.number[last].astype(np.int64) - records.number[before].astype(np.int64)
    return np.where(records.owner[before] == records.owner[last], np.maximum(steps, 1), 1)


def _before_first_step(timeline: Timeline, within: tuple[int, int]) -> Hangs:
    """Return attempts that ended before a recorded step because a wait timed out, with the unexplained part of the
    wait."""
    attempts, ends = timeline.attempts, timeline.ends
    waited = _heard_until(timeline)[1]
    stepped = np.zeros(len(attempts), dtype=bool)
    if timeline.records is not None:
        stepped = timeline.records.has_records
    elif timeline.progress is not None:
        stepped = timeline.progress.last != NO_STEP
    attempt = np.flatnonzero((waited > 0) & ~stepped & (ends.followed | ends.stated))
    start, end = np.maximum(attempts.up[attempt], ends.time[attempt] - waited[attempt]), ends.time[attempt]
    inside = (start >= within[0]) & (end <= within[1]) & (start < end)
    attempt, start, end = attempt[inside], start[inside], end[inside]
    if len(attempt) == 0:
        return _NONE
    nothing, none = np.zeros(len(attempt), dtype=np.int64), np.full(len(attempt), NO_STEP, dtype=np.int64)
    ns = sum(timeline.ledger.between(start, end, _BEFORE_STEPS).values(), nothing)
    return Hangs(attempt, none, none, start, end, attempts.up_row[attempt], ns, nothing, nothing, none).take(ns > 0)


def ran_out_of_time(why: FailureCause) -> bool:
    """Return True if a line shows that an attempt ended when a wait timed out."""
    return _waited(why) is not None


def _waited(why: FailureCause) -> int | None:
    """Return how long (ns) a logged wait lasted until the attempt ended; None if no wait timed out."""
    for one in (why.evidence, *why.used):
        if one is not None and one.waited_ns:
            return min(one.waited_ns, _LONGEST_NS)
        if one is not None and (found := _RAN_FOR.search(one.text)):
            return int(found["waited"] or found["most"]) * _NS_PER_MS
    return None


def ended_by_timeout(hangs: Hangs, timeline: Timeline) -> Mask:
    """Return, for each step, True if it hung until its attempt ended because a wait timed out."""
    if not timeline.table.observed.rows:
        return np.zeros(len(hangs), dtype=bool)
    ran_out = [ran_out_of_time(timeline.causes.why[attempt]) for attempt in hangs.attempt.tolist()]
    return np.array(ran_out, dtype=bool) & at_the_end(hangs, timeline)


def at_the_end(hangs: Hangs, timeline: Timeline) -> Mask:
    """Return True for each hang that lasted until its attempt ended, and not with a believed clean end."""
    ends, clean = timeline.ends, timeline.endings.how == End.CLEAN
    known = (ends.followed | ends.stated) & ~clean
    return np.asarray((hangs.end >= ends.time[hangs.attempt]) & known[hangs.attempt])


def _heard_until(timeline: Timeline) -> tuple[I64, I64]:
    """Return, by attempt, when (ns) it was last known to be alive in its step, and for how long (ns); 0 if unknown.

    It is known at the last heartbeat, and at the end if a watchdog reports how long it had waited.
    """
    table, owner = timeline.table, timeline.attempts.of_row
    rows = np.flatnonzero((table.kind == Kind.HEARTBEAT) & (owner >= 0))
    heard, waited = np.zeros((2, len(timeline.attempts)), dtype=np.int64)
    np.maximum.at(heard, owner[rows], table.time[rows])
    heard[heard > 0] = np.minimum(heard, timeline.sign_of_life)[heard > 0]
    for attempt, why in enumerate(timeline.causes.why if table.observed.rows else ()):
        if (length := _waited(why)) is not None:
            heard[attempt], waited[attempt] = timeline.sign_of_life[attempt], length
    return heard, waited


def _long_steps(timeline: Timeline, within: tuple[int, int]) -> Rows:
    """Return indices in the records: kept steps that stalled, and lost ones that took as long, for any reason."""
    records, factor, usual = timeline.records, timeline.rules.method.stall_factor, timeline.usual_step.median
    if records is None or len(records.rows) < 2:
        return np.zeros(0, dtype=np.intp)
    limit = np.where(usual > 0, factor * usual, np.inf)
    chosen = [_stalled(timeline)]
    for first, stop in blocks(len(records.rows) - 1):
        owner, time, number = (one[first : stop + 1] for one in (records.owner, records.time, records.number))
        lost = (number[:-1] >= timeline.lineage.limit[owner[:-1]]) & (owner[1:] == owner[:-1])
        here = np.flatnonzero(lost)
        took, steps = time[here + 1] - time[here], number[here + 1] - number[here]
        chosen.append(here[took > limit[owner[here]] * steps] + first)
    place = union(*chosen)
    inside = (records.time[place] >= within[0]) & (records.time[place + 1] <= within[1])
    return np.asarray(place[inside])


def _stalled(timeline: Timeline) -> Rows:
    """Return indices in the records of the kept steps that stalled.

    A span may begin without a record: the first one of an attempt in logs of step ends.
    """
    records, spans, stalled = timeline.records, timeline.training.spans, timeline.kept_training.stall.rows
    if records is None or len(stalled) == 0:
        return np.zeros(0, dtype=np.intp)
    row = spans.row[stalled]
    place = np.minimum(np.searchsorted(records.rows, row), len(records.rows) - 1)
    return np.asarray(place[(records.rows[place] == row) & (place < len(records.rows) - 1)])


def _explained(timeline: Timeline, start: I64, end: I64) -> I64:
    """Return the time (ns) of each interval with a logged explanation other than training. In lost training the ledger
    counts it as wasted too."""
    table, phases = timeline.table, timeline.phases
    saves = np.flatnonzero(of_kind(table.kind, (Kind.SAVE, Kind.RESTORE)) & (table.edge == Edge.INTERVAL))
    begins = np.concatenate((phases.start, table.time[saves]))
    ends = np.concatenate((phases.end, table.end[saves]))
    return CoveredTime(begins, ends).within(start, end)


def down_in_hangs(hangs: Hangs, timeline: Timeline) -> I64:
    """Return the downtime (ns) in hangs before a first step, by attempt that another one follows."""
    early = hangs.before_first_step
    return sums_by(hangs.attempt[early], hangs.ns[early], len(timeline.attempts))[:-1]


def _is_marked(timeline: Timeline, place: Rows, beyond: I64) -> Mask:
    """Return, for each gap between records, True if a mark of a save or load explains it: a line without a duration.

    beyond: the time of each beyond usual steps (ns). A mark explains the usual time of the job's saves, and not a gap
    that is far longer.
    """
    table, records, usual = timeline.table, timeline.records, timeline.usual_step.median
    saves = np.flatnonzero(table.kind == Kind.SAVE)
    # Next to lines of saves, a completion may be that of a save in the background.
    points = saves[table.edge[saves] == Edge.POINT] if len(saves) else np.flatnonzero(table.kind == Kind.SAVED)
    stated = table.end[saves] - table.time[saves]
    loads = np.flatnonzero(of_kind(table.kind, (Kind.RESTORE, Kind.LOAD)) & (table.edge == Edge.POINT))
    if records is None or len(points) + len(loads) == 0:
        return np.zeros(len(place), dtype=np.bool_)
    rows = np.sort(np.concatenate((points, loads)))
    marked = np.unique(np.searchsorted(records.rows, rows) - 1)
    marked = marked[(marked >= 0) & (marked < len(records.rows) - 1)]
    marked = marked[records.owner[marked] == records.owner[marked + 1]]
    steps = records.number[marked + 1] - records.number[marked]
    taken = records.time[marked + 1] - records.time[marked] - usual[records.owner[marked]] * steps
    taken = np.concatenate((np.maximum(taken, 0), stated[stated > 0]))
    most = timeline.rules.method.stall_factor * float(np.median(taken)) if len(taken) else 0
    return np.isin(place, marked) & (beyond <= most)


def lost_in_hangs(timeline: Timeline, hangs: Hangs, skipped: Sequence[Sequence[OlderRestore]]) -> tuple[I64, list[I64]]:
    """Return, by attempt that another one follows, the training (ns) in hangs that its end took back.

    The second value is the part that skipped checkpoints would have kept, per group of restores: these seconds belong
    to the hang. The first group that would have kept a hang has it.
    """
    lost = np.zeros(len(timeline.attempts), dtype=np.int64)
    parts = [lost[:-1].copy() for _ in skipped]
    if not hangs.lost.any():
        return lost[:-1], parts
    ended = taken_back_by(timeline, hangs.attempt, hangs.upto)  # The last steps of a record are lost.
    rest = np.flatnonzero((hangs.lost > 0) & (ended >= 0))
    np.add.at(lost, ended[rest], hangs.lost[rest])
    for group, part in zip(skipped, parts, strict=True):
        newest = np.full(len(lost), np.iinfo(np.int64).min)
        for one in group:
            newest[one.ended] = max(newest[one.ended], one.below)
        avoidable = hangs.number[rest] < newest[ended[rest]]
        np.add.at(part, ended[rest[avoidable]], hangs.lost[rest[avoidable]])
        rest = rest[~avoidable]
    return lost[:-1], parts
