"""Step times as a `Sheet` and as an answer: statistics above, the slowest steps as rows, then regimes and histogram."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Annotated

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import of_kind
from goodput_cli.analysis.accelerators.devices import Devices
from goodput_cli.analysis.analysis_data import MeasuredWindow, NamedJob, measured_window, named_job
from goodput_cli.analysis.capabilities import CAPABILITIES, added_fields, added_values
from goodput_cli.analysis.capability import By
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.goodput.phrases import evidence_text, location_text, step_times_text, window_text
from goodput_cli.analysis.json_fields import Amount, FromOne, Json, written
from goodput_cli.analysis.results import StepStatistics
from goodput_cli.analysis.sheet import Audience, Column, Sheet
from goodput_cli.analysis.step_breakdown.sheet import InsideAnswer, inside_answer
from goodput_cli.analysis.steps.noise import StepTimeDrift
from goodput_cli.analysis.steps.regimes import (
    SLOW_REGIMES,
    Drift,
    PaceFinding,
    Regime,
    drift_text,
    step_pace,
    wander_text,
)
from goodput_cli.analysis.steps.times import TimedSteps, changes_of_size, timed_steps
from goodput_cli.analysis.table import Facts, TableDeclaration, attribute, column, columns_of, each, table_rows
from goodput_cli.arrays import F64, I64
from goodput_cli.errors import NotEnoughData
from goodput_cli.events.schema import CHECKPOINT_KINDS, NO_STEP, SIZES
from goodput_cli.vocabulary.categories import CATEGORIES, Category, brief_name
from goodput_cli.vocabulary.text import clock, duration_of_seconds, plural

SERIES = 1000
"""Largest number of values of a series; of longer ones every k-th is kept."""


_FALL = 0.05
_LEAST_VALUES = 3
"""Fewer values do not show a level."""


@written(
    "metric_values",
    "one metric that a program recorded in the window; it does not change any figure of the ledger",
    keys="unit samples first_step last_step mean median p10 p90 series",
)
@dataclass(frozen=True)
class MetricStatistics:
    """One metric in the window: its fields are the columns of the table of metrics."""

    name: str = column("text", "name; step_time is the step time that the program reported", heading="metric")
    unit: str = column("text", "as logged; empty if not logged", heading="unit")
    samples: FromOne = column("count", "values in the window; programs record some of the steps", heading="samples")
    first_step: int | None = column("count", "the first step with a value; null if no value has a step")
    last_step: int | None = column("count", "the last one")
    mean: float = column("number", "mean of the values", heading="mean")
    median: float = column("number", "their median", heading="median")
    p10: float = column("number", "10th percentile", heading="p10")
    p90: float = column("number", "90th percentile", heading="p90")
    series: tuple[tuple[int, float], ...] = field(default=(), metadata={})
    """step and value, in order of time; of more than 1000 every k-th"""  # of the values that name a step


METRICS = TableDeclaration("metric", "one metric in the window", columns_of(MetricStatistics, attribute))


def measured(analysis: Analysis) -> list[MetricStatistics]:
    """The metrics of the job in the window, by name."""
    start, end = analysis.window.start_ns, analysis.window.end_ns
    rows = []
    for metric in analysis.table.metrics:
        inside = (metric.time >= start) & (metric.time <= end)
        if metric.job != analysis.job.name or metric.name in SIZES or not inside.any():
            continue
        step, value = metric.step[inside], metric.value[inside]
        named = step != NO_STEP
        p10, p50, p90 = np.percentile(value, (10, 50, 90)).tolist()
        every = max(1, -(-int(named.sum()) // SERIES))
        series = tuple(zip(step[named][::every].tolist(), value[named][::every].tolist(), strict=True))
        first, last = (int(step[named].min()), int(step[named].max())) if named.any() else (None, None)
        rows.append(
            MetricStatistics(
                metric.name, metric.unit, len(value), first, last, float(value.mean()), p50, p10, p90, series
            )
        )
    return sorted(rows, key=lambda row: row.name)


def falls_of_mfu(analysis: Analysis, regimes: Sequence[Regime]) -> list[str]:
    """A sentence for each slow regime in which the median of the recorded MFU was lower than outside of all of them,
    by more than 5 % of that."""
    metric = next((one for one in analysis.table.metrics if (one.job, one.name) == (analysis.job.name, "mfu")), None)
    if metric is None or not regimes:
        return []
    inside = [(metric.time >= one.start_ns) & (metric.time <= one.end_ns) for one in regimes]
    in_window = (metric.time >= analysis.window.start_ns) & (metric.time <= analysis.window.end_ns)
    outside = metric.value[in_window & ~np.logical_or.reduce(inside)]
    usual = float(np.median(outside)) if len(outside) >= _LEAST_VALUES else 0.0
    found = []
    for regime, chosen in zip(regimes, inside, strict=True):
        values = metric.value[chosen]
        level = float(np.median(values)) if len(values) >= _LEAST_VALUES else usual
        if usual > 0 and level < (1 - _FALL) * usual:
            found.append(
                f"median MFU fell from {_four(usual):g} to {_four(level):g} in the slow period of steps "
                f"{regime.first_step} to {regime.last_step}"
            )
    return found


def shown(rows: Sequence[MetricStatistics]) -> Sequence[MetricStatistics]:
    """Return the rows with figures of four digits, as people read them."""
    return [
        replace(row, mean=_four(row.mean), median=_four(row.median), p10=_four(row.p10), p90=_four(row.p90))
        for row in rows
    ]


def _four(value: float) -> float:
    return float(f"{value:.4g}")


_TRAINING = (Category.PRODUCTIVE, Category.SLOWDOWN, Category.STALL, Category.WASTED, Category.OTHER)
_BINS = 12
_LOG_BINS = 24
_LOG_SPREAD = 4.0
"""Step times are shown on a logarithmic scale where the slowest takes more than this many times the fastest."""


@dataclass(frozen=True)
class SlowStep:
    """One slow step: its fields are the columns of `goodput steps`."""

    step: int = column("count", "its number")
    count: int = column(
        "count", "above 1 if not every step is logged; the time is then their mean", name="steps", least=1
    )
    attempt: int = column("count", "from 1", least=1, heading="attempt", spare=True)
    time_ns: int = column("instant", "start time", name="start", heading="start", spare=True)
    seconds: float = column("number", "per step", least=0)
    holds: str | None = column(
        "text",
        "category that took most of its time, other than training, or custom_badput_events:LABEL; null: unknown",
        heading="contains",
        brief=brief_name,
    )
    where: str = column("text", "file:line or insertId of its start", name="evidence")


@dataclass(frozen=True)
class Bin:
    """One bar of the histogram: the step times in [low, high), including the upper end of the last bin."""

    low_seconds: float = column("number", "lower end", name="from_seconds", least=0)
    high_seconds: float = column("number", "upper end", name="to_seconds", least=0)
    count: int = column("count", "step times in it", least=0)


@dataclass(frozen=True)
class StepReport:
    """Answer of `goodput steps`."""

    statistics: StepStatistics
    mean_deviation_seconds: float
    """Mean of |step time - ideal| (accounting §8)."""
    max_deviation_seconds: float
    slowest: tuple[SlowStep, ...]
    """The slowest first."""
    regimes: tuple[Regime, ...]
    """Slow regimes in time order."""
    drifts: tuple[Drift, ...]
    """Drifts in time order; several only if steps have different numbers of samples."""
    more_work: tuple[str, ...]
    """Sentences about steps that would be slow or a drift, but did more work."""
    wander: StepTimeDrift | None
    """Drift of the step time, if apparent changes of level cannot be distinguished from it."""
    histogram: tuple[Bin, ...]
    finding: PaceFinding
    """Finding about slow regimes and drifts."""


SLOW_STEPS = TableDeclaration("slow_step", "a slow step", columns_of(SlowStep, attribute))
BINS = TableDeclaration("bin", "a bin; the last one includes its upper end", columns_of(Bin, attribute))


def step_report(analysis: Analysis, slowest: int = 10) -> StepReport:
    """Everything about the step times of the window. `NotEnoughData` where there are none."""
    timeline, statistics = analysis.timeline, analysis.steps
    within = (analysis.window.start_ns, analysis.window.end_ns)
    if statistics.ideal_seconds is None:
        raise NotEnoughData(_no_steps_reason(timeline, *within))
    steps = timed_steps(timeline, *within)
    pace = step_pace(timeline, steps)
    away = np.abs(steps.seconds - statistics.ideal_seconds)
    return StepReport(
        statistics=statistics,
        mean_deviation_seconds=float(away.mean()),
        max_deviation_seconds=float(away.max()),
        slowest=_slowest(timeline, steps, slowest),
        regimes=pace.regimes,
        drifts=pace.drifts,
        more_work=pace.more_work,
        wander=pace.wander,
        histogram=histogram(steps.seconds),
        finding=pace.finding,
    )


def histogram(times: F64) -> tuple[Bin, ...]:
    """Step times (s) in 12 bins of equal width, or in 24 of equal ratio where they spread over more than 4 x.

    Empty bins side by side are one.
    """
    low, high = float(times.min()), float(times.max())
    if low == high:
        return (Bin(low, high, len(times)),)
    if low > 0 and high / low > _LOG_SPREAD:
        edges = np.geomspace(low, high, _LOG_BINS + 1)
    else:
        edges = np.linspace(low, high, _BINS + 1)
    edges[0], edges[-1] = low, high
    if np.any(np.diff(edges) <= 0):  # times so close that no floating-point number is between them
        edges = np.array([low, high])
    counts, _ = np.histogram(times, edges)
    new = np.append(True, (counts[1:] > 0) | (counts[:-1] > 0))
    edges, counts = np.append(edges[:-1][new], high), counts[new]
    return tuple(
        Bin(float(left), float(right), int(count))
        for left, right, count in zip(edges[:-1], edges[1:], counts, strict=True)
    )


def _slowest(timeline: Timeline, steps: TimedSteps, most: int) -> tuple[SlowStep, ...]:
    """The slowest steps, the slowest first, earlier ones first among equals."""
    most = min(max(most, 0), len(steps))
    if most == 0:
        return ()
    limit = np.partition(steps.seconds, len(steps) - most)[len(steps) - most]
    slow = np.flatnonzero(steps.seconds >= limit)
    order = slow[np.argsort(-steps.seconds[slow], kind="stable")][:most]
    slowest = steps.take(order)
    columns = (slowest.number, slowest.count, timeline.attempts.number[slowest.attempt], slowest.time)
    held = _dominant_categories(timeline, slowest.time, slowest.end)
    return tuple(
        SlowStep(step, count, attempt, time_ns, seconds, holds, timeline.table.where(row))
        for step, count, attempt, time_ns, seconds, holds, row in zip(
            *(column.tolist() for column in columns), slowest.seconds.tolist(), held, slowest.row.tolist(), strict=True
        )
    )


def _dominant_categories(timeline: Timeline, start: I64, end: I64) -> list[str | None]:
    """Return, by step, the non-training category with more of it than training has; None without one."""
    amounts = timeline.ledger.between(start, end)
    nothing = np.zeros(len(start), dtype=np.int64)
    trained = sum((ns for (category, _), ns in amounts.items() if category in _TRAINING), nothing)
    others = {
        CATEGORIES[category] if label < 0 else f"{CATEGORIES[category]}:{timeline.table.labels[label]}": ns
        for (category, label), ns in amounts.items()
        if category not in _TRAINING
    }
    names, columns = list(others), np.array([trained, *others.values()])
    return [None if row == 0 else names[row - 1] for row in columns.argmax(axis=0).tolist()]


def _no_steps_reason(timeline: Timeline, start: int, end: int) -> str:
    """Return why there are no step times, and for checkpoint logs the mean times between checkpoints."""
    if timeline.records is not None:
        return "no step times: the window needs two recorded steps of one attempt"
    if not np.any(of_kind(timeline.table.kind, CHECKPOINT_KINDS)):
        return "no step times: the log does not record steps"
    spans = timeline.training.spans
    inside = (spans.start >= start) & (spans.end <= end) & ~spans.opening
    rates = (spans.end - spans.start)[inside] / spans.steps[inside] / 1e9
    reason = "no step times: this log records checkpoints, not steps"
    if len(rates) == 0:
        return reason
    middle, slowest = float(np.median(rates)), float(rates.max())
    between = f"Between checkpoints, a step took {middle:.6g} s"
    return f"{reason}. {between} (median of {len(rates)}, at most {slowest:.6g} s)"


REGIMES = "Slow periods"
_MOST_CHANGES = 5
"""Changes of the size of a step that are named."""


def steps_sheet(analysis: Analysis, report: StepReport, by: By = "phase", *, with_metrics: bool = True) -> Sheet:
    """Everything about the step times of the window, and what the program measured."""
    sources = analysis.table.files
    metrics = measured(analysis) if with_metrics else []
    columns = (*_people_columns(report, sources), *SLOW_STEPS.table_columns())
    return Sheet(
        title=f"Step times of {analysis.job.name}",
        summary=tuple(_summary(analysis, report)),
        columns=columns,
        rows=SLOW_STEPS.of_rows(report.slowest).cells(columns),
        notes=tuple(_notes(analysis, report, sources)),
        sections=(
            *(sheet for one in CAPABILITIES for sheet in one.step_sections(analysis, by)),
            *([_regime_sheet(report, sources)] if report.regimes else []),
            _histogram_sheet(report),
            *([metric_sheet(metrics, falls_of_mfu(analysis, report.regimes))] if metrics else []),
        ),
        answer=lambda: steps_answer(analysis, report),
    )


def _people_columns(report: StepReport, sources: Sequence[str]) -> Iterator[Column]:
    ideal = report.statistics.ideal_seconds
    yield Column("steps", "count", Audience.PEOPLE, each(lambda slow: _steps(slow.step, slow.step + slow.count - 1)))
    yield from SLOW_STEPS.people_columns()
    yield Column("step time", "duration", Audience.PEOPLE, each(lambda slow: _ns(slow.seconds)))
    times = each(lambda slow: round(slow.seconds / ideal, 2) if ideal else None)
    yield Column("x ideal", "number", Audience.PEOPLE, times)
    yield Column("evidence", "text", Audience.PEOPLE, each(lambda slow: location_text(slow.where, sources)))


def _steps(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _summary(analysis: Analysis, report: StepReport) -> Iterator[str]:
    steps = report.statistics
    yield window_text(analysis)
    yield f"{plural(steps.count, 'step time')}: {step_times_text(steps)}"
    mean, most = map(duration_of_seconds, (report.mean_deviation_seconds, report.max_deviation_seconds))
    yield f"absolute deviation from the ideal step time: mean {mean}, max {most}"
    if report.finding.text:
        yield report.finding.text
    if report.wander is not None and (words := wander_text(report.wander)) != report.finding.reason:
        yield words
    yield from map(drift_text, report.drifts)
    for regime in report.regimes:
        since = " ".join(clock(regime.start_ns))
        until = "to the end" if regime.ongoing else f"to {' '.join(clock(regime.end_ns))}"
        yield (
            f"slow period: steps {regime.first_step} to {regime.last_step} took {regime.factor:.2f} x the usual "
            f"{duration_of_seconds(regime.usual_seconds)}, from {since} UTC {until}"
        )


def _notes(analysis: Analysis, report: StepReport, sources: Sequence[str]) -> Iterator[str]:
    yield from changes_of_size(analysis.timeline, analysis.window.start_ns, analysis.window.end_ns)[:_MOST_CHANGES]
    yield from report.more_work[:_MOST_CHANGES]
    if any(slow.count > 1 for slow in report.slowest):
        yield "not every step is logged: times are means over the steps between two logged ones"
    if report.slowest and (words := evidence_text(sources)) is not None:
        yield words


def _regime_sheet(report: StepReport, sources: Sequence[str]) -> Sheet:
    columns = (
        Column("steps", "count", Audience.PEOPLE, each(lambda regime: _steps(regime.first_step, regime.last_step))),
        *SLOW_REGIMES.people_columns(),
        Column("step time", "duration", Audience.PEOPLE, each(lambda regime: _ns(regime.seconds))),
        Column("x usual", "number", Audience.PEOPLE, each(lambda regime: round(regime.factor, 2))),
        Column("beyond usual", "duration", Audience.PEOPLE, each(lambda regime: _ns(regime.lost_seconds))),
        Column("evidence", "text", Audience.PEOPLE, each(lambda regime: location_text(regime.where, sources))),
    )
    rows = table_rows(columns, len(report.regimes), lambda: [report.regimes])
    return Sheet(title=REGIMES, columns=columns, rows=rows)


def metric_sheet(metrics: Sequence[MetricStatistics], falls: Sequence[str] = ()) -> Sheet:
    """Return the table of metrics. falls: sentences about where they fell."""
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
class StepTimeStatistics:
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


_ADDED = Json(spread=partial(added_fields, "steps_answer"))


@written("steps_answer", "goodput steps --format json: step times of the window", kind="steps")
@dataclass(frozen=True, kw_only=True)
class StepsAnswer:
    """goodput steps --format json: step times of the window"""

    job: NamedJob
    window: MeasuredWindow
    steps: StepTimeStatistics
    slowest: Annotated[Sequence[SlowStep], SLOW_STEPS]
    """the slowest first"""
    slow_regimes: Annotated[Sequence[Regime], SLOW_REGIMES]
    """slow periods: step times at a lasting higher level, in time order"""
    metrics: dict[str, MetricStatistics]
    """by name: mfu, tflops, throughput, latency, and step_time as the program reports it"""
    histogram: Annotated[Sequence[Bin], BINS]
    drifts: Annotated[Sequence[Drift], Json(optional=True)] = ()
    """where step times grew steadily, in time order; a step belongs to a drift or to a slow period, never to both"""
    inside: Annotated[InsideAnswer | None, Json(optional=True)] = None
    """step breakdown by phase and rank, and amounts of work; left out if neither is logged"""
    accelerators: Annotated[Devices | None, Json(optional=True)] = None
    """accelerator activity; left out if the log has no accelerator samples"""
    pace: Annotated[PaceFinding | None, Json(optional=True)] = None
    """whether step times rose to a lasting higher level"""
    wander: Annotated[StepTimeDrift | None, Json(optional=True)] = None
    """slow drift of step times that hides changes of level; null: none"""
    others: Annotated[Facts, _ADDED] = field(default_factory=dict)
    """fields of capabilities"""


def steps_answer(analysis: Analysis, report: StepReport) -> StepsAnswer:
    """The step times of the window."""
    return StepsAnswer(
        job=named_job(analysis),
        window=measured_window(analysis),
        steps=StepTimeStatistics(
            **asdict(report.statistics),
            mean_deviation_seconds=report.mean_deviation_seconds,
            max_deviation_seconds=report.max_deviation_seconds,
        ),
        slowest=report.slowest,
        slow_regimes=report.regimes,
        drifts=report.drifts,
        inside=inside_answer(analysis),
        accelerators=analysis.accelerators,
        pace=report.finding,
        wander=report.wander,
        metrics={row.name: row for row in measured(analysis)},
        histogram=report.histogram,
        others=added_values("steps_answer", analysis),
    )
