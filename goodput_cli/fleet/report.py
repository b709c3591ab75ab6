"""What `goodput fleet` answers: the sums of a fleet as rows.

From sums to rows: categories, groups, weeks, sizes, disruptions and runs as people and programs read them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal

from msgspec import Meta

from goodput_cli.analysis.answers import Diagnostics
from goodput_cli.analysis.disruptions.find import poisson_interval
from goodput_cli.analysis.insights.hosts import repeating
from goodput_cli.analysis.sheet import Answered, Sheet
from goodput_cli.analysis.written import Count, Instant, Json, written
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.fleet.aggregate import Fleet, RunRow, WorstDisruption, run_name
from goodput_cli.fleet.change import Change, change_of, week_rows
from goodput_cli.fleet.question import UNKNOWN_SIZE, WEEK, Grouping, size_classes
from goodput_cli.fleet.rows import (
    CATEGORY_TABLE,
    CAUSE_TABLE,
    DISRUPTION_TABLE,
    GROUP_TABLE,
    HOST_TABLE,
    NOT_ANALYSED_TABLE,
    RUN_TABLE,
    SIZE_TABLE,
    WEEK_TABLE,
    CategoryRow,
    CauseRow,
    DisruptionRow,
    GroupRow,
    HostRow,
    NotAnalysed,
    RunLine,
    SizeRow,
    WeekRow,
    category_name,
    category_rows,
    known_hours,
)
from goodput_cli.fleet.sums import (
    CauseAmounts,
    HostSums,
    HostTest,
    Mpg,
    Sums,
    hours,
    mpg_of,
    percent,
    quantile,
    ratio,
)
from goodput_cli.vocabulary.causes import UNKNOWN_CAUSE, group_of
from goodput_cli.vocabulary.when import NS_PER_HOUR

_LONG_RUN_NS = 24 * NS_PER_HOUR
_NODE_DAYS = 1000 * 24 * NS_PER_HOUR


def group_row(values: tuple[str, ...], sums: Sums, mpg: Mpg) -> GroupRow:
    """A group of runs as a row."""
    shares = [share for share in (ratio(*pair) for pair in sums.shares) if share is not None]
    low, median, high = (quantile(shares, Fraction(part, 4)) for part in (1, 2, 3))
    worst = sums.worst()
    return GroupRow(
        group=" / ".join(values),
        values=list(values),
        runs=sums.runs,
        known_runs=sums.known,
        chip_ns=str(sums.counted),
        accelerator_hours=known_hours(sums, sums.counted),
        goodput_percent=percent(sums.goodput),
        time_goodput_percent=percent(sums.time_goodput),
        median_goodput_percent=percent(median),
        quartile_low_percent=percent(low),
        quartile_high_percent=percent(high),
        lost_hours=known_hours(sums, sums.lost),
        held_lost_hours=known_hours(sums, sums.held_lost),
        cost=money_text(sums) if sums.priced else None,
        priced_runs=sums.priced,
        failures=sums.failures,
        scheduling_percent=percent(mpg.scheduling),
        runtime_percent=percent(mpg.runtime),
        program_percent=percent(mpg.program),
        mpg_percent=percent(mpg.mpg),
        most_lost_to=None if worst is None else category_name(worst[0]),
    )


def money_text(sums: Sums) -> str:
    """`168908.00 USD`; currencies are never added."""
    return ", ".join(f"{_decimals(amount)} {code}" for code, amount in sorted(sums.money.items())) or "0.00"


def _decimals(amount: Fraction | int) -> str:
    """With two decimals, half to even."""
    cents = round(Fraction(amount) * 100)
    sign, cents = ("-" if cents < 0 else ""), abs(cents)
    return f"{sign}{cents // 100}.{cents % 100:02d}"


def size_rows(fleet: Fleet) -> list[SizeRow]:
    """The size classes that have runs."""
    names = [name for name in size_classes(fleet.grouping.size_bounds) if name in fleet.by_size]
    return [_size_row(name, fleet.by_size[name]) for name in names]


def _size_row(name: str, sums: Sums) -> SizeRow:
    shares = [Fraction(*pair) for pair in sums.shares if pair[1] >= _LONG_RUN_NS]
    low, median, high = (quantile(shares, Fraction(part, 10)) for part in (1, 5, 9))
    least, most = sums.mttf_interval_ns
    mttf = sums.mttf_ns
    known = name != UNKNOWN_SIZE
    per_node = ratio(Fraction(sums.node_failures) * _NODE_DAYS, sums.node_up)
    return SizeRow(
        size=name,
        runs=sums.runs,
        accelerator_hours=known_hours(sums, sums.counted),
        goodput_percent=percent(sums.goodput) if known else None,
        ettr_percent=percent(sums.time_goodput),
        median_ettr_percent=percent(median),
        p10_ettr_percent=percent(low),
        p90_ettr_percent=percent(high),
        up_ns=sums.up,
        accelerator_days=hours(sums.chip_up) / 24,
        failures=sums.failures,
        mttf_ns=None if mttf is None else round(mttf),
        mttf_low_ns=None if least is None else round(least),
        mttf_high_ns=None if most is None else round(most),
        per_1000_node_days=None if per_node is None else float(per_node),
    )


def cause_rows(fleet: Fleet) -> list[CauseRow]:
    """Failures by cause, the most frequent first, and last those of which nobody says why; none where no line of any
    run says why."""
    if not fleet.causes.keys() - {UNKNOWN_CAUSE}:
        return []
    ordered = sorted(fleet.causes.items(), key=lambda one: (one[0] == UNKNOWN_CAUSE, -one[1].failures, one[0]))
    return [_cause_row(cause, amounts, fleet.total) for cause, amounts in ordered]


def _cause_row(cause: str, amounts: CauseAmounts, total: Sums) -> CauseRow:
    days = hours(total.chip_up) / 24
    # of a fleet of which some accelerators are unknown, failures have no exposure to be divided by
    known = days > 0 and total.known == total.runs
    low, high = (1000 * bound / days for bound in poisson_interval(amounts.failures)) if known else (None, None)
    return CauseRow(
        cause, group_of(cause), amounts.failures, amounts.runs, 1000 * amounts.failures / days if known else None,
        low, high, amounts.lost, hours(amounts.lost_chip) if known else None,
    )  # fmt: skip


def host_rows(hosts: HostSums) -> list[HostRow]:
    """The hosts that repeat over all runs, the least likely by chance first (docs/causes.md)."""
    failures = hosts.failures()
    deaths = {host: len(found) for host, found in failures.items()}
    whole = sum(hosts.up.values())
    return [
        HostRow(
            one.host[1], one.host[0] or None, one.deaths, one.of, hosts.up[one.host],
            100 * hosts.up[one.host] / whole, one.p,
            ", ".join(sorted({death.cause for death in failures[one.host]})),
            ", ".join(sorted({death.run for death in failures[one.host]})),
        )
        for one in repeating(deaths, hosts.up)
    ]  # fmt: skip


def disruption_row(one: WorstDisruption) -> DisruptionRow:
    """A disruption with its cost."""
    known = one.accelerators is not None
    money = None
    if known and one.price is not None:
        money = f"{_decimals(one.price * Fraction(one.cost, NS_PER_HOUR))} {one.currency or ''}".strip()
    what = one.disruption
    return DisruptionRow(
        one.job, one.run, what.number, what.at_ns, what.ended, what.cause, one.accelerators, what.lost_ns,
        what.wasted_ns, what.downtime_ns, what.restart_ns, str(one.cost) if known else None,
        hours(one.cost) if known else None, money, what.evidence,
    )  # fmt: skip


def run_line(row: RunRow) -> RunLine:
    """A run as the list of runs has it."""
    result, texts = row.result, row.labels.texts
    known = row.accelerators is not None
    return RunLine(
        job=result.job,
        run=result.run,
        runs=result.runs,
        start_ns=result.start_ns,
        end_ns=result.end_ns,
        ns=row.ns,
        team=texts.get("team"),
        cluster=texts.get("cluster"),
        accelerator=texts.get("accelerator"),
        accelerators=row.accelerators,
        size=row.size,
        events=result.events,
        attempts=result.attempts,
        disruptions=row.disruptions,
        failures=row.failures,
        ending=result.ending,
        goodput_ns=row.productive_ns,
        goodput_percent=100 * row.productive_ns / row.counted_ns if row.counted_ns > 0 else None,
        chip_ns=str(row.chip_ns) if known else None,
        lost_hours=hours(row.lost_chip_ns) if known else None,
        documents=list(result.documents),
    )


ChipTime = Annotated[int, Json(made=str, kind=str), Meta(pattern="^-?[0-9]+$")]
"""Accelerators x ns, which JSON has as decimal text."""


@written("fleet_window", "what the sums are of", keys="start_ns end_ns ns timezone")
@dataclass(frozen=True)
class FleetWindow:
    """Of which time the sums are."""

    start_ns: Instant
    """start"""
    end_ns: Instant
    """end"""
    timezone: str
    """of weeks, and of times that name none"""

    @property
    def ns(self) -> Count:
        """length in ns"""
        return self.end_ns - self.start_ns


@written("fleet_coverage", "over what the totals are")
@dataclass(frozen=True)
class Coverage:
    """Over what the totals are."""

    documents: Count
    """found"""
    unreadable: Annotated[Count, Json(key="unreadable_documents")]
    """documents that could not be read"""
    runs: Count
    """analysed, and in the window"""
    not_analysed: Count
    """documents, jobs and runs that are in no total"""
    outside: Count
    """runs that lie outside the window"""
    known_runs: Count
    """runs with known accelerators"""
    known_time: Annotated[Fraction | None, Json("percent")]
    """share of the job time with known accelerators"""
    lost_sight_of: Count
    """runs that never ended, and of which nothing was heard for longer than --alive-within before --as-of"""
    unlogged: Annotated[Count, Json(key="allocations_without_logs")]
    """allocations that fit no run"""
    unlogged_chip_ns: Annotated[int, Json(key="allocations_without_logs_hours", made=hours, kind=float)]
    """their accelerator hours"""
    assumed_chip_ns: ChipTime
    """of runs with allocations, chip time that no allocation covers"""


@written("fleet_mpg", "ML productivity goodput and its factors; null is not recorded")
@dataclass(frozen=True)
class FleetMpg(Mpg):
    """ML productivity goodput of a fleet, its factors, and the chip time that they are made of."""

    availability: Annotated[Fraction | None, Json("percent")]
    """allocated / (allocated + waiting) chip time"""
    allocated: Annotated[ChipTime, Json(key="allocated_chip_ns")]
    """accelerators x ns, as decimal text"""
    kept: Annotated[ChipTime, Json(key="kept_chip_ns")]
    """accelerators x ns, as decimal text"""
    at_risk: Annotated[ChipTime, Json(key="at_risk_chip_ns")]
    """kept training after the last save"""
    waiting: Annotated[ChipTime, Json(key="waiting_chip_ns")]
    """accelerators x ns, as decimal text"""
    allocated_from: Literal["logs", "allocations"]
    """what says how much was allocated"""


@written("fleet_groups", "the groups of one --by", keys="dims shown")
@dataclass(frozen=True)
class GroupTable:
    """The groups of one --by."""

    dims: Annotated[tuple[str, ...], Json(key="by")]
    """what the runs are grouped by"""
    rows: tuple[GroupRow, ...]
    """One row a group, sorted."""
    sums: tuple[Sums, ...]
    """Of each row."""
    mpgs: tuple[Mpg, ...]
    """ML productivity goodput of each row."""
    limit: int | None = None
    """`--limit`; None: every row is shown."""

    @property
    def shown(self) -> Annotated[tuple[GroupRow, ...], GROUP_TABLE, Json(key="rows")]:
        """the first --limit rows"""
        return self.rows[: self.limit]


@written(
    "fleet_answer",
    "goodput fleet --format json",
    kind="fleet",
    keys=(
        "complete window coverage total mpg categories weeks change sizes groups causes hosts host_test "
        "disruptions runs not_analysed method diagnostics"
    ),
)
@dataclass(frozen=True, repr=False)
class FleetReport(Answered):
    """The answer about a fleet."""

    complete: bool
    """whether every document could be read and every run analysed"""
    window: FleetWindow
    """from when to when"""
    coverage: Coverage
    """what is in the totals, and what is not"""
    grouping: Grouping
    """How runs were grouped, and what was asked of them."""
    sums: Sums
    """Amounts of the whole fleet."""
    total: Annotated[GroupRow, GROUP_TABLE, Json(key="totals")]
    """of all runs, as a group without values"""
    mpg: FleetMpg
    """ML productivity goodput and its factors"""
    categories: Annotated[tuple[CategoryRow, ...], CATEGORY_TABLE]
    """productive first, then what took most; exclusions last"""
    weeks: Annotated[tuple[WeekRow, ...], WEEK_TABLE]
    """in order, those without a run too"""
    week_sums: tuple[Sums, ...]
    """Amounts of each week."""
    change: Change | None
    """what moved goodput from one week to the next"""
    sizes: Annotated[tuple[SizeRow, ...], SIZE_TABLE]
    """by accelerators that a run held at most"""
    size_sums: dict[str, Sums]
    """Amounts of each size."""
    groups: tuple[GroupTable, ...]
    """one a --by"""
    causes: Annotated[tuple[CauseRow, ...], CAUSE_TABLE]
    """failures by cause; empty where no line says why"""
    hosts: Annotated[tuple[HostRow, ...], HOST_TABLE]
    """hosts on which more died than chance explains; empty also where nobody can tell"""
    host_test: HostTest
    """what they were looked for in"""
    disruptions: Annotated[tuple[DisruptionRow, ...], DISRUPTION_TABLE]
    """the most expensive first"""
    runs: Annotated[tuple[RunLine, ...], RUN_TABLE]
    """by job and number"""
    not_analysed: Annotated[tuple[NotAnalysed, ...], NOT_ANALYSED_TABLE]
    """what is in no total, and why"""
    method: dict[str, str]
    """options that count, as they are typed"""
    diagnostics: Diagnostics
    """what looks wrong in the logs"""

    def sheet(self) -> Sheet:
        from goodput_cli.fleet.sheet import fleet_sheet

        return fleet_sheet(self)

    def rows_sheet(self) -> Sheet:
        from goodput_cli.fleet.sheet import runs_sheet

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
    of_fleet = FleetMpg(
        **vars(mpg),
        availability=fleet.total.availability,
        allocated=fleet.total.allocated,
        kept=fleet.total.kept,
        at_risk=fleet.total.at_risk,
        waiting=fleet.total.waiting,
        allocated_from="allocations" if fleet.basis.allocations else "logs",
    )
    return FleetReport(
        complete=not not_analysed,
        window=FleetWindow(fleet.calendar.start, fleet.calendar.end, timezone),
        coverage=_coverage(fleet, documents, sum(one.what == "document" for one in unreadable), len(not_analysed)),
        grouping=fleet.grouping,
        sums=fleet.total,
        total=group_row((), fleet.total, mpg),
        mpg=of_fleet,
        categories=tuple(category_rows(fleet.total)),
        weeks=tuple(week_rows(fleet, weeks)),
        week_sums=weeks,
        change=change_of(fleet, weeks),
        sizes=tuple(size_rows(fleet)),
        size_sums=dict(fleet.by_size),
        groups=tuple(_group_table(fleet, dims) for dims in fleet.groups),
        causes=tuple(cause_rows(fleet)),
        hosts=tuple(host_rows(fleet.hosts)),
        host_test=HostTest.of(fleet.hosts, fleet.total.runs),
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
