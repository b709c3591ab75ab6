"""Begin of each step of an attempt, and the events inside it.

A step computes, then evaluates if it is an eval step, then saves if it is a save step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loggen.chance import US, Chance, to_micros
from loggen.scenario import PlannedAttempt, Scenario

_SLOW_SHARE = 0.004
_SLOW_FACTOR = 1.6
_HOST_LAG_SECONDS = 0.4


@dataclass(frozen=True)
class Steps:
    """Some consecutive steps of one attempt; times are µs since 1970, UTC, int64.

    numbers, starts, computed: [n], step number, its start, the end of its computing.
    eval_rows, eval_ends: [e], positions of the steps with an eval; it begins when computing ends.
    save_rows: [s], positions of the steps with a save.
    save_starts, save_ends: [s, ranks], the blocking save of each host.
    end: when the last of them ends.
    """

    numbers: NDArray[np.int64]
    starts: NDArray[np.int64]
    computed: NDArray[np.int64]
    eval_rows: NDArray[np.intp]
    eval_ends: NDArray[np.int64]
    save_rows: NDArray[np.intp]
    save_starts: NDArray[np.int64]
    save_ends: NDArray[np.int64]
    end: int


def compute_times(
    scenario: Scenario, attempt: PlannedAttempt, numbers: NDArray[np.int64], chance: Chance
) -> NDArray[np.int64]:
    """Return the computing time of each step: int64[n], µs. Fewer slices compute longer, the first step compiles."""
    seconds = scenario.step_seconds * (1.0 + scenario.jitter * chance.bell(len(numbers)))
    if attempt.slices and scenario.slices:
        seconds *= scenario.slices / attempt.slices
    if scenario.jitter:
        seconds[chance.uniform(len(numbers)) < _SLOW_SHARE] *= _SLOW_FACTOR
    seconds[numbers == attempt.first_step] += scenario.compile_seconds * chance.one(0.9, 1.1)
    seconds[numbers == attempt.hang_step] += attempt.hang_seconds
    return to_micros(seconds)


def lay_out(
    scenario: Scenario, attempt: PlannedAttempt, numbers: NDArray[np.int64], begin: int, chance: Chance
) -> Steps:
    """Return the steps `numbers` (int64[n]), one after the other from `begin` (µs)."""
    spans = compute_times(scenario, attempt, numbers, chance)
    computing = spans.copy()
    eval_rows = rows_of_multiples(numbers, scenario.eval_every)
    eval_spans = to_micros(scenario.eval_seconds * (0.9 + 0.2 * chance.uniform(len(eval_rows))))
    spans[eval_rows] += eval_spans

    save_rows = rows_of_multiples(numbers, scenario.save_every)
    shape = (len(save_rows), scenario.ranks)
    lags = to_micros(_HOST_LAG_SECONDS * chance.uniform(shape[0] * shape[1])).reshape(shape)
    blocking = to_micros(scenario.save_seconds * (0.8 + 0.4 * chance.uniform(shape[0] * shape[1]))).reshape(shape)
    saving = spans[save_rows]
    spans[save_rows] += (lags + blocking).max(axis=1, initial=0)

    ends = begin + np.cumsum(spans)
    starts = ends - spans
    computed = starts + computing
    save_starts = (starts[save_rows] + saving)[:, np.newaxis] + lags
    return Steps(
        numbers, starts, computed, eval_rows, computed[eval_rows] + eval_spans,
        save_rows, save_starts, save_starts + blocking, int(ends[-1]),
    )  # fmt: skip


def until_death(steps: Steps, attempt: PlannedAttempt) -> Steps:
    """Return the steps of an attempt that dies inside its last one: without the eval and the save of that step."""
    if attempt.cut >= 1.0 or int(steps.numbers[-1]) != attempt.last_step:
        return steps
    last = len(steps.numbers) - 1
    evals, saves = steps.eval_rows != last, steps.save_rows != last
    start = int(steps.starts[-1])
    return Steps(
        steps.numbers, steps.starts, steps.computed, steps.eval_rows[evals], steps.eval_ends[evals],
        steps.save_rows[saves], steps.save_starts[saves], steps.save_ends[saves],
        start + round((int(steps.computed[-1]) - start) * attempt.cut),
    )  # fmt: skip


def rows_of_multiples(numbers: NDArray[np.int64], every: int) -> NDArray[np.intp]:
    """Return the positions of the steps that are a multiple of `every`, without step 0."""
    if not every:
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero((numbers % every == 0) & (numbers > 0))


def seconds_between(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> list[float]:
    """Return durations in seconds, exact to the µs."""
    durations: list[float] = ((ends - starts) / US).tolist()
    return durations
