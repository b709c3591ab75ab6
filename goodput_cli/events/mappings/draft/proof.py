"""Test drafted rules on the whole log, and report the location of each contradiction."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from goodput_cli.arrays import F64
from goodput_cli.events.mappings.draft.entries import (
    NO_TIME,
    Group,
    Log,
    has_values,
    in_seconds,
    names_epoch_in,
    quoted,
)
from goodput_cli.events.mappings.draft.guess import StepGuess
from goodput_cli.events.mappings.draft.steps import Steps
from goodput_cli.events.mappings.draft.text_entries import TextEntries
from goodput_cli.events.mappings.draft.words import (
    BAR_OF_EVALUATION,
    EPOCH,
    OF_A_PROCESS,
    OF_AN_END,
    OF_DATA,
    OF_INFERENCE,
    OF_LEARNING,
    OF_PREPARATION,
    OF_TRAINING,
    has_plain_name,
    is_other,
    likeness,
    names_no_step,
    reports_save,
)
from goodput_cli.events.values import number
from goodput_cli.vocabulary.text import duration, plural

_MOST_GROUPS = 200
_S = 10**9
_LEAST_RECORDS, _LEAST_NUMBERED = 10, 3
_RISING, _MOSTLY, _FITTING = 0.9, 0.8, 0.9
_MOST_MISSED = 0.2
"""At most this part of lines with the words of a rule, and with its number, is not read."""
_SLOWEST, _FASTEST = 86_400.0, 1e-4
"""Longest and shortest time of a step in seconds."""
_AT_ONCE = 60.0
"""Maximum time (s) in which all ranks print the same line."""
_MOST_OVER = 1.05
"""Maximum ratio between the sum of step times and the elapsed time; a larger one means that they include something
else, for example a mean since the start."""
_HALF = 0.5
_OF_BARS = re.compile(r"\d(?:it/s|s/it)|\?it/s")
"""Rates of progress bars."""
_SAVES = re.compile(r"\bsav(?:e|es|ed|ing)\b")
_MODELS = re.compile(r"\b(?:checkpoints?|ckpts?|models?|weights|states?)\b")
UNEXPLAINED = 0.05
"""Share of the window: less time beyond usual steps needs no warning."""


@dataclass(frozen=True)
class Contradiction:
    """Reason why a rule is dropped or a draft refused."""

    test: str
    reason: str
    where: str = ""
    """FILE:LINE."""

    @property
    def line(self) -> int | None:
        number = self.where.rpartition(":")[2]
        return int(number) if number.isdecimal() else None


Test = Callable[[StepGuess, Steps, Log], Contradiction | None]


def step_contradiction(
    guess: StepGuess, steps: Steps, log: Log, tests: Sequence[Test] | None = None
) -> Contradiction | None:  # fmt: skip
    """Return the first test of the step rule that fails; None if all pass. tests: default: all."""
    found = (test(guess, steps, log) for test in tests or _OF_STEPS)
    return next((one for one in found if one is not None), None)


def _like(guess: StepGuess, steps: Steps) -> str:
    """Describe the matched lines: `412 lines like "batch 3/38"`."""
    example = guess.group.entry(min(1, len(guess.group) - 1)).shown
    return f'{plural(len(steps) + steps.others, "line")} like "{example}"'


def _reads_its_wording(guess: StepGuess, steps: Steps, log: Log) -> Contradiction | None:
    """S6: a number is not cut: most lines that begin with its words are read, and nearly all that have its number."""
    if log.records or not guess.group.tokens or not len(steps) or guess.is_epoch:
        return None  # other lines of an epoch begin with its number, too
    prefix = _prefix(guess.group)
    if sum(map(str.isalpha, prefix)) < 4:
        return None
    alike = [one for one in log.groups if one.tokens and _prefix(one) == prefix and not reports_save(one.about)]
    known = sum(map(len, alike))
    read = sum(int(np.isin(group.places, steps.read).sum()) for group in alike)
    same = [
        group for group in alike
        if not is_other(group.about) and any(one.name == guess.column.name for one in group.columns)
    ]  # fmt: skip
    missed = sum(int((~np.isin(group.places, steps.read)).sum()) for group in same)
    if known <= 2 * read and missed <= _MOST_MISSED * read:
        return None
    others = (group for group in alike if group is not guess.group)
    other = max(others, key=len, default=guess.group)
    like = other.first.shown
    said = f'{known - read:,} lines like "{like}" are not read, but {read:,} similar lines are'
    return Contradiction("S6", said, other.first.where)


def _reads_all_steps(guess: StepGuess, steps: Steps, log: Log) -> Contradiction | None:
    """S6: no other lines continue the numbers of the same name above the last record or below the first one."""
    if log.records or not len(steps) or not guess.column.name:
        return None
    first, last = steps.places[[0, -1]]
    low, high = int(steps.done.min()) - guess.index, int(steps.done.max()) - guess.index
    for group in log.groups[:_MOST_GROUPS]:
        column = next((one for one in group.columns if one.name == guess.column.name), None)
        if group is guess.group or column is None or column.whole is None or is_other(group.about):
            continue
        beyond = ((group.places > last) & (column.whole > high)) | ((group.places < first) & (column.whole < low))
        beyond &= ~np.isin(group.places, steps.read) & np.isin(group.processes, guess.group.processes)
        if beyond.sum() >= max(_LEAST_RECORDS, _MOST_MISSED * len(steps)):
            at = int(np.flatnonzero(beyond)[0])
            said = (
                f'{int(beyond.sum()):,} lines like "{group.entry(at).shown}" continue the step numbers but are not read'
            )
            return Contradiction("S6", said, group.entry(at).where)
    return None


_BEGUN = re.compile(r"\[[\d:]+<\?, +\?")
"""The first state of a bar, which has no rate yet."""


def _reads_one_kind(guess: StepGuess, steps: Steps, log: Log) -> Contradiction | None:
    """S4: steps with an epoch from other lines have one wording."""
    others = np.setdiff1d(steps.read, guess.group.places) if guess.carried is not None else steps.read[:0]
    others = others[[_BEGUN.search(log.entries[log.entries.row_of(at)].message) is None for at in others.tolist()]]
    if len(others) <= 0.02 * len(steps):
        return None
    other = log.entries[log.entries.row_of(int(others[0]))] if len(others) else guess.group.first
    other_lines = f'{plural(len(others), "line")} like "{other.shown}"'
    said = f"the rule reads two kinds of lines: {_like(guess, steps)}, and {other_lines}"
    return Contradiction("S4", said, other.where)


def _prefix(group: Group) -> str:
    """Return the text before the first number."""
    return group.first.text[group.first.begin : group.tokens[0].start()].strip()


def _rises(guess: StepGuess, steps: Steps, _: Log) -> Contradiction | None:
    """S1: nine in ten records rise, of epochs, which count within nothing, three in four; and a number that falls where
    it has come to its end counts within epochs."""
    falls, totals = steps.unexplained_falls, guess.totals
    if not len(steps):
        return Contradiction("S4", f"no rule matches {_like(guess, steps)}", guess.group.first.where)
    ended = sum(int(steps.done[at - 1]) in totals for at in falls)
    said = ""
    if ended > 1 and 2 * ended > len(falls):
        said = f"reach their end ({max(totals)}) {ended} times and start again"
    elif len(falls) > (1.0 if guess.is_epoch else 1 - _RISING) * (len(steps) - 1) or len(falls) > len(steps) / 4:
        said = f"go back {plural(len(falls), 'time')}"
    where = steps.where(falls[0] if falls else 0)
    return Contradiction("S1", f"{_like(guess, steps)} {said}, but no line contains the epoch", where) if said else None


def _is_spread(guess: StepGuess, steps: Steps, log: Log) -> Contradiction | None:
    """S2: there are enough records, and not all at one time."""
    numbered = guess.epoch is not None or guess.carried is not None or len(guess.totals) == 1
    named = guess.is_named or numbered
    said = ""
    times = steps.stamps[steps.stamps != NO_TIME]
    if not has_values(steps.done, _LEAST_NUMBERED if named else _LEAST_RECORDS):
        said = "are too few to identify a step counter"
    elif log.window and len(times) >= len(steps) / 2:
        spread, window = int(times.max() - times.min()), _window_of_processes(steps, log)
        if spread < max((0.02 if named else _HALF) * window, _S):
            said = f"cover only {duration(spread)} of a log of {duration(window)}"
    return Contradiction("S2", f"{_like(guess, steps)} {said}", guess.group.first.where) if said else None


def _window_of_processes(steps: Steps, log: Log) -> int:
    """Return the time (ns) from the begin of the first process that trains to the end of the last one; of its file if
    no lines show where processes begin. After the last step, heartbeats do not count: lines like those between steps
    are also of a process that hangs."""
    first, last = steps.places[[0, -1]].tolist()
    begin = max((place for place in steps.heads if place <= first), default=-1)
    end = min((place for place in steps.heads if place > last), default=int(log.entries.places[-1]) + 1)
    places = log.entries.places
    files = log.entries.files
    inside = log.entries.timed & (places >= begin) & (places < end) & np.isin(files, steps.files)
    if isinstance(log.entries, TextEntries):
        kinds = log.entries.template
        inside &= (places <= last) | ~np.isin(kinds, kinds[(places > first) & (places < last)])
    times = log.entries.ns[inside]
    return int(times.max() - times.min())


def _begins_low(guess: StepGuess, steps: Steps, _: Log) -> Contradiction | None:
    """S3: the count begins at its beginning, or the log is clearly truncated."""
    first = int(steps.done[0])
    stride, same = steps.stride
    is_cut = same >= 20 and same >= _RISING * (len(steps) - 1)
    if first <= 2 * stride or guess.is_named or guess.column.of is not None or is_cut:
        return None
    said = f"{_like(guess, steps)} begin at {first}, and the log does not show why"
    return Contradiction("S3", said, guess.group.first.where)


def _takes_a_time(guess: StepGuess, steps: Steps, log: Log) -> Contradiction | None:
    """C2: step times are known. Without timestamps, the name of the time or another value confirms it, and (C3) all
    steps fit between the timestamps of other lines."""
    where, like = guess.group.first.where, _like(guess, steps)
    if (steps.stamps != NO_TIME).sum() > len(steps) / 2:
        if steps.usual is None or _FASTEST <= steps.usual <= _SLOWEST:
            return None
        return Contradiction(
            "C2", f"{like} are {steps.usual:.2g} s apart, so they do not count steps (samples, for example)", where
        )
    if guess.elapsed is not None:
        return None
    if guess.each is None:
        return _times_around(guess, steps, log)
    column = guess.group.columns[guess.each[0]]
    if guess.stride > 1 and not column.name and not column.is_step_time:
        said = f"the time in {like} is that of one step, or of all {guess.stride} since the previous line"
        return Contradiction("C2", f'{said}; for the latter, write `of = "all"`', where)
    took = float(step_seconds(steps).sum())
    clock = next((one for one in guess.group.columns if not one.unit and ":" in one.values.first), None)
    passed = np.diff(clock.numbers) if clock is not None else np.zeros(1)
    if clock is not None and (passed >= 0).all() and passed.sum() > (1 + UNEXPLAINED) * took + 1:
        said = f"step times in {like} add up to {took:,.0f} s, but their clock shows {passed.sum():,.0f} s"
        return Contradiction("C3", said, where)
    if took > _SLOWEST * max(1, int(steps.done[-1])):
        return Contradiction("C2", f"in {like}, a step takes more than a day", where)
    window = _window_around(steps, log)
    if window and took > 2 * window / _S:
        said = f"step times in {like} add up to {took:,.0f} s, but the log covers only {window / _S:,.0f} s"
        return Contradiction("C3", said, where)
    return None


def _window_around(steps: Steps, log: Log) -> int:
    """Return the time (ns) that the lines of a log cover; 0 if none has a time after the first record."""
    timed = log.entries.places[log.entries.timed]
    return log.window if len(timed) and timed[-1] > steps.places[0] else 0


def _times_around(guess: StepGuess, steps: Steps, log: Log) -> Contradiction | None:
    """Check that other lines have enough times between the records. A time before steps restart is that of a start and
    does not show when the previous steps ended."""
    places, ns = log.entries.places, log.entries.ns
    before = np.searchsorted(steps.places, places) - 1
    last = len(steps) - 1
    goes_on = np.append(np.diff(steps.done) > 0, False)
    inside = (before >= 0) & (before < last) & goes_on[before.clip(0, last)]
    between = np.unique(ns[inside & (ns != NO_TIME)])
    said = ""
    if not log.window:
        said = f"no line has a timestamp, and no number in {_like(guess, steps)} is known to be a step time"
    elif 20 * len(between) < len(steps):
        said = f"{_like(guess, steps)} have no timestamps, and lines between them have only {len(between)}"
    return Contradiction("C2", said, guess.group.first.where) if said else None


def _is_of_training(guess: StepGuess, steps: Steps, log: Log) -> Contradiction | None:
    """S6: something refers to training if the name of the number does not, and nothing to other work."""
    words = _words(log.groups if log.records else [guess.group])
    of_unit = guess.column.name == "it"  # The unit of a progress bar without a name.
    of_how_many = of_unit or (guess.column.of is not None and not guess.column.name)
    if OF_PREPARATION.search(words) and not OF_LEARNING.search(words):
        said = f"{_like(guess, steps)} count work on data, not steps of training"
        return Contradiction("S6", said, guess.group.first.where)
    if of_how_many and re.search(BAR_OF_EVALUATION, guess.group.about) and not OF_LEARNING.search(words):
        return Contradiction("S6", f"{_like(guess, steps)} count an evaluation", guess.group.first.where)
    if (guess.is_named and not of_unit) or OF_TRAINING.search(words):
        return None
    most = max(log.groups[:_MOST_GROUPS], key=lambda group: np.isin(group.places, steps.read).sum())
    if OF_INFERENCE.search(guess.group.about) or OF_INFERENCE.search(most.about):
        said = f"{_like(guess, steps)} count what a model answers, not steps of training"
        return Contradiction("S6", said, guess.group.first.where)
    if OF_DATA.search(guess.group.first.text):
        said = f"{_like(guess, steps)} count data, not steps of training"
        return Contradiction("S6", said, guess.group.first.where)
    text = guess.group.first.text
    if of_how_many and (
        _OF_BARS.search(text) is None
        or (has_plain_name(text) and any(_shows_training(group.about) for group in log.groups))
    ):
        return None
    what = "no key and no value" if log.records else f"nothing in {_like(guess, steps)}"
    said = f"{what} refers to training: `{guess.name}` increases from record to record, but may count anything"
    return Contradiction("S6", said, guess.group.first.where)


def _shows_training(about: str) -> bool:
    """Return True for a line of a program that trains: training alone has such words, or saves a model."""
    of_save = _SAVES.search(about) is not None and _MODELS.search(about) is not None
    return of_save or OF_LEARNING.search(about) is not None


def _words(groups: Iterable[Group]) -> str:
    """Return the texts of lines and the names of their numbers."""
    return " ".join(word for group in groups for word in (*(column.name for column in group.columns), group.about))


def _is_of_one_stage(guess: StepGuess, _: Steps, log: Log) -> Contradiction | None:
    """S1: steps that restart when another key changes belong to another stage or run, not to a restart."""
    falls = (np.flatnonzero(np.diff(guess.done) <= 0) + 1).tolist()
    if not falls or not log.records or (guess.done[falls] > guess.done[0]).any():
        return None
    for column in guess.group.columns:
        texts = column.texts
        changes = [at for at, (a, b) in enumerate(pairwise(texts), 1) if a != b]
        if changes == falls and number(texts[0]) is None and not OF_A_PROCESS.search(column.name):
            before, after = (texts[at][:80] for at in (falls[0] - 1, falls[0]))
            said = (
                f"steps start again where `{column.name}` changes from {before} to {after}: these are separate "
                f"stages or runs, not restarts; to read one, write `where = {{ {column.name} = {quoted(before)} }}`"
            )
            return Contradiction("S1", said, guess.group.entry(falls[0]).where)
    return None


def _has_one_size(guess: StepGuess, steps: Steps, _: Log) -> Contradiction | None:
    """S1: epochs without a logged number of steps end with the same number."""
    values = np.zeros(0, dtype=np.int64) if guess.column.whole is None else guess.column.whole
    tops = values[:-1][np.diff(values) < 0]
    alike = 5 * (tops == tops.max(initial=0)).sum() >= 4 * len(tops) - 5 * len(steps.falls)
    totals = steps.columns.of[(steps.columns.of >= 0) & (guess.of is not None)]
    if len(totals) and totals.max() > 1.25 * totals.min():
        said = f"{_like(guess, steps)} have different totals ({totals.min()} and {totals.max()})"
        return Contradiction("S1", said, guess.group.first.where)
    if guess.steps is None or (alike and len(values) >= _LEAST_NUMBERED * (len(tops) + 1)):
        return None
    said = f"the number of steps per epoch is unknown for {_like(guess, steps)}"
    return Contradiction("S1", said, guess.group.first.where)


def _is_one_loop(guess: StepGuess, steps: Steps, log: Log) -> Contradiction | None:
    """S1: a count without an epoch is full once between two lines with the epoch. Otherwise it is also that of an
    evaluation, for example in bars without a name."""
    values = guess.column.whole
    if not guess.counts_epochs or values is None:
        return None
    begins = guess.group.places[1:][np.diff(values) < 0]
    for group in log.groups[:_MOST_GROUPS]:
        numbers = next((one.whole for one in group.columns if names_epoch_in(one)), None)
        if group is guess.group or numbers is None or len(numbers) < 2 or (np.diff(numbers) != 1).any():
            continue
        loops = np.diff(np.searchsorted(begins, group.places))
        if loops.min() > 1 and loops.min() == loops.max():
            said = f"{_like(guess, steps)} are full {loops[0]} times in each epoch: not only training is counted"
            return Contradiction("S1", said, group.first.where)
    return None


_OF_STEPS: tuple[Test, ...] = (
    _reads_its_wording, _reads_all_steps, _reads_one_kind, _rises, _is_spread, _begins_low, _takes_a_time,
    _is_of_training, _is_of_one_stage, _has_one_size, _is_one_loop,
)  # fmt: skip
OF_A_MAPPING: tuple[Test, ...] = (_rises, _is_spread)
"""Tests of a user's rule, whose number has a known meaning."""


