"""Accelerators allocated by a scheduler for the jobs of a fleet, and how long they waited: from its tables alone, with
or without logs. Without logs, goodput is unknown, and never 0.

Rows are those of `scheduler.py`. Everything is exact until it is shown: accelerators x ns, and waits by linear
interpolation between the two nearest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from goodput_cli.analysis.json_fields import Count, Json, written
from goodput_cli.analysis.sheet import Column, Sheet
from goodput_cli.analysis.table import column
from goodput_cli.arrays import group_by_key
from goodput_cli.fleet.rows import declared_table
from goodput_cli.fleet.scheduler import SACCT, SchedulerRow, SchedulerTotals, latest_of
from goodput_cli.fleet.sums import hours, percent, ratio
from goodput_cli.vocabulary.text import duration, plural, tenths
from goodput_cli.vocabulary.text import percent as percent_text

NOT_KNOWN = "unknown: no job has a training log (add their stdout)"
"""Goodput of a fleet without any log."""
_ORDER = ("account", "namespace", "partition", "queue", "user")
"""Default grouping of rows: the first of these that a table has."""
_NONE = "(none)"
MOST_STATES = 6
"""Number of end states on the first screen."""
_MOST_LISTED = 50
"""Number of jobs that people see."""


@dataclass(frozen=True)
class AllocationGroup:
    """Totals of rows of a scheduler: all of them, or those with one value of a dimension."""

    group: str = column("text", "the values of the dimensions, with ` / ` between them; `all`", heading="group")
    jobs: int = column("count", "jobs by their ids", heading="jobs")
    allocations: int = column("count", "number of allocations", heading="allocations")
    accelerator_hours: float | None = column(
        "number", "accelerators x allocated time; null if no row has the number of accelerators", heading="allocated h"
    )
    share_percent: float | None = column("percent", "share of the total", name="share", heading="share")
    wait_p50_ns: int | None = column("duration", "median wait", heading="p50 wait")
    wait_p95_ns: int | None = column("duration", "95th percentile of waits", heading="p95 wait")
    never_started: int = column("count", "jobs that requested resources but never started", heading="never started")
    requeued_jobs: int = column("count", "jobs that started more than once", heading="requeued")
    requeues: int = column("count", "how often")
    failed_hours: float | None = column(
        "number", "accelerator hours of allocations that did not complete", heading="not completed h"
    )
    failed_percent: float | None = column("percent", "their share of the group's", name="failed")
    node_hours: float | None = column(
        "number", "nodes x allocated time of rows without accelerators, in no other figure; null if there are none"
    )
    unlogged_hours: float | None = column(
        "number", "accelerator hours without a training log; null if no row has the number of accelerators",
        later=True,
    )  # fmt: skip


HELD_TABLE = declared_table(
    AllocationGroup, "fleet_held", "what a scheduler allocated to a group of jobs",
    "group", "allocated h", "share", "p50 wait", "p95 wait", "not completed h", "never started", "requeued",
    "allocations", "jobs",
)  # fmt: skip


@dataclass(frozen=True)
class AllocationState:
    """Allocated amounts by how the rows ended."""

    state: str = column("text", "the first word of the state, in lower case", heading="ended")
    rows: int = column("count", "rows of the tables, including jobs that never started", heading="rows")
    accelerator_hours: float | None = column("number", "accelerators x allocated time", heading="allocated h")


@dataclass(frozen=True)
class ScheduledJob:
    """One row of the tables."""

    job: str = column("text", "the job's name", heading="job")
    id: str = column("text", "the scheduler's job id; rows with the same id are the same job, requeued")
    group: str = column("text", "account, namespace, partition, queue or user: the first one in the tables",
                        heading="of")  # fmt: skip
    state: str = column("text", "the first word of the state, in lower case", heading="state")
    asked_ns: int | None = column("instant", "since when it could have started; null: unknown", heading="asked")
    waited_ns: int | None = column(
        "duration", "until it started, or for waiting jobs until the latest time in the tables; null: never started or "
        "unknown", heading="waited",
    )  # fmt: skip
    accelerator_hours: float | None = column(
        "number", "accelerators x allocated time; null if no row has the number of accelerators", heading="allocated h"
    )


JOB_TABLE = declared_table(
    ScheduledJob, "fleet_held_job", "one request of a job to a scheduler",
    "job", "state", "waited", "asked", "allocated h", "of",
)  # fmt: skip
STATE_TABLE = declared_table(
    AllocationState, "fleet_held_state", "allocations by state", "ended", "rows", "allocated h"
)


@written("fleet_held_groups", "what a scheduler allocated, by one --by", keys="dims rows")
@dataclass(frozen=True)
class AllocationGroups:
    """The groups of one --by."""

    dims: Annotated[tuple[str, ...], Json(key="by")]
    """dimension by which the rows are grouped"""
    rows: Annotated[tuple[AllocationGroup, ...], HELD_TABLE]
    """largest allocation first"""
    amounts: tuple[SchedulerTotals, ...] = ()
    """Totals of each row."""


@written(
    "fleet_allocations", "the contents of scheduler tables",
    keys="tables rows jobs jobs_with_log hours_with_log start_ns end_ns total states listed groups",
)  # fmt: skip
@dataclass(frozen=True)
class SchedulerSummary:
    """Summary of a scheduler's own tables for a fleet."""

    tables: Annotated[str, Json(key="rows_of")]
    """source of the rows: sacct, Kubernetes"""
    rows: Count
    """rows of the tables, steps of jobs left out"""
    jobs: Count
    """jobs by their ids"""
    jobs_with_log: Count
    """jobs that also have a training log"""
    hours_with_log: Annotated[float | None, Json(key="accelerator_hours_with_log")]
    """the accelerator hours of these"""
    start_ns: Annotated[int, Json("instant")]
    """first time in the tables"""
    end_ns: Annotated[int, Json("instant")]
    """latest time in the tables; running jobs count until then"""
    total: Annotated[AllocationGroup, HELD_TABLE]
    """of all rows"""
    amounts: SchedulerTotals
    """Totals of all rows."""
    states: Annotated[tuple[AllocationState, ...], STATE_TABLE]
    """by how they ended, largest allocation first"""
    listed: Annotated[tuple[ScheduledJob, ...], JOB_TABLE]
    """every row: still waiting first, then by the longest wait"""
    groups: tuple[AllocationGroups, ...]
    """one a --by; without any by account, namespace, partition, queue or user, the first that the tables have"""


