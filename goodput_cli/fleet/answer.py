"""Answer of `goodput fleet`, as data: each field once, with the description for the JSON schema."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

from goodput_cli.analysis.analysis_data import Diagnostics
from goodput_cli.analysis.json_fields import Bounds, Count, Instant, Json, written
from goodput_cli.analysis.results import Recoveries
from goodput_cli.fleet.held import SchedulerSummary
from goodput_cli.fleet.hosts import HostTest
from goodput_cli.fleet.question import Grouping
from goodput_cli.fleet.recovery import OUTAGE_GROUP_TABLE, OUTAGE_LINK_TABLE, FleetPhaseRow, OutageGroupRow
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
    DisruptionRow,
    FleetCategoryRow,
    FleetCauseRow,
    FleetChange,
    FleetHostRow,
    GroupRow,
    GroupTable,
    NotAnalysed,
    RunLine,
    SizeRow,
    WeekRow,
)
from goodput_cli.fleet.scheduler import SchedulerTotals
from goodput_cli.fleet.sums import FleetTotals, Mpg, hours

ChipTime = Annotated[int, Json(made=str, kind=str), Bounds(pattern="^-?[0-9]+$")]
"""Accelerators x ns, which JSON has as decimal text."""


@written("fleet_window", "the period that the sums cover", keys="start_ns end_ns ns timezone")
@dataclass(frozen=True)
class FleetWindow:
    """Time that the sums cover."""

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


@written("fleet_coverage", "what the totals cover")
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
    """runs without an end and without events for longer than --alive-within before --as-of"""
    unlogged: Annotated[Count, Json(key="allocations_without_logs")]
    """allocations that fit no run"""
    unlogged_chip_ns: Annotated[int, Json(key="allocations_without_logs_hours", made=hours, kind=float)]
    """their accelerator hours"""
    assumed_chip_ns: ChipTime
    """of runs with allocations, chip time that no allocation covers"""
    powered_runs: Annotated[int | None, Json(key="runs_with_energy", optional=True)] = None
    """runs with samples of power; omitted if there are none"""
    watched_runs: Annotated[int | None, Json(key="runs_with_idle_hours", optional=True)] = None
    """runs with samples of accelerator utilization in training; omitted if there are none"""
    accelerators_logged: Annotated[int | None, Json(key="runs_with_logged_accelerators", optional=True)] = None
    """runs whose accelerators are known only from their logs; omitted if there are none"""
    program_logged: Annotated[int | None, Json(key="runs_with_logged_flops", optional=True)] = None
    """runs whose ideal step time comes from their logs; omitted if there are none"""

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
    """source of the allocated amount"""


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
class FleetData:
    """The data of a `FleetReport`."""

    complete: bool
    """whether every document could be read and every run analysed"""
    window: FleetWindow
    """from when to when"""
    coverage: Coverage
    """what is in the totals, and what is not"""
    grouping: Grouping
    """Grouping of runs, and the options about them."""
    sums: FleetTotals
    """Amounts of the whole fleet."""
    total: Annotated[GroupRow, GROUP_TABLE, Json(key="totals")]
    """of all runs, as a group without values"""
    mpg: FleetMpg
    """ML productivity goodput and its factors"""
    categories: Annotated[tuple[FleetCategoryRow, ...], CATEGORY_TABLE]
    """productive first, then what took most; exclusions last"""
    weeks: Annotated[tuple[WeekRow, ...], WEEK_TABLE]
    """in order, those without a run too"""
    week_sums: tuple[FleetTotals, ...]
    """Amounts of each week."""
    change: FleetChange | None
    """changes that moved goodput from one week to the next"""
    sizes: Annotated[tuple[SizeRow, ...], SIZE_TABLE]
    """by the largest number of accelerators of a run"""
    size_sums: dict[str, FleetTotals]
    """Amounts of each size."""
    groups: tuple[GroupTable, ...]
    """one a --by"""
    causes: Annotated[tuple[FleetCauseRow, ...], CAUSE_TABLE]
    """failures by cause; empty if no cause is logged"""
    hosts: Annotated[tuple[FleetHostRow, ...], HOST_TABLE]
    """hosts on which more runs failed than chance explains; empty also if that is unknown"""
    hosts_not_named: Annotated[tuple[FleetHostRow, ...], HOST_TABLE, Json(optional=True)]
    """hosts on which two runs or more died, and chance or code at rank 0 may explain it: the least likely"""
    host_test: HostTest
    """data of the search for these hosts"""
    disruptions: Annotated[tuple[DisruptionRow, ...], DISRUPTION_TABLE]
    """the most expensive first"""
    outages: Annotated[tuple[FleetPhaseRow, ...], OUTAGE_LINK_TABLE, Json(optional=True)]
    """where the outages went, link by link, in their order; together what disruptions lost"""
    outage_groups: Annotated[tuple[OutageGroupRow, ...], OUTAGE_GROUP_TABLE, Json(optional=True)]
    """the same by cause, host and team"""
    recoveries: Annotated[Recoveries | None, Json(optional=True)]
    """how long it took to notice and to recover; left out where nothing was disrupted"""
    runs: Annotated[tuple[RunLine, ...], RUN_TABLE]
    """by job and number"""
    not_analysed: Annotated[tuple[NotAnalysed, ...], NOT_ANALYSED_TABLE]
    """what is in no total, and why"""
    allocations: Annotated[SchedulerSummary | None, Json(optional=True)]
    """summary of the scheduler's tables, with or without job logs; omitted without such a table"""
    method: dict[str, str]
    """options that count, as they are typed"""
    diagnostics: Diagnostics
    """problems in the logs"""

    @property
    def unlogged(self) -> bool:
        """Return True if the fleet appears only in a scheduler's tables: no job of it has a training log."""
        return not self.runs and self.allocations is not None

    @property
    def held(self) -> SchedulerTotals | None:
        """Return the totals of a scheduler's tables; None without one."""
        return None if self.allocations is None else self.allocations.amounts
