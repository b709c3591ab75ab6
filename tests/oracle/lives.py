"""Attempts of a job for the oracle of advice."""

from __future__ import annotations

from dataclasses import dataclass, field

from .job import Job

Span = tuple[int, int]


@dataclass
class TrainedAttempt:
    """One attempt; ns. times: net by position; evals: by position; saves: position -> cost; ready: position -> clock
    time at which it was usable. resumed: position where the next one began."""

    attempt: int
    first: int
    begin: int
    times: list[int] = field(default_factory=list)
    evals: dict[int, int] = field(default_factory=dict)
    saves: dict[int, int] = field(default_factory=dict)
    ready: dict[int, int] = field(default_factory=dict)
    startup: int = 0
    hang: int = 0
    budget: int = 0
    death: int = 0
    seen: int = 0
    usual: int = 0
    clean: bool = False
    complete: bool = True
    resumed: int | None = None

    @property
    def stop(self) -> int:
        return self.first + len(self.times)

    @property
    def gross(self) -> int:
        return sum(self.times) + sum(self.evals.values())


@dataclass
class Record:
    """All attempts, and the job around them. shift: from the step of a save to the step that it stores. failed_last:
    True if the last of these is the last attempt of the job, and a line states that it was terminated or crashed."""

    job: Job
    lives: list[TrainedAttempt]
    end: int
    last: int
    shift: int
    failed_last: bool = False

    @property
    def window(self) -> int:
        return self.job.t1 - self.job.t0


def covered(spans: list[Span], start: int, end: int) -> int:
    """Return how much of [start, end) the spans cover."""
    total, reach = 0, start
    for begin, stop in sorted(spans):
        begin, stop = max(begin, reach), min(stop, end)
        if stop > begin:
            total, reach = total + stop - begin, stop
    return total


def latest(lives: list[TrainedAttempt], position: int) -> int:
    """Return the evals of a step in the latest attempt that trained it."""
    for life in reversed(lives):
        if life.first <= position < life.stop:
            return life.evals.get(position, 0)
    return 0
