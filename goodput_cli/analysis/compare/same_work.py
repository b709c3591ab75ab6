"""Time of the same work on two sides, by kind. A share of a window does not show it: it falls if the window grows. Only
this decides what is called better or worse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from goodput_cli.analysis.compare.pace import LEAST_PERCENT as NOISE_PERCENT
from goodput_cli.analysis.compare.work import WorkTime
from goodput_cli.analysis.summary import StepWork, Summary
from goodput_cli.vocabulary.categories import Category, CategoryKey

PRODUCTIVE: CategoryKey = (Category.PRODUCTIVE.id, None)
Moved = Literal["better", "worse"]
_OF_PACE = (PRODUCTIVE, (Category.SLOWDOWN.id, None))
_LEAST_PERCENT = 0.1
"""Smallest change that counts as moved, in percent of the time of the same work; without a clear difference, 2 % at
least."""


@dataclass(frozen=True)
class WorkComparison:
    """Time on both sides, the baseline's first, and the work that was done in it."""

    amounts: tuple[Mapping[CategoryKey, int], Mapping[CategoryKey, int]]
    """Time of each category (ns), including productive time."""
    ns: tuple[int, int]
    """Sum of all categories."""
    units: tuple[Fraction, Fraction]
    """Kept steps, or what jobs of other sizes are compared by."""
    least: dict[bool, float]
    """Percent of what the same work took on the baseline from which on something moved, by whether it is of pace."""

    @property
    def in_all_ns(self) -> Fraction:
        """Return how much longer this side's work took than the same work on the baseline."""
        return self.ns[1] - Fraction(self.ns[0]) / self.units[0] * self.units[1]

    @property
    def percent(self) -> float:
        """Return how much less (+) or more (-) time it took, in percent of the same work on the baseline."""
        return float(-100 * self.in_all_ns / (Fraction(self.ns[0]) / self.units[0] * self.units[1]))

    def gained_ns(self, key: CategoryKey) -> Fraction:
        """Return how much less (+) or more (-) of it this side's work took than the same work on the baseline."""
        was, now = (
            Fraction(amount.get(key, 0)) / units for amount, units in zip(self.amounts, self.units, strict=True)
        )
        return (was - now) * self.units[1]

    def gained_percent(self, key: CategoryKey) -> float:
        """Return the same in percent of all time that this work took on the baseline."""
        return float(100 * self.gained_ns(key) / (Fraction(self.ns[0]) / self.units[0] * self.units[1]))

    def moved(self, key: CategoryKey) -> Moved | None:
        """None where it moved by no more than is shown as nothing."""
        gained = self.gained_percent(key)
        if abs(gained) <= self.least[key in _OF_PACE]:
            return None
        return "better" if gained > 0 else "worse"


def same_work(before: Summary, after: Summary, work: WorkTime | None) -> WorkComparison | None:
    """None where the two did not do the same work, or a side kept no steps."""
    if work is None or work.unit is None:
        return None
    parts = work.baseline, work.side
    if any(part.badput is None for part in parts):
        parts = _whole(before), _whole(after)
    units = [Fraction(part.steps) for part in parts]
    if work.unit != "step":
        seconds = work.baseline_seconds, work.seconds
        units = [one * Fraction(took / cost) for one, took, cost in zip(units, seconds, work.costs, strict=True)]
    least = _LEAST_PERCENT if work.is_clear else NOISE_PERCENT
    is_pace_clear = work.pace is not None and work.pace.is_clear
    return WorkComparison(
        amounts=(_amounts(parts[0]), _amounts(parts[1])),
        ns=(parts[0].ns, parts[1].ns),
        units=(units[0], units[1]),
        least={False: least, True: least if is_pace_clear else float("inf")},
    )


def _whole(side: Summary) -> StepWork:
    return StepWork(float(side.kept_steps or 1), side.window.counted_ns, side.badput)


def _amounts(part: StepWork) -> dict[CategoryKey, int]:
    lost = dict(part.badput or {})
    return {**lost, PRODUCTIVE: part.ns - sum(lost.values())}
