"""Lives of a job, as the oracle of advice has them."""

from __future__ import annotations

from dataclasses import dataclass, field

from .job import Job

Span = tuple[int, int]


@dataclass
class Life:
    """One life; ns. times: net by place; evals: by position; saves: position -> cost; ready: position -> when it was
    usable, on the clock. resumed: where the next one began."""

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
    """All lives, and the job around them. shift: from where a save is made to what it stores. failed_last:
    whether the last life, with a step, is of the last attempt, and a line says that this was terminated or crashed."""

    job: Job
    lives: list[Life]
    end: int
    last: int
    shift: int
    failed_last: bool = False

    @property
    def window(self) -> int:
        return self.job.t1 - self.job.t0


def covered(spans: list[Span], start: int, end: int) -> int:
    """How much of [start, end) the spans cover."""
    total, reach = 0, start
    for begin, stop in sorted(spans):
        begin, stop = max(begin, reach), min(stop, end)
        if stop > begin:
            total, reach = total + stop - begin, stop
    return total


def latest(lives: list[Life], position: int) -> int:
    """Evals of a step, as the latest life had them that trained it."""
    for life in reversed(lives):
        if life.first <= position < life.stop:
            return life.evals.get(position, 0)
    return 0
