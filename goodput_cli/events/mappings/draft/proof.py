"""What speaks against a drafted rule: each test reads the whole log with it, and says what contradicts it, where."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from goodput_cli.events.mappings.draft.entries import Entry, Group, Log, quoted
from goodput_cli.events.mappings.draft.guess import (
    OF_A_PROCESS,
    OF_TRAINING,
    PhaseGuess,
    StepGuess,
    in_seconds,
    likeness,
    usual_step,
    usual_stride,
)
from goodput_cli.events.mappings.rules import Mapped
from goodput_cli.events.mappings.samples import read_line
from goodput_cli.events.text.log_lines import EventType, ParsedEvent, line_readings
from goodput_cli.events.text.stamps import have_one_fraction
from goodput_cli.events.values import number
from goodput_cli.vocabulary.text import duration, plural

_S = 10**9
_LEAST_RECORDS, _LEAST_NUMBERED = 10, 3
_RISING, _MOSTLY, _FITTING = 0.9, 0.8, 0.9
_SLOWEST, _FASTEST = 86_400.0, 1e-4
"""Seconds: no step takes more, or less."""
_LONG_PACES, _LONG_NS, _AT_ONCE_NS = 5, 10 * _S, 60 * _S
_MOST_ATTEMPTS = 50
_HALF, _LEAST_GOODPUT = 0.5, 1.0
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\)|\bcore dumped\b|^Segmentation fault")
UNEXPLAINED = 0.05
"""Of the window: less time beyond what steps usually take needs no words."""


@dataclass(frozen=True)
class Contradiction:
    """Why a rule is left out, or a draft refused."""

    test: str
    reason: str
    where: str = ""
    """FILE:LINE."""

    @property
    def line(self) -> int | None:
        number = self.where.rpartition(":")[2]
        return int(number) if number.isdecimal() else None


class Record(NamedTuple):
    """A step that a rule read."""

    entry: Entry
    done: int
    """How many steps are done."""
    each: float | None = None
    """Seconds of one step, by its line."""


@dataclass(frozen=True)
class Whole:
    """What the accounting makes of a log with a drafted mapping."""

    attempts: int
    kept: float
    goodput: float
    """Percent."""
    window: int
    """ns."""
    trained: bool = True
    """Whether any training shows."""
    longest: tuple[str, int] = ("", 0)
    """The longest stretch of a save, an evaluation, a restore or of nothing known, and its ns."""
    launches: int = 0
    """How many launches the paths of its files name: each is an attempt, also where steps go on."""


@dataclass(frozen=True)
class Steps:
    """The records of the process that has most of them."""

    records: tuple[Record, ...]
    others: int
    """Records of other processes."""
    read: frozenset[int] = frozenset()
    """The places of all lines that the rule reads."""
    by_lines: bool = False
    """Whether lines say how long their steps took, as was proven."""
    ends: tuple[int, ...] = ()
    """Places where a process ended, by a line that says so or a traceback."""

    @cached_property
    def places(self) -> list[int]:
        return [one.entry.place for one in self.records]

    @cached_property
    def falls(self) -> list[int]:
        """The records, by number, that are the first of a life: their step is below that before."""
        return [at for at, (a, b) in enumerate(pairwise(self.records), 1) if b.done <= a.done]

    @cached_property
    def usual(self) -> float | None:
        """Seconds that a step usually takes, by stamps."""
        return usual_step([one.entry for one in self.records], [one.done for one in self.records])

    @cached_property
    def coarse(self) -> bool:
        """Whether stamps are known to the second only."""
        return have_one_fraction(one.entry.ns for one in self.records if one.entry.ns is not None)

    def following(self, place: int) -> int | None:
        """The record behind a place."""
        at = bisect_right(self.places, place)
        return at if at < len(self.records) else None

    def gap(self, at: int) -> float | None:
        """Seconds between a record and that before it, beyond what its steps usually take; None between lives."""
        if at <= 0 or at >= len(self.records) or self.usual is None:
            return None
        before, behind = self.records[at - 1], self.records[at]
        if before.entry.ns is None or behind.entry.ns is None or behind.done <= before.done:
            return None
        each = behind.each if self.by_lines and behind.each is not None else self.usual
        return (behind.entry.ns - before.entry.ns) / _S - each * (behind.done - before.done)

    def is_passage(self, at: int | None) -> bool:
        """Whether a process may have begun between a record and that before it: there is none on one side, steps fall,
        or nothing was recorded for long."""
        if at is None or at == 0:
            return True
        before, behind = self.records[at - 1], self.records[at]
        if behind.done <= before.done:
            return True
        if before.entry.ns is None or behind.entry.ns is None or self.usual is None:
            return self.ended_before(at)
        silent = behind.entry.ns - before.entry.ns
        pace = self.usual * _S * (behind.done - before.done)
        return silent > max(_LONG_PACES * pace, _LONG_NS) or self.ended_before(at)

    def ended_before(self, at: int) -> bool:
        """Whether a line between a record and that before it says that its process ended."""
        place = bisect_left(self.ends, self.places[at - 1])
        return place < len(self.ends) and self.ends[place] < self.places[at]


def steps_of(made: Mapped, log: Log, guess: StepGuess) -> Steps:
    """What a rule reads of steps, and how the number of an epoch that other lines name counts. A number that comes
    again is the same state."""
    by_process: defaultdict[str, list[Record]] = defaultdict(list)
    carried = dict(zip(guess.group.places, guess.done, strict=True)) if guess.carried is not None else None
    places: set[int] = set()
    for one in log.entries:
        rule, said = _reading(made, one)
        if said is None or made.declared.rule[rule].event not in (EventType.STEP, EventType.STEP_START):
            continue
        done = 0 if said.type is EventType.START else said.step
        if carried is not None:
            done = carried[one.place] + guess.index if one.place in carried else None
        if done is None:
            continue
        places.add(one.place)
        by_process[one.process].append(Record(one, done, None if said.step_time is None else said.step_time / _S))
    most = max(by_process.values(), key=len, default=[])
    others = sum(map(len, by_process.values())) - len(most)
    return Steps(tuple(_without_echoes(most)), others, frozenset(places))


def _reading(made: Mapped, one: Entry) -> tuple[int, ParsedEvent | None]:
    """The number of the rule that reads an entry, and what it says; (-1, None): none does. The time of an entry is
    known, and is not looked for again."""
    if not made.lines or len(one.text) < len(one.line):
        read = read_line(made, one.line)
        return (-1, None) if read is None else (read.rule, read.event)
    reading = next(line_readings(made.lines, one.text), None)
    return (-1, None) if reading is None else (reading.rule.number, reading.event)


def _without_echoes(records: Sequence[Record]) -> Iterable[Record]:
    """Records without the same state again: the number just before, or one that another rank, which no prefix names,
    recorded sooner than two steps take before. Without stamps the same number is the same state if nothing was said
    between the two."""
    strides = [b.done - a.done for a, b in pairwise(records) if b.done > a.done]
    usual = usual_step([one.entry for one in records], [one.done for one in records])
    soon = 2 * _S * (usual or 0.0) * (median(strides) if strides else 1)
    first: dict[int, int] = {}
    before: Record | None = None
    last: Entry | None = None
    for one in records:
        ns, seen = one.entry.ns, first.get(one.done)
        if before is not None and last is not None and one.done <= before.done:
            again = one.done == before.done
            if ns is None or seen is None or last.ns is None:
                same = again and one.entry.place <= last.place + 2
            else:
                same = ns - seen < soon or (again and ns - last.ns < max(soon, _LONG_NS))
            if same:
                last = one.entry
                continue
        if ns is not None:
            first[one.done] = ns
        before, last = one, one.entry
        yield one


Test = Callable[[StepGuess, Steps, Log], Contradiction | None]


def step_contradiction(
    guess: StepGuess, steps: Steps, log: Log, tests: Sequence[Test] | None = None
) -> Contradiction | None:  # fmt: skip
    """The first test of the step rule that fails. tests: all of them, if none are named."""
    found = (test(guess, steps, log) for test in tests or _OF_STEPS)
    return next((one for one in found if one is not None), None)


def died_at(log: Log) -> Iterable[int]:
    """The places of lines with which a traceback begins, or a process dies."""
    return (one.place for one in log.entries if _TRACEBACK.search(one.text))


def _like(guess: StepGuess, steps: Steps) -> str:
    """`412 lines like "batch 3/38"`."""
    example = guess.group.entries[min(1, len(guess.group.entries) - 1)].message.strip()[:80]
    return f'{plural(len(steps.records) + steps.others, "line")} like "{example}"'


def _reads_its_wording(guess: StepGuess, steps: Steps, log: Log) -> Contradiction | None:
    """S6: a number is not cut: most lines that begin with its words are read."""
    if log.records or not guess.group.tokens or not steps.records:
        return None
    prefix = _prefix(guess.group)
    if sum(map(str.isalpha, prefix)) < 4:
        return None
    alike = [group for group in log.groups if group.tokens and _prefix(group) == prefix]
    known = {place for group in alike for place in group.places}
    read = sum(place in known for place in steps.read)
    if len(known) <= 2 * read:
        return None
    other = max((group for group in alike if group is not guess.group), key=lambda group: len(group.entries))
    like = other.entries[0].message.strip()[:80]
    said = f'{len(known) - read:,} lines like "{like}" are not read beside {read:,} others'
    return Contradiction("S6", said, _where(other))


def _prefix(group: Group) -> str:
    """The text before the first number."""
    one = group.entries[0]
    return one.text[one.begin : group.tokens[0].begin].strip()


def _rises(guess: StepGuess, steps: Steps, _: Log) -> Contradiction | None:
    """S1: nine in ten records rise; and a number that falls where it has come to its end counts within epochs."""
    records, falls = steps.records, steps.falls
    if not records:
        return Contradiction("S4", f"no rule that can be written reads {_like(guess, steps)}", _where(guess.group))
    where = records[falls[0]].entry.where if falls else records[0].entry.where
    of = guess.column.of if guess.epoch is None and guess.carried is None else None
    totals = set(guess.group.columns[of].whole or ()) if of is not None else set()
    ended = [at for at in falls if records[at - 1].done in totals]
    if len(totals) == 1 and len(ended) > 1 and 2 * len(ended) > len(falls):
        total = max(totals)
        said = f"{_like(guess, steps)} come to their end, {total}, {len(ended)} times and begin anew"
        return Contradiction("S1", f"{said}: no line numbers the epochs", where)
    rising = sum(b.done > a.done for a, b in pairwise(records))
    if rising < _RISING * (len(records) - 1) or len(falls) + 1 > 1 + len(records) / 4:
        said = f"{_like(guess, steps)} fall {plural(len(falls), 'time')}"
        return Contradiction("S1", f"{said}: no line numbers the epochs", where)
    return None


def _where(group: Group) -> str:
    return group.entries[0].where


def _is_spread(guess: StepGuess, steps: Steps, log: Log) -> Contradiction | None:
    """S2: enough records, and not all of them at once."""
    distinct = len({one.done for one in steps.records})
    of = guess.column.of
    totals = None if of is None else guess.group.columns[of].whole
    numbered = guess.is_epoch or guess.epoch is not None or guess.carried is not None
    numbered = numbered or (totals is not None and len(set(totals)) == 1)
    named = likeness(guess.column.name) > 0
    least = _LEAST_NUMBERED if numbered or named else _LEAST_RECORDS
    if distinct < least:
        return Contradiction("S2", f"{_like(guess, steps)} are too few to prove what counts steps", _where(guess.group))
    times = [one.entry.ns for one in steps.records if one.entry.ns is not None]
    if not log.window or len(times) < len(steps.records) / 2:
        return None
    spread, least_spread = max(times) - min(times), (0.02 if named or numbered else _HALF) * log.window
    if spread < least_spread or spread < _S:
        said = f"{_like(guess, steps)} stand in {duration(spread)} of a log of {duration(log.window)}"
        return Contradiction("S2", said, _where(guess.group))
    return None


def _begins_low(guess: StepGuess, steps: Steps, _: Log) -> Contradiction | None:
    """S3: it begins at its beginning, or it is plain that the log was cut."""
    first = steps.records[0].done
    stride, same = usual_stride(one.done for one in steps.records)
    named = likeness(guess.column.name) > 0 or guess.column.of is not None or guess.is_epoch
    if first <= 2 * stride or named or (same >= 20 and same >= _RISING * (len(steps.records) - 1)):
        return None
    return Contradiction("S3", f"{_like(guess, steps)} begin at {first}, and nothing says why", _where(guess.group))


def _takes_a_time(guess: StepGuess, steps: Steps, log: Log) -> Contradiction | None:
    """C2: something says how long a step took; without stamps it says so in its name, or something else agrees, and
    (C3) all steps fit between the stamps of other lines."""
    where, like = _where(guess.group), _like(guess, steps)
    has_times = sum(one.entry.ns is not None for one in steps.records) > len(steps.records) / 2
    if steps.usual is not None and (steps.usual < _FASTEST or steps.usual > _SLOWEST) and has_times:
        return Contradiction("C2", f"{like} are {steps.usual:.2g} s apart: they count samples, or no steps", where)
    if has_times or guess.elapsed is not None:
        return None
    if guess.each is None:
        return _times_around(guess, steps, log)
    column = guess.group.columns[guess.each[0]]
    of_step = bool((column.unit or ("", False))[1]) or column.name.split(" ")[-1:] == ["dt"]
    if guess.stride > 1 and not column.name and not of_step:
        said = f"the time in {like} may be that of one step, or of all {guess.stride} since the line before"
        said += '; `of = "all"` says the latter'
        return Contradiction("C2", said, where)
    took = sum(one.each * (one.done - before.done) for before, one in pairwise(steps.records)
               if one.each is not None and one.done > before.done)  # fmt: skip
    if took > _SLOWEST * max(1, steps.records[-1].done):
        return Contradiction("C2", f"by {like} a step takes over a day", where)
    if log.window and took > 2 * log.window / _S:
        said = f"by {like} all steps took {took:,.0f} s, and by its stamps the log is {log.window / _S:,.0f} s long"
        return Contradiction("C3", said, where)
    return None


def _times_around(guess: StepGuess, steps: Steps, log: Log) -> Contradiction | None:
    """Whether other lines have times enough between the records."""
    where, like = _where(guess.group), _like(guess, steps)
    if not log.window:
        return Contradiction(
            "C2", f"no line has a time, and no number of {like} is proven to be the time of a step", where
        )
    between = {one.ns for one in log.entries if steps.places[0] < one.place < steps.places[-1]} - {None}
    if 20 * len(between) < len(steps.records):
        said = f"{like} have no time, and between them other lines have {len(between)}"
        return Contradiction("C2", said, where)
    return None


def _is_of_training(guess: StepGuess, steps: Steps, log: Log) -> Contradiction | None:
    """S6: that something speaks of training, where the number has no name that says so."""
    if likeness(guess.column.name) > 0 or guess.column.of is not None or guess.is_epoch:
        return None
    groups = log.groups if log.records else [guess.group]
    words = " ".join(column.name for group in groups for column in group.columns) + " ".join(g.about for g in groups)
    if OF_TRAINING.search(words):
        return None
    what = "no key and no value" if log.records else f"nothing in {_like(guess, steps)}"
    said = f"{what} speaks of training: `{guess.name}` goes up from record to record, and may count"
    return Contradiction("S6", f"{said} anything", _where(guess.group))


def _is_of_one_stage(guess: StepGuess, _: Steps, log: Log) -> Contradiction | None:
    """S1: steps that begin anew where another key changes are those of another stage or run: nothing was restarted."""
    done = guess.done
    falls = [at for at in range(1, len(done)) if done[at] <= done[at - 1]]
    if not falls or not log.records or any(done[at] > done[0] for at in falls):
        return None
    for column in guess.group.columns:
        texts = column.texts
        changes = [at for at in range(1, len(texts)) if texts[at] != texts[at - 1]]
        if changes == falls and number(texts[0]) is None and not OF_A_PROCESS.search(column.name):
            before, behind = (texts[at][:80] for at in (falls[0] - 1, falls[0]))
            said = (
                f"its steps begin anew where `{column.name}` changes from {before} to {behind}: these are stages or "
                f"runs of their own, and nothing was restarted; `where = {{ {column.name} = {quoted(before)} }}` is one"
            )
            return Contradiction("S1", said, guess.group.entries[falls[0]].where)
    return None


def _has_one_size(guess: StepGuess, steps: Steps, _: Log) -> Contradiction | None:
    """S1: epochs whose number of steps no line names end with the same number each."""
    if guess.steps is None:
        return None
    values = guess.column.whole or []
    tops = [a for a, b in pairwise(values) if b < a]
    per_epoch = len(values) / max(1, len(tops) + 1)
    if per_epoch >= _LEAST_NUMBERED and 5 * sum(one == max(tops) for one in tops) >= 4 * len(tops) - 5 * len(
        steps.falls
    ):
        return None
    return Contradiction(
        "S1", f"no line says how many steps an epoch has, of {_like(guess, steps)}", _where(guess.group)
    )


_OF_STEPS: tuple[Test, ...] = (
    _reads_its_wording, _rises, _is_spread, _begins_low, _takes_a_time, _is_of_training, _is_of_one_stage,
    _has_one_size,
)  # fmt: skip
OF_A_MAPPING: tuple[Test, ...] = (_rises, _is_spread)
"""What is asked of a rule that somebody wrote: what its number means is known."""


def each_contradiction(guess: StepGuess, steps: Steps, beside: Mapping[int, float]) -> Contradiction | None:
    """C2: the time of a step agrees with the stamps between records within a factor of two, nine in ten times, and a
    quarter as a rule. beside: seconds that other lines name in the gap before a record."""
    if guess.each is None or steps.usual is None:
        return None
    values = guess.group.columns[guess.each[0]].numbers
    at = dict(zip(guess.group.places, values, strict=True))
    ratios = []
    pairs = [*enumerate(pairwise(steps.records), 1)]
    alone = [(at, (a, b)) for at, (a, b) in pairs if b.entry.place == a.entry.place + 1]  # nothing said between them
    for row, (before, one) in alone if len(alone) > 2 else pairs:
        each = at.get(one.entry.place)
        if each is None or each <= 0 or one.done <= before.done or None in (before.entry.ns, one.entry.ns):
            continue
        seconds = in_seconds(each, guess.each[1]) * (1 if guess.each[2] == "all" else one.done - before.done)
        passed = ((one.entry.ns or 0) - (before.entry.ns or 0)) / _S - beside.get(row, 0.0)
        coarse = 1.0 if steps.coarse else 0.0
        if passed > 0 and seconds > 0:
            ratios.append(1.0 if abs(passed - seconds) <= coarse else seconds / passed)
    fitting = sum(0.5 <= one <= 2 for one in ratios)
    if not ratios or fitting < _FITTING * len(ratios) or not 0.75 <= median(ratios) <= 1.33:
        name = guess.group.columns[guess.each[0]].name or "its time"
        said = f"`{name}` agrees with the stamps between {fitting} of {len(ratios)} records"
        return Contradiction("C2", said, _where(guess.group))
    return None


def start_contradiction(group: Group, steps: Steps, *, named: bool) -> Contradiction | None:
    """A1, A2: lines of a start stand before the first record or where a process may have begun, and in every place
    where steps fall. named: whether their words say that something starts; others stand where steps fall alone."""
    passages = set()
    for one in group.entries:
        at = steps.following(one.place)
        falls = at is None or at == 0 or at in steps.falls
        if not (steps.is_passage(at) if named else falls or (at is not None and steps.ended_before(at))):
            return Contradiction("A1", "a start stands between two steps of one process", one.where)
        passages.add(at)
    missing = [at for at in steps.falls if at not in passages]
    if missing or (0 not in passages and len(passages) > 1):
        at = missing[0] if missing else 0
        return Contradiction("A1", "steps fall where no such line stands", steps.records[at].entry.where)
    first, (stride, _) = steps.records[0].done, usual_stride(one.done for one in steps.records)
    if not named and len(passages) < 2 and (steps.falls or len(group.entries) > 1 or first > 2 * stride):
        return Contradiction("A2", "nothing says that it is a start", _where(group))
    return None


def repeats_at_once(group: Group, steps: Steps) -> bool:
    """Whether lines of a start come again with no step, no end and no minute between them: those of ranks."""
    return any(
        steps.following(a.place) == steps.following(b.place)
        and not any(a.place < end < b.place for end in steps.ends)
        and (a.ns is None or b.ns is None or b.ns - a.ns < _AT_ONCE_NS)
        for a, b in pairwise(group.entries)
    )


def resume_number(group: Group, steps: Steps, guess: StepGuess) -> tuple[int, int] | Contradiction:
    """R1: the column from which the next record follows, and what is added to it; else why there is none."""
    stride = guess.stride
    for at, column in sorted(enumerate(group.columns), key=lambda pair: pair[1].joined):
        values = column.whole
        if values is None or column.unit is not None:
            continue
        for add in (0, -1):
            fits = []
            for one, value in zip(group.entries, values, strict=True):
                behind = steps.following(one.place)
                if behind is not None:
                    done, said = steps.records[behind].done, value + add + guess.index
                    fits.append(said >= 0 and done - stride <= said < done)
            if fits and all(fits):
                return at, add
    return Contradiction("R1", "no number of it leads to the next step", _where(group))


def save_number(group: Group, steps: Steps, guess: StepGuess) -> int | None:
    """The column that names the step that was saved: one recorded just before."""
    known = {one.done - guess.index for one in steps.records}
    for at, column in enumerate(group.columns):
        values = column.whole
        named = likeness(column.name) > 0 or any(word in column.name for word in ("checkpoint", "ckpt"))
        if values and named and column.unit is None and sum(one in known for one in values) >= _MOSTLY * len(values):
            return at
    return None


def end_contradiction(group: Group, steps: Steps) -> Contradiction | None:
    """E1: behind an end no record of its process follows, and there is one an attempt."""
    seen = set()
    for one in group.entries:
        at = steps.following(one.place)
        if at == 0:
            return Contradiction("E1", "an end stands before the first step", one.where)
        if at is not None and not steps.is_passage(at):
            return Contradiction("E1", "steps of its process follow behind it", one.where)
        if at in seen:
            return Contradiction("E1", "it says twice that one process ended", one.where)
        seen.add(at)
    return None


def phase_contradiction(
    phase: PhaseGuess, took: tuple[int, str] | None, steps: Steps, beside: dict[int, float]
) -> Contradiction | None:
    """F1 of a phase with its length, F2 of one without: it stands in gaps, and fits them. beside: seconds that others
    take in the gap before a record."""
    word = {"eval": "evaluations"}.get(phase.event, f"{phase.event}s")
    if phase.event in ("init", "prep"):
        return _is_before_steps(phase, steps)
    by_gap: defaultdict[int, float] = defaultdict(float)
    lines: dict[int, Entry] = {}
    wrong = []
    for row, one in enumerate(phase.group.entries):
        at = steps.following(one.place)
        length = in_seconds(phase.group.columns[took[0]].numbers[row], took[1]) if took is not None else 0.0
        if at is not None and steps.gap(at) is not None:
            by_gap[at] += length
            lines.setdefault(at, one)
        elif at != 0 and took is not None and not _fits_behind(steps, at, one, length):
            wrong.append(one)
    if not by_gap:
        inside = any(steps.following(one.place) != 0 for one in phase.group.entries)
        if wrong or not inside or (took is None and steps.usual is not None):
            return Contradiction("F0", f"{word}: none stands between two steps", _where(phase.group))
        return None
    unfit = [at for at, length in by_gap.items() if not _fits(steps, at, length if took else None, beside.get(at, 0.0))]
    if len(unfit) > (1 - _MOSTLY) * len(by_gap):
        said = f"{word}: {len(unfit)} of {len(by_gap)} do not fit their gaps"
        return Contradiction("F1" if took else "F2", said, lines[unfit[0]].where)
    return None


def _fits_behind(steps: Steps, at: int | None, one: Entry, length: float) -> bool:
    """Whether a phase behind the last record of a life fits between that and its own line."""
    before = steps.records[-1 if at is None else at - 1].entry.ns
    return before is None or one.ns is None or (one.ns - before) / _S >= 0.8 * length - 1


def _fits(steps: Steps, at: int, length: float | None, beside: float) -> bool:
    gap = steps.gap(at)
    assert gap is not None
    assert steps.usual is not None
    if length is None:
        stride = steps.records[at].done - steps.records[at - 1].done
        return gap - beside > 0.5 * steps.usual * stride
    tolerance = max(0.2 * length, 1.0)
    return abs(gap - length) <= tolerance or abs(gap - beside - length) <= tolerance


def _is_before_steps(phase: PhaseGuess, steps: Steps) -> Contradiction | None:
    for one in phase.group.entries:
        if not steps.is_passage(steps.following(one.place)):
            return Contradiction("F1", "preparations: some stand between steps", one.where)
    return None


def lengths_by_gap(phase: PhaseGuess, took: tuple[int, str], steps: Steps) -> dict[int, float]:
    """Seconds that lines of a phase name, by the record behind them."""
    found: defaultdict[int, float] = defaultdict(float)
    for one, value in zip(phase.group.entries, phase.group.columns[took[0]].numbers, strict=True):
        at = steps.following(one.place)
        if at is not None and value == value:
            found[at] += in_seconds(value, took[1])
    return dict(found)


def unexplained(steps: Steps, beside: dict[int, float], starts: Collection[int]) -> float:
    """Seconds between records of one life beyond what their steps usually take and what phases say. starts: records
    before which a process began."""
    total = 0.0
    for at in range(1, len(steps.records)):
        gap = None if at in starts else steps.gap(at)
        if gap is not None and steps.usual is not None:
            stride = steps.records[at].done - steps.records[at - 1].done
            over = gap - beside.get(at, 0.0)
            total += over if over > max(0.5 * steps.usual * stride, 2.0 * steps.coarse) else 0.0
    return total


def whole_contradictions(whole: Whole, steps: Steps, starts: int, total: int | None) -> Iterable[Contradiction]:
    """W1 to W3: why the answer of a draft cannot be."""
    where = steps.records[steps.falls[0]].entry.where if steps.falls else steps.records[0].entry.where
    times = [one.entry.ns for one in steps.records if one.entry.ns is not None]
    begins = max(starts, whole.launches)
    most = 1 + len(steps.falls) + max(0, begins - 1) + sum(b < a for a, b in pairwise(times))  # a clock that is set
    if whole.attempts > min(most, 1 + len(steps.records) / 4 + begins, _MOST_ATTEMPTS):
        falls = plural(len(steps.falls), "time")
        yield Contradiction("W1", f"with it the job has {whole.attempts} attempts, and its steps fall {falls}", where)
    if total is not None and whole.kept > 1.01 * total + 1:
        yield Contradiction("W2", f"with it {whole.kept:,.0f} steps were kept, and lines name {total:,}", where)
    if whole.longest[1] > _HALF * whole.window:
        what, ns = whole.longest
        yield Contradiction("W2", f"with it one {what} takes {duration(ns)} of {duration(whole.window)}", where)
    if whole.goodput < _LEAST_GOODPUT or not whole.trained:
        yield Contradiction("W3", f"with it goodput is {whole.goodput:.2f} %", where)
