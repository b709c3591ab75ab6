"""Answer of a comparison: the sides, and each of them compared with the baseline.

Everything is exact here (integers and fractions).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import attrgetter
from typing import Annotated, Literal

from goodput_cli.analysis.compare.work import Moved, WorkComparison, WorkTime
from goodput_cli.analysis.goodput.thresholds import TIMES, measure_named
from goodput_cli.analysis.json_fields import Count, FromOne, Instant, Json, written
from goodput_cli.analysis.measures import MEASURES, Measure, percent_of, value_of
from goodput_cli.analysis.results import InferredRules, Method
from goodput_cli.analysis.summary import Summary
from goodput_cli.analysis.threshold import (
    CHANGE,
    PERCENT,
    POINTS,
    Expression,
    Subject,
    Threshold,
    judged,
    read,
)
from goodput_cli.diagnostics.diagnostic import Diagnostic

UNITS: dict[str, Literal["s", "%", ""]] = {"time": "s", "share": "%", "ratio": "%", "count": ""}
_MOST_PERCENT = 10**12
"""A change of more is a change from nothing."""


@written("side_window", "the window of the question")
@dataclass(frozen=True)
class SideWindow:
    """The window of a side."""

    start_ns: Instant
    """when it begins"""
    end_ns: Instant
    """when it ends"""
    ns: FromOne
    """from its begin to its end"""
    excluded_ns: Count
    """excluded part of it"""


@written("side_goodput")
@dataclass(frozen=True)
class SideGoodput:
    """Goodput of a side."""

    ns: int
    """productive time"""
    percent: Fraction
    """of the window without exclusions"""


@written("side_reference", "the reference step time in use")
@dataclass(frozen=True)
class SideReference:
    """The reference step time of a side."""

    step_time_seconds: float | None
    """null: not needed, or missing in the saved answer"""
    origin: Literal["given", "auto"] | None
    """whether a person gave it, or it was taken from the log"""


@written("compared_side", keys="name job source saved run window goodput reference method")
@dataclass(frozen=True)
class Side:
    """One side of a comparison."""

    name: str
    """name in the report: the job's name, or more if that does not distinguish the sides"""
    source: str
    """as it was named"""
    saved: bool
    """whether it is an answer that analyze had saved"""
    run: str | None
    """the run that was asked for"""
    summary: Summary
    """Its numbers."""

    @property
    def job(self) -> str:
        return self.summary.job

    @property
    def window(self) -> SideWindow:
        window = self.summary.window
        return SideWindow(window.start_ns, window.end_ns, window.ns, window.excluded_ns)

    @property
    def goodput(self) -> SideGoodput:
        return SideGoodput(self.goodput_ns, self.percent)

    @property
    def reference(self) -> SideReference:
        return SideReference(self.summary.reference_seconds, self.summary.origin)

    @property
    def method(self) -> Method | None:
        """how the accounting was made; null: missing in the saved answer"""
        return self.summary.method

    @property
    def goodput_ns(self) -> int:
        """Return the productive time; a side without it was rejected before."""
        assert self.summary.goodput_ns is not None
        return self.summary.goodput_ns

    @property
    def percent(self) -> Fraction:
        """Goodput in percent."""
        return percent_of(self.summary, self.goodput_ns)


@written("waterfall_step")
@dataclass(frozen=True)
class Contribution:
    """One kind of badput on both sides; None if a side does not record it."""

    category: str
    """its name"""
    label: str | None
    """of custom events"""
    baseline_ns: int | None
    """null: not recorded in the baseline"""
    ns: int | None
    """null: not recorded in this side"""
    baseline_percent: Fraction | None
    """of the baseline's window without exclusions"""
    percent: Fraction | None
    """of this side's window without exclusions"""
    points: Fraction | None
    """effect of the change on goodput (+ gain, - loss), in percentage points; null: one side does not record it"""
    seconds: Fraction | None
    """the same of this side's window"""
    work_seconds: Annotated[Fraction | None, Json(optional=True)] = None
    """time of this category that the work of this side saved (+) or added (-) compared with the same work on the
    baseline; null: one side does not record it, or the two did not do the same work"""
    moved: Annotated[Moved | None, Json(optional=True)] = None
    """by work_seconds, where these are more than noise; never by its share"""

    @property
    def taken(self) -> Fraction:
        """Return the points, or 0 if a side does not record the category."""
        return (self.baseline_percent or Fraction(0)) - (self.percent or Fraction(0))


