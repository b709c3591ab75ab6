"""A JSON answer as text: docs/schema.json describes every key.

Every key is always there; what does not apply is null. Text is ASCII with JSON escapes, so that nothing in a log can
act on a terminal that shows it. A row of a long list takes one line: there may be thousands, which are quick to write
so, and `grep` is of use.

A JSON value in one line of ASCII: what lists of a JSON answer have for each of their items.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson
from msgspec import UNSET, to_builtins

from goodput_cli.analysis.document import Document
from goodput_cli.analysis.sheet import Lazy
from goodput_cli.analysis.wire import wire
from goodput_cli.report.base import Page
from goodput_cli.vocabulary.text import finite, well_formed

_DELETE = b"\x7f"


def one_line(value: Any) -> str:
    """JSON in one line, without blanks; null for NaN and infinities.

    Text is ASCII with JSON escapes, so that nothing in a log can act on a terminal that shows it. What the quick way
    cannot write so is rare: text beyond ASCII, lone surrogates (written as U+FFFD), integers of more than 64 bits.
    """
    try:
        text = orjson.dumps(value)
    except TypeError:
        return _carefully(value)
    return text.decode() if text.isascii() and _DELETE not in text else _carefully(value)


def _carefully(value: Any) -> str:
    return json.dumps(written_safely(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def written_safely(value: Any) -> Any:
    """The same value with text that can be encoded, and None for NaN and infinities."""
    match value:
        case str():
            return well_formed(value)
        case float():
            return finite(value)
        case Mapping():
            return {well_formed(str(key)): written_safely(item) for key, item in value.items()}
        case list() | tuple():
            return [written_safely(item) for item in value]
        case _:
            return value


_INDENTED = json.JSONEncoder(indent=2, allow_nan=False)


def render(document: Document, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """The whole answer as one JSON object. `UsageError` for what is a part of an answer only."""
    return json_text(document.json_answer())


def json_text(answer: Any) -> str:
    """The answer as one JSON object, a key a line."""
    return "".join(_parts(wire(answer)))


def _parts(answer: Any) -> Iterator[str]:
    before = "{\n"
    for key in answer.__struct_fields__:
        value = getattr(answer, key)
        if value is UNSET:
            continue
        yield f"{before}  {json.dumps(key)}: "
        if isinstance(value, Lazy) or (isinstance(value, list | tuple) and not answer.indented):
            yield from _lines(value)
        else:
            yield _indented(value) if answer.indented else one_line(_plain(value))
        before = ",\n"
    yield "\n}\n"


def _lines(items: Iterable[Any]) -> Iterator[str]:
    """A list with one item a line. Rows of tables are plain values already."""
    before = "[\n    "
    for item in items:
        yield before + one_line(item if type(item) is dict else _plain(item))
        before = ",\n    "
    yield "\n  ]" if before[0] == "," else "[]"


def _indented(value: Any) -> str:
    text = _INDENTED.encode(written_safely(_plain(value)))
    return text.replace("\n", "\n  ")  # no text holds a line end: JSON escapes it


def _plain(value: Any) -> Any:
    """With lists for rows that are made when they are read."""
    return to_builtins(value, enc_hook=list)
