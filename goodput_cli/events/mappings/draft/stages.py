"""Find lines with which one process announces the next stage of its training, such as a fold: they are numbered."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from goodput_cli.arrays import I64
from goodput_cli.events.mappings.draft.entries import Group, Log
from goodput_cli.events.mappings.draft.guess import StepGuess, names_epoch
from goodput_cli.events.mappings.draft.words import OF_ANY_LIFE, is_other, names_no_step
from goodput_cli.events.text.programs.stages import number_of_stage

_MOST_GROUPS = 400


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
    places = np.array(sorted([*rising, *(place for one, _ in numbered for place in one.places[1:].tolist())]), np.int64)
    after = frozenset(np.searchsorted(guess.group.places, places, side="right").tolist())
    return Stages(named, numbered, places, after)


def _lines(group: Group) -> list[tuple[int, int]]:
    """Return the index of each line of a group, and the number of its stage."""
    found = ((entry.place, number_of_stage(entry.text)) for entry in map(group.entry, range(len(group))))
    return [(place, number) for place, number in found if number is not None]


def _rising_column(group: Group, guess: StepGuess) -> int | None:
    """Return the column that begins at 0 or 1 and is one higher in each line, if there is a line wherever the steps of
    a guess begin again, and nowhere else; None if there is none."""
    if len(group) < 2 or is_other(group.about) or names_epoch(group) or len(set(group.processes.tolist())) > 1:
        return None
    done = guess.counted_alone.done
    begins = np.append(0, np.flatnonzero(done[1:] <= done[:-1]) + 1)
    after = np.searchsorted(guess.group.places, group.places, side="right")
    if not np.array_equal(after, begins):
        return None
    columns = ((at, one) for at, one in enumerate(group.columns) if one.counts and not one.joined and one.unit is None)
    rising = ((at, one) for at, one in columns if one.whole is not None and _counts_up(one.whole))
    named = ((at, one) for at, one in rising if not names_no_step(one.name))
    return next((at for at, one in named if one.of is not None or not OF_ANY_LIFE.search(group.about)), None)


def _counts_up(numbers: I64) -> bool:
    return int(numbers[0]) in (0, 1) and bool((np.diff(numbers) == 1).all())
