"""Readers of documents of every kind: chooses the reader of each document, and keeps one reader per open document.

A kind of document is a class like `DocumentReader` and a row in `document_reader`. The joined batches of a document are
its bytes, so a document need not consist of lines.

Tables with a header are documents, too: CSV exports, `sacct -P`. Each row is a record of the header's keys.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from goodput_cli.events.capabilities import INPUT_TABLES
from goodput_cli.events.evidence import DeathsAtEnd
from goodput_cli.events.fast_json import FastJson
from goodput_cli.events.formats import collected
from goodput_cli.events.formats.base import NOTHING, DocumentReader, ObservesDeaths, ParsedPart, WrittenAtOnce
from goodput_cli.events.json_documents import NOT_JSON, JsonLinesReader, JsonObjects
from goodput_cli.events.reading_options import ReadingOptions
from goodput_cli.sources.base import Batch, RawBatch, Record
from goodput_cli.sources.blocks import is_event_file
from goodput_cli.sources.layouts import RUN_FILE_ENDING, side_log, store_file

if TYPE_CHECKING:
    from goodput_cli.events.text.collector import TextPart
    from goodput_cli.events.text.scan import TextLines

_AN_OBJECT = b"object"
_OBJECT_LINE = re.compile(rb"^[ \t]*\{[^\n]*", re.MULTILINE)
_HEAD = 1 << 16
_LONGEST_FIELD = 1 << 20
_COUNTED = re.compile(rb"(?i)(?<![a-z])(?:step|iter(?:ation)?|epoch|batch)s?[ \t:=#\[(/]{1,4}(\d{1,9})(?!\d)")
_FEW = 3
"""Number of lines that count, with different numbers, that cannot be a coincidence."""


def delimiter_of(
    head: bytes, is_header: Callable[[str, frozenset[str]], bool], delimiters: Iterable[str]
) -> str | None:
    """Return the delimiter of a table that begins with `head`; None if it is not a known table. is_header: returns True
    if these columns, split at a delimiter, are those of a known table."""
    first = head[:_HEAD].lstrip().split(b"\n", 1)[0].strip()
    if first.startswith((b"{", b"[")) or not first:
        return None
    text = first.decode(errors="replace")
    for delimiter in delimiters:
        columns = frozenset(cells(text, delimiter)) if delimiter in text else frozenset()
        if columns and is_header(delimiter, columns):
            return delimiter
    return None


class TableReader:
    """Reader of a table (see `DocumentReader`)."""

    by_line = False

    def __init__(self, delimiter: str) -> None:
        self._delimiter = delimiter
        self._header: list[str] = []

    def feed(self, batch: RawBatch) -> ParsedPart:
        """Return the rows of the next lines, without repeated headers."""
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
        return ParsedPart(records, np.array(lines, dtype=np.int64), bad)

    def finish(self) -> ParsedPart:
        """End the document: nothing is left over."""
        return NOTHING


def cells(line: str, delimiter: str) -> list[str]:
    """Return the cells of a line of a table; empty if its quotes are invalid."""
    if len(line) > _LONGEST_FIELD:
        return []
    try:
        return [cell.strip() for cell in next(csv.reader([line.replace("\r", "")], delimiter=delimiter), [])]
    except csv.Error:  # unterminated quotes, control characters
        return []


def is_known_table_or_text(head: bytes, hints: ReadingOptions | None = None) -> bool:
    """Return True if a document that begins with `head` is a table or text of a known format, or counts steps."""
    hints = hints or ReadingOptions()
    batch = RawBatch("", 1, head)
    reader = _of_capability(batch) or _of_text(batch, hints)
    rules = hints.mappings.ruleset
    if reader is None or not reader.by_line or rules.knows(head) or rules.observes(head):
        return reader is not None
    return len({found[1] for found in _COUNTED.finditer(head)}) >= _FEW


def document_reader(
    batch: RawBatch, fast: FastJson | None = None, hints: ReadingOptions | None = None
) -> DocumentReader:
    """Return the reader of the document that this batch begins. fast: the fast reader of earlier JSON documents. hints:
    user options such as declared formats."""
    if is_event_file(batch.source):
        from goodput_cli.events.event_files import begins
        from goodput_cli.events.tensorboard import EventFile

        if begins(batch.data):
            return EventFile()
    tracker = _of_tracker(batch, hints)
    if tracker is not None:
        return tracker
    own = _of_capability(batch)
    if own is not None:
        return own
    if JsonObjects.begins(batch.data):
        return JsonObjects()
    python = batch.data.startswith(b"{'")  # a dict as Python prints it, not JSON
    if python or not batch.data.startswith(b"{") or _may_be_text(batch.data):
        reader = _of_text(batch, hints or ReadingOptions())
        if reader is not None:
            return reader
    return JsonLinesWithDeaths(batch.source, fast, hints or ReadingOptions())


class JsonLinesWithDeaths:
    """Reader of a document with one JSON object per line, and of deaths that are printed between the objects."""

    by_line = True

    def __init__(self, source: str, fast: FastJson | None, hints: ReadingOptions) -> None:
        """fast: the reader of earlier documents."""
        self._records = JsonLinesReader(fast)
        self._source, self._hints = source, hints
        self._text: TextLines | None = None
        """The reader of the other lines; None before the first of them."""

    def feed(self, batch: RawBatch) -> ParsedPart:
        """Return the records of the next lines, and evidence of failures in other lines."""
        parsed = self._records.feed(batch)
        is_open = self._text is not None and not self._text.is_idle
        if not is_open and not any(reason == NOT_JSON for _, reason in parsed.bad):
            return parsed
        text = self._text_reader().feed(replace(batch, data=_without_objects(batch.data))).text
        return parsed if text is None else structs.replace(parsed, text=_of_deaths(text))

    def finish(self) -> ParsedPart:
        """Return the evidence of failures in the last lines."""
        return NOTHING if self._text is None else self._text.finish()

    def deaths_at_end(self) -> DeathsAtEnd:
        """Return the evidence if the document ends here."""
        return DeathsAtEnd((), ()) if self._text is None else self._text.deaths_at_end()

    def _text_reader(self) -> TextLines:
        from goodput_cli.events.text.scan import TextLines

        if self._text is None:
            self._text = TextLines(self._hints.mappings.ruleset, self._source)
        return self._text


def _without_objects(data: bytes) -> bytes:
    """Return lines with each JSON object replaced by a word, which shows that its process continued."""
    return _OBJECT_LINE.sub(_AN_OBJECT, data.replace(b"\r\n", b"\n"))


def _of_deaths(text: TextPart) -> TextPart:
    """Return the events and evidence of failures in text between JSON objects: timed ends of processes, and
    evidence."""
    from goodput_cli.events.text.collector import TextPart
    from goodput_cli.events.text.log_lines import ENDS

    ends = [one for one in text.log_lines if one.event is not None and one.event.type in ENDS]
    ends = [one for one in ends if one.stamp is not None or (one.event is not None and one.event.at is not None)]
    return TextPart(ends, modified_ns=text.modified_ns, seen=text.seen, left_out=text.left_out, signs=text.signs,
                    collected=text.collected)  # fmt: skip


def _of_tracker(batch: RawBatch, hints: ReadingOptions | None) -> DocumentReader | None:
    """Return the reader of a file of an experiment tracker; None for other files."""
    stored = store_file(batch.source)
    if stored is not None:
        from goodput_cli.events.trackers.mlflow import reader_of

        return reader_of(*stored)
    side = side_log(batch.source)
    if not (batch.data.startswith(b":W&B") or side is not None or batch.source.endswith(RUN_FILE_ENDING)):
        return None
    from goodput_cli.events.trackers.wandb import RunFileReader, SideLogReader

    if RunFileReader.begins(batch.source, batch.data):
        return RunFileReader((hints or ReadingOptions()).mappings.ruleset)
    return None if side is None else SideLogReader(side)


def _of_capability(batch: RawBatch) -> DocumentReader | None:
    """Return the reader of a file that a capability reads; None for other files."""
    return next((reader for one in INPUT_TABLES if (reader := one.document(batch)) is not None), None)


def _of_text(batch: RawBatch, hints: ReadingOptions) -> DocumentReader | None:
    """Return the reader of a table or text; None for lines of JSON, even with bad ones among them."""
    from goodput_cli.events.text.scan import TextLines, is_text

    mappings = hints.mappings
    by_delimiter = mappings.delimiters

    def is_header(delimiter: str, columns: frozenset[str]) -> bool:
        if (
            columns >= collected.SACCT_HEADER
            or collected.kind_without_time(columns) is not None
            or any(columns >= one for one in collected.TRACKER_HEADERS)
            or collected.is_of_machine(columns)
        ):
            return True
        row = dict.fromkeys(columns, "1")
        return any(rule.has_keys(row) for rule in by_delimiter.get(delimiter, ()))

    delimiter = delimiter_of(batch.data, is_header, dict.fromkeys((*collected.SACCT_DELIMITERS, *by_delimiter)))
    if delimiter is not None:
        return TableReader(delimiter)
    return TextLines(mappings.ruleset, batch.source) if is_text(batch.data, mappings.ruleset) else None


def _may_be_text(data: bytes) -> bool:
    """Return True if some line at the start of a document is not a JSON object."""
    head = np.frombuffer(data, dtype=np.uint8, count=min(len(data), 1 << 16))
    begins = np.flatnonzero(head[:-1] == ord("\n")) + 1  # `bytes.count` takes three times as long
    return bool((head[begins] != ord("{")).any())


class Documents:
    """Open documents of one or more sources."""

    def __init__(self, hints: ReadingOptions | None = None) -> None:
        self._hints = hints or ReadingOptions()
        self._readers: dict[str, DocumentReader] = {}
        self._fast = FastJson()

    def read(self, batch: Batch) -> Iterator[ParsedPart]:
        """Yield the records of a batch, after the end of the previous document if the batch begins another one."""
        if not isinstance(batch, RawBatch):
            yield ParsedPart(batch.records, np.zeros(len(batch.records), dtype=np.int64))
            return
        reader = self._readers.get(batch.source)
        if reader is None or batch.first_line == 1:
            if reader is not None:
                yield reader.finish()
            reader = self._readers[batch.source] = document_reader(batch, self._fast, self._hints)
        parsed = reader.feed(batch)
        yield parsed if batch.modified_ns is None else structs.replace(parsed, modified_ns=batch.modified_ns)

    def read_all(self, batches: Iterator[Batch]) -> Iterator[tuple[str, ParsedPart]]:
        """Yield the records of batches of consecutive documents, each with the name of its source."""
        for batch in batches:
            if isinstance(batch, RawBatch) and batch.source not in self._readers:
                yield from self.finish()
            for parsed in self.read(batch):
                yield batch.source, parsed
                del parsed  # free it: the next one is as large
            del batch
        yield from self.finish()

    def written(self) -> Iterator[tuple[str, ParsedPart]]:
        """Yield the ends of documents that are written at once."""
        for source, reader in list(self._readers.items()):
            if isinstance(reader, WrittenAtOnce):
                yield source, self._readers.pop(source).finish()

    def deaths_at_end(self, growing: Container[str]) -> dict[str, DeathsAtEnd]:
        """Return what open documents show if they end here, by source. growing: sources that are left out."""
        readers = {source: one for source, one in self._readers.items() if source not in growing}
        return {source: one.deaths_at_end() for source, one in readers.items() if isinstance(one, ObservesDeaths)}

    def finish(self) -> Iterator[tuple[str, ParsedPart]]:
        """Yield the ends of all open documents."""
        for source, reader in self._readers.items():
            yield source, reader.finish()
        self._readers.clear()
