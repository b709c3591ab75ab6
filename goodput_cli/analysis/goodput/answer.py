"""Answer of `goodput analyze`, and the content of a saved answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

from goodput_cli.accounting.options import Direction
from goodput_cli.analysis.accelerators.devices import Devices
from goodput_cli.analysis.analysis_data import Diagnostics, Thresholds
from goodput_cli.analysis.capabilities import added_fields, added_values
from goodput_cli.analysis.disruptions.rows import DISRUPTIONS
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.goodput.phrases import all_headline_warnings, last_cause
from goodput_cli.analysis.insights.kinds import Insight
from goodput_cli.analysis.json_fields import Bounds, Count, Json, written
from goodput_cli.analysis.results import (
    AtRisk,
    InferredRules,
    Job,
    Method,
    Reference,
    Reliability,
    Saves,
    SliceEfficiency,
    StepStatistics,
    Window,
)
from goodput_cli.analysis.rolling import WINDOWS, filled
from goodput_cli.analysis.step_breakdown.sheet import InsideAnswer, inside_answer
from goodput_cli.analysis.summary import Blocks, Size, progress_of, size_of
from goodput_cli.analysis.table import Facts, FilledTable
from goodput_cli.vocabulary.categories import CATEGORIES, NOT_BADPUT, OVERLAPPED, Category

_BADPUT = tuple(category.id for category in Category if category not in NOT_BADPUT)
NO_ROWS: tuple[()] = ()


@written("goodput_part")
@dataclass(frozen=True)
class Goodput:
    """Productive time."""

    ns: Annotated[Count | None, Json("seconds and ns")]
    """productive time; null: unknown, or only bounds are known"""
    percent: float | None
    """of the window without exclusions; never clamped; null: unknown, or only bounds are known"""
    at_least_percent: Annotated[float | None, Json(later=True)] = None
    """the lowest goodput that the log allows: percent where that is known; null: no lower bound"""
    at_most_percent: Annotated[float | None, Json(later=True)] = None
    """the highest goodput that the log allows: percent where that is known; null: no upper bound"""


@written("bound")
@dataclass(frozen=True)
class BoundPart:
    """One limit of an amount of time that the log leaves open (accounting, section 7)."""

    quantity: str
    """name of the measure: goodput, or a category of badput"""
    direction: Direction
    """the side of the limit"""
    ns: Annotated[int, Json("seconds and ns")]
    """the limit"""
    reason: str
    """code of the reason: bounds of one reason are readings of one question"""
    text: str
    """the reason in a sentence"""
    lines: Sequence[str]
    """file:line of the first lines that show it"""


@written("badput")
@dataclass(frozen=True, kw_only=True)
class Badput:
    """A row of the ledger."""

    category: Annotated[str, Bounds(enum=_BADPUT)]
    label: str | None = None
    """of custom_badput_events"""
    ns: Annotated[int, Json("seconds and ns")]
    """may be negative for training_slowdown"""
    percent: float | None
    """of the window without exclusions"""


@written("overlapped")
@dataclass(frozen=True)
class OverlappedTime:
    """Time that overlaps training."""

    category: Annotated[str, Bounds(enum=(OVERLAPPED,))]
    ns: Annotated[Count, Json("seconds and ns")]
    """time that overlaps training"""


_OF_ANSWER, _OF_LAST_END = (Json(spread=partial(added_fields, hook)) for hook in ("answer", "last_end"))


@written("last_end")
@dataclass(frozen=True)
class LastEnd:
    """Cause of the last attempt's failure (docs/causes.md)."""

    cause: str
    """unknown: not logged"""
    certainty: str | None
    """confirmed or likely; null if the cause is unknown"""
    text: str | None
    """the line that states it"""
    where: str | None
    """file:line"""
    rank: int | None
    host: str | None
    device: str | None
    others: Annotated[Facts, _OF_LAST_END] = field(default_factory=dict)
    """fields of capabilities"""