@written("compared_fact", keys="measure unit baseline value change percent")
@dataclass(frozen=True)
class Change:
    """A measure on both sides, in the unit of its dimension."""

    measure: Annotated[Measure[Summary], Json(key="name", made=attrgetter("name"), kind=str)]
    """as in --fail-if"""
    baseline: Fraction | None
    """null: not recorded, or no disruption to average over"""
    value: Fraction | None
    """null: not recorded, or no disruption to average over"""

    @property
    def unit(self) -> Literal["s", "%", ""]:
        """of baseline, value and change (a change in % is in percentage points)"""
        return UNITS[self.measure.dimension]

    @property
    def change(self) -> Fraction | None:
        """value - baseline; null where one is"""
        return None if self.baseline is None or self.value is None else self.value - self.baseline

    @property
    def percent(self) -> Annotated[Fraction | None, Json(key="change_percent")]:
        """of the baseline's value; null where that is 0 or one is null"""  # or next to nothing
        if self.change is None or not self.baseline:
            return None
        percent = 100 * self.change / abs(self.baseline)
        return percent if abs(percent) < _MOST_PERCENT else None


@written(
    "compared_pair",
    keys="number work points goodput_seconds contributions one_sided changes",
)
@dataclass(frozen=True, kw_only=True)
class Pair:
    """One side compared with the baseline."""

    number: Annotated[FromOne, Json(key="side")]
    """position in sides, from 0"""
    baseline: Side
    """The baseline."""
    side: Side
    """The compared side."""
    work: WorkTime | None
    """time for the same work; null: a side kept no steps"""
    same_work: WorkComparison | None
    """The comparison of the same work, by category."""
    points: Annotated[Fraction, Json(key="goodput_points")]
    """change of goodput (+ rise, - fall), in percentage points"""
    contributions: Annotated[tuple[Contribution, ...], Json(key="waterfall")]
    """every kind of badput that a side has or records, the largest change first; kinds that one side
    does not record are last"""
    one_sided: Annotated[Fraction, Json(key="one_sided_points")]
    """sum of the categories that only one side records; with all points of the waterfall it is goodput_points"""
    changes: Annotated[tuple[Change, ...], Json(key="facts")]
    """other changes"""  # every measure except the shares of categories
    thresholds: tuple[Threshold, ...]
    """Judged on this pair."""

    @property
    def goodput_seconds(self) -> Fraction:
        """the same of this side's window"""
        return self.worth_ns(self.points) / 10**9

    def worth_ns(self, points: Fraction) -> Fraction:
        """Points as time (ns) of this side's window."""
        return worth_ns(points, self.side.summary)


@dataclass(frozen=True, repr=False)
class ComparisonData:
    """The data of a `Comparison`."""

    baseline: Side
    """Side that every other side is compared with."""
    pairs: tuple[Pair, ...]
    """Every other side against the baseline."""
    diagnostics: tuple[Diagnostic, ...]
    """Warnings of the comparison, and of all sides."""
    more_baselines: tuple[Side, ...] = ()
    """Further baselines: with three in all, a side differs where it lies outside of what these differ by."""

    drafted: InferredRules | None = None
    """Rules that were drafted from one of the logs, where no format reads it."""
    drafted_from: str = ""
    """Log from which the rules were inferred."""

    @property
    def doubts(self) -> tuple[str, ...]:
        """Return the warnings next to the headline."""
        return () if self.drafted is None else (self.drafted.sentence([self.drafted_from]), *self.drafted.doubts)

    @property
    def sides(self) -> tuple[Side, ...]:
        """The baseline, and the others in the order given."""
        return (self.baseline, *(pair.side for pair in self.pairs))

    @property
    def thresholds(self) -> tuple[Threshold, ...]:
        """Return the thresholds of all pairs."""
        return tuple(threshold for pair in self.pairs for threshold in pair.thresholds)


def worth_ns(points: Fraction, side: Summary) -> Fraction:
    """Points as time (ns) of a side's window."""
    return points * side.window.counted_ns / 100


RELATIVE = PERCENT
"""Percent of the baseline's value."""
_OF_ONE_LOG = re.compile(r"<=|>=|==|!=|<|>")


def _instead(text: str, accepted: str) -> str:
    """Return what to do instead, also for an expression that judges one log."""
    if _OF_ONE_LOG.search(text) is None:
        return f"write {accepted}"
    return f"compare judges changes: write {accepted}. For one log, use `goodput analyze --fail-if`"


CHANGES = Subject(
    "a change",
    "NAME:CHANGE[UNIT], as in 'goodput:-2pp', 'steps.p99:+10%', 'mean_downtime:+5m' or 'disruptions:+2'",
    measure_named,
    {
        "share": (POINTS, RELATIVE, *TIMES), "ratio": (POINTS, RELATIVE), "time": (*TIMES, RELATIVE),
        "count": ("", RELATIVE),
    },
    shape=CHANGE,
    of_name="a change of ",
    instead=_instead,
)  # fmt: skip


