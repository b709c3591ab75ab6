"""Thresholds: `NAME OP VALUE[UNIT]`, parsed before any work and judged on exact numbers.

An expression says what must not be: `--fail-if 'goodput<90'` fails when it holds. What the log does not record
neither passes nor fails (`met` is None).
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from goodput_cli.analysis.results import Analysis, AtRisk, Elastic, Threshold
from goodput_cli.errors import UsageError
from goodput_cli.vocabulary.categories import CATEGORIES

ACCEPTED = "NAME OP VALUE[UNIT], as in 'goodput<90', 'custom:EVAL>=5%', 'queued>30m', 'steps.p99>2s' or 'disruptions>3'"

Dimension = Literal["share", "ratio", "time", "count"]
"""What a name measures: time that has a share of the window; a share of something else; a plain time; a number."""

CUSTOM = "custom_badput_events"
OVERLAPPED = "data_loading_async"
DIMENSIONS: Mapping[str, Dimension] = {
    "goodput": "share",
    **dict.fromkeys(CATEGORIES, "share"),
    OVERLAPPED: "share",
    **dict.fromkeys(("disruptions", "attempts", "runs", "kept_steps"), "count"),
    **dict.fromkeys(("mtbf", "mean_downtime", "mean_time_to_regain", "longest_unproductive"), "time"),
    "at_risk": "time",
    "at_risk.steps": "count",
    "steps.count": "count",
    **{f"steps.{name}": "time" for name in ("ideal", "mean", "median", "p90", "p99")},
    **{f"elastic.{name}": "ratio" for name in ("stepping", "available", "goodput")},
}
NAMES = tuple(DIMENSIONS)
"""Every name an expression can hold, besides `custom:LABEL`."""

DEFAULT_UNITS: dict[Dimension, str] = {"share": "%", "ratio": "%", "time": "s", "count": ""}
UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_OPERATORS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
NUMBER = r"[+-]?\d{1,18}(?:\.\d{1,18})?"
_EXPRESSION = re.compile(rf"\s*(.+?)\s*(<=|>=|==|!=|<|>)\s*({NUMBER})\s*(%|[A-Za-z]+)?\s*", re.DOTALL)


@dataclass(frozen=True)
class ThresholdExpression:
    """One expression as parsed.

    name: one of `NAMES`. label: of `custom:LABEL`, upper case. limit: in percent, seconds or a plain number, as `unit`
    says ("%", "s" or ""). fails: whether the run fails (`--fail-…`) or is only warned of (`--warn-if`).
    """

    text: str
    name: str
    label: str | None
    comparison: str
    limit: Fraction
    unit: str
    fails: bool = True

    def holds(self, value: Fraction) -> bool:
        """Whether `value OP limit` is true, compared unrounded."""
        return _OPERATORS[self.comparison](value, self.limit)


def parse_threshold(text: str, *, fails: bool = True) -> ThresholdExpression:
    """`NAME OP VALUE[UNIT]`. Without a unit, goodput, categories and slices are in %, times in s.

    `UsageError`: not an expression, an unknown name, a unit that the name cannot have.
    """
    match = _EXPRESSION.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not a threshold; write {ACCEPTED}")
    name, label = split_name(match[1], text)
    dimension = DIMENSIONS[name]
    unit = (match[4] or "").lower() or DEFAULT_UNITS[dimension]
    allowed = {"share": ["%", *UNIT_SECONDS], "ratio": ["%"], "time": list(UNIT_SECONDS), "count": [""]}[dimension]
    if unit not in allowed:
        hint = f"write {', '.join(allowed)}" if dimension != "count" else "it is a plain number"
        raise UsageError(f"{text!r}: {match[1]} cannot be in {unit!r}; {hint}")
    limit = Fraction(match[3]) * UNIT_SECONDS.get(unit, 1)
    return ThresholdExpression(text.strip(), name, label, match[2], limit, "s" if unit in UNIT_SECONDS else unit, fails)


def parse_fail_under(text: str) -> ThresholdExpression:
    """`--fail-under PCT`, which is `goodput<PCT`. `UsageError` if it is not a number."""
    number = text.strip().removesuffix("%").strip()
    if not re.fullmatch(NUMBER, number):
        raise UsageError(f"{text!r} is not a percentage; write a number such as 85 or 92.5")
    return parse_threshold(f"goodput<{number}")


def evaluate(expressions: Sequence[ThresholdExpression], analysis: Analysis) -> tuple[Threshold, ...]:
    """Each expression judged on the analysis; `analysis.thresholds` is not looked at."""
    return tuple(_judge(expression, analysis) for expression in expressions)


def measure(expression: ThresholdExpression, analysis: Analysis) -> Fraction | None:
    """The exact value in the unit of the expression; None where the log does not record it."""
    if DIMENSIONS[expression.name] != "share":
        return _plain(expression.name, analysis)
    ns = _time_ns(expression, analysis)
    if ns is None:
        return None
    if expression.unit == "s":
        return Fraction(ns, 10**9)
    counted = analysis.window.counted_ns
    return Fraction(ns * 100, counted) if counted > 0 else None


def _judge(expression: ThresholdExpression, analysis: Analysis) -> Threshold:
    value = measure(expression, analysis)
    met = None if value is None else expression.holds(value)
    shown = None if value is None else telling_float(value, expression.limit)
    return Threshold(expression.text, expression.fails, met, shown, float(expression.limit), expression.unit)


def telling_float(value: Fraction, limit: Fraction) -> float:
    """The float nearest to `value` that lies on the same side of the limit, so that what is shown agrees with what
    was judged."""
    shown, edge = float(value), float(limit)
    if shown == edge and value != limit:
        return math.nextafter(shown, math.inf if value > limit else -math.inf)
    return shown


def split_name(name: str, text: str, names: Iterable[str] = NAMES) -> tuple[str, str | None]:
    """A name of the expression `text` as (one of `names`, label of `custom:LABEL` in upper case or None).

    `UsageError` with a hint where there is no such name.
    """
    known = list(names)
    prefix, colon, label = name.partition(":")
    if colon and prefix.lower() in ("custom", CUSTOM) and label.strip():
        return CUSTOM, label.strip().upper()
    if name.lower() in known:
        return name.lower(), None
    close = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(close)}?" if close else f"names are {', '.join(known)} and custom:LABEL"
    raise UsageError(f"{text!r}: there is no {name!r} to compare; {hint}")


def _time_ns(expression: ThresholdExpression, analysis: Analysis) -> int | None:
    name = "productive" if expression.name == "goodput" else expression.name
    if name == "excluded":
        return analysis.window.excluded_ns
    if name in analysis.not_recorded:
        return None
    if name == "productive":
        return analysis.goodput.ns
    if name == OVERLAPPED:
        found = [row.ns for row in analysis.overlapped if row.category == name]
        return sum(found) if found else None
    rows = [row for row in analysis.badput if row.category == name]
    if expression.label is not None:
        rows = [row for row in rows if row.label == expression.label]
        if not rows and not _has_label(expression.label, analysis):
            return None
    return sum(row.ns for row in rows)


def _has_label(label: str, analysis: Analysis) -> bool:
    """Whether the job has a custom event of that label anywhere: then none in the window is zero, not unknown."""
    from goodput_cli.events.schema import Kind

    table = analysis.table
    if label not in table.labels:
        return False
    custom = (table.kind == Kind.CUSTOM) & (table.label == table.labels.index(label))
    return bool(custom.any())


def _plain(name: str, analysis: Analysis) -> Fraction | None:
    """What is no share of the window, in s, in % or as a number."""
    first, _, field = name.partition(".")
    match first:
        case "steps":
            return decimal(analysis.steps.count if field == "count" else getattr(analysis.steps, f"{field}_seconds"))
        case "elastic":
            return _slices(field, analysis.elastic)
        case "at_risk":
            return _at_risk(field, analysis.at_risk)
        case "kept_steps":
            return decimal(analysis.job.kept_steps)
        case "disruptions" | "attempts" | "runs":
            return Fraction(getattr(analysis.job, name))
        case _:
            return _reliability(name, analysis)


def _at_risk(field: str, risk: AtRisk | None) -> Fraction | None:
    """In seconds, or the number of steps."""
    if risk is None:
        return None
    return decimal(risk.steps) if field == "steps" else Fraction(risk.ns, 10**9)


def _slices(field: str, elastic: Elastic) -> Fraction | None:
    """In percent."""
    if field == "goodput":
        return decimal(elastic.goodput_percent)
    share = decimal(getattr(elastic, field))
    return None if share is None else 100 * share


def _reliability(name: str, analysis: Analysis) -> Fraction | None:
    """In seconds. A mean over no disruption is unknown; a window that is productive throughout has a longest
    unproductive span of 0."""
    found = analysis.reliability
    if found is None or analysis.window.counted_ns <= 0:
        return None
    if name == "longest_unproductive":
        start, end = found.longest_unproductive or (0, 0)
        return Fraction(end - start, 10**9)
    return decimal(getattr(found, f"{name}_seconds"))


def decimal(value: float | None) -> Fraction | None:
    """The decimal that people see (`repr`), so that 'steps.mean==0.1' can hold; None for NaN and infinities too."""
    return None if value is None or not math.isfinite(value) else Fraction(repr(value))
