"""What `goodput fleet` answers, and how it is shown: what people see, and the table that CSV and Parquet hold."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, Literal

from goodput_cli.analysis.answers import Diagnostics
from goodput_cli.analysis.json_fields import Bounds, Count, Instant, Json, written
from goodput_cli.analysis.recoveries import Recoveries, recovery_words
from goodput_cli.analysis.sheet import Answered, Family, Published, Sheet
from goodput_cli.analysis.steps.devices import IDLE, energy_text
from goodput_cli.analysis.table import Table
from goodput_cli.analysis.threshold import Threshold
from goodput_cli.fleet.held import NOT_KNOWN, Scheduled, held_sections, sentences, title_of, without_log
from goodput_cli.fleet.hosts import HostTest, hosts_judged, hosts_that_repeat
from goodput_cli.fleet.metrics import groups_of, metrics
from goodput_cli.fleet.question import Grouping
from goodput_cli.fleet.recovery import (
    OUTAGE_GROUP_TABLE,
    OUTAGE_LINK_TABLE,
    OutageGroupRow,
    OutageLinkRow,
    outage_families,
    several_note,
)
from goodput_cli.fleet.rows import (
    CATEGORY_TABLE,
    CAUSE_TABLE,
    CHANGE_TABLE,
    DISRUPTION_TABLE,
    GROUP_TABLE,
    HOST_TABLE,
    LEFT_OUT_TABLE,
    NOT_ANALYSED_TABLE,
    RUN_TABLE,
    SIZE_TABLE,
    WEEK_TABLE,
    CategoryRow,
    CauseRow,
    Change,
    DisruptionRow,
    GroupRow,
    GroupTable,
    HostRow,
    LeftOut,
    NotAnalysed,
    RunLine,
    SizeRow,
    WeekRow,
    category_name,
    grouped,
    run_name,
)
from goodput_cli.fleet.scheduler import Amounts
from goodput_cli.fleet.sums import LEAST_COVERAGE, PRODUCTIVE, Mpg, Sums, Totals, hours, percent, ratio
from goodput_cli.fleet.thresholds import MEASURES
from goodput_cli.vocabulary.categories import brief_name
from goodput_cli.vocabulary.text import clock, duration, exact, iso, plural, safe, tenths
from goodput_cli.vocabulary.text import percent as percent_text

NOT_RECORDED = "not recorded"
CATEGORIES, WEEKS, SIZES = "What the time went to", "Weeks", "Sizes, in accelerators"
CAUSES, DISRUPTIONS, LEFT_OUT = "Why they died", "Worst disruptions", "Not analysed"
HOSTS = "Hosts that repeat"
OUTAGES, OUTAGE_GROUPS = "Where outages went", "Outages by cause, host and team"
CHANGES = "What changed since the week before"
"""Titles of sections."""
NOT_KNOWN_HERE = "not known (and what would tell)"
"""What stands before the list of `not_known`."""
_IDEAL = "--labels with ideal_step_seconds, or with flops_per_step and peak_flops"
_MOST_REASONS, _MOST_DOUBTS, _FEW = 10, 5, 3
_HALF = Fraction(1, 2)
_BY_CHIPS = ("accelerator h", "share", "goodput", "lost h", "cost", "points", "accelerators")
_BY_TIME = ("job h", "share of job time", "goodput by job time")
"""Columns for people of which one half says nothing: where accelerators are known, and where they are not."""


ChipTime = Annotated[int, Json(made=str, kind=str), Bounds(pattern="^-?[0-9]+$")]
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
    powered_runs: Annotated[int | None, Json(key="runs_with_energy", optional=True)] = None
    """runs of which samples of power hold; left out where there are none"""
    watched_runs: Annotated[int | None, Json(key="runs_with_idle_hours", optional=True)] = None
    """runs of which samples say in training how busy accelerators were; left out where there are none"""
    accelerators_logged: Annotated[int | None, Json(key="runs_with_logged_accelerators", optional=True)] = None
    """runs whose accelerators only their logs say; left out where there are none"""
    program_logged: Annotated[int | None, Json(key="runs_with_logged_flops", optional=True)] = None
    """runs whose ideal step time is made of what their logs say; left out where there are none"""

    @property
    def analysed(self) -> Fraction:
        """Share of the runs, jobs and documents that is in the totals."""
        whole = self.runs + self.not_analysed
        return Fraction(self.runs, whole) if whole else Fraction(1)


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


@written(
    "fleet_answer",
    "goodput fleet --format json",
    kind="fleet",
    keys=(
        "complete window coverage total mpg categories weeks change sizes groups causes hosts "
        "hosts_not_named host_test disruptions outages outage_groups recoveries runs not_analysed allocations method "
        "diagnostics"
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
    """hosts on which more runs died than chance explains; empty also where nobody can tell"""
    hosts_not_named: Annotated[tuple[HostRow, ...], HOST_TABLE, Json(optional=True)]
    """hosts on which two runs or more died, and chance or code at rank 0 may explain it: the least likely"""
    host_test: HostTest
    """what they were looked for in"""
    disruptions: Annotated[tuple[DisruptionRow, ...], DISRUPTION_TABLE]
    """the most expensive first"""
    outages: Annotated[tuple[OutageLinkRow, ...], OUTAGE_LINK_TABLE, Json(optional=True)]
    """where the outages went, link by link, in their order; together what disruptions lost"""
    outage_groups: Annotated[tuple[OutageGroupRow, ...], OUTAGE_GROUP_TABLE, Json(optional=True)]
    """the same by cause, host and team"""
    recoveries: Annotated[Recoveries | None, Json(optional=True)]
    """how long it took to notice and to recover; left out where nothing was disrupted"""
    runs: Annotated[tuple[RunLine, ...], RUN_TABLE]
    """by job and number"""
    not_analysed: Annotated[tuple[NotAnalysed, ...], NOT_ANALYSED_TABLE]
    """what is in no total, and why"""
    allocations: Annotated[Scheduled | None, Json(optional=True)]
    """what a scheduler's own tables say, whether or not jobs have a log; left out where there is no such table"""
    method: dict[str, str]
    """options that count, as they are typed"""
    diagnostics: Diagnostics
    """what looks wrong in the logs"""

    @property
    def unlogged(self) -> bool:
        """Whether only a scheduler's tables tell of the fleet: no job of it has a training log."""
        return not self.runs and self.allocations is not None

    @property
    def held(self) -> Amounts | None:
        """What a scheduler's tables add up to, if there is any."""
        return None if self.allocations is None else self.allocations.amounts

    def sheet(self) -> Sheet:
        return fleet_sheet(self)

    def rows_sheet(self) -> Sheet:
        return runs_sheet(self)


