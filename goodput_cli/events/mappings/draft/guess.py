"""What may count steps, and what lines may say beside them: guesses, which `proof` tests."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from statistics import median

import numpy as np

from goodput_cli.arrays import F64
from goodput_cli.events.mappings.declared import UNITS
from goodput_cli.events.mappings.draft.entries import Group, Log, ValueColumn
from goodput_cli.events.mappings.draft.words import (
    BACKGROUND,
    BEGINS,
    CRASHED,
    ENDS,
    EPOCH,
    EVAL,
    FINISHED,
    INIT,
    OF_A_STEP,
    OF_LAUNCHERS,
    OF_LIVES,
    PREP,
    RESUME,
    ROLLBACK,
    SAVE,
    START,
    STOPPED,
    is_no_step,
    is_other,
    likeness,
    names_no_step,
)
from goodput_cli.events.text.counted_steps import writers_of
from goodput_cli.events.text.stamps import have_one_fraction

_MOST, _RISING, _NEAR = 1_000_000_000, 0.6, 0.24
"""Above the first a number counts tokens, samples or times, and no steps."""
_MOST_GUESSES = 5
_PHASES = (
    ("finished", FINISHED), ("stopped", STOPPED), ("rollback", ROLLBACK), ("resume", RESUME),
    ("save", SAVE), ("eval", EVAL), ("init", INIT), ("start", START), ("prep", PREP),
)  # fmt: skip
"""What lines may say, and the words for it."""


@dataclass(frozen=True)
class StepGuess:
    """A column that may count steps."""

    group: Group
    step: int
    score: float
    done: tuple[int, ...]
    """Of each entry, how many steps are done (`index`: the number of the last)."""
    index: bool = False
    """Whether it counts from 0."""
    epoch: int | None = None
    """The column that numbers the epoch within which it counts."""
    first: int = 1
    """The number of the first epoch."""
    of: int | None = None
    """The column that says how many steps an epoch has."""
    steps: int | None = None
    """How many they are, where no column says it."""
    carried: tuple[Group, int] | None = None
    """Other lines that number the epoch, and their column."""
    counts_epochs: bool = False
    """Whether no line names the epoch: a number that came to its end and begins again is of the next one."""
    is_epoch: bool = False
    """Whether it counts epochs, of a log that names no other steps."""
    begins: bool = False
    """Whether its lines say that a step begins."""
    each: tuple[int, str, str] | None = None
    """The column of the time of a step, its unit, and of what it is: `mean`, or `all` since the last record."""
    elapsed: tuple[int, str] | None = None
    """The column of the time since something began, and its unit; "": a clock."""

    @cached_property
    def stride(self) -> int:
        """How many steps records mostly stand apart."""
        return usual_stride(self.done)[0]

    @property
    def column(self) -> ValueColumn:
        return self.group.columns[self.step]

    @property
    def name(self) -> str:
        """What stands before its number."""
        return self.column.name or f"{self.column.texts[0]}, …"

    @property
    def is_named(self) -> bool:
        """Whether its words say that it counts steps, or epochs."""
        return self.is_epoch or likeness(self.column.name) > 0

    @property
    def totals(self) -> frozenset[int]:
        """Of how many its lines say that it is one, where its number does not begin anew."""
        in_epochs = self.epoch is not None or self.carried is not None or self.counts_epochs
        of = None if in_epochs else self.column.of
        return frozenset() if of is None else frozenset(self.group.columns[of].whole or ())


@dataclass(frozen=True)
class PhaseGuess:
    """What lines may say beside the steps."""

    event: str
    group: Group
    edge: str = ""
    """`begin` or `end` where other lines say the other."""
    took: tuple[tuple[int, str], ...] = ()
    """The columns that may be its length, with their units, the likeliest first."""
    background: bool = False


def may_count_steps(log: Log, group: Group) -> bool:
    """Return True unless the lines of a group are plainly about something else."""
    return log.records or not is_no_step(group.first.text)


def step_guesses(log: Log) -> list[StepGuess]:
    """What may count steps, the likeliest first: at most `_MOST_GUESSES`."""
    epochs = next((found for group in log.groups if (found := _epoch_lines(group)) is not None), None)
    groups = [group for group in log.groups[:200] if may_count_steps(log, group)]
    guesses = [one for group in groups for one in _of_group(group, epochs)]
    guesses = [one for one in guesses if not any(_counts_for(one, other) for other in guesses)]
    most = max((len(one.done) for one in guesses if not is_other(one.group.about)), default=0)
    rare = {id(one): is_other(one.group.about) or 5 * len(one.done) <= most for one in guesses}  # such as of a start
    ranked = sorted(guesses, key=lambda one: (rare[id(one)], -one.score))
    of_epochs = [one for group in groups for one in _epochs_as_steps(group)]
    of_epochs.sort(key=lambda one: (is_other(one.group.about), -one.score))
    ranked = [*ranked[: _MOST_GUESSES - min(2, len(of_epochs))], *of_epochs][:_MOST_GUESSES]
    return [_ordered(one, [*guesses, *of_epochs]) for one in ranked]


def _counts_for(one: StepGuess, other: StepGuess) -> bool:
    """Whether the first counts so many of whatever for each one that the second counts, as samples for each step."""
    if one.group is not other.group or one.step == other.step or likeness(one.column.name) > 0:
        return False
    pairs = list(zip(one.done, other.done, strict=True))
    return all(b > 0 and a % b == 0 for a, b in pairs) and len({a // b for a, b in pairs} - {1}) == 1


def _ordered(one: StepGuess, guesses: Iterable[StepGuess]) -> StepGuess:
    """Of two wordings with one number the later one is the record; of one that says that a step begins, the other; else
    it is the begin."""
    if not BEGINS.search(one.group.about[:60]) or ENDS.search(one.group.about) or len(one.done) < 2:
        return one
    later = (two for two in guesses if two.done == one.done and two.group.places[0] > one.group.places[0])
    return next(later, replace(one, begins=True, index=False))


def _of_group(group: Group, elsewhere: tuple[Group, int] | None) -> Iterator[StepGuess]:
    if len(group.entries) < 2 or re.search(f"{SAVE}|{RESUME}", group.about[:60]):
        return
    for at, column in enumerate(group.columns):
        values = column.whole
        other = column.unit is not None or not column.counts or column.joined or EPOCH.search(column.name)
        if values is None or other or max(values) > _MOST:
            continue
        guess = _guess(group, at, values, elsewhere)
        if guess is not None:
            yield guess
        alone = group.of_one(column.of) if column.of is not None else None
        of_one = _guess(alone, at, alone.columns[at].whole or [], elsewhere) if alone is not None else None
        if of_one is not None:
            yield of_one


def _guess(group: Group, at: int, values: list[int], elsewhere: tuple[Group, int] | None) -> StepGuess | None:
    column, about_other = group.columns[at], is_other(group.about)
    made = _within_epochs(StepGuess(group, at, 0.0, tuple(values)), values, elsewhere)
    likely = likeness(column.name) + (1.5 if column.of is not None else 0.0)
    likely += 1.0 if "global" in column.name else 3.0 if column.name.endswith("num updates") else 0.0
    told = [b for a, b in zip([None, *made.done], made.done, strict=False) if a != b]
    rises, numbers = _rising(told), len(made.done)
    if rises < _RISING:
        told = list(_of_one_writer(group, made.done))
        rises, numbers = _rising(told), len(told)
    constant = len(set(values)) < 2 and column.of is None
    if constant or rises < _RISING or len(set(made.done)) < min(3, len(group.entries)) or likely < 0:
        return None
    regular = usual_stride(told)[1] / max(1, numbers - 1)
    if likely == 0 and (about_other or regular < _RISING or len(group.entries) < 3):
        return None
    score = likely + regular + rises + math.log10(len(group.entries)) - 2.0 * about_other
    return _timed(replace(made, index=_is_index(made, values), score=score))


_FEW_WRITERS = 8


def _of_one_writer(group: Group, done: Sequence[int]) -> Sequence[int]:
    """The numbers of the process that wrote most of them, if a few that no prefix names take turns: their numbers fall
    from line to line, or come again at once. The number of an epoch does neither."""
    clocks = [one.place if one.ns is None else one.ns for one in group.entries]
    pairs = list(zip(pairwise(done), pairwise(clocks), strict=True))
    again = [d - c for (a, b), (c, d) in pairs if a == b]
    ahead = [d - c for (a, b), (c, d) in pairs if a < b]
    at_once = again and ahead and 4 * float(np.median(again)) < float(np.median(ahead))
    if not at_once and not any(b < a for (a, b), _ in pairs):
        return done
    writers = writers_of(done, clocks)
    if max(writers) >= _FEW_WRITERS:
        return done
    most, _ = Counter(writers).most_common(1)[0]
    return [number for number, writer in zip(done, writers, strict=True) if writer == most]


def _is_index(made: StepGuess, values: Sequence[int]) -> bool:
    """Whether numbers count from 0."""
    of = made.column.of
    total = None if of is None else next(iter(made.group.columns[of].whole or ()), None)
    stride, _ = usual_stride(values)
    index = min(values) == 0 or (total is not None and stride == 1 and max(values) == total - 1)
    index = index or (stride > 1 and all(value % stride == stride - 1 for value in values))
    drawn = any(one.is_elapsed for one in made.group.columns)
    return index and (total is None or max(values) != total) and not drawn


def _timed(made: StepGuess) -> StepGuess:
    """With what says how long steps took."""
    entries = made.group.entries
    has_times = sum(one.ns is not None for one in entries) > 0.8 * len(entries)
    each, elapsed = _each(made), None
    if has_times:
        elapsed = _clock_of_process(made)
    else:
        elapsed, each = _elapsed(made, each)
    if each is not None and not has_times and _names_stride(made, each[0]):
        each = (each[0], each[1], "all")
    score = made.score + (0.5 if each is not None or elapsed is not None or has_times else -3.0)
    return replace(made, score=score, each=None if elapsed is not None and not has_times else each, elapsed=elapsed)


def _names_stride(made: StepGuess, at: int) -> bool:
    """Whether lines say of how many steps the time of a column is, as `Time(100 iters): 80.1s`."""
    time, before = made.group.columns[at], made.group.columns[at - 1]
    said = at > 0 and at - 1 not in (made.step, made.epoch, made.column.of) and not time.is_step_time
    return said and made.stride > 1 and before.unit is None and set(before.whole or ()) == {made.stride}


def _epochs_as_steps(group: Group) -> Iterator[StepGuess]:
    """The columns that count epochs: the steps of a log that names no others."""
    for at, column in enumerate(group.columns):
        values = column.whole if EPOCH.search(column.name) and not column.joined else None
        if (
            values is not None
            and len(values) >= 2
            and max(values) <= _MOST
            and _rising(_told(group, values)) >= _RISING
        ):
            made = StepGuess(group, at, 1.0 + math.log10(len(values)), tuple(values), is_epoch=True)
            yield _timed(replace(made, index=_is_index(made, values)))


def _epoch_lines(group: Group) -> tuple[Group, int] | None:
    """Lines that name an epoch and no step, with the column of the epoch."""
    own = [(at, one) for at, one in enumerate(group.columns) if not one.joined]
    if any(likeness(one.name) > 0 for _, one in own) or len(group.entries) < 2:
        return None
    return next(((group, at) for at, one in own if EPOCH.search(one.name) and one.whole), None)


def _within_epochs(made: StepGuess, values: list[int], elsewhere: tuple[Group, int] | None) -> StepGuess:
    """With the epoch within which steps begin anew, where they do."""
    group = made.group
    others = [(row, one) for row, one in enumerate(group.columns) if row != made.step and one.counts and not one.unit]
    own = next((row for row, one in others if EPOCH.search(one.name) and one.whole), None)
    if own is None:
        own = next((row for row, one in others if _numbers_epochs(one, values)), None)
    if own is not None:
        named = group.columns[own].whole or []
    elif elsewhere is None or elsewhere[0] is group or group.places[0] < elsewhere[0].places[0]:
        return _by_full_counts(made, values)  # lines that name an epoch where it ends
    elif not {one.process for one in group.entries} <= {one.process for one in elsewhere[0].entries}:
        return _by_full_counts(made, values)  # or that of other processes
    else:
        places, numbers = elsewhere[0].places, elsewhere[0].columns[elsewhere[1]].whole or []
        named = [numbers[max(0, bisect_right(places, one) - 1)] for one in group.places]
    changes = [row for row, (a, b) in enumerate(pairwise(named), 1) if b > a]
    anew = [row for row in changes if values[row] <= values[row - 1]]
    if not changes or len(anew) < 0.8 * len(changes):
        return made
    first, of = (0 if min(named) == 0 else 1), made.column.of
    steps = None if of is not None else _steps_of_an_epoch(values)
    if group.only is not None and of == group.only[0]:
        of, steps = None, int(group.only[1])
    sizes = [steps or 0] * len(values) if of is None else group.columns[of].whole or [0] * len(values)
    done = tuple(max(0, epoch - first) * size + value for epoch, size, value in zip(named, sizes, values, strict=True))
    return replace(
        made, done=done, epoch=own, first=first, of=of, steps=steps, carried=elsewhere if own is None else None
    )


def _by_full_counts(made: StepGuess, values: list[int]) -> StepGuess:
    """With epochs that no line names: wherever a number falls, it had come to the end that its line states."""
    sizes = None if made.column.of is None else made.group.columns[made.column.of].whole
    falls = [row for row, (a, b) in enumerate(pairwise(values), 1) if b < a]
    if sizes is None or not falls:
        return made
    last = -1 if _is_index(made, values) else 0
    full = [row for row in falls if values[row - 1] - last == sizes[row - 1] == sizes[row]]
    if len(full) < 0.5 * len(falls):
        return made
    done, epoch = [], 0
    for row, value in enumerate(values):
        if row in full:
            epoch += 1
        done.append(epoch * sizes[row] + value)
    return replace(made, done=tuple(done), of=made.column.of, counts_epochs=True)


def _numbers_epochs(column: ValueColumn, values: Sequence[int]) -> bool:
    """Whether numbers go up by one where values fall to where they began, and nowhere else: those of epochs, whatever
    they are called; not those of attempts and processes, which may redo a part only. A restart may repeat some."""
    numbers = column.whole
    if numbers is None or OF_LIVES.search(column.name) or names_no_step(column.name):
        return False
    ahead = [(d - c, b < a) for (a, b), (c, d) in zip(pairwise(values), pairwise(numbers), strict=True)]
    falls = [by for by, fell in ahead if fell]
    ups = falls.count(1)
    if not ups or any(by for by, fell in ahead if not fell) or any(by > 1 for by in falls) or 2 * ups <= len(falls):
        return False
    return (min(numbers) <= 1 or ups > 1) and all(b <= values[0] for a, b in pairwise(values) if b < a)


def _steps_of_an_epoch(values: Sequence[int]) -> int:
    """How many steps an epoch has, by the greatest number that was printed and the usual distance between two."""
    stride, _ = usual_stride(values)
    greatest, least = max(values), min(values)
    if least == 0:
        return greatest + stride
    return greatest + 1 if stride > 1 and least % stride == stride - 1 else greatest


def usual_stride(numbers: Iterable[int]) -> tuple[int, int]:
    """By how much numbers mostly go up, and how often; (1, 0) where none does."""
    strides = Counter(b - a for a, b in pairwise(numbers) if b > a)
    return strides.most_common(1)[0] if strides else (1, 0)


def _told(group: Group, values: Sequence[int]) -> list[int]:
    """Numbers without those of lines that stand twice."""
    texts = [one.line for one in group.entries]
    return [value for a, b, value in zip(["", *texts], texts, values, strict=False) if a != b]


def _rising(values: Sequence[int]) -> float:
    """Which part of numbers is above the one before."""
    return float(np.mean(np.diff(values) > 0)) if len(values) > 1 else 0.0


def usual_step(times: Sequence[int | None], done: Sequence[int]) -> float | None:
    """The usual time of a step, s, by the times (ns) at which so many were done; None where there are none. Where these
    are known to the second only, steps of 1.3 s mostly seem to take 1 s: then the mean of all that are near to that."""
    first = next((ns for ns in times if ns is not None), 0)
    seconds = np.diff(np.array([math.nan if ns is None else (ns - first) / 1e9 for ns in times]))
    steps = np.diff(np.array(done, dtype=np.float64))
    ahead = (steps > 0) & (seconds >= 0)
    seconds, steps = seconds[ahead], steps[ahead]
    if not (seconds > 0).any():
        return None
    usual = float(np.median((seconds / steps)[seconds > 0]))
    near = np.abs(seconds - usual * steps) <= 1
    if not near.any() or not have_one_fraction(ns for ns in times if ns is not None):
        return usual
    return float(seconds[near].sum() / steps[near].sum())


def in_seconds(value: float, unit: str) -> float:
    """Seconds of an amount in a unit; of a rate, of one step."""
    factor = UNITS[unit]
    return factor * value if factor > 0 else 1 / value if value > 0 else math.inf


def _unit(column: ValueColumn) -> str:
    return column.unit[0] if column.unit is not None else "s"


def _each(made: StepGuess) -> tuple[int, str, str] | None:
    """The column that is the time of one step: where entries have times, one that agrees with them."""
    columns = made.group.columns
    timed = [row for row, one in enumerate(columns) if one.unit is not None and row != made.step]
    timed = [row for row in timed if not _grows(_ahead(columns[row], made.done))]
    timed = [row for row in timed if not any(_is_part(columns[row], columns[other]) for other in timed if other != row)]
    usual = usual_step([one.ns for one in made.group.entries], made.done)
    if usual is None:
        timed.sort(key=lambda row: not columns[row].is_step_time)
        return (timed[0], _unit(columns[timed[0]]), "mean") if timed else None
    for row in timed:
        own = _unit(columns[row])
        values = [value for value in columns[row].numbers if value > 0]
        share = {unit: median(in_seconds(one, unit) for one in values) / usual for unit in (own, "s", "ms") if values}
        fitting = next((unit for unit, one in share.items() if abs(one - 1) < _NEAR), None)
        if fitting is not None:
            return row, fitting, "mean"
        if share and made.stride > 1 and abs(share[own] / made.stride - 1) < _NEAR:
            return row, own, "all"
    return None


def _elapsed(
    made: StepGuess, each: tuple[int, str, str] | None
) -> tuple[tuple[int, str] | None, tuple[int, str, str] | None]:
    """The column that is the time since something began, and that of one step: of several columns that grow the one
    with the greatest value; none where it says another time than all steps took by the time of one, in any unit."""
    columns, done = made.group.columns, made.done
    drawn = next((row for row, one in enumerate(columns) if one.is_elapsed), None)
    if drawn is not None:
        return (drawn, ""), each
    clocks = {
        row: in_seconds(one.numbers[-1], _unit(one)) for row, one in enumerate(columns)
        if one.unit is not None and row != made.step and _is_clock(one, done)
    }  # fmt: skip
    if not clocks:
        return None, each
    row = max(clocks, key=lambda row: clocks[row])
    own, values = _unit(columns[row]), columns[row].numbers
    if each is None:
        return (row, own), None
    pairs = zip(pairwise(done), columns[each[0]].numbers[1:], strict=False)
    took = sum((b - a) * in_seconds(one, each[1]) for (a, b), one in pairs if b > a and one > 0)
    units = dict.fromkeys((own, "s", "ms", "min", "h"))
    fitting = [one for one in units if took and 0.5 < UNITS[one] * (max(values) - min(values)) / took < 2]
    return ((row, fitting[0]) if fitting else None), each


def _clock_of_process(made: StepGuess) -> tuple[int, str] | None:
    """The column of the time since the process began, in a log with a time of day: it passes as that does, and falls
    only where another process begins. It is of use where steps or the clock fall."""
    times = np.array([math.nan if one.ns is None else one.ns / 1e9 for one in made.group.entries])
    passed = np.diff(times)
    for at, column in enumerate(made.group.columns):
        if column.unit is None or _unit(column) == "per_s" or column.is_step_time or at in (made.step, made.epoch):
            continue
        ahead = np.diff(np.array([in_seconds(one, _unit(column)) for one in column.numbers]))
        rises = ahead > 0
        near = np.abs(ahead - passed) <= np.maximum(1.5, 0.05 * passed)
        if rises.mean() >= _RISING and near[rises].mean() >= _RISING and max(column.numbers) > 1.5 * np.median(ahead):
            back = np.diff(np.array(made.done)) <= 0
            return (at, _unit(column)) if (back | ~rises).any() else None
    return None


def _ahead(column: ValueColumn, done: Sequence[int]) -> F64:
    """By how much numbers go up from row to row, but where the step falls."""
    found: F64 = np.diff(np.array(column.numbers))[np.diff(np.array(done)) > 0]
    return found


def _grows(ahead: F64) -> bool:
    """Whether numbers never fall, and rise: then they are no time of one step."""
    return len(ahead) > 1 and bool((ahead >= 0).all() and (ahead > 0).any())


def _is_clock(column: ValueColumn, done: Sequence[int]) -> bool:
    """Whether numbers are the time since something began: they never fall, rise from row to row, come to a multiple of
    the usual distance of two rows, and no words say that they are of one step, or of one thing."""
    if _unit(column) == "per_s" or column.is_step_time or OF_A_STEP.search(column.name):
        return False
    values, ahead = column.numbers, _ahead(column, done)
    growing = _grows(ahead) and np.mean(ahead > 0) >= 0.5
    return bool(growing and max(values) > 1.5 * np.median(ahead) and max(values) - min(values) > 0.3 * max(values))


def _is_part(column: ValueColumn, other: ValueColumn) -> bool:
    """Whether a time is below another one in all rows, of which it is a part then."""
    if column.is_step_time and not other.is_step_time:
        return False  # of one step, beside that of many
    values = [in_seconds(one, _unit(column)) for one in column.numbers]
    others = [in_seconds(one, _unit(other)) for one in other.numbers]
    return values != others and all(a <= b for a, b in zip(values, others, strict=True))


def phase_guesses(log: Log, taken: Sequence[Group]) -> Iterator[PhaseGuess]:
    """What lines may say beside the steps: of each event those with the most words for it, begins and ends of one thing
    together. taken: groups that are steps or epochs."""
    left = [group for group in log.groups[:400] if group not in taken and not re.match(OF_LAUNCHERS, group.about)]
    for event, pattern in _PHASES:
        those = [group for group in left if re.search(pattern, group.about[:200])]
        those = [group for group in those if event != "stopped" or not re.search(CRASHED, group.about[:200])]
        those = [group for group in those if event != "init" or any(_lengths(group))]  # else it is a start
        for group in those:
            edge = _edge(group, those) if event in ("save", "eval") else ""
            yield PhaseGuess(event, group, edge, tuple(_lengths(group)), bool(BACKGROUND.search(group.about)))
        left = [group for group in left if group not in those]


def _edge(group: Group, those: Sequence[Group]) -> str:
    """Which edge of a phase lines say, where about as many others say the other."""
    is_begin = bool(BEGINS.search(group.about)) and not ENDS.search(group.about)
    pair = [one for one in those if one is not group and bool(ENDS.search(one.about)) == is_begin]
    if any(abs(len(one.entries) - len(group.entries)) <= 0.2 * len(group.entries) for one in pair):
        return "begin" if is_begin else "end"
    return ""


def _lengths(group: Group) -> Iterator[tuple[int, str]]:
    """The columns that may say how long something took, the likeliest first."""
    timed = [(at, one) for at, one in enumerate(group.columns) if one.unit is not None and one.counts]
    for at, one in sorted(timed, key=lambda pair: pair[1].is_step_time):
        if _unit(one) != "per_s" and not (one.is_step_time and len(timed) > 1):
            yield at, _unit(one)
