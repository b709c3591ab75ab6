"""Measures: every number of an analysis that can be asked for by name, declared once.

Thresholds (`--fail-if`), comparisons and metrics (OpenMetrics) all take them from here, and so does whatever publishes
an analysis. A new measure is a row in one of the tuples below. Values are exact; None is "not recorded", or that there
was nothing to average.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from goodput_cli.analysis.summary import Passage, Summary
from goodput_cli.vocabulary.categories import OVERLAPPED, Category

Dimension = Literal["share", "ratio", "time", "count"]
"""What is measured: time that has a share of the window; a share of something else; a plain time; a number."""
Value = Callable[[Summary], Fraction | None]

GOODPUT = "goodput"
CUSTOM = Category.CUSTOM.id
PREFIXES: Mapping[str, str] = {"custom": CUSTOM, CUSTOM: CUSTOM}
"""What may stand before `:LABEL`, and the measure that has a value for each label."""
STEP_STATISTICS = ("ideal", "mean", "median", "p90", "p99")
ENDED = ("crashed", "terminated", "silent", "preempted", "slice_down", "scale_up")
"""How attempts end before a disruption."""

_NS = 10**9
_PRODUCTIVE, _SAVE = Category.PRODUCTIVE.id, Category.SAVE.id


@dataclass(frozen=True)
class Measure:
    """One number of an analysis."""

    name: str
    """As a person writes it in a threshold."""
    dimension: Dimension
    """Decides the units in which it may be asked for."""
    meaning: str
    """What it is, in a sentence."""
    of: Value
    """`share` and `time` in seconds, `ratio` in percent, `count` as it is."""
    is_empty: Callable[[Summary], bool] = lambda _: False
    """Where there is no value: whether there was nothing to average, and not nothing recorded."""
    zero_is_unknown: bool = False
    """Whether a comparison takes 0 for "not recorded"."""
    metric: str | None = None
    """The name under which it is published: a ratio from 0 to 1, times in seconds. None: it is not."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What tells it from other measures of the same metric."""

    def compared(self, value: Fraction | None) -> Fraction | None:
        """The value as a comparison takes it."""
        return None if value == 0 and self.zero_is_unknown else value


def amount_ns(summary: Summary, category: str, label: str | None = None) -> int | None:
    """Time (ns) in a category, or in one label of custom events; None where it is not recorded. A label that never
    shows is not recorded."""
    if category == _PRODUCTIVE:
        return summary.goodput_ns
    if category == Category.EXCLUDED.id:
        return summary.window.excluded_ns
    if category == OVERLAPPED:
        return summary.overlapped_ns
    if category in summary.not_recorded:
        return None
    if label is not None:
        return summary.badput.get((category, label))
    return sum(ns for (name, _), ns in summary.badput.items() if name == category)


def percent_of(summary: Summary, ns: int) -> Fraction:
    """Percent of the window without what is excluded."""
    return Fraction(100 * ns, summary.window.counted_ns)


def value_of(summary: Summary, name: str, label: str | None, unit: str) -> Fraction | None:
    """A measure by name (label: of `custom_badput_events`) in the unit "%", "s" or ""; None where it is not recorded,
    or where all of the window is excluded."""
    counted = summary.window.counted_ns
    if counted <= 0:
        return None
    measure = MEASURES[name]
    value = measure.of(summary) if label is None else _seconds(amount_ns(summary, name, label))
    if value is None or measure.dimension != "share" or unit == "s":
        return value
    return 100 * value * _NS / counted


def published_value(summary: Summary, measure: Measure) -> Fraction | None:
    """A measure as metrics hold it: shares and ratios from 0 to 1, times in seconds."""
    if measure.dimension in ("share", "ratio"):
        percent = value_of(summary, measure.name, None, "%")
        return None if percent is None else percent / 100
    return measure.of(summary)


def decimal(value: float | None) -> Fraction | None:
    """The decimal that people see (`repr`), so that 'steps.mean==0.1' can hold; None for NaN and infinities too."""
    return None if value is None or not math.isfinite(value) else Fraction(repr(value))


def _seconds(ns: int | None) -> Fraction | None:
    return None if ns is None else Fraction(ns, _NS)


def _category(name: str) -> Value:
    """Time in a category."""
    return lambda summary: _seconds(amount_ns(summary, name))


def _number(path: str) -> Value:
    """A number of the summary, by the names of the fields that lead to it."""

    def read(summary: Summary) -> Fraction | None:
        value: Any = summary
        for name in path.split("."):
            value = None if value is None else getattr(value, name)
        return decimal(value)

    return read


def _percent(path: str) -> Value:
    """A share of 0 to 1, as `_number` finds it."""
    share = _number(path)

    def read(summary: Summary) -> Fraction | None:
        value = share(summary)
        return None if value is None else 100 * value

    return read


def _ended(how: str) -> Value:
    def count(summary: Summary) -> Fraction | None:
        passages = summary.passages
        return None if passages is None else Fraction(sum(passage.ended == how for passage in passages))

    return count


def _mean(amount: Callable[[Passage], float | None]) -> Value:
    """Over all disruptions; None where one of them does not say."""

    def read(summary: Summary) -> Fraction | None:
        amounts = [decimal(amount(passage)) for passage in summary.passages or ()]
        known = [value for value in amounts if value is not None]
        return sum(known, Fraction(0)) / len(known) if known and len(known) == len(amounts) else None

    return read