def each_contradiction(guess: StepGuess, steps: Steps, beside: Mapping[int, float]) -> Contradiction | None:
    """C2: step times agree with the timestamps of records: within a factor of two for nine in ten, and within a quarter
    in the median. beside: seconds of other events in the gap before a record."""
    if guess.each is None or steps.usual is None:
        return None
    at, unit, of = guess.each
    values = of_records(guess, steps, guess.group.columns[at].numbers)
    each = np.where(values > 0, in_seconds(values, unit), 0.0)
    took = each * (1 if of == "all" else steps.ahead)
    passed = steps.passed - by_record(beside, len(each))
    alone = np.diff(steps.places, prepend=math.nan) == 1  # Nothing was logged between them.
    known = (steps.ahead > 0) & (took > 0) & (passed > 0) & (alone if alone.sum() > 2 else True)
    took, passed = took[known], passed[known]
    ratios = np.where(np.abs(passed - took) <= (1.0 if steps.coarse else 0.0), 1.0, took / passed)
    fitting = int(((ratios >= 0.5) & (ratios <= 2)).sum())
    near = ratios >= 0.5  # No save or evaluation was in between.
    name = guess.group.columns[at].name or "its time"
    if len(ratios) and fitting >= _FITTING * len(ratios) and 0.75 <= np.median(ratios) <= 1.33:
        over = float(took[near].sum() / passed[near].sum())
        if over <= _MOST_OVER:
            return None
        said = f"`{name}` adds up to {over:.2f} times the time between records"
        return Contradiction("C2", said, guess.group.first.where)
    said = f"`{name}` matches the timestamps of only {fitting} of {len(ratios)} records"
    return Contradiction("C2", said, guess.group.first.where)


