"""Lines of one attempt as a step recorder and a checkpoint library write them (formats A and B)."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator

import numpy as np
from numpy.typing import NDArray

from loggen.block import Block, Page, chunks, epoch
from loggen.chance import US, Chance
from loggen.scenario import Ending, Entry, PlannedAttempt, Scenario
from loggen.steps import Steps, lay_out, rows_of_multiples, seconds_between, until_death

_WAIT_SECONDS = {Entry.SLICE_DOWN: 240.0, Entry.SCALE_UP: 20.0}
_START_GAP_SECONDS = 2.0
_FAILED_START_SHARE = 0.7
_LOAD_BEGINS, _LOAD_ENDS = 0.1, 0.6
"""Begin and end of an overlapped data load in its step, as shares of the computing."""


class Writer:
    """Writer of the lines of one attempt to a page. `clock` is the current time (µs)."""

    def __init__(self, scenario: Scenario, attempt: PlannedAttempt, clock: int, chance: Chance) -> None:
        self.scenario, self.attempt, self.chance = scenario, attempt, chance
        self.clock = clock
        self.page = Page()
        self.job = json.dumps(scenario.job_name)

    def fact(self, **facts: object) -> None:
        """Write one line at the clock; a value `...` means the clock's time."""
        now = self.clock / US
        known = {key: now if value is ... else value for key, value in facts.items()}
        self.page.add(self.clock, json.dumps({"job_name": self.scenario.job_name} | known))

    def phase(self, name: str, seconds: float) -> None:
        """Write a phase with a start and an end line."""
        self.fact(**{f"{name}_start_time": ...})
        self.clock += self.chance.micros(seconds)
        self.fact(**{f"{name}_end_time": ...})

    def pause(self, seconds: float) -> None:
        """Let about `seconds` pass."""
        self.clock += self.chance.micros(seconds, spread=0.5)

    def prepare(self) -> None:
        """Write training preparation, with the restore of the checkpoint inside."""
        self.fact(training_prep_start_time=...)
        if not self.attempt.loaded:
            self.clock += self.chance.micros(self.scenario.prep_seconds)
        else:
            self.clock += self.chance.micros(self.scenario.prep_seconds * 0.4)
            self.restore()
            self.clock += self.chance.micros(self.scenario.prep_seconds * 0.6)
        self.fact(training_prep_end_time=...)

    def restore(self) -> None:
        """Write the checkpoint library's line about a restore when it is done."""
        begin = self.clock
        self.clock += self.chance.micros(self.scenario.restore_seconds)
        inner = begin + 50_000
        self.fact(
            step=self.attempt.loaded, event_type="restore", directory=directory(self.scenario),
            checkpointer_start_time=inner / US, checkpointer_duration_secs=(self.clock - inner) / US,
            checkpoint_manager_start_time=begin / US, checkpoint_manager_duration_secs=(self.clock - begin) / US,
        )  # fmt: skip

    def slice_counts(self, active: int, available: int) -> None:
        """Write new slice counts."""
        total = self.scenario.slices
        self.fact(
            active_slices=active, total_slices=total, available_slices=available, elastic_slice_counts_timestamp=...
        )


def directory(scenario: Scenario) -> str:
    """Return the directory of the job's checkpoints."""
    return f"gs://example-bucket/{scenario.job_name}/checkpoints"


def attempt_lines(
    scenario: Scenario, attempt: PlannedAttempt, clock: int, chance: Chance
) -> Generator[Block, None, int]:
    """Yield the lines of one attempt that begins at `clock` (µs); return when it ended."""
    writer = Writer(scenario, attempt, clock, chance)
    if attempt.entry == Entry.START:
        _start(writer)
    else:
        _elastic(writer)
    yield writer.page.block()
    if attempt.failed:
        return writer.clock
    for start, stop in chunks(attempt.first_step, attempt.last_step):
        numbers = np.arange(start, stop, dtype=np.int64)
        steps = until_death(lay_out(scenario, attempt, numbers, writer.clock, chance), attempt)
        yield _training(writer, steps)
        writer.clock = steps.end
    yield from _end(writer)
    return writer.clock


def _start(writer: Writer) -> None:
    scenario, attempt = writer.scenario, writer.attempt
    writer.fact(job_start_time=...)
    if attempt.slices:
        writer.slice_counts(attempt.slices, attempt.slices)
    writer.pause(_START_GAP_SECONDS)
    if attempt.failed:
        writer.fact(tpu_init_start_time=...)
        writer.pause(scenario.init_seconds * _FAILED_START_SHARE)
        return
    writer.phase("tpu_init", scenario.init_seconds)
    writer.prepare()
    if scenario.data_loading_every:
        writer.phase("data_loading", scenario.step_seconds)


