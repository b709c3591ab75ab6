"""Which number of a log counts steps, what it is counted within, and which one is the time of a step."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import median

from goodput_cli.events.mappings.declared import UNITS
from goodput_cli.events.mappings.draft.words import EPOCH, step_likeness

_LEAST = 3
_NEAR = 0.12
MOST = 1_000_000_000
"""Above it a number counts tokens, samples or times, and no steps."""
_CLOCK = re.compile(r"(?:(?:(\d+) ?d(?:ays?)?,? )?(\d+):)?(\d{1,2}):(\d\d(?:\.\d{1,9})?)", re.ASCII)
_RISING = 0.6
_OF_LIVES = re.compile(r"\b(?:attempts?|tr(?:y|ies)|retr(?:y|ies)|restarts?|runs?|launch(?:es)?|lives|life|pid)\b")
"""Words before a number that counts processes."""
_FAR = 5
"""A time of so many times the usual one holds something else."""


@dataclass(frozen=True)
class Column:
    """The numbers that one place of similar lines, or one key of similar records, holds."""

    name: str
    """The words that may be its name."""
    texts: Sequence[str]
    unit: tuple[str, bool] | None = None
    """Of a time, and whether it is that of one step."""
    of: int | None = None
    """The column that says of how many it is one: `3/100`."""
    counts: bool = True
    """Whether it may count something: no clock, and no percentage."""
    is_elapsed: bool = False

    def whole(self) -> list[int] | None:
        """As whole numbers; None if some are none."""
        return self._whole

    @cached_property
    def _whole(self) -> list[int] | None:
        found = [text.replace(",", "") for text in self.texts]
        if not all(re.fullmatch(r"\+?\d{1,15}(?:\.0+)?", text) for text in found):
            return None
        return [int(float(text)) for text in found]

    def numbers(self) -> list[float]:
        """As numbers, a clock such as 1:02:03 in seconds; what is none as nan."""
        return self._numbers

    @cached_property
    def _numbers(self) -> list[float]:
        return [_number(text) for text in self.texts]


@dataclass(frozen=True)
class Lines:
    """Similar lines or records."""

    columns: Sequence[Column]
    places: Sequence[int]
    """Where each stands in the log."""
    times: Sequence[int | None]
    """ns of each."""
    count: int
    penalty: float = 0.0
    """How much their words say that they are about something else."""
    may_repeat: bool = False
    """Whether several of them may be about one step, as lines of micro-batches are."""


@dataclass(frozen=True)
class Epochs:
    """What steps begin anew with."""

    column: int | None
    """Of the same lines; None: other lines say it."""
    first: int
    of: int | None
    """The column that says how many steps an epoch has."""
    steps: int | None
    """How many they are, where no column says it."""


@dataclass(frozen=True)
class Candidate:
    """A column that may count steps."""

    lines: Lines
    step: int
    epochs: Epochs | None
    index: bool
    """Whether it counts from 0."""
    each: int | None
    """The column that is the time of one step: one that goes up and down about a level, and no part of another."""
    unit: str
    elapsed: int | None
    """The column that is the time since something began: it never falls but at a restart."""
    score: float
    done: tuple[int, ...]
    """Of each line, how many steps are done (`index`: the number of the last)."""

    @property
    def of_last(self) -> bool:
        """Whether that is the time of the last step alone, of all that there were since the line before: lines without
        a time in which one is far longer than others at an even distance, for an evaluation."""
        if self.each is None or self.epochs is not None or _has_times(self.lines):
            return False
        times = self.lines.columns[self.each].numbers()
        usual = median(times)
        strides = [b - a for a, b in pairwise(self.done) if b > a]
        far = [done for done, time in zip(self.done, times, strict=True) if time > _FAR * usual]
        ahead = [b - a for a, b in pairwise(far) if b > a]
        return bool(strides) and median(strides) > 1 and bool(ahead) and all(one % min(ahead) == 0 for one in ahead)

    @property
    def runs_to_its_end(self) -> int | None:
        """The number at which the count ends, if it falls behind that mostly: it is of epochs that no line numbers, or
        of runs of their own, and nothing was restarted."""
        of = self.lines.columns[self.step].of
        totals = None if of is None else self.lines.columns[of].whole()
        if totals is None or self.epochs is not None or not self.falls:
            return None
        near = self.apart if self.apart > 1 else 1
        falls = [at for at, (a, b) in enumerate(pairwise(self.done)) if b <= a]
        ended = [at for at in falls if self.done[at] + self.index >= totals[at] - near + 1]
        return totals[ended[-1]] if 2 * len(ended) > len(falls) else None

    @property
    def apart(self) -> int:
        """How many steps lines mostly stand apart."""
        strides = [b - a for a, b in pairwise(self.done) if b > a]
        return round(median(strides)) if strides else 1

    @property
    def may_be_of_all(self) -> bool:
        """Whether nothing tells if the time is that of one step or of all since the line before: lines without a time,
        several steps apart, and a time that has no name."""
        if self.each is None or _has_times(self.lines) or self.apart == 1:
            return False
        column = self.lines.columns[self.each]
        return not column.name and not (column.unit or ("", False))[1]

    @property
    def trained(self) -> float | None:
        """Seconds that all steps took, by the column that is the time of one; None without such a column."""
        if self.each is None:
            return None
        return _total(self.lines.columns[self.each].numbers(), self.unit, self.done)

    @property
    def falls(self) -> list[int]:
        """Where in the log the count falls: something was restarted."""
        places, repeats = self.lines.places, self.lines.may_repeat and len({*self.done}) < len(self.done) / 2
        return [places[at + 1] for at, (a, b) in enumerate(pairwise(self.done)) if b < a or (b == a and not repeats)]


def candidates(lines: Lines, epochs_elsewhere: Sequence[tuple[int, int]]) -> Iterable[Candidate]:
    """The columns of lines that may count steps. epochs_elsewhere: where lines name an epoch, and which."""
    if lines.count < 2:
        return
    for at, column in enumerate(lines.columns):
        values = column.whole()
        is_other = column.unit is not None or not column.counts or EPOCH.search(column.name)
        if values is None or is_other or max(values) > MOST:
            continue
        found = _candidate(lines, at, values, epochs_elsewhere)
        if found is not None:
            yield found


def epochs_as_steps(lines: Lines) -> Iterable[Candidate]:
    """The columns that count epochs: the steps of a log that names no others."""
    for at, column in enumerate(lines.columns):
        values = column.whole() if EPOCH.search(column.name) else None
        if values is not None and lines.count >= 2 and max(values) <= MOST and _rising(values) >= _RISING:
            yield _made(lines, at, values, None, 1.0)


def _candidate(
    lines: Lines, at: int, values: list[int], epochs_elsewhere: Sequence[tuple[int, int]]
) -> Candidate | None:
    column = lines.columns[at]
    epochs = _epochs(lines, at, values, epochs_elsewhere)
    done = values if epochs is None else _within(lines, values, epochs, epochs_elsewhere)
    told = [b for a, b in zip([None, *done], done, strict=False) if a != b] if lines.may_repeat else done
    rises = _rising(told)
    likely = step_likeness(column.name) + (1.5 if column.of is not None else 0.0)
    likely += 1.0 if "global" in column.name else 3.0 if column.name.endswith("num updates") else 0.0
    constant = len(set(values)) < 2 and column.of is None
    if constant or rises < _RISING or len(set(done)) < min(_LEAST, lines.count) or likely < 0:
        return None
    if likely == 0 and lines.penalty:  # a number in lines about something else
        return None
    strides = Counter(b - a for a, b in pairwise(done) if b > a)
    regular = strides.most_common(1)[0][1] / max(1, len(done) - 1) if strides else 0.0
    if likely == 0 and (regular < _RISING or lines.count < _LEAST):
        return None
    score = likely + regular + rises + math.log10(lines.count) - lines.penalty
    return _made(lines, at, done, epochs, score, values)


def _made(
    lines: Lines, at: int, done: Sequence[int], epochs: Epochs | None, score: float, values: Sequence[int] | None = None
) -> Candidate:
    of = lines.columns[at].of
    within = values if values is not None else done
    total = None if of is None else next(iter(lines.columns[of].whole() or ()), None)
    strides = Counter(b - a for a, b in pairwise(within) if b > a)
    stride = strides.most_common(1)[0][0] if strides else 1
    index = min(within) == 0 or (total is not None and stride == 1 and max(within) == total - 1)
    index = index or (stride > 1 and all(value % stride == stride - 1 for value in within))
    index = index and (total is None or max(within) != total) and not any(one.is_elapsed for one in lines.columns)
    each, unit = _each(lines, at, done)
    elapsed = None
    if not all(time is not None for time in lines.times):
        elapsed, unit = _elapsed(lines, at, done, (each, unit))
    timed = 0.5 if each is not None or elapsed is not None or _has_times(lines) else -3.0
    each = None if elapsed is not None else each
    return Candidate(lines, at, epochs, index, each, unit, elapsed, score + timed, tuple(done))


def _epochs(lines: Lines, at: int, values: Sequence[int], epochs_elsewhere: Sequence[tuple[int, int]]) -> Epochs | None:
    """What a count begins anew with; None: with nothing."""
    others = [(row, one) for row, one in enumerate(lines.columns) if row != at and one.counts and one.unit is None]
    own = next((row for row, one in others if EPOCH.search(one.name) and one.whole()), None)
    if own is None:
        own = next((row for row, one in others if _numbers_epochs(one, values)), None)
    if own is not None:
        named = lines.columns[own].whole() or []
    elif epochs_elsewhere and lines.places[0] < epochs_elsewhere[0][0] and len(values) > 1:
        return None  # lines that name an epoch where it ends
    else:
        named = [_carried(epochs_elsewhere, place) for place in lines.places] if epochs_elsewhere else []
    changes = [row for row, (a, b) in enumerate(pairwise(named)) if b > a]
    anew = [row for row in changes if values[row + 1] <= values[row]]
    if not changes or len(anew) < 0.8 * len(changes):
        return None
    first = 0 if min(named) == 0 else 1
    of = lines.columns[at].of
    steps = None if of is not None else _steps_of_an_epoch(values)
    return Epochs(own, first, of, steps)


def _numbers_epochs(column: Column, values: Sequence[int]) -> bool:
    """Whether numbers go up by one where values fall to where they began, and nowhere else: those of epochs, whatever
    they are called; not those of attempts and processes, which may redo a part only."""
    numbers = column.whole()
    falls = [b < a for a, b in pairwise(values)]
    if numbers is None or not any(falls) or min(numbers) > 1 or _OF_LIVES.search(column.name):
        return False
    anew = all(b <= values[0] for a, b in pairwise(values) if b < a)
    return anew and [b - a for a, b in pairwise(numbers)] == [int(fall) for fall in falls]


def _steps_of_an_epoch(values: Sequence[int]) -> int:
    """How many steps an epoch has, by the greatest number that was printed and the usual distance between two."""
    strides = Counter(b - a for a, b in pairwise(values) if b > a)
    stride = strides.most_common(1)[0][0] if strides else 1
    greatest, least = max(values), min(values)
    if least == 0:
        return greatest + stride
    return greatest + 1 if stride > 1 and least % stride == stride - 1 else greatest


def _within(
    lines: Lines, values: Sequence[int], epochs: Epochs, epochs_elsewhere: Sequence[tuple[int, int]]
) -> list[int]:
    if epochs.column is not None:
        named = lines.columns[epochs.column].whole() or []
    else:
        named = [_carried(epochs_elsewhere, place) for place in lines.places]
    if epochs.of is not None:
        sizes = lines.columns[epochs.of].whole() or [0] * len(values)
    else:
        sizes = [epochs.steps or 0] * len(values)
    return [
        max(0, epoch - epochs.first) * size + value for epoch, size, value in zip(named, sizes, values, strict=True)
    ]


def _carried(epochs_elsewhere: Sequence[tuple[int, int]], place: int) -> int:
    at = bisect_right(epochs_elsewhere, (place, 1 << 62)) - 1
    return epochs_elsewhere[at][1] if at >= 0 else (epochs_elsewhere[0][1] if epochs_elsewhere else 0)


def _rising(values: Sequence[int]) -> float:
    pairs = list(pairwise(values))
    return sum(b > a for a, b in pairs) / len(pairs) if pairs else 0.0


def _each(lines: Lines, at: int, done: Sequence[int]) -> tuple[int | None, str]:
    """The column that is the time of one step, and its unit: where lines have times, one that agrees with them."""
    timed = [row for row, one in enumerate(lines.columns) if one.unit is not None and row != at]
    timed = [row for row in timed if not rises(lines.columns[row].numbers(), done)]
    timed = [row for row in timed if not any(_is_part(lines, row, other) for other in timed if other != row)]
    usual = usual_step(lines, done)
    if usual is None:
        timed.sort(key=lambda row: not (lines.columns[row].unit or ("", False))[1])
        return (timed[0], (lines.columns[timed[0]].unit or ("s", False))[0]) if timed else (None, "")
    for row in timed:
        column = lines.columns[row]
        for unit in dict.fromkeys(((column.unit or ("s", False))[0], "s", "ms")):
            values = [value for value in column.numbers() if value > 0]
            seconds = [UNITS[unit] * value if unit != "per_s" else 1.0 / value for value in values]
            if seconds and abs(median(seconds) / usual - 1) < _NEAR:
                return row, unit
    return None, ""


def _elapsed(lines: Lines, at: int, done: Sequence[int], each: tuple[int | None, str]) -> tuple[int | None, str]:
    """The column that is the time since something began, and its unit; without one, or where it says another time than
    all steps took by the time of one, in whatever unit, the unit of the time of a step."""
    unit = each[1]
    drawn = next((row for row, one in enumerate(lines.columns) if one.is_elapsed), None)
    if drawn is not None:
        return drawn, unit
    columns = [(row, one) for row, one in enumerate(lines.columns) if one.unit is not None and row != at]
    clocks = [(row, one) for row, one in columns if is_clock(one.numbers(), done) and not _is_of_a_step(one)]
    if not clocks:
        return None, unit
    row, column = max(clocks, key=lambda pair: _in_seconds(pair[1])[-1])
    own = (column.unit or ("s", False))[0]
    if each[0] is None:
        return row, own
    took = _total(lines.columns[each[0]].numbers(), unit, done)
    values = column.numbers()
    fitting = [one for one in (own, "s", "ms", "min", "h") if 0.5 < UNITS[one] * (max(values) - min(values)) / took < 2]
    return (row, fitting[0]) if fitting else (None, unit)


def _total(each: Sequence[float], unit: str, done: Sequence[int]) -> float:
    """Seconds that all steps took, by the time of one."""
    pairs = zip(pairwise(done), each[1:], strict=False)
    factor = UNITS[unit]
    return sum((b - a) * (factor * one if factor > 0 else 1 / one) for (a, b), one in pairs if b > a and one > 0)


def _is_of_a_step(column: Column) -> bool:
    """Whether the words before a time say that it is that of one step, or of one thing."""
    unit = column.unit or ("s", False)
    return (
        unit[0] == "per_s"
        or unit[1]
        or re.search(r"\b(?:took|dt|duration|latency|mean|avg|average|in)$", column.name) is not None
    )


def rises(values: Sequence[float], done: Sequence[int]) -> bool:
    """Whether numbers never fall, but where the step falls, and rise: then they are no time of one step."""
    pairs = [(a, b) for (a, b), (one, other) in zip(pairwise(values), pairwise(done), strict=False) if other > one]
    return len(pairs) > 1 and all(b >= a for a, b in pairs) and any(b > a for a, b in pairs)


def is_clock(values: Sequence[float], done: Sequence[int]) -> bool:
    """Whether numbers are the time since something began: they never fall, but where the step falls, rise from row to
    row, and come to a multiple of the usual distance of two rows."""
    ahead = [b - a for (a, b), (one, other) in zip(pairwise(values), pairwise(done), strict=False) if other > one]
    if not rises(values, done):
        return False
    growing = sum(one > 0 for one in ahead) >= len(ahead) / 2
    return growing and max(values) > 1.5 * median(ahead) and max(values) - min(values) > 0.3 * max(values)


def _is_part(lines: Lines, row: int, other: int) -> bool:
    """Whether a time is below another one in all rows, of which it is a part then."""
    if (lines.columns[row].unit or ("", False))[1] and not (lines.columns[other].unit or ("", False))[1]:
        return False  # of one step, beside that of many
    values, whole = _in_seconds(lines.columns[row]), _in_seconds(lines.columns[other])
    return values != whole and all(a <= b for a, b in zip(values, whole, strict=True))


def _in_seconds(column: Column) -> list[float]:
    unit = UNITS[(column.unit or ("s", False))[0]]
    return [unit * one if unit > 0 else (1 / one if one > 0 else math.inf) for one in column.numbers()]


def usual_step(lines: Lines, done: Sequence[int]) -> float | None:
    """The usual time of a step, s, by the times of lines; None where they have none."""
    found = []
    for at, (a, b) in enumerate(pairwise(done)):
        begin, end = lines.times[at], lines.times[at + 1]
        if begin is not None and end is not None and b > a and end > begin:
            found.append((end - begin) / 1e9 / (b - a))
    return median(found) if found else None


def _has_times(lines: Lines) -> bool:
    return sum(time is not None for time in lines.times) > 0.8 * len(lines.times)


def _number(text: str) -> float:
    clock = _CLOCK.fullmatch(text.strip())
    if clock is not None:
        days, hours, minutes = (int(part or 0) for part in clock.groups()[:3])
        return ((days * 24 + hours) * 60 + minutes) * 60 + float(clock[4])
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return math.nan
