"""Thresholds on changes (`goodput:-2pp`): what can be named, and how each is judged on two sides.

`goodput:-2pp` holds where goodput fell by more than 2 points against the baseline, `steps.p99:+10%` where it rose by
more than a tenth. What one of the two sides does not record neither passes nor fails.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

from goodput_cli.analysis.compare.work import WorkTime
from goodput_cli.analysis.goodput.thresholds import TIMES, measure_named
from goodput_cli.analysis.measures import MEASURES, value_of
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

RELATIVE = PERCENT
"""Percent of the baseline's value."""
_OF_ONE_LOG = re.compile(r"<=|>=|==|!=|<|>")


def _instead(text: str, accepted: str) -> str:
    """What to do, also about an expression that judges one log."""
    if _OF_ONE_LOG.search(text) is None:
        return f"write {accepted}"
    return f"compare judges changes: write {accepted}; `goodput analyze --fail-if` judges one log"


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
    """`NAME:CHANGE[UNIT]`; the sign says whether a fall (-) or a rise (+) is meant. Without a unit, goodput and
    categories change by points, times by seconds.

    `UsageError`: not such an expression, an unknown name, no sign, a unit that the name cannot have.
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
    if was == 0 and change != 0:  # no percentage says how much that is; every limit lies below it
        met = (change < 0) == (expression.comparison == "<")
        return Threshold(expression.text, expression.fails, met, None, float(expression.limit), expression.unit)
    return judged(expression, 100 * change / abs(was) if was else Fraction(0))


NOISE = "inside noise"
OTHER_WORK = "the two did not do the same work"
_OF_PACE = ("goodput", "productive", "training_slowdown", "steps.median", "steps.mean", "steps.ideal")


def beside_noise(threshold: Threshold, expression: Expression, work: WorkTime | None) -> Threshold:
    """The same, with a remark where the difference is no more than noise. Only `work_time` passes then: gates on other
    measures say what they always said."""
    if work is None or (not threshold.met and work.unit is not None):
        return threshold
    if expression.name == "work_time" and work.unit is None:
        return replace(threshold, met=None, value=None, hint=OTHER_WORK)
    if expression.name == "work_time" and not work.is_clear:
        return replace(threshold, met=False, hint=NOISE)
    pace = work.pace
    if expression.name in _OF_PACE and not work.is_clear and pace is not None and not pace.is_clear:
        return replace(threshold, hint=NOISE)
    return threshold
