"""What `goodput advise` answers. Times are seconds where they are averages and ns where the ledger is exact; goodput is
percent, gains are points of goodput. None is *not known*, never 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from goodput_cli.analysis.advice.facts import Recorded, RecordFacts, SaveFacts
from goodput_cli.analysis.advice.formulas import Formulas
from goodput_cli.analysis.sheet import Audience, Sheet
from goodput_cli.analysis.shown import Shown
from goodput_cli.analysis.table import column
from goodput_cli.analysis.threshold import Threshold
from goodput_cli.diagnostics.diagnostic import Diagnostic

Verdict = Literal["keep", "change", "unclear", "refused"]
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
    reason: str | None
    """a code, of refused and unclear"""
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
    luck_points: float | None
    """recorded goodput less today_percent"""
    gain_points: float | None
    """advised less today, on average"""
    gain_ci95_points: tuple[float, float] | None
    """its 95 % interval"""
    probability: float | None
    """of a gain above 0"""
    failures: int
    """that the advice rests on"""
    replayed: ReplayFacts | None
    """the replay at the advised interval; null: none was made"""
    formulas: Formulas
    """for comparison"""
    if_cost: tuple[IfCost, ...]
    """where the cost of a save is not known: the best interval for some costs"""


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
    """of goodput, gained"""
    goodput_percent: float
    """then"""
    replayed: ReplayFacts | None
    """null: no replay was needed or possible"""
    accelerator_hours: float | None
    """seconds x accelerators; null without --accelerators"""
    cost: float | None
    """accelerator_hours x price; null without --price-per-hour"""


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
class Advice(Shown):
    """What would have raised the goodput of a job, and by how much."""

    job: str
    """The job name."""
    recorded: Recorded
    """The job as it was."""
    record: RecordFacts
    """What the advice rests on."""
    saves: SaveFacts
    """What saves cost today."""
    interval: IntervalAdvice
    """How often to save."""
    curve: tuple[CurvePoint, ...]
    """Goodput at each interval that was looked at."""
    levers: tuple[Lever, ...]
    """What would have bought goodput, the most first."""
    bound: Lever | None
    """What checkpointing could buy at most; it is shown below the levers, not ranked among them."""
    scenario: Scenario | None
    """What if: all changes together; None: no change was asked for."""
    deaths: IfDeath | None
    """None: every death was logged."""
    diagnostics: tuple[Diagnostic, ...]
    """What looked wrong or had to be assumed."""
    judged: frozenset[str] = frozenset()
    """Names of levers about which the log says something; of those not among `levers`, nothing is to be had."""
    thresholds: tuple[Threshold, ...] = ()
    """Every `--fail-if advice.…` expression, judged."""

    def sheet(self) -> Sheet:
        from goodput_cli.analysis.advice.sheet import levers_sheet

        return levers_sheet(self)
