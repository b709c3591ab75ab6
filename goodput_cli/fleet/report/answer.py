"""What `goodput fleet --format json` answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from goodput_cli.analysis.answer import Count, Instant, Part, Row, row_of
from goodput_cli.analysis.answers import Diagnostics
from goodput_cli.analysis.written import written
from goodput_cli.fleet.report.rows import (
    CATEGORY_TABLE,
    CHANGE_TABLE,
    DISRUPTION_TABLE,
    GROUP_TABLE,
    NOT_ANALYSED_TABLE,
    RUN_TABLE,
    SIZE_TABLE,
    WEEK_TABLE,
)
from goodput_cli.fleet.totals.ratios import hours, percent
from goodput_cli.vocabulary.text import iso

if TYPE_CHECKING:
    from goodput_cli.fleet.report.report import FleetReport

ChipTime = Annotated[str, Meta(pattern="^-?[0-9]+$", description="accelerators x ns, as decimal text")]


class FleetWindow(Part):
    """what the sums are of"""

    start: Instant
    """start"""
    end: Instant
    """end"""
    ns: Count
    """length in ns"""
    timezone: str
    """of weeks, and of times that name none"""


class FleetCoverage(Part):
    """over what the totals are"""

    documents: Count
    unreadable_documents: Count
    runs: Count
    """analysed, and in the window"""
    not_analysed: Count
    """documents, jobs and runs that are in no total"""
    outside: Count
    """runs that lie outside the window"""
    known_runs: Count
    """runs with known accelerators"""
    known_time_percent: float | None
    """share of the job time with known accelerators"""
    lost_sight_of: Count
    """runs that never ended, and of which nothing was heard for longer than --alive-within before --as-of"""
    allocations_without_logs: Count
    allocations_without_logs_hours: float
    """their accelerator hours"""
    assumed_chip_ns: ChipTime
    """of runs with allocations, chip time that no allocation covers"""


class FleetMpg(Part):
    """ML productivity goodput and its factors; null is not recorded"""

    scheduling_percent: float | None
    """allocated chip time / capacity"""
    runtime_percent: float | None
    """kept training / allocated chip time"""
    program_percent: float | None
    """ideal time of the kept steps / kept training, of the runs for which that is known"""
    program_coverage_percent: float | None
    """their share of the kept training"""
    mpg_percent: float | None
    """scheduling x runtime x program, over the same runs"""
    scheduling_runtime_percent: float | None
    runtime_program_percent: float | None
    """over the runs with program goodput"""
    availability_percent: float | None
    """allocated / (allocated + waiting) chip time"""
    allocated_chip_ns: ChipTime
    kept_chip_ns: ChipTime
    at_risk_chip_ns: ChipTime
    """kept training after the last save"""
    waiting_chip_ns: ChipTime
    allocated_from: Literal["logs", "allocations"]


class FleetGroups(Part):
    """the groups of one --by"""

    by: Sequence[str]
    rows: Sequence[Annotated[Row, row_of(GROUP_TABLE)]]


class FleetChange(Part):
    """what moved goodput from one week to the next, of the latest two with enough runs"""

    before: str
    """the earlier week"""
    week: str
    by_time: bool
    """whether every run counts by its time alone"""
    points: float
    rows: Sequence[Annotated[Row, row_of(CHANGE_TABLE)]]
    """categories, then runs; the points of each kind add up"""


@written("fleet_answer", "goodput fleet --format json", kind="fleet")
@dataclass(frozen=True, kw_only=True)
class FleetAnswer:
    """goodput fleet --format json"""

    complete: bool
    """whether every document could be read and every run analysed"""
    window: FleetWindow
    coverage: FleetCoverage
    totals: Annotated[Row, row_of(GROUP_TABLE)]
    """of all runs, as a group without values"""
    mpg: FleetMpg
    categories: Sequence[Annotated[Row, row_of(CATEGORY_TABLE)]]
    """productive first, then what took most; exclusions last"""
    weeks: Sequence[Annotated[Row, row_of(WEEK_TABLE)]]
    change: FleetChange | None
    sizes: Sequence[Annotated[Row, row_of(SIZE_TABLE)]]
    groups: Sequence[FleetGroups]
    """one a --by"""
    disruptions: Sequence[Annotated[Row, row_of(DISRUPTION_TABLE)]]
    """the most expensive first"""
    runs: Sequence[Annotated[Row, row_of(RUN_TABLE)]]
    """by job and number"""
    not_analysed: Sequence[Annotated[Row, row_of(NOT_ANALYSED_TABLE)]]
    method: Mapping[str, str]
    """options that count, as they are typed"""
    diagnostics: Diagnostics


def fleet_answer(report: FleetReport) -> FleetAnswer:
    """The report as JSON has it."""
    return FleetAnswer(
        complete=report.complete,
        window=FleetWindow(iso(report.start_ns), iso(report.end_ns), report.end_ns - report.start_ns, report.timezone),
        coverage=_coverage(report),
        totals=GROUP_TABLE.of_rows([report.total]).json()[0],
        mpg=_mpg(report),
        categories=CATEGORY_TABLE.of_rows(report.categories).json(),
        weeks=WEEK_TABLE.of_rows(report.weeks).json(),
        change=_change(report),
        sizes=SIZE_TABLE.of_rows(report.sizes).json(),
        groups=[FleetGroups(table.dims, list(GROUP_TABLE.of_rows(table.shown).json())) for table in report.groups],
        disruptions=DISRUPTION_TABLE.of_rows(report.disruptions).json(),
        runs=RUN_TABLE.of_rows(report.runs).json(),
        not_analysed=NOT_ANALYSED_TABLE.of_rows(report.not_analysed).json(),
        method=report.method,
        diagnostics=report.diagnostics,
    )


def _change(report: FleetReport) -> FleetChange | None:
    found = report.change
    if found is None:
        return None
    rows = list(CHANGE_TABLE.of_rows(found.rows).json())
    return FleetChange(found.before, found.week, found.by_time, found.points, rows)


def _coverage(report: FleetReport) -> FleetCoverage:
    found = report.coverage
    return FleetCoverage(
        documents=found.documents,
        unreadable_documents=found.unreadable,
        runs=found.runs,
        not_analysed=found.not_analysed,
        outside=found.outside,
        known_runs=found.known_runs,
        known_time_percent=percent(found.known_time),
        lost_sight_of=found.lost_sight_of,
        allocations_without_logs=found.unlogged,
        allocations_without_logs_hours=hours(found.unlogged_chip_ns),
        assumed_chip_ns=str(found.assumed_chip_ns),
    )


def _mpg(report: FleetReport) -> FleetMpg:
    mpg, sums = report.mpg, report.sums
    return FleetMpg(
        scheduling_percent=percent(mpg.scheduling),
        runtime_percent=percent(mpg.runtime),
        program_percent=percent(mpg.program),
        program_coverage_percent=percent(mpg.coverage),
        mpg_percent=percent(mpg.mpg),
        scheduling_runtime_percent=percent(mpg.scheduling_runtime),
        runtime_program_percent=percent(mpg.runtime_program),
        availability_percent=percent(sums.availability),
        allocated_chip_ns=str(sums.allocated),
        kept_chip_ns=str(sums.kept),
        at_risk_chip_ns=str(sums.at_risk),
        waiting_chip_ns=str(sums.waiting),
        allocated_from="logs" if report.allocated_from_logs else "allocations",
    )
