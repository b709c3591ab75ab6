"""From the results of runs to the fleet: every run is cut at weeks and where its accelerators change, and added up.

Results come one after the other in any order; sums are of integers, and every list is sorted at the end, so that the
order makes no difference.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest

from goodput_cli.fleet.allocations import Capacity
from goodput_cli.fleet.question import WEEK, Grouping
from goodput_cli.fleet.store.results import RunResult
from goodput_cli.fleet.totals.run_amounts import (
    Basis,
    Calendar,
    Noticed,
    RunAmounts,
    RunRow,
    Values,
    WorstDisruption,
    add_allocation,
    run_name,
    without_spans,
)
from goodput_cli.fleet.totals.sums import PRODUCTIVE, Sums


@dataclass
class Unlogged:
    """Allocations that no run fits."""

    rows: int = 0
    chip_ns: int = 0


RECENT_WEEKS = 4
"""Of so many it is known what each run lost."""


@dataclass
class Fleet:
    """The fleet while it is added up, and then the whole of it."""

    basis: Basis
    capacity: Sequence[Capacity]
    total: Sums = field(default_factory=Sums)
    by_week: dict[int, Sums] = field(default_factory=lambda: defaultdict(Sums))
    by_size: dict[str, Sums] = field(default_factory=lambda: defaultdict(Sums))
    groups: dict[Values, dict[Values, Sums]] = field(init=False)
    """By dimensions, the sums of each group."""
    runs: list[RunRow] = field(default_factory=list)
    not_analysed: list[RunResult] = field(default_factory=list)
    outside: int = 0
    """Runs that lie outside the window."""
    lost_sight_of: int = 0
    worst: list[WorstDisruption] = field(default_factory=list)
    unlogged: Unlogged = field(default_factory=Unlogged)
    noticed: Noticed = field(default_factory=Noticed)
    recent: dict[int, dict[str, tuple[int, int]]] = field(default_factory=lambda: defaultdict(dict))
    """Of the latest weeks, by run: chip time and time that was lost."""

    def __post_init__(self) -> None:
        self.groups = {dims: defaultdict(Sums) for dims in self.grouping.by}

    @property
    def grouping(self) -> Grouping:
        return self.basis.grouping

    @property
    def calendar(self) -> Calendar:
        """The window and its weeks."""
        return self.basis.calendar

    def add(self, result: RunResult) -> None:
        """Add a run. Allocations are told of all runs before (`JoinedAllocations.expect`)."""
        start, end = max(result.start_ns, self.calendar.start), min(result.end_ns, self.calendar.end)
        if start > end or (start == end and result.reason is None):
            self.outside += 1
            return
        if result.reason is not None:
            self.not_analysed.append(result)
            return
        self.noticed.add(result)
        run = RunAmounts(self.basis, result, start, end)
        weekly = run.weekly()
        whole = run.whole(weekly)
        self._add_to_groups(run, whole, weekly)
        for number, sums in weekly.items():
            if number >= len(self.calendar.weeks) - RECENT_WEEKS:
                self._add_recent(number, run_name(result), sums)
        failed = [one for one in run.disruptions if one.ended in self.grouping.failing]
        counted = sum(one.ended != "scale_up" for one in run.disruptions)
        self.runs.append(
            RunRow(
                without_spans(result), run.labels, run.most, run.size, counted, len(failed), whole.time.total(),
                whole.time_counted, whole.time[PRODUCTIVE], whole.counted, whole.lost,
            )
        )  # fmt: skip
        self.worst += run.worst()
        if len(self.worst) > 8 * self.grouping.top + 1000:
            self._keep_worst()

    def _add_recent(self, number: int, name: str, sums: Sums) -> None:
        chip, time = self.recent[number].get(name, (0, 0))
        self.recent[number][name] = (chip + sums.lost, time + sums.time_counted - sums.time[PRODUCTIVE])

    def finish(self) -> None:
        """All runs are there: put lists in order, and count allocations without a log."""
        self._keep_worst()
        self.runs.sort(key=lambda row: (row.result.job, row.result.run, row.result.start_ns, row.result.documents))
        self.not_analysed.sort(key=lambda one: (one.job, one.run, one.documents))
        for allocation in self.basis.allocations.without_run():
            held = min(allocation.end, self.calendar.end) - max(allocation.start, self.calendar.start)
            if held <= 0:
                continue
            self.unlogged.rows += 1
            self.unlogged.chip_ns += allocation.accelerators * held
            if self.grouping.count_unlogged:
                weekly: dict[int, Sums] = defaultdict(Sums)
                add_allocation(allocation, self.calendar, weekly)
                for number, sums in weekly.items():
                    self.total.add(sums)
                    self.by_week[number].add(sums)

    def capacity_ns(self, cluster: str | None = None, accelerator: str | None = None) -> int | None:
        """K: chip time (ns) that the fleet, or a part of it, had in the window; None where nobody says."""
        rows = [
            one for one in self.capacity if cluster in (None, one.cluster) and accelerator in (None, one.accelerator)
        ]
        if not rows:
            return None
        start, end = self.calendar.start, self.calendar.end
        return sum(one.count * max(min(one.end, end) - max(one.start, start), 0) for one in rows)

    def _add_to_groups(self, run: RunAmounts, whole: Sums, weekly: Mapping[int, Sums]) -> None:
        self.total.add(whole)
        self.by_size[run.size].add(whole)
        for number, sums in weekly.items():
            self.by_week[number].add(sums)
        for dims, groups in self.groups.items():
            if WEEK not in dims:
                groups[run.values(dims)].add(whole)
                continue
            for number, sums in weekly.items():
                groups[run.values(dims, self.calendar.weeks[number].name)].add(sums)

    def _keep_worst(self) -> None:
        self.worst = nsmallest(self.grouping.top, self.worst, key=lambda one: one.order)
