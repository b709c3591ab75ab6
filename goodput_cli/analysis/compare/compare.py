"""Two runs or more, held against one of them: where the difference in goodput comes from, and what else changed.

Goodput is 100 % less the shares of all badput, so the difference of two goodputs is the sum of the differences of these
shares: what each category gave or took, in percentage points. Everything is exact here (integers and fractions).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from operator import attrgetter
from typing import Annotated, Literal

from msgspec import Meta

from goodput_cli.analysis.answers import Diagnostics, ThresholdPart
from goodput_cli.analysis.compare.thresholds import beside_noise, compared_values, judge
from goodput_cli.analysis.compare.work import WorkTime, work_time
from goodput_cli.analysis.measures import FACTS, Measure, amount_ns, percent_of
from goodput_cli.analysis.results import Method
from goodput_cli.analysis.sheet import Answered, Sheet
from goodput_cli.analysis.summary import Summary
from goodput_cli.analysis.threshold import Expression, Threshold
from goodput_cli.analysis.written import Count, FromOne, Instant, Json, written
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.vocabulary.categories import CATEGORIES, NOT_BADPUT, Category
from goodput_cli.vocabulary.option import declared

UNITS: dict[str, Literal["s", "%", ""]] = {"time": "s", "share": "%", "ratio": "%", "count": ""}
_LABELLED = frozenset(category.id for category in Category if category.row.has_labels)
_COMPARED = tuple(category.id for category in Category if category not in NOT_BADPUT and not category.row.has_labels)


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
    """what of it is excluded"""


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
    """null: none was needed, or the saved answer does not say"""
    origin: Literal["given", "auto"] | None
    """whether a person gave it, or it was taken from the log"""


@written("compared_side", keys="name job source saved run window goodput reference method")
@dataclass(frozen=True)
class Side:
    """One side of a comparison."""

    name: str
    """what the report calls it: the job's name, or more where that does not tell the sides apart"""
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
        """how the accounting was made; null: the saved answer does not say"""
        return self.summary.method

    @property
    def goodput_ns(self) -> int:
        """Productive time; a side of which it cannot be judged is refused before."""
        assert self.summary.goodput_ns is not None
        return self.summary.goodput_ns

    @property
    def percent(self) -> Fraction:
        """Goodput in percent."""
        return percent_of(self.summary, self.goodput_ns)


@written("waterfall_step")
@dataclass(frozen=True)
class Contribution:
    """One kind of badput on both sides; None where a side does not record it."""

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
    """what the change gave to goodput (+) or took from it (-), in percentage points; null: one side does not record
    it"""
    seconds: Fraction | None
    """the same of this side's window"""

    @property
    def taken(self) -> Fraction:
        """The same in points, where a side that does not record it has none."""
        return (self.baseline_percent or Fraction(0)) - (self.percent or Fraction(0))


_MOST_PERCENT = 10**12
"""A change of more is a change from nothing."""


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
    """One side against the baseline."""

    number: Annotated[FromOne, Json(key="side")]
    """place in sides, from 0"""
    baseline: Side
    """What it is compared with."""
    side: Side
    """What is compared."""
    work: WorkTime | None
    """time for the same work; null: a side kept no steps"""
    points: Annotated[Fraction, Json(key="goodput_points")]
    """what goodput rose (+) or fell (-) by, in percentage points"""
    contributions: Annotated[tuple[Contribution, ...], Json(key="waterfall")]
    """every kind of badput that one of the two has or alone records, the largest change first, those that one side
    does not record last"""
    one_sided: Annotated[Fraction, Json(key="one_sided_points")]
    """what the categories that only one side records make together; with all points of the waterfall it is
    goodput_points"""
    changes: Annotated[tuple[Change, ...], Json(key="facts")]
    """what else there is to compare"""  # every measure but the shares of categories
    thresholds: tuple[Threshold, ...]
    """Judged on this pair."""

    @property
    def goodput_seconds(self) -> Fraction:
        """the same of this side's window"""
        return self.worth_ns(self.points) / 10**9

    def worth_ns(self, points: Fraction) -> Fraction:
        """Points as time (ns) of this side's window."""
        return _worth_ns(points, self.side.summary)


@dataclass(frozen=True, repr=False)
class Comparison(Answered):
    """Two or more runs, each compared with the baseline."""

    baseline: Side
    """What every other side is compared with."""
    pairs: tuple[Pair, ...]
    """Every other side against the baseline."""
    diagnostics: tuple[Diagnostic, ...]
    """Of the comparison, and of all sides."""
    more_baselines: tuple[Side, ...] = ()
    """Further baselines: with three in all, a side differs where it lies outside of what these differ by."""

    @property
    def sides(self) -> tuple[Side, ...]:
        """The baseline, and the others in the order given."""
        return (self.baseline, *(pair.side for pair in self.pairs))

    @property
    def thresholds(self) -> tuple[Threshold, ...]:
        """Those of all pairs."""
        return tuple(threshold for pair in self.pairs for threshold in pair.thresholds)

    def sheet(self) -> Sheet:
        from goodput_cli.analysis.compare.sheet import compare_sheet

        return replace(compare_sheet(self), answer=lambda: compare_answer(self))


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

    sides: Annotated[Sequence[Side], Meta(min_length=2)]
    """the baseline, then the others in the order given"""
    comparisons: Annotated[Sequence[Pair], Meta(min_length=1)]
    thresholds: Sequence[ChangeThreshold]
    diagnostics: Diagnostics