def group_of(amounts: SchedulerTotals, name: str, whole: int, unlogged: int) -> AllocationGroup:
    """Return the totals of rows as reported. name: of the group. whole: chip time of all rows. unlogged: that of its
    own without a training log."""
    half, most = (None if wait is None else round(wait) for wait in (amounts.wait(50), amounts.wait(95)))
    return AllocationGroup(
        name, amounts.jobs, amounts.allocations, known_hours_of(amounts, amounts.chip_ns),
        percent(ratio(amounts.chip_ns, whole)), half, most, amounts.never_started, amounts.requeued_jobs,
        amounts.requeues, known_hours_of(amounts, amounts.failed_ns), percent(amounts.failed),
        hours(amounts.node_ns) if amounts.node_ns else None, known_hours_of(amounts, unlogged),
    )  # fmt: skip


def known_hours_of(amounts: SchedulerTotals, chip_ns: int) -> float | None:
    """Return accelerator hours; None if no row contains the number of accelerators."""
    return hours(chip_ns) if amounts.known else None


def scheduled(
    rows: Sequence[SchedulerRow], by: Sequence[tuple[str, ...]], texts_of: Callable[[SchedulerRow], Mapping[str, str]],
    has_log: Callable[[SchedulerRow], bool],
) -> SchedulerSummary | None:  # fmt: skip
    """Return the summary of rows; None without any. by: requested dimensions. texts_of: a row's values of them.
    has_log: True if the job of a row has a training log."""
    if not rows:
        return None
    latest = latest_of(rows)
    whole = SchedulerTotals(rows, latest)
    logged = SchedulerTotals([row for row in rows if has_log(row)], latest)
    unlogged = {id(row): row.chip_ns(latest) for row in rows} | {id(row): 0 for row in logged.rows}
    named = {id(row): texts_of(row) for row in rows}
    there = {name for texts in named.values() for name, text in texts.items() if text}
    asked = [dims for dims in by if there.intersection(dims)] or [(name,) for name in _ORDER if name in there][:1]
    return SchedulerSummary(
        tables=" and ".join(sorted({row.source for row in rows}, key=lambda name: name != SACCT)),
        rows=len(rows),
        jobs=whole.jobs,
        jobs_with_log=logged.jobs,
        hours_with_log=known_hours_of(whole, logged.chip_ns),
        start_ns=min(at for row in rows for at in row.times()),
        end_ns=latest,
        total=group_of(whole, "all", whole.chip_ns, whole.chip_ns - logged.chip_ns),
        amounts=whole,
        states=tuple(_states(rows, latest, whole)),
        listed=tuple(_listed(rows, asked[0] if asked else (), named, latest)),
        groups=tuple(_grouped(rows, dims, named, latest, whole.chip_ns, unlogged) for dims in dict.fromkeys(asked)),
    )


