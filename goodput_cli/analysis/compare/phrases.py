"""A comparison in words, for every format that people read and for standard error.

The strings hold text of logs as it is: a renderer escapes them, and what goes to a terminal is made safe.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from goodput_cli.analysis.compare.compare import Change, Comparison, Contribution, Pair, Side
from goodput_cli.analysis.goodput.phrases import threshold_limit, threshold_verdict
from goodput_cli.analysis.threshold import Threshold
from goodput_cli.vocabulary.category_names import short_title
from goodput_cli.vocabulary.text import (
    change,
    duration,
    exact,
    number,
    percent,
    points,
    safe,
    shorten,
    telling_decimals,
)

NOT_RECORDED = "not recorded"
_LONGEST_NAME = 40
_MOST_MOVED = 3
_ROUND_FROM = 10
_VERY_DIFFERENT = 2
_ALIKE = 1.05
"""Runs that differ less in length can be compared by how often something happened."""
_LEAST_PERCENT = 1
"""A time that changed by less is neither better nor worse: two runs of one program differ by more."""


def side_name(side: Side) -> str:
    """The name of a side, short enough for a heading."""
    return shorten(side.name, _LONGEST_NAME, "...")


def verdict(pair: Pair) -> str:
    """What became of goodput: `goodput fell by 5.33 points: 70.43 % to 65.10 %`."""
    was, now = (percent(float(side.percent)) for side in (pair.baseline, pair.side))
    if pair.points == 0:
        return f"goodput is the same: {now}"
    moved = "rose" if pair.points > 0 else "fell"
    worth = duration(abs(round(pair.worth_ns(pair.points))))
    of = duration(pair.side.summary.window.counted_ns)
    return f"goodput {moved} by {points(float(abs(pair.points)))[1:]} points: {was} to {now}, {worth} of its {of}"


def moved_lines(pair: Pair) -> Iterator[str]:
    """What got worse and what got better, the most first: `worse: recovery by 4.05 points, custom:EVAL by 3.79`."""
    moved = [(one.points, contribution_name(one)) for one in pair.contributions if one.points]
    for word, some in (
        ("worse", sorted(one for one in moved if one[0] < 0)),
        ("better", sorted((one for one in moved if one[0] > 0), reverse=True)),
    ):
        if some:
            named = [f"{shorten(name, _LONGEST_NAME, '...')} by {_size(by)}" for by, name in some[:_MOST_MOVED]]
            rest = len(some) - len(named)
            yield f"{word}: {', '.join(named)} points{f', and {rest} more' if rest else ''}"


def _size(by: Fraction) -> str:
    return points(float(abs(by)))[1:]


def length_line(pair: Pair) -> Iterator[str]:
    """That the two runs are of very different length, where they are: shares then compare unlike things."""
    if _differ_in_length(pair):
        was, now = (duration(side.summary.window.counted_ns) for side in (pair.baseline, pair.side))
        yield f"runs of very different length, {was} and {now}: what comes once a run weighs more in the shorter one"


def _differ_in_length(pair: Pair, by: float = _VERY_DIFFERENT) -> bool:
    lengths = [side.summary.window.counted_ns for side in (pair.baseline, pair.side)]
    return max(lengths) >= by * min(lengths)


def fact_is_better(pair: Pair, fact: Change) -> str:
    """`better`, `worse`, or nothing; nothing as well for counts of runs of different length, and for times that hardly
    changed."""
    if fact.measure.name.startswith("disruptions") and _differ_in_length(pair, _ALIKE):
        return ""
    if fact.measure.dimension == "time" and fact.percent is not None and abs(fact.percent) < _LEAST_PERCENT:
        return ""
    better = None if fact.change is None else fact.measure.improved(fact.change)
    return "" if better is None else "better" if better else "worse"


def contribution_name(contribution: Contribution) -> str:
    """A category as a comparison names it in a table."""
    return short_title(contribution.category, contribution.label)


def one_sided_lines(pair: Pair) -> Iterator[str]:
    """What one side records and the other does not."""
    for here, there, missing in (
        (pair.side, pair.baseline, [row for row in pair.contributions if row.baseline_ns is None]),
        (pair.baseline, pair.side, [row for row in pair.contributions if row.ns is None]),
    ):
        if missing:
            names = ", ".join(sorted(shorten(contribution_name(row), _LONGEST_NAME, "...") for row in missing))
            yield f"recorded in {side_name(here)} only, unknown and not zero in {side_name(there)}: {names}"


def fact_words(pair: Pair, fact: Change) -> tuple[str, str, str]:
    """What a fact was, what it is, and the change."""
    was = _value(fact, fact.baseline, pair.baseline)
    now = _value(fact, fact.value, pair.side)
    if fact.change is None:
        return was, now, NOT_RECORDED if NOT_RECORDED in (was, now) else ""
    moved = _moved(fact, fact.change)
    share = fact.percent
    known = share is not None and share != 0 and fact.measure.dimension in ("time", "count")
    return was, now, f"{moved} ({_rounded(float(share))} %)" if known and share is not None else moved


def _rounded(share: float) -> str:
    """With a decimal where it is small: `-3.7`, `-59`."""
    return f"{share:+.1f}" if abs(share) < _ROUND_FROM else f"{share:+.0f}"


def _value(fact: Change, value: Fraction | None, side: Side) -> str:
    if value is None:
        return "none" if fact.measure.is_empty(side.summary) else NOT_RECORDED
    match fact.measure.dimension:
        case "time":
            return duration(round(value * 10**9))
        case "count":
            return number(round(float(value), 1))
        case _:
            return percent(float(value))


def _moved(fact: Change, moved: Fraction) -> str:
    match fact.measure.dimension:
        case "time":
            return change(round(moved * 10**9))
        case "count":
            return f"{'+' if moved > 0 else ''}{number(round(float(moved), 1))}"
        case _:
            return f"{points(float(moved))} points"


def threshold_value(threshold: Threshold) -> str:
    """The change with its sign and enough digits to see on which side of the limit it lies; empty where there is
    none."""
    if threshold.value is None:
        return ""
    if threshold.unit == "" and threshold.value == int(threshold.value):
        return f"{int(threshold.value):+d}"
    decimals = telling_decimals(threshold.value, threshold.limit)
    return f"{threshold.value:+.{decimals}f} {threshold.unit}".rstrip()


def threshold_lines(comparison: Comparison, *, with_passes: bool = True) -> Iterator[str]:
    """One line per threshold and pair for standard error; the name of the side where there are several."""
    for pair in comparison.pairs:
        for threshold in pair.thresholds:
            if threshold.met is False and not with_passes:
                continue
            of = f" of {side_name(pair.side)}" if len(comparison.pairs) > 1 else ""
            yield safe(f"threshold {threshold.expression}{of}: {threshold_verdict(threshold)} ({_reason(threshold)})")


def _reason(threshold: Threshold) -> str:
    if threshold.met is None:
        return "one of the two holds nothing to judge it by"
    value = threshold_value(threshold) or "from 0, which has no percentage"
    return f"{value}, limit {limit_text(threshold)}"


def limit_text(threshold: Threshold) -> str:
    """The limit with its sign."""
    text = threshold_limit(threshold)
    return text if text.startswith("-") else f"+{text}"


def auto_cautions(comparison: Comparison) -> Iterator[str]:
    """A warning where thresholds were judged with a reference step time that a log itself gave (accounting §6)."""
    for side in comparison.sides:
        seconds = side.summary.reference_seconds
        if comparison.thresholds and side.summary.origin == "auto" and seconds is not None:
            yield safe(
                f"warning: thresholds are judged by a reference step time that {side_name(side)} itself gave; pin it "
                f"with --reference-step-time {exact(seconds)}"
            )
