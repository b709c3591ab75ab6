"""Sentences of a comparison, for every text format and for standard error.

The strings contain log output unchanged: renderers escape it, and the terminal renderer removes control characters.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from goodput_cli.analysis.compare.pace import LEAST_PERCENT as NOISE_PERCENT
from goodput_cli.analysis.compare.pace import PaceChange
from goodput_cli.analysis.compare.results import Change, ComparisonData, Contribution, Pair, Side
from goodput_cli.analysis.compare.work import PRODUCTIVE, Moved, WorkTime, is_rare
from goodput_cli.analysis.goodput.phrases import threshold_limit, threshold_verdict
from goodput_cli.analysis.goodput.phrases import threshold_value as value_text
from goodput_cli.analysis.sheet import Card
from goodput_cli.analysis.threshold import INCONCLUSIVE, Threshold
from goodput_cli.vocabulary.categories import short_title
from goodput_cli.vocabulary.text import (
    duration,
    duration_of_seconds,
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
_LEAST_SHARE = 0.05
_ROUND_FROM = 10
_VERY_DIFFERENT = 2
_LEAST_PERCENT = 10
"""A time that no range is known of is neither better nor worse if it changed by less: two runs of one program differ by
as much."""
_GOOD_PART = 0.25
_OF_PACE = ("steps.median", "steps.mean", "steps.ideal", "steps.p90")


def side_name(side: Side) -> str:
    """The name of a side, short enough for a heading."""
    return shorten(side.name, _LONGEST_NAME, "...")


def verdict(pair: Pair) -> str:
    """Return the change of goodput: `goodput fell by 5.33 points: 70.43 % to 65.10 %`."""
    was, now = (percent(float(side.percent)) for side in (pair.baseline, pair.side))
    if pair.points == 0:
        return f"goodput is the same: {now}"
    if pair.work is not None and not pair.work.is_clear and abs(pair.points) < NOISE_PERCENT:
        return f"goodput {now}, was {was}"
    if _is_against_work(pair):
        return _against_work(pair, was, now)
    moved = "rose" if pair.points > 0 else "fell"
    worth = duration(abs(round(pair.worth_ns(pair.points))))
    of = duration(pair.side.summary.window.counted_ns)
    return f"goodput {moved} by {_size(pair.points)} points, from {was} to {now} ({worth} of {of})"


def _is_against_work(pair: Pair) -> bool:
    """Return True if goodput moved in the opposite direction of the time for the same work."""
    return pair.work is not None and pair.work.is_clear and (pair.work.percent > 0) == (pair.points > 0)


def _against_work(pair: Pair, was: str, now: str) -> str:
    """Return the sentence about goodput if it contradicts the time for the same work, which decides: for a slower run
    it never states that goodput rose."""
    pace = None if pair.work is None else pair.work.pace
    if pace is not None and (pace.percent > 0) == (pair.points > 0):
        why = f"it is a share of time, and steps are {'slower' if pair.points > 0 else 'faster'}"
    else:
        why = "it is a share of a different window"
    if pair.points > 0:
        return f"goodput does not show this ({now}, was {was}): {why}"
    return f"goodput still fell by {_size(pair.points)} points, from {was} to {now}: {why}"


def work_lines(pair: Pair) -> Iterator[str]:
    """Yield the verdict on the time for the same work: `3.1 % more time for the same 1500 steps (6 min 02 s longer)`;
    nothing if a side kept no steps."""
    work = pair.work
    if work is None:
        return
    was, now = (duration_of_seconds(seconds) for seconds in (work.baseline_seconds, work.seconds))
    if work.unit is None:
        yield f"not the same work ({_sizes(work)}): {now} per kept step, was {was}"
    elif work.unit != "step" or work.usual is not None:
        yield from _of_unit(pair, work)
    elif not work.is_clear:
        of = "kept step" if work.shared_steps is None else f"step of the same {number(work.shared_steps)} steps"
        yield f"{_not_clear(work)}: {time_change(work.percent)} per {of} ({now}, was {was}){_pace(work)}"
    else:
        sentence = f"{time_change(work.percent)} per kept step ({now}, was {was})"
        if work.shared_steps is not None and work.longer_ns is not None:
            longer = f"{duration(abs(work.longer_ns))} {'longer' if work.percent > 0 else 'shorter'}"
            sentence = f"{time_change(work.percent)} for the same {number(work.shared_steps)} steps ({longer})"
        pace = _pace(work) or "; how much step times vary is unknown"
        yield f"{sentence}{_sure(work)}{pace}{_losses_of_work(pair, work)}"
    for side, step in zip((pair.baseline, pair.side), work.crashed_at, strict=True):
        if step is not None:
            yield f"{side_name(side)} crashed: compared up to its last kept step, {number(step)}"


def time_change(by: float) -> str:
    """Return a change of time: `3.1 % more time`."""
    return f"{abs(by):.1f} % {'more' if by > 0 else 'less'} time"


def less_or_more(gained: float) -> str:
    """Return a change of time from what was gained (+) or lost (-), in percent: `9.5 % less`; `0.0 %` if none."""
    amount = f"{abs(gained):.1f} %"
    return amount if amount == "0.0 %" else f"{amount} {'less' if gained > 0 else 'more'}"


def _sure(work: WorkTime) -> str:
    return ", more than noise" if work.pace is not None and work.pace.span is not None else ""


def _sizes(work: WorkTime) -> str:
    """`8 and 16 accelerators`: the baseline's first."""
    of_both = zip(work.differs, ((getattr(size, name) for size in work.sizes) for name in work.differs), strict=True)
    return ", ".join(f"{' and '.join(map(number, both))} {name.replace('_', ' ')}" for name, both in of_both)


