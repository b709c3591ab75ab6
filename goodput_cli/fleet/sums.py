"""Amounts of a group of runs, and figures from them: goodput, losses, MPG, ETTR and MTTF.

Everything is a sum of integers (chip time: accelerators x ns) or of exact fractions, so the order of adding makes no
difference; a ratio is one division at the end. docs/fleet.md has the definitions and their sources. The time of a run
comes in pieces: a window and its weeks, and its spans cut at any times, exactly.
"""

from __future__ import annotations

import statistics
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from fractions import Fraction
from itertools import pairwise
from typing import Annotated

import numpy as np

from goodput_cli.accounting.columns import distinct, union
from goodput_cli.analysis.disruptions.find import poisson_interval
from goodput_cli.analysis.json_fields import Json
from goodput_cli.arrays import I64, sums_by
from goodput_cli.fleet.results import AcceleratorUse, RunSpans
from goodput_cli.fleet.scheduler import SchedulerTotals
from goodput_cli.vocabulary.categories import Category
from goodput_cli.vocabulary.when import NS_PER_HOUR

LabelledCategory = tuple[Category, str | None]
"""A category, and the label of custom events."""


PRODUCTIVE: LabelledCategory = (Category.PRODUCTIVE, None)
EXCLUDED: LabelledCategory = (Category.EXCLUDED, None)
SLOWDOWN: LabelledCategory = (Category.SLOWDOWN, None)
QUEUED: LabelledCategory = (Category.QUEUED, None)
NOT_HELD: tuple[LabelledCategory, ...] = (QUEUED, (Category.STOPPED, None))
"""Categories without allocated resources, unless an allocation covers them (accounting §10, Cost)."""


