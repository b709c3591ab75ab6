"""The zone of timestamps that name none, where the entries around them show it.

A program that logs local time into Cloud Logging leaves two clocks on every line: its own, and the entry's, which is
UTC. Their difference, rounded to a quarter of an hour, is the offset of the program's zone (docs/formats.md, Time).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np

from goodput_cli.arrays import I64, Mask, Rows
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.events.rows import Origin
from goodput_cli.events.schema import EventTable
from goodput_cli.vocabulary.units import NS_PER_DAY

_QUARTER = 900 * 10**9
_EARLIEST, _LATEST = -5 * 10**9, 60 * 10**9
"""An entry is stamped when the line is sent: this much before or after what the line itself says."""
_WHOLE = range(-12 * 4, 14 * 4 + 1, 4)
_PARTIAL = (-38, -14, -10, 14, 18, 22, 23, 26, 35, 38, 42, 51, 55)
OFFSETS = frozenset((*_WHOLE, *_PARTIAL))
"""Offsets from UTC that some zone has or had since 1970, in quarters of an hour."""


@dataclass
class EntryZones:
    """Lines with a timestamp without a zone inside an entry with one, collected while they are read."""

    _source: list[I64] = field(default_factory=list)
    _line: list[I64] = field(default_factory=list)
    _entry: list[I64] = field(default_factory=list)
    _ahead: list[I64] = field(default_factory=list)
    _day: list[I64] = field(default_factory=list)

    def add(self, origin: Origin, stamp: I64, ns: I64, chosen: Mask) -> None:
        """Some of n lines. stamp: the entries' instants, ns: the lines' own, read as UTC."""
        size = int(np.count_nonzero(chosen))
        self._source.append(np.full(size, origin.source, dtype=np.int64))
        self._line.append(np.asarray(origin.line[chosen], dtype=np.int64))
        self._entry.append(np.asarray(origin.entry[chosen], dtype=np.int64))
        self._ahead.append(ns[chosen] - stamp[chosen])
        self._day.append(stamp[chosen] // NS_PER_DAY)

    def applied(
        self, table: EventTable, diagnostics: tuple[Diagnostic, ...]
    ) -> tuple[EventTable, tuple[Diagnostic, ...]]:
        """The table with the instants of these lines corrected, and what is then to be said. diagnostics: of reading;
        that such lines were read as UTC is said no longer where all of them were corrected."""
        if not self._day:
            return table, diagnostics
        day, ahead = np.concatenate(self._day), np.concatenate(self._ahead)
        quarters = np.zeros(len(day), dtype=np.int64)
        for each in np.unique(day).tolist():
            chosen = day == each
            quarters[chosen] = offset_of_day(ahead[chosen])
        moved = quarters != 0
        if not moved.any():
            return table, diagnostics
        keys = self._keys()[moved]
        order = np.argsort(keys)
        rows = _keys(table.source, table.line, table.entry)
        place = np.minimum(np.searchsorted(keys, rows, sorter=order), len(keys) - 1)
        matched = keys[order[place]] == rows
        shift = np.where(matched, quarters[moved][order[place]] * _QUARTER, 0)
        said = self._said(quarters[moved])
        others = [one for one in diagnostics if (one.code, one.count) != ("naive_timestamps", said.count)]
        return replace(table, time=table.time - shift, end=table.end - shift), (*others, said)

    def _keys(self) -> I64:
        return _keys(*(np.concatenate(column) for column in (self._source, self._line, self._entry)))

    def _said(self, quarters: I64) -> Diagnostic:
        counted = Counter(quarters.tolist())
        named = ", ".join(offset_text(quarter) for quarter in sorted(counted))
        return Diagnostic.of(
            "timezone_found",
            f"timestamps without a zone are of UTC{named}, as the entries around them show, and are read so; "
            "--timezone says otherwise",
            len(quarters),
        )


def offset_of_day(ahead: I64) -> int:
    """The offset from UTC of the lines of one day, in quarters of an hour; 0 where nothing can be said.

    ahead: how far (ns) each line's own time, read as UTC, is ahead of its entry's.
    """
    latest = np.rint((ahead + (_EARLIEST + _LATEST) // 2) / _QUARTER).astype(np.int64)
    values, counts = np.unique(latest, return_counts=True)
    quarter = int(values[np.argmax(counts)])
    late = quarter * _QUARTER - ahead
    fits = np.count_nonzero((late >= _EARLIEST) & (late <= _LATEST))
    return quarter if quarter in OFFSETS and 10 * fits >= 9 * len(ahead) else 0


def _keys(source: Rows, line: Rows, entry: Rows) -> I64:
    """One number a line: its entry, where it has no line number; else its source and its line."""
    lines = (np.asarray(source, dtype=np.int64) << 40) | np.asarray(line, dtype=np.int64)
    return np.where(np.asarray(line) > 0, lines, -1 - np.asarray(entry, dtype=np.int64))


def offset_text(quarter: int) -> str:
    """An offset from UTC in quarters of an hour, as people write it."""
    hours, minutes = divmod(abs(quarter) * 15, 60)
    return f"{'-' if quarter < 0 else '+'}{hours:02d}:{minutes:02d}"
