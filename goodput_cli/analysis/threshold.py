"""Thresholds: the syntax of `--fail-if` and similar options, and the result of judging one.

An expression describes the state that must not occur: `--fail-if 'goodput<90'` fails if it is true. It names a measure,
and each command has its own (`Subject`): a job, a change between two, advice, a fleet. All expressions are parsed
before any work, and judged on exact numbers. A value that is not recorded neither passes nor fails. This module does
not import NumPy, because `--help` reads it.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from goodput_cli.errors import UsageError
from goodput_cli.vocabulary.option import bounded_text

Dimension = Literal["share", "ratio", "time", "count", "losses"]
"""Kind of measure: time with a share of the whole; a share of something else; a plain time; a number; a number of
things that lost time."""
Verdict = Literal["failed", "warning", "passed", "not_recorded"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
NUMBER = r"[+-]?\d{1,18}(?:\.\d{1,18})?"
"""Pattern of a limit."""
UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
COMPARISONS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
POINTS, PERCENT = "pp", "%"
_LONGEST = 1000
"""Maximum length of an expression, in characters."""
VALUE = re.compile(rf"\s*(\S.*?)\s*(<=|>=|==|!=|<|>)\s*({NUMBER})\s*(%|[A-Za-z]+)?\s*", re.DOTALL)
"""`NAME OP VALUE[UNIT]`, in four groups."""
CHANGE = re.compile(rf"\s*(\S.*)(:)\s*({NUMBER})\s*(%|[A-Za-z]+)?\s*", re.DOTALL)
"""`NAME:CHANGE[UNIT]`, in four groups; the sign of the change selects a fall or a rise."""


@dataclass(frozen=True)
class NamedMeasure:
    """Meaning of the name in an expression."""

    name: str
    """Name of the measure."""
    dimension: Dimension
    """Kind of measure; it decides the units."""
    label: str | None = None
    """Part of the measure: the label of `custom:LABEL`, upper case; the code of `insight:CODE`."""
    is_floor: bool = False
    """True if people set a minimum percentage for it, which is rarely below 1 % or above 100 %."""
    is_part: bool = True
    """True if a percentage of it lies between 0 and 100."""


@dataclass(frozen=True)
class Expression:
    """A parsed expression."""

    text: str
    """The expression as written."""
    named: NamedMeasure
    comparison: str
    """One of < <= > >= == !=."""
    limit: Fraction
    """Limit in percent, points, seconds or as a plain number, according to `unit`; with a sign for a change."""
    unit: str
    """ "%", "pp" (points), "s" or ""."""
    fails: bool = True
    """True if the run fails (`--fail-…`); False for a warning (`--warn-if`)."""
    each: tuple[str, ...] = ()
    """Dimensions of `any(DIM):`, each of whose groups is judged; empty for the whole."""

    @property
    def name(self) -> str:
        """Name of the measure."""
        return self.named.name

    @property
    def label(self) -> str | None:
        """Part of the measure; None for all."""
        return self.named.label

    def is_met_by(self, value: Fraction) -> bool:
        """Return True if `value OP limit` is true, compared unrounded."""
        return COMPARISONS[self.comparison](value, self.limit)


@dataclass(frozen=True)
class Subject:
    """Domain of a command's thresholds."""

    noun: str
    """Noun for an expression."""
    accepted: str
    """Syntax of an expression, with examples."""
    find: Callable[[str, str], NamedMeasure]
    """Function from a name to its meaning; the second argument is the whole expression. It raises `UsageError` for an
    unknown name."""
    units: Mapping[Dimension, tuple[str, ...]]
    """Units by kind of measure; the first one applies to an expression without a unit."""
    shape: re.Pattern[str] = VALUE
    of_name: str = ""
    """Words before a name in messages about its unit."""
    only_positive: bool = True
    """True if no value is below 0."""
    groups: bool = False
    """True if `any(DIM):` may precede an expression."""
    instead: Callable[[str, str], str] = lambda _, accepted: f"write {accepted}"
    """Function that returns the advice for text that is not an expression, from the text and `accepted`."""


def parse(text: str, subject: Subject, *, fails: bool = True) -> Expression:
    """Return an expression about a subject, whatever its limit.

    Raise `UsageError` for invalid syntax, an unknown name, or a unit that the name cannot have.
    """
    bounded_text(text, _LONGEST)
    every = _EVERY.match(text) if subject.groups else None
    match = subject.shape.fullmatch(text, every.end() if every else 0)
    if match is None:
        raise UsageError(f"{text!r} is not {subject.noun}", tip=subject.instead(text, subject.accepted))
    name, comparison, number, unit = (match[1].strip(), match[2], match[3], (match[4] or "").lower())
    named = subject.find(name, text)
    if comparison == ":":
        if number[0] not in "+-":
            raise UsageError(
                f"{text!r} has no sign",
                tip=f"add one: '-{number}' if it fell by more than that, '+{number}' if it rose",
            )
        comparison = "<" if number[0] == "-" else ">"
    allowed = subject.units[named.dimension]
    unit = unit or allowed[0]
    if unit not in allowed:
        units = ", ".join(one or "no unit" for one in allowed)
        hint = "it is a plain number" if allowed == ("",) else f"write {units}"
        raise UsageError(f"{text!r}: {subject.of_name}{name} cannot be in {unit!r}", tip=hint)
    limit = Fraction(number) * UNIT_SECONDS.get(unit, 1)
    each = tuple(part.strip().lower() for part in every[1].split(",")) if every else ()
    return Expression(text.strip(), named, comparison, limit, "s" if unit in UNIT_SECONDS else unit, fails, each)


