"""Documents that are not one record a line: a JSON array, or objects printed over many lines.

`gcloud logging read --format=json` prints an array, `jq` prints objects over many lines. Neither is ever held whole.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from goodput_cli.events.json.lines import CUT_OFF, BadLineError, parse
from goodput_cli.events.parsed import Parsed
from goodput_cli.sources.base import RawBatch, Record

MAX_OPEN_BYTES = 1 << 26
"""An object that is still open after so many bytes was never closed."""

_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*"|[{}\n]')  # a JSON string holds no line end
_EMPTY = rb"(?:\[\s*\]\s*)"
_ARRAY = re.compile(rb"\s*(?:%b*\[\s*(?:\{|\Z)|%b+\Z)" % (_EMPTY, _EMPTY))
"""What an array of objects begins with. A line `[]` before lines of objects is none: it holds nothing, and says so."""
_BARE_BRACE = re.compile(rb"\s*\{[ \t\r]*\n")
_BETWEEN = b" \t\r\n,[]"
_ANY_INDENT = rb"[ \t]{0,2}"


class Text(NamedTuple):
    """What should be one object, the line where it begins, and a pattern of the indentation of its like."""

    line: int
    data: bytes
    indent: bytes


class JsonObjects:
    """Cuts a text into its outermost objects, wherever lines end (see `DocumentReader`)."""

    by_line = False

    @staticmethod
    def begins(head: bytes) -> bool:
        """Whether a document that begins like this is one."""
        return bool(_ARRAY.match(head) or _BARE_BRACE.match(head))

    def __init__(self) -> None:
        self._depth = 0
        self._line = 1
        self._start_line = 1
        self._open: list[bytes] = []  # the text of the open object in earlier batches
        self._open_bytes = 0
        self._indent = _ANY_INDENT
        self._array = False  # inside the brackets of an array

    def feed(self, batch: RawBatch) -> Parsed:
        """The objects that end in the next lines."""
        return _parse_all(self._cut(batch.data))

    def finish(self) -> Parsed:
        """The end of the document: an object or array that is still open was cut off."""
        if self._open:
            return _parse_all(iter([self._take_open()]))
        bad = [(self._line, CUT_OFF)] if self._array else []
        return Parsed((), np.empty(0, dtype=np.int64), bad)

    def _cut(self, data: bytes) -> Iterator[Text]:
        """The text of each outermost object, and of whatever else stands between them."""
        start = 0  # of the open object, or of what stands between objects
        start_line = self._line
        for token in _TOKEN.finditer(data):
            at = token.start()
            mark = data[at : at + 1]
            if mark == b"\n":
                self._line += 1
            elif mark == b"{":
                if self._depth == 0:
                    yield from self._between(start_line, data[start:at])
                    start, self._start_line = at, self._line
                    self._indent = _indent_at(data, at)
                self._depth += 1
            elif mark == b"}" and self._depth:
                self._depth -= 1
                if self._depth == 0:
                    self._keep(data[start : at + 1])
                    yield self._take_open()
                    start, start_line = at + 1, self._line
        if self._depth == 0:
            yield from self._between(start_line, data[start:])
            return
        self._keep(data[start:])
        if self._open_bytes > MAX_OPEN_BYTES:
            yield self._take_open()

    def _keep(self, text: bytes) -> None:
        self._open.append(text)
        self._open_bytes += len(text)

    def _take_open(self) -> Text:
        text = b"".join(self._open)
        self._open.clear()
        self._open_bytes = self._depth = 0
        return Text(self._start_line, text, self._indent)

    def _between(self, line: int, text: bytes) -> Iterator[Text]:
        opened, closed = text.rfind(b"["), text.rfind(b"]")
        if opened != closed:
            self._array = opened > closed
        junk = text.strip(_BETWEEN)
        if junk:
            yield Text(line + text[: text.index(junk)].count(b"\n"), junk, _ANY_INDENT)


def _indent_at(data: bytes, at: int) -> bytes:
    """A pattern of what stands before the objects of this document that begin a line."""
    before = data[data.rfind(b"\n", 0, at) + 1 : at]
    return _ANY_INDENT if before.strip() else re.escape(before)


def _parse_all(texts: Iterator[Text]) -> Parsed:
    records: list[Record] = []
    lines: list[int] = []
    bad: list[tuple[int, str]] = []
    waiting = deque(texts)
    while waiting:
        text = waiting.popleft()
        try:
            records.append(parse(text.data))
            lines.append(text.line)
        except BadLineError as why:
            pieces = _pieces(text)
            if len(pieces) == 1:
                bad.append((text.line, why.args[0]))
            else:
                waiting.extendleft(reversed(pieces))
    return Parsed(records, np.array(lines, dtype=np.int64), bad)


def _pieces(text: Text) -> list[Text]:
    """A broken text cut where a line looks like the next object: one without an end takes no other along."""
    pieces = []
    line = text.line
    for piece in re.split(rb"\n(?=" + text.indent + rb"\{)", text.data):
        trimmed = piece.strip(_BETWEEN)
        if trimmed:
            pieces.append(Text(line, trimmed, text.indent))
        line += piece.count(b"\n") + 1
    return pieces
