"""From the results of runs to the fleet: every run is cut at weeks and where its accelerators change, and added up.

Results come one after the other in any order; sums are of integers, and every list is sorted at the end, so that the
order makes no difference.

What one run adds to a fleet: its amounts by week and by group, and what of it the lists of the report keep.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import nsmallest
from typing import Any

import numpy as np

from goodput_cli.analysis.insights.hosts import listed_name, of_a_host
from goodput_cli.diagnostics.diagnostic import Diagnostic, severity_of
from goodput_cli.events.observations import TOLERANCE_NS
from goodput_cli.fleet.allocations import (
    Allocation,
    Capacity,
    Holding,
    JoinedAllocations,
    accelerators_at,
    cut_at,
    holdings,
)
from goodput_cli.fleet.labels import Labels, RunLabels
from goodput_cli.fleet.question import SIZE, WEEK, Grouping, size_class
from goodput_cli.fleet.results import RunDisruption, RunResult
from goodput_cli.fleet.rows import RunLine
from goodput_cli.fleet.sums import (
    EXCLUDED,
    NOT_HELD,
    PRODUCTIVE,
    QUEUED,
    SLOWDOWN,
    Calendar,
    CauseAmounts,
    HostDeath,
    HostKey,
    HostSums,
    PieceTime,
    Sums,
    cut_spans,
)
from goodput_cli.vocabulary.text import plural
from goodput_cli.vocabulary.when import NS_PER_HOUR

_LIGHT = (
    "job", "run", "runs", "start_ns", "end_ns", "last_event_ns", "events", "documents", "formats", "attempts", "ended",
    "ending",
)  # fmt: skip
_FEW = 3
"""So many runs are named where many are meant."""


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
    disruption: RunDisruption
    accelerators: int | None
    price: Fraction | None
    currency: str | None

    @property
    def cost(self) -> int:
        """Chip time (ns) that it took; time, where nobody knows the accelerators."""
        return self.disruption.lost_ns * (1 if self.accelerators is None else self.accelerators)

    @property
    def order(self) -> tuple[Any, ...]:
        """Known costs first, the highest first; ties by time, job and number."""
        what = self.disruption
        return (self.accelerators is None, -self.cost, what.at_ns, self.job, self.run, what.number)


@dataclass
class Noticed:
    """What the accounting noticed in runs, by code and severity: how often, and in which runs."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    runs: Counter[tuple[str, str]] = field(default_factory=Counter)
    names: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    """Some of these runs: the first by name."""

    def add(self, result: RunResult) -> None:
        """What was noticed in one run."""
        for code, severity, count in result.findings:
            key = code, severity
            self.counts[key] += count
            self.runs[key] += 1
            self.names[key].append(run_name(result))
            if len(self.names[key]) > 1000:
                self.names[key] = nsmallest(_FEW, self.names[key])

    def diagnostics(self) -> Iterator[Diagnostic]:
        """One a code and severity."""
        for (code, severity), count in sorted(self.counts.items()):
            runs, names = self.runs[code, severity], ", ".join(nsmallest(_FEW, self.names[code, severity]))
            more = ", …" if runs > _FEW else ""
            message = f"in {plural(runs, 'run')} ({names}{more}); `goodput check -j NAME` shows it"
            yield Diagnostic.of(code, message, count, mild=severity != severity_of(code))


def run_name(result: RunResult | RunLine) -> str:
    """`llm-7b`, and `llm-7b #2` for one of several runs."""
    return f"{result.job} #{result.run}" if result.runs > 1 and result.run else result.job


def without_spans(result: RunResult) -> RunResult:
    """A result as a list of thousands may hold it."""
    return RunResult(**{name: getattr(result, name) for name in _LIGHT})


NOBODY = "(none)"
"""In place of a label that a run does not have."""
Values = tuple[str, ...]


@dataclass(frozen=True)
class Basis:
    """What every run of a fleet is added up with."""

    grouping: Grouping
    labels: Labels
    allocations: JoinedAllocations
    calendar: Calendar


