"""What `goodput advise` answers. Times are seconds where they are averages and ns where the ledger is exact; goodput is
percent, gains are points of goodput. None is *not known*, never 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from goodput_cli.analysis.advice.formulas import Formulas
from goodput_cli.analysis.advice.replay.record import Death
from goodput_cli.analysis.results import Threshold
from goodput_cli.analysis.sheet import Audience
from goodput_cli.analysis.table import column
from goodput_cli.diagnostics.diagnostic import Diagnostic

Verdict = Literal["keep", "change", "unclear", "refused"]
How = Literal["exact", "replay", "average", "bound"]
_HOW = {"enum": list(get_args(How))}


@dataclass(frozen=True)
class Recorded:
    """The job as it was. seconds: T, what is excluded left out; productive_seconds: P."""

    goodput_percent: float
    seconds: float
    productive_seconds: float


@dataclass(frozen=True)
class EarlyDeaths:
    """Lives shorter than a tenth of the MTBF. expected: how many a constant hazard gives; probability: that of so many
    or more by chance. unusual: whether that is below 1 %, so that no formula holds. longest_seconds: of these lives."""

    count: int
    expected: float
    probability: float
    unusual: bool
    longest_seconds: float | None


@dataclass(frozen=True)
class Fidelity:
    """Whether the record replayed as it was gives the record. difference_ns: None if it never ends. reason: of
    ok=False, a sentence."""

    ok: bool
    difference_ns: int | None
    reason: str | None


@dataclass(frozen=True)
class RecordFacts:
    """What the advice rests on. kinds: lives by how they ended. life_seconds: A; mtbf_seconds: M, in life time;
    work_seconds: U; gap_seconds: G; fixed_seconds: V; extra_seconds: E. death: which moment was assumed where none was
    logged; None where all were."""

    lives: int
    failures: int
    disruptions: int
    kinds: Mapping[str, int]
    life_seconds: float
    mtbf_seconds: float | None
    work_seconds: float
    gap_seconds: float
    fixed_seconds: float
    extra_seconds: float
    pace_seconds: float
    early: EarlyDeaths | None
    replay: Fidelity
    death: Death | None


@dataclass(frozen=True)
class SaveFacts:
    """What saves cost. cost_origin: None where nobody knows."""

    cost_seconds: float | None
    cost_origin: Literal["recorded", "given"] | None
    count: int
    every_steps: int | None
    every_seconds: float | None
    latency_seconds: float


@dataclass(frozen=True)
class ReplayFacts:
    """The job's own failures again, under another policy. saved_seconds: by how much shorter; negative if longer. None
    as length: the job never ends."""

    seconds: float | None
    ns: int | None
    goodput_percent: float
    saves: int
    deaths: int
    saved_seconds: float | None


@dataclass(frozen=True)
class IfCost:
    """The best interval, if a save blocked for so long."""

    cost_seconds: float
    every_steps: int
    plateau_steps: tuple[int, int]


@dataclass(frozen=True)
class IntervalAdvice:
    """How often to save. reason: a code and `say` a sentence, of a refusal and of unclear advice. best_steps: where the
    curve is highest; plateau_steps: as good within 0.1 point; every_steps: the roundest number among these.
    ci95_steps: 95 % interval of the best; with a lower end alone where no failure was seen. goodput_percent: on average
    at the advised interval; today_percent: at today's; luck_points: recorded less that."""

    verdict: Verdict
    reason: str | None
    say: str | None
    every_steps: int | None
    every_seconds: float | None
    best_steps: int | None
    plateau_steps: tuple[int, int] | None
    ci95_steps: tuple[int, int | None] | None
    goodput_percent: float | None
    today_percent: float | None
    luck_points: float | None
    gain_points: float | None
    gain_ci95_points: tuple[float, float] | None
    probability: float | None
    failures: int
    replayed: ReplayFacts | None
    formulas: Formulas
    if_cost: tuple[IfCost, ...]


@dataclass(frozen=True)
class CurvePoint:
    """Goodput at one interval: on average, the 95 % interval of that, and of the record replayed with it."""

    every_steps: int
    every_seconds: float
    goodput_percent: float
    ci95_percent: tuple[float, float]
    replayed_percent: float | None


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
    """What if. changes: as they were asked for. how: the weakest of what it was computed with."""

    changes: tuple[str, ...]
    how: How
    seconds: float
    ns: int | None
    points: float
    goodput_percent: float
    replayed: ReplayFacts | None
    accelerator_hours: float | None
    cost: float | None


@dataclass(frozen=True)
class Advice:
    """All of it. bound: what checkpointing could buy at most; it is shown below the levers, not ranked among them.
    deaths: today's average goodput for the earliest, middle and latest moment of death, where none was logged. judged:
    names of levers that the log can say something about; of those that are not among `levers`, nothing is to be had."""

    job: str
    recorded: Recorded
    record: RecordFacts
    saves: SaveFacts
    interval: IntervalAdvice
    curve: tuple[CurvePoint, ...]
    levers: tuple[Lever, ...]
    bound: Lever | None
    scenario: Scenario | None
    deaths: Mapping[Death, float] | None
    diagnostics: tuple[Diagnostic, ...]
    judged: frozenset[str] = frozenset()
    thresholds: tuple[Threshold, ...] = ()
