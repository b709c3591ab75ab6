"""The lines of sources one by one, as text and as rows of tables: what helps to write a mapping looks at each."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from goodput_cli.events.mappings.explained import Line
from goodput_cli.events.mappings.rules import Mapped
from goodput_cli.events.tables import cells, delimiter_of
from goodput_cli.sources.base import Batch, RawBatch, ReadContext, source_for

MOST_LINES = 1_000_000
"""So many lines of a log are looked at."""


def lines_of(
    sources: Iterable[str],
    mappings: Iterable[Mapped] = (),
    is_log: Callable[[bytes], bool] | None = None,
    stdin: BinaryIO | None = None,
) -> Iterator[Line]:
    """The lines of sources with their numbers, at most `MOST_LINES`. mappings: those whose tables are read as rows.
    is_log: whether a file of a folder that begins like this is read; all are by default. stdin: the stream behind
    `-`, if not the standard input of the process. Raises SourceError."""
    tables = [one for one in mappings if one.declared.delimiter]
    context = ReadContext(lambda _: None, stdin, is_log=is_log or (lambda _: True))
    left = MOST_LINES
    for source in sources:
        for line in _lines(source_for(source).read(source, context), tables):
            if left == 0:
                return
            left -= 1
            yield line


def _lines(batches: Iterable[Batch], tables: list[Mapped]) -> Iterator[Line]:
    header: list[str] = []
    delimiter: str | None = None
    for batch in batches:
        if not isinstance(batch, RawBatch):
            continue
        if batch.first_line == 1:
            header, delimiter = [], _delimiter(batch.data, tables)
        data = batch.data.decode(errors="replace")
        for number, text in enumerate(data.removesuffix("\n").split("\n"), batch.first_line):
            line = Line(batch.source, number, text.removesuffix("\r"))
            if delimiter is not None and text.strip():
                values = cells(text, delimiter)
                if not header or values == header:
                    header = values
                    continue
                row = {key: value for key, value in zip(header, values, strict=False) if value != ""}
                line = line._replace(row=row if len(values) == len(header) else None)
            yield line


def _delimiter(data: bytes, tables: list[Mapped]) -> str | None:
    def is_header(delimiter: str, columns: frozenset[str]) -> bool:
        row = dict.fromkeys(columns, "1")
        of_it = [rule for one in tables if one.declared.delimiter == delimiter for rule in one.records]
        return any(rule.has_keys(row) for rule in of_it)

    try:
        return delimiter_of(data, is_header, dict.fromkeys(one.declared.delimiter for one in tables))
    except csv.Error:
        return None
