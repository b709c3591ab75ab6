"""The published state of a monitor: each job at one time.

Also the badput of an update, including zeros for recorded categories without time: a curve must fall when the problem
is over.
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
    """An analysis and its context. Every value is computed from the log again, without counters."""

    analysis: Analysis
    """Its `rolling` has the last window of each length."""
    at_ns: int
    """The time of the analysis, ns since 1970 UTC."""
    ideal_step_seconds: float | None = None
    """The ideal step time from the user; None if not given."""
    whole: bool = True
    """True if the log begins with the job: otherwise values of the whole job are meaningless."""
    label: str = ""
    """The name of the job in labels, if there are several (`job_labels`)."""

    @property
    def shown(self) -> str:
        """Return the name of the job in labels."""
        return self.label or job_labels([self.analysis.job.name])[self.analysis.job.name]

    @property
    def ended(self) -> bool:
        """Return True if the job has a trusted clean end (accounting §3)."""
        return self.analysis.job.ends_clean

    @property
    def last_event_ns(self) -> int:
        """Return the time of the last event of the job."""
        return int(self.analysis.table.end.max())

    @cached_property
    def last_step_ns(self) -> int | None:
        """Return the time of the last line about a step; None without one."""
        return last_step_ns(self.analysis.table)

    @cached_property
    def deviations(self) -> tuple[I64, F64]:
        """Return the difference of each step time in the window from the ideal one, in the order of the log: step
        numbers, and |step time - ideal| in s (accounting §8)."""
        window = self.analysis.window
        steps: TimedSteps = timed_steps(self.analysis.timeline, window.start_ns, window.end_ns)
        ideal = self.ideal_step_seconds or self.analysis.steps.ideal_seconds
        if ideal is None:
            return steps.number[:0], steps.seconds[:0]
        return steps.number, np.abs(steps.seconds - ideal)


Update: TypeAlias = tuple[Snapshot, ...]
"""Input of targets: every followed job after one poll."""
_LONGEST_LABEL = 200


def job_labels(names: Iterable[str]) -> dict[str, str]:
    """Return the names of jobs in labels: safe to show, at most 200 characters, and distinct, because equal names would
    merge two series. A name without special characters is unchanged."""
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
class SnapshotAmount:
    """Time in one category, or in one label of custom events."""

    category: str
    label: str | None
    """Safe to show, as logged."""
    ns: int
    counted_ns: int
    """The basis of percentages."""

    @property
    def percent(self) -> float:
        return 100 * self.ns / self.counted_ns


def badput_of(analysis: Analysis) -> list[SnapshotAmount]:
    """Return the badput of the whole window, with overlapped data loading, without categories with only known
    bounds."""
    rows = (*analysis.badput, *analysis.overlapped)
    unknown = {*analysis.not_recorded, *(bound.quantity for bound in analysis.bounds)}
    return _amounts(rows, unknown, analysis.window.counted_ns)


def badput_of_window(row: WindowRow, analysis: Analysis) -> list[SnapshotAmount]:
    """Return the badput of a rolling window; without slowdown if only bounds of it are known."""
    unknown = {*analysis.not_recorded, *([Category.SLOWDOWN.id] if row.is_bounded else [])}
    return _amounts(row.badput, unknown, row.end_ns - row.start_ns - row.excluded_ns)


def _amounts(rows: Iterable[CategoryTime], unknown: Collection[str], counted_ns: int) -> list[SnapshotAmount]:
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
    return [SnapshotAmount(category, label, ns, counted_ns) for (category, label), ns in amounts.items()]
