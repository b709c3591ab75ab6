"""Measures: every number of an analysis that has a name, declared once, one row each.

Thresholds (`--fail-if`), comparisons, metrics (OpenMetrics) and all other publications read them from here. A value is
read from a summary, by the path of a field or computed from several. It is exact, and None is "not recorded", or that
there was nothing to average. The group of a measure determines where a comparison shows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Generic, Literal, TypeVar

from goodput_cli.analysis.summary import DisruptionSummary, Summary
from goodput_cli.analysis.threshold import Dimension, NamedMeasure
from goodput_cli.vocabulary.categories import ENDED, OVERLAPPED, UNCOUNTED, Category

Source = TypeVar("Source")
"""Input of a measure: the summary of an analysis, or the totals of a fleet."""
Value = Callable[[Summary], Fraction | None]


@dataclass(frozen=True)
class Measure(Generic[Source]):
    """One number of an analysis, or of a fleet."""

    name: str
    """Name in a threshold."""
    dimension: Dimension
    """Kind of measure; it decides the units of thresholds."""
    meaning: str
    """Description, in one sentence."""
    of: Callable[[Source], Fraction | None]
    """Function to the value: `share` and `time` in seconds, `ratio` in percent, `count` unchanged."""
    is_empty: Callable[[Source], bool] = lambda _: False
    """Function that returns True if a missing value means nothing to average, rather than not recorded."""
    better: Literal["more", "less"] | None = None
    """The better direction; None if neither is better, or if a category determines it."""
    zero_is_unknown: bool = False
    """True if a comparison treats 0 as "not recorded"."""
    metric: str | None = None
    """Name of the published metric: a ratio from 0 to 1, times in seconds. None if it is not published."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that distinguish it from other measures of the same metric."""

    is_floor: bool = False
    """True if people set a minimum percentage for it: a limit below 1 or above 100 is probably a mistake."""
    is_part: bool = True
    """True if a percentage of it lies between 0 and 100."""

    def named_measure(self, label: str | None = None) -> NamedMeasure:
        """Return the meaning of its name in a threshold, or that of one label of it."""
        return NamedMeasure(self.name, self.dimension, label, self.is_floor, self.is_part)

    def compared(self, value: Fraction | None) -> Fraction | None:
        """Return the value for a comparison."""
        return None if value == 0 and self.zero_is_unknown else value

    def improved(self, change: Fraction) -> bool | None:
        """Return True if a change is an improvement; None if there is no change, or if neither direction is better."""
        return None if change == 0 or self.better is None else (change > 0) == (self.better == "more")


_TITLES = {
    "work_time": "time per kept step", "effective_mfu": "effective MFU",
    "kwh_per_million_tokens": "kWh per million tokens", "mtbf": "mean time between failures",
    "mttr": "mean time to recover", "time_to_detect": "mean time to detect", "mean_wasted": "mean wasted progress",
    "longest_unproductive": "longest unproductive time", "steps.count": "timed steps",
    "steps.ideal": "step time, ideal",
    "steps.mean": "step time, mean", "steps.median": "step time, median", "steps.p90": "step time, p90",
    "steps.p99": "step time, p99", "saves.count": "checkpoints saved", "saves.time": "mean time per save",
    "saves.interval": "median time between saves", "at_risk": "time at risk", "at_risk.steps": "steps at risk",
    "elastic.stepping": "slices stepping", "elastic.available": "slices available",
}  # fmt: skip
"""Readable names that differ from the name in a threshold in more than its separators."""


def title_of(measure: Measure[Any]) -> str:
    """Return the readable name of a measure: `mean time to recover` for `mttr`."""
    return _TITLES.get(measure.name) or measure.name.replace(".", ", ").replace("_", " ")


def amount_ns(summary: Summary, category: str, label: str | None = None) -> int | None:
    """Return the time (ns) in a category, or in one label of custom events; None if it is not recorded. A label that
    never occurs is not recorded."""
    if category == Category.PRODUCTIVE.id:
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
    """Return the percentage of the window without excluded time."""
    return Fraction(100 * ns, summary.window.counted_ns)


def seconds_of(ns: int | None) -> Fraction | None:
    """Return an amount of time (ns) in seconds."""
    return None if ns is None else Fraction(ns, 10**9)


def decimal(value: float | None) -> Fraction | None:
    """Return the decimal that people see (`repr`), so that 'steps.mean==0.1' can be true; None also for NaN and
    infinities."""
    return None if value is None or not math.isfinite(value) else Fraction(repr(value))


def time_in(name: str) -> Value:
    """Return a function to the time in a category."""
    return lambda summary: seconds_of(amount_ns(summary, name))


def number(path: str) -> Value:
    """Return a function to a number of the summary. path: the names of the fields that lead to it."""

    def read(summary: Summary) -> Fraction | None:
        value: Any = summary
        for name in path.split("."):
            value = None if value is None else getattr(value, name)
        return decimal(value)

    return read


