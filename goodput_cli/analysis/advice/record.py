"""The record of a job for advice: attempts, the gaps between them, and the cost of saves (docs/advice.md).

A `life` is the training of one attempt, a `gap` all time between the end of one and the beginning of the next. A
`position` is the next step to train, a `place` the ordinal of a step in its attempt. All times are ns of counted time:
excluded time is removed first.

Cumulative sums that a replay looks up: time that grows with each step (training), and time added at a step (saves).

Plain sequences and `bisect`: a replay asks for one value at a time, where NumPy's overhead would dominate.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from goodput_cli.analysis.question import Death
from goodput_cli.arrays import I64


@dataclass(frozen=True)
class LinearTotal:
    """A total (ns) that grows with a place or position.

    at: where its pieces begin, rising, and then where the last one ends; a range if each piece is one step. total: the
    total at each of these. Inside a piece it grows evenly, rounded down. beyond: ns per step after the end. Before the
    beginning the total is that of the beginning.
    """

    at: Sequence[int]
    total: Sequence[int]
    beyond: int = 0

    def total_at(self, place: int) -> int:
        """Return the total up to a place (ns)."""
        at, total = self.at, self.total
        if place >= at[-1]:
            return total[-1] + self.beyond * (place - at[-1])
        if place <= at[0]:
            return total[0]
        if isinstance(at, range):
            return total[place - at[0]]
        piece = bisect_right(at, place) - 1
        width = at[piece + 1] - at[piece]
        return total[piece] + (total[piece + 1] - total[piece]) * (place - at[piece]) // width


FLAT = LinearTotal((0,), (0,))
"""Nothing anywhere."""


def linear_total(first: I64, count: I64, amount: I64, beyond: int = 0) -> LinearTotal:
    """A total of pieces that touch: `count` steps from `first` on take `amount` (ns) together.

    first, count, amount: int64[k]; first[i + 1] == first[i] + count[i], counts above 0.
    """
    if len(first) == 0:
        return LinearTotal((0,), (0,), beyond)
    total = _looked_up(np.append(0, np.cumsum(amount)))
    if np.all(count == 1):
        return LinearTotal(range(int(first[0]), int(first[0]) + len(first) + 1), total, beyond)
    return LinearTotal(_looked_up(np.append(first, first[-1] + count[-1])), total, beyond)


def sparse_linear_total(first: I64, stop: I64, amount: I64) -> LinearTotal:
    """Return the total where most pieces are empty and left out: `amount` (ns) in first <= step < stop, in order."""
    if len(first) == 0:
        return FLAT
    at = np.column_stack((first, stop)).ravel()
    before = np.cumsum(amount) - amount
    total = np.column_stack((before, before + amount)).ravel()
    new = np.append(at[1:] != at[:-1], True)
    return LinearTotal(_looked_up(at[new]), _looked_up(total[new]))


def _looked_up(column: I64) -> Sequence[int]:
    """A column whose values are asked for one by one: quick as a list, and made without an object a value."""
    return array("q", column.tobytes())


@dataclass(frozen=True)
class StepTotal:
    """Amounts (ns) due at positions, which rise. total[i]: of the first i of them."""

    at: Sequence[int]
    total: Sequence[int]

    def total_at(self, position: int) -> int:
        """Return the total due at or below a position (ns)."""
        return self.total[bisect_right(self.at, position)]

    def count(self, position: int) -> int:
        """Count the entries due at or below a position."""
        return bisect_right(self.at, position)

    def last(self, low: int, high: int) -> int | None:
        """The highest position with low < position <= high at which one is due."""
        place = bisect_right(self.at, high) - 1
        return self.at[place] if place >= 0 and self.at[place] > low else None


def step_total(at: I64, amount: I64) -> StepTotal:
    """at: positions, rising. amount: ns."""
    return StepTotal(_looked_up(at), _looked_up(np.append(0, np.cumsum(amount))))


def median_share(count: I64, amount: I64, skip_first: bool) -> int | None:
    """Median (rounded half to even) of what single steps take, where `count` steps take `amount` (ns) in equal shares
    that are rounded down one after the other. skip_first: without the very first step. None of nothing."""
    if len(count) == 0:
        return None
    total = int(count.sum()) - int(skip_first)
    if total <= 0:
        return None
    places = [(total - 1) // 2, total // 2]
    if np.all(count == 1):  # each step by itself, as most programs log: nothing to weigh
        return half(int(np.partition(amount[int(skip_first) :], places)[places].sum()))
    steps = np.maximum(count, 1)  # step-end logs have spans without a step
    low, more = amount // steps, amount % steps
    value, weight = np.concatenate((low, low + 1)), np.concatenate((count - more, more))
    weight[0] -= int(skip_first)
    order = np.argsort(value, kind="stable")
    behind = np.cumsum(weight[order])
    return half(int(value[order[np.searchsorted(behind, places, "right")]].sum()))


def half(total: int) -> int:
    """Half an amount, rounded half to even."""
    down, odd = divmod(total, 2)
    return down + (odd & down & 1)


class EndKind(StrEnum):
    """Ways an attempt ended: the next one began at the newest checkpoint, at an older one, at one that no line shows,
    or after a planned stop; or it is the last."""

    NEWEST = "newest"
    OLDER = "older"
    BEYOND = "beyond"
    STOP = "stop"
    END = "end"


FAILURES = (EndKind.NEWEST, EndKind.OLDER, EndKind.BEYOND)
"""Unplanned ends of attempts that are followed by another."""


@dataclass(frozen=True)
class SaveColumns:
    """Completed saves of one attempt, rising."""

    made_at: I64
    """Position at which each was made, which is the one after its step."""
    cost: I64
    """ns it blocked training."""
    delay: I64
    """ns from when it no longer blocked until it could be used; 0 where saves block until then."""

    @cached_property
    def step_total(self) -> StepTotal:
        """Return their cost by position."""
        return step_total(self.made_at, self.cost)

    def __len__(self) -> int:
        return len(self.made_at)


@dataclass(frozen=True)
class ReplayAttempt:
    """The training of one attempt. Its time is `startup`, `budget` and `hang`, one after the other."""

    attempt: int
    """Number of the attempt, from 0."""
    first: int
    """The first position."""
    stop: int
    """The position after its last complete step."""
    begin: int
    """Beginning: counted time (ns)."""
    startup: int
    """Start-up (ns)."""
    budget: int
    """Time that the clock of the attempt ran: training, evals and saves (ns)."""
    hang: int
    """Time without activity before its end (ns)."""
    usual: int
    """Usual time of a step (ns)."""
    work: LinearTotal
    """Time of steps without evals and saves (ns), by place."""
    extra: LinearTotal
    """Time of evals (ns), by position."""
    saves: SaveColumns
    """The completed saves."""
    clean: bool
    """True if it was stopped as planned."""
    resumed: int | None
    """Position at which the next attempt began; None for the last one."""
    kept: int
    """ns of training, evals included, that is in the job's final progress."""
    undetermined: int = 0
    """ns before death that the ledger calls undetermined."""
    unseen_death: bool = False
    """True if its end was not logged."""
    began_at: str | None = None
    """The line that shows how it began; None where no line does."""

    @property
    def death(self) -> int:
        """Counted ns."""
        return self.begin + self.startup + self.budget + self.hang

    @property
    def steps(self) -> int:
        """Complete steps."""
        return self.stop - self.first

    @property
    def trained(self) -> int:
        """Time (ns) of its complete steps, evals included."""
        return self.work.total_at(self.steps) + self.extra.total_at(self.stop)


