"""The tables of a fleet, for people and for CSV and Parquet: their titles, rows and notes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from goodput_cli.analysis.sheet import Sheet
from goodput_cli.analysis.table import TableDeclaration
from goodput_cli.fleet.answer import FleetData
from goodput_cli.fleet.held import allocation_sections
from goodput_cli.fleet.hosts import hosts_judged
from goodput_cli.fleet.phrases import changed, runs_by_loss
from goodput_cli.fleet.recovery import OUTAGE_GROUP_TABLE, OUTAGE_LINK_TABLE, several_note
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
    GroupRow,
    GroupTable,
    NotAnalysed,
    UncountedRun,
)
from goodput_cli.vocabulary.text import duration

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
    names: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows:
        names[row.what, row.reason].append(row.name)
    ordered = sorted(names.items(), key=lambda item: (-len(item[1]), item[0]))
    shown = [
        UncountedRun(what, len(some), reason, ", ".join(some[:_FEW]) + (", …" if len(some) > _FEW else ""))
        for (what, reason), some in ordered[:_MOST_REASONS]
    ]
    rest = sum(len(some) for _, some in ordered[_MOST_REASONS:])
    return shown, (f"and {rest} for other reasons (--format json lists each)",) if rest else ()
