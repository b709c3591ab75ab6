"""Two runs or more, held against one of them: where the difference in goodput comes from, and what else changed.

Goodput is 100 % less the shares of all badput, so the difference of two goodputs is the sum of the differences of these
shares: what each category gave or took, in percentage points. Everything is exact here (integers and fractions).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from goodput_cli.analysis.compare.thresholds import beside_noise, compared_values, judge
from goodput_cli.analysis.compare.work import WorkTime, work_time
from goodput_cli.analysis.measures import FACTS, Measure, amount_ns, percent_of
from goodput_cli.analysis.results import Method
from goodput_cli.analysis.sheet import Answered, Sheet
from goodput_cli.analysis.summary import Summary
from goodput_cli.analysis.threshold import Expression, Threshold
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.vocabulary.categories import CATEGORIES, NOT_BADPUT, Category
from goodput_cli.vocabulary.option import declared

_LABELLED = frozenset(category.id for category in Category if category.row.has_labels)
_COMPARED = tuple(category.id for category in Category if category not in NOT_BADPUT and not category.row.has_labels)


@dataclass(frozen=True)
class Side:
    """One side of a comparison."""

    name: str
    """What people call it here, no two alike."""
    source: str
    """Where it was read, as it was named."""
    saved: bool
    """Whether it is the saved answer of an analysis."""
    run: str | None
    """Of a job name that was used several times, as asked for."""
    summary: Summary
    """Its numbers."""

    @property
    def goodput_ns(self) -> int:
        """Productive time; a side of which it cannot be judged is refused before."""
        assert self.summary.goodput_ns is not None
        return self.summary.goodput_ns

    @property
    def percent(self) -> Fraction:
        """Goodput in percent."""
        return percent_of(self.summary, self.goodput_ns)


@dataclass(frozen=True)
class Contribution:
    """One kind of badput on both sides."""

    category: str
    """Name of the category."""
    label: str | None
    """Of `custom_badput_events`; None for every other category."""
    baseline_ns: int | None
    """None where the baseline does not record it."""
    ns: int | None
    """None where the side does not record it."""
    points: Fraction | None
    """What its change gave to goodput (+) or took from it (-), in percentage points; None where a side does not record
    it: then nobody knows."""


_MOST_PERCENT = 10**12
"""A change of more is a change from nothing."""


@dataclass(frozen=True)
class Change:
    """A measure on both sides, in the unit of its dimension."""

    measure: Measure[Summary]
    """What is measured, and in which unit."""
    baseline: Fraction | None
    """On the baseline; None where the measure is not known there."""
    value: Fraction | None
    """On the other side; None where the measure is not known there."""

    @property
    def change(self) -> Fraction | None:
        return None if self.baseline is None or self.value is None else self.value - self.baseline

    @property
    def percent(self) -> Fraction | None:
        """The change in percent of the baseline; None where that is 0 or next to nothing, or a side is not known."""
        if self.change is None or not self.baseline:
            return None
        percent = 100 * self.change / abs(self.baseline)
        return percent if abs(percent) < _MOST_PERCENT else None


@dataclass(frozen=True)
class Pair:
    """One side against the baseline."""

    baseline: Side
    """What it is compared with."""
    side: Side
    """What is compared."""
    points: Fraction
    """What goodput rose (+) or fell (-) by, in percentage points."""
    contributions: tuple[Contribution, ...]
    """The largest change first, those that one side does not record last."""
    one_sided: Fraction
    """What the latter make together, in points: the contributions and it add up to `points` exactly."""
    changes: tuple[Change, ...]
    """Every measure but the shares of categories."""
    thresholds: tuple[Threshold, ...]
    """Judged on this pair."""
    work: WorkTime | None = None
    """What a kept step took on both; None where a side kept none."""

    def worth_ns(self, points: Fraction) -> Fraction:
        """Points as time (ns) of this side's window."""
        return points * self.side.summary.window.counted_ns / 100


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

        return compare_sheet(self)


def compare_sides(
    baseline: Side, others: Sequence[Side], expressions: Sequence[Expression] = (), baselines: Sequence[Side] = ()
) -> Comparison:
    """Every other side against the baseline, and the expressions judged on each. baselines: further ones, which show
    what a run of this kind usually takes."""
    pairs = tuple(_pair(baseline, side, expressions, baselines) for side in others)
    of_sides = [diagnostic for side in (baseline, *baselines, *others) for diagnostic in side.summary.diagnostics]
    mixed = [diagnostic for side in (*baselines, *others) for diagnostic in _methods_differ(baseline, side)]
    return Comparison(baseline, pairs, tuple(dict.fromkeys([*mixed, *of_sides])), tuple(baselines))


def _pair(baseline: Side, side: Side, expressions: Sequence[Expression], baselines: Sequence[Side]) -> Pair:
    before, after = baseline.summary, side.summary
    work = work_time(before, after, [one.summary for one in baselines])
    contributions = sorted(_contributions(before, after), key=lambda row: _by_size(row, before, after))
    return Pair(
        baseline=baseline,
        side=side,
        points=side.percent - baseline.percent,
        contributions=tuple(contributions),
        one_sided=sum((_taken(row, before, after) for row in contributions if row.points is None), Fraction(0)),
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
        if baseline_ns is None or ns is None:
            if baseline_ns is not None or ns is not None:
                yield Contribution(category, label, baseline_ns, ns, None)
        elif baseline_ns or ns:
            points = percent_of(before, baseline_ns) - percent_of(after, ns)
            yield Contribution(category, label, baseline_ns, ns, points)


def _taken(row: Contribution, before: Summary, after: Summary) -> Fraction:
    """What the time that only one side records makes in points."""
    return percent_of(before, row.baseline_ns or 0) - percent_of(after, row.ns or 0)


def _by_size(row: Contribution, before: Summary, after: Summary) -> tuple[bool, Fraction, int, str]:
    size = abs(_taken(row, before, after))
    return row.points is None, -size, CATEGORIES.index(row.category), row.label or ""


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