@dataclass(frozen=True)
class Ending:
    """End of an attempt."""

    kind: EndKind
    """Checkpoint at which the next attempt began."""
    died: int
    """Position at which it died."""
    newest: int
    """Position of its newest usable checkpoint."""
    checkpoint: int | None
    """Position of the newest checkpoint not above the beginning of the next attempt; None without one."""


RESTART = ("init", "prep", "restore", "load", "elastic", "startup")


@dataclass(frozen=True)
class ReplayTotals:
    """Sums of the ledger, for the improvements that leave attempts unchanged."""

    before: Mapping[str, tuple[int, ...]]
    """By part (`RESTART`, down and queued; startup belongs to the next attempt): for each attempt, the ns before it
    (before the first: from disruptions of the lead). Only attempts that were disrupted count."""
    outages: tuple[tuple[int, int], ...]
    """Number of the attempt after each outage, and the outage's downtime (ns)."""
    restore: int
    """ns of checkpoint restores."""
    saved: int
    """ns of checkpoint saves."""
    wasted: int
    """ns of wasted training."""
    data: int | None
    """ns of waiting for data; None: not recorded."""
    stalls: int | None
    """ns of stalled steps; None: not recorded."""
    slow: int | None
    """ns lost in slow regimes, kept steps only (with a reference: the slowdown); None where nothing shows it."""
    custom: Mapping[str, int]
    """ns by label of custom events."""
    disruptions: int
    """Count of disruptions."""
    lost: int
    """ns that they cost together."""
    failed_starts: tuple[tuple[int, int], ...]
    """Attempts that others follow and that never trained: each with the ns from its first start to the next one's."""
    failures: int = 0
    """Count of failures, as `goodput analyze` counts them."""
    up: int = 0
    """ns in which attempts were up."""


