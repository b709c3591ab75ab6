"""Small tables that a person names on the command line (labels, allocations, capacity), each row with where it stands.

All is checked before a log is read: an error costs nothing but a sentence with file and line.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from goodput_cli.errors import UsageError
from goodput_cli.sources.files import unreadable
from goodput_cli.vocabulary.amounts import bounded
from goodput_cli.vocabulary.when import Anchors, parse_when

Value = TypeVar("Value")
MISSING = ("", "unknown", "none", "n/a")
"""What a cell holds in place of a value."""


@dataclass(frozen=True)
class TableRow:
    """A row of a table: texts by column, without those that are missing."""

    where: str
    """`file:line`; of Parquet `file:row`."""
    cells: Mapping[str, str]

    def get(self, column: str, read: Callable[[str], Value]) -> Value | None:
        """A cell as a value; None where it is missing. Raises UsageError that says where."""
        text = self.cells.get(column)
        if text is None:
            return None
        try:
            return read(text)
        except UsageError as error:
            raise UsageError(f"{self.where}: {column}: {error}") from error

    def need(self, column: str, read: Callable[[str], Value]) -> Value:
        """The same; raises UsageError where it is missing."""
        value = self.get(column, read)
        if value is None:
            raise UsageError(f"{self.where}: {column} is missing")
        return value


def read_table(path: str, needed: Sequence[str] = ()) -> list[TableRow]:
    """The rows of a CSV, JSON, JSONL or Parquet file.

    Raises UsageError: the file cannot be read, is not such a table, or lacks a column.
    """
    rows = _listed(path, _rows)
    columns = {column for row in rows for column in row.cells}
    lacking = [column for column in needed if column not in columns]
    if rows and lacking:
        raise UsageError(f"{path}: the column {lacking[0]} is missing; there are {', '.join(sorted(columns))}")
    return rows


def read_parsable(path: str, needed: Sequence[str], free: str) -> list[TableRow]:
    """The rows of a table as Slurm's commands print it with `--parsable2`: cells behind `|`, nothing quoted. free: the
    column in which a cell may hold a `|` or the end of a line itself.

    Raises UsageError: the file cannot be read, lacks a column, or ends within a row.
    """
    return _listed(path, lambda path: _parsable(path, needed, free))


def instant(zone: tzinfo) -> Callable[[str], int]:
    """A reader of instants (ns since 1970 UTC); those without an offset are of the zone."""

    def read(text: str) -> int:
        when = parse_when(text)
        if when.kind not in ("instant", "local"):
            raise UsageError(f"{text!r} is no date and time")
        return when.resolve(Anchors(0, 0, (), 0, zone))

    return read


def whole(text: str) -> int:
    """A count from 1."""
    number = _read_count(text)
    if number.denominator != 1:
        raise UsageError(f"{text!r} is not a whole number")
    return int(number)


_read_count = bounded(Fraction, "is not a number from 1", least=1, most=1e12)
amount: Callable[[str], Fraction] = bounded(Fraction, "is not an amount above 0", above=0)
"""An exact number above 0."""


def _listed(path: str, read: Callable[[Path], Iterator[TableRow]]) -> list[TableRow]:
    try:
        return list(read(Path(path)))
    except (OSError, ValueError) as error:
        reason = unreadable(path, error) if isinstance(error, OSError) else f"{path}: is no such table: {error}"
        raise UsageError(str(reason)) from error


def _rows(path: Path) -> Iterator[TableRow]:
    ending = path.suffix.lower()
    if ending == ".parquet":
        import pyarrow.parquet as pq

        return _named(path, enumerate(pq.read_table(path).to_pylist(), start=1))
    text = path.read_text(encoding="utf-8-sig")
    if ending == ".json":
        listed = json.loads(text, parse_float=Fraction)
        if not isinstance(listed, list):
            raise ValueError("JSON must be a list of objects")
        return _named(path, enumerate(listed, start=1))
    if ending in (".jsonl", ".ndjson"):
        lines = ((number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip())
        return _named(path, ((number, json.loads(line, parse_float=Fraction)) for number, line in lines))
    reader = csv.DictReader(text.splitlines(), strict=True)
    return _named(path, ((reader.line_num, row) for row in reader))


def _parsable(path: Path, needed: Sequence[str], free: str) -> Iterator[TableRow]:
    first, *lines = path.read_text(encoding="utf-8-sig").rstrip("\n").split("\n")
    header = [column.strip().lower() for column in first.split("|")]
    lacking = [column for column in needed if column not in header]
    if lacking:
        raise ValueError(f"its first line has no column {lacking[0]}; print it with --parsable2 and its header")
    return _named(path, _records(header, header.index(free), lines))


def _records(header: Sequence[str], free: int, lines: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows by the number of their first line. A row with too few cells goes on in the next line, and what is too much
    is of the free column."""
    held: list[str] = []
    bars = begin = 0
    for number, line in enumerate(lines, start=2):
        if not held and not line:
            continue
        begin, bars = (begin, bars) if held else (number, 0)
        held.append(line)
        bars += line.count("|")
        more = bars + 1 - len(header)
        if more >= 0:
            cells = "\n".join(held).split("|")
            cells[free : free + more + 1] = ["|".join(cells[free : free + more + 1])]
            yield begin, dict(zip(header, cells, strict=True))
            held = []
    if held:
        raise ValueError(f"line {begin} is cut off")


def _named(path: Path, rows: Iterable[tuple[int, Any]]) -> Iterator[TableRow]:
    for number, row in rows:
        if not isinstance(row, dict):
            raise ValueError(f"row {number} is no object")
        cells = {str(key).strip().lower(): _cell(value) for key, value in row.items() if key is not None}
        yield TableRow(f"{path}:{number}", {key: text for key, text in cells.items() if text.lower() not in MISSING})


def _cell(value: Any) -> str:
    if isinstance(value, Fraction):
        return str(value)
    return "" if value is None else str(value).strip()
