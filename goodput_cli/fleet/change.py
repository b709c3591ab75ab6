"""The weeks of a fleet, and what moved goodput from one to the next, in points that add up to the
change: by category, and by run.

Goodput is what is left of a week's time once everything that was lost is taken from it. So a category costs the share
of the week that went to it, a run the share that was lost in it, and what either costs more or less than the week
before is its part of the change: exactly, whatever the sizes of the weeks are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from goodput_cli.analysis.written import written
from goodput_cli.fleet.aggregate import RECENT_WEEKS, Fleet
from goodput_cli.fleet.rows import CHANGE_TABLE, ChangeRow, WeekRow, category_name, category_rows, known_hours
from goodput_cli.fleet.sums import Sums, percent, quantile
from goodput_cli.vocabulary.categories import Category

LEAST_RUNS = 5
"""A week of fewer runs is no measure of a fleet."""
_MOST_RUNS = 10
OTHERS = "all other runs"


@written("fleet_change", "what moved goodput from one week to the next, of the latest two with enough runs")
@dataclass(frozen=True)
class Change:
    """From one week to the next."""

    before: str
    """the earlier week"""
    week: str
    """the later week"""
    by_time: bool
    """whether every run counts by its time alone"""
    points: float
    """goodput of the later week less that of the earlier"""
    rows: Annotated[tuple[ChangeRow, ...], CHANGE_TABLE]
    """categories, then runs; the points of each kind add up"""


def is_enough(sums: Sums, amount: int, usual: Fraction) -> bool:
    """Whether a week says something of the fleet: 5 runs, and half the usual amount of time."""
    return sums.runs >= LEAST_RUNS and 2 * amount >= usual


def change_of(fleet: Fleet, weeks: Sequence[Sums]) -> Change | None:
    """The latest change between two weeks that say something; None where there are none. weeks: all, in order."""
    by_time = not fleet.total.known_time
    amounts = [_amount(one, by_time=by_time) for one in weeks]
    usual = quantile(map(Fraction, amounts), Fraction(1, 2)) or Fraction(0)
    enough = [is_enough(one, amount, usual) and amount > 0 for one, amount in zip(weeks, amounts, strict=True)]
    for now in range(len(weeks) - 1, max(len(weeks) - RECENT_WEEKS, 0), -1):
        if enough[now] and enough[now - 1]:
            return _between(fleet, weeks, now, by_time=by_time)
    return None


def _between(fleet: Fleet, weeks: Sequence[Sums], now: int, *, by_time: bool) -> Change:
    whole = [_amount(weeks[place], by_time=by_time) for place in (now - 1, now)]
    goodput = [Fraction(_by_category(weeks[place], by_time=by_time)[Category.PRODUCTIVE.id], amount)
               for place, amount in zip((now - 1, now), whole, strict=True)]  # fmt: skip
    of_categories = [_by_category(weeks[place], by_time=by_time) for place in (now - 1, now)]
    for one in of_categories:
        del one[Category.PRODUCTIVE.id]
    of_runs = [
        Counter({run: lost[by_time] for run, lost in fleet.recent.get(place, {}).items()}) for place in (now - 1, now)
    ]
    rows = [*_rows("category", of_categories, whole), *_runs(of_runs, of_categories, whole)]
    names = [fleet.calendar.weeks[place].name for place in (now - 1, now)]
    return Change(names[0], names[1], by_time, float(100 * (goodput[1] - goodput[0])), tuple(rows))


def _amount(sums: Sums, *, by_time: bool) -> int:
    """Time without exclusions."""
    return sums.time_counted if by_time else sums.counted


def _by_category(sums: Sums, *, by_time: bool) -> Counter[str]:
    """Time by category, custom events as one."""
    found: Counter[str] = Counter()
    for (category, _), ns in (sums.time if by_time else sums.chip).items():
        if category is not Category.EXCLUDED:
            found[category.id] += ns
    return found


def _rows(what: str, lost: Sequence[Counter[str]], whole: Sequence[int]) -> Iterator[ChangeRow]:
    """What moved most first; what cost the same is left out."""
    shares = {name: [Fraction(one[name], amount) for one, amount in zip(lost, whole, strict=True)]
              for name in {*lost[0], *lost[1]}}  # fmt: skip
    ordered = sorted(shares.items(), key=lambda one: (-abs(one[1][0] - one[1][1]), one[0]))
    for name, (before, now) in ordered:
        if before != now:
            yield ChangeRow(what, name, percent(before) or 0.0, percent(now) or 0.0, float(100 * (before - now)))


def _runs(of_runs: Sequence[Counter[str]], of_all: Sequence[Counter[str]], whole: Sequence[int]) -> Iterator[ChangeRow]:
    """The runs that moved most, and all others as one: with them the points add up."""
    named = list(_rows("run", of_runs, whole))[:_MOST_RUNS]
    shown = {one.name for one in named}
    rest = [
        Counter({OTHERS: sum(all_of_it.values()) - sum(ns for name, ns in runs.items() if name in shown)})
        for runs, all_of_it in zip(of_runs, of_all, strict=True)
    ]
    yield from named
    yield from _rows("run", rest, whole)


def week_rows(fleet: Fleet, weeks: Sequence[Sums]) -> list[WeekRow]:
    """The weeks of the fleet. weeks: the sums of each."""
    rows: list[WeekRow] = []
    usual = quantile((Fraction(one.counted) for one in weeks), Fraction(1, 2)) or Fraction(0)
    before: Fraction | None = None
    for week, sums in zip(fleet.calendar.weeks, weeks, strict=True):
        enough = is_enough(sums, sums.counted, usual)
        goodput = sums.goodput
        change = goodput - before if enough and goodput is not None and before is not None else None
        worst = sums.worst()
        drawn = sums.time_goodput if goodput is None else goodput
        rows.append(
            WeekRow(
                week=week.name,
                start_ns=week.start,
                end_ns=week.end,
                partial=week.partial,
                covered_percent=100 * (week.end - week.start) / week.full_ns,
                runs=sums.runs,
                chip_ns=str(sums.counted),
                accelerator_hours=known_hours(sums, sums.counted),
                goodput_percent=percent(goodput),
                time_goodput_percent=percent(sums.time_goodput),
                bar=None if drawn is None else float(drawn),
                change_points=percent(change),
                lost_hours=known_hours(sums, sums.lost),
                failures=sums.failures,
                most_lost_to=None if worst is None else category_name(worst[0]),
                categories=[
                    {"category": row.category, "chip_ns": row.chip_ns, "ns": row.ns} for row in category_rows(sums)
                ],
            )
        )
        before = goodput if enough else None
    return rows