@dataclass(frozen=True)
class FleetSheet(Sheet):
    """A sheet with the report that it was made from, for formats that show more."""

    report: FleetReport | None = None

    def tables(self) -> tuple[Sheet, ...]:
        """Itself, and every run."""
        return (self,) if self.report is None else (self, runs_sheet(self.report))


def fleet_sheet(report: FleetReport, thresholds: tuple[Threshold, ...] = ()) -> FleetSheet:
    """The first --by as the table, or what the time went to; the others below."""
    if report.unlogged:
        return _held_sheet(report, thresholds)
    categories = section(report, CATEGORIES, CATEGORY_TABLE, report.categories)
    main, *others = [*(group_section(report, table) for table in report.groups), categories]
    sections = [*others[-1:], *_common_sections(report), *others[:-1]]
    return FleetSheet(
        title=title(report),
        columns=main.columns,
        rows=main.rows,
        answer=lambda: report,
        summary=tuple(summary(report)),
        sections=tuple(sections),
        published=lambda: _published(report, thresholds),
        report=report,
    )


def _held_sheet(report: FleetReport, thresholds: tuple[Threshold, ...]) -> FleetSheet:
    """Of a fleet without a training log: what was held, and how long jobs waited."""
    assert report.allocations is not None
    main, *others = held_sections(report.allocations)
    if report.not_analysed:
        reasons, rest = by_reason(report.not_analysed)
        others.append(section(report, LEFT_OUT, LEFT_OUT_TABLE, reasons, rest))
    return FleetSheet(
        title=title(report), columns=main.columns, rows=main.rows, answer=lambda: report,
        summary=tuple(summary(report)), sections=tuple(others), published=lambda: _published(report, thresholds),
        report=report,
    )  # fmt: skip


