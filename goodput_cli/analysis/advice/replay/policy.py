"""Policies: where saves are made, and what they cost (docs/advice.md, *Replay*)."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from goodput_cli.analysis.advice.replay.record import JobRecord, StepTotal, step_total
from goodput_cli.arrays import I64


class Policy(Protocol):
    """When to save. A save is made at a position, that behind its step."""

    waits: bool
    """Whether a save may have to wait because the one before can not be used yet."""

    def paid(self, life: int, position: int) -> int:
        """What the saves at or below a position cost (ns) in a life; only differences matter."""

    def count(self, life: int, position: int) -> int:
        """How many these are."""

    def last(self, life: int, low: int, high: int) -> int | None:
        """The highest position with low < position <= high at which is saved."""

    def delay(self, life: int, position: int) -> int:
        """ns from when the save there no longer blocks until it can be used."""


class AsRecorded:
    """Where the life saved; where it recorded no step, wherever any life saved. cost (ns): of every save, if it is not
    to be what the record shows; delay (ns): the same."""

    waits = False

    def __init__(self, record: JobRecord, cost: int | None = None, delay: int | None = None) -> None:
        self._record, self._cost, self._delay = record, cost, delay
        self._any = record.first_saves

    def paid(self, life: int, position: int) -> int:
        if self._cost is not None:
            return self._cost * self.count(life, position)
        own, low, high = self._own(life)
        paid = self._any.step_total.upto
        return paid(min(position, low)) + own.upto(min(position, high)) + paid(max(position, high)) - paid(high)

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
        if self._delay is not None:
            return self._delay
        one = self._record.lives[life]
        inside = one.first < position <= one.stop
        saves = one.saves if inside else self._any
        return int(saves.delay[np.searchsorted(saves.made_at, position)])


class Every:
    """After every step that `every` divides, those at or below the first position left out; the save behind the last
    step stays as it was. A save that the record shows costs what it did, another one `JobRecord.cost_ns`; or all cost
    `cost` (ns). delay (ns): that of the job, if not given."""

    def __init__(self, record: JobRecord, every: int, cost: int | None = None, delay: int | None = None) -> None:
        self._record, self.every = record, every
        self._behind, self._origin = record.made_behind, record.lives[0].first
        self._usual = record.cost_ns if cost is None else cost
        self._fixed = cost is not None
        self._delay = record.latency if delay is None else delay
        self.waits = self._delay > 0
        known = record.first_saves
        self._saves_at_end = bool(np.any(known.made_at == record.end))

    def _multiples(self, position: int) -> int:
        """How many saves by the rule, without the one at the end position."""
        upto = (max(position, self._origin + self._behind) - self._behind) // self.every
        return upto - self._origin // self.every - (self._end_is_multiple and position >= self._record.end)

    @cached_property
    def _end_is_multiple(self) -> bool:
        step = self._record.end - self._behind
        return step > self._origin and step % self.every == 0

    @cached_property
    def _corrections(self) -> tuple[StepTotal, dict[int, StepTotal]]:
        """What recorded saves cost beyond the usual cost: of any life, and what single lives differ from that."""
        known = self._record.first_saves
        if self._fixed:
            return step_total(known.made_at[:0], known.cost[:0]), {}
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
        return self._multiples(position) + (self._saves_at_end and position >= self._record.end)

    def paid(self, life: int, position: int) -> int:
        known, own = self._corrections
        beyond = own.get(life)
        paid = self._usual * self.count(life, position) + known.upto(position)
        return paid if beyond is None else paid + beyond.upto(position)

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
