"""Amounts of a group of runs, and what follows from them: goodput, what was lost, MPG, ETTR and MTTF.

Everything is a sum of integers (chip time: accelerators x ns) or of exact fractions, so that the order of adding makes
no difference; a ratio is one division at the end. docs/fleet.md has the definitions and their sources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Annotated

from goodput_cli.analysis.disruptions.find import poisson_interval
from goodput_cli.analysis.written import Json
from goodput_cli.vocabulary.categories import Category
from goodput_cli.vocabulary.when import NS_PER_HOUR

LabelledCategory = tuple[Category, str | None]
"""A category, and the label of custom events."""


PRODUCTIVE: LabelledCategory = (Category.PRODUCTIVE, None)
EXCLUDED: LabelledCategory = (Category.EXCLUDED, None)
SLOWDOWN: LabelledCategory = (Category.SLOWDOWN, None)
QUEUED: LabelledCategory = (Category.QUEUED, None)
NOT_HELD: tuple[LabelledCategory, ...] = (QUEUED, (Category.STOPPED, None))
"""Where nothing is held unless an allocation says so (accounting §10, Cost)."""


@dataclass(slots=True)
class Sums:
    """Amounts of some runs, or of a part of their time."""

    runs: int = 0
    """How many runs."""
    known: int = 0
    """Runs whose number of accelerators is known all the time."""
    chip: Counter[LabelledCategory] = field(default_factory=Counter)
    """Chip time (accelerators x ns) by category, where the number of accelerators is known."""
    time: Counter[LabelledCategory] = field(default_factory=Counter)
    """Time (ns) by category, of all runs."""
    known_time: int = 0
    """Time (ns) without exclusions where the number of accelerators is known."""
    held: int = 0
    """Chip time in which accelerators were held, without exclusions."""
    held_productive: int = 0
    """Productive chip time of it."""
    assumed: int = 0
    """Chip time of a run with allocations for which none was there."""
    allocated: int = 0
    """A: chip time in which all of a job's accelerators were held at once."""
    kept: int = 0
    """P: chip time of kept training in allocated time, slowdown included: a slow step is the program's loss."""
    waiting: int = 0
    """Chip time in the queue."""
    asked: int = 0
    """Pieces of runs and allocations of which it is known when they were asked for: without one nobody knows how long
    anything waited."""
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
    priced: int = 0
    """Runs with a price."""
    money: Counter[str] = field(default_factory=Counter)
    """What held time without progress cost, by currency: Fractions."""
    up: int = 0
    """Time (ns) in which attempts were up: the exposure to failures."""
    failures: int = 0
    """Failures in that time."""
    chip_up: int = 0
    """Chip time in which attempts were up."""
    node_up: Fraction = Fraction(0)
    """Nodes x ns, of runs that say how many accelerators a node has."""
    node_failures: int = 0
    """Failures in that time."""
    shares: list[tuple[int, int]] = field(default_factory=list)
    """Of each run: productive time, and time without exclusions (ns)."""

    def add(self, other: Sums) -> None:
        """Add the amounts of other runs, or of other time."""
        for name in _AMOUNTS:
            if theirs := getattr(other, name):
                mine = getattr(self, name)
                if isinstance(mine, Counter):
                    for key, value in theirs.items():  # `+=` of a Counter loses what is negative
                        mine[key] += value
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
    def held_lost(self) -> int:
        """The part of it in which accelerators were held: only that costs."""
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
        """Share of the time since resources were asked for in which all of them were there; None where nobody says when
        that was."""
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

    def worst(self) -> tuple[LabelledCategory, int] | None:
        """The category that lost most, and how much: chip time, or time where nobody knows it; None where nothing was
        lost."""
        source = self.chip if self.known_time else self.time
        lost = {key: ns for key, ns in source.items() if key not in (PRODUCTIVE, EXCLUDED) and ns > 0}
        return min(lost.items(), key=lambda item: (-item[1], item[0][0], item[0][1] or "")) if lost else None


_AMOUNTS = tuple(one.name for one in fields(Sums))
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


def mpg_of(sums: Sums, capacity: int | None, *, saved_only: bool) -> Mpg:
    """The three factors. capacity: K, chip time that the fleet had; None where nobody says. saved_only: progress after
    the last save is no progress, as in the paper."""
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


def quantile(values: Iterable[Fraction], share: Fraction) -> Fraction | None:
    """A quantile of exact values, linear between neighbours; None without any."""
    ordered: list[Fraction] = sorted(values)
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    low = place.numerator // place.denominator
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def decimals(amount: Fraction | int) -> str:
    """An amount of money with two decimals, half to even."""
    cents = round(Fraction(amount) * 100)
    sign, cents = ("-" if cents < 0 else ""), abs(cents)
    return f"{sign}{cents // 100}.{cents % 100:02d}"


def percent(value: Fraction | None) -> float | None:
    """In percent, at the edge."""
    return None if value is None else float(100 * value)


def hours(chip_ns: Fraction | int) -> float:
    """Chip time in accelerator hours, at the edge."""
    return float(Fraction(chip_ns) / NS_PER_HOUR)