@dataclass(frozen=True)
class JobRecord:
    """A job as its attempts. `ns` are of counted time."""

    name: str
    """The job name."""
    window: int
    """T: ns of the window without what is excluded."""
    productive: int
    """P: productive ns."""
    step_log: bool
    """True if a save of step s is made after that step; otherwise it is made at position s."""
    shift: int
    """Offset from the position at which a save is made to the one it stores."""
    every: int | None
    """Today's interval between saves, in steps; None where nothing shows it."""
    cost: float | None
    """Mean cost of a save, in seconds; None where nothing shows it."""
    cost_given: bool
    """True if the cost was given as an option, not recorded."""
    latency: int
    """ns until an asynchronous save can be used."""
    asynchronous: bool
    """True if saves are asynchronous."""
    unit: int
    """Usual step time of the job (ns)."""
    start: int
    """Start of the window: counted time (ns)."""
    lives: tuple[ReplayAttempt, ...]
    """Attempts in time order."""
    end: int
    """Position at which the job ended."""
    last: int
    """Number of the attempt that reached it."""
    kept_steps: int
    """Steps of the final progress."""
    amounts: ReplayTotals
    """Sums of the ledger."""
    deaths: Death = "middle"
    """The moment of death assumed where none was logged."""
    background: bool = False
    """True if saves continue in the background of training and their end is not logged."""
    one_save: bool = False
    """True if `every` comes from a single saved step, by its distance from the first trained step."""
    ends: tuple[Ending, ...] = ()
    """End of each attempt."""
    step_ends: bool = False
    """True if the log numbers steps by how many were done."""
    failed_last: bool = False
    """True if the last attempt finished a step and then failed."""

    @property
    def failed(self) -> list[ReplayAttempt]:
        """Return the attempts that ended unplanned."""
        lives = zip(self.lives, self.ends, strict=True)
        found = [life for life, end in lives if end.kind in FAILURES and self.trained_step(life)]
        return found + list(self.lives[-1:] if self.failed_last else ())

    @property
    def counted(self) -> list[ReplayAttempt]:
        """Return the failed attempts whose loss depends on the interval."""
        beyond = [life for life, end in zip(self.lives, self.ends, strict=True) if end.kind == EndKind.BEYOND]
        return [life for life in self.failed if life not in beyond]

    def trained_step(self, life: ReplayAttempt) -> bool:
        """Return True if an attempt finished a step, or was not ended by a failure; otherwise advice does not count it.
        In a checkpoint log, which does not show steps, all count."""
        return not self.step_log or life.steps > 0 or life.clean or life.resumed is None

    @property
    def save_offset(self) -> int:
        """Offset from a save's step to the position at which it is made."""
        return 1 if self.step_log and not self.step_ends else 0

    @property
    def cost_ns(self) -> int:
        """Cost (ns) of a save that the record does not show (`cost` must be known)."""
        assert self.cost is not None
        return round(self.cost * 1e9)

    @cached_property
    def gaps(self) -> tuple[int, ...]:
        """Time (ns) before each attempt, start-up not included; before the first it is the lead."""
        before = [self.start, *(life.death for life in self.lives[:-1])]
        return tuple(life.begin - death for life, death in zip(self.lives, before, strict=True))

    @cached_property
    def last_budget(self) -> int:
        """Time (ns) that the last attempt of a replay needs to the end position, with its save there."""
        life = self.lives[self.last]
        reached = self.end - life.first
        return life.work.total_at(reached) + life.extra.total_at(self.end) + life.saves.step_total.total_at(self.end)

    @cached_property
    def tail(self) -> int:
        """Time (ns) after the end position; it does not change."""
        life = self.lives[self.last]
        return self.window - (life.begin - self.start) - life.startup - self.last_budget

    @cached_property
    def first_saves(self) -> SaveColumns:
        """Return the first save at each position at which any attempt saved."""
        made = np.concatenate([life.saves.made_at for life in self.lives])
        at, row = np.unique(made, return_index=True)
        cost = np.concatenate([life.saves.cost for life in self.lives])[row]
        return SaveColumns(at, cost, np.full(len(at), self.latency, dtype=np.int64))

    @cached_property
    def unlike_first(self) -> Mapping[int, tuple[I64, I64]]:
        """Return, by attempt, the saves whose cost differs from that of the first save at the position: the positions,
        and the difference (ns)."""
        known, found = self.first_saves, {}
        for index, life in enumerate(self.lives):
            differs = life.saves.cost - known.cost[np.searchsorted(known.made_at, life.saves.made_at)]
            here = np.flatnonzero(differs)
            if len(here):
                found[index] = (life.saves.made_at[here], differs[here])
        return found

    @cached_property
    def latest_extra(self) -> LinearTotal:
        """Evals by position, from the latest attempt that trained a step there."""
        return latest_extra(self.lives)


def latest_extra(lives: Sequence[ReplayAttempt]) -> LinearTotal:
    """Return the evals by position (ns), from the latest attempt that trained a step there; 0 without one."""
    if not any(life.extra.total[-1] for life in lives):
        return FLAT
    edges = sorted({edge for life in lives for edge in (life.first, life.stop)})
    place = {edge: index for index, edge in enumerate(edges)}
    owner = np.full(len(edges), -1)
    for index, life in enumerate(lives):
        owner[place[life.first] : place[life.stop]] = index
    at, total = [edges[0]], [0]
    for low, high, index in zip(edges, edges[1:], owner.tolist(), strict=False):
        known = lives[index].extra if index >= 0 else FLAT
        before = total[-1] - known.total_at(low)
        first, stop = np.searchsorted(known.at, [low + 1, high])
        inside = known.at[first:stop]
        at += [*inside, high]
        total += [before + known.total_at(edge) for edge in (*inside, high)]
    return LinearTotal(at, total)
