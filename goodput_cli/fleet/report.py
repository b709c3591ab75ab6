"""The answer about a fleet: its sheet, tables and metrics for every format, and its first screen on a terminal.

The first screen shows progress, the largest losses and their location in 24 lines of 80 columns. Everything else is
under `--full`. It adds no wording: words and figures are those of the report, of its page and of JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from goodput_cli.analysis.sheet import DisplayableAnswer, Family, Labels, PublishedAnswer, Sheet
from goodput_cli.analysis.table import TableDeclaration
from goodput_cli.analysis.threshold import Threshold
from goodput_cli.arrays import group_by_key
from goodput_cli.fleet.answer import FleetData
from goodput_cli.fleet.held import MOST_STATES, SchedulerSummary, allocation_sections, sentences
from goodput_cli.fleet.hosts import hosts_judged, hosts_that_repeat
from goodput_cli.fleet.phrases import (
    by_time,
    changed,
    device_usage_lines,
    headline,
    lost_words,
    runs_by_loss,
    summary,
    title,
    trend,
    warnings_line,
    warnings_of_runs,
)
from goodput_cli.fleet.recovery import OUTAGE_GROUP_TABLE, OUTAGE_LINK_TABLE, outage_families, several_note
from goodput_cli.fleet.rows import (
    CATEGORY_TABLE,
    CAUSE_TABLE,
    CHANGE_TABLE,
    DISRUPTION_TABLE,
    GROUP_TABLE,
    HOST_TABLE,
    LEFT_OUT_TABLE,
    RUN_TABLE,
    SIZE_TABLE,
    WEEK_TABLE,
    FleetCauseRow,
    GroupRow,
    GroupTable,
    NotAnalysed,
    UncountedRun,
    category_name,
)
from goodput_cli.fleet.scheduler import SchedulerRow, SchedulerTotals
from goodput_cli.fleet.sums import PRODUCTIVE, FleetTotals, LabelledCategory, Totals, hours, percent
from goodput_cli.fleet.thresholds import MEASURES
from goodput_cli.vocabulary.categories import Category, brief_name
from goodput_cli.vocabulary.text import clock, duration, exact, iso, plural, safe, tenths
from goodput_cli.vocabulary.text import percent as percent_text
from goodput_cli.vocabulary.when import NS_PER_SECOND

CATEGORIES, WEEKS, SIZES = "Time by category", "Weeks", "Sizes, in accelerators"
CAUSES, DISRUPTIONS, LEFT_OUT = "Failure causes", "Worst disruptions", "Not analyzed"
HOSTS = "Hosts with repeated failures"
OUTAGES, OUTAGE_GROUPS = "Outages by recovery phase", "Outages by cause, host and team"
CHANGES = "Change since the week before"
"""Titles of sections."""
_MOST_REASONS, _FEW = 10, 3
_BY_CHIPS = ("accelerator h", "share", "goodput", "lost h", "cost", "points", "accelerators")
_BY_TIME = ("job h", "share of job time", "goodput by job time")
"""Columns for people that appear only if accelerators are known, and only if they are unknown."""


def section(
    report: FleetData, heading: str, table: TableDeclaration, rows: Sequence[Any], notes: tuple[str, ...] = (),
    without: tuple[str, ...] = (),
) -> Sheet:  # fmt: skip
    """Declared rows as a table, without what people would see nothing in."""
    columns = table.sheet_columns(without=(*without, *(_BY_TIME if report.sums.known_time else _BY_CHIPS)))
    return Sheet(heading, columns, table.of_rows(rows).cells(columns), notes=notes)


def runs_sheet(report: FleetData, most: int | None = None) -> Sheet:
    """Return every run in a row, the contents of the Parquet file. most: number of runs, largest loss first."""
    if most is None:
        return section(report, "Runs", RUN_TABLE, report.runs)
    runs = runs_by_loss(report)
    left_out = (
        (f"the {most} of {len(runs):,} runs that lost most; JSON and Parquet have all",) if len(runs) > most else ()
    )
    return section(report, "Runs", RUN_TABLE, runs[:most], left_out)


def sections_of_runs(report: FleetData) -> Iterator[Sheet]:
    """Yield the first --by, if any; the categories, all other tables with rows, and the other --by."""
    groups = [group_section(report, table) for table in report.groups]
    yield from groups[:1]
    yield section(report, CATEGORIES, CATEGORY_TABLE, report.categories)
    yield from _common_sections(report)
    yield from groups[1:]


def sections_of_tables(report: FleetData) -> Iterator[Sheet]:
    """Yield the tables that come from a scheduler alone."""
    if report.allocations is not None:
        yield from allocation_sections(report.allocations)
    yield from _left_out(report)


def _common_sections(report: FleetData) -> Iterator[Sheet]:
    partial = [week.week for week in report.weeks if week.partial]
    weeks = (f"only part of {', '.join(partial)} is in the window",) if partial else ()
    yield section(report, WEEKS, WEEK_TABLE, [week for week in report.weeks if week.runs], weeks)
    if report.change is not None:
        yield section(report, CHANGES, CHANGE_TABLE, report.change.rows, (changed(report.change),))
    ends = ", ".join(report.grouping.failing)
    yield section(
        report, SIZES, SIZE_TABLE, report.sizes, (f"failures: {ends}; MTTF in job time, with its 95 % interval",)
    )
    if report.causes:
        words = "failures per 1000 accelerator days up, with their 95 % interval; unknown: the cause is not logged"
        notes = (words,) if report.hosts else (words, *_hosts_judged(report))
        yield section(report, CAUSES, CAUSE_TABLE, report.causes, notes)
    if report.hosts:
        yield section(report, HOSTS, HOST_TABLE, report.hosts, tuple(_hosts_judged(report)))
    if report.outages:
        rows = report.outages
        words = (
            f"{duration(sum(row.lost_ns for row in rows))} in total: redone work and the losses of every recovery phase"
        )
        yield section(report, OUTAGES, OUTAGE_LINK_TABLE, rows, (words, *several_note(rows)))
    if report.outage_groups:
        yield section(report, OUTAGE_GROUPS, OUTAGE_GROUP_TABLE, report.outage_groups)
    if report.disruptions:
        yield section(report, DISRUPTIONS, DISRUPTION_TABLE, report.disruptions)
    yield from sections_of_tables(report)


def _left_out(report: FleetData) -> Iterator[Sheet]:
    if report.not_analysed:
        reasons, rest = _by_reason(report.not_analysed)
        yield section(report, LEFT_OUT, LEFT_OUT_TABLE, reasons, rest)


def _hosts_judged(report: FleetData) -> Iterator[str]:
    return hosts_judged(report.hosts, report.hosts_not_named, report.host_test)


def group_section(report: FleetData, table: GroupTable) -> Sheet:
    """The groups of one --by as a table."""
    sheet = section(report, f"By {', '.join(table.dims)}", GROUP_TABLE, table.shown, without=_unknown(table.shown))
    group, *others = sheet.columns  # for people
    return replace(sheet, columns=(replace(group, name=" / ".join(table.dims)), *others))


def _unknown(rows: Sequence[GroupRow]) -> tuple[str, ...]:
    """Return headings of accelerator samples or scheduler tables that no group has."""
    energy = () if any(row.kwh is not None for row in rows) else ("kWh", "kWh lost")
    idle = () if any(row.idle_hours is not None for row in rows) else ("idle h",)
    return (*energy, *idle, *(() if any(row.unlogged_hours for row in rows) else ("no log h",)))


def _by_reason(rows: Sequence[NotAnalysed]) -> tuple[list[UncountedRun], tuple[str, ...]]:
    """The reasons for which most is left out, and a sentence about the others."""
    names = group_by_key(((row.what, row.reason), row.name) for row in rows)
    ordered = sorted(names.items(), key=lambda item: (-len(item[1]), item[0]))
    shown = [
        UncountedRun(what, len(some), reason, ", ".join(some[:_FEW]) + (", …" if len(some) > _FEW else ""))
        for (what, reason), some in ordered[:_MOST_REASONS]
    ]
    rest = sum(len(some) for _, some in ordered[_MOST_REASONS:])
    return shown, (f"and {rest} for other reasons (--format json lists each)",) if rest else ()


MOST_GROUPS = 200
"""Number of groups with their own samples; the others are merged."""
OTHER = "other"
_QUANTILES = (50, 95)
Sample = tuple[Labels, float]


def metrics(report: FleetData) -> Iterator[Family]:
    """The families, those without a sample left out."""
    groups, causes, held = [({}, report.sums), *_groups_of(report.groups)], report.causes, report.allocations
    yield from _measures([(labels, Totals(sums, report.mpg)) for labels, sums in groups])
    yield from outage_families(report.outages, report.recoveries)
    families: list[tuple[str, str, Iterable[Sample]]] = [
        ("time_seconds", "Time of all runs by category, each run counted once.", _times(groups)),
        ("accelerator_hours", "Accelerators x time by category.", _chips(groups)),
        ("runs", "Runs with time in the window.", _runs(groups)),
        ("failures_by_cause", "Failures by cause.", _causes(causes)),
        (
            "cause_lost_hours",
            "Hours that failures lost, by cause: accelerator hours, or job hours if accelerators are unknown.",
            _lost(causes),
        ),
        ("cost", "Cost of allocated time without progress, by currency.", _costs(groups)),
        ("cost_by_category", "The cost by category, adding up to goodput_fleet_cost.", _costs_by_category(groups)),
        ("wait_seconds", "Queue waits in scheduler tables.", _waits(held)),
        ("held_hours", "Allocated accelerator hours, by state.", _allocation_samples(held)),
    ]
    for name, meaning, samples in families:
        found = [(labels, exact(value)) for labels, value in samples]
        if found:
            yield Family(f"goodput_fleet_{name}", meaning, found)


def _measures(groups: Sequence[tuple[Labels, Totals]]) -> Iterator[Family]:
    """Yield the measures that gates also judge, of the whole and of each group."""
    for measure in (one for one in MEASURES.values() if one.metric is not None):
        samples: dict[tuple[str, ...], tuple[dict[str, str], str]] = {}
        for labels, totals in groups:
            value = measure.of(totals)
            if value is not None:
                value = value / 100 if measure.dimension == "ratio" else value
                samples.setdefault(tuple(map(safe, labels.values())), (labels, exact(float(value))))
        yield Family(measure.metric or "", measure.meaning, list(samples.values()))


def _groups_of(tables: Sequence[GroupTable]) -> list[tuple[Labels, FleetTotals]]:
    """The groups of the first --by, what lost most first; groups that look the same once they are safe are one."""
    found: dict[tuple[str, ...], tuple[Labels, FleetTotals]] = {}
    for table in tables[:1]:
        names = [re.sub(r"\W", "_", dim, flags=re.ASCII) for dim in table.dims]
        for place, (row, totals) in enumerate(zip(table.rows, table.totals, strict=True)):
            values = row.values if place < MOST_GROUPS else [OTHER] * len(names)
            key = tuple(map(safe, values))
            if key not in found:
                found[key] = (dict(zip(names, values, strict=True)), FleetTotals())
            found[key][1].add(totals.sums)
    return list(found.values())


def _times(groups: Sequence[tuple[Labels, FleetTotals]]) -> Iterator[Sample]:
    for labels, sums in groups:
        for name, ns in _by_category(sums.time).items():
            yield {**labels, "category": name}, float(Fraction(ns, NS_PER_SECOND))


def _chips(groups: Sequence[tuple[Labels, FleetTotals]]) -> Iterator[Sample]:
    for labels, sums in groups:
        for name, ns in _by_category(sums.chip).items() if sums.known_time else ():
            yield {**labels, "category": name}, hours(ns)


def _by_category(amounts: Counter[LabelledCategory]) -> Counter[str]:
    """Return amounts by the name of the category, labels of custom events together: a label may be anything, and series
    are few."""
    found: Counter[str] = Counter()
    for key, ns in amounts.items():
        found[category_name(key).partition(":")[0]] += ns
    return found


def _runs(groups: Sequence[tuple[Labels, FleetTotals]]) -> Iterator[Sample]:
    return ((labels, float(sums.runs)) for labels, sums in groups if sums.runs)


def _causes(causes: Sequence[FleetCauseRow]) -> Iterator[Sample]:
    return (({"cause": one.cause}, float(one.failures)) for one in causes)


def _lost(causes: Sequence[FleetCauseRow]) -> Iterator[Sample]:
    """Yield losses in accelerator hours if those of all runs are known, otherwise in job hours: `of` names the unit."""
    for one in causes:
        if one.accelerator_hours is None:
            yield {"cause": one.cause, "of": "job"}, hours(one.lost_ns)
        else:
            yield {"cause": one.cause, "of": "accelerator"}, one.accelerator_hours


def _costs(groups: Sequence[tuple[Labels, FleetTotals]]) -> Iterator[Sample]:
    for labels, sums in groups:
        for currency, amount in sorted(sums.money.items()) if sums.priced_runs else ():
            yield {**labels, "currency": currency}, float(amount)


def _costs_by_category(groups: Sequence[tuple[Labels, FleetTotals]]) -> Iterator[Sample]:
    """Yield costs as a separate family: with one more label in the other, a sum over it would count
    everything twice."""
    for labels, sums in groups:
        for (currency, category), amount in sorted(sums.costs.items()):
            if amount:
                yield {**labels, "category": category.id, "currency": currency}, float(amount)


def _waits(held: SchedulerSummary | None) -> Iterator[Sample]:
    for labels, amounts in _allocation_groups(held):
        for percentile in _QUANTILES:
            wait = amounts.wait(percentile)
            if wait is not None:
                yield {**labels, "quantile": f"{percentile / 100:g}"}, float(wait / NS_PER_SECOND)


def _allocation_samples(held: SchedulerSummary | None) -> Iterator[Sample]:
    if held is not None:
        for one in held.states:
            if one.accelerator_hours is not None:
                yield {"state": one.state}, one.accelerator_hours


def _allocation_groups(held: SchedulerSummary | None) -> Iterator[tuple[Labels, SchedulerTotals]]:
    """Yield the whole, and its groups; those beyond the first are merged."""
    if held is None:
        return
    yield {}, held.amounts
    found: dict[str, list[SchedulerRow]] = {}
    for table in held.groups[:1]:
        name = "_".join(re.sub(r"\W", "_", dim, flags=re.ASCII) for dim in table.dims)
        for place, (row, amounts) in enumerate(zip(table.rows, table.amounts, strict=True)):
            found.setdefault(safe(row.group) if place < MOST_GROUPS else OTHER, []).extend(amounts.rows)
        yield from (({name: group}, SchedulerTotals(rows, held.end_ns)) for group, rows in found.items())


@dataclass(frozen=True, repr=False)
class FleetReport(FleetData, DisplayableAnswer):
    """The answer about a fleet."""

    def sheet(self) -> Sheet:
        return fleet_sheet(self)

    def rows_sheet(self) -> Sheet:
        return runs_sheet(self)


@dataclass(frozen=True)
class FleetSheet(Sheet):
    """A sheet with the report that it was made from, for formats that show more."""

    report: FleetData | None = None

    def tables(self) -> tuple[Sheet, ...]:
        """Itself, and every run."""
        return (self,) if self.report is None else (self, runs_sheet(self.report))


def fleet_sheet(report: FleetData, thresholds: tuple[Threshold, ...] = ()) -> FleetSheet:
    """Return the sheet with the first --by as the table, or the categories; the others below. For a fleet without a
    training log: allocations and waits of jobs."""
    main, *others = sections_of_tables(report) if report.unlogged else sections_of_runs(report)
    return FleetSheet(
        title=title(report),
        columns=main.columns,
        rows=main.rows,
        answer=lambda: report,
        summary=tuple(summary(report)),
        sections=(*others, *_warnings(report)),
        published=lambda: _published(report, thresholds),
        report=report,
    )


def _warnings(report: FleetData) -> Iterator[Sheet]:
    """Yield the warnings of runs, if there are any."""
    if warnings := warnings_of_runs(report):
        yield Sheet("Warnings", (), (), summary=warnings)


def _published(report: FleetData, thresholds: tuple[Threshold, ...]) -> PublishedAnswer:
    """Goodput, lost hours and failures, whole and by the first --by, and the gates."""
    total = report.total
    figures = {
        "window.start": iso(report.window.start_ns), "window.end": iso(report.window.end_ns),
        "runs": report.coverage.runs,
        "not_analysed": report.coverage.not_analysed, "goodput.percent": total.goodput_percent,
        "goodput.time_percent": total.time_goodput_percent, "lost_hours": total.lost_hours,
        "failures": report.sums.failures,
    }  # fmt: skip
    return PublishedAnswer(
        job="fleet",
        end_ns=report.window.end_ns,
        headline=title(report),
        said=tuple(summary(report)),
        properties=tuple((name, str(value)) for name, value in figures.items() if value is not None),
        thresholds=thresholds,
        diagnostics=report.diagnostics,
        families=tuple(metrics(report)),
        verdict=tuple(headline(report)),
    )


_MOST_ROWS, _MOST_LOSSES = 6, 3
_REST = "more: --full (weeks, sizes, causes, hosts, disruptions), -o site/ (a page for each run)"
_REST_UNLOGGED = "more: -o fleet.html shows every column"


def first_screen(sheet: FleetSheet) -> Sheet:
    """The first screen of a fleet. sheet: the whole, whose gates and answer it keeps."""
    report = sheet.report
    assert report is not None
    table, left = _table(report)
    short = replace(
        sheet, title=_title(report), columns=table.columns, rows=table.rows, summary=tuple(_lines(report)),
        sections=(), notes=(*([left] if left else []), _REST_UNLOGGED if report.unlogged else _REST),
    )  # fmt: skip
    return replace(short, report=None)


def _title(report: FleetData) -> str:
    if report.unlogged:
        return title(report)
    jobs = len({one.job for one in report.runs})
    (first, _), (last, _) = clock(report.window.start_ns), clock(report.window.end_ns - 1)
    runs = plural(len(report.runs), "run")
    what = runs if jobs == len(report.runs) else f"{runs} of {plural(jobs, 'job')}"
    return f"Fleet: {what}, {first} - {last} ({plural(len(report.weeks), 'week')})"


def _lines(report: FleetData) -> Iterator[str]:
    if report.unlogged and report.allocations is not None:
        yield from (f"{name:<10} {words}" for name, words in sentences(report.allocations, MOST_STATES))
        return
    timed, total = by_time(report), report.total
    share = total.time_goodput_percent if timed else total.goodput_percent
    weighed = "by job time (to weigh by size: --labels or --accelerators)" if timed else "by chip time"
    yield f"GOODPUT  {'not recorded' if share is None else percent_text(share)}{trend(report)} {weighed}"
    yield f"LOST     {lost_words(report, by_time=timed)}"
    yield from _losses(report, timed=timed)
    if report.allocations is not None:
        yield from (
            f"{name:<8} {words}" for name, words in sentences(report.allocations) if name in ("waited", "waiting")
        )
    yield from device_usage_lines(report)
    yield from list(hosts_that_repeat(report.hosts, report.host_test))[:1]
    if (warnings := warnings_line(report)) is not None:
        yield f"{warnings} (--full lists them)"
    if report.not_analysed:
        yield f"{len(report.not_analysed):,} documents, jobs or runs are not in the totals (--full lists the reasons)"


def _losses(report: FleetData, *, timed: bool) -> Iterator[str]:
    """The categories that took most, a line each."""
    sums = report.sums
    source = sums.time if timed else sums.chip
    lost = sum(ns for (kind, _), ns in source.items() if kind not in (Category.PRODUCTIVE, Category.EXCLUDED))
    found = [(ns, category_name(key)) for key, ns in source.items() if key != PRODUCTIVE and ns > 0
             and key[0] is not Category.EXCLUDED]  # fmt: skip
    if len(found) < 2:
        return  # the line above already contains it
    for ns, name in sorted(found, key=lambda one: (-one[0], one[1]))[:_MOST_LOSSES]:
        yield f"{tenths(hours(ns)):>10} h  {percent_text(percent(Fraction(ns, lost)) or 0.0):>8}  {brief_name(name)}"


def _table(report: FleetData) -> tuple[Sheet, str]:
    """The first --by, else the latest weeks; and how many rows it leaves out, in words."""
    if report.unlogged and report.allocations is not None:
        table = next(iter(allocation_sections(report.allocations)))
    elif report.groups:
        table = group_section(report, report.groups[0])
    else:
        weeks = [week for week in report.weeks if week.runs]
        table = section(report, WEEKS, WEEK_TABLE, weeks[-_MOST_ROWS:])
        earlier = len(weeks) - len(table.rows)
        return table, f"{plural(earlier, 'earlier week')} (--full)" if earlier else ""
    more = len(table.rows) - _MOST_ROWS
    return replace(
        table, rows=list(table.rows)[:_MOST_ROWS]
    ), f"{plural(more, 'more row')} (--full)" if more > 0 else ""
