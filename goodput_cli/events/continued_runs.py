"""Runs of one training: restarts whose name does not show which run they continue (docs/formats.md, Restarts as new
runs)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise


@dataclass(frozen=True)
class RunExtent:
    """The time and the steps of a run."""

    name: str
    training: Hashable
    """The training of the run, such as its configuration: only runs with the same value can be one training."""
    begin: int
    end: int
    """The run lasts from `begin`, its first activity, to `end`, its last one; ns UTC."""
    steps: Sequence[int]
    """Distinct and rising step numbers."""

    @property
    def stride(self) -> int:
        """Return the usual difference between two logged step numbers."""
        strides = sorted(after - before for before, after in pairwise(self.steps))
        return strides[len(strides) // 2] if strides else 1


@dataclass
class _Chain:
    """Runs that continue each other, in order."""

    runs: list[RunExtent] = field(default_factory=list)
    last: RunExtent | None = None
    """The last run with steps."""

    def is_continued_by(self, run: RunExtent) -> bool:
        """Return True if the steps of a run continue after those of the chain, or restart after the chain's first
        step."""
        if self.last is None:
            return False
        return self.runs[0].steps[0] < run.steps[0] <= self.last.steps[-1] + self.last.stride


def find_continued_runs(runs: Iterable[RunExtent]) -> dict[str, str]:
    """Return the first run of the training that each run likely belongs to, by name.

    Runs that overlap in time are unrelated, and so are runs that start at the first step. A run without steps belongs
    to a training if it lies between two of its runs. A run that could continue several trainings continues none.
    """
    by_training: defaultdict[Hashable, list[RunExtent]] = defaultdict(list)
    for run in runs:
        by_training[run.training].append(run)
    found: dict[str, str] = {}
    for alike in by_training.values():
        for chain in _chains(sorted(alike, key=lambda run: (run.begin, run.end))):
            found |= {run.name: chain.runs[0].name for run in chain.runs}
    return found


def _chains(ordered: Sequence[RunExtent]) -> list[_Chain]:
    if any(after.begin <= before.end for before, after in pairwise(ordered)):
        return [_Chain([run]) for run in ordered]
    chains: list[_Chain] = []
    without_steps: list[RunExtent] = []
    lowest: int | None = None
    for run in ordered:
        if not run.steps:
            without_steps.append(run)
            continue
        may_continue: list[_Chain] = []
        if lowest is not None and run.steps[0] > lowest:  # with many runs, most start at the first step
            may_continue = list(islice((chain for chain in chains if chain.is_continued_by(run)), 2))
        lowest = run.steps[0] if lowest is None else min(lowest, run.steps[0])
        if len(may_continue) == 1:
            chain = may_continue[0]
            first = len(without_steps)
            while first and without_steps[first - 1].begin > chain.runs[-1].end:
                first -= 1
            chain.runs += without_steps[first:]
            del without_steps[first:]
        else:
            chain = _Chain()
            chains.append(chain)
        chain.runs.append(run)
        chain.last = run
    return [*chains, *(_Chain([run]) for run in without_steps)]