def compare_answer(comparison: Comparison) -> CompareAnswer:
    """The whole comparison."""
    return CompareAnswer(
        sides=comparison.sides,
        comparisons=comparison.pairs,
        thresholds=[
            ChangeThreshold(side=pair.number, **asdict(threshold), verdict=threshold.verdict)
            for pair in comparison.pairs
            for threshold in pair.thresholds
        ],
        diagnostics=comparison.diagnostics,
    )


def compare_sides(
    baseline: Side, others: Sequence[Side], expressions: Sequence[Expression] = (), baselines: Sequence[Side] = ()
) -> Comparison:
    """Every other side against the baseline, and the expressions judged on each. baselines: further ones, which show
    what a run of this kind usually takes."""
    pairs = tuple(_pair(number, baseline, side, expressions, baselines) for number, side in enumerate(others, 1))
    of_sides = [diagnostic for side in (baseline, *baselines, *others) for diagnostic in side.summary.diagnostics]
    mixed = [diagnostic for side in (*baselines, *others) for diagnostic in _methods_differ(baseline, side)]
    return Comparison(baseline, pairs, tuple(dict.fromkeys([*mixed, *of_sides])), tuple(baselines))


def _pair(
    number: int, baseline: Side, side: Side, expressions: Sequence[Expression], baselines: Sequence[Side]
) -> Pair:
    before, after = baseline.summary, side.summary
    work = work_time(before, after, [one.summary for one in baselines])
    contributions = sorted(_contributions(before, after), key=_by_size)
    return Pair(
        number=number,
        baseline=baseline,
        side=side,
        points=side.percent - baseline.percent,
        contributions=tuple(contributions),
        one_sided=sum((row.taken for row in contributions if row.points is None), Fraction(0)),
        changes=tuple(_change(fact, before, after, work) for fact in FACTS),
        thresholds=tuple(
            beside_noise(judge(expression, before, after, work), expression, work) for expression in expressions
        ),
        work=work,
    )


def _change(fact: Measure[Summary], before: Summary, after: Summary, work: WorkTime | None) -> Change:
    """A measure on both sides; time for the same work is of what is compared for that."""
    values = compared_values(fact.name, work) or (fact.of(before), fact.of(after))
    return Change(fact, fact.compared(values[0]), fact.compared(values[1]))


def _contributions(before: Summary, after: Summary) -> Iterator[Contribution]:
    """Every kind of badput that at least one side records, and that is not zero on both."""
    labels = sorted({key for side in (before, after) for key in side.badput if key[0] in _LABELLED}, key=str)
    for category, label in [*((name, None) for name in _COMPARED), *labels]:
        baseline_ns, ns = (amount_ns(side, category, label) for side in (before, after))
        was = None if baseline_ns is None else percent_of(before, baseline_ns)
        now = None if ns is None else percent_of(after, ns)
        if was is None or now is None:
            if was is not None or now is not None:
                yield Contribution(category, label, baseline_ns, ns, was, now, None, None)
        elif baseline_ns or ns:
            seconds = _worth_ns(was - now, after) / 10**9
            yield Contribution(category, label, baseline_ns, ns, was, now, was - now, seconds)


def _worth_ns(points: Fraction, side: Summary) -> Fraction:
    return points * side.window.counted_ns / 100


def _by_size(row: Contribution) -> tuple[bool, Fraction, int, str]:
    return row.points is None, -abs(row.taken), CATEGORIES.index(row.category), row.label or ""


def _methods_differ(baseline: Side, side: Side) -> Iterator[Diagnostic]:
    """Sides that were not measured in the same way: part of the difference is the ruler's."""
    differences = list(_differences(baseline.summary, side.summary))
    if differences:
        message = (
            f"{side.name} was not measured as {baseline.name} was: {'; '.join(differences)}. Part of the difference "
            "comes from that; give both the same options, and save a saved analysis anew with them"
        )
        yield Diagnostic.of("methods_differ", message, 1, (baseline.source, side.source))


def _differences(before: Summary, after: Summary) -> Iterator[str]:
    if before.reference_seconds != after.reference_seconds:
        yield f"reference step time {_reference(after)}, not {_reference(before)}"
    was, now = before.method, after.method
    if was is None or now is None:
        return
    for one in declared(Method):
        old, new = (one.typed(getattr(method, one.name)) for method in (was, now))
        if old != new:
            yield f"{one.names[0]} {new}, not {old}"


def _reference(side: Summary) -> str:
    if side.reference_seconds is None:
        return "none"
    return f"{side.reference_seconds!r} s ({'its own: auto' if side.origin == 'auto' else 'given'})"
