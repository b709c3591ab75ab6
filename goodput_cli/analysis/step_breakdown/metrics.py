"""Metrics of the step breakdown."""

from __future__ import annotations

from collections.abc import Iterator

from goodput_cli.analysis.results import AnalysisData
from goodput_cli.analysis.sheet import Family, Labels
from goodput_cli.analysis.step_breakdown.breakdown import StepBreakdown, inside_of, slow_ranks
from goodput_cli.vocabulary.text import safe, seconds_text


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
