"""A log split into entries with times (lines, JSON objects or table rows), and groups of those that differ only in
their values, with columns of these: texts, and numbers where they are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from goodput_cli.arrays import F64, I64, Mask, Rows
from goodput_cli.events.mappings.declared import UNITS
from goodput_cli.events.mappings.draft.words import (
    EPOCH,
)
from goodput_cli.events.values import clock_seconds, decimal
from goodput_cli.vocabulary.when import NS_PER_SECOND

_WHOLE = re.compile(r"\+?\d{1,15}(?:\.0+)?", re.ASCII)


class Texts:
    """Texts as numbers."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    @property
    def texts(self) -> Sequence[str]:
        """Return all texts."""
        return self._texts

    @property
    def first(self) -> str:
        """Return the first text."""
        return self.texts[0]

    def take(self, rows: I64) -> Texts:
        """Return some of the texts."""
        return Texts([self.texts[row] for row in rows.tolist()])

    @cached_property
    def whole(self) -> I64 | None:
        """Return the texts as integers, int64[n]; None if some are not."""
        found = [text.replace(",", "") for text in self.texts]
        if not all(map(_WHOLE.fullmatch, found)):
            return None
        return np.array([int(float(text)) for text in found], dtype=np.int64)

    @cached_property
    def numbers(self) -> F64:
        """Return the texts as numbers, float64[n], a clock such as 1:02:03 in seconds; nan for other texts."""
        return np.array([_number(text) for text in self.texts], dtype=np.float64)

    @property
    def plain_numbers(self) -> F64 | None:
        """Return the texts as numbers, float64[n]; None if some are clocks or something else."""
        found = [decimal(text.replace(",", "")) for text in self.texts]
        return None if None in found else np.array(found, dtype=np.float64)


def _number(text: str) -> float:
    """Return the number that a text is, a clock in seconds; nan for other texts."""
    value = clock_seconds(text)
    value = decimal(text.replace(",", "")) if value is None else value
    return math.nan if value is None else value


NO_TIME = np.iinfo(np.int64).min
"""Time of an entry without one."""
_FEW = 1000
_FAR_BACK = 600 * NS_PER_SECOND
_NO_VALUES: Mapping[str, Any] = {}


@dataclass(eq=False, slots=True)
class Entry:
    """A line, a state of a progress bar, or a record."""

    place: int
    """Index in the log."""
    line: str
    """The whole line, for samples; for a table row, its JSON object."""
    where: str
    """FILE:LINE."""
    text: str = ""
    """Without prefixes of launchers."""
    begin: int = 0
    """Position of the message in the text, after timestamp, level and logger."""
    span: tuple[int, int] | None = None
    """Position of its time in the text."""
    values: Mapping[str, Any] = field(default_factory=lambda: _NO_VALUES)
    """Of a record, by path."""
    quote: str | None = None
    """The message as written, if the numbers of `text` have more digits."""

    @property
    def shown(self) -> str:
        """Return the first characters of the message as written."""
        return (self.message if self.quote is None else self.quote).strip()[:80]

    @property
    def message(self) -> str:
        """Return the text without the logger's prefix."""
        return self.text[self.begin :]


class Entries:
    """Entries of a log in order, with columns of their common properties."""

    def __init__(self, every: Sequence[Entry], places: I64, ns: I64, processes: I64) -> None:
        self._every = every
        self.places = places
        """Their indexes in the log, ascending, int64[n]."""
        self.ns = ns
        """Their times as written, int64[n]; NO_TIME if they have none."""
        self.processes = processes
        """A number for the file, and the rank or pod in the prefixes, int64[n]."""

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, row: int) -> Entry:
        return self._every[row]

    def __iter__(self) -> Iterator[Entry]:
        return (self[row] for row in range(len(self)))

    @cached_property
    def files(self) -> I64:
        """Return a number for the file of each, int64[n]."""
        return self.processes

    @cached_property
    def are_of_several_files(self) -> bool:
        """Return True if not all are in one file."""
        return bool((self.files != self.files[:1]).any())

    @property
    def timed(self) -> Mask:
        """Return True for entries with a time, bool[n]."""
        found: Mask = self.ns != NO_TIME
        return found

    def row_of(self, place: int) -> int:
        """Return the row of the first entry that is not before a line index."""
        return int(np.searchsorted(self.places, place))


