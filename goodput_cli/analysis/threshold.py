"""Thresholds: how `--fail-if` and its kin are written, whatever they are about, and what was found when one was judged.

An expression says what must not be: `--fail-if 'goodput<90'` fails when it holds. It names a measure, and each command
has its own (`Subject`): a job, a change between two, advice, a fleet. Everything is parsed before any work, and judged
on exact numbers; what is not recorded neither passes nor fails. No NumPy here, as `--help` reads this.
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
"""What is measured: time that has a share of the whole; a share of something else; a plain time; a number; a number of
things that lost time."""
Verdict = Literal["failed", "warning", "passed", "not_recorded"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
NUMBER = r"[+-]?\d{1,18}(?:\.\d{1,18})?"
"""How a limit is written, as a pattern."""
UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
COMPARISONS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
POINTS, PERCENT = "pp", "%"
_LONGEST = 1000
"""Characters of an expression."""
VALUE = re.compile(rf"\s*(\S.*?)\s*(<=|>=|==|!=|<|>)\s*({NUMBER})\s*(%|[A-Za-z]+)?\s*", re.DOTALL)
"""`NAME OP VALUE[UNIT]`, in four groups."""
CHANGE = re.compile(rf"\s*(\S.*)(:)\s*({NUMBER})\s*(%|[A-Za-z]+)?\s*", re.DOTALL)
"""`NAME:CHANGE[UNIT]`, in four groups; the sign of the change says whether a fall or a rise is meant."""


@dataclass(frozen=True)
class Named:
    """What the name in an expression stands for."""

    name: str
    """Of a measure."""
    dimension: Dimension
    """Decides the units."""
    label: str | None = None
    """Which part of the measure: of `custom:LABEL`, upper case; of `insight:CODE`."""
    is_floor: bool = False
    """Whether people set a least percentage for it, which is nearly never below 1 % nor above 100 %."""
    is_part: bool = True
    """Whether a percentage of it lies between 0 and 100."""


@dataclass(frozen=True)
class Expression:
    """One expression as parsed."""

    text: str
    """As it was written."""
    named: Named
    comparison: str
    """One of < <= > >= == !=."""
    limit: Fraction
    """In percent, points, seconds or a plain number, as `unit` says; of a change, with its sign."""
    unit: str
    """ "%", "pp" (points), "s" or ""."""
    fails: bool = True
    """Whether the run fails (`--fail-…`) or is only warned of (`--warn-if`)."""
    each: tuple[str, ...] = ()
    """Of `any(DIM):`, the dimensions of whose groups each is judged; empty for the whole."""

    @property
    def name(self) -> str:
        """Of the measure."""
        return self.named.name

    @property
    def label(self) -> str | None:
        """Which part of it; None for all."""
        return self.named.label

    def holds(self, value: Fraction) -> bool:
        """Whether `value OP limit` is true, compared unrounded."""
        return COMPARISONS[self.comparison](value, self.limit)


@dataclass(frozen=True)
class Subject:
    """What the thresholds of a command are about."""

    noun: str
    """What an expression is called."""
    accepted: str
    """How one is written, with examples."""
    find: Callable[[str, str], Named]
    """What a name stands for; the second argument is the whole expression. `UsageError` where it is none."""
    units: Mapping[Dimension, tuple[str, ...]]
    """Those that a measure may have; the first is that of an expression without one."""
    shape: re.Pattern[str] = VALUE
    of_name: str = ""
    """What stands before a name in messages about its unit."""
    only_positive: bool = True
    """Whether no value is below 0."""
    groups: bool = False
    """Whether `any(DIM):` may stand before it."""
    instead: Callable[[str, str], str] = lambda _, accepted: f"write {accepted}"
    """What to do about a text that is no expression, from it and `accepted`."""


def parse(text: str, subject: Subject, *, fails: bool = True) -> Expression:
    """An expression about a subject, whatever its limit.

    `UsageError`: not an expression, an unknown name, a unit that the name cannot have.
    """
    bounded_text(text, _LONGEST)
    every = _EVERY.match(text) if subject.groups else None
    match = subject.shape.fullmatch(text, every.end() if every else 0)
    if match is None:
        raise UsageError(f"{text!r} is not {subject.noun}; {subject.instead(text, subject.accepted)}")
    name, comparison, number, unit = (match[1].strip(), match[2], match[3], (match[4] or "").lower())
    named = subject.find(name, text)
    if comparison == ":":
        if number[0] not in "+-":
            raise UsageError(f"{text!r}: add a sign: '-{number}' if it fell by more than that, '+{number}' if it rose")
        comparison = "<" if number[0] == "-" else ">"
    allowed = subject.units[named.dimension]
    unit = unit or allowed[0]
    if unit not in allowed:
        units = ", ".join(one or "no unit" for one in allowed)
        hint = "it is a plain number" if allowed == ("",) else f"write {units}"
        raise UsageError(f"{text!r}: {subject.of_name}{name} cannot be in {unit!r}; {hint}")
    limit = Fraction(number) * UNIT_SECONDS.get(unit, 1)
    each = tuple(part.strip().lower() for part in every[1].split(",")) if every else ()
    return Expression(text.strip(), named, comparison, limit, "s" if unit in UNIT_SECONDS else unit, fails, each)


def read(text: str, subject: Subject, *, fails: bool = True) -> Expression:
    """The same as a person wrote it: `UsageError` also for one that never holds, or was probably meant otherwise."""
    parsed = parse(text, subject, fails=fails)
    if subject.shape is CHANGE:
        beyond = parsed.unit == POINTS and abs(parsed.limit) >= 100
        if beyond or (parsed.unit == PERCENT and parsed.limit <= -100):
            raise UsageError(f"{text!r} can never hold: no change is larger than that")
        return parsed
    _check_can_hold(text, parsed, subject)
    if parsed.named.is_floor and parsed.comparison in ("<", "<=") and parsed.unit == PERCENT and PERCENT not in text:
        _check_percentage(text[text.index(parsed.comparison) + len(parsed.comparison) :].strip())
    return parsed


def read_fail_under(text: str, subject: Subject) -> Expression:
    """`--fail-under PCT`, which is `goodput<PCT`. `UsageError` if it is not a number."""
    number = bounded_text(text).strip().removesuffix(PERCENT).strip()
    if not re.fullmatch(NUMBER, number):
        raise UsageError(f"{text!r} is not a percentage; write a number such as 85 or 92.5")
    if PERCENT not in text:
        _check_percentage(number)
    return parse(f"goodput<{number}", subject)


_EVERY = re.compile(r"\s*any\(([^)]*)\):", re.DOTALL)


def _check_can_hold(text: str, parsed: Expression, subject: Subject) -> None:
    """`UsageError` for an expression that no value makes true, such as 'goodput<0': a gate that never fails."""
    comparison, limit = parsed.comparison, parsed.limit
    most = 100 if parsed.unit == PERCENT and parsed.named.is_part else math.inf
    above = (comparison == ">" and limit >= most) or (comparison in (">=", "==") and limit > most)
    below = (comparison == "<" and limit <= 0) or (comparison in ("<=", "==") and limit < 0)
    if above or (below and subject.only_positive):
        side = "above 100 %" if above else "below 0"
        raise UsageError(f"{text!r} can never hold: no value is {side}")


def _check_percentage(number: str) -> None:
    """`UsageError` for a percentage that was probably meant as a share, or lacks its point: such a gate never fails, or
    always. With its sign, `0.8%`, it is meant."""
    percent = Fraction(number)
    if percent < 0:
        raise UsageError(f"{number} is below 0 %: no value is below it")
    if 0 < percent < 1:
        meant = f"{float(100 * percent):g}"
        raise UsageError(
            f"{number} is {number} %, and hardly any value is below it; did you mean {meant}? Otherwise write {number}%"
        )
    if percent > 100:
        less = next(percent / power for power in (10, 100, 10**18) if percent / power <= 100)
        raise UsageError(
            f"{number} is above 100 %, and every value is below it; did you mean {float(less):g}? "
            f"Otherwise write {number}%"
        )


NOT_JUDGED = "not judged: "
"""How the hint of a threshold begins that was not judged though what it asks for is recorded; why stands behind it."""
INCONCLUSIVE = "inconclusive: "
"""The same of a threshold on a value of which only bounds are known, between which the limit lies."""


@dataclass(frozen=True)
class Threshold:
    """One `--fail-…`/`--warn-if` expression."""

    expression: str
    """As it was written."""
    fails: bool
    """Whether the run fails when it holds, or is only warned of."""
    met: bool | None
    """Whether what it says holds; None: it was not recorded."""
    value: float | None
    """What was found, in the unit."""
    limit: float
    """In the unit."""
    unit: str
    """ "%", "pp" (points), "s", or "" for a plain number."""
    hint: str | None = None
    """Where it was not recorded, what may have been meant; it may hold text of the log."""

    @property
    def verdict(self) -> Verdict:
        """What the expression did: fail the run, warn, nothing (passed), or it could not be judged."""
        if self.met is None:
            return "not_recorded"
        if not self.met:
            return "passed"
        return "failed" if self.fails else "warning"


def judged(expression: Expression, value: Fraction | None, hint: str | None = None) -> Threshold:
    """The expression judged on a value in its unit; None where that is not recorded."""
    met = None if value is None else expression.holds(value)
    shown = None if value is None else telling_float(value, expression.limit)
    return Threshold(expression.text, expression.fails, met, shown, float(expression.limit), expression.unit, hint)


def judged_between(
    expression: Expression, low: Fraction | None, high: Fraction | None, range_text: str, reason: str
) -> Threshold:
    """Judge an expression on a value of which only bounds are known, both in its unit. None: no bound on that side.

    It is decided where it is for every value between them; then its value is the bound that decides. range_text: the
    bounds in words. reason: why there is no number, and what to do.
    """
    decided = _deciding(expression, low, high)
    if decided is None:
        return judged(expression, None, f"{INCONCLUSIVE}{range_text}; {reason}")
    return judged(expression, decided, range_text)


def _deciding(expression: Expression, low: Fraction | None, high: Fraction | None) -> Fraction | None:
    """The bound by which an expression is decided; None where it is not."""
    if low is not None and low == high:
        return low
    below = high is not None and high < expression.limit
    above = low is not None and low > expression.limit
    if expression.comparison in ("<", ">="):  # the limit itself is on the upper side
        above = low is not None and low >= expression.limit
    elif expression.comparison in ("<=", ">"):
        below = high is not None and high <= expression.limit
    return high if below else low if above else None


def telling_float(value: Fraction, limit: Fraction) -> float:
    """The float nearest to `value` that lies on the same side of the limit, so that what is shown agrees with what
    was judged."""
    shown, edge = float(value), float(limit)
    if shown == edge and value != limit:
        return math.nextafter(shown, math.inf if value > limit else -math.inf)
    return shown
