"""Answer of `goodput advise`, and the facts it is based on: the job as it was recorded. Times are seconds for averages
and ns where the ledger is exact; goodput is percent, gains are points of goodput. None is *unknown*, never 0.

Also the well-known formulas, as a check of the curve: training time between two saves (s) for a cost C of a save and an
MTBF M (s). All assume a constant hazard.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from goodput_cli.accounting.options import Method
from goodput_cli.analysis.analysis_data import (
    AnalysisData,
    Diagnostics,
    MeasuredWindow,
    NamedJob,
    Thresholds,
    measured_window,
    named_job,
)
from goodput_cli.analysis.json_fields import Json, written
from goodput_cli.analysis.question import Death
from goodput_cli.analysis.sheet import Audience
from goodput_cli.analysis.table import TableDeclaration, attribute, column, columns_of
from goodput_cli.analysis.threshold import Threshold
from goodput_cli.diagnostics.diagnostic import Diagnostic

ENOUGH_FAILURES = 10
"""From this number of failures on, ranges have their promised coverage: the attempts show how long a burst is."""


_ADDED = Json(optional=True)
"""Declaration of a key that not all answers have."""


def failed_attempts_text(count: int, of: int) -> str:
    """Return `1 failed attempt` or `2 of 4 failed attempts`; the others lost no time that depends on the interval."""
    return f"{count}{f' of {of}' if count != of else ''} failed {'attempt' if of == 1 else 'attempts'}"


@dataclass(frozen=True)
class Recorded:
    """the job as it was"""

    goodput_percent: float
    """of the window without what is excluded"""
    seconds: float
    """without what is excluded"""
    productive_seconds: float
    """that became progress"""


@dataclass(frozen=True)
class EarlyDeaths:
    """failed attempts shorter than a tenth of the training between failures"""

    count: int
    """how many there are"""
    expected: float
    """where failures come at a constant rate"""
    probability: float
    """probability of this many or more by chance"""
    unusual: bool
    """whether that is below 1 %"""
    longest_seconds: float | None
    """longest of these attempts"""


@dataclass(frozen=True)
class Fidelity:
    """whether the record replayed as it was gives the record"""

    ok: bool
    """whether it does, to the nanosecond"""
    difference_ns: int | None
    """null: no replay was made, or it never ends"""
    reason: str | None
    """why no replay is shown"""


@dataclass(frozen=True)
class AttemptEndings:
    """number of attempts by how they ended, and where the next one began"""

    newest: int
    """at the newest checkpoint"""
    older: int
    """at an older one"""
    beyond: int
    """at a checkpoint that no line shows"""
    stop: int
    """after a planned stop"""


@dataclass(frozen=True)
class RecordFacts:
    """facts that the advice is based on; a life is the training of one attempt"""

    lives: int
    """how many"""
    failures: int
    """as `goodput analyze` counts them"""
    failed_lives: Annotated[int, _ADDED]
    """attempts that ended unplanned: failures of attempts that had finished a step"""
    disruptions: int
    """as `goodput disruptions` counts them"""
    kinds: AttemptEndings
    """ends of attempts"""
    life_seconds: float
    """training time of all attempts, without start-up and final hangs"""
    mtbf_seconds: float | None
    """as `goodput analyze` has it: time up / failures"""
    training_between_failures_seconds: Annotated[float | None, _ADDED]
    """life_seconds / failed_lives, or as given; omitted if no attempt failed"""
    work_seconds: float
    """kept training"""
    gap_seconds: float
    """time between attempts that failures caused"""
    fixed_seconds: float
    """time that failures do not cause: lead, stops, tail"""
    extra_seconds: float
    """lost whatever the interval"""
    pace_seconds: float
    """mean time of a step"""
    early: EarlyDeaths | None
    """null: no attempt failed"""
    replay: Fidelity
    """the test of the replay on the record itself"""
    death: Death | None
    """the moment assumed where none was logged; null: all were"""


@dataclass(frozen=True)
class SaveFacts:
    """cost of saves today"""

    cost_seconds: float | None
    """that a save blocks; null: not recorded"""
    cost_origin: Literal["recorded", "given"] | None
    """where cost_seconds is from; null: not known"""
    count: int
    """completed saves of all attempts"""
    every_steps: int | None
    """between two saves today; null: not known"""
    every_seconds: float | None
    """the same as training time"""
    latency_seconds: float
    """until an asynchronous save can be used"""


_NEWTON = 100
_YOUNG_HOLDS = 20


@dataclass(frozen=True)
class Formulas:
    """training between two saves at a constant rate of failures; null if a formula does not apply or its inputs are
    unknown"""

    young_seconds: float | None
    """Young 1974"""
    daly_seconds: float | None
    """Daly 2006"""
    exact_seconds: float | None
    """where the mean time is least"""


def formulas(cost: float, mtbf: float | None) -> Formulas:
    """Return all formulas. Young's is omitted if C > M / 20: there it is far too long."""
    if mtbf is None or cost <= 0 or mtbf <= 0:
        return Formulas(None, None, None)
    shown = young(cost, mtbf) if cost <= mtbf / _YOUNG_HOLDS else None
    return Formulas(shown, daly(cost, mtbf), exact(cost, mtbf))