def of_records(guess: StepGuess, steps: Steps, values: F64) -> F64:
    """Return the value in the line of each record, float64[n]; 0 if its line is in another group."""
    places = guess.group.places
    at = np.searchsorted(places, steps.places)
    found: F64 = np.where(np.append(places, -1)[at] == steps.places, np.append(values, 0.0)[at], 0.0)
    return found


def by_record(seconds: Mapping[int, float], size: int) -> F64:
    """Return the seconds before each record, float64[n]."""
    found = np.zeros(size)
    own = [at for at in seconds if at < size]
    found[own] = [seconds[at] for at in own]
    return found


def step_seconds(steps: Steps) -> F64:
    """Return the seconds of the steps before each record according to the times in their lines, float64[n]."""
    found: F64 = np.maximum(0, steps.ahead) * np.nan_to_num(steps.each)
    return found


def start_contradiction(
    group: Group, steps: Steps, living: Collection[int] = (), *, named: bool
) -> Contradiction | None:
    """A1, A2: start lines are before the first record or where a process may have begun, and at every fall of the step
    except rollbacks.

    living: records before which the process continued. named: True if the words are about a start; other lines must be
    only where steps fall. After the last step, they may be of an evaluation or of another program.
    """
    after, falls = steps.after(group), frozenset(steps.falls)
    edges = falls | {0, len(steps)}
    for row, at in enumerate(after):
        if not (steps.passages[at] if named else at in edges or steps.ended[at]):
            return Contradiction("A1", "a start line is between two steps of one process", group.entry(row).where)
    between = [at for at in after if at not in edges and not steps.ended[at]]
    if between and (_numbers_epochs(group, after) or len(steps.epochs & set(between)) == len(set(between)) > 1):
        return Contradiction("A1", "it appears at the start of epochs", steps.where(between[0]))
    missing = sorted(falls.difference(after, living))
    first, (stride, _) = int(steps.done[0]), steps.stride
    is_cut = named and first > 2 * stride
    if missing or (0 not in after and len(set(after)) > 1 and not is_cut):
        at = missing[0] if missing else 0
        return Contradiction("A1", "steps go back without such a line", steps.where(at))
    alone = not falls and len(group) == 1 and first <= 2 * stride
    begun = {at for at in after if at < len(steps) or steps.ended[at]}
    if not named and len(begun) < 2 and not alone:
        return Contradiction("A2", "nothing identifies it as a start", group.first.where)
    return None


