"""What `goodput analyze --format json` answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from goodput_cli.analysis.answer import (
    Amount,
    Answer,
    Count,
    DiagnosticEntry,
    Instant,
    Part,
    ThresholdPart,
    diagnostic_entries,
    threshold_parts,
)
from goodput_cli.analysis.disruptions.answer import (
    DisruptionRows,
    ReliabilityPart,
    disruption_rows,
    reliability_part,
)
from goodput_cli.analysis.insights.answer import InsightPart, insight_part
from goodput_cli.analysis.results import (
    Analysis,
    AtRisk,
    CategoryTime,
    Elastic,
    Ending,
    Job,
    Method,
    Reference,
    Window,
)
from goodput_cli.analysis.rolling.answer import RollingRows, rolling_rows
from goodput_cli.vocabulary.categories import CATEGORIES, NOT_BADPUT, OVERLAPPED, Category
from goodput_cli.vocabulary.text import finite, iso

_BADPUT = [category.id for category in Category if category not in NOT_BADPUT]


class JobPart(Part):
    name: str
    start: Instant
    """T0, the start of the job window"""
    end: Instant
    """T1, the end of the job window"""
    ending: Ending
    """how the job's last attempt ended, as far as it was logged"""
    attempts: Count
    """lives of the job"""
    runs: Count
    """how often the job's name was used"""
    disruptions: Count
    """passages to a next attempt that do not follow a clean end"""
    first_step: int | None
    """first step of the final progress inside the window"""
    last_step: int | None
    """last recorded step of the final progress inside the window; it may be in flight, or lost. Of checkpoint logs:
    where kept progress ends"""
    kept_steps: Amount | None
    """steps of the final progress inside the window; an integer unless a step counts in part"""
    formats: Sequence[str]
    """log formats seen"""


class WindowPart(Part):
    """the window of the question"""

    start: Instant
    end: Instant
    seconds: float
    """length, exclusions included"""
    ns: Count
    """length in ns, exclusions included"""
    excluded_seconds: float
    """taken out by the user"""
    excluded_ns: Count
    """taken out by the user, in ns"""


class GoodputPart(Part):
    seconds: float
    """productive time"""
    ns: Count
    percent: float | None
    """of the window without exclusions; never clamped"""


class Badput(Part, kw_only=True):
    category: Annotated[str, Meta(extra_json_schema={"enum": _BADPUT})]
    label: str | None = None
    """of custom_badput_events"""
    seconds: float
    """may be negative for training_slowdown"""
    ns: int
    percent: float | None
    """of the window without exclusions"""


class Overlapped(Part):
    category: Annotated[str, Meta(extra_json_schema={"enum": [OVERLAPPED]})]
    seconds: float
    """time beside the ledger"""
    ns: Count


class AtRiskPart(Part):
    """kept progress after the last completed save, 0 after a clean end; null where the log has no saves"""

    steps: Amount | None = None
    seconds: Amount | None = None


class ReferencePart(Part):
    """the checkpoint-step model and the resiliency calculator's table"""

    step_time_seconds: Amount | None
    """the reference step time"""
    origin: Literal["given", "auto"] | None
    """auto: taken from the log itself"""
    effective_computation_seconds: float | None
    """kept steps x reference step time"""
    min_loaded_step: int | None
    max_saved_step: int | None
    step_difference: int | None
    total_events: Count
    """lines left after removing identical ones"""
    job_started_count: Count
    """attempts that a start line opened"""
    checkpoints_loaded: Count
    """loads of a step above 0"""
    checkpoints_saved: Count
    """checkpoints saved"""


class StepsPart(Part):
    count: Count
    """step times recorded"""
    ideal_seconds: Amount | None = None
    """mean of the step times up to median + 3 x MAD"""
    mean_seconds: Amount | None = None
    median_seconds: Amount | None = None
    p90_seconds: Amount | None = None
    p99_seconds: Amount | None = None


class SavesPart(Part):
    """checkpoints saved in the window: the reports of all hosts about one step are one save; null where the log has no
    saves"""

    count: Count | None = None
    interval_seconds: Amount | None = None
    """median time between the beginnings of two saves in a row of one attempt"""


class ElasticPart(Part):
    """slice efficiency (accounting, section 9)"""

    stepping_slice_efficiency: Amount | None = None
    """time-weighted mean of active/total slices over the window, 0 to 1; null: no counts known"""
    available_slice_efficiency: Amount | None = None
    """the same of available/total slices"""
    unknown_seconds: Amount | None = None
    """time of the window left out because no count was known; null: no counts in the log"""
    goodput_x_stepping_percent: Amount | None = None
    """goodput times stepping_slice_efficiency"""


