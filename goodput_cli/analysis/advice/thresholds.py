"""Thresholds on advice: `advice.NAME OP VALUE[UNIT]`, parsed before any work."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from goodput_cli.analysis.advice.lever_names import LEVERS
from goodput_cli.analysis.threshold import COMPARISONS, EXPRESSION, UNIT_SECONDS, Threshold
from goodput_cli.errors import UsageError

if TYPE_CHECKING:
    from goodput_cli.analysis.advice.results import Advice

ACCEPTED = "advice.NAME OP VALUE[UNIT], as in 'advice.gain>5pp', 'advice.gain_low>1pp' or 'advice.restart>30m'"
PREFIX = "advice."
POINTS = "pp"
CUSTOM = "custom:"
OF_INTERVAL = ("gain", "gain_low", "interval_ratio")


@dataclass(frozen=True)
class AdviceExpression:
    """One expression as parsed."""

    text: str
    """As it was written."""
    name: str
    """Of `OF_INTERVAL`, of a lever, or `custom:LABEL`."""
    comparison: str
    """One of < <= > >= == !=."""
    limit: Fraction
    """In the unit."""
    unit: str
    """Points of goodput ("pp"), seconds ("s") or a plain number ("")."""
    fails: bool = True
    """Whether the run fails or is only warned of."""


def parse_advice(text: str, *, fails: bool = True) -> AdviceExpression:
    """`advice.NAME OP VALUE[UNIT]`; without a unit in points of goodput. `UsageError`: not such an expression, an
    unknown name, a unit that the name cannot have."""
    match = EXPRESSION.fullmatch(text)
    if match is None or not match[1].lower().startswith(PREFIX):
        raise UsageError(f"{text!r} is not a threshold on advice; write {ACCEPTED}")
    name = match[1][len(PREFIX) :].lower()
    if name.startswith(CUSTOM):
        name = CUSTOM + name.removeprefix(CUSTOM).upper()
    elif name not in (*OF_INTERVAL, *LEVERS):
        raise UsageError(f"{text!r}: there is no {match[1]!r}; names are {', '.join((*OF_INTERVAL, *LEVERS))}")
    unit = (match[4] or "").lower()
    allowed = ("",) if name == "interval_ratio" else (POINTS, *UNIT_SECONDS)
    unit = unit or allowed[0]
    if unit not in allowed:
        hint = f"write {', '.join(allowed)}" if allowed[0] else "it is a plain number"
        raise UsageError(f"{text!r}: {match[1]} cannot be in {unit!r}; {hint}")
    limit = Fraction(match[3]) * UNIT_SECONDS.get(unit, 1)
    return AdviceExpression(text.strip(), name, match[2], limit, "s" if unit in UNIT_SECONDS else unit, fails)


def judge(expression: AdviceExpression, advice: Advice) -> Threshold:
    """The expression judged. `met` is None where the log does not say enough."""
    value = _value(expression, advice)
    met = None if value is None else COMPARISONS[expression.comparison](Fraction(repr(value)), expression.limit)
    return Threshold(expression.text, expression.fails, met, value, float(expression.limit), expression.unit)


def _value(expression: AdviceExpression, advice: Advice) -> float | None:
    interval = advice.interval
    if expression.name == "interval_ratio":
        today = advice.saves.every_steps
        return today / interval.every_steps if today and interval.every_steps else None
    if expression.name in OF_INTERVAL:
        return _gain(expression, advice)
    rows = [*advice.levers, *([advice.bound] if advice.bound else [])]
    lever = next((row for row in rows if row.name == expression.name), None)
    if lever is None:
        return 0.0 if expression.name in advice.judged else None
    return lever.seconds if expression.unit == "s" else lever.points


def _gain(expression: AdviceExpression, advice: Advice) -> float | None:
    """What the advised interval gains on average, or the lower end of its 95 % interval."""
    interval = advice.interval
    if interval.gain_points is None or interval.today_percent is None:
        return None
    if interval.verdict == "keep":
        return 0.0
    low = expression.name == "gain_low"
    if low and interval.gain_ci95_points is None:
        return None
    points = interval.gain_ci95_points[0] if low and interval.gain_ci95_points else interval.gain_points
    if expression.unit == POINTS:
        return points
    after = interval.today_percent + points
    return advice.recorded.seconds * (1 - interval.today_percent / after) if after > 0 else None
