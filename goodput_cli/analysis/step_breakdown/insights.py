"""Insights from step breakdowns: waiting for data, a rank or host that delays all others, a trainer that waits for
samples, the phase that made some steps longer (docs/inside-steps.md). All of it counts as goodput.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

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
from goodput_cli.analysis.step_breakdown.launches import StepTimesOfAttempt, launches_in, mean_of_ranks, most_of
from goodput_cli.arrays import F64
from goodput_cli.events.inside import PhaseClass, class_of
from goodput_cli.vocabulary.text import duration, percent

if TYPE_CHECKING:
    from goodput_cli.analysis.analysis_data import AnalysisData


@dataclass(frozen=True)
class Growth:
    """The phase that made steps longer."""

    phase: str
    ns: int
    """Growth in each of these steps."""
    share: float
    """Share of the growth of the steps."""


def growth_between(analysis: AnalysisData, first_step: int, last_step: int) -> Growth | None:
    """Return the phase that grew most in some steps compared with all others, by its slowest rank; None if it is not
    logged, or the steps were not longer."""
    inside: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    counts, whole = [0.0, 0.0], [0.0, 0.0]
    for launch in launches_in(analysis):
        chosen = (launch.last >= first_step) & (launch.last - launch.count + 1 <= last_step)
        weights = [launch.weight_later * ~chosen, launch.weight_later * chosen]
        took, phases = _by_step(launch)
        for at, weight in enumerate(weights):
            weight = np.where(np.isnan(took), 0, weight)
            counts[at] += float((weight * launch.count).sum())
            whole[at] += float((weight * np.nan_to_num(took)).sum())
            for phase, values in phases.items():
                inside[phase][at] += float((weight * values).sum())
    if not all(counts) or not inside:
        return None
    longer = whole[1] / counts[1] - whole[0] / counts[0]
    phase = max(inside, key=lambda name: inside[name][1] / counts[1] - inside[name][0] / counts[0])
    more = inside[phase][1] / counts[1] - inside[phase][0] / counts[0]
    return Growth(phase, round(more), more / longer) if longer > 0 and more > 0 else None


def _by_step(launch: StepTimesOfAttempt) -> tuple[F64, dict[str, F64]]:
    """[S]: the net time of each record, and of each whole phase the time of its slowest rank."""
    tables = {name: most_of(values) for name, values in launch.phases.items()}
    for statistic in ("job", "max"):
        tables |= launch.whole.get(statistic, {})
    took = mean_of_ranks(launch.took) if launch.ranks else launch.whole_took
    took = np.where(np.isnan(took), launch.whole_took, took)
    found: dict[str, F64] = {}
    for name, values in tables.items():
        known = np.nan_to_num(values)
        if class_of(name.phase) is PhaseClass.LEDGER:
            took = took - known
        elif not name.parent:
            found[name.phase] = found.get(name.phase, np.zeros(len(known))) + known
    return took, found


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
        are_kept = share_of(ns, analysis.goodput.ns) is not None  # A first record has steps before the window.
        if share >= LEAST_PERCENT and are_kept:
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
