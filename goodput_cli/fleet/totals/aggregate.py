"""From the results of runs to the fleet: every run is cut at weeks and where its accelerators change, and added up.

Results come one after the other in any order; sums are of integers, and every list is sorted at the end, so that the
order makes no difference.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from fractions import Fraction
from heapq import nsmallest
from typing import Any

import numpy as np

from goodput_cli.fleet.grouping import SIZE, WEEK, Grouping, size_class
from goodput_cli.fleet.inventory.allocations import Allocation, Capacity
from goodput_cli.fleet.inventory.holdings import Holding, accelerators_at, cut_at, holdings
from goodput_cli.fleet.inventory.labels import Labels, RunLabels
from goodput_cli.fleet.store.results import RunDisruption, RunResult
from goodput_cli.fleet.totals.cut import Key, PieceTime, cut_spans
from goodput_cli.fleet.totals.ratios import HOUR_NS
from goodput_cli.fleet.totals.sums import NOT_HELD, Sums
from goodput_cli.fleet.totals.weeks import Week, weeks_of
from goodput_cli.vocabulary.categories import Category

NOBODY = "(none)"
"""In place of a label that a run does not have."""
_PRODUCTIVE: Key = (Category.PRODUCTIVE, None)
_EXCLUDED: Key = (Category.EXCLUDED, None)
Values = tuple[str, ...]


@dataclass(frozen=True)
class RunRow:
    """A run as the list of all runs has it. Amounts are of the window."""

    result: RunResult
    """Without spans."""
    labels: RunLabels
    accelerators: int | None
    """Most at once in the window."""
    size: str
    disruptions: int
    failures: int
    ns: int
    counted_ns: int
    """Time without exclusions."""
    productive_ns: int
    chip_ns: int
    """Chip time without exclusions."""
    lost_chip_ns: int


@dataclass(frozen=True)
class WorstDisruption:
    """A disruption and what it cost."""

    job: str
    run: int
    found: RunDisruption
    accelerators: int | None
    price: Fraction | None
    currency: str | None

    @property
    def cost(self) -> int:
        """Chip time (ns) that it took; time, where nobody knows the accelerators."""
        return self.found.lost_ns * (1 if self.accelerators is None else self.accelerators)

    @property
    def order(self) -> tuple[Any, ...]:
        """Known costs first, the highest first; ties by time, job and number."""
        return (self.accelerators is None, -self.cost, self.found.at_ns, self.job, self.run, self.found.number)


@dataclass
class Unlogged:
    """Allocations that no run fits."""

    rows: int = 0
    chip_ns: int = 0


@dataclass
class Fleet:
    """The fleet while it is added up, and then the whole of it."""

    grouping: Grouping
    labels: Labels
    allocations: Mapping[str, Sequence[Allocation]]
    capacity: Sequence[Capacity]
    start: int
    end: int
    """The window, ns."""
    zone: tzinfo
    weeks: list[Week] = field(init=False)
    total: Sums = field(default_factory=Sums)
    by_week: dict[int, Sums] = field(default_factory=lambda: defaultdict(Sums))
    by_size: dict[str, Sums] = field(default_factory=lambda: defaultdict(Sums))
    groups: dict[Values, dict[Values, Sums]] = field(default_factory=dict)
    """By dimensions, the sums of each group."""
    runs: list[RunRow] = field(default_factory=list)
    not_analysed: list[RunResult] = field(default_factory=list)
    outside: int = 0
    """Runs that lie outside the window."""
    lost_sight_of: int = 0
    worst: list[WorstDisruption] = field(default_factory=list)
    unlogged: Unlogged = field(default_factory=Unlogged)

    def __post_init__(self) -> None:
        self.weeks = weeks_of(self.start, self.end, self.zone)
        self._edges = [self.start, *(week.end for week in self.weeks)]
        self.groups = {dims: defaultdict(Sums) for dims in self.grouping.by}
        self._joined: set[Allocation] = set()
        self._owners: dict[Allocation, tuple[int, str, int]] = {}

    def expect(self, job: str, run: int, start: int, end: int) -> None:
        """Said of every run before any is added: an allocation that two runs of a name lie in is the first one's."""
        for one in self.allocations.get(job, ()):
            if one.start < end and one.end > start:
                owner = (start, job, run)
                self._owners[one] = min(self._owners.get(one, owner), owner)

    def add(self, result: RunResult) -> None:
        """Add a run."""
        if result.reason is not None:
            self.not_analysed.append(result)
            return
        start, end = max(result.start_ns, self.start), min(result.end_ns, self.end)
        if start >= end:
            self.outside += 1
            return
        run = _Run(self, result, start, end)
        weekly = run.weekly()
        whole = Sums()
        for sums in weekly.values():
            whole.add(sums)
        run.finish(whole)
        self._add_to_groups(run, whole, weekly)
        failed = [one for one in run.disruptions if one.ended in self.grouping.failing]
        counted = sum(one.ended != "scale_up" for one in run.disruptions)
        self.runs.append(
            RunRow(
                _without_spans(result), run.labels, run.most, run.size, counted, len(failed), whole.time.total(),
                whole.time_counted, whole.time[_PRODUCTIVE], whole.counted, whole.lost,
            )
        )  # fmt: skip
        self.worst += run.worst()
        if len(self.worst) > 8 * self.grouping.top + 1000:
            self._keep_worst()

    def finish(self) -> None:
        """All runs are there: put lists in order, and count allocations without a log."""
        self._keep_worst()
        self.runs.sort(key=lambda row: (row.result.job, row.result.run, row.result.start_ns, row.result.documents))
        self.not_analysed.sort(key=lambda one: (one.job, one.run, one.documents))
        for allocation in (one for found in self.allocations.values() for one in found):
            start, end = max(allocation.start, self.start), min(allocation.end, self.end)
            if allocation not in self._owners and start < end:
                self.unlogged.rows += 1
                self.unlogged.chip_ns += allocation.accelerators * (end - start)
                if self.grouping.count_unlogged:
                    self._add_allocation(allocation, self.total, self.by_week)

    def capacity_ns(self, cluster: str | None = None, accelerator: str | None = None) -> int | None:
        """K: chip time (ns) that the fleet, or a part of it, had in the window; None where nobody says."""
        rows = [
            one for one in self.capacity if cluster in (None, one.cluster) and accelerator in (None, one.accelerator)
        ]
        if not rows:
            return None
        return sum(one.count * max(min(one.end, self.end) - max(one.start, self.start), 0) for one in rows)

    def allocated_to(self, result: RunResult) -> list[Allocation]:
        """The allocations that are this run's alone."""
        owner = (result.start_ns, result.job, result.run)
        return [one for one in self.allocations.get(result.job, ()) if self._owners.get(one) == owner]

    def add_allocation(self, allocation: Allocation, by_week: dict[int, Sums]) -> None:
        """Add what was held and waited for, each to its week."""
        self._add_allocation(allocation, Sums(), by_week)

    def week_edges(self, start: int, end: int) -> list[int]:
        """The instants at which weeks begin inside [start, end) (ns)."""
        return [edge for edge in self._edges if start < edge < end]

    def week_at(self, instant: int) -> int:
        """Position of the week that holds an instant of the window."""
        return int(np.searchsorted(self._edges, instant, side="right")) - 1

    def _add_allocation(self, allocation: Allocation, whole: Sums, by_week: dict[int, Sums]) -> None:
        waits = (
            allocation.start if allocation.waiting_since is None else min(allocation.waiting_since, allocation.start)
        )
        for number, week in enumerate(self.weeks):
            held = max(min(allocation.end, week.end) - max(allocation.start, week.start), 0) * allocation.accelerators
            waited = max(min(allocation.start, week.end) - max(waits, week.start), 0) * allocation.accelerators
            if held or waited:
                for sums in (whole, by_week[number]):
                    sums.allocated += held
                    sums.waiting += waited

    def _add_to_groups(self, run: _Run, whole: Sums, weekly: Mapping[int, Sums]) -> None:
        self.total.add(whole)
        self.by_size[run.size].add(whole)
        for number, sums in weekly.items():
            self.by_week[number].add(sums)
        for dims, groups in self.groups.items():
            if WEEK not in dims:
                groups[run.values(dims)].add(whole)
                continue
            for number, sums in weekly.items():
                groups[run.values(dims, self.weeks[number].name)].add(sums)

    def _keep_worst(self) -> None:
        self.worst = nsmallest(self.grouping.top, self.worst, key=lambda one: one.order)


