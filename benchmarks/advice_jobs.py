"""Simulated jobs for advice: attempts of a known distribution, steps and saves of constant length. The best interval of
such a job is known, and advice from one record of it is compared with that."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from goodput_cli.analysis.advice.curve import Exposure
from goodput_cli.analysis.advice.record import (
    FLAT,
    JobRecord,
    ReplayAttempt,
    ReplayTotals,
    SaveColumns,
    latest_extra,
    linear_total,
)
from goodput_cli.analysis.advice.replay_attempts import DeathEvidence, JobContext, completed_attempt, with_endings
from goodput_cli.arrays import F64

NS = 10**9
_PARTS = ("down", "queued", "init", "prep", "restore", "load", "elastic", "startup")
"""Parts of `ReplayTotals.before` for each attempt."""


_TURNS = 0.3


@dataclass(frozen=True)
class Job:
    """A simulated job. Seconds; shape: of Weibull attempts of this mean (1: exponential)."""

    shape: float
    mean: float = 9442.0
    cost: float = 13.7
    step: float = 9.0
    gap: float = 300.0
    failures: int = 10
    every: int = 50
    apart: float = 0.0
    """Strength of bursts, 0 to 1: attempts are longer than the mean for a while, then shorter. 0: no bursts."""

    def drawn(self, random: np.random.Generator, count: int) -> F64:
        """Return attempts (s) in sequence; a burst begins or ends after three of ten attempts."""
        scale = self.mean / math.gamma(1 + 1 / self.shape)
        changes = random.random(count) < np.where(np.arange(count) > 0, _TURNS, 0.5) if self.apart else np.zeros(count)
        level: F64 = np.asarray(1 - 2 * (np.cumsum(changes) % 2), dtype=np.float64) * self.apart + 1
        attempts: F64 = np.asarray(random.weibull(self.shape, count), dtype=np.float64)
        return np.multiply(attempts * scale, level)

    def draw_attempts(self, random: np.random.Generator) -> list[int]:
        """Return the attempts of a record, and a last one that is cut somewhere; ns."""
        drawn = self.drawn(random, self.failures + 1)
        drawn[-1] *= random.random()
        return [max(round(float(life) * NS), NS) for life in drawn]


def record_of_job(job: Job, random: np.random.Generator) -> JobRecord:
    """Return one record of a job that saves every `job.every` steps."""
    step, cost, gap = (round(value * NS) for value in (job.step, job.cost, job.gap))
    attempts: list[ReplayAttempt] = []
    traces: list[DeathEvidence] = []
    position, clock = 0, gap
    budgets = job.draw_attempts(random)
    for index, budget in enumerate(budgets):
        censored = index == len(budgets) - 1
        life, seen = _lived(position, clock, budget, step, cost, job.every)
        position = int(life.saves.made_at[-1]) if len(life.saves) else life.first
        attempts.append(life if censored else replace(life, resumed=position))
        death = clock + budget
        traces.append(DeathEvidence(seen, 0, death, seen if censored else death, death, not censored, True, 1))
        clock = (seen if censored else death) + gap
    course = JobContext(True, (), attempts[-1].stop, latest_extra(attempts), 0, "middle")
    attempts = [completed_attempt(life, trace, course) for life, trace in zip(attempts, traces, strict=True)]
    attempts = [
        replace(life, kept=step * ((life.stop if life.resumed is None else life.resumed) - life.first))
        for life in attempts
    ]
    productive = sum(life.kept for life in attempts)
    end = max(life.stop for life in attempts)
    last = max(index for index, life in enumerate(attempts) if life.stop == end)
    none = dict.fromkeys(_PARTS, (0,) * len(attempts))
    return with_endings(
        JobRecord(
            name="simulated", window=clock - gap, productive=productive, step_log=True, shift=0, every=job.every,
            cost=job.cost, cost_given=False, latency=0, asynchronous=False, unit=step, start=0,
            lives=tuple(attempts), end=end, last=last, kept_steps=attempts[-1].stop,
            amounts=ReplayTotals(none, (), 0, 0, 0, None, None, None, {}, job.failures, 0, ()),
        )
    )  # fmt: skip


def _lived(first: int, begin: int, budget: int, step: int, cost: int, every: int) -> tuple[ReplayAttempt, int]:
    """Return one attempt from a position on, and when (ns) its last complete step or save ended."""
    period = every * step + cost
    to_save = (every - (first - 1) % every) if first else every + 1  # steps until the first save is due
    steps, saves = budget // step, 0
    if steps >= to_save:
        left = budget - to_save * step - cost
        saves = 0 if left < 0 else 1 + left // period
        rest = left - (saves - 1) * period if saves else budget - to_save * step
        steps = to_save + (saves - 1) * every + min(rest // step, every) if saves else to_save
    made = first + to_save + every * np.arange(saves, dtype=np.int64)
    work = linear_total(np.arange(steps), np.ones(steps, np.int64), np.full(steps, step), step)
    columns = SaveColumns(made, np.full(saves, cost), np.zeros(saves, np.int64))
    life = ReplayAttempt(0, first, first + steps, begin, 0, 0, 0, step, work, FLAT, columns, False, None, 0)
    return life, begin + steps * step + saves * cost


def true_goodput(job: Job, every: int, attempts: int = 40_000, seed: int = 99) -> float:
    """Return the share (percent) of attempt time and gaps that is kept progress, over very many attempts of the same
    job."""
    drawn = job.drawn(np.random.default_rng(seed), attempts)
    kept = np.floor(drawn / (every * job.step + job.cost)) * every * job.step
    return 100 * float(kept.sum() / (drawn.sum() + attempts * job.gap))


def goodput_of_run(job: Job, record: Exposure, random: np.random.Generator) -> float:
    """Return the goodput (percent) of another run of the job that does the work of a record."""
    left, clock, saved = record.work, record.fixed, job.every * job.step
    period = saved + job.cost
    while True:
        for life in job.drawn(random, 64).tolist():
            if left * period / saved <= life:
                return 100 * record.productive / (clock + left * period / saved)
            left -= life // period * saved
            clock += life + job.gap


def best_interval(job: Job) -> int:
    """Return the interval (steps) of the highest true goodput, among round ones."""
    intervals = sorted({round(1.1**power) for power in range(70)})
    return max(intervals, key=lambda every: true_goodput(job, every))


BURSTS = Job(1.0, apart=0.8)
"""Failures in bursts: attempts are nine times as long in quiet times."""
