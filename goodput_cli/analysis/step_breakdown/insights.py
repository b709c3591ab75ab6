"""Insights from step breakdowns: waiting for data, a rank or host that delays all others, a trainer that waits for
samples (docs/inside-steps.md). All of it counts as goodput."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from goodput_cli.analysis.insights.kinds import Candidate
from goodput_cli.analysis.step_breakdown.breakdown import (
    LEAST_PERCENT,
    OF_A_HOST,
    RankRow,
    StepBreakdown,
    StepHostRow,
    data_in_ledger,
    delay_text,
    is_slow,
    mostly_data,
    share_of,
    slow_ranks,
    waited,
)
from goodput_cli.vocabulary.text import duration, percent

if TYPE_CHECKING:
    from goodput_cli.analysis.results import AnalysisData


_WITHIN = ", within steps that count as goodput"


def slow_one(inside: StepBreakdown) -> RankRow | StepHostRow | None:
    """Return the rank or the host that delays all others; None without one, or if chance explains it."""
    rank = next((row for row in inside.ranks if row.cost_ns), None)
    host = next((row for row in inside.hosts if row.cost_ns and row.ranks > 1), None)
    rank = rank if rank is not None and is_slow(inside.rank_habit, str(rank.rank)) else None
    if host is not None and is_slow(inside.host_habit, host.host):
        alone = 0 if rank is None or rank.host != host.host else rank.cost_ns or 0
        if (host.cost_ns or 0) > OF_A_HOST * alone:
            return host
    return rank


def slow_ones(inside: StepBreakdown) -> tuple[RankRow | StepHostRow, ...]:
    """Return the host, or the ranks, that delay all others, the worst first."""
    worst = slow_one(inside)
    ranks = () if isinstance(worst, StepHostRow) else slow_ranks(inside)
    if is_slow(inside.rank_habit, *(str(row.rank) for row in ranks)):
        return ranks
    return () if worst is None else (worst,)


def find_inside(analysis: AnalysisData, programs: Sequence[StepBreakdown]) -> Iterator[Candidate]:
    """Report a rank or host that delays others, and a trainer that waits for samples."""
    for inside in programs:
        slow = slow_ones(inside)
        if slow:
            yield _of_slow(analysis, inside, slow)
        wait = inside.phase("wait")
        if wait is not None and (wait.percent or 0) >= LEAST_PERCENT:
            share = percent(wait.percent or 0)
            text = f"the trainer waited for samples during {share} of its step time, {duration(wait.slowest_ns)}"
            yield _candidate(analysis, "generation_idle", wait.slowest_ns, text + _WITHIN)


def waited_for_data(analysis: AnalysisData, programs: Sequence[StepBreakdown]) -> tuple[int, str]:
    """Return the time (ns) that steps waited for data on the slowest rank, and its description.

    The cost of a single rank is subtracted. It is 0 if it is less than a tenth of the step time. Time that the ledger
    counts as loading is not counted again.
    """
    for inside in programs:
        rows = [row for row in inside.phases if row.phase == "data" and row.percent]
        if not rows or not inside.net_step_ns:
            continue
        data = max(rows, key=lambda row: row.slowest_ns)
        alone = sum(row.cost_ns or 0 for row in slow_ones(inside) if mostly_data(row))
        ns = max(data.slowest_ns - alone - data_in_ledger(analysis), 0)
        share = share_of(ns, inside.net_step_ns) or 0.0
        if share >= LEAST_PERCENT:
            of = " on its slowest rank" if inside.ranks else ""
            return ns, f"{waited(share, 'data', inside.least)}{of}{_WITHIN}"
    return 0, ""


def _of_slow(analysis: AnalysisData, inside: StepBreakdown, slow: Sequence[RankRow | StepHostRow]) -> Candidate:
    whose = "its" if len(slow) == 1 else "their"
    why = "loading data" if all(map(mostly_data, slow)) else f"{whose} own work"
    by = "rank" if isinstance(slow[0], RankRow) else "host"
    text = f"{delay_text(inside, slow)}: {why} took longest there{_WITHIN}"
    return _candidate(analysis, "slow_rank", sum(row.cost_ns or 0 for row in slow), text, ("--by", by))


def _candidate(analysis: AnalysisData, code: str, ns: int, text: str, options: tuple[str, ...] = ()) -> Candidate:
    window = analysis.window
    return Candidate(code, ns, text, window.start_ns, window.end_ns, options=options, in_goodput_ns=ns)
