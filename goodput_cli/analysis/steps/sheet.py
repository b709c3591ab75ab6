"""Step times as a `Sheet`: statistics above, the slowest steps as rows, slow regimes and the histogram below."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.sheet import Cell, Column, Sheet
from goodput_cli.analysis.steps.slow_regimes import Regime
from goodput_cli.analysis.steps.statistics import SlowStep, StepReport
from goodput_cli.vocabulary.text import clock, duration, iso, period, plural, well_formed


def steps_sheet(analysis: Analysis, report: StepReport) -> Sheet:
    """Everything about the step times of the window."""
    window = analysis.window
    one_source = len(analysis.table.sources) == 1
    return Sheet(
        title=f"Step times of {analysis.job.name}",
        summary=tuple(_summary(analysis, report)),
        columns=(
            Column("slowest step", "count", "eye"),
            Column("step", "count", "data"),
            Column("steps", "count", "all" if any(slow.count > 1 for slow in report.slowest) else "data"),
            Column("attempt", "count"),
            Column("began", "instant", "eye"),
            Column("start", "instant", "data"),
            Column("took", "duration", "eye"),
            Column("seconds", "number", "data"),
            Column("x ideal", "number", "eye"),
            Column("line" if one_source else "evidence", "text", "eye"),
            Column("evidence", "text", "data"),
        ),
        rows=tuple(_slow_cells(slow, report, one_source) for slow in report.slowest),
        notes=tuple(_notes(analysis, report, one_source)),
        more=(*([_regime_sheet(report, one_source)] if report.regimes else []), _histogram_sheet(report)),
        data={
            "job": {"name": analysis.job.name, "start": iso(analysis.job.start_ns), "end": iso(analysis.job.end_ns)},
            "window": {"start": iso(window.start_ns), "end": iso(window.end_ns), "seconds": window.ns / 1e9},
            "steps": _statistics(report),
            "slowest": [_slow_dict(slow) for slow in report.slowest],
            "slow_regimes": [_regime_dict(regime) for regime in report.regimes],
            "histogram": [
                {"from_seconds": part.low_seconds, "to_seconds": part.high_seconds, "count": part.count}
                for part in report.histogram
            ],
        },
    )


def _statistics(report: StepReport) -> dict[str, Any]:
    steps = report.statistics
    return {
        "count": steps.count,
        "ideal_seconds": steps.ideal_seconds,
        "mean_seconds": steps.mean_seconds,
        "median_seconds": steps.median_seconds,
        "p90_seconds": steps.p90_seconds,
        "p99_seconds": steps.p99_seconds,
        "mean_deviation_seconds": report.deviation.mean_seconds,
        "max_deviation_seconds": report.deviation.max_seconds,
    }


def _slow_dict(slow: SlowStep) -> dict[str, Any]:
    return {
        "step": slow.step,
        "steps": slow.count,
        "attempt": slow.attempt,
        "start": iso(slow.time_ns),
        "seconds": slow.seconds,
        "evidence": well_formed(slow.where),
    }


def _regime_dict(regime: Regime) -> dict[str, Any]:
    return {
        "from_step": regime.first_step,
        "to_step": regime.last_step,
        "from_attempt": regime.first_attempt,
        "to_attempt": regime.last_attempt,
        "start": iso(regime.start_ns),
        "end": iso(regime.end_ns),
        "ongoing": regime.ongoing,
        "steps": regime.steps,
        "step_seconds": regime.seconds,
        "usual_step_seconds": regime.usual_seconds,
        "factor": regime.factor,
        "lost_seconds": regime.lost_seconds,
        "evidence": well_formed(regime.where),
    }


def _slow_cells(slow: SlowStep, report: StepReport, one_source: bool) -> tuple[Cell, ...]:
    ideal = report.statistics.ideal_seconds
    return (
        slow.step,
        slow.step,
        slow.count,
        slow.attempt,
        slow.time_ns,
        slow.time_ns,
        _ns(slow.seconds),
        slow.seconds,
        round(slow.seconds / ideal, 2) if ideal else None,
        _place(slow.where, one_source),
        slow.where,
    )


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
    times = ", ".join(f"{name} {_seconds(value)}" for name, value in named.items() if value is not None)
    yield f"{plural(steps.count, 'step time')}: {times}"
    yield f"deviation from the ideal: mean {_seconds(away.mean_seconds)}, max {_seconds(away.max_seconds)}"
    if not report.regimes:
        yield "no slow regime: the level of the step time did not move up and stay"
    for regime in report.regimes:
        yield f"slow: {_regime_text(regime)}"


def _regime_text(regime: Regime) -> str:
    since = " ".join(clock(regime.start_ns))
    until = "still going on" if regime.ongoing else f"until {' '.join(clock(regime.end_ns))}"
    return (
        f"steps {regime.first_step} to {regime.last_step} took {regime.factor:.2f} x the usual "
        f"{_seconds(regime.usual_seconds)}, since {since} UTC, {until}"
    )


def _notes(analysis: Analysis, report: StepReport, one_source: bool) -> Iterator[str]:
    if any(slow.count > 1 for slow in report.slowest):
        yield "not every step is logged: times are means over the steps between two records"
    if report.slowest and one_source:
        yield f"lines of {analysis.table.sources[0]}"


def _regime_sheet(report: StepReport, one_source: bool) -> Sheet:
    return Sheet(
        title="Slow regimes",
        columns=(
            Column("from step", "count"),
            Column("to step", "count"),
            Column("since", "instant"),
            Column("step time", "duration"),
            Column("factor", "number"),
            Column("lost", "duration"),
            Column("line", "text"),
        ),
        rows=tuple(
            (
                regime.first_step,
                regime.last_step,
                regime.start_ns,
                _ns(regime.seconds),
                round(regime.factor, 3),
                _ns(regime.lost_seconds),
                _place(regime.where, one_source),
            )
            for regime in report.regimes
        ),
        data={},
    )


def _histogram_sheet(report: StepReport) -> Sheet:
    most = max(part.count for part in report.histogram)
    return Sheet(
        title="Histogram",
        columns=(
            Column("from", "duration"),
            Column("to", "duration"),
            Column("count", "count"),
            Column("", "share"),
        ),
        rows=tuple(
            (_ns(part.low_seconds), _ns(part.high_seconds), part.count, part.count / most) for part in report.histogram
        ),
        data={},
    )


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _seconds(seconds: float) -> str:
    return duration(_ns(seconds))
