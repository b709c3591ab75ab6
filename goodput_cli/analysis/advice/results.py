"""What `goodput advise` answers. Times are seconds where they are averages and ns where the ledger is exact; goodput is
percent, gains are points of goodput. None is *not known*, never 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from goodput_cli.analysis.advice.formulas import Formulas
from goodput_cli.analysis.advice.replay.record import Death
from goodput_cli.analysis.sheet import Audience
from goodput_cli.analysis.table import column
from goodput_cli.analysis.threshold import Threshold
from goodput_cli.diagnostics.diagnostic import Diagnostic

Verdict = Literal["keep", "change", "unclear", "refused"]
How = Literal["exact", "replay", "average", "bound"]
_HOW = {"enum": list(get_args(How))}


@dataclass(frozen=True)
class Recorded:
    """the job as it was"""

    goodput_percent: float
    seconds: float
    """without what is excluded"""
    productive_seconds: float


@dataclass(frozen=True)
class EarlyDeaths:
    """lives shorter than a tenth of the MTBF"""

    count: int
    expected: float
    """where failures come at a constant rate"""
    probability: float
    """of so many or more by chance"""
    unusual: bool
    """whether that is below 1 %"""
    longest_seconds: float | None
    """of these lives"""


@dataclass(frozen=True)
class Fidelity:
    """whether the record replayed as it was gives the record"""

    ok: bool
    difference_ns: int | None
    """null: no replay was made, or it never ends"""
    reason: str | None
    """why no replay is shown"""


@dataclass(frozen=True)
class LifeEndings:
    """lives by how they ended, and where the next one began"""

    newest: int
    """at the newest checkpoint"""
    older: int
    """at an older one"""
    beyond: int
    """at a checkpoint that no line shows"""
    stop: int
    """behind a clean end"""


@dataclass(frozen=True)
class RecordFacts:
    """what the advice rests on; a life is the training of one attempt"""

    lives: int
    failures: int
    disruptions: int
    kinds: LifeEndings
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
    early: EarlyDeaths | None
    replay: Fidelity
    death: Death | None
    """the moment assumed where none was logged; null: all were"""


@dataclass(frozen=True)
class SaveFacts:
    """what saves cost today"""

    cost_seconds: float | None
    """that a save blocks; null: not recorded"""
    cost_origin: Literal["recorded", "given"] | None
    count: int
    every_steps: int | None
    every_seconds: float | None
    latency_seconds: float
    """until an asynchronous save can be used"""


@dataclass(frozen=True)
class ReplayFacts:
    """the job's own failures again, under another policy"""

    seconds: float | None
    """null: it never ends"""
    ns: int | None
    goodput_percent: float
    saves: int
    deaths: int
    saved_seconds: float | None
    """by how much it is shorter; negative: longer"""


@dataclass(frozen=True)
class IfCost:
    """the best interval, if a save blocked for so long"""

    cost_seconds: float
    every_steps: int
    plateau_steps: tuple[int, int]


@dataclass(frozen=True)
class IntervalAdvice:
    """how often to save"""

    verdict: Verdict
    reason: str | None
    """a code, of refused and unclear"""
    say: str | None
    """the same as a sentence"""
    every_steps: int | None
    """advised: the roundest number of the plateau"""
    every_seconds: float | None
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
    luck_points: float | None
    """recorded goodput less today_percent"""
    gain_points: float | None
    gain_ci95_points: tuple[float, float] | None
    probability: float | None
    """of a gain above 0"""
    failures: int
    replayed: ReplayFacts | None
    formulas: Formulas
    if_cost: tuple[IfCost, ...]


@dataclass(frozen=True)
class CurvePoint:
    """goodput at one interval"""

    every_steps: int
    every_seconds: float
    goodput_percent: float
    """on average"""
    ci95_percent: tuple[float, float]
    replayed_percent: float | None
    """this job's own failures again"""


@dataclass(frozen=True)
class Lever:
    """What would have bought goodput: a row of the answer."""

    name: str = column("text", "as in --fail-if advice.NAME")
    label: str = column("text", "in a few words", people=(1, "what would buy most"))
    text: str = column("text", "what would be otherwise")
    assumption: str = column("text", "what is taken for granted")
    how: How = column("text", "exact: a sum over the ledger; replay: the record again; average: the curve", json=_HOW)
    seconds: float = column("number", "in which the job would have held its accelerators for nothing")
    ns: int | None = column("count", "the same where it is exact", audience=Audience.JSON)
    percent_of_window: float = column("number", "seconds / window")
    points: float = column("number", "of goodput, gained", people=None)
    goodput_percent: float = column("percent", "then")
    accelerator_hours: float | None = column("number", "seconds x accelerators; null without --accelerators")
    cost: float | None = column("number", "accelerator_hours x price; null without --price-per-hour")
    settings: Mapping[str, float | str] = column(
        "text", "what it assumes, in numbers", audience=Audience.JSON, json={"type": "object"}
    )


@dataclass(frozen=True)
class Scenario:
    """what if: all changes together"""

    changes: tuple[str, ...]
    """as they were asked for"""
    how: How
    """the weakest of what it was computed with"""
    seconds: float | None
    """that the job is shorter; null: it never ends"""
    ns: int | None
    """the same where it is exact or replayed"""
    points: float
    goodput_percent: float
    replayed: ReplayFacts | None
    accelerator_hours: float | None
    cost: float | None


@dataclass(frozen=True)
class IfDeath:
    """goodput on average today, for each moment of death that may be assumed"""

    earliest: float | None = None
    middle: float | None = None
    latest: float | None = None


@dataclass(frozen=True)
class Advice:
    """All of it."""

    job: str
    recorded: Recorded
    record: RecordFacts
    saves: SaveFacts
    interval: IntervalAdvice
    curve: tuple[CurvePoint, ...]
    levers: tuple[Lever, ...]
    bound: Lever | None
    """What checkpointing could buy at most; it is shown below the levers, not ranked among them."""
    scenario: Scenario | None
    deaths: IfDeath | None
    """None: every death was logged."""
    diagnostics: tuple[Diagnostic, ...]
    judged: frozenset[str] = frozenset()
    """Names of levers about which the log says something; of those not among `levers`, nothing is to be had."""
    thresholds: tuple[Threshold, ...] = ()