@dataclass(frozen=True)
class ValueColumn:
    """Values at one position of similar lines, or of one key of similar records."""

    name: str
    """Words that may be its name."""
    values: Texts
    unit: tuple[str, bool] | None = None
    """Unit of a time, and True if it is a step time."""
    of: int | None = None
    """Column of its total: `3/100`."""
    counts: bool = True
    """True if it may count something: it is not a clock or a percentage."""
    is_elapsed: bool = False
    joined: bool = False
    """True if it is part of a word or path, as in `exp-16`: a name unless proven to be a number."""
    path: str = ""
    """Of a key."""

    @property
    def texts(self) -> Sequence[str]:
        """Return the values as written."""
        return self.values.texts

    @property
    def whole(self) -> I64 | None:
        """Return the values as integers, int64[n]; None if some are not."""
        return self.values.whole

    @property
    def numbers(self) -> F64:
        """Return the values as numbers, float64[n], a clock such as 1:02:03 in seconds; nan for other texts."""
        return self.values.numbers

    @property
    def is_step_time(self) -> bool:
        """Return True if its unit is that of a step time."""
        return self.unit is not None and self.unit[1]


class Group:
    """Entries that differ only in their values."""

    tokens: tuple[re.Match[str], ...] = ()
    """Values in the first text line."""
    where = ""
    """Condition that separates the records from others, as TOML."""
    only: tuple[int, str] | None = None
    """Column with a constant value that differs in otherwise similar lines."""
    is_text = False
    """True for lines of text, also between records."""

    def __init__(self, entries: Entries, rows: I64) -> None:
        self.entries = entries
        """Entries of the log."""
        self.rows = rows
        """Rows of the entries in the group, ascending, int64[n]."""

    @cached_property
    def columns(self) -> Sequence[ValueColumn]:
        """Return the values in which they differ."""
        return ()

    @cached_property
    def about(self) -> str:
        """Return the text of the first entry in lowercase."""
        return ""

    def __len__(self) -> int:
        return len(self.rows)

    def entry(self, at: int) -> Entry:
        """Return one of its entries."""
        return self.entries[int(self.rows[at])]

    @cached_property
    def first(self) -> Entry:
        """Return its first entry."""
        return self.entry(0)

    @cached_property
    def places(self) -> I64:
        """Return the indexes of its entries, ascending, int64[n]."""
        return self.entries.places[self.rows]

    @cached_property
    def ns(self) -> I64:
        """Return the times of its entries, int64[n]."""
        return self.entries.ns[self.rows]

    @property
    def processes(self) -> I64:
        """Return the processes of its entries, int64[n]."""
        return self.entries.processes[self.rows]

    @property
    def seconds(self) -> F64:
        """Return the times of its entries since the first of them in seconds, float64[n]; nan without one."""
        return seconds_of(self.ns)

    @property
    def has_all_times(self) -> bool:
        """Return True if all of its entries have a time."""
        return bool((self.ns != NO_TIME).all())

    def has_times(self, share: float) -> bool:
        """Return True if more than a share of its entries have a time."""
        return int(np.count_nonzero(self.ns != NO_TIME)) > share * len(self)

    def take(self, at: Rows) -> Group:
        """Return some of its entries."""
        found = Group(self.entries, self.rows[at])
        found.columns = [replace(one, values=one.values.take(at)) for one in self.columns]
        found.about, found.where, found.is_text = self.about, self.where, self.is_text
        return found

    def of_one(self, at: int) -> Group | None:
        """Return the entries with the most frequent value of a column if they are at least half, but not all; None
        otherwise."""
        if not self.tokens:
            return None
        values = self.columns[at].values
        keys = np.array(values.texts, dtype=np.str_) if values.whole is None else values.whole
        _, first, row, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        most = max(range(len(first)), key=lambda one: (counts[one], -first[one]))
        if not len(self) / 2 <= counts[most] < len(self):
            return None
        found = Group.take(self, np.flatnonzero(row == most))
        found.only = (at, found.columns[at].values.first)
        found.tokens = tuple(self.tokens[0].re.finditer(found.first.text, found.first.begin))
        return found


def seconds_of(ns: I64) -> F64:
    """Return seconds since the first time, float64[n]; nan for an entry without one."""
    timed = ns != NO_TIME
    first = int(ns[int(timed.argmax())]) if timed.any() else 0
    return np.where(timed, (np.where(timed, ns, first) - first) / NS_PER_SECOND, np.nan)


