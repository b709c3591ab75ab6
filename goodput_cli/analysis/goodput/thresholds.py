"""Thresholds: `NAME OP VALUE[UNIT]`, parsed before any work and judged on exact numbers.

An expression says what must not be: `--fail-if 'goodput<90'` fails when it holds. What the log does not record
neither passes nor fails (`met` is None).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from goodput_cli.analysis.insights.kinds import BY_CODE
from goodput_cli.analysis.measures import MEASURES, PREFIXES, Dimension, percent_of, value_of
from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.summary import Summary, summary_of
from goodput_cli.analysis.threshold import COMPARISONS, EXPRESSION, NUMBER, UNIT_SECONDS, Threshold, check_can_hold
from goodput_cli.errors import UsageError
from goodput_cli.vocabulary.categories import Category
from goodput_cli.vocabulary.category_names import category_named
from goodput_cli.vocabulary.likely import did_you_mean

ACCEPTED = (
    "NAME OP VALUE[UNIT], as in 'goodput<90', 'custom:EVAL>=5%', 'queued>30m', 'steps.p99>2s', 'insight:hang>10m' or "
    "'disruptions>3'"
)

INSIGHT = "insight"
"""What stands before the code of a kind of insights."""
DEFAULT_UNITS: dict[Dimension, str] = {"share": "%", "ratio": "%", "time": "s", "count": ""}
_MOST_LABELS = 5


@dataclass(frozen=True)
class ThresholdExpression:
    """One expression as parsed."""

    text: str
    """As it was written."""
    name: str
    """Of a measure, or `INSIGHT`."""
    label: str | None
    """Of `custom:LABEL`, upper case; the kind of insights."""
    comparison: str
    """One of < <= > >= == !=."""
    limit: Fraction
    """In percent, seconds or a plain number, as `unit` says."""
    unit: str
    """ "%", "s" or ""."""
    fails: bool = True
    """Whether the run fails (`--fail-…`) or is only warned of (`--warn-if`)."""

    def holds(self, value: Fraction) -> bool:
        """Whether `value OP limit` is true, compared unrounded."""
        return COMPARISONS[self.comparison](value, self.limit)


def parse_threshold(text: str, *, fails: bool = True) -> ThresholdExpression:
    """`NAME OP VALUE[UNIT]`. Without a unit, goodput, categories and slices are in %, times in s.

    `UsageError`: not an expression, an unknown name, a unit that the name cannot have.
    """
    match = EXPRESSION.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not a threshold; write {ACCEPTED}")
    code = insight_code(match[1], text)
    name, label = (INSIGHT, code) if code else split_name(match[1], text)
    dimension = "share" if code else MEASURES[name].dimension
    unit = (match[4] or "").lower() or DEFAULT_UNITS[dimension]
    allowed = {"share": ["%", *UNIT_SECONDS], "ratio": ["%"], "time": list(UNIT_SECONDS), "count": [""]}[dimension]
    if unit not in allowed:
        hint = f"write {', '.join(allowed)}" if dimension != "count" else "it is a plain number"
        raise UsageError(f"{text!r}: {match[1]} cannot be in {unit!r}; {hint}")
    limit = Fraction(match[3]) * UNIT_SECONDS.get(unit, 1)
    return ThresholdExpression(text.strip(), name, label, match[2], limit, "s" if unit in UNIT_SECONDS else unit, fails)


def read_threshold(text: str, *, fails: bool = True) -> ThresholdExpression:
    """An expression as a person wrote it. `UsageError` also for one on goodput that was probably meant otherwise."""
    parsed = parse_threshold(text, fails=fails)
    is_share = parsed.unit == "%" and parsed.name != Category.EXCLUDED.id  # of the window without what is excluded
    check_can_hold(text, parsed.comparison, parsed.limit, is_share=is_share)
    is_floor = parsed.name in ("goodput", "elastic.goodput") and parsed.comparison in ("<", "<=")
    if is_floor and parsed.unit == "%" and "%" not in text:
        check_percentage(text[text.index(parsed.comparison) + len(parsed.comparison) :].strip())
    return parsed


def parse_fail_under(text: str) -> ThresholdExpression:
    """`--fail-under PCT`, which is `goodput<PCT`. `UsageError` if it is not a number."""
    number = text.strip().removesuffix("%").strip()
    if not re.fullmatch(NUMBER, number):
        raise UsageError(f"{text!r} is not a percentage; write a number such as 85 or 92.5")
    if "%" not in text:
        check_percentage(number)
    return parse_threshold(f"goodput<{number}")


def check_percentage(number: str) -> None:
    """`UsageError` for a percentage that was probably meant as a share, or lacks its point: such a gate never fails, or
    always. With its sign, `0.8%`, it is meant."""
    percent = Fraction(number)
    if percent < 0:
        raise UsageError(f"{number} is below 0 %, and nothing is below it: it is no gate")
    if 0 < percent < 1:
        meant = f"{float(100 * percent):g}"
        raise UsageError(
            f"{number} is {number} %, and nearly nothing is below it; did you mean {meant}? {number}% says it is meant"
        )
    if percent > 100:
        less = next(percent / power for power in (10, 100, 10**18) if percent / power <= 100)
        raise UsageError(
            f"{number} is above 100 %, and everything is below it; did you mean {float(less):g}? "
            f"{number}% says it is meant"
        )


def evaluate(expressions: Sequence[ThresholdExpression], analysis: Analysis) -> tuple[Threshold, ...]:
    """Each expression judged on the analysis; `analysis.thresholds` is not looked at."""
    summary = summary_of(analysis)
    values = [(one, _value(one, summary, analysis)) for one in expressions]
    return tuple(_judge(one, value, _hint(one, analysis) if value is None else None) for one, value in values)


def _hint(expression: ThresholdExpression, analysis: Analysis) -> str | None:
    """What may have been meant by a label that no custom event of the log has."""
    labels = analysis.table.labels
    if expression.name not in PREFIXES.values() or expression.label is None or expression.label in labels:
        return None
    known = ", ".join(f"custom:{label}" for label in labels[:_MOST_LABELS])
    return did_you_mean(expression.label, (f"custom:{label}" for label in labels), known and f"the log has {known}")


def _value(expression: ThresholdExpression, summary: Summary, analysis: Analysis) -> Fraction | None:
    """The exact value in the unit of the expression; None where the log does not record it."""
    if expression.name == INSIGHT:
        return _insight_value(expression, analysis)
    value = value_of(summary, expression.name, expression.label, expression.unit)
    if value is None and expression.label is not None and expression.name not in analysis.not_recorded:
        return Fraction(0) if _has_label(expression.label, analysis) else None
    return value


def _insight_value(expression: ThresholdExpression, analysis: Analysis) -> Fraction | None:
    """What the insights of a kind cost: 0 where there are none, None where the log cannot show any."""
    from goodput_cli.analysis.insights.find import is_judged

    ns = sum(insight.ns for insight in analysis.insights if insight.code == expression.label)
    if ns == 0 and not is_judged(BY_CODE[expression.label or ""], analysis):
        return None
    return percent_of(summary_of(analysis), ns) if expression.unit == "%" else Fraction(ns, 10**9)


def _judge(expression: ThresholdExpression, value: Fraction | None, hint: str | None) -> Threshold:
    met = None if value is None else expression.holds(value)
    shown = None if value is None else telling_float(value, expression.limit)
    return Threshold(expression.text, expression.fails, met, shown, float(expression.limit), expression.unit, hint)


def telling_float(value: Fraction, limit: Fraction) -> float:
    """The float nearest to `value` that lies on the same side of the limit, so that what is shown agrees with what
    was judged."""
    shown, edge = float(value), float(limit)
    if shown == edge and value != limit:
        return math.nextafter(shown, math.inf if value > limit else -math.inf)
    return shown


def insight_code(name: str, text: str) -> str | None:
    """The code in `insight:CODE`; None for any other name. `UsageError` where there is no such kind."""
    prefix, colon, code = name.partition(":")
    if prefix.strip().lower() != INSIGHT or not colon:
        return None
    code = code.strip().lower()
    if code in BY_CODE:
        return code
    hint = did_you_mean(code, BY_CODE, f"kinds are {', '.join(BY_CODE)}")
    raise UsageError(f"{text!r}: there is no insight {code!r}; {hint}")


def split_name(name: str, text: str, *, insights: bool = True) -> tuple[str, str | None]:
    """A name of the expression `text` as (name of a measure, label of `custom:LABEL` in upper case or None).

    `UsageError` with a hint where there is no such name. insights: whether kinds of them could be meant.
    """
    prefix, colon, label = name.partition(":")
    if colon and prefix.lower() in PREFIXES and label.strip():
        return PREFIXES[prefix.lower()], label.strip().upper()
    if name.lower() in MEASURES:
        return name.lower(), None
    named = category_named(name)
    if named is not None and named[0].id in MEASURES and not named[0].row.has_labels:
        return named[0].id, None
    known = [*MEASURES, *(f"{INSIGHT}:{code}" for code in BY_CODE if insights)]
    kinds = f"custom:LABEL and {INSIGHT}:CODE" if insights else "custom:LABEL"
    hint = did_you_mean(name, known, f"names are {', '.join(MEASURES)}, {kinds}")
    raise UsageError(f"{text!r}: there is no {name!r} to compare; {hint}")


def _has_label(label: str, analysis: Analysis) -> bool:
    """Whether the job has a custom event of that label anywhere: then none in the window is zero, not unknown."""
    from goodput_cli.events.schema import Kind

    table = analysis.table
    if label not in table.labels:
        return False
    custom = (table.kind == Kind.CUSTOM) & (table.label == table.labels.index(label))
    return bool(custom.any())