@dataclass(slots=True)
class FleetTotals:
    """Amounts of some runs, or of a part of their time."""

    runs: int = 0
    """Number of runs."""
    known_runs: int = 0
    """Runs whose number of accelerators is known all the time."""
    chip: Counter[LabelledCategory] = field(default_factory=Counter)
    """Chip time (accelerators x ns) by category, where the number of accelerators is known."""
    time: Counter[LabelledCategory] = field(default_factory=Counter)
    """Time (ns) by category, of all runs."""
    known_time: int = 0
    """Time (ns) without exclusions where the number of accelerators is known."""
    held: int = 0
    """Chip time in which accelerators were allocated, without exclusions."""
    held_productive: int = 0
    """Productive chip time of it."""
    assumed: int = 0
    """Chip time of a run with allocations for which none was there."""
    allocated: int = 0
    """A: chip time in which all of a job's accelerators were allocated at once."""
    kept: int = 0
    """P: chip time of kept training in allocated time, slowdown included: a slow step is the program's loss."""
    waiting: int = 0
    """Chip time in the queue."""
    asked: int = 0
    """Pieces of runs and allocations with a known time of request: without one, waits are unknown."""
    at_risk: int = 0
    """Chip time of kept training after the last save."""
    ideal: Fraction = Fraction(0)
    """I: chip time (ns) that the kept steps would have taken ideally, of runs for which that is known."""
    ideal_kept: int = 0
    """P of the same runs."""
    ideal_allocated: int = 0
    """A of the same runs."""
    ideal_at_risk: int = 0
    """`at_risk` of the same runs."""
    priced_runs: int = 0
    """Runs with a price."""
    costs: Counter[tuple[str, Category]] = field(default_factory=Counter)
    """Cost of allocated time without progress, by currency and category: Fractions."""
    up: int = 0
    """Time (ns) in which attempts were up: the exposure to failures."""
    failures: int = 0
    """Failures in that time."""
    chip_up: int = 0
    """Chip time in which attempts were up."""
    node_up: Fraction = Fraction(0)
    """Nodes x ns, of runs with a known number of accelerators per node."""
    node_failures: int = 0
    """Failures in that time."""
    recover: int = 0
    """Time (ns) from failures to training again, over those that trained again before the next disruption."""
    recovered: int = 0
    """Number of these."""
    detect: int = 0
    """Time (ns) from failures to the lines that show that they were noticed."""
    detected: int = 0
    """Number of failures with such a line."""
    energy: int = 0
    """Energy of accelerators without exclusions, where samples of power exist (mJ)."""
    energy_lost: int = 0
    """Part of it that was not training that counts."""
    powered_runs: int = 0
    """Runs with samples of power."""
    idle: int = 0
    """Device time (ns) of training in which accelerators were busy for less than 20 %."""
    watched_runs: int = 0
    """Runs with samples of utilization in training."""
    shares: list[tuple[int, int]] = field(default_factory=list)
    """For each run: productive time, and time without exclusions (ns)."""
    risks: list[int] = field(default_factory=list)
    """For each run that saves: time (ns) of kept training after its last complete checkpoint."""

    def add(self, other: FleetTotals) -> None:
        """Add the amounts of other runs, or of other time."""
        for name in _AMOUNTS:
            if theirs := getattr(other, name):
                mine = getattr(self, name)
                if isinstance(mine, Counter):
                    mine.update(theirs)  # `+=` loses what is negative
                else:
                    mine += theirs
                    setattr(self, name, mine)

    @property
    def counted(self) -> int:
        """Chip time without exclusions: the denominator of goodput."""
        return self.chip.total() - self.chip[EXCLUDED]

    @property
    def productive(self) -> int:
        """Chip time that became progress."""
        return self.chip[PRODUCTIVE]

    @property
    def lost(self) -> int:
        """Chip time without exclusions that did not become progress."""
        return self.counted - self.productive

    @property
    def lost_while_allocated(self) -> int:
        """Return the part of it in which accelerators were allocated: only that costs."""
        return self.held - self.held_productive

    def share_of(self, ns: Fraction | int) -> Fraction | None:
        """An amount of chip time in the chip time without exclusions; None where there is none."""
        return ratio(ns, self.counted)

    @property
    def goodput(self) -> Fraction | None:
        """Productive share of the chip time; None where nothing of it is known."""
        return self.share_of(self.productive)

    @property
    def time_goodput(self) -> Fraction | None:
        """Productive share of the time of all runs, each counted once however large."""
        return ratio(self.time[PRODUCTIVE], self.time_counted)

    @property
    def time_counted(self) -> int:
        """Time (ns) of all runs without exclusions."""
        return self.time.total() - self.time[EXCLUDED]

    @property
    def availability(self) -> Fraction | None:
        """Return the share of the time since the request in which all resources were allocated; None if the time of the
        request is unknown."""
        return ratio(self.allocated, self.allocated + self.waiting) if self.asked else None

    @property
    def mttf_ns(self) -> Fraction | None:
        """Mean time to failure in job time; None without a failure."""
        return ratio(self.up, self.failures)

    @property
    def mttf_interval_ns(self) -> tuple[float | None, float | None]:
        """Its 95 % interval (Garwood); without a failure only the lower end is known."""
        lower, upper = poisson_interval(self.failures)
        return (self.up / upper if self.up else None, self.up / lower if self.failures else None)

    @property
    def money(self) -> Counter[str]:
        """Return the cost of allocated time without progress, by currency: Fractions."""
        found: Counter[str] = Counter()
        for (currency, _), amount in self.costs.items():
            found[currency] += amount
        return found

    @property
    def kwh(self) -> Fraction | None:
        """Return the energy of the sampled accelerators; None if unknown."""
        return Fraction(self.energy, _MJ_PER_KWH) if self.powered_runs else None

    @property
    def lost_kwh(self) -> Fraction | None:
        """Return the part of it that was not training that counts."""
        return Fraction(self.energy_lost, _MJ_PER_KWH) if self.powered_runs else None

    @property
    def idle_hours(self) -> Fraction | None:
        """Return the accelerator hours of training in which sampled ones were busy for less than 20 %; None
        if unknown."""
        return Fraction(self.idle, NS_PER_HOUR) if self.watched_runs else None

    def worst(self, *, by_time: bool = False) -> tuple[LabelledCategory, int] | None:
        """Return the category with the largest loss, and the loss: chip time, or time if chip time is unknown or time
        is requested; None without a loss."""
        source = self.chip if self.known_time and not by_time else self.time
        lost = {key: ns for key, ns in source.items() if key not in (PRODUCTIVE, EXCLUDED) and ns > 0}
        return min(lost.items(), key=lambda item: (-item[1], item[0][0], item[0][1] or "")) if lost else None


_MJ_PER_KWH = 3_600_000_000
_AMOUNTS = tuple(one.name for one in fields(FleetTotals))
LEAST_COVERAGE = Fraction(4, 5)
"""MPG of a smaller share of the kept chip time is not recorded."""