def _save_time(summary: Summary) -> Fraction | None:
    """What a save blocks, on average."""
    seconds, saves = _seconds(amount_ns(summary, _SAVE)), summary.saves
    return None if saves is None or saves.count == 0 or seconds is None else seconds / saves.count


def _undisrupted(summary: Summary) -> bool:
    return summary.disruptions == 0


def _has_saves(summary: Summary) -> bool:
    return summary.saves is not None


def _has_timed_saves(summary: Summary) -> bool:
    return _has_saves(summary) and _SAVE not in summary.not_recorded


_SHARES = (
    Measure(
        GOODPUT, "share", "Productive share of the window, 0 to 1.", _category(_PRODUCTIVE), metric="goodput_ratio"
    ),
    *(Measure(category.id, "share", category.row.meaning, _category(category.id)) for category in Category),
    Measure(OVERLAPPED, "share", "Data loading inside a step.", _category(OVERLAPPED)),
)
_OF_JOB = (
    Measure(
        "window",
        "time",
        "Length of the window without what is excluded.",
        lambda summary: _seconds(summary.window.counted_ns),
        metric="goodput_window_seconds",
    ),
    Measure("attempts", "count", "Attempts in the window.", _number("attempts"), metric="goodput_attempts"),
    Measure("runs", "count", "How often the job name was used.", _number("runs")),
    Measure(
        "kept_steps",
        "count",
        "Steps of the window that are part of the final progress.",
        _number("kept_steps"),
        metric="goodput_kept_steps",
    ),
)
_OF_DISRUPTIONS = (
    Measure("disruptions", "count", "Disruptions in the window.", _number("disruptions"), metric="goodput_disruptions"),
    *(
        Measure(f"disruptions.{how}", "count", f"Disruptions that ended an attempt: {how}.", _ended(how))
        for how in ENDED
    ),
    Measure(
        "mtbf",
        "time",
        "Mean time between disruptions.",
        _number("mtbf_seconds"),
        _undisrupted,
        metric="goodput_mtbf_seconds",
    ),
    Measure(
        "mean_downtime",
        "time",
        "Mean downtime of a disruption.",
        _number("mean_downtime_seconds"),
        _undisrupted,
        metric="goodput_mean_downtime_seconds",
    ),
    Measure(
        "mean_time_to_regain",
        "time",
        "Mean time until lost progress was regained.",
        _number("mean_time_to_regain_seconds"),
        _undisrupted,
        metric="goodput_mean_time_to_regain_seconds",
    ),
    Measure(
        "mean_steps_lost",
        "count",
        "Mean number of steps that a disruption took back.",
        _mean(lambda passage: passage.steps_lost),
        _undisrupted,
    ),
    Measure(
        "mean_wasted",
        "time",
        "Mean training time that a disruption took back.",
        _mean(lambda passage: passage.wasted_seconds),
        _undisrupted,
    ),
    Measure(
        "longest_unproductive",
        "time",
        "Longest part of the window without productive time.",
        _number("longest_unproductive_seconds"),
    ),
)
_OF_TRAINING = (
    Measure("steps.count", "count", "Step times that were recorded.", _number("steps.count"), zero_is_unknown=True),
    *(
        Measure(
            f"steps.{name}",
            "time",
            "Step times.",
            _number(f"steps.{name}_seconds"),
            metric="goodput_step_time_seconds",
            labels={"statistic": name},
        )
        for name in STEP_STATISTICS
    ),
    Measure("saves.count", "count", "Checkpoints that were saved.", _number("saves.count")),
    Measure("saves.time", "time", "Mean time for which a save blocks training.", _save_time, _has_timed_saves),
    Measure(
        "saves.interval",
        "time",
        "Median time between two saves of one attempt.",
        _number("saves.interval_seconds"),
        _has_saves,
    ),
    Measure(
        "at_risk",
        "time",
        "Kept training after the last completed save.",
        _number("at_risk_seconds"),
        metric="goodput_at_risk_seconds",
    ),
    Measure(
        "at_risk.steps",
        "count",
        "Kept steps after the last completed save.",
        _number("at_risk_steps"),
        metric="goodput_at_risk_steps",
    ),
)
_OF_SLICES = (
    Measure(
        "elastic.stepping",
        "ratio",
        "Share of the slices that were stepping.",
        _percent("slices.stepping"),
        metric="goodput_stepping_slices_ratio",
    ),
    Measure(
        "elastic.available",
        "ratio",
        "Share of the slices that were available.",
        _percent("slices.available"),
        metric="goodput_available_slices_ratio",
    ),
    Measure(
        "elastic.goodput", "ratio", "Goodput times the slices that were stepping.", _number("slices.goodput_percent")
    ),
)

FACTS = (*_OF_JOB, *_OF_DISRUPTIONS, *_OF_TRAINING, *_OF_SLICES)
"""What a comparison shows beside the categories, in this order."""
MEASURES: Mapping[str, Measure] = {measure.name: measure for measure in (*_SHARES, *FACTS)}
"""Every measure by name."""
_LESS_IS_BETTER = re.compile(r"disruptions|mean_|longest_unproductive|steps\.(?!count)|saves\.time|at_risk")
_MORE_IS_BETTER = re.compile(r"mtbf|elastic\.")
_NEITHER = ("disruptions.scale_up",)


def change_is_better(name: str, change: Fraction) -> bool | None:
    """Whether a change of a fact is for the better; None where there is none, or more is as good as less."""
    if change == 0 or name in _NEITHER:
        return None
    if _LESS_IS_BETTER.match(name):
        return change < 0
    return change > 0 if _MORE_IS_BETTER.match(name) else None