def _numbers_epochs(group: Group, after: Sequence[int]) -> bool:
    """Return True if lines contain different epochs."""
    return any(EPOCH.search(one.name) and len(set(one.texts)) > 1 for one in group.columns) and len(set(after)) > 1


def repeats_at_once(group: Group, steps: Steps) -> bool:
    """Return True if start lines are repeated without a step, an end or a minute in between, as by ranks."""
    after, places = np.array(steps.after(group)), group.places
    ended = np.searchsorted(steps.ends, places[1:]) > np.searchsorted(steps.ends, places[:-1], side="right")
    untimed = (group.ns[:-1] == NO_TIME) | (group.ns[1:] == NO_TIME)
    soon = untimed | (group.ns[1:] - group.ns[:-1] < _AT_ONCE * _S)
    return bool(((after[1:] == after[:-1]) & ~ended & soon).any())


def resume_number(group: Group, steps: Steps, guess: StepGuess) -> tuple[int, int] | Contradiction:
    """R1: return the column from which the next record follows, and its offset; otherwise the reason why there is
    none."""
    after = np.array(steps.after(group))
    inside = after < len(steps)
    done = steps.done[after[inside]]
    for at, column in sorted(enumerate(group.columns), key=lambda pair: pair[1].joined):
        other = column.unit is not None or names_no_step(column.name)
        other = other or (not guess.is_epoch and EPOCH.search(column.name) is not None)
        whole = None if other or not len(done) else column.whole
        if whole is None:
            continue
        for add in (0, -1):
            said = whole[inside] + add + guess.index
            if ((said >= 0) & (done - guess.stride <= said) & (said < done)).all():
                return at, add
    return Contradiction("R1", "none of its numbers leads to the next step", group.first.where)


