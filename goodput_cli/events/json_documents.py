"""Readers of JSON documents: lines of a known template as columns, other ordinary lines in bulk, and irregular lines
one by one.

Every bad line is reported with its number and a reason, without affecting other lines.

Documents may also be a JSON array (`gcloud logging read --format=json`) or objects printed over many lines (`jq`).
Neither is ever in memory as a whole.

Collectors wrap lines of a program in JSON: `wrapped_line` returns the keys of the line and of its time. Docker writes
`log`, `stream` and `time`, Fluent Bit and Vector similar keys with the pod, journald `MESSAGE`, Loki `line`.
"""

from __future__ import annotations

import codecs
import json
import re
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import Any, NamedTuple

import numpy as np
import orjson
from msgspec import structs

from goodput_cli.arrays import I64
from goodput_cli.events.fast_json import Block, FastJson
from goodput_cli.events.formats.base import JOB_NAME, NOTHING, Entry, ParsedPart
from goodput_cli.events.text.line_timestamps import LONGEST_PREFIX, strip_prefixes
from goodput_cli.events.timestamps import NO_STAMP, TimestampReader
from goodput_cli.events.values import MAX_NS, number, round_to_us
from goodput_cli.sources.base import RawBatch, Record

NOT_JSON = "not JSON"
NOT_UTF8 = "not UTF-8"
NOT_OBJECT = "JSON, but not an object"
SEVERAL = "more than one JSON value on a line"
CUT_OFF = "truncated object"
TOO_DEEP = "nested too deep"

_TWO_OBJECTS = re.compile(rb"\}[ \t\r]*,[ \t\r]*\{")


class BadLineError(Exception):
    """Raised for a line without a record; args: the reason."""


class JsonLinesReader:
    """Reader of a document with one JSON object per line (see `DocumentReader`)."""

    by_line = True

    def __init__(self, fast: FastJson | None = None) -> None:
        """fast: the reader of earlier documents."""
        self._fast = fast or FastJson()

    def feed(self, batch: RawBatch) -> ParsedPart:
        """Return the records of the next lines."""
        data = batch.data.replace(b"\r\n", b"\n") if b"\r" in batch.data else batch.data
        block = Block(data, batch.first_line)
        columns, rest = self._fast.read(block)
        parsed = parse_lines(block.text(rest), rest + batch.first_line)
        return structs.replace(parsed, columns=columns) if columns else parsed

    def finish(self) -> ParsedPart:
        """End the document: nothing is left over."""
        return NOTHING


def parse_lines(data: bytes, numbers: I64) -> ParsedPart:
    """Return the records of lines with these numbers (int64, one per line)."""
    records = _all_at_once(data)
    if records is not None:
        return ParsedPart(records, numbers, (), b"null" in data)
    return _one_by_one(data, numbers)


def _all_at_once(data: bytes) -> list[Record] | None:
    """Return the records of a block with one object per line; None unless that is certain.

    The lines become the elements of an array. Assume that every element is an object, and no line contains a comma
    between a closing and an opening brace. Then only line ends separate elements. If there are as many elements as
    lines, every line is one element.
    """
    count = data.count(b"\n")
    if not (data.startswith(b"{") and data.endswith(b"}\n") and data.count(b"}\n{") == count - 1):
        return None
    if _TWO_OBJECTS.search(data):
        return None
    try:
        records: list[Record] = orjson.loads(b"".join((b"[", data[:-1].replace(b"\n", b","), b"]")))
    except orjson.JSONDecodeError:
        return None
    return records if len(records) == count and set(map(type, records)) == {dict} else None


def _one_by_one(data: bytes, numbers: I64) -> ParsedPart:
    records: list[Record] = []
    lines: list[int] = []
    bad: list[tuple[int, str]] = []
    loads = orjson.loads
    # Text after the last line end is a line only if it is not empty.
    for line_number, line in zip(numbers.tolist(), data.split(b"\n"), strict=False):
        try:
            record = loads(line)
        except orjson.JSONDecodeError:
            record = None
        if type(record) is not dict:
            if not line.strip():
                continue
            try:
                record = parse_odd(line)
            except BadLineError as why:
                bad.append((line_number, why.args[0]))
                continue
        records.append(record)
        lines.append(line_number)
    return ParsedPart(records, np.array(lines, dtype=np.int64), bad, b"null" in data)


