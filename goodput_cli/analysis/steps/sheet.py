"""Step times as a `Sheet`: statistics above, the slowest steps as rows, slow regimes and the histogram below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.sheet import Audience, Column, Sheet
from goodput_cli.analysis.steps.measured import Measured, falls_of_mfu, measured, shown
from goodput_cli.analysis.steps.slow_regimes import Regime
from goodput_cli.analysis.steps.statistics import SlowStep, StepReport
from goodput_cli.analysis.table import attribute, columns_of, each, people_columns, table_rows
from goodput_cli.vocabulary.text import clock, duration, duration_of_seconds, period, plural

if TYPE_CHECKING:
    from goodput_cli.analysis.answer import Answer

SLOWEST = columns_of(SlowStep, attribute)
"""What programs see of a slow step."""
REGIMES = "Slow regimes"


def steps_sheet(analysis: Analysis, report: StepReport, *, with_metrics: bool = True) -> Sheet:
    """Everything about the step times of the window, and what the program measured."""
    one_source = len(analysis.table.sources) == 1
    metrics = measured(analysis) if with_metrics else []
    columns = (*_people_columns(report, one_source), *SLOWEST)
    return Sheet(
        title=f"Step times of {analysis.job.name}",
        summary=tuple(_summary(analysis, report)),
        columns=columns,
        rows=table_rows(columns, len(report.slowest), lambda: [report.slowest]),
        notes=tuple(_notes(analysis, report, one_source)),
        sections=(
            *([_regime_sheet(report, one_source)] if report.regimes else []),
            _histogram_sheet(report),
            *([metric_sheet(metrics, falls_of_mfu(analysis, report.regimes))] if metrics else []),
        ),
        answer=lambda: _answer(analysis, report),
    )


def _answer(analysis: Analysis, report: StepReport) -> Answer:
    from goodput_cli.analysis.steps.answer import steps_answer  # msgspec: only where JSON is written

    return steps_answer(analysis, report)


def _people_columns(report: StepReport, one_source: bool) -> Iterator[Column]:
    ideal = report.statistics.ideal_seconds
    yield Column("steps", "count", Audience.PEOPLE, each(lambda slow: _steps(slow.step, slow.step + slow.count - 1)))
    yield from (one for _, one in sorted(people_columns(SlowStep, attribute).items()))
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
    named = {
        "ideal": steps.ideal_seconds,
        "mean": steps.mean_seconds,
        "median": steps.median_seconds,
        "p90": steps.p90_seconds,
        "p99": steps.p99_seconds,
    }
    times = ", ".join(f"{name} {duration_of_seconds(value)}" for name, value in named.items() if value is not None)
    yield f"{plural(steps.count, 'step time')}: {times}"
    mean, most = duration_of_seconds(away.mean_seconds), duration_of_seconds(away.max_seconds)
    yield f"deviation from the ideal: mean {mean}, max {most}"
    if not report.regimes:
        yield "no slow regime: the level of the step time did not move up and stay"
    for regime in report.regimes:
        yield f"slow: {_regime_text(regime)}"


def _regime_text(regime: Regime) -> str:
    since = " ".join(clock(regime.start_ns))
    until = "still going on" if regime.ongoing else f"until {' '.join(clock(regime.end_ns))}"
    return (
        f"steps {regime.first_step} to {regime.last_step} took {regime.factor:.2f} x the usual "
        f"{duration_of_seconds(regime.usual_seconds)}, since {since} UTC, {until}"
    )


def _notes(analysis: Analysis, report: StepReport, one_source: bool) -> Iterator[str]:
    if any(slow.count > 1 for slow in report.slowest):
        yield "not every step is logged: times are means over the steps between two records"
    if report.slowest and one_source:
        yield f"evidence: lines of {analysis.table.sources[0]}"


def _regime_sheet(report: StepReport, one_source: bool) -> Sheet:
    columns = (
        Column("steps", "count", Audience.PEOPLE, each(lambda regime: _steps(regime.first_step, regime.last_step))),
        *(one for _, one in sorted(people_columns(Regime, attribute).items())),
        Column("step time", "duration", Audience.PEOPLE, each(lambda regime: _ns(regime.seconds))),
        Column("x usual", "number", Audience.PEOPLE, each(lambda regime: round(regime.factor, 2))),
        Column("lost", "duration", Audience.PEOPLE, each(lambda regime: _ns(regime.lost_seconds))),
        Column("evidence", "text", Audience.PEOPLE, each(lambda regime: _place(regime.where, one_source))),
    )
    rows = table_rows(columns, len(report.regimes), lambda: [report.regimes])
    return Sheet(title=REGIMES, columns=columns, rows=rows)


def metric_sheet(metrics: Sequence[Measured], falls: Sequence[str] = ()) -> Sheet:
    """What the program measured. falls: sentences about where it fell."""
    columns = tuple(one for _, one in sorted(people_columns(Measured, attribute).items()))
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
