"""Thresholds on advice (`advice.gain>5pp`): what can be named, and how each is judged.

The names of levers. No NumPy here, as `--help` reads this.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from goodput_cli.analysis.threshold import POINTS, UNIT_SECONDS, VALUE, Expression, Named, Subject, Threshold, read
from goodput_cli.errors import UsageError

if TYPE_CHECKING:
    from goodput_cli.analysis.advice.advise import Advice

LEVERS: Mapping[str, bool] = {
    "interval": False,
    "async_saves": False,
    "newest_checkpoint": False,
    "failures": True,
    "starts_that_hold": True,
    "restart": True,
    "restore": True,
    "downtime": True,
    "spares": True,
    "evals": True,
    "data_loading": False,
    "stalls": False,
    "slow_steps": False,
    "longest_outage": True,
    "checkpoint_bound": True,
}
"""Each with whether every record says something about it, be it that it buys nothing; `levers.judged_levers` knows
when a record says something about the others. There is one more for each `custom:LABEL`."""


PREFIX = "advice."
CUSTOM = "custom:"
GAIN, GAIN_LOW, RATIO = OF_INTERVAL = ("gain", "gain_low", "interval_ratio")
"""Measures of the advised interval between saves; every lever is a measure too."""
_ACCEPTED = "advice.NAME OP VALUE[UNIT], as in 'advice.gain>5pp', 'advice.gain_low>1pp' or 'advice.restart>30m'"


def _find(name: str, text: str) -> Named:
    if not name.lower().startswith(PREFIX):
        raise UsageError(f"{text!r} is not {ADVICE.noun}; write {_ACCEPTED}")
    lever = name[len(PREFIX) :].lower()
    if lever.startswith(CUSTOM):
        lever = CUSTOM + lever.removeprefix(CUSTOM).upper()
    elif lever not in (*OF_INTERVAL, *LEVERS):
        raise UsageError(f"{text!r}: there is no {name!r}; names are {', '.join((*OF_INTERVAL, *LEVERS))}")
    return Named(lever, "count" if lever == RATIO else "share")


ADVICE = Subject(
    "a threshold on advice",
    _ACCEPTED,
    _find,
    {"share": (POINTS, *UNIT_SECONDS), "count": ("",)},
    shape=VALUE,
    only_positive=False,
)


def parse_advice(text: str, *, fails: bool = True) -> Expression:
    """`advice.NAME OP VALUE[UNIT]`; without a unit in points of goodput. `UsageError`: not such an expression, an
    unknown name, a unit that the name cannot have."""
    return read(text, ADVICE, fails=fails)


def judge(expression: Expression, advice: Advice) -> Threshold:
    """The expression judged. `met` is None where the log does not say enough."""
    value = _value(expression, advice)
    met = None if value is None else expression.holds(Fraction(repr(value)))
    return Threshold(expression.text, expression.fails, met, value, float(expression.limit), expression.unit)


def _value(expression: Expression, advice: Advice) -> float | None:
    interval = advice.interval
    if expression.name == RATIO:
        today = advice.saves.every_steps
        return today / interval.every_steps if today and interval.every_steps else None
    if expression.name in OF_INTERVAL:
        return _gain(expression, advice)
    rows = [*advice.levers, *([advice.bound] if advice.bound else [])]
    lever = next((row for row in rows if row.name == expression.name), None)
    if lever is None:
        return 0.0 if expression.name in advice.judged else None
    return lever.seconds if expression.unit == "s" else lever.points


def _gain(expression: Expression, advice: Advice) -> float | None:
    """What the advised interval gains on average, or the lower end of its 95 % interval."""
    interval = advice.interval
    if interval.gain_points is None or interval.today_percent is None:
        return None
    if interval.verdict == "keep":
        return 0.0
    low = expression.name == GAIN_LOW
    if low and interval.gain_ci95_points is None:
        return None
    points = interval.gain_ci95_points[0] if low and interval.gain_ci95_points else interval.gain_points
    if expression.unit == POINTS:
        return points
    after = interval.today_percent + points
    return advice.recorded.seconds * (1 - interval.today_percent / after) if after > 0 else None