@dataclass(frozen=True)
class Mpg:
    """ML productivity goodput = scheduling x runtime x program goodput, each None where it is not recorded. Their
    product is None for a coverage below `LEAST_COVERAGE` too."""

    scheduling: Annotated[Fraction | None, Json("percent")]
    """allocated chip time / capacity"""
    runtime: Annotated[Fraction | None, Json("percent")]
    """kept training / allocated chip time"""
    program: Annotated[Fraction | None, Json("percent")]
    """ideal time of the kept steps / kept training, of the runs for which that is known"""
    coverage: Annotated[Fraction | None, Json("percent", key="program_coverage")]
    """their share of the kept training"""
    mpg: Annotated[Fraction | None, Json("percent")]
    """scheduling x runtime x program, over the same runs"""
    scheduling_runtime: Annotated[Fraction | None, Json("percent")]
    """scheduling x runtime"""
    runtime_program: Annotated[Fraction | None, Json("percent")]
    """over the runs with program goodput"""


def mpg_of(sums: FleetTotals, capacity: int | None, *, saved_only: bool) -> Mpg:
    """Return the three factors. capacity: K, chip time that the fleet had; None if unknown. saved_only: progress after
    the last save does not count, as in the paper."""
    unsaved, ideal_unsaved = (sums.at_risk, sums.ideal_at_risk) if saved_only else (0, 0)
    scheduling = None if capacity is None else ratio(sums.allocated, capacity)
    runtime = ratio(sums.kept - unsaved, sums.allocated)
    program = ratio(sums.ideal, sums.ideal_kept)
    coverage = ratio(sums.ideal_kept, sums.kept)
    both = _product(ratio(sums.ideal_kept - ideal_unsaved, sums.ideal_allocated), program)
    covered = coverage is not None and coverage >= LEAST_COVERAGE
    mpg = _product(scheduling, both) if covered else None
    return Mpg(scheduling, runtime, program, coverage, mpg, _product(scheduling, runtime), both)