def save_number(group: Group, steps: Steps, guess: StepGuess) -> int | None:
    """Return the column with the saved step, which was recorded just before; None if there is none."""
    for at, column in sorted(enumerate(group.columns), key=lambda pair: pair[1].joined):
        named = likeness(column.name) > 0 or any(word in column.name for word in ("checkpoint", "ckpt"))
        values = column.whole if named and column.unit is None else None
        if values is not None and np.isin(values, steps.done - guess.index).sum() >= _MOSTLY * len(values):
            return at
    return None


def summary_number(group: Group, steps: Steps, guess: StepGuess) -> int | None:
    """Return the column of other lines with the name of the step whose values are above the record before each line and
    not above the one after it; None if there is none."""
    after = np.array(steps.after(group))
    inside = (after < len(steps)) & ~np.isin(after, steps.falls)
    for at, column in enumerate(group.columns):
        if column.joined or not f" {column.name}".endswith(f" {guess.name}") or column.whole is None:
            continue
        done = column.whole + guess.index
        above = after.all() and (steps.done[after - 1] < done).all() and (inside.any() or len(done) == 1)
        if above and (done[inside] < steps.done[after[inside]]).all():
            return at
    return None


def ended_epoch(group: Group, steps: Steps, guess: StepGuess) -> int | None:
    """Return the epoch column of lines about the end of an epoch that follow the last record of each epoch; None if
    there is none."""
    if not OF_AN_END.search(group.about) or guess.epoch is None:
        return None
    named = guess.group.columns[guess.epoch].whole
    epochs = {} if named is None else dict(zip(guess.group.places.tolist(), named.tolist(), strict=True))
    of_records = [epochs.get(one) for one in steps.places.tolist()]
    for at, column in enumerate(group.columns):
        whole = column.whole if EPOCH.search(column.name) else None
        if whole is not None and all(
            row and of_records[row - 1] == one and (row == len(of_records) or of_records[row] != one)
            for one, row in zip(whole.tolist(), steps.after(group), strict=True)
        ):
            return at
    return None


def end_contradiction(group: Group, steps: Steps, starts: Collection[int]) -> Contradiction | None:
    """E1: no record of the same process follows an end, and each attempt has one. starts: records after start lines."""
    seen: dict[int, int] = {}
    falls = frozenset(steps.falls)
    for row, (ns, at) in enumerate(zip(group.ns.tolist(), steps.after(group), strict=True)):
        said = ""
        before = seen.setdefault(at, ns)
        if at == 0:
            said = "an end line is before the first step"
        elif at < len(steps) and at not in starts and at not in falls and not steps.ended[at]:
            said = "steps of the same process follow it"
        elif NO_TIME not in (ns, before) and ns - before >= _AT_ONCE * _S:  # Otherwise ranks end together.
            said = "it reports the end of one process twice"
        if said:
            return Contradiction("E1", said, group.entry(row).where)
    return None
