"""Step times as a `Sheet` and as an answer: statistics above, the slowest steps as rows, then regimes and histogram."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

from goodput_cli.analysis.answers import MeasuredWindow, NamedJob, measured_window, named_job
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.goodput.phrases import step_times_text
from goodput_cli.analysis.sheet import Audience, Column, Sheet
from goodput_cli.analysis.steps.statistics import (
    BINS,
    METRICS,
    SLOW_STEPS,
    Bin,
    Measured,
    SlowStep,
    StepReport,
    falls_of_mfu,
    measured,
    shown,
)
from goodput_cli.analysis.steps.times import SLOW_REGIMES, Regime
from goodput_cli.analysis.table import attribute, each, table_rows
from goodput_cli.analysis.written import Amount, FromOne, written
from goodput_cli.vocabulary.text import clock, duration, duration_of_seconds, period, plural

REGIMES = "Slow regimes"


def steps_sheet(analysis: Analysis, report: StepReport, *, with_metrics: bool = True) -> Sheet:
    """Everything about the step times of the window, and what the program measured."""
    one_source = len(analysis.table.sources) == 1
    metrics = measured(analysis) if with_metrics else []
    columns = (*_people_columns(report, one_source), *SLOW_STEPS.table_columns())
    return Sheet(
        title=f"Step times of {analysis.job.name}",
        summary=tuple(_summary(analysis, report)),
        columns=columns,
        rows=SLOW_STEPS.of_rows(report.slowest).cells(columns),
        notes=tuple(_notes(analysis, report, one_source)),
        sections=(
            *([_regime_sheet(report, one_source)] if report.regimes else []),
            _histogram_sheet(report),
            *([metric_sheet(metrics, falls_of_mfu(analysis, report.regimes))] if metrics else []),
        ),
        answer=lambda: steps_answer(analysis, report),
    )


def _people_columns(report: StepReport, one_source: bool) -> Iterator[Column]:
    ideal = report.statistics.ideal_seconds
    yield Column("steps", "count", Audience.PEOPLE, each(lambda slow: _steps(slow.step, slow.step + slow.count - 1)))
    yield from SLOW_STEPS.people_columns()
    yield Column("step time", "duration", Audience.PEOPLE, each(lambda slow: _ns(slow.seconds)))
    times = each(lambda slow: round(slow.seconds / ideal, 2) if ideal else None)
    yield Column("x ideal", "number", Audience.PEOPLE, times)
    place = each(lambda slow: _place(slow.where, one_source))
    yield Column("evidence", "text", Audience.PEOPLE, place)


def _steps(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _place(where: str, one_source: bool) -> str:
    line = where.rpartition(":")[2]
    return line if one_source and line.isdigit() else where


def _summary(analysis: Analysis, report: StepReport) -> Iterator[str]:
    window, steps, away = analysis.window, report.statistics, report.deviation
    yield f"{period(window.start_ns, window.end_ns)} ({duration(window.ns)})"
    yield f"{plural(steps.count, 'step time')}: {step_times_text(steps)}"
    mean, most = duration_of_seconds(away.mean_seconds), duration_of_seconds(away.max_seconds)
    yield f"deviation from the ideal: mean {mean}, max {most}"
    if not report.regimes:
        yield "no slow regime: the level of the step time did not move up and stay"
    for regime in report.regimes:
        yield f"slow: {_regime_text(regime)}"


def _regime_text(regime: Regime) -> str:
    since = " ".join(clock(regime.start_ns))
    until = "on" if regime.ongoing else f"to {' '.join(clock(regime.end_ns))}"
    return (
        f"steps {regime.first_step} to {regime.last_step} took {regime.factor:.2f} x the usual "
        f"{duration_of_seconds(regime.usual_seconds)}, from {since} UTC {until}"
    )


def _notes(analysis: Analysis, report: StepReport, one_source: bool) -> Iterator[str]:
    if any(slow.count > 1 for slow in report.slowest):
        yield "not every step is logged: times are means over the steps between two records"
    if report.slowest and one_source:
        yield f"evidence: lines of {analysis.table.sources[0]}"


def _regime_sheet(report: StepReport, one_source: bool) -> Sheet:
    columns = (
        Column("steps", "count", Audience.PEOPLE, each(lambda regime: _steps(regime.first_step, regime.last_step))),
        *SLOW_REGIMES.people_columns(),
        Column("step time", "duration", Audience.PEOPLE, each(lambda regime: _ns(regime.seconds))),
        Column("x usual", "number", Audience.PEOPLE, each(lambda regime: round(regime.factor, 2))),
        Column("beyond usual", "duration", Audience.PEOPLE, each(lambda regime: _ns(regime.lost_seconds))),
        Column("evidence", "text", Audience.PEOPLE, each(lambda regime: _place(regime.where, one_source))),
    )
    rows = table_rows(columns, len(report.regimes), lambda: [report.regimes])
    return Sheet(title=REGIMES, columns=columns, rows=rows)


def metric_sheet(metrics: Sequence[Measured], falls: Sequence[str] = ()) -> Sheet:
    """What the program measured. falls: sentences about where it fell."""
    columns = METRICS.people_columns()
    return Sheet(
        title="Metrics that the program recorded",
        summary=tuple(falls),
        columns=columns,
        rows=table_rows(columns, len(metrics), lambda: [shown(metrics)]),
    )


def _histogram_sheet(report: StepReport) -> Sheet:
    most = max(part.count for part in report.histogram)
    columns = (
        Column("from", "duration", values=each(lambda part: _ns(part.low_seconds))),
        Column("to", "duration", values=each(lambda part: _ns(part.high_seconds))),
        Column("count", "count", values=attribute("count")),
        Column("", "share", values=each(lambda part: part.count / most)),
    )
    rows = table_rows(columns, len(report.histogram), lambda: [report.histogram])
    return Sheet(title="Histogram", columns=columns, rows=rows)


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


@written("step_times", "statistics (accounting, section 8)")
@dataclass(frozen=True, kw_only=True)
class StepTimes:
    """Statistics of step times."""

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


@written("steps_answer", "goodput steps --format json: step times of the window", kind="steps")
@dataclass(frozen=True, kw_only=True)
class StepsAnswer:
    """goodput steps --format json: step times of the window"""

    job: NamedJob
    window: MeasuredWindow
    steps: StepTimes
    slowest: Annotated[Sequence[SlowStep], SLOW_STEPS]
    """the slowest first"""
    slow_regimes: Annotated[Sequence[Regime], SLOW_REGIMES]
    """where the level of the step time moved up and stayed, in time order"""
    metrics: dict[str, Measured]
    """by name: mfu, tflops, throughput, latency, and step_time as the program reports it"""
    histogram: Annotated[Sequence[Bin], BINS]


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
        slowest=report.slowest,
        slow_regimes=report.regimes,
        metrics={row.name: row for row in measured(analysis)},
        histogram=report.histogram,
    )
