"""What `goodput advise --format json` answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from goodput_cli.analysis.advice.facts import Recorded, RecordFacts, SaveFacts
from goodput_cli.analysis.advice.job import JobAdvice
from goodput_cli.analysis.advice.results import CurvePoint, IfDeath, IntervalAdvice, Lever, Scenario
from goodput_cli.analysis.advice.sheet import LEVERS
from goodput_cli.analysis.answer import (
    Answer,
    DiagnosticEntry,
    MeasuredWindow,
    NamedJob,
    Row,
    ThresholdPart,
    diagnostic_entries,
    measured_window,
    named_job,
    row_of,
    threshold_parts,
)
from goodput_cli.analysis.results import Method
from goodput_cli.analysis.table import json_rows

LeverRow = Annotated[Row, row_of("lever", "what would have bought goodput", LEVERS)]


class AdviceAnswer(Answer, kw_only=True):
    """goodput advise --format json: how often to save, what would have bought most, what if"""

    kind: Literal["advice"] = "advice"
    job: NamedJob
    window: MeasuredWindow
    method: Method
    recorded: Recorded
    record: RecordFacts
    saves: SaveFacts
    interval: IntervalAdvice
    curve: Sequence[CurvePoint]
    levers: Sequence[LeverRow]
    """those that buy most first; they overlap"""
    checkpoint_bound: LeverRow | None
    """what no way of checkpointing can beat"""
    scenario: Scenario | None
    deaths: IfDeath | None
    """null: every death was logged"""
    thresholds: Sequence[ThresholdPart]
    diagnostics: Sequence[DiagnosticEntry]


def advice_answer(advised: JobAdvice) -> AdviceAnswer:
    """The whole advice."""
    analysis, advice = advised.analysis, advised.advice
    return AdviceAnswer(
        job=named_job(analysis),
        window=measured_window(analysis),
        method=analysis.method,
        recorded=advice.recorded,
        record=advice.record,
        saves=advice.saves,
        interval=advice.interval,
        curve=advice.curve,
        levers=_rows(advice.levers),
        checkpoint_bound=_rows([advice.bound])[0] if advice.bound else None,
        scenario=advice.scenario,
        deaths=advice.deaths,
        thresholds=threshold_parts(advice.thresholds),
        diagnostics=diagnostic_entries((*analysis.diagnostics, *advice.diagnostics)),
    )


def _rows(levers: Sequence[Lever]) -> Sequence[Row]:
    return json_rows(LEVERS, len(levers), lambda: [levers])