def title(report: FleetReport) -> str:
    """`Fleet: 1962 of 2000 runs analysed`."""
    if report.unlogged and report.allocations is not None:
        return title_of(report.allocations)
    coverage = report.coverage
    whole = coverage.runs + coverage.not_analysed
    left_out = Counter(one.what for one in report.not_analysed)
    parts = ", ".join(plural(count, what) for what, count in sorted(left_out.items()))
    return f"Fleet: {coverage.runs} of {plural(whole, 'run')} analysed" + (f" (not: {parts})" if parts else "")


def summary(report: FleetReport) -> Iterator[str]:
    """What stands above the tables."""
    if report.unlogged and report.allocations is not None:
        yield from (f"{name:<8} {words}" for name, words in sentences(report.allocations))
        return
    yield from measured(report)
    yield from began_again(report)
    yield from said_by_logs(report.coverage)
    yield from headline(report)
    yield from used_by_devices(report)
    if report.recoveries is not None and (words := recovery_words(report.recoveries)) is not None:
        yield words
    yield from held_beside(report)
    yield from hosts_that_repeat(report.hosts, report.host_test)
    yield from doubts_of_runs(report)
    if not report.complete:
        yield "incomplete: what could not be analysed is listed below, and is in no total"
    if lacking := list(not_known(report)):
        yield f"{NOT_KNOWN_HERE}: {', '.join(lacking)}"


def measured(report: FleetReport) -> Iterator[str]:
    """Of which time and how many accelerator hours the report is, and of which part of it accelerators are known."""
    coverage, sums = report.coverage, report.sums
    (first, _), (last, _) = clock(report.window.start_ns), clock(report.window.end_ns - 1)
    runs = f"{plural(coverage.known_runs, 'run')} with known accelerators"
    held = f", {tenths(hours(sums.counted))} accelerator h in {runs}" if sums.known_time else ""
    yield f"{first} - {last}, {plural(len(report.weeks), 'week')}{held}"
    if sums.known_time and coverage.known_runs < coverage.runs:
        share = _percent(percent(coverage.known_time))
        known = f"{coverage.known_runs} of {plural(coverage.runs, 'run')}"
        yield f"accelerators known for {known}, {share} of the job time"


def said_by_logs(coverage: Coverage) -> Iterator[str]:
    """Of how many runs the logs say what labels and options do not."""
    found = (("accelerators", coverage.accelerators_logged), ("ideal step times", coverage.program_logged))
    parts = [f"{what} of {plural(count, 'run')}" for what, count in found if count]
    if parts:
        yield f"{' and '.join(parts)} are as their logs say; --labels and --accelerators win"


def began_again(report: FleetReport) -> Iterator[str]:
    """How many runs are one more use of a name whose earlier run nothing says was finished: a sentence, if any."""
    again = sum(one.redone for one in report.runs)
    if again:
        jobs = plural(len({one.job for one in report.runs}), "job")
        runs = plural(len(report.runs), "run")
        yield f"{runs} of {jobs}: {again} began again at their first step (--runs auto takes such runs as one job)"


def used_by_devices(report: FleetReport) -> Iterator[str]:
    """What accelerators used and idled, as far as samples of them say it: a sentence, if any do."""
    sums, of = report.sums, f"of {plural(report.coverage.runs, 'run')}"
    parts = []
    if sums.kwh is not None and sums.lost_kwh is not None:
        share = percent(ratio(sums.lost_kwh, sums.kwh)) or 0.0
        known = f"known for {sums.powered_runs} {of}"
        parts.append(f"{energy_text(float(sums.kwh))}, {percent_text(share, 0)} of it lost ({known})")
    if sums.idle_hours is not None:
        idle = f"{tenths(float(sums.idle_hours))} h of training below {IDLE:.0f} % busy"
        parts.append(f"{idle} (known for {sums.watched_runs} {of})")
    if parts:
        yield f"accelerators: {'; '.join(parts)}"


def headline(report: FleetReport) -> Iterator[str]:
    """Goodput, its cost, and MPG."""
    total = report.total
    if report.unlogged:
        yield f"GOODPUT {NOT_KNOWN}"
        return
    if total.goodput_percent is None:
        yield f"GOODPUT by chip time: {NOT_RECORDED}"
    else:
        yield f"GOODPUT {percent_text(total.goodput_percent)}; lost {_lost_and_held(report)}"
    yield from where_lost(report)
    by_time = f"by job time, whatever the size: {_percent(total.time_goodput_percent)}"
    low, median, high = (total.quartile_low_percent, total.median_goodput_percent, total.quartile_high_percent)
    yield f"{by_time}; median run {_percent(median)}, half of them {_percent(low)} to {_percent(high)}"
    yield from _mpg_and_factors(report.mpg)


