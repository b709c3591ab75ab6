"""What `goodput advise --format json` answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Literal

from goodput_cli.analysis.advice.job import JobAdvice
from goodput_cli.analysis.advice.replay.record import Death
from goodput_cli.analysis.advice.results import Advice, Lever, ReplayFacts, Scenario
from goodput_cli.analysis.advice.sheet import LEVERS
from goodput_cli.analysis.answer import (
    Answer,
    Count,
    DiagnosticEntry,
    MeasuredWindow,
    NamedJob,
    Part,
    Row,
    diagnostic_entries,
    measured_window,
    named_job,
    row_of,
)
from goodput_cli.analysis.results import Method
from goodput_cli.analysis.table import json_rows
from goodput_cli.vocabulary.text import finite

LeverRow = Annotated[Row, row_of("lever", "what would have bought goodput", LEVERS)]
How = Literal["exact", "replay", "average", "bound"]


class RecordedPart(Part):
    """the job as it was"""

    goodput_percent: float
    seconds: float
    """without what is excluded"""
    productive_seconds: float


class EarlyDeathsPart(Part):
    """lives shorter than a tenth of the MTBF"""

    count: Count
    expected: float
    """where failures come at a constant rate"""
    probability: float
    """of so many or more by chance"""
    unusual: bool
    """whether that is below 1 %"""
    longest_seconds: float | None


class FidelityPart(Part):
    """whether the record replayed as it was gives the record"""

    ok: bool
    difference_ns: int | None
    """null: no replay was made, or it never ends"""
    reason: str | None
    """why no replay is shown"""


class KindsPart(Part):
    """lives by how they ended, and where the next one began"""

    newest: Count
    """at the newest checkpoint"""
    older: Count
    """at an older one"""
    beyond: Count
    """at a checkpoint that no line shows"""
    stop: Count
    """behind a clean end"""


class LivesPart(Part):
    """what the advice rests on; a life is the training of one attempt"""

    lives: Count
    failures: Count
    disruptions: Count
    kinds: KindsPart
    life_seconds: float
    """of all lives, without start-up and final hangs"""
    mtbf_seconds: float | None
    """life_seconds / failures, or as given"""
    work_seconds: float
    """kept training"""
    gap_seconds: float
    """between lives, because of failures"""
    fixed_seconds: float
    """what no failure brings: lead, stops, tail"""
    extra_seconds: float
    """lost whatever the interval"""
    pace_seconds: float
    """mean time of a step"""
    early: EarlyDeathsPart | None
    replay: FidelityPart
    death: Literal["earliest", "middle", "latest"] | None
    """the moment assumed where none was logged; null: all were"""


class SaveFactsPart(Part):
    """what saves cost today"""

    cost_seconds: float | None
    """that a save blocks; null: not recorded"""
    cost_origin: Literal["recorded", "given"] | None
    count: Count
    every_steps: int | None
    every_seconds: float | None
    latency_seconds: float
    """until an asynchronous save can be used"""


class ReplayPart(Part):
    """the job's own failures again, under another policy"""

    seconds: float | None
    """null: it never ends"""
    ns: int | None
    goodput_percent: float
    saves: Count
    deaths: Count
    saved_seconds: float | None
    """by how much it is shorter; negative: longer"""


class FormulasPart(Part):
    """training between two saves at a constant rate of failures, in seconds"""

    young_seconds: float | None
    daly_seconds: float | None
    exact_seconds: float | None


class IfCostPart(Part):
    """the best interval, if a save blocked for so long"""

    cost_seconds: float
    every_steps: int
    plateau_steps: tuple[int, int]


class IntervalPart(Part):
    """how often to save"""

    verdict: Literal["keep", "change", "unclear", "refused"]
    reason: str | None
    """a code, of refused and unclear"""
    say: str | None
    """the same as a sentence"""
    every_steps: int | None
    """advised"""
    every_seconds: float | None
    best_steps: int | None
    plateau_steps: tuple[int, int] | None
    """as good within 0.1 point"""
    ci95_steps: tuple[int, int | None] | None
    """95 % interval of the best"""
    goodput_percent: float | None
    """on average, at the advised interval"""
    today_percent: float | None
    """on average, at today's"""
    luck_points: float | None
    """recorded goodput less today_percent"""
    gain_points: float | None
    gain_ci95_points: tuple[float, float] | None
    probability: float | None
    """of a gain above 0"""
    failures: Count
    replayed: ReplayPart | None
    formulas: FormulasPart
    if_cost: Sequence[IfCostPart]


