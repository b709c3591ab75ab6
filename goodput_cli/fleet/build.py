"""The report of a fleet from its sums: categories, groups, weeks, sizes, causes and runs, and thresholds judged on
them.

The parts of a change of goodput between two weeks are in points that add up to the change: by category, and by run.
Goodput is a week's time less everything that was lost. So a category costs the share of the week that went to it, a run
the share that was lost in it, and the difference to the week before is its part of the change: exactly, whatever the
sizes of the weeks are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from statistics import median
from typing import Any

from goodput_cli.analysis.disruptions.find import poisson_interval
from goodput_cli.analysis.table import filled
from goodput_cli.arrays import group_by_key
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.fleet.aggregate import RECENT_WEEKS, Fleet, Values
from goodput_cli.fleet.answer import Coverage, FleetMpg, FleetWindow
from goodput_cli.fleet.held import SchedulerSummary, scheduled
from goodput_cli.fleet.hosts import host_rows
from goodput_cli.fleet.question import SIZE, UNKNOWN_SIZE, WEEK, size_classes
from goodput_cli.fleet.report import FleetReport
from goodput_cli.fleet.rows import (
    ChangeRow,
    FleetCauseRow,
    FleetChange,
    GroupRow,
    GroupTable,
    NotAnalysed,
    SizeRow,
    WeekRow,
    category_rows,
    run_name,
)
from goodput_cli.fleet.scheduler import SchedulerRow
from goodput_cli.fleet.sums import FleetTotals, Mpg, Totals, hours, mpg_of, percent, quantiles, ratio
from goodput_cli.vocabulary.categories import UNKNOWN_CAUSE, Category, group_of
from goodput_cli.vocabulary.when import NS_PER_HOUR

_LONG_RUN_NS = 24 * NS_PER_HOUR
_NODE_DAYS = 1000 * 24 * NS_PER_HOUR
_LEAST_RUNS, _MOST_RUNS = 5, 10
"""A week of fewer runs does not measure a fleet; the number of runs named among those that moved it."""
OTHERS = "all other runs"
_Group = tuple[GroupRow, Totals]


def report_of(
    fleet: Fleet, *, documents: int, unreadable: Sequence[NotAnalysed], timezone: str, method: dict[str, str],
    diagnostics: Sequence[Diagnostic], doubts: Mapping[str, Sequence[str]], allocations: SchedulerSummary | None,
) -> FleetReport:  # fmt: skip
    """Return the whole answer. fleet: finished. unreadable: documents, and jobs that killed their worker. doubts: by
    document, why its files may belong to another job. allocations: rows of a scheduler's tables."""
    lost = [
        NotAnalysed.of("run" if one.runs > 1 else "job", run_name(one), one.reason or "", one.job)
        for one in fleet.not_analysed
    ]
    not_analysed = (*unreadable, *lost)
    sums = fleet.total
    mpg = mpg_of(sums, fleet.capacity_ns(), saved_only=fleet.grouping.saved_only)
    weeks = fleet.by_week
    by_size = fleet.groups[SIZE,]
    sizes = {name: by_size[name,] for name in size_classes(fleet.grouping.size_bounds) if (name,) in by_size}
    hosts, hosts_not_named, host_test = host_rows(fleet)
    return FleetReport(
        complete=not not_analysed,
        window=FleetWindow(fleet.calendar.start, fleet.calendar.end, timezone),
        coverage=Coverage(
            documents=documents,
            unreadable=sum(one.what == "document" for one in unreadable),
            runs=sums.runs,
            not_analysed=len(not_analysed),
            outside=fleet.outside,
            known_runs=sums.known_runs,
            known_time=ratio(sums.known_time, sums.time_counted),
            lost_sight_of=fleet.lost_sight_of,
            unlogged=fleet.unlogged,
            unlogged_chip_ns=fleet.unlogged_chip_ns,
            assumed_chip_ns=sums.assumed,
            powered_runs=sums.powered_runs or None,
            watched_runs=sums.watched_runs or None,
            accelerators_logged=fleet.accelerators_logged or None,
            program_logged=fleet.program_logged or None,
        ),
        grouping=fleet.grouping,
        sums=sums,
        total=group_row((), sums, mpg),
        mpg=filled(FleetMpg, sums, **vars(mpg), allocated_from="allocations" if fleet.allocations else "logs"),
        categories=tuple(category_rows(sums)),
        weeks=tuple(week_rows(fleet, weeks)),
        week_sums=weeks,
        change=change_of(fleet, weeks),
        sizes=tuple(_size_row(name, sums) for name, sums in sizes.items()),
        size_sums=sizes,
        groups=tuple(
            _with_unlogged(_group_table(fleet, dims), allocations) for dims in dict.fromkeys(fleet.grouping.by)
        ),
        causes=tuple(cause_rows(fleet)),
        hosts=hosts,
        hosts_not_named=hosts_not_named,
        host_test=host_test,
        disruptions=tuple(fleet.disruptions),
        outages=fleet.outages.by_link(),
        outage_groups=tuple(fleet.outages.by_group()),
        recoveries=fleet.outages.recoveries(),
        runs=tuple(
            replace(one, doubts=list(dict.fromkeys(chain(one.doubts, *(doubts.get(uri, ()) for uri in one.documents)))))
            for one in fleet.runs
        ),
        not_analysed=not_analysed,
        allocations=allocations,
        method=method,
        diagnostics=tuple(diagnostics),
    )


