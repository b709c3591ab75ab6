"""Aggregation of the results of runs into the fleet: every run is cut at weeks and where its accelerators change, and
added up.

Results arrive in any order; sums are of integers, and every list is sorted at the end, so the order makes no
difference. Hosts that repeat: each host's time up over all runs, and the failures on it (docs/causes.md).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from heapq import nsmallest
from typing import Any

import numpy as np

from goodput_cli.analysis.insights.hosts import listed_name
from goodput_cli.analysis.table import filled
from goodput_cli.arrays import I64
from goodput_cli.diagnostics.diagnostic import Diagnostic, severity_of
from goodput_cli.events.evidence import TOLERANCE_NS
from goodput_cli.fleet.labels import (
    AcceleratorSpan,
    Allocation,
    Capacity,
    JoinedAllocations,
    Labels,
    RunLabels,
    holdings,
)
from goodput_cli.fleet.question import SIZE, WEEK, Grouping, size_class
from goodput_cli.fleet.recovery import Outage, Outages
from goodput_cli.fleet.results import RunDisruption, RunResult
from goodput_cli.fleet.rows import DisruptionRow, RunLine, cost_of, most_lost_to, number_of, run_name
from goodput_cli.fleet.sums import (
    EXCLUDED,
    NOT_HELD,
    PRODUCTIVE,
    QUEUED,
    SLOWDOWN,
    Calendar,
    FleetTotals,
    LabelledCategory,
    cut_spans,
    cut_used,
    decimals,
    hours,
)
from goodput_cli.vocabulary.categories import UNCOUNTED, Category
from goodput_cli.vocabulary.text import plural
from goodput_cli.vocabulary.when import NS_PER_HOUR, NS_PER_SECOND

HostKey = tuple[str, str]
"""Cluster, empty if unknown, and host: clusters may have hosts of equal names."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A disruption that counts as a failure."""

    run: RunLine
    at_ns: int
    cause: str
    lost_ns: int
    """wasted + downtime + restart."""
    lost_chip: int
    """The same in chip time, 0 if the number of accelerators is unknown."""
    host: HostKey | None
    """Host of the failure, if it and all other hosts of the run are listed."""
    hosts_up: Mapping[HostKey, int]
    """Time up (ns) of all hosts of the run; empty where not all are listed."""


NO_LABEL = "(none)"
"""Label of a run without one."""
RECENT_WEEKS = 4
"""Number of weeks for which the losses of each run are known."""
_FEW = 3
"""Number of runs named as examples of many."""
Values = tuple[str, ...]


