"""How far apart saves are beside what Young's formula says, and what that says of lost training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from goodput_cli.analysis.advice.results import young
from goodput_cli.analysis.insights.insight import About, Candidate
from goodput_cli.analysis.measures import MEASURES
from goodput_cli.analysis.summary import summary_of
from goodput_cli.errors import GoodputError
from goodput_cli.events.schema import Kind
from goodput_cli.vocabulary.categories import Category
from goodput_cli.vocabulary.text import duration_of_seconds, number, plural

if TYPE_CHECKING:
    from goodput_cli.analysis.results import Analysis

_FAR = 2.0
"""Intervals of saves that differ from the best one by this factor are too long or too short."""
_LEAST_FAILURES = 3


@dataclass(frozen=True)
class SavePolicy:
    """How often a job saves, and how often Young's formula says it should (s)."""

    count: int
    """Saves."""
    cost: float
    """For how long one blocks."""
    apart: float
    """Training between two of them."""
    best: float
    """Training between two of them, by the formula."""
    steps: int | None
    """Steps between two of them; None where they name too few."""
    failures: int
    """From so many the formula has its time between failures."""

    @property
    def too_rare(self) -> bool:
        """Whether enough failures say that they are too far apart."""
        return self.failures >= _LEAST_FAILURES and self.apart > _FAR * self.best

    @property
    def too_frequent(self) -> bool:
        """The same for too near."""
        return self.failures >= _LEAST_FAILURES and _FAR * self.apart < self.best

    @property
    def advice(self) -> str:
        """`save about every 50 steps`: to about one digit, since the formula is not surer."""
        best = None if self.steps is None else self.steps * self.best / self.apart
        if best is None or best < 1:
            return f"save about every {duration_of_seconds(self.best)}"
        digits = 2 if f"{best:e}".startswith("1") else 1
        return f"save about every {number(int(float(f'{best:.{digits}g}')))} steps"


def save_policy(analysis: Analysis, failures: int) -> SavePolicy | None:
    """failures: how many ended training. None where there is none, or where the log does not show how far apart saves
    are or what one costs."""
    saves, reliability = analysis.saves, analysis.reliability
    cost = MEASURES["saves.time"].of(summary_of(analysis))
    if saves is None or not cost or reliability is None or not failures:
        return None
    steps, each = _steps_apart(analysis), float(cost)
    apart = _seconds_apart(analysis, saves.interval_seconds, each, steps)
    if apart is None or apart <= 0:
        return None
    best = young(each, reliability.exposure_ns / 1e9 / failures)
    return SavePolicy(saves.count, each, apart, best, steps, failures)


def _seconds_apart(analysis: Analysis, interval: float | None, cost: float, steps: int | None) -> float | None:
    """Training between two saves (s). interval: from one to the next of the same attempt; where no attempt has two, the
    steps between them say it."""
    if interval is not None:
        return interval - cost
    usual = analysis.timeline.usual_step.median
    known = usual[~np.isnan(usual)]
    return None if steps is None or len(known) == 0 else steps * float(known[-1]) / 1e9


def _steps_apart(analysis: Analysis) -> int | None:
    """Steps between two saves; of a single one, those before it. None where saves name no steps."""
    table, kept = analysis.timeline.table, analysis.job.kept_range
    steps = np.unique(table.step[(table.kind == Kind.SAVE) | (table.kind == Kind.SAVED)])
    if len(steps) == 1 and kept is not None:
        return max(int(steps[0]) + 1 - kept[0], 1)
    return int(np.median(np.diff(steps))) if len(steps) > 1 else None


def rare_saves(analysis: Analysis, policy: SavePolicy, wasted: int, failures: int, about: About) -> Candidate:
    """wasted: training (ns) that so many failures took back."""
    window = analysis.window
    text = f"{plural(failures, 'failure')} undid training: saves are {duration_of_seconds(policy.apart)} apart"
    return Candidate("rare_saves", wasted, text, window.start_ns, window.end_ns, failures, about=about,
                     advice=policy.advice if _is_sure(analysis) else None)  # fmt: skip


def _is_sure(analysis: Analysis) -> bool:
    """Whether `advise` would have the interval changed: no insight names one that it would not."""
    from goodput_cli.analysis.advice.curve import exposure_of  # only where saves are too rare
    from goodput_cli.analysis.advice.from_timeline.record import record_of
    from goodput_cli.analysis.advice.interval import interval_advice

    try:
        record = record_of(analysis.timeline, analysis.job.name)
    except GoodputError:
        return False
    return interval_advice(record, exposure_of(record, None)).advice.verdict == "change"


def frequent_saves(analysis: Analysis, policy: SavePolicy, slow: int) -> Candidate:
    """What all saves took but `slow` (ns), which another insight has."""
    window = analysis.window
    ns = sum(row.ns for row in analysis.badput if row.category == Category.SAVE.id) - slow
    each, apart = duration_of_seconds(policy.cost), duration_of_seconds(policy.apart)
    text = f"{plural(policy.count, 'save')} of {each}, {apart} apart"
    return Candidate("frequent_saves", ns, text, window.start_ns, window.end_ns, policy.count,
                     about=About(categories=(Category.SAVE.id,)),
                     advice=policy.advice if _is_sure(analysis) else None)  # fmt: skip


def lost_training(analysis: Analysis, policy: SavePolicy | None) -> str:
    """What to do where failures took back more training than they kept the job down."""
    if analysis.saves is None or analysis.saves.count == 0:
        return "save checkpoints, or log them: the log shows no save"
    if policy is None:
        return "see whether saving more often would pay"
    if policy.apart > _FAR * policy.best:
        return f"see whether to save more often: saves are {duration_of_seconds(policy.apart)} apart"
    return "saves are frequent enough; see what would gain most"
