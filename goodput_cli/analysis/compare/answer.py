"""What `goodput compare --format json` answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from goodput_cli.analysis.answers import Diagnostics, ThresholdPart
from goodput_cli.analysis.compare.phrases import UNITS, float_or_none, shares
from goodput_cli.analysis.compare.work import WorkTime
from goodput_cli.analysis.results import Method
from goodput_cli.analysis.wire import Count, FromOne, Instant, Part
from goodput_cli.analysis.written import written
from goodput_cli.vocabulary.text import iso

if TYPE_CHECKING:
    from goodput_cli.analysis.compare.compare import Change, Comparison, Contribution, Pair, Side


class SideWindow(Part):
    """the window of the question"""

    start: Instant
    end: Instant
    ns: FromOne
    excluded_ns: Count


class SideGoodput(Part):
    ns: int
    percent: float
    """of the window without exclusions"""


class SideReference(Part):
    """the reference step time in use"""

    step_time_seconds: float | None
    origin: Literal["given", "auto"] | None


class ComparedSide(Part):
    name: str
    """what the report calls it: the job's name, or more where that does not tell the sides apart"""
    job: str
    source: str
    """as it was named"""
    saved: bool
    """whether it is an answer that analyze had saved"""
    run: str | None
    """the run that was asked for"""
    window: SideWindow
    goodput: SideGoodput
    reference: SideReference
    method: Method | None
    """how the accounting was made; null: the saved answer does not say"""


class WaterfallStep(Part):
    category: str
    label: str | None
    """of custom events"""
    baseline_ns: int | None
    """null: not recorded in the baseline"""
    ns: int | None
    """null: not recorded in this side"""
    baseline_percent: float | None
    """of the baseline's window without exclusions"""
    percent: float | None
    """of this side's window without exclusions"""
    points: float | None
    """what the change gave to goodput (+) or took from it (-), in percentage points; null: one side does not record
    it"""
    seconds: float | None
    """the same of this side's window"""


class ComparedFact(Part):
    name: str
    """as in --fail-if"""
    unit: Literal["s", "%", ""]
    """of baseline, value and change (a change in % is in percentage points)"""
    baseline: float | None
    """null: not recorded, or no disruption to average over"""
    value: float | None
    """null: not recorded, or no disruption to average over"""
    change: float | None
    """value - baseline; null where one is"""
    change_percent: float | None
    """of the baseline's value; null where that is 0 or one is null"""


class Work(Part):
    """time for the same work: what a kept step took all in, which is the window over the kept steps"""

    baseline_seconds: float
    """window of the baseline over its kept steps"""
    seconds: float
    """the same of this side"""
    change_percent: float
    unit: Literal["step", "sample", "accelerators", "ranks", "slices"] | None
    """what change_percent is of: a kept step; of jobs that differ in size a sample, or a sample of one of these; null:
    not the same work, and nothing says how to compare it"""
    differs: Sequence[str]
    """what both say of their size, and say otherwise"""
    baselines: int
    """of how many baselines the mean is meant: 1 is the baseline alone"""
    usual_percent: float | None
    """with three baselines or more: how far from their mean one more run like them would lie, with 95 %"""
    crashed_at: Sequence[int | None]
    """the last kept step of the baseline and of this side, where it crashed and is compared up to there"""
    clear: bool
    """whether the change is more than noise: outside of the range that step times vary by within the runs, and 2 % or
    more"""
    steps_percent: float | None
    """change of the step times alone; null: too few are known"""
    steps_range_percent: tuple[float, float] | None
    """where that lies with 95 %, by what varies within the runs"""
    shared_steps: int | None
    """kept steps of the same numbers, where these are 90 % of the shorter run's"""


class ComparedPair(Part):
    side: FromOne
    """place in sides, from 0"""
    work: Work | None
    """time for the same work; null: a side kept no steps"""
    goodput_points: float
    """what goodput rose (+) or fell (-) by, in percentage points"""
    goodput_seconds: float
    """the same of this side's window"""
    waterfall: Sequence[WaterfallStep]
    """every kind of badput that one of the two has or alone records, the largest change first, those that one side
    does not record last"""
    one_sided_points: float
    """what the categories that only one side records make together; with all points of the waterfall it is
    goodput_points"""
    facts: Sequence[ComparedFact]
    """what else there is to compare"""


