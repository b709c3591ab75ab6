"""What a comparison takes of an analysis: small, and the same whether a log was analysed now or its answer was saved.

Every number is one that JSON holds exactly: ns as integers, seconds as the floats that are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from goodput_cli.analysis.results import Analysis, Method, Saves, StepStatistics, Window
from goodput_cli.diagnostics.diagnostic import Diagnostic

Key = tuple[str, str | None]
"""A category and, for custom events, its label."""


@dataclass(frozen=True)
class Passage:
    """One disruption: how the attempt ended, and what of its progress was lost (None: not known)."""

    ended: str
    steps_lost: int | None
    wasted_seconds: float


@dataclass(frozen=True)
class Slices:
    """Slice efficiency, shares of 0 to 1, and goodput times `stepping` in percent; None where no counts are known."""

    stepping: float | None = None
    available: float | None = None
    goodput_percent: float | None = None


@dataclass(frozen=True)
class Summary:
    """One side of a comparison. None is "not recorded", or that there was nothing to average; never zero.

    job: its name. window: of the question. badput: ns by category and label, those that are not zero; with goodput_ns
    they add up to `window.counted_ns`. not_recorded: categories without evidence.
    overlapped_ns: data loading beside the ledger. disruptions: how many; passages: each of them, None where only their
    number is known. reference_seconds, origin: the reference step time in use.
    longest_unproductive_seconds: 0 where all is productive. method: None where a saved answer does not say how it was
    made.
    """

    job: str
    window: Window
    goodput_ns: int
    badput: Mapping[Key, int]
    not_recorded: frozenset[str]
    overlapped_ns: int | None
    attempts: int
    runs: int
    kept_steps: float | None
    disruptions: int
    passages: tuple[Passage, ...] | None
    mtbf_seconds: float | None
    mean_downtime_seconds: float | None
    mean_time_to_regain_seconds: float | None
    longest_unproductive_seconds: float | None
    steps: StepStatistics
    saves: Saves | None
    at_risk_seconds: float | None
    at_risk_steps: float | None
    slices: Slices
    reference_seconds: float | None
    origin: Literal["given", "auto"] | None
    method: Method | None
    diagnostics: tuple[Diagnostic, ...]


def summary_of(analysis: Analysis) -> Summary:
    """The summary of an analysis that was made now."""
    found, risk, elastic = analysis.reliability, analysis.at_risk, analysis.elastic
    badput: dict[Key, int] = {}
    for row in analysis.badput:
        key = (row.category, row.label)
        badput[key] = badput.get(key, 0) + row.ns
    return Summary(
        job=analysis.job.name,
        window=analysis.window,
        goodput_ns=analysis.goodput.ns,
        badput=badput,
        not_recorded=frozenset(analysis.not_recorded),
        overlapped_ns=sum(row.ns for row in analysis.overlapped) if analysis.overlapped else None,
        attempts=analysis.job.attempts,
        runs=analysis.job.runs,
        kept_steps=analysis.job.kept_steps,
        disruptions=analysis.job.disruptions,
        passages=tuple(Passage(row.ended, row.steps_lost, row.wasted_ns / 1e9) for row in analysis.disruptions),
        mtbf_seconds=None if found is None else found.mtbf_seconds,
        mean_downtime_seconds=None if found is None else found.mean_downtime_seconds,
        mean_time_to_regain_seconds=None if found is None else found.mean_time_to_regain_seconds,
        longest_unproductive_seconds=None if found is None else _length(found.longest_unproductive),
        steps=analysis.steps,
        saves=analysis.saves,
        at_risk_seconds=None if risk is None else risk.ns / 1e9,
        at_risk_steps=None if risk is None else risk.steps,
        slices=Slices(elastic.stepping, elastic.available, elastic.goodput_percent),
        reference_seconds=analysis.reference.step_time_seconds,
        origin=analysis.reference.origin,
        method=analysis.method,
        diagnostics=analysis.diagnostics,
    )


def _length(stretch: tuple[int, int] | None) -> float:
    """Seconds; a window that is productive throughout has no unproductive stretch, which is a length of 0."""
    return 0.0 if stretch is None else (stretch[1] - stretch[0]) / 1e9
