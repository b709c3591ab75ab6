"""Documents that are tables with a header: CSV exports, `sacct -P`. Each row is a record of the header's keys."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable

import numpy as np

from goodput_cli.events.parsed import Parsed
from goodput_cli.sources.base import RawBatch, Record

_HEAD = 1 << 16
_LONGEST_FIELD = 1 << 20


def delimiter_of(
    head: bytes, is_header: Callable[[str, frozenset[str]], bool], delimiters: Iterable[str]
) -> str | None:
    """What parts the columns of a document that begins like this; None if it is no known table. is_header: whether
    columns parted by a delimiter are those of a table that is known."""
    first = head[:_HEAD].lstrip().split(b"\n", 1)[0].strip()
    if first.startswith((b"{", b"[")) or not first:
        return None
    text = first.decode(errors="replace")
    for delimiter in delimiters:
        columns = frozenset(cells(text, delimiter)) if delimiter in text else frozenset()
        if columns and is_header(delimiter, columns):
            return delimiter
    return None


class Table:
    """Reads a table (see `DocumentReader`)."""

    by_line = False

    def __init__(self, delimiter: str) -> None:
        self._delimiter = delimiter
        self._header: list[str] = []

    def feed(self, batch: RawBatch) -> Parsed:
        """The rows of the next lines; a header that comes again is none."""
        records: list[Record] = []
        lines: list[int] = []
        bad: list[tuple[int, str]] = []
        for number, line in enumerate(batch.data.decode(errors="replace").split("\n"), batch.first_line):
            if not line.strip():
                continue
            row = cells(line, self._delimiter)
            if not self._header:
                self._header = row
            elif len(row) != len(self._header):
                bad.append((number, f"{len(row)} columns where the header has {len(self._header)}"))
            elif row != self._header:
                records.append({key: value for key, value in zip(self._header, row, strict=True) if value != ""})
                lines.append(number)
        return Parsed(records, np.array(lines, dtype=np.int64), bad)

    def finish(self) -> Parsed:
        """The end of the document: nothing is left over."""
        return Parsed((), np.empty(0, dtype=np.int64))


def cells(line: str, delimiter: str) -> list[str]:
    """The cells of a line of a table; none where its quotes are wrong."""
    if len(line) > _LONGEST_FIELD:
        return []
    try:
        return [cell.strip() for cell in next(csv.reader([line.replace("\r", "")], delimiter=delimiter), [])]
    except csv.Error:  # quotes without an end, control characters
        return []
