"""What is kept of single runs and disruptions while a fleet is added up: enough for the lists of the report."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from goodput_cli.fleet.inventory.labels import RunLabels
from goodput_cli.fleet.store.results import RunDisruption, RunResult

_LIGHT = (
    "job", "run", "runs", "start_ns", "end_ns", "last_event_ns", "events", "documents", "formats", "attempts", "ended",
    "ending",
)  # fmt: skip


@dataclass(frozen=True)
class RunRow:
    """A run as the list of all runs has it. Amounts are of the window."""

    result: RunResult
    """Without spans."""
    labels: RunLabels
    accelerators: int | None
    """Most at once in the window."""
    size: str
    disruptions: int
    failures: int
    ns: int
    counted_ns: int
    """Time without exclusions."""
    productive_ns: int
    chip_ns: int
    """Chip time without exclusions."""
    lost_chip_ns: int


@dataclass(frozen=True)
class WorstDisruption:
    """A disruption and what it cost."""

    job: str
    run: int
    found: RunDisruption
    accelerators: int | None
    price: Fraction | None
    currency: str | None

    @property
    def cost(self) -> int:
        """Chip time (ns) that it took; time, where nobody knows the accelerators."""
        return self.found.lost_ns * (1 if self.accelerators is None else self.accelerators)

    @property
    def order(self) -> tuple[Any, ...]:
        """Known costs first, the highest first; ties by time, job and number."""
        return (self.accelerators is None, -self.cost, self.found.at_ns, self.job, self.run, self.found.number)


def without_spans(result: RunResult) -> RunResult:
    """A result as a list of thousands may hold it."""
    return RunResult(**{name: getattr(result, name) for name in _LIGHT})
