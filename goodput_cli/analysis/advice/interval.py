"""The advised interval, its uncertainty, and the verdict (docs/advice.md, *How the interval is chosen*)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb, exp, log

import numpy as np

from goodput_cli.analysis.advice.curve import Exposure, LossCurve, SaveCost, candidates
from goodput_cli.analysis.advice.draws import DrawRanges, one_run, spread
from goodput_cli.analysis.advice.record import JobRecord
from goodput_cli.analysis.advice.results import (
    EarlyDeaths,
    Formulas,
    IfCost,
    IntervalAdvice,
    Reason,
    Verdict,
    failed_attempts_text,
    formulas,
)
from goodput_cli.vocabulary.text import duration_of_seconds, plural

PLATEAU_POINTS = 0.1
LEAST_FAILURES = 3
_SURE = 0.95
LEAST_STEPS = 20
_EARLY = 0.1
_CHANCE = 0.01
_COSTS = (1.0, 5.0, 15.0, 60.0)


@dataclass(frozen=True)
class VerdictRule:
    """Condition under which a verdict is given."""

    verdict: Verdict
    reason: Reason | None
    when: str


VERDICTS = (
    VerdictRule("refused", "no_saves", "the log shows no checkpoint"),
    VerdictRule(
        "refused",
        "save_cost_unknown",
        "how long saving blocks training is neither logged nor given with `--save-seconds`",
    ),
    VerdictRule(
        "refused",
        "too_short",
        f"fewer than {LEAST_STEPS} steps were kept, or one attempt kept fewer than two intervals of them",
    ),
    VerdictRule("refused", "never_ends", "with these failures the job never ends at any interval"),
    VerdictRule(
        "unclear",
        "no_failure",
        "no attempt failed, or no failure's loss depends on the interval, and `--mtbf` is not given: only a bound",
    ),
    VerdictRule("keep", None, f"today's interval is within {PLATEAU_POINTS} points of the best"),
    VerdictRule("unclear", "few_failures", f"fewer than {LEAST_FAILURES} attempts failed, and `--mtbf` is not given"),
    VerdictRule("change", None, f"the gain is above 0 with a probability of at least {100 * _SURE:.0f} %"),
    VerdictRule("unclear", "not_sure", "otherwise"),
)
"""Rules in order; the first that applies gives the verdict (docs/advice.md, *Verdicts*)."""


@dataclass(frozen=True)
class Optimum:
    """The best interval of a curve (steps), the ends of what is as good, and the roundest number between them."""

    best: int
    plateau: tuple[int, int]
    advised: int


def optimum(curve: LossCurve) -> Optimum | None:
    """None where no interval lets the job end."""
    lengths = curve.chosen_by
    if len(lengths) == 0 or not np.isfinite(lengths).any():
        return None
    place = int(np.argmin(lengths))
    goodput = curve.goodput(lengths)
    good = np.flatnonzero(goodput >= goodput[place] - PLATEAU_POINTS)
    best, low, high = (int(curve.intervals[at]) for at in (place, good[0], good[-1]))
    return Optimum(best, (low, high), roundest(low, high, best))


def roundest(low: int, high: int, best: int) -> int:
    """The integer from low to high with the fewest significant digits, then the nearest to `best` in ratio, then the
    smaller."""
    for digits in range(1, len(str(high)) + 1):
        numbers: set[int] = set()
        for power in range(len(str(high)) - digits, -1, -1):
            unit = 10**power
            numbers |= {unit * factor for factor in _near(-(-low // unit), high // unit, best / unit)}
        numbers = {number for number in numbers if len(str(number).rstrip("0")) <= digits}
        if numbers:
            return min(numbers, key=lambda number: (abs(log(number / best)), number))
    return best


def _near(low: int, high: int, wanted: float) -> set[int]:
    """Return the ends of the integers from low to high, and those on both sides of `wanted`."""
    if low > high:
        return set()
    middle = int(wanted)
    return {min(max(number, low), high) for number in (low, high, middle - 1, middle, middle + 1, middle + 2)}


@dataclass(frozen=True)
class Interval:
    """The advice, and what it rests on: the curve over all candidates, today's point of it, and the draws. None where
    nothing could be computed. optimum: None with no failure seen."""

    advice: IntervalAdvice
    curve: LossCurve | None = None
    today: LossCurve | None = None
    optimum: Optimum | None = None
    spread: DrawRanges | None = None


def interval_advice(record: JobRecord, exposure: Exposure) -> Interval:
    """Return the advised interval; `with_one_run` adds the range of a single run."""
    refused = _refused(record)
    if refused is not None:
        costs = _if_cost(record, exposure) if refused[0] == "save_cost_unknown" else ()
        return Interval(replace(_inconclusive_advice(exposure, "refused", *refused), if_cost=costs))
    assert record.cost is not None
    assert record.every is not None
    saving = SaveCost(record.cost, record.latency / 1e9)
    intervals = candidates(exposure, record.kept_steps, record.every, saving)
    curve, today = LossCurve(exposure, intervals, saving), LossCurve(exposure, [record.every], saving)
    optimal = optimum(curve)
    if optimal is None or not np.isfinite(curve.average).any():
        return Interval(_inconclusive_advice(exposure, "refused", "never_ends", _NEVER), curve, today)
    shown = formulas(record.cost, exposure.mtbf)
    if not exposure.failures and exposure.mtbf_given is None:
        return _bound_only(_UNHARMED if record.failed else _NO_FAILURE, exposure, curve, today, shown)
    return _chosen(record, exposure, curve, today, optimal, shown)


def with_one_run(interval: Interval) -> Interval:
    """Add the range of a single run next to each average: thousands of runs are drawn, attempt by attempt."""
    advice, today = interval.advice, interval.today
    if today is None or advice.today_percent is None:
        return interval
    every = advice.every_steps
    chosen = None if every is None else one_run(LossCurve(today.exposure, [every], today.saving))
    return replace(interval, advice=replace(advice, one_run_percent=chosen, today_one_run_percent=one_run(today)))


def _chosen(
    record: JobRecord, exposure: Exposure, curve: LossCurve, today: LossCurve, optimal: Optimum, shown: Formulas
) -> Interval:
    assert record.every is not None
    advised = LossCurve(exposure, [optimal.advised], curve.saving)
    drawn = spread(curve, advised, today)
    new, old = float(advised.goodput(advised.average)[0]), float(today.goodput(today.average)[0])
    verdict, reason, say = _verdict(record, exposure, optimal, drawn)
    recorded = 100 * record.productive / record.window
    advice = IntervalAdvice(
        verdict=verdict,
        reason=reason,
        say=say,
        every_steps=optimal.advised,
        every_seconds=optimal.advised * exposure.pace,
        best_steps=optimal.best,
        plateau_steps=optimal.plateau,
        ci95_steps=drawn.best,
        goodput_percent=new,
        today_percent=old,
        one_run_percent=None,
        today_one_run_percent=None,
        luck_points=recorded - old,
        gain_points=new - old,
        gain_ci95_points=drawn.gain,
        probability=drawn.probability,
        counted_lives=exposure.failures,
        replayed=None,
        formulas=shown,
        if_cost=(),
    )
    return Interval(advice, curve, today, optimal, drawn)


def _verdict(
    record: JobRecord, exposure: Exposure, optimal: Optimum, drawn: DrawRanges
) -> tuple[Verdict, Reason | None, str | None]:
    """keep, change or unclear, and why."""
    today, failed = record.every, len(record.failed)
    assert today is not None
    if optimal.plateau[0] <= today <= optimal.plateau[1]:
        return "keep", None, None
    known = exposure.mtbf_given is not None
    if not known and exposure.failures < LEAST_FAILURES:
        return (
            "unclear",
            "few_failures",
            f"{failed_attempts_text(exposure.failures, failed)} {'is' if failed == 1 else 'are'} not enough data. "
            f"{_MORE}",
        )
    if drawn.probability is not None and drawn.probability >= _SURE:
        return "change", None, None
    return "unclear", "not_sure", f"another interval may be better, but the data does not confirm it. {_MORE}"


def _bound_only(why: str, exposure: Exposure, curve: LossCurve, today: LossCurve, shown: Formulas) -> Interval:
    """Without a failure only a bound is known: how often it is not worth while to save. why: there is none."""
    drawn = spread(curve, None, None)
    old = float(today.goodput(today.average)[0])
    say = (
        f"{why}. Based on {duration_of_seconds(exposure.budgets)} of training, save at most every "
        f"{drawn.best[0]} steps. {_MORE}"
    )
    nothing = _inconclusive_advice(exposure, "unclear", "no_failure", say)
    advice = replace(
        nothing,
        ci95_steps=(drawn.best[0], None),
        today_percent=old,
        formulas=shown,
    )
    return Interval(advice, curve, today, None, drawn)


def _inconclusive_advice(exposure: Exposure, verdict: Verdict, reason: Reason, say: str) -> IntervalAdvice:
    return IntervalAdvice(
        verdict, reason, say, None, None, None, None, None, None, None, None, None, None, None, None, None,
        exposure.failures, None, Formulas(None, None, None), (),
    )  # fmt: skip


def _refused(record: JobRecord) -> tuple[Reason, str] | None:
    """Return why no interval can be advised: a code, and what to log."""
    if record.every is None:
        return "no_saves", (
            "the log shows no checkpoint. Log `checkpoint_saved`, or another line that "
            "`goodput help no_checkpoint_events` lists"
        )
    if record.cost is None:
        log = "" if record.step_log else "log `step_finished` before `checkpoint_saved`, or "
        return (
            "save_cost_unknown",
            f"how long saving blocks training is not logged. {log[:1].upper()}{log[1:]}pass --save-seconds",
        )
    if record.kept_steps < LEAST_STEPS:
        return "too_short", f"too short: {plural(record.kept_steps, 'step')} kept, {LEAST_STEPS} needed"
    if len(record.lives) < 2 and record.kept_steps < 2 * record.every:
        return "too_short", (
            f"one attempt of {record.kept_steps} steps with a checkpoint every {record.every}: two intervals or a "
            "second attempt are needed"
        )
    return None


_NO_FAILURE = "no attempt failed"
_UNHARMED = "no failed attempt lost time that depends on the interval"
_NEVER = "with these failures the job never ends at any interval. Only the improvements below help"
_MORE = "Pass --mtbf, or analyze a longer period"


def _if_cost(record: JobRecord, exposure: Exposure) -> tuple[IfCost, ...]:
    """The best interval for some costs of a save, those that are shorter than half an interval."""
    today = record.every
    assert today is not None
    made = []
    for cost in _COSTS:
        saving = SaveCost(cost, record.latency / 1e9)
        if cost >= today * exposure.pace / 2 or not exposure.failures:
            continue
        optimal = optimum(LossCurve(exposure, candidates(exposure, record.kept_steps, today, saving), saving))
        if optimal is not None:
            made.append(IfCost(cost, optimal.advised, optimal.plateau))
    return tuple(made)


def early_deaths(exposure: Exposure) -> EarlyDeaths | None:
    """Compare attempts shorter than a tenth of the MTBF with what a constant hazard gives. None without a failure."""
    if not exposure.failures:
        return None
    limit = _EARLY * exposure.budgets / exposure.failures
    early = exposure.lives[exposure.lives < limit]
    share, total = 1 - exp(-_EARLY), exposure.failures
    probability = _binomial_tail(len(early), total, share)
    longest = float(early.max()) if len(early) else None
    return EarlyDeaths(len(early), total * share, probability, probability < _CHANCE, longest)


def _binomial_tail(count: int, total: int, share: float) -> float:
    """Probability of `count` or more of `total`."""
    odds, term, below = share / (1 - share), (1 - share) ** total, 0.0
    if term == 0.0:  # large enough to need logarithms
        terms = [exp(log(comb(total, k)) + k * log(share) + (total - k) * log(1 - share)) for k in range(count)]
        return max(1 - sum(terms), 0.0)
    for k in range(count):
        below += term
        term *= odds * (total - k) / (k + 1)
    return max(1 - below, 0.0)