def _listed(
    rows: Sequence[SchedulerRow], dims: tuple[str, ...], named: Mapping[int, Mapping[str, str]], latest: int
) -> Iterator[ScheduledJob]:
    for row in sorted(rows, key=lambda one: (not one.is_waiting, -(one.waited_until(latest) or 0), one.id)):
        yield ScheduledJob(
            row.job, row.id, " / ".join(named[id(row)].get(dim) or _NONE for dim in dims), row.state.lower(),
            row.asked_ns, row.waited_until(latest),
            hours(row.chip_ns(latest)) if row.pieces else None,
        )  # fmt: skip


def _states(rows: Sequence[SchedulerRow], latest: int, whole: SchedulerTotals) -> Iterator[AllocationState]:
    chip, count = Counter[str](), Counter[str]()
    for row in rows:
        count[row.state.lower()] += 1
        chip[row.state.lower()] += row.chip_ns(latest)
    for state in sorted(count, key=lambda name: (-chip[name], name)):
        yield AllocationState(state, count[state], known_hours_of(whole, chip[state]))


def _grouped(
    rows: Sequence[SchedulerRow], dims: tuple[str, ...], named: Mapping[int, Mapping[str, str]], latest: int,
    whole: int, unlogged: Mapping[int, int],
) -> AllocationGroups:  # fmt: skip
    found = group_by_key((tuple(named[id(row)].get(dim) or _NONE for dim in dims), row) for row in rows)
    groups = [(" / ".join(values), SchedulerTotals(some, latest)) for values, some in found.items()]
    groups.sort(key=lambda one: (-one[1].chip_ns, one[0]))
    made = tuple(
        group_of(amounts, name, whole, sum(unlogged[id(row)] for row in amounts.rows)) for name, amounts in groups
    )
    return AllocationGroups(dims, made, tuple(amounts for _, amounts in groups))


def title_of(found: SchedulerSummary) -> str:
    """`Fleet: 5 jobs, 6 rows of sacct, 0 training logs`: of a fleet without any log."""
    rows = f"{found.rows:,} {'row' if found.rows == 1 else 'rows'} of {found.tables}"
    return f"Fleet: {plural(found.jobs, 'job')}, {rows}, 0 training logs"


def sentences(found: SchedulerSummary, most: int | None = None) -> Iterator[tuple[str, str]]:
    """Yield the allocated time, how it ended and how long it waited, each as a label and a value, the same everywhere.
    most: number of end states; None: all."""
    total = found.total
    yield "ALLOCATED", _allocated_text(total)
    if found.jobs_with_log == 0:
        yield "GOODPUT", NOT_KNOWN
    states = [one for one in found.states if one.accelerator_hours]
    if states:
        parts = [f"{one.state} {tenths(one.accelerator_hours or 0.0)} h" for one in states[:most]]
        rest = len(states) - len(parts)
        yield "ended", ", ".join(parts) + (f", and {rest} more" if rest > 0 else "")
    yield "waited", _waited(total)
    waiting = [row.waited_until(found.end_ns) for row in found.amounts.rows if row.is_waiting]
    if waiting:
        yield "waiting", _waiting(waiting)