@written("change_threshold", "a threshold on the change from the baseline to a side")
@dataclass(frozen=True, kw_only=True)
class ChangeThreshold(ThresholdPart):
    """A threshold on a change."""

    side: FromOne
    """place in sides, from 0"""


@written(
    "compare_answer",
    "goodput compare --format json: runs side by side, every other side against the baseline",
    kind="comparison",
)
@dataclass(frozen=True, kw_only=True)
class CompareAnswer:
    """goodput compare --format json: runs side by side, every other side against the baseline"""

    sides: Annotated[Sequence[ComparedSide], Meta(min_length=2)]
    """the baseline, then the others in the order given"""
    comparisons: Annotated[Sequence[ComparedPair], Meta(min_length=1)]
    thresholds: Sequence[ChangeThreshold]
    diagnostics: Diagnostics


def compare_answer(comparison: Comparison) -> CompareAnswer:
    """The whole comparison."""
    pairs = list(enumerate(comparison.pairs, 1))
    return CompareAnswer(
        sides=[_side(side) for side in comparison.sides],
        comparisons=[_pair(number, pair) for number, pair in pairs],
        thresholds=[
            ChangeThreshold(side=number, **asdict(threshold), verdict=threshold.verdict)
            for number, pair in pairs
            for threshold in pair.thresholds
        ],
        diagnostics=comparison.diagnostics,
    )


def _side(side: Side) -> ComparedSide:
    summary = side.summary
    window = summary.window
    return ComparedSide(
        name=side.name,
        job=summary.job,
        source=side.source,
        saved=side.saved,
        run=side.run,
        window=SideWindow(
            start=iso(window.start_ns), end=iso(window.end_ns), ns=window.ns, excluded_ns=window.excluded_ns
        ),
        goodput=SideGoodput(ns=side.goodput_ns, percent=float(side.percent)),
        reference=SideReference(step_time_seconds=summary.reference_seconds, origin=summary.origin),
        method=summary.method,
    )


def _pair(number: int, pair: Pair) -> ComparedPair:
    return ComparedPair(
        side=number,
        work=_work(pair.work),
        goodput_points=float(pair.points),
        goodput_seconds=float(pair.worth_ns(pair.points) / 10**9),
        waterfall=[_step(pair, one) for one in pair.contributions],
        one_sided_points=float(pair.one_sided),
        facts=[_fact(one) for one in pair.changes],
    )


def _work(work: WorkTime | None) -> Work | None:
    if work is None:
        return None
    pace = work.pace
    return Work(
        baseline_seconds=work.baseline_seconds,
        seconds=work.seconds,
        change_percent=work.percent,
        unit=work.unit,
        differs=work.differs,
        baselines=1 if work.usual is None else work.usual.count,
        usual_percent=None if work.usual is None else work.usual.percent,
        crashed_at=work.crashed_at,
        clear=work.is_clear,
        steps_percent=None if pace is None else pace.percent,
        steps_range_percent=None if pace is None else (pace.low, pace.high),
        shared_steps=work.shared_steps,
    )


def _step(pair: Pair, one: Contribution) -> WaterfallStep:
    was, now = shares(pair, one)
    return WaterfallStep(
        category=one.category,
        label=one.label,
        baseline_ns=one.baseline_ns,
        ns=one.ns,
        baseline_percent=float_or_none(was),
        percent=float_or_none(now),
        points=float_or_none(one.points),
        seconds=None if one.points is None else float(pair.worth_ns(one.points) / 10**9),
    )


def _fact(one: Change) -> ComparedFact:
    return ComparedFact(
        name=one.measure.name,
        unit=UNITS[one.measure.dimension],
        baseline=float_or_none(one.baseline),
        value=float_or_none(one.value),
        change=float_or_none(one.change),
        change_percent=float_or_none(one.percent),
    )
