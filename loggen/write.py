"""Write a scenario as a log, and return the known facts of the log."""

from __future__ import annotations

import io
from collections.abc import Generator
from dataclasses import dataclass
from typing import BinaryIO

from loggen import recorder, resiliency
from loggen.block import Block
from loggen.chance import Chance
from loggen.dress import BadLine, shuffled, spoiled, wrapped
from loggen.scenario import Ending, Entry, Model, PlannedAttempt, Scenario
from loggen.story import plan_attempts

_LIFE_SEED = 0
_WRITERS = {Model.RECORDER: recorder.attempt_lines, Model.RESILIENCY: resiliency.attempt_lines}


@dataclass(frozen=True)
class Truth:
    """Known facts of a log, by construction.

    lines: all lines, the bad ones too. attempts: as the accounting counts them; disruptions: passages between them.
    steps_worked: steps that all attempts together worked on, redone ones included (recorder: number of step lines).
    last_step: the last step of the last attempt. kept_steps: steps of the final progress; None when the log does not
    show it (no clean end). failed_starts: attempts that never reached a step. bad: the bad lines, in the order of the
    log.
    """

    lines: int
    attempts: int
    disruptions: int
    steps_worked: int
    last_step: int
    kept_steps: int | None
    failed_starts: int
    bad: tuple[BadLine, ...]


class _Story:
    """Attempts as they are written, with counts of their facts."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.attempts = self.steps_worked = self.failed_starts = 0
        self.last_step = -1
        self.last: PlannedAttempt | None = None

    def blocks(self) -> Generator[Block, None, None]:
        """Yield all lines of the job, in the order of writing."""
        clock = self.scenario.start_us
        write = _WRITERS[self.scenario.model]
        for index, attempt in enumerate(plan_attempts(self.scenario)):
            self._count(attempt)
            chance = Chance(self.scenario.seed, _LIFE_SEED, index)
            clock = yield from write(self.scenario, attempt, clock, chance)
            clock += round(attempt.down_seconds * 1_000_000)

    def _count(self, attempt: PlannedAttempt) -> None:
        # In the same process, an attempt begins only if steps are redone (accounting §3).
        if attempt.entry == Entry.START or attempt.first_step <= self.last_step:
            self.attempts += 1
        self.last = attempt
        if attempt.failed:
            self.failed_starts += 1
            return
        self.last_step = attempt.last_step
        self.steps_worked += attempt.last_step - attempt.first_step + 1

    def kept_steps(self) -> int | None:
        """Steps of the final progress, if the log shows it."""
        if self.last is None or self.last.ending != Ending.CLEAN:
            return None
        if self.scenario.model == Model.RECORDER:
            return self.last_step + 1
        return self.last_step // self.scenario.save_every * self.scenario.save_every


def write_log(scenario: Scenario, stream: BinaryIO) -> Truth:
    """Write the log to `stream` in small parts, and return its known facts."""
    story = _Story(scenario)
    batches = wrapped(story.blocks(), scenario)
    if scenario.shuffle:
        batches = shuffled(batches, scenario)
    bad: list[BadLine] = []
    if scenario.bad_share:
        batches = spoiled(batches, scenario, bad)
    lines = 0
    for batch in batches:
        if batch:
            stream.write(b"\n".join(batch) + b"\n")
        lines += len(batch)
    return Truth(
        lines=lines,
        attempts=story.attempts,
        disruptions=max(0, story.attempts - 1),
        steps_worked=story.steps_worked,
        last_step=story.last_step,
        kept_steps=story.kept_steps(),
        failed_starts=story.failed_starts,
        bad=tuple(bad),
    )


def log_bytes(scenario: Scenario) -> tuple[bytes, Truth]:
    """Return the log in memory, for small ones, and its known facts."""
    stream = io.BytesIO()
    truth = write_log(scenario, stream)
    return stream.getvalue(), truth
