"""A job that is lived second by second, and what is true of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from benchmarks.noise import Noise
from goodput_cli.arrays import F64

USUAL = 8.0
"""Step time (s) without noise."""
_LONG = 5.0
"""Multiple of the usual step: time of a step beyond it is a stall (accounting §4)."""
_AT_ONCE = 4096
_MOST = 7.5
"""Times the usual step: noise makes no step that is a minute longer, which would be a hang by its definition."""
BATCH = 256
"""Samples of a step, until it changes."""
EPOCH = 350
"""Steps of one, of programs that count them."""
BEAT = 60.0
"""Between two heartbeats of a process (s)."""


@dataclass(frozen=True)
class Happening:
    """Something that a program may print: when it began and ended (s since the start of the world)."""

    kind: str
    begin: float
    end: float
    step: int = 0
    """Steps done by then; of a restore, those of the checkpoint."""
    text: str = ""
    """Message of a program about its failure."""
    process: int = 0
    """Process of the job: a restart is another one."""


@dataclass(frozen=True)
class Trained:
    """A step, and how long it would have taken without a fault."""

    number: int
    begin: float
    end: float
    undisturbed: float
    """Without what is slow (s)."""
    odd: float = 0.0
    """Part of its time: compiling, or hanging (s)."""
    stalled: float = 0.0
    """The same for a step that takes so long by chance: only a log of each step shows it."""


@dataclass
class World:
    """A job with a clock. Every event moves the clock and is recorded."""

    seed: int
    noise: Noise
    blocking_save: float = 1.0
    """Part of a save that training waits for: 1, or next to nothing if the program saves in the background."""
    compiles: tuple[float, float] = (15.0, 45.0)
    """Range of the extra time of a process's first step (s)."""
    now: float = 0.0
    done: int = 0
    happenings: list[Happening] = field(default_factory=list)
    trained: list[Trained] = field(default_factory=list)
    process: int = 0
    failures: int = 0
    planned: int = 0
    """Planned ends that are followed by another attempt."""
    starts: int = 0
    down: float = 0.0
    """Time from a death to the next start (s)."""
    restarting: float = 0.0
    """Initialisation, preparation and restores of all starts but the first (s)."""
    saved: int = 0
    """The newest checkpoint: steps done."""
    counted_from: float = 0.0
    """Beginning of the analyzed job (s)."""
    usual: float = USUAL

    def __post_init__(self) -> None:
        self.random = np.random.default_rng([self.seed, 39])
        self._paces = self._noise()
        self._first = False
        self._died: float | None = None
        self._begun = False

    def _noise(self) -> Iterator[float]:
        """Factors of step times, without end; the mean of each piece is near 1."""
        while True:
            logs: F64 = self.noise(self.random, _AT_ONCE)
            factors = np.exp(logs)
            yield from (factors / np.mean(np.minimum(factors, _MOST))).tolist()

    def happens(self, kind: str, seconds: float = 0.0, *, step: int | None = None, text: str = "") -> None:
        """It begins now and takes so long."""
        begin, self.now = self.now, self.now + seconds
        at = self.done if step is None else step
        self.happenings.append(Happening(kind, begin, self.now, at, text, self.process))

    def start(self, seconds: float = 45.0) -> None:
        """A process starts, initialises and prepares."""
        if self._died is not None:
            self.down += self.now - self._died
        self._died, self._begun = None, False
        self.process += 1
        self.starts += 1
        self.happens("start")
        self.happens("init", 0.4 * seconds)
        self.happens("prep", 0.6 * seconds)
        self.restarting += seconds if self.starts > 1 else 0.0
        self._first = True

    def restore(self, step: int | None = None, seconds: float = 20.0) -> None:
        """The newest checkpoint is read, or that of a step."""
        self.done = self.saved if step is None else step
        self.happens("restore", seconds)
        self.restarting += seconds

    def again(self, after: float, step: int | None = None) -> None:
        """Restart the job after some time, from the newest checkpoint."""
        self.now += after
        self.start()
        self.restore(step)

    def step(self, factor: float = 1.0, *, longer: float = 0.0, hang: float = 0.0) -> float:
        """A step; longer: seconds that count as training. Returns what it took beyond its undisturbed time."""
        undisturbed = self.usual * min(next(self._paces), _MOST / factor)
        took = undisturbed * factor + longer
        odd = hang
        if self._first:
            self._first = False
            odd += float(self.random.uniform(*self.compiles))
        stalled = took - self.usual if took > _LONG * self.usual else 0.0
        begin, self.done = self.now, self.done + 1
        self.happens("step", took + odd)
        self.trained.append(Trained(self.done, begin, self.now, undisturbed, odd, stalled))
        return took - undisturbed + hang

    def steps(self, count: int, factor: float = 1.0, *, saves: int = 0, save: float = 6.0, evals: int = 0,
              evaluation: float = 40.0) -> float:  # fmt: skip
        """Run steps; saves, evals: one every this many steps. Returns the excess time."""
        lost = 0.0
        for _ in range(count):
            lost += self.step(factor)
            if evals and self.done % evals == 0:
                self.happens("eval", evaluation)
            if saves and self.done % saves == 0:
                self.save(save)
        return lost

    def save(self, seconds: float = 6.0) -> None:
        """A save of what is done, complete when it is over."""
        self.happens("save", seconds * self.blocking_save)
        self.saved = self.done

    def die(self, text: str = "", *, after: float = 0.0, follows: bool = True) -> None:
        """End the process in a step, some time into it; text: its message. follows: True if it is restarted; for the
        last end, the log decides whether it is a failure."""
        self._begins()
        self.now += after
        self.happens("crash" if text else "killed", text=text)
        self.failures += follows or bool(text)
        self._died = self.now

    def fail_to_start(self, text: str, seconds: float) -> None:
        """A start that is dead before its first step."""
        self.start(seconds)
        self._first = False
        self.happens("crash", text=text)
        self.failures += 1
        self._died = self.now

    def stop(self, text: str = "") -> None:
        """End as planned, with the time in the line."""
        self.happens("stop", text=text)
        self.planned += 1

    def finish(self) -> None:
        """The end of training, with a last save."""
        if self.saved < self.done:
            self.save()
        self.happens("finish")

    def _begins(self) -> None:
        """A step begins that is never over."""
        if not self._begun:
            self.happens("begun")
        self._begun = True

    def hang_with_heartbeats(self, seconds: float) -> None:
        """Leave a step in flight, which only heartbeats show."""
        self._begins()
        until = self.now + seconds
        while self.now + BEAT <= until:
            self.now += BEAT
            self.happens("beat")
        self.now = until

    def kept(self) -> list[Trained]:
        """The steps of the final progress."""
        kept: list[Trained] = []
        for one in self.trained:
            while kept and kept[-1].number >= one.number:
                kept.pop()
            kept.append(one)
        return kept

    def wasted(self) -> float:
        """Return the training that is not part of the final progress (s)."""
        return sum(one.end - one.begin for one in self.trained) - sum(one.end - one.begin for one in self.kept())

    def goodput(self, *, of_undisturbed: bool, of_each: bool, hidden: frozenset[str] = frozenset()) -> float:
        """Return percent of the job's time. of_undisturbed: slow steps are not goodput, beyond a reference step time.
        of_each: each step is logged, so one that takes far too long by chance is a stall. hidden: kinds of happenings
        that are part of step times."""
        kept = self.kept()
        spent = sum(
            one.undisturbed if of_undisturbed else one.end - one.begin - one.odd - of_each * one.stalled for one in kept
        )
        spent += sum(one.end - one.begin for one in self._between(kept) if one.kind in hidden)
        return 100 * spent / (self.now - self.counted_from)

    def _between(self, kept: list[Trained]) -> Iterator[Happening]:
        """Yield the happenings between two successive kept steps."""
        pairs = {(one.begin, other.begin) for one, other in pairwise(kept)}
        before, held = 0.0, list[Happening]()
        for one in self.happenings:
            if one.kind == "step":
                yield from held if (before, one.begin) in pairs else ()
                before, held = one.begin, []
            held.append(one)