class FleetRun:
    """A run that overlaps the window; [start, end) (ns) is the overlap."""

    def __init__(self, fleet: Fleet, result: RunResult, start: int, end: int) -> None:
        self.result, self.start, self.end = result, start, end
        grouping, self._calendar = fleet.grouping, fleet.calendar
        by_chips = grouping.weight == "chips"
        self.allocations = fleet.allocations.overlapping(result.job, start, end)
        fallback = {name: text for one in self.allocations for name, text in one.texts.items()} | {
            "accelerators": grouping.accelerators, "price": grouping.price_per_hour, "currency": grouping.currency,
        }  # fmt: skip
        named = fleet.labels.of(result.job, result.documents, result.start_ns, fallback)
        self.labels = labels = _with_logged(named, result)
        held, known = (self.allocations, labels.accelerators) if by_chips else ((), 1)
        self._own = fleet.allocations.of_run(result.job, result.run, result.start_ns) if held else []
        self._pieces = holdings(start, end, held, known, fleet.calendar.edges(start, end))
        counts = [one.accelerators for one in self._pieces if one.accelerators is not None]
        self.most = max(counts) if len(counts) == len(self._pieces) else None
        self.size = size_class(grouping.size_bounds, self.most if by_chips else labels.accelerators)
        inside = [one for one in result.disruptions if start <= one.at_ns < end]
        self.disruptions = [one for one in inside if one.number]
        self.failed = [one for one in inside if one.ended in grouping.failing]
        self._cluster = labels.texts.get("cluster", "")
        self._known = self.most is not None
        self._price = labels.price if self._known and by_chips else None
        self._ideal_is_known = self._known and labels.ideal_seconds(1) is not None
        self.accelerators_logged = by_chips and not held and named.accelerators is None and self._known
        self.program_logged = self._ideal_is_known and named.ideal_seconds(1) is None

    def values(self, dims: Values, week: int | None) -> Values:
        """The group of the run in these dimensions, in a week of the window."""
        name = "" if week is None else self._calendar.weeks[week].name
        texts = {**self.labels.texts, SIZE: self.size, WEEK: name}
        return tuple(texts.get(dim) or NO_LABEL for dim in dims)

    def accelerators_at(self, instant: int) -> int | None:
        """Return how many accelerators the run has at a time inside it; None if unknown."""
        return next((one.accelerators for one in self._pieces if one.start <= instant < one.end), None)

    def weekly(self) -> dict[int, FleetTotals]:
        """The amounts of the run in each week in which it has some."""
        edges = np.array([self._pieces[0].start, *(one.end for one in self._pieces)], dtype=np.int64)
        weekly: dict[int, FleetTotals] = defaultdict(FleetTotals)
        cut = zip(self._pieces, cut_spans(self.result.spans, edges), cut_used(self.result.used, edges), strict=True)
        for piece, (time, steps), used in cut:
            in_week = weekly[self._calendar.week_at(piece.start)]
            in_week.add(self._amounts(piece, time, steps))
            in_week.add(used)
        for week, sums in (one for own in self._own for one in allocated_weekly(own, self._calendar)):
            weekly[week].add(sums)
        of_nodes = int(self.labels.accelerators_per_node is not None and self._known)
        for one in self.failed:
            weekly[self._calendar.week_at(one.at_ns)].add(FleetTotals(failures=1, node_failures=of_nodes))
        for one in self.outages():
            weekly[self._calendar.week_at(one.at_ns)].add(
                FleetTotals(
                    recover=one.recover_ns or 0, recovered=int(one.recover_ns is not None),
                    detect=one.detect_ns or 0, detected=int(one.detect_ns is not None),
                )
            )  # fmt: skip
        for sums in weekly.values():
            sums.runs = int(bool(sums.time))  # a run that only waits in a week does not count yet
            sums.known_runs, sums.priced_runs = sums.runs * self._known, sums.runs * (self._price is not None)
            sums.ideal_allocated = sums.allocated if self._ideal_is_known else 0
            _once_each(sums)
        return weekly

    def outages(self) -> list[RunDisruption]:
        """Its disruptions that count."""
        return [one for one in self.disruptions if one.ended not in UNCOUNTED]

    def whole_run(self, weekly: Mapping[int, FleetTotals]) -> FleetTotals:
        """The run as a whole, from its weeks."""
        whole = FleetTotals()
        for sums in weekly.values():
            whole.add(sums)
        whole.runs, whole.known_runs, whole.priced_runs = 1, int(self._known), int(self._price is not None)
        _once_each(whole)
        whole.shares = [(whole.time[PRODUCTIVE], whole.time_counted)]
        last = self._pieces[-1].accelerators
        if self.result.at_risk_ns is not None and self.end == self.result.end_ns:
            whole.risks = [self.result.at_risk_ns]
        if self.result.at_risk_ns and self.end == self.result.end_ns and last is not None:
            whole.at_risk = self.result.at_risk_ns * last
            whole.ideal_at_risk = whole.at_risk if self._ideal_is_known else 0
        return whole

    def row(self, whole: FleetTotals) -> RunLine:
        """The run as the list of runs has it. whole: its amounts in the window."""
        texts, counted, productive = self.labels.texts, whole.time_counted, whole.time[PRODUCTIVE]
        return filled(
            RunLine,
            self.result,
            ns=whole.time.total(),
            **{name: texts.get(name) for name in ("team", "cluster", "accelerator")},
            accelerators=self.most,
            size=self.size,
            disruptions=sum(one.ended not in UNCOUNTED for one in self.disruptions),
            failures=len(self.failed),
            goodput_ns=productive,
            lost_ns=counted - productive,
            goodput_percent=100 * productive / counted if counted > 0 else None,
            chip_ns=str(whole.counted) if self._known else None,
            lost_hours=hours(whole.lost) if self._known else None,
            most_lost_to=most_lost_to(whole),
            causes=self._causes(),
            cost=cost_of(whole),
            **{name: number_of(getattr(whole, name)) for name in ("kwh", "lost_kwh", "idle_hours")},
            doubts=list(self.result.doubts),
            documents=list(self.result.documents),
        )

    def _causes(self) -> str:
        """Return the causes of its failures, largest loss first."""
        lost: Counter[str] = Counter()
        for one in self.failed:
            lost[one.cause] += one.lost_ns
        return ", ".join(sorted(lost, key=lambda cause: (-lost[cause], cause)))

    def hosts_up(self) -> Counter[HostKey]:
        """Return the time up (ns) of each host: by the log of each attempt, otherwise by the allocations in which the
        attempt began. Empty if not all of its hosts are listed."""
        result, found = self.result, Counter[HostKey]()
        places = result.listed.tolist() or [-1] * len(result.up[0])
        for began, ended, place in zip(*(one.tolist() for one in result.up), places, strict=True):
            ns = min(ended, self.end) - max(began, self.start)
            if ns <= 0:
                continue
            held = [one.hosts for one in self.allocations if one.start - TOLERANCE_NS <= began < one.end]
            of_allocations = {host for one in held for host in one} if all(held) else set()
            hosts = result.hosts[place].split(",") if place >= 0 else sorted(of_allocations)
            if not hosts:
                return Counter()
            for host in hosts:
                found[self._cluster, host] += ns
        return found

    def failures(self, row: RunLine, hosts: Mapping[HostKey, int]) -> Iterator[Failure]:
        """Its failures. row: of the run. hosts: time up (ns) of its hosts, where all are listed."""
        names = [name for _, name in hosts]
        for one in self.failed:
            host = self._cluster, listed_name(one.host, names) or one.host
            chip = one.lost_ns * (self.accelerators_at(one.at_ns) or 0)
            yield Failure(row, one.at_ns, one.cause, one.lost_ns, chip, host if host in hosts else None, hosts)

    def disruption_rows(self) -> Iterator[DisruptionRow]:
        """Its disruptions with what they cost."""
        labels = self.labels
        for one in self.outages():
            count = self.accelerators_at(one.at_ns)
            chip = None if count is None else one.lost_ns * count
            money = None
            if chip is not None and labels.price is not None:
                cost = decimals(labels.price * Fraction(chip, NS_PER_HOUR))
                money = f"{cost} {labels.currency or ''}".strip()
            yield filled(
                DisruptionRow, one, job=self.result.job, run=self.result.run, accelerators=count,
                chip_ns=None if chip is None else str(chip), accelerator_hours=None if chip is None else hours(chip),
                cost=money,
            )  # fmt: skip

    def _amounts(self, piece: AcceleratorSpan, time: Mapping[LabelledCategory, int], steps: float) -> FleetTotals:
        """Return the sums of a piece. time: ns by category. steps: its kept steps."""
        count, labels, up = piece.accelerators, self.labels, _overlap_ns(piece, *self.result.up)
        sums = FleetTotals(time=Counter(time), up=up)
        if count is None:
            return sums
        sums.chip = Counter({key: ns * count for key, ns in time.items()})
        sums.chip_up = up * count
        if labels.accelerators_per_node is not None:
            sums.node_up = Fraction(up * count, labels.accelerators_per_node)
        sums.known_time = sum(time.values()) - time.get(EXCLUDED, 0)
        partial = _overlap_ns(piece, *self.result.partial)  # fewer slices were active than there are
        not_held = {None: (EXCLUDED, *NOT_HELD), True: (EXCLUDED,), False: tuple(time)}[piece.held]
        held_by = {key: 0 if key in not_held else ns for key, ns in time.items()}
        held, productive = sum(held_by.values()), held_by.get(PRODUCTIVE, 0)
        if piece.held is None:  # without allocations the log alone decides
            sums.waiting, sums.asked = count * time.get(QUEUED, 0), int(QUEUED in time)
            sums.allocated = count * (held - min(held, partial))
        elif piece.held:  # allocations decide how much is allocated
            sums.allocated = -count * partial
        else:
            sums.assumed = count * (piece.end - piece.start)
        sums.held, sums.held_productive = count * held, count * productive
        if self._price is not None:
            sums.costs = _costs(held_by, self._price * Fraction(count, NS_PER_HOUR), labels.currency or "")
        if piece.held is not False:  # P and I (docs/fleet.md): kept training, and what kept steps would take ideally
            sums.kept = count * (productive + time.get(SLOWDOWN, 0))
            if self._ideal_is_known:
                sums.ideal_kept = sums.kept
                sums.ideal = Fraction(steps) * count * (labels.ideal_seconds(count) or 0) * NS_PER_SECOND
        return sums