def young(cost: float, mtbf: float) -> float:
    """Young, CACM 17(9), 1974."""
    return math.sqrt(2 * cost * mtbf)


def daly(cost: float, mtbf: float) -> float:
    """Daly, FGCS 22, 2006."""
    if cost >= 2 * mtbf:
        return mtbf
    ratio = cost / (2 * mtbf)
    return math.sqrt(2 * cost * mtbf) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - cost


def exact(cost: float, mtbf: float) -> float:
    """Return the length that minimizes the exact time of a job with exponential attempt lengths: M (1 + C/M + W0(-e^(-1
    - C/M))) - C."""
    return mtbf * (1 + cost / mtbf + _lambert(-1 - cost / mtbf)) - cost


def _lambert(log: float) -> float:
    """W0(-e^log), log <= -1, by Newton: w with ln(-w) + w = log, -1 <= w < 0, in u = -w."""
    u = math.exp(log) if log < -2 else 1 - math.sqrt(max(2 * (-1 - log), 0.0)) * 0.9
    u = min(max(u, 1e-300), 1 - 1e-12)
    for _ in range(_NEWTON):
        step = (math.log(u) - u - log) / (1 / u - 1)
        moved = min(max(u - step, u / 10), (1 + u) / 2)
        if moved == u or abs(moved - u) <= 1e-16 * u:
            break
        u = moved
    return -u


Verdict = Literal["keep", "change", "unclear", "refused"]
Reason = Literal[
    "no_saves", "save_cost_unknown", "too_short", "never_ends", "no_failure", "few_failures", "not_sure",
]  # fmt: skip
SHOWN: dict[Verdict, str] = {
    "refused": "NO INTERVAL RECOMMENDED", "unclear": "INCONCLUSIVE", "keep": "KEEP SAVING EVERY",
    "change": "SAVE EVERY",
}  # fmt: skip
"""First words of the line of each verdict."""
How = Literal["exact", "replay", "average", "bound"]
_HOW = {"enum": list(get_args(How))}


@dataclass(frozen=True)
class ReplayFacts:
    """the job's own failures again, under another policy"""

    seconds: float | None
    """null: it never ends"""
    ns: int | None
    """the same, exactly"""
    goodput_percent: float
    """then"""
    saves: int
    """how many it makes"""
    deaths: int
    """how many failures it meets"""
    saved_seconds: float | None
    """by how much it is shorter; negative: longer"""


@dataclass(frozen=True)
class IfCost:
    """the best interval, if a save blocked for so long"""

    cost_seconds: float
    """that a save would block"""
    every_steps: int
    """the roundest number of the plateau"""
    plateau_steps: tuple[int, int]
    """as good within 0.1 point"""


@dataclass(frozen=True)
class IntervalAdvice:
    """how often to save"""

    verdict: Verdict
    """keep, change, unclear, or refused"""
    reason: Reason | None
    """why, of refused and unclear"""
    say: str | None
    """the same as a sentence"""
    every_steps: int | None
    """advised: the roundest number of the plateau"""
    every_seconds: float | None
    """the same as training time"""
    best_steps: int | None
    """where the curve is highest"""
    plateau_steps: tuple[int, int] | None
    """as good within 0.1 point"""
    ci95_steps: tuple[int, int | None] | None
    """95 % interval of the best; a lower end alone where no failure was seen"""
    goodput_percent: float | None
    """on average, at the advised interval"""
    today_percent: float | None
    """on average, at today's"""
    one_run_percent: tuple[float, float] | None
    """where a single run at the advised interval lies with 95 %; averages are known better"""
    today_one_run_percent: tuple[float, float] | None
    """the same at today's"""
    luck_points: float | None
    """recorded goodput less today_percent"""
    gain_points: float | None
    """advised less today, on average"""
    gain_ci95_points: tuple[float, float] | None
    """its 95 % interval"""
    probability: float | None
    """of a gain above 0"""
    counted_lives: Annotated[int, _ADDED]
    """failed attempts that the advice is based on: those whose loss depends on the interval"""
    replayed: ReplayFacts | None
    """the replay at the advised interval; null: none was made"""
    formulas: Formulas
    """for comparison"""
    if_cost: tuple[IfCost, ...]
    """where the cost of a save is not known: the best interval for some costs"""
    failures: Annotated[int | None, _ADDED] = None
    """as earlier answers have counted_lives; no longer written"""


