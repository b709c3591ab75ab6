"""Records of a log (JSON objects or table rows) as columns: a list or array for each key of the records with the same
keys, and no Python object per record.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import F64, I64, Rows
from goodput_cli.events.json_documents import parse_lines
from goodput_cli.events.mappings.draft.entries import NO_TIME, Entries, Entry, Texts
from goodput_cli.events.mappings.draft.lines import LogLines
from goodput_cli.events.mappings.record_columns import Values
from goodput_cli.sources.base import Record

DEPTH = 3
"""Levels of containers whose values have a path."""
_AT_ONCE = 1 << 16
"""Number of lines that are parsed together."""
_NESTED = frozenset((dict, list, type(None)))
_MOST_DIGITS = 10**15


class RecordShape:
    """Columns of the records with the same keys."""

    def __init__(self, keys: tuple[str, ...], parts: Sequence[tuple[I64, Sequence[Values]]]) -> None:
        rows, columns = zip(*parts, strict=True)
        self.rows: I64 = np.concatenate(rows)
        """Their rows, ascending, int64[n]."""
        self.columns: dict[str, Values] = dict(zip(keys, map(_joined, zip(*columns, strict=True)), strict=True))

    def record(self, at: int) -> Record:
        """Return one of the records."""
        return {key: _plain(column[at]) for key, column in self.columns.items()}


class RecordEntries(Entries):
    """Records of a log."""

    def __init__(
        self, lines: LogLines, parsed: Iterable[tuple[I64, Sequence[Record]]], head: Sequence[str] = ()
    ) -> None:
        """parsed: parts of the records, each with the indexes of their lines. head: the columns of a table."""
        collected: defaultdict[tuple[str, ...], list[tuple[I64, Sequence[Values]]]] = defaultdict(list)
        places: list[I64] = [np.zeros(0, dtype=np.int64)]
        count = 0
        for lines_of_part, records in parsed:
            same: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
            for at, record in enumerate(records):
                same[tuple(record)].append(at)
            for keys, found in same.items():
                own = records if len(found) == len(records) else [records[at] for at in found]
                columns = [_column(one) for one in zip(*(record.values() for record in own), strict=True)]
                collected[keys].append((np.array(found, dtype=np.int64) + count, columns))
            places.append(lines_of_part)
            count += len(records)
        every = np.concatenate(places)
        super().__init__((), every, np.full(count, NO_TIME), lines.source[every])
        self._lines, self._head = lines, head
        self.shapes = [RecordShape(keys, collected.pop(keys)) for keys in list(collected)]
        """In order of their first records."""
        self._shape, self._at = np.zeros((2, count), dtype=np.int64)
        for number, shape in enumerate(self.shapes):
            self._shape[shape.rows], self._at[shape.rows] = number, np.arange(len(shape.rows))

    def record(self, row: int) -> Record:
        """Return the values of a record by path."""
        return self.shapes[int(self._shape[row])].record(int(self._at[row]))

    def records(self, most: int) -> Iterator[Record]:
        """Yield the values of the first records."""
        return map(self.record, range(min(most, len(self))))

    def __getitem__(self, row: int) -> Entry:
        place, values = int(self.places[row]), self.record(row)
        if self._head:
            line, text = json.dumps({key: values.get(key, "") for key in self._head}), ""
        else:
            line = text = self._lines.text(place)
        return Entry(place, line, self._lines.where(place), text, values=values)

    def common_paths(self, rows: Rows) -> list[str]:
        """Return the paths that all of some records have, in the order of the first."""
        shapes = [self.shapes[one].columns for one in np.unique(self._shape[rows]).tolist()]
        first = self.shapes[int(self._shape[rows[0]])].columns
        return [path for path in first if all(path in one for one in shapes)]

    def alike(self, paths: Sequence[str], where: Sequence[str]) -> list[Rows]:
        """Return the rows of records that have values other than "" at the same of some paths, and equal values at
        others. where: the others."""
        found: defaultdict[tuple[Any, ...], list[I64]] = defaultdict(list)
        for shape in self.shapes:
            parts: list[Sequence[Any]] = []
            for path in paths:
                column = shape.columns.get(path)
                is_full = column is not None and (isinstance(column, np.ndarray) or "" not in column)
                parts.append((is_full,) if column is None or is_full else [one != "" for one in column])
            for path in where:
                column = shape.columns.get(path)
                parts.append((None,) if column is None else [(type(one), one) for one in map(_plain, column)])
            if all(isinstance(one, tuple) for one in parts):
                found[tuple(one[0] for one in parts)].append(shape.rows)
                continue
            same: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
            keys = zip(*(repeat(one[0]) if isinstance(one, tuple) else one for one in parts), strict=False)
            for at, key in enumerate(keys):
                same[key].append(at)
            for key, some in same.items():
                found[key].append(shape.rows[some])
        return [np.sort(np.concatenate(rows)) for rows in found.values()]

    def column(self, path: str, rows: Rows, default: Any = None) -> Values:
        """Return the values at a path in some records. default: the value of records without it."""
        shapes = np.unique(self._shape[rows]).tolist()
        columns = [self.shapes[one].columns.get(path) for one in shapes]
        if len(columns) == 1 and isinstance(columns[0], np.ndarray):
            return columns[0][self._at[rows]]
        of = dict(zip(shapes, columns, strict=True))
        pairs = zip(self._shape[rows].tolist(), self._at[rows].tolist(), strict=True)
        return [default if (column := of[shape]) is None else _plain(column[at]) for shape, at in pairs]


def records_of_lines(lines: LogLines) -> RecordEntries | None:
    """Return the records of a log that mostly consists of JSON objects; None for others."""
    begun = [lines.text(at) for at in range(min(20, len(lines)))]
    if sum(text.lstrip().startswith("{") for text in begun) <= len(begun) / 2:
        return None
    found = RecordEntries(lines, _parsed(lines))
    return found if len(found) > len(begun) / 2 else None


def _parsed(lines: LogLines) -> Iterator[tuple[I64, Sequence[Record]]]:
    for start in range(0, len(lines), _AT_ONCE):
        stop = min(start + _AT_ONCE, len(lines))
        ranges = zip(lines.begin[start:stop].tolist(), lines.end[start:stop].tolist(), strict=True)
        data = b"".join([lines.data[begin:end] + b"\n" for begin, end in ranges])
        part = parse_lines(data, np.arange(start, stop))
        yield part.lines, [_flat(record) for record in part.records]


def _flat(record: Record) -> Record:
    """Return the values of a record by path, except containers."""
    return record if _NESTED.isdisjoint(map(type, record.values())) else dict(_flattened(record))


def _flattened(record: Mapping[str, Any], above: str = "", depth: int = DEPTH) -> Iterator[tuple[str, Any]]:
    for key, value in record.items():
        if type(value) is dict and depth > 1:
            yield from _flattened(value, f"{above}{key}.", depth - 1)
        elif type(value) not in _NESTED:
            yield f"{above}{key}", value


def _column(values: Sequence[Any]) -> Values:
    kinds = set(map(type, values))
    if kinds == {int} and max(values) < _MOST_DIGITS and min(values) > -_MOST_DIGITS:
        return np.array(values, dtype=np.int64)
    if kinds == {float}:
        numbers = np.array(values, dtype=np.float64)
        return numbers if np.isfinite(numbers).all() else values
    return values


def _joined(parts: Sequence[Values]) -> Values:
    if len(parts) == 1:
        return parts[0]
    if len({one.dtype if isinstance(one, np.ndarray) else None for one in parts}) == 1:
        first = parts[0]
        if isinstance(first, np.ndarray):
            return np.concatenate(parts)
    return [value for one in parts for value in (one.tolist() if isinstance(one, np.ndarray) else one)]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


class Numbers(Texts):
    """Numbers of records as texts."""

    def __init__(self, values: NDArray[Any]) -> None:
        """values: int64[n] or finite float64[n]."""
        self._values = values

    @property
    def texts(self) -> Sequence[str]:
        """Return all texts."""
        return list(map(str, self._values.tolist()))

    @property
    def first(self) -> str:
        """Return the first text."""
        return str(self._values[0].item())

    def take(self, rows: I64) -> Numbers:
        """Return some of the texts."""
        return Numbers(self._values[rows])

    @cached_property
    def whole(self) -> I64 | None:
        """Return the numbers as integers, int64[n]; None if some are not, or are negative."""
        whole = self._values.astype(np.int64) if (np.abs(self._values) < _MOST_DIGITS).all() else None
        return whole if whole is not None and (whole >= 0).all() and (whole == self._values).all() else None

    @cached_property
    def numbers(self) -> F64:
        """Return the numbers, float64[n]."""
        return self._values.astype(np.float64)

    @property
    def plain_numbers(self) -> F64:
        """Return the numbers, float64[n]."""
        return self.numbers


def texts_of(values: Values) -> Texts:
    """Return the values of a key as texts."""
    return Numbers(values) if isinstance(values, np.ndarray) else Texts(list(map(str, values)))
