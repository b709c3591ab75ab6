"""Comparison of two runs or more with one of them: the sources of the difference in goodput, and other changes.

Goodput is 100 % less the shares of all badput, so the difference of two goodputs is the sum of the differences of these
shares: the effect of each category, in percentage points. Everything is exact here (integers and fractions).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Annotated

from goodput_cli.analysis.analysis_data import Diagnostics, ThresholdPart
from goodput_cli.analysis.compare.results import (
    Change,
    ComparisonData,
    Contribution,
    Pair,
    Side,
    compared_values,
    judge,
    moved_between,
    unjudged_if_rules_differ,
    warned_if_noise,
    worth_ns,
)
from goodput_cli.analysis.compare.sheet import compare_sheet
from goodput_cli.analysis.compare.work import WorkComparison, WorkTime, same_work, work_time
from goodput_cli.analysis.json_fields import Bounds, FromOne, Json, written
from goodput_cli.analysis.measures import FACTS, OF_AMOUNTS, Measure, amount_ns, percent_of
from goodput_cli.analysis.results import InferredRules, Method
from goodput_cli.analysis.sheet import DisplayableAnswer, Sheet
from goodput_cli.analysis.summary import Summary
from goodput_cli.analysis.threshold import Expression, Threshold
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.vocabulary.categories import CATEGORIES, NOT_BADPUT, Category
from goodput_cli.vocabulary.option import declared

_LABELLED = frozenset(category.id for category in Category if category.row.has_labels)
_COMPARED = tuple(category.id for category in Category if category not in NOT_BADPUT and not category.row.has_labels)


@dataclass(frozen=True, repr=False)
class Comparison(ComparisonData, DisplayableAnswer):
    """Two or more runs, each compared with the baseline."""

    def sheet(self, *, full: bool = False) -> Sheet:
        return replace(compare_sheet(self, full=full), answer=lambda: compare_answer(self))


@written("change_threshold", "a threshold on the change from the baseline to a side")
@dataclass(frozen=True, kw_only=True)
class ChangeThreshold(ThresholdPart):
    """A threshold on a change."""

    side: FromOne
    """position in sides, from 0"""


@written(
    "compare_answer",
    "goodput compare --format json: runs side by side, every other side against the baseline",
    kind="comparison",
)
@dataclass(frozen=True, kw_only=True)
class CompareAnswer:
    """goodput compare --format json: runs side by side, every other side against the baseline"""

    sides: Annotated[Sequence[Side], Bounds(min_length=2)]
    """the baseline, then the others in the order given"""
    comparisons: Annotated[Sequence[Pair], Bounds(min_length=1)]
    thresholds: Sequence[ChangeThreshold]
    diagnostics: Diagnostics
    drafted: Annotated[InferredRules | None, Json(optional=True)] = None
    """rules that were drafted from one of the logs, where no format reads it"""


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
        drafted=comparison.drafted,
    )


def compare_sides(
    baseline: Side, others: Sequence[Side], expressions: Sequence[Expression] = (), baselines: Sequence[Side] = ()
) -> Comparison:
    """Every other side against the baseline, and the expressions judged on each. baselines: further ones, which show
    what a run of this kind usually takes."""
    pairs = tuple(_pair(number, baseline, side, expressions, baselines) for number, side in enumerate(others, 1))
    of_sides = [diagnostic for side in (baseline, *baselines, *others) for diagnostic in side.summary.diagnostics]
    mixed = [
        diagnostic
        for side in (*baselines, *others)
        for diagnostic in (*_rules_differ(baseline, side), *_methods_differ(baseline, side))
    ]
    return Comparison(baseline, pairs, tuple(dict.fromkeys([*mixed, *of_sides])), tuple(baselines))


def _pair(
    number: int, baseline: Side, side: Side, expressions: Sequence[Expression], baselines: Sequence[Side]
) -> Pair:
    before, after = baseline.summary, side.summary
    work = work_time(before, after, [one.summary for one in baselines])
    same = same_work(before, after, work)
    contributions = sorted(
        _contributions(before, after, same),
        key=lambda row: (row.points is None, -abs(row.taken), CATEGORIES.index(row.category), row.label or ""),
    )
    return Pair(
        number=number,
        baseline=baseline,
        side=side,
        points=side.percent - baseline.percent,
        contributions=tuple(contributions),
        one_sided=sum((row.taken for row in contributions if row.points is None), Fraction(0)),
        changes=tuple(_changes(before, after, work)),
        thresholds=tuple(
            warned_if_noise(_judged(expression, before, after, work), expression, work) for expression in expressions
        ),
        work=work,
        same_work=same,
    )


def _changes(before: Summary, after: Summary, work: WorkTime | None) -> Iterator[Change]:
    """Every fact; amounts of work only where a side has them."""
    for fact in FACTS:
        change = _change(fact, before, after, work)
        if fact not in OF_AMOUNTS or change.baseline is not None or change.value is not None:
            yield change


def _judged(expression: Expression, before: Summary, after: Summary, work: WorkTime | None) -> Threshold:
    return unjudged_if_rules_differ(judge(expression, before, after, work), expression, before, after)


def _change(fact: Measure[Summary], before: Summary, after: Summary, work: WorkTime | None) -> Change:
    """A measure on both sides; time for the same work is of what is compared for that."""
    values = compared_values(fact.name, work) or (fact.of(before), fact.of(after))
    return Change(fact, fact.compared(values[0]), fact.compared(values[1]))


def _contributions(before: Summary, after: Summary, same: WorkComparison | None) -> Iterator[Contribution]:
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
            seconds = worth_ns(was - now, after) / 10**9
            made = Contribution(category, label, baseline_ns, ns, was, now, was - now, seconds)
            key = (category, label)
            yield (
                made if same is None else replace(made, work_seconds=same.gained_ns(key) / 10**9, moved=same.moved(key))
            )


def _rules_differ(baseline: Side, side: Side) -> Iterator[Diagnostic]:
    """Yield a warning if other versions of the rules made the numbers of the two sides."""
    was, now = baseline.summary.rules, side.summary.rules
    if was != now:
        older = side if now < was else baseline
        names = ", ".join(sorted(moved_between(baseline.summary, side.summary)))
        message = (
            f"{baseline.name} uses version {was} of the rules and {side.name} version {now}. {names} may differ "
            f"for that reason alone, so gates on them are inconclusive. Save {older.name} again"
        )
        yield Diagnostic.of("rules_differ", message, 1, (baseline.source, side.source))


def _methods_differ(baseline: Side, side: Side) -> Iterator[Diagnostic]:
    """Sides that were not measured in the same way: part of the difference is the ruler's."""
    differences = list(_differences(baseline.summary, side.summary))
    if differences:
        message = (
            f"{side.name} was analyzed with other options than {baseline.name} ({'; '.join(differences)}): a part of "
            "the difference comes from them. Use the same options for both; save a saved analysis again with them"
        )
        yield Diagnostic.of("methods_differ", message, 1, (baseline.source, side.source))


def _differences(before: Summary, after: Summary) -> Iterator[str]:
    if before.reference_seconds != after.reference_seconds:
        yield f"reference step time {_reference(after)} instead of {_reference(before)}"
    was, now = before.method, after.method
    if was is None or now is None:
        return
    for one in declared(Method):
        old, new = (one.typed(getattr(method, one.name)) for method in (was, now))
        if old != new:
            yield f"{one.names[0]} {new} instead of {old}"


def _reference(side: Summary) -> str:
    if side.reference_seconds is None:
        return "none"
    return f"{side.reference_seconds!r} s ({'auto, from this log' if side.origin == 'auto' else 'given'})"
