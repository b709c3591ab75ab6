"""Replay: the same steps and the same failures under another policy (docs/advice.md, *How the interval is chosen*). A
policy defines where saves are made, and their cost. This module does not depend on the accounting.

Every attempt keeps its budget, every gap its length. An attempt is two running totals, by place and by position, and
the saves of the policy are a third: its end is found by binary search, so a replay costs O((failures) log steps).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from goodput_cli.analysis.advice.record import EndKind, JobRecord, StepTotal, step_total
from goodput_cli.analysis.advice.results import Fidelity
from goodput_cli.arrays import I64

_LEAST_REPLAYED = 0.9


class Policy(Protocol):
    """Rule for when to save. A save is made at a position, which is the one after its step."""

    waits: bool
    """True if a save may have to wait because the one before cannot be used yet."""

    def paid(self, life: int, position: int) -> int:
        """Return the cost (ns) of the saves at or below a position in an attempt; only differences matter."""

    def count(self, life: int, position: int) -> int:
        """Count the saves at or below a position in an attempt."""

    def last(self, life: int, low: int, high: int) -> int | None:
        """The highest position with low < position <= high at which is saved."""

    def delay(self, life: int, position: int) -> int:
        """ns from when the save there no longer blocks until it can be used."""


class RecordedSaves:
    """Saves where the attempt saved; where it recorded no step, wherever any attempt saved."""

    waits = False

    def __init__(self, record: JobRecord) -> None:
        self._record, self._any = record, record.first_saves

    def paid(self, life: int, position: int) -> int:
        own, low, high = self._own(life)
        paid = self._any.step_total.total_at
        return paid(min(position, low)) + own.total_at(min(position, high)) + paid(max(position, high)) - paid(high)

    def count(self, life: int, position: int) -> int:
        own, low, high = self._own(life)
        count = self._any.step_total.count
        return count(min(position, low)) + own.count(min(position, high)) + count(max(position, high)) - count(high)

    def _own(self, life: int) -> tuple[StepTotal, int, int]:
        one = self._record.lives[life]
        return one.saves.step_total, one.first, one.stop

    def last(self, life: int, low: int, high: int) -> int | None:
        own, first, stop = self._own(life)
        parts = ((self._any.step_total, stop, high), (own, first, stop), (self._any.step_total, low, first))
        for saves, begin, end in parts:
            save = saves.last(max(begin, low), min(end, high))
            if save is not None:
                return save
        return None

    def delay(self, life: int, position: int) -> int:
        one = self._record.lives[life]
        inside = one.first < position <= one.stop
        saves = one.saves if inside else self._any
        return int(saves.delay[np.searchsorted(saves.made_at, position)])


class SaveEvery:
    """Saves after every step that `every` divides, except those at or below the first position; the save after the last
    step is unchanged. A save that the record shows costs what it did, any other `JobRecord.cost_ns`."""

    def __init__(self, record: JobRecord, every: int) -> None:
        self._record, self.every = record, every
        self._behind, self._origin = record.save_offset, record.lives[0].first
        self._usual, self._delay = record.cost_ns, record.latency
        self.waits = self._delay > 0
        self._saves_at_end = bool(np.any(record.first_saves.made_at == record.end))
        step = record.end - self._behind
        self._end_is_multiple = step > self._origin and step % every == 0

    @cached_property
    def _corrections(self) -> tuple[StepTotal, dict[int, StepTotal]]:
        """Return the cost of recorded saves beyond the usual cost: of any attempt, and the difference of single
        attempts from that."""
        known = self._record.first_saves
        here = self._at_a_save(known.made_at)
        own: dict[int, StepTotal] = {}
        for life, (made_at, differs) in self._record.unlike_first.items():
            mine = self._at_a_save(made_at)
            if mine.any():
                own[life] = step_total(made_at[mine], differs[mine])
        return step_total(known.made_at[here], known.cost[here] - self._usual), own

    def _at_a_save(self, made_at: I64) -> NDArray[np.bool_]:
        step = made_at - self._behind
        rule = (step % self.every == 0) & (step > self._origin)
        return np.asarray(rule | (made_at == self._record.end))

    def count(self, life: int, position: int) -> int:  # noqa: ARG002
        upto = (max(position, self._origin + self._behind) - self._behind) // self.every
        at_end = (self._saves_at_end - self._end_is_multiple) if position >= self._record.end else 0
        return upto - self._origin // self.every + at_end

    def paid(self, life: int, position: int) -> int:
        known, own = self._corrections
        beyond = own.get(life)
        paid = self._usual * self.count(life, position) + known.total_at(position)
        return paid if beyond is None else paid + beyond.total_at(position)

    def last(self, life: int, low: int, high: int) -> int | None:  # noqa: ARG002
        if high >= self._record.end:
            if self._saves_at_end and low < self._record.end:
                return self._record.end
            high = self._record.end - 1
        step = (high - self._behind) // self.every * self.every
        position = step + self._behind
        return position if position > low and step > self._origin else None

    def delay(self, life: int, position: int) -> int:  # noqa: ARG002
        return self._delay


_GUESSES = 8


@dataclass(frozen=True)
class BudgetResult:
    """Result of a budget spent from one position. whole: the last position whose step and save were completed;
    position: where it ends; used: ns. made: for saves that had to wait for each other, the position of each and when
    (ns of the run) it can be used; None if the policy alone decides the saves."""

    whole: int
    position: int
    used: int
    made: list[tuple[int, int]] | None = None


class AttemptReplay:
    """The clock of one attempt of the record from a place and a position on."""

    def __init__(self, record: JobRecord, policy: Policy, life: int, place: int, position: int) -> None:
        self._record, self._policy, self.life = record, policy, life
        self.place, self.position = place, position
        self._one = record.lives[life]
        self._begin = self._one.work.total_at(place) + self._extra(position)
        self._paid = policy.paid(life, position)

    def _extra(self, position: int) -> int:
        """Return the evals below a position: the attempt's own where it recorded the step, otherwise those of the
        latest that did."""
        one, any_ = self._one, self._record.latest_extra
        if one.first <= position <= one.stop or not any_.total[-1]:
            return one.extra.total_at(position)
        if position < one.first:
            return any_.total_at(position) - any_.total_at(one.first)
        return one.extra.total[-1] + any_.total_at(position) - any_.total_at(one.stop)

    def trained(self, position: int) -> int:
        """ns until the step before a position is complete, without any save."""
        place = self.place + position - self.position
        return self._one.work.total_at(place) + self._extra(position) - self._begin

    def done(self, position: int) -> int:
        """Return the same with all saves of the policy, including the one at the position."""
        return self.trained(position) + self._policy.paid(self.life, position) - self._paid

    def cost(self, position: int) -> int:
        """ns of the save at a position."""
        return self._policy.paid(self.life, position) - self._policy.paid(self.life, position - 1)

    def within(self, budget: int | None, end: int) -> BudgetResult:
        """Return how far a budget (ns; None: any) goes, at most to the end position."""
        if self._policy.waits:
            return self._within_waiting(budget, end)
        if budget is None:
            return BudgetResult(end, end, self.done(end))
        whole = self._farthest(budget, end)
        used = self.done(whole) if whole > self.position else 0
        if whole < end:
            step = self.trained(whole + 1) + used - (self.trained(whole) if whole > self.position else 0)
            if step <= budget:
                return BudgetResult(whole, whole + 1, step)
        return BudgetResult(whole, whole, used)

    def _farthest(self, budget: int, end: int) -> int:
        """Return the last position, at most the end, whose step and save are complete within the budget (ns). Attempts
        are even, so a few guesses at their mean pace nearly always find it; otherwise a binary search does."""
        low, high = self.position, end + 1
        guess, pace = low + budget // self._one.usual, self._one.usual
        for _ in range(_GUESSES):
            guess = min(max(guess, low + 1), high - 1)
            if guess == low:
                break
            taken = self.done(guess)
            low, high = (guess, high) if taken <= budget else (low, guess)
            pace = max(taken // (guess - self.position), 1)
            ahead = (budget - taken) // pace
            guess += max(ahead, 1) if taken <= budget else ahead
        return low + bisect_right(range(low + 1, high), budget, key=self.done)

    def _within_waiting(self, budget: int | None, end: int) -> BudgetResult:
        """Save by save: none is made while the one before can not be used yet."""
        most = self.done(end) if budget is None else budget
        made: list[tuple[int, int]] = []
        paid, ready, low = 0, 0, self.position
        while True:
            free = low + 1 + bisect_left(range(low + 1, end + 1), ready - paid, key=self.trained)
            save = self._next_save(max(free, low + 1), end)
            reached = end if save is None else save
            if self.trained(reached) + paid > most:
                position = low + bisect_right(range(low + 1, reached), most - paid, key=self.trained)
                return BudgetResult(position, position, self.trained(position) + paid, made)
            if save is None:
                return BudgetResult(end, end, self.trained(end) + paid, made)
            cost = self.cost(save)
            if self.trained(save) + paid + cost > most:
                return BudgetResult(save - 1, save, self.trained(save) + paid, made)
            paid += cost
            ready = self.trained(save) + paid + self._policy.delay(self.life, save)
            made.append((save, ready))
            low = save
            if save == end:
                return BudgetResult(end, end, self.trained(end) + paid, made)

    def _next_save(self, low: int, end: int) -> int | None:
        """The first position in [low, end] at which the policy saves."""
        before = self._policy.count(self.life, low - 1)
        ahead = range(low, end + 1)
        position_of_save = low + bisect_right(
            ahead, before, key=lambda position: self._policy.count(self.life, position)
        )
        return position_of_save if position_of_save <= end else None


MOST_WRAPS = 200
MOST_DEATHS = 5000


@dataclass(frozen=True)
class ReplayResult:
    """Result of a replay. ns: its length; None if it never ends. path: for each failure, its position and the position
    at which the next attempt began. saves, saved: the number of completed saves, and the time (ns) they took."""

    ns: int | None
    path: tuple[tuple[int, int], ...]
    saves: int
    saved: int

    @property
    def deaths(self) -> int:
        return len(self.path)


def replay(record: JobRecord, policy: Policy, *, newest: bool = False) -> ReplayResult:
    """Replay the job from its first position to its end position under a policy.

    newest: restore the newest checkpoint where an older one was restored.
    """
    return _Replay(record, policy, newest=newest).run()


@dataclass(frozen=True)
class _AttemptEnd:
    """End of an attempt: after `ns` (start-up not included) at this position; position None if the job was done, ns
    None if it never would be. life: the attempt whose budget ended."""

    life: int
    ns: int | None
    position: int | None = None


@dataclass
class _UsableCheckpoints:
    """Checkpoints that can be restored: those of the policy at low < position <= high, in an attempt, or of these only
    `made`; and `low` itself if an attempt resumed there."""

    run: AttemptReplay
    spent: int
    low: int
    high: int
    made: list[tuple[int, int]] | None
    resumed: bool


class _Replay:
    """The state of one replay."""

    def __init__(self, record: JobRecord, policy: Policy, *, newest: bool) -> None:
        self._record, self._policy, self._restores_newest = record, policy, newest
        self._startups = [life.startup for life in record.lives]
        self._usable: list[_UsableCheckpoints] = []
        self._path: list[tuple[int, int]] = []
        self._saves = self._saved = self._wraps = 0
        self._state: tuple[int, int, list[tuple[int, int]]] | None = None
        self._most_deaths = max(MOST_DEATHS, 2 * len(record.lives))

    def run(self) -> ReplayResult:
        position, life = self._record.lives[0].first, 0
        clock = self._record.gaps[0] + self._startups[0]
        while position < self._record.end:
            died = self._live(life, position)
            if died.ns is None or len(self._path) >= self._most_deaths:
                return self._replayed(None)
            clock += died.ns
            if died.position is None:
                break
            position = self._resume(died.life, died.position)
            life = died.life + 1
            clock += self._record.gaps[life] + self._startups[life]
        return self._replayed(clock + self._record.tail)

    def _replayed(self, ns: int | None) -> ReplayResult:
        return ReplayResult(ns, tuple(self._path), self._saves, self._saved)

    def _live(self, life: int, position: int) -> _AttemptEnd:
        """Replay one attempt, to its end or to the end of the job. The last attempt of the record did not fail: after
        its budget it continues with that of the first, and its places continue; if it is the only one, it never ends.
        """
        record, begun = self._record, len(self._usable)
        budget = spent = place = 0
        while self._wraps <= MOST_WRAPS:
            last = life == record.last
            budget += record.last_budget if last else record.lives[life].budget
            run = AttemptReplay(record, self._policy, life, place, position)
            endless = record.last == 0 and (place > 0 or spent > 0)
            result = run.within(None if endless else budget - spent, record.end)
            self._note(run, result, spent)
            if result.whole >= record.end or (last and result.position >= record.end):
                return _AttemptEnd(life, spent + result.used)
            if not last:
                ns = budget + record.lives[life].hang
                self._forget_pending(begun, ns)
                return _AttemptEnd(life, ns, result.position)
            self._wraps += 1
            left = budget - spent - result.used
            before, self._state = self._state, (result.position, left, [(one.low, one.high) for one in self._usable])
            if self._state == before:  # as when it last came to the end of the record: it never ends
                return _AttemptEnd(life, None)
            spent += result.used
            place, position, life = place + result.position - position, result.position, 0
        return _AttemptEnd(life, None)

    def _note(self, run: AttemptReplay, result: BudgetResult, spent: int) -> None:
        """Record the saves of a stretch."""
        self._usable.append(_UsableCheckpoints(run, spent, run.position, result.whole, result.made, run.place == 0))
        if result.made is None:
            self._saves += self._policy.count(run.life, result.whole) - self._policy.count(run.life, run.position)
            self._saved += run.done(result.whole) - run.trained(result.whole)
        else:
            self._saves += len(result.made)
            self._saved += sum(run.cost(position) for position, _ in result.made)

    def _forget_pending(self, begun: int, death: int) -> None:
        """Drop saves of this attempt that could not be used yet when it ended, `death` ns after it began."""
        for usable in reversed(self._usable[begun:]):
            save = self._newest_of(usable, usable.high)
            while save is not None and usable.spent + self._ready(usable, save) > death:
                usable.high = save - 1
                save = self._newest_of(usable, usable.high)
            if save is not None:
                return

    def _ready(self, usable: _UsableCheckpoints, position: int) -> int:
        """Return when a save can be used, ns of its run."""
        if usable.made is not None:
            return next(ready for at, ready in reversed(usable.made) if at == position)
        delay = self._policy.delay(usable.run.life, position)
        return usable.run.done(position) + delay if delay else 0

    def _newest_of(self, usable: _UsableCheckpoints, high: int) -> int | None:
        if usable.made is None:
            return self._policy.last(usable.run.life, usable.low, min(high, usable.high))
        return next((at for at, _ in reversed(usable.made) if at <= min(high, usable.high)), None)

    def _newest(self, limit: int) -> int | None:
        """The position stored by the newest usable checkpoint that is not above a limit."""
        shift = self._record.shift
        for usable in reversed(self._usable):
            save = self._newest_of(usable, limit - shift)
            if save is not None:
                return save + shift
            if usable.resumed and usable.low <= limit:
                return usable.low
        return None

    def _resume(self, life: int, died: int) -> int:
        """Return where the next attempt begins (docs/advice.md, *How the interval is chosen*), and drop checkpoints
        above it."""
        one, end = self._record.lives[life], self._record.ends[life]
        assert one.resumed is not None
        newest = self._newest(died + 1)
        position = died if newest is None else newest
        if end.kind == EndKind.OLDER and not self._restores_newest:
            older = self._newest(one.resumed)
            position = one.resumed if older is None or older == end.checkpoint else older
        elif end.kind in (EndKind.BEYOND, EndKind.STOP):
            position = died - (end.died - one.resumed)
            if end.kind == EndKind.BEYOND and newest is not None:
                position = max(position, newest)
        position = min(position, self._record.end)
        self._path.append((died, position))
        # the next attempt begins with one at the position itself
        while self._usable and self._usable[-1].low >= position:
            self._usable.pop()
        if self._usable:
            top = self._usable[-1]
            top.high = min(top.high, position - self._record.shift)
        return position


def check_replay(record: JobRecord) -> Fidelity:
    """Check that a replay of the record as it was gives the record: its length, where each attempt ended and the next
    began, and the cost of saves."""
    before_tail = record.window - record.tail
    if before_tail < _LEAST_REPLAYED * record.window:
        return Fidelity(False, None, (
            f"too little to replay: only {100 * before_tail / record.window:.0f} % of the job come before its last "
            "step "
            "(replay_too_short)"
        ))  # fmt: skip
    done = replay(record, RecordedSaves(record))
    if done.ns is None:
        return Fidelity(False, None, "the replay of the recorded run never ends")
    difference = done.ns - record.window
    path = tuple((end.died, life.resumed) for life, end in zip(record.lives, record.ends, strict=True))[: record.last]
    if difference:
        return Fidelity(False, difference, f"the replay of the recorded run differs from it by {difference / 1e9:g} s")
    if done.path != path:
        pairs = zip((*done.path, None), (*path, None), strict=False)
        wrong = next(index for index, (one, other) in enumerate(pairs) if one != other)
        return Fidelity(
            False,
            difference,
            f"in the replay of the recorded run, attempt {wrong + 1} of those that trained ends at another step",
        )
    return Fidelity(True, 0, None)