def percent(path: str) -> Value:
    """Return a function to a share of 0 to 1 as percent. path: as in `number`."""
    share = number(path)

    def read(summary: Summary) -> Fraction | None:
        value = share(summary)
        return None if value is None else 100 * value

    return read


def ended(how: str) -> Value:
    def count(summary: Summary) -> Fraction | None:
        each = summary.each_disruption
        return None if each is None else Fraction(sum(disruption.ended == how for disruption in each))

    return count


def mean(amount: Callable[[DisruptionSummary], float | None]) -> Value:
    """Return a function to the mean over all disruptions; None if one of them lacks the value."""

    def read(summary: Summary) -> Fraction | None:
        amounts = [decimal(amount(disruption)) for disruption in summary.each_disruption or ()]
        known = [value for value in amounts if value is not None]
        return sum(known, Fraction(0)) / len(known) if known and len(known) == len(amounts) else None

    return read


def save_time(summary: Summary) -> Fraction | None:
    """Return the mean blocking time of a save, of those whose time is in the category."""
    seconds, saves = seconds_of(amount_ns(summary, Category.SAVE.id)), summary.saves
    return None if saves is None or saves.count == 0 or seconds is None else seconds / (saves.timed or saves.count)


def undisrupted(summary: Summary) -> bool:
    return summary.disruptions == 0


def unrecovered(summary: Summary) -> bool:
    """Return True if the job never trained again: without disruptions, or if the next disruption has the whole
    recovery."""
    one = summary.recoveries
    return undisrupted(summary) or (one is not None and one.recovered == 0)


def has_saves(summary: Summary) -> bool:
    return summary.saves is not None


def has_timed_saves(summary: Summary) -> bool:
    return has_saves(summary) and Category.SAVE.id not in summary.not_recorded


GOODPUT = "goodput"
CUSTOM = Category.CUSTOM.id
PREFIXES: Mapping[str, str] = {"custom": CUSTOM, CUSTOM: CUSTOM}
"""Prefixes of `:LABEL`, and the measure that has a value for each label."""
STEP_STATISTICS = ("ideal", "mean", "median", "p90", "p99")
"""Names of step times, each with a measure."""


def work_seconds(summary: Summary) -> Fraction | None:
    """Return the time of a kept step with all losses; None without one."""
    steps = summary.kept_steps
    return Fraction(summary.window.counted_ns, 10**9) / Fraction(steps) if steps else None