class AnalysisAnswer(Answer, kw_only=True):
    """goodput analyze --format json: where every second of one job went. In integers, goodput.ns and all badput[].ns
    add up to window.ns - window.excluded_ns. Every key is always there; what was not recorded or does not apply is
    null."""

    indented: ClassVar[bool] = True

    kind: Literal["analysis"] = "analysis"
    job: JobPart
    window: WindowPart
    goodput: GoodputPart
    insights: Sequence[InsightPart] = ()
    """what cost most, the most first; none on a healthy run"""
    badput: Sequence[Badput]
    """every category that is not zero, the largest first; without excluded"""
    overlapped: Sequence[Overlapped] = ()
    """time that overlaps training and is not badput"""
    at_risk: AtRiskPart = field(default_factory=AtRiskPart)
    reference: ReferencePart
    method: Method | None = None
    """how the accounting was made, as far as the user chooses it; the reference step time is in reference"""
    steps: StepsPart
    saves: SavesPart = field(default_factory=SavesPart)
    elastic: ElasticPart = field(default_factory=ElasticPart)
    reliability: ReliabilityPart = field(default_factory=ReliabilityPart)
    rolling: RollingRows = ()
    """windows, length by length and each in time order (--window)"""
    disruptions: DisruptionRows = ()
    """the disruptions inside the window, in time order"""
    thresholds: Sequence[ThresholdPart] = ()
    not_recorded: Sequence[Annotated[str, Meta(extra_json_schema={"enum": [*CATEGORIES, OVERLAPPED]})]]
    """categories that the log holds no evidence for: unknown, not zero"""
    diagnostics: Sequence[DiagnosticEntry] = ()


def analysis_answer(analysis: Analysis) -> AnalysisAnswer:
    """The analysis as JSON has it. Lists that may be long are made when they are written."""
    goodput, saves = analysis.goodput, analysis.saves
    return AnalysisAnswer(
        job=_job(analysis.job),
        window=_window(analysis.window),
        goodput=GoodputPart(seconds=goodput.seconds, ns=goodput.ns, percent=goodput.percent),
        insights=[insight_part(insight) for insight in analysis.insights],
        badput=[badput(row) for row in analysis.badput],
        overlapped=[Overlapped(category=row.category, seconds=row.seconds, ns=row.ns) for row in analysis.overlapped],
        at_risk=_at_risk(analysis.at_risk),
        reference=_reference(analysis.reference),
        method=analysis.method,
        steps=StepsPart(**asdict(analysis.steps)),
        saves=SavesPart() if saves is None else SavesPart(**asdict(saves)),
        elastic=_elastic(analysis.elastic),
        reliability=reliability_part(analysis.reliability),
        rolling=() if analysis.rolling is None else rolling_rows(analysis.rolling),
        disruptions=disruption_rows(analysis.disruptions),
        thresholds=threshold_parts(analysis.thresholds),
        not_recorded=analysis.not_recorded,
        diagnostics=diagnostic_entries(analysis.diagnostics),
    )


def badput(row: CategoryTime) -> Badput:
    """A row of the ledger."""
    return Badput(category=row.category, label=row.label, seconds=row.seconds, ns=row.ns, percent=row.percent)


def _job(job: Job) -> JobPart:
    return JobPart(
        name=job.name,
        start=iso(job.start_ns),
        end=iso(job.end_ns),
        ending=job.ending,
        attempts=job.attempts,
        runs=job.runs,
        disruptions=job.disruptions,
        first_step=job.first_step,
        last_step=job.last_step,
        kept_steps=_whole(job.kept_steps),
        formats=job.formats,
    )


def _window(window: Window) -> WindowPart:
    return WindowPart(
        start=iso(window.start_ns),
        end=iso(window.end_ns),
        seconds=window.ns / 1e9,
        ns=window.ns,
        excluded_seconds=window.excluded_ns / 1e9,
        excluded_ns=window.excluded_ns,
    )


def _at_risk(at_risk: AtRisk | None) -> AtRiskPart:
    return AtRiskPart() if at_risk is None else AtRiskPart(steps=_whole(at_risk.steps), seconds=at_risk.ns / 1e9)


def _reference(reference: Reference) -> ReferencePart:
    effective = reference.effective_computation_ns
    values = asdict(reference)
    del values["effective_computation_ns"]
    return ReferencePart(**values, effective_computation_seconds=None if effective is None else effective / 1e9)


def _elastic(elastic: Elastic) -> ElasticPart:
    return ElasticPart(
        stepping_slice_efficiency=elastic.stepping,
        available_slice_efficiency=elastic.available,
        unknown_seconds=None if elastic.unknown_ns is None else elastic.unknown_ns / 1e9,
        goodput_x_stepping_percent=elastic.goodput_percent,
    )


def _whole(value: float) -> float | int | None:
    """An int where the number is whole: counts of steps are, but for shares."""
    if finite(value) is None:
        return None
    return int(value) if value == int(value) else float(value)