def _costs(held: Mapping[LabelledCategory, int], price: Fraction, currency: str) -> Counter[tuple[str, Category]]:
    """Return the cost of allocated time without progress, by currency and category; custom events as one. held: ns by
    category. price: per ns."""
    costs: Counter[tuple[str, Category]] = Counter()
    for key, ns in held.items():
        costs[currency, key[0]] += 0 if key == PRODUCTIVE else ns * price  # type: ignore[assignment]
    return costs


def _once_each(of_run: FleetTotals) -> None:
    """A run counts once, however many of its pieces were seen."""
    of_run.powered_runs, of_run.watched_runs = min(of_run.powered_runs, 1), min(of_run.watched_runs, 1)


def _with_logged(named: RunLabels, result: RunResult) -> RunLabels:
    """Return a run's labels and options, completed from its log."""
    flops, peak = (None if one is None else Fraction(one) for one in (result.logged_flops, result.peak_flops))
    return replace(
        named,
        accelerators=named.accelerators or result.logged_accelerators,
        flops_per_step=named.flops_per_step or flops,
        peak_flops=named.peak_flops or peak,
    )


def _overlap_ns(piece: AcceleratorSpan, start: I64, end: I64) -> int:
    """Return how much (ns) of some intervals is in a piece."""
    return int(np.maximum(np.minimum(end, piece.end) - np.maximum(start, piece.start), 0).sum())


