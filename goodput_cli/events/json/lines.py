"""Lines of JSON -> columns and records: lines of a known template as columns, other ordinary lines at once, and
anything odd line by line.

Every bad line is given with its number and a reason, and costs no other line.
"""

from __future__ import annotations

import codecs
import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import orjson

from goodput_cli.arrays import I64
from goodput_cli.events.columnar.block import Block
from goodput_cli.events.columnar.templates import Templates
from goodput_cli.events.parsed import NOTHING, Parsed
from goodput_cli.sources.base import RawBatch, Record

NOT_JSON = "not JSON"
NOT_UTF8 = "not UTF-8"
NOT_OBJECT = "JSON, but no object"
SEVERAL = "more than one JSON value on a line"
CUT_OFF = "cut off before the end of the object"
TOO_DEEP = "nested too deep"

_TWO_OBJECTS = re.compile(rb"\}[ \t\r]*,[ \t\r]*\{")


class BadLineError(Exception):
    """A line that holds no record; args: the reason."""


class JsonLines:
    """Reads a document with one JSON object a line (see `DocumentReader`)."""

    by_line = True

    def __init__(self, templates: Templates | None = None) -> None:
        self._templates = templates or Templates()

    def feed(self, batch: RawBatch) -> Parsed:
        """The records of the next lines."""
        data = batch.data
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        block = Block(data)
        columns, rest = self._templates.split(block)
        parsed = parse_lines(block.text(rest), rest + batch.first_line)
        return replace(parsed, columns=columns, block=block, first_line=batch.first_line) if columns else parsed

    def finish(self) -> Parsed:
        """The end of the document: nothing is left over."""
        return NOTHING


def parse_lines(data: bytes, numbers: I64) -> Parsed:
    """The records of lines with these numbers (int64, one a line)."""
    records = _all_at_once(data)
    if records is not None:
        return Parsed(records, numbers, (), b"null" in data)
    return _one_by_one(data, numbers)


def _all_at_once(data: bytes) -> list[Record] | None:
    """The records of a block with one object a line; None unless that is certain.

    The lines become the elements of an array. If every element is an object, and nowhere in a line a comma stands
    between a closing and an opening brace, then only line ends part elements; so as many elements as lines mean that
    every line is an element of its own.
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


def _one_by_one(data: bytes, numbers: I64) -> Parsed:
    records: list[Record] = []
    lines: list[int] = []
    bad: list[tuple[int, str]] = []
    loads = orjson.loads
    # What follows the last line end is a line only if there is something in it.
    for number, line in zip(numbers.tolist(), data.split(b"\n"), strict=False):
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
                bad.append((number, why.args[0]))
                continue
        records.append(record)
        lines.append(number)
    return Parsed(records, np.array(lines, dtype=np.int64), bad, True)


def parse(text: bytes) -> Record:
    """The record of a line. Raises BadLineError if it holds none."""
    try:
        record = orjson.loads(text)
    except orjson.JSONDecodeError:
        return parse_odd(text)
    return record if type(record) is dict else parse_odd(text)


def parse_odd(line: bytes) -> Record:
    """The record of a line that the fast parser refuses, such as one with NaN, huge integers or lone surrogates.

    Raises BadLineError with the reason if it holds none.
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
    except ValueError:  # an integer of thousands of digits
        raise BadLineError(NOT_JSON) from None


def _reason(text: str, error: json.JSONDecodeError) -> str:
    if error.msg.startswith("Extra data"):
        return SEVERAL if text.startswith("{") else NOT_JSON
    return CUT_OFF if text.startswith("{") and not text.endswith("}") else NOT_JSON


def _without_surrogates(value: Any) -> Any:
    """Halves of a surrogate pair stand for no character and cannot be printed: each becomes U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    return value