def _product(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    return None if one is None or other is None else one * other


def ratio(part: Fraction | int, whole: Fraction | int) -> Fraction | None:
    """A ratio, exact; None where there is nothing to divide by."""
    return Fraction(part) / Fraction(whole) if whole > 0 else None


def quantiles(values: Iterable[Fraction], parts: int) -> list[Fraction | None]:
    """Return the values that cut exact values into this number of parts, linear between neighbors; None without any."""
    ordered = list(values)
    if not ordered:
        return [None] * (parts - 1)
    return [*statistics.quantiles(ordered * 2 if len(ordered) == 1 else ordered, n=parts, method="inclusive")]


def decimals(amount: Fraction | int) -> str:
    """An amount of money with two decimals, half to even."""
    cents = round(Fraction(amount) * 100)
    sign, cents = ("-" if cents < 0 else ""), abs(cents)
    return f"{sign}{cents // 100}.{cents % 100:02d}"


@dataclass(frozen=True)
class Totals:
    """Totals from which a measure is read: of the fleet, or of a group of it."""

    sums: FleetTotals
    """Sums of its runs."""
    mpg: Mpg
    """Its MPG and what that is made of."""
    held: SchedulerTotals | None = None
    """Totals of a scheduler's tables; None without any, and for a group."""
    analysed: Fraction | None = None
    """Share of the runs that are in the totals; None of a group, as runs that could not be read are in none."""


def percent(value: Fraction | None) -> float | None:
    """Convert to percent, for output."""
    return None if value is None else float(100 * value)


def hours(chip_ns: Fraction | int) -> float:
    """Chip time in accelerator hours, at the edge."""
    return float(Fraction(chip_ns) / NS_PER_HOUR)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Week:
    """A week, or what of it lies in the window."""

    name: str
    """`2026-W05`."""
    start: int
    end: int
    """ns since 1970 UTC, inside the window."""
    full_ns: int
    """Length of the whole week."""

    @property
    def partial(self) -> bool:
        """Return True if the window contains only a part of it."""
        return self.end - self.start < self.full_ns


class Calendar:
    """A window [start, end) (ns since 1970 UTC) and the weeks in it."""

    def __init__(self, start: int, end: int, zone: tzinfo) -> None:
        self.start, self.end = start, end
        self.weeks = list(_weeks(start, end, zone))
        self._edges = [start, *(week.end for week in self.weeks)]

    def edges(self, start: int, end: int) -> list[int]:
        """Return the times at which weeks begin inside [start, end)."""
        return self._edges[bisect_right(self._edges, start) : bisect_left(self._edges, end)]

    def week_at(self, instant: int) -> int:
        """Return the position of the week that contains a time of the window."""
        return bisect_right(self._edges, instant) - 1


def _weeks(start: int, end: int, zone: tzinfo) -> Iterator[Week]:
    """The weeks of [start, end) (ns), in order."""
    day = (_EPOCH + timedelta(microseconds=start // 1000)).astimezone(zone).date()
    monday = day - timedelta(days=day.weekday())
    while (begin := _midnight(monday, zone)) < end:
        following = monday + timedelta(days=7)
        stop = _midnight(following, zone)
        year, number, _ = monday.isocalendar()
        if stop > start:
            yield Week(f"{year}-W{number:02d}", max(begin, start), min(stop, end), stop - begin)
        monday = following


def _midnight(day: date, zone: tzinfo) -> int:
    moment = datetime.combine(day, time(), zone).astimezone(UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def cut_spans(spans: RunSpans, edges: I64) -> Iterator[tuple[dict[LabelledCategory, int], float]]:
    """Each piece between two neighbours of `edges` (ns, rising, inside the run): its time (ns) by category, which adds
    up to its length and is what the ledger has for it (accounting §7), and its kept steps. Inside a span slowdown grows
    evenly, rounded half to even; of a span that is cut, steps count in proportion to its time."""
    inside = spans.start[(spans.start > edges[0]) & (spans.start < edges[-1])]
    points = union(inside, edges)
    begin, end = points[:-1], points[1:]
    span = np.searchsorted(spans.start, begin, side="right") - 1
    piece = np.searchsorted(edges, begin, side="right") - 1
    codes = spans.category[span].astype(np.int64) * (len(spans.labels) + 1) + spans.label[span] + 1
    known = distinct(codes)
    ns = np.zeros((len(edges) - 1, len(known)), dtype=np.int64)
    np.add.at(ns, (piece, known.searchsorted(codes)), end - begin)
    slowdown = _slowdown_before(spans, span, end) - _slowdown_before(spans, span, begin)
    slowed = sums_by(piece, slowdown, len(edges) - 1)
    length = np.maximum(spans.end - spans.start, 1)[span]
    steps = np.bincount(piece, weights=spans.steps[span] * ((end - begin) / length), minlength=len(edges) - 1)
    of_codes = [divmod(code, len(spans.labels) + 1) for code in known.tolist()]
    keys = [(Category(category), spans.labels[label - 1] if label else None) for category, label in of_codes]
    for row, slow, kept in zip(ns.tolist(), slowed.tolist(), steps.tolist(), strict=True):
        amounts = {key: amount for key, amount in zip(keys, row, strict=True) if amount}
        if slow:
            amounts[SLOWDOWN] = amounts.get(SLOWDOWN, 0) + slow
            amounts[PRODUCTIVE] = amounts.get(PRODUCTIVE, 0) - slow
        yield amounts, kept


def cut_used(used: AcceleratorUse, edges: I64) -> Iterator[FleetTotals]:
    """Yield the used and idle accelerators of each piece between two neighbors of `edges` (as of `cut_spans`); if a
    piece of `used` is cut, amounts count in proportion to its time."""
    length = np.maximum(used.end - used.start, 1)
    for begin, end in pairwise(edges.tolist()):
        part = np.maximum(np.minimum(used.end, end) - np.maximum(used.start, begin), 0) / length
        energy, trained = (round(1000 * float((part * one).sum())) for one in (used.joules, used.trained))
        yield FleetTotals(
            energy=energy, energy_lost=energy - trained, powered_runs=int((part * used.powered).sum() > 0),
            idle=round(float((part * used.idle).sum())), watched_runs=int((part * used.watched).sum() > 0),
        )  # fmt: skip


def _slowdown_before(spans: RunSpans, span: I64, time: I64) -> I64:
    """Return the slowdown (ns) of each span from its start up to a time in it."""
    length = spans.end[span] - spans.start[span]
    passed = time - spans.start[span]
    amount = spans.slowdown[span]
    part = np.rint(amount * (passed / np.maximum(length, 1))).astype(np.int64)
    return np.where(passed == length, amount, np.where(amount == length, passed, part))
