"""What is kept of single runs and disruptions while a fleet is added up: enough for the lists of the report."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import nsmallest
from typing import Any

from goodput_cli.diagnostics.codes import severity_of
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.fleet.inventory.labels import RunLabels
from goodput_cli.fleet.store.results import RunDisruption, RunResult
from goodput_cli.vocabulary.text import plural

_LIGHT = (
    "job", "run", "runs", "start_ns", "end_ns", "last_event_ns", "events", "documents", "formats", "attempts", "ended",
    "ending",
)  # fmt: skip
_FEW = 3
"""So many runs are named where many are meant."""


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
    disruption: RunDisruption
    accelerators: int | None
    price: Fraction | None
    currency: str | None

    @property
    def cost(self) -> int:
        """Chip time (ns) that it took; time, where nobody knows the accelerators."""
        return self.disruption.lost_ns * (1 if self.accelerators is None else self.accelerators)

    @property
    def order(self) -> tuple[Any, ...]:
        """Known costs first, the highest first; ties by time, job and number."""
        what = self.disruption
        return (self.accelerators is None, -self.cost, what.at_ns, self.job, self.run, what.number)


@dataclass
class Noticed:
    """What the accounting noticed in runs, by code and severity: how often, and in which runs."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    runs: Counter[tuple[str, str]] = field(default_factory=Counter)
    names: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    """Some of these runs: the first by name."""

    def add(self, result: RunResult) -> None:
        """What was noticed in one run."""
        for code, severity, count in result.findings:
            key = code, severity
            self.counts[key] += count
            self.runs[key] += 1
            self.names[key].append(run_name(result))
            if len(self.names[key]) > 1000:
                self.names[key] = nsmallest(_FEW, self.names[key])

    def diagnostics(self) -> Iterator[Diagnostic]:
        """One a code and severity."""
        for (code, severity), count in sorted(self.counts.items()):
            runs, names = self.runs[code, severity], ", ".join(nsmallest(_FEW, self.names[code, severity]))
            more = ", …" if runs > _FEW else ""
            message = f"in {plural(runs, 'run')} ({names}{more}); `goodput check -j NAME` shows it"
            yield Diagnostic.of(code, message, count, mild=severity != severity_of(code))


def run_name(result: RunResult) -> str:
    """`llm-7b`, and `llm-7b #2` for one of several runs."""
    return f"{result.job} #{result.run}" if result.runs > 1 and result.run else result.job


def without_spans(result: RunResult) -> RunResult:
    """A result as a list of thousands may hold it."""
    return RunResult(**{name: getattr(result, name) for name in _LIGHT})