def allocated_weekly(allocation: Allocation, calendar: Calendar) -> Iterator[tuple[int, FleetTotals]]:
    """Yield the allocated and waited time, each in its week."""
    count, start, end = allocation.accelerators, allocation.start, allocation.end
    waits = start if allocation.waiting_since is None else min(allocation.waiting_since, start)
    asked = int(allocation.waiting_since is not None)
    for number, week in enumerate(calendar.weeks):
        held = max(min(end, week.end) - max(start, week.start), 0)
        waited = max(min(start, week.end) - max(waits, week.start), 0)
        if held or waited:
            yield number, FleetTotals(allocated=held * count, waiting=waited * count, asked=asked)


@dataclass
class Fleet:
    """The fleet while it is added up, and then the whole of it."""

    grouping: Grouping
    labels: Labels
    allocations: JoinedAllocations
    calendar: Calendar
    """The window and its weeks."""
    capacity: Sequence[Capacity]
    total: FleetTotals = field(default_factory=FleetTotals)
    by_week: tuple[FleetTotals, ...] = field(init=False)
    groups: dict[Values, dict[Values, FleetTotals]] = field(init=False)
    """Sums of each group, by dimensions: of each size, and of each --by."""
    failures: list[Failure] = field(default_factory=list)
    hosts_up: Counter[HostKey] = field(default_factory=Counter)
    """Time up (ns) of the hosts of all runs that list them."""
    runs_with_hosts: int = 0
    """Runs that list all of their hosts."""
    recent: dict[int, dict[str, tuple[int, int]]] = field(default_factory=lambda: defaultdict(dict))
    """For the latest weeks, by run: chip time and lost time."""
    runs: list[RunLine] = field(default_factory=list)
    disruptions: list[DisruptionRow] = field(default_factory=list)
    """Disruptions with the largest cost."""
    outages: Outages = field(default_factory=Outages)
    """Recovery of all disruptions that count."""
    noticed: dict[tuple[str, str], list[tuple[str, int]]] = field(default_factory=lambda: defaultdict(list))
    """By code and severity, the runs with the warning, and how often."""
    not_analysed: list[RunResult] = field(default_factory=list)
    outside: int = 0
    """Runs that lie outside the window."""
    lost_sight_of: int = 0
    unlogged: int = 0
    """Allocations that no run fits."""
    unlogged_chip_ns: int = 0
    accelerators_logged: int = 0
    """Number of runs whose accelerators are known only from their logs."""
    program_logged: int = 0
    """Number of runs whose ideal step time comes from their logs."""

    def __post_init__(self) -> None:
        self.by_week = tuple(FleetTotals() for _ in self.calendar.weeks)
        self.groups = {dims: defaultdict(FleetTotals) for dims in ((SIZE,), *self.grouping.by)}

    def add(self, result: RunResult, *, windowed: bool = True) -> None:
        """Add a run. Allocations must know all runs before (`JoinedAllocations.expect`). windowed: True if a window was
        requested; otherwise the window of all analyzed runs leaves no other one out."""
        start, end = max(result.start_ns, self.calendar.start), min(result.end_ns, self.calendar.end)
        if result.reason is not None and not windowed:
            self.not_analysed.append(result)
            return
        if start > end or (start == end and result.reason is None):
            self.outside += 1
            return
        if result.reason is not None:
            self.not_analysed.append(result)
            return
        run, name = FleetRun(self, result, start, end), run_name(result)
        whole = self._add_amounts(run, name)
        for code, severity, count in result.findings:
            self.noticed[code, severity].append((name, count))
        row, hosts = run.row(whole), run.hosts_up()
        self.runs.append(row)
        self.accelerators_logged += run.accelerators_logged
        self.program_logged += run.program_logged
        self.failures += run.failures(row, hosts)
        self.hosts_up.update(hosts)
        self.runs_with_hosts += bool(hosts)
        self.disruptions += run.disruption_rows()
        team = run.labels.texts.get("team", "")
        self.outages.every += [Outage(one, team, run.accelerators_at(one.at_ns)) for one in run.outages()]
        if len(self.disruptions) > 8 * self.grouping.top + 1000:
            self._keep_worst()

    def finish(self) -> None:
        """Finish after the last run: sort lists, and count allocations without a log."""
        self._keep_worst()
        self.outages.every.sort(key=lambda one: (one.one.at_ns, one.one.lost_ns, one.one.number, one.team))
        self.runs.sort(key=lambda row: (row.job, row.run, row.start_ns, row.documents))
        self.not_analysed.sort(key=lambda one: (one.job, one.run, one.documents))
        for allocation in self.allocations.without_run():
            held = min(allocation.end, self.calendar.end) - max(allocation.start, self.calendar.start)
            if held <= 0:
                continue
            self.unlogged += 1
            self.unlogged_chip_ns += allocation.accelerators * held
            for week, sums in allocated_weekly(allocation, self.calendar) if self.grouping.count_unlogged else ():
                self.total.add(sums)
                self.by_week[week].add(sums)

    def capacity_ns(self, cluster: str | None = None, accelerator: str | None = None) -> int | None:
        """Return K: chip time (ns) that the fleet, or a part of it, had in the window; None if unknown."""
        rows = [
            one for one in self.capacity if cluster in (None, one.cluster) and accelerator in (None, one.accelerator)
        ]
        if not rows:
            return None
        start, end = self.calendar.start, self.calendar.end
        return sum(one.count * max(min(one.end, end) - max(one.start, start), 0) for one in rows)

    def diagnostics(self) -> Iterator[Diagnostic]:
        """Yield the warnings of runs: one per code and severity, with the first of the runs by name."""
        for (code, severity), found in sorted(self.noticed.items()):
            names = ", ".join(nsmallest(_FEW, (name for name, _ in found))) + (", …" if len(found) > _FEW else "")
            message = f"in {plural(len(found), 'run')} ({names}); run `goodput check -j NAME` for details"
            count = sum(count for _, count in found)
            yield Diagnostic.of(code, message, count, mild=severity != severity_of(code))

    def _add_amounts(self, run: FleetRun, name: str) -> FleetTotals:
        """Add what its time adds up to, to all that it is a part of; the amounts of the whole run."""
        weekly = run.weekly()
        whole = run.whole_run(weekly)
        self.total.add(whole)
        for dims, groups in self.groups.items():
            for week, sums in weekly.items() if WEEK in dims else [(None, whole)]:
                groups[run.values(dims, week)].add(sums)
        for number, sums in weekly.items():
            self.by_week[number].add(sums)
            if number >= len(self.calendar.weeks) - RECENT_WEEKS:
                chip, time = self.recent[number].get(name, (0, 0))
                self.recent[number][name] = (chip + sums.lost, time + sums.time_counted - sums.time[PRODUCTIVE])
        return whole

    def _keep_worst(self) -> None:
        self.disruptions = nsmallest(self.grouping.top, self.disruptions, key=_by_cost)


def _by_cost(row: DisruptionRow) -> tuple[Any, ...]:
    """Return a sort key: known costs first, the highest chip time first, or time if the accelerators are unknown; ties
    by time, job and number."""
    cost = row.lost_ns if row.chip_ns is None else int(row.chip_ns)
    return (row.chip_ns is None, -cost, row.at_ns, row.job, row.run, row.number)
