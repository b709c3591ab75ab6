"""Advice on one job: the interval and the improvements, from its record (docs/advice.md).

`goodput advise` for one job, from its accounting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.advice.curve import Exposure, exposure_of
from goodput_cli.analysis.advice.interval import LEAST_FAILURES, Interval, early_deaths, interval_advice, with_one_run
from goodput_cli.analysis.advice.levers import ImprovementInputs, bound, find_improvements, judged_improvements
from goodput_cli.analysis.advice.record import FAILURES, EndKind, JobRecord
from goodput_cli.analysis.advice.replay import ReplayResult, SaveEvery, check_replay, replay
from goodput_cli.analysis.advice.replay_attempts import record_of
from goodput_cli.analysis.advice.results import (
    AdviceData,
    AttemptEndings,
    CurvePoint,
    Fidelity,
    IfDeath,
    IntervalAdvice,
    Recorded,
    RecordFacts,
    ReplayFacts,
    SaveFacts,
    failed_attempts_text,
)
from goodput_cli.analysis.advice.sheet import improvements_sheet
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.goodput.thresholds import GAIN_LOW, OF_INTERVAL, RATIO
from goodput_cli.analysis.measures import decimal
from goodput_cli.analysis.question import AdviceQuestion, Death, Price
from goodput_cli.analysis.sheet import Displayable, Sheet
from goodput_cli.analysis.threshold import POINTS, Expression, Threshold, judged
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.vocabulary.when import NS_PER_SECOND

_SPARE_NS = 60 * 10**9


@dataclass(frozen=True, repr=False)
class Advice(AdviceData, Displayable):
    """Advice on a job: changes that would have raised its goodput, and by how much."""

    def sheet(self) -> Sheet:
        return improvements_sheet(self)


@dataclass(frozen=True)
class Options:
    """Facts about the job given as options. mtbf: s, of attempt time. spare_ns: until a spare takes over."""

    mtbf: float | None = None
    spare_ns: int = _SPARE_NS
    price: Price | None = None


def advice_options(question: AdviceQuestion, price: Price | None) -> Options:
    """Return the facts about the job that options give."""
    spare_ns = round(question.spare_seconds * NS_PER_SECOND)
    return Options(question.mtbf, spare_ns, price)


def advise(record: JobRecord, options: Options = Options(), others: Mapping[Death, JobRecord] | None = None) -> Advice:
    """others: the records for each assumed moment of death, where none was logged."""
    exposure = exposure_of(record, options.mtbf)
    fidelity = check_replay(record)
    interval = with_one_run(interval_advice(record, exposure))
    question = ImprovementInputs(record, exposure, interval, fidelity.ok, options.spare_ns)
    return Advice(
        job=record.name,
        recorded=Recorded(100 * record.productive / record.window, record.window / 1e9, record.productive / 1e9),
        record=_facts(record, exposure, fidelity),
        saves=_saves(record, exposure),
        interval=_replayed(record, interval, fidelity.ok),
        curve=_curve(record, interval, fidelity.ok),
        levers=find_improvements(question, options.price),
        bound=bound(question, options.price),
        deaths=_deaths(record, options, others),
        diagnostics=tuple(_diagnostics(record, exposure, interval, fidelity)),
        judged=judged_improvements(question),
    )


def _facts(record: JobRecord, exposure: Exposure, fidelity: Fidelity) -> RecordFacts:
    lived = [(life, end) for life, end in zip(record.lives, record.ends, strict=True) if record.trained_step(life)]
    kinds = Counter(end.kind for _, end in lived)
    amounts, failed = record.amounts, len(record.failed)
    return RecordFacts(
        lives=len(lived),
        failures=amounts.failures,
        failed_lives=failed,
        disruptions=amounts.disruptions,
        kinds=AttemptEndings(**{str(kind): kinds[kind] for kind in (*FAILURES, EndKind.STOP)}),
        life_seconds=exposure.budgets,
        mtbf_seconds=amounts.up / amounts.failures / 1e9 if amounts.failures else None,
        training_between_failures_seconds=exposure.mtbf_given or (exposure.budgets / failed if failed else None),
        work_seconds=exposure.work,
        gap_seconds=exposure.gaps,
        fixed_seconds=exposure.fixed,
        extra_seconds=exposure.extra,
        pace_seconds=exposure.pace,
        early=early_deaths(exposure),
        replay=fidelity,
        death=record.deaths if any(life.unseen_death for life in record.lives) else None,
    )


def _saves(record: JobRecord, exposure: Exposure) -> SaveFacts:
    return SaveFacts(
        cost_seconds=record.cost,
        cost_origin=None if record.cost is None else "given" if record.cost_given else "recorded",
        count=sum(len(life.saves) for life in record.lives),
        every_steps=record.every,
        every_seconds=None if record.every is None else record.every * exposure.pace,
        latency_seconds=record.latency / 1e9,
    )


def _replayed(record: JobRecord, interval: Interval, replays: bool) -> IntervalAdvice:
    advice = interval.advice
    if not replays or advice.every_steps is None:
        return advice
    return replace(advice, replayed=_replay_facts(record, replay(record, SaveEvery(record, advice.every_steps))))


def _replay_facts(record: JobRecord, done: ReplayResult) -> ReplayFacts:
    """Compare a replay with the record."""
    if done.ns is None:
        return ReplayFacts(None, None, 0.0, done.saves, done.deaths, None)
    goodput = 100 * record.productive / done.ns
    return ReplayFacts(done.ns / 1e9, done.ns, goodput, done.saves, done.deaths, (record.window - done.ns) / 1e9)


def _curve(record: JobRecord, interval: Interval, replays: bool) -> tuple[CurvePoint, ...]:
    curve, spread = interval.curve, interval.spread
    if curve is None or spread is None:
        return ()
    goodput = curve.goodput(curve.average).tolist()
    chosen = curve.exposure.mtbf_given is None and interval.optimum is not None
    by = curve.goodput(curve.chosen_by).tolist() if chosen else [None] * len(goodput)
    points = []
    for place, every in enumerate(curve.intervals.tolist()):
        own = _replay_facts(record, replay(record, SaveEvery(record, every))).goodput_percent if replays else None
        low, high = spread.goodput[:, place].tolist()
        average = goodput[place]
        within = (min(low, average), max(high, average))  # where all draws lie to one side of it
        points.append(CurvePoint(every, every * curve.exposure.pace, average, within, own, by[place]))
    return tuple(points)


def _deaths(record: JobRecord, options: Options, others: Mapping[Death, JobRecord] | None) -> IfDeath | None:
    """Today's average goodput (percent) for each assumed moment of death."""
    if not others or not any(life.unseen_death for life in record.lives):
        return None
    goodputs: dict[Death, float] = {}
    for death, other in others.items():
        today = interval_advice(other, exposure_of(other, options.mtbf)).today
        if today is not None:
            goodputs[death] = float(today.goodput(today.average)[0])
    return IfDeath(**{str(death): goodput for death, goodput in goodputs.items()}) if goodputs else None


