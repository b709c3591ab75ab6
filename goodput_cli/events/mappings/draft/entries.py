"""A log taken apart: its lines, JSON objects or rows of a table as entries with a time, and those that differ in their
values only as groups with columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from goodput_cli.arrays import F64, I64, Mask
from goodput_cli.events.mappings.draft.cells import Texts
from goodput_cli.vocabulary.when import NS_PER_SECOND

NO_TIME = np.iinfo(np.int64).min
"""The time of an entry that has none."""
_FEW = 1000
_FAR_BACK = 600 * NS_PER_SECOND
_NO_VALUES: Mapping[str, Any] = {}


@dataclass(eq=False, slots=True)
class Entry:
    """A line, a state of a progress bar, or a record."""

    place: int
    """Its number in the log, from 0."""
    line: str
    """The whole line, as a sample holds it; of a row of a table the JSON object that it is."""
    where: str
    """FILE:LINE."""
    text: str = ""
    """Without prefixes of launchers."""
    begin: int = 0
    """Where the message begins in the text, behind its timestamp, level and logger."""
    span: tuple[int, int] | None = None
    """Where its time is in the text."""
    values: Mapping[str, Any] = field(default_factory=lambda: _NO_VALUES)
    """Of a record, by path."""

    @property
    def message(self) -> str:
        """The text without what loggers put before it."""
        return self.text[self.begin :]


class Entries:
    """The entries of a log in order, with columns of what each of them has."""

    def __init__(self, every: Sequence[Entry], places: I64, ns: I64, processes: I64) -> None:
        self._every = every
        self.places = places
        """int64[n]: their numbers in the log, ascending."""
        self.ns = ns
        """int64[n]: their times as written; NO_TIME: they have none."""
        self.processes = processes
        """int64[n]: a number for the file, and the rank or pod that prefixes name."""

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, row: int) -> Entry:
        return self._every[row]

    def __iter__(self) -> Iterator[Entry]:
        return (self[row] for row in range(len(self)))

    @property
    def timed(self) -> Mask:
        """bool[n]: whether they have a time."""
        found: Mask = self.ns != NO_TIME
        return found

    def row_of(self, place: int) -> int:
        """Return the row of the first entry that is not before a place."""
        return int(np.searchsorted(self.places, place))


@dataclass(frozen=True)
class ValueColumn:
    """The values that one place of similar lines, or one key of similar records, holds."""

    name: str
    """The words that may be its name."""
    values: Texts
    unit: tuple[str, bool] | None = None
    """Of a time, and whether it is that of one step."""
    of: int | None = None
    """The column that says of how many it is one: `3/100`."""
    counts: bool = True
    """Whether it may count something: no clock, and no percentage."""
    is_elapsed: bool = False
    joined: bool = False
    """Whether it is a part of a word or path, as in `exp-16`: a name, until something proves that it is a number."""
    path: str = ""
    """Of a key."""

    @property
    def texts(self) -> Sequence[str]:
        """As written."""
        return self.values.texts

    @property
    def whole(self) -> I64 | None:
        """int64[n]: as whole numbers; None if some are none."""
        return self.values.whole

    @property
    def numbers(self) -> F64:
        """float64[n]: as numbers, a clock such as 1:02:03 in seconds; nan for other texts."""
        return self.values.numbers

    @property
    def is_step_time(self) -> bool:
        """Whether it is the time of one step by its unit."""
        return self.unit is not None and self.unit[1]


class Group:
    """Entries that differ in their values only."""

    tokens: tuple[re.Match[str], ...] = ()
    """What differs in the first line of text."""
    where = ""
    """What tells records from others, as TOML."""
    only: tuple[int, str] | None = None
    """The column that is the same in all of them, and another one in lines that are otherwise alike."""

    def __init__(self, entries: Entries, rows: I64) -> None:
        self.entries = entries
        """Those of the log."""
        self.rows = rows
        """int64[n]: which of them are of the group, ascending."""

    @cached_property
    def columns(self) -> Sequence[ValueColumn]:
        """The values in which they differ."""
        return ()

    @cached_property
    def about(self) -> str:
        """The words of the first, in small letters."""
        return ""

    def __len__(self) -> int:
        return len(self.rows)

    def entry(self, at: int) -> Entry:
        """Return one of its entries."""
        return self.entries[int(self.rows[at])]

    @cached_property
    def first(self) -> Entry:
        """The first of its entries."""
        return self.entry(0)

    @cached_property
    def places(self) -> I64:
        """int64[n]: the places of its entries, ascending."""
        return self.entries.places[self.rows]

    @cached_property
    def ns(self) -> I64:
        """int64[n]: the times of its entries."""
        return self.entries.ns[self.rows]

    @property
    def processes(self) -> I64:
        """int64[n]: the processes of its entries."""
        return self.entries.processes[self.rows]

    @property
    def seconds(self) -> F64:
        """float64[n]: the times of its entries since the first of them, in seconds; nan: none."""
        return seconds_of(self.ns)

    @property
    def has_all_times(self) -> bool:
        """Whether all of its entries have a time."""
        return bool((self.ns != NO_TIME).all())

    def has_times(self, share: float) -> bool:
        """Return True if more than a share of its entries have a time."""
        return int(np.count_nonzero(self.ns != NO_TIME)) > share * len(self)

    def of_one(self, at: int) -> Group | None:
        """Return the entries with the most frequent value of a column, if it is that of half of them at least; None if
        it is that of all."""
        if not self.tokens:
            return None
        values = self.columns[at].values
        keys = np.array(values.texts, dtype=np.str_) if values.whole is None else values.whole
        _, first, row, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        most = max(range(len(first)), key=lambda one: (counts[one], -first[one]))
        if not len(self) / 2 <= counts[most] < len(self):
            return None
        rows = np.flatnonzero(row == most)
        found = Group(self.entries, self.rows[rows])
        found.columns = [replace(one, values=one.values.take(rows)) for one in self.columns]
        found.about, found.only = self.about, (at, found.columns[at].values.first)
        found.tokens = tuple(self.tokens[0].re.finditer(found.first.text, found.first.begin))
        return found


def seconds_of(ns: I64) -> F64:
    """float64[n]: seconds since the first time; nan for an entry without one."""
    timed = ns != NO_TIME
    first = int(ns[int(timed.argmax())]) if timed.any() else 0
    return np.where(timed, (np.where(timed, ns, first) - first) / NS_PER_SECOND, np.nan)


def are_whole_seconds(ns: I64) -> bool:
    """Return True if times are known to the second only: all have one fraction of it."""
    fractions = ns[ns != NO_TIME] % NS_PER_SECOND
    return len(fractions) > 0 and bool((fractions == fractions[0]).all())


def has_values(column: I64, least: int) -> bool:
    """Return True if a column has so many different values at least. Mostly its begin shows it."""
    return any(len(np.unique(some)) >= least for some in (column[:_FEW], column))


@dataclass(frozen=True)
class Log:
    """A log taken apart."""

    entries: Entries
    groups: list[Group]
    """The most frequent first."""
    top: tuple[str, ...] = ()
    """Keys of its mapping, as TOML."""
    beside: tuple[str, ...] = ()
    """Keys of each of its rules."""
    time: str = ""
    """The key of a record's time."""
    records: bool = False
    assumed: tuple[str, ...] = ()
    """What the parting of it rests on."""

    @cached_property
    def window(self) -> int:
        """ns between the first and the last time."""
        times = self.entries.ns[self.entries.timed]
        return int(times.max() - times.min()) if len(times) else 0

    @cached_property
    def wordings(self) -> I64:
        """int64[n]: the number of the group of each entry; -1 without one."""
        found = np.full(len(self.entries), -1, dtype=np.int64)
        for number, group in enumerate(self.groups):
            found[group.rows] = number
        return found

    @cached_property
    def jumps_back(self) -> I64:
        """int64[n]: the rows of entries whose time is far before that of the one before in their file."""
        timed = np.flatnonzero(self.entries.timed)
        ns, process = self.entries.ns[timed], self.entries.processes[timed]
        found: I64 = timed[1:][(ns[:-1] - ns[1:] > _FAR_BACK) & (process[1:] == process[:-1])]
        return found


def quoted(text: str) -> str:
    """Return a text as TOML: literal where it can be."""
    if "'" not in text and text.isprintable():
        return f"'{text}'"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in escaped) + '"'
