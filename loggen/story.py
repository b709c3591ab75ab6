"""Story of a job: its attempts in order, drawn from the intervals of a scenario."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from loggen.chance import Chance
from loggen.scenario import Ending, Entry, Model, PlannedAttempt, Scenario

_STORY_SEED = 1


def plan_attempts(scenario: Scenario) -> Iterator[PlannedAttempt]:
    """Yield the attempts of the job in order; the last one ends according to `scenario.clean_end`."""
    if scenario.attempts:
        yield from scenario.attempts
        return
    yield from _until_full(scenario, _endless(scenario, Chance(scenario.seed, _STORY_SEED)))


def _until_full(scenario: Scenario, endless: Iterator[PlannedAttempt]) -> Iterator[PlannedAttempt]:
    """Yield attempts until the log has its lines; the last one is shortened to fit."""
    left = float(scenario.lines)
    for attempt in endless:
        steps_left = max(1, round((left - scenario.lines_per_start) / scenario.lines_per_step))
        steps = attempt.last_step - attempt.first_step + 1
        if steps >= steps_left and not attempt.failed:
            ending = Ending.CLEAN if scenario.clean_end else Ending.SILENT
            yield replace(
                attempt, last_step=attempt.first_step + steps_left - 1, ending=ending, cut=1.0, down_seconds=0.0
            )
            return
        yield attempt
        left -= scenario.lines_per_start + max(0, steps) * scenario.lines_per_step


def _endless(scenario: Scenario, chance: Chance) -> Iterator[PlannedAttempt]:
    """Yield attempts without end: each begins at a checkpoint of the previous one."""
    attempt = PlannedAttempt(loaded=0, last_step=_last_step(scenario, chance, 0), slices=scenario.slices)
    restarts = 0
    while True:
        restarts += 1
        following = _following(scenario, chance, attempt, restarts)
        yield _ended(scenario, chance, attempt, following)
        if following.entry == Entry.START and _is_nth(restarts, scenario.failed_restarts):
            yield replace(following, last_step=-1, down_seconds=scenario.down_seconds)
        attempt = following


def _following(scenario: Scenario, chance: Chance, attempt: PlannedAttempt, restarts: int) -> PlannedAttempt:
    """Return the attempt after this one."""
    if attempt.entry == Entry.SLICE_DOWN:
        # The slice comes back: no step is lost, the same process goes on with the next one.
        last = _last_step(scenario, chance, attempt.last_step + 1)
        return PlannedAttempt(attempt.last_step, last, entry=Entry.SCALE_UP, slices=scenario.slices)
    loaded = _newest_save(scenario, attempt)
    if _is_nth(restarts, scenario.elastic_restarts):
        last = _last_step(scenario, chance, loaded)
        return PlannedAttempt(loaded, last, entry=Entry.SLICE_DOWN, slices=scenario.slices - 1)
    if _is_nth(restarts, scenario.rollback_restarts):
        loaded = max(0, loaded - scenario.rollback_saves * scenario.save_every)
    return PlannedAttempt(loaded, _last_step(scenario, chance, loaded), slices=scenario.slices)


def _ended(scenario: Scenario, chance: Chance, attempt: PlannedAttempt, following: PlannedAttempt) -> PlannedAttempt:
    """Return the attempt with its end: how it dies, and how long the job is down after it."""
    if following.entry == Entry.SCALE_UP:
        return replace(attempt, cut=1.0)
    cut = chance.one(0.1, 0.9)
    if following.entry == Entry.SLICE_DOWN:
        return replace(attempt, cut=cut)
    endings = [Ending.SILENT, Ending.LOGGED, Ending.SILENT]
    if scenario.model == Model.RESILIENCY:
        endings = [Ending.SILENT, Ending.LOGGED, Ending.CRASHED]
    down = scenario.down_seconds * chance.one(0.5, 2.0)
    return replace(attempt, cut=cut, ending=endings[chance.below(3)], down_seconds=down)


def _last_step(scenario: Scenario, chance: Chance, first: int) -> int:
    if not scenario.disruption_every:
        return first + 10**12
    return first + max(1, round(scenario.disruption_every * chance.one(0.75, 1.25)))


def _newest_save(scenario: Scenario, attempt: PlannedAttempt) -> int:
    """Return the newest checkpoint when an attempt has died inside its last step; 0 if there is none."""
    if not scenario.save_every:
        return 0
    return max(0, (attempt.last_step - 1) // scenario.save_every * scenario.save_every)


def _is_nth(count: int, every: int) -> bool:
    return every > 0 and count % every == 0