def scheduled_part(fleet: Fleet, rows: Sequence[SchedulerRow]) -> SchedulerSummary | None:
    """Return the summary of a scheduler's tables, next to the runs of the fleet. A row has a training log if a run of
    that name overlaps it."""
    runs = group_by_key((one.job, (one.start_ns, one.end_ns)) for one in fleet.runs)

    def has_log(row: SchedulerRow) -> bool:
        start = row.start_ns
        return start is not None and any(
            start < end and (row.end_ns is None or begin < row.end_ns) for begin, end in runs[row.job]
        )

    def texts(row: SchedulerRow) -> dict[str, str]:
        at = min(row.times(), default=0)
        return {**(row.texts or {}), **fleet.labels.of(row.job, (row.table,), at, {}).texts, "state": row.state.lower()}

    return scheduled(rows, fleet.grouping.by, texts, has_log)


def _group_table(fleet: Fleet, dims: Values) -> GroupTable:
    grouping = fleet.grouping
    groups: list[_Group] = []
    for values, sums in fleet.groups[dims].items():
        chosen = dict(zip(dims, values, strict=True))
        told_apart = chosen.keys() <= {"cluster", "accelerator"}
        capacity = fleet.capacity_ns(**chosen) if told_apart else None
        mpg = mpg_of(sums, capacity, saved_only=grouping.saved_only)
        groups.append((group_row(values, sums, mpg), Totals(sums, mpg)))
    groups.sort(key=lambda one: (*_ORDERS[grouping.sort](one[1].sums), one[0].values))
    if WEEK in dims and grouping.sort == "lost":
        groups = _week_by_week(groups, dims.index(WEEK))
    rows, totals = tuple(row for row, _ in groups), tuple(sums for _, sums in groups)
    return GroupTable(dims, rows, totals, grouping.limit)


def _with_unlogged(table: GroupTable, allocations: SchedulerSummary | None) -> GroupTable:
    """Return the groups with the allocated time that no log covers, and below them the groups that only the scheduler
    knows."""
    tables = () if allocations is None or {SIZE, WEEK} & {*table.dims} else allocations.groups
    held = {row.group: row.unlogged_hours for one in tables if one.dims == table.dims for row in one.rows}
    rows = tuple(replace(row, unlogged_hours=held.pop(row.group, None)) for row in table.rows)
    empty, most = FleetTotals(), len(table.dims) - 1
    nothing = mpg_of(empty, None, saved_only=False)
    return replace(table, rows=rows, unlogged=tuple(
        replace(group_row(tuple(name.split(" / ", most)), empty, nothing), unlogged_hours=amount)
        for name, amount in held.items()
    ))  # fmt: skip


