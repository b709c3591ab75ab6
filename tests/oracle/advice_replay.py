"""Replay and curve of advice, step by step, from the text of docs/advice.md alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from .lives import Record, TrainedAttempt, latest

Path = list[tuple[int, int]]
Save = Callable[[int, int], int | None]
"""(attempt, position) -> cost of a save there, ns; None if there is no save."""


def as_recorded(record: Record) -> Save:
    def cost(index: int, position: int) -> int | None:
        life = record.lives[index]
        if life.first < position <= life.stop:
            return life.saves.get(position)
        return next((one.saves[position] for one in record.lives if position in one.saves), None)

    return cost


def every(record: Record, steps: int, usual: int) -> Save:
    origin = record.lives[0].first

    def cost(index: int, position: int) -> int | None:
        own = record.lives[index].saves.get(position)
        first = next((one.saves[position] for one in record.lives if position in one.saves), None)
        shown = own if own is not None else first
        if position == record.end:
            return shown
        step = position - 1
        if step > origin and step % steps == 0:
            return usual if shown is None else shown
        return None

    return cost


def replay(record: Record, save: Save) -> tuple[int | None, Path]:
    """Return the length (ns; None: never ends) and, for each death, its position and the begin of the next attempt."""
    lives, last = record.lives, record.last
    position, usable = lives[0].first, {lives[0].first}
    path: Path = []
    index, place, wraps = 0, 0, 0
    clock = lives[0].begin - record.job.t0 + lives[0].startup
    budget: float = budget_of(record, 0)
    while position != record.end:
        died = True
        life = lives[index]
        took = step_time(record, life, place, position)
        if budget >= took:
            budget, clock, position, place = budget - took, clock + took, position + 1, place + 1
            cost = save(index, position)
            died = cost is not None and budget < cost
            if cost is not None and not died:
                budget, clock = budget - cost, clock + cost
                usable.add(position + record.shift)
        if not died:
            continue
        if index == last:
            if position == record.end:
                break
            wraps, index = wraps + 1, 0
            budget = math.inf if last == 0 else budget + budget_of(record, 0)
            if wraps > 200:
                return None, path
            continue
        clock += int(budget) + life.hang
        resumed = min(resume(record, index, position, usable), record.end)
        usable = {one for one in usable if one <= resumed} | {resumed}
        path.append((position, resumed))
        if len(path) > 5000:
            return None, path
        position, place, index = resumed, 0, index + 1
        clock += lives[index].begin - lives[index - 1].death + lives[index].startup
        budget = budget_of(record, index)
    return clock + tail(record), path


def budget_of(record: Record, index: int) -> int:
    life = record.lives[index]
    if index != record.last:
        return life.budget
    steps = range(record.end - life.first)
    return (
        sum(life.times[step] + life.evals.get(life.first + step, 0) for step in steps)
        + sum(cost for position, cost in life.saves.items() if position <= record.end)
    )  # fmt: skip


def tail(record: Record) -> int:
    life = record.lives[record.last]
    return record.window - (life.begin - record.job.t0) - life.startup - budget_of(record, record.last)


def step_time(record: Record, life: TrainedAttempt, place: int, position: int) -> int:
    plain = life.times[place] if place < len(life.times) else life.usual
    own = life.first <= position < life.stop
    return plain + (life.evals.get(position, 0) if own else latest(record.lives, position))


@dataclass
class End:
    kind: str
    died: int
    newest: int


def ends(record: Record) -> list[End]:
    """Return how each attempt ended, from its records."""
    found = []
    for life in record.lives:
        died = life.stop
        stored = [at + record.shift for at in life.saves if at + record.shift <= died + 1]
        newest = max([life.first, *stored])
        if life.resumed is None:
            kind = "end"
        elif life.clean:
            kind = "stop"
        else:
            kind = "newest" if life.resumed == newest else "older" if life.resumed < newest else "beyond"
        found.append(End(kind, died, newest))
    return found


def resume(record: Record, index: int, position: int, usable: set[int]) -> int:
    end, resumed = ends(record)[index], record.lives[index].resumed
    assert resumed is not None
    newest = max((one for one in usable if one <= position + 1), default=position)
    if end.kind == "newest":
        return newest
    if end.kind == "older":
        older = max((one for one in usable if one <= resumed), default=None)
        return resumed if older is None or older == checkpoint_of_record(record, index) else older
    back = position - (end.died - resumed)
    return back if end.kind == "stop" else max(back, newest)


def checkpoint_of_record(record: Record, index: int) -> int | None:
    """Return the newest checkpoint in the record, not above the begin of the next attempt."""
    usable = {record.lives[0].first}
    for life, end in zip(record.lives[: index + 1], ends(record), strict=False):
        assert life.resumed is not None
        usable |= {at + record.shift for at in life.saves if at + record.shift <= end.died + 1}
        usable = {one for one in usable if one <= life.resumed}
        if life is record.lives[index]:
            return max(usable, default=None)
        usable.add(life.resumed)
    return None


def average(record: Record, interval: int, cost: float, half: float = 0.0) -> float:
    """Return T(N), s. half: weight of an additional failure of an attempt as long as the record."""
    lives, how = record.lives, ends(record)
    real = [bool(life.times) or life.clean or life.resumed is None for life in lives]
    counted = [
        life.budget / 1e9
        for life, end, lived in zip(lives, how, real, strict=True)
        if end.kind in ("newest", "older") and lived
    ]
    if record.failed_last:
        counted.append(lives[-1].budget / 1e9)
    budgets = sum(life.budget for life, lived in zip(lives, real, strict=True) if lived) / 1e9
    steps = sum(len(life.times) for life in lives)
    pace = sum(life.gross for life in lives) / 1e9 / steps
    gaps, failed = 0, False
    for life, following, end, lived in zip(lives, lives[1:], how, real, strict=False):
        if end.kind not in ("newest", "older", "beyond"):
            continue
        failed = failed or lived
        if failed:  # a start that died before a step finished is a part of the cost of the failure before it
            gaps += life.hang + following.begin - life.death + following.startup + (0 if lived else life.budget)
    extra = 0
    for life, end in zip(lives, how, strict=True):
        if end.kind == "older":
            extra += end.newest - (life.resumed or 0)
        elif end.kind in ("beyond", "stop"):
            extra += max(end.died - (life.resumed or 0), 0)
    period = interval * pace + cost
    lost = sum(lost_at_end(x, period) for x in counted) + half * lost_at_end(budgets, period)
    kept = interval * pace / period * (1 - lost / budgets) - extra * pace / budgets
    if kept <= 0:
        return math.inf
    fixed = record.window / 1e9 - budgets - gaps / 1e9
    return fixed + kept_work(record) / kept * (1 + gaps / 1e9 / budgets)


def kept_work(record: Record) -> float:
    """Return U, s: a step is kept if no later attempt trained it again on the way to the end."""
    total, stop = 0, record.end
    for index in range(len(record.lives) - 1, -1, -1):
        life = record.lives[index]
        total += sum(
            life.times[at - life.first] + life.evals.get(at, 0) for at in range(life.first, min(life.stop, stop))
        )
        stop = min(stop, life.first)
    return total / 1e9


def lost_at_end(life: float, period: float) -> float:
    def integral(t: float) -> float:
        whole, rest = divmod(t, period)
        return whole * period**2 / 2 + rest**2 / 2

    return (integral(1.5 * life) - integral(0.5 * life)) / life if life else 0.0