def _of_unit(pair: Pair, work: WorkTime) -> Iterator[str]:
    """Yield the time of tokens or samples for jobs that differ in size; with several baselines, their spread."""
    was, now = (duration_of_seconds(seconds) for seconds in work.costs)
    per, by = "kept step", ""
    if work.unit != "step":
        per, by = "million tokens" if work.amount == "tokens_per_step" else "sample", f"; {_sizes(work)}"
        if work.unit not in (None, "token", "sample"):
            now = f"{now} of {'an' if work.unit.startswith('a') else 'a'} {work.unit.removesuffix('s')}"
    if work.usual is None:
        before = f"was {was}"
    else:
        before = f"{duration_of_seconds(work.usual.mean)} on average of {work.usual.count} baselines"
        by += f"; another run like these would differ by up to {work.usual.percent:.1f} %"
    prefix = "" if work.is_clear else f"{_not_clear(work)}: "
    sure = _sure(work) if work.is_clear else ""
    pace = _pace(work) if work.is_undecided else ""
    yield f"{prefix}{time_change(work.percent)} per {per} ({now}, {before}){sure}{by}{pace}"
    if work.is_clear and (losses := _losses_of_work(pair, work).removeprefix("; ")) and work.unit == "step":
        yield f"mainly: {losses}"


def _not_clear(work: WorkTime) -> str:
    return "inconclusive" if work.is_undecided else "no clear difference"


def _pace(work: WorkTime) -> str:
    """`; step times are 2.9 % longer (95 % range 2.1 to 3.7 %)`; without a range why, and what would decide."""
    pace = work.pace
    if pace is None:
        return ""
    if pace.span is not None:
        low, high = pace.span
        if not work.is_clear:
            return f"; 95 % range of step times: {low:+.1f} to {high:+.1f} %"
        return f"; step times are {_longer(pace)} (95 % range {low:+.1f} to {high:+.1f} %)"
    drifts = f"drift over ~{_one_digit(pace.wander_steps)} steps"
    if pace.is_clear:
        return f"; step times {drifts} and are {_longer(pace)}, more than they drift"
    return f"; step times {drifts}. Compare {_one_digit(pace.steps_to_tell)} steps or three baseline runs"


def _longer(pace: PaceChange) -> str:
    return f"{abs(pace.percent):.1f} % {'longer' if pace.percent > 0 else 'shorter'}"


def _one_digit(steps: float) -> str:
    """Return `10,000`: further digits are unknown."""
    return f"{float(f'{steps:.0e}'):,.0f}"


