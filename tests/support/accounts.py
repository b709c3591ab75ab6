"""The account of a story: the totals of its events, in seconds."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from goodput_cli import analyze
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.insights.kinds import Insight
from tests.support.story import SECOND, Lines, iso_time, ns, story_lines

CATEGORY = {
    "startup": "program_startup",
    "init": "tpu_initialization",
    "prep": "training_prep",
    "loading": "data_loading_sync",
    "excluded": "excluded",
    "save": "unproductive_checkpoint_save_time",
    "restore": "unproductive_checkpoint_restore_time",
    "wasted": "wasted_progress_from_disruption",
    "recovery": "infrastructure_recovery_from_disruption",
    "slice_down": "elastic_slice_down",
    "scale_up": "elastic_scale_up",
    "reinit": "elastic_reinitialization",
    "stall": "step_stall",
    "slowdown": "training_slowdown",
    "undetermined": "disruption_undetermined",
}
"""Short names of categories of accounting §2, which `ledger` takes as well as the names."""


@dataclass(frozen=True)
class Account:
    """Result of the accounting for a story."""

    analysis: Analysis

    @cached_property
    def seconds(self) -> dict[str, float]:
        """Seconds by category (`custom_badput_events:LABEL` for custom events), without those that are zero."""
        amounts = {row.name: row.ns for row in (self.analysis.goodput, *self.analysis.badput)}
        amounts["excluded"] = self.analysis.window.excluded_ns
        return {name: ns / SECOND for name, ns in amounts.items() if ns}

    @property
    def total(self) -> float:
        """Length of the window, in seconds."""
        return self.analysis.window.ns / SECOND

    @property
    def percent(self) -> float:
        return self.analysis.goodput.percent

    @property
    def attempts(self) -> int:
        return self.analysis.job.attempts

    @property
    def disruptions(self) -> int:
        return self.analysis.job.disruptions

    @property
    def kept_steps(self) -> float:
        return self.analysis.job.kept_steps

    @property
    def overlapped(self) -> float:
        """Return the seconds of data loading that overlap the ledger."""
        return sum(row.ns for row in self.analysis.overlapped) / SECOND

    def found(self, code: str) -> int:
        """Return the number of cases that the diagnostics of a code count; 0 without any."""
        return sum(one.count for one in self.analysis.diagnostics if one.code == code)

    def message(self, code: str) -> str:
        """Return the message of the diagnostics of a code."""
        return " ".join(one.message for one in self.analysis.diagnostics if one.code == code)

    def lines(self, code: str) -> list[int]:
        """The line numbers that the diagnostics of a code name."""
        return [int(at.rpartition(":")[2]) for one in self.analysis.diagnostics if one.code == code for at in one.where]


def account(
    *events: Lines,
    as_of: float | None = None,
    window: tuple[float, float] | None = None,
    exclude: Iterable[tuple[float, float]] = (),
    reference: str | float | None = None,
    **options: Any,
) -> Account:
    """Account for a story. Times are seconds after BASE; other options are those of `analyze`.

    The promise is checked on every story: the categories add up to the window, to the nanosecond.
    """
    start_ns, end_ns = (None, None) if window is None else (ns(window[0]), ns(window[1]))
    analysis = analyze(
        "-",
        stdin=io.BytesIO("".join(f"{line}\n" for line in story_lines(*events)).encode()),
        as_of=None if as_of is None else ns(as_of),
        start=start_ns,
        end=end_ns,
        exclude=[f"{iso_time(begin)}/{iso_time(finish)}" for begin, finish in exclude],
        reference_step_time=reference,
        **options,
    )
    counted = analysis.goodput.ns + sum(row.ns for row in analysis.badput)
    assert counted == analysis.window.ns - analysis.window.excluded_ns
    return Account(analysis)


def ledger(custom: Mapping[str, float] | None = None, /, **seconds: float) -> dict[str, float]:
    """Return the expected value of `Account.seconds`: `CATEGORY` has the names; custom events go by their label."""
    labels = {f"custom_badput_events:{label}": amount for label, amount in (custom or {}).items()}
    return {CATEGORY.get(name, name): amount for name, amount in seconds.items()} | labels


def insights(*events: Lines, **options: Any) -> dict[str, Insight]:
    """The insights of a story, by code."""
    return {one.code: one for one in account(*events, **options).analysis.insights}