def _elastic(writer: Writer) -> None:
    """Write an elastic wait, then a re-initialization in the same process, with init, prep and restore inside."""
    scenario, attempt = writer.scenario, writer.attempt
    if attempt.entry == Entry.SLICE_DOWN:
        writer.slice_counts(attempt.slices, attempt.slices)
    else:
        writer.slice_counts(scenario.slices - 1, attempt.slices)
    writer.fact(elastic_wait_event_type=attempt.entry.value, elastic_wait_start_time=...)
    writer.clock += writer.chance.micros(_WAIT_SECONDS[attempt.entry])
    writer.fact(elastic_wait_event_type=attempt.entry.value, elastic_wait_end_time=...)
    writer.fact(elastic_reinit_start_time=...)
    writer.phase("tpu_init", scenario.init_seconds)
    writer.prepare()
    writer.fact(elastic_reinit_end_time=...)
    writer.slice_counts(attempt.slices, attempt.slices)


def _end(writer: Writer) -> Iterator[Block]:
    """Yield the end line, shortly after the last step, if this attempt writes one."""
    if writer.attempt.ending not in (Ending.CLEAN, Ending.LOGGED):
        return
    writer.page = Page()
    writer.pause(_START_GAP_SECONDS)
    writer.fact(job_end_time=...)
    yield writer.page.block()


def _training(writer: Writer, steps: Steps) -> Block:
    """Return the lines of some steps. This makes nearly all lines of a big log."""
    page, job = Page(), writer.job
    pairs = zip(steps.numbers.tolist(), epoch(steps.starts), strict=True)
    page.extend(steps.starts, [f'{{"job_name": {job}, "step_count": {n}, "step_start_time": {t}}}' for n, t in pairs])
    _add_loads(page, writer, steps)
    evaluation = f'{{"job_name": {job}, "custom_badput_event_type": "eval_step", "custom_badput_event'
    _add_times(page, f"{evaluation}_start_time", steps.computed[steps.eval_rows])
    _add_times(page, f"{evaluation}_end_time", steps.eval_ends)
    for host in range(steps.save_starts.shape[1]):
        starts, ends = steps.save_starts[:, host], steps.save_ends[:, host]
        page.extend(ends, _save_lines(writer.scenario, steps.numbers[steps.save_rows], starts, ends))
    return page.block()


def _add_loads(page: Page, writer: Writer, steps: Steps) -> None:
    """Add data loads of the next batch, while the step computes."""
    rows = rows_of_multiples(steps.numbers, writer.scenario.data_loading_every)
    if int(steps.numbers[-1]) == writer.attempt.last_step:
        # An attempt may die before the load of its last step is done.
        rows = rows[rows < len(steps.numbers) - 1]
    starts, spans = steps.starts[rows], steps.computed[rows] - steps.starts[rows]
    load = f'{{"job_name": {writer.job}, "data_loading'
    _add_times(page, f"{load}_start_time", starts + np.rint(spans * _LOAD_BEGINS).astype(np.int64))
    _add_times(page, f"{load}_end_time", starts + np.rint(spans * _LOAD_ENDS).astype(np.int64))


def _add_times(page: Page, head: str, times: NDArray[np.int64]) -> None:
    """Add lines that differ in their time only; `head` is the text up to the end of the key, without its quote."""
    page.extend(times, [f'{head}": {time}}}' for time in epoch(times)])


def _save_lines(
    scenario: Scenario, numbers: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> list[str]:
    """Return one host's lines of the checkpoint library about blocking saves; all arrays int64[s], times in µs."""
    waited = starts + 20_000
    written = ends - (ends - waited) // 20
    place = directory(scenario)
    columns = (
        numbers.tolist(), epoch(starts), seconds_between(starts, ends), seconds_between(starts, waited), epoch(waited),
        seconds_between(waited, written), epoch(written), seconds_between(written, ends),
    )  # fmt: skip
    return [
        json.dumps({
            "job_name": scenario.job_name, "step": step, "event_type": "save", "directory": place,
            "wait_for_prev_start_time": start, "wait_for_prev_duration_secs": wait,
            "checkpointer_blocking_start_time": write_start, "checkpointer_blocking_duration_secs": write,
            "get_old_steps_start_time": list_start, "get_old_steps_duration_secs": listing,
            "checkpoint_manager_blocking_start_time": start, "checkpoint_manager_blocking_duration_secs": span,
            "reached_preemption": False, "preemption_received_at": None, "synchronous": False,
        })
        for step, start, span, wait, write_start, write, list_start, listing in zip(*columns, strict=True)
    ]  # fmt: skip
