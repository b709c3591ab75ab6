"""Scenarios: the kind of job to write a log of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from loggen.chance import US


class Model(StrEnum):
    """Library that wrote the log."""

    RECORDER = "recorder"  # steps and phases, with Orbax lines between them (formats A and B)
    RESILIENCY = "resiliency"  # starts and checkpoints, one start line per rank (format C)


class Entry(StrEnum):
    """Begin of an attempt."""

    START = "start"  # a process starts: a start line is written
    SLICE_DOWN = "slice_down"  # in the same process, after a slice was lost
    SCALE_UP = "scale_up"  # in the same process, after a slice came back


class Ending(StrEnum):
    """Lines that an attempt writes when it ends."""

    SILENT = "silent"  # no line
    LOGGED = "logged"  # recorder: a job end, written in a `finally`; resiliency: job_terminated by every rank
    CRASHED = "crashed"  # recorder: nothing; resiliency: job_crashed
    CLEAN = "clean"  # recorder: a job end; resiliency: job_finished


@dataclass(frozen=True)
class PlannedAttempt:
    """Plan of one stretch of training between two interruptions.

    loaded: step of the checkpoint it begins from; 0: from scratch. last_step: the last step it works on; below
    `first_step`: it dies while starting. cut: share of the last step that it completes; 1: all of it, with its eval and
    save. down_seconds: from its end to the next attempt. hang_step, hang_seconds: recorder: a step (none: -1) that
    takes that much longer. slices: active slices; 0: all of them.
    """

    loaded: int
    last_step: int
    ending: Ending = Ending.SILENT
    entry: Entry = Entry.START
    cut: float = 1.0
    down_seconds: float = 0.0
    hang_step: int = -1
    hang_seconds: float = 0.0
    slices: int = 0

    @property
    def first_step(self) -> int:
        """The first step it works on: the one after the checkpoint."""
        return self.loaded + 1 if self.loaded else 0

    @property
    def failed(self) -> bool:
        """True if it dies before its first step."""
        return self.last_step < self.first_step


@dataclass(frozen=True)
class Scenario:
    """A job to write a log of. Equal scenarios give equal bytes, on every machine.

    Intervals (`..._every`) count steps, or restarts if the name states it; 0 is never. Durations are seconds and vary a
    little from one occasion to the next.

    lines: about how many lines to write (with `attempts`: ignored). start: of the first process; without a zone it is
    UTC. ranks: resiliency: nodes, each with its own start line; recorder: hosts that log each save. slices: of an
    elastic job; 0: not elastic, no slice counts. elastic_restarts, rollback_restarts, failed_restarts: interval, in
    interruptions, of an elastic phase (a slice lost, and later back), of a return to a checkpoint `rollback_saves`
    older than the newest, of a failed first start. envelopes: wrap each line as a Cloud Logging entry. bad_share: share
    of extra lines that no reader can use. shuffle: lines in random order (needs a temporary file of the size of the
    log). attempts: the planned attempts, instead of ones drawn from the intervals.
    """

    seed: int = 0
    lines: int = 10_000
    model: Model = Model.RECORDER
    job_name: str = "llm-pretrain"
    start: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    step_seconds: float = 8.0
    jitter: float = 0.02
    compile_seconds: float = 95.0
    init_seconds: float = 40.0
    prep_seconds: float = 55.0
    restore_seconds: float = 30.0
    disruption_every: int = 200
    down_seconds: float = 180.0
    save_every: int = 100
    save_seconds: float = 12.0
    eval_every: int = 50
    eval_seconds: float = 75.0
    data_loading_every: int = 0
    ranks: int = 1
    slices: int = 0
    elastic_restarts: int = 0
    rollback_restarts: int = 0
    rollback_saves: int = 2
    failed_restarts: int = 0
    scheduled: bool = False
    clean_end: bool = True
    envelopes: bool = False
    bad_share: float = 0.0
    shuffle: bool = False
    attempts: tuple[PlannedAttempt, ...] = ()

    def __post_init__(self) -> None:
        """Reject scenarios that cannot be written.

        Raises ValueError with a sentence that names the field.
        """
        counts = {name: value for name, value in vars(self).items() if isinstance(value, int)}
        amounts = {name: value for name, value in vars(self).items() if isinstance(value, float)}
        for name, value in {**counts, **amounts}.items():
            if value < 0:
                raise ValueError(f"{name} must not be negative: {value}")
        if self.step_seconds * (1 - 3 * self.jitter) < 0.001:
            raise ValueError("step_seconds with jitter must leave every step at least 1 ms")
        if self.ranks < 1 or self.lines < 1:
            raise ValueError("ranks and lines must be at least 1")
        if not 0 <= self.bad_share < 1:
            raise ValueError(f"bad_share must be in [0, 1): {self.bad_share}")
        self._check_model()

    def _check_model(self) -> None:
        elastic = bool(self.elastic_restarts) or any(attempt.entry != Entry.START for attempt in self.attempts)
        if elastic and (self.model != Model.RECORDER or self.slices < 2):
            raise ValueError("an elastic job needs the recorder model and at least 2 slices")
        if self.scheduled and self.model != Model.RESILIENCY:
            raise ValueError("only the resiliency model logs that a job was scheduled")
        if self.model == Model.RESILIENCY and not self.save_every:
            raise ValueError("a resiliency log needs save_every: it records checkpoints, not steps")

    @property
    def start_us(self) -> int:
        """Start of the first process: µs since 1970, UTC."""
        start = self.start if self.start.tzinfo else self.start.replace(tzinfo=UTC)
        passed = start - datetime(1970, 1, 1, tzinfo=UTC)
        return (passed.days * 86_400 + passed.seconds) * US + passed.microseconds

    @property
    def lines_per_step(self) -> float:
        """Average number of lines per step."""
        saves = self.ranks / self.save_every if self.save_every else 0.0
        if self.model == Model.RESILIENCY:
            return 2.0 / self.save_every
        evals = 2.0 / self.eval_every if self.eval_every else 0.0
        loads = 2.0 / self.data_loading_every if self.data_loading_every else 0.0
        return 1.0 + evals + saves + loads

    @property
    def lines_per_start(self) -> int:
        """Approximate number of lines per start and end: one attempt in three ends with a line of every rank."""
        return 2 + self.ranks + self.ranks // 3 if self.model == Model.RESILIENCY else 7