class CurvePart(Part):
    """goodput at one interval"""

    every_steps: int
    every_seconds: float
    goodput_percent: float
    """on average"""
    ci95_percent: tuple[float, float]
    replayed_percent: float | None
    """this job's own failures again"""


class ScenarioPart(Part):
    """what if: all changes together"""

    changes: Sequence[str]
    how: How
    seconds: float | None
    """that the job is shorter; null: it never ends"""
    ns: int | None
    """the same where it is exact or replayed"""
    points: float
    goodput_percent: float
    replayed: ReplayPart | None
    accelerator_hours: float | None
    cost: float | None


class AdviceThreshold(Part):
    expression: str
    met: bool | None
    """whether what the expression says holds; null: the log does not say enough"""
    value: float | None
    limit: float
    unit: Literal["pp", "s", ""]
    """of value and limit: points of goodput, seconds, a plain number"""
    fails: bool
    """whether the run fails when it holds (--fail-if), or is only warned of (--warn-if)"""
    verdict: Literal["failed", "warning", "passed", "not_recorded"]
    hint: str | None = None
    """what may have been meant, where a name is not in the log"""


class DeathsPart(Part):
    """goodput on average today, for each moment of death that may be assumed"""

    earliest: float | None = None
    middle: float | None = None
    latest: float | None = None


class AdviceAnswer(Answer, kw_only=True):
    """goodput advise --format json: how often to save, what would have bought most, what if"""

    kind: Literal["advice"] = "advice"
    job: NamedJob
    window: MeasuredWindow
    method: Method
    recorded: RecordedPart
    record: LivesPart
    saves: SaveFactsPart
    interval: IntervalPart
    curve: Sequence[CurvePart]
    levers: Sequence[LeverRow]
    """those that buy most first; they overlap"""
    checkpoint_bound: LeverRow | None
    """what no way of checkpointing can beat"""
    scenario: ScenarioPart | None
    deaths: DeathsPart | None
    """null: every death was logged"""
    thresholds: Sequence[AdviceThreshold]
    diagnostics: Sequence[DiagnosticEntry]


def advice_answer(advised: JobAdvice) -> AdviceAnswer:
    """The whole advice."""
    analysis, advice = advised.analysis, advised.advice
    return AdviceAnswer(
        job=named_job(analysis),
        window=measured_window(analysis),
        method=analysis.method,
        recorded=RecordedPart(**asdict(advice.recorded)),
        record=_record(advice),
        saves=SaveFactsPart(**asdict(advice.saves)),
        interval=_interval(advice),
        curve=[CurvePart(**asdict(point)) for point in advice.curve],
        levers=_rows(advice.levers),
        checkpoint_bound=_rows([advice.bound])[0] if advice.bound else None,
        scenario=None if advice.scenario is None else _scenario(advice.scenario),
        deaths=None if advice.deaths is None else _deaths(advice.deaths),
        thresholds=[AdviceThreshold(**asdict(one), verdict=one.verdict) for one in advice.thresholds],
        diagnostics=diagnostic_entries((*analysis.diagnostics, *advice.diagnostics)),
    )


def _rows(levers: Sequence[Lever]) -> Sequence[Row]:
    return json_rows(LEVERS, len(levers), lambda: [levers])


def _record(advice: Advice) -> LivesPart:
    record = advice.record
    return LivesPart(
        **{
            **{name: getattr(record, name) for name in LivesPart.__struct_fields__},
            "kinds": KindsPart(**record.kinds),
            "early": None if record.early is None else EarlyDeathsPart(**asdict(record.early)),
            "replay": FidelityPart(**asdict(record.replay)),
        }
    )


def _interval(advice: Advice) -> IntervalPart:
    interval = advice.interval
    shown = interval.formulas
    return IntervalPart(
        **{
            **{name: getattr(interval, name) for name in IntervalPart.__struct_fields__},
            "replayed": _replay(interval.replayed),
            "formulas": FormulasPart(shown.young, shown.daly, shown.exact),
            "if_cost": [IfCostPart(**asdict(one)) for one in interval.if_cost],
        }
    )


def _replay(done: ReplayFacts | None) -> ReplayPart | None:
    return None if done is None else ReplayPart(**asdict(done))


def _scenario(scenario: Scenario) -> ScenarioPart:
    return ScenarioPart(
        **{
            **{name: getattr(scenario, name) for name in ScenarioPart.__struct_fields__},
            "seconds": finite(scenario.seconds),
            "replayed": _replay(scenario.replayed),
        }
    )


def _deaths(deaths: Mapping[Death, float]) -> DeathsPart:
    return DeathsPart(**{str(name): value for name, value in deaths.items()})
