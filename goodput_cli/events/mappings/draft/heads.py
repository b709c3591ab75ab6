"""Find where processes and stages begin: a log that several processes wrote repeats its first lines, and one process
numbers the stages of its training, such as folds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from goodput_cli.arrays import I64
from goodput_cli.events.mappings.draft.entries import NO_TIME, Group, Log, names_epoch
from goodput_cli.events.mappings.draft.guess import StepGuess
from goodput_cli.events.mappings.draft.steps import Steps, died_at
from goodput_cli.events.mappings.draft.words import (
    EPOCH,
    OF_ANY_LIFE,
    OF_LIVES,
    RESUME,
    SETUP,
    START,
    is_other,
    names_no_step,
)
from goodput_cli.events.text.programs.stages import number_of_stage

_MOST_GROUPS = 400
_NEARLY_ALL = 0.8
_OF_A_PROCESS = re.compile(f"{START}|{RESUME}|{SETUP}")


class Stages(NamedTuple):
    """Lines that announce numbered stages of training."""

    named: Sequence[Group]
    """Their wordings that goodput knows."""
    numbered: Sequence[tuple[Group, int]]
    """Other wordings, with the column of the number."""
    places: I64
    """Indexes of the lines with a higher number than before."""
    after: frozenset[int]
    """Indexes of the records that follow these: a new process would not know the number."""

    @property
    def groups(self) -> Sequence[Group]:
        """Return all wordings."""
        return [*self.named, *(group for group, _ in self.numbered)]

    def explain(self, records: Sequence[int]) -> bool:
        """Return True if a stage begins before each of some records but the first."""
        later = {at for at in records if at}
        return bool(later) and later <= self.after


def stages_of(log: Log, guess: StepGuess) -> Stages:
    """Return the lines that announce the stages of a log of text. guess: its steps."""
    groups = [one for one in log.groups[:_MOST_GROUPS] if one is not guess.group and not log.records]
    lines = sorted(line for one in groups if number_of_stage(one.first.text) is not None for line in _lines(one))
    rising = [place for (_, before), (place, number) in pairwise(lines) if number > before]
    named = [one for one in groups if rising and number_of_stage(one.first.text) is not None]
    others = ((one, None if one in named else _rising_column(one, guess)) for one in groups)
    numbered = [(one, at) for one, at in others if at is not None]
    later = (place for one, _ in numbered for place in one.places.tolist() if place > guess.group.places[0])
    places = np.array(sorted([*rising, *later]), np.int64)
    after = frozenset(np.searchsorted(guess.group.places, places, side="right").tolist())
    return Stages(named, numbered, places, after)


def _lines(group: Group) -> list[tuple[int, int]]:
    """Return the index of each line of a group, and the number of its stage."""
    found = ((entry.place, number_of_stage(entry.text)) for entry in map(group.entry, range(len(group))))
    return [(place, number) for place, number in found if number is not None]


def _rising_column(group: Group, guess: StepGuess) -> int | None:
    """Return the column that begins at 0 or 1 and is one higher in each line, if there is a line wherever the steps of
    a guess begin again, and nowhere else but at their begin or end; None if there is none."""
    if len(group) < 2 or is_other(group.about) or names_epoch(group) or len(set(group.processes.tolist())) > 1:
        return None
    done = guess.counted_alone.done
    falls = (np.flatnonzero(done[1:] <= done[:-1]) + 1).tolist()
    after = np.searchsorted(guess.group.places, group.places, side="right").tolist()
    if after not in ([0, *falls], falls, [*falls, len(done)]):  # At the begin of each, or at its end.
        return None
    columns = ((at, one) for at, one in enumerate(group.columns) if one.counts and not one.joined and one.unit is None)
    rising = ((at, one) for at, one in columns if one.whole is not None and _counts_up(one.whole))
    named = ((at, one) for at, one in rising if not names_no_step(one.name))
    return next((at for at, one in named if one.of is not None or not OF_ANY_LIFE.search(group.about)), None)


def _counts_up(numbers: I64) -> bool:
    return int(numbers[0]) in (0, 1) and bool((np.diff(numbers) == 1).all())


_S = 10**9
_MOST_TRIED, _MOST_LINES = 20, 500
"""Maximum number of wordings that are tried as the first line of a process, and of compared lines per process."""
_MOST_PROCESSES = 1000
"""A more frequent line is not the first line of a process."""
_ORDERED = 3
"""The first wordings of a log in their order are those of a process that died early."""
_AT_ONCE = 60
"""Maximum time (s) in which all ranks print the same line."""
_ODD = 0.2
"""Maximum share of the first lines of processes between steps that continue."""
_LONG_PACES, _LONG = 5, 10
"""Ratio to the usual distance of two records, and seconds, from which silence is long."""


class Heads(NamedTuple):
    """The first lines of processes."""

    groups: Sequence[Group]
    """Lines that each process prints at its begin, the first ones first."""
    places: tuple[int, ...]
    """Indexes where processes begin, including the first."""
    by_ranks: bool
    """True if each rank of a process prints the line."""


def process_heads(log: Log, guess: StepGuess, stages: Stages) -> Heads | None:
    """Return the first lines of the processes of a log: a wording before the first step, in files with steps, that is
    repeated together with others like it. None for a single process, or if steps continue. stages: lines of a process
    that lives on."""
    if log.records:
        return None
    first_step, files = int(guess.group.places[0]), log.entries.files
    with_steps = np.unique(files[guess.group.rows])
    tried = [
        one for one in log.groups
        if 1 < len(one) <= _MOST_PROCESSES and int(one.places[0]) < first_step and one is not guess.group
        and np.isin(files[one.rows], with_steps).all()
    ]  # fmt: skip
    tried = sorted(tried, key=lambda one: int(one.places[0]))[:_MOST_TRIED]
    sides = _Sides.of(log, guess)
    for group in tried:
        if any(EPOCH.search(one.name) and len(set(one.texts)) > 1 for one in group.columns):
            continue
        if _counts_processes(group, sides):
            return Heads([group], tuple(log.entries.places[[0, *group.rows.tolist()[1:]]].tolist()), by_ranks=False)
        if group in stages.groups or stages.explain(list(map(sides.step_at, group.rows.tolist()))):
            continue
        found = _Found.of(log, group, sides)
        if found.are_heads:
            alike = [one for one in tried if len(one) == len(group) and found.is_in_each(one)]
            return Heads([group, *(one for one in alike if one is not group)], found.begins, found.by_ranks)
    return None


def _counts_processes(group: Group, sides: _Sides) -> bool:
    """Return True if lines name the number of an attempt, another one after each stretch of steps."""
    after = list(map(sides.step_at, group.rows.tolist()))
    if len(set(after)) < len(after):
        return False
    columns = (one for one in group.columns if one.of is None and not one.joined)
    named = (one for one in columns if OF_LIVES.fullmatch(one.name.rpartition(" ")[2]))
    return any(one.whole is not None and bool((np.diff(one.whole) > 0).all()) for one in named)


class _Sides(NamedTuple):
    """The steps of a log, by row of its entries, and what lies between them."""

    rows: I64
    done: I64
    pace_ns: int
    """The usual time between two records; 0: unknown."""
    deaths: I64
    may_be_epochs: bool
    """True if steps may fall where they had come to their end, or in the file of another rank."""

    @classmethod
    def of(cls, log: Log, guess: StepGuess) -> _Sides:
        ns = guess.group.ns
        ahead = np.diff(ns[ns != NO_TIME])
        ahead = ahead[ahead > 0]
        deaths = np.searchsorted(log.entries.places, np.array(sorted(died_at(log)), dtype=np.int64))
        pace = int(np.median(ahead)) if len(ahead) else 0
        several = guess.counts_epochs or log.entries.are_of_several_files
        return cls(guess.group.rows, guess.counted_alone.done, pace, deaths, several)

    def step_at(self, row: int) -> int:
        """Return the index of the first step at or after a row."""
        return int(np.searchsorted(self.rows, row))

    def next_row(self, row: int) -> int:
        """Return the row of the next step."""
        at = self.step_at(row)
        return int(self.rows[at]) if at < len(self.rows) else 1 << 62

    def died_between(self, begin: int, end: int) -> bool:
        """Return True if a process died between two rows."""
        return bool(np.diff(np.searchsorted(self.deaths, [begin, end]))[0])


class _Found(NamedTuple):
    """Lines of one wording, and what follows each of them up to the next one or the next step."""

    log: Log
    rows: Sequence[int]
    ns: Sequence[int]
    sides: _Sides
    following: Sequence[Sequence[int]]
    """The wordings, by number."""

    @classmethod
    def of(cls, log: Log, group: Group, sides: _Sides) -> _Found:
        rows = group.rows.tolist()
        begins = [0, *rows[1:]]
        ends = [*begins[1:], len(log.entries)]
        following = [
            log.wordings[begin : min(end, sides.next_row(begin), begin + _MOST_LINES)].tolist()
            for begin, end in zip(begins, ends, strict=True)
        ]
        return cls(log, rows, group.ns.tolist(), sides, following)

    @property
    def are_heads(self) -> bool:
        """Return True if each line begins a process."""
        first, *others = self.following
        is_first = self.log.wordings[self.rows[0]] in list(dict.fromkeys(first))[:_ORDERED]
        if not all(_is_alike(first, one, is_first) for one in others):
            return False
        passages = [at for at, row in enumerate(self.rows) if at and 0 < self.sides.step_at(row) < len(self.sides.rows)]
        if not passages and NO_TIME in self.ns:
            return False  # nothing is known of them
        if not all(map(self._may_be_another, range(1, len(self.rows)))):
            return False
        if passages and not self._is_named and not any(map(self._shows_another, passages)):
            return False  # Epochs come after silence too: only other evidence shows a process.
        odd = [at for at in passages if not self._falls(self.rows[at]) and not self._is_passage(at)]
        if self.sides.may_be_epochs and not all(map(self._is_passage, passages)):
            return False
        if len(odd) > _ODD * len(others):  # A few, if the previous process continues for a while.
            return False
        tops = {int(self.sides.done[self.sides.step_at(self.rows[at]) - 1]) for at in passages}
        return is_first or len(passages) < 2 or len(tops) > 1  # Otherwise they are lines of epochs.

    def is_in_each(self, group: Group) -> bool:
        """Return True if lines follow each of the first lines before a step."""
        wording = int(self.log.wordings[group.rows[0]])
        return all(wording in one for one in self.following)

    @property
    def _is_named(self) -> bool:
        """Return True if words about a process are among the lines."""
        numbers = {int(self.log.wordings[self.rows[0]]), *self.following[0]}
        abouts = (one.about for one in self.log.groups if int(self.log.wordings[one.rows[0]]) in numbers)
        return any(_OF_A_PROCESS.search(about) for about in abouts)

    def _shows_another(self, at: int) -> bool:
        """Return True if steps fall at a line, or a death precedes it."""
        row = self.rows[at]
        last_step = int(self.sides.rows[self.sides.step_at(row) - 1])
        return self._falls(row) or self.sides.died_between(last_step, row)

    def _falls(self, row: int) -> bool:
        at = self.sides.step_at(row)
        return bool(self.sides.done[at] <= self.sides.done[at - 1])

    def _is_passage(self, at: int) -> bool:
        """Return True if another process may begin at a line though steps do not fall there: silence or a death
        precedes it, or it is not the first one since the last step."""
        row = self.rows[at]
        last_step = int(self.sides.rows[self.sides.step_at(row) - 1])
        before, ns = int(self.log.entries.ns[row - 1]), self.ns[at]
        silent = NO_TIME not in (before, ns) and ns - before > max(_LONG_PACES * self.sides.pace_ns, _LONG * _S)
        return self.rows[at - 1] > last_step or self.sides.died_between(last_step, row) or silent

    def _may_be_another(self, at: int) -> bool:
        """Return True if a line may be of another process than the one before it: a step, a death or silence is between
        them, or all that precedes the first one is repeated."""
        before, row = self.rows[at - 1 : at + 1]
        if self.sides.step_at(before) != self.sides.step_at(row) or self.sides.died_between(before, row):
            return True
        last, ns, wordings = int(self.log.entries.ns[row - 1]), self.ns[at], self.log.wordings
        opening = set(wordings[: min(self.rows[0], _MOST_LINES)].tolist())
        again = set(wordings[max(before, row - _MOST_LINES) : row].tolist())
        is_silent = NO_TIME not in (last, ns) and ns - last > _LONG * _S
        return is_silent or opening <= again

    @property
    def begins(self) -> tuple[int, ...]:
        """Return the indexes of the first lines of processes; of several ranks, the first."""
        rows = [0, *(row for at, row in enumerate(self.rows) if at and not self._is_of_rank(at))]
        return tuple(self.log.entries.places[rows].tolist())

    @property
    def by_ranks(self) -> bool:
        """Return True if several ranks of a process print a line."""
        return any(map(self._is_of_rank, range(1, len(self.rows))))

    def _is_of_rank(self, at: int) -> bool:
        """Return True if a line is of another rank of the process of the line before: at once, and what follows comes
        several times, or the line before is followed by little."""
        if not self._is_at_once(at) or self.sides.died_between(self.rows[at - 1], self.rows[at]):
            return False
        last = next((one for one in range(at + 1, len(self.rows)) if not self._is_at_once(one)), len(self.rows)) - 1
        counts = Counter(self.following[last])
        several = sum(count > 1 for count in counts.values())
        return 2 * several >= len(counts) or 2 * len({*self.following[at - 1]}) < len(counts)

    def _is_at_once(self, at: int) -> bool:
        """Return True if a line follows the one before like it at once, without a step between them."""
        before, ns = self.ns[at - 1], self.ns[at]
        if self.sides.step_at(self.rows[at - 1]) != self.sides.step_at(self.rows[at]):
            return False
        return NO_TIME in (before, ns) or ns - before <= _AT_ONCE * _S


def _is_alike(first: Sequence[int], other: Sequence[int], is_first: bool) -> bool:
    """Return True if lines are like the first ones of the log: half of their wordings are equal, or, after one of the
    first lines, the first few in the same order."""
    own, others = list(dict.fromkeys(first)), list(dict.fromkeys(other))
    if not others:
        return False
    shared = len({*own} & {*others})
    if shared >= 2 and 2 * shared >= len(own):
        return True
    few = min(_ORDERED, len(others))
    again = list(dict.fromkeys(first[first.index(others[0]) :] if others[0] in first else ()))
    return is_first and few > 1 and again[:few] == others[:few]


def repeated_heads(log: Log, steps: Steps, taken: Sequence[Group], others: Sequence[Group]) -> Iterator[int]:
    """Yield the indexes of records, and of lines between them, with which processes begin: nearly all of those that
    precede the first step are repeated, only where a process may begin. taken, others: steps, saves and evaluations."""
    if not log.records:
        return
    before = [one for one in log.every_group if one.first.place < steps.places[0] and one not in (*taken, *others)]
    repeated = []
    for one in before:
        count = sum(at > 0 for at in steps.after(one))
        if count and count == len(list(passages_at(one, steps))) and not _recurs_with_epochs(one, steps):
            repeated.append(one)
    if _may_be_of_epochs(repeated, steps):
        return
    if len(repeated) > 1 and len(repeated) >= _NEARLY_ALL * len(before):
        for group in repeated:
            yield from passages_at(group, steps)


def begun_without_falls(log: Log, steps: Steps, taken: Sequence[Group], loads: Sequence[Group]) -> Iterator[int]:
    """Yield the indexes of lines that show a process begin without a fall of the step: a checkpoint load after a long
    silence, or a repetition of the log's first line. taken: steps. loads: lines that lead to the next step."""
    first = next((group for group in log.every_group if group.first.place == 0), None)
    is_left = first is not None and first not in taken and not is_other(first.about)
    again = [first] if first is not None and is_left and not (log.records and _recurs_with_epochs(first, steps)) else []
    again = [] if _may_be_of_epochs(again, steps) else again
    for group in (*loads, *again):
        yield from passages_at(group, steps)