def read(text: str, subject: Subject, *, fails: bool = True) -> Expression:
    """Parse an expression that a person wrote.

    Raise `UsageError` also if it can never be true, or if it probably means something else.
    """
    parsed = parse(text, subject, fails=fails)
    if subject.shape is CHANGE:
        beyond = parsed.unit == POINTS and abs(parsed.limit) >= 100
        if beyond or (parsed.unit == PERCENT and parsed.limit <= -100):
            raise UsageError(f"{text!r} can never hold: no change is larger than that")
        return parsed
    _check_can_be_met(text, parsed, subject)
    if parsed.named.is_floor and parsed.comparison in ("<", "<=") and parsed.unit == PERCENT and PERCENT not in text:
        _check_percentage(text[text.index(parsed.comparison) + len(parsed.comparison) :].strip())
    return parsed


def read_fail_under(text: str, subject: Subject) -> Expression:
    """Return the expression of `--fail-under PCT`, which is `goodput<PCT`. Raise `UsageError` if it is not a number."""
    number = bounded_text(text).strip().removesuffix(PERCENT).strip()
    if not re.fullmatch(NUMBER, number):
        raise UsageError(f"{text!r} is not a percentage", tip="write a number such as 85 or 92.5")
    if PERCENT not in text:
        _check_percentage(number)
    return parse(f"goodput<{number}", subject)


_EVERY = re.compile(r"\s*any\(([^)]*)\):", re.DOTALL)


def _check_can_be_met(text: str, parsed: Expression, subject: Subject) -> None:
    """Raise `UsageError` for an expression that no value makes true, such as 'goodput<0': a gate that never fails."""
    comparison, limit = parsed.comparison, parsed.limit
    most = 100 if parsed.unit == PERCENT and parsed.named.is_part else math.inf
    above = (comparison == ">" and limit >= most) or (comparison in (">=", "==") and limit > most)
    below = (comparison == "<" and limit <= 0) or (comparison in ("<=", "==") and limit < 0)
    if above or (below and subject.only_positive):
        side = "above 100 %" if above else "below 0"
        raise UsageError(f"{text!r} can never hold: no value is {side}")


def _check_percentage(number: str) -> None:
    """Reject a percentage that was probably meant as a share, or lacks its decimal point.

    Such a gate fails never or always. A percentage with its sign, `0.8%`, is accepted. Raise `UsageError`.
    """
    percent = Fraction(number)
    if percent < 0:
        raise UsageError(f"{number} is below 0 %: no value is below it")
    if 0 < percent < 1:
        meant = f"{float(100 * percent):g}"
        raise UsageError(
            f"{number} is {number} %, and hardly any value is below it",
            tip=f"did you mean {meant}? Otherwise write {number}%",
        )
    if percent > 100:
        less = next(percent / power for power in (10, 100, 10**18) if percent / power <= 100)
        raise UsageError(
            f"{number} is above 100 %, and every value is below it",
            tip=f"did you mean {float(less):g}? Otherwise write {number}%",
        )


INCONCLUSIVE = "inconclusive: "
"""Prefix of a hint if a threshold is inconclusive although its value is recorded; the reason follows."""


@dataclass(frozen=True)
class Threshold:
    """The result of one `--fail-…`/`--warn-if` expression."""

    expression: str
    """The expression as written."""
    fails: bool
    """True if the run fails when the expression is true; False for a warning."""
    met: bool | None
    """True if the expression is true; None if the value is not recorded."""
    value: float | None
    """The value, in the unit."""
    limit: float
    """The limit, in the unit."""
    unit: str
    """ "%", "pp" (points), "s", or "" for a plain number."""
    hint: str | None = None
    """Suggested name if the value is not recorded. It may contain text of the log."""

    @property
    def verdict(self) -> Verdict:
        """Return the effect of the expression: fail the run, warn, nothing (passed), or not recorded."""
        if self.met is None:
            return "not_recorded"
        if not self.met:
            return "passed"
        return "failed" if self.fails else "warning"


def judged(expression: Expression, value: Fraction | None, hint: str | None = None) -> Threshold:
    """Judge the expression on a value in its unit; None if that is not recorded."""
    met = None if value is None else expression.is_met_by(value)
    shown = None if value is None else telling_float(value, expression.limit)
    return Threshold(expression.text, expression.fails, met, shown, float(expression.limit), expression.unit, hint)


def judged_between(
    expression: Expression, low: Fraction | None, high: Fraction | None, range_text: str, reason: str
) -> Threshold:
    """Judge an expression on a value with only known bounds, both in its unit. None: no bound on that side.

    It is decided if the result is the same for every value between the bounds. Its value is then the bound that
    decides. range_text: the bounds in words. reason: why there is no number, and what to do.
    """
    decided = _deciding(expression, low, high)
    if decided is None:
        return judged(expression, None, f"{INCONCLUSIVE}{range_text}; {reason}")
    return judged(expression, decided, range_text)


def _deciding(expression: Expression, low: Fraction | None, high: Fraction | None) -> Fraction | None:
    """Return the bound that decides an expression; None if it is undecided."""
    if low is not None and low == high:
        return low
    below = high is not None and high < expression.limit
    above = low is not None and low > expression.limit
    if expression.comparison in ("<", ">="):  # The limit itself counts as above it.
        above = low is not None and low >= expression.limit
    elif expression.comparison in ("<=", ">"):
        below = high is not None and high <= expression.limit
    return high if below else low if above else None


def telling_float(value: Fraction, limit: Fraction) -> float:
    """Return the float nearest to `value` on the same side of the limit, so that the shown value agrees with the
    verdict."""
    shown, edge = float(value), float(limit)
    if shown == edge and value != limit:
        return math.nextafter(shown, math.inf if value > limit else -math.inf)
    return shown
