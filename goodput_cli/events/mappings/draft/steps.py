"""The steps that a drafted rule reads over a whole log: records of one process, and what lies between them."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import median
from typing import NamedTuple

import numpy as np

from goodput_cli.arrays import F64, I64, Mask
from goodput_cli.events.mappings.draft.entries import Entry, Group, Log
from goodput_cli.events.mappings.draft.guess import StepGuess, usual_step
from goodput_cli.events.mappings.rules import DeclaredLineRule, Mapped
from goodput_cli.events.mappings.samples import read_line
from goodput_cli.events.text.log_lines import EventType, ParsedEvent
from goodput_cli.events.text.stamps import have_one_fraction
from goodput_cli.events.text.templates import FirstRule

_S = 10**9
_LONG_PACES, _LONG = 5, 10.0
"""Silence is over so many paces, and seconds."""
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\)|\bcore dumped\b|^Segmentation fault")


class Record(NamedTuple):
    """A step that a rule read."""

    entry: Entry
    done: int
    """How many steps are done."""
    each: float | None = None
    """Seconds of one step, by its line."""
    ns: int | None = None
    """When it was, by its stamp, or else since the clock in its line began."""
    of: int | None = None
    """Of how many steps it is one."""


@dataclass(frozen=True)
class Steps:
    """The records of the process that has most of them. Of n records, arrays have what lies before each."""

    records: tuple[Record, ...]
    others: int
    """Records of other processes."""
    read: frozenset[int] = frozenset()
    """The places of all lines that the rule reads."""
    by_lines: bool = False
    """Whether lines say how long their steps took, as was proven."""
    ends: tuple[int, ...] = ()
    """Places where a process ended, by a line that says so or a traceback, or where another one began."""
    epochs: frozenset[int] = frozenset()
    """The records, by number, with which an epoch begins, where lines count within epochs."""

    @cached_property
    def places(self) -> list[int]:
        return [one.entry.place for one in self.records]

    @cached_property
    def ahead(self) -> I64:
        """int64[n]: by how many steps a record is above that before it; of the first 0."""
        done = np.array([one.done for one in self.records], dtype=np.int64)
        return np.diff(done, prepend=done[:1])

    @cached_property
    def falls(self) -> list[int]:
        """The records, by number, that are the first of a life: their step is below that before."""
        return [at for at in np.flatnonzero(self.ahead <= 0).tolist() if at]

    @cached_property
    def passed(self) -> F64:
        """float64[n]: seconds between a record and that before it; nan where one has no time, or a clock fell."""
        times = np.array([-1 if one.ns is None else one.ns for one in self.records], dtype=np.int64)
        before = np.append(-1, times[:-1])
        return np.where((times >= before) & (before >= 0), (times - before) / _S, math.nan)

    @cached_property
    def usual(self) -> float | None:
        """Seconds that a step usually takes, by stamps or a clock."""
        return usual_step([one.ns for one in self.records], [one.done for one in self.records])

    @cached_property
    def coarse(self) -> bool:
        """Whether stamps are known to the second only."""
        return have_one_fraction(one.ns for one in self.records if one.ns is not None)

    @cached_property
    def gaps(self) -> F64:
        """float64[n]: seconds between a record and that before it beyond what its steps take; nan between lives."""
        usual = math.nan if self.usual is None else self.usual
        by_lines = (one.each if self.by_lines else None for one in self.records)
        each = np.array([usual if one is None else one for one in by_lines])
        of_one_process = (self.ahead > 0) & ~self.ended[:-1]
        return np.where(of_one_process & (not math.isnan(usual)), self.passed - each * self.ahead, math.nan)

    @cached_property
    def ended(self) -> Mask:
        """bool[n + 1]: whether a line before a record says that its process ended."""
        before = np.searchsorted(self.ends, self.places)
        return np.diff(before, prepend=before[:1], append=before[-1:]) > 0

    @cached_property
    def passages(self) -> Mask:
        """bool[n + 1]: whether a process may have begun before a record: it is the first or none, steps fall, a process
        ended, or nothing was recorded for long."""
        pace = self.ahead * (math.nan if self.usual is None else self.usual)
        found = (self.ahead <= 0) | (self.passed > np.maximum(_LONG_PACES * pace, _LONG))
        return np.append(found, True) | self.ended

    def following(self, place: int) -> int:
        """The record behind a place; n where there is none."""
        return bisect_right(self.places, place)

    def after(self, group: Group) -> list[int]:
        """Of each line of a group the record behind it."""
        return [self.following(one.place) for one in group.entries]


def steps_of(made: Mapped, log: Log, guess: StepGuess) -> Steps:
    """What a rule reads of steps, and how the number of an epoch that other lines name counts. A number that comes
    again is the same state."""
    by_process: defaultdict[str, list[Record]] = defaultdict(list)
    by_others = guess.carried is not None or guess.counts_epochs
    carried = dict(zip(guess.group.places, guess.done, strict=True)) if by_others else None
    places: set[int] = set()
    reader = FirstRule(made.lines)
    for one in log.entries:
        rule, said = _reading(made, reader, one)
        if said is None or made.declared.rule[rule].event not in (EventType.STEP, EventType.STEP_START):
            continue
        done = 0 if said.type is EventType.START else said.step
        if carried is not None:
            done = carried[one.place] + guess.index if one.place in carried else None
        places.add(one.place)
        if done is not None:
            each = None if said.step_time is None else said.step_time / _S
            clock, of = (None, None) if said.running is None else (said.running.elapsed, said.running.of)
            by_process[one.process].append(Record(one, done, each, clock if one.ns is None else one.ns, of))
    most = max(by_process.values(), key=len, default=[])
    others = sum(map(len, by_process.values())) - len(most)
    records = tuple(_without_echoes(most))
    return Steps(records, others, frozenset(places), epochs=_epochs(records, guess))


def _epochs(records: Sequence[Record], guess: StepGuess) -> frozenset[int]:
    """The records, by number, with which an epoch begins."""
    if guess.epoch is None and guess.carried is None:
        return frozenset()
    values = dict(zip(guess.group.places, guess.column.whole or (), strict=False))
    told = [values.get(one.entry.place, 0) for one in records]
    return frozenset(at for at, (a, b) in enumerate(pairwise(told), 1) if b <= a)


def _reading(made: Mapped, reader: FirstRule[DeclaredLineRule], one: Entry) -> tuple[int, ParsedEvent | None]:
    """The number of the rule that reads an entry, and what it says; (-1, None): none does. The time of an entry is
    known, and is not looked for again."""
    if not made.lines or len(one.text) < len(one.line):
        read = read_line(made, one.line)
        return (-1, None) if read is None else (read.rule, read.event)
    reading = reader.read(one.text)
    return (-1, None) if reading is None else (reading.rule.number, reading.event)


def _without_echoes(records: Sequence[Record]) -> Iterable[Record]:
    """Records without the same state again: the number just before, or one that another rank, which no prefix names,
    recorded sooner than two steps take before. Without stamps the same number is the same state if nothing was said
    between the two."""
    strides = [b.done - a.done for a, b in pairwise(records) if b.done > a.done]
    usual = usual_step([one.entry.ns for one in records], [one.done for one in records])
    soon = 2 * _S * (usual or 0.0) * (median(strides) if strides else 1)
    first: dict[int, int] = {}
    before = last = records[0] if records else None
    for at, one in enumerate(records):
        ns, seen = one.entry.ns, first.get(one.done)
        if at and before is not None and last is not None and one.done <= before.done:
            again = one.done == before.done
            if ns is None or seen is None or last.entry.ns is None:
                same = again and one.entry.place <= last.entry.place + 2
            else:
                same = ns - seen < soon or (again and ns - last.entry.ns < max(soon, _LONG * _S))
            if same:
                last = one
                continue
        if ns is not None:
            first[one.done] = ns
        before = last = one
        yield one


def died_at(log: Log) -> Iterable[int]:
    """The places of lines with which a traceback begins, or a process dies."""
    return (one.place for one in log.entries if _TRACEBACK.search(one.text))
