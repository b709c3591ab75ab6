"""Guess which numbers count steps and what other lines mean; `proof` tests the guesses."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from goodput_cli.arrays import F64, I64, Mask
from goodput_cli.events.mappings.declared import UNITS
from goodput_cli.events.mappings.draft.entries import (
    NO_TIME,
    Group,
    Log,
    ValueColumn,
    has_values,
    in_seconds,
    usual_step,
    usual_stride,
)
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
    is_not_step,
    is_other,
    likeness,
    names_no_step,
)
from goodput_cli.events.text.counted_steps import writers_of
from goodput_cli.events.text.programs.stages import number_of_stage

_MOST, _RISING, _NEAR, _FEWEST_OF_CLOCK = 1_000_000_000, 0.6, 0.24, 5
_OF_AN_EPOCH = re.compile(
    r"\bepoch (?:time|duration|runtime|elapsed|took)$"
    r"|\b(?:time|duration|took)(?: (?:of|per|for|an|each|the|this)){0,3} epoch$"
)
_FEWEST_LEFT, _LEFT = 3, 0.25
"""Fewest rows in a quarter of a run, and the ratio of the last to the first quarter below which a time is what is left
until the end."""
"""Limit above which a number counts tokens, samples or times rather than steps."""
_MOST_GUESSES = 5
_PHASES = (
    ("finished", FINISHED), ("stopped", STOPPED), ("rollback", ROLLBACK), ("resume", RESUME),
    ("save", SAVE), ("eval", EVAL), ("init", INIT), ("start", START), ("prep", PREP),
)  # fmt: skip
"""Events of other lines, and the words for them."""
_UNLESS = {"finished": RESUME, "stopped": CRASHED}
"""Words of lines that report another event."""


@dataclass(frozen=True, eq=False)
class StepGuess:
    """A column that may count steps."""

    group: Group
    step: int
    score: float
    done: I64
    """Number of completed steps at each entry (with `index`: the number of the last one)."""
    index: bool = False
    """True if it counts from 0."""
    epoch: int | None = None
    """Column of the epoch within which it counts."""
    first: int = 1
    """Number of the first epoch."""
    of: int | None = None
    """Column of the number of steps per epoch."""
    steps: int | None = None
    """Number of steps per epoch if there is no such column."""
    carried: tuple[Group, int] | None = None
    """Other lines with the epoch, and the column in them."""
    counts_epochs: bool = False
    """True if no line contains the epoch, so that a count that restarts after its total is in the next one."""
    is_epoch: bool = False
    """True if it counts epochs, in a log without other steps."""
    begins: bool = False
    """True if its lines are about the begin of a step."""
    each: tuple[int, str, str] | None = None
    """Column, unit and kind of the step time: `mean`, or `all` steps since the last record."""
    elapsed: tuple[int, str] | None = None
    """Column and unit of the time since a begin; an empty unit for a clock."""

    @cached_property
    def stride(self) -> int:
        """Return the usual number of steps between records."""
        return usual_stride(self.done)[0]

    @property
    def column(self) -> ValueColumn:
        return self.group.columns[self.step]

    @property
    def name(self) -> str:
        """Return the words before its number."""
        return self.column.name or f"{self.column.values.first}, …"

    @property
    def is_named(self) -> bool:
        """Return True if its words are about steps or epochs."""
        return self.is_epoch or likeness(self.column.name) > 0

    @property
    def totals(self) -> frozenset[int]:
        """Return the totals in its lines, if its number does not restart."""
        in_epochs = self.epoch is not None or self.carried is not None or self.counts_epochs
        of = None if in_epochs else self.column.of
        whole = None if of is None else self.group.columns[of].whole
        return frozenset() if whole is None else frozenset(np.unique(whole).tolist())

    @property
    def counted_alone(self) -> StepGuess:
        """Return the guess without unnamed epochs."""
        values = self.column.whole
        if not self.counts_epochs or values is None:
            return self
        return replace(self, done=values, of=None, counts_epochs=False)

    def in_processes(self, begins: Sequence[int]) -> StepGuess:
        """Return the guess without unnamed epochs if another process begins at each fall of its number. begins: indexes
        of the first lines of processes."""
        alone = self.counted_alone
        begun = np.diff(np.searchsorted(begins, self.group.places)) > 0
        return alone if begun[np.diff(alone.done) < 0].all() else self


@dataclass(frozen=True, eq=False)
class PhaseGuess:
    """Lines about something other than steps."""

    event: str
    group: Group
    edge: str = ""
    """`begin` or `end` if other lines have the other edge."""
    took: tuple[tuple[int, str], ...] = ()
    """Columns that may be its duration, with units, the likeliest first."""
    background: bool = False


def may_count_steps(log: Log, group: Group) -> bool:
    """Return True unless the lines of a group are clearly about something else."""
    text = group.first.text
    return log.records or not (is_not_step(text) or number_of_stage(text) is not None)


def step_guesses(log: Log) -> list[StepGuess]:
    """Return the columns that may count steps, the likeliest first: at most `_MOST_GUESSES`."""
    epochs = next((found for group in log.groups if (found := _epoch_lines(group)) is not None), None)
    groups = [group for group in log.groups[:200] if may_count_steps(log, group)]
    guesses = [one for group in groups for one in _of_group(group, epochs)]
    guesses = [one for one in guesses if not any(_counts_for(one, other) for other in guesses)]
    most = max((len(one.done) for one in guesses if not is_other(one.group.about)), default=0)
    # Rare lines may be those of a start.
    rare = {id(one): is_other(one.group.about) or 5 * len(one.done) <= most for one in guesses}
    ranked = sorted(guesses, key=lambda one: (rare[id(one)], -one.score))
    of_epochs = [one for group in groups for one in _epochs_as_steps(group)]
    of_epochs.sort(key=lambda one: (is_other(one.group.about), -one.score))
    ranked = [*ranked[: _MOST_GUESSES - min(2, len(of_epochs))], *of_epochs][:_MOST_GUESSES]
    return [_ordered(one, [*guesses, *of_epochs]) for one in ranked]


def _counts_for(one: StepGuess, other: StepGuess) -> bool:
    """Return True if the first counts a fixed number of things for each unit of the second, such as samples per
    step."""
    if one.group is not other.group or one.step == other.step or likeness(one.column.name) > 0:
        return False
    if not (other.done > 0).all():
        return False
    times, rest = np.divmod(one.done, other.done)
    more = times[times != 1]
    return not rest.any() and len(more) > 0 and bool((more == more[0]).all())


def _ordered(one: StepGuess, guesses: Iterable[StepGuess]) -> StepGuess:
    """Choose between two wordings with the same numbers: the later one is the record. A wording about the begin of a
    step is replaced by the other one; alone, it is a begin. So is a line of one run with nothing but the number of an
    epoch."""
    others = (column for column in one.group.columns if column is not one.column)
    is_header = one.is_epoch and bool((np.diff(one.done) > 0).all())
    is_header = is_header and all(len(set(column.texts)) == 1 for column in others)
    is_begin = BEGINS.search(one.group.about[:60]) is not None or is_header
    if not is_begin or ENDS.search(one.group.about) or len(one.done) < 2:
        return one
    later = (two for two in guesses if two.group.places[0] > one.group.places[0] and np.array_equal(two.done, one.done))
    return next(later, replace(one, begins=True, index=False))


def _of_group(group: Group, elsewhere: tuple[Group, int] | None) -> Iterator[StepGuess]:
    if len(group) < 2 or re.search(f"{SAVE}|{RESUME}", group.about[:60]):
        return
    for at, column in enumerate(group.columns):
        other = column.unit is not None or not column.counts or column.joined or EPOCH.search(column.name)
        values = None if other else column.whole
        if values is None or values.max() > _MOST:
            continue
        guess = _guess(group, at, values, elsewhere)
        if guess is not None:
            yield guess
        alone = group.of_one(column.of) if column.of is not None else None
        of_alone = None if alone is None else alone.columns[at].whole
        of_one = _guess(alone, at, of_alone, elsewhere) if alone is not None and of_alone is not None else None
        if of_one is not None:
            yield of_one


def _guess(group: Group, at: int, values: I64, elsewhere: tuple[Group, int] | None) -> StepGuess | None:
    column, about_other = group.columns[at], is_other(group.about)
    made = _within_epochs(StepGuess(group, at, 0.0, values), values, elsewhere)
    likely = likeness(column.name) + (1.5 if column.of is not None else 0.0)
    likely += 1.0 if "global" in column.name else 3.0 if column.name.endswith("num updates") else 0.0
    if likely < 0:
        return None
    told = made.done[np.append(True, made.done[1:] != made.done[:-1])]
    rises, numbers = _rising(told), len(made.done)
    if rises < _RISING:
        told = _of_one_writer(group, made.done)
        rises, numbers = _rising(told), len(told)
    constant = column.of is None and (values.min() == values.max() or not _rises_in_epochs(made, values))
    if constant or rises < _RISING or not has_values(made.done, min(3, len(group))):
        return None
    regular = usual_stride(told)[1] / max(1, numbers - 1)
    if likely == 0 and (about_other or regular < _RISING or len(group) < 3):
        return None
    score = likely + regular + rises + math.log10(len(group)) - 2.0 * about_other
    return _timed(replace(made, index=_is_index(made, values), score=score))


_FEW_WRITERS = 8


def _of_one_writer(group: Group, done: I64) -> I64:
    """Return the numbers of the most frequent writer if a few writers without prefixes alternate: their numbers fall
    between lines, or are repeated at once, unlike epochs."""
    clocks = np.where(group.ns == NO_TIME, group.places, group.ns)
    ahead, passed = np.diff(done), np.diff(clocks)
    again, on = passed[ahead == 0], passed[ahead > 0]
    at_once = len(again) and len(on) and 4 * float(np.median(again)) < float(np.median(on))
    if not at_once and not (ahead < 0).any():
        return done
    writers = writers_of(done.tolist(), clocks.tolist())
    if max(writers) >= _FEW_WRITERS:
        return done
    most, _ = Counter(writers).most_common(1)[0]
    found: I64 = done[np.array(writers) == most]
    return found


def _is_index(made: StepGuess, values: I64) -> bool:
    """Return True if numbers count from 0."""
    of = made.column.of
    totals = None if of is None else made.group.columns[of].whole
    total = None if totals is None else int(totals[0])
    stride, _ = usual_stride(values)
    begins_at_1 = (values[1:][np.diff(values) < 0] == 1).any()  # Training may also stop early.
    ends_below = total is not None and stride == 1 and values.max() == total - 1 and not begins_at_1
    index = values.min() == 0 or ends_below
    index = index or (stride > 1 and (values % stride == stride - 1).all())
    drawn = any(one.is_elapsed for one in made.group.columns)
    return bool(index and (total is None or values.max() != total) and not drawn)


def _timed(made: StepGuess) -> StepGuess:
    """Return the guess with its step time or clock."""
    has_times = made.group.has_times(0.8)
    each = _each(made)
    elapsed, each = (_clock_of_process(made), each) if has_times else _elapsed(made, each)
    if each is not None and not has_times and _names_stride(made, each[0]):
        each = (each[0], each[1], "all")
    score = made.score + (0.5 if each is not None or elapsed is not None or has_times else -3.0)
    return replace(made, score=score, each=None if elapsed is not None and not has_times else each, elapsed=elapsed)


def _names_stride(made: StepGuess, at: int) -> bool:
    """Return True if lines contain the number of steps that a time covers, such as `Time(100 iters): 80.1s`."""
    time, before = made.group.columns[at], made.group.columns[at - 1]
    said = at > 0 and at - 1 not in (made.step, made.epoch, made.column.of) and not time.is_step_time
    if not said or made.stride < 2 or before.unit is not None:
        return False
    return before.whole is not None and bool((before.whole == made.stride).all())


def _epochs_as_steps(group: Group) -> Iterator[StepGuess]:
    """Yield the columns that count epochs, which are the steps of a log without others."""
    for at, column in enumerate(group.columns):
        values = column.whole if EPOCH.search(column.name) and not column.joined else None
        if (
            values is not None
            and len(values) >= 2
            and values.max() <= _MOST
            and _rising(_without_repeats(group, values)) >= _RISING
        ):
            made = StepGuess(group, at, 1.0 + math.log10(len(values)), values, is_epoch=True)
            yield _timed(replace(made, index=_is_index(made, values)))


def _epoch_lines(group: Group) -> tuple[Group, int] | None:
    """Return lines with an epoch but no step, and the column of the epoch; None if there are none."""
    own = [(at, one) for at, one in enumerate(group.columns) if not one.joined] if len(group) > 1 else []
    if any(likeness(one.name) > 0 for _, one in own):
        return None
    return next(((group, at) for at, one in own if EPOCH.search(one.name) and one.whole is not None), None)


def _within_epochs(made: StepGuess, values: I64, elsewhere: tuple[Group, int] | None) -> StepGuess:
    """Return the guess with the epoch within which its steps restart, if there is one."""
    group = made.group
    others = [(row, one) for row, one in enumerate(group.columns) if row != made.step and one.counts and not one.unit]
    own = next((row for row, one in others if EPOCH.search(one.name) and one.whole is not None), None)
    fell = np.diff(values) < 0
    if own is None and fell.any() and (values[1:][fell] <= values[0]).all():
        own = next((row for row, one in others if _numbers_epochs(one, fell)), None)
    if own is not None:
        named = group.columns[own].whole
    elif elsewhere is None or elsewhere[0] is group or group.places[0] < elsewhere[0].places[0]:
        return _by_full_counts(made, values)  # These lines contain the epoch at its end.
    elif not np.isin(group.processes, elsewhere[0].processes).all():
        return _by_full_counts(made, values)  # Or they are of other processes.
    else:
        numbers = elsewhere[0].columns[elsewhere[1]].whole
        before = np.searchsorted(elsewhere[0].places, group.places, side="right") - 1
        named = None if numbers is None else numbers[np.maximum(0, before)]
    assert named is not None
    changes = np.diff(named) > 0
    anew = changes & (np.diff(values) <= 0)
    if not changes.any() or anew.sum() < 0.8 * changes.sum():
        return made
    first, of = (0 if named.min() == 0 else 1), made.column.of
    steps = None if of is not None else _steps_of_an_epoch(values)
    if group.only is not None and of == group.only[0]:
        of, steps = None, int(group.only[1])
    named_sizes = None if of is None else group.columns[of].whole
    sizes = np.full(len(values), steps or 0) if named_sizes is None else named_sizes
    done: I64 = np.maximum(0, named - first) * sizes + values
    return replace(
        made, done=done, epoch=own, first=first, of=of, steps=steps, carried=elsewhere if own is None else None
    )


def _rises_in_epochs(made: StepGuess, values: I64) -> bool:
    """Return True if numbers that count within epochs rise in any of them; others are sizes, for example."""
    if made.epoch is None and made.carried is None:
        return True
    ahead = np.diff(values)
    return bool(((ahead > 0) & (ahead == np.diff(made.done))).any())


def _by_full_counts(made: StepGuess, values: I64) -> StepGuess:
    """Return the guess with unnamed epochs if each fall follows the total in its line, in the same file."""
    sizes = None if made.column.of is None else made.group.columns[made.column.of].whole
    falls = (np.diff(values) < 0) & (np.diff(made.group.processes) == 0)
    if sizes is None or not falls.any():
        return made
    last = -1 if _is_index(made, values) else 0
    full = falls & (values[:-1] - last == sizes[:-1]) & (sizes[:-1] == sizes[1:])
    if full.sum() < 0.5 * falls.sum():
        return made
    epoch: I64 = np.cumsum(np.append(0, full.astype(np.int64)))
    done = epoch * sizes + values
    only = made.group.only
    if only is not None and only[0] == made.column.of:  # the rule reads lines with this total alone
        return replace(made, done=done, steps=int(only[1]), counts_epochs=True)
    return replace(made, done=done, of=made.column.of, counts_epochs=True)


def _numbers_epochs(column: ValueColumn, fell: Mask) -> bool:
    """Return True if numbers rise by one exactly where others fall to their beginning, as epochs of any name do; a
    restart may repeat some. Numbers of attempts and processes do not count, as these may repeat only a part."""
    if OF_LIVES.search(column.name) or names_no_step(column.name) or column.whole is None:
        return False
    ahead = np.diff(column.whole)
    falls = ahead[fell]
    ups = int((falls == 1).sum())
    if not ups or ahead[~fell].any() or (falls > 1).any() or 2 * ups <= len(falls):
        return False
    return ups > 1 or int(column.whole.min()) <= 1


def _steps_of_an_epoch(values: I64) -> int:
    """Return the number of steps per epoch from the greatest number and the usual distance of two."""
    stride, _ = usual_stride(values)
    greatest, least = int(values.max()), int(values.min())
    if least == 0:
        return greatest + stride
    return greatest + 1 if stride > 1 and least % stride == stride - 1 else greatest


def _without_repeats(group: Group, values: I64) -> I64:
    """Return numbers without those of repeated lines."""
    again = np.flatnonzero(values[1:] == values[:-1]) + 1
    twice = [row for row in again.tolist() if group.entry(row).line == group.entry(row - 1).line]
    return np.delete(values, twice)


def _rising(values: I64) -> float:
    """Return the share of numbers that are above the previous one."""
    return float(np.mean(np.diff(values) > 0)) if len(values) > 1 else 0.0


def _unit(column: ValueColumn) -> str:
    return column.unit[0] if column.unit is not None else "s"


def _each(made: StepGuess) -> tuple[int, str, str] | None:
    """Return the column with the step time: if entries have times, one that agrees with them; None if there is none."""
    columns = made.group.columns
    timed = [row for row, one in enumerate(columns) if one.unit is not None and row != made.step]
    timed = [row for row in timed if not is_other(columns[row].name)]
    timed = [row for row in timed if not (made.is_epoch and columns[row].is_step_time)]
    timed = [row for row in timed if not _grows(_ahead(columns[row], made.done))]
    timed = [row for row in timed if not any(_is_part(columns[row], columns[other]) for other in timed if other != row)]
    usual = usual_step(made.group.ns, made.done)
    if usual is None:
        timed = [row for row in timed if not _is_of_many(columns[row], made)]
        timed.sort(key=lambda row: not columns[row].is_step_time)
        return (timed[0], _unit(columns[timed[0]]), "mean") if timed else None
    for row in timed:
        own = _unit(columns[row])
        values = columns[row].numbers
        values = values[values > 0]
        units = (own, "s", "ms") if len(values) else ()
        share = {unit: float(np.median(in_seconds(values, unit))) / usual for unit in units}
        fitting = next((unit for unit, one in share.items() if abs(one - 1) < _NEAR), None)
        if fitting is not None:
            return row, fitting, "mean"
        if share and made.stride > 1 and abs(share[own] / made.stride - 1) < _NEAR:
            return row, own, "all"
    return None


def _elapsed(
    made: StepGuess, each: tuple[int, str, str] | None
) -> tuple[tuple[int, str] | None, tuple[int, str, str] | None]:
    """Return the columns of the time since a begin and of the step time.

    Of several growing columns, the one with the greatest value is the first; there is none if it disagrees with the sum
    of step times in any unit.
    """
    columns, done = made.group.columns, made.done
    drawn = next((row for row, one in enumerate(columns) if one.is_elapsed), None)
    if drawn is not None:
        return (drawn, ""), each
    clocks = {
        row: float(in_seconds(one.numbers[-1:], _unit(one))[0]) for row, one in enumerate(columns)
        if one.unit is not None and row != made.step and _is_clock(one, done)
    }  # fmt: skip
    if not clocks:
        return None, each
    row = max(clocks, key=lambda row: clocks[row])
    own, values = _unit(columns[row]), columns[row].numbers
    if each is None:
        return (row, own), None
    steps, of_one = np.diff(done), columns[each[0]].numbers[1:]
    known = (steps > 0) & (of_one > 0)
    took = float((steps[known] * in_seconds(of_one[known], each[1])).sum())
    units = dict.fromkeys((own, "s", "ms", "min", "h"))
    fitting = [one for one in units if took and 0.5 < UNITS[one] * (values.max() - values.min()) / took < 2]
    return ((row, fitting[0]) if fitting else None), each


def _clock_of_process(made: StepGuess) -> tuple[int, str] | None:
    """Return the first clock of a process if steps or the clock fall: otherwise it is not needed."""
    named = (one.whole for one in made.group.columns if EPOCH.search(one.name) and one.whole is not None)
    next_epoch = [np.diff(one) > 0 for one in named]
    for column, at in ((made.group.columns[at], at) for at in clocks_of_process(made)):
        ahead = np.diff(column.numbers)
        if not any(np.array_equal(one, ahead < 0) for one in next_epoch):  # Otherwise it is that of the epoch.
            return (at, _unit(column)) if ((np.diff(made.done) <= 0) | (ahead <= 0)).any() else None
    return None


def clocks_of_process(made: StepGuess) -> Iterator[int]:
    """Yield the columns of the time since a process or an epoch began: they advance with the time of day."""
    passed = np.diff(made.group.seconds)
    for at, column in enumerate(made.group.columns):
        if column.unit is None or _unit(column) == "per_s" or column.is_step_time or at in (made.step, made.epoch):
            continue
        ahead = np.diff(in_seconds(column.numbers, _unit(column)))
        rises, near = ahead > 0, np.abs(ahead - passed) <= np.maximum(1.5, 0.05 * passed)
        if rises.mean() >= _RISING and near[rises].mean() >= _RISING and column.numbers.max() > 1.5 * np.median(ahead):
            yield at


def _ahead(column: ValueColumn, done: I64) -> F64:
    """Return the increase of numbers from row to row, without rows where the step falls."""
    found: F64 = np.diff(column.numbers)[np.diff(done) > 0]
    return found


def _is_of_many(column: ValueColumn, made: StepGuess) -> bool:
    """Return True for a time of many steps: of an epoch, or one that is left until the end, which falls toward 0."""
    if not made.is_epoch and _OF_AN_EPOCH.search(column.name):
        return True
    run = max(np.split(column.numbers, np.flatnonzero(np.diff(made.done) <= 0) + 1), key=len)
    quarter = len(run) // 4
    if quarter < _FEWEST_LEFT or _unit(column) == "per_s":
        return False
    return bool(np.median(run[-quarter:]) < _LEFT * np.median(run[:quarter]))


def _grows(ahead: F64) -> bool:
    """Return True if numbers rise, and fall only where another process may begin: then they are not step times."""
    runs = np.diff(np.flatnonzero(np.concatenate(([True], ahead < 0, [True]))))
    return len(ahead) > 1 and bool((ahead > 0).any()) and (len(runs) == 1 or int(runs.min()) > _FEWEST_OF_CLOCK)


def _is_clock(column: ValueColumn, done: I64) -> bool:
    """Return True if numbers are the time since a begin: they rise from row to row to a multiple of the usual distance,
    and have no words for a single step or event."""
    if _unit(column) == "per_s" or column.is_step_time or OF_A_STEP.search(column.name):
        return False
    values, ahead = column.numbers, _ahead(column, done)
    growing = _grows(ahead) and np.mean(ahead > 0) >= 0.5
    return bool(growing and values.max() > 1.5 * np.median(ahead) and values.max() - values.min() > 0.3 * values.max())


def _is_part(column: ValueColumn, other: ValueColumn) -> bool:
    """Return True if a time is below another one in all rows, and so a part of it."""
    if column.is_step_time and not other.is_step_time:
        return False  # It is the time of one step, next to that of many.
    values, others = in_seconds(column.numbers, _unit(column)), in_seconds(other.numbers, _unit(other))
    return bool((values != others).any() and (values <= others).all())


def phase_guesses(log: Log, taken: Sequence[Group]) -> Iterator[PhaseGuess]:
    """Yield guesses for lines about other events: for each event the lines with words for it, with begins and ends
    paired. taken: groups that are steps or epochs."""
    left = [group for group in log.every_group[:400] if group not in taken and not re.match(OF_LAUNCHERS, group.about)]
    for event, pattern in _PHASES:
        those = [group for group in left if re.search(pattern, group.about[:200])]
        those = [group for group in those if event not in _UNLESS or not re.search(_UNLESS[event], group.about[:200])]
        those = [group for group in those if event != "init" or any(_lengths(group))]  # Otherwise it is a start.
        for group in those:
            edge = _edge(group, those) if event in ("save", "eval") else ""
            yield PhaseGuess(event, group, edge, tuple(_lengths(group)), bool(BACKGROUND.search(group.about)))
        left = [group for group in left if group not in those]


def _edge(group: Group, those: Sequence[Group]) -> str:
    """Return the edge of a phase that lines report if about as many other lines report the other edge; otherwise
    empty."""
    is_begin = bool(BEGINS.search(group.about)) and not ENDS.search(group.about)
    pair = [one for one in those if one is not group and bool(ENDS.search(one.about)) == is_begin]
    if any(abs(len(one) - len(group)) <= 0.2 * len(group) for one in pair):
        return "begin" if is_begin else "end"
    return ""


def _lengths(group: Group) -> Iterator[tuple[int, str]]:
    """Yield the columns that may be a duration, the likeliest first."""
    timed = [(at, one) for at, one in enumerate(group.columns) if one.unit is not None and one.counts]
    for at, one in sorted(timed, key=lambda pair: pair[1].is_step_time):
        if _unit(one) != "per_s" and not (one.is_step_time and len(timed) > 1):
            yield at, _unit(one)


def missing_steps(log: Log) -> str:
    """Describe a log without a number that may count steps."""
    many = [group for group in log.groups if len(group) >= 3 and may_count_steps(log, group)]
    rising = [
        f"`{column.name}`" for group in many for column in group.columns
        if column.name and column.unit is None and column.counts and np.mean(np.diff(column.numbers) > 0) >= 0.9
    ]  # fmt: skip
    like = ""
    for most in [group for group in many if group.columns][:1]:
        shown = most.first.shown
        like = f'; {len(most):,} lines like "{shown}" ({most.first.where}) may be steps'
    if not rising:
        return f"no line contains a number that increases from line to line{like}"
    named = " and ".join(list(dict.fromkeys(rising))[:2])
    return f"no line contains a step number: {named} increases, but counts tokens, samples or something else{like}"