class RunAmounts:
    """A run of which something lies in the window; [start, end) (ns) is what does."""

    def __init__(self, basis: Basis, result: RunResult, start: int, end: int) -> None:
        self._basis, self._result, self._start, self._end = basis, result, start, end
        grouping = basis.grouping
        self._allocations = basis.allocations.overlapping(result.job, start, end)
        said = {name: text for one in self._allocations for name, text in one.texts.items()}
        fallback = {
            **said, "accelerators": grouping.accelerators, "price": grouping.price_per_hour,
            "currency": grouping.currency,
        }  # fmt: skip
        self.labels = basis.labels.of(result.job, result.documents, result.start_ns, fallback)
        known = 1 if grouping.weight == "time" else self.labels.accelerators
        allocations = () if grouping.weight == "time" else self._allocations
        self._pieces = cut_at(holdings(start, end, allocations, known), basis.calendar.edges(start, end))
        counts = [one.accelerators for one in self._pieces]
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
        edges = np.array([self._pieces[0].start, *(one.end for one in self._pieces)], dtype=np.int64)
        weekly: dict[int, Sums] = defaultdict(Sums)
        for piece, amounts in zip(self._pieces, cut_spans(self._result.spans, edges), strict=True):
            sums = weekly[self._basis.calendar.week_at(piece.start)]
            self._add_piece(sums, piece, amounts)
            self._add_exposure(sums, piece)
        for allocation in self._own_allocations():
            add_allocation(allocation, self._basis.calendar, weekly)
        for one in self.disruptions:
            if one.ended in self._basis.grouping.failing:
                self._add_failure(weekly[self._basis.calendar.week_at(one.at_ns)])
        for sums in weekly.values():
            sums.runs = int(bool(sums.time))  # in a week of waiting alone it is no run yet
            sums.known, sums.priced = sums.runs * self._known, sums.runs * self._priced
            sums.ideal_allocated = sums.allocated if self._ideal_is_known else 0
        return weekly

    def whole(self, weekly: dict[int, Sums]) -> Sums:
        """The run as a whole, from its weeks."""
        whole = Sums()
        for sums in weekly.values():
            whole.add(sums)
        whole.runs, whole.known, whole.priced = 1, int(self._known), int(self._priced)
        whole.shares = [(whole.time[PRODUCTIVE], whole.time_counted)]
        last = self._pieces[-1].accelerators
        if self._result.at_risk_ns and self._end == self._result.end_ns and last is not None:
            whole.at_risk = self._result.at_risk_ns * last
            whole.ideal_at_risk = whole.at_risk if self._ideal_is_known else 0
        return whole

    def worst(self) -> list[WorstDisruption]:
        """Its disruptions with what they cost."""
        labels = self.labels
        return [
            WorstDisruption(
                self._result.job, self._result.run, one, accelerators_at(self._pieces, one.at_ns), labels.price,
                labels.currency,
            )
            for one in self.disruptions if one.ended != "scale_up"
        ]  # fmt: skip

    def lost_by_cause(self, failed: Sequence[RunDisruption]) -> dict[str, CauseAmounts]:
        """What failures of each cause lost in this one run."""
        by_cause: dict[str, CauseAmounts] = defaultdict(lambda: CauseAmounts(runs=1))
        for one in failed:
            chip = one.lost_ns * (accelerators_at(self._pieces, one.at_ns) or 0)
            by_cause[one.cause].add(CauseAmounts(failures=1, lost=one.lost_ns, lost_chip=chip))
        return by_cause

    def time_up_by_host(self) -> Counter[HostKey] | None:
        """Time up (ns) of each of its hosts; None where not all of them are listed: by what its log says of each
        attempt, else by the allocation that the attempt began in."""
        found: Counter[HostKey] = Counter()
        cluster = self.labels.texts.get("cluster", "")
        for begin, end, place in zip(*(one.tolist() for one in self._result.up), self._places(), strict=True):
            ns = min(end, self._end) - max(begin, self._start)
            if ns <= 0:
                continue
            hosts = self._result.hosts[place].split(",") if place >= 0 else self._allocated_hosts(begin)
            if not hosts:
                return None
            for host in hosts:
                found[cluster, host] += ns
        return found or None

    def deaths_by_host(self, failed: Sequence[RunDisruption], listed: Iterable[HostKey]) -> list[HostDeath]:
        """Its failures that may be of their host. listed: its hosts."""
        cluster, names = self.labels.texts.get("cluster", ""), [host for _, host in listed]
        return [
            HostDeath(one.at_ns, (cluster, listed_name(one.host, names) or one.host), one.cause, run_name(self._result))
            for one in failed if of_a_host(one.cause)
        ]  # fmt: skip

    def _places(self) -> list[int]:
        """Of each time up, which list of hosts counts."""
        return self._result.listed.tolist() or [-1] * len(self._result.up[0])

    def _allocated_hosts(self, begin: int) -> list[str]:
        """All hosts of the allocations that an attempt began in; none where one of them lists none."""
        held = [one for one in self._allocations if one.start - TOLERANCE_NS <= begin < one.end]
        return sorted({host for one in held for host in one.hosts}) if all(one.hosts for one in held) else []

    @property
    def _known(self) -> bool:
        return self.most is not None

    @property
    def _priced(self) -> bool:
        return self.labels.price is not None and self._known and self._basis.grouping.weight == "chips"

    @property
    def _ideal_is_known(self) -> bool:
        """Whether somebody says what a step would take ideally (docs/fleet.md, I)."""
        labels = self.labels
        by_flops = labels.flops_per_step is not None and labels.peak_flops is not None
        return self._known and (labels.ideal_step_seconds is not None or by_flops)

    def _own_allocations(self) -> list[Allocation]:
        if not self._allocations or self._basis.grouping.weight == "time":
            return []
        result = self._result
        return self._basis.allocations.of_run(result.job, result.run, result.start_ns)

    def _add_piece(self, sums: Sums, piece: Holding, time: PieceTime) -> None:
        """Add what the time of a piece went to."""
        for key, ns in time.ns.items():
            sums.time[key] += ns
        count = piece.accelerators
        if count is None:
            return
        for key, ns in time.ns.items():
            sums.chip[key] += ns * count
        counted = sum(time.ns.values()) - time.ns.get(EXCLUDED, 0)
        sums.known_time += counted
        held = counted if piece.held else 0
        if piece.held is None:
            held = counted - sum(time.ns.get(key, 0) for key in NOT_HELD)
            sums.waiting += count * time.ns.get(QUEUED, 0)
            sums.asked += QUEUED in time.ns
            sums.allocated += count * (held - min(held, self._partial(piece)))
        elif not piece.held:
            sums.assumed += count * (piece.end - piece.start)
        else:
            sums.allocated -= count * self._partial(piece)
        sums.held += count * held
        productive = 0
        if piece.held is not False:
            productive = time.ns.get(PRODUCTIVE, 0)
            self._add_kept(sums, count, time)
        sums.held_productive += count * productive
        self._add_money(sums, count * (held - productive))

    def _add_money(self, sums: Sums, chip_ns: int) -> None:
        if self._priced and self.labels.price is not None:
            sums.money[self.labels.currency or ""] += self.labels.price * Fraction(chip_ns, NS_PER_HOUR)  # type: ignore[assignment]

    def _add_kept(self, sums: Sums, count: int, time: PieceTime) -> None:
        """P and I (docs/fleet.md): kept training, and kept steps x what one would take ideally."""
        kept = count * (time.ns.get(PRODUCTIVE, 0) + time.ns.get(SLOWDOWN, 0))
        sums.kept += kept
        if not self._ideal_is_known:
            return
        labels = self.labels
        seconds = labels.ideal_step_seconds
        if seconds is None and labels.flops_per_step is not None and labels.peak_flops is not None:
            seconds = labels.flops_per_step / (count * labels.peak_flops)
        sums.ideal += Fraction(time.steps) * count * (seconds or 0) * 10**9
        sums.ideal_kept += kept

    def _partial(self, piece: Holding) -> int:
        """Time (ns) of a piece in which fewer slices were active than there are."""
        start, end = self._result.partial
        return int(np.maximum(np.minimum(end, piece.end) - np.maximum(start, piece.start), 0).sum())

    def _add_exposure(self, sums: Sums, piece: Holding) -> None:
        """Time in which attempts were up: in it a failure would have been seen."""
        start, end = self._result.up
        ns = int(np.maximum(np.minimum(end, piece.end) - np.maximum(start, piece.start), 0).sum())
        sums.up += ns
        if piece.accelerators is not None:
            sums.chip_up += ns * piece.accelerators
            if self.labels.accelerators_per_node is not None:
                sums.node_up += Fraction(ns * piece.accelerators, self.labels.accelerators_per_node)

    def _add_failure(self, sums: Sums) -> None:
        sums.failures += 1
        sums.node_failures += int(self.labels.accelerators_per_node is not None and self._known)


def add_allocation(allocation: Allocation, calendar: Calendar, weekly: dict[int, Sums]) -> None:
    """Add what was held and waited for, each to its week."""
    count, start, end = allocation.accelerators, allocation.start, allocation.end
    waits = start if allocation.waiting_since is None else min(allocation.waiting_since, start)
    for number, week in enumerate(calendar.weeks):
        held = max(min(end, week.end) - max(start, week.start), 0)
        waited = max(min(start, week.end) - max(waits, week.start), 0)
        if held or waited:
            weekly[number].allocated += held * count
            weekly[number].waiting += waited * count
            weekly[number].asked += allocation.waiting_since is not None


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
    causes: dict[str, CauseAmounts] = field(default_factory=lambda: defaultdict(CauseAmounts))
    """By cause, the failures."""
    hosts: HostSums = field(default_factory=HostSums)
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
        for cause, lost in run.lost_by_cause(failed).items():
            self.causes[cause].add(lost)
        up = run.time_up_by_host()
        self.hosts.add(up, run.deaths_by_host(failed, up or ()))
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
