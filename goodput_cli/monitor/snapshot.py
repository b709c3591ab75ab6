"""What a monitor publishes: each job as it was known at one moment.

Badput of an update, zero where it was recorded and did not occur: a curve must fall when all is well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TypeAlias

import numpy as np

from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.insights.patterns import last_step_ns
from goodput_cli.analysis.results import CategoryTime, WindowRow
from goodput_cli.analysis.steps.times import TimedSteps, timed_steps
from goodput_cli.arrays import F64, I64
from goodput_cli.vocabulary.categories import NOT_BADPUT, Category
from goodput_cli.vocabulary.text import safe, shorten


@dataclass(frozen=True)
class Snapshot:
    """An analysis, and what it was known by. Every value is made from the log anew: nothing is counted up."""

    analysis: Analysis
    """Its `rolling` holds the last window of each length."""
    at_ns: int
    """The moment of the answer, ns since 1970 UTC."""
    ideal_step_seconds: float | None = None
    """What a step should take, where the user says so."""
    whole: bool = True
    """Whether the log begins with the job: values of the whole job mean nothing otherwise."""
    label: str = ""
    """What labels call the job, where it is not alone (`job_labels`)."""

    @property
    def shown(self) -> str:
        """What labels call the job."""
        return self.label or job_labels([self.analysis.job.name])[self.analysis.job.name]

    @property
    def ended(self) -> bool:
        """Whether a clean end is believed (accounting §3)."""
        return self.analysis.job.ends_clean

    @property
    def last_event_ns(self) -> int:
        """The last event of the job."""
        return int(self.analysis.table.end.max())

    @cached_property
    def last_step_ns(self) -> int | None:
        """The last line about a step; None where the log holds none."""
        return last_step_ns(self.analysis.table)

    @cached_property
    def deviations(self) -> tuple[I64, F64]:
        """How far each step time in the window is from the ideal one, in the order of the log: numbers of steps, and
        |step time - ideal| in s (accounting §8)."""
        window = self.analysis.window
        steps: TimedSteps = timed_steps(self.analysis.timeline, window.start_ns, window.end_ns)
        ideal = self.ideal_step_seconds or self.analysis.steps.ideal_seconds
        if ideal is None:
            return steps.number[:0], steps.seconds[:0]
        return steps.number, np.abs(steps.seconds - ideal)


Update: TypeAlias = tuple[Snapshot, ...]
"""What targets are given: every job that is followed, as of one look."""
_LONGEST_LABEL = 200


def job_labels(names: Iterable[str]) -> dict[str, str]:
    """What labels call jobs, by name: safe to show, no longer than 200 characters, and no two alike, whatever the logs
    name them: two series that are one would cost the others theirs. Who has a plain name keeps it."""
    labels: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(names, key=lambda name: (name != safe(name) or len(name) > _LONGEST_LABEL, name)):
        label = shorten(safe(name), _LONGEST_LABEL)
        while label in taken:
            label = f"{shorten(safe(name), _LONGEST_LABEL - 10)} #{sha256(f'{label}{name!a}'.encode()).hexdigest()[:8]}"
        taken.add(label)
        labels[name] = label
    return labels


@dataclass(frozen=True)
class Amount:
    """Time in one category, or in one label of custom events."""

    category: str
    label: str | None
    """Safe to show, as the log has it."""
    ns: int
    counted_ns: int
    """What is 100 %."""

    @property
    def percent(self) -> float:
        return 100 * self.ns / self.counted_ns


def badput_of(analysis: Analysis) -> list[Amount]:
    """Of the whole window, and what overlaps training; without categories of which only bounds are known."""
    rows = (*analysis.badput, *analysis.overlapped)
    unknown = {*analysis.not_recorded, *(bound.quantity for bound in analysis.bounds)}
    return _amounts(rows, unknown, analysis.window.counted_ns)


def badput_of_window(row: WindowRow, analysis: Analysis) -> list[Amount]:
    """Of a rolling window; without slowdown where only bounds of it are known."""
    unknown = {*analysis.not_recorded, *([Category.SLOWDOWN.id] if row.is_bounded else [])}
    return _amounts(row.badput, unknown, row.end_ns - row.start_ns - row.excluded_ns)


def _amounts(rows: Iterable[CategoryTime], unknown: Collection[str], counted_ns: int) -> list[Amount]:
    amounts: dict[tuple[str, str | None], int] = {}
    for row in rows:
        if row.category in unknown:
            continue
        key = row.category, None if row.label is None else safe(row.label)
        amounts[key] = amounts.get(key, 0) + row.ns
    seen = {category for category, _ in amounts}
    for category in Category:
        if category not in NOT_BADPUT and category.id not in (*seen, *unknown, Category.CUSTOM.id):
            amounts[category.id, None] = 0
    return [Amount(category, label, ns, counted_ns) for (category, label), ns in amounts.items()]