def held_beside(report: FleetReport) -> Iterator[str]:
    """What a scheduler's tables say beside the logs of runs."""
    if report.allocations is not None:
        yield "; ".join(f"{name.lower()} {words}" for name, words in sentences(report.allocations) if name != "GOODPUT")
        yield from filter(None, [without_log(report.allocations)])


def _lost_and_held(report: FleetReport) -> str:
    """`13,538.0 h = 32,366.42 USD`; where accelerators were not held for all of it, which part was."""
    sums, cost = report.sums, report.total.cost
    amount = f"{lost_amount(sums, by_time=False)} h"
    if sums.lost == sums.held_lost:
        return amount if cost is None else f"{amount} = {grouped(cost)}"
    held = f"{amount}, {tenths(hours(sums.held_lost))} of them while accelerators were held"
    return held if cost is None else f"{held}: {grouped(cost)}"


def by_time(report: FleetReport) -> bool:
    """Whether every run counts by its time alone: where accelerators are not known for half of it."""
    known = report.coverage.known_time
    return known is None or known < _HALF


def lost_words(report: FleetReport, *, by_time: bool) -> str:
    """What was lost, and what to. by_time: every run counts by its time alone."""
    sums = report.sums
    amount = f"{lost_amount(sums, by_time=True)} job h" if by_time else _lost_and_held(report)
    worst = sums.worst(by_time=by_time)
    if worst is None:
        return amount
    return f"{amount}; most to {brief_name(category_name(worst[0]))} {_of(worst[1], _lost(sums, by_time=by_time))}"


def where_lost(report: FleetReport) -> Iterator[str]:
    """What took most of what was lost, and which group and size lost most: a sentence, if anything was lost."""
    sums, timed = report.sums, by_time(report)
    lost, worst = _lost(sums, by_time=timed), sums.worst(by_time=timed)
    if worst is None or lost <= 0:
        return
    parts = [f"to {brief_name(category_name(worst[0]))} {_of(worst[1], lost, ' of what was lost')}"]
    for table in report.groups[:1]:
        rows = zip(table.rows, table.totals, strict=True)
        amounts = [(_lost(one.sums, by_time=timed), row.group) for row, one in rows]
        parts += _most(", ".join(table.dims), amounts, lost)
    sizes = [(_lost(report.size_sums[row.size], by_time=timed), row.size) for row in report.sizes]
    parts += _most("size", sizes, lost)
    yield f"most was lost {', '.join(parts)}{', by job time' if timed else ''}"


def lost_amount(sums: Sums, *, by_time: bool) -> str:
    """Hours of jobs or of accelerators."""
    return tenths(hours(_lost(sums, by_time=by_time)))


def _lost(sums: Sums, *, by_time: bool) -> int:
    return sums.time_counted - sums.time[PRODUCTIVE] if by_time else sums.lost


def _most(kind: str, amounts: Sequence[tuple[int, str]], lost: int) -> list[str]:
    """The one of several that lost most, the first of equals."""
    if len(amounts) < 2:
        return []
    amount, name = max(amounts, key=lambda one: one[0])
    return [f"in {kind} {name} {_of(amount, lost)}"]


def _of(amount: int, lost: int, words: str = "") -> str:
    return f"({tenths(hours(amount))} h, {_percent(percent(Fraction(amount, lost)))}{words})"


def _mpg_and_factors(mpg: FleetMpg) -> Iterator[str]:
    """MPG, and what it is made of, as far as they are known: `not_known` says the rest."""
    if mpg.mpg is not None:
        covered = _percent(percent(mpg.coverage))
        yield f"MPG {_percent(percent(mpg.mpg))}, program goodput known for {covered} of the kept chip time"
    shares = {f"{name} goodput": getattr(mpg, name) for name in ("scheduling", "runtime", "program")}
    shares["availability"] = mpg.availability
    known = [f"{name} {_percent(percent(value))}" for name, value in shares.items() if value is not None]
    if known:
        yield ", ".join(known) + ("; allocated time is from the logs" if mpg.allocated_from == "logs" else "")


