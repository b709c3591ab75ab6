"""Thresholds on changes: `NAME:CHANGE[UNIT]`, parsed before any work and judged on exact numbers.

`goodput:-2pp` holds where goodput fell by more than 2 points against the baseline, `steps.p99:+10%` where it rose by
more than a tenth. What one of the two sides does not record neither passes nor fails.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from goodput_cli.analysis.goodput.thresholds import split_name, telling_float
from goodput_cli.analysis.measures import MEASURES, Dimension, value_of
from goodput_cli.analysis.summary import Summary
from goodput_cli.analysis.threshold import NUMBER, UNIT_SECONDS, Threshold
from goodput_cli.errors import UsageError

ACCEPTED = "NAME:CHANGE[UNIT], as in 'goodput:-2pp', 'steps.p99:+10%', 'mean_downtime:+5m' or 'disruptions:+2'"
POINTS = "pp"
RELATIVE = "%"

_EXPRESSION = re.compile(rf"\s*(.+)\s*:\s*({NUMBER})\s*(%|[A-Za-z]+)?\s*", re.DOTALL)
_OF_ONE_LOG = re.compile(r"<=|>=|==|!=|<|>")
_DEFAULTS: dict[Dimension, str] = {"share": POINTS, "ratio": POINTS, "time": "s", "count": ""}
_ALLOWED: dict[Dimension, tuple[str, ...]] = {
    "share": (POINTS, RELATIVE, *UNIT_SECONDS),
    "ratio": (POINTS, RELATIVE),
    "time": (*UNIT_SECONDS, RELATIVE),
    "count": ("", RELATIVE),
}


@dataclass(frozen=True)
class ChangeExpression:
    """One expression as parsed."""

    text: str
    """As it was written."""
    name: str
    """Of a measure."""
    label: str | None
    """Of `custom:LABEL`, upper case."""
    falls: bool
    """Whether it asks for a fall or a rise of more than `limit`."""
    limit: Fraction
    """Has the sign of the change."""
    unit: str
    """Of the limit: points ("pp"), percent of the baseline's value ("%"), seconds ("s") or a plain number ("")."""
    fails: bool = True
    """Whether the run fails or is only warned of."""

    def holds(self, change: Fraction) -> bool:
        """Whether the change, in the unit of the limit, goes further than the limit; compared unrounded."""
        return change < self.limit if self.falls else change > self.limit


def parse_change(text: str, *, fails: bool = True) -> ChangeExpression:
    """`NAME:CHANGE[UNIT]`; the sign says whether a fall (-) or a rise (+) is meant. Without a unit, goodput and
    categories change by points, times by seconds.

    `UsageError`: not such an expression, an unknown name, no sign, a unit that the name cannot have.
    """
    match = _EXPRESSION.fullmatch(text)
    if match is None:
        hint = f"write {ACCEPTED}"
        if _OF_ONE_LOG.search(text):
            hint = f"compare judges changes: {hint}; `goodput analyze --fail-if` judges one log"
        raise UsageError(f"{text!r} is not a change; {hint}")
    name, label = split_name(match[1].strip(), text, insights=False)
    if match[2][0] not in "+-":
        raise UsageError(f"{text!r}: say which way: '-{match[2]}' fell by more than that, '+{match[2]}' rose")
    dimension = MEASURES[name].dimension
    unit = (match[3] or "").lower() or _DEFAULTS[dimension]
    if unit not in _ALLOWED[dimension]:
        allowed = ", ".join(name or "no unit" for name in _ALLOWED[dimension])
        raise UsageError(f"{text!r}: a change of {match[1].strip()} cannot be in {unit!r}; write {allowed}")
    limit = Fraction(match[2]) * UNIT_SECONDS.get(unit, 1)
    if (unit == POINTS and abs(limit) >= 100) or (unit == RELATIVE and limit <= -100):
        raise UsageError(f"{text!r} never holds, since nothing changes by more than that: it is no gate")
    unit = "s" if unit in UNIT_SECONDS else unit
    return ChangeExpression(text.strip(), name, label, match[2][0] == "-", limit, unit, fails)


def judge(expression: ChangeExpression, baseline: Summary, side: Summary) -> Threshold:
    """The expression judged on two sides. `met` is None where one of them does not record what it names; `value` is
    None where the change has no percentage, because the baseline is 0."""
    unit = "s" if expression.unit == "s" else "%"
    values = (value_of(summary, expression.name, expression.label, unit) for summary in (baseline, side))
    was, now = map(MEASURES[expression.name].compared, values)
    if was is None or now is None:
        return _threshold(expression, None, None)
    change = now - was
    if expression.unit != RELATIVE:
        return _threshold(expression, expression.holds(change), change)
    if was == 0 and change != 0:  # no percentage says how much that is; every limit lies below it
        return _threshold(expression, (change < 0) == expression.falls, None)
    relative = 100 * change / abs(was) if was else Fraction(0)
    return _threshold(expression, expression.holds(relative), relative)


def _threshold(expression: ChangeExpression, met: bool | None, value: Fraction | None) -> Threshold:
    limit = expression.limit
    shown = None if value is None else telling_float(value, limit)
    return Threshold(expression.text, expression.fails, met, shown, float(limit), expression.unit)
