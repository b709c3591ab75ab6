"""Slow regimes and drift (accounting §8): where the level of the step time moved and stayed, or rose throughout, and
the cost for the job.

Candidates for changes of level come from levels.py; noise.py decides between levels, a line, and a pace that drifts.
The usual level is the lowest one with a tenth of all steps, or the mean of the lowest that together have them. A level
that is more than 5 % above it is slow; slow neighbors that differ by less are one regime.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.json_fields import Count, FromOne, Instant, written
from goodput_cli.analysis.steps.levels import (
    LEAST_CHANGE,
    LEAST_STEPS,
    least_visible_change,
    level_changes,
    separate_stretches,
)
from goodput_cli.analysis.steps.noise import ONE_LEVEL, PaceModel, StepTimeDrift, best_model
from goodput_cli.analysis.steps.times import TimedSteps, metric_of, sizes_of_work, winsorised_mean, with_precise_times
from goodput_cli.analysis.table import TableDeclaration, attribute, column, columns_of
from goodput_cli.arrays import F64, I64
from goodput_cli.events.schema import TOKENS_PER_STEP, Metric
from goodput_cli.vocabulary.categories import Category
from goodput_cli.vocabulary.text import duration, duration_of_seconds, number, plural

_USUAL_SHARE = 0.1
_RATES = ("tokens_per_second_accelerator", "tokens_per_second", "samples_per_second", "tflops")
"""Metrics of throughput; the first one counts: the work of a step over its time."""
_LEAST_RATES = 3
_LEAST_OF_TIME = 0.25
"""A throughput that changes by more than this share of the step time does not measure the size of work."""


@dataclass(frozen=True)
class Regime:
    """A span of slow steps, from one step time to another: its fields are the columns of the table."""

    first_step: int = column("count", "first slow step", name="from_step")
    last_step: int = column("count", "last slow step", name="to_step")
    first_attempt: int = column("count", "from 1", name="from_attempt", least=1)
    last_attempt: int = column("count", "from 1", name="to_attempt", least=1)
    start_ns: int = column("instant", "start", heading="start")
    end_ns: int = column("instant", "end")
    ongoing: bool = column("text", "true if it lasts until the last step time of the window", json={"type": "boolean"})
    steps: int = column("count", "steps in it", least=1)
    seconds: float = column(
        "number",
        "step time in it: mean of its steps, with the longest and the shortest quarter clipped",
        name="step_seconds",
        least=0,
    )
    usual_seconds: float = column("number", "the usual level outside", name="usual_step_seconds", least=0)
    factor: float = column("number", "step_seconds / usual_step_seconds", least=1)
    lost_seconds: float = column("number", "(step_seconds - usual_step_seconds) x steps", least=0)
    where: str = column("text", "file:line or insertId of its first step", name="evidence")


SLOW_REGIMES = TableDeclaration("slow_regime", "a slow period", columns_of(Regime, attribute))


@written("drift", "step times that grew steadily: a line fits them better than levels")
@dataclass(frozen=True)
class Drift:
    """Step times that became longer throughout."""

    first_step: Count
    """first step"""
    last_step: Count
    """last step"""
    start_ns: Instant
    """start"""
    end_ns: Instant
    """end"""
    first_seconds: float
    """step time at its beginning"""
    last_seconds: float
    """step time at its end"""
    count: FromOne
    """step times"""
    lost_seconds: float
    """time of kept steps beyond the level at its beginning"""


@written("pace_finding", "whether step times rose to a lasting higher level")
@dataclass(frozen=True)
class PaceFinding:
    """Finding about slow regimes and drift."""

    result: Literal["found", "none", "inconclusive"]
    """found: slow regimes or drift; none: there is none of 5 % or more over 24 step times; inconclusive: one may be
    there that these step times do not show"""
    reason: str | None = None
    """why it is inconclusive; null otherwise"""

    @property
    def text(self) -> str:
        """Return `no slow period: step times did not rise to a lasting higher level`; empty if one was found."""
        if self.result == "none":
            return "no slow period: step times did not rise to a lasting higher level"
        return f"slow periods: inconclusive ({self.reason})" if self.result == "inconclusive" else ""


class StepPace(Struct, frozen=True):
    """Changes of the pace of a job; steps of another size have their own levels."""

    regimes: tuple[Regime, ...]
    """Slow ones, in time order."""
    drifts: tuple[Drift, ...]
    """Drifts in time order. A step counts in a drift or in slow regimes, never in both."""
    more_work: tuple[str, ...]
    """Sentences about steps that would be slow or a drift, but did more work."""
    wander: StepTimeDrift | None
    """The largest one, if apparent changes of level cannot be distinguished from it; otherwise None."""
    finding: PaceFinding
    """Finding about slow regimes and drifts."""


def step_pace(timeline: Timeline, steps: TimedSteps) -> StepPace:
    """Return the changes of the pace of these step times."""
    models = models_by_size(timeline, steps)
    regimes = [regime for part, model in models for regime in _slow_regimes(timeline, part, model)]
    drifts = [_drift(timeline, part, model.line) for part, model in models if model.line is not None]
    rate = _rate_of(timeline, steps) if regimes or drifts else None
    more_work = _with_more_tokens(timeline, regimes)
    more_work |= {} if rate is None else _at_one_rate(rate, regimes, drifts)
    wanders = [_in_steps(model.wander, part) for part, model in models if model.wander is not None]
    slow = tuple(sorted((one for one in regimes if one not in more_work), key=lambda regime: regime.start_ns))
    rising = tuple(sorted((one for one in drifts if one not in more_work), key=lambda drift: drift.start_ns))
    return StepPace(
        slow,
        rising,
        tuple(more_work[one] for one in sorted(more_work, key=lambda one: one.start_ns)),
        max(wanders, key=lambda wander: wander.percent, default=None),
        PaceFinding("found") if slow or rising else pace_finding(models),
    )


def models_by_size(timeline: Timeline, steps: TimedSteps) -> list[tuple[TimedSteps, PaceModel]]:
    """Return the steps of each size, with precise times, and the model of their pace. The last one is of the size of
    the last step."""
    steps = with_precise_times(timeline, steps)
    sizes = sizes_of_work(timeline, steps)
    if sizes is None:
        return [(steps, pace_model(steps.seconds))]
    parts = [steps.take(np.flatnonzero(sizes == size)) for size in np.unique(sizes).tolist() if size != sizes[-1]]
    parts.append(steps.take(np.flatnonzero(sizes == sizes[-1])))
    return [(part, pace_model(part.seconds)) for part in parts]


def pace_finding(models: Sequence[tuple[TimedSteps, PaceModel]]) -> PaceFinding:
    """Return what steps without a slow regime or drift show. Sizes that together have a tenth of the step times or less
    decide nothing."""
    unseen = sorted((len(part), model.unseen) for part, model in models if model.unseen)
    if sum(count for count, _ in unseen) <= _USUAL_SHARE * sum(len(part) for part, _ in models):
        return PaceFinding("none")
    return PaceFinding("inconclusive", unseen[-1][1])


def _with_more_tokens(timeline: Timeline, regimes: Sequence[Regime]) -> dict[Regime | Drift, str]:
    """Return sentences about regimes whose step time per token moved by less than 5 %."""
    tokens = metric_of(timeline, TOKENS_PER_STEP) if regimes else None
    if tokens is None:
        return {}
    within = [(tokens.time >= one.start_ns) & (tokens.time < one.end_ns) for one in regimes]
    outside = tokens.value[~np.logical_or.reduce(within)]
    found: dict[Regime | Drift, str] = {}
    for regime, chosen in zip(regimes, within, strict=True):
        if len(outside) and chosen.any():
            more = float(tokens.value[chosen].mean() / outside.mean())
            if regime.factor < (1 + LEAST_CHANGE) * more:
                found[regime] = f"{_more_work(regime)} for {more:.2f} x the tokens"
    return found


def _rate_of(timeline: Timeline, steps: TimedSteps) -> Metric | None:
    """The throughput that lines state, if it moves from line to line as it must where step times do."""
    rate = next((one for name in _RATES if (one := metric_of(timeline, name)) is not None), None)
    if rate is None or min(len(rate.value), len(steps)) < _LEAST_RATES:
        return None
    if steps.seconds.min() <= 0 or not (np.isfinite(rate.value) & (rate.value > 0)).all():
        return None
    moves = np.median(np.abs(np.diff(np.log(rate.value))))
    return rate if moves > 0 and moves >= _LEAST_OF_TIME * np.median(np.abs(np.diff(np.log(steps.seconds)))) else None


def _at_one_rate(rate: Metric, regimes: Sequence[Regime], drifts: Sequence[Drift]) -> dict[Regime | Drift, str]:
    """Return sentences about regimes and drifts whose logged throughput fell by at most a quarter of the rise of their
    step time: a step that a fault slows down has lower throughput in proportion."""
    within = [(rate.time > one.start_ns) & (rate.time <= one.end_ns) for one in regimes]
    outside = rate.value[~np.logical_or.reduce(within)] if within else rate.value
    found: dict[Regime | Drift, str] = {}
    for regime, chosen in zip(regimes, within, strict=True):
        if _is_one_rate(outside, rate.value[chosen], regime.factor):
            found[regime] = f"{_more_work(regime)} at the same throughput"
    for drift in drifts:
        values = rate.value[(rate.time > drift.start_ns) & (rate.time <= drift.end_ns)]
        part = len(values) // 4
        rise = (drift.last_seconds / drift.first_seconds) ** 0.75  # between the middles of both quarters
        if _is_one_rate(values[:part], values[len(values) - part :], rise):
            found[drift] = f"more work per step: {drift_text(drift)} at the same throughput"
    return found


def _is_one_rate(usual: F64, other: F64, factor: float) -> bool:
    if min(len(usual), len(other)) < _LEAST_RATES or factor <= 1:
        return False
    moved = math.log(float(np.median(other)) / float(np.median(usual)))
    return moved >= -_LEAST_OF_TIME * math.log(factor)  # longer sequences may even be faster per token


def _more_work(regime: Regime) -> str:
    return (
        f"more work per step: steps {regime.first_step} to {regime.last_step} took {regime.factor:.2f} x the usual time"
    )


def pace_model(seconds: F64) -> PaceModel:
    """Return what describes a column of step times (s) best: levels, a line or noise."""
    if len(seconds) < 2 * LEAST_STEPS:
        place = separate_stretches(seconds)
        if place is not None:
            return PaceModel("levels", np.array([place], dtype=np.intp))
        return structs.replace(ONE_LEVEL, unseen=f"{plural(len(seconds), 'step time')}, {2 * LEAST_STEPS} needed")
    candidates = level_changes(seconds)
    model = ONE_LEVEL if candidates is None else best_model(seconds, candidates)
    return structs.replace(model, unseen=_unseen_change_reason(seconds, model)) if model.kind == "level" else model


def _unseen_change_reason(seconds: F64, model: PaceModel) -> str:
    """Return why a change of level by 5 % may be there that step times (s) of one level do not show; else ""."""
    if model.wander is not None:
        return wander_text(model.wander) if model.wander.percent > 100 * LEAST_CHANGE else ""
    recent = seconds[-3 * LEAST_STEPS :]
    place = separate_stretches(recent)
    if place is not None:  # one of the two is too short, or it would be a regime
        short = min(place, len(recent) - place)
        moved = math.expm1(abs(math.log(float(np.median(recent[place:]) / np.median(recent[:place])))))
        return f"{short} step times differ by {100 * moved:.0f} %, {LEAST_STEPS} needed"
    visible = least_visible_change(seconds)
    if visible <= LEAST_CHANGE:
        return ""
    return f"{plural(len(seconds), 'step time')} with this noise show only changes of at least {100 * visible:.0f} %"


def _in_steps(wander: StepTimeDrift, steps: TimedSteps) -> StepTimeDrift:
    """A wander over step times as one over steps, where not every step is logged."""
    return StepTimeDrift(wander.percent, round(wander.steps * float(steps.count.mean())))


def _drift(timeline: Timeline, steps: TimedSteps, line: tuple[float, float]) -> Drift:
    first, last = line
    count = len(steps)
    beyond = first * np.expm1(math.log(last / first) * np.arange(count) / count)
    ends = steps.take(np.array([0, count - 1]))
    return Drift(
        first_step=int(ends.number[0]),
        last_step=int(ends.number[1] + ends.count[1] - 1),
        start_ns=int(ends.time[0]),
        end_ns=int(ends.end[1]),
        first_seconds=first,
        last_seconds=last,
        count=count,
        lost_seconds=float((beyond * _kept_counts(timeline, steps)).sum()),
    )


def _slow_regimes(timeline: Timeline, steps: TimedSteps, model: PaceModel) -> Iterator[Regime]:
    seconds, count, cuts = steps.seconds, steps.count, model.cuts
    if len(cuts) == 0:
        return  # one level is the usual one
    bounds = np.concatenate(([0], cuts, [len(seconds)])).astype(np.intp)
    levels = np.array([winsorised_mean(part) for part in np.split(seconds, cuts)])
    usual = _usual_level(levels, np.diff(bounds))
    if usual <= 0:
        return
    for begin, stop in _slow_runs(levels, usual, bounds):
        ends = steps.take(np.array([begin, stop - 1]))
        level, many = winsorised_mean(seconds[begin:stop]), int(count[begin:stop].sum())
        yield Regime(
            first_step=int(ends.number[0]),
            last_step=int(ends.number[1] + ends.count[1] - 1),
            first_attempt=int(timeline.attempts.number[ends.attempt[0]]),
            last_attempt=int(timeline.attempts.number[ends.attempt[1]]),
            start_ns=int(ends.time[0]),
            end_ns=int(ends.end[1]),
            steps=many,
            seconds=level,
            usual_seconds=usual,
            factor=level / usual,
            lost_seconds=(level - usual) * many,
            ongoing=stop == len(seconds),
            where=timeline.table.where(int(ends.row[0])),
        )


def _usual_level(levels: F64, sizes: NDArray[np.intp]) -> float:
    """Return the lowest level with a tenth of all step times, with all levels that differ from it by little; without
    one, the lowest levels that together have a tenth, as in a job that slowed down in many steps."""
    ordered = np.argsort(levels, kind="stable")
    least = _USUAL_SHARE * sizes.sum()
    for count, place in enumerate(ordered.tolist(), 1):
        alike = np.abs(levels / levels[place] - 1) <= LEAST_CHANGE if levels[place] > 0 else levels == 0
        for some in (np.flatnonzero(alike), ordered[:count]):
            if sizes[some].sum() >= least:
                return float(np.average(levels[some], weights=sizes[some]))
    return float(np.median(levels))


def _slow_runs(levels: F64, usual: float, bounds: NDArray[np.intp]) -> list[tuple[int, int]]:
    """[begin, stop) positions of slow regimes; neighbours of nearly the same level are one."""
    runs: list[tuple[int, int]] = []
    before: float | None = None
    for level, begin, stop in zip(levels.tolist(), bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        slow = level > usual * (1 + LEAST_CHANGE)
        if slow and before is not None and abs(level / before - 1) <= LEAST_CHANGE:
            runs[-1] = (runs[-1][0], stop)
        elif slow:
            runs.append((begin, stop))
        before = level if slow else None
    return runs


def lost_to_pace(timeline: Timeline, steps: TimedSteps, pace: StepPace) -> int:
    """Time (ns) that slow regimes and drifts took of kept steps: what was lost is lost anyway."""
    of_drifts = sum(drift.lost_seconds for drift in pace.drifts)
    return lost_in_regimes(timeline, steps, pace.regimes) + round(of_drifts * 1e9)


def lost_in_regimes(timeline: Timeline, steps: TimedSteps, regimes: Sequence[Regime]) -> int:
    """Time (ns) that slow regimes took beyond the usual step, in kept steps."""
    kept, start, end, lost = _kept_counts(timeline, steps), steps.time, steps.end, 0.0
    for regime in regimes:
        inside = (start >= regime.start_ns) & (end <= regime.end_ns)
        lost += (regime.seconds - regime.usual_seconds) * float(kept[inside].sum())
    return round(lost * 1e9)


def stalled_in_regimes(timeline: Timeline, steps: TimedSteps, regimes: Sequence[Regime]) -> int:
    """Return the part (ns) of `lost_in_regimes` that the ledger counts as a stall, so that it is not goodput."""
    kept, found = _kept_counts(timeline, steps), 0
    for regime in regimes:
        inside = np.flatnonzero((steps.time >= regime.start_ns) & (steps.end <= regime.end_ns))
        stalled = timeline.ledger.time_in(Category.STALL, steps.time[inside], steps.end[inside])
        beyond = (regime.seconds - regime.usual_seconds) * 1e9 * kept[inside]
        found += round(float(np.minimum(stalled, beyond).sum()))
    return found


def _kept_counts(timeline: Timeline, steps: TimedSteps) -> I64:
    """Return how many of the steps of each step time were kept."""
    return np.asarray(np.clip(timeline.lineage.limit[steps.attempt] - steps.number, 0, steps.count))


def drift_text(drift: Drift) -> str:
    """Return `step times grew steadily from 8.00 s to 9.60 s over 17 h`."""
    first, last = map(duration_of_seconds, (drift.first_seconds, drift.last_seconds))
    return f"step times grew steadily from {first} to {last} over {duration(drift.end_ns - drift.start_ns)}"


def wander_text(wander: StepTimeDrift) -> str:
    """Return `step times drift by 9 % over 200 steps, which hides smaller changes`."""
    steps = number(float(f"{wander.steps:.2g}"))  # further digits are unknown
    return f"step times drift by {max(wander.percent, 1):.0f} % over {steps} steps, which hides smaller changes"