@written(
    "analysis_answer",
    "goodput analyze --format json: where every second of one job went. In integers, goodput.ns and all badput[].ns "
    "add up to window.ns - window.excluded_ns, if goodput is known. Every key is always present; null: not "
    "recorded, or does not apply.",
    kind="analysis",
    indented=True,
)
@dataclass(frozen=True, kw_only=True)
class AnalysisAnswer:
    """Time by category of one job. Lists that may be long are made on demand."""

    job: Job
    window: Window
    goodput: Goodput
    bounds: Annotated[Sequence[BoundPart], Json(later=True)] = ()
    """bounds of amounts that the log does not decide; rows of badput contain one reading"""
    too_short: bool = False
    """fewer than ten steps were kept, or one or two records cover all steps: percentages mean little. Or the log shows
    no training and the job did not crash, so goodput is null"""
    doubts: Sequence[str] = ()
    """warnings about goodput: why it means little, is unknown, or may be that of another job"""
    drafted: Annotated[InferredRules | None, Json(optional=True)] = None
    """rules inferred from the log, if no format reads it"""
    insights: Sequence[Insight] = ()
    """what cost most, the most costly first; empty for a healthy run"""
    badput: Sequence[Badput]
    """every category that is not zero, the largest first; without excluded"""
    overlapped: Sequence[OverlappedTime] = ()
    """time that overlaps training and is not badput"""
    at_risk: AtRisk | None
    reference: Reference
    method: Method | None = None
    """accounting options chosen by the user; the reference step time is in reference"""
    steps: StepStatistics
    inside: Annotated[InsideAnswer | None, Json(optional=True)] = None
    """step breakdown by phase and rank, and the work of the steps; left out if not logged"""
    accelerators: Annotated[Devices | None, Json(optional=True)] = None
    """activity of accelerators; left out without accelerator samples"""
    step_blocks: Sequence[float] = ()
    """step times (s) of up to 64 parts of the window in time order; comparisons estimate noise from them"""
    progress: Sequence[tuple[int, float]] = ()
    """the step before the first kept one, and up to 64 kept ones at equal distances, with the last, each with the
    seconds of the window until it was done, without excluded time; comparisons use it to compare the same steps"""
    size: Size | None
    """logged size of the job; comparisons use it to check whether two runs did the same work"""
    saves: Saves | None
    elastic: SliceEfficiency
    reliability: Reliability | None
    rolling: Annotated[FilledTable | tuple[()], WINDOWS] = NO_ROWS
    """windows, length by length and each in time order (--window)"""
    disruptions: Annotated[FilledTable | tuple[()], DISRUPTIONS] = NO_ROWS
    """the disruptions inside the window, in time order"""
    last_end: LastEnd | None = None
    """why the last attempt of the job failed, if it crashed; null otherwise"""
    others: Annotated[Facts, _OF_ANSWER] = field(default_factory=dict)
    """fields of capabilities"""
    thresholds: Thresholds = ()
    not_recorded: Sequence[Annotated[str, Bounds(enum=(*CATEGORIES, OVERLAPPED))]]
    """categories without evidence in the log: unknown, not zero"""
    diagnostics: Diagnostics = ()


def analysis_answer(analysis: Analysis) -> AnalysisAnswer:
    """Return the analysis in its JSON form."""
    progress = progress_of(analysis)
    return AnalysisAnswer(
        job=analysis.job,
        window=analysis.window,
        goodput=Goodput(
            None if analysis.goodput_unknown else analysis.goodput.ns,
            analysis.goodput_percent,
            analysis.at_least_percent,
            analysis.at_most_percent,
        ),
        bounds=[
            BoundPart(one.quantity, one.direction, one.ns, one.reason, one.text, one.lines) for one in analysis.bounds
        ],
        too_short=analysis.is_too_short,
        doubts=all_headline_warnings(analysis),
        drafted=analysis.inferred_rules,
        insights=analysis.insights,
        badput=[
            Badput(category=row.category, label=row.label, ns=row.ns, percent=row.percent) for row in analysis.badput
        ],
        overlapped=[OverlappedTime(row.category, row.ns) for row in analysis.overlapped],
        at_risk=analysis.at_risk,
        reference=analysis.reference,
        method=analysis.method,
        steps=analysis.steps,
        inside=inside_answer(analysis),
        accelerators=analysis.accelerators,
        step_blocks=Blocks(analysis).values,
        progress=() if progress is None else progress.points,
        size=size_of(analysis),
        saves=analysis.saves,
        elastic=analysis.elastic,
        reliability=analysis.reliability,
        rolling=NO_ROWS if analysis.rolling is None else filled(analysis.rolling),
        disruptions=analysis.disruptions.as_table(),
        last_end=last_end(analysis),
        others=added_values("answer", analysis),
        thresholds=analysis.thresholds,
        not_recorded=analysis.not_recorded,
        diagnostics=analysis.diagnostics,
    )


def last_end(analysis: Analysis) -> LastEnd | None:
    """Return the cause of the last attempt's end; None if it did not crash and no line after its last step shows a
    possible cause."""
    if analysis.job.ending != "crashed" and last_cause(analysis) is None:
        return None
    why = analysis.timeline.causes.why[-1]
    others = added_values("last_end", analysis)
    return LastEnd(why.code, why.certainty, why.text, why.where, why.rank, why.host or None, why.device or None, others)
