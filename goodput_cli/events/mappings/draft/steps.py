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
_RISING = 0.6


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
        """As numbers; what is none as nan."""
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
    """The column that is the time of one step."""
    unit: str
    elapsed: int | None
    score: float
    done: tuple[int, ...]
    """Of each line, how many steps are done (`index`: the number of the last)."""

    @property
    def falls(self) -> list[int]:
        """Where in the log the count falls: something was restarted."""
        places = self.lines.places
        return [places[at + 1] for at, (a, b) in enumerate(pairwise(self.done)) if b <= a]


def candidates(lines: Lines, epochs_elsewhere: Sequence[tuple[int, int]]) -> Iterable[Candidate]:
    """The columns of lines that may count steps. epochs_elsewhere: where lines name an epoch, and which."""
    if lines.count < 2:
        return
    for at, column in enumerate(lines.columns):
        values = column.whole()
        is_other = column.unit is not None or not column.counts or EPOCH.search(column.name)
        if values is None or is_other:
            continue
        found = _candidate(lines, at, values, epochs_elsewhere)
        if found is not None:
            yield found


def epochs_as_steps(lines: Lines) -> Iterable[Candidate]:
    """The columns that count epochs: the steps of a log that names no others."""
    for at, column in enumerate(lines.columns):
        values = column.whole() if EPOCH.search(column.name) else None
        if values is not None and lines.count >= 2 and _rising(values) >= _RISING:
            yield _made(lines, at, values, None, 1.0)


def _candidate(
    lines: Lines, at: int, values: list[int], epochs_elsewhere: Sequence[tuple[int, int]]
) -> Candidate | None:
    column = lines.columns[at]
    epochs = _epochs(lines, at, values, epochs_elsewhere)
    done = values if epochs is None else _within(lines, values, epochs, epochs_elsewhere)
    rises = _rising(done)
    likely = step_likeness(column.name) + (1.5 if column.of is not None else 0.0)
    if rises < _RISING or len(set(done)) < min(_LEAST, lines.count) or likely < 0:
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
    elapsed = next((row for row, one in enumerate(lines.columns) if one.is_elapsed), None)
    if all(time is not None for time in lines.times):
        elapsed = None
    timed = 0.5 if each is not None or elapsed is not None or _has_times(lines) else -3.0
    each = None if elapsed is not None else each
    return Candidate(lines, at, epochs, index, each, unit, elapsed, score + timed, tuple(done))


def _epochs(lines: Lines, at: int, values: Sequence[int], epochs_elsewhere: Sequence[tuple[int, int]]) -> Epochs | None:
    """What a count begins anew with; None: with nothing."""
    others = [(row, one) for row, one in enumerate(lines.columns) if row != at and one.counts and one.unit is None]
    own = next((row for row, one in others if EPOCH.search(one.name) and one.whole()), None)
    if own is None and not epochs_elsewhere:
        own = next((row for row, one in others if _changes_with(one.whole(), values)), None)
    if own is not None:
        named = lines.columns[own].whole() or []
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


def _changes_with(numbers: Sequence[int] | None, values: Sequence[int]) -> bool:
    """Whether numbers go up by one where values fall, and nowhere else: those of epochs, whatever they are called."""
    falls = [b < a for a, b in pairwise(values)]
    return numbers is not None and any(falls) and [b - a for a, b in pairwise(numbers)] == [int(fall) for fall in falls]


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
    usual = _usual(lines, done)
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


def _usual(lines: Lines, done: Sequence[int]) -> float | None:
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
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return math.nan