def not_known(report: FleetReport) -> Iterator[str]:
    """What the fleet does not know of itself, and what would tell."""
    if report.unlogged:
        return
    coverage, mpg = report.coverage, report.mpg
    lacking = coverage.runs - coverage.known_runs
    if lacking:
        runs = "any run" if lacking == coverage.runs else f"{lacking} of {plural(coverage.runs, 'run')}"
        yield f"accelerators of {runs} (--labels, --allocations or --accelerators)"
    if mpg.scheduling is None:
        yield "scheduling goodput (--capacity)"
    if mpg.program is None:
        yield f"program goodput ({_IDEAL})"
    elif mpg.coverage is not None and mpg.coverage < LEAST_COVERAGE:
        known, least = _percent(percent(mpg.coverage)), percent_text(float(100 * LEAST_COVERAGE), 0)
        yield f"MPG: program goodput is known for {known} of the kept chip time, {least} are needed ({_IDEAL})"
    if mpg.availability is None and report.sums.known_time:
        yield "availability (lines of a queue, or --sacct)"


def section(
    report: FleetReport, heading: str, table: Table, rows: Sequence[Any], notes: tuple[str, ...] = (),
    without: tuple[str, ...] = (),
) -> Sheet:  # fmt: skip
    """Declared rows as a table, without what people would see nothing in."""
    columns = table.sheet_columns(without=(*without, *(_BY_TIME if report.sums.known_time else _BY_CHIPS)))
    return Sheet(heading, columns, table.of_rows(rows).cells(columns), notes=notes)


def runs_sheet(report: FleetReport, most: int | None = None) -> Sheet:
    """Every run in a row: what Parquet holds. most: only so many, those that lost most first."""
    if most is None:
        return section(report, "Runs", RUN_TABLE, report.runs)
    runs = runs_by_loss(report)
    left_out = (f"the {most} that lost most of {len(runs):,}; JSON and Parquet hold all",) if len(runs) > most else ()
    return section(report, "Runs", RUN_TABLE, runs[:most], left_out)


def doubts_of_runs(report: FleetReport) -> tuple[str, ...]:
    """A sentence for each of the first runs of which a doubt stands beside goodput."""
    doubted = [row for row in runs_by_loss(report) if row.doubts]
    more = len(doubted) - _MOST_DOUBTS
    rest = (f"there are doubts of {plural(more, 'more run')}: JSON has them (`doubts`)",) if more > 0 else ()
    return *(f"but {run_name(row)}: {'; '.join(row.doubts)}" for row in doubted[:_MOST_DOUBTS]), *rest


def runs_by_loss(report: FleetReport) -> list[RunLine]:
    """The runs in order of accelerator hours lost, then of time lost."""
    return sorted(report.runs, key=lambda row: (-(row.lost_hours or 0), row.goodput_ns - row.ns, row.job, row.run))


def _common_sections(report: FleetReport) -> Iterator[Sheet]:
    partial = [week.week for week in report.weeks if week.partial]
    weeks = (f"only a part of {', '.join(partial)} lies in the window",) if partial else ()
    yield section(report, WEEKS, WEEK_TABLE, [week for week in report.weeks if week.runs], weeks)
    if report.change is not None:
        yield section(report, CHANGES, CHANGE_TABLE, report.change.rows, (changed(report.change),))
    ends = ", ".join(report.grouping.failing)
    yield section(
        report, SIZES, SIZE_TABLE, report.sizes, (f"failures: {ends}; MTTF in job time, with its 95 % interval",)
    )
    if report.causes:
        words = "failures a thousand accelerator days up, with their 95 % interval; unknown: no line says why"
        notes = (words,) if report.hosts else (words, *_hosts_judged(report))
        yield section(report, CAUSES, CAUSE_TABLE, report.causes, notes)
    if report.hosts:
        yield section(report, HOSTS, HOST_TABLE, report.hosts, tuple(_hosts_judged(report)))
    if report.outages:
        rows = report.outages
        words = f"{duration(sum(row.lost_ns for row in rows))} in all: redone work, and what every link lost"
        yield section(report, OUTAGES, OUTAGE_LINK_TABLE, rows, (words, *several_note(rows)))
    if report.outage_groups:
        yield section(report, OUTAGE_GROUPS, OUTAGE_GROUP_TABLE, report.outage_groups)
    if report.disruptions:
        yield section(report, DISRUPTIONS, DISRUPTION_TABLE, report.disruptions)
    if report.allocations is not None:
        yield from held_sections(report.allocations)
    if report.not_analysed:
        reasons, rest = by_reason(report.not_analysed)
        yield section(report, LEFT_OUT, LEFT_OUT_TABLE, reasons, rest)


