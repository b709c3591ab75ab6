"""Collect the steps that an inferred rule reads from a whole log: records of one process, and the time between them."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from goodput_cli.arrays import F64, I64, Mask, alike
from goodput_cli.events.mappings.draft.columns import EntriesOfSteps, read_columns, step_columns
from goodput_cli.events.mappings.draft.entries import (
    NO_TIME,
    Entries,
    Group,
    Log,
    are_whole_seconds,
    in_seconds,
    usual_step,
    usual_stride,
)
from goodput_cli.events.mappings.draft.guess import PhaseGuess, StepGuess
from goodput_cli.events.mappings.draft.text_entries import TextEntries
from goodput_cli.events.mappings.rules import Mapped

_S = 10**9
_LONG_PACES, _LONG = 5, 10.0
"""Ratio to the usual distance, and seconds, from which silence is long."""
_LEAST_GAPS = 8
_SPREADS, _LEAST_EXCESS = 4.0, 0.05
"""Multiple of the median deviation, and share of the usual time, beyond which a gap is more than a variation."""
_TRACEBACK = re.compile(
    r"^Traceback \(most recent call last\)|\bcore dumped\b|^Segmentation fault|^(?:Killed|Terminated|Aborted)\s*$"
    r"|: line \d+: +\d+ (?:Killed|Terminated|Aborted)\b"
)


@dataclass(frozen=True)
class Steps:
    """Records of the process with the most. For n records, arrays contain what precedes each."""

    entries: Entries
    """Entries of the log."""
    columns: EntriesOfSteps
    """Columns of its records."""
    others: int
    """Number of records of other processes."""
    read: I64
    """Indexes of all matched lines, ascending, int64."""
    by_lines: bool = False
    """True if lines contain proven step times."""
    ends: tuple[int, ...] = ()
    """Indexes where a process ended, according to a line or a traceback, or another one began."""
    heads: tuple[int, ...] = ()
    """Indexes of the first lines of processes, and of the last records of runs."""
    epochs: frozenset[int] = frozenset()
    """Indexes of records that begin an epoch, if lines count within epochs."""
    with_phases: Mask | None = None
    """True for each record before which a save or an evaluation is logged, if most have one, bool[n]."""

    def __len__(self) -> int:
        return len(self.columns.rows)

    def where(self, at: int) -> str:
        """Return FILE:LINE of a record."""
        return self.entries[int(self.columns.rows[at])].where

    @cached_property
    def places(self) -> I64:
        """Return the indexes of records, int64[n]."""
        return self.entries.places[self.columns.rows]

    @property
    def done(self) -> I64:
        """Return the number of completed steps, int64[n]."""
        return self.columns.done

    @property
    def each(self) -> F64:
        """Return the seconds per step in the lines, float64[n]; nan if not logged."""
        return self.columns.each

    @property
    def has_timed_zero(self) -> bool:
        """Return True if a record of number 0 states how long its step took: the numbers are indexes."""
        return bool((self.each[self.done == 0] > 0).any())

    @cached_property
    def stamps(self) -> I64:
        """Return the timestamps of records, int64[n]."""
        return self.entries.ns[self.columns.rows]

    @cached_property
    def ns(self) -> I64:
        """Return the time of each record by timestamp, otherwise since the clock in its line began, int64[n]."""
        return np.where(self.stamps == NO_TIME, self.columns.elapsed, self.stamps)

    @cached_property
    def stride(self) -> tuple[int, int]:
        """Return the usual number of steps between records, and its count."""
        return usual_stride(self.done)

    @cached_property
    def ahead(self) -> I64:
        """Return the increase of each record over the previous one, int64[n]; 0 for the first."""
        return np.diff(self.done, prepend=self.done[:1])

    @cached_property
    def falls(self) -> list[int]:
        """Return the indexes of records that begin an attempt: their step is below the previous one."""
        return [at for at in np.flatnonzero(self.ahead <= 0).tolist() if at]

    @cached_property
    def passed(self) -> F64:
        """Return the seconds between each record and the previous one, float64[n]; nan if one has no time, or a clock
        fell."""
        times = np.where(self.ns == NO_TIME, -1, self.ns)
        before = np.append(-1, times[:-1])
        return np.where((times >= before) & (before >= 0), (times - before) / _S, math.nan)

    @cached_property
    def usual(self) -> float | None:
        """Return the usual step time in seconds, by timestamps or a clock; None if unknown."""
        return usual_step(self.ns, self.done, self.with_phases)

    @cached_property
    def coarse(self) -> bool:
        """Return True if timestamps have a precision of seconds."""
        return are_whole_seconds(self.ns)

    @cached_property
    def gaps(self) -> F64:
        """Return the seconds between each record and the previous one beyond its steps, float64[n]; nan between
        attempts."""
        usual = math.nan if self.usual is None else self.usual
        each = np.where(np.isnan(self.each), usual, self.each) if self.by_lines else np.full(len(self), usual)
        of_one_process = (self.ahead > 0) & ~self.ended[:-1]
        return np.where(of_one_process & (not math.isnan(usual)), self.passed - each * self.ahead, math.nan)

    @cached_property
    def noise(self) -> float:
        """Return the seconds beyond which a gap is longer than most gaps vary."""
        known = ~np.isnan(self.gaps) & (True if self.with_phases is None else ~self.with_phases)
        gaps = self.gaps[known]
        if len(gaps) < _LEAST_GAPS:
            return math.inf
        usual = (self.usual or 0.0) * self.stride[0]
        spread = float(np.median(np.abs(gaps - np.median(gaps)))) * _SPREADS
        return max(spread, _LEAST_EXCESS * usual, 2.0 if self.coarse else 0.0)

    @cached_property
    def ended(self) -> Mask:
        """Return True for each record, and for the end of the log, before which a line reports the end of the process,
        bool[n + 1]."""
        before = np.searchsorted(self.ends, self.places)
        return np.diff(before, prepend=before[:1], append=len(self.ends)) > 0

    @cached_property
    def passages(self) -> Mask:
        """Return True for each record before which a process may have begun, bool[n + 1]: the first and after the last,
        if steps fall, a process ended, or nothing was recorded for long."""
        pace = self.ahead * (math.nan if self.usual is None else self.usual)
        found = (self.ahead <= 0) | (self.passed > np.maximum(_LONG_PACES * pace, _LONG))
        return np.append(found, True) | self.ended

    @cached_property
    def unexplained_falls(self) -> list[int]:
        """Return the indexes of records at which steps fall without the end of a run or the first lines of a process
        before them."""
        begun = {self.following(place) for place in self.heads}
        return [at for at in self.falls if at not in begun]

    def ends_of_runs(self, totals: Collection[int]) -> list[int]:
        """Return the indexes of the last records of runs: epochs reach their total there, and restart."""
        return [int(self.places[at - 1]) for at in self.falls if int(self.done[at - 1]) in totals]

    def following(self, place: int) -> int:
        """Return the index of the record after a line; n if there is none."""
        return int(np.searchsorted(self.places, place, side="right"))

    @cached_property
    def has_rising_times(self) -> bool:
        """Return True if each record has a timestamp that is not before the previous one."""
        return bool((self.stamps != NO_TIME).all() and (np.diff(self.stamps) >= 0).all())

    @cached_property
    def files(self) -> I64:
        """Return the numbers of the files of records."""
        return np.unique(self.entries.files[self.columns.rows])

    def after(self, group: Group) -> list[int]:
        """Return the index of the record after each line of a group; in other files, by their times."""
        found = np.searchsorted(self.places, group.places, side="right")
        if self.entries.are_of_several_files and self.has_rising_times:
            of_others = ~np.isin(self.entries.files[group.rows], self.files) & (group.ns != NO_TIME)
            found[of_others] = np.searchsorted(self.stamps, group.ns[of_others], side="right")
        places: list[int] = found.tolist()
        return places


def no_steps(log: Log) -> Steps:
    """Return steps without a record."""
    return Steps(log.entries, step_columns([]), 0, np.zeros(0, dtype=np.int64))


def steps_of(made: Mapped, log: Log, guess: StepGuess) -> Steps:
    """Return the steps that a rule reads, completed with epochs from other lines. A repeated number is the same
    state."""
    found = read_columns(made, log.entries)
    places = log.entries.places[found.rows]
    if guess.carried is not None or guess.counts_epochs:
        at = np.searchsorted(guess.group.places, places)
        own = np.append(guess.group.places, -1)[at] == places
        done = np.append(guess.done, 0)[at] + guess.index
        found = found._replace(done=done, has_done=own)
    found = found.take(found.has_done)
    by_process = sorted(alike(log.entries.processes[found.rows]).values(), key=lambda rows: (-len(rows), rows[0]))
    most = found.take(by_process[0]) if len(by_process) > 1 else found
    kept = most.take(_no_echo(most, log.entries))
    return Steps(log.entries, kept, len(found.rows) - len(most.rows), places, epochs=_epochs(kept, log.entries, guess))


def _epochs(records: EntriesOfSteps, entries: Entries, guess: StepGuess) -> frozenset[int]:
    """Return the indexes of records that begin an epoch."""
    if guess.epoch is None and guess.carried is None:
        return frozenset()
    values = guess.column.whole
    places, own = entries.places[records.rows], guess.group.places
    at = np.searchsorted(own, places)
    named = np.zeros(len(own), dtype=np.int64) if values is None else values
    told = np.where(np.append(own, -1)[at] == places, np.append(named, 0)[at], 0)
    return frozenset((np.flatnonzero(told[1:] <= told[:-1]) + 1).tolist())


def _no_echo(records: EntriesOfSteps, entries: Entries) -> Mask:
    """Return True for records that are not a repeated state, bool[n].

    A repetition has the same number, or one that another rank without prefix recorded within the time of two steps.
    Without timestamps, the same number is a repetition if nothing was logged in between.
    """
    kept = np.ones(len(records.rows), dtype=np.bool_)
    done, stamps = records.done, entries.ns[records.rows]
    below = np.append(False, done[1:] <= np.maximum.accumulate(done)[:-1])
    if not below.any():
        return kept
    ahead = np.diff(done)
    stride = float(np.median(ahead[ahead > 0])) if (ahead > 0).any() else 1
    soon = 2 * _S * (usual_step(stamps, done) or 0.0) * stride
    rows = np.flatnonzero(np.isin(done, done[below]) | np.append(below[1:], False))
    columns = (rows, below[rows], done[rows], entries.places[records.rows[rows]], stamps[rows])
    first: dict[int, int] = {}
    before, last_place, last_ns = -1, -1, NO_TIME
    for at, is_below, step, place, ns in zip(*(column.tolist() for column in columns), strict=True):
        if is_below and step <= before:
            seen, again = first.get(step), step == before
            if seen is None or NO_TIME in (ns, last_ns):
                same = again and place <= last_place + 2
            else:
                same = ns - seen < soon or (again and ns - last_ns < max(soon, _LONG * _S))
            if same:
                last_place, last_ns, kept[at] = place, ns, False
                continue
        if ns != NO_TIME:
            first[step] = ns
        before, last_place, last_ns = step, place, ns
    return kept


def log_of_run(log: Log, guess: StepGuess, steps: Steps, taken: Collection[Group]) -> Log:
    """Return a log without the lines of files with other runs: those with records of steps at other times than the file
    of these steps. Groups of lines that are only there, and taken ones, are kept whole. taken: groups that rules match.
    """
    files, rows = log.entries.files, guess.group.rows
    if not log.entries.are_of_several_files:
        return log
    span = _span(log.entries.ns[np.isin(files, steps.files)])
    others = [one for one in np.unique(files[rows]).tolist() if one not in steps.files]
    apart = [one for one in others if _are_apart(span, _span(log.entries.ns[files == one]))]
    if not apart:
        return log
    is_kept = ~np.isin(files, apart)

    def kept(group: Group) -> Group:
        at = np.flatnonzero(is_kept[group.rows]) if group not in taken else group.rows[:0]
        return group.take(at) if 0 < len(at) < len(group) else group

    return replace(log, groups=[kept(one) for one in log.groups])


def _span(ns: I64) -> tuple[int, int] | None:
    """Return the first and the last time; None without a time."""
    timed = ns[ns != NO_TIME]
    return (int(timed.min()), int(timed.max())) if len(timed) else None


def _are_apart(one: tuple[int, int] | None, other: tuple[int, int] | None) -> bool:
    """Return True if two spans of time do not overlap. Lines without times may be of any time: they are apart."""
    return one is None or other is None or one[1] <= other[0] or other[1] <= one[0]


def died_at(log: Log) -> Iterator[int]:
    """Return the indexes of lines that begin a traceback, or with which a process dies."""
    entries = log.entries
    if not isinstance(entries, TextEntries):
        for group in log.between:
            yield from group.places.tolist() if _TRACEBACK.search(group.first.text) else ()
        return
    examples = np.unique(entries.template, return_index=True)[1]
    dead = [int(entries.template[row]) for row in examples.tolist() if _TRACEBACK.search(entries.text(row))]
    yield from entries.places[np.isin(entries.template, dead)].tolist()


def lengths_by_gap(phase: PhaseGuess, took: tuple[int, str], steps: Steps) -> dict[int, float]:
    """Return the seconds in lines of a phase, by the record after them."""
    found: defaultdict[int, float] = defaultdict(float)
    lengths = in_seconds(phase.group.columns[took[0]].numbers, took[1])
    for at, length in zip(steps.after(phase.group), lengths.tolist(), strict=True):
        if at < len(steps) and length == length:
            found[at] += length
    return dict(found)


def added(lengths: Iterable[Mapping[int, float]]) -> dict[int, float]:
    """Return the total seconds before each record."""
    total: defaultdict[int, float] = defaultdict(float)
    for one in lengths:
        for at, length in one.items():
            total[at] += length
    return dict(total)
