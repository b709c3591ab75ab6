"""Replay one life: given where it resumes and how long it lives, compute how many steps and saves it completes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from goodput_cli.analysis.advice.replay.policy import Policy
from goodput_cli.analysis.advice.replay.record import JobRecord

_GUESSES = 8


@dataclass(frozen=True)
class BudgetResult:
    """How far a budget goes from one position. whole: the last position whose step and save were completed; position:
    where it stands; used: ns. made: of saves that had to wait for each other, the position of each and when (ns of the
    run) it can be used; None where the policy alone says what was saved."""

    whole: int
    position: int
    used: int
    made: list[tuple[int, int]] | None = None


class Run:
    """The clock of one life of the record from a place and a position on."""

    def __init__(self, record: JobRecord, policy: Policy, life: int, place: int, position: int) -> None:
        self._record, self._policy, self.life = record, policy, life
        self.place, self.position = place, position
        self._one = record.lives[life]
        self._begin = self._one.work.upto(place) + self._extra(position)
        self._paid = policy.paid(life, position)

    def _extra(self, position: int) -> int:
        """Evals below a position: the life's own where it recorded the step, else those of the latest that did."""
        one, any_ = self._one, self._record.latest_extra
        if one.first <= position <= one.stop or not any_.total[-1]:
            return one.extra.upto(position)
        if position < one.first:
            return any_.upto(position) - any_.upto(one.first)
        return one.extra.total[-1] + any_.upto(position) - any_.upto(one.stop)

    def trained(self, position: int) -> int:
        """ns until the step before a position is complete, without any save."""
        place = self.place + position - self.position
        return self._one.work.upto(place) + self._extra(position) - self._begin

    def done(self, position: int) -> int:
        """The same with all saves of the policy, the one at the position included."""
        return self.trained(position) + self._policy.paid(self.life, position) - self._paid

    def cost(self, position: int) -> int:
        """ns of the save at a position."""
        return self._policy.paid(self.life, position) - self._policy.paid(self.life, position - 1)

    def within(self, budget: int | None, end: int) -> BudgetResult:
        """How far a budget (ns; None: any) goes, at most to the end position."""
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
        """The last position, at most the end, whose step and save are complete within the budget (ns). Lives are even:
        a few guesses at their mean pace nearly always find it, and a binary search does otherwise."""
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
