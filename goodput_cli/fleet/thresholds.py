"""The measures of a fleet, and thresholds on them: `[any(DIM):]NAME OP VALUE[UNIT]`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from goodput_cli.analysis.goodput.thresholds import UNITS
from goodput_cli.analysis.measures import CUSTOM, PREFIXES, Measure
from goodput_cli.analysis.threshold import Expression, NamedMeasure, Subject, Threshold, judged, read, read_fail_under
from goodput_cli.errors import UsageError
from goodput_cli.vocabulary.categories import BY_NAME, Category, category_named
from goodput_cli.vocabulary.when import NS_PER_HOUR, NS_PER_SECOND

if TYPE_CHECKING:  # NumPy comes with them, which no help needs
    from goodput_cli.fleet.rows import GroupTable
    from goodput_cli.fleet.sums import FleetTotals, Totals


def _measure(
    name: str, meaning: str, share: Callable[[Totals], Fraction | None], metric: str | None = None
) -> Measure[Totals]:
    """A share of something, from 0 to 1."""

    def percent(totals: Totals) -> Fraction | None:
        value = share(totals)
        return None if value is None else 100 * value

    return Measure(name, "ratio", meaning, percent, metric=metric, is_floor=True)


def _mttf(totals: Totals) -> Fraction | None:
    ns = totals.sums.mttf_ns
    return None if ns is None else ns / NS_PER_SECOND


def seconds(ns: int, count: int) -> Fraction | None:
    """The mean of some times; None without any."""
    return Fraction(ns, count * NS_PER_SECOND) if count else None


def _wait(totals: Totals) -> Fraction | None:
    wait = None if totals.held is None else totals.held.wait(95)
    return None if wait is None else wait / NS_PER_SECOND


def _failed(totals: Totals) -> Fraction | None:
    return None if totals.held is None else totals.held.failed


def _money(totals: Totals) -> Fraction | None:
    """Return None without prices, or with prices of several currencies."""
    sums = totals.sums
    return Fraction(next(iter(sums.money.values()), 0)) if sums.priced_runs and len(sums.money) <= 1 else None


MEASURES: Mapping[str, Measure[Totals]] = {
    one.name: one
    for one in (
        _measure("goodput", "Productive share of the chip time.", lambda one: one.sums.goodput, "goodput_fleet_ratio"),
        _measure("sg", "Scheduling goodput.", lambda one: one.mpg.scheduling),
        _measure("rg", "Runtime goodput.", lambda one: one.mpg.runtime),
        _measure("pg", "Program goodput.", lambda one: one.mpg.program),
        _measure("mpg", "ML productivity goodput.", lambda one: one.mpg.mpg),
        _measure("availability", "Allocated share of the time asked for.", lambda one: one.sums.availability),
        _measure("ettr", "Productive share of the job time.", lambda one: one.sums.time_goodput),
        Measure("mttf", "time", "Mean job time to failure.", _mttf),
        Measure(
            "mttr", "time", "Mean time to recover: from a failure until training resumes, including queue time.",
            lambda one: seconds(one.sums.recover, one.sums.recovered),
        ),
        Measure(
            "time_to_detect", "time", "Mean time from a failure to the log line that reports it.",
            lambda one: seconds(one.sums.detect, one.sums.detected),
        ),
        Measure(
            "at_risk", "time", "Longest training of a run after its last complete checkpoint.",
            lambda one: Fraction(max(one.sums.risks), NS_PER_SECOND) if one.sums.risks else None,
        ),
        Measure(
            "lost_hours", "count", "Accelerator hours without progress.",
            lambda one: Fraction(one.sums.lost, NS_PER_HOUR) if one.sums.known_runs else None,
            metric="goodput_fleet_lost_hours",
        ),
        Measure("lost_money", "count", "Cost of allocated time without progress.", _money),
        Measure(
            "failures", "count", "Disruptions that count as failures.",
            lambda one: Fraction(one.sums.failures) if one.sums.runs else None,
            metric="goodput_fleet_failures",
        ),
        Measure(
            "kwh", "count", "Energy (kWh) of accelerators, as far as power samples cover it.", lambda one: one.sums.kwh,
            metric="goodput_fleet_kwh",
        ),
        Measure(
            "lost_kwh", "count", "Part of that energy outside training that counts.", lambda one: one.sums.lost_kwh,
            metric="goodput_fleet_lost_kwh",
        ),
        Measure(
            "idle_hours", "count", "Accelerator hours of training with a utilization below 20 %.",
            lambda one: one.sums.idle_hours, metric="goodput_fleet_idle_hours",
        ),
        Measure("wait_p95", "time", "95th percentile of the queue waits in scheduler tables.", _wait),
        _measure("held.failed_percent", "Share of allocated accelerator hours that did not complete.", _failed),
        _measure("analysed", "Share of the found runs that are in the totals.", lambda one: one.analysed),
    )
}  # fmt: skip
"""Every number that can be asked for besides the categories."""


def _find(name: str, text: str) -> NamedMeasure:
    """Find a measure or a category, and the label after `custom:`."""
    prefix, colon, label = name.partition(":")
    if colon and prefix.lower() in PREFIXES and label.strip():
        return NamedMeasure(CUSTOM, "ratio", label.strip().upper())
    name = name.lower()
    if name in MEASURES:
        return MEASURES[name].named_measure()
    named = category_named(name)
    if named is not None and named[1]:
        return NamedMeasure(CUSTOM, "ratio", named[1])
    if name not in BY_NAME:
        raise UsageError(f"{text!r}: unknown name {name!r}", tip=f"use one of {', '.join([*MEASURES, *BY_NAME])}")
    if name == Category.EXCLUDED.id:
        raise UsageError(f"{text!r}: excluded time is not in the totals")
    return NamedMeasure(name, "ratio")


FLEET = Subject(
    "a threshold for a fleet",
    "[any(DIM):]NAME OP VALUE[UNIT], as in 'goodput<80', 'any(team):goodput<70', 'mttf<6h' or 'analysed<95'",
    _find,
    UNITS,
    groups=True,
)


def parse_fleet_threshold(text: str, *, fails: bool = True) -> Expression:
    """Parse `[any(DIM):]NAME OP VALUE[UNIT]`. Raises UsageError for an invalid expression, an unknown name, an invalid
    unit, or an expression that is never true."""
    parsed = read(text, FLEET, fails=fails)
    if parsed.name == "analysed" and parsed.each:
        raise UsageError(f"{text!r}: analysed applies to the whole fleet only")
    return parsed


def parse_fleet_fail_under(text: str) -> Expression:
    """`--fail-under PCT`, which is `goodput<PCT`."""
    return read_fail_under(text, FLEET)


def evaluate_fleet(
    expressions: Sequence[Expression], whole: Totals, groups: Sequence[GroupTable]
) -> tuple[Threshold, ...]:
    """Each expression judged on the whole fleet; `any(DIM)` on each of its groups."""
    found = []
    for expression in expressions:
        if not expression.each:
            found.append(judged(expression, _value(expression, whole)))
            continue
        table = next(one for one in groups if one.dims == expression.each)
        for row, totals in zip(table.rows, table.totals, strict=True):
            named = replace(expression, text=f"{expression.text} [{row.group}]")
            found.append(judged(named, _value(named, totals)))
    return tuple(found)


def _value(expression: Expression, totals: Totals) -> Fraction | None:
    """Return the value in percent, seconds, or unchanged; None if it is not recorded."""
    measure = MEASURES.get(expression.name)
    return _share(expression, totals.sums) if measure is None else measure.of(totals)


def _share(expression: Expression, sums: FleetTotals) -> Fraction | None:
    """Share of a category in the chip time; a label that never shows is not recorded."""
    chosen = [
        ns
        for (category, label), ns in sums.chip.items()
        if category.id == expression.name and expression.label in (None, label)
    ]
    if expression.label is not None and not chosen:
        return None
    share = sums.share_of(sum(chosen))
    return None if share is None else 100 * share