def _may_be_of_epochs(groups: Sequence[Group], steps: Steps) -> bool:
    """Return True if nothing but silence shows that lines are of another process, each time: no word, fall or death."""
    places = {at for group in groups for at in steps.after(group) if 0 < at < len(steps)}
    is_shown = any(steps.ahead[at] <= 0 or steps.ended[at] or not steps.passages[at] for at in places)
    return not is_shown and not any(_OF_A_PROCESS.search(group.about) for group in groups)


def _recurs_with_epochs(group: Group, steps: Steps) -> bool:
    """Return True if lines name an epoch, or come again after equal numbers of steps: one process prints them."""
    if names_epoch(group) or re.search(r"\bepochs?\b", group.about):
        return True
    after = sorted({at for at in steps.after(group) if 0 < at < len(steps)})
    reached = np.array([int(steps.done[0]) - steps.stride[0], *(int(steps.done[at - 1]) for at in after)])
    return len(after) > 1 and len(set(np.diff(reached).tolist())) == 1


def passages_at(group: Group, steps: Steps) -> Iterator[int]:
    """Yield the indexes of lines between steps where another process may have begun."""
    for place, at in zip(group.places.tolist(), steps.after(group), strict=True):
        if 0 < at < len(steps) and steps.passages[at]:
            yield place


def repeated_headers(guess: StepGuess) -> int:
    """Return how many headers of epochs name the same one as the header before: a process may begin there."""
    if guess.carried is None:
        return 0
    group, column = guess.carried
    repeated = int((np.diff(group.columns[column].numbers) == 0).sum())
    return repeated + 1 if repeated else 0  # the first process began at none of them