def parse(text: bytes) -> Record:
    """Return the record of a line. Raises BadLineError if it contains none."""
    try:
        record = orjson.loads(text)
    except orjson.JSONDecodeError:
        return parse_odd(text)
    return record if type(record) is dict else parse_odd(text)


def parse_odd(line: bytes) -> Record:
    """Return the record of a line that the fast parser rejects, such as one with NaN, huge integers or lone surrogates.

    Raises BadLineError with the reason if it contains none.
    """
    try:
        text = line.strip().removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError:
        raise BadLineError(NOT_UTF8) from None
    try:
        record = json.loads(text)
        if not isinstance(record, dict):
            raise BadLineError(NOT_OBJECT)
        return _without_surrogates(record) if "\\ud" in text.lower() else record
    except RecursionError:
        raise BadLineError(TOO_DEEP) from None
    except json.JSONDecodeError as error:
        raise BadLineError(_reason(text, error)) from None
    except ValueError:  # the line has an integer of thousands of digits
        raise BadLineError(NOT_JSON) from None


def _reason(text: str, error: json.JSONDecodeError) -> str:
    if error.msg.startswith("Extra data"):
        return SEVERAL if text.startswith("{") else NOT_JSON
    return CUT_OFF if text.startswith("{") and not text.endswith("}") else NOT_JSON


