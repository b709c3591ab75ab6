"""Thresholds of a fleet: `[any(DIM):]NAME OP VALUE[UNIT]`, parsed before any work and judged on exact numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from goodput_cli.analysis.goodput.thresholds import (
    DEFAULT_UNITS,
    ThresholdExpression,
    check_percentage,
    telling_float,
)
from goodput_cli.analysis.measures import CUSTOM, PREFIXES
from goodput_cli.analysis.threshold import EXPRESSION, NUMBER, UNIT_SECONDS, Threshold, check_can_hold
from goodput_cli.errors import UsageError
from goodput_cli.fleet.totals.ratios import HOUR_NS, ratio
from goodput_cli.vocabulary.categories import BY_NAME, Category
from goodput_cli.vocabulary.units import NS_PER_SECOND

if TYPE_CHECKING:
    from goodput_cli.fleet.report.report import FleetReport
    from goodput_cli.fleet.totals.sums import Mpg, Sums

_EVERY = re.compile(r"\s*any\(([^)]*)\):", re.DOTALL)
ACCEPTED = "[any(DIM):]NAME OP VALUE[UNIT], as in 'goodput<80', 'any(team):goodput<70', 'mttf<6h' or 'analysed<95'"


@dataclass(frozen=True)
class FleetMeasure:
    """A number of a fleet, or of a group of it."""

    name: str
    kind: str
    """ "share" (%), "time" (s) or "count"."""
    meaning: str
    of: Callable[[Sums, Mpg], Fraction | None]
    metric: str | None = None
    """The name under which it is published: a ratio from 0 to 1, seconds, or a number."""


def _money(sums: Sums, _: Mpg) -> Fraction | None:
    """None where there are no prices, or prices of several currencies."""
    return Fraction(next(iter(sums.money.values()), 0)) if sums.priced and len(sums.money) <= 1 else None


MEASURES: Mapping[str, FleetMeasure] = {
    one.name: one
    for one in (
        FleetMeasure(
            "goodput", "share", "Productive share of the chip time.", lambda sums, _: sums.goodput,
            "goodput_fleet_ratio",
        ),
        FleetMeasure("sg", "share", "Scheduling goodput.", lambda _, mpg: mpg.scheduling),
        FleetMeasure("rg", "share", "Runtime goodput.", lambda _, mpg: mpg.runtime),
        FleetMeasure("pg", "share", "Program goodput.", lambda _, mpg: mpg.program),
        FleetMeasure("mpg", "share", "ML productivity goodput.", lambda _, mpg: mpg.mpg),
        FleetMeasure(
            "availability", "share", "Allocated share of the time asked for.", lambda sums, _: sums.availability
        ),
        FleetMeasure("ettr", "share", "Productive share of the job time.", lambda sums, _: sums.time_goodput),
        FleetMeasure(
            "mttf", "time", "Mean job time to a failure.",
            lambda sums, _: None if sums.mttf_ns is None else sums.mttf_ns / NS_PER_SECOND,
        ),
        FleetMeasure(
            "lost_hours", "count", "Accelerator hours without progress.",
            lambda sums, _: Fraction(sums.lost, HOUR_NS) if sums.known else None, "goodput_fleet_lost_hours",
        ),
        FleetMeasure("lost_money", "count", "What held time without progress cost.", _money),
        FleetMeasure(
            "failures", "count", "Disruptions that count as failures.", lambda sums, _: Fraction(sums.failures),
            "goodput_fleet_failures",
        ),
        FleetMeasure("analysed", "share", "Runs that are in the totals, of all that were found.", lambda *_: None),
    )
}  # fmt: skip
"""Every number that can be asked for besides the categories."""
_UNITS = {"share": ["%"], "time": list(UNIT_SECONDS), "count": [""]}


@dataclass(frozen=True)
class FleetThreshold:
    """An expression about a fleet."""

    dims: tuple[str, ...]
    """Of `any(DIM)`; empty for the whole fleet."""
    expression: ThresholdExpression


def parse_fleet_threshold(text: str, *, fails: bool = True) -> FleetThreshold:
    """`[any(DIM):]NAME OP VALUE[UNIT]`. UsageError: not an expression, an unknown name, a unit that it cannot have, or
    one that never holds."""
    parsed = _parsed(text, fails)
    one = parsed.expression
    check_can_hold(text, one.comparison, one.limit, is_share=one.unit == "%")
    return parsed


def _parsed(text: str, fails: bool) -> FleetThreshold:
    every = _EVERY.match(text)
    match = EXPRESSION.fullmatch(text, every.end() if every else 0)
    if match is None:
        raise UsageError(f"{text!r} is not a threshold of a fleet; write {ACCEPTED}")
    name, label = _name(match[1], text)
    kind = MEASURES[name].kind if name in MEASURES else "share"
    unit = (match[4] or "").lower() or DEFAULT_UNITS[kind]  # type: ignore[index]
    if unit not in _UNITS[kind]:
        raise UsageError(f"{text!r}: {match[1]} cannot be in {unit!r}; write {', '.join(_UNITS[kind]) or 'a number'}")
    if name in MEASURES and kind == "share" and not match[4] and match[2] in ("<", "<="):
        check_percentage(match[3])
    limit = Fraction(match[3]) * UNIT_SECONDS.get(unit, 1)
    shown = "s" if unit in UNIT_SECONDS else unit
    dims = tuple(part.strip().lower() for part in every[1].split(",")) if every else ()
    if name == "analysed" and dims:
        raise UsageError(f"{text!r}: analysed is of the whole fleet")
    return FleetThreshold(dims, ThresholdExpression(text.strip(), name, label, match[2], limit, shown, fails))


def parse_fleet_fail_under(text: str) -> FleetThreshold:
    """`--fail-under PCT`, which is `goodput<PCT`."""
    number = text.strip().removesuffix("%").strip()
    if not re.fullmatch(NUMBER, number):
        raise UsageError(f"{text!r} is not a percentage; write a number such as 85 or 92.5")
    if "%" not in text:
        check_percentage(number)
    parsed = _parsed(f"goodput<{number}%", fails=True)
    return replace(parsed, expression=replace(parsed.expression, text=f"goodput<{number}"))


def evaluate_fleet(thresholds: Sequence[FleetThreshold], report: FleetReport) -> tuple[Threshold, ...]:
    """Each expression judged on the report; `any(DIM)` on each of its groups."""
    return tuple(judged for threshold in thresholds for judged in _judged(threshold, report))


def _judged(threshold: FleetThreshold, report: FleetReport) -> Iterator[Threshold]:
    expression = threshold.expression
    if not threshold.dims:
        yield _judge(expression, _value(expression, report, report.sums, report.mpg))
        return
    table = next(one for one in report.groups if one.dims == threshold.dims)
    for row, sums, mpg in zip(table.rows, table.sums, table.mpgs, strict=True):
        named = replace(expression, text=f"{expression.text} [{row.group}]")
        yield _judge(named, _value(expression, report, sums, mpg))


def _value(expression: ThresholdExpression, report: FleetReport, sums: Sums, mpg: Mpg) -> Fraction | None:
    """In percent, seconds, or as it is; None where it is not recorded."""
    if expression.name == "analysed":
        found = report.coverage.runs + report.coverage.not_analysed
        return Fraction(100 * report.coverage.runs, found)
    measure = MEASURES.get(expression.name)
    if measure is None:
        return _share(expression, sums)
    value = measure.of(sums, mpg)
    return None if value is None else value * (100 if measure.kind == "share" else 1)


def _share(expression: ThresholdExpression, sums: Sums) -> Fraction | None:
    """Share of a category in the chip time; a label that never shows is not recorded."""
    chosen = [
        ns
        for (category, label), ns in sums.chip.items()
        if category.id == expression.name and expression.label in (None, label)
    ]
    if expression.label is not None and not chosen:
        return None
    share = ratio(sum(chosen), sums.counted)
    return None if share is None else 100 * share


def _judge(expression: ThresholdExpression, value: Fraction | None) -> Threshold:
    met = None if value is None else expression.holds(value)
    shown = None if value is None else telling_float(value, expression.limit)
    return Threshold(expression.text, expression.fails, met, shown, float(expression.limit), expression.unit)


def _name(text: str, whole: str) -> tuple[str, str | None]:
    """The name of a measure or a category, and the label behind `custom:`."""
    prefix, colon, label = text.strip().partition(":")
    if colon and prefix.lower() in PREFIXES and label.strip():
        return CUSTOM, label.strip().upper()
    name = text.strip().lower()
    if name not in MEASURES and name not in BY_NAME:
        raise UsageError(f"{whole!r}: there is no {name!r}; there are {', '.join([*MEASURES, *BY_NAME])}")
    if name == Category.EXCLUDED.id:
        raise UsageError(f"{whole!r}: what is excluded is in no total")
    return name, None
