"""The step breakdown, as tables, sentences and metrics, and as a part of a JSON answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

from goodput_cli.analysis.analysis_data import AnalysisData
from goodput_cli.analysis.capability import By
from goodput_cli.analysis.json_fields import Amount, Count, Json, written
from goodput_cli.analysis.kept_work.sheet import Eta, eta_of
from goodput_cli.analysis.kept_work.work import KeptWork, work_of
from goodput_cli.analysis.sheet import Column, Family, Labels, Sheet
from goodput_cli.analysis.step_breakdown.breakdown import (
    HOSTS,
    LEAST_PERCENT,
    OF_A_HOST,
    PHASES,
    RANKS,
    PhaseRow,
    RankRow,
    StepBreakdown,
    StepHostRow,
    data_in_ledger,
    delay_text,
    inside_of,
    may_be_slow,
    mostly_data,
    row_name,
    share_of,
    slow_ranks,
    waited,
)
from goodput_cli.analysis.table import table_rows
from goodput_cli.vocabulary.text import duration, percent, plural, safe, seconds_text

if TYPE_CHECKING:
    from goodput_cli.analysis.analysis_data import AnalysisData


TITLE = "Step breakdown"
_MOST_ROWS = 20
_MOST_MISSING = 10


def inside_sheets(analysis: AnalysisData, by: By = "phase") -> Iterator[Sheet]:
    """The tables of what filled steps: one for each program of the job."""
    for one in analysis.part(inside_of):
        title = f"{TITLE}{f' of {one.program}' if one.program and len(analysis.part(inside_of)) > 1 else ''}"
        columns, rows, told = _rows(one, by)
        cells = table_rows(columns, len(rows), partial(iter, [rows]))
        yield Sheet(title, columns, cells, summary=tuple(_summary(one)), notes=(*told, *_notes(one)))


def _rows(one: StepBreakdown, by: By) -> tuple[tuple[Column, ...], Sequence[object], tuple[str, ...]]:
    """The columns and rows of a table, and what it does not have."""
    if (by == "rank" and one.ranks) or (by == "host" and one.hosts):
        table, rows = (RANKS, one.ranks) if by == "rank" else (HOSTS, one.hosts)
        left = len(rows) - _MOST_ROWS
        more = (f"{left} more {by}s (--format json lists all)",) if left > 0 else ()
        return table.people_columns(), rows[:_MOST_ROWS], more
    columns = PHASES.people_columns(without=() if one.ranks else ("mean", "median"))
    return columns, list(map(_shown, one.phases)), (f"times by {by} are not logged",) if by in ("rank", "host") else ()


def _shown(row: PhaseRow) -> PhaseRow:
    """Return a phase as people read it: names from the log are indented below it."""
    if row.logged is None:
        return row
    return PhaseRow(f"  {row.logged}", row.logged, row.kind, row.slowest_ns, row.mean_ns, row.median_ns, row.percent)


def _summary(one: StepBreakdown) -> Iterator[str]:
    whose = (
        f"times of {plural(one.ranks_logged, 'rank')}"
        if one.ranks_logged
        else "times of the whole job; ranks are not logged"
    )
    if one.net_step_ns is None:
        yield f"{plural(one.steps, 'kept step')}; step times are not logged; {whose}"
    else:
        yield (
            f"net step time {duration(one.net_step_ns)} ({plural(one.steps, 'kept step')}, without checkpoints and "
            f"evaluations; {whose}). It counts as goodput"
        )
    if one.first_step_ns:
        yield f"excluded: the first step of each attempt, which compiles ({duration(one.first_step_ns)})"


def _notes(one: StepBreakdown) -> Iterator[str]:
    yield from _slow_notes(one)
    if one.ranks and any(row.kind == "mixed" for row in one.phases):
        yield (
            "mixed phases include waiting for other ranks. Times are host times: a slow device shows up where other "
            "ranks wait for it"
        )
    if one.at_least:
        yield "times are means over several steps, so the slowest rank of each step took at least this long"
    if one.missing_ranks:
        yield _missing_text(one.missing_ranks)
    if one.untimed:
        yield f"excluded because their length is not logged: {plural(round(one.untimed, 3), 'kept step')}"
    if one.net_step_ns is not None and any(row.percent is None and row.kind != "in the ledger" for row in one.phases):
        yield "a phase is longer than all of its steps, so its share is unknown"
    if one.overlaps:
        yield f"phases overlap: they add up to {duration(one.overlap_ns)} more than their steps. Nothing is scaled"


def _slow_notes(one: StepBreakdown) -> Iterator[str]:
    """Yield the ranks and hosts that held up others, or may have."""
    yield from (f"{delay_text(one, [row])}: its own work took longest" for row in slow_ranks(one))
    worst = one.ranks[0].cost_ns or 0 if one.ranks else 0
    for host in one.hosts[:1]:
        if host.cost_ns and host.cost_ns > OF_A_HOST * worst and may_be_slow(one.host_habit, host.host):
            yield f"{delay_text(one, [host])}: all of its ranks together"
    for row in one.ranks:
        if row.likely_ns:
            yield (
                f"{row_name(row)} may delay others by {duration(row.likely_ns)}: it is slower than the median rank in "
                "one phase that may include waiting, and faster in another"
            )


def _missing_text(missing: Sequence[int]) -> str:
    ranks, more = ", ".join(map(str, missing[:_MOST_MISSING])), len(missing) - _MOST_MISSING
    return f"times of ranks {ranks}{f' and {more} more' if more > 0 else ''} are not logged (unknown, not 0)"


def inside_line(analysis: AnalysisData) -> str | None:
    """The largest of what steps waited for, in a sentence; None where it is less than a tenth of the step time."""
    in_ledger = data_in_ledger(analysis) if analysis.part(inside_of) else 0
    found = [said for one in analysis.part(inside_of) for said in _waits(one, in_ledger)]
    found = [one for one in found if one[0] >= LEAST_PERCENT]
    return f"{max(found)[1]} (counts as goodput)" if found else None


def _waits(one: StepBreakdown, in_ledger: int) -> Iterator[tuple[float, str]]:
    """Share of the net step time, and what it was. in_ledger: loading of data (ns) that is badput."""
    if not one.net_step_ns:
        return
    slow = slow_ranks(one)
    cost = sum(row.cost_ns or 0 for row in slow)
    loading = max((row.slowest_ns - in_ledger for row in one.phases if row.phase == "data"), default=0)
    data = share_of(loading, one.net_step_ns)
    if data is not None and data > 0:
        whose = ""
        if slow and all(map(mostly_data, slow)):
            whose = f" ({', '.join(map(row_name, slow))}: {'at least' if one.at_least else 'up to'} {duration(cost)})"
        yield data, f"{waited(data, 'data', one.least)}{whose}"
    share = share_of(cost, one.net_step_ns)
    if slow and share is not None:
        yield (
            share,
            f"{', '.join(map(row_name, slow))} delayed all others by {one.least}{percent(share)} of step time",
        )
    wait = one.phase("wait")
    if wait is not None and wait.percent:
        samples = any(row.kind == "rl" for row in one.phases)
        idle = f"{percent(wait.percent)} of step time was spent waiting, according to the log"
        yield wait.percent, waited(wait.percent, "samples") if samples else idle


@written(
    "inside",
    "step breakdown of the kept steps of the window, and how much work they were; it counts as goodput and does not "
    "change any figure of the ledger",
)
@dataclass(frozen=True, kw_only=True)
class InsideAnswer:
    """Step breakdown of the program of the job with the most step time, and of others; and the amount of work."""

    program: str
    """trainer, generator and the like, as the log names it; empty where there is one"""
    steps: Amount
    """kept steps that are counted, without the first of each attempt"""
    net_step_ns: Annotated[int | None, Json("seconds")]
    """time of these steps, without time that has a category; null if not logged"""
    ranks_logged: Count
    """ranks whose times are logged"""
    phases: Annotated[Sequence[PhaseRow], PHASES]
    """the longest first"""
    ranks: Annotated[Sequence[RankRow], RANKS]
    """by cost, then by data; empty where no times of ranks are logged"""
    hosts: Annotated[Sequence[StepHostRow], HOSTS]
    """by cost"""
    programs: Sequence[StepBreakdown]
    """every program of the job, with the same and more of each; their times are never added up"""
    work: Annotated[KeptWork | None, Json(optional=True)] = None
    """amount of work of the kept steps; omitted if unknown"""
    eta: Annotated[Eta | None, Json(optional=True)] = None
    """estimated end of the job; omitted if its last step is unknown"""


_NO_PROGRAM = StepBreakdown(
    program="", ranks_logged=0, missing_ranks=(), steps=0.0, net_step_ns=None, first_step_ns=0, overlap_ns=0, phases=()
)


def inside_answer(analysis: AnalysisData) -> InsideAnswer | None:
    """The part of an answer; None where neither phases nor work were logged."""
    work, eta = analysis.part(work_of), analysis.part(eta_of)
    if not analysis.part(inside_of) and work is None and eta is None:
        return None
    one = next(iter(analysis.part(inside_of)), _NO_PROGRAM)
    return InsideAnswer(
        program=one.program, steps=one.steps, net_step_ns=one.net_step_ns, ranks_logged=one.ranks_logged,
        phases=one.phases, ranks=one.ranks, hosts=one.hosts, programs=analysis.part(inside_of), work=work, eta=eta,
    )  # fmt: skip


def breakdown_families(analysis: AnalysisData) -> Iterator[Family]:
    """Yield the step breakdown of the program with the most step time."""
    inside = next(iter(analysis.part(inside_of)), None)
    phases = [] if inside is None else [*_phases(inside)]
    yield Family("goodput_step_phase_seconds", "Time inside kept steps by phase.", phases)
    slow = () if inside is None else slow_ranks(inside)
    ranks: list[tuple[Labels, str]] = [
        ({"rank": str(row.rank), "host": safe(row.host or "")}, seconds_text(row.cost_ns or 0)) for row in slow
    ]
    yield Family("goodput_slow_rank_seconds", "Time that all other ranks waited for the slowest rank.", ranks)


def _phases(inside: StepBreakdown) -> Iterator[tuple[Labels, str]]:
    """Yield each phase once: the phases inside another one replace it."""
    whole = {row.phase for row in inside.phases if row.logged is None}
    sums: dict[tuple[str, str], int] = {}
    for row in inside.phases:
        if row.logged is None or row.phase not in whole:
            for statistic, ns in (("slowest", row.slowest_ns), ("mean", row.mean_ns), ("median", row.median_ns)):
                if ns is not None:
                    key = safe(row.phase), statistic
                    sums[key] = sums.get(key, 0) + ns
    yield from (({"phase": phase, "statistic": one}, seconds_text(ns)) for (phase, one), ns in sums.items())