def _losses_of_work(pair: Pair, work: WorkTime) -> str:
    """Return the change in losses per kept step, if that is a large part of the difference."""
    lost = [part.badput for part in (work.baseline, work.side)]
    steps = [part.steps for part in (work.baseline, work.side)]
    if lost[0] is None or lost[1] is None:
        lost = [side.summary.badput for side in (pair.baseline, pair.side)]
        steps = [float(side.summary.kept_steps or 1) for side in (pair.baseline, pair.side)]
    before, after = (one or {} for one in lost)
    moved = [
        (after.get(key, 0) / 1e9 / steps[1] - before.get(key, 0) / 1e9 / steps[0], contribution_name(one))
        for one in pair.contributions
        if one.points is not None
        for key in ((one.category, one.label),)
    ]
    difference = work.seconds - work.baseline_seconds
    large = sorted(
        (one for one in moved if one[0] * difference > _GOOD_PART * difference**2), key=lambda one: -abs(one[0])
    )
    named = [
        f"{shorten(name, _LONGEST_NAME, '...')} {'+' if by > 0 else '-'}{duration_of_seconds(abs(by))} per step"
        for by, name in large[:2]
    ]
    return f"; {', '.join(named)}" if named else ""


def moved_lines(pair: Pair) -> Iterator[str]:
    """Yield the categories in which the same work took more or less time, largest first, in percent of the baseline's
    time: `worse for the same work: recovery 3.9 % (5 min)`."""
    moved = [row for row in work_rows(pair) if row[0] != short_title(*PRODUCTIVE)]
    for word, sign in (("worse", 1), ("better", -1)):
        some = sorted((sign * ns, by, name) for name, ns, by, which in moved if which == word)
        if some:
            named = [
                f"{shorten(name, _LONGEST_NAME, '...')} {abs(by):.1f} % ({duration(abs(round(ns)))})"
                for ns, by, name in some[:_MOST_MOVED]
            ]
            rest = len(some) - len(named)
            yield f"{word} for the same work: {', '.join(named)}{f', and {rest} more' if rest else ''}"


def card(comparison: ComparisonData) -> Card:
    """Return the comparison at a glance, the time for the same work first; with several sides, the one whose goodput
    fell most. Its color is neutral, because the certainty is next to it."""
    pair = min(comparison.pairs, key=lambda one: one.points)
    was, now = (percent(float(side.percent)) for side in (pair.baseline, pair.side))
    several = len(comparison.pairs) > 1
    worth = duration(abs(round(pair.worth_ns(pair.points))))
    worth = f" ({worth} of {duration(pair.side.summary.window.counted_ns)})" if pair.points else ""
    worth = ", a share of time that does not show this" if pair.points and _is_against_work(pair) else worth
    return Card(
        figure=_figure(pair),
        words=(
            *work_lines(pair),
            f"goodput of {side_name(pair.side)}: {was} to {now}{worth}",
            *(f"warning: {one}" for one in comparison.doubts),
        ),
        facts=tuple(_card_facts(pair, len(comparison.pairs) if several else None)),
    )


def _figure(pair: Pair) -> str:
    """Return the time for the same work, if known; otherwise points of goodput."""
    work = pair.work
    if work is None:
        return f"{points(float(pair.points))} points" if pair.points else "no change"
    if work.unit is None:
        return "not the same work"
    return time_change(work.percent) if work.is_clear else _not_clear(work)


def chart_line(pair: Pair) -> str:
    """Return the verdict above the chart: `2.3 % less time for the same work: inconclusive`; without the same work,
    goodput of both sides."""
    if pair.work is None or pair.same_work is None:
        return f"goodput {percent(float(pair.baseline.percent))} to {percent(float(pair.side.percent))}"
    sure = "" if pair.work.is_clear else f": {_not_clear(pair.work)}"
    return f"{time_change(pair.work.percent)} for the same work{sure}"