def parse_change(text: str, *, fails: bool = True) -> Expression:
    """Parse `NAME:CHANGE[UNIT]`; the sign selects a fall (-) or a rise (+). Without a unit, goodput and categories
    change by points, times by seconds.

    Raises `UsageError` for an invalid expression, an unknown name, a missing sign, or a unit that the name cannot have.
    """
    return read(text, CHANGES, fails=fails)


def compared_values(name: str, work: WorkTime | None) -> tuple[Fraction, Fraction] | None:
    """Time for the same work (s) on both sides, which two sides alone have; None for every other measure."""
    if name != "work_time" or work is None:
        return None
    if work.unit == "step" and work.usual is None:
        was, now = (Fraction(part.ns, 10**9) / Fraction(part.steps) for part in (work.baseline, work.side))
        return was, now
    was, now = map(Fraction, work.costs)
    return was if work.usual is None else Fraction(work.usual.mean), now


def judge(expression: Expression, baseline: Summary, side: Summary, work: WorkTime | None = None) -> Threshold:
    """The expression judged on two sides. work: what is compared for `work_time`.

    `met` is None where one of them does not record what it names; `value` is None where the change has no percentage,
    because the baseline is 0.
    """
    unit = "s" if expression.unit == "s" else PERCENT
    values = compared_values(expression.name, work) or (
        value_of(summary, expression.name, expression.label, unit) for summary in (baseline, side)
    )
    was, now = map(MEASURES[expression.name].compared, values)
    if was is None or now is None:
        return judged(expression, None)
    change = now - was
    if expression.unit != RELATIVE:
        return judged(expression, change)
    if was == 0 and change != 0:  # no percentage expresses this change, so it exceeds every limit
        met = (change < 0) == (expression.comparison == "<")
        return Threshold(expression.text, expression.fails, met, None, float(expression.limit), expression.unit)
    return judged(expression, 100 * change / abs(was) if was else Fraction(0))


NOISE = "within noise"
OTHER_WORK = "the runs did different work"
WANDERS = "inconclusive: step times drift"
_OF_PACE = ("goodput", "productive", "training_slowdown", "steps.median", "steps.mean", "steps.ideal")


_MOVED = {
    2: (
        "attempts", "disruptions", "disruptions.crashed", "disruptions.silent", "disruptions.terminated", "failures",
        "mtbf", "mean_downtime", "mean_time_to_regain", "mean_steps_lost", "mean_wasted", "saves.count",
        "saves.interval", "stopped", "wasted_progress_from_disruption", "infrastructure_recovery_from_disruption",
        "custom_badput_events",
    ),
}  # fmt: skip
"""Measures that each version of the rules changed (CHANGELOG.md)."""
_MOVED_WITH_AUTO = dict.fromkeys((2, 3), ("goodput", "productive", "training_slowdown"))
"""The same if the reference step time was taken from the log."""
OTHER_RULES = "made with other rules: save the baseline again"


def moved_between(before: Summary, after: Summary) -> frozenset[str]:
    """The measures that may differ for the rules alone."""
    older, newer = sorted((before.rules, after.rules))
    tables = (_MOVED, _MOVED_WITH_AUTO) if "auto" in (before.origin, after.origin) else (_MOVED,)
    return frozenset(
        name for table in tables for version, names in table.items() if older < version <= newer for name in names
    )


def unjudged_if_rules_differ(
    threshold: Threshold, expression: Expression, before: Summary, after: Summary
) -> Threshold:
    """Return the threshold, not judged if the rules of the two sides differ in what it measures."""
    if before.rules == after.rules or expression.name not in moved_between(before, after):
        return threshold
    return replace(threshold, met=None, value=None, hint=OTHER_RULES)


def warned_if_noise(threshold: Threshold, expression: Expression, work: WorkTime | None) -> Threshold:
    """Return the threshold, with a warning if the difference is only noise. Only `work_time` passes then: gates on
    other measures are unchanged."""
    if work is None or (not threshold.met and work.unit is not None):
        return threshold
    if expression.name == "work_time" and work.unit is None:
        return replace(threshold, met=None, value=None, hint=OTHER_WORK)
    if expression.name == "work_time" and work.is_undecided:
        return replace(threshold, met=None, value=None, hint=WANDERS)
    if expression.name == "work_time" and not work.is_clear:
        return replace(threshold, met=False, hint=NOISE)
    pace = work.pace
    if expression.name in _OF_PACE and not work.is_clear and pace is not None and not pace.is_clear:
        return replace(threshold, hint=WANDERS if work.is_undecided else NOISE)
    return threshold
