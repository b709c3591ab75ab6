"""Time for the same work on two sides: the total time per kept step and by kind, the causes of the difference, and
whether it is more than noise.

Only this decides what is called better or worse: a share of a window falls if the window grows. Noise is measured
within a run (pace.py). It does not include differences between two nights, so a difference is clear only if it
exceeds the noise and is 2 % or more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import fmean, variance
from typing import Annotated, Literal

from goodput_cli.analysis.compare.pace import LEAST_PERCENT, PaceChange, pace_change
from goodput_cli.analysis.compare.pace import LEAST_PERCENT as NOISE_PERCENT
from goodput_cli.analysis.json_fields import Json, written
from goodput_cli.analysis.summary import Size, StepWork, Summary
from goodput_cli.vocabulary.categories import Category, CategoryKey

_ALL_SHARED = 0.9
_LEAST_BASELINES = 3
_LEAST_OF_SEVERAL = 0.5
"""Percent: three baselines may be alike by chance."""
_Z = 1.959964
_T_95 = {2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
"""The 97.5 % quantile of Student's t, by degrees of freedom."""


@dataclass(frozen=True)
class UsualStepTime:
    """Time per kept step on several baselines, in seconds, and the 95 % range of one more run of the same kind: it
    includes differences between nights."""

    count: int
    """Number of baselines, three at least."""
    mean: float
    """Their mean."""
    percent: float
    """Half width of the range, in percent of the mean."""


_HARDWARE: tuple[Literal["accelerators", "ranks", "slices"], ...] = ("accelerators", "ranks", "slices")
"""Units of hardware in order of preference."""
_WORK: tuple[Literal["tokens_per_step", "samples_per_step"], ...] = ("tokens_per_step", "samples_per_step")
"""Units of work in order of preference."""
_ALIKE = 0.01
"""Numbers of tokens that differ by no more are the same: programs count those that are not padding."""
_MANY = 1e6
"""Number of tokens in the displayed unit: the time of one token is not readable."""
SIZES = (*_HARDWARE, "samples_per_step", "tokens_per_step")
"""Sizes of a job that a log may contain."""