def _allocated_text(total: AllocationGroup) -> str:
    if total.accelerator_hours is None and total.node_hours is None:
        amount = "unknown" if total.allocations else "nothing"
    elif total.accelerator_hours is None:
        amount = f"{tenths(total.node_hours or 0.0)} node h (accelerators unknown)"
    else:
        amount = f"{tenths(total.accelerator_hours)} accelerator h"
    apart = total.node_hours if total.accelerator_hours is not None else None
    nodes = f", plus {tenths(apart)} node h of rows without accelerators" if apart else ""
    never = f"; {plural(total.never_started, 'job')} never started" if total.never_started else ""
    return f"{amount} in {plural(total.allocations, 'allocation')}{nodes}{never}"


def _waited(total: AllocationGroup) -> str:
    if total.wait_p50_ns is None or total.wait_p95_ns is None:
        words = "unknown"
    else:
        words = f"p50 {duration(total.wait_p50_ns)}, p95 {duration(total.wait_p95_ns)}"
    if not total.requeued_jobs:
        return words
    times = {1: "once", 2: "twice"}.get(total.requeues, f"{total.requeues} times")
    return f"{words}; {plural(total.requeued_jobs, 'job')} requeued {times}"


def _waiting(waits: Sequence[int | None]) -> str:
    """Return how many jobs still wait, and for how long as far as the table shows."""
    count = plural(len(waits), "job")
    longest = max((one for one in waits if one), default=0)
    so_far = f"{duration(longest)} so far" if len(waits) == 1 else f"up to {duration(longest)} so far"
    return f"{count} ({so_far})" if longest else count


def without_log(found: SchedulerSummary) -> str | None:
    """Return the part of the allocated time without a training log; None if all has one."""
    known, whole = found.hours_with_log, found.total.accelerator_hours
    if known is None or not whole or known >= whole:
        return None
    if found.jobs_with_log == 0:
        return f"none of the {tenths(whole)} allocated accelerator h has a training log"
    share = percent_text(100 * (whole - known) / whole)
    of, rest = tenths(known), tenths(whole - known)
    return f"goodput covers the {of} accelerator h with a training log; {rest} h ({share}) have none"


def allocation_sections(found: SchedulerSummary) -> Iterator[Sheet]:
    """The tables: one a --by; of tables that have nothing to group by, one of all rows; and the jobs."""
    for table in found.groups or (AllocationGroups(("of",), (found.total,)),):
        columns = HELD_TABLE.sheet_columns(without=_empty(table.rows))
        cells = HELD_TABLE.of_rows(table.rows).cells(columns)
        head, *others = columns
        yield Sheet(f"Allocated, by {', '.join(table.dims)}", (_named_by(head, table.dims), *others), cells)
    known = found.total.accelerator_hours is not None
    hidden = [name for name, is_there in (("allocated h", known), ("of", found.groups)) if not is_there]
    columns = tuple(_named_by(one, found.groups[0].dims) if one.name == "of" else one
                    for one in JOB_TABLE.sheet_columns(without=tuple(hidden)))  # fmt: skip
    few, rows = found.listed[:_MOST_LISTED], len(found.listed)
    words = (
        (f"waiting jobs first, then the longest waits: {len(few)} of {rows:,} (--format json lists all)",)
        if rows > len(few)
        else ()
    )
    yield Sheet(
        "Jobs of the scheduler, longest wait first", columns, JOB_TABLE.of_rows(few).cells(columns), notes=words
    )


def _named_by(one: Column, dims: Sequence[str]) -> Column:
    return Column(**{**vars(one), "name": " / ".join(dims), "title": None})


def _empty(rows: Sequence[AllocationGroup]) -> tuple[str, ...]:
    """Headings of columns in which people would see nothing."""
    headings: dict[str, Callable[[AllocationGroup], Any]] = {
        "allocated h": lambda one: one.accelerator_hours, "share": lambda one: one.share_percent,
        "not completed h": lambda one: one.failed_hours, "never started": lambda one: one.never_started,
        "requeued": lambda one: one.requeued_jobs,
    }  # fmt: skip
    return tuple(name for name, of in headings.items() if not any(map(of, rows)))
