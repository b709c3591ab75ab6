"""Thresholds on one job (`goodput<90`): what can be named, and how each is judged on an analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from goodput_cli.analysis.insights.kinds import BY_CODE
from goodput_cli.analysis.measures import MEASURES, PREFIXES, percent_of, value_of
from goodput_cli.analysis.summary import Summary, summary_of
from goodput_cli.analysis.threshold import (
    PERCENT,
    UNIT_SECONDS,
    Dimension,
    Expression,
    Named,
    Subject,
    Threshold,
    judged,
    parse,
    read,
    read_fail_under,
)
from goodput_cli.errors import UsageError
from goodput_cli.vocabulary.categories import category_named
from goodput_cli.vocabulary.causes import CAUSES, GROUPS, OUT_OF_MEMORY
from goodput_cli.vocabulary.text import did_you_mean

if TYPE_CHECKING:
    from goodput_cli.analysis.results import Analysis

INSIGHT = "insight"
"""What stands before the code of a kind of insights."""
CAUSE = "cause"
"""What stands before a cause, or a group of causes."""
_OOM = "oom"
_MOST_LABELS = 5


def measure_named(name: str, text: str, *, insights: bool = False) -> Named:
    """The measure with a name, or one label of it: `custom:LABEL`.

    `UsageError` with a hint where there is no such name. insights: whether kinds of them could be meant.
    """
    prefix, colon, label = name.partition(":")
    if colon and prefix.lower() in PREFIXES and label.strip():
        return MEASURES[PREFIXES[prefix.lower()]].named(label.strip().upper())
    if name.lower() in MEASURES:
        return MEASURES[name.lower()].named()
    named = category_named(name)
    if named is not None and named[0].id in MEASURES and not named[0].row.has_labels:
        return MEASURES[named[0].id].named()
    known = [*MEASURES, *(f"{INSIGHT}:{code}" for code in BY_CODE if insights)]
    kinds = f"custom:LABEL and {INSIGHT}:CODE" if insights else "custom:LABEL"
    hint = did_you_mean(name, known, f"names are {', '.join(MEASURES)}, {kinds}")
    raise UsageError(f"{text!r}: there is no {name!r} to compare; {hint}")


def _find(name: str, text: str) -> Named:
    prefix, colon, code = name.partition(":")
    if prefix.strip().lower() == CAUSE and colon:
        return _cause_named(code.strip().lower(), text)
    if prefix.strip().lower() != INSIGHT or not colon:
        return measure_named(name, text, insights=True)
    code = code.strip().lower()
    if code in BY_CODE:
        return Named(INSIGHT, "share", code)
    hint = did_you_mean(code, BY_CODE, f"kinds are {', '.join(BY_CODE)}")
    raise UsageError(f"{text!r}: there is no insight {code!r}; {hint}")


def _cause_named(code: str, text: str) -> Named:
    known = (*CAUSES, *GROUPS, _OOM)
    if code in known:
        return Named(CAUSE, "losses", code)
    hint = did_you_mean(code, known, f"causes are {', '.join(CAUSES)}; groups are {', '.join(GROUPS)}; and {_OOM}")
    raise UsageError(f"{text!r}: there is no cause {code!r}; {hint}")


TIMES = tuple(UNIT_SECONDS)
UNITS: Mapping[Dimension, tuple[str, ...]] = {
    "share": (PERCENT, *TIMES), "ratio": (PERCENT,), "time": TIMES, "count": ("",), "losses": ("", *TIMES),
}  # fmt: skip
JOB = Subject(
    "a threshold",
    "NAME OP VALUE[UNIT], as in 'goodput<90', 'custom:EVAL>=5%', 'queued>30m', 'steps.p99>2s', 'insight:hang>10m', "
    "'disruptions>3' or 'cause:hardware>0'",
    _find,
    UNITS,
)


def parse_threshold(text: str, *, fails: bool = True) -> Expression:
    """`NAME OP VALUE[UNIT]`. Without a unit, goodput, categories and slices are in %, times in s."""
    return parse(text, JOB, fails=fails)


def read_threshold(text: str, *, fails: bool = True) -> Expression:
    """An expression as a person wrote it. `UsageError` also for one on goodput that was probably meant otherwise."""
    return read(text, JOB, fails=fails)


def parse_fail_under(text: str) -> Expression:
    """`--fail-under PCT`, which is `goodput<PCT`. `UsageError` if it is not a number."""
    return read_fail_under(text, JOB)


def evaluate(expressions: Sequence[Expression], analysis: Analysis) -> tuple[Threshold, ...]:
    """Each expression judged on the analysis; `analysis.thresholds` is not looked at."""
    summary = summary_of(analysis)
    values = [(one, _value(one, summary, analysis)) for one in expressions]
    return tuple(judged(one, value, _hint(one, analysis) if value is None else None) for one, value in values)


def _hint(expression: Expression, analysis: Analysis) -> str | None:
    """What may have been meant by a label that no custom event of the log has."""
    labels = analysis.table.labels
    if expression.name not in PREFIXES.values() or expression.label is None or expression.label in labels:
        return None
    known = ", ".join(f"custom:{label}" for label in labels[:_MOST_LABELS])
    return did_you_mean(expression.label, (f"custom:{label}" for label in labels), known and f"the log has {known}")


def _value(expression: Expression, summary: Summary, analysis: Analysis) -> Fraction | None:
    """The exact value in the unit of the expression; None where the log does not record it."""
    if expression.name == INSIGHT:
        return _insight_value(expression, analysis)
    if expression.name == CAUSE:
        return _cause_value(expression, analysis)
    value = value_of(summary, expression.name, expression.label, expression.unit)
    if value is None and expression.label is not None and expression.name not in analysis.not_recorded:
        return Fraction(0) if _has_label(expression.label, analysis) else None
    return value


def _insight_value(expression: Expression, analysis: Analysis) -> Fraction | None:
    """What the insights of a kind cost: 0 where there are none, None where the log cannot show any."""
    from goodput_cli.analysis.insights.find import is_judged

    ns = sum(insight.ns for insight in analysis.insights if insight.code == expression.label)
    if ns == 0 and not is_judged(BY_CODE[expression.label or ""], analysis):
        return None
    return percent_of(summary_of(analysis), ns) if expression.unit == PERCENT else Fraction(ns, 10**9)


def _cause_value(expression: Expression, analysis: Analysis) -> Fraction | None:
    """How many disruptions died of a cause, or what they lost; None where nothing was read that could say it."""
    rows = analysis.disruptions.unplanned
    label = expression.label or ""
    codes = (
        OUT_OF_MEMORY if label == _OOM else tuple(code for code, row in CAUSES.items() if label in (code, row.group))
    )
    lost = [
        ns for ns, why in zip(rows.column("lost_ns").tolist(), rows.why, strict=True) if why.code in codes
    ]  # fmt: skip
    if not lost and not analysis.table.observed.read:
        return None
    return Fraction(sum(lost), 10**9) if expression.unit == "s" else Fraction(len(lost))


def _has_label(label: str, analysis: Analysis) -> bool:
    """Whether the job has a custom event of that label anywhere: then none in the window is zero, not unknown."""
    from goodput_cli.events.schema import Kind

    table = analysis.table
    if label not in table.labels:
        return False
    custom = (table.kind == Kind.CUSTOM) & (table.label == table.labels.index(label))
    return bool(custom.any())