def _week_by_week(groups: Sequence[_Group], week: int) -> list[_Group]:
    """Sorted groups, with the weeks of each other group in time order. week: which of the values names it."""

    def other(row: GroupRow) -> Values:
        return (*row.values[:week], *row.values[week + 1 :])

    lost: Counter[Values] = Counter()
    for row, totals in groups:
        lost[other(row)] += totals.sums.lost
    return sorted(groups, key=lambda one: (-lost[other(one[0])], other(one[0]), one[0].values[week]))


_ORDERS: Mapping[str, Callable[[FleetTotals], tuple[Any, ...]]] = {
    "name": lambda _: (),
    "hours": lambda sums: (-sums.counted,),
    "goodput": lambda sums: (sums.goodput is None, sums.goodput or 0),
    "lost": lambda sums: (-sums.lost,),
}
"""How `--sort` orders groups; equal groups are ordered by name."""


def group_row(values: Values, sums: FleetTotals, mpg: Mpg) -> GroupRow:
    """A group of runs as a row."""
    shares = (share for share in (ratio(*pair) for pair in sums.shares) if share is not None)
    low, median, high = map(percent, quantiles(shares, 4))
    factors = {f"{name}_percent": percent(getattr(mpg, name)) for name in ("scheduling", "runtime", "program", "mpg")}
    return filled(
        GroupRow, sums, group=" / ".join(values), values=list(values), median_goodput_percent=median,
        quartile_low_percent=low, quartile_high_percent=high, **factors,
    )  # fmt: skip


def _size_row(name: str, sums: FleetTotals) -> SizeRow:
    tenths = [percent(one) for one in quantiles((Fraction(*one) for one in sums.shares if one[1] >= _LONG_RUN_NS), 10)]
    mttf, least, most = (None if one is None else round(one) for one in (sums.mttf_ns, *sums.mttf_interval_ns))
    per_node = ratio(Fraction(sums.node_failures) * _NODE_DAYS, sums.node_up)
    return filled(
        SizeRow, sums, size=name,
        goodput_percent=None if name == UNKNOWN_SIZE else percent(sums.goodput),
        median_ettr_percent=tenths[4], p10_ettr_percent=tenths[0], p90_ettr_percent=tenths[8], up_ns=sums.up,
        mttf_ns=mttf, mttf_low_ns=least, mttf_high_ns=most,
        per_1000_node_days=None if per_node is None else float(per_node),
    )  # fmt: skip


def cause_rows(fleet: Fleet) -> list[FleetCauseRow]:
    """Return failures by cause, the most frequent first and unknown causes last; empty if no line of any run shows a
    cause."""
    by_cause = group_by_key((one.cause, one) for one in fleet.failures)
    if not by_cause.keys() - {UNKNOWN_CAUSE}:
        return []
    days = hours(fleet.total.chip_up) / 24
    # if some accelerators of the fleet are unknown, failures have no exposure to be divided by
    known = days > 0 and fleet.total.known_runs == fleet.total.runs
    rows = []
    ordered = sorted(by_cause.items(), key=lambda one: (one[0] == UNKNOWN_CAUSE, -len(one[1]), one[0]))
    for cause, found in ordered:
        bounds = poisson_interval(len(found))
        rate, low, high = (1000 * count / days if known else None for count in (len(found), *bounds))
        runs, chip_hours = len({id(one.run) for one in found}), hours(sum(one.lost_chip for one in found))
        rows.append(
            FleetCauseRow(
                cause, group_of(cause), len(found), runs, rate, low, high, sum(one.lost_ns for one in found),
                chip_hours if known else None,
            )
        )  # fmt: skip
    return rows