@written(
    "work",
    "time for the same work: seconds per kept step, all losses included (window / kept steps)",
    keys=(
        "baseline_seconds seconds percent unit differs baselines usual_percent crashed_at is_clear "
        "steps_percent steps_range_percent n_eff is_undecided shared_steps"
    ),
)
@dataclass(frozen=True)
class WorkTime:
    """Total time per kept step on two sides, and the values compared for it."""

    baseline: StepWork
    """Work of the baseline."""
    side: StepWork
    """Work of the other side."""
    pace: PaceChange | None
    """Change of the step times alone; None if a side has too few of them, or is a saved answer without them."""
    shared_steps: int | None
    """kept steps of the same numbers, where these are 90 % of the shorter run's"""
    # both are compared by these alone; None where each is compared by all that it kept
    crashed_at: Sequence[int | None]
    """the last kept step of the baseline and of this side, where it crashed and is compared up to there"""
    sizes: tuple[Size, Size]
    """Sizes of the two jobs."""
    usual: UsualStepTime | None = None
    """Spread of several baselines; None for fewer than three."""

    @property
    def baseline_seconds(self) -> float:
        """window of the baseline over its kept steps"""
        return self.baseline.ns / 1e9 / self.baseline.steps

    @property
    def seconds(self) -> float:
        """the same of this side"""
        return self.side.ns / 1e9 / self.side.steps

    @property
    def percent(self) -> Annotated[float, Json(key="change_percent")]:
        # increase per kept step over the baseline, or over the mean of several; for jobs that differ in size, per
        # token, or per sample if tokens are not logged
        was, now = self.costs
        return 100 * (now / (was if self.usual is None else self.usual.mean) - 1)

    @property
    def unit(self) -> Literal["step", "token", "sample", "accelerators", "ranks", "slices"] | None:
        """unit of change_percent: a kept step; for jobs that differ in size a token, otherwise a sample, or one of
        these per one of the others; null: not the same work, and not comparable"""
        if not self.differs:
            return "step"
        amount = self.amount
        if amount is None:
            return None
        if not {*self.differs} & {*_HARDWARE}:
            return "token" if amount == "tokens_per_step" else "sample"
        return next((name for name in _HARDWARE if None not in self._both(name)), None)

    @property
    def amount(self) -> Literal["tokens_per_step", "samples_per_step"] | None:
        """Unit of work of a step on both sides."""
        return next((name for name in _WORK if None not in self._both(name)), None)

    @property
    def differs(self) -> Sequence[str]:
        """sizes that both sides contain with different values"""
        return tuple(name for name in SIZES if self._differ(name))

    def _differ(self, name: str) -> bool:
        was, now = self._both(name)
        if was is None or now is None:
            return False
        return was != now if name != "tokens_per_step" else abs(now - was) > _ALIKE * was

    @property
    def baselines(self) -> int:
        """of how many baselines the mean is meant: 1 is the baseline alone"""
        return 1 if self.usual is None else self.usual.count

    @property
    def usual_percent(self) -> float | None:
        """with three baselines or more: how far from their mean one more run like them would lie, with 95 %"""
        return None if self.usual is None else self.usual.percent

    @property
    def is_clear(self) -> Annotated[bool, Json(key="clear")]:
        """whether the change is more than noise: outside of the range that step times vary by within the runs, and 2 %
        or more"""  # with several baselines, whether it lies outside of what these differ by
        if self.unit is None:
            return False
        noise = 0.0 if self.pace is None else self.pace.noise
        if self.usual is not None:
            return abs(self.percent) > max(self.usual.percent, noise, _LEAST_OF_SEVERAL)
        return abs(self.percent) >= LEAST_PERCENT and abs(self.percent) > noise

    @property
    def steps_percent(self) -> float | None:
        """change of the step times alone; null: too few are known"""
        return None if self.pace is None else self.pace.percent

    @property
    def steps_range_percent(self) -> tuple[float, float] | None:
        """where that lies with 95 %, by what varies within the runs; null also where the pace wanders for too long"""
        return None if self.pace is None else self.pace.span

    @property
    def n_eff(self) -> Annotated[tuple[float, float] | None, Json(optional=True)]:
        """number of independent stretches in the step times of the baseline and of this side; below 6 on a side there
        is no range; null: too few are known"""
        return None if self.pace is None else self.pace.n_eff

    @property
    def is_undecided(self) -> Annotated[bool, Json(key="undecided", optional=True)]:
        """whether it is inconclusive if the change is noise: the pace drifts for too long, and there are fewer than
        three baselines"""
        if self.unit is None or self.usual is not None or self.pace is None:
            return False
        return self.pace.span is None and not self.is_clear

    @property
    def costs(self) -> tuple[float, float]:
        """Return the time of one `unit` on both sides, in seconds, or in seconds of one accelerator; for tokens, of a
        million."""
        seconds = (self.baseline_seconds, self.seconds)
        if self.unit in (None, "step"):
            return seconds
        work = self._both(self.amount or "samples_per_step")
        many = _MANY if self.amount == "tokens_per_step" else 1.0
        hardware = (1.0, 1.0) if self.unit in ("token", "sample") else self._both(str(self.unit))
        was, now = (
            one * float(held or 1) * many / float(some or 1)
            for one, held, some in zip(seconds, hardware, work, strict=True)
        )
        return was, now

    def _both(self, name: str) -> tuple[float | None, float | None]:
        return getattr(self.sizes[0], name), getattr(self.sizes[1], name)

    @property
    def longer_ns(self) -> int | None:
        """Return how much longer the shared steps took (ns)."""
        return None if self.shared_steps is None else self.side.ns - self.baseline.ns


