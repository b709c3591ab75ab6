"""From a scenario to a log, and to the simple facts that are true of it."""

from __future__ import annotations

import io
from collections.abc import Generator
from dataclasses import dataclass
from typing import BinaryIO

from loggen import recorder, resiliency
from loggen.block import Block
from loggen.chance import Chance
from loggen.dress import BadLine, shuffled, spoiled, wrapped
from loggen.scenario import Ending, Entry, Life, Model, Scenario
from loggen.story import lives

_LIFE_SEED = 0
_WRITERS = {Model.RECORDER: recorder.life_lines, Model.RESILIENCY: resiliency.life_lines}


@dataclass(frozen=True)
class Truth:
    """What is true of a log, by construction.

    lines: all lines, the bad ones too.
    attempts: lives of the job, as the accounting counts them; disruptions: passages between them.
    steps_worked: steps that all lives together worked on, redone ones included (recorder: number of step lines).
    last_step: the last step of the last life.
    kept_steps: steps of the final progress; None when the log does not show it (no clean end).
    failed_starts: lives that never reached a step.
    bad: the bad lines, in the order of the log.
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
    """The lives as they are written, and the count of what was told."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.attempts = self.steps_worked = self.failed_starts = 0
        self.last_step = -1
        self.last: Life | None = None

    def blocks(self) -> Generator[Block, None, None]:
        """All lines of the job, in the order of writing."""
        clock = self.scenario.start_us
        write = _WRITERS[self.scenario.model]
        for index, life in enumerate(lives(self.scenario)):
            self._count(life)
            chance = Chance(self.scenario.seed, _LIFE_SEED, index)
            clock = yield from write(self.scenario, life, clock, chance)
            clock += round(life.down_seconds * 1_000_000)

    def _count(self, life: Life) -> None:
        # In the same process, an attempt begins only where steps are redone (accounting §3).
        if life.entry == Entry.START or life.first_step <= self.last_step:
            self.attempts += 1
        self.last = life
        if life.failed:
            self.failed_starts += 1
            return
        self.last_step = life.last_step
        self.steps_worked += life.last_step - life.first_step + 1

    def kept_steps(self) -> int | None:
        """Steps of the final progress, if the log shows it."""
        if self.last is None or self.last.ending != Ending.CLEAN:
            return None
        if self.scenario.model == Model.RECORDER:
            return self.last_step + 1
        return self.last_step // self.scenario.save_every * self.scenario.save_every


def write_log(scenario: Scenario, stream: BinaryIO) -> Truth:
    """Writes the log to `stream`, a little at a time, and returns what is true of it."""
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
    """The log in memory, for small ones, and what is true of it."""
    stream = io.BytesIO()
    truth = write_log(scenario, stream)
    return stream.getvalue(), truth