def _card_facts(pair: Pair, sides: int | None) -> Iterator[tuple[str, str]]:
    if sides is not None:
        yield f"of {sides} sides", "the one whose goodput fell most"
    if pair.thresholds:
        verdicts = dict.fromkeys(threshold_verdict(one) for one in pair.thresholds)
        yield "thresholds", ", ".join(verdicts)
    yield "baseline", f"{side_name(pair.baseline)}, {duration(pair.baseline.summary.window.counted_ns)}"
    yield "compared", f"{side_name(pair.side)}, {duration(pair.side.summary.window.counted_ns)}"
    moved = sorted((by, ns, name) for name, ns, by, which in work_rows(pair) if which is not None)
    for name, (by, ns, category) in (("largest loss", moved[0]), ("largest gain", moved[-1])) if moved else ():
        if (by < 0) == (name == "largest loss"):
            took = f"{time_change(-by)} ({duration(abs(round(ns)))})"
            yield name, f"{shorten(category, _LONGEST_NAME, '...')}: {took} for the same work"


def work_rows(pair: Pair) -> Iterator[tuple[str, Fraction, float, Moved | None]]:
    """(name, ns, percent, word) of what the same work took less (+) or more (-) of, productive time among it."""
    same = pair.same_work
    if same is None:
        return
    names = {(one.category, one.label): contribution_name(one) for one in pair.contributions if one.points is not None}
    for key, name in {**names, PRODUCTIVE: short_title(*PRODUCTIVE)}.items():
        yield name, same.gained_ns(key), same.gained_percent(key), same.moved(key)


def _size(by: Fraction) -> str:
    return points(float(abs(by)))[1:]


def length_line(pair: Pair) -> Iterator[str]:
    """Yield a warning if the lengths of the two runs differ widely, because shares are then not comparable."""
    lengths = [side.summary.window.counted_ns for side in (pair.baseline, pair.side)]
    if max(lengths) >= _VERY_DIFFERENT * min(lengths):
        was, now = map(duration, lengths)
        yield f"run lengths differ ({now} against {was}): one-time costs weigh more in the shorter run"


def fact_is_better(pair: Pair, fact: Change) -> str:
    """`better`, `worse`, or nothing; nothing as well for counts of runs of different length, and for times and shares
    that hardly changed; of shares that is in points."""
    name = fact.measure.name
    if name.startswith(("disruptions", "failures")) and not _is_rare(pair, fact):
        return ""
    if name == "work_time" and (pair.work is None or not pair.work.is_clear or pair.work.unit != "step"):
        return ""
    if name.startswith("steps.") and pair.work is not None and pair.work.differs:
        return ""
    if name.startswith("steps.") and pair.work is not None and pair.work.pace is not None:
        moved = abs(float(fact.percent or 0))
        if not pair.work.pace.is_clear or name not in _OF_PACE or moved < NOISE_PERCENT:
            return ""
    elif _hardly_changed(pair, fact):
        return ""
    better = None if fact.change is None else fact.measure.improved(fact.change)
    return "" if better is None else "better" if better else "worse"


def _hardly_changed(pair: Pair, fact: Change) -> bool:
    """Return True if a time changed by a tiny part of it, or a share by fewer points than two equal runs differ by."""
    if fact.measure.dimension == "time":
        return fact.percent is not None and abs(fact.percent) < _LEAST_PERCENT
    is_clear = pair.work is not None and pair.work.is_clear
    return fact.measure.dimension == "ratio" and abs(float(fact.change or 0)) < NOISE_PERCENT and not is_clear


def _is_rare(pair: Pair, fact: Change) -> bool:
    """Return True if two counts differ by more than chance explains in runs of these lengths."""
    if fact.baseline is None or fact.value is None:
        return False
    lengths = (pair.baseline.summary.window.counted_ns, pair.side.summary.window.counted_ns)
    return is_rare(int(fact.baseline), int(fact.value), lengths)


def contribution_name(contribution: Contribution) -> str:
    """A category as a comparison names it in a table."""
    return short_title(contribution.category, contribution.label)


def one_sided_lines(pair: Pair) -> Iterator[str]:
    """Yield the categories that only one side records."""
    for here, there, missing in (
        (pair.side, pair.baseline, [row for row in pair.contributions if row.baseline_ns is None]),
        (pair.baseline, pair.side, [row for row in pair.contributions if row.ns is None]),
    ):
        if missing:
            names = ", ".join(sorted(shorten(contribution_name(row), _LONGEST_NAME, "...") for row in missing))
            yield f"recorded only in {side_name(here)} (unknown, not zero, in {side_name(there)}): {names}"