@dataclass(frozen=True)
class CurvePoint:
    """goodput at one interval"""

    every_steps: int
    """between two saves"""
    every_seconds: float
    """the same as training time"""
    goodput_percent: float
    """on average"""
    ci95_percent: tuple[float, float]
    """its 95 % interval"""
    replayed_percent: float | None
    """this job's own failures again"""
    chosen_by_percent: Annotated[float | None, Json(optional=True)] = None
    """on average with half a failure more, by which the interval is chosen; null: none is chosen, or the average
    chooses"""


@dataclass(frozen=True)
class Improvement:
    """An improvement: a row of the answer."""

    name: str = column("text", "as in --fail-if advice.NAME")
    label: str = column("text", "in a few words", heading="improvement")
    text: str = column("text", "the change, in a sentence")
    assumption: str = column("text", "what the estimate assumes")
    how: How = column(
        "text",
        "exact: a sum over the ledger; replay: the recorded run again; average: the curve; bound: an upper bound",
        json=_HOW,
    )
    seconds: float = column("number", "time without progress that it saves")
    ns: int | None = column("count", "the same in ns, if it is exact", audience=Audience.JSON)
    percent_of_window: float = column("number", "seconds / window")
    points: float = column("number", "points of goodput gained")
    goodput_percent: float = column("percent", "then")
    accelerator_hours: float | None = column("number", "seconds x accelerators; null without --accelerators")
    cost: float | None = column("number", "accelerator_hours x price; null without --price-per-hour")
    settings: Mapping[str, float | str] = column(
        "text", "the numbers it assumes", audience=Audience.JSON, json={"type": "object"}
    )


LEVER_TABLE = TableDeclaration(
    "lever", "improvements, and how much goodput each would have gained", columns_of(Improvement, attribute)
)


@dataclass(frozen=True)
class IfDeath:
    """goodput on average today, for each moment of death that may be assumed"""

    earliest: float | None = None
    """percent; null: not computed"""
    middle: float | None = None
    """percent; null: not computed"""
    latest: float | None = None
    """percent; null: not computed"""


@dataclass(frozen=True, repr=False)
class AdviceData:
    """The data of an `Advice`."""

    job: str
    """The job name."""
    recorded: Recorded
    """The job as it was."""
    record: RecordFacts
    """Facts that the advice is based on."""
    saves: SaveFacts
    """Cost of saves today."""
    interval: IntervalAdvice
    """The advised checkpoint interval."""
    curve: tuple[CurvePoint, ...]
    """Goodput at each interval that was looked at."""
    levers: tuple[Improvement, ...]
    """Improvements, largest gain first."""
    bound: Improvement | None
    """Upper limit of what checkpointing can gain; shown below the improvements, not ranked among them."""
    deaths: IfDeath | None
    """None: every death was logged."""
    diagnostics: tuple[Diagnostic, ...]
    """Warnings and assumptions."""
    judged: frozenset[str] = frozenset()
    """Names of improvements that the log covers; those not among `levers` gain nothing."""
    thresholds: tuple[Threshold, ...] = ()
    """Every `--fail-if advice.…` expression, judged."""


@written(
    "advice_answer",
    "goodput advise --format json: the checkpoint interval, and the improvements that would help most",
    kind="advice",
)
@dataclass(frozen=True, kw_only=True)
class AdviceAnswer:
    """goodput advise --format json: the checkpoint interval, and the improvements that would help most"""

    job: NamedJob
    window: MeasuredWindow
    method: Method
    recorded: Recorded
    record: RecordFacts
    saves: SaveFacts
    interval: IntervalAdvice
    curve: Sequence[CurvePoint]
    levers: Annotated[tuple[Improvement, ...], LEVER_TABLE]
    """those that buy most first; they overlap"""
    checkpoint_bound: Annotated[Improvement | None, LEVER_TABLE]
    """gain that no method of checkpointing can exceed"""
    scenario: Annotated[dict[str, Any] | None, _ADDED] = None
    """in answers of version 0.2 and older, from the removed option --what-if; no longer written"""
    deaths: IfDeath | None
    """null: every death was logged"""
    thresholds: Thresholds
    diagnostics: Diagnostics


def advice_answer(analysis: AnalysisData, advice: AdviceData) -> AdviceAnswer:
    """The whole advice."""
    return AdviceAnswer(
        job=named_job(analysis),
        window=measured_window(analysis),
        method=analysis.method,
        recorded=advice.recorded,
        record=advice.record,
        saves=advice.saves,
        interval=advice.interval,
        curve=advice.curve,
        levers=advice.levers,
        checkpoint_bound=advice.bound,
        deaths=advice.deaths,
        thresholds=advice.thresholds,
        diagnostics=(*analysis.diagnostics, *advice.diagnostics),
    )