def _diagnostics(record: JobRecord, exposure: Exposure, interval: Interval, fidelity: Fidelity) -> list[Diagnostic]:
    diagnostics = []
    if not fidelity.ok:
        diagnostics.append(Diagnostic.of("replay_differs", f"{fidelity.reason}. No replay is shown"))
    advice = interval.advice
    if record.every is not None and record.cost is None:
        diagnostics.append(Diagnostic.of("save_cost_unknown", str(advice.say)))
    if advice.verdict != "refused" and exposure.failures < LEAST_FAILURES:
        seen = failed_attempts_text(exposure.failures, len(record.failed))
        message = f"{seen}: too few to estimate how often training fails"
        diagnostics.append(Diagnostic.of("few_failures", message))
    if record.one_save:
        message = "only one checkpoint found: today's interval is taken as the steps from the first trained step to it"
        diagnostics.append(Diagnostic.of("one_interval_only", message))
    early = early_deaths(exposure)
    if early is not None and early.unusual:
        message = (
            f"{early.count} of {exposure.failures} failed attempts were shorter than a tenth of the mean "
            f"({early.expected:.1f} expected). Young's and Daly's formulas do not apply; the curve does"
        )
        diagnostics.append(Diagnostic.of("early_failures", message, early.count))
    diagnostics += _of_kind(
        record, EndKind.OLDER, "older_restored", "an older checkpoint was restored although a newer one was complete"
    )
    diagnostics += _of_kind(
        record, EndKind.BEYOND, "saved_unseen", "training resumed from a checkpoint that is not in the log"
    )
    if advice.reason == "never_ends":
        diagnostics.append(Diagnostic.of("never_ends", str(advice.say)))
    if record.background:
        message = "checkpoints are saved in the background and their ends are not logged: latency is taken as 0"
        diagnostics.append(Diagnostic.of("save_latency_unknown", message))
    return diagnostics


