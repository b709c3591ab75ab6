"""What `goodput advise --format json` answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from goodput_cli.accounting.rules import Method
from goodput_cli.analysis.advice.results import (
    LEVER_TABLE,
    AdviceData,
    CurvePoint,
    IfDeath,
    IntervalAdvice,
    Lever,
    Recorded,
    RecordFacts,
    SaveFacts,
    Scenario,
)
from goodput_cli.analysis.answers import Diagnostics, MeasuredWindow, NamedJob, Thresholds, measured_window, named_job
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.written import written


@written(
    "advice_answer",
    "goodput advise --format json: how often to save, what would have bought most, what if",
    kind="advice",
)
@dataclass(frozen=True, kw_only=True)
class AdviceAnswer:
    """goodput advise --format json: how often to save, what would have bought most, what if"""

    job: NamedJob
    window: MeasuredWindow
    method: Method
    recorded: Recorded
    record: RecordFacts
    saves: SaveFacts
    interval: IntervalAdvice
    curve: Sequence[CurvePoint]
    levers: Annotated[tuple[Lever, ...], LEVER_TABLE]
    """those that buy most first; they overlap"""
    checkpoint_bound: Annotated[Lever | None, LEVER_TABLE]
    """what no way of checkpointing can beat"""
    scenario: Scenario | None
    deaths: IfDeath | None
    """null: every death was logged"""
    thresholds: Thresholds
    diagnostics: Diagnostics


def advice_answer(analysis: Analysis, advice: AdviceData) -> AdviceAnswer:
    """The whole advice."""
    return AdviceAnswer(
        job=named_job(analysis),
        window=measured_window(analysis),
        method=analysis.method,
        recorded=advice.recorded,
        record=advice.record,
        saves=advice.saves,
        interval=advice.interval,
        curve=advice.curve,
        levers=advice.levers,
        checkpoint_bound=advice.bound,
        scenario=advice.scenario,
        deaths=advice.deaths,
        thresholds=advice.thresholds,
        diagnostics=(*analysis.diagnostics, *advice.diagnostics),
    )