def work_time(before: Summary, after: Summary, others: Sequence[Summary] = ()) -> WorkTime | None:
    """None where a side kept no steps. others: further baselines."""
    if not before.kept_steps or not after.kept_steps:
        return None
    work = _of_two(before, after)
    usual = _usual([work, *(_of_two(one, after) for one in others if one.kept_steps)])
    return work if usual is None else replace(work, usual=usual)


def _usual(works: Sequence[WorkTime]) -> UsualStepTime | None:
    """Return the spread of the baselines of one side; None for fewer than three that did the same work."""
    costs = [work.costs[0] for work in works if work.unit == works[0].unit is not None]
    if len(costs) < _LEAST_BASELINES:
        return None
    mean, count = fmean(costs), len(costs)
    half = _T_95.get(count - 1, _Z + 2.6 / (count - 1)) * math.sqrt(variance(costs) * (1 + 1 / count))
    return UsualStepTime(count, mean, 100 * half / mean)


def _of_two(before: Summary, after: Summary) -> WorkTime:
    pace = pace_change(before.step_blocks, after.step_blocks, (_block_steps(before), _block_steps(after)))
    shared = _shared(before, after)
    crashed = _crashed_at(before), _crashed_at(after)
    sizes = before.size, after.size
    both = [side.progress for side in (before, after) if side.progress is not None]
    if shared is not None and len(both) == 2:
        # From the start of the windows, where both begin with the first of these steps, so that the start-up of both
        # counts; else from when that was done.
        behind = None if all(one.bounds[0] == shared[0] for one in both) else shared[0]
        parts = [one.work(shared[1], behind) for one in both]
        if all(one.ns > 0 and one.steps > 0 for one in parts):
            return WorkTime(parts[0], parts[1], pace, round(parts[0].steps), crashed, sizes)
    was, now = _all_kept(before), _all_kept(after)
    same = shared is not None and before.step_range == after.step_range
    return WorkTime(was, now, pace, round(was.steps) if same else None, crashed, sizes)


def _block_steps(side: Summary) -> float:
    """Steps in one of the blocks whose levels are known."""
    first, last = side.step_range or (0, 0)
    return max(side.steps.count, last - first, 1) / max(len(side.step_blocks), 1)


def _crashed_at(side: Summary) -> int | None:
    return side.progress.bounds[1] if side.crashed and side.progress is not None else None


def _all_kept(side: Summary) -> StepWork:
    """The whole window; of a run that crashed up to its last kept step."""
    if side.crashed and side.progress is not None:
        work = side.progress.work(side.progress.bounds[1])
        if work.ns > 0 and work.steps > 0:
            return work
    return StepWork(float(side.kept_steps or 1), side.window.counted_ns, side.badput)


def _shared(before: Summary, after: Summary) -> tuple[int, int] | None:
    """The first and the last step that both kept, by their numbers, where these are 90 % of the shorter run's."""
    ranges = [side.step_range if side.progress is None else side.progress.bounds for side in (before, after)]
    if ranges[0] is None or ranges[1] is None:
        return None
    first, last = max(one[0] for one in ranges if one), min(one[1] for one in ranges if one)
    shorter = min(one[1] - one[0] + 1 for one in ranges if one)
    return (first, last) if last - first + 1 >= _ALL_SHARED * shorter else None


_COUNTED_OUT = 200
_NORMAL_95 = 1.96


def is_rare(before: int, after: int, lengths: tuple[int, int]) -> bool:
    """Return True if two counts over times of these lengths differ by more than chance, with p < 5 %: the exact test of
    two Poisson rates."""
    total, share = before + after, Fraction(lengths[1], sum(lengths))
    if total > _COUNTED_OUT:  # normal by then
        return (after - total * share) ** 2 > Fraction(_NORMAL_95**2) * total * share * (1 - share)
    chances = [math.comb(total, count) * share**count * (1 - share) ** (total - count) for count in range(total + 1)]
    return sum(chance for chance in chances if chance <= chances[after]) < Fraction(5, 100)


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