class _Run:
    """A run of which something lies in the window [start, end) (ns)."""

    def __init__(self, fleet: Fleet, result: RunResult, start: int, end: int) -> None:
        self.fleet, self.result, self.start, self.end = fleet, result, start, end
        grouping = fleet.grouping
        self.allocations = [one for one in fleet.allocations.get(result.job, ()) if one.start < end and one.end > start]
        said = {name: text for one in self.allocations for name, text in one.texts.items()}
        fallback = {
            **said, "accelerators": grouping.accelerators, "price": grouping.price_per_hour,
            "currency": grouping.currency,
        }  # fmt: skip
        self.labels = fleet.labels.of(result.job, result.documents, result.start_ns, fallback)
        known = 1 if grouping.weight == "time" else self.labels.accelerators
        allocations = () if grouping.weight == "time" else self.allocations
        edges = fleet.week_edges(start, end)
        self.pieces = cut_at(holdings(start, end, allocations, known), edges)
        counts = [one.accelerators for one in self.pieces]
        self.most = None if None in counts else max(count for count in counts if count is not None)
        of_size = self.labels.accelerators if grouping.weight == "time" else self.most
        self.size = size_class(grouping.size_bounds, of_size)
        self.disruptions = [one for one in result.disruptions if start <= one.at_ns < end]

    def values(self, dims: Values, week: str = "") -> Values:
        """The group of the run in these dimensions."""
        fixed = {SIZE: self.size, WEEK: week}
        return tuple(fixed.get(dim) or self.labels.texts.get(dim, NOBODY) for dim in dims)

    def weekly(self) -> dict[int, Sums]:
        """The amounts of the run in each week in which it has some."""
        edges = np.array([self.start, *(one.end for one in self.pieces)], dtype=np.int64)
        weekly: dict[int, Sums] = defaultdict(Sums)
        for piece, time in zip(self.pieces, cut_spans(self.result.spans, edges), strict=True):
            self._add_piece(weekly[self.fleet.week_at(piece.start)], piece, time)
        for one in self.fleet.allocated_to(self.result) if self._by_allocations else ():
            self.fleet.add_allocation(one, weekly)
        self._add_reliability(weekly)
        for sums in weekly.values():
            sums.runs, sums.known, sums.priced = 1, int(self.most is not None), int(self._priced)
            if sums.ideal_kept:
                sums.ideal_allocated = sums.allocated
        return weekly

    def finish(self, whole: Sums) -> None:
        """Say what is of the run as a whole."""
        whole.runs, whole.known, whole.priced = 1, int(self.most is not None), int(self._priced)
        whole.shares = [(whole.time[_PRODUCTIVE], whole.time_counted)]
        if self.result.at_risk_ns and self.end == self.result.end_ns and self.pieces[-1].accelerators is not None:
            whole.at_risk = self.result.at_risk_ns * self.pieces[-1].accelerators

    def worst(self) -> list[WorstDisruption]:
        """Its disruptions with what they cost."""
        labels = self.labels
        return [
            WorstDisruption(
                self.result.job, self.result.run, one, accelerators_at(self.pieces, one.at_ns), labels.price,
                labels.currency,
            )
            for one in self.disruptions if one.ended != "scale_up"
        ]  # fmt: skip

    @property
    def _by_allocations(self) -> bool:
        return bool(self.allocations) and self.fleet.grouping.weight != "time"

    @property
    def _priced(self) -> bool:
        weight = self.fleet.grouping.weight
        return self.labels.price is not None and self.most is not None and weight == "chips"

    def _add_piece(self, sums: Sums, piece: Holding, time: PieceTime) -> None:
        """Add what the time of a piece went to."""
        for key, ns in time.ns.items():
            sums.time[key] += ns
        count = piece.accelerators
        if count is None:
            return
        for key, ns in time.ns.items():
            sums.chip[key] += ns * count
        counted = sum(time.ns.values()) - time.ns.get(_EXCLUDED, 0)
        sums.known_time += counted
        held = counted if piece.held else 0
        if piece.held is None:
            held = counted - sum(time.ns.get(key, 0) for key in NOT_HELD)
            sums.waiting += count * time.ns.get((Category.QUEUED, None), 0)
            sums.allocated += count * (held - min(held, self._partial(piece)))
        elif not piece.held:
            sums.assumed += count * (piece.end - piece.start)
        else:
            sums.allocated -= count * self._partial(piece)
        productive = time.ns.get(_PRODUCTIVE, 0) if piece.held is not False else 0
        sums.held += count * held
        sums.held_productive += count * productive
        self._add_money(sums, count * (held - productive))
        self._add_ideal(sums, count, time)

    def _add_money(self, sums: Sums, chip_ns: int) -> None:
        if self._priced and self.labels.price is not None:
            sums.money[self.labels.currency or ""] += self.labels.price * Fraction(chip_ns, HOUR_NS)  # type: ignore[assignment]

    def _add_ideal(self, sums: Sums, count: int, time: PieceTime) -> None:
        """I (docs/fleet.md): kept steps x what one would take ideally."""
        labels = self.labels
        seconds = labels.ideal_step_seconds
        if seconds is None and labels.flops_per_step is not None and labels.peak_flops is not None:
            seconds = labels.flops_per_step / (count * labels.peak_flops)
        if seconds is None:
            return
        sums.ideal += Fraction(time.steps) * count * seconds * 10**9
        kept = time.ns.get(_PRODUCTIVE, 0) + time.ns.get((Category.SLOWDOWN, None), 0)
        sums.ideal_kept += count * kept

    def _partial(self, piece: Holding) -> int:
        """Time (ns) of a piece in which fewer slices were active than there are."""
        start, end = self.result.partial
        return int(np.maximum(np.minimum(end, piece.end) - np.maximum(start, piece.start), 0).sum())

    def _add_reliability(self, weekly: dict[int, Sums]) -> None:
        """Exposure and failures, in each week."""
        start, end = self.result.up
        nodes = self.labels.accelerators_per_node
        for piece in self.pieces:
            ns = int(np.maximum(np.minimum(end, piece.end) - np.maximum(start, piece.start), 0).sum())
            sums = weekly[self.fleet.week_at(piece.start)]
            sums.up += ns
            if piece.accelerators is not None:
                sums.chip_up += ns * piece.accelerators
                if nodes is not None:
                    sums.node_up += Fraction(ns * piece.accelerators, nodes)
        for one in self.disruptions:
            if one.ended in self.fleet.grouping.failing:
                sums = weekly[self.fleet.week_at(one.at_ns)]
                sums.failures += 1
                sums.node_failures += int(nodes is not None and self.most is not None)


def _without_spans(result: RunResult) -> RunResult:
    """A result as a list of thousands may hold it."""
    return RunResult(**{name: getattr(result, name) for name in _LIGHT})


_LIGHT = (
    "job", "run", "runs", "start_ns", "end_ns", "last_event_ns", "events", "documents", "formats", "attempts", "ended",
    "ending", "findings",
)  # fmt: skip
