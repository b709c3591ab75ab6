"""Breakdown of the kept steps: seconds by phase and rank, and the rank that all others waited for
(docs/inside-steps.md).

A step ends when the rank with the most *own* time is done. The cost of a rank is how much shorter the step would have
been with the median of the others in its place: at most the distance to the next slowest. Nothing here changes the
ledger.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import numpy as np

from goodput_cli.analysis.insights.hosts import tails
from goodput_cli.analysis.json_fields import Amount, Count, Json, written
from goodput_cli.analysis.step_breakdown.launches import (
    StepTimesOfAttempt,
    launches_in,
    mean_of_ranks,
    most_of,
    with_lengths,
)
from goodput_cli.analysis.steps.times import processes_by_attempt
from goodput_cli.analysis.table import TableDeclaration, attribute, column, columns_of
from goodput_cli.arrays import F64, group_by_key
from goodput_cli.events.inside import CLASSES, PhaseClass, PhaseName, class_of
from goodput_cli.vocabulary.categories import Category
from goodput_cli.vocabulary.text import duration, percent

if TYPE_CHECKING:
    from goodput_cli.analysis.analysis_data import AnalysisData


_LIKELY = 0.05
"""Share of the step time: a rank is above the others in one phase and below them in another by this, otherwise it is
chance."""
OF_A_HOST = 1.5
"""A host is named instead of one of its ranks, if all of them together cost this multiple of the worst one."""
LEAST_PERCENT = 10.0
"""From this share of the net step time on, waiting is reported in a sentence."""
OVERLAPS = 0.02
"""Share of the net step time: phases that exceed their steps by more overlap."""
_MOST_NAMED, _LEAST_OF_WORST, _LARGE = 5, 0.1, 0.05
_LEAST_BLOCKS = 10
_CHANCE = 0.01
_MOST_MISSING = 100
_MOST_RANKS = 1_000_000


@dataclass(frozen=True)
class PhaseRow:
    """One phase: its fields are the columns of the table of phases."""

    phase: str = column("text", "what the program did", heading="phase")
    logged: str | None = column(
        "text",
        "the name in the log, if several names belong to one phase or to another phase; null: the phase itself",
    )
    kind: str = column(
        "text",
        "own: no waiting for other ranks; mixed: may include collectives; wait: waiting for other ranks; rl: "
        "reinforcement learning; in the ledger: has a category and is not part of step time; rest: the remainder",
        name="class",
        heading="class",
    )
    slowest_ns: int = column(
        "duration",
        "sum over the steps of the slowest rank's time, or the job's time if ranks are not logged",
        heading="slowest rank",
    )
    mean_ns: int | None = column(
        "duration", "sum over the steps of the mean of all ranks; null: ranks are not logged", heading="mean"
    )
    median_ns: int | None = column("duration", "the median rank's time; null: ranks are not logged", heading="median")
    percent: float | None = column(
        "percent",
        "slowest rank's time as a share of net step time; null: in the ledger, step time not logged, or phase longer",
        heading="of net step time",
    )  # fmt: skip


PHASES = TableDeclaration("phase", "a phase of the step breakdown", columns_of(PhaseRow, attribute))


@dataclass(frozen=True)
class RankRow:
    """One rank: its fields are the columns of the table of ranks."""

    rank: int = column("count", "its number", heading="rank")
    host: str | None = column("text", "its host, as named in its log", heading="host")
    data_ns: int | None = column("duration", "time in data loading", heading="in data")
    own_ns: int | None = column("duration", "time in phases that do not wait for other ranks", heading="own")
    wait_ns: int | None = column("duration", "time in phases that wait for other ranks", heading="wait")
    cost_ns: int | None = column(
        "duration",
        "time by which steps were longer than if this rank were as fast as the next slowest one",
        heading="held up",
    )
    likely_ns: int = column(
        "duration", "estimate: it is slower than others in one phase that may include waiting, and faster in another",
        heading="likely",
    )  # fmt: skip


RANKS = TableDeclaration("rank_inside", "a rank of the step breakdown", columns_of(RankRow, attribute))


@dataclass(frozen=True)
class StepHostRow:
    """All ranks of a host."""

    host: str = column("text", "as named in its log", heading="host")
    ranks: int = column("count", "how many ranks it has", heading="ranks on it")
    data_ns: int | None = column("duration", "time in data loading of its slowest rank", heading="in data")
    own_ns: int | None = column("duration", "time of its slowest rank in phases that do not wait", heading="own")
    cost_ns: int | None = column(
        "duration", "time by which steps were longer than without this host's ranks", heading="held up"
    )


HOSTS = TableDeclaration("host_inside", "a host of the step breakdown", columns_of(StepHostRow, attribute))


@dataclass(frozen=True)
class SlowestRankCounts:
    """Number of blocks of 24 steps in which a rank, or host, was the slowest."""

    blocks: int
    """Number of blocks."""
    slowest: dict[str, int]
    """Counts by rank ("3") or host."""
    others: int
    """Among how many."""


@written(
    "inside_steps",
    "step breakdown of one program of the job; it counts as goodput and does not change any figure of the ledger",
    keys="program ranks_logged missing_ranks steps net_step_ns first_step_ns overlap_ns phases ranks hosts at_least",
)
@dataclass(frozen=True, kw_only=True)
class StepBreakdown:
    """Breakdown of the kept steps of one program of the job in the window."""

    program: str
    """trainer, generator and the like, as the log names it; empty where there is one"""
    ranks_logged: Count
    """ranks whose times are logged; 0: the log has times of the job, or the least and the most of all ranks"""
    missing_ranks: tuple[int, ...]
    """ranks that others show to be there, and that no file is of; at most 100"""
    steps: Amount
    """kept steps that are counted, without the first of each attempt"""
    net_step_ns: Annotated[int | None, Json("seconds")]
    """time of these steps, without time that has a category; null if not logged"""
    first_step_ns: Annotated[int, Json("seconds")]
    """time of first steps, which compile; left out"""
    overlap_ns: Annotated[int, Json("seconds")]
    """by how much phases are longer than their steps: they overlap, and nothing is scaled"""
    phases: Annotated[tuple[PhaseRow, ...], PHASES]
    """the longest first"""
    ranks: Annotated[tuple[RankRow, ...], RANKS] = ()
    """by cost, then by data"""
    hosts: Annotated[tuple[StepHostRow, ...], HOSTS] = ()
    """by cost"""
    untimed: float = 0.0
    """Kept steps that are not counted: their length is not logged, while that of others is."""
    at_least: Annotated[bool, Json(optional=True)] = False
    """whether times of the slowest rank, and the costs of ranks, are lower bounds: records contain several steps, and
    the last rank in each is not logged"""
    rank_habit: SlowestRankCounts = field(default_factory=lambda: SlowestRankCounts(0, {}, 0))
    """Number of times each rank was the slowest."""
    host_habit: SlowestRankCounts = field(default_factory=lambda: SlowestRankCounts(0, {}, 0))
    """The same for hosts."""

    @property
    def least(self) -> str:
        """`at least ` before amounts that are lower bounds, else ""."""
        return "at least " if self.at_least else ""

    @property
    def overlaps(self) -> bool:
        """Return True if phases are longer than their steps, beyond rounding."""
        return self.net_step_ns is not None and self.overlap_ns > OVERLAPS * self.net_step_ns

    def phase(self, name: str) -> PhaseRow | None:
        """The row of a whole phase."""
        return next((row for row in self.phases if row.phase == name and row.logged is None), None)


def row_name(row: RankRow | StepHostRow) -> str:
    """`rank 3 on node-1`, `host node-1`."""
    if isinstance(row, StepHostRow):
        return f"host {row.host}"
    return f"rank {row.rank}" + (f" on {row.host}" if row.host else "")


def is_slow(habit: SlowestRankCounts, *names: str) -> bool:
    """Return True if one of these was the slowest of blocks of steps more often than chance explains: less than 1 %,
    over all sets of as many names (Holm)."""
    if habit.blocks < _LEAST_BLOCKS or not 0 < len(names) < habit.others:
        return False
    count = sum(habit.slowest.get(name, 0) for name in names)
    tail = float(tails([len(names) / habit.others] * habit.blocks)[count])
    return tail * math.comb(habit.others, len(names)) < _CHANCE


def may_be_slow(habit: SlowestRankCounts, *names: str) -> bool:
    """Return True if these are slow, or there are too few blocks of steps to decide."""
    return habit.blocks < _LEAST_BLOCKS or is_slow(habit, *names)


def slow_ranks(inside: StepBreakdown) -> tuple[RankRow, ...]:
    """Return the ranks that held up all others, the worst first, at most five; none if chance explains it.

    Ranks above a tenth of the worst are named if each took a twentieth of the step time, or if they stand out: the next
    one costs at most half of the least of them, and they are slow; with too few blocks to decide, they are at most five
    and half of all ranks, in two steps for each rank or more. Otherwise the worst alone.
    """
    rows = [row for row in inside.ranks if row.cost_ns]
    costs = [row.cost_ns or 0 for row in rows]
    high = sum(cost > _LEAST_OF_WORST * costs[0] for cost in costs)
    several, names = rows[:_MOST_NAMED][:high], [str(row.rank) for row in rows[:_MOST_NAMED][:high]]
    large = [row for row in several if (row.cost_ns or 0) >= _LARGE * (inside.net_step_ns or math.inf)]
    if large:
        return tuple(large)
    stand_out = high == len(costs) or 2 * costs[high] <= costs[high - 1]
    few = 2 * high <= inside.ranks_logged <= inside.steps / 2 and high <= _MOST_NAMED
    if stand_out and (few if inside.rank_habit.blocks < _LEAST_BLOCKS else is_slow(inside.rank_habit, *names)):
        return tuple(several)
    return tuple(row for row in rows[:1] if may_be_slow(inside.rank_habit, str(row.rank)))


def delay_text(inside: StepBreakdown, rows: Sequence[RankRow | StepHostRow]) -> str:
    """Return `rank 3 on node-1 delayed all others by at least 5 min 00 s (4.20 % of step time), rank 5 by ...`."""
    names = [row_name(row) for row in rows]
    amounts = [_amount(inside, row.cost_ns or 0) for row in rows]
    others = "".join(f", {name} by {amount}" for name, amount in zip(names[1:], amounts[1:], strict=True))
    return f"{names[0]} delayed all others by {amounts[0]}{others}"


def _amount(inside: StepBreakdown, ns: int) -> str:
    share = share_of(ns, inside.net_step_ns)
    of_steps = "" if share is None else f" ({percent(share)} of step time)"
    return f"{inside.least}{duration(ns)}{of_steps}"


def share_of(ns: float, net_ns: float | None) -> float | None:
    """Return an amount in percent of the net step time. None if that time is unknown, or if the amount is longer than
    it by more than rounding explains (`OVERLAPS`)."""
    if not net_ns or ns > (1 + OVERLAPS) * net_ns:
        return None
    return min(100 * ns / net_ns, 100.0)


def waited(share: float, what: str, least: str = "") -> str:
    """Return `12.30 % of step time was spent waiting for data`. least: `Inside.least`."""
    return f"{least}{percent(share)} of step time was spent waiting for {what}"


def mostly_data(row: RankRow | StepHostRow) -> bool:
    """Return True if more than half of its own time is loading of data."""
    return 2 * (row.data_ns or 0) > (row.own_ns or 0)


def data_in_ledger(analysis: AnalysisData) -> int:
    """Return the loading of data (ns) that is badput: time that a recorder logs as both is not counted as goodput."""
    return sum(row.ns for row in analysis.badput if row.category == Category.DATA_LOADING_SYNC.id)


def inside_of(analysis: AnalysisData) -> tuple[StepBreakdown, ...]:
    """Return the breakdown of the steps of each program of the job, the one with the most step time first; empty if no
    phase is logged."""
    if not analysis.table.inside:
        return ()
    groups = group_by_key(((launch.pool, len(launch.ranks)), launch) for launch in launches_in(analysis))
    one_program = len({pool for pool, _ in groups}) == 1
    processes = processes_by_attempt(analysis.timeline) if one_program else None
    found = [_answer(pool, launches, processes) for (pool, _), launches in groups.items()]
    return tuple(sorted((one for one in found if one.phases), key=lambda one: -(one.net_step_ns or 0)))


@dataclass
class _PhaseTotals:
    """Sums over launches, in ns."""

    steps: float = 0.0
    net: float = 0.0
    timed: bool = False
    first: float = 0.0
    overlap: float = 0.0
    slowest: defaultdict[PhaseName, float] = field(default_factory=lambda: defaultdict(float))
    mean: defaultdict[PhaseName, float] = field(default_factory=lambda: defaultdict(float))
    by_rank: defaultdict[PhaseName, defaultdict[int, float]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(float))
    )
    cost: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    host_cost: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    likely: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    host_of: dict[int, str] = field(default_factory=dict)
    compared: bool = False
    """True if own times of two ranks or more were available."""
    hosts_compared: bool = False


_OTHER = PhaseName("other", "other")


def _answer(pool: str, launches: Sequence[StepTimesOfAttempt], processes: F64 | None) -> StepBreakdown:
    """processes: how many each attempt had; None where that is not logged."""
    sums = _PhaseTotals()
    ranks, hosts = _Wins(), _Wins()
    launches, untimed = with_lengths(launches)
    for launch in launches:
        _add(sums, launch)
        if launch.ranks:
            _add_ranks(sums, launch, ranks, hosts)
    timed = sums.timed and sums.net > 0
    logged = sorted({rank for launch in launches for rank in launch.ranks})
    phases = tuple(_phase_rows(sums, timed))
    return StepBreakdown(
        program=pool,
        ranks_logged=len(logged),
        missing_ranks=_missing_ranks(logged, launches, processes),
        steps=round(sums.steps, 3),
        net_step_ns=round(sums.net) if timed else None,
        first_step_ns=round(sums.first),
        overlap_ns=round(sums.overlap),
        phases=phases,
        ranks=tuple(_rank_rows(sums, logged)),
        hosts=tuple(_host_rows(sums)),
        untimed=untimed,
        at_least=_has_step_blocks(launches) and (len(logged) > 1 or any("max" in one.whole for one in launches)),
        rank_habit=ranks.habit(),
        host_habit=hosts.habit(),
    )


def _has_step_blocks(launches: Sequence[StepTimesOfAttempt]) -> bool:
    """Return True if a record is of more than one step: the sum of the slowest is then no more than its steps had."""
    return any(launch.summed or bool((launch.count > 1).any()) for launch in launches)


def _missing_ranks(
    logged: Sequence[int], launches: Sequence[StepTimesOfAttempt], processes: F64 | None
) -> tuple[int, ...]:
    """Return the ranks without times below the highest that is known. One rank alone shows no others: most programs
    log rank 0 only."""
    if len(logged) < 2:
        return ()
    stated = 0 if processes is None else int(max(processes[launch.attempt] for launch in launches))
    highest = max(logged[-1] + 1, min(stated, _MOST_RANKS))
    return tuple(sorted(set(range(highest)) - set(logged)))[:_MOST_MISSING]


def _add(sums: _PhaseTotals, launch: StepTimesOfAttempt) -> None:
    """Step time and the time of each phase."""
    weight = launch.weight_later
    sums.steps += float((weight * launch.count).sum())
    ledger = [name for name in launch.phases if class_of(name.phase) is PhaseClass.LEDGER]
    inside = [name for name in launch.phases if not name.parent and name not in ledger]
    if launch.ranks and not np.isnan(launch.took).all():
        in_ledger = sum((np.nan_to_num(launch.phases[name]) for name in ledger), np.zeros_like(launch.took))
        net = launch.took - in_ledger
        _add_times(sums, launch, mean_of_ranks(launch.took), mean_of_ranks(net))
        total = sum((np.nan_to_num(launch.phases[name]) for name in inside), np.zeros_like(net))
        rest = net - total
        sums.overlap += float((np.nan_to_num(mean_of_ranks(np.maximum(-rest, 0))) * weight).sum())
        _add_phase(sums, launch, _OTHER, np.maximum(rest, 0), weight)
    for name, values in launch.phases.items():
        _add_phase(sums, launch, name, values, weight)
    if launch.whole:
        _add_whole(sums, launch, weight)


def _add_times(sums: _PhaseTotals, launch: StepTimesOfAttempt, took: F64, net: F64) -> None:
    known = ~np.isnan(took)
    sums.timed |= bool(known.any())
    sums.net += float((np.where(known, net, 0) * launch.weight_later).sum())
    sums.first += float((np.where(known, took, 0) * np.where(launch.first, launch.weight, 0)).sum())


def _add_phase(sums: _PhaseTotals, launch: StepTimesOfAttempt, name: PhaseName, values: F64, weight: F64) -> None:
    """[R, S] of a phase."""
    known = ~np.isnan(values)
    present = known.any(axis=0)
    filled = np.where(known, values, 0)
    sums.slowest[name] += float((np.where(present, filled.max(axis=0), 0) * weight).sum())
    sums.mean[name] += float((np.where(present, mean_of_ranks(values), 0) * weight).sum())
    totals = (filled * weight).sum(axis=1)
    for at, rank in enumerate(launch.ranks):
        sums.by_rank[name][rank] += float(totals[at])


def _add_whole(sums: _PhaseTotals, launch: StepTimesOfAttempt, weight: F64) -> None:
    """Add times of the whole job, or of the slowest of ranks that are not distinguished."""
    found = {**launch.whole.get("job", {}), **launch.whole.get("max", {})}
    top = np.zeros(len(weight))
    in_ledger = np.zeros(len(weight))
    for name, values in found.items():
        known = np.nan_to_num(values)
        if class_of(name.phase) is PhaseClass.LEDGER:
            in_ledger += known
        elif not name.parent:
            top += known
        if name not in launch.phases:
            sums.slowest[name] += float((known * weight).sum())
    if launch.ranks and not np.isnan(launch.took).all():
        return
    _add_times(sums, launch, launch.whole_took, launch.whole_took - in_ledger)
    if np.isnan(launch.whole_took).all():
        return
    for name, values in launch.phases.items():  # of ranks, whose own steps have no length
        if not name.parent:
            top += np.nan_to_num(np.nanmax(np.where(np.isnan(values), -1, values), axis=0))
    rest = np.where(np.isnan(launch.whole_took), 0, launch.whole_took - in_ledger - top)
    sums.slowest[_OTHER] += float((np.maximum(rest, 0) * weight).sum())
    sums.overlap += float((np.maximum(-rest, 0) * weight).sum())


def _phase_rows(sums: _PhaseTotals, timed: bool) -> Iterator[PhaseRow]:
    """Whole phases, the longest first, each with the parts that the log names."""
    groups = group_by_key(((name.phase, name.parent), name) for name in sums.slowest)
    tops = {phase for phase, parent in groups if not parent}
    tops |= {parent for _, parent in groups if parent}
    order = {phase: at for at, phase in enumerate(CLASSES)}
    if timed and sums.overlap > OVERLAPS * sums.net:
        tops.discard("other")  # nothing is left over where phases overlap, and nothing is scaled

    def long(phase: str) -> tuple[bool, bool, float, int]:
        ns = sum(sums.slowest[name] for name in groups.get((phase, ""), ()))
        return class_of(phase) is PhaseClass.LEDGER, phase == "other", -ns, order.get(phase, len(order))

    for phase in sorted(tops, key=long):
        own = groups.get((phase, ""), [])
        if own:
            yield _row(sums, phase, None, own, timed)
        if len(own) > 1:
            for name in sorted(own, key=lambda one: -sums.slowest[one]):
                yield _row(sums, phase, name.name, [name], timed)
        inner = [name for (_, parent), names in groups.items() if parent == phase for name in names]
        for name in sorted(inner, key=lambda one: -sums.slowest[one]):
            yield _row(sums, name.phase, name.name, [name], timed)


def _row(sums: _PhaseTotals, phase: str, logged: str | None, names: Sequence[PhaseName], timed: bool) -> PhaseRow:
    slowest = sum(sums.slowest[name] for name in names)
    ranked = [name for name in names if name in sums.by_rank]
    mean = median = None
    if ranked:
        mean = round(sum(sums.mean[name] for name in ranked))
        totals: defaultdict[int, float] = defaultdict(float)
        for name in ranked:
            for rank, ns in sums.by_rank[name].items():
                totals[rank] += ns
        median = round(float(np.median(list(totals.values()))))
    of_steps = class_of(phase) is not PhaseClass.LEDGER
    share = share_of(slowest, sums.net) if timed and of_steps else None
    return PhaseRow(phase, logged, class_of(phase).value, round(slowest), mean, median, share)


class _Wins:
    """Number of blocks in which each was the slowest."""

    def __init__(self) -> None:
        self.blocks, self.others = 0, 0
        self.slowest: defaultdict[str, int] = defaultdict(int)

    def add(self, names: Sequence[str], own: F64, weight: F64, size: int) -> None:
        """own: [R, S]. size: records a block."""
        steps = np.flatnonzero(weight > 0)
        for begin in range(0, len(steps) - size + 1, size):
            totals = np.nansum(own[:, steps[begin : begin + size]], axis=1)
            if totals.max() > 0 and np.count_nonzero(totals == totals.max()) == 1:
                self.blocks += 1
                self.slowest[names[int(totals.argmax())]] += 1
        self.others = max(self.others, len(names))

    def habit(self) -> SlowestRankCounts:
        return SlowestRankCounts(self.blocks, dict(self.slowest), self.others)


def _add_ranks(sums: _PhaseTotals, launch: StepTimesOfAttempt, rank_wins: _Wins, host_wins: _Wins) -> None:
    """Add the cost of each rank and host, and the rank that others probably wait for."""
    weight = launch.weight_later
    sums.host_of |= dict(zip(launch.ranks, launch.hosts, strict=True))
    own, size = _own_times(launch), launch.records_a_block
    if own is not None and len(launch.ranks) > 1:
        sums.compared = True
        for at, ns in _costs(own, weight):
            sums.cost[launch.ranks[at]] += ns
        rank_wins.add([str(rank) for rank in launch.ranks], own, weight, size)
        hosts = sorted(set(launch.hosts))
        if len(hosts) > 1 and all(hosts):
            of_host = np.array([hosts.index(host) for host in launch.hosts])
            by_host = np.array([most_of(own[of_host == at]) for at in range(len(hosts))])
            sums.hosts_compared = True
            for at, ns in _costs(by_host, weight):
                sums.host_cost[hosts[at]] += ns
            host_wins.add(hosts, by_host, weight, size)
    for at, ns in _likely(launch, weight):
        sums.likely[launch.ranks[at]] += ns


def _own_times(launch: StepTimesOfAttempt) -> F64 | None:
    """[R, S]: time of each rank without waiting for others; NaN where none of it is logged. None: of no rank."""
    own = [
        values
        for name, values in launch.phases.items()
        if class_of(name.phase) is PhaseClass.OWN and class_of(name.parent) is not PhaseClass.OWN
    ]
    if not own:
        return None
    known = np.logical_or.reduce([~np.isnan(values) for values in own])
    return np.where(known, sum((np.nan_to_num(values) for values in own), np.zeros_like(own[0])), np.nan)


def _costs(own: F64, weight: F64) -> Iterator[tuple[int, float]]:
    """Yield, for each row that is ever the largest, the sum of its distances to the next one, over steps that two rows
    have."""
    filled = np.where(np.isnan(own), -1.0, own)
    both = (filled >= 0).sum(axis=0) >= 2
    if not both.any():
        return
    largest = filled.argmax(axis=0)
    ordered = np.partition(filled, len(filled) - 2, axis=0)[-2:]
    cost = np.where(both, ordered[1] - ordered[0], 0) * weight
    totals = np.bincount(largest, weights=cost, minlength=len(filled))
    yield from ((at, float(ns)) for at, ns in enumerate(totals.tolist()) if ns > 0)


def _likely(launch: StepTimesOfAttempt, weight: F64) -> Iterator[tuple[int, float]]:
    """Ranks that are above the middle one in one phase that may wait and below it in another, by 5 % of the step, in
    the same blocks; the seconds are the smaller of both."""
    mixed = [v for name, v in launch.phases.items() if not name.parent and class_of(name.phase) is PhaseClass.MIXED]
    steps = np.flatnonzero(weight > 0)
    if len(mixed) < 2 or len(launch.ranks) < 3 or np.isnan(launch.took).all():
        return
    size = launch.records_a_block
    for begin in range(0, len(steps) - size + 1, size):
        block = steps[begin : begin + size]
        totals = np.array([np.nansum(values[:, block], axis=1) for values in mixed])
        away = totals - np.median(totals, axis=1, keepdims=True)
        least = _LIKELY * float(np.nansum(mean_of_ranks(launch.took[:, block])))
        ns = np.minimum(away.max(axis=0), -away.min(axis=0))
        for at in np.flatnonzero(ns > least).tolist():
            yield at, float(ns[at])


def _rank_rows(sums: _PhaseTotals, ranks: Sequence[int]) -> Iterator[RankRow]:
    rows = [
        RankRow(
            rank,
            sums.host_of.get(rank) or None,
            _of_rank(sums, rank, lambda name: name.phase == "data"),
            _of_rank(sums, rank, lambda name: class_of(name.phase) is PhaseClass.OWN),
            _of_rank(sums, rank, lambda name: class_of(name.phase) is PhaseClass.WAIT),
            round(sums.cost.get(rank, 0)) if sums.compared else None,
            round(sums.likely.get(rank, 0)),
        )
        for rank in ranks
    ]
    yield from sorted(rows, key=lambda row: (-(row.cost_ns or 0), -row.likely_ns, -(row.own_ns or 0), row.rank))


def _of_rank(sums: _PhaseTotals, rank: int, chosen: Callable[[PhaseName], bool]) -> int | None:
    found = [ns[rank] for name, ns in sums.by_rank.items() if chosen(name) and rank in ns]
    return round(sum(found)) if found else None


def _host_rows(sums: _PhaseTotals) -> Iterator[StepHostRow]:
    by_host: defaultdict[str, list[int]] = defaultdict(list)
    for rank, host in sums.host_of.items():
        if host:
            by_host[host].append(rank)

    def most(ranks: Sequence[int], chosen: Callable[[PhaseName], bool]) -> int | None:
        found = [ns for rank in ranks if (ns := _of_rank(sums, rank, chosen)) is not None]
        return max(found, default=None)

    rows = [
        StepHostRow(
            host, len(ranks), most(ranks, lambda name: name.phase == "data"),
            most(ranks, lambda name: class_of(name.phase) is PhaseClass.OWN),
            round(sums.host_cost.get(host, 0)) if sums.hosts_compared else None,
        )
        for host, ranks in by_host.items()
    ]  # fmt: skip
    yield from sorted(rows, key=lambda row: (-(row.cost_ns or 0), -(row.own_ns or 0), row.host))
