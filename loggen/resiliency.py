"""Lines of one attempt as a resiliency library writes them (format C): starts, checkpoints, ends."""

from __future__ import annotations

import json
from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from loggen.block import Block, Page, chunks
from loggen.chance import US, Chance, to_micros
from loggen.scenario import Ending, PlannedAttempt, Scenario

_QUEUE_SECONDS = 60.0
_RANK_LAG_SECONDS = 3.0
_END_LINES = {Ending.LOGGED: "job_terminated", Ending.CRASHED: "job_crashed", Ending.CLEAN: "job_finished"}


def attempt_lines(
    scenario: Scenario, attempt: PlannedAttempt, clock: int, chance: Chance
) -> Generator[Block, None, int]:
    """Yield the lines of one attempt that begins at `clock` (µs); return when it ended."""
    page = Page()
    if scenario.scheduled:
        _add(page, scenario, clock, "user_scheduled")
        clock += chance.micros(_QUEUE_SECONDS)
    clock = _by_ranks(page, scenario, clock, chance, "job_started")
    clock += chance.micros(scenario.init_seconds + scenario.prep_seconds + scenario.restore_seconds)
    if not attempt.failed:
        _add(page, scenario, clock, "checkpoint_loaded", step=attempt.loaded)
    yield page.block()
    if attempt.failed:
        return clock
    step = attempt.loaded
    for start, stop in chunks(attempt.loaded // scenario.save_every + 1, attempt.last_step // scenario.save_every):
        saves = np.arange(start, stop, dtype=np.int64) * scenario.save_every
        block, clock = _checkpoints(scenario, attempt, saves, clock, chance)
        step = int(saves[-1])
        yield block
    clock += round((attempt.last_step - step) * scenario.step_seconds * attempt.cut * US)
    page = Page()
    clock = _end(page, scenario, attempt, clock, chance)
    yield page.block()
    return clock


def _checkpoints(
    scenario: Scenario, attempt: PlannedAttempt, saves: NDArray[np.int64], clock: int, chance: Chance
) -> tuple[Block, int]:
    """Return finished and saved lines of the steps `saves` (int64[s]), and when the last was saved (µs)."""
    steps = np.diff(saves, prepend=np.maximum(attempt.loaded, saves[0] - scenario.save_every))
    spread = scenario.jitter * chance.bell(len(saves)) / np.sqrt(steps)
    training = scenario.step_seconds * steps * (1.0 + spread)
    if saves[0] - scenario.save_every <= attempt.loaded:
        training[0] += scenario.compile_seconds
    saving = to_micros(scenario.save_seconds * (0.8 + 0.4 * chance.uniform(len(saves))))
    saved = clock + np.cumsum(to_micros(training) + saving)
    page = Page()
    for times, event in ((saved - saving, "step_finished"), (saved, "checkpoint_saved")):
        head = f'", "job_name": {json.dumps(scenario.job_name)}, "event_type": "{event}", "step": '
        pairs = zip(iso(times), saves.tolist(), strict=True)
        page.extend(times, [f'{{"timestamp": "{time}{head}{step}}}' for time, step in pairs])
    return page.block(), int(saved[-1])


def _end(page: Page, scenario: Scenario, attempt: PlannedAttempt, clock: int, chance: Chance) -> int:
    if attempt.ending == Ending.LOGGED:
        return _by_ranks(page, scenario, clock, chance, _END_LINES[attempt.ending])
    if attempt.ending in _END_LINES:
        _add(page, scenario, clock, _END_LINES[attempt.ending])
    return clock


def _by_ranks(page: Page, scenario: Scenario, clock: int, chance: Chance, event: str) -> int:
    """Add one line per rank, within a few seconds; return the time of the last."""
    if scenario.ranks == 1:
        _add(page, scenario, clock, event, node_rank=0)
        return clock
    lags = to_micros(_RANK_LAG_SECONDS * chance.uniform(scenario.ranks))
    times = clock + lags - lags.min()
    for rank, time in enumerate(times.tolist()):
        _add(page, scenario, time, event, node_rank=rank)
    return int(times.max())


def _add(page: Page, scenario: Scenario, time: int, event: str, **more: int) -> None:
    stamp = iso(np.array([time], dtype=np.int64))[0]
    page.add(time, json.dumps({"timestamp": stamp, "job_name": scenario.job_name, "event_type": event} | more))


def iso(times: NDArray[np.int64]) -> list[str]:
    """Return µs since 1970 as ISO-8601 texts without a zone, as the library writes them (here they are UTC)."""
    texts: list[str] = np.datetime_as_string(times.astype("datetime64[us]")).tolist()
    return texts