def week_rows(fleet: Fleet, weeks: Sequence[FleetTotals]) -> list[WeekRow]:
    """The weeks of the fleet. weeks: the sums of each."""
    rows: list[WeekRow] = []
    usual = _median([one.counted for one in weeks])
    before: Fraction | None = None
    for week, sums in zip(fleet.calendar.weeks, weeks, strict=True):
        enough = _is_enough(sums, sums.counted, usual)
        goodput = sums.goodput
        change = goodput - before if enough and goodput is not None and before is not None else None
        drawn = sums.time_goodput if goodput is None else goodput
        rows.append(
            filled(
                WeekRow,
                sums,
                week=week.name,
                start_ns=week.start,
                end_ns=week.end,
                partial=week.partial,
                covered_percent=100 * (week.end - week.start) / week.full_ns,
                bar=None if drawn is None else float(drawn),
                change_points=percent(change),
                categories=[
                    {"category": row.category, "chip_ns": row.chip_ns, "ns": row.ns} for row in category_rows(sums)
                ],
            )
        )
        before = goodput if enough else None
    return rows


def _median(amounts: Sequence[int]) -> Fraction:
    return median(map(Fraction, amounts))


def _is_enough(sums: FleetTotals, amount: int, usual: Fraction) -> bool:
    """Return True if a week is large enough to compare: 5 runs, and half the usual amount of time."""
    return sums.runs >= _LEAST_RUNS and 2 * amount >= usual


def change_of(fleet: Fleet, weeks: Sequence[FleetTotals]) -> FleetChange | None:
    """Return the latest change between two weeks that are large enough; None without one. weeks: all, in order."""
    by_time = not fleet.total.known_time
    spent = [_by_category(one, by_time=by_time) for one in weeks]
    amounts = [one.total() for one in spent]
    usual = _median(amounts)
    enough = [amount > 0 and _is_enough(sums, amount, usual) for sums, amount in zip(weeks, amounts, strict=True)]
    latest = range(len(weeks) - 1, max(len(weeks) - RECENT_WEEKS, 0), -1)
    now = next((place for place in latest if enough[place] and enough[place - 1]), None)
    if now is None:
        return None
    pair = (now - 1, now)
    whole, of_categories = [amounts[place] for place in pair], [spent[place] for place in pair]
    kept = [one.pop(Category.PRODUCTIVE.id, 0) for one in of_categories]
    points = float(100 * (Fraction(kept[1], whole[1]) - Fraction(kept[0], whole[0])))
    of_runs = [Counter({run: lost[by_time] for run, lost in fleet.recent[place].items()}) for place in pair]
    rows = (*_changes("category", of_categories, whole), *_changes_of_runs(of_runs, of_categories, whole))
    before, week = (fleet.calendar.weeks[place].name for place in pair)
    return FleetChange(before, week, by_time, points, rows)


def _by_category(sums: FleetTotals, *, by_time: bool) -> Counter[str]:
    """Time by category, custom events as one; without exclusions."""
    found: Counter[str] = Counter()
    for (category, _), ns in (sums.time if by_time else sums.chip).items():
        if category is not Category.EXCLUDED:
            found[category.id] += ns
    return found


def _changes(what: str, lost: Sequence[Counter[str]], whole: Sequence[int]) -> Iterator[ChangeRow]:
    """Yield changes, largest first; equal costs are omitted. lost: in both weeks, by name. whole: all their time."""
    shares = [
        (name, Fraction(lost[0][name], whole[0]), Fraction(lost[1][name], whole[1])) for name in {*lost[0], *lost[1]}
    ]
    for name, before, now in sorted(shares, key=lambda one: (-abs(one[1] - one[2]), one[0])):
        if before != now:
            yield ChangeRow(what, name, percent(before) or 0.0, percent(now) or 0.0, float(100 * (before - now)))


def _changes_of_runs(
    of_runs: Sequence[Counter[str]], of_all: Sequence[Counter[str]], whole: Sequence[int]
) -> Iterator[ChangeRow]:
    """The runs that moved most, and all others as one: with them the points add up."""
    named = list(_changes("run", of_runs, whole))[:_MOST_RUNS]
    rest = [
        Counter({OTHERS: all_of_it.total() - sum(runs[one.name] for one in named)})
        for runs, all_of_it in zip(of_runs, of_all, strict=True)
    ]
    yield from named
    yield from _changes("run", rest, whole)