def _hosts_judged(report: FleetReport) -> Iterator[str]:
    return hosts_judged(report.hosts, report.hosts_not_named, report.host_test)


def changed(change: Change) -> str:
    """Goodput of which week moved by how much."""
    by_time = " by job time" if change.by_time else ""
    return (
        f"goodput{by_time} of {change.week} is {change.points:+.2f} points against {change.before}; the points of the "
        "categories add up to that, and so do those of the runs"
    )


def group_section(report: FleetReport, table: GroupTable) -> Sheet:
    """The groups of one --by as a table."""
    sheet = section(report, f"By {', '.join(table.dims)}", GROUP_TABLE, table.shown, without=_unknown(table.rows))
    group, *others = sheet.columns  # for people
    return replace(sheet, columns=(replace(group, name=" / ".join(table.dims)), *others))


def _unknown(rows: Sequence[GroupRow]) -> tuple[str, ...]:
    """Headings of what samples of accelerators say, where no group has any."""
    energy = () if any(row.kwh is not None for row in rows) else ("kWh", "kWh lost")
    return energy if any(row.idle_hours is not None for row in rows) else (*energy, "idle h")


def by_reason(rows: Sequence[NotAnalysed]) -> tuple[list[LeftOut], tuple[str, ...]]:
    """The reasons for which most is left out, and a sentence about the others."""
    names: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows:
        names[row.what, row.reason].append(row.name)
    ordered = sorted(names.items(), key=lambda item: (-len(item[1]), item[0]))
    shown = [
        LeftOut(what, len(some), reason, ", ".join(some[:_FEW]) + (", …" if len(some) > _FEW else ""))
        for (what, reason), some in ordered[:_MOST_REASONS]
    ]
    rest = sum(len(some) for _, some in ordered[_MOST_REASONS:])
    return shown, (f"and {rest} for other reasons; JSON lists each",) if rest else ()


def _percent(value: float | None) -> str:
    return NOT_RECORDED if value is None else percent_text(value)


def _published(report: FleetReport, thresholds: tuple[Threshold, ...]) -> Published:
    """Goodput, lost hours and failures, whole and by the first --by, and the gates."""
    total = report.total
    figures = {
        "window.start": iso(report.window.start_ns), "window.end": iso(report.window.end_ns),
        "runs": report.coverage.runs,
        "not_analysed": report.coverage.not_analysed, "goodput.percent": total.goodput_percent,
        "goodput.time_percent": total.time_goodput_percent, "lost_hours": total.lost_hours,
        "failures": report.sums.failures,
    }  # fmt: skip
    return Published(
        job="fleet",
        end_ns=report.window.end_ns,
        headline=title(report),
        said=tuple(summary(report)),
        properties=tuple((name, str(value)) for name, value in figures.items() if value is not None),
        thresholds=thresholds,
        diagnostics=report.diagnostics,
        families=tuple(_families(report)),
        verdict=tuple(headline(report)),
    )


def _families(report: FleetReport) -> Iterator[Family]:
    """The measures that are published, and what `metrics.py` has beside them."""
    groups: list[tuple[dict[str, str], Totals]] = [({}, Totals(report.sums, report.mpg))]
    groups += [(labels, Totals(sums, report.mpg)) for labels, sums in groups_of(report.groups)]
    for measure in (one for one in MEASURES.values() if one.metric is not None):
        samples: dict[tuple[str, ...], tuple[dict[str, str], str]] = {}
        for labels, totals in groups:
            value = measure.of(totals)
            if value is not None:
                value = value / 100 if measure.dimension == "ratio" else value
                samples.setdefault(tuple(map(safe, labels.values())), (labels, exact(float(value))))
        yield Family(measure.metric or "", measure.meaning, list(samples.values()))
    yield from outage_families(report.outages, report.recoveries)
    yield from metrics(report.sums, report.groups, report.causes, report.allocations)
