"""Pen for stories: a clock, choices drawn by Hypothesis, and one method per line of a log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, TypeVar

from hypothesis import strategies as st

BASE = 1_767_225_600
"""2026-01-01T00:00:00Z, in seconds since 1970: logs begin here."""
JOB = "j"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Record = dict[str, Any]
Choice = TypeVar("Choice")


@cache
def _integers(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high)


def iso(seconds: int) -> str:
    """Return seconds since 1970 as ISO-8601 without a zone."""
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()[:19]


class Pen:
    """Writer of records; `clock` is the current time of the story (s since 1970).

    Choices shrink to the plain case: no event, the first of a list, the lower number.
    """

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self.records: list[Record] = []
        self.clock = BASE

    def number(self, low: int, high: int) -> int:
        """Return an integer, both bounds included."""
        return self._draw(_integers(low, high)) if high > low else low

    def maybe(self, percent: int) -> bool:
        """Return True in about `percent` of cases."""
        return self._draw(_integers(0, 99)) >= 100 - percent

    def choice(self, options: Sequence[Choice]) -> Choice:
        """Return one of the options."""
        return options[self.number(0, len(options) - 1)]

    def wait(self, low: int, high: int) -> None:
        """Advance the clock."""
        self.clock += self.number(low, high)

    def fact(self, **facts: Any) -> None:
        """Write a recorder or Orbax line."""
        self.records.append({"job_name": JOB} | facts)

    def event(self, event_type: str, at: int | None = None, **more: int) -> None:
        """Write a resiliency line, by default at the clock."""
        when = self.clock if at is None else at
        self.records.append({"timestamp": iso(when), "job_name": JOB, "event_type": event_type} | more)

    def phase(self, name: str, start: int, end: int, **label: str | bool) -> None:
        """Write the start and the end line of a phase; sometimes one of them is lost."""
        lost = self.maybe(6)
        if not lost or self.maybe(30):
            self.fact(**label, **{f"{name}_start_time": start})
        if not lost:
            self.fact(**label, **{f"{name}_end_time": end})

    def custom(self, start: int, end: int) -> None:
        """Write a custom event."""
        label = self.choice(("eval", "sdc_check", "Eval"))
        self.phase("custom_badput_event", start, end, custom_badput_event_type=label)

    def save(self, step: int, start: int, seconds: int) -> None:
        """Write an Orbax save, sometimes with parts, as the library writes them."""
        parts: Record = {}
        if self.maybe(20):
            parts = {"wait_for_prev_start_time": start, "wait_for_prev_duration_secs": 0, "synchronous": False}
        self.fact(
            step=step, event_type="save", directory="gs://b/c", **parts,
            checkpoint_manager_blocking_start_time=start, checkpoint_manager_blocking_duration_secs=seconds,
        )  # fmt: skip

    def restore(self, step: int, start: int, seconds: int) -> None:
        """Write an Orbax restore."""
        kind = self.choice(("restore", "emergency_restore"))
        self.fact(
            step=step, event_type=kind, directory="gs://b/c",
            checkpoint_manager_start_time=start, checkpoint_manager_duration_secs=seconds,
        )  # fmt: skip

    def slices(self, active: int, available: int, total: int = 4) -> None:
        """Write slice counts from the clock on."""
        self.fact(
            active_slices=active, total_slices=total, available_slices=available,
            elastic_slice_counts_timestamp=self.clock,
        )  # fmt: skip