_SHARES = (
    Measure(
        GOODPUT, "share", "Productive share of the window, 0 to 1.", time_in(Category.PRODUCTIVE.id),
        metric="goodput_ratio", is_floor=True,
    ),
    *(
        Measure(
            category.id,
            "share",
            category.row.meaning,
            time_in(category.id),
            is_part=category is not Category.EXCLUDED,  # Percentages are of the window without it.
        )
        for category in Category
    ),
    Measure(OVERLAPPED, "share", "Data loading inside a step.", time_in(OVERLAPPED)),
)  # fmt: skip
_OF_JOB: tuple[Measure[Summary], ...] = (
    Measure(
        "window", "time", "Length of the window without exclusions.",
        lambda summary: seconds_of(summary.window.counted_ns), metric="goodput_window_seconds",
    ),
    Measure("attempts", "count", "Attempts of the job.", number("attempts"), metric="goodput_attempts"),
    Measure("runs", "count", "How often the job name was used.", number("runs")),
    Measure(
        "kept_steps", "count", "Steps of the window that are part of the final progress.", number("kept_steps"),
        metric="goodput_kept_steps",
    ),
)  # fmt: skip
_OF_WORK = (
    Measure("work_time", "time", "Window divided by kept steps, losses included.", work_seconds, better="less"),
)  # fmt: skip
OF_AMOUNTS: tuple[Measure[Summary], ...] = (  # Few logs contain any: a comparison omits them if neither side does.
    Measure(
        "kept_tokens", "count", "Tokens of the kept steps of the window.", number("work.tokens"),
        metric="goodput_kept_tokens", better="more",
    ),
    Measure(
        "tokens_per_second", "count", "Kept tokens per second of the window.", number("work.tokens_per_second"),
        better="more",
    ),
    Measure(
        "effective_mfu", "ratio",
        "Kept floating-point operations divided by the peak of all accelerators in the window.",
        number("work.effective_mfu_percent"), metric="goodput_effective_mfu_ratio", better="more",
    ),
    Measure(
        "cost_per_million_tokens", "count", "Price of all accelerators in the window per million kept tokens.",
        number("work.cost_per_million_tokens"), metric="goodput_cost_per_million_tokens", better="less",
    ),
    Measure(
        "kwh_per_million_tokens", "count", "Energy of all accelerators in the window per million kept tokens.",
        number("work.kwh_per_million_tokens"), better="less",
    ),
)  # fmt: skip
_OF_DISRUPTIONS = (
    Measure(
        "disruptions", "count", "Disruptions in the window.", number("disruptions"), metric="goodput_disruptions",
        better="less",
    ),
    Measure(
        "failures", "count",
        "Disruptions in the window, and the end of the last attempt if it is logged and was not planned.",
        number("failures"), better="less",
    ),
    *(
        Measure(
            f"disruptions.{how}", "count", f"Disruptions with the ending {how}.", ended(how),
            better=None if how in UNCOUNTED else "less",
        )
        for how in ENDED
    ),
    Measure(
        "mtbf", "time", "Mean time between failures.", number("mtbf_seconds"), undisrupted,
        metric="goodput_mtbf_seconds", better="more",
    ),
    Measure(
        "mean_downtime", "time", "Mean downtime of a disruption.", number("mean_downtime_seconds"), undisrupted,
        metric="goodput_mean_downtime_seconds", better="less",
    ),
    Measure(
        "mean_time_to_regain", "time", "Mean time until wasted progress was regained.",
        number("mean_time_to_regain_seconds"), undisrupted, metric="goodput_mean_time_to_regain_seconds",
        better="less",
    ),
    Measure(
        "mttr",
        "time",
        "Mean time to recover: from the failure until training resumes, queue included. Mean downtime ends when the "
        "next attempt is up; time to regain ends when training has caught up.",
        number("recoveries.mttr_seconds"),
        unrecovered,
        metric="goodput_mttr_seconds",
        better="less",
    ),
    Measure(
        "time_to_detect", "time", "Mean time from a failure to the line that reports it.",
        number("recoveries.mean_time_to_detect_seconds"), undisrupted, metric="goodput_time_to_detect_seconds",
        better="less",
    ),
    Measure(
        "mean_steps_lost", "count", "Mean number of steps lost per disruption.",
        mean(lambda passage: passage.steps_lost), undisrupted, better="less",
    ),
    Measure(
        "mean_wasted", "time", "Mean training time lost per disruption.", mean(lambda passage: passage.wasted_seconds),
        undisrupted, better="less",
    ),
    Measure(
        "longest_unproductive", "time", "Longest part of the window without productive time.",
        number("longest_unproductive_seconds"), better="less",
    ),
)  # fmt: skip
_OF_TRAINING = (
    Measure("steps.count", "count", "Step times that were recorded.", number("steps.count"), zero_is_unknown=True),
    *(
        Measure(
            f"steps.{name}", "time", "Step times.", number(f"steps.{name}_seconds"),
            metric="goodput_step_time_seconds", labels={"statistic": name}, better="less",
        )
        for name in STEP_STATISTICS
    ),
    Measure("saves.count", "count", "Checkpoints that were saved.", number("saves.count")),
    Measure(
        "saves.time", "time", "Mean time that a save blocks training, without saves in lost training.", save_time,
        has_timed_saves, better="less",
    ),
    Measure(
        "saves.interval", "time", "Median time between two saves of one attempt.", number("saves.interval_seconds"),
        has_saves,
    ),
    Measure(
        "at_risk", "time", "Kept training after the last completed checkpoint.", number("at_risk_seconds"),
        metric="goodput_at_risk_seconds", better="less",
    ),
    Measure(
        "at_risk.steps", "count", "Kept steps after the last completed checkpoint.", number("at_risk_steps"),
        metric="goodput_at_risk_steps", better="less",
    ),
)  # fmt: skip
_OF_SLICES = (
    Measure(
        "elastic.stepping", "ratio", "Share of the slices that were stepping.", percent("elastic.stepping"),
        metric="goodput_stepping_slices_ratio", better="more",
    ),
    Measure(
        "elastic.available", "ratio", "Share of the slices that were available.", percent("elastic.available"),
        metric="goodput_available_slices_ratio", better="more",
    ),
    Measure(
        "elastic.goodput", "ratio", "Goodput times the slices that were stepping.", number("elastic.goodput_percent"),
        better="more", is_floor=True,
    ),
)  # fmt: skip

FACTS = (*_OF_JOB, *_OF_WORK, *OF_AMOUNTS, *_OF_DISRUPTIONS, *_OF_TRAINING, *_OF_SLICES)
"""Values that a comparison shows in addition to the categories, in this order."""
MEASURES: Mapping[str, Measure[Summary]] = {measure.name: measure for measure in (*_SHARES, *FACTS)}
"""All measures by name."""


def value_of(summary: Summary, name: str, label: str | None, unit: str) -> Fraction | None:
    """Return a measure by name in the unit "%", "s" or "". label: of `custom_badput_events`. None if it is not
    recorded, or if the whole window is excluded."""
    counted = summary.window.counted_ns
    if counted <= 0:
        return None
    measure = MEASURES[name]
    value = measure.of(summary) if label is None else seconds_of(amount_ns(summary, name, label))
    if value is None or measure.dimension != "share" or unit == "s":
        return value
    return 100 * value * 10**9 / counted


def published_value(summary: Summary, measure: Measure[Summary]) -> Fraction | None:
    """Return a measure for metrics: shares and ratios from 0 to 1, times in seconds."""
    if measure.dimension in ("share", "ratio"):
        percent = value_of(summary, measure.name, None, "%")
        return None if percent is None else percent / 100
    return measure.of(summary)