def are_whole_seconds(ns: I64) -> bool:
    """Return True if times are known to the second only: all have one fraction of it."""
    fractions = ns[ns != NO_TIME] % NS_PER_SECOND
    return len(fractions) > 0 and bool((fractions == fractions[0]).all())


def usual_stride(numbers: I64) -> tuple[int, int]:
    """Return the most frequent increase of numbers and its count; (1, 0) if there is none."""
    ahead = np.diff(numbers)
    strides, first, counts = np.unique(ahead[ahead > 0], return_index=True, return_counts=True)
    if not len(strides):
        return 1, 0
    most = min(range(len(strides)), key=lambda at: (-counts[at], first[at]))
    return int(strides[most]), int(counts[most])


def usual_step(times: I64, done: I64, without: Mask | None = None) -> float | None:
    """Return the usual step time (s) from the times (ns) at which steps were completed; None without times. If these
    have a precision of seconds, return the mean of all times near the median, which would be 1 s for most steps of 1.3
    s. without: True for each record whose time since the one before is left out, bool[n]."""
    seconds, steps = np.diff(seconds_of(times)), np.diff(done).astype(np.float64)
    ahead = (steps > 0) & (seconds >= 0)
    ahead &= True if without is None else ~without[1:]
    seconds, steps = seconds[ahead], steps[ahead]
    if not (seconds > 0).any():
        return None
    if not are_whole_seconds(times):
        return float(np.median((seconds / steps)[seconds > 0]))
    usual = float(np.median(seconds / steps))
    near = np.abs(seconds - usual * steps) <= 1
    # If no step takes a second, all of them take at most the resolution.
    return float(max(seconds[near].sum(), 1.0) / steps[near].sum()) if near.any() else usual


def in_seconds(values: F64, unit: str) -> F64:
    """Convert amounts to seconds, float64[n]; for rates, the time of one step."""
    factor = UNITS[unit]
    if factor > 0:
        found: F64 = factor * values
        return found
    of_one: F64 = np.divide(1.0, values, out=np.full(len(values), math.inf), where=values > 0)
    return of_one


def has_values(column: I64, least: int) -> bool:
    """Return True if a column has at least `least` different values. Its begin mostly shows it."""
    return any(len(np.unique(some)) >= least for some in (column[:_FEW], column))


@dataclass(frozen=True)
class Log:
    """A log split into entries."""

    entries: Entries
    groups: list[Group]
    """The most frequent first."""
    top: tuple[str, ...] = ()
    """Keys of its mapping, as TOML."""
    beside: tuple[str, ...] = ()
    """Keys of each of its rules."""
    time: str = ""
    """Key of the time in records."""
    records: bool = False
    assumed: tuple[str, ...] = ()
    """Assumptions made when it was split."""
    between: Sequence[Group] = ()
    """Lines of text between records, the most frequent first."""

    @property
    def every_group(self) -> Sequence[Group]:
        """Return all groups: those that may be steps, and lines of text between these."""
        return [*self.groups, *self.between]

    @cached_property
    def window(self) -> int:
        """Return the time (ns) between the first and the last entry."""
        times = self.entries.ns[self.entries.timed]
        return int(times.max() - times.min()) if len(times) else 0

    @cached_property
    def wordings(self) -> I64:
        """Return the index of the group of each entry, int64[n]; -1 without one."""
        found = np.full(len(self.entries), -1, dtype=np.int64)
        for number, group in enumerate(self.groups):
            found[group.rows] = number
        return found

    @cached_property
    def jumps_back(self) -> I64:
        """Return the rows of entries with a time far before that of the previous one in their file, int64[n]."""
        timed = np.flatnonzero(self.entries.timed)
        ns, process = self.entries.ns[timed], self.entries.processes[timed]
        found: I64 = timed[1:][(ns[:-1] - ns[1:] > _FAR_BACK) & (process[1:] == process[:-1])]
        return found


def quoted(text: str) -> str:
    """Return a TOML string, literal if possible."""
    if "'" not in text and text.isprintable():
        return f"'{text}'"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in escaped) + '"'


def names_epoch_in(column: ValueColumn) -> bool:
    """Return True if a column is the number of an epoch."""
    return EPOCH.search(column.name) is not None and not column.joined and column.whole is not None


def names_epoch(group: Group) -> bool:
    """Return True if lines contain the number of an epoch."""
    return any(map(names_epoch_in, group.columns))


def names_loss(group: Group) -> bool:
    """Return True if a number of a group is a loss."""
    return any("loss" in one.name for one in group.columns)
