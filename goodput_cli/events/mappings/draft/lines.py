"""Lines of logs as bytes, with the begin and end of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import BinaryIO, NamedTuple

import numpy as np

from goodput_cli.arrays import I64, Mask
from goodput_cli.events.joined_logs import read_sources
from goodput_cli.events.reading_options import ReadingOptions
from goodput_cli.events.text.lines import FRAME, text_after_bars
from goodput_cli.sources.base import RawBatch, ReadContext
from goodput_cli.vocabulary.text import file_line

_NEWLINE, _RETURN, _BLANK = ord("\n"), ord("\r"), ord(" ")
HEAD_LINES = 100
"""Number of lines that determine the type of a file."""


class Spans(NamedTuple):
    """Parts of the bytes of lines."""

    line: I64
    """Index of the line of each, int64[n]."""
    begin: I64
    end: I64


@dataclass(frozen=True, eq=False)
class LogLines:
    """The lines of logs, one source after another."""

    data: bytes
    """UTF-8; each line ends with a line end."""
    begin: I64
    """Position of the begin of each line, int64[n]."""
    end: I64
    """Position of its end, without line end and a carriage return before it, int64[n]."""
    sources: Sequence[str]
    """Names of the sources."""
    source: I64
    """Index in `sources` of each line, int64[n]."""
    number: I64
    """Its number in the source, from 1, int64[n]."""
    whole: bool = True
    """False if the sources have more lines."""

    def __len__(self) -> int:
        return len(self.begin)

    def text(self, at: int) -> str:
        """Return a line."""
        return self.data[int(self.begin[at]) : int(self.end[at])].decode()

    def where(self, at: int) -> str:
        """Return FILE:LINE of a line."""
        return file_line(self.sources[int(self.source[at])], int(self.number[at]))

    def head(self) -> list[str]:
        """Return the first lines."""
        return [self.text(at) for at in range(min(len(self), HEAD_LINES))]

    def texts(self) -> Iterable[str]:
        """Yield each line."""
        return map(self.text, range(len(self)))

    def take(self, kept: Mask) -> LogLines:
        """Return some of the lines."""
        if kept.all():
            return self
        return LogLines(
            self.data, self.begin[kept], self.end[kept], self.sources, self.source[kept], self.number[kept], self.whole
        )

    def full(self) -> LogLines:
        """Return the lines that are not blank, without the code in tracebacks: its words are those of other lines."""
        return self.take(self._is_full(self.begin, self.end) & ~self._is_frame())

    def _is_frame(self) -> Mask:
        """Return True for frames of tracebacks, and the code on the lines after them, indented deeper, bool[n]."""
        found = np.zeros(len(self), dtype=np.bool_)
        for frame in FRAME.finditer(self.data):
            at = int(np.searchsorted(self.begin, frame.start(), side="right")) - 1
            if at < 0 or frame.start() >= self.end[at]:
                continue  # It was left out before.
            found[at] = True
            if at + 1 < len(self) and self.source[at + 1] == self.source[at]:
                code = int(self.begin[at + 1] + frame.start() - self.begin[at])
                found[at + 1] = self.data[code : min(code + 2, int(self.end[at + 1]))] == b"  "
        return found

    @cached_property
    def have_states(self) -> bool:
        """Return True if carriage returns separate parts of lines."""
        return self.data.count(b"\r") > self.data.count(b"\r\n")

    def states(self, every: bool) -> Spans:
        """Return the parts of full lines that carriage returns separate and that are not blank: the last of each line,
        or every one."""
        if not self.have_states:
            return Spans(np.arange(len(self)), self.begin, self.end)
        returns = np.flatnonzero(np.frombuffer(self.data, dtype=np.uint8) == _RETURN)
        line = np.searchsorted(self.begin, returns, side="right") - 1
        inside = (line >= 0) & (returns < self.end[np.maximum(line, 0)])
        returns, line = returns[inside], line[inside]
        begin = np.concatenate([self.begin, returns + 1])
        end = np.concatenate([self.end, returns])
        order, ends = np.argsort(begin, kind="stable"), np.sort(end)
        begin, line = begin[order], np.concatenate([np.arange(len(self)), line])[order]
        kept = self._is_full(begin, ends)
        found = Spans(line[kept], begin[kept], ends[kept])
        if every:
            return found
        last = np.append(found.line[1:] != found.line[:-1], True)
        return Spans(*(column[last] for column in found))

    def _is_full(self, begin: I64, end: I64) -> Mask:
        """Return True for ranges that contain more than blanks, bool[n]. begin, end: ascending."""
        if not len(begin):
            return np.zeros(0, dtype=np.bool_)
        view = np.frombuffer(self.data, dtype=np.uint8)
        bounds = np.stack([begin, end], axis=1).reshape(-1)
        return (np.maximum.reduceat(view, bounds)[::2] > _BLANK) & (end > begin)


class LinesCollector:
    """Collects the lines of logs, up to limits."""

    def __init__(self, most_bytes: int, most_lines: int) -> None:
        self._left, self._lines_left = most_bytes, most_lines
        self._data = BytesIO()
        self._columns: list[tuple[I64, I64, I64, I64]] = []
        self._sources: dict[str, int] = {}
        self._size = 0
        self.whole = True
        """False once lines were left out."""

    def add(self, source: str, first: int, data: bytes) -> None:
        """Add the next lines of a source. first: number of the first one."""
        if not data.isascii():
            data = data.decode(errors="replace").encode()
        data = data if data.endswith(b"\n") else data + b"\n"
        view = np.frombuffer(data, dtype=np.uint8)
        end = np.flatnonzero(view == _NEWLINE)
        fitting = min(int(np.searchsorted(end, self._left)), self._lines_left)
        self.whole &= fitting == len(end)
        end = end[:fitting]
        if not fitting:
            return
        size = int(end[-1]) + 1
        begin = np.append(0, end[:-1] + 1)
        end = end - ((end > begin) & (view[end - 1] == _RETURN))
        number = np.arange(first, first + fitting)
        after = text_after_bars(data[:size], view[:size], begin)
        if len(after):
            starts = np.union1d(begin, after)
            number = number[np.searchsorted(begin, starts, side="right") - 1]
            begin, end = starts, np.union1d(end, after)
        code = np.full(len(begin), self._sources.setdefault(source, len(self._sources)), dtype=np.int64)
        self._columns.append((begin + self._size, end + self._size, code, number))
        self._data.write(memoryview(data)[:size])
        self._size, self._left, self._lines_left = self._size + size, self._left - size, self._lines_left - fitting

    def lines(self) -> LogLines:
        """Return the lines that were added."""
        empty = (np.zeros(0, dtype=np.int64),) * 4
        columns = [np.concatenate(one) for one in zip(empty, *self._columns, strict=True)]
        begin, end, code, number = columns
        return LogLines(self._data.getvalue(), begin, end, list(self._sources), code, number, self.whole)


def lines_of_texts(lines: Iterable[tuple[str, int, str]]) -> LogLines:
    """Return lines, each with its source and number."""
    sources: dict[str, int] = {}
    every = [
        (sources.setdefault(source, len(sources)), number, text.encode(errors="replace"))
        for source, number, text in lines
    ]
    code, number, texts = zip(*every, strict=True) if every else ((), (), ())
    end = np.cumsum([len(text) + 1 for text in texts], dtype=np.int64) - 1
    data = b"".join(text + b"\n" for text in texts)
    columns = (np.array(code, dtype=np.int64), np.array(number, dtype=np.int64))
    return LogLines(data, np.append(0, end[:-1] + 1)[: len(end)], end, list(sources), *columns)


def batches_of(
    sources: Iterable[str],
    is_log: Callable[[bytes], bool] | None = None,
    stdin: BinaryIO | None = None,
    hints: ReadingOptions | None = None,
) -> Iterator[RawBatch]:
    """Yield the lines of sources as bytes, some at a time. is_log: decides from its beginning if a file of a folder is
    read; default: all. stdin: the stream for `-`. hints: how files are read, which decides whether they are parts of
    one log. Raises SourceError."""
    context = ReadContext(lambda _: None, stdin, is_log=is_log or (lambda _: True))
    yield from (batch for batch in read_sources(sources, context, hints) if isinstance(batch, RawBatch))
