"""What speaks against a drafted rule: each test reads the whole log with it, and says what contradicts it, where."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np

from goodput_cli.events.mappings.draft.entries import Entry, Group, Log, quoted
from goodput_cli.events.mappings.draft.guess import PhaseGuess, StepGuess, in_seconds, usual_stride
from goodput_cli.events.mappings.draft.steps import Steps
from goodput_cli.events.mappings.draft.words import (
    EPOCH,
    OF_A_PROCESS,
    OF_A_RECORD,
    OF_AN_END,
    OF_TRAINING,
    likeness,
    names_no_step,
    tells_save,
)
from goodput_cli.events.values import number
from goodput_cli.vocabulary.text import duration, plural

_S = 10**9
_LEAST_RECORDS, _LEAST_NUMBERED = 10, 3
_RISING, _MOSTLY, _FITTING = 0.9, 0.8, 0.9
_SLOWEST, _FASTEST = 86_400.0, 1e-4
"""Seconds: no step takes more, or less."""
_AT_ONCE = 60.0
"""What all ranks print, they print within so many seconds."""
_MOST_ATTEMPTS = 50
_MOST_OVER = 1.05
"""Times of steps that add up to more of what passed between them hold something else, as means since a start do."""
_CUT = 20
"""So many times the usual distance between two records, and what lay between is not in the log."""
_HALF, _LEAST_GOODPUT = 0.5, 1.0
_LEAST_PART = 0.3
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
    """The longest save, evaluation, restore or data load, and its ns."""
    launches: int = 0
    """How many launches the paths of its files name: each is an attempt, also where steps go on."""


Test = Callable[[StepGuess, Steps, Log], Contradiction | None]


def step_contradiction(
    guess: StepGuess, steps: Steps, log: Log, tests: Sequence[Test] | None = None
) -> Contradiction | None:  # fmt: skip
    """The first test of the step rule that fails. tests: all of them, if none are named."""
    found = (test(guess, steps, log) for test in tests or _OF_STEPS)
    return next((one for one in found if one is not None), None)


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
    alike = [one for one in log.groups if one.tokens and _prefix(one) == prefix and not tells_save(one.about)]
    known = {place for group in alike for place in group.places}
    read = sum(place in known for place in steps.read)
    if len(known) <= 2 * read:
        return None
    others = (group for group in alike if group is not guess.group)
    other = max(others, key=lambda group: len(group.entries), default=guess.group)
    like = other.first.message.strip()[:80]
    said = f'{len(known) - read:,} lines like "{like}" are not read, but {read:,} similar lines are'
    return Contradiction("S6", said, other.first.where)


def _reads_one_kind(guess: StepGuess, steps: Steps, log: Log) -> Contradiction | None:
    """S4: steps whose epoch other lines name are those of one wording."""
    others = steps.read.difference(guess.group.places) if guess.carried is not None else frozenset()
    if len(others) <= 0.02 * len(steps.records):
        return None
    other = next((one for one in log.entries if one.place in others), guess.group.first)
    other_lines = f'{plural(len(others), "line")} like "{other.message.strip()[:80]}"'
    said = f"the rule reads two kinds of lines: {_like(guess, steps)}, and {other_lines}"
    return Contradiction("S4", said, other.where)


def _prefix(group: Group) -> str:
    """The text before the first number."""
    return group.first.text[group.first.begin : group.tokens[0].start()].strip()


def _rises(guess: StepGuess, steps: Steps, _: Log) -> Contradiction | None:
    """S1: nine in ten records rise; and a number that falls where it has come to its end counts within epochs."""
    records, falls, totals = steps.records, steps.falls, guess.totals
    if not records:
        return Contradiction("S4", f"no rule matches {_like(guess, steps)}", guess.group.first.where)
    ended = sum(records[at - 1].done in totals for at in falls)
    said = ""
    if ended > 1 and 2 * ended > len(falls):
        said = f"reach their end ({max(totals)}) {ended} times and start again"
    elif len(falls) > min((1 - _RISING) * (len(records) - 1), len(records) / 4):
        said = f"go back {plural(len(falls), 'time')}"
    where = records[falls[0] if falls else 0].entry.where
    return Contradiction("S1", f"{_like(guess, steps)} {said}, but no line contains the epoch", where) if said else None


def _is_spread(guess: StepGuess, steps: Steps, log: Log) -> Contradiction | None:
    """S2: enough records, and not all of them at once."""
    numbered = guess.epoch is not None or guess.carried is not None or len(guess.totals) == 1
    named = guess.is_named or numbered
    said = ""
    times = [one.entry.ns for one in steps.records if one.entry.ns is not None]
    if len({one.done for one in steps.records}) < (_LEAST_NUMBERED if named else _LEAST_RECORDS):
        said = "are too few to identify a step counter"
    elif log.window and len(times) >= len(steps.records) / 2:
        spread = max(times) - min(times)
        if spread < max((0.02 if named else _HALF) * log.window, _S):
            said = f"cover only {duration(spread)} of a log of {duration(log.window)}"
    return Contradiction("S2", f"{_like(guess, steps)} {said}", guess.group.first.where) if said else None


def _begins_low(guess: StepGuess, steps: Steps, _: Log) -> Contradiction | None:
    """S3: it begins at its beginning, or it is plain that the log was cut."""
    first = steps.records[0].done
    stride, same = usual_stride(one.done for one in steps.records)
    is_cut = same >= 20 and same >= _RISING * (len(steps.records) - 1)
    if first <= 2 * stride or guess.is_named or guess.column.of is not None or is_cut:
        return None
    said = f"{_like(guess, steps)} begin at {first}, and the log does not show why"
    return Contradiction("S3", said, guess.group.first.where)


def _takes_a_time(guess: StepGuess, steps: Steps, log: Log) -> Contradiction | None:
    """C2: something says how long a step took; without stamps it says so in its name, or something else agrees, and
    (C3) all steps fit between the stamps of other lines."""
    where, like = guess.group.first.where, _like(guess, steps)
    if sum(one.entry.ns is not None for one in steps.records) > len(steps.records) / 2:
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
    took = sum(max(0, ahead) * (one.each or 0.0) for ahead, one in zip(steps.ahead, steps.records, strict=True))
    clock = next((one for one in guess.group.columns if not one.unit and ":" in one.texts[0]), None)
    passed = np.diff(clock.numbers) if clock is not None else np.zeros(1)
    if clock is not None and (passed >= 0).all() and passed.sum() > (1 + UNEXPLAINED) * took + 1:
        said = f"step times in {like} add up to {took:,.0f} s, but their clock shows {passed.sum():,.0f} s"
        return Contradiction("C3", said, where)
    if took > _SLOWEST * max(1, steps.records[-1].done):
        return Contradiction("C2", f"in {like}, a step takes more than a day", where)
    if log.window and took > 2 * log.window / _S:
        said = f"step times in {like} add up to {took:,.0f} s, but the log covers only {log.window / _S:,.0f} s"
        return Contradiction("C3", said, where)
    return None


def _times_around(guess: StepGuess, steps: Steps, log: Log) -> Contradiction | None:
    """Whether other lines have times enough between the records."""
    between = {one.ns for one in log.entries if steps.places[0] < one.place < steps.places[-1]} - {None}
    said = ""
    if not log.window:
        said = f"no line has a timestamp, and no number in {_like(guess, steps)} is known to be a step time"
    elif 20 * len(between) < len(steps.records):
        said = f"{_like(guess, steps)} have no timestamps, and lines between them have only {len(between)}"
    return Contradiction("C2", said, guess.group.first.where) if said else None


def _is_of_training(guess: StepGuess, steps: Steps, log: Log) -> Contradiction | None:
    """S6: that something speaks of training, where the number has no name that says so."""
    groups = log.groups if log.records else [guess.group]
    words = [*(column.name for group in groups for column in group.columns), *(group.about for group in groups)]
    of_how_many = guess.column.of is not None and not guess.column.name
    if guess.is_named or of_how_many or OF_TRAINING.search(" ".join(words)):
        return None
    what = "no key and no value" if log.records else f"nothing in {_like(guess, steps)}"
    said = f"{what} refers to training: `{guess.name}` increases from record to record, but may count anything"
    return Contradiction("S6", said, guess.group.first.where)


def _is_of_one_stage(guess: StepGuess, _: Steps, log: Log) -> Contradiction | None:
    """S1: steps that begin anew where another key changes are those of another stage or run: nothing was restarted."""
    falls = [at for at, (a, b) in enumerate(pairwise(guess.done), 1) if b <= a]
    if not falls or not log.records or any(guess.done[at] > guess.done[0] for at in falls):
        return None
    for column in guess.group.columns:
        texts = column.texts
        changes = [at for at, (a, b) in enumerate(pairwise(texts), 1) if a != b]
        if changes == falls and number(texts[0]) is None and not OF_A_PROCESS.search(column.name):
            before, behind = (texts[at][:80] for at in (falls[0] - 1, falls[0]))
            said = (
                f"steps start again where `{column.name}` changes from {before} to {behind}: these are separate "
                f"stages or runs, not restarts; to read one, write `where = {{ {column.name} = {quoted(before)} }}`"
            )
            return Contradiction("S1", said, guess.group.entries[falls[0]].where)
    return None


def _has_one_size(guess: StepGuess, steps: Steps, _: Log) -> Contradiction | None:
    """S1: epochs whose number of steps no line names end with the same number each."""
    values = guess.column.whole or []
    tops = [a for a, b in pairwise(values) if b < a]
    alike = 5 * sum(one == max(tops) for one in tops) >= 4 * len(tops) - 5 * len(steps.falls)
    totals = {one.of for one in steps.records if one.of is not None} if guess.of is not None else set()
    if totals and max(totals) > 1.25 * min(totals):
        said = f"{_like(guess, steps)} have different totals ({min(totals)} and {max(totals)})"
        return Contradiction("S1", said, guess.group.first.where)
    if guess.steps is None or (alike and len(values) >= _LEAST_NUMBERED * (len(tops) + 1)):
        return None
    said = f"the number of steps per epoch is unknown for {_like(guess, steps)}"
    return Contradiction("S1", said, guess.group.first.where)


_OF_STEPS: tuple[Test, ...] = (
    _reads_its_wording, _reads_one_kind, _rises, _is_spread, _begins_low, _takes_a_time, _is_of_training,
    _is_of_one_stage, _has_one_size,
)  # fmt: skip
OF_A_MAPPING: tuple[Test, ...] = (_rises, _is_spread)
"""What is asked of a rule that somebody wrote: what its number means is known."""


def each_contradiction(guess: StepGuess, steps: Steps, beside: Mapping[int, float]) -> Contradiction | None:
    """C2: the time of a step agrees with the stamps between records within a factor of two, nine in ten times, and a
    quarter as a rule. beside: seconds that other lines name in the gap before a record."""
    if guess.each is None or steps.usual is None:
        return None
    at, unit, of = guess.each
    values = dict(zip(guess.group.places, guess.group.columns[at].numbers, strict=True))
    each = np.array([in_seconds(value, unit) if (value := values.get(one, 0.0)) > 0 else 0.0 for one in steps.places])
    took = each * (1 if of == "all" else steps.ahead)
    passed = steps.passed - np.array([beside.get(row, 0.0) for row in range(len(each))])
    alone = np.diff(steps.places, prepend=math.nan) == 1  # nothing was said between them
    known = (steps.ahead > 0) & (took > 0) & (passed > 0) & (alone if alone.sum() > 2 else True)
    took, passed = took[known], passed[known]
    ratios = np.where(np.abs(passed - took) <= (1.0 if steps.coarse else 0.0), 1.0, took / passed)
    fitting = int(((ratios >= 0.5) & (ratios <= 2)).sum())
    near = ratios >= 0.5  # no save or evaluation between
    name = guess.group.columns[at].name or "its time"
    if len(ratios) and fitting >= _FITTING * len(ratios) and 0.75 <= np.median(ratios) <= 1.33:
        over = float(took[near].sum() / passed[near].sum())
        if over <= _MOST_OVER:
            return None
        said = f"`{name}` adds up to {over:.2f} times the time between records"
        return Contradiction("C2", said, guess.group.first.where)
    said = f"`{name}` matches the timestamps of only {fitting} of {len(ratios)} records"
    return Contradiction("C2", said, guess.group.first.where)


def start_contradiction(
    group: Group, steps: Steps, living: Collection[int] = (), *, named: bool
) -> Contradiction | None:
    """A1, A2: lines of a start stand before the first record or where a process may have begun, and in every place
    where steps fall, but where the process went on. living: the records before which it did. named: whether their words
    say that something starts; others stand where steps fall alone."""
    behind, edges = steps.after(group), (0, len(steps.records), *steps.falls)
    for one, at in zip(group.entries, behind, strict=True):
        if not (steps.passages[at] if named else at in edges or steps.ended[at]):
            return Contradiction("A1", "a start line is between two steps of one process", one.where)
    between = [at for at in behind if 0 < at < len(steps.records) and at not in steps.falls and not steps.ended[at]]
    if between and (_numbers_epochs(group, behind) or len(steps.epochs & set(between)) == len(set(between)) > 1):
        return Contradiction("A1", "it appears at the start of epochs", steps.records[between[0]].entry.where)
    missing = [at for at in steps.falls if at not in behind and at not in living]
    first, (stride, _) = steps.records[0].done, usual_stride(one.done for one in steps.records)
    is_cut = named and first > 2 * stride
    if missing or (0 not in behind and len(set(behind)) > 1 and not is_cut):
        at = missing[0] if missing else 0
        return Contradiction("A1", "steps go back without such a line", steps.records[at].entry.where)
    alone = not steps.falls and len(group.entries) == 1 and first <= 2 * stride
    if not named and len(set(behind)) < 2 and not alone:
        return Contradiction("A2", "nothing identifies it as a start", group.first.where)
    return None


def _numbers_epochs(group: Group, behind: Sequence[int]) -> bool:
    """Whether lines name epochs, and not always the same."""
    return any(EPOCH.search(one.name) and len(set(one.texts)) > 1 for one in group.columns) and len(set(behind)) > 1


def repeats_at_once(group: Group, steps: Steps) -> bool:
    """Whether lines of a start come again with no step, no end and no minute between them: those of ranks."""
    return any(
        steps.following(a.place) == steps.following(b.place)
        and not any(a.place < end < b.place for end in steps.ends)
        and (a.ns is None or b.ns is None or b.ns - a.ns < _AT_ONCE * _S)
        for a, b in pairwise(group.entries)
    )


def resume_number(group: Group, steps: Steps, guess: StepGuess) -> tuple[int, int] | Contradiction:
    """R1: the column from which the next record follows, and what is added to it; else why there is none."""
    behind = steps.after(group)
    for at, column in sorted(enumerate(group.columns), key=lambda pair: pair[1].joined):
        other = column.unit is not None or names_no_step(column.name)
        other = other or (not guess.is_epoch and EPOCH.search(column.name) is not None)
        for add in (0, -1) if column.whole is not None and not other else ():
            said = [value + add + guess.index for value in column.whole or ()]
            pairs = [(one, steps.records[row].done) for one, row in zip(said, behind, strict=True)
                     if row < len(steps.records)]  # fmt: skip
            if pairs and all(one >= 0 and done - guess.stride <= one < done for one, done in pairs):
                return at, add
    return Contradiction("R1", "none of its numbers leads to the next step", group.first.where)


def save_number(group: Group, steps: Steps, guess: StepGuess) -> int | None:
    """The column that names the step that was saved: one recorded just before."""
    known = {one.done - guess.index for one in steps.records}
    for at, column in sorted(enumerate(group.columns), key=lambda pair: pair[1].joined):
        values = column.whole
        named = likeness(column.name) > 0 or any(word in column.name for word in ("checkpoint", "ckpt"))
        if values and named and column.unit is None and sum(one in known for one in values) >= _MOSTLY * len(values):
            return at
    return None


def summary_number(group: Group, steps: Steps, guess: StepGuess) -> int | None:
    """The column of other lines that has the name of the step, and in each line a number above the record before it and
    not above the one behind it; None: there is none."""
    behind = steps.after(group)
    for at, column in enumerate(group.columns):
        values = column.whole
        if values is None or column.joined or not f" {column.name}".endswith(f" {guess.name}"):
            continue
        done = [value + guess.index for value in values]
        if all(row and steps.records[row - 1].done < one for one, row in zip(done, behind, strict=True)) and all(
            one < steps.records[row].done
            for one, row in zip(done, behind, strict=True)
            if row < len(steps.records) and row not in steps.falls
        ):
            return at
    return None


def ended_epoch(group: Group, steps: Steps, guess: StepGuess) -> int | None:
    """The column of lines that stand behind the last record of each epoch and number it, and whose words say that it
    ended; None: there is none."""
    if not OF_AN_END.search(group.about) or guess.epoch is None:
        return None
    epochs = dict(zip(guess.group.places, guess.group.columns[guess.epoch].whole or (), strict=False))
    of_records = [epochs.get(one.entry.place) for one in steps.records]
    for at, column in enumerate(group.columns):
        pairs = list(zip(column.whole or (), steps.after(group), strict=False))
        if (
            pairs
            and EPOCH.search(column.name)
            and all(
                row and of_records[row - 1] == one and (row == len(of_records) or of_records[row] != one)
                for one, row in pairs
            )
        ):
            return at
    return None


def end_contradiction(group: Group, steps: Steps, starts: Collection[int]) -> Contradiction | None:
    """E1: behind an end no record of its process follows, and there is one an attempt. starts: records behind lines of
    starts."""
    seen: dict[int, int | None] = {}
    for one, at in zip(group.entries, steps.after(group), strict=True):
        if at == 0:
            return Contradiction("E1", "an end line is before the first step", one.where)
        if at < len(steps.records) and at not in starts and at not in steps.falls and not steps.ended[at]:
            return Contradiction("E1", "steps of the same process follow it", one.where)
        before = seen.setdefault(at, one.ns)
        if one.ns is not None and before is not None and one.ns - before >= _AT_ONCE * _S:  # else ranks end together
            return Contradiction("E1", "it reports the end of one process twice", one.where)
    return None


def phase_contradiction(
    phase: PhaseGuess, took: tuple[int, str] | None, steps: Steps, beside: Mapping[int, float]
) -> Contradiction | None:
    """F1 of a phase with its length, F2 of one without: it stands in gaps, and fits them. beside: seconds that others
    take in the gap before a record."""
    word = {"eval": "evaluations"}.get(phase.event, f"{phase.event}s")
    behind, first = steps.after(phase.group), phase.group.first
    if phase.event in ("init", "prep"):
        inside = (one for one, at in zip(phase.group.entries, behind, strict=True) if not steps.passages[at])
        wrong = next(inside, None)
        return None if wrong is None else Contradiction("F1", "preparations: some are between steps", wrong.where)
    by_gap: defaultdict[int, float] = defaultdict(float)
    lines: dict[int, Entry] = {}
    fits_behind = True
    for row, (one, at) in enumerate(zip(phase.group.entries, behind, strict=True)):
        length = in_seconds(phase.group.columns[took[0]].numbers[row], took[1]) if took is not None else 0.0
        if at < len(steps.records) and not math.isnan(steps.gaps[at]):
            by_gap[at] += length
            lines.setdefault(at, one)
        elif at and took is not None:
            before = steps.records[at - 1].entry.ns
            fits_behind &= before is None or one.ns is None or (one.ns - before) / _S >= 0.8 * length - 1
    if not by_gap and took is not None and steps.usual is None and _holds_steps(phase, took, steps):
        said = f"{word}: they take as long as the steps before them and may include these"
        return Contradiction("F1", said, first.where)
    if not by_gap:
        if fits_behind and any(behind) and (took is not None or steps.usual is None):
            return None
        return Contradiction("F0", f"{word}: none is between two steps", first.where)
    unfit = [at for at, length in by_gap.items() if not _fits(steps, at, length if took else None, beside.get(at, 0.0))]
    if len(unfit) > (1 - _MOSTLY) * len(by_gap):
        what = "durations do not fit" if took else "have no time"
        said = f"{word}: {len(unfit)} of {len(by_gap)} {what} between the neighboring steps"
        return Contradiction("F1" if took else "F2", said, lines[unfit[0]].where)
    return None


def _holds_steps(phase: PhaseGuess, took: tuple[int, str], steps: Steps) -> bool:
    """Whether a phase mostly takes as long as all steps since it was last said, by the times that their lines name."""
    spent = np.cumsum(
        [max(0, ahead) * (one.each or 0.0) for ahead, one in zip(steps.ahead, steps.records, strict=True)]
    )
    so_far = np.append(0.0, spent)[steps.after(phase.group)]
    since = np.diff(so_far, prepend=0.0)
    lengths = np.array([in_seconds(one, took[1]) for one in phase.group.columns[took[0]].numbers])
    return bool(np.mean(lengths >= 0.9 * since) > _MOSTLY and np.median(since) > 0)


def _fits(steps: Steps, at: int, length: float | None, beside: float) -> bool:
    gap = float(steps.gaps[at])
    if length is None:
        return gap - beside > 0.5 * (steps.usual or 0.0) * int(steps.ahead[at])
    tolerance = max(0.2 * length, 1.0)
    return abs(gap - length) <= tolerance or abs(gap - beside - length) <= tolerance


def lengths_by_gap(phase: PhaseGuess, took: tuple[int, str], steps: Steps) -> dict[int, float]:
    """Seconds that lines of a phase name, by the record behind them."""
    found: defaultdict[int, float] = defaultdict(float)
    for at, value in zip(steps.after(phase.group), phase.group.columns[took[0]].numbers, strict=True):
        if at < len(steps.records) and value == value:
            found[at] += in_seconds(value, took[1])
    return dict(found)


def added(lengths: Iterable[Mapping[int, float]]) -> dict[int, float]:
    """Seconds before records, of all together."""
    total: defaultdict[int, float] = defaultdict(float)
    for one in lengths:
        for at, length in one.items():
            total[at] += length
    return dict(total)


def unexplained(steps: Steps, beside: Mapping[int, float], starts: Collection[int]) -> float:
    """Seconds between records of one life beyond what their steps usually take and what phases say. starts: records
    before which a process began."""
    over = steps.gaps - np.array([math.nan if at in starts else beside.get(at, 0.0) for at in range(len(steps.gaps))])
    least = np.maximum(0.5 * (steps.usual or 0.0) * steps.ahead, 2.0 * steps.coarse)
    return float(over[over > least].sum())


def steps_before(steps: Steps, entries: Sequence[Entry]) -> float:
    """Seconds of the steps below the first record, where no line says that the log was cut, and they fit between its
    begin and that record."""
    first, (stride, _) = steps.records[0], usual_stride(one.done for one in steps.records)
    begin = next((one.ns for one in entries if one.ns is not None), None)
    took = (first.done - stride) * (steps.usual or 0.0)
    if begin is None or first.entry.ns is None or first.done <= 2 * stride or took > (first.entry.ns - begin) / _S:
        return 0.0
    return took


def named_part(guess: StepGuess, steps: Steps) -> tuple[str, float] | None:
    """The time that lines of steps name of all steps since the last one, where it is far less than what passed, with
    its share of that; None: they name none."""
    passed = dict(zip(steps.places, steps.passed.tolist(), strict=True))
    for column in guess.group.columns:
        if column.joined or not OF_A_RECORD.search(column.name):
            continue
        rows = zip(guess.group.places, column.numbers, strict=True)
        shares = [value / gap for place, value in rows if (gap := passed.get(place, 0.0)) > 0]
        if len(shares) < _LEAST_NUMBERED or max(shares) > 1 + UNEXPLAINED:
            continue
        if _LEAST_PART < median(shares) < 1 - UNEXPLAINED:
            return column.name, median(shares)
    return None


def kept_seconds(steps: Steps) -> float | None:
    """Seconds of the steps that no later life redid, by the times that their lines name; None: they name none."""
    if not steps.by_lines or steps.others:
        return None
    stride, _ = usual_stride(one.done for one in steps.records)
    first = steps.records[0].done
    kept: list[tuple[int, float]] = [(0 if first <= 2 * stride else first - stride, 0.0)]
    usual = median(one.each or 0.0 for one in steps.records)
    for at, one in enumerate(steps.records):
        while len(kept) > 1 and kept[-1][0] >= one.done:
            kept.pop()
        each = one.each or 0.0
        each = min(each, usual) if steps.passages[at] else each  # the first step of a process compiles
        ahead = one.done - kept[-1][0]
        kept.append((one.done, (ahead if ahead < _CUT * stride else stride) * each))
    return sum(seconds for _, seconds in kept)


def whole_contradictions(whole: Whole, steps: Steps, starts: int, total: int | None) -> Iterable[Contradiction]:
    """W1 to W3: why the answer of a draft cannot be."""
    where = steps.records[steps.falls[0] if steps.falls else 0].entry.where
    anew = [at for at in steps.falls if steps.records[at].done <= steps.records[0].done and not steps.ended[at]]
    end, same = Counter(steps.records[at - 1].done for at in anew).most_common(1)[0] if anew else (0, 0)
    if same > max(1, starts, len(steps.falls) / 2):
        yield Contradiction(
            "W1", f"steps reach {end} {same} times and start again, but no line contains the epoch", where
        )
    times = [one.entry.ns for one in steps.records if one.entry.ns is not None]
    begins = max(starts, whole.launches)
    of_starts = min(sum(bool(steps.ended[at]) for at in steps.falls), max(0, begins - 1))  # the same restarts
    restarts = len(steps.falls) + max(0, begins - 1) - of_starts
    most = 1 + restarts + sum(b < a for a, b in pairwise(times))  # a clock that is set
    if whole.attempts > min(most, 1 + len(steps.records) / 4 + begins, _MOST_ATTEMPTS):
        falls = plural(len(steps.falls), "time")
        said = f"with this rule, the job has {whole.attempts} attempts, but steps go back only {falls}"
        yield Contradiction("W1", said, where)
    if total is not None and whole.kept > 1.01 * total + 1:
        yield Contradiction(
            "W2", f"with this rule, {whole.kept:,.0f} steps are kept, but the log has a total of {total:,}", where
        )
    if whole.longest[1] > _HALF * whole.window:
        what, ns = whole.longest
        yield Contradiction("W2", f"with this rule, one {what} takes {duration(ns)} of {duration(whole.window)}", where)
    trained = kept_seconds(steps)
    if trained is not None and trained - whole.goodput / 100 * whole.window / _S > 0.05 * whole.window / _S:
        took, stated = duration(round(whole.goodput / 100 * whole.window)), duration(round(trained * _S))
        yield Contradiction("W4", f"with this rule, steps take {took}, but their lines add up to {stated}", where)
    if whole.goodput < _LEAST_GOODPUT or not whole.trained:
        yield Contradiction("W3", f"with this rule, goodput is {whole.goodput:.2f} %", where)