def _without_surrogates(value: Any) -> Any:
    """Replace lone surrogates by U+FFFD: they are not characters and cannot be printed."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    return value


MAX_OPEN_BYTES = 1 << 26
"""Maximum size of an open object: a larger one was never closed."""

_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*+"?|[{}\n]')
"""A token of JSON. A string contains no line end: an unterminated one ends there, so that no text is read twice."""
_TOKEN_OR_WORD = re.compile(_TOKEN.pattern + rb"|[^\s\"{},\[\]]++")
_MOST_COUNTED = 1 << 20
"""Number of bytes that show if a document is text."""
_EMPTY = rb"(?:\[\s*\]\s*)"
_ARRAY = re.compile(rb"\s*(?:%b*\[\s*(?:\{|\Z)|%b+\Z)" % (_EMPTY, _EMPTY))
"""The start of an array of objects. A line `[]` before lines of objects is not the start of an array."""
_BARE_BRACE = re.compile(rb"\s*\{[ \t\r]*\n")
_BETWEEN = b" \t\r\n,[]"
_ANY_INDENT = rb"[ \t]{0,2}"


class Text(NamedTuple):
    """Text that should be one object, the line where it begins, and a pattern of the indentation of similar objects."""

    line: int
    data: bytes
    indent: bytes


class JsonObjects:
    """Splitter of a text into its outermost objects, independent of line ends (see `DocumentReader`)."""

    by_line = False

    @staticmethod
    def begins(head: bytes) -> bool:
        """Return True if a document that begins with `head` is of this kind. A program may print its settings as an
        object before its log: then most lines are outside of objects."""
        return bool(_ARRAY.match(head)) or (_BARE_BRACE.match(head) is not None and not _is_mostly_text(head))

    def __init__(self) -> None:
        self._depth = 0
        self._line = 1
        self._start_line = 1
        self._open: list[bytes] = []  # text of the open object from earlier batches
        self._open_bytes = 0
        self._indent = _ANY_INDENT
        self._array = False  # True inside the brackets of an array

    def feed(self, batch: RawBatch) -> ParsedPart:
        """Return the objects that end in the next lines."""
        return _parse_all(self._cut(batch.data))

    def finish(self) -> ParsedPart:
        """End the document: an object or array that is still open was cut off."""
        if self._open:
            return _parse_all(iter([self._take_open()]))
        bad = [(self._line, CUT_OFF)] if self._array else []
        return ParsedPart((), np.empty(0, dtype=np.int64), bad)

    def _cut(self, data: bytes) -> Iterator[Text]:
        """Yield the text of each outermost object, and any other text between objects."""
        start = 0  # start of the open object, or of the text between objects
        start_line = self._line
        for token in _TOKEN.finditer(data):
            at = token.start()
            log_line = data[at : at + 1]
            if log_line == b"\n":
                self._line += 1
            elif log_line == b"{":
                if self._depth == 0:
                    yield from self._between(start_line, data[start:at])
                    start, self._start_line = at, self._line
                    # indentation of the objects in this part that begin a line
                    before = data[data.rfind(b"\n", 0, at) + 1 : at]
                    self._indent = _ANY_INDENT if before.strip() else re.escape(before)
                self._depth += 1
            elif log_line == b"}" and self._depth:
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


def _is_mostly_text(head: bytes) -> bool:
    """Return True if more lines are outside of objects than inside."""
    depth = inside = outside = 0
    is_blank = True
    for token in _TOKEN_OR_WORD.finditer(head, 0, _MOST_COUNTED):
        first = token[0][:1]
        if first == b"\n":
            inside += depth > 0
            outside += depth == 0 and not is_blank
            is_blank = True
            continue
        depth = depth + 1 if first == b"{" else max(depth - 1, 0) if first == b"}" else depth
        is_blank &= first in b"{}"
    return outside > inside


def _parse_all(texts: Iterator[Text]) -> ParsedPart:
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
    return ParsedPart(records, np.array(lines, dtype=np.int64), bad)


def _pieces(text: Text) -> list[Text]:
    """Split a broken text at lines that look like the next object, so that an unterminated object does not consume
    others."""
    pieces = []
    line = text.line
    for piece in re.split(rb"\n(?=" + text.indent + rb"\{)", text.data):
        trimmed = piece.strip(_BETWEEN)
        if trimmed:
            pieces.append(Text(line, trimmed, text.indent))
        line += piece.count(b"\n") + 1
    return pieces


_TIMES = {
    "log": ("time", "@timestamp", "date", "timestamp"),
    "message": ("@timestamp", "timestamp", "time"),
    "MESSAGE": ("__REALTIME_TIMESTAMP",),
    "line": ("timestamp",),
}
"""The keys of the time, the best first, by the key of the text."""
KEYS = frozenset(_TIMES).union(*_TIMES.values())
_PODS = (("kubernetes", "pod_name"), ("labels", "pod"))
_UNITS = ((10**11, 10**9), (10**14, 10**6), (10**17, 10**3))
"""Units of epoch times in ns, by upper limit: seconds, milliseconds, microseconds."""


def wrapped_line(keys: frozenset[str]) -> tuple[str, str] | None:
    """Return the keys of the text and of its time in records with these keys; None if they do not wrap a line."""
    pairs = ((text, time) for text, times in _TIMES.items() for time in times)
    return next(((text, time) for text, time in pairs if text in keys and time in keys), None)


def collected_at(times: Sequence[Any]) -> I64:
    """Return ns of timestamps of collectors (ISO with a zone, or epoch times); NO_STAMP for other values."""
    instants = TimestampReader(UTC).read_column([time if isinstance(time, str) else "" for time in times])
    stamps = np.where(instants.good & ~instants.naive, instants.ns, NO_STAMP)
    for at in np.flatnonzero(stamps == NO_STAMP).tolist():
        stamps[at] = _epoch(times[at])
    return stamps


def _epoch(time: Any) -> int:
    value = number(time)
    if value is None or value < 0:
        return NO_STAMP
    unit = next((unit for limit, unit in _UNITS if value < limit), 1)
    ns = round_to_us(value) if isinstance(value, float) and unit == _UNITS[0][1] else int(value) * unit
    return ns if ns < MAX_NS else NO_STAMP


def as_entries(records: Sequence[Record]) -> list[Entry]:
    """Return entries like those of Cloud Logging with the writer of each line."""
    return [{"resource": {"labels": {"pod_name": _pod(record)}}} for record in records]


def _pod(record: Record) -> str:
    about = ((record.get(holder), key) for holder, key in _PODS)
    return next((one[key] for one, key in about if isinstance(one, dict) and isinstance(one.get(key), str)), "")


def json_in(text: object) -> Record | None:
    """Return the JSON object in a line, after prefixes of launchers and collectors; after a logger's words only if it
    names its job. None if there is none."""
    if not isinstance(text, str) or "{" not in text:
        return None
    body = strip_prefixes(text.strip()).text
    begin = body.find("{")
    if begin and (begin > LONGEST_PREFIX or JOB_NAME not in body):
        return None
    try:
        record = parse(body[begin:].encode())
    except (BadLineError, UnicodeEncodeError):
        return None
    return None if begin and JOB_NAME not in record else record
