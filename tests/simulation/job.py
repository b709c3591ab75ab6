"""Simulated training job: it runs event by event, with its own clock, and is written as its log."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.support.story import BASE


@dataclass
class Job:
    """A simulated job: each event moves its clock (s since its start) and writes lines."""

    seed: int
    usual: float = 8.0
    """Usual step time (s)."""
    noise: float = 0.02
    """Standard deviation of the logarithm of a step time."""
    name: str = "sim"
    now: float = 0.0
    step_number: int = 0
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    def write_line(self, **keys: Any) -> None:
        """Write a line of the log; keys that end in `_time` count from the start of the simulation."""
        moved = {key: round(BASE + value, 3) if key.endswith("_time") else value for key, value in keys.items()}
        self.lines.append(json.dumps({"job_name": self.name, **moved}))

    def event(self, kind: str, **more: Any) -> None:
        """Write a line of the native format at the current time."""
        self.write_line(goodput_event=kind, goodput_time=self.now, **more)

    def start(self, seconds: float = 40.0) -> None:
        """Start an attempt, with its initialization and preparation."""
        self.write_line(job_start_time=self.now)
        self.write_line(tpu_init_start_time=self.now)
        self.now += 0.4 * seconds
        self.write_line(tpu_init_end_time=self.now)
        self.write_line(training_prep_start_time=self.now)
        self.now += 0.6 * seconds
        self.write_line(training_prep_end_time=self.now)

    def restore(self, step: int, seconds: float = 20.0) -> None:
        """Restore a checkpoint; training goes on with the step after it."""
        self.write_line(step=step, event_type="restore", directory="gs://b/c", checkpoint_manager_start_time=self.now,
                 checkpoint_manager_duration_secs=seconds)  # fmt: skip
        self.now += seconds
        self.step_number = step + 1

    def step(self, seconds: float | None = None) -> float:
        """Run one step and return its seconds."""
        took = (self.usual if seconds is None else seconds) * float(np.exp(self.random.normal(0, self.noise)))
        self.write_line(step_count=self.step_number, step_start_time=self.now)
        self.now += took
        self.step_number += 1
        return took

    def steps(self, count: int, seconds: float | None = None, *, saves: int = 0, save: float = 6.0) -> None:
        """Run many steps. saves: interval of saves in steps."""
        for _ in range(count):
            self.step(seconds)
            if saves and self.step_number % saves == 0:
                self.save(save)

    def save(self, seconds: float = 6.0) -> None:
        """Save the last step, blocking."""
        begin = {"checkpoint_manager_blocking_start_time": self.now}
        took = {"checkpoint_manager_blocking_duration_secs": seconds}
        self.write_line(step=self.step_number - 1, event_type="save", directory="gs://b/c", **begin, **took)
        self.now += seconds

    def background_save(self, *, completes_after: float | None, seconds: float = 2.0) -> None:
        """Start a save that blocks briefly and is complete later; never if completes_after is None."""
        step = self.step_number - 1
        self.save(seconds)
        if completes_after is not None:
            at, self.now = self.now, self.now + completes_after
            self.event("checkpoint_saved", step=step)
            self.now = at

    def loading(self, seconds: float, *, inside: bool = False) -> None:
        """Load data. inside: during a step, whose time already includes it."""
        self.write_line(data_loading_start_time=self.now)
        self.write_line(data_loading_end_time=self.now + seconds)
        if not inside:
            self.now += seconds

    def custom(self, label: str, seconds: float) -> None:
        """Run a custom phase of the program."""
        for edge in ("start", "end"):
            self.write_line(custom_badput_event_type=label, **{f"custom_badput_event_{edge}_time": self.now})
            self.now += seconds if edge == "start" else 0

    def begin_step(self) -> None:
        """Begin a step that never ends."""
        self.write_line(step_count=self.step_number, step_start_time=self.now)

    def heartbeats(self, seconds: float, every: float = 60.0) -> None:
        """Let time pass while the process writes heartbeats."""
        until = self.now + seconds
        while self.now + every <= until:
            self.now += every
            self.event("heartbeat", step=self.step_number)
        self.now = until

    def crash(self, reason: str | None = None) -> None:
        self.event("crashed", step=self.step_number, **({} if reason is None else {"reason": reason}))

    def end(self) -> None:
        self.write_line(job_end_time=self.now)

    @property
    def text(self) -> list[str]:
        """Return the log in the order of its clock: background lines are written when they happen."""
        return [f"{line}\n" for line in self.lines]