def fact_words(pair: Pair, fact: Change) -> tuple[str, str, str]:
    """Return the old value of a fact, the new one, and the change, without a sign: `+` means better, and more of a fact
    need not be better."""
    was = _value(fact, fact.baseline, pair.baseline)
    now = _value(fact, fact.value, pair.side)
    if fact.change is None:
        return was, now, NOT_RECORDED if NOT_RECORDED in (was, now) else ""
    moved = _share(fact) or _moved(fact, abs(fact.change))
    return was, now, f"{moved} {'more' if fact.change > 0 else 'less'}" if fact.change else moved


def _share(fact: Change) -> str | None:
    """Return the share of its old value; None if that is meaningless."""
    if not fact.percent or fact.measure.dimension not in ("time", "count"):
        return None
    share = abs(float(fact.percent))
    return "<0.1 %" if share < _LEAST_SHARE else f"{share:.{1 if share < _ROUND_FROM else 0}f} %"


def _value(fact: Change, value: Fraction | None, side: Side) -> str:
    if value is None:
        return "none" if fact.measure.is_empty(side.summary) else NOT_RECORDED
    match fact.measure.dimension:
        case "time":
            return duration(round(value * 10**9))
        case "count":
            return _count(value)
        case _:
            return percent(float(value))


def _moved(fact: Change, moved: Fraction) -> str:
    match fact.measure.dimension:
        case "time":
            return duration(round(moved * 10**9))
        case "count":
            return _count(moved)
        case _:
            return f"{points(float(moved)).removeprefix('+')} points"


def _count(value: Fraction) -> str:
    """Format to a tenth; an amount of less than ten, such as a price, with three digits."""
    found = float(value)
    return number(round(found, 1)) if abs(found) >= _ROUND_FROM or value == int(value) else f"{found:.3g}"


def threshold_value(threshold: Threshold) -> str:
    """The change with its sign and enough digits to see on which side of the limit it lies; empty where there is
    none."""
    if threshold.value is None:
        return ""
    if threshold.unit == "" and threshold.value == int(threshold.value):
        return f"{int(threshold.value):+d}"
    if threshold.unit == "s":
        text = value_text(threshold)
        return text if text.startswith("-") else f"+{text}"
    decimals = telling_decimals(threshold.value, threshold.limit)
    return f"{threshold.value:+.{decimals}f} {threshold.unit}".rstrip()


def threshold_lines(comparison: ComparisonData, *, with_passes: bool = True) -> Iterator[str]:
    """Yield one line per threshold and pair for standard error; with the name of the side if there are several."""
    for pair in comparison.pairs:
        for threshold in pair.thresholds:
            if threshold.met is False and not with_passes:
                continue
            of = f" of {side_name(pair.side)}" if len(comparison.pairs) > 1 else ""
            yield safe(f"threshold {threshold.expression}{of}: {threshold_verdict(threshold)} ({_reason(threshold)})")


def _reason(threshold: Threshold) -> str:
    if threshold.met is None:
        hint = (threshold.hint or "").removeprefix(INCONCLUSIVE)
        return hint or "not recorded on both sides"
    value = threshold_value(threshold) or "no percentage: the baseline is 0"
    return f"{value}, limit {limit_text(threshold)}{f'; {threshold.hint}' if threshold.hint else ''}"


def limit_text(threshold: Threshold) -> str:
    """The limit with its sign."""
    text = threshold_limit(threshold)
    return text if text.startswith("-") else f"+{text}"


def auto_cautions(comparison: ComparisonData) -> Iterator[str]:
    """A warning where thresholds were judged with a reference step time that a log itself gave (accounting §6)."""
    for side in comparison.sides:
        seconds = side.summary.reference_seconds
        if comparison.thresholds and side.summary.origin == "auto" and seconds is not None:
            yield safe(
                f"warning: thresholds use a reference step time taken from {side_name(side)} itself. Pin it with "
                f"--reference-step-time {exact(seconds)}"
            )


def float_or_none(value: Fraction | None) -> float | None:
    """An exact number for people and JSON; None stays None."""
    return None if value is None else float(value)
