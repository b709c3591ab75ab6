"""What `goodput steps --format json` answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Literal

from goodput_cli.analysis.answer import (
    Amount,
    Answer,
    FromOne,
    MeasuredWindow,
    NamedJob,
    Part,
    Row,
    measured_window,
    named_job,
    row_of,
)
from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.steps.measured import Measured, measured
from goodput_cli.analysis.steps.sheet import SLOWEST
from goodput_cli.analysis.steps.slow_regimes import Regime
from goodput_cli.analysis.steps.statistics import Bin, StepReport
from goodput_cli.analysis.table import attribute, columns_of, json_rows

_REGIMES = columns_of(Regime, attribute)
_BINS = columns_of(Bin, attribute)


class StepTimes(Part):
    """statistics (accounting, section 8)"""

    count: FromOne
    """step times"""
    ideal_seconds: Amount | None
    """mean of the step times up to median + 3 x MAD"""
    mean_seconds: Amount | None
    """mean"""
    median_seconds: Amount | None
    """median"""
    p90_seconds: Amount | None
    """90th percentile"""
    p99_seconds: Amount | None
    """99th percentile"""
    mean_deviation_seconds: Amount
    """mean of |step time - ideal|"""
    max_deviation_seconds: Amount
    """maximum of |step time - ideal|"""


class MetricValues(Part):
    """what a program recorded of one metric in the window; it feeds no figure of the ledger"""

    unit: str
    """as it was written; empty where it was not"""
    samples: FromOne
    """values in the window: programs record one step in many"""
    first_step: int | None
    """the first step of which there is a value; null if none names one"""
    last_step: int | None
    """the last one"""
    mean: float
    """mean of the values"""
    median: float
    """their median"""
    p10: float
    """10th percentile"""
    p90: float
    """90th percentile"""
    series: Sequence[tuple[int, float]]
    """step and value, in order of time; of more than 1000 every k-th"""


class StepsAnswer(Answer, kw_only=True):
    """goodput steps --format json: step times of the window"""

    kind: Literal["steps"] = "steps"
    job: NamedJob
    window: MeasuredWindow
    steps: StepTimes
    slowest: Sequence[Annotated[Row, row_of("slow_step", "a slow step", SLOWEST)]]
    """the slowest first"""
    slow_regimes: Sequence[Annotated[Row, row_of("slow_regime", "a slow regime", _REGIMES)]]
    """where the level of the step time moved up and stayed, in time order"""
    metrics: dict[str, MetricValues]
    """by name: mfu, tflops, throughput, latency, and step_time as the program reports it"""
    histogram: Sequence[Annotated[Row, row_of("bin", "a bin; the last one holds its upper end", _BINS)]]


def _values(row: Measured) -> MetricValues:
    values = asdict(row)
    del values["name"]
    return MetricValues(**values)


def steps_answer(analysis: Analysis, report: StepReport) -> StepsAnswer:
    """The step times of the window."""
    return StepsAnswer(
        job=named_job(analysis),
        window=measured_window(analysis),
        steps=StepTimes(
            **asdict(report.statistics),
            mean_deviation_seconds=report.deviation.mean_seconds,
            max_deviation_seconds=report.deviation.max_seconds,
        ),
        slowest=json_rows(SLOWEST, len(report.slowest), lambda: [report.slowest]),
        slow_regimes=json_rows(_REGIMES, len(report.regimes), lambda: [report.regimes]),
        metrics={row.name: _values(row) for row in measured(analysis)},
        histogram=json_rows(_BINS, len(report.histogram), lambda: [report.histogram]),
    )
