"""What `goodput fleet` answers: the sums of a fleet as rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from goodput_cli.analysis.sheet import Sheet
from goodput_cli.analysis.shown import Answered
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.fleet.grouping import WEEK, Grouping
from goodput_cli.fleet.report.fill import category_rows, disruption_row, group_row, run_line, size_rows, week_rows
from goodput_cli.fleet.report.rows import CategoryRow, DisruptionRow, GroupRow, NotAnalysed, RunLine, SizeRow, WeekRow
from goodput_cli.fleet.totals.aggregate import Fleet
from goodput_cli.fleet.totals.lists import run_name
from goodput_cli.fleet.totals.ratios import ratio
from goodput_cli.fleet.totals.sums import Mpg, Sums, mpg_of


@dataclass(frozen=True)
class Coverage:
    """Over what the totals are."""

    documents: int
    """Logs that were read."""
    unreadable: int
    """Logs of which nothing could be read."""
    runs: int
    """Analysed, and in the window."""
    not_analysed: int
    """Logs, jobs and runs that could not be analysed."""
    outside: int
    """Runs that lie outside the window."""
    known_runs: int
    """Runs with known accelerators."""
    known_time: Fraction | None
    """Share of the job time with known accelerators."""
    lost_sight_of: int
    """Runs that never ended, and were not heard of for longer than --alive-within before --as-of."""
    unlogged: int
    """Allocations without a log."""
    unlogged_chip_ns: int
    """Their chip time (accelerators x ns)."""
    assumed_chip_ns: int
    """Chip time of runs with allocations that no allocation covers."""


@dataclass(frozen=True)
class GroupTable:
    """The groups of one --by."""

    dims: tuple[str, ...]
    """The dimensions that it groups by."""
    rows: tuple[GroupRow, ...]
    """One row a group, sorted."""
    sums: tuple[Sums, ...]
    """Of each row."""
    mpgs: tuple[Mpg, ...]
    """ML productivity goodput of each row."""
    limit: int | None = None
    """`--limit`; None: every row is shown."""

    @property
    def shown(self) -> tuple[GroupRow, ...]:
        """The rows that an answer has: the first --limit."""
        return self.rows[: self.limit]


@dataclass(frozen=True, repr=False)
class FleetReport(Answered):
    """The answer about a fleet. Instants and amounts of time are ns."""

    start_ns: int
    """Start of the window, ns since 1970 UTC."""
    end_ns: int
    """End of the window, ns since 1970 UTC."""
    timezone: str
    """The time zone in which weeks begin."""
    complete: bool
    """Whether every document could be read and every run analysed."""
    coverage: Coverage
    """What the totals cover."""
    grouping: Grouping
    """How runs were grouped, and what was asked of them."""
    sums: Sums
    """Amounts of the whole fleet."""
    total: GroupRow
    """The same as a row."""
    mpg: Mpg
    """ML productivity goodput of the whole fleet."""
    allocated_from_logs: bool
    """Whether allocations come from logs, and not from a scheduler."""
    categories: tuple[CategoryRow, ...]
    """One row a category."""
    weeks: tuple[WeekRow, ...]
    """One row a week, in time order."""
    week_sums: tuple[Sums, ...]
    """Amounts of each week."""
    sizes: tuple[SizeRow, ...]
    """One row a size of job."""
    size_sums: dict[str, Sums]
    """Amounts of each size."""
    groups: tuple[GroupTable, ...]
    """One table for each `--by`."""
    disruptions: tuple[DisruptionRow, ...]
    """The costliest disruptions, the worst first."""
    runs: tuple[RunLine, ...]
    """One row a run."""
    not_analysed: tuple[NotAnalysed, ...]
    """What could not be analysed, and why."""
    method: dict[str, str]
    """How it was accounted for, as options."""
    diagnostics: tuple[Diagnostic, ...]
    """What was noticed while reading and accounting."""

    def sheet(self) -> Sheet:
        from goodput_cli.fleet.report.sheet import fleet_sheet

        return fleet_sheet(self)

    def rows_sheet(self) -> Sheet:
        from goodput_cli.fleet.report.sheet import runs_sheet

        return runs_sheet(self)


_Group = tuple[GroupRow, Sums, Mpg]


def report_of(
    fleet: Fleet, *, documents: int, unreadable: Sequence[NotAnalysed], timezone: str, method: dict[str, str],
    diagnostics: Sequence[Diagnostic],
) -> FleetReport:  # fmt: skip
    """The whole answer. fleet: finished. unreadable: documents, and jobs that killed their worker."""
    lost = [
        NotAnalysed.of("run" if one.runs > 1 else "job", run_name(one), one.reason or "", one.job)
        for one in fleet.not_analysed
    ]
    not_analysed = (*unreadable, *lost)
    mpg = mpg_of(fleet.total, fleet.capacity_ns(), saved_only=fleet.grouping.saved_only)
    weeks = tuple(fleet.by_week[number] for number in range(len(fleet.calendar.weeks)))
    return FleetReport(
        start_ns=fleet.calendar.start,
        end_ns=fleet.calendar.end,
        timezone=timezone,
        complete=not not_analysed,
        coverage=_coverage(fleet, documents, sum(one.what == "document" for one in unreadable), len(not_analysed)),
        grouping=fleet.grouping,
        sums=fleet.total,
        total=group_row((), fleet.total, mpg),
        mpg=mpg,
        allocated_from_logs=not fleet.basis.allocations,
        categories=tuple(category_rows(fleet.total)),
        weeks=tuple(week_rows(fleet, weeks)),
        week_sums=weeks,
        sizes=tuple(size_rows(fleet)),
        size_sums=dict(fleet.by_size),
        groups=tuple(_group_table(fleet, dims) for dims in fleet.groups),
        disruptions=tuple(map(disruption_row, fleet.worst)),
        runs=tuple(map(run_line, fleet.runs)),
        not_analysed=not_analysed,
        method=method,
        diagnostics=tuple(diagnostics),
    )


def _coverage(fleet: Fleet, documents: int, unreadable: int, not_analysed: int) -> Coverage:
    sums = fleet.total
    return Coverage(
        documents, unreadable, sums.runs, not_analysed, fleet.outside, sums.known,
        ratio(sums.known_time, sums.time_counted), fleet.lost_sight_of, fleet.unlogged.rows, fleet.unlogged.chip_ns,
        sums.assumed,
    )  # fmt: skip


def _group_table(fleet: Fleet, dims: tuple[str, ...]) -> GroupTable:
    grouping = fleet.grouping
    groups: list[_Group] = []
    for values, sums in fleet.groups[dims].items():
        chosen = dict(zip(dims, values, strict=True))
        told_apart = chosen.keys() <= {"cluster", "accelerator"}
        capacity = fleet.capacity_ns(**chosen) if told_apart else None
        mpg = mpg_of(sums, capacity, saved_only=grouping.saved_only)
        groups.append((group_row(values, sums, mpg), sums, mpg))
    groups.sort(key=lambda one: _group_order(grouping.sort, *one[:2]))
    if WEEK in dims and grouping.sort == "lost":
        groups = _week_by_week(groups, dims.index(WEEK))
    rows, sums_of, mpgs = (tuple(column) for column in zip(*groups, strict=True))
    return GroupTable(dims, rows, sums_of, mpgs, grouping.limit)


def _week_by_week(groups: Sequence[_Group], week: int) -> list[_Group]:
    """Sorted groups, with the weeks of each other group in time order. week: which of the values names it."""
    others = [(*row.values[:week], *row.values[week + 1 :]) for row, _, _ in groups]
    lost: Counter[tuple[str, ...]] = Counter()
    for other, (_, sums, _) in zip(others, groups, strict=True):
        lost[other] += sums.lost
    ordered = sorted(zip(others, groups, strict=True), key=lambda one: (-lost[one[0]], one[0], one[1][0].values[week]))
    return [group for _, group in ordered]


def _group_order(key: str, row: GroupRow, sums: Sums) -> Any:
    match key:
        case "name":
            return row.values
        case "hours":
            return (-sums.counted, row.values)
        case "goodput":
            return (sums.goodput is None, sums.goodput or 0, row.values)
        case _:
            return (-sums.lost, row.values)