def _of_kind(record: JobRecord, kind: EndKind, code: str, message: str) -> list[Diagnostic]:
    behind = [record.lives[index + 1].began_at for index, end in enumerate(record.ends) if end.kind == kind]
    places = tuple(place for place in behind if place is not None)
    return [Diagnostic.of(code, message, len(behind), places)] if behind else []


def advise_analysis(
    analysis: Analysis, options: Options, death: Death = "middle", save_ns: int | None = None,
    every: int | None = None, thresholds: Sequence[Expression] = (),
) -> Advice:  # fmt: skip
    """Advice on the job that was analysed, with the thresholds judged. The rest as `advise_job`."""
    advice = advise_job(analysis.timeline, analysis.job.name, options, death, save_ns, every)
    return replace(advice, thresholds=tuple(judge(one, advice) for one in thresholds))


def advise_job(
    timeline: Timeline, name: str, options: Options, death: Death = "middle", save_ns: int | None = None,
    every: int | None = None,
) -> Advice:  # fmt: skip
    """Return the advice on one job. death: where an attempt is assumed to have ended if its end was not logged.
    save_ns: time a save blocks; every: today's interval in steps; both count only if not logged. Raises `NotEnoughData`
    without training."""
    record = record_of(timeline, name, death, save_ns, every)
    if not any(life.unseen_death for life in record.lives):
        return advise(record, options)
    others = {one: record_of(timeline, name, one, save_ns, every) for one in get_args(Death)}
    return advise(record, options, others)


def judge(expression: Expression, advice: Advice) -> Threshold:
    """Return the judged expression. `met` is None if the log does not contain enough."""
    return judged(expression, decimal(_value(expression, advice)))


def _value(expression: Expression, advice: Advice) -> float | None:
    interval = advice.interval
    if expression.name == RATIO:
        today = advice.saves.every_steps
        return today / interval.every_steps if today and interval.every_steps else None
    if expression.name in OF_INTERVAL:
        return _gain(expression, advice)
    rows = [*advice.levers, *([advice.bound] if advice.bound else [])]
    lever = next((row for row in rows if row.name == expression.name), None)
    if lever is None:
        return 0.0 if expression.name in advice.judged else None
    return lever.seconds if expression.unit == "s" else lever.points


def _gain(expression: Expression, advice: Advice) -> float | None:
    """Return the average gain of the advised interval, or the lower end of its 95 % interval."""
    interval = advice.interval
    if interval.gain_points is None or interval.today_percent is None:
        return None
    if interval.verdict == "keep":
        return 0.0
    points = interval.gain_points
    if expression.name == GAIN_LOW:
        if interval.gain_ci95_points is None:
            return None
        points = interval.gain_ci95_points[0]
    if expression.unit == POINTS:
        return points
    after = interval.today_percent + points
    return advice.recorded.seconds * (1 - interval.today_percent / after) if after > 0 else None
