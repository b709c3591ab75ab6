"""What can be held against each other: every name of a threshold, and what changed between two runs besides.

A fact is measured on one `Summary`, exactly; None is "not recorded", or that there is nothing to average.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from statistics import mean

from goodput_cli.analysis.compare.summary import Summary
from goodput_cli.analysis.goodput.thresholds import DIMENSIONS, OVERLAPPED, Dimension, decimal

SAVE = "unproductive_checkpoint_save_time"
ENDED = ("crashed", "terminated", "silent", "preempted")
"""How attempts end before a disruption."""

_NS = 10**9


@dataclass(frozen=True)
class Fact:
    """A number of one side.

    dimension: as of a threshold: `share` and `ratio` are in percent, `time` in s, `count` is a plain number.
    nothing: whether a side that does not have it has nothing to average, and not nothing recorded.
    """

    name: str
    dimension: Dimension
    of: Callable[[Summary], Fraction | None]
    nothing: Callable[[Summary], bool] = lambda _: False


def amount_ns(side: Summary, category: str, label: str | None = None) -> int | None:
    """Time (ns) in a category, or in one label of custom events; None where it is not recorded. A label that a side
    never shows is not recorded there."""
    if category in ("goodput", "productive"):
        return side.goodput_ns
    if category == "excluded":
        return side.window.excluded_ns
    if category == OVERLAPPED:
        return side.overlapped_ns
    if category in side.not_recorded:
        return None
    if label is not None:
        return side.badput.get((category, label))
    return sum(ns for (name, _), ns in side.badput.items() if name == category)


def percent_of(side: Summary, ns: int) -> Fraction:
    """Percent of the window without what is excluded."""
    return Fraction(100 * ns, side.window.counted_ns)


def measure(side: Summary, name: str, label: str | None, unit: str) -> Fraction | None:
    """One of `NAMES` (label: of `custom_badput_events`) in the unit "%", "s" or ""; None where it is not recorded."""
    if DIMENSIONS.get(name) != "share":
        return FACTS[name].of(side)
    ns = amount_ns(side, name, label)
    if ns is None:
        return None
    return Fraction(ns, _NS) if unit == "s" else percent_of(side, ns)


def _undisrupted(side: Summary) -> bool:
    return side.disruptions == 0


def _too_few_saves(side: Summary) -> bool:
    return side.saves is not None


def _ended(how: str) -> Callable[[Summary], Fraction | None]:
    def count(side: Summary) -> Fraction | None:
        return None if side.passages is None else Fraction(sum(one.ended == how for one in side.passages))

    return count


def _steps_lost(side: Summary) -> Fraction | None:
    lost = [one.steps_lost for one in side.passages or ()]
    known = [steps for steps in lost if steps is not None]
    return Fraction(sum(known), len(known)) if known and len(known) == len(lost) else None


def _wasted(side: Summary) -> Fraction | None:
    seconds = [decimal(one.wasted_seconds) or Fraction(0) for one in side.passages or ()]
    return mean(seconds) if seconds else None


def _step_time(name: str) -> Callable[[Summary], Fraction | None]:
    return lambda side: decimal(getattr(side.steps, f"{name}_seconds"))


def _save_time(side: Summary) -> Fraction | None:
    """What a save blocks, on average."""
    ns = amount_ns(side, SAVE)
    return None if side.saves is None or side.saves.count == 0 or ns is None else Fraction(ns, _NS * side.saves.count)


def _save_interval(side: Summary) -> Fraction | None:
    return None if side.saves is None else decimal(side.saves.interval_seconds)


def _slices(name: str) -> Callable[[Summary], Fraction | None]:
    def share(side: Summary) -> Fraction | None:
        value = decimal(getattr(side.slices, name))
        return None if value is None else 100 * value

    return share


_ALL = (
    Fact("window", "time", lambda side: Fraction(side.window.counted_ns, _NS)),
    Fact("attempts", "count", lambda side: Fraction(side.attempts)),
    Fact("runs", "count", lambda side: Fraction(side.runs)),
    Fact("kept_steps", "count", lambda side: decimal(side.kept_steps)),
    Fact("disruptions", "count", lambda side: Fraction(side.disruptions)),
    *(Fact(f"disruptions.{how}", "count", _ended(how)) for how in ENDED),
    Fact("mtbf", "time", lambda side: decimal(side.mtbf_seconds), _undisrupted),
    Fact("mean_downtime", "time", lambda side: decimal(side.mean_downtime_seconds), _undisrupted),
    Fact("mean_time_to_regain", "time", lambda side: decimal(side.mean_time_to_regain_seconds), _undisrupted),
    Fact("mean_steps_lost", "count", _steps_lost, _undisrupted),
    Fact("mean_wasted", "time", _wasted, _undisrupted),
    Fact("longest_unproductive", "time", lambda side: decimal(side.longest_unproductive_seconds)),
    Fact("steps.count", "count", lambda side: Fraction(side.steps.count) if side.steps.count else None),
    *(Fact(f"steps.{name}", "time", _step_time(name)) for name in ("ideal", "mean", "median", "p90", "p99")),
    Fact("saves.count", "count", lambda side: None if side.saves is None else Fraction(side.saves.count)),
    Fact("saves.time", "time", _save_time, lambda side: _too_few_saves(side) and SAVE not in side.not_recorded),
    Fact("saves.interval", "time", _save_interval, _too_few_saves),
    Fact("at_risk", "time", lambda side: decimal(side.at_risk_seconds)),
    Fact("at_risk.steps", "count", lambda side: decimal(side.at_risk_steps)),
    Fact("elastic.stepping", "ratio", _slices("stepping")),
    Fact("elastic.available", "ratio", _slices("available")),
    Fact("elastic.goodput", "ratio", lambda side: decimal(side.slices.goodput_percent)),
)
FACTS: Mapping[str, Fact] = {fact.name: fact for fact in _ALL}
"""Facts by name, in the order in which people are shown them."""

NAMES = (*DIMENSIONS, *(name for name in FACTS if name not in DIMENSIONS))
"""Every name that a change can be asked of, besides `custom:LABEL`."""


def dimension_of(name: str) -> Dimension:
    """What one of `NAMES` measures."""
    return DIMENSIONS[name] if name in DIMENSIONS else FACTS[name].dimension
